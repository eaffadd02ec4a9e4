package fstest

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"harvest/fs"
	"harvest/fs/ndb"
)

// sample is a small service.
type sample struct {
	work string

	mu      sync.Mutex
	count   int
	fetched string
	dirs    map[string]bool
	vers    uint32
	log     *fs.Log
}

func buildSample(tb testing.TB, work string) (fs.Dir, func()) {
	s := &sample{work: work, dirs: make(map[string]bool), log: fs.NewLog(1 << 16)}
	return s.files(), nil
}

func id(parts ...string) uint64 { return fs.ID(append([]string{"fstest"}, parts...)...) }

func (s *sample) files() fs.Dir {
	err := fs.NewErr(id("err"))
	ctl := func(path uint64) *fs.CtlFile {
		return fs.Ctl(path, err, fs.On("tick N", s.tick), fs.On("fetch URL", s.fetch))
	}
	nodes := map[string]fs.Node{
		"README":  fs.Text(id("README"), func() string { return "a tree to test with\nok\n" }),
		"ctl":     ctl(id("ctl")),
		"err":     err,
		"count":   fs.Text(id("count"), s.text(func() string { return strconv.Itoa(s.count) + "\n" })),
		"fetched": fs.Text(id("fetched"), s.text(func() string { return s.fetched })),
		"clone": fs.Clone(id("clone"), func(context.Context) (fs.File, error) {
			return ctl(id("session")).Reads(func() string { return "1\n" }), nil
		}),
		"notes": notes{s, s.config()},
	}
	s.log.Nodes(nodes, "events", id)
	return fs.Static(fs.RootPath, nodes)
}

func (s *sample) text(f func() string) func() string {
	return func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return f()
	}
}

func (s *sample) tick(_ context.Context, arg []string) error {
	n, err := strconv.Atoi(arg[0])
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count += n
	s.log.Add(fmt.Sprintf("tick %d", s.count))
	return nil
}

func (s *sample) fetch(ctx context.Context, arg []string) error {
	req, err := http.NewRequestWithContext(ctx, "GET", arg[0], nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != 200 {
		return fmt.Errorf("%s: %s", arg[0], res.Status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = string(b)
	return nil
}

// config is a Static with a ConfigFile that lasts.
func (s *sample) config() fs.Dir {
	name := filepath.Join(s.work, "config")
	err := fs.NewErr(id("notes", "err"))
	read := func() string { b, _ := os.ReadFile(name); return string(b) }
	set := func(_ context.Context, text string) error {
		entries, err := ndb.Parse(text)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if _, err := e.Int(e.First()); err != nil {
				return err
			}
		}
		return os.WriteFile(name, []byte(text), 0o600)
	}
	return fs.Static(id("notes"), map[string]fs.Node{"config": fs.Config(id("config"), err, read, set), "err": err})
}

// notes is a directory in which directories can be made as well.
type notes struct {
	s *sample
	fs.Dir
}

func (n notes) Stat() fs.Stat {
	st := n.Dir.Stat()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	st.Vers += n.s.vers
	return st
}

func (n notes) sub(name string) fs.Dir { return fs.Static(id("notes", "dir", name), nil) }

func (n notes) Lookup(ctx context.Context, name string) (fs.Node, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if n.s.dirs[name] {
		return n.sub(name), nil
	}
	return n.Dir.Lookup(ctx, name)
}

func (n notes) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	var all []fs.Entry
	for e, err := range n.Dir.List(ctx, "") {
		if err == nil {
			all = append(all, e)
		}
	}
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	for name := range n.s.dirs {
		all = append(all, fs.Entry{Name: name, Node: n.sub(name)})
	}
	return fs.Sorted(all, after)
}

func (n notes) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if fs.UserOf(ctx).ReadOnly {
		return nil, iofs.ErrPermission
	}
	if !iofs.ValidPath(name) || filepath.Base(name) != name || name == "." || len(name) > 255 || name[len(name)-1] == 0 {
		return nil, iofs.ErrInvalid
	}
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if n.s.dirs[name] {
		return nil, iofs.ErrExist
	}
	n.s.dirs[name] = true
	n.s.vers++
	return n.sub(name), nil
}

func (n notes) Remove(ctx context.Context, name string) error {
	n.s.mu.Lock()
	if n.s.dirs[name] {
		delete(n.s.dirs, name)
		n.s.vers++
		n.s.mu.Unlock()
		return nil
	}
	n.s.mu.Unlock()
	return n.Dir.(fs.Remover).Remove(ctx, name)
}

func (n notes) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	return n.Dir.(fs.Creator).Create(ctx, name, perm, m)
}

func (n notes) Rename(ctx context.Context, old, new string, replace bool) error {
	return n.Dir.(fs.Renamer).Rename(ctx, old, new, replace)
}

func TestScripts(t *testing.T) { Scripts(t, "testdata", buildSample) }

func TestTree(t *testing.T) {
	Tree(t, buildSample, Options{Hidden: []string{"events.live", "events.wait"}, Create: []string{"notes"}, Mkdir: []string{"notes"}})
}
