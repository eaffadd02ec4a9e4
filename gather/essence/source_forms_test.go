package essence

import (
	"strings"
	"testing"
)

// TestFormsOfMembers takes forms of which a summary was once wanting.
func TestFormsOfMembers(t *testing.T) {
	for _, c := range []struct{ typ, code, want string }{
		{"JavaScript", "class A {\n  static name = 'logout'\n  static params = [\n    'x',\n  ]\n  go () {}\n}", "A name params go"},
		{"JavaScript", "class A {\n  [_flush] (er) {\n }\n  [a.b] () {}\n  last () {}\n}", "A [_flush] [a.b] last"},
		{"JavaScript", "class A {\n  #one = []\n  #two = 0\n  [ON] = false;\n  [Symbol.x];\n}", "A one two [ON] [Symbol.x]"},
		{"JavaScript", "a.b[c] = { d: 1, e };\nvar f = ({\n  g: 1 });\nh = [ { i: 1 } ]", "b d e f g"},
		{"JavaScript", "Cache.prototype.has = cacheHas;\na.b = c;", "has"},
		{"TypeScript", "declare const errors: {\n  first: string;\n  second: string;\n};\nconst x = a ? b : {}", "errors first second x"},
		{"C", "struct g *a[] __init = {\n};\nchar l[] SEC(\"x\") = \"G\";\nSEC(\"y\")\nint f(int b)\n{\n}\nstruct s { const int (*p)[2]; };", "a l f s p"},
		{"CPlusPlus", "inline\nint a() noexcept {\n}\nint (b)(int x) {\n}\ntypedef M(c,d) e;\ntypedef bool (T::*f)(int);\nclass g { typedef typename h<(i<F>::v),\n j>::type k; };", "a b e f g k"},
		{"Java", "class A extends B implements C<D> {\n int e;\n void f() throws G {} }", "A e f"},
		{"CSharp", "using A = B.C;\nnamespace D.E {\nclass F { ~F() {}\n G H.I() {} } }", "A D.E F ~F H.I"},
		{"D", "module a.b;\nalias int c;\nalias d = c;\nalias c* e, f;\nversion (X) {\n enum g = 1;\n enum h { i, j }\n} else { private { struct k(T) if (is(T)) { ubyte* l; int function(int) m; } } }\nA!\"x\" n;\nT o(T)(T x) if (y!T) in { } do { }\nunittest { int z; }", "a.b c d e f g h i j k l m n o"},
		{"Ada", "package A is\n type B is\n   (C, D);\n E, F : Integer;\n S : String := \"/\\\";\n type R is record\n  G : Integer;\n end record;\n procedure H (I : Integer);", "A B E F S R G H C D"},
		{"OCaml", "type a = { b : int; mutable c : d }\nand 'x e =\n    F of g\n  | H\nval ( + ) : a\ntype t = [ `I | `J ]", "a e H + t b c F I J"},
		{"SQL", "CREATE TABLE @x@.a (\n b text NOT NULL\n , c int[]\n , PRIMARY KEY (b)\n);\nCREATE FUNCTION p.d(e int) RETURNS int AS 'f';", "a b c d"},
		{"Tcl", "namespace eval ::a::b {}\nproc ::a::c {} {\n}\nmethod i:d {} {}", "a::b c i:d"},
		{"Vim", "let a = 1\nfunction! B()\n let c = 1\n let g:d = 1\nendfunction\nxmap gS x", "a B g:d gS"},
		{"Ruby", "def A::b(c)\nend\ndef d=(e)\nend\ndef ==(o)\nend", "b d =="},
		{"CPlusPlus", "template<class T>\nusing begin_t = decltype(std::declval<T>().begin());\nusing std::swap;", "begin_t"},
	} {
		l := languages()[c.typ]
		s := &symbols{seen: make(map[string]bool), room: 1 << 20}
		l.find(l.mask([]byte(c.code), 0).code, s)
		var got []string
		for _, sym := range s.all {
			got = append(got, sym.name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %q: got %q, want %q", c.typ, c.code, got, c.want)
		}
	}
}
