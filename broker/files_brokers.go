package broker

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"harvest/fs"
	"harvest/fs/ndb"
)

// Brokers are those of one directory, a directory each.
type Brokers struct {
	dir string
	lg  *slog.Logger
	opt Options

	broken   map[string]fs.Dir // those that could not be opened, and what is shown of them
	removing sync.WaitGroup

	mu      sync.Mutex // guards what follows
	all     map[string]*member
	leaving map[string]struct{} // out of all, and their names not free yet
	changed chan struct{}       // closed and made anew when all changes
	vers    uint32
	closed  bool
}

// A member is a Broker and its Run.
type member struct {
	*Broker
	cancel context.CancelFunc // nil: not running
	done   chan struct{}
}

// OpenAll opens the Brokers in dir, which it makes if it is absent. One that
// cannot be opened says so in its err, is left as it is, and stops no other.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*Brokers, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	a := &Brokers{dir: dir, lg: lg, opt: opt, broken: make(map[string]fs.Dir), all: make(map[string]*member), leaving: make(map[string]struct{}), changed: make(chan struct{})}
	for _, e := range list {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if strings.HasPrefix(name, removed) { // its removal was interrupted
			if err := os.RemoveAll(path); err != nil {
				lg.Error("removal of a broker", "err", err)
			}
			continue
		}
		if !e.IsDir() || checkName(name) != nil {
			continue
		}
		b, err := Open(path, name, lg, opt)
		if err != nil {
			lg.Error("open", "err", err)
			a.broken[name] = brokenFiles(name, err)
			continue
		}
		a.all[name] = &member{Broker: b}
	}
	return a, nil
}

// brokenFiles is what is shown of a Broker that could not be opened.
func brokenFiles(name string, why error) fs.Dir {
	id := func(file string) uint64 { return fs.ID("broker", name, "broken", file) }
	err := fs.NewErr(id("err"))
	err.Set("open", "", why)
	return fs.Static(id("dir"), map[string]fs.Node{
		"err":    err,
		"status": fs.Text(id("status"), func() string { return lines([]ndb.Pair{ndb.Of("state", "failing")}) }),
	})
}

// removed begins the name of a directory that is being removed.
const removed = ".removed-"

// Close closes all Brokers; Run has returned. What is being removed is gone
// when Close returns.
func (a *Brokers) Close() (err error) {
	defer a.removing.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, m := range a.all {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Run runs all Brokers, those made meanwhile too, until ctx ends.
func (a *Brokers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		a.mu.Lock()
		for _, m := range a.all {
			if m.cancel != nil {
				continue
			}
			mctx, cancel := context.WithCancel(ctx)
			m.cancel, m.done = cancel, make(chan struct{})
			wg.Go(func() {
				defer close(m.done)
				m.Run(mctx)
			})
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change notes that all is another. Called with mu held.
func (a *Brokers) change(name string) {
	a.vers++
	close(a.changed)
	a.changed = make(chan struct{})
	a.opt.Bus.Entry(brokersPath(), name)
}

func brokersPath() uint64 { return fs.ID("broker") }

// Files is the directory of all Brokers: mkdir makes one, rmdir removes one.
func (a *Brokers) Files() fs.Dir { return brokersDir{a} }

type brokersDir struct{ *Brokers }

func (d brokersDir) Stat() fs.Stat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fs.Stat{Path: brokersPath(), Vers: d.vers, Mode: 0o755}
}

func (d brokersDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.all[name]; ok {
		return m.Files(), nil
	}
	if b, ok := d.broken[name]; ok {
		return b, nil
	}
	return nil, notExist(name)
}

func (d brokersDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	d.mu.Lock()
	var out []fs.Entry
	for name, m := range d.all {
		out = append(out, fs.Entry{Name: name, Node: m.Files()})
	}
	d.mu.Unlock()
	for name, b := range d.broken {
		out = append(out, fs.Entry{Name: name, Node: b})
	}
	return fs.Sorted(out, after)
}

// Mkdir makes a Broker, without sources.
func (d brokersDir) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := mayWrite(ctx, d, name); err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrClosed)
	}
	if d.all[name] != nil || d.broken[name] != nil {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	if _, ok := d.leaving[name]; ok {
		return nil, fmt.Errorf("%s: it is being removed: %w", name, syscall.EBUSY)
	}
	b, err := Open(filepath.Join(d.dir, name), name, d.lg, d.opt)
	if err != nil {
		return nil, err
	}
	d.all[name] = &member{Broker: b}
	d.change(name)
	return b.Files(), nil
}

// Remove removes a Broker that is stopped, or has neither objects nor sources.
// Its name is free again when nothing is left of it.
func (d brokersDir) Remove(ctx context.Context, name string) error {
	if err := mayWrite(ctx, d, name); err != nil {
		return err
	}
	m, err := d.leave(name)
	if err != nil {
		return err
	}
	defer d.left(name)
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
	if err := m.Close(); err != nil {
		d.lg.Error("broker", "name", name, "err", err) // it goes in any case
	}
	path, gone := filepath.Join(d.dir, name), filepath.Join(d.dir, removed+name)
	if err := os.Rename(path, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// leave takes a Broker out, if it may be removed, and keeps its name until
// left.
func (a *Brokers) leave(name string) (*member, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken[name] != nil {
		return nil, fmt.Errorf("%s: it could not be opened, see its err; what it has may be saved yet: %w", name, syscall.ENOTEMPTY)
	}
	m, ok := a.all[name]
	if !ok || a.closed {
		return nil, notExist(name)
	}
	if !m.removable() {
		return nil, fmt.Errorf("%s: write stop to its ctl first: %w", name, syscall.ENOTEMPTY)
	}
	a.removing.Add(1)
	a.leaving[name] = struct{}{}
	delete(a.all, name)
	a.change(name)
	return m, nil
}

func (a *Brokers) left(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.leaving, name)
	a.removing.Done()
}
