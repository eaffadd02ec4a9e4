package match

import "unicode/utf8"

// Automaton gives an automaton of the words Match accepts. When its memory is
// used up, 8 MB, it accepts all that continues what it has seen so far:
// confirm words with Match.
func (p *Pattern) Automaton() Automaton {
	if l := p.levenshtein(); l != nil {
		return l
	}
	opt := p.opt
	opt.Word, opt.Line, opt.Lines = false, false, false
	return bytewise{newDFA(newNFA(p.graph, p.class, p.setOf, opt, false), false, true)}
}

// bytewise runs a dfa byte by byte. A state is one of the dfa and, above it,
// up to three bytes of a character that is not whole yet, the first lowest.
type bytewise struct{ d *dfa }

const pendingShift = 32

func (b bytewise) Start() int { return int(b.d.start(edge0)) }

func (b bytewise) Step(state int, c byte) int {
	if c < utf8.RuneSelf && state>>pendingShift == 0 {
		d := b.d
		e := d.table[state+int(d.n.class.bytes[c])]
		if e == unknown {
			e = d.next(int32(state), int(d.n.class.bytes[c]))
		}
		if e = max(e, ^e); e == dead {
			return -1
		}
		return int(e)
	}
	return b.wide(state, c)
}

// wide takes a byte of a character beyond ASCII, or after the beginning of one.
func (b bytewise) wide(state int, c byte) int {
	if state>>pendingShift == 0 {
		if class := b.d.n.class.leads()[c]; class > 0 && b.d.next(int32(state), int(class)) == dead {
			return -1
		}
	}
	room, n, state := unpack(state, c)
	if c&0xc0 == 0x80 && n < int(length[room[0]]) {
		return state | pack(room[:n])<<pendingShift
	}
	text, s := room[:n], int32(state)
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		if s = b.d.next(s, b.d.n.class.class(r)); s == dead {
			return -1
		}
		text = text[size:]
	}
	return int(s) | pack(text)<<pendingShift
}

// unpack gives the bytes pending in a state and another, and the state without.
func unpack(state int, c byte) (text [utf8.UTFMax]byte, n, bare int) {
	for pending := state >> pendingShift; pending != 0; pending >>= 8 {
		text[n] = byte(pending)
		n++
	}
	text[n] = c
	return text, n + 1, state & (1<<pendingShift - 1)
}

func pack(text []byte) (pending int) {
	for i, c := range text {
		pending |= int(c) << (8 * i)
	}
	return pending
}

// Accept tells whether a word may end in a state; bytes that are no character
// yet are then none.
func (b bytewise) Accept(state int) bool {
	s := int32(state)
	for pending := state >> pendingShift; pending != 0; pending >>= 8 {
		if s = b.d.next(s, b.d.n.class.class(utf8.RuneError)); s == dead {
			return false
		}
	}
	return b.d.cost(s, edge0) >= 0
}
