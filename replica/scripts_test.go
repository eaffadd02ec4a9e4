package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/fs/ninep"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A world is a tree with a Gatherer's store, gather/web, and Replicas.
type world struct {
	tb       testing.TB
	web      *store.Store
	replicas *fs.Services[*Replica]
	root     fs.Dir
	remote   func(ctx context.Context, path string) (iofs.FS, io.Closer, error) // opens what begins with tcp!
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

func testLog(tb testing.TB) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(tb.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

func newWorld(tb testing.TB, dir string) *world {
	w := &world{tb: tb}
	var err error
	w.web, err = store.Open(filepath.Join(dir, "web"), testLog(tb), store.Options{NoSync: true})
	must(tb, err)
	id := func(parts ...string) uint64 { return fs.ID(append([]string{"web"}, parts...)...) }
	remove := func(ctx context.Context, e store.Entry) error {
		_, err := w.web.Apply(ctx, []store.Change{{Op: soif.Delete, OID: e.OID}})
		return err
	}
	w.replicas, err = OpenAll(filepath.Join(dir, "replica"), testLog(tb), Options{Open: w.open})
	must(tb, err)
	w.root = fs.Static(fs.RootPath, map[string]fs.Node{
		"gather":  fs.Static(fs.ID("gather"), map[string]fs.Node{"web": fs.Static(id("dir"), w.web.Files(id, nil, remove))}),
		"replica": w.replicas.Files(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.wg.Go(func() { w.replicas.Run(ctx) })
	return w
}

func (w *world) close() {
	w.cancel()
	w.wg.Wait()
	must(w.tb, errors.Join(w.replicas.Close(), w.web.Close()))
}

func (w *world) open(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
	if strings.HasPrefix(path, "tcp!") {
		return w.remote(ctx, path)
	}
	if strings.HasPrefix(path, "/") {
		return os.DirFS(path), io.NopCloser(nil), nil
	}
	n, err := fs.Walk(ctx, w.root, path)
	if err != nil {
		return nil, nil, err
	}
	return fs.IO(ctx, n.(fs.Dir)), io.NopCloser(nil), nil
}

// gathered puts objects into gather/web.
func (w *world) gathered(from, to int, text string) {
	w.tb.Helper()
	var changes []store.Change
	for i := from; i < to; i++ {
		o := soif.Object{Type: "FILE", URL: fmt.Sprintf("http://site/%03d", i)}
		o.Add("Title", fmt.Appendf(nil, "%s %d", text, i))
		o.Add("Update-Time", fmt.Append(nil, time.Now().Unix()))
		o.Add("Gatherer-Name", []byte("web"))
		o.Add("Gatherer-Host", []byte("here"))
		changes = append(changes, store.Change{Op: soif.Update, OID: store.ID(o.URL, "web@here"), Body: o.Append(nil)})
	}
	_, err := w.web.Apply(context.Background(), changes)
	must(w.tb, err)
}

func TestScripts(t *testing.T) {
	fstest.Scripts(t, filepath.Join("testdata", "script"), func(tb testing.TB, work string) (fs.Dir, func()) {
		_, err := os.Stat(filepath.Join(work, "web"))
		w := newWorld(tb, work)
		if err != nil { // else it is a restart
			w.gathered(0, 300, "Part")
		}
		return w.root, w.close
	})
}

// do writes a line to a file of the world's tree.
func (w *world) do(file, text string) error {
	f, err := fs.IO(context.Background(), w.root).(interface {
		OpenFile(name string, flag int, perm iofs.FileMode) (iofs.File, error)
	}).OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.(io.Writer).Write([]byte(text + "\n"))
	return errors.Join(err, f.Close())
}

func (w *world) replica(name, config string) *Replica {
	w.tb.Helper()
	_, err := w.replicas.Files().(fs.Maker).Mkdir(context.Background(), name, 0o777)
	must(w.tb, err)
	must(w.tb, w.do("replica/"+name+"/config", config))
	r, err := w.replicas.Get(name)
	must(w.tb, err)
	return r
}

func (w *world) read(file string) string {
	w.tb.Helper()
	b, err := iofs.ReadFile(fs.IO(context.Background(), w.root), file)
	must(w.tb, err)
	return string(b)
}

// serve has the world's tree served over pipes, to a user, and counts what goes
// through them.
func (w *world) serve(v *ninep.Server, u *fs.User) {
	w.remote = func(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
		here, there := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- v.ServeConn(context.Background(), there, w.root, u) }() // Close waits for it
		c, err := ninep.NewClient(ctx, here, path, ninep.DialOptions{Path: path[strings.IndexByte(path, '/'):]})
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

type closer func() error

func (c closer) Close() error { return c() }

// TestRemote takes a collection over 9P, its changes, and nothing when there is
// nothing: the messages are counted.
func TestRemote(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.gathered(0, 300, "Part")
	a := w.replica("a", "source path=gather/web every=1h")
	v := ninep.NewServer(testLog(t), ninep.Limits{})
	w.serve(v, &fs.User{Name: "b"})
	must(t, a.sync(context.Background(), nil))
	b := w.replica("b", "")
	m := newMember(b, "tcp!host!1/replica/a")
	c, err := m.connect(context.Background())
	must(t, err)
	defer c.close()
	messages := func(what string, most int) {
		t.Helper()
		before := requests(v)
		must(t, m.exchange(context.Background(), c, new(tidings)))
		if got := requests(v) - before; got > most {
			t.Errorf("%s: got %d messages, want %d at most", what, got, most)
		}
		if x, y := w.read("replica/a/tree/digest"), w.read("replica/b/tree/digest"); x != y {
			t.Errorf("%s: got digest %s, want %s", what, y, x)
		}
	}
	messages("first", 400)
	messages("nothing new", 1)
	w.gathered(0, 10, "Other")
	must(t, a.sync(context.Background(), nil))
	messages("10 changed", 50)
}

// requests counts what a server was asked.
func requests(v *ninep.Server) (n int) {
	for line := range strings.Lines(v.Stats()) {
		var k int
		if strings.HasPrefix(line, "harvest_9p_requests_total") {
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &k); err == nil {
				n += k
			}
		}
	}
	return n
}

// TestAllow lets only those read whom the config names.
func TestAllow(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.gathered(0, 3, "Part")
	a := w.replica("a", "source path=gather/web every=1h\nallow user=alice\nallow group=staff")
	must(t, a.sync(context.Background(), nil))
	b := w.replica("b", "")
	v := ninep.NewServer(testLog(t), ninep.Limits{})
	for _, c := range []struct {
		u  fs.User
		ok bool
	}{
		{fs.User{Name: "alice"}, true}, {fs.User{Name: "bob", Groups: []string{"staff"}}, true}, {fs.User{Name: "me", Owner: true}, true},
		{fs.User{Name: "bob"}, false}, {fs.User{Name: "alice", ReadOnly: true}, false},
	} {
		w.serve(v, &c.u)
		tree, closer, err := w.remote(context.Background(), "tcp!host!1/replica/a")
		must(t, err)
		for _, file := range []string{"heads", "root", "tree/digest", "flood/heads", "changes/" + a.mirror.self.String() + "/0.0"} {
			if _, err := iofs.ReadFile(tree, file); (err == nil) != c.ok {
				t.Errorf("%+v reads %s: got %v, want it allowed: %v", c.u, file, err, c.ok)
			}
		}
		closer.Close()
		err = newMember(b, "tcp!host!1/replica/a").sync(context.Background())
		if (err == nil) != c.ok {
			t.Errorf("%+v: got %v, want it allowed: %v", c.u, err, c.ok)
		}
	}
}

// TestCopy takes a copy of a Replica's directory on a disk for a member, and a copy of
// its tree for a part of one.
func TestCopy(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.gathered(0, 300, "Part")
	a := w.replica("a", "source path=gather/web every=1h")
	must(t, a.sync(context.Background(), nil))
	dir := t.TempDir()
	must(t, os.CopyFS(dir, fs.IO(context.Background(), a.Files())))
	b := w.replica("b", "member path="+dir)
	must(t, b.sync(context.Background(), nil))
	if x, y := w.read("replica/a/tree/digest"), w.read("replica/b/tree/digest"); x != y {
		t.Errorf("from a copy: got digest %s, want %s", y, x)
	}
	if got := w.read("replica/b/conflicts"); got != "" {
		t.Errorf("got conflicts %s, want none", got)
	}

	// An object of the copy that was changed by hand is fetched.
	w.gathered(0, 1, "Other")
	must(t, a.sync(context.Background(), nil))
	c := w.replica("c", "")
	m := newMember(c, "replica/a")
	c.mu.Lock()
	c.adopted = os.DirFS(filepath.Join(dir, "tree"))
	c.mu.Unlock()
	must(t, m.sync(context.Background()))
	if x, y := w.read("replica/a/tree/digest"), w.read("replica/c/tree/digest"); x != y {
		t.Errorf("adopted: got digest %s, want %s", y, x)
	}
	if m.total.bytes > 60_000 {
		t.Errorf("adopted: got %d bytes for 300 records and one object, want less", m.total.bytes)
	}
	if err := w.do("replica/c/ctl", "adopt "+filepath.Join(dir, "changes")); err == nil {
		t.Error("adopted what is no copy of a tree")
	}
}

// TestDamage damages what a member has on disk: check finds it, and it is fetched.
func TestDamage(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.gathered(0, 50, "Part")
	a := w.replica("a", "source path=gather/web every=1h")
	must(t, a.sync(context.Background(), nil))
	b := w.replica("b", "member path=replica/a\nfull every=1s")
	must(t, b.sync(context.Background(), nil))
	oid := store.ID("http://site/007", "web@here")
	body, _, err := b.store.Get(oid)
	must(t, err)
	ctx := context.Background()
	_, err = b.store.Apply(ctx, []store.Change{{Op: soif.Update, OID: oid, Body: bytes.Replace(body, []byte("Part"), []byte("Trap"), 1)}, {Op: soif.Delete, OID: store.ID("http://site/008", "web@here")}})
	must(t, err)
	lacking, extra, err := b.check(ctx)
	if err != nil || lacking != 2 || extra != 0 {
		t.Errorf("got %d lacking and %d extra, %v, want 2 and 0", lacking, extra, err)
	}
	w.gathered(49, 50, "Other") // so that there is something to exchange
	must(t, a.sync(ctx, nil))
	must(t, b.sync(ctx, nil))
	if x, y := w.read("replica/a/tree/digest"), w.read("replica/b/tree/digest"); x != y {
		t.Errorf("got digest %s, want %s", y, x)
	}
}
