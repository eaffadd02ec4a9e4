package essence

import (
	"strings"
	"testing"
)

// TestFormsOfMembers takes forms of which a summary was once wanting.
func TestFormsOfMembers(t *testing.T) {
	for _, c := range []struct{ typ, code, want string }{
		{"JavaScript", "class A {\n  static name = 'logout'\n  static params = [\n    'x',\n  ]\n  go () {}\n}", "A name params go"},
		{"JavaScript", "class A {\n  [_flush] (er) {\n }\n  [a.b] () {}\n  last () {}\n}", "A [_flush] last"},
		{"JavaScript", "Cache.prototype.has = cacheHas;\na.b = c;", "has"},
		{"TypeScript", "declare const errors: {\n  first: string;\n  second: string;\n};\nconst x = a ? b : {}", "errors first second x"},
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
