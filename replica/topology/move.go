package topology

// A move is one change of a graph, small enough to be taken back.
type move struct {
	parted, joined [][2]int
}

func (m move) do(a *adjacency) {
	for _, e := range m.parted {
		a.part(e[0], e[1])
	}
	for _, e := range m.joined {
		a.join(e[0], e[1])
	}
}

func (m move) undo(a *adjacency) { move{m.joined, m.parted}.do(a) }

// draw draws a move by lot: an edge less, an edge more, an edge that gets
// another end, or two edges that exchange theirs, by which no member has more
// neighbours than before.
func (s *search) draw() (m move, ok bool) {
	n := len(s.a.near)
	a, b := s.r.IntN(n), s.r.IntN(n)
	switch kind := s.r.IntN(8); {
	case kind < 2:
		return s.less(a)
	case kind < 4:
		return s.more(a, b)
	case kind < 7:
		return s.another(a, b)
	}
	return s.exchange(a, b)
}

func (s *search) neighbor(a int) int { return s.a.near[a][s.r.IntN(len(s.a.near[a]))] }

func (s *search) less(a int) (m move, ok bool) {
	b := s.neighbor(a)
	if min(len(s.a.near[a]), len(s.a.near[b])) <= s.o.K {
		return m, false
	}
	return move{parted: [][2]int{{a, b}}}, true
}

func (s *search) more(a, b int) (m move, ok bool) {
	if a == b || s.full(a) || s.full(b) || s.a.joined(a, b) {
		return m, false
	}
	return move{joined: [][2]int{{a, b}}}, true
}

func (s *search) another(a, b int) (m move, ok bool) {
	was := s.neighbor(a)
	if a == b || s.full(b) || s.a.joined(a, b) || len(s.a.near[was]) <= s.o.K {
		return m, false
	}
	return move{parted: [][2]int{{a, was}}, joined: [][2]int{{a, b}}}, true
}

func (s *search) exchange(a, b int) (m move, ok bool) {
	c, d := s.neighbor(a), s.neighbor(b)
	if a == b || a == d || c == b || c == d || s.a.joined(a, d) || s.a.joined(b, c) {
		return m, false
	}
	return move{parted: [][2]int{{a, c}, {b, d}}, joined: [][2]int{{a, d}, {b, c}}}, true
}

func (s *search) full(a int) bool { return len(s.a.near[a]) >= s.o.Degree }
