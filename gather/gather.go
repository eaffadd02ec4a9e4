// Package gather is the Gatherer: it collects documents from its roots and
// leaves, summarizes them, and keeps the summaries for whoever collects.
//
// A Gatherer joins three parts that do not know each other: gather/crawl finds
// documents, gather/essence makes a SOIF object of each, gather/store keeps
// them. What it adds is the order of things: a summary is durable before its
// document leaves the queue, and an object goes only when its source is known
// to be gone, never because a server was out of reach.
package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A Gatherer is one directory of state:
//
//	config       its configuration
//	host         the name of the machine it was made on, part of its identity
//	held         "stopped" or "paused", while it is
//	secrets      passwords, which only the owner may read
//	types        the tables of Essence that were set, a file each
//	crawl.db     what is known of documents: gather/crawl
//	store        the objects: gather/store
//	unselected   those of documents that are not in the collection, if there are any
//	containers   the documents that have objects of what is in them, if any do
//	selected     what stands for the selection that has been carried out
type Gatherer struct {
	name, dir string
	host      string
	version   string
	lg        *slog.Logger
	rt        http.RoundTripper
	reach     *reach                                    // rt, when it was not handed in
	wrap      func(http.RoundTripper) http.RoundTripper // fetch.Options.Wrap; may be nil
	secrets   secrets
	db        *crawl.DB
	store     *store.Store
	manual    *manual   // what people have written
	export    *exporter // gatherd's doors
	archive   *archive  // WARC files
	stage     stages    // of the last visit
	journal   *journal
	tree      *tree // of files, made with the Gatherer
	sel       *collecting
	submits   bucket
	types     types // tables of Essence: types.go

	wake       chan struct{} // the schedule is to be looked at again
	watching   atomic.Pointer[watch]
	containers containers

	bring   *bring                                                     // summarizers of users
	covered func(ctx context.Context, own, url string) (string, error) // see Options

	// mu guards what follows.
	mu      sync.Mutex
	conf    *config
	anew    chan struct{}      // closed when there is another conf
	held    string             // "", "stopped" or "paused"
	want    wish               // what was asked for and has not begun
	cancel  context.CancelFunc // of the visit that runs, or nil
	ended   chan struct{}      // closed when it has ended
	visit   *visit             // it, or the last
	last    error              // of the last visit
	chosen  *choice            // what the last selection said, nil when there was none
	chooses bool               // a selection is to be carried out, or is being
	retry   time.Time          // not before this, after trouble
	fails   int
}

// A wish is what the next visit is to be.
type wish struct {
	run   bool // everything
	force bool // fetched anew
	all   bool // with all its deletions, however many
	queue bool // only what is queued
	kept  bool // from what WARC files and this machine have, without the network
}

// Open opens the Gatherer whose state is in dir, or begins one there.
func Open(dir, name string, lg *slog.Logger, opt Options) (_ *Gatherer, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	g := &Gatherer{name: name, dir: dir, version: opt.Version, covered: opt.Covered, rt: opt.Transport, journal: newJournal(), wake: make(chan struct{}, 1), anew: make(chan struct{}), sel: newCollecting()}
	if g.version == "" {
		g.version = "0"
	}
	g.lg = g.journal.logger(lg).With("gatherer", name)
	g.archive = newArchive(g)
	g.wrap = g.archive.wrap
	if g.rt == nil {
		g.reach = &reach{g: g, proxy: opt.Proxy}
		g.rt = g.reach
	} else {
		g.rt = g.archive.wrap(g.rt)
	}
	defer func() {
		if err != nil {
			g.Close()
			err = fmt.Errorf("gatherer %s: %w", name, err)
		}
	}()
	if g.host, err = g.readHost(); err != nil {
		return nil, err
	}
	if err = g.secrets.load(g.path("secrets")); err != nil {
		return nil, err
	}
	if g.held, err = readOr(g.path("held"), ""); err != nil {
		return nil, err
	}
	if g.bring, err = openBring(g, g.path("types")); err != nil {
		return nil, err
	}
	text, err := readOr(g.path("config"), newConfig)
	if err != nil {
		return nil, err
	}
	if g.conf, err = parseConfig(text); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if err = g.types.load(g.path("types")); err != nil {
		return nil, err
	}
	if g.db, err = crawl.OpenDB(g.path("crawl.db"), g.lg); err != nil {
		return nil, err
	}
	if g.store, err = store.Open(g.path("store"), g.lg, store.Options{}); err != nil {
		return nil, err
	}
	if err := g.containers.load(g.path("containers")); err != nil {
		return nil, err
	}
	if err := g.openUnselected(); err != nil {
		return nil, err
	}
	was, err := g.db.Visited()
	if err != nil {
		return nil, err
	}
	g.sel.cut.Store(was.Open)
	if was.Open && g.held != "stopped" {
		g.takeUp(was.Queued, was.Force)
	}
	if g.manual, err = openManual(g); err != nil {
		return nil, err
	}
	if err := g.archive.set(&g.conf.export); err != nil {
		return nil, err
	}
	g.export = newExporter(g)
	g.export.begin(g.conf.export.doors)
	if was.Whole.IsZero() {
		g.conf.since = time.Now()
	}
	g.visit = g.newVisit(g.conf)
	if g.visit.took, err = g.db.Counted(&g.visit.counts); err != nil {
		return nil, err
	}
	g.tree = g.newTree(opt)
	return g, nil
}

// newConfig is the configuration of a Gatherer that has none yet.
const newConfig = `# What to gather: a root for each tree or site, a leaf for a single document.
# root url=file:///usr/share/doc
# root url=https://go.dev/doc/ depth=4 urls=2000
`

// Close closes the Gatherer, once Run has returned.
func (g *Gatherer) Close() error {
	var errs []error
	if g.reach != nil {
		g.reach.end()
	}
	errs = append(errs, g.archive.close())
	if g.bring != nil {
		g.bring.close()
	}
	if g.export != nil {
		g.export.close()
	}
	if g.manual != nil {
		errs = append(errs, g.manual.close())
	}
	if g.store != nil {
		errs = append(errs, g.store.Close())
	}
	if pool, _ := g.pool(false); pool != nil {
		errs = append(errs, pool.Close())
	}
	if g.db != nil {
		errs = append(errs, g.db.Close())
	}
	return errors.Join(errs...)
}

func (g *Gatherer) path(name string) string { return filepath.Join(g.dir, name) }

// readHost returns the host that is part of the Gatherer's identity: that on
// which it was made, so that its objects keep their OIDs when it moves.
func (g *Gatherer) readHost() (string, error) {
	host, err := readOr(g.path("host"), "")
	if err != nil || host != "" {
		return host, err
	}
	if host, err = os.Hostname(); err != nil || host == "" {
		host = "localhost"
	}
	return host, writeFile(g.path("host"), host+"\n")
}

func readOr(path, absent string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return absent, nil
	}
	if filepath.Base(path) == "config" {
		return string(b), err
	}
	return strings.TrimSpace(string(b)), err
}

// writeFile replaces a file: a reader, or a crash, sees the old or the new.
func writeFile(path, text string) error { return writeFileAs(path, text, 0o644) }

func writeFileAs(path, text string, perm iofs.FileMode) (err error) {
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// oid is the name of the object made of a document.
func (g *Gatherer) oid(url string) store.OID { return store.ID(url, g.name+"@"+g.host) }

// onceOnly refuses roots and leaves that somebody else gathers already, unless
// they were there or the line has force=yes. That nobody can be asked is no reason
// to refuse.
func (g *Gatherer) onceOnly(ctx context.Context, c *config) error {
	if g.covered == nil {
		return nil
	}
	g.mu.Lock()
	old := g.conf
	g.mu.Unlock()
	for _, url := range c.once {
		if old != nil && slices.ContainsFunc(old.roots, func(r crawl.Root) bool { return r.URL == url }) {
			continue
		}
		by, err := g.covered(ctx, g.name, url)
		if err != nil {
			g.lg.Warn("registry", "err", err)
		}
		if by != "" {
			return fmt.Errorf("root %s: %s already; write force=yes to gather it all the same: %w", url, by, iofs.ErrExist)
		}
	}
	return nil
}

// setConfig checks a configuration and puts it in force: at once, for what is
// read at each visit; a visit that runs goes on with the one it began with.
func (g *Gatherer) setConfig(ctx context.Context, text string) error {
	return g.setConfigFrom(ctx, text, true)
}

// setConfigFrom is setConfig by somebody who is near, on this machine, or not:
// then it may name no program that is not there yet, for programs run as the
// server does.
func (g *Gatherer) setConfigFrom(ctx context.Context, text string, near bool) error {
	c, err := parseConfig(text)
	if err == nil && !near {
		g.mu.Lock()
		err = c.newProgram(g.conf)
		g.mu.Unlock()
	}
	if err == nil {
		_, err = c.filtered() // its files can be read
	}
	if err == nil {
		err = g.onceOnly(ctx, c)
	}
	if err == nil {
		err = g.keepSecrets(c)
	}
	if err != nil {
		return err
	}
	c.since = time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.putInForce(c); err != nil {
		return err
	}
	g.conf = c
	close(g.anew)
	g.anew = make(chan struct{})
	g.poke()
	return g.chooseAnew()
}

func (g *Gatherer) config() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conf.text
}

// poke has Run look at what there is to do.
func (g *Gatherer) poke() {
	select {
	case g.wake <- struct{}{}:
	default: // it has been told
	}
}

// Run gathers, when it is asked to and as often as the configuration says,
// until ctx ends. A visit that was cut off is taken up at once.
func (g *Gatherer) Run(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { g.selectAll(ctx) })
	others.Go(func() { g.export.serve(ctx) })
	others.Go(func() { g.watchAll(ctx) })
	for ctx.Err() == nil {
		v, wait, err := g.next(time.Now())
		if err != nil {
			g.lg.Error("schedule", "err", err)
			wait = time.Minute
		}
		if v != nil {
			g.gather(ctx, v)
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-g.wake:
		case <-t.C:
		}
		t.Stop()
	}
	return ctx.Err()
}

// forever is longer than anything that is waited for.
const forever = 10000 * time.Hour

// next returns the visit to be made now, begun as far as status tells, or how
// long there is none.
func (g *Gatherer) next(now time.Time) (*visit, time.Duration, error) {
	was, err := g.db.Visited()
	if err != nil {
		return nil, 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.want
	due := g.conf.schedule.next(was.Whole, g.conf.since)
	if w.queue && !w.run && !was.Open { // or the last visit has taken it along
		w.queue, err = g.isQueued()
		g.want.queue = w.queue
	}
	switch {
	case err != nil:
		return nil, 0, err
	case g.held != "":
		return nil, forever, nil
	case now.Before(g.retry):
		return nil, g.retry.Sub(now), nil
	case w.run:
	case was.Open: // cut off, or failed
		w = wish{run: !was.Queued, queue: was.Queued, force: was.Force}
	case w.queue:
	case due.IsZero():
		return nil, forever, nil
	case now.Before(due):
		return nil, due.Sub(now), nil
	default:
		w.run = true
	}
	v := g.newVisit(g.conf)
	v.plan.Queued, v.plan.Force, v.plan.Delete, v.kept = !w.run, w.force, w.all, w.kept
	g.want, g.visit = wish{}, v
	g.ended = make(chan struct{})
	return v, 0, nil
}

// takeUp has a visit that was cut off gone on with when nothing holds the
// Gatherer, and until then it counts as work to do. mu is held.
func (g *Gatherer) takeUp(queued, force bool) {
	g.want.run = g.want.run || !queued
	g.want.queue = g.want.queue || queued
	g.want.force = g.want.force || force
}

// isQueued reports whether any document is queued.
func (g *Gatherer) isQueued() (bool, error) {
	for _, err := range g.db.Queue(context.Background()) {
		return err == nil, err
	}
	return false, nil
}

// gather makes a visit.
func (g *Gatherer) gather(ctx context.Context, v *visit) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	g.cancel = cancel
	if g.held != "" { // since next
		cancel()
	}
	g.mu.Unlock()

	v.begin(time.Now())
	g.journal.event("start", ndb.Of("all", !v.plan.Queued), ndb.Of("anew", v.plan.Force))
	err := v.make(ctx)
	v.finish(time.Now())

	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancel, g.last = nil, nil
	close(g.ended)
	g.ended = nil
	switch {
	case err == nil:
		g.fails, g.retry = 0, time.Time{}
		if n := v.counts.Spared.Load(); n > 0 {
			g.journal.event("spared", ndb.Of("documents", n), ndb.Of("reason", "more than maxdelete; 'delete' to ctl deletes them"))
		}
		g.journal.event("end", v.figures()...)
	case ctx.Err() != nil:
		if g.held != "stopped" {
			g.takeUp(v.plan.Queued, v.plan.Force)
		}
		g.journal.event("cut", v.figures()...)
	default: // the store or the database; a document's trouble is its own
		g.fails++
		g.last = err
		g.retry = time.Now().Add(time.Second << min(g.fails, 10))
		g.lg.Error("visit", "err", err)
		g.journal.event("error", ndb.Of("reason", err))
	}
}

// state is how the Gatherer is, in a word. mu is held.
func (g *Gatherer) state() string {
	switch {
	case g.held != "":
		return g.held
	case g.ended != nil || g.want != wish{} || g.chooses:
		return "running"
	case g.last != nil:
		return "failing"
	}
	return "idle"
}

// hold keeps the Gatherer from gathering until it is let go, and waits until
// the visit that runs has ended. What the visit had in hand is kept.
func (g *Gatherer) hold(ctx context.Context, how string) error {
	g.mu.Lock()
	if how == "paused" && g.held == "stopped" {
		g.mu.Unlock()
		return fmt.Errorf("stopped: there is nothing to pause: %w", syscall.EBUSY)
	}
	if err := writeFile(g.path("held"), how+"\n"); err != nil {
		g.mu.Unlock()
		return err
	}
	g.held = how
	if how == "stopped" {
		g.want = wish{}
	}
	if g.cancel != nil {
		g.cancel()
	}
	ended := g.ended
	g.mu.Unlock()
	g.journal.event(how)
	g.poke()
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release undoes a hold. mu is held.
func (g *Gatherer) release() error {
	if g.held == "" {
		return nil
	}
	if err := os.Remove(g.path("held")); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	g.held = ""
	return nil
}

func (g *Gatherer) stop(ctx context.Context, _ []string) error  { return g.hold(ctx, "stopped") }
func (g *Gatherer) pause(ctx context.Context, _ []string) error { return g.hold(ctx, "paused") }

func (g *Gatherer) resume(context.Context, []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != "paused" {
		return fmt.Errorf("not paused: %w", iofs.ErrInvalid)
	}
	err := g.release()
	g.poke()
	return err
}

// run has everything visited now. One that runs is not begun again.
func (g *Gatherer) run(context.Context, []string) error { return g.start(wish{run: true}) }

// refresh is run with everything fetched anew.
func (g *Gatherer) refresh(context.Context, []string) error {
	return g.start(wish{run: true, force: true})
}

// summarize is refresh without the network: changed tables and summarizers take
// effect on what is kept.
func (g *Gatherer) summarize(context.Context, []string) error {
	return g.start(wish{run: true, force: true, kept: true})
}

// delete is run with all deletions made that the visit finds due: also more than
// a visit may make.
func (g *Gatherer) delete(context.Context, []string) error {
	return g.start(wish{run: true, all: true})
}

func (g *Gatherer) start(w wish) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == "paused" {
		return fmt.Errorf("paused: resume first: %w", syscall.EBUSY)
	}
	if len(g.conf.roots)+len(g.conf.lists) == 0 && g.store.Count() == 0 {
		return fmt.Errorf("config: no root and no leaf: %w", iofs.ErrInvalid)
	}
	if err := g.release(); err != nil {
		return err
	}
	if g.ended != nil && !w.force && !w.all && !g.visit.plan.Queued {
		return nil // it runs
	}
	if w.force {
		g.want.kept = w.kept // the last one said holds
	}
	g.want.run, g.want.force, g.want.all = true, g.want.force || w.force, g.want.all || w.all
	g.retry = time.Time{}
	g.poke()
	return nil
}

// fetch has some documents fetched now, whatever is known of them.
func (g *Gatherer) fetch(ctx context.Context, urls []string) error {
	for i, u := range urls {
		c, err := crawl.Canonical(u)
		if err != nil {
			return err
		}
		urls[i] = c
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != "" {
		return fmt.Errorf("%s: nothing is fetched: %w", g.held, syscall.EBUSY)
	}
	if err := g.db.Add(ctx, urls...); err != nil {
		return err
	}
	g.want.queue = true
	g.poke()
	return nil
}

// forget drops objects and what is known of their documents. What still belongs
// to a root is found again; to keep it out, deny it.
func (g *Gatherer) forget(ctx context.Context, urls []string) error {
	for _, u := range urls {
		c, err := crawl.Canonical(u)
		if err != nil {
			return err
		}
		known := g.db.Forget(ctx, c)
		if known != nil && !errors.Is(known, iofs.ErrNotExist) {
			return known
		}
		oid := g.oid(c)
		if _, err := g.stat(oid); err != nil {
			if errors.Is(err, iofs.ErrNotExist) {
				err = known // perhaps nil: it was known, if not kept
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := g.drop(ctx, oid, c); err != nil {
			return err
		}
		g.journal.event("gone", ndb.Of("url", c), ndb.Of("reason", "forgotten"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.chooseAnew() // a copy may take its place
}

// remove is what rm of an object does. What is known of its document stays, so
// that it comes back when its source changes, not before.
func (g *Gatherer) remove(ctx context.Context, e store.Entry) error {
	if err := g.keep(ctx, []store.Change{{Op: soif.Delete, OID: e.OID, URL: e.URL}}); err != nil {
		return err
	}
	g.journal.event("gone", ndb.Of("url", e.URL), ndb.Of("reason", "removed"))
	return nil
}

func (g *Gatherer) compact(ctx context.Context, _ []string) error {
	pool, err := g.pool(false)
	if pool != nil {
		err = pool.Compact(ctx)
	}
	return errors.Join(err, g.store.Compact(ctx))
}

// Removable says why the Gatherer may not be removed now, nil if it may: it was
// stopped, or has neither objects nor anything to do.
func (g *Gatherer) Removable() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.held == "stopped":
		return nil
	case g.state() == "running":
		return fmt.Errorf("it runs; stop it first: %w", syscall.EBUSY)
	case g.store.Count() > 0:
		return fmt.Errorf("it has objects; stop it first: %w", syscall.ENOTEMPTY)
	}
	return nil
}
