package essence

import (
	"bytes"
)

// # Main text
//
// A page is mostly what every page of its site has: menus, links, notices. Its
// main text is told by where running text stands thick: each line that is more
// than a label, and not all links, speaks for the element around it and, less,
// for those around that; so do their names and classes. The element that has the
// most said for it holds the main text, less the parts of it that are lists of
// links, or say of themselves that they are something else. The tree needed for
// that is one of elements that hold others, made from the tags as they pass.

// A node is an element that may hold the main text or be no part of it.
type node struct {
	parent  int32
	last    int32 // of the nodes in it; itself if there are none
	is      *element
	hint    hint
	aside   bool // is no main text, and neither is what is in it
	comment bool // is of others, who answer
	text    int32
	link    int32 // of the text, bytes in links
	running int32 // of the text, bytes in lines of running text
	holds   int32 // running, of what is aside too
	score   float32
}

// A textLine is a line of the page.
type textLine struct {
	start, end int32
	node       int32
	link       int32 // bytes in links
	does       elementFlag
	hint       hint
	main       bool
}

// A body is the page as main text is looked for in it.
type body struct {
	nodes   []node
	stack   []int32 // of open nodes
	lines   []textLine
	from    int // where the line now read begins
	does    elementFlag
	hint    hint
	inLink  *element // nil outside
	linkAt  int      // where the link, or what of it is in this line, begins
	link    int      // bytes in links of this line, before that
	hints   *hintCache
	chosenN int // bytes of lines that are main text
}

const (
	maxNodes = 20_000 // what is in later ones is in the one around them
	maxOpen  = 256    // nodes in nodes
	maxLines = 50_000 // later ones are part of the last
)

func (b *body) start() {
	b.nodes = append(b.nodes, node{})
	b.stack = append(b.stack, 0)
}

// open hears of the beginning of an element; at is the length of the text.
func (b *body) open(e *element, m *markup, at int) {
	if e.does&aLink != 0 {
		b.endLink(at)
		b.inLink, b.linkAt = e, at
		return
	}
	if e.does&(aBlock|aNode) == 0 {
		return
	}
	h := hint(0)
	if len(m.attrs) > 0 && e.does&(aNode|aParagraph|aHeading) != 0 {
		h = b.hintOf(m)
	}
	if e.does&aBlock != 0 && e.name != "br" {
		b.does, b.hint = e.does, h
	}
	if e.does&aNode != 0 {
		b.push(e, h)
	}
}

func (b *body) push(e *element, h hint) {
	if top := b.nodes[b.stack[len(b.stack)-1]].is; top == e && e.does&endsOwn != 0 {
		b.stack = b.stack[:len(b.stack)-1]
	}
	if len(b.nodes) == maxNodes || len(b.stack) == maxOpen {
		return
	}
	up := b.stack[len(b.stack)-1]
	b.nodes = append(b.nodes, node{parent: up, is: e, hint: h, comment: b.nodes[up].comment || h&hintComment != 0})
	b.stack = append(b.stack, int32(len(b.nodes)-1))
}

// end hears of the end of an element. One that is not open is none; those that
// are open in it end with it. What is open around the cell of a table does not
// end in it, but with the table.
func (b *body) end(e *element, at int) {
	if e.does&aLink != 0 {
		b.endLink(at)
		return
	}
	if e.does&aBlock != 0 {
		b.does, b.hint = 0, 0
	}
	if e.does&aNode == 0 {
		return
	}
	for i := len(b.stack) - 1; i > 0; i-- {
		is := b.nodes[b.stack[i]].is
		if is == e {
			b.stack = b.stack[:i]
			return
		}
		if is.does&aCell != 0 && e.name != "table" && e.does&aCell == 0 {
			return
		}
	}
}

// commented reports whether what is read now is what others have answered.
func (b *body) commented() bool { return b.nodes[b.stack[len(b.stack)-1]].comment }

func (b *body) endLink(at int) {
	if b.inLink != nil {
		b.link += max(at-b.linkAt, 0)
		b.inLink = nil
	}
}

// block takes the line that the text ends with.
func (b *body) block(text []byte) {
	if b.inLink != nil {
		b.link += max(len(text)-b.linkAt, 0)
		b.linkAt = len(text) + 1
	}
	l := textLine{start: int32(b.from), end: int32(len(text)), node: b.stack[len(b.stack)-1], link: int32(b.link), does: b.does, hint: b.hint}
	b.from, b.link = len(text)+1, 0
	if len(b.lines) == maxLines {
		b.lines[maxLines-1].end = l.end
		return
	}
	b.lines = append(b.lines, l)
}

// choose decides which lines are main text.
func (b *body) choose(text []byte) {
	b.outline()
	b.weigh(text)
	top := b.best()
	b.take(top, text)
}

// outline finds where each node ends, and which are aside. What a class says is
// not believed of a node with most of the page's running text in it.
func (b *body) outline() {
	for i := range b.lines {
		l := &b.lines[i]
		if size := l.end - l.start; l.running(size) {
			b.nodes[l.node].holds += size - l.link
		}
	}
	for i := len(b.nodes) - 1; i > 0; i-- {
		n := &b.nodes[i]
		p := &b.nodes[n.parent]
		n.last = max(n.last, int32(i))
		p.last = max(p.last, n.last)
		p.holds += n.holds
	}
	for i := 1; i < len(b.nodes); i++ {
		n := &b.nodes[i]
		doubt := n.holds*100 > b.nodes[0].holds*believe
		n.aside = b.nodes[n.parent].aside || n.is.does&aSide != 0 ||
			n.hint&hintAside != 0 && n.is.does&aMain == 0 && n.is.name != "body" && !doubt
	}
}

// believe is how much of a page's running text, in percent, may be in an element
// whose class says that it is no main text.
const believe = 40

// weigh adds what each line says for the nodes around it.
func (b *body) weigh(text []byte) {
	for i := range b.lines {
		l := &b.lines[i]
		n := &b.nodes[l.node]
		size := l.end - l.start
		n.text += size
		n.link += l.link
		if n.aside || l.hint&hintAside != 0 {
			continue
		}
		if !l.running(size) {
			continue
		}
		n.running += size - l.link
		s := 1 + min(float32(size-l.link)/100, 5) + min(float32(commas(text[l.start:l.end])), 8)
		n.score += s
		for up, part, j := n.parent, s/2, 0; j < 3 && up != b.nodes[up].parent; j++ {
			b.nodes[up].score += part
			part /= 2
			up = b.nodes[up].parent
		}
	}
	for i := len(b.nodes) - 1; i > 0; i-- {
		n := &b.nodes[i]
		p := &b.nodes[n.parent]
		p.text += n.text
		p.link += n.link
		p.running += n.running
	}
}

// running reports whether a line is one of running text.
func (l *textLine) running(size int32) bool {
	if l.does&aHeading != 0 {
		return false
	}
	least := int32(25)
	if l.does&(aParagraph|aPre) == 0 {
		least = 40
	}
	return size >= least && 2*l.link < size
}

func commas(b []byte) int {
	return bytes.Count(b, []byte(",")) + bytes.Count(b, []byte("，")) + bytes.Count(b, []byte("、"))
}

// best is the node that has the most said for it.
func (b *body) best() int {
	top, most := 0, float32(0)
	for i := 1; i < len(b.nodes); i++ {
		n := &b.nodes[i]
		if n.aside || n.score == 0 {
			continue
		}
		s := n.score
		switch {
		case n.hint&hintMain != 0:
			s += 25
		case n.is.does&aMain != 0:
			s += 15
		}
		s *= 1 - float32(n.link)/float32(max(n.text, 1))
		if s > most {
			top, most = i, s
		}
	}
	return b.widen(top)
}

// widen goes on to what is around a node where that has much more running text.
func (b *body) widen(top int) int {
	if top == 0 {
		return 0
	}
	for up := b.nodes[top].parent; up != 0 && b.nodes[up].is.name != "body"; up = b.nodes[up].parent {
		if b.nodes[up].running*10 >= b.nodes[top].running*14 {
			top = int(up)
		}
	}
	return top
}

// take marks the main text in a node.
func (b *body) take(top int, text []byte) {
	last := int(b.nodes[top].last)
	if top == 0 {
		last = len(b.nodes) - 1
	}
	for i := range b.lines {
		l := &b.lines[i]
		if int(l.node) < top || int(l.node) > last {
			continue
		}
		n := &b.nodes[l.node]
		size := l.end - l.start
		switch {
		case n.aside, l.hint&hintAside != 0, 2*l.link > size:
			continue
		case n.is != nil && n.link*2 > n.text:
			continue
		}
		l.main = true
		b.chosenN += int(size)
	}
}

// chosen is the main text, a line each line.
func (b *body) chosen(text []byte) []byte {
	out := make([]byte, 0, b.chosenN+len(b.lines))
	for _, l := range b.lines {
		if l.main {
			out = append(append(out, text[l.start:l.end]...), '\n')
		}
	}
	return bytes.TrimSpace(out)
}

// sample is a part of the main text that is long enough to tell its language by.
func (b *body) sample(text []byte) []byte {
	for i := range b.lines {
		if l := &b.lines[i]; l.main {
			return text[l.start:min(int(l.start)+2*maxRuns, len(text))]
		}
	}
	return text
}

// lead is the first line of main text that says something.
func (b *body) lead(text []byte) stretch {
	for _, l := range b.lines {
		if l.main && l.does&aHeading == 0 && letters(text[l.start:l.end], 60) {
			return stretch{int(l.start), int(l.end)}
		}
	}
	return stretch{}
}
