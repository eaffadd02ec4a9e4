package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
)

// The tree of one Gatherer:
//
//	config             what to gather; checked when written
//	ctl                run, stop, pause, resume, fetch, forget, refresh, compact
//	err                what config or ctl refused last
//	secrets            passwords: written, not read, and not listed
//	status             counts of the visit that runs, or of the last
//	events  log        with .live and .wait
//	objects/ url/      the objects, by OID and by URL
//	soif  soif.zst     all of them as a stream
//	since/  digest     changes after a cursor, what is here in short
//	hosts  documents  links  queue  top25
//	selected  duplicates
//	                   the tables of files_tables.go
//	submit             URLs from outside, to be fetched
//	explain            why a URL is, or is not, in the collection

// Options are what a Gatherer is handed. The zero value is good.
type Options struct {
	Version   string            // of the program, as objects and servers are told
	Transport http.RoundTripper // reaches sources; nil is a fetch.Transport of its own
	Bus       *fs.Bus           // hears what changes in the tree; may be nil

	// Proxy finds a cache of this process by its name, for proxy=cache/NAME. May
	// be nil.
	Proxy func(name string) (http.RoundTripper, error)
}

// Bounds of what events and log keep, in bytes.
const (
	maxEvents = 1 << 20
	maxLog    = 256 << 10
)

// A journal is what a Gatherer tells of its work.
type journal struct{ events, log *fs.Log }

func newJournal() *journal { return &journal{fs.NewLog(maxEvents), fs.NewLog(maxLog)} }

// event adds a record: when, what, and about what.
func (j *journal) event(what string, about ...ndb.Pair) {
	j.events.Add(ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", what)}, about...)...))
}

// logger returns a logger that writes to the journal's log as well.
func (j *journal) logger(lg *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(lg.Handler(), slog.NewTextHandler(j.log, nil)))
}

// A tree is a Gatherer's directory, made once: its config and err have state.
type tree struct{ dir fs.Dir }

// Files serves g as a directory; docs/gather.4.md is its manual.
func (g *Gatherer) Files() fs.Dir { return g.tree.dir }

func (g *Gatherer) id(part ...string) uint64 {
	return fs.ID(append([]string{"gather", g.name}, part...)...)
}

func (g *Gatherer) newTree(opt Options) *tree {
	err := fs.NewErr(g.id("err")).Hide(hidePasswords)
	nodes := map[string]fs.Node{
		"config": fs.Config(g.id("config"), err, g.config, g.setConfig).Lines(checkLine).Hide(hidePasswords),
		"ctl": fs.Ctl(g.id("ctl"), err,
			fs.On("run", g.run),
			fs.On("stop", g.stop),
			fs.On("pause", g.pause),
			fs.On("resume", g.resume),
			fs.On("fetch URL...", g.fetch),
			fs.On("forget URL...", g.forget),
			fs.On("refresh", g.refresh),
			fs.On("delete", g.delete),
			fs.On("compact", g.compact)),
		"err":        err,
		"translated": fs.Text(g.id("translated"), g.translated),
		"secrets":    fs.Hidden(g.secretFile(err)),
		"status":     fs.Text(g.id("status"), g.status),
	}
	g.tableFiles(nodes, err)
	g.exportNodes(nodes, err, opt.Bus)
	g.journal.events.Nodes(nodes, "events", g.id)
	g.journal.log.Nodes(nodes, "log", g.id)
	maps.Copy(nodes, g.store.Files(g.id, opt.Bus, g.remove))
	return &tree{fs.Static(g.id("dir"), nodes)}
}

func (g *Gatherer) status() string {
	g.mu.Lock()
	v, c, state, last := g.visit, g.conf, g.state(), g.last
	g.mu.Unlock()
	was, err := g.db.Visited()
	if err != nil {
		return failing(err)
	}
	var b strings.Builder
	line := func(pairs ...ndb.Pair) { b.WriteString(ndb.Format(pairs...) + "\n") }
	line(ndb.Of("state", state))
	if last != nil {
		line(ndb.Of("err", last))
	}
	line(ndb.Of("objects", g.store.Count()))
	for _, p := range g.collectionFigures() {
		line(p)
	}
	line(ndb.Of("visit", was.Number))
	for _, p := range v.figures() {
		line(p)
	}
	began, ended := v.times()
	if began.IsZero() {
		began, ended = was.Started, was.Ended
	}
	for _, p := range g.exportFigures() {
		line(p)
	}
	line(ndb.Of("started", began))
	line(ndb.Of("ended", ended))
	activity := ended
	if state == "running" {
		activity = time.Now()
	}
	line(ndb.Of("last", activity))
	for _, pairs := range g.connections() {
		line(pairs...)
	}
	if due := c.schedule.next(was.Whole, c.since); !due.IsZero() && state == "idle" {
		line(ndb.Of("next", due))
	}
	if watched := g.watchFigures(); watched != nil && len(c.watched) > 0 {
		line(watched...)
	}
	for _, i := range c.ignored() {
		line(i...)
	}
	return b.String()
}

// Gatherers are those of one directory, a directory each. mkdir makes one,
// rmdir removes one that has no objects or was stopped, with all it holds.
type Gatherers struct {
	dir string
	lg  *slog.Logger
	opt Options

	broken map[string]fs.Dir // those that could not be opened, and what is shown of them

	// mu guards all, and vers, which moves when all does.
	mu   sync.Mutex
	all  map[string]*member
	vers uint32
	runs func(*member) // starts one while Run runs, else nil
}

// A member is a Gatherer and its Run.
type member struct {
	g      *Gatherer
	cancel context.CancelFunc // ends Run
	done   chan struct{}      // closed when Run has ended; nil before it began
	going  bool               // it is being removed: closed, its name not free yet
}

// OpenAll opens the Gatherers in dir, which it makes if it is absent. One that
// cannot be opened is shown as failing, is left as it is, and stops no other.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*Gatherers, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	a := &Gatherers{dir: dir, lg: lg, opt: opt, broken: make(map[string]fs.Dir), all: make(map[string]*member)}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir():
		case strings.HasPrefix(name, removing): // by a process that did not finish
			if err := os.RemoveAll(path); err != nil {
				lg.Error("remove", "gatherer", strings.TrimPrefix(name, removing), "err", err)
			}
		case checkName(name) == nil:
			g, err := Open(path, name, lg, opt)
			if err != nil {
				lg.Error("open", "err", err)
				a.broken[name] = brokenFiles(name, err)
				continue
			}
			a.all[name] = &member{g: g}
		}
	}
	return a, nil
}

// brokenFiles is what is shown of a Gatherer that could not be opened.
func brokenFiles(name string, why error) fs.Dir {
	id := func(file string) uint64 { return fs.ID("gather", name, "broken", file) }
	err := fs.NewErr(id("err"))
	err.Set("open", "", why)
	status := failing(why)
	return fs.Static(id("dir"), map[string]fs.Node{
		"err":    err,
		"status": fs.Text(id("status"), func() string { return status }),
	})
}

// failing is the status of a Gatherer that has no other.
func failing(why error) string {
	return ndb.Format(ndb.Of("state", "failing")) + "\n" + ndb.Format(ndb.Of("err", why)) + "\n"
}

// removing begins the name of what is being removed.
const removing = ".removing-"

// checkName refuses names that would not do as a file's and in an identity.
func checkName(name string) error {
	ok := name != "" && len(name) <= 64 && name[0] != '.' && name[0] != '-'
	for _, c := range name {
		ok = ok && (c == '.' || c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		return fmt.Errorf("gatherer '%.70s': a name is up to 64 letters, digits, '.', '-' and '_': %w", name, iofs.ErrInvalid)
	}
	return nil
}

// Run runs all Gatherers, those made meanwhile too, until ctx ends.
func (a *Gatherers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	a.mu.Lock()
	a.runs = func(m *member) {
		ctx, cancel := context.WithCancel(ctx)
		m.cancel, m.done = cancel, make(chan struct{})
		wg.Go(func() {
			defer close(m.done)
			m.g.Run(ctx) // ends with ctx; what else there was is in its log
		})
	}
	for _, m := range a.all {
		if !m.going {
			a.runs(m)
		}
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.runs = nil
	a.mu.Unlock()
	wg.Wait()
	return ctx.Err()
}

// Close closes all Gatherers; Run has returned.
func (a *Gatherers) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, m := range a.all {
		if !m.going { // Remove closes those
			errs = append(errs, m.g.Close())
		}
	}
	clear(a.all)
	return errors.Join(errs...)
}

// Get returns the Gatherer of that name.
func (a *Gatherers) Get(name string) (*Gatherer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.all[name]
	if m == nil || m.going {
		return nil, fmt.Errorf("gatherer %s: %w", name, iofs.ErrNotExist)
	}
	return m.g, nil
}

// Files is the directory of all Gatherers.
func (a *Gatherers) Files() fs.Dir { return parent{a} }

// parent is the directory gather/.
type parent struct{ a *Gatherers }

func (p parent) Stat() fs.Stat {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	return fs.Stat{Path: fs.ID("gather"), Vers: p.a.vers, Mode: 0o755}
}

func (p parent) Lookup(_ context.Context, name string) (fs.Node, error) {
	if d := p.a.broken[name]; d != nil {
		return d, nil
	}
	g, err := p.a.Get(name)
	if err != nil {
		return nil, err
	}
	return g.Files(), nil
}

func (p parent) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	nodes := make(map[string]fs.Dir, len(p.a.all)+len(p.a.broken))
	maps.Copy(nodes, p.a.broken)
	for name, m := range p.a.all {
		if !m.going {
			nodes[name] = m.g.Files()
		}
	}
	var entries []fs.Entry
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		entries = append(entries, fs.Entry{Name: name, Node: nodes[name]})
	}
	return fs.Sorted(entries, after)
}

// Mkdir makes a Gatherer.
func (p parent) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := fs.UserOf(ctx).May(p.Stat(), fs.MayWrite); err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	a := p.a
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := a.all[name]; {
	case m == nil && a.broken[name] == nil:
	case m != nil && m.going:
		return nil, fmt.Errorf("gatherer %s: it is being removed: %w", name, syscall.EBUSY)
	default:
		return nil, fmt.Errorf("gatherer %s: %w", name, iofs.ErrExist)
	}
	g, err := Open(filepath.Join(a.dir, name), name, a.lg, a.opt)
	if err != nil {
		return nil, err
	}
	m := &member{g: g}
	a.all[name] = m
	a.changed(name)
	if a.runs != nil {
		a.runs(m)
	}
	return g.Files(), nil
}

// Remove removes a Gatherer that has no objects or was stopped. Its name is free
// again when nothing is left of it: a new one must not open what is on its way
// out, nor be renamed in its place.
func (p parent) Remove(ctx context.Context, name string) error {
	if err := fs.UserOf(ctx).May(p.Stat(), fs.MayWrite); err != nil {
		return err
	}
	a := p.a
	m, err := a.leave(name)
	if err != nil {
		return err
	}
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.all, name)
	}()
	if m.done != nil {
		m.cancel()
		<-m.done
	}
	if err := m.g.Close(); err != nil {
		a.lg.Error("close", "gatherer", name, "err", err) // it goes in any case
	}
	// Out of the way first: what a crash leaves of it is never opened again.
	old, gone := filepath.Join(a.dir, name), filepath.Join(a.dir, removing+name)
	if err := os.Rename(old, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// leave takes a Gatherer out of the directory, if it may be removed.
func (a *Gatherers) leave(name string) (*member, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken[name] != nil {
		return nil, fmt.Errorf("gatherer %s: it could not be opened, and may have objects: %w", name, syscall.ENOTEMPTY)
	}
	m := a.all[name]
	if m == nil || m.going {
		return nil, fmt.Errorf("gatherer %s: %w", name, iofs.ErrNotExist)
	}
	if err := m.g.removable(); err != nil {
		return nil, fmt.Errorf("gatherer %s: %w", name, err)
	}
	m.going = true
	a.changed(name)
	return m, nil
}

// changed tells that a name came or went. mu is held.
func (a *Gatherers) changed(name string) {
	a.vers++
	a.opt.Bus.Entry(fs.ID("gather"), name)
	a.opt.Bus.Changed(fs.ID("gather"))
}
