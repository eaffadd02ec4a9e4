package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"harvest/fs/ndb"
)

// MaxMembers bounds the members of a graph that is read.
const MaxMembers = 10_000

// String is the graph as text, a line each member and each edge:
//
//	topology epoch=7 k=2 degree=5
//	member name=tcp!a!5640/replica/papers
//	edge a=tcp!a!5640/replica/papers b=tcp!b!5640/replica/papers rtt=20ms bandwidth=1250000
//
// rtt and bandwidth, in bytes a second, are the link's when the graph was made.
func (g *Graph) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, ndb.Format(ndb.Pair{Key: "topology"}, ndb.Of("epoch", g.Epoch), ndb.Of("k", g.K), ndb.Of("degree", g.Degree)))
	for _, m := range g.Members {
		fmt.Fprintln(&b, ndb.Format(ndb.Pair{Key: "member"}, ndb.Of("name", m)))
	}
	for _, e := range g.Edges {
		fmt.Fprintln(&b, ndb.Format(ndb.Pair{Key: "edge"}, ndb.Of("a", e.A), ndb.Of("b", e.B),
			ndb.Of("rtt", e.Link.RTT), ndb.Of("bandwidth", strconv.FormatFloat(e.Link.Bandwidth, 'f', 0, 64))))
	}
	return b.String()
}

// Parse reads what String made. The order of lines is free but for the first;
// an error names line and column.
func Parse(text string) (*Graph, error) {
	lines, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	g := new(Graph)
	for i, e := range lines {
		switch first := e.First(); {
		case (first.Key == "topology") != (i == 0):
			return nil, e.Errorf(first, "one topology line is wanted, and first")
		case first.Key == "topology":
			err = g.readHead(e)
		case first.Key == "member":
			err = g.readMember(e)
		case first.Key == "edge":
			err = g.readEdge(e)
		default:
			err = e.Errorf(first, "%s: want member or edge", first.Key)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("topology: no text: %w", ErrInvalid)
	}
	return g, g.check()
}

func (g *Graph) readHead(e ndb.Entry) (err error) {
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "epoch":
			if g.Epoch, err = strconv.ParseUint(p.Value, 10, 64); err != nil {
				err = e.Errorf(p, "epoch %q: want a number", p.Value)
			}
		case "k":
			g.K, err = e.Int(p)
		case "degree":
			g.Degree, err = e.Int(p)
		default:
			err = e.Errorf(p, "%s: want epoch, k or degree", p.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Graph) readMember(e ndb.Entry) error {
	p, ok := e.Pair("name")
	if !ok || p.Value == "" || len(e.Pairs) != 2 {
		return e.Errorf(e.First(), "a member has a name=, and nothing else")
	}
	if len(g.Members) == MaxMembers {
		return e.Errorf(p, "more than %d members", MaxMembers)
	}
	g.Members = append(g.Members, p.Value)
	return nil
}

func (g *Graph) readEdge(e ndb.Entry) (err error) {
	if len(g.Edges) == MaxMembers*8 {
		return e.Errorf(e.First(), "more than %d edges", MaxMembers*8)
	}
	var edge Edge
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "a":
			edge.A = p.Value
		case "b":
			edge.B = p.Value
		case "rtt":
			edge.Link.RTT, err = e.Duration(p)
		case "bandwidth":
			if edge.Link.Bandwidth, err = strconv.ParseFloat(p.Value, 64); err != nil || !(edge.Link.Bandwidth >= 0 && edge.Link.Bandwidth <= 1e15) {
				err = e.Errorf(p, "bandwidth %q: want bytes a second", p.Value)
			}
		default:
			err = e.Errorf(p, "%s: want a, b, rtt or bandwidth", p.Key)
		}
		if err != nil {
			return err
		}
	}
	if edge.A > edge.B {
		edge.A, edge.B = edge.B, edge.A
	}
	g.Edges = append(g.Edges, edge)
	return nil
}

// check sorts what was read, and wants each name once and each edge between two.
func (g *Graph) check() error {
	slices.Sort(g.Members)
	for i := 1; i < len(g.Members); i++ {
		if g.Members[i] == g.Members[i-1] {
			return fmt.Errorf("topology: member %s: named twice: %w", g.Members[i], ErrInvalid)
		}
	}
	sortEdges(g.Edges)
	for i, e := range g.Edges {
		_, a := slices.BinarySearch(g.Members, e.A)
		_, b := slices.BinarySearch(g.Members, e.B)
		if !a || !b || e.A == e.B || i > 0 && g.Edges[i-1].A == e.A && g.Edges[i-1].B == e.B {
			return fmt.Errorf("topology: edge of %s and %s: want two members, joined once: %w", e.A, e.B, ErrInvalid)
		}
	}
	return nil
}
