package match

import (
	"strings"
	"unicode/utf8"
)

// Halves part the words that a pattern accepts, a plain word of ASCII with one
// or two errors, by where the errors are. In a word accepted either the first
// half has at most one error less than are allowed, and Front accepts it, or
// all errors are there, and it ends with Tail. Each word that Front accepts is
// accepted by the pattern and begins with Prefix.
type Halves struct {
	Front       Automaton
	Prefix      string
	Tail        string
	Least, Most int // characters that a word has
}

// A Tail has at least so many characters, and so many if the other half is not
// the shorter one for it.
const (
	tail     = 3
	longTail = 5
)

// Halves gives the halves of a pattern that has such, unless case counts. They
// are in lower case, for words in which all characters are.
func (p *Pattern) Halves() (h Halves, ok bool) {
	l := p.levenshtein()
	if l == nil || p.opt.Case || len(l.text) != l.size { // not of ASCII
		return h, false
	}
	k := l.u.k
	// A pair that was swapped may stand across the cut: the character there
	// belongs to neither half.
	cut := min(max(l.size/2, l.size-longTail-1), l.size-tail-1)
	if cut < k {
		return h, false
	}
	text := strings.ToLower(l.text)
	h = Halves{Tail: text[cut+1:], Least: l.size - k, Most: l.size + k}
	if k == 1 {
		h.Prefix, h.Front = text[:cut], l
	} else {
		h.Front = front{l, cut}
	}
	return h, true
}

// A front is a levenshtein of two errors that dies of words that do not begin
// with something within one error of the first characters of its own. Its state
// is that of the levenshtein and, in bits that the characters passed do not
// need, the state of an automaton of one error for these first ones, with the
// characters passed by that; 0 there when it has accepted.
type front struct {
	*levenshtein
	cut int
}

const (
	frontShift = passedShift + 6 // characters passed, maxCharacter at most
	frontMask  = 1<<pendingShift - 1<<frontShift
	frontBits  = 3 // of the states of one error
)

func (f front) Start() int { return f.levenshtein.Start() | 1<<frontShift }

func (f front) Accept(state int) bool { return f.levenshtein.Accept(state &^ frontMask) }

func (f front) Step(state int, b byte) int {
	half, state := state&frontMask>>frontShift, state&^frontMask
	next := f.levenshtein.Step(state, b)
	if next < 0 || half == 0 {
		return next
	}
	switch pending := state >> pendingShift; {
	case pending == 0 && b < utf8.RuneSelf:
		half = f.half(half, f.ascii[b])
	case pending == 0 && !has(f.firsts[:], int(b)): // nor is what it begins in the word
		half = f.half(half, 0)
	case 0 < pending && pending < utf8.RuneSelf && b&0xc0 == 0x80: // see skip
	default: // so rare that anything may follow
		return next
	}
	if half < 0 {
		return -1
	}
	return next | half<<frontShift
}

// half reads a character that stands in the word at certain places.
func (f front) half(state int, at uint64) int {
	u := universal1()
	passed := state >> frontBits
	e := u.next[state&(1<<frontBits-1)<<3|int(at&(1<<f.cut-1)>>passed)&7]
	if e < 1<<8 {
		return -1
	}
	passed += int(e & 0xff)
	if left, cost := f.cut-passed, u.cost[e>>8]; left >= 0 && left < len(cost) && cost[left] >= 0 {
		return 0
	}
	return int(e>>8) | passed<<frontBits
}

// Live is levenshtein.Live.
func (f front) Live(state, from int) int { return f.live(f, state, from) }

// Word is the word that a pattern stands for which is a plain one with one or
// two errors of cost 1.
func (p *Pattern) Word() (word string, ok bool) {
	if l := p.levenshtein(); l != nil {
		return l.text, true
	}
	return "", false
}
