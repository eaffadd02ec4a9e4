package ninep

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"9fans.net/go/plan9"
	"9fans.net/go/plan9/client"
	"github.com/knusbaum/go9p"

	"harvest/fs"
	"harvest/fs/fuse"
)

// underGo9p serves root by go9p's own loop, which knows only our Srv, and
// gives the connection.
func underGo9p(t *testing.T, v *Server, root fs.Dir) net.Conn {
	t.Helper()
	log.SetOutput(io.Discard) // go9p logs each end of a connection
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	a, nc := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		go9p.ServeReadWriter(a, a, service{v, root, owner(), context.Background(), 32 << 10})
	}()
	t.Cleanup(func() { nc.Close(); <-done })
	return nc
}

// Test9fans: the client of 9fans.net/go, with our loop and with go9p's.
func Test9fans(t *testing.T) {
	for name, connect := range map[string]func(t *testing.T, v *Server, root fs.Dir) net.Conn{
		"our loop":    func(t *testing.T, v *Server, root fs.Dir) net.Conn { return serve(t, v, root, owner()) },
		"go9p's loop": underGo9p,
	} {
		t.Run(name, func(t *testing.T) {
			root := theTree()
			for i := range 1000 {
				root.names["a"].(*shelf).file(fmt.Sprintf("%04d", i), "x")
			}
			c, err := client.NewConn(connect(t, NewServer(discard(), Limits{}), root))
			if err != nil {
				t.Fatal(err)
			}
			fsys, err := c.Attach(nil, "glenda", "")
			if err != nil {
				t.Fatal(err)
			}
			f, err := fsys.Open("a/b/c", plan9.OREAD)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(f)
			if string(b) != "text of c\n" || err != nil {
				t.Errorf("read: got %q, %v", b, err)
			}
			f.Close()
			if _, err := fsys.Stat("nothing"); err == nil || !strings.Contains(err.Error(), "No such file or directory") {
				t.Errorf("stat of nothing: got %v", err)
			}
			f, err = fsys.Open("a", plan9.OREAD)
			if err != nil {
				t.Fatal(err)
			}
			all, err := f.Dirreadall()
			if len(all) != 1001 || err != nil || all[0].Name != "0000" || all[1000].Name != "b" || all[1000].Mode != plan9.DMDIR|0o755 {
				t.Errorf("directory: got %d entries, %v", len(all), err)
			}
			f.Close()
			f, err = fsys.Create("a/big", plan9.ORDWR, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			big := bytes.Repeat([]byte("0123456789"), 40000)
			if n, err := f.Write(big); n != len(big) || err != nil {
				t.Errorf("write: got %d, %v", n, err)
			}
			got := make([]byte, len(big))
			f.Seek(0, 0)
			if _, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, big) {
				t.Errorf("read back: %v", err)
			}
			f.Close()
			var d plan9.Dir
			d.Null()
			d.Name, d.Length = "small", 3
			if err := fsys.Wstat("a/big", &d); err != nil {
				t.Error(err)
			}
			st, err := fsys.Stat("a/small")
			if err != nil || st.Length != 3 || st.Uid == "" {
				t.Errorf("stat: got %v, %v", st, err)
			}
			if err := fsys.Remove("a/small"); err != nil {
				t.Error(err)
			}
			if err := fsys.Remove("a"); err == nil || !strings.Contains(err.Error(), "Directory not empty") {
				t.Errorf("remove of a full directory: got %v", err)
			}
		})
	}
}

// TestForeign: our client with a server that is not ours, does requests in
// any order, and does not tell Kinds.
func TestForeign(t *testing.T) {
	root := theTree()
	v := NewServer(discard(), Limits{})
	v.unmark = true
	ctx := t.Context()
	c, err := NewClient(ctx, underGo9p(t, v, root), "go9p", DialOptions{Msize: 8192})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.ours {
		t.Fatal("takes a foreign server for one of ours")
	}
	fsys := fs.IO(ctx, c.Root())
	if b, err := iofs.ReadFile(fsys, "a/b/c"); string(b) != "text of c\n" || err != nil {
		t.Errorf("read: got %q, %v", b, err)
	}
	for path, class := range map[string]error{"a/x": iofs.ErrNotExist, "a/x/y": iofs.ErrNotExist, "x": iofs.ErrNotExist} {
		if _, err := iofs.Stat(fsys, path); !errors.Is(err, class) {
			t.Errorf("%s: got %v, want %v", path, err, class)
		}
	}
	for name, kind := range map[string]fs.Kind{"f": fs.Plain, "log": fs.Growing} {
		n, err := c.Root().Lookup(ctx, name)
		if err != nil || n.Stat().Kind != kind {
			t.Errorf("%s: got %+v, %v, want kind %d", name, n.Stat(), err, kind)
		}
	}
	f, h, err := c.Root().(fs.Creator).Create(ctx, "new", 0o666, fs.Read|fs.Write)
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789"), 4000)
	if n, err := h.WriteAt(ctx, big, 0); n != len(big) || err != nil {
		t.Errorf("write: got %d, %v", n, err)
	}
	if err := h.Flush(ctx); err != nil {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if b, err := iofs.ReadFile(fsys, "new"); !bytes.Equal(b, big) || err != nil {
		t.Errorf("read back: %d bytes, %v", len(b), err)
	}
	if st := f.Stat(); st.Kind != fs.Made {
		t.Errorf("kind of an empty file: got %d, want %d", st.Kind, fs.Made)
	}
	if _, _, err := c.Root().(fs.Creator).Create(ctx, "new", 0o666, fs.Write); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("create again: got %v", err)
	}
	if err := c.Root().(fs.Renamer).Rename(ctx, "nothing", "else", true); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("rename of nothing: got %v", err)
	}
	if err := c.Root().(fs.Renamer).Rename(ctx, "new", "f", true); err != nil {
		t.Error(err)
	}
	var names []string
	for e, err := range c.Root().List(ctx, "b") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	if got, want := strings.Join(names, " "), "ctl events f log ro shut"; got != want {
		t.Errorf("names: got %s, want %s", got, want)
	}
	if err := c.Root().(fs.Remover).Remove(ctx, "f"); err != nil {
		t.Error(err)
	}
}

// TestV9fs mounts the tree with the client in the Linux kernel, in a virtual
// machine that a script beside the repository runs, and works on it.
func TestV9fs(t *testing.T) {
	rig, err := filepath.Abs("../../../shared/rigs/9p/v9fs-qemu.sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(rig); err != nil {
		t.Skip("skipped: there is no script to run a kernel with v9fs")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("skipped: there is no qemu to run a kernel with v9fs")
	}
	if os.Getenv("HARVEST_V9FS") == "" {
		t.Skip("skipped: it boots a kernel twice, which takes half a minute and more; set HARVEST_V9FS=1")
	}
	cache := os.Getenv("V9FS_CACHE")
	if cache == "" {
		cache = t.TempDir()
	}
	for _, version := range []string{"9p2000", "default"} {
		t.Run(version, func(t *testing.T) {
			root := theTree()
			v := NewServer(discard(), Limits{})
			addr := atPort(t, v, root)
			cmd := exec.Command("sh", rig, addr, "testdata/v9fs.sh")
			cmd.Env = append(os.Environ(), "V9FS_VERSION="+version, "V9FS_CACHE="+cache, "V9FS_OPTS=msize=1048576", "V9FS_TIMEOUT=120")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), "all is well") {
				t.Errorf("the guest's commands did not run to their end\n%s", out)
			}
		})
	}
}

const mountEnv = "HARVEST_NINEP_MOUNT"

// TestMountChild is the process that mounts for TestMount: a server must not
// use its own mount.
func TestMountChild(t *testing.T) {
	addr, point, ok := strings.Cut(os.Getenv(mountEnv), " ")
	if !ok {
		t.Skip("runs as a child of TestMount")
	}
	c, err := Dial(t.Context(), addr, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := fuse.Mount(t.Context(), point, c.Root(), fuse.Options{Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("mounted")
	io.Copy(io.Discard, os.Stdin)
	if err := m.Unmount(); err != nil {
		t.Error(err)
	}
}

// TestMount works on a tree that is dialed and mounted with FUSE: all that
// works there over v9fs works there too.
func TestMount(t *testing.T) {
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("skipped: there is no FUSE: %v", err)
	} else {
		f.Close()
	}
	root := theTree()
	addr := serving(t, NewServer(discard(), Limits{}), "unix!"+filepath.Join(t.TempDir(), "s"), ListenOptions{}, root)
	point, err := os.MkdirTemp("", "ninepmnt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(point)
	cmd := exec.Command(os.Args[0], "-test.run=^TestMountChild$", "-test.v")
	cmd.Env = append(os.Environ(), mountEnv+"="+addr+" "+point)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewScanner(out)
	var said strings.Builder
	for r.Scan() && r.Text() != "mounted" {
		fmt.Fprintln(&said, r.Text())
	}
	defer func() {
		in.Close()
		for r.Scan() {
			fmt.Fprintln(&said, r.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the child that mounts: %v\n%s", err, &said)
		}
	}()
	script, err := filepath.Abs("testdata/v9fs.sh")
	if err != nil {
		t.Fatal(err)
	}
	// The shell is killed and not the test when a call never returns.
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-e", script)
	sh.Dir = point
	sh.Env = append(os.Environ(), "T="+t.TempDir())
	b, err := sh.CombinedOutput()
	if err != nil || !strings.Contains(string(b), "all is well") {
		t.Errorf("%v\n%s", err, b)
	}
}

// atPort serves root on a port, which it gives.
func atPort(t *testing.T, v *Server, root fs.Dir) string {
	t.Helper()
	addr := serving(t, v, "tcp!127.0.0.1!0", ListenOptions{}, root)
	return addr[strings.LastIndexByte(addr, '!')+1:]
}
