package essence

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A ctag is a name as ctags tells it.
type ctag struct {
	name, kind string
	line       int
	scope      string // the kind of what it stands in
	path       string // that, as a path
}

// doubts say of names of ctags that they are none that a reader of a summary
// would look for. They decide by the name and by where it stands, whatever we
// find, so that figures tell how many there are and why.
type doubts struct {
	l     *language
	typ   string
	file  string
	fns   map[string]bool // names of functions
	lines [][]byte        // as written
	code  [][]byte        // without comments and strings
	depth []int           // of braces, where each line begins
}

func newDoubts(typ, file string, text []byte, tags map[string]ctag) doubts {
	l := languages()[typ]
	d := doubts{l: l, typ: typ, file: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), fns: make(map[string]bool), lines: bytes.Split(text, []byte("\n")), code: bytes.Split(l.mask(text, 0).code, []byte("\n"))}
	for n, t := range tags {
		if t.kind == "f" {
			d.fns[n] = true
		}
	}
	depth := 0
	for _, line := range d.code {
		d.depth = append(d.depth, depth)
		depth += bytes.Count(line, []byte("{")) - bytes.Count(line, []byte("}"))
	}
	return d
}

func (d doubts) ecma() bool { return d.l.syntax == jsSyntax }

// reserved are words of JavaScript that ctags takes for names, with module.exports,
// which every file has.
var reserved = wordSet("throw null return this ~this new typeof void delete nothrow")

// getter are the kinds of getters and setters of JavaScript.
var getter = wordSet("G S")

// why is the reason to leave a name out, "" if there is none.
func (d doubts) why(t ctag) string {
	if t.line < 1 || t.line > len(d.lines) {
		return ""
	}
	line, code := d.lines[t.line-1], d.code[t.line-1]
	name := []byte(t.name)
	switch {
	case d.ecma() && !nameLike(t.name) && t.kind == "p":
		return "keys that are no names"
	case d.ecma() && t.kind == "p" && !bytes.Contains(line, name):
		return "keys in escapes"
	case d.ecma() && t.name == "exports", (d.ecma() || d.typ == "D") && reserved[t.name]:
		return "words of the language"
	case d.ecma() && getter[t.kind] && !bytes.Contains(code, []byte("et "+t.name)) && !bytes.Contains(code, []byte("et #"+t.name)):
		return "what follows get ( or set ("
	case d.ecma() && t.kind == "v" && d.depth[t.line-1] > 0:
		return "local to a function"
	case cFamily[d.typ] && len(t.name) > 2 && t.name == strings.ToUpper(t.name) && t.kind == "f":
		return "macros before a ("
	case cFamily[d.typ] && (d.inFunction(t.path) || t.scope == "function" && strings.Contains("tsugec", t.kind)):
		return "local to a function"
	case t.line == 1 && strings.EqualFold(t.name, d.file) && d.typ == "OCaml":
		return "named after the file"
	case d.typ == "Protobuf" && typeOfField(code, name):
		return "types of fields"
	case bytes.Contains(line, name) && !bytes.Contains(code, name):
		return "in strings or comments"
	case d.typ == "Lua" && !luaFunction(code, t.name):
		return "lines with the word function elsewhere"
	}
	return ""
}

// inFunction reports whether a part of a path is a function.
func (d doubts) inFunction(path string) bool {
	for p := range strings.SplitSeq(path, "::") {
		if d.fns[p] {
			return true
		}
	}
	return false
}

// luaFunction reports whether a line defines a name as a function.
func luaFunction(code []byte, name string) bool {
	for at := 0; ; {
		i := bytes.Index(code[at:], []byte(name))
		if i < 0 {
			return false
		}
		at += i + len(name)
		rest := bytes.TrimLeft(code[at:], " \t")
		if bytes.HasSuffix(bytes.TrimRight(code[:at-len(name)], " \t"), []byte("function")) {
			return true
		}
		if after, ok := bytes.CutPrefix(rest, []byte("=")); ok && bytes.HasPrefix(bytes.TrimLeft(after, " \t"), []byte("function")) {
			return true
		}
	}
}

// typeOfField reports whether a name is but the type in `optional type name = 1`,
// or a number.
func typeOfField(code, name []byte) bool {
	_, after, ok := bytes.Cut(code, append(append([]byte(" "), name...), ' '))
	return name[0] >= '0' && name[0] <= '9' || ok && len(firstName(bytes.TrimLeft(after, " "))) > 0
}

// cFamily are the languages whose functions are passed over: the types that they
// define for themselves, and the members of these, are nobody else's.
var cFamily = wordSet("C CHeader CPlusPlus")

// nameLike reports whether a name could stand in code without quotes, or nearly.
func nameLike(s string) bool {
	for i := range len(s) {
		if !nameBytes[s[i]] && s[i] != '-' {
			return false
		}
	}
	return true
}

// TestDoubts has a name of each class, and some of none.
func TestDoubts(t *testing.T) {
	for _, c := range []struct {
		typ, text string
		tag       ctag
		want      string
	}{
		{"JavaScript", `x = {"a b": 1}`, ctag{"a b", "p", 1, "class", ""}, "keys that are no names"},
		{"JavaScript", `x = {"a-b": 1}`, ctag{"a-b", "p", 1, "class", ""}, ""},
		{"JavaScript", `x = {"\\u044b": 1}`, ctag{"ы", "p", 1, "class", ""}, "keys in escapes"},
		{"CPlusPlus", "void f() {\ntypedef int t; }", ctag{"t", "t", 2, "function", ""}, "local to a function"},
		{"CPlusPlus", "struct f {\ntypedef int t; }", ctag{"t", "t", 2, "struct", ""}, ""},
		{"CPlusPlus", "void fn() { struct a { int b; }", ctag{"b", "m", 1, "struct", "fn::a"}, "local to a function"},
		{"Protobuf", "  optional int64 a = 1;", ctag{"int64", "f", 1, "message", ""}, "types of fields"},
		{"Protobuf", "  optional int64 a = 1;", ctag{"a", "f", 1, "message", ""}, ""},
		{"D", "this(int a) {", ctag{"this", "f", 1, "class", ""}, "words of the language"},
		{"OCaml", "", ctag{"List", "M", 1, "", ""}, "named after the file"},
		{"Lua", "local x = y(function() end)", ctag{"x", "f", 1, "", ""}, "lines with the word function elsewhere"},
		{"Lua", "local x = function() end", ctag{"x", "f", 1, "", ""}, ""},
		{"Lua", "x = 'function f()'", ctag{"f", "f", 1, "", ""}, "in strings or comments"},
		{"Lua", "function f() end", ctag{"f", "f", 1, "", ""}, ""},
		{"Lua", "function f() end", ctag{"f", "f", 7, "", ""}, ""},
	} {
		if got := newDoubts(c.typ, "in/list.x", []byte(c.text), map[string]ctag{"fn": {kind: "f"}}).why(c.tag); got != c.want {
			t.Errorf("%s %q in %q: got %q, want %q", c.typ, c.tag.name, c.text, got, c.want)
		}
	}
}
