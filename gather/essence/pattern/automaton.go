package pattern

import "unicode/utf8"

// An automaton finds the words of a set in a text, by Aho and Corasick's method:
// a tree of the words, in which each state also knows the longest other one that
// ends like it, so that no byte is looked at twice. States are numbered by
// their depth. Those near the root, where nearly all of the time is spent, have
// a full row of transitions; the others have the tree's edges and go back along
// fail. For 10,000 phrases of 16 bytes that is some 2 MB instead of 20.
type automaton struct {
	class [256]uint8 // of the bytes that occur in words, from 1; 0 others
	n     int        // classes, 0 included
	dense []uint32   // rows of the first states
	rows  uint32     // how many
	from  []uint32   // edges of state s are from[s] to from[s+1]
	label []uint8    // of an edge, ascending in a state: a class
	to    []uint32   // of an edge
	fail  []uint32   // of a state
	word  []int32    // that ends at a state, or -1
	shown []uint32   // the longest state with a word that ends like this one, itself included; 0 none
}

// maxDense bounds the entries of dense rows: 1 MB.
const maxDense = 256 << 10

// newAutomaton makes one of words, which are sorted, different and not empty.
func newAutomaton(words []string) *automaton {
	a := &automaton{n: 1}
	var used [256]bool
	for _, w := range words {
		for i := range len(w) {
			used[w[i]] = true
		}
	}
	for c, u := range used {
		if u && a.n < 256 { // UTF-8 has no byte 255
			a.class[c] = uint8(a.n)
			a.n++
		}
	}
	a.grow(words)
	a.link()
	return a
}

// grow makes the tree, level by level: the words below a state are neighbours.
func (a *automaton) grow(words []string) {
	type state struct{ lo, hi, depth int }
	queue := []state{{0, len(words), 0}}
	for s := 0; s < len(queue); s++ {
		q := queue[s]
		a.from = append(a.from, uint32(len(a.to)))
		a.word = append(a.word, -1)
		if q.lo < q.hi && len(words[q.lo]) == q.depth {
			a.word[s] = int32(q.lo)
			q.lo++
		}
		for q.lo < q.hi {
			c, end := words[q.lo][q.depth], q.lo
			for end < q.hi && words[end][q.depth] == c {
				end++
			}
			a.label = append(a.label, a.class[c])
			a.to = append(a.to, uint32(len(queue)))
			queue = append(queue, state{q.lo, end, q.depth + 1})
			q.lo = end
		}
	}
	a.from = append(a.from, uint32(len(a.to)))
}

// link fills in fail, shown and the dense rows, in the order of the states: what
// a state goes back to is nearer to the root.
func (a *automaton) link() {
	states := len(a.word)
	a.fail, a.shown = make([]uint32, states), make([]uint32, states)
	rows := min(states, max(1, maxDense/a.n))
	a.dense = make([]uint32, rows*a.n)
	for s := range uint32(states) {
		if a.shown[s] = a.shown[a.fail[s]]; a.word[s] >= 0 {
			a.shown[s] = s
		}
		if s < uint32(rows) {
			row := a.dense[int(s)*a.n:][:a.n]
			if s > 0 {
				copy(row, a.dense[int(a.fail[s])*a.n:][:a.n])
			}
			for e := a.from[s]; e < a.from[s+1]; e++ {
				row[a.label[e]] = a.to[e]
			}
			a.rows = s + 1
		}
		for e := a.from[s]; e < a.from[s+1]; e++ {
			if s > 0 {
				a.fail[a.to[e]] = a.next(a.fail[s], a.label[e])
			}
		}
	}
}

// next is the state after one more byte, of class c.
func (a *automaton) next(s uint32, c uint8) uint32 {
	for s >= a.rows {
		for e, end := a.from[s], a.from[s+1]; e < end; e++ {
			if a.label[e] == c {
				return a.to[e]
			}
		}
		s = a.fail[s]
	}
	return a.dense[int(s)*a.n+int(c)]
}

// find calls found for each word of text that is not in seen yet, and puts it
// there. Each state with a word is dealt with once, so that words that end like
// others cost nothing.
func (a *automaton) find(text []byte, found func(word int32), seen bits) {
	a.scan(text, func(s uint32, _ int) {
		for s = a.shown[s]; s != 0 && !seen.has(a.word[s]); s = a.shown[a.fail[s]] {
			seen.set(a.word[s])
			found(a.word[s])
		}
	})
}

// scan calls show for each state with words that text comes to, and where.
func (a *automaton) scan(text []byte, show func(s uint32, end int)) {
	s, blank := a.next(0, a.class[' ']), true // a text begins as after a blank
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			b, letter := foldASCII(c)
			if !letter && blank {
				continue
			}
			blank = !letter
			if s = a.next(s, a.class[b]); a.shown[s] != 0 {
				show(s, i)
			}
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if r = fold(r); r == ' ' && blank {
			continue
		}
		blank = r == ' '
		var buf [utf8.UTFMax]byte
		for _, b := range utf8.AppendRune(buf[:0], r) {
			if s = a.next(s, a.class[b]); a.shown[s] != 0 {
				show(s, i)
			}
		}
	}
	if !blank {
		show(a.next(s, a.class[' ']), len(text))
	}
}
