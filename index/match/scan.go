package match

import (
	"bytes"
	"unicode/utf8"
)

// A scan looks for the pieces of which every match holds one, to leave out
// text without any. Where pieces stand too close for that to help it gives up
// for the rest of a text, and some more searches.
type scan struct {
	next  []int // by piece: where it stands next
	hits  int
	dense int // searches that are to do without
}

// Past this many hits that stand close a search does without pieces, and so do
// as many after it.
const manyHits = 64

// near tells that pieces stand closer together than this, on the average.
const near = 48

// begin forgets the text before.
func (s *scan) begin(pieces int) {
	s.next = s.next[:0]
	for range pieces {
		s.next = append(s.next, -1)
	}
	s.hits = 0
}

// piece is the first place of any piece from at on; len(text) if there is
// none.
func (p *Pattern) piece(text []byte, at int) int {
	best := len(text)
	for i, f := range p.pieces {
		if p.scan.next[i] < at {
			start, _, ok := f.Find(text, at)
			if !ok {
				start = len(text)
			}
			p.scan.next[i] = start
		}
		best = min(best, p.scan.next[i])
	}
	return best
}

// first finds where the first match ends, and the state of p.ahead there.
func (p *Pattern) first(text []byte, from int) (state int32, end int, ok bool) {
	if len(p.pieces) == 0 || p.scan.dense > 0 {
		p.scan.dense--
		return p.ahead.first(p.ahead.start(kindBefore(text, from)), text, from)
	}
	p.scan.begin(len(p.pieces))
	switch {
	case !p.multi:
		return p.firstByLine(text, from)
	case p.longest >= 0:
		return p.firstBySpan(text, from)
	}
	if p.piece(text, from) == len(text) {
		return 0, 0, false
	}
	return p.ahead.first(p.ahead.start(kindBefore(text, from)), text, from)
}

// firstByLine runs over the lines that hold a piece.
func (p *Pattern) firstByLine(text []byte, from int) (state int32, end int, ok bool) {
	for at := from; ; {
		hit := p.piece(text, at)
		if hit == len(text) {
			return 0, 0, false
		}
		at += bytes.LastIndexByte(text[at:hit], '\n') + 1
		state = p.ahead.start(kindBefore(text, at))
		if p.crowded(hit - from) {
			return p.ahead.first(state, text, at)
		}
		for window := lineWindow; ; window *= 2 {
			stop, line := lineEnd(text, max(at, hit), window)
			if state, at, ok = p.run(state, text, at, stop); ok {
				return state, at, true
			}
			if line {
				at = stop + 1
				break
			}
		}
		if at > len(text) {
			return 0, 0, false
		}
	}
}

// lineWindow is how far the end of a line is looked for at first: whoever goes
// from match to match in a long line is not to look for it each time.
const lineWindow = 1 << 10

// lineEnd is where the line of a place ends, or some window further on.
func lineEnd(text []byte, at, window int) (stop int, line bool) {
	rest := text[at:]
	if window < len(rest) {
		rest = rest[:window]
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		return at + i, true
	}
	return at + len(rest), at+len(rest) == len(text)
}

// firstBySpan runs over as much text around a piece as a match can take.
func (p *Pattern) firstBySpan(text []byte, from int) (state int32, end int, ok bool) {
	span := p.longest
	if cost := p.forwardCosts().Insert; cost < never {
		span += p.opt.Errors / cost
	}
	cur, run := from, false // up to where text was read, if any was
	for at := from; ; at++ {
		hit := p.piece(text, at)
		if hit == len(text) {
			return 0, 0, false
		}
		if begin := back(text, from, hit, span); !run || begin > cur {
			state, cur, run = p.ahead.start(kindBefore(text, begin)), begin, true
		}
		if p.crowded(hit - from) {
			return p.ahead.first(state, text, cur)
		}
		if state, cur, ok = p.run(state, text, cur, forth(text, hit, span)); ok {
			return state, cur, true
		}
		at = hit
	}
}

func (p *Pattern) forwardCosts() Costs { return p.opt.Costs.within(p.opt.Errors) }

// crowded tells whether the hits so far, in a stretch of text, were too many.
func (p *Pattern) crowded(length int) bool {
	p.scan.hits++
	if p.scan.hits < manyHits || length/p.scan.hits >= near {
		return false
	}
	p.scan.dense = manyHits
	return true
}

// run is first up to a place, what stands after which is still seen.
func (p *Pattern) run(state int32, text []byte, at, stop int) (_ int32, end int, ok bool) {
	if at > stop {
		return state, at, false
	}
	state, end, ok = p.ahead.first(state, text[:stop], at)
	if stop == len(text) {
		return state, end, ok
	}
	// At stop itself the end of text[:stop] is not what follows.
	after := kindAfter(text, stop)
	if ok && end == stop {
		ok = p.ahead.cost(state, after) >= 0
	} else if !ok {
		ok = p.ahead.may(state) && p.ahead.cost(state, after) >= 0
	}
	return state, end, ok
}

// back is the place some characters before another.
func back(text []byte, from, at, chars int) int {
	for ; chars > 0 && at > from; chars-- {
		_, size := utf8.DecodeLastRune(text[from:at])
		at -= size
	}
	return at
}

// forth is the place some characters after another.
func forth(text []byte, at, chars int) int {
	for ; chars > 0 && at < len(text); chars-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}
