package essence

import "bytes"

// A dialect is what one language of the C family has that others have not.
type dialect struct {
	cpp     bool // a preprocessor
	plus    bool // classes, namespaces, templates
	methods bool // what is declared without a body counts: Java, C#
	record  map[string]bool
	skip    map[string]bool // words whose brackets are passed over
	ignore  map[string]bool // words that are never names
}

func wordSet(words string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range bytes.Fields([]byte(words)) {
		m[string(w)] = true
	}
	return m
}

var (
	dialectC = &dialect{cpp: true, record: wordSet("struct union enum"),
		skip:   wordSet("__attribute__ __attribute __declspec _Alignas __asm__ asm __asm typeof __typeof__ _Static_assert static_assert"),
		ignore: wordSet("const volatile static inline register restrict __restrict __inline __inline__ __extension__ auto if else while for do switch return sizeof goto case default break continue signed unsigned int char long short void float double")}
	dialectCpp = &dialect{cpp: true, plus: true, record: wordSet("struct union enum class namespace"),
		skip:   wordSet("__attribute__ __attribute __declspec alignas __asm__ asm decltype noexcept throw requires typeof __typeof__ static_assert explicit"),
		ignore: wordSet("const volatile static inline register restrict __restrict __inline __extension__ auto if else while for do switch return sizeof goto case default break continue signed unsigned int char long short void float double bool constexpr virtual mutable override final noexcept try catch new delete this public private protected")}
	dialectJava = &dialect{methods: true, record: wordSet("class interface enum record"),
		ignore: wordSet("if else while for do switch return case default break continue new throw try catch finally synchronized static final public private protected abstract native transient volatile int char long short void float double boolean byte super this")}
	dialectCSharp = &dialect{methods: true, plus: true, record: wordSet("class interface enum record struct namespace"),
		skip:   wordSet("where"),
		ignore: wordSet("if else while for do switch return case default break continue new throw try catch finally lock static readonly public private protected internal abstract virtual override sealed extern const int char long short void float double bool byte string object base this get set using ref out in params async await")}
)

// A cScan goes through masked code of the C family by declarations.
type cScan struct {
	*dialect
	t     []byte
	i     int
	s     *symbols
	conds []cond // #if that are open
	depth int    // blocks in blocks
}

// A cond is an #if: where the code stood before it.
type cond struct{ braces int }

// In masked code, directives become these, a byte each: which branch is read
// depends on what it interrupts.
const (
	ifMark    = 1
	elseMark  = 2
	endifMark = 3
)

const maxBlocks = 100

func scanC(l *language, code []byte, s *symbols)      { runC(dialectC, code, s) }
func scanCpp(l *language, code []byte, s *symbols)    { runC(dialectCpp, code, s) }
func scanJava(l *language, code []byte, s *symbols)   { runC(dialectJava, code, s) }
func scanCSharp(l *language, code []byte, s *symbols) { runC(dialectCSharp, code, s) }

// runC finds what code declares. It changes code: directives are taken out.
func runC(d *dialect, code []byte, s *symbols) {
	z := &cScan{dialect: d, t: code, s: s}
	z.directives()
	for z.i < len(z.t) && !s.cut {
		z.block(inFile)
		if z.i < len(z.t) { // a bracket too many
			z.i++
		}
	}
}

// directives takes the preprocessor's lines out, the names they define kept.
func (z *cScan) directives() {
	dead := 0 // depth of #if in an #if 0
	for i := 0; i < len(z.t); {
		end := bytes.IndexByte(z.t[i:], '\n')
		if end < 0 {
			end = len(z.t)
		} else {
			end += i
		}
		j := i
		for j < end && (z.t[j] == ' ' || z.t[j] == '\t') {
			j++
		}
		if j == end || z.t[j] != '#' {
			if dead > 0 {
				fillBlank(z.t[i:end])
			}
			i = end + 1
			continue
		}
		for z.cpp && end < len(z.t) && end > j && (z.t[end-1] == '\\' || z.t[end-1] == '\r' && z.t[end-2] == '\\') {
			n := bytes.IndexByte(z.t[end+1:], '\n')
			if n < 0 {
				end = len(z.t)
			} else {
				end += 1 + n
			}
		}
		dead = z.directive(j, z.t[j+1:end], dead)
		i = end + 1
	}
}

func (z *cScan) directive(at int, line []byte, dead int) int {
	text := bytes.TrimLeft(line, " \t")
	word := firstWord(text)
	arg := bytes.TrimLeft(text[len(word):], " \t")
	var mark byte
	switch string(word) {
	case "define":
		if z.cpp {
			z.s.add(firstName(arg), !bytes.HasPrefix(arg[len(firstName(arg)):], []byte("(")))
		}
	case "if", "ifdef", "ifndef":
		if dead > 0 {
			dead++
		} else if string(word) == "if" && string(bytes.TrimSpace(arg)) == "0" {
			dead = 1
		} else {
			mark = ifMark
		}
	case "else", "elif":
		if dead == 1 {
			dead, mark = 0, ifMark
		} else if dead == 0 {
			mark = elseMark
		}
	case "endif":
		if dead > 0 {
			dead--
		} else {
			mark = endifMark
		}
	}
	fillBlank(line)
	z.t[at] = ' '
	if mark != 0 {
		z.t[at] = mark
	}
	return dead
}

func fillBlank(b []byte) {
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
}

// firstName is the name that text begins with.
func firstName(text []byte) []byte {
	i := 0
	for i < len(text) && nameBytes[text[i]] {
		i++
	}
	if i > 0 && text[0] >= '0' && text[0] <= '9' {
		i = 0
	}
	return text[:i]
}

var nameBytes = func() (t [256]bool) {
	t = wordBytes
	t['$'] = true
	return t
}()

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
	fn      []byte // name before the first bracket
	record  bool   // struct, enum, class, ... stands in it
	enum    bool
	space   bool // namespace, or extern "C"
	tag     []byte
	typedef bool
	extern  bool
	pointer bool // fn is in (*fn)
	parens  bool // brackets have followed fn
	value   bool // after =
	base    bool // after the : of a class or a constructor
	body    bool // a record's body has been
}

// block reads declarations until the bracket that ends the block.
func (z *cScan) block(in where) {
	if z.depth++; z.depth > maxBlocks {
		z.skipBraces()
		z.depth--
		return
	}
	defer func() { z.depth-- }()
	d := decl{}
	for z.i < len(z.t) && !z.s.cut {
		c := z.t[z.i]
		switch {
		case nameBytes[c]:
			name := firstName(z.t[z.i:])
			if len(name) == 0 {
				z.number()
				continue
			}
			z.i += len(name)
			z.word(&d, name, in)
		case c == '}':
			if in == inEnum && d.last != nil {
				z.s.add(d.last, true)
			} else if in == inRecord || in == inFile {
				z.declarator(&d, in)
			}
			return
		case c == ifMark, c == elseMark, c == endifMark:
			z.i++
			if c == elseMark && (d.words > 0 || d.record) {
				z.skipBranch()
			}
		default:
			z.punctuation(&d, c, in)
		}
	}
}

func (z *cScan) number() {
	for z.i < len(z.t) && (nameBytes[z.t[z.i]] || z.t[z.i] == '.') {
		z.i++
	}
}

// word takes a name into a declaration.
func (z *cScan) word(d *decl, name []byte, in where) {
	if in == inEnum {
		if d.last == nil {
			d.last = name
		}
		return
	}
	if d.value || d.base && d.record {
		return
	}
	if d.parens && (d.words <= 1 || upper(d.fn)) && z.cpp && (z.record[string(name)] || afterMacro[string(name)]) {
		*d = decl{} // what stood before was a macro that needs no ;
	}
	switch w := string(name); {
	case w == "typedef" && z.cpp:
		d.typedef = true
	case w == "extern" && z.cpp:
		d.extern = true
	case z.skip[w]:
		z.skipGroup()
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
			d.last = name
			return
		}
		d.record = true
		d.enum = d.enum || w == "enum"
		d.space = w == "namespace"
		d.tag = nil
	case w == "default" && z.methods:
		d.value = d.parens
	case z.ignore[w]:
		if w != "const" && w != "static" && w != "return" {
			d.words++
		}
	default:
		d.words++
		d.last = name
		if d.record && !d.body && (d.tag == nil || !d.base) && !d.space {
			d.tag = name
		}
		if d.space && d.tag == nil {
			d.tag = name
			z.s.add(name, false)
		}
	}
}

// afterMacro are words that begin a declaration and end nothing.
var afterMacro = wordSet("typedef template static extern using inline constexpr virtual friend")

// upper reports whether a name is written as those of macros are.
func upper(name []byte) bool { return len(name) > 0 && bytes.Equal(name, bytes.ToUpper(name)) }

// peek is the next byte that is no blank.
func (z *cScan) peek() byte {
	for i := z.i; i < len(z.t); i++ {
		if !blank(z.t[i]) && z.t[i] > endifMark {
			return z.t[i]
		}
	}
	return 0
}

// using passes over what brings in names of elsewhere; `using a = b` is a type.
func (z *cScan) using(w string) {
	i := bytes.IndexByte(z.t[z.i:], ';')
	if i < 0 || i > 1000 {
		return
	}
	line := z.t[z.i : z.i+i]
	line = bytes.TrimLeft(line, " \t\r\n")
	name := firstName(line)
	alias := w == "using" && z.cpp && bytes.HasPrefix(bytes.TrimLeft(line[len(name):], " \t\r\n"), []byte("="))
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
	d.last = name
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
		_ = attr
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
				d.last = append([]byte("~"), name...)
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
	if d.fn == nil && len(inner) > 1 && (inner[0] == '*' || inner[0] == '&' || inner[0] == '^') && (d.words > 0 || d.body) && z.peek() == '(' || d.typedef && d.fn == nil && len(inner) > 1 && inner[0] == '*' {
		if name := declared(inner); name != nil {
			d.fn, d.pointer = name, true
		}
		return
	}
	if d.last == nil || d.pointer {
		return
	}
	if d.fn == nil || !d.parens || leadingMacro(d.fn) && !d.base {
		d.fn = d.last
	}
	d.parens = true
}

// leadingMacro reports whether a name is that of a macro such as __printf(1, 2),
// which stands before what it is about.
func leadingMacro(name []byte) bool { return bytes.HasPrefix(name, []byte("__")) }

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

// skipGroup passes a group in brackets of any kind, the first of which may
// stand after blanks.
func (z *cScan) skipGroup() {
	depth := 0
	for ; z.i < len(z.t); z.i++ {
		switch z.t[z.i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth <= 0 {
				if depth == 0 {
					z.i++
				}
				return
			}
		case elseMark:
			z.skipBranch()
			z.i--
		case ';':
			if depth == 0 {
				return
			}
		default:
			if depth == 0 && !blank(z.t[z.i]) && z.t[z.i] > endifMark {
				return
			}
		}
	}
}

// skipBraces passes to the } that ends the block it is in.
func (z *cScan) skipBraces() {
	depth := 1
	base := len(z.conds)
	for ; z.i < len(z.t); z.i++ {
		switch z.t[z.i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				z.conds = z.conds[:base]
				return
			}
		case ifMark:
			if len(z.conds) < 1000 {
				z.conds = append(z.conds, cond{depth})
			}
		case elseMark:
			if n := len(z.conds); n > base {
				depth = z.conds[n-1].braces
			} else { // the block began in the branch before
				z.i++
				z.skipBranch()
				z.i--
			}
		case endifMark:
			if n := len(z.conds); n > base {
				z.conds = z.conds[:n-1]
			}
		}
	}
	z.conds = z.conds[:base]
}

// skipBranch passes to the #endif of the #if it is in.
func (z *cScan) skipBranch() {
	depth := 1
	for ; z.i < len(z.t); z.i++ {
		switch z.t[z.i] {
		case ifMark:
			depth++
		case endifMark:
			if depth--; depth == 0 {
				z.i++
				return
			}
		}
	}
}

// angles passes over <…> if that is what follows, and no comparison.
func (z *cScan) angles() {
	depth, parens := 0, 0
	for i := z.i; i < min(len(z.t), z.i+2000); i++ {
		switch z.t[i] {
		case '<':
			depth++
		case '>':
			if parens > 0 || i > 0 && z.t[i-1] == '-' {
				continue
			}
			if depth--; depth == 0 {
				z.i = i + 1
				return
			}
		case '(':
			parens++
		case ')':
			parens--
		case ';', '{', '}':
			if parens <= 0 {
				z.i = max(z.i, min(z.i+1, len(z.t)))
				return
			}
		}
	}
	z.i = min(z.i+1, len(z.t))
}
