package match

import (
	"errors"
	iofs "io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func compile(t testing.TB, expr string, opt Options) *Pattern {
	t.Helper()
	p, err := Compile(expr, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		expr string
		opt  Options
		word string
		want int // -1: no match
	}{
		{"kernel", Options{}, "kernel", 0},
		{"kernel", Options{}, "KERNEL", 0},
		{"kernel", Options{Case: true}, "Kernel", -1},
		{"kernel", Options{Errors: 1}, "kernle", 1},
		{"kernel", Options{Errors: 1, Costs: Costs{Transpose: 2}}, "kernle", -1},
		{"kernel", Options{Errors: 2, Costs: Costs{Transpose: 3}}, "kernle", 2},
		{"kernel", Options{Errors: 8}, "colonel", 4},
		{"größe", Options{Errors: 1}, "grosse", -1},
		{"größe", Options{Errors: 3}, "grosse", 3},
		{"größe", Options{Errors: 1}, "grösse", -1},
		{"größe", Options{Errors: 1}, "GRÖßE", 0},
		{"größe", Options{Errors: 1}, "gröBe", 1},
		{"日本語", Options{Errors: 1}, "日語本", 1},
		{"<ker>nel", Options{Errors: 2, Parts: true}, "kernal", 1},
		{"<ker>nel", Options{Errors: 2, Parts: true}, "karnel", -1},
		{"<ker>nel", Options{Errors: 2, Parts: true}, "xkernel", 1},
		{"ker*l", Options{Syntax: Wild}, "kernel", 0},
		{"ker?l", Options{Syntax: Wild}, "kernel", -1},
		{"ker??l", Options{Syntax: Wild, Errors: 1}, "kernal", 0},
		{"ker*l", Options{Syntax: Wild, Errors: 1}, "kanel", -1},
		{"ker*l", Options{Syntax: Wild, Errors: 1}, "kanerl", -1},
		{"ker*l", Options{Syntax: Wild, Errors: 1}, "kerxxxm", 1},
		{"(ab|cd)+", Options{Syntax: Regexp}, "abcdab", 0},
		{"(ab|cd)+", Options{Syntax: Regexp, Errors: 1}, "abdcab", 1},
		{"(ab|cd)+", Options{Syntax: Regexp, Errors: 1}, "abdc", 1},
		{"(?P<exact>ab|cd)x", Options{Syntax: Regexp, Errors: 1}, "abyx", 1},
		{"(?P<exact>ab|cd)x", Options{Syntax: Regexp, Errors: 1}, "axbx", -1},
		{"^foo$", Options{Syntax: Regexp}, "foo", 0},
		{"[a-c]{3,5}", Options{Syntax: Regexp}, "abcab", 0},
		{"[a-c]{3,5}", Options{Syntax: Regexp}, "abcabc", -1},
		{strings.Repeat("abc", 40), Options{Errors: 3}, strings.Repeat("abc", 19) + "acb" + strings.Repeat("abc", 20), 1},
		{"(x+x+)+y", Options{Syntax: Regexp}, strings.Repeat("x", 5000), -1},
	} {
		got, ok := compile(t, tt.expr, tt.opt).MatchString(tt.word)
		if !ok {
			got = -1
		}
		if got != tt.want {
			t.Errorf("%q %+v on %q: got %d, want %d", tt.expr, tt.opt, tt.word, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		expr string
		opt  Options
		text string
		want string // the match with its cost in brackets around it
	}{
		{"color", Options{Errors: 1}, "the colour red", "the [1:colour] red"},
		{"color", Options{Errors: 1}, "a color of", "a [0:color] of"},
		{"color", Options{Errors: 1}, "a clor of", "a [1:clor] of"},
		{"color", Options{Errors: 1, Word: true}, "colour, olor", "[1:colour], olor"},
		{"color", Options{Errors: 1, Word: true}, "discolored colr_ (colr)", "discolored colr_ ([1:colr])"},
		{"color", Options{Errors: 2, Best: true}, "culur colr color", "culur colr [0:color]"},
		{"color", Options{Best: true}, "a tumor there", "a [3:tumor] there"},
		{"a.c", Options{Syntax: Regexp}, "abcd ABCD", "[0:abc]d ABCD"},
		{"abcdef|cd", Options{Syntax: Regexp}, "xabcdef", "x[0:abcdef]"},
		{"^b.*$", Options{Syntax: Regexp, Lines: true}, "ab\nbc d\nbd", "ab\n[0:bc d]\nbd"},
		{"a", Options{Line: true}, "ab\nba\na\n", "ab\nba\n[0:a]\n"},
		{`\bkey\b`, Options{Syntax: Regexp}, "monkey keys key", "monkey keys [0:key]"},
		{"c++", Options{Word: true}, "xc++ c++x (c++)", "xc++ c++x ([0:c++])"},
		{"é", Options{}, "xÉy", "x[0:É]y"},
		{"два", Options{}, "один ДВА три", "один [0:ДВА] три"},
		{"a<b>c", Options{Parts: true, Errors: 1}, "acb axc abd", "acb axc [1:abd]"},
	} {
		text := tt.text
		start, end, cost, ok := compile(t, tt.expr, tt.opt).FindString(text, 0)
		if ok {
			text = text[:start] + "[" + string(rune('0'+cost)) + ":" + text[start:end] + "]" + text[end:]
		}
		if text != tt.want {
			t.Errorf("%q %+v: got %q, want %q", tt.expr, tt.opt, text, tt.want)
		}
	}
}

func TestInvalid(t *testing.T) {
	for _, tt := range []struct {
		expr string
		opt  Options
		want string
	}{
		{"", Options{}, "is empty"},
		{"a", Options{Errors: 9}, "errors are 0 to 8"},
		{"a", Options{Costs: Costs{Insert: -1}}, "a cost is below 0"},
		{"a(b", Options{Syntax: Regexp}, "missing closing )"},
		{"a<b", Options{Parts: true}, "'<' without '>'"},
		{"a>b", Options{Parts: true}, "'>' without '<'"},
		{"((a{0,100}){0,100}){0,2}", Options{Syntax: Regexp}, "invalid repeat count"},
		{"[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}", Options{Syntax: Regexp}, "is too large"},
		{strings.Repeat("a?", 2000), Options{Syntax: Regexp}, "is too large"},
		{strings.Repeat("a", 70000), Options{}, "is too long"},
	} {
		_, err := Compile(tt.expr, tt.opt)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%.20q: got %v, want %q of class ErrInvalid", tt.expr, err, tt.want)
		}
	}
}

// randomRegexp makes an expression of the letters a, b, c.
func randomRegexp(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "c", ".", "[ab]", "[^a]", "ab", "bc", "é", `\b`, "^", "$", "(?i:B)"}[r.IntN(13)]
	}
	x := randomRegexp(r, depth-1)
	switch r.IntN(6) {
	case 0:
		return "(" + x + "|" + randomRegexp(r, depth-1) + ")"
	case 1:
		return "(" + x + ")" + []string{"*", "+", "?", "{2}", "{1,3}"}[r.IntN(5)]
	case 2:
		return x
	}
	return x + randomRegexp(r, depth-1)
}

// TestRegexp compares with package regexp.
func TestRegexp(t *testing.T) {
	r := random(t)
	for range rounds(2500) {
		expr := randomRegexp(r, 1+r.IntN(4))
		opt := Options{Syntax: Regexp, Case: r.IntN(2) == 0}
		goExpr := expr
		if !opt.Case {
			goExpr = "(?i:" + expr + ")"
		}
		want := regexp.MustCompile(goExpr)
		want.Longest()
		whole := regexp.MustCompile(`\A(?:` + goExpr + `)\z`)
		p := compile(t, expr, opt)
		a := p.Automaton()
		letters := "abcABC \né_"
		for range 5 {
			text := randomText(r, letters, 12)
			checkRegexp(t, p, want, text)
			_, ok := p.MatchString(text)
			if w := whole.MatchString(text); ok != w {
				t.Fatalf("%q %+v on %q: got match %v, want %v", expr, opt, text, ok, w)
			} else if got := accepts(a, text); got != w {
				t.Fatalf("automaton of %q %+v on %q: got %v, want %v", expr, opt, text, got, w)
			}
			if ok && !strings.HasPrefix(lowered(text, opt), p.Prefix()) {
				t.Fatalf("%q %+v: prefix %q of %q", expr, opt, p.Prefix(), text)
			}
		}
	}
}

func checkRegexp(t *testing.T, p *Pattern, want *regexp.Regexp, text string) {
	t.Helper()
	loc := want.FindStringIndex(text)
	start, end, _, ok := p.FindString(text, 0)
	if ok != (loc != nil) || ok && (start != loc[0] || end != loc[1]) {
		t.Fatalf("%q %+v on %q: got %d-%d %v, want %v", p, p.opt, text, start, end, ok, loc)
	}
	if ok {
		checkNeeds(t, p, lowered(text[start:end], p.opt), true)
	}
}

// TestRegexpErrors compares regular expressions that stand for few strings
// with the model of each of these.
func TestRegexpErrors(t *testing.T) {
	r := random(t)
	for range rounds(800) {
		var list []string
		for range 1 + r.IntN(4) {
			list = append(list, "a"+randomText(r, "abcd", 5))
		}
		opt := Options{Syntax: Regexp, Errors: r.IntN(4)}
		p := compile(t, strings.Join(list, "|"), opt)
		m := &model{opt: opt}
		for _, s := range list {
			m.strings = append(m.strings, newModel(s, Options{}, 0).strings...)
		}
		for range 4 {
			text := randomText(r, "abcd ", 10)
			want, wantOK := m.find(text, 0)
			var got span
			var ok bool
			got.start, got.end, got.cost, ok = p.FindString(text, 0)
			if got != want || ok != wantOK {
				t.Fatalf("%q %+v on %q: got %v %v, want %v %v", p, opt, text, got, ok, want, wantOK)
			}
			checkNeeds(t, p, text[want.start:want.end], ok)
		}
	}
}

// TestLong compares patterns of more than a word of bits, in texts long
// enough to need the search for pieces and to fill the table.
func TestLong(t *testing.T) {
	r := random(t)
	for range rounds(8) {
		letters := "abcdefgh"[:2+r.IntN(7)]
		expr := randomText(r, letters, 100) + "ab"
		opt := Options{Errors: r.IntN(5), Lines: r.IntN(2) == 0}
		p := compile(t, expr, opt)
		var text strings.Builder
		for text.Len() < 300 {
			text.WriteString(randomText(r, letters+"\n", 30))
			text.WriteString(damage(r, expr, letters, r.IntN(6)))
		}
		m := newModel(expr, opt, 0)
		p.limitTables(1 << 14)
		want, wantOK := m.find(text.String(), 0)
		var got span
		var ok bool
		got.start, got.end, got.cost, ok = p.FindString(text.String(), 0)
		if got != want || ok != wantOK {
			t.Fatalf("%q %+v on %q: got %v %v, want %v %v", expr, opt, text.String(), got, ok, want, wantOK)
		}
	}
}

// limitTables makes what p learns fit in fewer bytes.
func (p *Pattern) limitTables(bytes int) {
	p.prepare()
	for _, d := range []*dfa{p.ahead, p.on, p.behind, p.back} {
		d.limit = bytes
	}
}

// damage makes errors in a text.
func damage(r *rand.Rand, text, letters string, n int) string {
	b := []byte(text)
	for range n {
		i := r.IntN(len(b))
		c := letters[r.IntN(len(letters))]
		switch r.IntN(4) {
		case 0:
			b[i] = c
		case 1:
			b = slices.Insert(b, i, c)
		case 2:
			if len(b) > 1 {
				b = slices.Delete(b, i, i+1)
			}
		default:
			if i > 0 {
				b[i], b[i-1] = b[i-1], b[i]
			}
		}
	}
	return string(b)
}

func TestSearcher(t *testing.T) {
	r := random(t)
	for range rounds(10000) {
		literal := randomText(r, "abAzéßд1[{", 4)
		if literal == "" {
			continue
		}
		folds := r.IntN(2) == 0
		text := randomText(r, "abABzZéÉßдД1[{@`", 30)
		from := 0
		expr := regexp.QuoteMeta(literal)
		if folds {
			expr = "(?i:" + expr + ")"
		}
		want := regexp.MustCompile(expr).FindStringIndex(text)
		s := NewSearcher(literal, folds)
		start, end, ok := s.FindString(text, from)
		if ok != (want != nil) || ok && (start != want[0] || end != want[1]) {
			t.Fatalf("%q folds %v in %q: got %d-%d %v, want %v", literal, folds, text, start, end, ok, want)
		}
	}
}

// TestMemory sees to it that a pattern whose table would be huge stays within
// its limit and is right all the same.
func TestMemory(t *testing.T) {
	expr := "(a|b)*a(a|b){18}"
	p := compile(t, expr+"c", Options{Syntax: Regexp})
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 200000)
	for i := range text {
		text[i] = "ab"[r.IntN(2)]
	}
	if p.Has(text) {
		t.Error("got a match, want none")
	}
	if p.ahead.size > 2*dfaLimit {
		t.Errorf("got a table of %d bytes, want at most %d", p.ahead.size, 2*dfaLimit)
	}
	text[len(text)-19] = 'a'
	if !p.Has(append(text, 'c')) {
		t.Error("got no match at the end")
	}
	a := compile(t, expr, Options{Syntax: Regexp}).Automaton()
	s := a.Start()
	for _, c := range text {
		if s = a.Step(s, c); s < 0 {
			t.Fatal("got a dead state")
		}
	}
	if !a.Accept(s) {
		t.Error("got a full automaton that does not accept")
	}
}

func TestLiterals(t *testing.T) {
	for _, tt := range []struct {
		expr     string
		opt      Options
		literals string
		required string
		prefix   string
	}{
		{"Mutex", Options{}, "mutex", "mutex", "mutex"},
		{"Mutex", Options{Case: true}, "Mutex", "Mutex", "Mutex"},
		{"foo*bar?z", Options{Syntax: Wild}, "foo bar z", "foo", "foo"},
		{".*mutex.*", Options{Syntax: Regexp}, "mutex", "mutex", ""},
		{"colou?r", Options{Syntax: Regexp}, "", "colour color", "colo"},
		{"(get|set)[a-z]+name", Options{Syntax: Regexp}, "name", "name", ""},
		{"(read|write)_?(lock|unlock)", Options{Syntax: Regexp}, "",
			"read_lock read_unlock readlock readunlock write_lock write_unlock writelock writeunlock", ""},
		{"seriali[sz]e[a-z]*", Options{Syntax: Regexp}, "", "serialise serialize", "seriali"},
		{"algorithm", Options{Errors: 1}, "", "algo ithm", ""},
		{"algorithm", Options{Errors: 1, Costs: Costs{Transpose: 2}}, "", "algo rith", ""},
		{"algorithm", Options{Errors: 2}, "", "al or th", ""},
		{"cat", Options{Errors: 2}, "", "", ""},
		{"<algo>rithm", Options{Errors: 3, Parts: true}, "algo", "algo", ""},
		{"[0-9]+", Options{Syntax: Regexp}, "", "", ""},
	} {
		p := compile(t, tt.expr, tt.opt)
		got := []string{strings.Join(p.Literals(), " "), strings.Join(p.Required(), " "), p.Prefix()}
		if want := []string{tt.literals, tt.required, tt.prefix}; !slices.Equal(got, want) {
			t.Errorf("%q %+v: got %q, want %q", tt.expr, tt.opt, got, want)
		}
	}
}

// TestLive compares Live with trying all bytes.
func TestLive(t *testing.T) {
	r := random(t)
	for range rounds(300) {
		p := compile(t, randomText(r, "abcdéд", 6)+"a", Options{Errors: 1 + r.IntN(2)})
		a := p.Automaton()
		l, ok := a.(interface{ Live(state, from int) int })
		if !ok {
			t.Fatal("got no Live")
		}
		s := a.Start()
		for _, c := range []byte(randomText(r, "abcdéд日", 6)) {
			if s = a.Step(s, c); s < 0 {
				break
			}
			from := r.IntN(256)
			want := from
			for want < 256 && a.Step(s, byte(want)) < 0 {
				want++
			}
			if got := l.Live(s, from); got > want || got == 256 && want < 256 {
				t.Fatalf("%q: got %d, want %d", p, got, want)
			}
		}
	}
}

// A pattern with an assertion and errors, of which something could begin at each
// of 100,000 places: trying all would take minutes.
func TestBeginIsFound(t *testing.T) {
	p, err := Compile(`\bq(a| )*z`, Options{Syntax: Regexp, Errors: 1})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a ", 100_000) + "q a a z"
	if start, end, cost, ok := p.FindString(text, 0); start != 200_000 || end != len(text) || cost != 0 || !ok {
		t.Errorf("got %d to %d at cost %d, %v; want 200000 to %d at 0", start, end, cost, ok, len(text))
	}
	for _, text := range []string{"\x80\x80\x80 q a z", "é é日本 q z", "\xe6\x97 q \xf0 az", "qq z"} {
		start, _, _, ok := p.FindString(text, 0)
		want := strings.Index(text, "q")
		if !ok || start != want {
			t.Errorf("%q: got %d, %v, want %d", text, start, ok, want)
		}
	}
}
