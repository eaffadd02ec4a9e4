// Package broker collects summary objects from Gatherers and other Brokers,
// keeps them, indexes them and answers queries.
//
// A Broker has four parts. The collector (collect.go) reads since/CURSOR of
// each source's tree. The registry (registry.go) knows how far it read and
// which source gave an object. The storage manager is gather/store. The query
// manager (query.go) asks an index.Engine, which follows the store by itself
// (follow.go): the index can be deleted and comes back from the objects.
//
// What it does not do: gather, summarise, or present. docs/broker.4.md is the
// manual of its files, docs/query.6.md that of the query language.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A Broker's store holds more changes in memory, some MB of them, than one that is
// filled by a crawl, since each page of its index that a table of them touches is
// written anew; and lets the index stay mapped, as what is searched is.
const (
	storePending = 16 << 10
	storeMapped  = 1 << 30
)

// An Opener opens the tree of a source by its path: gather/web here,
// tcp!host!port/gather/web there, a directory. Reading from it must end when
// ctx does.
type Opener func(ctx context.Context, path string) (iofs.FS, io.Closer, error)

// A Broker is one collection with its index. Its methods may be called
// concurrently.
type Broker struct {
	dir, name string
	lg        *slog.Logger
	open      Opener
	store     *store.Store
	registry  *registry
	shortcuts shortcuts
	queries   *queries
	shown     *shown // its side of the tree, in files.go
	registers bool   // it is the registry of servers
	externals externals
	template  template // how answers are shown to people
	views     *views
	dups      *dups
	lanes     *lanes
	digest    digest
	probes    probes // of services, if it is a registry
	front     *front
	router    *router
	journal   *journal

	following sync.Mutex // held while the index follows the store
	setting   sync.Mutex // held while a config is set
	putting   sync.Mutex // held while store and registry change together, and registry is checked against store

	wake    chan struct{} // something is due, or may be
	closing sync.Once
	follows atomic.Bool // the index follows by itself: Run is running

	mu           sync.Mutex // guards what follows, and nothing that waits
	index        *held
	text         string // of the config
	config       *config
	sources      map[string]*source
	gcAt         time.Time
	sweepAt      time.Time // when sessions are looked at that may be idle
	gcAsked      bool
	gcRuns       bool
	reindex      bool                   // asked for
	rebuilding   bool                   // the index is being made anew
	next         *held                  // the one that is being made
	again        chan struct{}          // closed and made anew when it is
	trouble      error                  // of the last follow
	mergeTrouble error                  // of the last merge of the index
	damaged      map[store.OID]struct{} // objects that are not indexed because they cannot be read
	commons      commons                // which words are common
	followed     chan struct{}          // closed and made anew when the index has followed
	stopped      bool
	shut         bool // and answers nobody
	started      time.Time
	total        counts
	lastDone     time.Time
}

// A source is what the Broker knows of one entry of its config. Guarded by mu.
type source struct {
	sourceConfig
	at     place
	next   time.Time
	asked  bool
	cancel context.CancelFunc // of the collection that runs, if one does
	fails  int                // in a row
	err    error
	total  counts

	origins []string // the Brokers that it is, or has its objects from
}

// Open opens the Broker in dir, which it makes if it is absent.
func Open(dir, name string, lg *slog.Logger, opt Options) (_ *Broker, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, name: name, open: opt.Open, registers: opt.Registry, lanes: opt.lanes, wake: make(chan struct{}, 1), sources: make(map[string]*source), damaged: make(map[store.OID]struct{}), again: make(chan struct{}), followed: make(chan struct{}), started: time.Now()}
	if b.lanes == nil {
		b.lanes = newLanes()
	}
	if err := errors.Join(clearNew(dir), clearNew(filepath.Join(dir, "index"))); err != nil {
		return nil, err
	}
	b.shown = newShown(b, opt.Bus)
	if b.journal, err = openJournal(filepath.Join(dir, "log"), b.shown.tail.Add); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	b.lg = b.shown.logger(lg).With("broker", name)
	b.queries, b.front, b.router = newQueries(b), newFront(b), newRouter(b)
	b.front.choose = b.router.choose
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.store, err = store.Open(filepath.Join(dir, "store"), b.lg, store.Options{Pending: storePending, Mapped: storeMapped}); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	if b.registry, err = openRegistry(filepath.Join(dir, registryName)); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	if b.dups, err = openDups(b); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	if err = b.registry.recover(b.has); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, err
	}
	r, err := b.rule(string(text))
	if err != nil {
		return nil, fmt.Errorf("broker %s: config: %w", name, err)
	}
	b.config = r.config
	b.journal.use(r.config.log)
	if err := b.wasStopped(); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	if err := b.openIndex(r.index); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	if b.views, err = openViews(b, r.config, b.index.files); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	b.use(r)
	if err = errors.Join(b.loadTemplate(), b.openShortcuts()); err != nil {
		return nil, fmt.Errorf("broker %s: %w", name, err)
	}
	b.queries.load(context.Background())
	b.shown.build()
	return b, nil
}

// Close closes the Broker; Run has returned. Once more does nothing.
func (b *Broker) Close() (err error) {
	b.closing.Do(func() { err = b.close() })
	return err
}

func (b *Broker) close() (err error) {
	b.front.close()
	if b.shortcuts.set != nil {
		b.shortcuts.set.Close()
	}
	if b.index != nil {
		b.index.release()
		<-b.index.closed
		err = b.index.err
	}
	if b.views != nil && b.views.set != nil {
		err = errors.Join(err, b.views.set.Close())
	}
	if b.dups != nil {
		err = errors.Join(err, b.dups.close())
	}
	if b.registry != nil {
		err = errors.Join(err, b.registry.Close())
	}
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
	}
	return errors.Join(err, b.journal.close())
}

// A ruling is a config with what the registry knows of its sources: all that
// may fail before it is in force.
type ruling struct {
	text string
	*config
	at map[string]place
}

// rule reads a config and enters its sources.
func (b *Broker) rule(text string) (ruling, error) {
	c, err := parseConfig(text)
	if err != nil {
		return ruling{}, err
	}
	paths := make([]string, len(c.sources))
	for i, s := range c.sources {
		paths[i] = s.path
	}
	at, err := b.registry.places(paths)
	return ruling{text, c, at}, err
}

// use puts a config in force: new sources are due at once, others when they
// were, those that are no more stop.
func (b *Broker) use(r ruling) {
	b.router.use(r.config)
	b.journal.use(r.config.log)
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.sources
	b.text, b.config, b.sources = r.text, r.config, make(map[string]*source)
	for _, conf := range r.sources {
		s := old[conf.path]
		if s == nil {
			s = &source{at: r.at[conf.path]}
			if !s.at.last.IsZero() {
				s.next = s.at.last.Add(conf.every)
			}
		} else if conf.every != s.every {
			s.next = s.at.last.Add(conf.every)
		}
		s.sourceConfig = conf
		if s.at.print != conf.print() { // what it was asked for is not this
			s.next = time.Time{}
		}
		b.sources[conf.path] = s
		delete(old, conf.path)
	}
	for _, s := range old {
		if s.cancel != nil {
			s.cancel()
		}
	}
	b.gcAt = time.Now().Add(r.gc)
	if b.index.files != r.index.files {
		b.renew()
	}
	b.poke()
}

// setConfig checks a config, keeps it and puts it in force, one writer's after
// the other's, so that the file and what is in force agree.
func (b *Broker) setConfig(ctx context.Context, text string) error {
	b.setting.Lock()
	defer b.setting.Unlock()
	return b.setText(ctx, text)
}

// setText is setConfig with setting held.
func (b *Broker) setText(_ context.Context, text string) error {
	r, err := b.rule(text)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(b.dir, "config"), []byte(text)); err != nil {
		return err
	}
	b.use(r)
	b.queries.forget()
	b.views.poke()
	b.event("config")
	return nil
}

// writeFile replaces a file and has it on disk, or leaves the old one; after
// an error of the last sync it may be either.
func writeFile(path string, text []byte) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new")
		return err
	}
	return d.Sync()
}

// clearNew removes what a crash has left of writeFile in a folder.
func clearNew(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".new") && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// poke has the scheduler look again.
func (b *Broker) poke() {
	select {
	case b.wake <- struct{}{}:
	default: // told already
	}
}

// Run collects, indexes and drops what has expired, as the config says, until
// ctx ends.
func (b *Broker) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { b.keepIndexed(ctx) })
	wg.Go(func() { b.views.run(ctx) })
	wg.Go(func() { b.router.run(ctx) })
	b.schedule(ctx, &wg)
	wg.Wait()
	return ctx.Err()
}

// retry is how long to wait after a failure: longer each time, up to a bound.
func retry(fails int, bound time.Duration) time.Duration {
	const first = 5 * time.Second
	return min(first<<min(fails-1, 20), bound)
}

// keepIndexed follows the store.
func (b *Broker) keepIndexed(ctx context.Context) {
	b.follows.Store(true)
	defer b.follows.Store(false)
	for fails := 0; ctx.Err() == nil; {
		seq := b.store.Cursor().Seq
		err := b.bring(ctx, true)
		if err != nil && ctx.Err() == nil {
			fails++
			b.lg.Error("index", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(retry(fails, 5*time.Minute)):
			}
			continue
		}
		fails = 0
		b.queries.askAgain(ctx)
		b.await(ctx, seq)
	}
}

// await returns when the store has changed, or the index is to be made anew.
func (b *Broker) await(ctx context.Context, seq uint64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	again, now := b.again, b.reindex
	b.mu.Unlock()
	if now {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		select {
		case <-again:
			cancel()
		case <-ctx.Done():
		}
	})
	b.store.Wait(ctx, seq)
	cancel()
}

// catchUp brings the index to where the store is. While Run is running it is Run's
// to make it anew: an rm that waits for the index waits for no more than the old one.
func (b *Broker) catchUp(ctx context.Context) error { return b.bring(ctx, !b.follows.Load()) }

// bring is follow with its outcome noted. If anew is true the index is made anew
// before, if that was asked for.
func (b *Broker) bring(ctx context.Context, anew bool) error {
	b.mu.Lock()
	anew = anew && b.reindex && !b.rebuilding
	if anew {
		b.reindex, b.rebuilding = false, true
	}
	b.mu.Unlock()
	var err error
	if anew {
		err = b.rebuild(ctx)
	}
	made := err == nil
	if made {
		err = b.follow(ctx)
	}
	if ctx.Err() != nil {
		return err
	}
	b.mu.Lock()
	b.trouble = err
	b.mu.Unlock()
	b.shown.complain("index", "", err)
	if err != nil && made { // else the old one is as good as it was
		return errors.Join(err, b.reopen())
	}
	return err
}

// collectors bounds how many sources are read at a time.
const collectors = 4

// schedule starts what is due, in goroutines of wg.
func (b *Broker) schedule(ctx context.Context, wg *sync.WaitGroup) {
	slots := make(chan struct{}, collectors)
	for {
		due, gc, wait := b.due(time.Now())
		for _, path := range due {
			wg.Go(func() {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
					b.collect(ctx, path)
				case <-ctx.Done():
				}
			})
		}
		if gc {
			wg.Go(func() { b.runGC(ctx) })
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-b.wake:
			t.Stop()
		case <-t.C:
		}
	}
}

// due gives the sources to collect from now, which count as asked for from
// then on until they are read, whether to collect garbage, and how long there
// is nothing more to do.
func (b *Broker) due(now time.Time) (paths []string, gc bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = time.Hour
	if !b.sweepAt.After(now) {
		b.sweepAt = b.queries.sweep(now)
	}
	at := func(t time.Time) { wait = min(wait, max(t.Sub(now), 0)) }
	for path, s := range b.sources {
		if s.cancel != nil || b.stopped && !s.asked {
			continue
		}
		if s.asked || !s.next.After(now) {
			paths = append(paths, path)
			s.asked = true
			s.next = now.Add(s.every)
			s.cancel = func() {} // until collect has a better one
		}
		at(s.next)
	}
	if !b.gcRuns && (b.gcAsked || !b.stopped && !b.gcAt.After(now)) {
		b.gcRuns, b.gcAsked, gc = true, false, true
		b.gcAt = now.Add(b.config.gc)
	}
	if !b.stopped {
		at(b.gcAt)
	}
	at(b.sweepAt)
	return paths, gc, wait
}

func (b *Broker) runGC(ctx context.Context) {
	err := b.gc(ctx)
	if err == nil {
		err = b.reweigh(ctx, time.Now())
	}
	next := b.nextLapse()
	b.mu.Lock()
	b.gcRuns = false
	if !next.IsZero() && next.Before(b.gcAt) {
		b.gcAt = next
	}
	b.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		b.lg.Error("gc", "err", err)
	}
	b.shown.complain("gc", "", err)
	b.poke()
}

// expire deletes what has outlived its time to live.
func (b *Broker) expire(ctx context.Context) (int, error) {
	lapsing := b.lapsing(time.Now())
	n, err := b.store.Expire(ctx, time.Now())
	if err == nil {
		for _, url := range lapsing {
			b.event("lapsed", url)
		}
	}
	return n, err
}

// Collect reads what is new at a source of the config, and returns when it can
// be found. A source that is being read already is an error that wraps EBUSY.
func (b *Broker) Collect(ctx context.Context, path string) error {
	b.mu.Lock()
	s := b.sources[path]
	if s == nil {
		b.mu.Unlock()
		return noSource(path)
	}
	if s.cancel != nil {
		b.mu.Unlock()
		return sourceError(path, syscall.EBUSY)
	}
	s.cancel = func() {}
	b.mu.Unlock()
	if err := b.collect(ctx, path); err != nil {
		return sourceError(path, err)
	}
	return b.catchUp(ctx)
}

func noSource(path string) error { return sourceError(path, iofs.ErrNotExist) }

// collect reads one source, whose cancel is set already.
func (b *Broker) collect(ctx context.Context, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	s := b.sources[path]
	if s == nil { // the config has changed meanwhile
		b.mu.Unlock()
		return noSource(path)
	}
	s.cancel, s.asked = cancel, false
	c := collection{b: b, path: path, conf: s.sourceConfig, at: s.at, ttl: b.config.ttl}
	b.mu.Unlock()

	begin := time.Now()
	err := c.read(ctx)

	b.mu.Lock()
	s.cancel, s.err = nil, err
	s.total.add(c.counts)
	b.total.add(c.counts)
	now := time.Now()
	if err == nil {
		s.at, s.fails, s.origins, b.lastDone = c.at, 0, c.from, now
		s.next = now.Add(s.every)
	} else if ctx.Err() == nil {
		s.fails++
		s.next = now.Add(retry(s.fails, s.every))
	} else { // stopped: due as soon as it may
		s.next, s.err = now, nil
	}
	b.mu.Unlock()
	b.poke()

	took := now.Sub(begin).Round(time.Millisecond)
	switch {
	case err == nil:
		b.event("collected", append(append([]ndb.Pair{ndb.Of("source", path)}, c.counts.pairs()...), ndb.Of("took", took))...)
		if c.counts.bad == 0 {
			b.shown.complain("source "+path, "", nil)
		}
	case ctx.Err() == nil:
		b.lg.Warn("collect", "source", path, "err", err)
		b.event("failed", ndb.Of("source", path), ndb.Of("err", err))
		b.shown.complain("source "+path, "", err)
	}
	return err
}

// bad tells of an object that a source has wrong.
func (b *Broker) bad(path string, line int64, err error) {
	b.lg.Warn("bad object", "source", path, "line", line, "err", err)
	b.event("bad", ndb.Of("source", path), ndb.Of("line", line), ndb.Of("err", err))
	b.shown.complain("source "+path, "", err)
}

func (b *Broker) event(what string, pairs ...ndb.Pair) {
	record := ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", what)}, pairs...)...)
	b.shown.tell(record)
	b.queries.happened(what)
	b.journal.add(logOf(what), record)
}

// ask has sources collected soon: all, or one.
func (b *Broker) ask(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if path != "" && b.sources[path] == nil {
		return noSource(path)
	}
	if len(b.sources) == 0 {
		return fmt.Errorf("no source in config: %w", iofs.ErrInvalid)
	}
	for p, s := range b.sources {
		if path == "" || p == path {
			s.asked = true
		}
	}
	b.poke()
	return nil
}

// restart has a source read from the start.
func (b *Broker) restart(path string) error {
	b.mu.Lock()
	s := b.sources[path]
	if s == nil {
		b.mu.Unlock()
		return noSource(path)
	}
	if s.cancel != nil {
		b.mu.Unlock()
		return sourceError(path, syscall.EBUSY)
	}
	s.at.cursor = "0"
	s.asked = true
	at := s.at
	b.mu.Unlock()
	b.poke()
	return b.registry.advance(path, at)
}

func (b *Broker) askGC() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gcAsked = true
	b.poke()
	return nil
}

// askReindex has the index made anew from the store.
func (b *Broker) askReindex() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew()
	return nil
}

// renew has the index made anew. Called with mu held.
func (b *Broker) renew() {
	b.reindex = true
	close(b.again)
	b.again = make(chan struct{})
}

// stop ends what runs and begins nothing by itself until start; what is asked
// for is still done.
func (b *Broker) stop(yes bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = yes
	for _, s := range b.sources {
		if yes && s.cancel != nil {
			s.cancel()
		}
	}
	b.poke()
	return nil
}

// Removable says why the Broker may not be removed now: nil when nothing would be
// lost, or its loss is meant.
func (b *Broker) Removable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || len(b.sources) == 0 && b.store.Count() == 0 {
		return nil
	}
	return fmt.Errorf("write stop to its ctl first: %w", syscall.ENOTEMPTY)
}

func (b *Broker) configText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text
}

// delete deletes objects; all or none.
func (b *Broker) delete(ctx context.Context, names []string) error {
	var oids []store.OID
	for _, name := range names {
		oid, err := store.ParseOID(name)
		if err != nil {
			return err
		}
		if _, err := b.store.Stat(oid); err != nil {
			return err
		}
		oids = append(oids, oid)
	}
	changes := make([]store.Change, len(oids))
	for i, oid := range oids {
		changes[i] = store.Change{Op: soif.Delete, OID: oid}
	}
	if _, err := b.store.Apply(ctx, changes); err != nil {
		return err
	}
	b.event("deleted", ndb.Of("objects", len(oids)))
	return b.catchUp(ctx)
}

// remove is what rm of an object does.
func (b *Broker) remove(ctx context.Context, e store.Entry) error {
	return b.delete(ctx, []string{e.OID.String()})
}

// busy tells whether there is work under way or asked for. Called with mu held.
func (b *Broker) busy() bool {
	for _, s := range b.sources {
		if s.cancel != nil || s.asked {
			return true
		}
	}
	return b.gcRuns || b.gcAsked || b.reindex || b.rebuilding
}
