package fs

import (
	"context"
	iofs "io/fs"
	"iter"
	"maps"
	"slices"
	"sort"
)

// Static is a directory whose names are fixed. If one of its nodes is a
// ConfigFile it can be edited in place with any editor: see ConfigFile.
func Static(path uint64, nodes map[string]Node) Dir { return StaticAnd(path, nodes, nil) }

// StaticAnd is Static with files beside the fixed ones that come and go: more gives
// those that are there now, few and cheaply. It may be nil.
func StaticAnd(path uint64, nodes map[string]Node, more func() []Entry) Dir {
	s := &static{path: path, nodes: nodes, names: slices.Sorted(maps.Keys(nodes)), more: more}
	for _, n := range nodes {
		if _, ok := n.(*ConfigFile); ok {
			return newEditable(s)
		}
	}
	return s
}

// Hidden is a node that can be walked to in a Static but is not listed.
func Hidden(n Node) Node { return hidden{n} }

type hidden struct{ Node }

type static struct {
	path  uint64
	nodes map[string]Node
	names []string
	more  func() []Entry
}

func (s *static) Stat() Stat { return Stat{Path: s.path, Mode: 0o555} }

func (s *static) Lookup(_ context.Context, name string) (Node, error) {
	n, ok := s.nodes[name]
	if !ok && s.more != nil {
		for _, e := range s.more() {
			if e.Name == name {
				return e.Node, nil
			}
		}
	}
	if !ok {
		return nil, notExist(name)
	}
	if h, ok := n.(hidden); ok {
		return h.Node, nil
	}
	return n, nil
}

func (s *static) List(ctx context.Context, after string) iter.Seq2[Entry, error] {
	if s.more != nil {
		all := s.more()
		for e := range (&static{nodes: s.nodes, names: s.names}).List(ctx, "") {
			all = append(all, e)
		}
		return Sorted(all, after)
	}
	return func(yield func(Entry, error) bool) {
		i := sort.SearchStrings(s.names, after)
		for ; i < len(s.names); i++ {
			n := s.nodes[s.names[i]]
			if _, ok := n.(hidden); ok || s.names[i] == after {
				continue
			}
			if !yield(Entry{s.names[i], n}, nil) {
				return
			}
		}
	}
}

// Sorted lists entries, which it sorts, as Dir.List does: for directories
// small enough to be held whole.
func Sorted(entries []Entry, after string) iter.Seq2[Entry, error] {
	slices.SortFunc(entries, func(a, b Entry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if (after == "" || e.Name > after) && !yield(e, nil) {
				return
			}
		}
	}
}

// Func is a directory made of functions.
type Func struct {
	Path uint64
	Vers func() uint32 // may be nil: the names never change
	Look func(ctx context.Context, name string) (Node, error)
	Each func(ctx context.Context, after string) iter.Seq2[Entry, error]
}

// Stat gives a directory that all may read and nobody write.
func (d Func) Stat() Stat {
	st := Stat{Path: d.Path, Mode: 0o555}
	if d.Vers != nil {
		st.Vers = d.Vers()
	}
	return st
}

// Lookup calls d.Look.
func (d Func) Lookup(ctx context.Context, name string) (Node, error) { return d.Look(ctx, name) }

// List calls d.Each.
func (d Func) List(ctx context.Context, after string) iter.Seq2[Entry, error] {
	return d.Each(ctx, after)
}

// Hex is a directory of one folder for each number of that many hex digits,
// in lower case: "00" … "ff" for 2. Sub makes the folder of a prefix.
func Hex(path uint64, digits int, sub func(prefix string) Dir) Dir {
	return hex{path, digits, sub}
}

type hex struct {
	path   uint64
	digits int
	sub    func(prefix string) Dir
}

const hexDigits = "0123456789abcdef"

func (h hex) Stat() Stat { return Stat{Path: h.path, Mode: 0o555} }

func (h hex) Lookup(_ context.Context, name string) (Node, error) {
	if len(name) != h.digits {
		return nil, notExist(name)
	}
	for _, c := range name {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil, notExist(name)
		}
	}
	return h.sub(name), nil
}

func (h hex) List(_ context.Context, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		b := make([]byte, h.digits)
		for i := 0; i < 1<<(4*h.digits); i++ {
			for j := range b {
				b[j] = hexDigits[i>>(4*(h.digits-1-j))&15]
			}
			name := string(b)
			if name > after && !yield(Entry{name, h.sub(name)}, nil) {
				return
			}
		}
	}
}

// owned refuses whoever may not write to the directory or file st.
func owned(ctx context.Context, st Stat) error {
	if UserOf(ctx).May(st, MayWrite) != nil {
		return iofs.ErrPermission
	}
	return nil
}
