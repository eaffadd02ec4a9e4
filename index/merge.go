package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"runtime"
	"slices"
	"sync"

	"harvest/index/dict"
	"harvest/index/posting"
	"harvest/index/segfile"
)

// A merger writes the documents of parts that are left as one segment, part
// by part in their order.
type merger struct {
	ctx   context.Context
	turn  *segfile.Turn
	w     *segmentWriter
	in    []input
	n     uint32 // documents
	norms []byte
	enc   posting.Encoder
	r     posting.Reader
	key   []byte

	info termInfo // what is made of the term at hand
	from []source
	ones []byte
	gaps []uint32
}

// An input is a part that is merged.
type input struct {
	part
	base    uint32   // of its documents' new numbers
	numbers []uint32 // if some are gone: new by old, posting.End for these
	fields  []int    // new by old

	cursor *dict.Cursor // of the dictionary that is merged
	more   bool
	info   termInfo
	list   int // the next in it

	stamp  []uint32 // by document: the last term that was counted in it
	stamps uint32

	field int      // the attribute whose keys are merged, -1: there is none
	first uint64   // its first key
	ords  []uint32 // new ordinals of its keys by old, both from the first
}

// merge writes parts as one segment. What it takes of memory beside three
// buffers is 5 bytes a document, 8 more of those of parts with documents
// gone, and 4 bytes for each value of the one attribute that has the most.
func merge(ctx context.Context, turn *segfile.Turn, parts []part, path string) error {
	w, err := createSegment(path)
	if err != nil {
		return err
	}
	m := &merger{ctx: ctx, turn: turn, w: w}
	w.Fail(m.run(parts))
	return w.close()
}

func (m *merger) run(parts []part) error {
	for _, p := range parts {
		if err := p.ready(); err != nil {
			return err
		}
		m.number(p)
	}
	if err := m.fields(); err != nil {
		return err
	}
	if err := m.dictionary(func(in *input) (*dict.Dict, error) { return in.terms(), nil }, m.term); err != nil {
		return err
	}
	if err := m.keys(); err != nil {
		return err
	}
	m.w.dictionaries()
	m.w.documents(m.documents())
	return m.w.Err()
}

// number gives the documents of a part their new numbers.
func (m *merger) number(p part) {
	in := input{part: p, base: m.n}
	if p.gone.Count() == 0 {
		m.norms = append(m.norms, p.norms()...)
		m.n += p.docs
	} else {
		in.numbers = make([]uint32, p.docs)
		for i := range in.numbers {
			in.numbers[i] = posting.End
		}
		p.each(func(d uint32) {
			in.numbers[d] = m.n
			m.norms = append(m.norms, p.norm(d))
			m.n++
		})
		in.stamp = make([]uint32, p.docs)
	}
	m.in = append(m.in, in)
}

// fields are those that documents have which are left.
func (m *merger) fields() error {
	var names []string
	for i := range m.in {
		in := &m.in[i]
		for f := range in.part.fields {
			has, err := m.has(in, in.part.fields[f].name)
			if err != nil {
				return err
			}
			if has {
				names = append(names, in.part.fields[f].name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		m.w.table.fields = append(m.w.table.fields, field{name: name})
	}
	for i := range m.in {
		in := &m.in[i]
		in.fields = make([]int, len(in.part.fields))
		for f := range in.fields {
			in.fields[f], _ = slices.BinarySearch(names, in.part.fields[f].name)
		}
	}
	return nil
}

// has tells whether a document that is left has an attribute.
func (m *merger) has(in *input, name string) (bool, error) {
	if in.numbers == nil {
		return true, nil
	}
	keys, err := in.keys()
	if err != nil {
		return false, err
	}
	m.key = appendKey(m.key[:0], name, keyAny)
	value, _, ok := keys.Get(m.key)
	if !ok || !in.decode(value, &in.info) {
		return false, in.Corrupt("%v: attribute %s", secKeys, name)
	}
	if err := in.open(&in.info.lists[0], &m.r, false); err != nil {
		return false, err
	}
	for d := m.r.Next(); d != posting.End; d = m.r.Next() {
		if !in.deleted(d) {
			return true, nil
		}
	}
	return false, m.r.Err()
}

// dictionary calls merged for each term of a dictionary, in order, with the
// inputs that have it; their info is that of the term.
func (m *merger) dictionary(of func(*input) (*dict.Dict, error), merged func(term []byte, have []*input) error) error {
	for i := range m.in {
		in := &m.in[i]
		d, err := of(in)
		if err != nil {
			return err
		}
		in.cursor = d.Cursor()
		if err := in.next(); err != nil {
			return err
		}
	}
	have := make([]*input, 0, len(m.in))
	for n := 0; ; n++ {
		if n%1024 == 0 {
			if err := m.turn.Next(m.ctx); err != nil {
				return err
			}
		}
		if have = m.least(have[:0]); len(have) == 0 {
			return nil
		}
		if err := merged(have[0].cursor.Term(), have); err != nil {
			return err
		}
		for _, in := range have {
			if err := in.next(); err != nil {
				return err
			}
		}
	}
}

func (in *input) next() error {
	in.more = in.cursor.Next()
	if err := in.cursor.Err(); err != nil {
		return in.Corrupt("%v", err)
	}
	if in.more && !in.decode(in.cursor.Value(), &in.info) {
		return in.Corrupt("term %q", in.cursor.Term())
	}
	return nil
}

// least are the inputs that stand at the least term.
func (m *merger) least(have []*input) []*input {
	for i := range m.in {
		in := &m.in[i]
		if !in.more {
			continue
		}
		c := -1
		if len(have) > 0 {
			c = bytes.Compare(in.cursor.Term(), have[0].cursor.Term())
		}
		if c < 0 {
			have = have[:0]
		}
		if c <= 0 {
			have = append(have, in)
		}
	}
	return have
}

// term merges the lists of a term.
func (m *merger) term(term []byte, have []*input) error {
	ok, err := m.lists(have)
	if ok {
		m.w.term(term, &m.info)
	}
	if err == nil {
		err = m.w.Err()
	}
	return err
}

// lists merges those of the term at hand, and tells whether documents have it
// that are left.
func (m *merger) lists(have []*input) (bool, error) {
	m.info.docs, m.info.lists, m.ones = 0, m.info.lists[:0], m.ones[:0]
	for _, in := range have {
		n, err := m.left(in)
		if err != nil {
			return false, err
		}
		m.info.docs += n
		in.list = 0
	}
	if m.info.docs == 0 {
		return false, nil
	}
	for {
		f := m.gather(have)
		if len(m.from) == 0 {
			return true, nil
		}
		l, err := m.list()
		if err != nil {
			return false, err
		}
		if l.field = f; l.docs > 0 {
			m.info.lists = append(m.info.lists, l)
		}
	}
}

// left is the number of an input's documents that have the term and are left.
func (m *merger) left(in *input) (n uint32, err error) {
	if in.numbers == nil {
		return in.info.docs, nil
	}
	if in.stamps++; in.stamps == 0 {
		clear(in.stamp)
		in.stamps = 1
	}
	for i := range in.info.lists {
		if err := in.open(&in.info.lists[i], &m.r, false); err != nil {
			return 0, err
		}
		for d := m.r.Next(); d != posting.End; d = m.r.Next() {
			if !in.deleted(d) && in.stamp[d] != in.stamps {
				in.stamp[d] = in.stamps
				n++
			}
		}
		if err := m.r.Err(); err != nil {
			return 0, in.Corrupt("%v: %v", secPostings, err)
		}
	}
	return n, nil
}

// A source is an input's list of the term at hand in the field at hand.
type source struct {
	*input
	list *list
}

// gather finds the first field that has lists left, and them.
func (m *merger) gather(have []*input) (field int) {
	m.from = m.from[:0]
	for _, in := range have {
		if in.list == len(in.info.lists) {
			continue
		}
		l := &in.info.lists[in.list]
		f := 0
		if l.kind != posting.Docs { // not of a key
			f = in.fields[l.field]
		}
		if len(m.from) == 0 || f < field {
			m.from, field = m.from[:0], f
		}
		if f == field {
			m.from = append(m.from, source{in, l})
		}
	}
	for _, s := range m.from {
		s.input.list++
	}
	return field
}

// list merges the lists in m.from.
func (m *merger) list() (l list, err error) {
	l.kind = m.from[0].list.kind
	if len(m.from) == 1 && m.from[0].list.one != nil {
		return l, m.one(&l)
	}
	l.at = m.w.Offset()
	m.enc.Reset(l.kind, m.norms)
	for _, s := range m.from {
		if s.list.kind != l.kind {
			return l, s.Corrupt("%v: kind %d beside %d", secTerms, s.list.kind, l.kind)
		}
		if err := s.open(s.list, &m.r, true); err != nil {
			return l, err
		}
		if err := m.enc.Merge(&m.r, s.numbers, s.base); err != nil {
			return l, s.Corrupt("%v: %v", secPostings, err)
		}
		m.w.Write(m.enc.TakePositions())
	}
	if l.docs = uint32(m.enc.Count()); l.docs == 0 {
		return l, nil
	}
	documents := m.enc.Finish()
	m.w.Write(m.enc.TakePositions())
	l.positions = m.w.Offset() - l.at
	m.w.Write(documents)
	l.documents = uint64(len(documents))
	return l, nil
}

// one moves the list of one document.
func (m *merger) one(l *list) error {
	s := &m.from[0]
	if err := s.open(s.list, &m.r, true); err != nil {
		return err
	}
	d := m.r.Next()
	if err := m.r.Err(); err != nil || d == posting.End {
		return s.Corrupt("%v: %v", secTerms, err)
	}
	d, ok := s.renumber(d)
	if !ok {
		return nil
	}
	gaps := m.gaps[:0]
	if l.kind == posting.Positions {
		gaps = m.r.Positions(gaps)
		for i := len(gaps) - 1; i > 0; i-- {
			gaps[i] -= gaps[i-1]
		}
	}
	n := len(m.ones)
	m.ones = posting.AppendOne(m.ones, l.kind, d, m.r.Freq(), gaps)
	l.docs, l.one, m.gaps = 1, m.ones[n:len(m.ones):len(m.ones)], gaps
	return nil
}

func (in *input) renumber(doc uint32) (uint32, bool) {
	if in.numbers == nil {
		return doc + in.base, true
	}
	doc = in.numbers[doc]
	return doc, doc != posting.End
}

// keys merges the values, and columns attribute by attribute.
func (m *merger) keys() error {
	at := -1
	err := m.dictionary((*input).keys, func(key []byte, have []*input) error {
		if name, _, _ := bytes.Cut(key, []byte{0}); at < 0 || m.w.table.fields[at].name != string(name) {
			if next := m.attribute(string(name)); next < 0 { // nobody left has it
				return nil
			} else if err := m.column(at); err != nil {
				return err
			} else {
				at = next
			}
			m.beginKeys(at)
		}
		ok, err := m.lists(have)
		if ok {
			m.putKey(&m.w.table.fields[at], key, have)
		}
		if err == nil {
			err = m.w.Err()
		}
		return err
	})
	if err != nil {
		return err
	}
	return m.column(at)
}

func (m *merger) attribute(name string) int {
	i, ok := slices.BinarySearchFunc(m.w.table.fields, name, func(f field, name string) int {
		return bytes.Compare([]byte(f.name), []byte(name))
	})
	if !ok {
		return -1
	}
	return i
}

// beginKeys makes room for the new ordinals of an attribute's keys.
func (m *merger) beginKeys(at int) {
	for i := range m.in {
		in := &m.in[i]
		in.ords, in.field = in.ords[:0], -1
		f, ok := in.part.field(m.w.table.fields[at].name)
		if !ok {
			continue
		}
		in.field = f
		end := uint64(in.vals.Load().Len())
		if f+1 < len(in.part.fields) {
			end = in.part.fields[f+1].firstKey
		}
		in.first = in.part.fields[f].firstKey
		in.ords = slices.Grow(in.ords, int(end-in.first))[:end-in.first]
		clear(in.ords)
	}
}

// putKey writes a key whose list is merged.
func (m *merger) putKey(f *field, key []byte, have []*input) {
	ord := uint64(m.w.key(key, &m.info))
	switch key[len(f.name)+1] {
	case keyAny:
		f.docs, f.firstKey = m.info.docs, ord
	case KeyText:
		f.values++
	}
	for _, in := range have {
		if i := uint64(in.cursor.Ord()) - in.first; i < uint64(len(in.ords)) {
			in.ords[i] = uint32(ord - f.firstKey)
		}
	}
}

// column merges that of an attribute whose keys are all written.
func (m *merger) column(at int) error {
	if at < 0 {
		return nil
	}
	f := &m.w.table.fields[at]
	columns := make([]column, len(m.in))
	for i := range m.in {
		if in := &m.in[i]; in.field >= 0 {
			var err error
			if columns[i], err = in.part.column(in.field); err != nil {
				return err
			}
		}
	}
	each := func(yield func(doc uint32, value uint64)) {
		for i := range m.in {
			m.in[i].eachEntry(&columns[i], yield)
		}
	}
	n, highest := 0, uint64(0)
	each(func(_ uint32, v uint64) {
		n++
		highest = max(highest, v)
	})
	m.w.column(f, int(m.n), n, highest, each)
	return nil
}

// eachEntry gives the entries of a column with their new numbers.
func (in *input) eachEntry(c *column, yield func(doc uint32, value uint64)) {
	for i := range c.n {
		doc := c.doc(i)
		ord, ok := c.at(i)
		if !ok || ord-c.first >= len(in.ords) {
			continue
		}
		if d, ok := in.renumber(doc); ok {
			yield(d, uint64(in.ords[ord-c.first]))
		}
	}
}

// documents is the table of those that are left.
func (m *merger) documents() *docTable {
	left := func(yield func(in *input, doc uint32)) {
		for i := range m.in {
			in := &m.in[i]
			in.each(func(doc uint32) { yield(in, doc) })
		}
	}
	return &docTable{
		n:       int(m.n),
		ids:     func(yield func(ID)) { left(func(in *input, d uint32) { yield(in.id(d)) }) },
		lengths: func(yield func(uint32)) { left(func(in *input, d uint32) { yield(in.length(d)) }) },
		order:   m.order,
		norms:   m.norms,
	}
}

// order gives the new numbers of the documents in order of ID.
func (m *merger) order(yield func(uint32)) {
	at := make([]int, len(m.in))
	ids := make([]ID, len(m.in))
	step := func(i int) { // to the next that is left
		in := &m.in[i]
		for at[i] < int(in.docs) && in.deleted(in.ordered(at[i])) {
			at[i]++
		}
		if at[i] < int(in.docs) {
			ids[i] = in.id(in.ordered(at[i]))
		}
	}
	for i := range m.in {
		step(i)
	}
	for {
		least := -1
		for i := range m.in {
			if at[i] < int(m.in[i].docs) && (least < 0 || bytes.Compare(ids[i][:], ids[least][:]) < 0) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		d, _ := m.in[least].renumber(m.in[least].ordered(at[least]))
		yield(d)
		at[least]++
		step(least)
	}
}

// smallSegment is the size up to which segments are of the smallest kind.
const smallSegment = 1 << 20

// poke says that there may be something to merge.
func (e *engine) poke() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// mergeAll merges, one set of segments at a time, until ctx is done.
func (e *engine) mergeAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			e.settled(iofs.ErrClosed, nil)
			return
		case w := <-e.wishes:
			w.done <- e.mergeWhole(ctx, w)
			continue
		case <-e.kick:
		}
		tried, err := e.mergeDue(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.Error("merge", "err", err) // it is tried again after the next Apply
		}
		e.settled(err, make(chan struct{}))
		if tried && e.set.Merged != nil && ctx.Err() == nil {
			e.set.Merged(err)
		}
	}
}

// A wish is that all be merged into one segment.
type wish struct {
	ended <-chan struct{} // closed when nobody waits for it any more
	done  chan error
}

var _ Merger = (*engine)(nil)

// MergeAll has the goroutine that merges do it.
func (e *engine) MergeAll(ctx context.Context) error {
	w := wish{ctx.Done(), make(chan error, 1)}
	select {
	case e.wishes <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ended:
		return fmt.Errorf("index: %w", iofs.ErrClosed)
	}
	if err := <-w.done; err != nil {
		return fmt.Errorf("index: merge: %w", errors.Join(err, ctx.Err()))
	}
	return nil
}

// mergeWhole fulfils a wish, unless ctx or it ends.
func (e *engine) mergeWhole(ctx context.Context, w wish) error {
	v := e.cur.Load()
	if len(v.parts) == 0 || len(v.parts) == 1 && v.parts[0].gone.Count() == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	over := make(chan struct{})
	defer close(over)
	wg.Go(func() {
		select {
		case <-w.ended:
			cancel()
		case <-over:
		}
	})
	return e.mergeOnce(ctx, slices.Clone(v.parts))
}

// mergeDue merges what is to be merged, and tells whether there was anything.
func (e *engine) mergeDue(ctx context.Context) (tried bool, err error) {
	for ctx.Err() == nil {
		set := pick(e.cur.Load().parts)
		if set == nil {
			return tried, nil
		}
		tried = true
		if err := e.mergeOnce(ctx, set); err != nil {
			return tried, err
		}
	}
	return tried, ctx.Err()
}

// settled tells those who wait; next is for those who wait again.
func (e *engine) settled(err error, next chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = err
	close(e.merged)
	if next != nil {
		e.merged = next
	}
}

// mergeOnce puts one segment in the place of a set.
func (e *engine) mergeOnce(ctx context.Context, set []part) error {
	path, number := e.create()
	if err := merge(ctx, e.pace.Merge(), set, path); err != nil {
		return err
	}
	s, err := openSegment(path, number)
	if err == nil {
		err = s.ready()
	}
	if err == nil {
		err = e.swap(set, part{segment: s})
	}
	if err != nil && !errors.Is(err, errUncertain) {
		os.Remove(path)
	}
	return err
}

// swap makes a view current with p, the merged segment, in place of set, less
// the documents that were deleted meanwhile.
func (e *engine) swap(set []part, p part) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.cur.Load()
	defer runtime.KeepAlive(old)
	var gone []uint32 // by their numbers in p
	for i := range set {
		k := slices.IndexFunc(old.parts, func(q part) bool { return q.number == set[i].number })
		var now *segfile.Tombstones
		if k >= 0 {
			now = old.parts[k].gone
		}
		gone = append(gone, set[i].names.Lost(set[i].gone, now, k < 0, p.names)...)
	}
	merged := p.segment
	p = p.without(gone) // and goes where the first of the set is
	parts := slices.Clone(old.parts)
	for i := range set {
		k := slices.IndexFunc(parts, func(q part) bool { return q.number == set[i].number })
		switch {
		case k < 0:
		case p.segment == nil:
			parts = slices.Delete(parts, k, k+1)
		default:
			parts[k], p = p, part{}
		}
	}
	return e.become(newView(old.mark, alive(parts)), merged)
}

// pick chooses segments to merge, none if all is well.
func pick(parts []part) (set []part) {
	for _, i := range segfile.Due(len(parts), smallSegment, func(i int) (size, live, gone int) {
		return parts[i].Size(), parts[i].live(), parts[i].gone.Count()
	}) {
		set = append(set, parts[i])
	}
	return set
}
