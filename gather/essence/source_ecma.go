package essence

import (
	"bytes"
	"strings"
)

// A jsFrame is a bracket that is open in JavaScript or TypeScript.
type jsFrame struct {
	kind jsKind
	key  bool   // a key of an object, a member of a class may begin here
	fn   bool   // the body of a function
	decl int    // of const, let or var: what is being declared
	last []byte // of [ in a chain such as a.b[c], and of ( in x = ({…}): the name before
}

type jsKind byte

const (
	jsBlock   jsKind = iota // statements
	jsObject                // an object that has a name
	jsNoName                // an object that has none
	jsClass                 // a class or an interface
	jsEnum                  // an enum
	jsBracket               // ( or [
)

const (
	jsNothing = iota
	jsConst
	jsVar
	jsDone // and that added: its name has been, up to the next comma
)

// A jsScan goes through JavaScript or TypeScript word by word.
type jsScan struct {
	t      []byte
	i      int
	s      *symbols
	frames []jsFrame
	fns    int    // bodies of functions that are open
	prev   byte   // last byte of the token before; 'w' of a word, 'r' of return and the like, '>' of =>
	last   []byte // the last name of a chain such as a.b.c
	next   jsKind // of the block that the next brace opens, if told
	told   bool
	fnNext bool // that block is the body of a function
	line   bool // a line ended before this token
	proto  bool // last is of a prototype
	gave   int  // where the name that was declared last ends
	equal  int  // where the last = ends
}

// scanJS finds what JavaScript and TypeScript define. Objects count as what they
// are assigned to, and their keys then too.
func scanJS(_ *language, code []byte, s *symbols) {
	z := &jsScan{t: code, s: s, frames: []jsFrame{{kind: jsBlock, key: true}}, prev: ';'}
	for z.i < len(z.t) && !s.cut {
		c := z.t[z.i]
		switch {
		case c == '\n':
			if z.prev == '=' && z.i-z.equal > 2 {
				z.prev = '\'' // a string, which is blank here
			}
			z.line = true
			z.i++
			continue
		case blank(c):
			z.i++
			continue
		case nameBytes[c]:
			z.word()
		default:
			z.mark(c)
		}
		z.line = false
	}
}

func (z *jsScan) top() *jsFrame { return &z.frames[len(z.frames)-1] }

// after is the next byte that is no blank, from i.
func (z *jsScan) after(i int) (byte, int) {
	for i < len(z.t) && blank(z.t[i]) {
		i++
	}
	if i >= len(z.t) {
		return 0, i
	}
	return z.t[i], i
}

// word takes a word: a key where one may stand, else a part of a statement.
func (z *jsScan) word() {
	start := z.i
	for z.i < len(z.t) && nameBytes[z.t[z.i]] {
		z.i++
	}
	name := z.t[start:z.i]
	f := z.top()
	z.endField(f)
	switch {
	case f.key && f.kind != jsBlock && f.kind != jsBracket:
		z.member(f, name)
	default:
		z.statement(f, name)
	}
}

// endField ends a field that a line ended, without ;.
func (z *jsScan) endField(f *jsFrame) {
	if f.kind == jsClass && z.line && !f.key && strings.IndexByte("w)}]'", z.prev) >= 0 {
		f.key = true
	}
}

// member takes the key of an object, the member of a class or of an enum.
func (z *jsScan) member(f *jsFrame, name []byte) {
	// a key that was a string keeps what is not in a name
	for z.i < len(z.t) && z.t[z.i] == '-' && f.kind != jsClass {
		for z.i++; z.i < len(z.t) && nameBytes[z.t[z.i]]; z.i++ {
		}
	}
	name = z.t[z.i-len(name) : z.i]
	for i := z.i - len(name); i > 0 && (nameBytes[z.t[i-1]] || z.t[i-1] == '-'); i-- {
		name = z.t[i-1 : z.i]
	}
	c, at := z.after(z.i)
	z.prev = 'w'
	switch string(name) {
	case "static", "async", "get", "set", "public", "private", "protected", "readonly", "abstract", "override", "declare", "accessor":
		if nameBytes[c] || c == '[' || c == '#' || c == '*' || c == '{' {
			if c == '{' { // static { … }
				z.told, z.next, z.fnNext = true, jsBlock, true
			}
			return
		}
	}
	if c == '<' {
		at = z.skipAngles(at)
		c, at = z.after(at)
	}
	f.key = false
	switch {
	case f.kind == jsEnum:
		z.s.add(name, true)
	case c == '(':
		z.fnNext = true
		if f.kind != jsNoName {
			z.s.add(name, f.kind == jsObject)
		}
	case f.kind == jsObject && (c == ':' || c == ',' || c == '}'):
		z.s.add(name, true)
	case f.kind == jsClass && (c == '=' || c == ';' || c == ':' || c == '?' || c == '!' || c == '}' || bytes.IndexByte(z.t[z.i:at], '\n') >= 0):
		z.s.add(name, true)
	}
	z.last = name
	if c == '?' || c == '!' {
		z.i = at + 1
		if d, _ := z.after(z.i); d == '(' {
			z.fnNext = true
		}
	}
}

// skipAngles is the index past <…> at i, or i.
func (z *jsScan) skipAngles(i int) int {
	depth := 0
	for j := i; j < min(len(z.t), i+500); j++ {
		switch z.t[j] {
		case '<':
			depth++
		case '>':
			if z.t[j-1] == '=' {
				continue
			}
			if depth--; depth == 0 {
				return j + 1
			}
		case ';', '{':
			return i
		}
	}
	return i
}

// statement takes a word that is no key.
func (z *jsScan) statement(f *jsFrame, name []byte) {
	begins := strings.IndexByte(";{}", z.prev) >= 0 || z.line || z.prev == 'r' || z.prev == ')'
	was := z.prev
	z.prev = 'w'
	if was == '.' {
		z.proto = string(z.last) == "prototype"
		z.last = name
		return
	}
	z.proto = false
	if z.line && was != ',' && f.decl != jsNothing && f.kind == jsBlock && !(f.decl != jsDone && z.last == nil) && strings.IndexByte("w)}]'", was) >= 0 {
		f.decl = jsNothing
	}
	if (f.decl == jsConst || f.decl == jsVar) && f.kind != jsBracket {
		z.declare(f, name)
		return
	}
	switch w := string(name); w {
	case "function":
		z.function()
	case "class":
		z.named(jsClass)
	case "interface":
		if begins {
			z.named(jsClass)
		}
	case "enum":
		if begins {
			z.named(jsEnum)
		}
	case "namespace", "module":
		if c, _ := z.after(z.i); begins && nameBytes[c] {
			z.named(jsBlock)
		}
	case "type":
		z.typeName(begins)
	case "const":
		f.decl, z.last = jsConst, nil
	case "let", "var":
		f.decl, z.last = jsVar, nil
	case "export", "default", "declare", "abstract", "return", "typeof", "case", "new", "in", "of", "else", "do", "async", "await", "yield", "throw":
		z.prev = 'r'
		z.last = nil
	case "private", "public", "protected", "readonly":
		if f.kind == jsBracket {
			if c, at := z.after(z.i); nameBytes[c] {
				if n := firstName(z.t[at:]); string(n) != "readonly" {
					z.s.add(n, true)
				}
			}
		}
	default:
		z.last = name
	}
}

// declare takes the name that const, let or var gives.
func (z *jsScan) declare(f *jsFrame, name []byte) {
	if string(name) == "enum" { // const enum
		f.decl = jsNothing
		z.named(jsEnum)
		return
	}
	if f.decl == jsConst || z.fns == 0 {
		z.s.add(name, !z.isFunction())
	}
	z.last, z.gave = name, z.i
	f.decl += jsDone
}

// isFunction reports whether what follows the name that ends at i is a function
// that is assigned to it.
func (z *jsScan) isFunction() bool {
	c, at := z.after(z.i)
	if c != '=' {
		return false
	}
	_, at = z.after(at + 1)
	if bytes.HasPrefix(z.t[at:], []byte("async")) {
		_, at = z.after(at + 5)
	}
	if bytes.HasPrefix(z.t[at:], []byte("function")) || bytes.HasPrefix(z.t[at:], []byte("class")) {
		return true
	}
	line := z.t[at:min(len(z.t), at+200)]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	i := bytes.Index(line, []byte("=>"))
	return i >= 0 && !bytes.ContainsAny(line[:i], ";=.")
}

// function takes the name of a function, if it has one.
func (z *jsScan) function() {
	z.fnNext, z.told = true, false
	c, at := z.after(z.i)
	if c == '*' {
		c, at = z.after(at + 1)
	}
	if nameBytes[c] {
		name := firstName(z.t[at:])
		z.s.add(name, false)
		z.i = at + len(name)
	}
	z.last = nil
}

// named takes the name of a class, an interface, an enum, whose body follows.
func (z *jsScan) named(kind jsKind) {
	c, at := z.after(z.i)
	if nameBytes[c] {
		name := z.t[at : at+1]
		for i := at; i < len(z.t) && (nameBytes[z.t[i]] || kind == jsBlock && z.t[i] == '.'); i++ {
			name = z.t[at : i+1]
		}
		if string(name) != "extends" && string(name) != "implements" {
			z.s.add(name, false)
			z.i = at + len(name)
		}
	} else if c != '{' && kind != jsClass {
		return
	}
	z.told, z.next, z.fnNext = true, kind, false
	z.last = nil
}

// typeName takes the name of `type name = …`.
func (z *jsScan) typeName(begins bool) {
	c, at := z.after(z.i)
	if !begins || !nameBytes[c] {
		z.last = z.t[z.i-4 : z.i]
		return
	}
	name := firstName(z.t[at:])
	if c, _ := z.after(at + len(name)); c == '=' || c == '<' {
		z.s.add(name, false)
		z.i = at + len(name)
		z.last = nil
	}
}

// mark takes a byte that is no word.
func (z *jsScan) mark(c byte) {
	z.i++
	f := z.top()
	switch c {
	case '{':
		z.brace(f)
		return
	case '(', '[':
		z.bracket(f, c)
	case ')', ']', '}':
		z.pop(c)
	case ';':
		f.decl, z.last, z.told, z.fnNext = jsNothing, nil, false, false
		f.key = true
	case ',':
		switch {
		case f.decl >= jsDone:
			f.decl -= jsDone
		case f.kind == jsObject || f.kind == jsNoName || f.kind == jsEnum || f.kind == jsClass:
			f.key = true
		}
		z.last = nil
	case '=':
		z.equals()
		return
	case '.', ':':
		if c == ':' && f.kind == jsBlock && f.decl == jsNothing {
			z.last = nil
		}
	case '*', '#', '@':
		z.endField(f)
		z.prev = c
		return // before a key
	default:
		z.last = nil
	}
	z.prev = c
}

// bracket enters ( or [.
func (z *jsScan) bracket(f *jsFrame, c byte) {
	n := jsFrame{kind: jsBracket}
	if c == '[' {
		if z.endField(f); f.key && (f.kind == jsClass || f.kind == jsObject || f.kind == jsNoName) {
			f.key = false
			z.fnNext = true
			z.computed(f)
		} else if z.prev == 'w' || z.prev == ']' {
			n.last = z.last
		}
	} else if z.prev == '=' {
		n.last = z.last
	}
	if f.decl == jsConst || f.decl == jsVar {
		f.decl = jsNothing // a pattern
	}
	z.push(n)
}

// computed takes the member [name](…) or [a.name] = … of a class, as it is written.
func (z *jsScan) computed(f *jsFrame) {
	end := z.i
	for end < len(z.t) && (nameBytes[z.t[end]] || z.t[end] == '.') {
		end++
	}
	if f.kind != jsClass || end == z.i || end >= len(z.t) || z.t[end] != ']' {
		return
	}
	switch c, at := z.after(end + 1); {
	case c == '(':
		z.s.add(z.t[z.i-1:end+1], false)
	case c == '=' || c == ';' || bytes.IndexByte(z.t[end+1:at], '\n') >= 0:
		z.s.add(z.t[z.i-1:end+1], true)
	}
}

// equals takes an = : what is assigned a function, a class or an object is a
// name of it.
func (z *jsScan) equals() {
	if c := z.t[min(z.i, len(z.t)-1)]; c == '>' {
		z.i++
		z.prev, z.last = '>', nil
		z.fnNext, z.told = true, false
		return
	} else if c == '=' || z.prev == '=' || z.prev == '!' || z.prev == '<' || z.prev == '>' {
		z.prev, z.last = '=', nil
		return
	}
	z.prev, z.equal = '=', z.i
	if z.last == nil || string(z.last) == "exports" || string(z.last) == "prototype" {
		return
	}
	if k := z.top().kind; k != jsBlock {
		return
	}
	c, at := z.after(z.i)
	word := firstName(z.t[min(at, len(z.t)):])
	switch {
	case z.proto, string(word) == "function", string(word) == "class", string(word) == "async" && bytes.HasPrefix(bytes.TrimLeft(z.t[at+5:], " "), []byte("function")):
		z.s.add(z.last, false)
	case c == '{':
		if d, _ := z.after(at + 1); d != '}' {
			z.s.add(z.last, true)
		}
	}
}

// brace enters a block.
func (z *jsScan) brace(f *jsFrame) {
	n := jsFrame{kind: jsBlock, key: true}
	switch {
	case z.told:
		n.kind = z.next
	case z.fnNext && (z.prev == ')' || z.prev == '>' || z.prev == 'w' || z.prev == ']'):
		n.fn = true
	case z.prev == ':' && f.decl >= jsDone && string(bytes.TrimSpace(z.t[z.gave:z.i-1])) == ":": // const name: { its type }
		n.kind = jsClass
	case z.prev == '=' && f.kind != jsBracket && z.last != nil, z.prev == ':' && f.kind == jsObject, z.prev == '(' && f.last != nil:
		n.kind = jsObject
	case strings.IndexByte("=:(,[?|&r", z.prev) >= 0:
		n.kind = jsNoName
	}
	if z.fnNext && n.kind == jsNoName && f.kind != jsBracket { // a type before the body
		n.kind = jsNoName
	} else if n.kind != jsNoName {
		z.fnNext, z.told = false, false
	}
	if f.decl == jsConst || f.decl == jsVar {
		f.decl = jsNothing // a pattern
		n.kind, n.key = jsBracket, false
	}
	if n.fn {
		z.fns++
	}
	z.push(n)
	z.prev, z.last = '{', nil
}

func (z *jsScan) push(f jsFrame) {
	if len(z.frames) < 1000 {
		z.frames = append(z.frames, f)
	}
}

// pop leaves a block; a class's member ends with its body.
func (z *jsScan) pop(c byte) {
	if len(z.frames) == 1 {
		return
	}
	if z.top().fn {
		z.fns--
	}
	was, last := z.top().kind, z.top().last
	z.frames = z.frames[:len(z.frames)-1]
	if f := z.top(); c == '}' && f.kind == jsClass && was == jsBlock {
		f.key = true
	}
	if z.last = nil; c == ']' {
		z.last = last
	}
}
