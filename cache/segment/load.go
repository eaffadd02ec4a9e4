package segment

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// load finds what the store held. A segment without a table was being written when
// the process ended: it is read whole, and what is torn in it is passed over.
func (s *Store) load() error {
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var gone []tabled
	for _, e := range names {
		number, queue, ok := segmentOf(e.Name())
		if !ok {
			if strings.HasSuffix(e.Name(), ".new") {
				if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
					return err
				}
			}
			continue
		}
		table, err := s.loadSegment(number, queue)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		for _, t := range table {
			if t.kind == kindGone {
				gone = append(gone, t)
			}
		}
	}
	for q := range s.queue {
		slices.SortFunc(s.queue[q], func(a, b *segment) int { return int(a.id) - int(b.id) })
	}
	for _, t := range gone {
		for _, e := range s.index.find(nil, t.key) {
			if e.seq <= t.seq {
				s.index.change(e.key, e.seq, func(*entry) bool { return false })
			}
		}
	}
	return s.loadBodies()
}

func segmentOf(name string) (id uint32, queue int, ok bool) {
	number, kind, _ := strings.Cut(name, ".")
	queue = slices.Index([]string{"small", "main"}, kind)
	n, err := strconv.ParseUint(number, 16, 32)
	return uint32(n), queue, err == nil && queue >= 0 && n > 0
}

// loadSegment takes a segment's records into the index.
func (s *Store) loadSegment(id uint32, queue int) ([]tabled, error) {
	g := &segment{id: id, queue: queue, path: filepath.Join(s.dir, segmentName(id, queue)), sealed: true}
	f, err := os.OpenFile(g.path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	g.f = f
	g.refs.Store(1)
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	g.size = info.Size()
	checked := false
	b, err := os.ReadFile(g.path + ".table")
	var table []tabled
	if err == nil {
		table, err = parseTable(b, g.size)
	}
	if err != nil {
		if !errors.Is(err, iofs.ErrNotExist) {
			s.opt.Log.Warn("cache: the table of a segment is damaged; the segment is read whole", "segment", g.path, "err", err)
		}
		if table, err = scan(f, g.size, s.salt); err != nil {
			f.Close()
			return nil, err
		}
		checked = true
		g.table = table
		if err := s.seal(g); err != nil {
			f.Close()
			return nil, err
		}
	}
	for _, t := range table {
		s.loaded(g, &t, checked)
	}
	s.last = max(s.last, id)
	s.queue[queue] = append(s.queue[queue], g)
	s.used[queue] += g.size + g.files
	return table, nil
}

// loaded takes one record into the index. One that is in two segments was being
// moved when the process ended.
func (s *Store) loaded(g *segment, t *tabled, checked bool) {
	s.seq.Store(max(s.seq.Load(), t.seq))
	if t.kind == kindGone {
		return
	}
	e := entry{key: t.key, seq: t.seq, seg: g.id, at: uint32(t.at / align), came: uint32(t.came), checked: checked && t.kind == kindInline, file: t.kind == kindFile}
	moved := s.index.change(t.key, t.seq, func(old *entry) bool {
		if old.seg < e.seg {
			*old = e
		}
		return true
	})
	if !moved {
		s.index.add(e)
	}
	if t.kind == kindFile {
		g.files += t.body
	}
}

// scan reads a segment from its beginning to its end and returns the records that
// are whole. Behind one that is not, it goes on where the next begins.
func scan(f io.ReaderAt, size int64, salt uint32) (table []tabled, err error) {
	var fixed [headSize]byte
	for at := int64(0); at+headSize <= size; {
		if _, err := f.ReadAt(fixed[:], at); err != nil {
			return nil, err
		}
		r, err := parseFixed(fixed[:])
		if err == nil {
			err = r.whole(f, at, size, salt)
		}
		switch {
		case err == nil:
			table = append(table, tabled{r, at})
			at += r.size()
		case errors.Is(err, errTorn):
			at += align
		default:
			return nil, err
		}
	}
	return table, nil
}

// whole checks all of a record that is in the segment.
func (r *record) whole(f io.ReaderAt, at, size int64, salt uint32) error {
	n := r.bodyAt()
	if at+n > size || r.kind == kindInline && (r.body > size || at+n+r.body > size) {
		return errTorn
	}
	head := make([]byte, n)
	if _, err := f.ReadAt(head, at); err != nil {
		return err
	}
	if err := r.checkHead(head, salt); err != nil || r.kind != kindInline {
		return err
	}
	return checkBody(f, at+n, r.body, head[headSize+r.meta:])
}

// checkBody checks the body of n bytes at an offset against a table of sums.
func checkBody(f io.ReaderAt, at, n int64, sums []byte) error {
	block := make([]byte, min(n, blockSize))
	for i := 0; n > 0; i++ {
		block = block[:min(n, blockSize)]
		if _, err := f.ReadAt(block, at); err == io.EOF {
			return errTorn // the file is shorter than it was
		} else if err != nil {
			return err
		}
		if err := checkBlock(sums, i, block); err != nil {
			return err
		}
		at += int64(len(block))
		n -= int64(len(block))
	}
	return nil
}

// loadBodies removes files of bodies that no record has.
func (s *Store) loadBodies() error {
	files, err := os.ReadDir(filepath.Join(s.dir, "body"))
	if err != nil {
		return err
	}
	held := make(map[uint64]bool)
	if len(files) > 0 {
		for i := range s.index.shard {
			for _, e := range s.index.shard[i].slot {
				held[e.seq] = true
			}
		}
	}
	for _, e := range files {
		seq, err := strconv.ParseUint(e.Name(), 16, 64)
		if err == nil && held[seq] && seq > 0 {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, "body", e.Name())); err != nil {
			return err
		}
	}
	return nil
}
