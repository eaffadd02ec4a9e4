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
