package block

import (
	"cmp"
	"context"
	"fmt"
	iofs "io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"harvest/index"
	"harvest/index/dict"
	"harvest/index/segfile"
)

// A view is the index at one time. It never changes once it is the current
// one, so a search needs no lock.
type view struct {
	mark  string
	next  uint64 // number of the next file
	parts []part
}

// engine is the Engine that Open gives.
type engine struct {
	dir    string
	grain  Grain
	coarse coarseness
	set    index.Settings
	cache  *dict.Cache
	cur    atomic.Pointer[view]
	off    atomic.Bool

	mu      sync.Mutex // held by the one that applies, and to begin and end a merge
	bad     error      // why the directory may not be what cur says; then nothing is applied
	merging bool
	quit    context.CancelFunc // of the merge that runs
	merges  sync.WaitGroup
	files   atomic.Uint64 // of temporary names
	pace    segfile.Pace
}

// defaultMemory is what Settings.Memory 0 means.
const defaultMemory = 64 << 20

func memory(set index.Settings) int64 {
	if set.Memory > 0 {
		return set.Memory
	}
	return defaultMemory
}

func workers(set index.Settings) int {
	if set.Workers > 0 {
		return set.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Open opens the index in dir, which it makes if it is absent; set.Source is
// needed. One process at a time may have it open. An index of another grain is
// an index.ErrSettings.
func Open(dir string, set index.Settings, grain Grain) (index.Engine, error) {
	e, err := open(dir, set, grain, tiny())
	if err != nil {
		return nil, err
	}
	return e, nil
}

func open(dir string, set index.Settings, grain Grain, coarse coarseness) (*engine, error) {
	if set.Source == nil || grain < Tiny || grain > Medium {
		return nil, fmt.Errorf("index/block: %s: grain %v, source %v: %w", dir, grain, set.Source, iofs.ErrInvalid)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	e := &engine{dir: dir, grain: grain, coarse: coarse, set: set, cache: dict.NewCache(memory(set) / 2)}
	if e.set.Log == nil {
		e.set.Log = slog.New(slog.DiscardHandler)
	}
	v, err := e.load()
	if err != nil {
		return nil, fmt.Errorf("index/block: %w", err)
	}
	e.cur.Store(v)
	return e, e.sweep(v)
}

// sweep removes files that v does not have.
func (e *engine) sweep(v *view) error {
	return files().Sweep(e.dir, func(path string) bool {
		return slices.ContainsFunc(v.parts, func(p part) bool { return p.Path == path })
	}, "run-")
}

func (e *engine) view() (*view, error) {
	if e.off.Load() {
		return nil, fmt.Errorf("index/block: %w", iofs.ErrClosed)
	}
	return e.cur.Load(), nil
}

func (e *engine) Mark() string { return e.cur.Load().mark }

// Close lets an Apply end and stops a merge.
func (e *engine) Close() error {
	e.mu.Lock()
	e.off.Store(true)
	if e.quit != nil {
		e.quit()
	}
	e.mu.Unlock()
	e.merges.Wait()
	return nil
}

func (e *engine) Stats() index.Stats {
	v := e.cur.Load()
	st := index.Stats{Segments: len(v.parts)}
	for i := range v.parts {
		p := &v.parts[i]
		st.Docs += p.live()
		st.Deleted += p.gone.Count()
		st.Bytes += int64(p.Size())
		st.Text += int64(p.left())
	}
	return st
}

// Check compares the sums of all files with those they hold.
func (e *engine) Check(ctx context.Context) error {
	v, err := e.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	if err := files().Check(e.dir, len(v.parts) == 0); err != nil {
		return fmt.Errorf("index/block: %w", err)
	}
	for i := range v.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := verify(v.parts[i].File); err != nil {
			return fmt.Errorf("index/block: %w", err)
		}
	}
	return nil
}

// Apply writes a segment of puts and makes it current, less what it replaces,
// with one new manifest.
func (e *engine) Apply(ctx context.Context, puts iter.Seq2[*index.Doc, error], deletes []index.ID, mark string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.view()
	if err != nil {
		return err
	}
	if e.bad != nil {
		return fmt.Errorf("index/block: must be opened again after: %w", e.bad)
	}
	s, err := e.build(ctx, old.next, puts)
	if err != nil {
		return fmt.Errorf("index/block: %w", err)
	}
	v := &view{mark: mark, next: old.next}
	if s != nil {
		v.next++
	}
	v.parts = replaced(old.parts, s, deletes)
	if err := e.publish(old, v); err != nil {
		if s != nil && e.bad == nil {
			os.Remove(s.Path)
		}
		return fmt.Errorf("index/block: %w", err)
	}
	e.startMerge(v)
	return nil
}

// build makes a segment of puts, nil if there are none.
func (e *engine) build(ctx context.Context, number uint64, puts iter.Seq2[*index.Doc, error]) (*segment, error) {
	if puts == nil {
		return nil, nil
	}
	b := newBuilder(e.set, e.grain, e.coarse, e.temporary)
	defer b.close()
	if err := b.add(ctx, puts); err != nil {
		return nil, err
	}
	path := files().Path(e.dir, number)
	if ok, err := b.finish(ctx, path); !ok || err != nil {
		return nil, err
	}
	s, err := openSegment(path, number, e.grain)
	if err != nil {
		os.Remove(path)
	}
	return s, err
}

// temporary names a file that is swept if a crash leaves it.
func (e *engine) temporary() string {
	return filepath.Join(e.dir, fmt.Sprintf("run-%d", e.files.Add(1)))
}

// publish makes v current and durable, or leaves old.
func (e *engine) publish(old, v *view) error {
	done, err := e.save(v)
	if err != nil {
		if done {
			e.bad = err
		}
		return err
	}
	e.cur.Store(v)
	for _, p := range old.parts {
		if !slices.ContainsFunc(v.parts, func(q part) bool { return q.segment == p.segment }) {
			e.cache.Forget(p.keys.dict)
			e.cache.Forget(p.terms.dict)
			os.Remove(p.Path) // searches have it mapped; what stays is swept by Open
		}
	}
	return nil
}

// replaced is parts less the documents that s and deletes replace, and s.
func replaced(parts []part, s *segment, deletes []index.ID) []part {
	var out []part
	for _, p := range parts {
		var gone []uint32
		if s != nil {
			gone = p.names().Displaced(s.names())
		}
		for _, id := range deletes {
			if d, ok := p.names().Find(id); ok {
				gone = append(gone, d)
			}
		}
		if p = p.without(gone); p.live() > 0 {
			out = append(out, p)
		}
	}
	if s != nil {
		out = append(out, part{segment: s}.without(s.names().Doubles()))
	}
	return out
}

// without is p less the documents gone.
func (p part) without(gone []uint32) part {
	p.gone = p.gone.With(gone, p.segment.docs, nil)
	return p
}

// smallSegment is the size up to which segments are of the smallest kind.
const smallSegment = 1 << 18

// pick chooses segments to merge, none if all is well.
func (v *view) pick() (set []part) {
	for _, i := range segfile.Due(len(v.parts), smallSegment, func(i int) (size, live, gone int) {
		p := &v.parts[i]
		return p.Size(), p.live(), p.gone.Count()
	}) {
		set = append(set, v.parts[i])
	}
	return set
}

// startMerge starts merging in the background what is to be merged. The
// caller holds mu; Close waits for it.
func (e *engine) startMerge(v *view) {
	set := v.pick()
	if set == nil || e.merging {
		return
	}
	ctx, quit := context.WithCancel(context.Background())
	e.merging, e.quit = true, quit
	e.merges.Go(func() {
		defer quit()
		var err error
		for set != nil {
			set, err = e.merge(ctx, set)
		}
		if e.set.Merged != nil && ctx.Err() == nil {
			e.set.Merged(err)
		}
	})
}

var _ index.Merger = (*engine)(nil)

// MergeAll is refused while it merges by itself.
func (e *engine) MergeAll(ctx context.Context) error {
	e.mu.Lock()
	v := e.cur.Load()
	if err := e.mayMerge(); err != nil || len(v.parts) == 0 || len(v.parts) == 1 && v.parts[0].gone.Count() == 0 {
		e.mu.Unlock()
		return err
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	e.merging, e.quit = true, quit
	e.merges.Add(1) // Close waits for it
	defer e.merges.Done()
	e.mu.Unlock()
	set := slices.Clone(v.parts)
	var err error
	for set != nil {
		set, err = e.merge(ctx, set)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return fmt.Errorf("index/block: merge: %w", err)
	}
	return nil
}

func (e *engine) mayMerge() error {
	if e.off.Load() {
		return fmt.Errorf("index/block: %w", iofs.ErrClosed)
	}
	if e.merging {
		return fmt.Errorf("index/block: it merges by itself now: %w", syscall.EBUSY)
	}
	return nil
}

// merge puts one segment in place of some and gives the next to be merged.
func (e *engine) merge(ctx context.Context, set []part) (next []part, _ error) {
	path := e.temporary()
	err := merge(ctx, e.pace.Merge(), set, path, e.grain, e.coarse)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && ctx.Err() == nil {
		err = e.swap(set, path)
	}
	if err != nil || ctx.Err() != nil {
		os.Remove(path)
		if ctx.Err() == nil {
			e.set.Log.Error("merge", "dir", e.dir, "err", err)
		}
		e.merging = false
		return nil, err
	}
	next = e.cur.Load().pick()
	e.merging = next != nil
	return next, nil
}

// swap makes the segment at path current in place of those it was made of,
// less what was deleted of them meanwhile.
func (e *engine) swap(set []part, path string) (err error) {
	old := e.cur.Load()
	v := &view{mark: old.mark, next: old.next + 1}
	to := files().Path(e.dir, old.next)
	if err := os.Rename(path, to); err != nil {
		return err
	}
	defer func() {
		if err != nil && e.bad == nil { // the next Apply has this number
			os.Remove(to)
		}
	}()
	s, err := openSegment(to, old.next, e.grain)
	if err != nil {
		return err
	}
	merged := part{segment: s}.without(deleted(set, old.parts, s))
	for _, p := range old.parts {
		switch i := slices.IndexFunc(set, func(q part) bool { return q.segment == p.segment }); {
		case i < 0:
			v.parts = append(v.parts, p)
		case merged.segment != nil && merged.live() > 0:
			v.parts = append(v.parts, merged)
			merged.segment = nil
		}
	}
	return e.publish(old, v)
}

// deleted gives the documents of s, merged from was, that are gone since.
func deleted(was, now []part, s *segment) (out []uint32) {
	for _, p := range was {
		i := slices.IndexFunc(now, func(q part) bool { return q.segment == p.segment })
		var gone *segfile.Tombstones
		if i >= 0 {
			gone = now[i].gone
		}
		out = append(out, p.names().Lost(p.gone, gone, i < 0, s.names())...)
	}
	return out
}
