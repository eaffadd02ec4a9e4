package soif

// Embed returns a view of member n of the object: what its Embed<n>- attributes
// say, with the prefix taken off, so that members of members are views of the
// view. Values and names are not copied. It has o's type and URL; ok is false
// when o has no such member.
func (o *Object) Embed(n int) (m Object, ok bool) { return Object{}, false }

// Embeds returns the numbers of the members of o, each once, in the order of
// the object.
func (o *Object) Embeds() []int { return nil }

// AddEmbed adds the attributes of m to o as those of its member n.
func (o *Object) AddEmbed(n int, m *Object) {}
