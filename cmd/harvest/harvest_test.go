package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"harvest/fs/fuse"
	"harvest/gather/essence"
	"harvest/gather/essence/jail"
)

func TestMain(m *testing.M) {
	jail.Main(essence.Inside()...)
	testscript.Main(m, map[string]func(){"harvest": main})
}

// TestScripts runs the command as a user types it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HARVEST_DIR", filepath.Join(e.WorkDir, "state"))
			e.Setenv("HOME", e.WorkDir)
			e.Defer(func() { endServer(t, e.WorkDir) })
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "fuse" {
				err := fuse.Available()
				if err != nil {
					t.Logf("scripts skip their mounts: %v", err)
				}
				return err == nil, nil
			}
			_, err := exec.LookPath(cond)
			return err == nil, nil
		},
	})
}

// endServer ends what a script that failed half-way left behind in its folder:
// a mount there, and the server whose process file pid tells.
func endServer(t *testing.T, work string) {
	if there := filepath.Join(work, "there"); fuse.Unmount(there) == nil {
		t.Logf("unmounted %s", there)
	}
	text, err := os.ReadFile(filepath.Join(work, "pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || cwd != work {
		return // the number is another's by now
	}
	t.Logf("ending process %d", pid)
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil {
		t.Errorf("process %d: %v", pid, err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n != 1 {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

func TestEndServer(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	endServer(t, work) // nothing to do
	start := func(dir string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, "pid"), fmt.Appendln(nil, cmd.Process.Pid), 0o644); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	other := start("/")
	endServer(t, work)
	if err := other.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process of elsewhere: got %v, want it alive", err)
	}
	other.Process.Kill()
	other.Wait()
	cmd := start(work)
	endServer(t, work)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("got %v, want the process terminated", err)
	}
}

func TestHelp(t *testing.T) {
	for _, c := range commands() {
		var out, complaints strings.Builder
		code := run(context.Background(), []string{c.name, "--help"}, std{strings.NewReader(""), &out, &complaints})
		if code != 0 || !strings.Contains(out.String(), "usage:") || complaints.Len() > 0 {
			t.Errorf("%s --help: got code %d, output %q and complaints %q, want 0 and a usage", c.name, code, out.String(), complaints.String())
		}
	}
}

// TestCompletion has bash read what is meant for it.
func TestCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	var out strings.Builder
	if code := run(context.Background(), []string{"completion", "bash"}, std{nil, &out, io.Discard}); code != 0 {
		t.Fatalf("completion bash: got exit code %d", code)
	}
	file := filepath.Join(t.TempDir(), "completion")
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ words, want string }{
		{"harvest unm", "unmount"},
		{"harvest try --on", "--once"},
		{"harvest completion z", "zsh"},
		{"harvest cat gather/web/st", "gather/web/status"},
		{"harvest ls -l ga", "gather/"},
		{"harvest ls q/", `q/\$\(touch\ made\) q/two\ words`},
		{"harvest query pa", "papers"},
	} {
		script := `cd "${1%/*}"; source "$1"
			harvest() {
				case "${@: -1}" in
				"") echo README; echo gather/ ;;
				broker) echo papers/ ;;
				gather/web/) echo status ;;
				q/) echo '$(touch made)'; echo 'two words' ;;
				esac
			}
			COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _harvest; echo "${COMPREPLY[@]}"`
		got, err := exec.Command(bash, "-c", script, "bash", file, tc.words).CombinedOutput()
		if err != nil || strings.TrimSpace(string(got)) != tc.want {
			t.Errorf("completing %q: got %q, %v, want %q", tc.words, got, err, tc.want)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "made")); err == nil {
		t.Error("completing a name ran what is in it")
	}
}

func TestCutAddr(t *testing.T) {
	for _, tc := range []struct{ in, addr, path string }{
		{"tcp!host!5640/gather/web", "tcp!host!5640", "/gather/web"},
		{"tls!host/broker/x", "tls!host", "/broker/x"},
		{"tcp!host!5640", "tcp!host!5640", ""},
		{"unix!/no/such/socket", "unix!/no/such/socket", ""},
	} {
		if addr, path := cutAddr(tc.in); addr != tc.addr || path != tc.path {
			t.Errorf("cutAddr(%q): got %q, %q, want %q, %q", tc.in, addr, path, tc.addr, tc.path)
		}
	}
}

// TestTell has the lines to copy be lines that work: a mount that was not
// there this time is not asked for the next, and names reach the shell whole.
func TestTell(t *testing.T) {
	for _, tc := range []struct {
		mount, dir string
		once       bool
		want       string
	}{
		{"", "/s", true, "\tharvest serve -d '/s'\n"},
		{"/m", "/s", true, "\tharvest serve -d '/s' -m '/m'\n"},
		{"", "/it's", true, `serve -d '/it'\''s'`},
		{"/it's", "/s", false, `cat '/it'\''s'/README`},
		{"", "/s", false, "harvest cat -a 'unix!/s' README"},
	} {
		var out strings.Builder
		(&trial{std: std{out: &out}, query: "title : x"}).tell([]string{"unix!/s"}, tc.mount, tc.dir, tc.once)
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("mount %q, dir %q, once %t: got %q, want in it %q", tc.mount, tc.dir, tc.once, out.String(), tc.want)
		}
	}
}
