package crawl

import (
	"fmt"
	"strings"
)

// A Trap watches the pages of one server for places that make up pages for ever:
// calendars, sessions, links that are relative to what they should not be. It
// tells them by what their URLs have in common, their shape, and by that their
// pages say the same. A site of many pages is no trap, however many they are, as
// long as they say something of their own; nor are pages that say the same while
// there is an end to them.
//
// A Trap is for one goroutine at a time. It holds less than 40 KiB.
type Trap struct {
	shapes map[uint64]*shape // by hash of their kind and name
	clock  uint32
	closed []string // the names of those that are closed, oldest first
}

// A shape is what is known of URLs that have one.
type shape struct {
	kind   byte
	seen   uint32 // when last, by the Trap's clock
	pages  int32
	alike  int32 // of the pages, those that say what one before them said
	row    int32 // of those, the last in a row
	low    int16 // least and greatest depth of a page of the row
	high   int16
	next   uint8 // which of said is replaced
	closed bool
	said   [2]Signature // what pages said, as to their shape
}

// How many pages that say the same, in a row, are a trap. It is more where
// URLs that have a shape may well be different pages; and fewer where each is
// found on the one before, so that their depth grows.
var trapRows = map[byte]struct{ row, chain, levels int32 }{
	queryShape:  {row: 64, chain: 24, levels: 6},
	numberShape: {row: 200, chain: 64, levels: 5},
	nameShape:   {row: 2000, chain: 300, levels: 12},
}

// Kinds of shape.
const (
	queryShape  = 'q' // one path, queries with the same keys
	numberShape = 'n' // numbers, and what looks like the name of a session, are the same
	nameShape   = 'f' // a folder: the last two segments of the path are anything
)

const (
	maxShapes = 128
	maxClosed = 64

	// alike is how much of what two pages say is the same when they say the same.
	alike = 0.9
)

// NewTrap returns a Trap that knows the shapes that another one had closed.
func NewTrap(closed ...string) *Trap {
	t := &Trap{shapes: make(map[uint64]*shape)}
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
		if s := t.shapes[shapeKey(name)]; s != nil && s.closed {
			return "a trap: " + describe(name)
		}
	}
	return ""
}

// Seen is told of each page that was fetched, its distance from the root, and
// the shape of what it says (the second of Sign). It returns the reason when that
// closes a shape of URLs, else "".
func (t *Trap) Seen(u string, depth int, says *Signature) string {
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
func (s *shape) page(depth int, says *Signature) bool {
	d := int16(min(depth, 1<<15-1))
	s.pages++
	known := Similar(&s.said[0], says) >= alike || Similar(&s.said[1], says) >= alike
	switch {
	case known && s.row > 0:
		s.row++
		s.alike++
		s.low, s.high = min(s.low, d), max(s.high, d)
	case known:
		s.row, s.low, s.high = 1, d, d
		s.alike++
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
	s := t.shapes[key]
	if s == nil {
		if len(t.shapes) >= maxShapes {
			t.forget()
		}
		s = &shape{kind: kind}
		t.shapes[key] = s
	}
	s.seen = t.clock
	return s
}

// forget drops one shape, of those that are open.
func (t *Trap) forget() {
	var oldest uint64
	least := ^uint64(0)
	for key, s := range t.shapes {
		if age := uint64(s.row)<<32 | uint64(s.seen); !s.closed && age < least {
			oldest, least = key, age
		}
	}
	delete(t.shapes, oldest)
}

func (t *Trap) remember(name string) {
	if len(t.closed) == maxClosed {
		delete(t.shapes, shapeKey(t.closed[0]))
		t.closed = t.closed[1:]
	}
	t.closed = append(t.closed, strings.Clone(name))
}

func shapeKey(name string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	return h
}

// describe is a shape's name as a reason tells it.
func describe(name string) string {
	switch name[0] {
	case queryShape:
		return "queries of " + name[1:]
	case numberShape:
		return "paths like " + name[1:]
	}
	return "the folder " + name[1:]
}
