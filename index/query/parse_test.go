package query

import (
	"errors"
	iofs "io/fs"
	"reflect"
	"strings"
	"testing"
)

func w(s string) Node { return Word{s} }

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Node
		form string // canonical, where it is not text
	}{
		{"fuse", w("fuse"), ""},
		{" Plan \t", w("Plan"), "Plan"},
		{"a b", And{w("a"), w("b")}, "a and b"},
		{"a AND b And c", And{w("a"), w("b"), w("c")}, "a and b and c"},
		{"a or b c", Or{w("a"), And{w("b"), w("c")}}, "a or b and c"},
		{"(a or b) c", And{Or{w("a"), w("b")}, w("c")}, "(a or b) and c"},
		{"a (b (c d))", And{w("a"), w("b"), w("c"), w("d")}, "a and b and c and d"},
		{"a or (b or c)", Or{w("a"), w("b"), w("c")}, "a or b or c"},
		{"not a", Not{w("a")}, ""},
		{"not not a", Not{Not{w("a")}}, ""},
		{"a not b or c", Or{And{w("a"), Not{w("b")}}, w("c")}, "a and not b or c"},
		{"not (a or b)", Not{Or{w("a"), w("b")}}, ""},
		{"not (a)", Not{w("a")}, "not a"},
		{`"plan 9"`, Phrase{"plan 9"}, ""},
		{`"say ""hello"""`, Phrase{`say "hello"`}, ""},
		{`"not"`, Phrase{"not"}, ""},
		{"title:fuse", Attr{"title", w("fuse")}, "title : fuse"},
		{"Title : Fuse", Attr{"title", w("Fuse")}, "title : Fuse"},
		{`title : "plan 9" or x`, Or{Attr{"title", Phrase{"plan 9"}}, w("x")}, ""},
		{"title : a b", And{Attr{"title", w("a")}, w("b")}, "title : a and b"},
		{"title : (a b)", Attr{"title", And{w("a"), w("b")}}, "title : (a and b)"},
		{"not title : (not a)", Not{Attr{"title", Not{w("a")}}}, "not title : (not a)"},
		{"a title : b", And{w("a"), Attr{"title", w("b")}}, "a and title : b"},
		{"net/http x86_64 c++", And{w("net/http"), w("x86_64"), w("c++")}, "net/http and x86_64 and c++"},
		{"größe or 日本", Or{w("größe"), w("日本")}, ""},
	} {
		got, err := Parse(tt.text)
		if err != nil {
			t.Errorf("Parse(%q): got error %v, want %v", tt.text, err, tt.want)
			continue
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%q): got %#v, want %#v", tt.text, got, tt.want)
		}
		form := tt.form
		if form == "" {
			form = tt.text
		}
		if got.String() != form {
			t.Errorf("Parse(%q).String(): got %q, want %q", tt.text, got, form)
		}
	}
}

func TestParseError(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "column 1: empty query"},
		{"  ", "column 1: empty query"},
		{"a and", "column 6: the query ends where a word should be"},
		{"and a", "column 1: 'and' where a word should be"},
		{"a or or b", "column 6: 'or' where a word should be"},
		{"a not", "column 6: the query ends where a word should be"},
		{"(a", "column 1: '(' is not closed"},
		{"a b)", "column 4: ')' without '('"},
		{"()", "column 2: ')' where a word should be"},
		{`é "b`, "column 3: quote is not closed"},
		{`a ""`, `column 3: "" has no letter or digit`},
		{"a ++", "column 3: '++' has no letter or digit"},
		{": a", "column 1: ':' where a word should be"},
		{"title :", "column 8: the end where the value of attribute 'title' should be"},
		{"title : not a", "column 9: 'not' where the value of attribute 'title' should be"},
		{"std::vector", "column 5: ':' where the value of attribute 'std' should be"},
		{"url : http://go.dev/", "column 11: second ':' after attribute 'url'; quote a value that holds one"},
		{`"a b" : c`, `column 1: attribute name "a b" is quoted`},
		{"a : (b c : d)", "column 8: attribute 'c' inside another attribute's value"},
		{"a \xff", "column 3: text is not UTF-8"},
		{strings.Repeat("(", 65) + "a", "column 65: nested deeper than 64"},
		{strings.Repeat("not ", 65) + "a", "column 257: nested deeper than 64"},
		{strings.Repeat("a ", 128) + "t : b", "column 261: more than 128 words"},
		{strings.Repeat("a ", 8000/2), "column 257: more than 128 words"},
		{strings.Repeat("a", 8193), "column 1: query of 8193 bytes, the limit is 8192"},
	} {
		n, err := Parse(tt.text)
		if err == nil {
			t.Errorf("Parse(%q): got %v, want error %q", tt.text, n, tt.want)
			continue
		}
		if err.Error() != tt.want {
			t.Errorf("Parse(%q): got error %q, want %q", tt.text, err, tt.want)
		}
		if !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("Parse(%q): got class of %v, want ErrInvalid", tt.text, err)
		}
	}
}

// A tree made by hand means the same after a round through its text.
func TestStringOfMadeTree(t *testing.T) {
	n := And{w("a"), And{w("and"), Or{w("b c"), w("d")}}, Attr{"T", Or{w("x"), w("y")}}}
	m, err := Parse(n.String())
	if err != nil {
		t.Fatal(err)
	}
	flat := And{w("a"), Phrase{"and"}, Or{Phrase{"b c"}, w("d")}, Attr{"t", Or{w("x"), w("y")}}}
	if !reflect.DeepEqual(m, Node(flat)) {
		t.Errorf("got %v, want %v", m, flat)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a b or not c", `title : ("x y" or z)`, `"a""b" (c)`, "not not a", "é:ß", "\xff", "a and (or"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			e, ok := err.(*Error)
			if !ok || e.Column < 1 || e.Column > len(text)+1 {
				t.Fatalf("got error %#v, want one with a column of the text", err)
			}
			return
		}
		form := n.String()
		if len(form) > MaxLength { // the spelled-out form can outgrow the limit
			return
		}
		m, err := Parse(form)
		if err != nil {
			t.Fatalf("canonical form %q: got error %v", form, err)
		}
		if !reflect.DeepEqual(n, m) {
			t.Fatalf("canonical form %q: got %#v, want %#v", form, m, n)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	const text = `title : ("plan 9" or fuse) and not author : x (mount or bind) kernel`
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
