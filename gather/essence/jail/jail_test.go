package jail

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main(insides()...)
	if path := os.Getenv("HARVEST_TEST_JAIL"); path != "" {
		server(path)
	}
	os.Exit(m.Run())
}

// insides are functions that tests run in a jail.
func insides() []Inside {
	return []Inside{
		{"shout", func(args []string) error {
			var b bytes.Buffer
			if _, err := b.ReadFrom(os.Stdin); err != nil {
				return err
			}
			_, err := os.Stdout.WriteString(strings.ToUpper(b.String()) + strings.Join(args, ","))
			return err
		}},
		{"try", tryAll},
		{"hog", func([]string) error {
			var all [][]byte
			for {
				b := make([]byte, 16<<20)
				for i := 0; i < len(b); i += 4096 {
					b[i] = 1
				}
				if all = append(all, b); len(all) > 1<<20 {
					return nil
				}
			}
		}},
	}
}

// everywhere runs a test on each ground that there is, by a name for it.
func everywhere(t *testing.T, f func(t *testing.T, without int)) {
	t.Run("namespaces", func(t *testing.T) { f(t, 0) })
	t.Run("warden", func(t *testing.T) { f(t, noSpaces) })
}

// script makes a program of shell text.
func script(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func output(t testing.TB, c *Cmd) (string, error) {
	t.Helper()
	var b strings.Builder
	err := c.Run(context.Background(), &b)
	return b.String(), err
}

func TestRun(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		dir := t.TempDir()
		object := filepath.Join(dir, "object.txt")
		if err := os.WriteFile(object, []byte("the object\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(object)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := output(t, &Cmd{Path: script(t, `cat; cat "$1" ; basename "$1"; echo $type; cd; echo x >y; cat y; cat /dev/stdin; pwd >/dev/null; echo done`),
			Args: []string{"{}"}, Env: []string{"type=Odd"}, Stdin: f, Name: "a b.txt", without: without})
		want := "the object\nthe object\na b.txt\nOdd\nx\nthe object\ndone\n"
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "harvest-jail-*")); len(left) > 0 {
			t.Errorf("got %q left, want nothing", left)
		}
		got, err = output(t, &Cmd{Path: "shout", Args: []string{"a", "b"}, Stdin: strings.NewReader("hey "), Inside: true, without: without})
		if err != nil || got != "HEY a,b" {
			t.Errorf("inside: got %q, %v", got, err)
		}
	})
}

func TestExit(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		path := script(t, "echo one >&2; echo two >&2; exit 3")
		_, err := output(t, &Cmd{Path: path, without: without})
		var x *Exit
		if !errors.As(err, &x) || x.Code != 3 || x.Said != "one\ntwo\n" || !strings.HasSuffix(err.Error(), "/program: exit status 3: two") {
			t.Errorf("got %v, want exit status 3: two", err)
		}
		_, err = output(t, &Cmd{Path: script(t, "ulimit -c 0; sh -c 'kill -9 $$' || kill -9 $$; exit 9"), without: without})
		if !errors.As(err, &x) {
			t.Errorf("killed: got %v", err)
		}
		_, err = output(t, &Cmd{Path: "/nowhere/at/all", without: without})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("absent: got %v", err)
		}
		text := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(text, []byte("echo hello\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err = output(t, &Cmd{Path: text, without: without}); err == nil || !strings.Contains(err.Error(), "a script begins with #!") {
			t.Errorf("text: got %v", err)
		}
		if _, err = output(t, &Cmd{Path: "whisper", Inside: true, without: without}); err == nil || !strings.Contains(err.Error(), "does not give it to jail.Main") {
			t.Errorf("inside: got %v", err)
		}
	})
}

func TestBounds(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		for name, c := range map[string]struct {
			Cmd
			want string
		}{
			"wall":   {Cmd{Path: script(t, "sleep 100"), Wall: 300 * time.Millisecond}, "killed: it took longer than 300ms"},
			"output": {Cmd{Path: "/usr/bin/yes", Output: 100000}, "killed: it wrote more than 100000 bytes"},
			"cpu":    {Cmd{Path: script(t, "while :; do :; done"), CPU: time.Second}, "signal: killed"},
			"file":   {Cmd{Path: script(t, "cd; yes >file; stat -c %s file; exit 1"), Output: 100000}, "exit status 1"},
			"memory": {Cmd{Path: "/usr/bin/perl", Args: []string{"-e", "my @a; push @a, 'x' x 1e6 while 1"}, Memory: 64 << 20}, "emory"},
			"hog":    {Cmd{Path: "hog", Inside: true, Memory: 256 << 20}, "memory"},
		} {
			t.Run(name, func(t *testing.T) {
				c.without = without
				_, err := output(t, &c.Cmd)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		}
	})
}

func BenchmarkRun(b *testing.B) {
	for _, g := range []struct {
		name    string
		without int
	}{{"namespaces", 0}, {"warden", noSpaces}} {
		b.Run(g.name, func(b *testing.B) {
			for b.Loop() {
				if err := (&Cmd{Path: "/bin/true", without: g.without}).Run(context.Background(), new(bytes.Buffer)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
