package match

import (
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"
)

// A universal automaton finds words within k errors of any word (Schulz and
// Mihov): what it has reached depends on the word only by which of its next
// 2k+1 characters are the one just read. So there is one table for all words,
// made once: 8 states for 1 error, 81 for 2. A state is a set of
// positions, how far beyond the first in the word and at how many errors;
// a position that does no more than another is left out.
type universal struct {
	k    int
	next []uint32  // by state<<(2k+1) | window: state<<8 | characters passed
	cost [][]int8  // by state, by characters of the word left: the errors; -1 none
	sets [][]where // by state, while the table is made
}

// where is a position: at characters of the word are passed. In a swap, the
// one read stood for the second to come, and the first must be next.
type where struct {
	at, errors int
	swap       bool
}

// maxUniversal is the greatest number of errors with a table. For 3 it would
// have some thousand states.
const maxUniversal = 2

var (
	universal1 = sync.OnceValue(func() *universal { return newUniversal(1) })
	universal2 = sync.OnceValue(func() *universal { return newUniversal(2) })
)

func newUniversal(k int) *universal {
	u := &universal{k: k}
	ids := map[string]int{}
	var key []byte
	id := func(set []where) int {
		key = key[:0]
		for _, p := range set {
			key = append(key, byte(p.at), byte(p.errors), 0)
			if p.swap {
				key[len(key)-1] = 1
			}
		}
		n, ok := ids[string(key)]
		if !ok {
			n = len(u.sets)
			ids[string(key)] = n
			u.sets = append(u.sets, set)
		}
		return n
	}
	id(nil) // the dead state is 0
	id([]where{{}})
	for s := 0; s < len(u.sets); s++ {
		for window := range 1 << (2*k + 1) {
			set, passed := u.step(u.sets[s], window)
			u.next = append(u.next, uint32(id(set))<<8|uint32(passed))
		}
		u.cost = append(u.cost, u.costs(u.sets[s]))
	}
	u.sets = nil
	return u
}

// step is the set after a character, and how far it begins beyond this one.
func (u *universal) step(set []where, window int) (next []where, passed int) {
	is := func(at int) bool { return window>>at&1 != 0 }
	for _, p := range set {
		if p.swap {
			if is(p.at) {
				next = append(next, where{p.at + 2, p.errors, false})
			}
			continue
		}
		for out := 0; p.errors+out <= u.k; out++ { // characters left out before it
			if is(p.at + out) {
				next = append(next, where{p.at + out + 1, p.errors + out, false})
			}
		}
		if p.errors < u.k {
			next = append(next, where{p.at, p.errors + 1, false}, where{p.at + 1, p.errors + 1, false})
			if is(p.at + 1) {
				next = append(next, where{p.at, p.errors + 1, true})
			}
		}
	}
	return reduce(next)
}

// reduce leaves out the positions that another does better than, sorts the
// rest and lets them begin at 0.
func reduce(set []where) (out []where, passed int) {
	for i, p := range set {
		better := func(q where) bool {
			return !q.swap && !p.swap && q.errors < p.errors && max(p.at-q.at, q.at-p.at) <= p.errors-q.errors
		}
		if !slices.ContainsFunc(set, better) && !slices.Contains(set[:i], p) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, 0
	}
	passed = out[0].at
	for _, p := range out {
		passed = min(passed, p.at)
	}
	for i := range out {
		out[i].at -= passed
	}
	slices.SortFunc(out, func(a, b where) int { return a.order() - b.order() })
	return out, passed
}

func (p where) order() int {
	n := p.at<<8 | p.errors<<1
	if p.swap {
		n++
	}
	return n
}

// costs is the errors at the end of the word read, by how many characters of
// the one sought are left.
func (u *universal) costs(set []where) []int8 {
	cost := make([]int8, 4*u.k)
	for left := range cost {
		cost[left] = -1
		for _, p := range set {
			if e := p.errors + left - p.at; !p.swap && p.at <= left && e <= u.k && (cost[left] < 0 || e < int(cost[left])) {
				cost[left] = int8(e)
			}
		}
	}
	return cost
}

// A levenshtein finds words within one or two errors of a word. Its state is
// one of the universal automaton, above it how many characters of the word are
// passed, and above that the bytes of a character that is not whole yet.
type levenshtein struct {
	u     *universal
	bits  int
	text  string
	size  int // characters of text
	ascii [utf8.RuneSelf]uint64
	wide  []wideChar

	firsts [4]uint64 // the bytes that characters of the word begin with
}

// wideChar is where a character beyond ASCII stands in the word.
type wideChar struct {
	r  rune
	at uint64
}

const (
	passedShift  = 16
	maxCharacter = 60 // of a word with a levenshtein
)

// newLevenshtein makes the automaton of a pattern, if it is a plain word with
// one or two errors of cost 1.
func newLevenshtein(p *Pattern) *levenshtein {
	if p.opt.Errors < 1 || p.opt.Errors > maxUniversal || p.opt.Costs.within(p.opt.Errors) != (Costs{1, 1, 1, 1}) {
		return nil
	}
	text, ok := plainText(p.tree, !p.opt.Case)
	exact := slices.ContainsFunc(p.graph.places, func(x place) bool { return x.part != 0 })
	if !ok || exact || utf8.RuneCountInString(text) > maxCharacter {
		return nil
	}
	l := &levenshtein{u: universal1(), text: text}
	if p.opt.Errors == 2 {
		l.u = universal2()
	}
	l.bits = 2*l.u.k + 1
	for _, r := range text {
		for _, c := range p.cases(r) {
			l.put(c)
		}
		l.size++
	}
	return l
}

// cases are the characters that stand for r.
func (p *Pattern) cases(r rune) []rune {
	if p.opt.Case {
		return []rune{r}
	}
	return pairs(fold(r))
}

func (l *levenshtein) put(r rune) {
	at := uint64(1) << l.size
	put(l.firsts[:], int(string(r)[0]))
	if r < utf8.RuneSelf {
		l.ascii[r] |= at
		return
	}
	for i := range l.wide {
		if l.wide[i].r == r {
			l.wide[i].at |= at
			return
		}
	}
	l.wide = append(l.wide, wideChar{r, at})
}

func (l *levenshtein) Start() int { return 1 }

func (l *levenshtein) Step(state int, b byte) int {
	if b < utf8.RuneSelf && state>>pendingShift == 0 {
		return l.step(state, l.ascii[b])
	}
	return l.stepWide(state, b)
}

// step reads a character that stands in the word at certain places.
func (l *levenshtein) step(state int, at uint64) int {
	passed := state >> passedShift
	window := int(at>>passed) & (1<<l.bits - 1)
	e := l.u.next[state&(1<<passedShift-1)<<l.bits|window]
	if e < 1<<8 {
		return -1
	}
	return int(e>>8) | (passed+int(e&0xff))<<passedShift
}

// stepWide takes a byte of a character beyond ASCII, or after the beginning of
// one. A byte that begins none of the word's tells enough to die at once.
func (l *levenshtein) stepWide(state int, b byte) int {
	switch pending := state >> pendingShift; {
	case pending == 0:
		return l.begin(state, b)
	case pending < utf8.RuneSelf:
		if b&0xc0 == 0x80 {
			return l.skip(state, pending)
		}
		if state = l.skipped(state); state < 0 {
			return -1
		}
		return l.Step(state, b)
	}
	room, n, state := unpack(state, b)
	if b&0xc0 == 0x80 && n < int(length[room[0]]) {
		return state | pack(room[:n])<<pendingShift
	}
	text := room[:n]
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		if state = l.step(state, l.places(r)); state < 0 {
			return -1
		}
		text = text[size:]
	}
	return state | pack(text)<<pendingShift
}

// begin takes the first byte of a character beyond ASCII. One that begins none
// of the word's tells what the character does; its other bytes are only
// counted then. In place of bytes that are not whole yet the state has how
// many are to come and how many have come.
func (l *levenshtein) begin(state int, b byte) int {
	n := length[b]
	if !has(l.firsts[:], int(b)) {
		next := l.step(state, 0)
		if next < 0 || n == 1 {
			return next
		}
		if free[b] {
			return next | int(n-1|1<<2)<<pendingShift
		}
	}
	if n == 1 {
		return l.step(state, l.places(utf8.RuneError))
	}
	return state | int(b)<<pendingShift
}

// skip counts a further byte of a character that begin has taken.
func (l *levenshtein) skip(state, pending int) int {
	state &= 1<<pendingShift - 1
	if pending&3 == 1 {
		return state
	}
	return state | (pending-1+1<<2)<<pendingShift
}

// skipped is the state when the bytes that were counted do not become a
// character: each but the first, which begin has taken, is one of its own.
func (l *levenshtein) skipped(state int) int {
	n := state>>pendingShift>>2 - 1
	for state &= 1<<pendingShift - 1; n > 0 && state >= 0; n-- {
		state = l.step(state, 0)
	}
	return state
}

// free tells the bytes that begin a character whatever else of its bytes come
// next; behind the others not all of them may.
var free = func() (t [256]bool) {
	for b := 0xc2; b < 0xf4; b++ {
		t[b] = b != 0xe0 && b != 0xed && b != 0xf0
	}
	return t
}()

// length is how many bytes a character has that begins with a byte; 1 if none
// does.
var length = func() (t [256]uint8) {
	for b := range t {
		t[b] = 1
		for n, first := range [...]int{2: 0xc2, 3: 0xe0, 4: 0xf0} {
			if n > 1 && b >= first && b <= 0xf4 {
				t[b] = uint8(n)
			}
		}
	}
	return t
}()

// Live is the least byte, from one on, that Step does not die of, or one before
// it; 256 if there is none. It keeps a walk from trying all.
func (l *levenshtein) Live(state, from int) int { return l.live(l, state, from) }

// live is Live for an automaton that dies of all that l dies of.
func (l *levenshtein) live(a Automaton, state, from int) int {
	if state>>pendingShift != 0 || a.Step(state, stranger) >= 0 {
		return from
	}
	for i, set := range l.firsts {
		set &^= 1<<max(0, min(64, from-64*i)) - 1
		for ; set != 0; set &= set - 1 {
			if b := i<<6 | bits.TrailingZeros64(set); a.Step(state, byte(b)) >= 0 {
				return b
			}
		}
	}
	return 256
}

// stranger is no character of any word.
const stranger = 0

// places is where a character stands in the word.
func (l *levenshtein) places(r rune) uint64 {
	if r < utf8.RuneSelf {
		return l.ascii[r]
	}
	for _, w := range l.wide {
		if w.r == r {
			return w.at
		}
	}
	return 0
}

func (l *levenshtein) Accept(state int) bool {
	if pending := state >> pendingShift; 0 < pending && pending < utf8.RuneSelf {
		state = l.skipped(state)
		return state >= 0 && l.cost(state) >= 0
	}
	for pending := state >> pendingShift; pending != 0; pending >>= 8 {
		if state = l.step(state&(1<<pendingShift-1), 0); state < 0 {
			return false
		}
	}
	return l.cost(state) >= 0
}

// cost is the errors of a word that ends in a state; -1 if it does not match.
func (l *levenshtein) cost(state int) int {
	left := l.size - state>>passedShift&(1<<passedShift-1)
	cost := l.u.cost[state&(1<<passedShift-1)]
	if left < 0 || left >= len(cost) {
		return -1
	}
	return int(cost[left])
}

// match is Pattern.Match.
func (l *levenshtein) match(word []byte) (cost int, ok bool) {
	state := l.Start()
	for at := 0; at < len(word); {
		if b := word[at]; b < utf8.RuneSelf {
			state = l.step(state, l.ascii[b])
			at++
		} else {
			r, size := utf8.DecodeRune(word[at:])
			state = l.step(state, l.places(r))
			at += size
		}
		if state < 0 {
			return 0, false
		}
	}
	cost = l.cost(state)
	return max(cost, 0), cost >= 0
}
