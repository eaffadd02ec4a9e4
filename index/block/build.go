package block

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"harvest/index"
)

// A builder makes segments of documents. It hands batches of them to workers,
// each with an inverter of its own. When those have used up the memory there
// is, it writes what they hold as a segment with exact lists (a run); the runs
// of one Apply are merged at its end.
type builder struct {
	set     index.Settings
	grain   Grain
	coarse  coarseness
	path    func() string // for a new file
	workers []*worker
	batches chan *batch
	free    chan *batch
	held    atomic.Int64 // bytes in inverters
	busy    sync.WaitGroup
	done    sync.WaitGroup

	census
	runs []*segment
}

// A batch is some documents, copied: an Apply's Doc is good only until the next.
type batch struct {
	first  uint32 // number of the first in the run
	text   strings.Builder
	fields []batchField
	docs   []int // by document: the end of its fields
}

type batchField struct {
	name string // in lower case
	end  int    // of its text
}

const (
	batchText = 256 << 10
	batchDocs = 512
)

// newBuilder starts the workers; finish or drop ends them.
func newBuilder(set index.Settings, grain Grain, coarse coarseness, path func() string) *builder {
	n := workers(set)
	b := &builder{set: set, grain: grain, coarse: coarse, path: path, batches: make(chan *batch, n), free: make(chan *batch, 2*n+1)}
	for range cap(b.free) {
		b.free <- new(batch)
	}
	for range n {
		w := &worker{b: b, inverter: newInverter(), cutter: cutter{chars: grain == Tiny}}
		b.workers = append(b.workers, w)
		b.done.Add(1)
		go w.run()
	}
	return b
}

// add takes all of puts in.
func (b *builder) add(ctx context.Context, puts iter.Seq2[*index.Doc, error]) error {
	names := make(map[string]string)
	cur := <-b.free
	cur.reset(0)
	defer func() { b.free <- cur }()
	for d, err := range puts {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if len(cur.docs) == batchDocs || cur.text.Len() >= batchText {
			if cur, err = b.send(ctx, cur); err != nil {
				return err
			}
		}
		cur.add(d, names)
		b.ids = append(b.ids, d.ID[:]...)
		b.sizes = append(b.sizes, sizeClass(cur.size()))
	}
	var err error
	cur, err = b.send(ctx, cur)
	b.busy.Wait()
	return err
}

// send hands a batch to the workers and gives an empty one.
func (b *builder) send(ctx context.Context, cur *batch) (*batch, error) {
	b.busy.Add(1)
	b.batches <- cur
	if b.held.Load() >= memory(b.set) {
		b.busy.Wait()
		if err := b.flush(ctx); err != nil {
			cur = <-b.free
			return cur, err
		}
	}
	cur = <-b.free
	cur.reset(uint32(len(b.sizes)))
	return cur, nil
}

func (t *batch) reset(first uint32) {
	t.first = first
	t.text.Reset()
	t.text.Grow(batchText + batchText/4)
	t.fields, t.docs = t.fields[:0], t.docs[:0]
}

func (t *batch) add(d *index.Doc, names map[string]string) {
	for i := range d.Fields {
		f := &d.Fields[i]
		name, ok := names[f.Name]
		if !ok {
			name = index.Attr(f.Name)
			names[f.Name] = name
		}
		t.text.WriteString(f.Text)
		t.fields = append(t.fields, batchField{name, t.text.Len()})
	}
	t.docs = append(t.docs, len(t.fields))
}

// size is the length of the last document's text.
func (t *batch) size() int64 {
	n := len(t.docs)
	first := 0
	if n > 1 {
		first = t.docs[n-2]
	}
	if first == len(t.fields) {
		return 0
	}
	from := 0
	if first > 0 {
		from = t.fields[first-1].end
	}
	return int64(t.text.Len() - from)
}

// A worker inverts batches.
type worker struct {
	b *builder
	*inverter
	attrs map[string]*workerAttr
	key   []byte
	buf   []byte
	words uint64
	next  uint32 // unit
	held  int64
	cutter
	recent
}

// A workerAttr is what is the same for all values of an attribute.
type workerAttr struct {
	presence []byte // the term for documents that have it
	value    []byte // what the terms of its values begin with; nil if it has no keys
	word     []byte // what the terms of words of its short values begin with
	long     []byte // the term for documents that have a longer value
}

func (w *worker) run() {
	defer w.b.done.Done()
	for t := range w.b.batches {
		field, from := 0, 0
		for i, end := range t.docs {
			w.docs = append(w.docs, t.first+uint32(i))
			w.starts = append(w.starts, w.next)
			from = w.document(t, field, end, from)
			field = end
		}
		held := w.memory()
		w.b.held.Add(held - w.held)
		w.held = held
		w.b.free <- t
		w.b.busy.Done()
	}
}

// document adds the fields of one, the first text at from; it gives where the
// last ends.
func (w *worker) document(t *batch, field, end, from int) int {
	pos := 0
	fine := w.b.grain == Medium
	unit := w.next
	for _, f := range t.fields[field:end] {
		text := t.text.String()[from:f.end]
		from = f.end
		a := w.attr(f.name)
		w.add(a.presence, w.next)
		if a.value != nil {
			w.buf = index.Keys(w.buf, text, func(key []byte) bool {
				w.key = append(append(w.key[:0], a.value...), key...)
				w.add(w.key, w.next)
				return true
			})
		}
		short := len(text) <= index.MaxKey
		if !short {
			w.add(a.long, w.next)
		}
		n := w.cutter.parts(text, func(term []byte, at int) {
			if fine {
				unit = w.next + min(uint32(pos+at)/stretchWords, maxStretches-1)
			}
			if w.b.set.NoNumbers && isNumber(term) {
				return
			}
			if !short && w.recent.seen(term, unit) {
				return
			}
			term = address(term, &w.buf)
			w.add(term, unit)
			if short {
				w.key = append(append(w.key[:0], a.word...), term...)
				w.add(w.key, w.next)
			}
		})
		pos += n
		w.words += uint64(n)
	}
	w.next++
	if fine {
		w.next += min(uint32(max(pos, 1)-1)/stretchWords, maxStretches-1)
	}
	return from
}

func (w *worker) attr(name string) *workerAttr {
	a := w.attrs[name]
	if a == nil {
		a = &workerAttr{
			presence: append([]byte{keySpace}, attributeKey(name)...),
			word:     append([]byte{keySpace}, prefixKey(wordKind, name)...),
			long:     append([]byte{keySpace}, prefixKey(longKind, name)...),
		}
		if w.b.set.Keys == nil || w.b.set.Keys(name) {
			a.value = append([]byte{keySpace}, prefixKey(valueKind, name)...)
		}
		if w.attrs == nil {
			w.attrs = make(map[string]*workerAttr)
		}
		w.attrs[name] = a
	}
	return a
}

// attributeKey is the key of the documents that have an attribute.
func attributeKey(name string) []byte { return append([]byte{attributeKind}, name...) }

// prefixKey is what keys of a kind begin with that belong to an attribute.
func prefixKey(kind byte, name string) []byte {
	b := binary.AppendUvarint([]byte{kind}, uint64(len(name)))
	return append(b, name...)
}

// flush writes what the workers, who are idle, hold as a run.
func (b *builder) flush(ctx context.Context) error {
	path, grain := b.path(), b.grain
	if grain == Tiny {
		grain = Small
	}
	if err := b.write(ctx, path, &layout{docs: uint32(len(b.sizes))}, grain); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	s, err := openSegment(path, 0, grain)
	if err != nil {
		return err
	}
	b.runs = append(b.runs, s)
	b.census = census{}
	return nil
}

// finish writes all that was added as one segment, if there is any.
func (b *builder) finish(ctx context.Context, path string) (bool, error) {
	if len(b.runs) == 0 {
		if len(b.sizes) == 0 {
			return false, nil
		}
		l := &layout{docs: uint32(len(b.sizes))}
		if b.grain == Tiny {
			l.divide(b.coarse, b.sizes, nil)
		}
		return true, b.write(ctx, path, l, b.grain)
	}
	if err := b.flush(ctx); err != nil {
		return false, err
	}
	parts := make([]part, len(b.runs))
	for i, s := range b.runs {
		parts[i] = part{segment: s}
	}
	return true, merge(ctx, nil, parts, path, b.grain, b.coarse)
}

// close ends the workers and removes the runs.
func (b *builder) close() {
	close(b.batches)
	b.done.Wait()
	for _, s := range b.runs {
		os.Remove(s.Path)
	}
}
