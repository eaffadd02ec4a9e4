package essence

import "bytes"

// A dialect is what one language of the C family has that others have not.
type dialect struct {
	cpp     bool // a preprocessor
	d       bool // D: templates with !, aliases, blocks under conditions
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
	dialectD = &dialect{d: true, methods: true, plus: true, record: wordSet("struct union class interface enum template"),
		ignore: wordSet("if else while for foreach do switch return case default break continue new throw try catch finally static final override abstract public private protected package export lazy nothrow pure synchronized ref auto __gshared bool byte ubyte short ushort int uint long ulong float double real char wchar dchar void string this super")}
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

const maxBlocks = 100

func scanC(l *language, code []byte, s *symbols)      { runC(dialectC, code, s) }
func scanCpp(l *language, code []byte, s *symbols)    { runC(dialectCpp, code, s) }
func scanJava(l *language, code []byte, s *symbols)   { runC(dialectJava, code, s) }
func scanD(_ *language, code []byte, s *symbols)      { runC(dialectD, code, s) }
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
		case z.d && z.dMark(&d, c):
		default:
			z.punctuation(&d, c, in)
		}
	}
}

// plusWords are what a line of C++ may begin with, and one of C hardly.
var plusWords = wordSet("class namespace template public private protected using virtual friend")

// scanHeader reads a header as C++ if there is something in it that C has not.
func scanHeader(_ *language, code []byte, s *symbols) {
	for line := range bytes.Lines(code) {
		if line = bytes.TrimLeft(line, " \t"); plusWords[string(firstWord(line))] && bytes.IndexByte(line, '=') < 0 {
			runC(dialectCpp, code, s)
			return
		}
	}
	runC(dialectC, code, s)
}
