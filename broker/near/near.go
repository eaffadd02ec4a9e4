// Package near finds documents that are copies of one another, and those that
// nearly are, among millions: a new one's in a fraction of a millisecond. It
// keeps of each document the sum of its bytes and a sketch of its words
// (gather/dup), in segments as package index/segfile has them, which are mapped:
// memory is what the system has to spare, and not more with more documents.
//
// Sketches are looked up in 32 trees, each of the documents in the order of
// eight bins of their sketches (Bawa, Condie and Ganesan's LSH Forest, 2005).
// Documents that agree in the first r bins of any tree are compared; the less
// they are to resemble each other the smaller is r (rows).
//
// All of it is derived: whoever has the documents can delete the directory and
// apply them again. What it does not do: read documents, or say which of a
// group is to be shown.
package near

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"harvest/gather/dup"
	"harvest/index/segfile"
)

// An ID names a document.
type ID = [16]byte

// A Doc is what is known of a document.
type Doc struct {
	ID     ID
	Bytes  Bytes
	Sketch dup.Sketch
}

// Bytes stand for those of a document. The zero Bytes are those of one of which
// nothing is known, and which is nobody's copy.
type Bytes struct {
	MD5  [16]byte
	Size uint64
}

// An Index is one in a directory of its own. Its methods may be called
// concurrently; a look-up sees all of an Apply or nothing of it.
type Index struct {
	dir string
	cur atomic.Pointer[view]
	off atomic.Bool

	mu  sync.Mutex // held by the one that applies or merges
	bad error      // why the directory may not be what cur says; then nothing is applied
}

// A view is the index at one time; it never changes.
type view struct {
	mark  string
	next  uint64 // number of the next segment
	parts []part
}

// A part is a segment less the documents that are gone from it.
type part struct {
	*segment
	gone *segfile.Tombstones
}

// Open opens the index in dir, which it makes if it is absent. One process at a
// time may have it open.
func Open(dir string) (*Index, error) {
	x := &Index{dir: dir}
	v, err := x.load()
	if err == nil {
		x.cur.Store(v)
		err = format().Sweep(dir, func(path string) bool {
			return slices.ContainsFunc(v.parts, func(p part) bool { return p.Path == path })
		})
	}
	if err != nil {
		return nil, fmt.Errorf("near: %w", err)
	}
	return x, nil
}

func (x *Index) load() (*view, error) {
	if err := os.MkdirAll(x.dir, 0o777); err != nil {
		return nil, err
	}
	m, err := format().Load(x.dir, 0)
	if err != nil {
		return nil, err
	}
	v := &view{mark: m.Mark, next: m.Next}
	for i := range m.Segments {
		entry := &m.Segments[i]
		f, err := format().OpenEntry(x.dir, entry)
		if err != nil {
			return nil, err
		}
		s, err := newSegment(f, entry.Number)
		if err != nil {
			return nil, err
		}
		if !entry.Has(s.docs) {
			return nil, f.Corrupt("it has %d documents, which the manifest does not say", s.docs)
		}
		v.parts = append(v.parts, part{segment: s}.without(entry.Gone))
	}
	return v, nil
}

func (p part) without(docs []uint32) part {
	p.gone = p.gone.With(docs, p.docs, nil)
	return p
}

func (p part) live() int { return int(p.docs) - p.gone.Count() }

// view is the current one.
func (x *Index) view() (*view, error) {
	if x.off.Load() {
		return nil, fmt.Errorf("near: %w", iofs.ErrClosed)
	}
	return x.cur.Load(), nil
}

// Mark is what the last Apply said, "" for a new index.
func (x *Index) Mark() string { return x.cur.Load().mark }

// Stats of an index.
type Stats struct {
	Docs, Segments int
	Bytes          int64 // on disk
}

func (x *Index) Stats() (st Stats) {
	for _, p := range x.cur.Load().parts {
		st.Docs += p.live()
		st.Bytes += int64(p.Size())
		st.Segments++
	}
	return st
}

// Close lets an Apply end. Look-ups under way go on.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.off.Store(true)
	return nil
}

// Apply removes the documents named in deletes, then adds puts, each in place
// of the one with its ID, the last if an ID comes twice, and sets the mark. All
// of it is durable when it returns nil, and nothing of it when it does not.
func (x *Index) Apply(puts []Doc, deletes []ID, mark string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, err := x.view()
	if err == nil && x.bad != nil {
		err = fmt.Errorf("near: must be opened again after: %w", x.bad)
	}
	if err != nil {
		return err
	}
	v := &view{mark: mark, next: old.next}
	var s *segment
	if len(puts) > 0 {
		if s, err = x.make(old.next, docs(puts)); err != nil {
			return err
		}
		v.next++
	}
	v.parts = replaced(old.parts, s, deletes)
	return x.publish(old, v, s)
}

// replaced is parts less the documents that s and deletes replace, and s.
func replaced(parts []part, s *segment, deletes []ID) (out []part) {
	for _, p := range parts {
		var gone []uint32
		if s != nil {
			gone = p.ids.Displaced(s.ids)
		}
		for _, id := range deletes {
			if d, ok := p.ids.Find(id); ok {
				gone = append(gone, d)
			}
		}
		if p = p.without(gone); p.live() > 0 {
			out = append(out, p)
		}
	}
	if s != nil {
		out = append(out, part{segment: s}.without(s.ids.Doubles()))
	}
	return out
}

// make writes a segment and opens it.
func (x *Index) make(number uint64, from rows) (*segment, error) {
	path := format().Path(x.dir, number)
	os.Remove(path) // what an error left that could not be removed then
	err := write(path, from)
	var s *segment
	if err == nil {
		s, err = openSegment(path, number)
	}
	if err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("near: %w", err)
	}
	return s, nil
}

// publish makes v current and durable, or leaves old; made is new in v.
func (x *Index) publish(old, v *view, made *segment) error {
	m := segfile.Manifest{Mark: v.mark, Next: v.next}
	for _, p := range v.parts {
		m.Segments = append(m.Segments, p.Entry(p.number, p.docs, p.gone))
	}
	done, err := m.Save(x.dir, format())
	if err != nil {
		if done {
			x.bad = err
		} else if made != nil {
			os.Remove(made.Path)
		}
		return fmt.Errorf("near: %w", err)
	}
	x.cur.Store(v)
	have := func(s *segment) bool {
		return slices.ContainsFunc(v.parts, func(p part) bool { return p.segment == s })
	}
	for _, p := range old.parts {
		if !have(p.segment) {
			os.Remove(p.Path) // look-ups have it mapped; what stays is swept by Open
		}
	}
	if made != nil && !have(made) {
		os.Remove(made.Path)
	}
	return nil
}

// smallSegment is the size up to which segments are of the smallest kind.
const smallSegment = 1 << 18

// Merge makes one segment of some, if there are any that should be one, and
// says whether there were. What is applied meanwhile waits; look-ups do not.
func (x *Index) Merge(ctx context.Context) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, err := x.view()
	if err != nil || x.bad != nil || ctx.Err() != nil {
		return false, errors.Join(err, ctx.Err())
	}
	defer runtime.KeepAlive(old)
	due := segfile.Due(len(old.parts), smallSegment, func(i int) (size, live, gone int) {
		p := &old.parts[i]
		return p.Size(), p.live(), p.gone.Count()
	})
	if due == nil {
		return false, nil
	}
	var set []part
	v := &view{mark: old.mark, next: old.next + 1}
	for i, p := range old.parts {
		if slices.Contains(due, i) {
			set = append(set, p)
		}
	}
	s, err := x.make(old.next, merged(set))
	if err != nil {
		return false, err
	}
	for i, p := range old.parts {
		switch {
		case !slices.Contains(due, i):
			v.parts = append(v.parts, p)
		case i == due[len(due)-1]:
			v.parts = append(v.parts, part{segment: s})
		}
	}
	return true, x.publish(old, v, s)
}

// Check reads all files and names what is damaged, as a segfile.ErrCorrupt.
func (x *Index) Check(ctx context.Context) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	err = format().Check(x.dir, len(v.parts) == 0)
	for _, p := range v.parts {
		for s := 0; s < len(format().Sections) && err == nil; s++ {
			if err = ctx.Err(); err == nil {
				err = p.VerifyAgain(s)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("near: %w", err)
	}
	return err
}
