package dict

import "sync"

// A Cache keeps what searches made of chunks, terms decoded and tables of
// their ends, as much as fits in its bytes. What is asked for takes the place
// of what was not used since it was last asked for itself: so searches that
// need more than fits, all of it each time, do not drive out one thing after
// the other and find nothing. Tables of ends, which are small, take the place
// of terms. Several Dicts may share a Cache and goroutines may use it at once.
// A nil Cache keeps nothing.
type Cache struct {
	size int64

	mu    sync.Mutex
	taken int64 // bytes
	clock int64
	kept  map[slot]kept
	used  map[slot]int64 // when each was last asked for, also of those not kept
}

// A slot is what is kept of a chunk: one thing of each kind.
type slot struct {
	chunk *chunk
	kind  kind
}

type kind int

// Kinds, the least worth its bytes first.
const (
	listKind kind = iota
	tailsKind
	kinds
)

type kept interface{ size() int64 }

// NewCache makes a Cache of at most size bytes.
func NewCache(size int64) *Cache {
	return &Cache{size: size, kept: map[slot]kept{}, used: map[slot]int64{}}
}

// Forget drops what c keeps of d. Who lets go of a Dict calls it.
func (c *Cache) Forget(d *Dict) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range d.chunks {
		for k := range kinds {
			s := slot{&d.chunks[i], k}
			c.drop(s)
			delete(c.used, s)
		}
	}
}

// drop is called with mu held.
func (c *Cache) drop(s slot) {
	if x := c.kept[s]; x != nil {
		c.taken -= x.size()
		delete(c.kept, s)
	}
}

// get gives what is kept in a slot or, if that is nothing, whether something of
// size bytes would be.
func (c *Cache) get(s slot, size int64) (x kept, keep bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.used[s]
	c.clock++
	c.used[s] = c.clock
	if x := c.kept[s]; x != nil {
		return x, true
	}
	return nil, c.room(s, before) >= size
}

// room is how much can be kept in a slot that was last asked for at a time. It
// is called with mu held.
func (c *Cache) room(s slot, since int64) int64 {
	n := c.size - c.taken
	for o, x := range c.kept {
		if o.kind < s.kind || c.used[o] < since {
			n += x.size()
		}
	}
	return n
}

// put keeps x in place of what was not used for longest, if need be.
func (c *Cache) put(s slot, x kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[s] != nil {
		return
	}
	c.kept[s] = x
	for c.taken += x.size(); c.taken > c.size; {
		c.drop(c.least())
	}
}

// least is what to do without first. It is called with mu held.
func (c *Cache) least() (s slot) {
	first := true
	for o := range c.kept {
		if first || o.kind < s.kind || o.kind == s.kind && c.used[o] < c.used[s] {
			s, first = o, false
		}
	}
	return s
}
