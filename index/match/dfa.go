package match

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// A dfa runs an nfa with states it has met before looked up in a table. What
// it knows stays below its limit: when that is reached it forgets everything
// but the state it is in, or, if keep is set, goes on to the state unsure,
// which accepts all.
//
// States are numbered in steps of the width of the table, so that a state plus
// a class is where the next state stands: below 0 if there is something to do
// about it, which keeps all tests but one out of the loop over the text.
type dfa struct {
	n      *nfa
	search bool // a match may begin anywhere
	keep   bool
	limit  int

	width int
	table []int32 // unknown, or a state, or ^state if a match may end in it
	info  []info  // by state/width
	sets  []uint64
	ids   map[string]int32
	key   []byte
	size  int
	times int // that it forgot all

	a, b []uint64 // room for states
	init []uint64 // what a match begins with, closed, where that is always the same
	all  [kinds]int32
}

// info is what is known of a state beside its set.
type info struct {
	before kind
	prev   uint16      // class of the last character, if a swap is under way
	accept [kinds]int8 // by the kind that follows: the cost, -1 none
}

const (
	unknown  = -1 << 31
	dead     = 0 // the state nothing follows on
	dfaLimit = 8 << 20
)

func newDFA(n *nfa, search, keep bool) *dfa {
	d := &dfa{n: n, search: search, keep: keep, limit: dfaLimit, width: n.class.len()}
	d.a, d.b = make([]uint64, n.rows*n.w), make([]uint64, n.rows*n.w)
	if !n.context {
		d.init = make([]uint64, n.rows*n.w)
		n.inject(d.init)
		n.close(d.init, n.way(plain, plain))
	}
	d.forget()
	return d
}

// forget empties the table, but for the dead state and unsure.
func (d *dfa) forget() {
	d.table, d.info, d.sets = d.table[:0], d.info[:0], d.sets[:0]
	d.ids = map[string]int32{}
	d.size = 0
	d.times++
	for k := range d.all {
		d.all[k] = unknown
	}
	d.add(info{accept: [kinds]int8{-1, -1, -1, -1, -1}}, make([]uint64, len(d.a)))
	for i := range d.width {
		d.table[i] = dead
	}
	d.table[multi] = unknown
	if d.keep {
		d.add(info{}, make([]uint64, len(d.a)))
		for i := range d.width {
			d.table[d.width+i] = ^d.unsure()
		}
	}
}

func (d *dfa) unsure() int32 { return int32(d.width) }

func (d *dfa) add(in info, set []uint64) int32 {
	id := int32(len(d.info) * d.width)
	d.info = append(d.info, in)
	d.sets = append(d.sets, set...)
	for range d.width {
		d.table = append(d.table, unknown)
	}
	d.size += 4*d.width + 8*len(set) + 100
	return id
}

// start is the state in which a match begins after a character of a kind: in
// it only, or there and later.
func (d *dfa) start(before kind) int32 {
	if d.all[before] != unknown {
		return d.all[before]
	}
	clear(d.b)
	if !d.search && d.n.begins(before) {
		d.n.inject(d.b)
		if d.init != nil {
			copy(d.b, d.init)
		}
	}
	id := d.intern(d.b, before, 0)
	d.all[before] = id
	return id
}

// intern is the state of a set, which is closed if there is no context.
func (d *dfa) intern(set []uint64, before kind, prev int) int32 {
	n := d.n
	if !n.context {
		before = plain
	}
	if swaps := set[min((n.k+1)*n.w, len(set)):]; !slices.ContainsFunc(swaps, func(x uint64) bool { return x != 0 }) {
		prev = 0
	}
	d.key = append(d.key[:0], byte(before), byte(prev), byte(prev>>8))
	any := uint64(0)
	for _, x := range set {
		d.key = binary.LittleEndian.AppendUint64(d.key, x)
		any |= x
	}
	if any == 0 && !d.search {
		return dead
	}
	if id, ok := d.ids[string(d.key)]; ok {
		return id
	}
	if d.size > d.limit {
		if d.keep {
			return d.unsure()
		}
		d.forget()
	}
	id := d.add(info{before, uint16(prev), d.accepts(set, before)}, set)
	d.ids[string(d.key)] = id
	d.size += len(d.key) + 50
	return id
}

// accepts is the cost at which a match may end, by what follows.
func (d *dfa) accepts(set []uint64, before kind) (cost [kinds]int8) {
	for after := range kinds {
		if after > 0 && !d.n.context {
			cost[after] = cost[0]
			continue
		}
		cost[after] = -1
		if !d.n.ends(after) {
			continue
		}
		w := d.n.way(before, after)
		cost[after] = int8(d.n.accept(d.ready(set, before, w), w))
	}
	return cost
}

// ready is a set with what may begin there, closed, in d.a or as it is.
func (d *dfa) ready(set []uint64, before kind, w *ways) []uint64 {
	if d.init != nil {
		if !d.search {
			return set
		}
		for i, x := range set {
			d.a[i] = x | d.init[i]
		}
		return d.a
	}
	copy(d.a, set)
	if d.search && d.n.begins(before) {
		d.n.inject(d.a)
	}
	d.n.close(d.a, w)
	return d.a
}

// next finds the state after a character of class c and notes it. It may
// forget all states but the one it gives.
func (d *dfa) next(state int32, c int) int32 {
	if e := d.table[int(state)+c]; e != unknown {
		return max(e, ^e)
	}
	n, i := d.n, int(state)/d.width
	in := d.info[i]
	after := n.class.kind[c]
	w := n.way(in.before, after)
	src := d.ready(d.sets[i*len(d.a):(i+1)*len(d.a)], in.before, w)
	n.step(d.b, src, w, int(in.prev), c)
	if !n.context {
		n.close(d.b, w)
	}
	times := d.times
	to := d.intern(d.b, after, c)
	if d.times == times { // else state is forgotten
		e := to
		if d.may(to) {
			e = ^to
		}
		d.table[int(state)+c] = e
	}
	return to
}

// may tells whether a match may end in a state.
func (d *dfa) may(state int32) bool {
	a := &d.info[int(state)/d.width].accept
	return a[0] >= 0 || a[1] >= 0 || a[2] >= 0 || a[3] >= 0 || a[4] >= 0
}

// cost is the cost at which a match ends in a state before a kind; -1 for none.
func (d *dfa) cost(state int32, after kind) int {
	return int(d.info[int(state)/d.width].accept[after])
}

// first reads text from a place on and stops where it finds the first end of a
// match, or at the end of the text or in the dead state; then ok is false.
func (d *dfa) first(state int32, text []byte, at int) (_ int32, end int, ok bool) {
	if d.may(state) && d.cost(state, kindAfter(text, at)) >= 0 {
		return state, at, true
	}
	for at < len(text) {
		class, table := &d.n.class.bytes, d.table
		e := state
		for at < len(text) {
			e = table[int(state)+int(class[text[at]])]
			if e <= dead {
				break
			}
			state = e
			at++
		}
		if at >= len(text) {
			break
		}
		if e == dead {
			return dead, at, false
		}
		state, at = d.read(state, text, at)
		if state == dead {
			return dead, at, false
		}
		if d.may(state) && d.cost(state, kindAfter(text, at)) >= 0 {
			return state, at, true
		}
	}
	return state, at, false
}

// read reads one character.
func (d *dfa) read(state int32, text []byte, at int) (int32, int) {
	if b := text[at]; b < utf8.RuneSelf {
		return d.next(state, int(d.n.class.bytes[b])), at + 1
	}
	r, size := utf8.DecodeRune(text[at:])
	return d.next(state, d.n.class.class(r)), at + size
}

// readBack reads the character before a place.
func (d *dfa) readBack(state int32, text []byte, at int) (int32, int) {
	if b := text[at-1]; b < utf8.RuneSelf {
		return d.next(state, int(d.n.class.bytes[b])), at - 1
	}
	r, size := utf8.DecodeLastRune(text[:at])
	return d.next(state, d.n.class.class(r)), at - size
}

// move is the state of another dfa of the same nfa in this one, after a
// character of a kind; with a match that begins there if begin is set.
func (d *dfa) move(from *dfa, state int32, before kind, begin bool) int32 {
	i, n := int(state)/from.width, len(d.b)
	copy(d.b, from.sets[i*n:(i+1)*n])
	switch {
	case begin && d.init != nil:
		for j, x := range d.init {
			d.b[j] |= x
		}
	case begin && d.n.begins(before):
		d.n.inject(d.b)
	}
	return d.intern(d.b, before, int(from.info[i].prev))
}
