// Package thin is the first, small engine, which serves until the ranked one does.
package thin

import (
	"context"
	"errors"
	"fmt"
	"harvest/index"
	iofs "io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A view is the index at one time. It never changes once it is the current
// one, so a search needs no lock.
type view struct {
	mark  string
	next  uint64 // number of the next segment
	parts []part

	docs int
	text int64
}

func (v *view) count() {
	v.docs, v.text = 0, 0
	for _, p := range v.parts {
		v.docs += p.live()
		for d := range p.NDocs {
			if !p.gone.has(d) {
				v.text += int64(p.length(d))
			}
		}
	}
}

// engine is the Engine that Open gives.
type engine struct {
	dir string
	cur atomic.Pointer[view]
	off atomic.Bool

	mu  sync.Mutex // held by the one that applies
	bad error      // why the directory may not be what cur says; then nothing is applied
}

// Open opens the index in dir, which it makes if it is absent. One process at
// a time may have it open. Files that no longer belong to the index, as a
// crash leaves them, are removed.
func Open(dir string, _ index.Settings) (index.Engine, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	v, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	e := &engine{dir: dir}
	e.cur.Store(v)
	return e, e.sweep(v)
}

// gather takes the documents of seq in hand, with copies of their fields.
func gather(seq iter.Seq2[*index.Doc, error]) (puts []index.Doc, err error) {
	if seq == nil {
		return nil, nil
	}
	for d, err := range seq {
		if err != nil {
			return nil, err
		}
		puts = append(puts, index.Doc{ID: d.ID, Fields: slices.Clone(d.Fields)})
	}
	return puts, nil
}

// Values is refused: values are known here by their hashes.
func (e *engine) Values(context.Context, string, string, func(index.Value) bool) error {
	return fmt.Errorf("index: values: %w", errors.ErrUnsupported)
}

// Suggest is refused: words are looked up here by what they are.
func (e *engine) Suggest(context.Context, string, int) ([]index.Suggestion, error) {
	return nil, fmt.Errorf("index: suggestions: %w", errors.ErrUnsupported)
}

// Check reads every segment again.
func (e *engine) Check(ctx context.Context) error {
	v, err := e.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	for _, p := range v.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.check(segmentPath(e.dir, p.number)); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	return nil
}

// sweep removes segments that v does not have.
func (e *engine) sweep(v *view) error {
	list, err := os.ReadDir(e.dir)
	if err != nil {
		return err
	}
	for _, f := range list {
		path := filepath.Join(e.dir, f.Name())
		ours := strings.HasPrefix(f.Name(), "segment-") || f.Name() == manifestName+".new"
		if ours && !slices.ContainsFunc(v.parts, func(p part) bool { return segmentPath(e.dir, p.number) == path }) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *engine) view() (*view, error) {
	if e.off.Load() {
		return nil, fmt.Errorf("index: %w", iofs.ErrClosed)
	}
	return e.cur.Load(), nil
}

func (e *engine) Mark() string { return e.cur.Load().mark }

func (e *engine) Close() error {
	e.mu.Lock() // an Apply ends first
	defer e.mu.Unlock()
	e.off.Store(true)
	return nil
}

func (e *engine) Stats() index.Stats {
	v := e.cur.Load()
	st := index.Stats{Docs: v.docs, Text: v.text, Segments: len(v.parts)}
	for _, p := range v.parts {
		st.Deleted += p.dead
		st.Bytes += int64(len(p.data))
	}
	return st
}

// Apply writes a segment of puts, merges what has grown to it, and makes all
// of it current with one new manifest.
func (e *engine) Apply(ctx context.Context, seq iter.Seq2[*index.Doc, error], deletes []index.ID, mark string) error {
	puts, err := gather(seq)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.view()
	if err != nil {
		return err
	}
	if e.bad != nil {
		return fmt.Errorf("index: must be opened again after: %w", e.bad)
	}
	v, err := old.apply(ctx, e.dir, puts, deletes)
	if err != nil {
		e.sweep(old) // for the space; the next Open would do it too
		return fmt.Errorf("index: %w", err)
	}
	v.mark = mark
	if done, err := v.save(e.dir); done && err != nil {
		e.bad = err
		return fmt.Errorf("index: %w", err)
	} else if err != nil {
		e.sweep(old)
		return fmt.Errorf("index: %w", err)
	}
	e.cur.Store(v)
	e.sweep(v) // what stays is swept the next time; searches have it mapped
	return nil
}

func (v *view) apply(ctx context.Context, dir string, puts []index.Doc, deletes []index.ID) (*view, error) {
	n := &view{next: v.next, parts: without(v.parts, puts, deletes)}
	if err := n.add(ctx, dir, puts); err != nil {
		return nil, err
	}
	if err := n.merge(ctx, dir); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	n.count()
	runtime.KeepAlive(v) // and so of the maps that were read
	return n, nil
}

// without is parts less the documents put or deleted.
func without(parts []part, puts []index.Doc, deletes []index.ID) []part {
	var out []part
	for _, p := range parts {
		var gone []uint32
		drop := func(id index.ID) {
			if d, ok := p.find(id); ok {
				gone = append(gone, d)
			}
		}
		for _, id := range deletes {
			drop(id)
		}
		for i := range puts {
			drop(puts[i].ID)
		}
		if p = p.with(gone); p.live() > 0 {
			out = append(out, p)
		}
	}
	return out
}

func (v *view) open(dir string, number uint64) error {
	s, err := openSegment(segmentPath(dir, number), number)
	if err == nil && s.NDocs > 0 {
		v.parts = append(v.parts, part{segment: s})
	}
	return err
}

// add makes a segment of puts, each ID's last.
func (v *view) add(ctx context.Context, dir string, puts []index.Doc) error {
	if len(puts) == 0 {
		return nil
	}
	last := make(map[index.ID]int, len(puts))
	for i := range puts {
		last[puts[i].ID] = i
	}
	b := newBuilder()
	for i := range puts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if last[puts[i].ID] == i {
			b.add(&puts[i])
		}
	}
	n := v.next
	v.next++
	if err := b.write(ctx, segmentPath(dir, n)); err != nil {
		return err
	}
	return v.open(dir, n)
}

// Segments of like size are merged eight at a time, so each word is written
// again once for each factor of eight the index is larger than an Apply; one
// of which more than half is gone is written anew.
const fanIn = 8

func (v *view) merge(ctx context.Context, dir string) error {
	for {
		set := v.pick()
		if set == nil {
			return nil
		}
		n := v.next
		v.next++
		if err := merge(ctx, set, segmentPath(dir, n)); err != nil {
			return err
		}
		v.parts = slices.DeleteFunc(v.parts, func(p part) bool {
			return slices.ContainsFunc(set, func(q part) bool { return p.number == q.number })
		})
		if err := v.open(dir, n); err != nil {
			return err
		}
	}
}

// pick chooses segments to merge, none if all is well.
func (v *view) pick() []part {
	tiers := make(map[int][]part)
	for _, p := range v.parts {
		if p.dead > p.live() {
			return []part{p}
		}
		tier := 0
		for size := len(p.data) >> 20; size > 0; size /= fanIn {
			tier++
		}
		if tiers[tier] = append(tiers[tier], p); len(tiers[tier]) == fanIn {
			return tiers[tier]
		}
	}
	return nil
}

// Attributes counts over the documents that are left, exactly up to hashes of
// 64 bits.
func (e *engine) Attributes(ctx context.Context) ([]index.Attribute, error) {
	v, err := e.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	var out []index.Attribute
	for _, name := range names(v.parts) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a := index.Attribute{Name: name}
		seen := make(map[uint64]struct{})
		for _, p := range v.parts {
			f, ok := p.field(name)
			if !ok {
				continue
			}
			last := ^uint32(0)
			p.eachValue(f, func(doc uint32, sum uint64) {
				if doc != last {
					a.Docs++
					last = doc
				}
				seen[sum] = struct{}{}
			})
		}
		if a.Distinct = len(seen); a.Docs > 0 {
			out = append(out, a)
		}
	}
	return out, nil
}
