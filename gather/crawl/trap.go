package crawl

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"harvest/gather/dup"
)

// A Trap watches the pages of one server for places that make up pages for ever:
// calendars, sessions, links that are relative to what they should not be. It
// tells them by what their URLs have in common, their shape, and by that their
// pages say the same. A site of many pages is no trap, however many they are, as
// long as they say something of their own; nor are pages that say the same while
// there is an end to them.
//
// A Trap is for one goroutine at a time. It holds 25 KiB, and 2 KiB for
// each of the at most 64 shapes that it has closed.
type Trap struct {
	keys   []uint64 // of shapes, hashes of their kind and name
	shapes []shape
	clock  uint32
	closed []string // the names of those that are closed, oldest first
}

// A shape is what is known of URLs that have one.
type shape struct {
	kind   byte
	seen   uint32 // when last, by the Trap's clock
	row    int32  // of pages that say what one before them said
	low    int16  // least and greatest depth of a page of the row
	high   int16
	next   uint8 // which of said is replaced
	closed bool
	said   [2]dup.Signature // what pages said, as to their shape
}

// How many pages that say the same, in a row, are a trap. It is more where
// URLs that have a shape may well be different pages; and fewer where each is
// found on the one before, so that their depth grows.
var trapRows = map[byte]struct{ row, chain, levels int32 }{
	queryShape:  {row: 64, chain: 24, levels: 6},
	askShape:    {row: 300, chain: 64, levels: 6},
	numberShape: {row: 200, chain: 64, levels: 5},
	nameShape:   {row: 1000, chain: 200, levels: 8},
	treeShape:   {row: 2000, chain: 300, levels: 12},
}

// Kinds of shape.
const (
	queryShape  = 'q' // one path, queries with the same keys
	askShape    = 'a' // one path, any query
	numberShape = 'n' // numbers, and what looks like the name of a session, are the same
	nameShape   = 'f' // a folder: the last segment of the path is anything
	treeShape   = 't' // a folder: the last two segments are
)

const (
	maxShapes = 128
	maxClosed = 64

	// alike is how much of what two pages say is the same when they say the same.
	alike = 0.9
)

// NewTrap returns a Trap that knows the shapes that another one had closed.
func NewTrap(closed ...string) *Trap {
	t := new(Trap)
	for _, name := range closed {
		if len(name) > 1 && trapRows[name[0]].row > 0 {
			t.get(name[0], name).closed = true
			t.remember(name)
		}
	}
	return t
}

// Closed returns the names of the shapes that are closed, for NewTrap, at most
// 64 of 2 KiB.
func (t *Trap) Closed() []string { return t.closed }

// Refuses returns why a URL is not to be fetched, or "". It is cheap, and good
// to ask before a URL is queued and again when it is taken.
func (t *Trap) Refuses(u string) string {
	if why := refuse(u); why != "" {
		return why
	}
	if len(t.closed) == 0 {
		return ""
	}
	for _, name := range shapesOf(u) {
		if i := slices.Index(t.keys, shapeKey(name)); i >= 0 && t.shapes[i].closed {
			return "a trap: " + describe(name)
		}
	}
	return ""
}

// Seen is told of each page that was fetched, its distance from the root, and
// the shape of what it says (the second of Sign). It returns the reason when that
// closes a shape of URLs, else "".
func (t *Trap) Seen(u string, depth int, says *dup.Signature) string {
	why := ""
	t.clock++
	for _, name := range shapesOf(u) {
		s := t.get(name[0], name)
		if !s.page(depth, says) || s.closed {
			continue
		}
		s.closed = true
		t.remember(name)
		if why == "" {
			why = fmt.Sprintf("a trap: %s: %d pages in a row say the same", describe(name), s.row)
		}
	}
	return why
}

// page notes one more page and reports whether the shape is a trap.
func (s *shape) page(depth int, says *dup.Signature) bool {
	d := int16(min(depth, 1<<15-1))
	known := dup.Similar(&s.said[0], says) >= alike || dup.Similar(&s.said[1], says) >= alike
	switch {
	case known && s.row > 0:
		s.row++
		s.low, s.high = min(s.low, d), max(s.high, d)
	case known:
		s.row, s.low, s.high = 1, d, d
	default:
		s.row /= 4 // one page of its own does not make the others differ
		s.said[s.next&1] = *says
		s.next++
	}
	limit := trapRows[s.kind]
	return s.row >= limit.row || s.row >= limit.chain && int32(s.high)-int32(s.low) >= limit.levels
}

// get returns what is known of a shape; the one not seen for longest makes room
// for a new one.
func (t *Trap) get(kind byte, name string) *shape {
	key := shapeKey(name)
	i := slices.Index(t.keys, key)
	if i < 0 {
		if i = len(t.keys); i < maxShapes {
			t.keys, t.shapes = append(t.keys, key), append(t.shapes, shape{})
		} else {
			i = t.oldest()
		}
		t.keys[i], t.shapes[i] = key, shape{kind: kind}
	}
	t.shapes[i].seen = t.clock
	return &t.shapes[i]
}

// oldest is the shape that is least worth to be kept, of those that are open: a
// row that has begun is worth more than none.
func (t *Trap) oldest() (at int) {
	least := ^uint64(0)
	for i := range t.shapes {
		s := &t.shapes[i]
		if worth := uint64(s.row)<<32 | uint64(s.seen); !s.closed && worth < least {
			at, least = i, worth
		}
	}
	return at
}

func (t *Trap) remember(name string) {
	if len(t.closed) == maxClosed {
		if i := slices.Index(t.keys, shapeKey(t.closed[0])); i >= 0 {
			t.shapes[i] = shape{kind: t.shapes[i].kind}
		}
		t.closed = slices.Delete(t.closed, 0, 1)
	}
	t.closed = append(t.closed, strings.Clone(name))
}

func shapeKey(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// describe is a shape's name as a reason tells it.
func describe(name string) string {
	switch name[0] {
	case queryShape:
		return "queries of " + name[1:]
	case askShape:
		return "queries of " + name[1:] + "?"
	}
	return "paths like " + name[1:]
}
