package match

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A token of a model pattern is a character, or any.
type token struct {
	r    rune
	any  bool
	part int
}

func (t token) stands(r rune, opt Options) bool {
	return t.any || t.r == r || !opt.Case && unicode.ToLower(t.r) == unicode.ToLower(r)
}

// a model is a pattern as plain dynamic programming sees it: the token strings
// it stands for, up to a length.
type model struct {
	opt     Options
	strings [][]token
}

// newModel expands the stars of a literal or wildcard pattern up to room
// characters each.
func newModel(expr string, opt Options, room int) *model {
	m := &model{opt: opt, strings: [][]token{nil}}
	part, parts, escaped := 0, 0, false
	for i, r := range expr {
		add := []token{{r: r, part: part}}
		switch {
		case escaped:
			escaped = false
		case opt.Parts && r == '\\' && i < len(expr)-1:
			escaped = true
			continue
		case opt.Parts && r == '<':
			parts++
			part = parts
			continue
		case opt.Parts && r == '>':
			part = 0
			continue
		case opt.Syntax == Wild && r == '?':
			add[0].any = true
		case opt.Syntax == Wild && r == '*':
			var out [][]token
			for _, s := range m.strings {
				for n := 0; n <= room; n++ {
					t := append([]token(nil), s...)
					for range n {
						t = append(t, token{any: true, part: part})
					}
					out = append(out, t)
				}
			}
			m.strings = out
			continue
		}
		for i := range m.strings {
			m.strings[i] = append(m.strings[i], add...)
		}
	}
	return m
}

// costs gives, for each end from 0 to len(text), the cost of the text up to
// there.
func (m *model) costs(text []rune) []int {
	best := make([]int, len(text)+1)
	for i := range best {
		best[i] = never
	}
	for _, s := range m.strings {
		for j, c := range m.align(s, text) {
			best[j] = min(best[j], c)
		}
	}
	return best
}

// align is the table of the optimal string alignment, its last row.
func (m *model) align(a []token, b []rune) []int {
	cost := m.opt.Costs
	for _, c := range []*int{&cost.Insert, &cost.Delete, &cost.Substitute, &cost.Transpose} {
		if *c == 0 {
			*c = 1
		}
	}
	soft := func(i int) bool { return a[i].part == 0 }
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			if i == 0 && j == 0 {
				continue
			}
			c := never
			if i > 0 && j > 0 {
				if a[i-1].stands(b[j-1], m.opt) {
					c = min(c, d[i-1][j-1])
				}
				if soft(i - 1) {
					c = min(c, d[i-1][j-1]+cost.Substitute)
				}
			}
			if i > 0 && soft(i-1) {
				c = min(c, d[i-1][j]+cost.Delete)
			}
			if j > 0 && (i == 0 || i == len(a) || soft(i-1) || a[i-1].part != a[i].part) {
				c = min(c, d[i][j-1]+cost.Insert)
			}
			if i > 1 && j > 1 && soft(i-1) && soft(i-2) &&
				a[i-1].stands(b[j-2], m.opt) && a[i-2].stands(b[j-1], m.opt) {
				c = min(c, d[i-2][j-2]+cost.Transpose)
			}
			d[i][j] = c
		}
	}
	return d[len(a)]
}

func (m *model) match(text string) (int, bool) {
	r := []rune(text)
	c := m.costs(r)[len(r)]
	if c > m.opt.Errors {
		return 0, false
	}
	return c, true
}

// span is a match of the model.
type span struct{ start, end, cost int }

// find follows the definition in the package comment.
func (m *model) find(text string, from int) (s span, ok bool) {
	var all []span
	for start := from; start <= len(text); start++ {
		if start < len(text) && !utf8.RuneStart(text[start]) {
			continue
		}
		rest := []rune(text[start:])
		ends := byteOffsets(text[start:])
		for j, c := range m.costs(rest) {
			if end := start + ends[j]; c <= m.opt.Errors && m.allowed(text, start, end) {
				all = append(all, span{start, end, c})
			}
		}
	}
	if len(all) == 0 {
		return span{}, false
	}
	first := len(text)
	for _, a := range all {
		first = min(first, a.end)
	}
	empty := true
	for _, a := range all {
		empty = empty && !(a.end == first && a.start < first)
	}
	for _, a := range all {
		if a.start < first || empty && a.start == first {
			if !ok || a.cost < s.cost || a.cost == s.cost && (a.start < s.start || a.start == s.start && a.end > s.end) {
				s, ok = a, true
			}
		}
	}
	return s, ok
}

func byteOffsets(text string) []int {
	var out []int
	for i := range text {
		out = append(out, i)
	}
	return append(out, len(text))
}

func (m *model) allowed(text string, start, end int) bool {
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }
	before, n := utf8.DecodeLastRuneInString(text[:start])
	after, k := utf8.DecodeRuneInString(text[end:])
	o := m.opt
	return !((o.Lines || o.Line) && strings.Contains(text[start:end], "\n") ||
		o.Word && (n > 0 && word(before) || k > 0 && word(after)) ||
		o.Line && (n > 0 && before != '\n' || k > 0 && after != '\n'))
}

// random makes a source of random numbers and prints its seed.
func random(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// rounds is how often to try, a multiple of it by ROUNDS.
func rounds(n int) int {
	if k, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil {
		return n * k
	}
	return n
}

func randomText(r *rand.Rand, letters string, n int) string {
	all := []rune(letters)
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteRune(all[r.IntN(len(all))])
	}
	return b.String()
}

func randomPattern(r *rand.Rand) (string, Options) {
	opt := Options{Errors: r.IntN(4), Case: r.IntN(2) == 0, Parts: r.IntN(2) == 0}
	letters := "abcdeAé"
	if r.IntN(3) == 0 {
		opt.Syntax = Wild
		letters += "?"
	}
	if r.IntN(2) == 0 {
		opt.Costs = Costs{r.IntN(4), r.IntN(4), r.IntN(4), r.IntN(4)}
	}
	expr := randomText(r, letters, 6) + "a"
	if opt.Syntax == Wild && r.IntN(2) == 0 {
		expr += "*" + randomText(r, letters, 2)
	}
	if opt.Parts && r.IntN(2) == 0 {
		all := []rune(expr)
		i := r.IntN(len(all))
		j := i + 1 + r.IntN(len(all)-i)
		expr = string(all[:i]) + "<" + string(all[i:j]) + ">" + string(all[j:])
	}
	return expr, opt
}

func TestMatchModel(t *testing.T) {
	r := random(t)
	for range rounds(2000) {
		expr, opt := randomPattern(r)
		p, err := Compile(expr, opt)
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(expr, opt, 8)
		a := p.Automaton()
		for range 8 {
			word := randomText(r, "abcdeAéÉ", 8)
			want, wantOK := m.match(word)
			if got, ok := p.MatchString(word); got != want || ok != wantOK {
				t.Fatalf("%q %+v on %q: got %d %v, want %d %v", expr, opt, word, got, ok, want, wantOK)
			}
			if got := accepts(a, word); got != wantOK {
				t.Fatalf("automaton of %q %+v on %q: got %v, want %v", expr, opt, word, got, wantOK)
			}
			if wantOK && !strings.HasPrefix(lowered(word, opt), p.Prefix()) {
				t.Fatalf("%q %+v: prefix %q of %q", expr, opt, p.Prefix(), word)
			}
		}
	}
}

func lowered(word string, opt Options) string {
	if opt.Case {
		return word
	}
	return strings.ToLower(word)
}

func accepts(a Automaton, word string) bool {
	s := a.Start()
	for i := 0; i < len(word); i++ {
		if s = a.Step(s, word[i]); s < 0 {
			return false
		}
	}
	return a.Accept(s)
}

func TestFindModel(t *testing.T) {
	r := random(t)
	for range rounds(2000) {
		expr, opt := randomPattern(r)
		opt.Word, opt.Lines, opt.Line = r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(6) == 0
		p, err := Compile(expr, opt)
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(expr, opt, 12)
		for range 4 {
			text := randomText(r, "abcdeAéÉab   .\n_", 12)
			from := 0
			if off := byteOffsets(text); r.IntN(2) == 0 {
				from = off[r.IntN(len(off))]
			}
			want, wantOK := m.find(text, from)
			var got span
			var ok bool
			got.start, got.end, got.cost, ok = p.FindString(text, from)
			if got != want || ok != wantOK {
				t.Fatalf("%q %+v on %q from %d: got %v %v, want %v %v", expr, opt, text, from, got, ok, want, wantOK)
			}
			if has := p.Has([]byte(text[from:])); from == 0 && has != wantOK {
				t.Fatalf("%q %+v has %q: got %v", expr, opt, text, has)
			}
			checkNeeds(t, p, lowered(text[want.start:want.end], opt), wantOK)
		}
	}
}

// checkNeeds sees to it that a match holds what the pattern says it must.
func checkNeeds(t *testing.T, p *Pattern, text string, matches bool) {
	t.Helper()
	if !matches {
		return
	}
	for _, s := range p.Literals() {
		if !strings.Contains(text, s) {
			t.Fatalf("%q matches %q without %q", p, text, s)
		}
	}
	for _, s := range p.Required() {
		if strings.Contains(text, s) {
			return
		}
	}
	if len(p.Required()) > 0 {
		t.Fatalf("%q %+v matches %q without any of %q", p, p.opt, text, p.Required())
	}
}
