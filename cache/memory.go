package cache

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"harvest/cache/segment"
)

// memory is the tier in front of the store: what is known of a URL's objects, and
// the bodies of those that are small, by S3-FIFO over bytes, in shards of their own
// locks. A URL that is here is here with all variants that the store has.
type memory struct {
	shard  [memShards]memShard
	budget atomic.Int64
	off    arena
}

// arena is where new variants have their bytes; nil if there are more that are not
// free yet than should be, so that the collector sees what is wanted of it.
func (m *memory) arena() *arena {
	if m.off.total() > m.budget.Load()+m.budget.Load()/4+4<<20 {
		return nil
	}
	return &m.off
}

const (
	memShards = 16
	// maxBody is the largest body that is kept in memory, in bytes.
	maxBody = 256 << 10
	// entryWeight is about what an entry takes besides its variants, in bytes.
	entryWeight = 160
)

type memShard struct {
	mu    sync.Mutex
	m     map[segment.Key]*entry
	small fifo
	main  fifo
	ghost ghostList
}

// An entry is what memory knows of one URL.
type entry struct {
	key    segment.Key
	vs     []*variant // newest first; replaced, never changed
	weight int64
	uses   uint8
	in     *fifo // nil: it is in no queue any more
}

// A fifo is a queue of entries; those taken out of its middle stay until they come
// to its front.
type fifo struct {
	q      []*entry
	dead   int
	weight int64
}

func (f *fifo) push(e *entry) {
	e.in = f
	f.q = append(f.q, e)
	f.weight += e.weight
}

// pop takes the oldest entry that is still of this queue.
func (f *fifo) pop() *entry {
	for len(f.q) > 0 {
		e := f.q[0]
		f.q[0] = nil
		f.q = f.q[1:]
		if e.in == f {
			e.in = nil
			f.weight -= e.weight
			return e
		}
		f.dead--
	}
	return nil
}

// remove takes an entry out.
func (f *fifo) remove(e *entry) {
	e.in = nil
	f.weight -= e.weight
	if f.dead++; f.dead > 32 && f.dead > len(f.q)/2 {
		kept := make([]*entry, 0, len(f.q)-f.dead)
		for _, x := range f.q {
			if x != nil && x.in == f {
				kept = append(kept, x)
			}
		}
		f.q, f.dead = kept, 0
	}
}

func newMemory(budget int64) *memory {
	m := new(memory)
	for i := range m.shard {
		m.shard[i].m = make(map[segment.Key]*entry)
	}
	m.budget.Store(budget)
	return m
}

func (m *memory) of(k segment.Key) *memShard { return &m.shard[k[1]%memShards] }

// resize changes how many bytes there may be.
func (m *memory) resize(budget int64) {
	m.budget.Store(budget)
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.Lock()
		s.shrink(budget / memShards)
		if len(s.m) == 0 { // maps and slices do not shrink by themselves
			s.m, s.small, s.main, s.ghost = make(map[segment.Key]*entry), fifo{}, fifo{}, ghostList{}
		}
		s.mu.Unlock()
	}
}

// holds reports whether a body of so many bytes may be here.
func (m *memory) holds(size int64) bool {
	return size <= min(maxBody, m.budget.Load()/memShards/8)
}

// get returns the variants of a URL, if memory knows them.
func (m *memory) get(k segment.Key) ([]*variant, bool) {
	s := m.of(k)
	s.mu.Lock()
	e := s.m[k]
	if e == nil {
		s.mu.Unlock()
		return nil, false
	}
	if e.uses < 3 {
		e.uses++
	}
	vs := e.vs
	s.mu.Unlock()
	return vs, true
}

// put makes vs all that is known of a URL; none is nothing.
func (m *memory) put(k segment.Key, vs []*variant) {
	s := m.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.m[k]
	if old != nil {
		old.in.remove(old)
		delete(s.m, k)
	}
	if len(vs) == 0 {
		return
	}
	e := &entry{key: k, vs: vs, weight: entryWeight}
	for _, v := range vs {
		e.weight += v.weight()
	}
	most := m.budget.Load() / memShards
	if e.weight > most {
		return
	}
	s.m[k] = e
	switch {
	case old != nil && old.uses > 0:
		e.uses = old.uses
		s.main.push(e)
	case s.ghost.take(k):
		s.main.push(e)
	default:
		s.small.push(e)
	}
	s.shrink(most)
}

// shrink lets the least wanted go until no more than most bytes are there.
func (s *memShard) shrink(most int64) {
	for s.small.weight+s.main.weight > most {
		if s.small.weight > most/10 || s.main.weight == 0 {
			e := s.small.pop()
			if e.uses > 1 { // asked for again since it came
				e.uses = 0
				s.main.push(e)
				continue
			}
			delete(s.m, e.key)
			s.ghost.add(e.key, len(s.m))
			continue
		}
		e := s.main.pop()
		if e.uses > 0 {
			e.uses--
			s.main.push(e)
			continue
		}
		delete(s.m, e.key)
	}
}

// stat is how many URLs are in memory, and their bytes.
func (m *memory) stat() (urls int, bytes int64) {
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.Lock()
		urls += len(s.m)
		bytes += s.small.weight + s.main.weight
		s.mu.Unlock()
	}
	return urls, bytes
}

// A ghostList remembers the newest of those that went without being asked for again.
type ghostList struct {
	is   map[uint64]struct{}
	ring []uint64
	next int
}

func printOf(k segment.Key) uint64 { return binary.LittleEndian.Uint64(k[8:]) }

// add remembers a key, and as many in all as there are entries.
func (g *ghostList) add(k segment.Key, entries int) {
	if want := max(entries, 64); len(g.ring) < want {
		g.ring = append(g.ring, make([]uint64, want-len(g.ring))...)
	}
	if g.is == nil {
		g.is = make(map[uint64]struct{})
	}
	delete(g.is, g.ring[g.next])
	g.ring[g.next] = printOf(k)
	g.is[printOf(k)] = struct{}{}
	g.next = (g.next + 1) % len(g.ring)
}

func (g *ghostList) take(k segment.Key) bool {
	if _, ok := g.is[printOf(k)]; !ok {
		return false
	}
	delete(g.is, printOf(k))
	return true
}

// peek is get for who is not asking for an answer.
func (m *memory) peek(k segment.Key) ([]*variant, bool) {
	s := m.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.m[k]; e != nil {
		return e.vs, true
	}
	return nil, false
}
