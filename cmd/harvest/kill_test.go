package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/ninep"
)

// TestKill kills the server in the middle of gathering, again and again, and
// looks after each restart for every object that was there before. At last
// the run ends by itself, and nothing is missing.
func TestKill(t *testing.T) {
	kills, files := 12, 3000
	if testing.Short() {
		kills, files = 3, 800
	}
	docs, dir := t.TempDir(), t.TempDir()
	for i := range files {
		sub := filepath.Join(docs, fmt.Sprintf("d%02d", i%50))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		page := fmt.Sprintf("<title>Page %d</title><p>%s", i, strings.Repeat("Some words of it. ", 200))
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("%05d.html", i)), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	seen := map[string]bool{}
	for i := range kills + 1 {
		p := startServer(t, dir)
		if i == 0 {
			p.put(t, "gather", "")
			p.put(t, "gather/g/config", "root url=file://"+docs+"/")
			p.put(t, "gather/g/ctl", "run")
		}
		now := p.objects(t)
		for u := range seen {
			if !now[u] {
				t.Fatalf("after kill %d: %s was listed before and is gone", i, u)
			}
		}
		if i == kills {
			p.put(t, "gather/g/ctl", "run")
			p.idle(t, "gather/g")
			if now = p.objects(t); len(now) != files {
				t.Errorf("at the end: got %d objects, want %d", len(now), files)
			}
			p.end(t)
			break
		}
		// Let it get a little further each time.
		want := min(len(now)+files/(kills+2), files)
		for len(now) < want {
			if err := ctx.Err(); err != nil {
				t.Fatal(err)
			}
			now = p.objects(t)
		}
		seen = now
		p.kill(t)
	}
}

type server struct {
	cmd  *exec.Cmd
	c    *ninep.Client
	addr string
}

// spawn starts the program, and does not wait until it is ready.
func spawn(t *testing.T, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	exe, err := exec.LookPath("harvest")
	if err != nil {
		t.Fatal(err) // testscript.Main puts it in the path
	}
	cmd := exec.Command(exe, "serve", "-d", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, out
}

func startServer(t *testing.T, dir string) *server {
	t.Helper()
	cmd, out := spawn(t, dir)
	b := make([]byte, 4096)
	n, err := out.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(string(b[:n]))
	c, err := ninep.Dial(t.Context(), addr, ninep.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &server{cmd, c, addr}
}

func (p *server) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
	p.c.Close()
}

func (p *server) end(t *testing.T) {
	t.Helper()
	p.c.Close()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("serve, told to end: %v", err)
	}
}

// put writes a line to a file; a directory gets the Gatherer g instead.
func (p *server) put(t *testing.T, path, line string) {
	t.Helper()
	n, err := fs.Walk(t.Context(), p.c.Root(), path)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := n.(fs.Maker); ok {
		_, err = m.Mkdir(t.Context(), "g", 0o755)
	} else {
		err = writeFile(t.Context(), p.c.Root(), path, strings.NewReader(line+"\n"), false)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// objects lists the names of the objects.
func (p *server) objects(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	d, err := walkDir(t.Context(), p.c.Root(), "gather/g/objects")
	if err != nil {
		t.Fatal(err)
	}
	for folder, err := range d.List(t.Context(), "") {
		sub, ok := folder.Node.(fs.Dir)
		if err != nil || !ok {
			continue
		}
		for e, err := range sub.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(e.Name, ".soif") {
				all[e.Name] = true
			}
		}
	}
	return all
}

func (p *server) idle(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		d, err := walkDir(ctx, p.c.Root(), path)
		if err != nil {
			t.Fatal(err)
		}
		st := readStatus(ctx, d)
		if state, _ := st.Get("state"); state == "idle" {
			return
		}
		select { // let it work
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: still not idle: %s", path, st)
		}
	}
}
