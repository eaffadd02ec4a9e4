package broker

import (
	"context"
	"io"
	iofs "io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"harvest/fs"
	"harvest/fs/ninep"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// TestRemote collects over 9P: all, what is new, from a source that was made
// anew, and not from one that hangs up in the middle.
func TestRemote(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	serve := func(root func() fs.Dir) Opener {
		return func(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
			here, there := net.Pipe()
			done := make(chan error, 1)
			go func() { // ends with the connection; the test waits for it in Close
				done <- ninep.NewServer(testLog(t), ninep.Limits{}).ServeConn(context.Background(), there, root(), &fs.User{Name: "b"})
			}()
			c, err := ninep.NewClient(ctx, here, path, ninep.DialOptions{})
			if err != nil {
				return nil, nil, err
			}
			return fs.IO(ctx, c.Root()), closer(func() error {
				err := c.Close()
				<-done
				return err
			}), nil
		}
	}
	files := func() fs.Dir {
		return fs.Static(fs.RootPath, w.stores["gather/web"].Files(func(parts ...string) uint64 { return fs.ID(append([]string{"g"}, parts...)...) }, nil, nil))
	}
	b, err := Open(t.TempDir(), "b", testLog(t), Options{Open: serve(files)})
	must(t, err)
	defer b.Close()
	must(t, b.setConfig(ctx, "source path=tcp!host!5640/gather/web\n"))
	const path = "tcp!host!5640/gather/web"
	want := make(map[string]*soif.Object)
	var changes []store.Change
	for i := range 300 {
		o := object("http://a/"+strings.Repeat("x", i), "remote", strings.Repeat("text ", i))
		want[o.URL] = o
		changes = append(changes, update(o))
	}
	apply(t, g, changes...)
	must(t, b.Collect(ctx, path))
	holds(t, b, want)
	apply(t, g, store.Change{Op: soif.Delete, OID: oid("http://a/")})
	delete(want, "http://a/")
	must(t, b.Collect(ctx, path))
	holds(t, b, want)
	if !strings.Contains(b.lastEvents(), "updates=0 deletes=1") {
		t.Errorf("got events %s, want one delete", b.lastEvents())
	}
	g = w.gatherer("gather/web") // anew
	for u := range want {
		if len(u) > 20 {
			delete(want, u)
		} else {
			apply(t, g, update(want[u]))
		}
	}
	must(t, b.Collect(ctx, path))
	holds(t, b, want)
}

type closer func() error

func (c closer) Close() error { return c() }

// TestMount collects from a directory whose errors are errnos, as those of a
// mounted tree are: a cursor of another epoch is some errno or other.
func TestMount(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EINVAL, syscall.EIO, syscall.ESTALE} {
		w := newWorld(t)
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "since"), 0o777))
		w.trees["/mnt"] = staleFS{os.DirFS(dir), errno}
		b := w.broker(t.TempDir(), "source path=/mnt\n")
		a := object("http://a/1", "one", "")
		for _, cursor := range []string{"7", "8"} {
			text := "@UPDATE {\n" + string(a.Append(nil)) + "}\n@CURSOR { -\nCursor{1}:\t" + cursor + "\n}\n"
			must(t, os.WriteFile(filepath.Join(dir, "since", "0"), []byte(text), 0o666))
			if err := b.Collect(ctx, "/mnt"); err != nil {
				t.Errorf("%v: got %v, want another start", errno, err)
			}
			holds(t, b, map[string]*soif.Object{a.URL: a})
			a = object("http://a/2", "two", "")
		}
		// Not so when the tree itself is away.
		must(t, os.RemoveAll(filepath.Join(dir, "since")))
		if err := b.Collect(ctx, "/mnt"); err == nil {
			t.Errorf("%v: collected from nothing", errno)
		}
		holds(t, b, map[string]*soif.Object{"http://a/2": object("http://a/2", "two", "")})
	}
}

// staleFS knows since/0 and gives an errno for other cursors.
type staleFS struct {
	iofs.FS
	errno syscall.Errno
}

func (f staleFS) Open(name string) (iofs.File, error) {
	if strings.HasPrefix(name, "since/") && name != "since/0" {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: f.errno}
	}
	return f.FS.Open(name)
}
