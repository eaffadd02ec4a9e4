package pattern

import (
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// An expr is a regular expression of a set. It is tried with a deterministic
// automaton whose states are made when a text first comes to them and are kept
// for the texts that follow, as in RE2; a rune then costs a look into a table.
// One automaton for all expressions would have a state for each combination of
// what expressions are at, and hardly meet one twice; so each has its own, and
// only those are run whose words are in the text.
type expr struct {
	re     *regexp.Regexp
	begin  []int32 // words that all matches begin with one of; nil is not known
	pool   *pool
	dfa    atomic.Pointer[dfa] // nil until needed, and when dropped
	plain  atomic.Bool         // left to re
	failed atomic.Int32        // texts in turn that had too many states
}

// Bounds of automata. What is over them is searched by Go's regexp, as it would
// be without.
const (
	maxInst   = 4096     // of one program
	maxStates = 1024     // of one automaton
	maxBytes  = 1 << 20  // of one automaton
	maxPool   = 64 << 20 // of all automata of a set
	maxFailed = 3
)

// A pool counts what the automata of a set take, and drops them all when it is
// too much. A goroutine that is with one of them keeps it until it is done.
type pool struct {
	held atomic.Int64
	max  int64
	all  []*expr
}

func (p *pool) add(bytes int) {
	if p.held.Add(int64(bytes)) > p.max {
		p.held.Store(0)
		for _, e := range p.all {
			e.dfa.Store(nil)
		}
	}
}

// A dfa is the automaton of one expression. All but its states, which are only
// added to, stays as it is.
type dfa struct {
	prog  *syntax.Prog
	class *classes
	pool  *pool
	start [unknown]*state // by what is before; in it are the beginnings only
	ends  bool            // no match begins later than the text

	mu     sync.Mutex // guards what follows; transitions are read without
	states map[string]*state
	bytes  int
	stamp  []uint32 // of each instruction: the set it was last put in
	set    uint32   // the stamp of this set
	list   []uint32 // its members
	stack  []uint32
}

// A state is a set of places in the program, and what is before. Assertions that
// need the next rune are still in it, unanswered.
type state struct {
	next   []atomic.Pointer[state] // by class; nil is not known yet
	places []uint32
	before kind // other when no assertion asks
	asks   bool // has assertions
	flag   uint8
}

const (
	found uint8 = 1 << iota // a match has ended
	dead                    // none will
	idle                    // no match has begun
)

// newDFA makes the automaton of an expression, or reports that it is too large.
func newDFA(expr string, p *pool) (*dfa, bool) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, false
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxInst {
		return nil, false
	}
	class, ok := classesOf(prog)
	if !ok {
		return nil, false
	}
	d := &dfa{prog: prog, class: class, pool: p, states: make(map[string]*state), stamp: make([]uint32, len(prog.Inst))}
	bytes := 1024 + len(prog.Inst)*64 + 8*len(class.from)
	for _, in := range prog.Inst {
		bytes += 4 * len(in.Rune)
	}
	p.add(bytes)
	d.ends = true
	for k := range edge {
		d.clear()
		d.follow(uint32(prog.Start), k, unknown)
		d.ends = d.ends && len(d.list) == 0
	}
	for k := range d.start {
		d.clear()
		d.follow(uint32(prog.Start), kind(k), unknown)
		d.start[k] = d.intern(kind(k))
		d.start[k].flag |= idle
	}
	return d, true
}

func (d *dfa) clear() {
	d.set++
	d.list = d.list[:0]
}

// follow puts into the set what is reached from a place without a rune.
func (d *dfa) follow(place uint32, before, after kind) {
	d.stack = append(d.stack[:0], place)
	for len(d.stack) > 0 {
		at := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.stamp[at] == d.set {
			continue
		}
		d.stamp[at] = d.set
		switch in := &d.prog.Inst[at]; in.Op {
		case syntax.InstFail:
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Arg, in.Out)
		case syntax.InstNop, syntax.InstCapture:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			switch op := syntax.EmptyOp(in.Arg); {
			case after == unknown && op&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0:
				d.list = append(d.list, at)
			case holds(op, before, after):
				d.stack = append(d.stack, in.Out)
			}
		default:
			d.list = append(d.list, at)
		}
	}
}

// holds answers an assertion.
func holds(op syntax.EmptyOp, before, after kind) bool {
	switch op {
	case syntax.EmptyBeginText:
		return before == edge
	case syntax.EmptyBeginLine:
		return before == edge || before == newline
	case syntax.EmptyEndText:
		return after == edge
	case syntax.EmptyEndLine:
		return after == edge || after == newline
	case syntax.EmptyWordBoundary:
		return (before == inWord) != (after == inWord)
	}
	return (before == inWord) == (after == inWord) // EmptyNoWordBoundary
}

// intern gives the state of the set, or nil when there are too many.
func (d *dfa) intern(before kind) *state {
	s := new(state)
	for _, at := range d.list {
		switch d.prog.Inst[at].Op {
		case syntax.InstMatch:
			s.flag = found
		case syntax.InstEmptyWidth:
			s.asks, s.before = true, before
		}
	}
	if s.flag == found { // whatever else is in it
		d.list, s.asks, s.before = d.list[:0], false, other
	} else if len(d.list) == 0 && d.ends {
		s.flag = dead
	}
	slices.Sort(d.list)
	key := append(make([]byte, 0, 2+4*len(d.list)), byte(s.before), s.flag)
	for _, at := range d.list {
		key = binary.LittleEndian.AppendUint32(key, at)
	}
	if old := d.states[string(key)]; old != nil {
		return old
	}
	size := 200 + 8*d.class.n() + 8*len(d.list)
	if len(d.states) >= maxStates || d.bytes+size > maxBytes {
		return nil
	}
	d.bytes += size
	d.pool.add(size)
	s.places = slices.Clone(d.list)
	s.next = make([]atomic.Pointer[state], d.class.n())
	d.states[string(key)] = s
	return s
}

// step finds the state after s and a rune of a class, or nil when there are too many.
func (d *dfa) step(s *state, class int) *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	after, from := d.class.kind(class), s.places
	if s.asks {
		d.clear()
		for _, at := range s.places {
			d.follow(at, s.before, after)
		}
		from = slices.Clone(d.list)
	}
	d.clear()
	ended := false
	for _, at := range from {
		in := &d.prog.Inst[at]
		switch {
		case in.Op == syntax.InstMatch:
			ended = true
			d.list = append(d.list, at)
		case in.Op != syntax.InstEmptyWidth && class != d.class.end() && in.MatchRune(d.class.rune[class]):
			d.follow(in.Out, after, unknown)
		}
	}
	if !ended && class != d.class.end() {
		d.follow(uint32(d.prog.Start), after, unknown)
	}
	n := d.intern(after)
	if n != nil {
		s.next[class].Store(n)
	}
	return n
}

// automaton is that of e, made if it is not there; nil if e is to be left to Go's regexp.
func (e *expr) automaton() *dfa {
	if e.plain.Load() {
		return nil
	}
	d := e.dfa.Load()
	if d == nil {
		var ok bool
		if d, ok = newDFA(e.re.String(), e.pool); !ok {
			e.plain.Store(true)
			return nil
		}
		e.dfa.Store(d)
	}
	return d
}

// match reports whether text has a match of e. Those that near tells of are where
// it may begin.
func (e *expr) match(text []byte, near *near) bool {
	d := e.automaton()
	if d == nil {
		return e.re.Match(text)
	}
	yes, done := d.match(text, near)
	if done {
		if e.failed.Load() != 0 {
			e.failed.Store(0)
		}
		return yes
	}
	// Other texts may have filled it. But an expression that fills it with each
	// one is faster without.
	e.dfa.CompareAndSwap(d, nil)
	if e.failed.Add(1) >= maxFailed {
		e.plain.Store(true)
	}
	return e.re.Match(text)
}

// match reports whether text has a match, and false when there are too many states
// to tell.
func (d *dfa) match(text []byte, near *near) (yes, done bool) {
	s, until := d.start[edge], 0
	for i := 0; i < len(text); {
		if s.flag != 0 {
			if s.flag&(found|dead) != 0 {
				return s.flag&found != 0, true
			}
			if i >= until {
				at, end := near.after(text, i)
				if at == len(text) {
					return false, true
				}
				if until = end; at > i {
					i, s = at, d.start[kindBefore(text, at)]
				}
			}
		}
		var class uint8
		if c := text[i]; c < utf8.RuneSelf {
			class = d.class.ascii[c]
			i++
		} else {
			r, size := utf8.DecodeRune(text[i:])
			class = d.class.wide(r)
			i += size
		}
		n := s.next[class].Load()
		if n == nil {
			if n = d.step(s, int(class)); n == nil {
				return false, false
			}
		}
		s = n
	}
	if s.flag&(found|dead) != 0 {
		return s.flag&found != 0, true
	}
	if n := s.next[d.class.end()].Load(); n != nil {
		return n.flag&found != 0, true
	}
	n := d.step(s, d.class.end())
	return n != nil && n.flag&found != 0, n != nil
}
