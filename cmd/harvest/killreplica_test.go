package main

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/ninep"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/replica"
)

// TestKillReplica kills a server at random moments while a Replica in it takes what
// another has, which changes all the while. What it has at any restart is objects that
// there were, each whole, and in the end it has just what the other has.
func TestKillReplica(t *testing.T) {
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("HARVEST_KILLS")); err == nil {
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("HARVEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%d kills, HARVEST_KILLS=100 makes 100; HARVEST_SEED=%d", kills, seed)
	r := rand.New(rand.NewPCG(seed, 0))
	m := newMaster(t)
	m.change(r, 8000)
	dir := t.TempDir()
	for i := range kills + 1 {
		p := startServer(t, dir)
		if i == 0 {
			if _, err := p.c.Root().Lookup(t.Context(), "replica"); err != nil {
				t.Fatal(err)
			}
			p.put(t, "replica", "")
			p.put(t, "replica/g/config", "member path="+m.addr+"/replica/m")
		}
		n := m.holds(t, p)
		if i == kills {
			p.put(t, "replica/g/ctl", "sync")
			p.put(t, "replica/g/ctl", "check")
			p.put(t, "replica/g/ctl", "sync")
			m.equal(t, p)
			p.end(t)
			return
		}
		m.change(r, 300)
		for begun := time.Now(); p.count(t) < n+200 && time.Since(begun) < 3*time.Second; {
			time.Sleep(5 * time.Millisecond) // until it is in the middle of it, or is done
		}
		time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // the moment is what is tested
		p.kill(t)
	}
}

// A master is a Replica in this process that others read.
type master struct {
	t      *testing.T
	source *store.Store
	r      *replica.Replica
	addr   string
	round  int
	had    map[string]bool // every object there ever was
}

func newMaster(t *testing.T) *master {
	m := &master{t: t, had: make(map[string]bool)}
	lg := slog.New(slog.DiscardHandler)
	var err error
	if m.source, err = store.Open(filepath.Join(t.TempDir(), "source"), lg, store.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	id := func(parts ...string) uint64 { return fs.ID(append([]string{"source"}, parts...)...) }
	tree := fs.Static(fs.RootPath, m.source.Files(id, nil, nil))
	m.r, err = replica.Open(t.TempDir(), "m", lg, replica.Options{Open: func(ctx context.Context, _ string) (iofs.FS, io.Closer, error) {
		return fs.IO(ctx, tree), nopCloser{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := writeTree(t.Context(), m.r.Files(), "config", "source path=source every=24h\n"); err != nil {
		t.Fatal(err)
	}
	l, err := ninep.Listen(t.Context(), "tcp!127.0.0.1!0", ninep.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	root := fs.Static(fs.RootPath, map[string]fs.Node{"replica": fs.Static(fs.ID("r"), map[string]fs.Node{"m": m.r.Files()})})
	wg.Go(func() { ninep.NewServer(lg, ninep.Limits{}).Serve(ctx, l, root) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		m.r.Close()
		m.source.Close()
	})
	return m
}

// change changes some objects, takes others away, and publishes that.
func (m *master) change(r *rand.Rand, n int) {
	m.t.Helper()
	m.round++
	var changes []store.Change
	for range n {
		o := soif.Object{Type: "FILE", URL: fmt.Sprintf("http://site/%04d", r.IntN(8000))}
		oid := store.ID(o.URL, "@")
		if r.IntN(5) == 0 {
			changes = append(changes, store.Change{Op: soif.Delete, OID: oid})
			continue
		}
		o.Add("Title", fmt.Append(nil, r.Uint64()))
		o.Add("Update-Time", fmt.Append(nil, 1_790_000_000+m.round))
		o.Add("Body", []byte(strings.Repeat("harvest ", r.IntN(600))))
		b := o.Append(nil)
		m.had[string(b)] = true
		changes = append(changes, store.Change{Op: soif.Update, OID: oid, Body: b})
	}
	if _, err := m.source.Apply(m.t.Context(), changes); err != nil {
		m.t.Fatal(err)
	}
	if err := writeTree(m.t.Context(), m.r.Files(), "ctl", "sync\n"); err != nil {
		m.t.Fatal(err)
	}
}

// holds fails unless all that a server's Replica shows has been there.
func (m *master) holds(t *testing.T, p *server) (n int) {
	t.Helper()
	text, err := iofs.ReadFile(fs.IO(t.Context(), p.c.Root()), "replica/g/tree/soif")
	if err != nil {
		t.Fatal(err)
	}
	for len(text) > 0 {
		o, k, err := soif.Parse(text, soif.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if n++; !m.had[string(o.Append(nil))] {
			t.Errorf("%s: got an object that there never was", o.URL)
		}
		text = text[k:]
	}
	t.Logf("%d objects at the start", n)
	return n
}

// count is how many objects a server's Replica has.
func (p *server) count(t *testing.T) (n int) {
	t.Helper()
	d, err := walkDir(t.Context(), p.c.Root(), "replica/g")
	if err != nil {
		t.Fatal(err)
	}
	st := readStatus(t.Context(), d)
	text, _ := st.Get("objects")
	n, _ = strconv.Atoi(text)
	return n
}

func (m *master) equal(t *testing.T, p *server) {
	t.Helper()
	one, err := iofs.ReadFile(fs.IO(t.Context(), m.r.Files()), "tree/digest")
	if err != nil {
		t.Fatal(err)
	}
	tree := fs.IO(t.Context(), p.c.Root())
	two, err := iofs.ReadFile(tree, "replica/g/tree/digest")
	if err != nil || string(one) != string(two) {
		t.Errorf("got digest %s, %v, want %s", two, err, one)
	}
	for name, want := range map[string]string{"conflicts": "", "events": "event=checked lacking=0 extra=0"} {
		text, err := iofs.ReadFile(tree, "replica/g/"+name)
		if err != nil || want == "" && len(text) > 0 || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %s, %v, want %q", name, text, err, want)
		}
	}
}
