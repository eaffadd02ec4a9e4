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

func (b *Broker) event(what string, pairs ...ndb.Pair) {
	record := ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", what)}, pairs...)...)
	b.shown.tell(record)
	b.queries.happened(what)
	b.journal.add(logOf(what), record)
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
