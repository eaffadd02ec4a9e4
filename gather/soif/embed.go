package soif

import (
	"slices"
	"strconv"
)

// Embed returns a view of member n of the object: what its Embed<n>- attributes
// say, with the prefix taken off, so that members of members are views of the
// view. Values and names are not copied. It has o's type and URL; ok is false
// when o has no such member.
func (o *Object) Embed(n int) (m Object, ok bool) {
	m = Object{Type: o.Type, URL: o.URL}
	for _, a := range o.Attrs {
		if k, rest := embedded(a.Name); k == n && k > 0 {
			m.Attrs = append(m.Attrs, Attr{rest, a.Value})
		}
	}
	return m, len(m.Attrs) > 0
}

// Embeds returns the numbers of the members of o, each once, ascending.
func (o *Object) Embeds() []int {
	var all []int
	for _, a := range o.Attrs {
		if n, _ := embedded(a.Name); n > 0 && (len(all) == 0 || all[len(all)-1] != n) {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// AddEmbed adds the attributes of m to o as those of its member n, which counts
// from 1. The values are kept, not copied.
func (o *Object) AddEmbed(n int, m *Object) {
	prefix := "Embed" + strconv.Itoa(n) + "-"
	for _, a := range m.Attrs {
		o.Add(prefix+a.Name, a.Value)
	}
}

// Depth returns how many levels of Embed<n>- a name begins with.
func Depth(name string) int {
	depth := 0
	for {
		n, rest := embedded(name)
		if n == 0 {
			return depth
		}
		name = rest
		depth++
	}
}

// embedded splits Embed<n>-Rest. N is 0 if the name is not of that form, which
// asks for a number from 1 on without leading zeros and for a rest.
func embedded(name string) (n int, rest string) {
	const prefix = "Embed"
	if len(name) < len(prefix)+3 || !equalName(name[:len(prefix)], prefix) {
		return 0, ""
	}
	i := len(prefix)
	for ; i < len(name) && '0' <= name[i] && name[i] <= '9'; i++ {
		if n == 0 && name[i] == '0' || n > 1<<26 {
			return 0, ""
		}
		n = n*10 + int(name[i]-'0')
	}
	if n == 0 || i+1 >= len(name) || name[i] != '-' {
		return 0, ""
	}
	return n, name[i+1:]
}
