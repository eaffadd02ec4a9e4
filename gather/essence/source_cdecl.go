package essence

import "bytes"

// A where tells what a block holds.
type where byte

const (
	inFile where = iota
	inRecord
	inEnum
)

// A decl is what is known of the declaration being read.
type decl struct {
	words   int    // names and types so far
	last    []byte // name
	at      int    // where last stands, -1 if it is made
	fn      []byte // name before the first bracket
	record  bool   // struct, enum, class, ... stands in it
	enum    bool
	space   bool // namespace, or extern "C"
	tag     []byte
	typedef bool
	extern  bool
	pointer bool // fn is in (*fn)
	array   bool // [] has followed last: what names follow are macros
	parens  bool // brackets have followed fn
	value   bool // after =
	base    bool // after the : of a class or a constructor
	body    bool // a record's body has been
}

// word takes a name into a declaration.
func (z *cScan) word(d *decl, name []byte, in where) {
	if in == inEnum {
		if d.last == nil {
			d.last = name
		}
		return
	}
	if d.value || d.base && d.record || d.array && !d.parens && d.last != nil {
		return
	}
	if d.parens && (d.words <= 1 || upper(d.fn)) && z.cpp && (z.record[string(name)] || afterMacro[string(name)]) {
		*d = decl{} // what stood before was a macro that needs no ;
	}
	switch w := string(name); {
	case z.d && z.dWord(d, w):
	case w == "typedef" && z.cpp:
		d.typedef = true
	case w == "extern" && z.cpp:
		d.extern = true
	case z.skip[w]:
		if z.peek() == '(' { // noexcept may stand alone
			z.skipGroup()
		}
	case w == "operator" && z.plus:
		z.operator(d)
	case w == "template" && z.cpp && z.plus:
		z.angles()
	case (w == "using" || w == "friend" || w == "import" || w == "package") && (z.plus || z.methods):
		z.using(w)
		*d = decl{}
	case (w == "public" || w == "private" || w == "protected") && z.cpp && z.plus:
		if z.peek() == ':' {
			z.i++
			*d = decl{}
		}
	case z.record[w] && !d.parens:
		if w == "record" && d.words > 0 && z.peek() != 0 && !nameBytes[z.peek()] {
			d.last, d.at = name, z.i-len(name)
			return
		}
		d.record = true
		d.enum = d.enum || w == "enum"
		d.space = w == "namespace"
		d.tag = nil
	case z.methods && d.record && d.tag != nil && (w == "extends" || w == "implements" || w == "permits"):
		d.base = true
	case w == "default" && z.methods:
		d.value = d.parens
	case z.ignore[w]:
		if w != "const" && w != "static" && w != "return" {
			d.words++
		}
	default:
		if d.typedef && d.parens && !d.pointer { // a macro has made the type
			d.fn, d.parens = nil, false
		}
		d.words++
		d.last, d.at = name, z.i-len(name)
		if d.record && !d.body && (d.tag == nil || !d.base) && !d.space {
			d.tag = name
		}
		if d.space && d.tag == nil {
			d.tag = z.dotted(name)
			z.s.add(d.tag, false)
		}
	}
}

// dotted is the name that ends at i with the names that follow its dots, of the
// namespaces of C#.
func (z *cScan) dotted(name []byte) []byte {
	if z.cpp {
		return name
	}
	end := z.i
	for end < len(z.t) && (nameBytes[z.t[end]] || z.t[end] == '.') {
		end++
	}
	name = z.t[z.i-len(name) : end]
	z.i = end
	return name
}

// afterMacro are words that begin a declaration and end nothing.
var afterMacro = wordSet("typedef template static extern using inline constexpr virtual friend")

// upper reports whether a name is written as those of macros are.
func upper(name []byte) bool { return len(name) > 0 && bytes.Equal(name, bytes.ToUpper(name)) }

// using passes over what brings in names of elsewhere; `using a = b` is a type.
func (z *cScan) using(w string) {
	i := bytes.IndexByte(z.t[z.i:], ';')
	if i < 0 || i > 1000 {
		return
	}
	line := z.t[z.i : z.i+i]
	line = bytes.TrimLeft(line, " \t\r\n")
	name := firstName(line)
	alias := w == "using" && z.plus && bytes.HasPrefix(bytes.TrimLeft(line[len(name):], " \t\r\n"), []byte("="))
	if !alias && bytes.ContainsAny(line, "{(") {
		return // a friend's body, a using block
	}
	switch {
	case w == "package":
		z.s.add(bytes.TrimSpace(line), false)
	case alias, w == "using" && z.cpp && bytes.IndexByte(line, '=') >= 0:
		z.s.add(name, false)
	}
	z.i += i + 1
}

// operator takes an operator's name.
func (z *cScan) operator(d *decl) {
	i := z.i
	if i < len(z.t) && bytes.HasPrefix(bytes.TrimLeft(z.t[i:min(len(z.t), i+40)], " "), []byte("()")) {
		i += bytes.IndexByte(z.t[i:], ')') + 1
	}
	for i < len(z.t) && i < z.i+80 && z.t[i] != '(' && z.t[i] != ';' {
		i++
	}
	name := append([]byte("operator "), bytes.TrimSpace(z.t[z.i:i])...)
	z.i = i
	d.last, d.at = name, -1
	d.words++
}

// punctuation takes anything else into a declaration.
func (z *cScan) punctuation(d *decl, c byte, in where) {
	z.i++
	switch c {
	case ';':
		if in != inEnum {
			z.declarator(d, in)
		} else if d.last != nil && z.methods { // Java: members follow the constants
			z.s.add(d.last, true)
			*d = decl{}
			z.block(inRecord)
			return
		} else if z.methods {
			z.block(inRecord)
			return
		}
		*d = decl{}
	case ',':
		z.comma(d, in)
	case '(':
		z.paren(d, in)
	case '[':
		z.i--
		attr := d.words == 0 && d.last == nil
		z.skipGroup()
		d.array = d.array || z.cpp && !attr && !d.typedef
	case '=':
		if z.t[min(z.i, len(z.t)-1)] == '>' && z.methods { // C#: a body that is an expression
			z.i++
		}
		if d.fn != nil && d.parens && !d.pointer && z.plus && z.cpp { // = default, = 0
			d.extern = true
		}
		d.value = true
	case '{':
		z.brace(d, in)
	case ':':
		z.colon(d, in)
	case '<':
		if (z.plus || z.methods) && d.last != nil && !d.value {
			z.i--
			z.angles()
		}
	case '~':
		if z.plus && !d.value {
			if name := firstName(bytes.TrimLeft(z.t[z.i:], " ")); len(name) > 0 {
				z.i += bytes.Index(z.t[z.i:], name) + len(name)
				d.last, d.at = append([]byte("~"), name...), -1
				d.words += 2
			}
		}
	case '@':
		z.annotation(d)
	case '\\':
		z.i++
	}
}

// annotation passes over Java's @Name(...); @interface declares one.
func (z *cScan) annotation(d *decl) {
	name := firstName(z.t[z.i:])
	if string(name) == "interface" {
		return
	}
	z.i += len(name)
	for z.i < len(z.t) && z.t[z.i] == '.' {
		z.i++
		z.i += len(firstName(z.t[z.i:]))
	}
	if z.peek() == '(' {
		z.skipGroup()
	}
}

// comma ends a declarator, or an enumerator.
func (z *cScan) comma(d *decl, in where) {
	if in == inEnum {
		if d.last != nil {
			z.s.add(d.last, true)
		}
		*d = decl{}
		return
	}
	if d.base || d.record && !d.body && d.tag != nil && d.words == 1 {
		return
	}
	if d.parens && !d.pointer {
		return
	}
	z.declarator(d, in)
	*d = decl{words: max(d.words, 1), typedef: d.typedef, extern: d.extern, body: d.body, record: d.record}
}

// paren takes a group in brackets: parameters, or a declarator such as (*f).
func (z *cScan) paren(d *decl, in where) {
	z.i--
	if d.value || in == inEnum || d.space {
		z.skipGroup()
		return
	}
	start := z.i + 1
	z.skipGroup()
	group := z.t[start:max(start, z.i-1)]
	inner := bytes.TrimLeft(group, " \t\r\n")
	if z.pointerTo(d, inner) {
		return
	}
	if d.last == nil || d.pointer || d.array && !d.parens {
		return
	}
	if d.fn == nil || !d.parens || z.cpp && leadingMacro(d) && !d.base {
		d.fn = z.qualified(d)
	}
	d.parens = true
}

// qualified is the last name with the interface that it is a member of, in C#.
func (z *cScan) qualified(d *decl) []byte {
	i := d.at
	if z.cpp || !z.plus || z.d || i < 0 {
		return d.last
	}
	for i > 1 && z.t[i-1] == '.' && nameBytes[z.t[i-2]] {
		for i--; i > 0 && nameBytes[z.t[i-1]]; i-- {
		}
	}
	return z.t[i : d.at+len(d.last)]
}

// pointerTo takes a group such as (*f), (T::*f) or (f), after which come
// parameters.
func (z *cScan) pointerTo(d *decl, inner []byte) bool {
	if z.cpp && d.fn == nil {
		inner = afterScopes(inner)
	}
	switch {
	case d.fn != nil || len(inner) == 0:
		return false
	case (inner[0] == '*' || inner[0] == '&' || inner[0] == '^') && (d.words > 0 || d.body) && (z.peek() == '(' || z.peek() == '['), d.typedef && inner[0] == '*':
		if name := declared(inner); name != nil {
			d.fn, d.pointer = name, true
		}
		return true
	case z.cpp && d.words > 0 && z.peek() == '(' && len(firstName(inner)) == len(inner) && !upper(d.last): // int (f)(int)
		d.words++
		d.last, d.at = inner, -1
		return true
	}
	return false
}

// afterScopes is what follows the T:: of a pointer to a member.
func afterScopes(b []byte) []byte {
	for {
		n := len(firstName(b))
		if n == 0 || !bytes.HasPrefix(b[n:], []byte("::")) {
			return b
		}
		if b = b[n+2:]; len(b) > 0 && b[0] == '*' {
			return b
		}
	}
}

// leadingMacro reports whether the name before the brackets is that of a macro such
// as __printf(1, 2) or SEC("x"), which stands before what it is about.
func leadingMacro(d *decl) bool {
	return bytes.HasPrefix(d.fn, []byte("__")) || d.words > 2 && upper(d.fn) && !upper(d.last)
}

// declared is the name in a declarator such as *name[3] or *const name(int).
func declared(b []byte) []byte {
	var last []byte
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case nameBytes[c]:
			n := firstName(b[i:])
			if len(n) == 0 {
				return last
			}
			i += len(n)
			if string(n) != "const" && string(n) != "volatile" {
				last = n
			}
		case c == '*' || c == '&' || c == '^' || c == '(' || blank(c):
			i++
		default:
			return last
		}
	}
	return last
}

// brace takes the block that a declaration opens.
func (z *cScan) brace(d *decl, in where) {
	switch {
	case in == inEnum:
		z.i--
		z.skipGroup()
	case z.d && d.words == 0 && d.last == nil && !d.value && !d.record: // under a condition
		z.block(in)
		z.i++
		*d = decl{}
	case d.value:
		z.i--
		z.skipGroup()
		if d.parens && !d.pointer && z.methods {
			*d = decl{}
		}
	case d.record && !d.body && (!d.parens || z.methods):
		z.recordBody(d, in)
	case d.parens && d.base && z.plus && nameBytes[z.before(z.i-1)]: // a(b), c{d} {
		z.i--
		z.skipGroup()
	case d.parens || d.fn != nil && d.pointer:
		z.s.add(d.fn, false)
		z.skipBraces()
		z.i++
		*d = decl{}
	case d.extern && d.words == 0:
		z.block(inFile)
		z.i++
		*d = decl{}
	case z.methods && d.words > 1 && d.last != nil: // a property
		z.s.add(d.last, true)
		z.skipBraces()
		z.i++
		if z.peek() == '=' {
			d.last = nil
			return
		}
		*d = decl{}
	case z.plus && d.words > 1:
		z.i--
		z.skipGroup()
	default:
		z.skipBraces()
		z.i++
		*d = decl{}
	}
}

// recordBody takes the members of a struct, a class, an enum, a namespace.
func (z *cScan) recordBody(d *decl, in where) {
	if !d.space {
		z.s.add(d.tag, false)
	}
	switch {
	case d.enum:
		z.block(inEnum)
	case d.space:
		z.block(inFile)
	default:
		z.block(inRecord)
	}
	z.i++
	if d.space || z.methods {
		*d = decl{}
		return
	}
	*d = decl{words: 1, typedef: d.typedef, extern: d.extern, body: true, record: true}
}

// before is the last byte before i that is no blank.
func (z *cScan) before(i int) byte {
	for i--; i >= 0; i-- {
		if !blank(z.t[i]) {
			return z.t[i]
		}
	}
	return 0
}

// colon takes a : in a declaration.
func (z *cScan) colon(d *decl, in where) {
	if z.i < len(z.t) && z.t[z.i] == ':' {
		z.i++
		if d.record && !d.base {
			d.tag = nil
		}
		return
	}
	switch {
	case d.record && !d.body, d.parens && z.plus:
		d.base = true
	case in == inRecord && (d.words > 1 || d.body): // a bit-field
		d.value = true
	case in == inRecord && d.words == 1 && d.last != nil && z.cpp && !z.plus:
		d.value = true
	case d.words <= 1 && z.plus: // a label such as signals:
		*d = decl{}
	}
}

// declarator keeps the name that a declarator gives.
func (z *cScan) declarator(d *decl, in where) {
	switch {
	case d.typedef:
		if d.fn != nil {
			z.s.add(d.fn, false)
		} else if d.words > 1 || d.body {
			z.s.add(d.last, false)
		}
	case d.extern && z.cpp && !d.value:
	case d.record && !d.body && d.words <= 1 && !z.methods: // struct x;
	case d.parens && !d.pointer:
		if z.methods && !d.value && d.fn != nil && (d.words > 1 || in == inRecord) {
			z.s.add(d.fn, false)
		} else if z.methods && d.value && d.fn != nil && in == inRecord {
			z.s.add(d.fn, false)
		}
	case d.pointer:
		z.s.add(d.fn, true)
	case d.last != nil && (d.words > 1 || d.body):
		z.s.add(d.last, true)
	}
}
