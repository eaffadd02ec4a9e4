package segment

import (
	"encoding/binary"
	"errors"
	iofs "io/fs"
	"os"
)

// room takes segments back until a record, and its file, fit the share of the disk.
func (s *Store) room(r *record) error {
	need := r.size()
	if r.kind == kindFile {
		need += r.body
	}
	s.mu.Lock()
	most := s.opt.Disk / 2
	s.mu.Unlock()
	if need > most {
		return errFull
	}
	for s.over(need) {
		if err := s.reclaim(need); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) over(need int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[small]+s.used[main]+need > s.opt.Disk
}

// reclaim takes the oldest segment of a queue back: of the small one if that has
// more than its share.
func (s *Store) reclaim(need int64) error {
	s.reclaiming.Lock()
	defer s.reclaiming.Unlock()
	if !s.over(need) {
		return nil // another has made room meanwhile
	}
	g := s.oldest()
	if g == nil {
		return errFull
	}
	g.writers.Wait()
	table, err := s.tableOf(g)
	if err != nil {
		return err
	}
	for _, t := range table {
		if err := s.leave(g, &t); err != nil {
			return err
		}
	}
	s.mu.Lock()
	q := &s.queue[g.queue]
	for i, x := range *q {
		if x == g {
			*q = append((*q)[:i:i], (*q)[i+1:]...)
		}
	}
	s.used[g.queue] -= g.size + g.files
	s.mu.Unlock()
	// The table goes first: a segment without one is read whole, a table without
	// a segment is nothing.
	g.mu.Lock()
	g.gone = true
	err = errors.Join(removeFile(g.path+".table"), removeFile(g.path))
	g.mu.Unlock()
	g.release()
	return err
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

// oldest chooses the segment to take back, which nothing is written to from then on.
func (s *Store) oldest() *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := main
	if len(s.queue[main]) == 0 || len(s.queue[small]) > 0 && 10*s.used[small] > smallShare*(s.used[small]+s.used[main]) {
		q = small
	}
	if len(s.queue[q]) == 0 {
		return nil
	}
	g := s.queue[q][0]
	g.sealed = true
	return g
}

// tableOf is the table of a segment: of memory, or of the file beside it.
func (s *Store) tableOf(g *segment) ([]tabled, error) {
	g.mu.Lock()
	table := g.table
	g.mu.Unlock()
	if table != nil {
		return table, nil
	}
	b, err := os.ReadFile(g.path + ".table")
	if err == nil {
		if table, err = parseTable(b, g.size); err == nil {
			return table, nil
		}
	}
	return scan(g.f, g.size, s.salt)
}

// leave moves a record of a segment that is taken back to the main queue, if it was
// asked for, and lets it go if not.
func (s *Store) leave(g *segment, t *tabled) error {
	if t.kind == kindGone {
		if s.hides(g, t) {
			return s.move(g, t, small)
		}
		return nil
	}
	keep, there := false, false
	s.index.change(t.key, t.seq, func(e *entry) bool {
		if e.seg != g.id {
			return true // it was moved from here before
		}
		there = true
		if e.uses > 0 {
			e.uses--
			keep = true
		}
		return true
	})
	switch {
	case !there:
		return nil
	case keep:
		err := s.move(g, t, main)
		if !errors.Is(err, errTorn) {
			return err
		}
	case g.queue == small:
		s.mu.Lock()
		s.ghost.add(t.key, s.objects())
		s.mu.Unlock()
	}
	s.drop(entry{key: t.key, seq: t.seq})
	return nil
}

// hides reports whether a segment other than g may have what a kindGone says is gone.
func (s *Store) hides(g *segment, t *tabled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queue {
		for _, x := range q {
			if x != g && int64(x.id) <= t.body {
				return true
			}
		}
	}
	return false
}

// move writes a record of g anew at the end of a queue.
func (s *Store) move(g *segment, t *tabled, queue int) error {
	b := make([]byte, t.bodyAt()+t.inline())
	if _, err := g.f.ReadAt(b, t.at); err != nil {
		return errTorn
	}
	head := b[:t.bodyAt()]
	if err := t.checkHead(head, s.salt); err != nil {
		return err
	}
	to, at, err := s.write(queue, &t.record, head, b[len(head):])
	if err != nil {
		return err
	}
	defer to.writers.Done()
	if t.kind == kindFile {
		s.mu.Lock() // its file has gone over with it
		g.files -= t.body
		s.used[g.queue] -= t.body
		s.mu.Unlock()
	}
	if t.kind == kindGone {
		return nil
	}
	there := s.index.change(t.key, t.seq, func(e *entry) bool {
		e.seg, e.at = to.id, uint32(at/align)
		return true
	})
	if !there { // removed meanwhile, by what may not know of the new place
		return s.gone(record{kind: kindGone, key: t.key, seq: t.seq, came: t.came})
	}
	return nil
}

// inline is how much of the body is in the record.
func (r *record) inline() int64 {
	if r.kind == kindInline {
		return r.body
	}
	return 0
}

// objects is how many objects there are, roughly: those of one shard, as often.
func (s *Store) objects() int {
	x := &s.index.shard[0]
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n * shards
}

// ghosts remember keys that went unused, as many as there are objects: 4 bytes of
// each, in sets of ghostWays of which the oldest gives way.
type ghosts struct{ slot []uint32 }

const ghostWays = 4

func (g *ghosts) set(k Key) (set []uint32, print uint32) {
	sets := len(g.slot) / ghostWays
	i := int(binary.LittleEndian.Uint64(k[1:9])%uint64(sets)) * ghostWays
	return g.slot[i : i+ghostWays], binary.LittleEndian.Uint32(k[12:]) | 1
}

func (g *ghosts) add(k Key, objects int) {
	if len(g.slot) < objects || g.slot == nil {
		n := 1 << 10
		for n < objects {
			n *= 2
		}
		g.slot = make([]uint32, n) // those before are forgotten, seldom
	}
	set, print := g.set(k)
	copy(set[1:], set[:ghostWays-1])
	set[0] = print
}

// take reports whether a key went unused of late, and forgets it.
func (g *ghosts) take(k Key) bool {
	if len(g.slot) == 0 {
		return false
	}
	set, print := g.set(k)
	for i := range set {
		if set[i] == print {
			set[i] = 0
			return true
		}
	}
	return false
}
