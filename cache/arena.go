package cache

import (
	"math/bits"
	"sync"
)

// An arena has the bytes of the tier in memory, outside of the garbage collector's
// heap: there they would cost twice their size, for the room that it works in.
//
// Who holds a piece of it is not counted: each belongs to a variant, and is free
// when the collector finds that nothing refers to that any more. So whoever uses the
// bytes has to keep the variant alive meanwhile (runtime.KeepAlive).
type arena struct {
	mu      sync.Mutex
	classes [arenaClasses]arenaClass
	bytes   int64 // of all chunks
}

const (
	chunkSize = 256 << 10
	// Classes are eight to a doubling, from minPiece on, up to maxPiece; larger
	// pieces are chunks of their own.
	minPiece     = 256
	maxPiece     = 32 << 10
	arenaClasses = 8*7 + 1
)

// An arenaClass is the pieces of one size.
type arenaClass struct{ open []*chunk } // with pieces that are free

// A chunk is memory of the system, cut in pieces of one size.
type chunk struct {
	a     *arena
	class int // -1: it is one piece
	size  int // of a piece
	mem   []byte
	free  []uint32
	used  int
	at    int // in open, -1: all its pieces are used
}

// A piece is memory of an arena.
type piece struct {
	c *chunk
	n uint32
}

// classOf is the class whose pieces have room for n bytes, and their size.
func classOf(n int) (class, size int) {
	if n <= minPiece {
		return 0, minPiece
	}
	// n-1 is in [2^k, 2^(k+1)); eight classes divide that.
	k := bits.Len(uint(n-1)) - 1
	step := 1 << (k - 3)
	part := (n - 1 - 1<<k) / step
	return 8*(k-8) + part + 1, 1<<k + (part+1)*step
}

// get finds n bytes.
func (a *arena) get(n int) ([]byte, piece, error) {
	class, size := -1, n
	if n <= maxPiece {
		class, size = classOf(n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var c *chunk
	if class >= 0 && len(a.classes[class].open) > 0 {
		c = a.classes[class].open[0]
	} else {
		var err error
		if c, err = a.chunk(class, size); err != nil {
			return nil, piece{}, err
		}
	}
	i := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.used++
	if len(c.free) == 0 && class >= 0 {
		a.classes[class].remove(c)
	}
	at := int(i) * c.size
	return c.mem[at : at+n : at+n], piece{c, i}, nil
}

// chunk gets a chunk for pieces of a size. mu is held.
func (a *arena) chunk(class, size int) (*chunk, error) {
	n := chunkSize
	if class < 0 {
		n = (size + 4095) &^ 4095
	}
	mem, err := pages(n)
	if err != nil {
		return nil, err
	}
	a.bytes += int64(n)
	c := &chunk{a: a, class: class, size: size, mem: mem, at: -1}
	count := 1
	if class >= 0 {
		count = n / size
		a.classes[class].add(c)
	}
	c.free = make([]uint32, count)
	for i := range c.free {
		c.free[i] = uint32(count - 1 - i)
	}
	return c, nil
}

func (k *arenaClass) add(c *chunk) {
	c.at = len(k.open)
	k.open = append(k.open, c)
}

func (k *arenaClass) remove(c *chunk) {
	last := len(k.open) - 1
	k.open[c.at] = k.open[last]
	k.open[c.at].at = c.at
	k.open[last] = nil
	k.open = k.open[:last]
	c.at = -1
}

// release gives a piece back, and a chunk of which none is used any more to the
// system.
func (p piece) release() {
	c, a := p.c, p.c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	c.free = append(c.free, p.n)
	if c.used--; c.used == 0 {
		if c.at >= 0 {
			a.classes[c.class].remove(c)
		}
		a.bytes -= int64(len(c.mem))
		giveBack(c.mem)
		c.mem = nil
		return
	}
	if c.at < 0 && c.class >= 0 {
		a.classes[c.class].add(c)
	}
}

// size is how many bytes the arena has of the system.
func (a *arena) total() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}
