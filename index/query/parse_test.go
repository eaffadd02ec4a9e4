package query

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func w(s string) Node { return Word{s} }

func no(n Node) Node { return Not{n} }

func attr(name string, n Node) Node { return Attr{name, n} }

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Node
		form string // canonical, where it is not text
	}{
		{"fuse", w("fuse"), ""},
		{" Plan \t", w("Plan"), "Plan"},
		{"*", All{}, ""},
		{"größe or 日本", Or{w("größe"), w("日本")}, ""},

		// words alone are a bag
		{"a b", Bag{w("a"), w("b")}, ""},
		{`a "b c" d* /e/ f~ g~0`, Bag{w("a"), Phrase{"b c"}, Wild{"d*"}, Regexp{"e", false}, Fuzzy{Text: "f", Best: true}, Fuzzy{Text: "g"}}, ""},
		{"net/http x86_64 c++ -O2 ~rob", Bag{w("net/http"), w("x86_64"), w("c++"), w("-O2"), w("~rob")}, ""},
		{"how to mount fuse?", Bag{w("how"), w("to"), w("mount"), w("fuse")}, "how to mount fuse"},
		{"what is fuse ??", Bag{w("what"), w("is"), w("fuse")}, "what is fuse"},
		{`what is "plan 9"?`, Bag{w("what"), w("is"), Phrase{"plan 9"}}, `what is "plan 9"`},
		{"a? b", Bag{Wild{"a?"}, w("b")}, ""},
		{"a?", Wild{"a?"}, ""},
		{"a (b)", And{w("a"), w("b")}, "a and b"},
		{"a not b?", And{w("a"), no(Wild{"b?"})}, "a and not b?"},

		// operators
		{"a AND b And c", And{w("a"), w("b"), w("c")}, "a and b and c"},
		{"a or b c", Or{w("a"), And{w("b"), w("c")}}, "a or b and c"},
		{"(a or b) c", And{Or{w("a"), w("b")}, w("c")}, "(a or b) and c"},
		{"a (b (c d))", And{w("a"), w("b"), w("c"), w("d")}, "a and b and c and d"},
		{"a or (b or c)", Or{w("a"), w("b"), w("c")}, "a or b or c"},
		{"not a", no(w("a")), ""},
		{"not not a", no(no(w("a"))), ""},
		{"a not b or c", Or{And{w("a"), no(w("b"))}, w("c")}, "a and not b or c"},
		{"not (a or b)", no(Or{w("a"), w("b")}), ""},
		{"not (a)", no(w("a")), "not a"},
		{"a except b except not c", And{w("a"), no(w("b")), no(no(w("c")))}, "a and not b and not not c"},
		{"a except (b and c) or d", Or{And{w("a"), no(And{w("b"), w("c")})}, w("d")}, "a and not (b and c) or d"},
		{"* except a", And{All{}, no(w("a"))}, "* and not a"},

		// near
		{"a near b", Near{[]Node{w("a"), w("b")}, 10, false}, ""},
		{"a NEAR/10 b", Near{[]Node{w("a"), w("b")}, 10, false}, "a near b"},
		{"a near/5 b near/5 c", Near{[]Node{w("a"), w("b"), w("c")}, 5, false}, ""},
		{"a adj b Adj/1 c", Near{[]Node{w("a"), w("b"), w("c")}, 1, true}, "a adj b adj c"},
		{"a adj/99 b", Near{[]Node{w("a"), w("b")}, 99, true}, ""},
		{"a near/1 b", Near{[]Node{w("a"), w("b")}, 1, false}, ""},
		{`not a near ("b c" or d* or /e/) near ff~1 g`, And{no(Near{[]Node{w("a"), Or{Phrase{"b c"}, Wild{"d*"}, Regexp{"e", false}}, Fuzzy{Text: "ff", Errors: 1}}, 10, false}), w("g")},
			`not a near ("b c" or d* or /e/) near ff~1 and g`},
		{"nearby near/home nearer/5 near5 adj/a", Bag{w("nearby"), w("near/home"), w("nearer/5"), w("near5"), w("adj/a")}, ""},

		// phrases
		{`"plan 9"`, Phrase{"plan 9"}, ""},
		{`"say ""hello"""`, Phrase{`say "hello"`}, ""},
		{`"not"`, Phrase{"not"}, ""},
		{`"a*"`, Phrase{"a*"}, ""},
		{`"a" and “plan 9” or („b“)`, Or{And{Phrase{"a"}, Phrase{"plan 9"}}, Phrase{"b"}}, `"a" and "plan 9" or "b"`},

		// patterns
		{"kern*", Wild{"kern*"}, ""},
		{"*ing or c?l* or x_* or j.*x or d'*", Or{Wild{"*ing"}, Wild{"c?l*"}, Wild{"x_*"}, Wild{"j.*x"}, Wild{"d'*"}}, ""},
		{`/[a-z]+_lock/`, Regexp{"[a-z]+_lock", false}, ""},
		{`/a\/b\d\\/t or /( :")/t`, Or{Regexp{`a/b\d\\`, true}, Regexp{`( :")`, true}}, ""},
		{"/x[ y]/", Regexp{"x[ y]", false}, ""},
		{"word~", Fuzzy{Text: "word", Best: true}, ""},
		{"word~2 or don't~1", Or{Fuzzy{Text: "word", Errors: 2}, Fuzzy{Text: "don't", Errors: 1}}, ""},
		{`"two words"~1`, Fuzzy{Text: "two words", Errors: 1, Phrase: true}, ""},
		{`"a ""b"" <c> \<"~`, Fuzzy{Text: `a "b" <c> \<`, Best: true, Phrase: true}, ""},
		{"<exact>part~1", Fuzzy{Text: "<exact>part", Errors: 1}, ""},
		{"ex<act>part~", Fuzzy{Text: "ex<act>part", Best: true}, ""},

		// attributes
		{"title:fuse", attr("title", w("fuse")), "title : fuse"},
		{"Title : Fuse", attr("title", w("Fuse")), "title : Fuse"},
		{`title : "plan 9" or x`, Or{attr("title", Phrase{"plan 9"}), w("x")}, ""},
		{"title : a b", And{attr("title", w("a")), w("b")}, "title : a and b"},
		{"title : (a b)", attr("title", And{w("a"), w("b")}), "title : (a and b)"},
		{"not title : (not a)", no(attr("title", no(w("a")))), ""},
		{"a title : b", And{w("a"), attr("title", w("b"))}, "a and title : b"},
		{"title : *", attr("title", All{}), ""},
		{"title : k* and title:/a|b/ and x : y~ and title:(a near b)",
			And{attr("title", Wild{"k*"}), attr("title", Regexp{"a|b", false}), attr("x", Fuzzy{Text: "y", Best: true}), attr("title", Near{[]Node{w("a"), w("b")}, 10, false})},
			"title : k* and title : /a|b/ and x : y~ and title : (a near b)"},
		{"10:30", attr("10", w("30")), "10 : 30"},

		// comparisons
		{"size > 10K", attr("size", Compare{">", "10K"}), ""},
		{"size>=10K a<b", And{attr("size", Compare{">=", "10K"}), attr("a", Compare{"<", "b"})}, "size >= 10K and a < b"},
		{`Type = "text html"`, attr("type", Compare{"=", "text html"}), `type = "text html"`},
		{`type="a"`, attr("type", Compare{"=", "a"}), "type = a"},
		{"type = text/html", attr("type", Compare{"=", "text/html"}), ""},
		{`x = "near" or x = "+" or x = "" or x = "a*"`, Or{attr("x", Compare{"=", "near"}), attr("x", Compare{"=", "+"}), attr("x", Compare{"=", ""}), attr("x", Compare{"=", "a*"})}, ""},
		{"a != b", no(attr("a", Compare{"=", "b"})), "not a = b"},
		{"a!=b", no(attr("a", Compare{"=", "b"})), "not a = b"},
		{"t > -5 c", And{attr("t", Compare{">", "-5"}), w("c")}, "t > -5 and c"},
		{"size : (> 10 and <= 20 or != 5)", attr("size", Or{And{Compare{">", "10"}, Compare{"<=", "20"}}, no(Compare{"=", "5"})}), "size : (> 10 and <= 20 or not = 5)"},
		{"size : (> 10 < 20 a)", attr("size", And{Compare{">", "10"}, Compare{"<", "20"}, w("a")}), "size : (> 10 and < 20 and a)"},

		// ranges
		{"date : 2020-01-01..2020-12-31", attr("date", Range{"2020-01-01", "2020-12-31"}), ""},
		{"size : ..100", attr("size", Range{"", "100"}), ""},
		{"size:1..", attr("size", Range{"1", ""}), "size : 1.."},
		{"size : 1 .. 2", attr("size", Range{"1", "2"}), "size : 1..2"},
		{"size : .. 2 or a", Or{attr("size", Range{"", "2"}), w("a")}, "size : ..2 or a"},
		{`date : "2020-01-01 10:00:00".."2021"`, attr("date", Range{"2020-01-01 10:00:00", "2021"}), `date : "2020-01-01 10:00:00"..2021`},
		{`date : "a:b".. and c`, And{attr("date", Range{"a:b", ""}), w("c")}, ""},
		{"size : (1..2 or 5.. or a)", attr("size", Or{Range{"1", "2"}, Range{"5", ""}, w("a")}), ""},
		{"size : (..2 3)", attr("size", And{Range{"", "2"}, w("3")}), "size : (..2 and 3)"},
		{"x : 1...5 wait...", And{attr("x", w("1...5")), w("wait...")}, "x : 1...5 and wait..."},
		{`x : "1.".. and x : 1..".5" and x : 1 .. .5`, And{attr("x", Range{"1.", ""}), attr("x", Range{"1", ".5"}), attr("x", Range{"1", ".5"})}, `x : "1.".. and x : 1..".5" and x : 1..".5"`},
		{"x : -1.5..+2.5", attr("x", Range{"-1.5", "+2.5"}), ""},
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
		{"except a", "column 1: 'except' where a word should be"},
		{"(a", "column 1: '(' is not closed"},
		{"a b)", "column 4: ')' without '('"},
		{"()", "column 2: ')' where a word should be"},
		{`é "b`, "column 3: quote is not closed"},
		{"é “b", "column 3: quote is not closed"},
		{`a ""`, `column 3: "" has no letter or digit`},
		{"a ++", "column 3: '++' has no letter or digit"},
		{": a", "column 1: ':' where a word should be"},
		{"a \xff", "column 3: text is not UTF-8"},

		{"title :", "column 8: the end where the value of attribute 'title' should be"},
		{"title : not a", "column 9: 'not' where the value of attribute 'title' should be"},
		{"std::vector", "column 5: ':' where the value of attribute 'std' should be"},
		{"http://go.dev/", "column 5: '://' after attribute 'http'; quote a URL"},
		{"url : http://go.dev/", "column 11: second ':' after attribute 'url'; quote a value that holds one"},
		{"(a) : b", "column 5: ':' where an operator or the end should be; quote a word that holds it"},
		{`"a b" : c`, `column 1: attribute name "a b" is quoted`},
		{"ti* : c", "column 1: attribute name 'ti*' is a pattern"},
		{"/a/ : c", "column 1: attribute name /a/ is a pattern"},
		{"+ : c", "column 1: attribute name '+' has no letter or digit"},
		{"a : (b c : d)", "column 8: attribute 'c' inside another attribute's value"},
		{"a : (b c > d)", "column 8: attribute 'c' inside another attribute's value"},

		{"a near", "column 7: the query ends where a word should be"},
		{"near a", "column 1: 'near' where a word should be"},
		{"a near/0 b", "column 8: 'near/0' takes a number of words from 1 to 99"},
		{"a near/ b", "column 8: 'near/' takes a number of words from 1 to 99"},
		{"a adj/100 b", "column 7: 'adj/100' takes a number of words from 1 to 99"},
		{"a near b adj c", "column 10: 'adj' after 'near': in a row they have to be the same"},
		{"a near/3 b near/4 c", "column 12: 'near/4' after 'near/3': in a row they have to be the same"},
		{"a near not b", "column 8: 'not' where a word should be"},
		{"a near (b and c)", "column 8: near and adj stand between words, phrases, patterns of words, or such joined by or"},
		{"t : a near b", "column 1: near and adj stand between words, phrases, patterns of words, or such joined by or"},
		{"a near /b/t", "column 8: near and adj stand between words, phrases, patterns of words, or such joined by or"},
		{`"a b"~1 near c`, "column 1: near and adj stand between words, phrases, patterns of words, or such joined by or"},

		{"a *", "column 3: '*' is all objects and needs an operator beside it"},
		{`"plan 9"*`, "column 9: '*' after a quote: a phrase takes none"},
		{`"plan 9"? a`, "column 9: '?' after a quote: a phrase takes none"},
		{"a **", "column 3: '**' has no letter or digit"},
		{"net/htt*", "column 4: '/' stands in no word, and a pattern is one word"},
		{"kern*, a", "column 6: ',' ends no word, and a pattern is one word"},
		{"'kern*'", "column 1: ''' stands in no word, and a pattern is one word"},
		{"foo-bar~1", "column 4: '-' stands in no word, and a pattern is one word"},
		{"kern*~1", "column 1: 'kern*~1': a pattern takes no errors"},
		{"word~9", "column 6: 9 errors, the limit is 8"},
		{"word~99999999999999999999", "column 6: 99999999999999999999 errors, the limit is 8"},
		{"ab~2", "column 4: 2 errors in 2 characters match anything"},
		{"<é>b~2", "column 6: 2 errors in 2 characters match anything"},
		{"word~x", "column 5: '~' takes a number of errors or nothing; quote a word that holds it"},
		{`"a b"~x`, "column 7: '~' takes a number of errors or nothing"},
		{`"a <b"~1`, `column 1: "a <b": '<' is not closed`},
		{`"a b>"~1`, `column 1: "a b>": '<' and '>' do not pair`},
		{`"a <>b"~1`, `column 1: "a <>b": '<>' holds nothing`},
		{`"a b\"~1`, `column 1: "a b\": '\' is before nothing`},
		{"/etc/passwd", "column 6: 'passwd' after a regular expression; quote a path, or escape its '/'"},
		{"a /etc", "column 3: regular expression is not closed; quote a word that begins with '/'"},
		{`a /b\/`, "column 3: regular expression is not closed; quote a word that begins with '/'"},
		{"//", "column 1: regular expression: it is empty"},
		{"/a/i", "column 4: 'i' after a regular expression; quote a path, or escape its '/'"},
		{"/a(b/", "column 1: regular expression: missing closing ): `a(b`"},
		{"/a b/", "column 1: regular expression: a word holds no blank; /…/t looks in lines of text"},
		{"/" + strings.Repeat("a", 2001) + "/", "column 1: regular expression: 2001 characters, the limit is 2000"},

		{"> 10", "column 1: '>' where a word should be; quote a word that holds it"},
		{"size >", "column 7: the query ends where the value for '>' should be"},
		{"size > > 10", "column 8: '>' where the value for '>' should be; quote a word that holds it"},
		{"size == 10", "column 7: '=' where the value for '=' should be; quote a word that holds it"},
		{"p->next", "column 1: 'p-' is no attribute's name; quote a word that holds '>'"},
		{"#include <stdio.h>", "column 1: '#include' is no attribute's name; quote a word that holds '<'"},
		{"vector<int>", "column 11: '>' where an operator or the end should be; quote a word that holds it"},
		{"1 < size < 5", "column 10: '<' where an operator or the end should be; quote a word that holds it"},
		{"type = text*", "column 8: '=' compares values, not patterns: quote 'text*'"},
		{"type = /a/", "column 8: '=' compares values, not patterns: quote /a/"},
		{"type = *", "column 8: '=' compares values, not patterns: quote '*'"},
		{"type = (a or b)", "column 8: '(' where the value for '=' should be"},
		{"a = +", "column 5: '+' has no letter or digit"},
		{"a : b = c", "column 7: '=' where an operator or the end should be; quote a word that holds it"},
		{"a = b : c", "column 7: ':' where an operator or the end should be; quote a word that holds it"},

		{"a..b", "column 2: '..' makes a range of an attribute's values; quote a word that holds it"},
		{"../a", "column 1: '..' where a word should be; quote a word that holds it"},
		{"size : ..", "column 8: '..' without a low or high end"},
		{"size : 1.. 2", "column 12: blank after '..', not before; write it in one, or an operator"},
		{"size : 1..2..3", "column 12: '..' makes a range of an attribute's values; quote a word that holds it"},
		{"size : 1*..2", "column 8: '..' compares values, not patterns: quote '1*'"},
		{"size : 1../2/", "column 11: '..' compares values, not patterns: quote /2/"},
		{"size > 1..2", "column 9: '..' makes a range of an attribute's values; quote a word that holds it"},

		{strings.Repeat("(", 65) + "a", "column 65: nested deeper than 64"},
		{strings.Repeat("not ", 65) + "a", "column 257: nested deeper than 64"},
		{strings.Repeat("a ", 128) + "t : b", "column 261: more than 128 words"},
		{strings.Repeat("a ", 128) + "t > b", "column 259: more than 128 words"},
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
	for _, tt := range []struct{ made, want Node }{
		{And{w("a"), And{w("and"), Or{w("b c"), w("d")}}, Attr{"T", Or{w("x"), w("y")}}},
			And{w("a"), Phrase{"and"}, Or{Phrase{"b c"}, w("d")}, Attr{"t", Or{w("x"), w("y")}}}},
		{Bag{w("a"), Wild{"b?"}}, Bag{w("a"), Regexp{"b.", false}}},
		{Bag{w("a*"), w("~b"), w("x~")}, Bag{Phrase{"a*"}, w("~b"), Phrase{"x~"}}},
		{Wild{"*"}, Regexp{".*", false}},
		{Wild{"a.*"}, Wild{"a.*"}},
		{Wild{"a+b?*"}, Regexp{`a\+b..*`, false}},
		{And{Bag{w("a"), w("b")}, w("c")}, And{Or{w("a"), w("b")}, w("c")}},
		{Bag{w("a"), All{}}, Or{w("a"), All{}}},
		{Bag{w("a")}, w("a")},
		{And{w("a"), Or{}}, And{w("a"), Not{All{}}}},
		{And{}, All{}},
		{Attr{"a", Bag{w("b"), w("c")}}, Attr{"a", Or{w("b"), w("c")}}},
		{Attr{"a", Not{Compare{"=", "b..c"}}}, Attr{"a", Not{Compare{"=", "b..c"}}}},
		{Attr{"a", Range{"x*", "("}}, Attr{"a", Range{"x*", "("}}},
	} {
		got, err := Parse(tt.made.String())
		if err != nil {
			t.Errorf("%#v: %s: got error %v, want %#v", tt.made, tt.made, err, tt.want)
		} else if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%#v: %s: got %#v, want %#v", tt.made, tt.made, got, tt.want)
		}
	}
}

func TestWalk(t *testing.T) {
	n, err := Parse(`a not (T : (b or > "5") near/3 c) and "d"`)
	if err == nil {
		t.Fatalf("got %v, want an error", n)
	}
	n, err = Parse(`a (b near c*) not (T : (d or > 5) and not u : *) t = x`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	Walk(n, func(n Node, attr string, not bool) bool {
		got = append(got, fmt.Sprintf("%T %v %q %v", n, n, attr, not))
		_, near := n.(Near)
		return !near
	})
	want := []string{
		`query.And a and b near c* and not (t : (d or > 5) and not u : *) and t = x "" false`,
		`query.Word a "" false`,
		`query.Near b near c* "" false`,
		`query.Not not (t : (d or > 5) and not u : *) "" false`,
		`query.And t : (d or > 5) and not u : * "" true`,
		`query.Attr t : (d or > 5) "" true`,
		`query.Or d or > 5 "t" true`,
		`query.Word d "t" true`,
		`query.Compare > 5 "t" true`,
		`query.Not not u : * "" true`,
		`query.Attr u : * "" true`,
		`query.All * "u" true`,
		`query.Attr t = x "" false`,
		`query.Compare = x "t" false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	before := n.String()
	upper := Map(n, func(n Node, attr string) Node {
		switch n := n.(type) {
		case Word:
			return Word{Text: attr + "." + n.Text}
		case All:
			return Or{}
		}
		return nil
	})
	made := And{
		Word{".a"}, Near{[]Node{Word{".b"}, Wild{"c*"}}, 10, false},
		Not{And{Attr{"t", Or{Word{"t.d"}, Compare{">", "5"}}}, Not{Attr{"u", Or{}}}}}, Attr{"t", Compare{"=", "x"}},
	}
	if got, want := upper.String(), made.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n.String() != before {
		t.Errorf("got %s changed to %s by Map", before, n)
	}
	if got, want := Attributes(n), []string{"t", "u"}; !slices.Equal(got, want) {
		t.Errorf("got attributes %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a b or not c", `title : ("x y" or z)`, `"a""b" (c)`, "not not a", "é:ß", "\xff", "a and (or", "a b*?", "what? ?", `"a"b? ?`, `x : "0."..".5"`,
		"a near/5 b near/5 (c or d~1)", "a adj b except c", `/a\/b/t /c/ d~ "e f"~2 <g>h~1`, "size>10 and b != 3",
		`x : (>= 1 "2".."3" ..4 5..)`, "* and t : *", "“a b” „c”", "a..b ... ~", `"a <b> \\"~1`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			e, ok := err.(*Error)
			if !ok || e.Column < 1 || e.Column > len(text)+1 && len(text) <= MaxLength {
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
		if again := m.String(); again != form {
			t.Fatalf("canonical form: got %q, want %q again", again, form)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"word", "fuse"},
		{"bag", "mount a fuse file system"},
		{"query", `title : ("plan 9" or fuse) and not author : x (mount or bind) kernel`},
		{"patterns", `kern* and colou?r or word~1 near /[a-z]+_lock/ and size > 10K`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(bb.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
