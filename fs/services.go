package fs

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
)

// A Service is one of several of a kind, with a directory in the tree and state of
// its own.
type Service interface {
	Files() Dir
	// Run does what the service does until ctx ends.
	Run(ctx context.Context) error
	// Removable says why the service may not be removed now, nil if it may.
	Removable() error
	// Close is called once Run has returned, or was never called.
	Close() error
}

// ServicesOptions say what kind of services a directory has.
type ServicesOptions[S Service] struct {
	Name  string                             // of the directory in the tree
	Noun  string                             // that errors call one by
	Check func(name string) error            // refuses names; nil for those of CheckName
	Open  func(path, name string) (S, error) // opens one with its state in path, which is made if absent
	Log   *slog.Logger
	Bus   *Bus // hears which come and go; may be nil
}

// Services is a directory of services of one kind, each of which keeps its state in
// a directory of its name: mkdir makes one, rmdir removes one that may be removed,
// with all it holds. What cannot be opened is shown with the reason, is left as it
// is, and stops no other.
type Services[S Service] struct {
	dir string
	opt ServicesOptions[S]

	broken map[string]Dir // those that could not be opened, and what is shown of them

	// mu guards what follows.
	mu      sync.Mutex
	all     map[string]*serving[S]
	vers    uint32            // moves when all does
	run     func(*serving[S]) // starts one while Run runs, else nil
	removes sync.WaitGroup    // removals that are under way
	closed  bool
}

// serving is a service and its Run.
type serving[S Service] struct {
	s      S
	cancel context.CancelFunc // ends Run
	done   chan struct{}      // closed when Run has ended; nil before it began
	going  bool               // it is being removed: its name is not free yet
}

// What begins the names of directories that are being removed, and did.
var goingNames = [...]string{".removing-", ".removed-"}

// OpenServices opens the services in dir, which it makes if it is absent. What a
// removal that was cut off has left is removed.
func OpenServices[S Service](dir string, opt ServicesOptions[S]) (*Services[S], error) {
	if opt.Check == nil {
		opt.Check = CheckName
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	a := &Services[S]{dir: dir, opt: opt, broken: make(map[string]Dir), all: make(map[string]*serving[S])}
	for _, e := range found {
		if e.IsDir() {
			a.open(e.Name())
		}
	}
	return a, nil
}

// open opens what was found.
func (a *Services[S]) open(name string) {
	path := filepath.Join(a.dir, name)
	for _, prefix := range goingNames {
		if strings.HasPrefix(name, prefix) {
			if err := os.RemoveAll(path); err != nil {
				a.opt.Log.Error("remove", a.opt.Noun, strings.TrimPrefix(name, prefix), "err", err)
			}
			return
		}
	}
	if a.opt.Check(name) != nil {
		return
	}
	s, err := a.opt.Open(path, name)
	if err != nil {
		a.opt.Log.Error("open", "err", err)
		a.broken[name] = a.brokenFiles(name, err)
		return
	}
	a.all[name] = &serving[S]{s: s}
}

// brokenFiles is what is shown of a service that could not be opened.
func (a *Services[S]) brokenFiles(name string, why error) Dir {
	id := func(file string) uint64 { return ID(a.opt.Name, name, "broken", file) }
	err := NewErr(id("err"))
	err.Set("open", "", why)
	status := "state=failing\nerr=" + Quote(why.Error()) + "\n"
	return Static(id("dir"), map[string]Node{
		"err":    err,
		"status": Text(id("status"), func() string { return status }),
	})
}

// CheckName refuses names that would not do as a file's and in an identity.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 64 && name[0] != '.' && name[0] != '-'
	for _, c := range name {
		ok = ok && (c == '.' || c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		return fmt.Errorf("'%.70s': a name is up to 64 letters, digits, '.', '-' and '_': %w", name, iofs.ErrInvalid)
	}
	return nil
}

// error is one about a service.
func (a *Services[S]) error(name string, err error) error {
	return fmt.Errorf("%s %s: %w", a.opt.Noun, name, err)
}

// Run runs all services, those made meanwhile too, until ctx ends and they have.
func (a *Services[S]) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	a.mu.Lock()
	a.run = func(m *serving[S]) {
		ctx, cancel := context.WithCancel(ctx)
		m.cancel, m.done = cancel, make(chan struct{})
		wg.Go(func() {
			defer close(m.done)
			m.s.Run(ctx) // ends with ctx; what else there was is in its log
		})
	}
	for _, m := range a.all {
		if !m.going {
			a.run(m)
		}
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.run = nil
	a.mu.Unlock()
	wg.Wait()
	return ctx.Err()
}

// Close closes all services, once Run has returned. What is being removed is gone
// when Close returns.
func (a *Services[S]) Close() error {
	defer a.removes.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for _, m := range a.all {
		if !m.going { // Remove closes those
			errs = append(errs, m.s.Close())
		}
	}
	clear(a.all)
	return errors.Join(errs...)
}

// Get returns the service of a name.
func (a *Services[S]) Get(name string) (s S, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.all[name]; m != nil && !m.going {
		return m.s, nil
	}
	return s, a.error(name, iofs.ErrNotExist)
}

// Files is the directory.
func (a *Services[S]) Files() Dir { return servicesDir[S]{a} }

type servicesDir[S Service] struct{ *Services[S] }

func (d servicesDir[S]) Stat() Stat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stat{Path: ID(d.opt.Name), Vers: d.vers, Mode: 0o755}
}

func (d servicesDir[S]) Lookup(_ context.Context, name string) (Node, error) {
	if b := d.broken[name]; b != nil {
		return b, nil
	}
	s, err := d.Get(name)
	if err != nil {
		return nil, err
	}
	return s.Files(), nil
}

func (d servicesDir[S]) List(_ context.Context, after string) iter.Seq2[Entry, error] {
	d.mu.Lock()
	defer d.mu.Unlock()
	var entries []Entry
	for name, b := range d.broken {
		entries = append(entries, Entry{Name: name, Node: b})
	}
	for name, m := range d.all {
		if !m.going {
			entries = append(entries, Entry{Name: name, Node: m.s.Files()})
		}
	}
	return Sorted(entries, after)
}

// may checks that the directory may be changed by who asks.
func (d servicesDir[S]) may(ctx context.Context, name string) error {
	if err := UserOf(ctx).May(d.Stat(), MayWrite); err != nil {
		return d.error(name, err)
	}
	return nil
}

// Mkdir makes a service.
func (d servicesDir[S]) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (Dir, error) {
	if err := d.may(ctx, name); err != nil {
		return nil, err
	}
	if err := d.opt.Check(name); err != nil {
		return nil, fmt.Errorf("%s %w", d.opt.Noun, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch m := d.all[name]; {
	case d.closed:
		return nil, d.error(name, iofs.ErrClosed)
	case m == nil && d.broken[name] == nil:
	case m != nil && m.going:
		return nil, d.error(name, fmt.Errorf("it is being removed: %w", syscall.EBUSY))
	default:
		return nil, d.error(name, iofs.ErrExist)
	}
	s, err := d.opt.Open(filepath.Join(d.dir, name), name)
	if err != nil {
		return nil, err
	}
	m := &serving[S]{s: s}
	d.all[name] = m
	d.changed(name)
	if d.run != nil {
		d.run(m)
	}
	return s.Files(), nil
}

// Remove removes a service. Its name is free again when nothing is left of it: a
// new one must not open what is on its way out, nor be renamed in its place.
func (d servicesDir[S]) Remove(ctx context.Context, name string) error {
	if err := d.may(ctx, name); err != nil {
		return err
	}
	m, err := d.leave(name)
	if err != nil {
		return err
	}
	defer d.left(name)
	if m.done != nil {
		m.cancel()
		<-m.done
	}
	if err := m.s.Close(); err != nil {
		d.opt.Log.Error("close", d.opt.Noun, name, "err", err) // it goes in any case
	}
	// Out of the way first: what a crash leaves of it is never opened again.
	gone := filepath.Join(d.dir, goingNames[0]+name)
	if err := os.Rename(filepath.Join(d.dir, name), gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// leave takes a service out of the directory, if it may be removed, and keeps its
// name until left.
func (a *Services[S]) leave(name string) (*serving[S], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken[name] != nil {
		return nil, a.error(name, fmt.Errorf("it could not be opened, see its err; what it has may be saved yet: %w", syscall.ENOTEMPTY))
	}
	m := a.all[name]
	if m == nil || m.going || a.closed {
		return nil, a.error(name, iofs.ErrNotExist)
	}
	if err := m.s.Removable(); err != nil {
		return nil, a.error(name, err)
	}
	m.going = true
	a.removes.Add(1)
	a.changed(name)
	return m, nil
}

func (a *Services[S]) left(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, name)
	a.removes.Done()
}

// changed tells that a name came or went. mu is held.
func (a *Services[S]) changed(name string) {
	a.vers++
	a.opt.Bus.Entry(ID(a.opt.Name), name)
	a.opt.Bus.Changed(ID(a.opt.Name))
}
