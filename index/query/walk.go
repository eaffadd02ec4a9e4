package query

import (
	"slices"
	"strings"
)

// Walk calls visit for n and every node in it, in the order they are written,
// with the attribute the node is in, in lower case, and whether it is under a
// not. Where visit returns false, what is in the node is left out.
func Walk(n Node, visit func(n Node, attr string, not bool) bool) { walk(n, "", false, visit) }

func walk(n Node, attr string, not bool, visit func(Node, string, bool) bool) {
	if !visit(n, attr, not) {
		return
	}
	var in []Node
	switch n := n.(type) {
	case Attr:
		walk(n.Value, strings.ToLower(n.Name), not, visit)
	case Not:
		walk(n.Node, attr, true, visit)
	case And:
		in = n
	case Or:
		in = n
	case Bag:
		in = n
	case Near:
		in = n.Nodes
	}
	for _, n := range in {
		walk(n, attr, not, visit)
	}
}

// Map is n with what change gives in the place of each node that has no others in
// it; attr is as in Walk. Where change gives a nil, n's stays.
func Map(n Node, change func(n Node, attr string) Node) Node { return remake(n, "", change) }

func remake(n Node, attr string, change func(Node, string) Node) Node {
	list := func(in []Node) []Node {
		out := make([]Node, len(in))
		for i := range in {
			out[i] = remake(in[i], attr, change)
		}
		return out
	}
	switch n := n.(type) {
	case Attr:
		n.Value = remake(n.Value, strings.ToLower(n.Name), change)
		return n
	case Not:
		n.Node = remake(n.Node, attr, change)
		return n
	case And:
		return And(list(n))
	case Or:
		return Or(list(n))
	case Bag:
		return Bag(list(n))
	case Near:
		n.Nodes = list(n.Nodes)
		return n
	}
	if to := change(n, attr); to != nil {
		return to
	}
	return n
}

// Attributes are the names of attributes in a query, in order, each once.
func Attributes(n Node) (names []string) {
	Walk(n, func(n Node, _ string, _ bool) bool {
		if a, ok := n.(Attr); ok {
			names = append(names, strings.ToLower(a.Name))
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}
