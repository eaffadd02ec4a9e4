package store

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A sorter puts pairs in the order of their keys, those of one key in the order
// in which they came. It holds so many bytes of them in memory; more go to a file
// without a name, as sorted runs.
type sorter struct {
	dir   string
	limit int
	chunk []byte // what the last pairs are in
	pairs []pair
	size  int
	file  *os.File
	runs  []int64 // where each ends in the file
}

type pair struct {
	key, value []byte
	n          int // how many came before
}

const (
	pairBytes = 56 // of a pair itself
	sortChunk = 64 << 10
	sortName  = "index.sort"
)

func (s *sorter) add(key, value []byte) error {
	n := len(key) + len(value)
	if s.size+n > s.limit && len(s.pairs) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if len(s.chunk)+n > cap(s.chunk) {
		s.chunk = make([]byte, 0, max(n, sortChunk))
	}
	at := len(s.chunk)
	s.chunk = append(append(s.chunk, key...), value...)
	p := s.chunk[at:]
	s.pairs = append(s.pairs, pair{p[:len(key)], p[len(key):], len(s.pairs)})
	s.size += n + pairBytes
	return nil
}

func (s *sorter) sort() {
	slices.SortFunc(s.pairs, func(a, b pair) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.n, b.n))
	})
}

// spill writes what is in memory as a run.
func (s *sorter) spill() (err error) {
	if s.file == nil {
		path := filepath.Join(s.dir, sortName)
		if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	s.sort()
	w := bufio.NewWriterSize(s.file, sortChunk)
	end := int64(0)
	if len(s.runs) > 0 {
		end = s.runs[len(s.runs)-1]
	}
	var head []byte
	for _, p := range s.pairs {
		head = binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(len(p.key))), uint64(len(p.value)))
		for _, b := range [][]byte{head, p.key, p.value} {
			w.Write(b) // an error stays until Flush
			end += int64(len(b))
		}
	}
	s.runs = append(s.runs, end)
	clear(s.pairs)
	s.pairs, s.chunk, s.size = s.pairs[:0], nil, 0
	return w.Flush()
}

// each calls f for every pair and empties the sorter. What f is given is f's
// until it returns.
func (s *sorter) each(f func(key, value []byte) error) error {
	s.sort()
	rest := s.pairs
	s.pairs, s.chunk = nil, nil
	if s.file == nil {
		for _, p := range rest {
			if err := f(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	}
	m := make(merge, 0, len(s.runs)+1)
	start := int64(0)
	for i, end := range s.runs {
		r := &run{n: i, r: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), sortChunk)}
		start = end
		if err := r.next(); err != nil {
			return err
		}
		m = append(m, r)
	}
	if last := (&run{n: len(m), pairs: rest}); last.next() == nil {
		m = append(m, last)
	}
	heap.Init(&m)
	for len(m) > 0 {
		r := m[0]
		if err := f(r.key, r.value); err != nil {
			return err
		}
		switch err := r.next(); err {
		case nil:
			heap.Fix(&m, 0)
		case io.EOF:
			heap.Pop(&m)
		default:
			return err
		}
	}
	return nil
}

func (s *sorter) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// A run is sorted pairs, of the file or in memory, and where the merge is in it.
type run struct {
	n          int
	pairs      []pair
	r          *bufio.Reader
	buf        []byte
	key, value []byte
}

// next goes to the next pair; io.EOF says that there is none.
func (r *run) next() error {
	if r.r == nil {
		if len(r.pairs) == 0 {
			return io.EOF
		}
		r.key, r.value, r.pairs = r.pairs[0].key, r.pairs[0].value, r.pairs[1:]
		return nil
	}
	key, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	value, err := binary.ReadUvarint(r.r)
	if err == nil {
		r.buf = slices.Grow(r.buf[:0], int(key+value))[:key+value]
		_, err = io.ReadFull(r.r, r.buf)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	r.key, r.value = r.buf[:min(int(key), len(r.buf))], r.buf[min(int(key), len(r.buf)):]
	return err
}

// merge is a heap of runs by their next pair.
type merge []*run

func (m merge) Len() int { return len(m) }
func (m merge) Less(i, j int) bool {
	return cmp.Or(bytes.Compare(m[i].key, m[j].key), cmp.Compare(m[i].n, m[j].n)) < 0
}
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)   { *m = append(*m, x.(*run)) }
func (m *merge) Pop() any {
	last := len(*m) - 1
	r := (*m)[last]
	*m = (*m)[:last]
	return r
}

// closeAll closes sorters.
func closeAll(sorters ...*sorter) (err error) {
	for _, s := range sorters {
		err = errors.Join(err, s.close())
	}
	return err
}
