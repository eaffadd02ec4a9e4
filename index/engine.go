package index

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"harvest/index/dict"
	"harvest/index/segfile"
)

// A view is the index at one time. It never changes once it is the current
// one, so a search needs no lock:
//
//	v, err := e.view()
//	if err != nil { … }
//	defer runtime.KeepAlive(v) // the files stay mapped until here
type view struct {
	parts []part
	docs  int   // of all parts, those gone as well: the N of scores
	text  int64 // their words: text/docs is the mean length
	mark  string

	attributes attributesOnce
}

func newView(mark string, parts []part) *view {
	v := &view{mark: mark, parts: parts}
	for i := range parts {
		parts[i].base = uint32(v.docs)
		v.docs += int(parts[i].docs)
		v.text += int64(parts[i].text)
	}
	return v
}

// An engine is the Engine that Open gives.
type engine struct {
	dir   string
	set   Settings
	log   *slog.Logger
	cache *dict.Cache // lists of terms, for patterns

	searchers sync.Pool // of *searcher
	pace      segfile.Pace

	cur  atomic.Pointer[view]
	off  atomic.Bool
	next atomic.Uint64 // number of the next segment

	applying sync.Mutex // held by the one that applies
	mu       sync.Mutex // held to make another view the current one, and for:
	bad      error      // why the directory may not be what cur says; then nothing is changed any more

	stop   context.CancelFunc // of merges
	kick   chan struct{}      // there may be something to merge
	wishes chan wish          // all is to be merged
	ended  <-chan struct{}    // closed when nobody merges any more
	merged chan struct{}      // closed, and replaced if that may come again, when merges are done or failed; under mu
	failed error              // why they did, the last time; under mu
	done   sync.WaitGroup
}

// cacheBytes is what lists of terms may take that patterns are looked for in.
const cacheBytes = 32 << 20

// Open opens the index in dir, which it makes if it is absent. One process at
// a time may have it open. Files that no longer belong to the index, as a
// crash leaves them, are removed.
func Open(dir string, set Settings) (Engine, error) {
	e, err := openEngine(dir, set)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return e, nil
}

func openEngine(dir string, set Settings) (*engine, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	v, next, err := load(dir, set.bits())
	if err != nil {
		return nil, err
	}
	e := &engine{dir: dir, set: set, log: set.Log, cache: dict.NewCache(cacheBytes)}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.cur.Store(v)
	e.next.Store(next)
	if err := e.sweep(v); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.kick = make(chan struct{}, 1)
	e.wishes, e.ended = make(chan wish), ctx.Done()
	e.merged = make(chan struct{})
	e.done.Go(func() { e.mergeAll(ctx) })
	e.poke()
	return e, nil
}

// sweep removes segments that v does not have.
func (e *engine) sweep(v *view) error {
	return layout().Sweep(e.dir, func(path string) bool {
		return slices.ContainsFunc(v.parts, func(p part) bool { return p.Path == path })
	})
}

// view is the current one, with segments that are ready to be searched.
func (e *engine) view() (*view, error) {
	if e.off.Load() {
		return nil, fmt.Errorf("index: %w", iofs.ErrClosed)
	}
	v := e.cur.Load()
	for i := range v.parts {
		if err := v.parts[i].ready(); err != nil {
			return nil, fmt.Errorf("index: %w", err)
		}
	}
	return v, nil
}

func (e *engine) Mark() string { return e.cur.Load().mark }

// Close waits for an Apply, and for a merge to give up.
func (e *engine) Close() error {
	e.stop()
	e.applying.Lock()
	defer e.applying.Unlock()
	e.off.Store(true)
	e.done.Wait()
	return nil
}

func (e *engine) Stats() Stats {
	v := e.cur.Load()
	st := Stats{Docs: v.docs, Text: v.text, Segments: len(v.parts)}
	for i := range v.parts {
		p := &v.parts[i]
		st.Deleted += p.gone.Count()
		st.Docs -= p.gone.Count()
		st.Text -= int64(p.goneText)
		st.Bytes += int64(p.Size())
	}
	return st
}

// create names a segment.
func (e *engine) create() (path string, number uint64) {
	number = e.next.Add(1) - 1
	return layout().Path(e.dir, number), number
}

// Apply writes segments of puts and makes them current, and what they replace
// gone, with one new manifest.
func (e *engine) Apply(ctx context.Context, puts iter.Seq2[*Doc, error], deletes []ID, mark string) error {
	e.applying.Lock()
	defer e.applying.Unlock()
	if e.off.Load() {
		return fmt.Errorf("index: %w", iofs.ErrClosed)
	}
	if err := e.room(ctx); err != nil {
		return err
	}
	f := newFeeder(e.set, e.create)
	err := f.feed(ctx, puts)
	if err == nil {
		err = e.commit(f.made, deletes, mark)
		if err != nil {
			err = fmt.Errorf("index: %w", err)
		}
	}
	if err != nil && !errors.Is(err, errUncertain) {
		for _, s := range f.made {
			os.Remove(s.Path)
		}
	}
	return err
}

// Settle waits until there is nothing to merge, or gives the error that a merge had.
func (e *engine) Settle(ctx context.Context) error {
	for {
		e.mu.Lock()
		merged := e.merged
		idle := pick(e.cur.Load().parts) == nil
		e.mu.Unlock()
		if idle {
			return nil
		}
		e.poke()
		select {
		case <-merged:
		case <-ctx.Done():
			return ctx.Err()
		}
		e.mu.Lock()
		err := e.failed
		e.mu.Unlock()
		if err != nil {
			return fmt.Errorf("index: merge: %w", err)
		}
	}
}

// maxParts is how many segments there are before an Apply waits for merges.
const maxParts = 64

// room waits for merges, once, if there are too many segments.
func (e *engine) room(ctx context.Context) error {
	e.mu.Lock()
	merged, parts := e.merged, len(e.cur.Load().parts)
	e.mu.Unlock()
	if parts < maxParts {
		return nil
	}
	e.poke()
	select {
	case <-merged:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errUncertain is about a manifest that may be the old or the new one.
var errUncertain = errors.New("index must be opened again")

// commit makes a view current that has the segments made as well, and not what
// they replace or deletes names.
func (e *engine) commit(made []*segment, deletes []ID, mark string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.cur.Load()
	defer runtime.KeepAlive(old)
	var parts []part
	for i := range old.parts {
		p, err := old.parts[i].replaced(made, deletes)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	for i, s := range made {
		if err := s.ready(); err != nil {
			return err
		}
		p, err := part{segment: s}.without(s.names.Doubles()).replaced(made[i+1:], nil)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	if err := e.become(newView(mark, alive(parts)), made...); err != nil {
		return err
	}
	e.poke()
	return nil
}

// replaced is p less what deletes names and later segments have.
func (p part) replaced(by []*segment, deletes []ID) (part, error) {
	if len(by)+len(deletes) == 0 {
		return p, nil
	}
	if err := p.ready(); err != nil {
		return p, err
	}
	var docs []uint32
	for _, s := range by {
		docs = append(docs, p.names.Displaced(s.names)...)
	}
	for _, id := range deletes {
		if d, ok := p.find(id); ok {
			docs = append(docs, d)
		}
	}
	return p.without(docs), nil
}

// alive are the parts that have documents left.
func alive(parts []part) (out []part) {
	for _, p := range parts {
		if p.live() > 0 {
			out = append(out, p)
		}
	}
	return out
}

// become makes v current and removes the files that it has not: those of the
// view before and of made. Called with mu held.
func (e *engine) become(v *view, made ...*segment) error {
	if e.bad != nil {
		return fmt.Errorf("%w after: %w", errUncertain, e.bad)
	}
	done, err := v.save(e.dir, e.set.bits(), e.next.Load())
	if err != nil {
		if done {
			e.bad = err
			err = fmt.Errorf("%w after: %w", errUncertain, err)
		}
		return err
	}
	old := e.cur.Swap(v)
	have := make(map[uint64]bool)
	for i := range v.parts {
		have[v.parts[i].number] = true
	}
	for i := range old.parts {
		made = append(made, old.parts[i].segment)
	}
	for _, s := range made {
		if !have[s.number] {
			e.drop(s)
		}
	}
	return nil
}

// drop removes the file of a segment. Searches that have it mapped go on.
func (e *engine) drop(s *segment) {
	if d := s.words.Load(); d != nil {
		e.cache.Forget(d)
	}
	if err := os.Remove(s.Path); err != nil {
		e.log.Warn("segment stays", "err", err) // until the next Open
	}
}

// Check reads every file, compares the sums, and reads every list.
func (e *engine) Check(ctx context.Context) error {
	v, err := e.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	err = layout().Check(e.dir, len(v.parts) == 0)
	for i := range v.parts {
		if err == nil {
			err = v.parts[i].check(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("index: %w", err)
	}
	return err
}
