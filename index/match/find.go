package match

import (
	"bytes"
	"unicode/utf8"
)

// Find gives the match that the package comment describes, in text from byte
// from on, which begins a character. What stands before from still counts for
// Word, Line, ^ and \b. With Best it is the first at the least cost there is.
func (p *Pattern) Find(text []byte, from int) (start, end, cost int, ok bool) {
	if p.opt.Best {
		least, ok := p.least(text, from)
		if !ok {
			return 0, 0, 0, false
		}
		q, err := p.Limit(least)
		if err != nil {
			return 0, 0, 0, false
		}
		return q.Find(text, from)
	}
	if p.literal != nil {
		start, end, ok = p.findLiteral(text, from)
		return start, end, 0, ok
	}
	p.prepare()
	state, first, ok := p.first(text, from)
	if !ok {
		return 0, 0, 0, false
	}
	return p.extent(text, from, first, state)
}

// FindString is Find.
func (p *Pattern) FindString(text string, from int) (start, end, cost int, ok bool) {
	return p.Find(bytesOf(text), from)
}

// Has tells whether there is a match in text, at less cost than Find.
func (p *Pattern) Has(text []byte) bool {
	if p.literal != nil {
		_, _, ok := p.findLiteral(text, 0)
		return ok
	}
	p.prepare()
	_, _, ok := p.first(text, 0)
	return ok
}

// HasString is Has.
func (p *Pattern) HasString(text string) bool { return p.Has(bytesOf(text)) }

func (p *Pattern) prepare() {
	if p.ahead != nil {
		return
	}
	n, b := p.newNFA(false), p.newNFA(true)
	p.ahead, p.on = newDFA(n, true, false), newDFA(n, false, false)
	p.behind, p.back = newDFA(b, true, false), newDFA(b, false, false)
}

func (p *Pattern) findLiteral(text []byte, from int) (start, end int, ok bool) {
	for {
		start, end, ok = p.literal.Find(text, from)
		if !ok || p.stands(text, start, end) {
			return start, end, ok
		}
		_, size := utf8.DecodeRune(text[start:])
		from = start + size
	}
}

// stands tells whether a match may stand from start to end.
func (p *Pattern) stands(text []byte, start, end int) bool {
	if p.opt.Lines && bytes.IndexByte(text[start:end], '\n') >= 0 {
		return false
	}
	if p.opt.Word && (kindBefore(text, start).ofWord() || kindAfter(text, end).ofWord()) {
		return false
	}
	return !p.opt.Line || kindBefore(text, start) >= newline && kindAfter(text, end) >= newline
}

// extent finds the match to give, knowing where the first one ends and the
// state of p.ahead there.
func (p *Pattern) extent(text []byte, from, first int, state int32) (start, end, cost int, ok bool) {
	on := p.on
	before := kindBefore(text, first)
	reached := on.move(p.ahead, state, before, false)
	empty := on.cost(reached, kindAfter(text, first)) < 0
	if empty {
		reached = on.move(p.ahead, state, before, true)
	}
	state = reached
	cost, end = never, first
	for at := first; ; {
		if on.may(state) {
			if c := on.cost(state, kindAfter(text, at)); c >= 0 && c <= cost {
				cost, end = c, at
			}
		}
		if at == len(text) || state == dead {
			break
		}
		state, at = on.read(state, text, at)
	}
	start = p.begin(text, from, first, end, cost)
	return start, p.end(text, start, cost), cost, true
}

// begin is the first place from which on a match of a cost goes to a place
// between first and end, being before first; else it is first.
//
// Read backwards, what is inserted at a place where the pattern asserts
// something (^, \b) stands on the other side of it, so such a pattern is read
// forwards only.
func (p *Pattern) begin(text []byte, from, first, end, cost int) (start int) {
	if p.opt.Errors > 0 && p.asserts {
		return p.beginAhead(text, from, first, cost)
	}
	d := p.behind
	state, at := d.start(kindAfter(text, end)), end
	for at > first {
		state, at = d.readBack(state, text, at)
	}
	d, start = p.back, first
	state = d.move(p.behind, state, kindAfter(text, at), true)
	for at > from && state != dead {
		state, at = d.readBack(state, text, at)
		if d.may(state) {
			if c := d.cost(state, kindBefore(text, at)); c >= 0 && c <= cost {
				start = at
			}
		}
	}
	return start
}

// beginAhead is begin for what cannot be read backwards. Whether a match begins
// at a place or before it, is told by one reading; the least such place is found by
// halving, so there are some twenty readings at the most.
func (p *Pattern) beginAhead(text []byte, from, first, cost int) (start int) {
	low, high := from, first // a match begins in this range, or at first
	for low < high {
		mid := character(text, low, low+(high-low)/2)
		if p.begins(text, from, mid, cost) {
			high = mid
		} else {
			low = forth(text, mid, 1)
		}
	}
	return low
}

// character is where the one begins that the byte at a place belongs to, at low
// or after it. A byte that belongs to none is one.
func character(text []byte, low, at int) int {
	for s := at - 1; s >= max(low, at-utf8.UTFMax+1); s-- {
		if utf8.RuneStart(text[s]) {
			if _, size := utf8.DecodeRune(text[s:]); s+size > at {
				return s
			}
			break
		}
	}
	return at
}

// begins tells whether a match of a cost begins between from and upto.
func (p *Pattern) begins(text []byte, from, upto, cost int) bool {
	state, at := p.ahead.start(kindBefore(text, from)), from
	for at < upto {
		state, at = p.ahead.read(state, text, at)
	}
	d := p.on
	state = d.move(p.ahead, state, kindBefore(text, upto), true)
	for {
		if d.may(state) {
			if c := d.cost(state, kindAfter(text, at)); c >= 0 && c <= cost {
				return true
			}
		}
		if at == len(text) || state == dead {
			return false
		}
		state, at = d.read(state, text, at)
	}
}

// end is the last place to which a match of a cost goes from start; -1 if
// there is none.
func (p *Pattern) end(text []byte, start, cost int) (end int) {
	d := p.on
	end = -1
	state := d.start(kindBefore(text, start))
	for at := start; ; {
		if d.may(state) {
			if c := d.cost(state, kindAfter(text, at)); c >= 0 && c <= cost {
				end = at
			}
		}
		if at == len(text) || state == dead {
			return end
		}
		state, at = d.read(state, text, at)
	}
}

// least reads on past the first match for cheaper ones.
func (p *Pattern) least(text []byte, from int) (cost int, ok bool) {
	p.prepare()
	cost = never
	state, at, ok := p.first(text, from)
	for d := p.ahead; ok && cost > 0; {
		cost = min(cost, d.cost(state, kindAfter(text, at)))
		if at == len(text) {
			break
		}
		state, at = d.read(state, text, at)
		state, at, ok = d.first(state, text, at)
	}
	return cost, cost < never
}

// Line gives the end of the first line from a place on in which a match ends,
// which is where to go on from: past its newline, if it has one. It is the way
// to count or skip lines.
func (p *Pattern) Line(text []byte, from int) (next int, ok bool) {
	if p.literal != nil {
		_, next, ok = p.findLiteral(text, from)
	} else {
		p.prepare()
		_, next, ok = p.first(text, from)
	}
	if !ok {
		return 0, false
	}
	if i := bytes.IndexByte(text[next:], '\n'); i >= 0 {
		return next + i + 1, true
	}
	return len(text), true
}
