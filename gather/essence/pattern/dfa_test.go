package pattern

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// alone searches text for an expression with an automaton only.
func alone(t testing.TB, re string, text []byte) (yes, done bool) {
	t.Helper()
	d, ok := newDFA(re, &pool{max: 1 << 40})
	if !ok {
		return false, false
	}
	return d.match(text, nil)
}

func TestAssertions(t *testing.T) {
	pieces := []string{`a`, `b`, `^`, `$`, `\b`, `\B`, `\A`, `\z`, `(?m:^)`, `(?m:$)`, `\n`, `.`, `(?s:.)`, `[^a]`, `(?i:k)`, `x?`, `(a|)`, `(?:\b)*`, `é`, `\pL`}
	letters := []string{"a", "b", "\n", " ", "_", "é", "\xff", "\u212a", "K", "世"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	some := func(of []string, n int) (s string) {
		for range r.IntN(n) {
			s += of[r.IntN(len(of))]
		}
		return s
	}
	for range 1000 {
		re := some(pieces, 6)
		d, ok := newDFA(re, &pool{max: 1 << 40})
		if !ok {
			t.Fatalf("%s: got no automaton, want one", re)
		}
		for range 10 {
			text := []byte(some(letters, 9))
			want := regexp.MustCompile(re).Match(text)
			if got, done := d.match(text, nil); got != want || !done {
				t.Fatalf("/%s/ in %q: got %t, %t, want %t", re, text, got, done, want)
			}
		}
	}
}

// exploding needs a state for each set of the last 14 letters that were a.
const exploding = `(?i)abc|[ac][ab]{14}x`

func TestTooManyStates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 20_000)
	for i := range text {
		text[i] = "ab"[r.IntN(2)]
	}
	if _, done := alone(t, exploding, text); done {
		t.Fatal("got an answer, want too many states")
	}
	s, err := Compile([]Pattern{{exploding, true}})
	if err != nil {
		t.Fatal(err)
	}
	e := s.exprs[0]
	for i := range maxFailed {
		if e.plain.Load() {
			t.Fatalf("left to regexp after %d texts", i)
		}
		if got := s.all(text); len(got) != 0 {
			t.Fatalf("got %v, want none", got)
		}
	}
	if !e.plain.Load() {
		t.Fatalf("not left to regexp after %d texts", maxFailed)
	}
	if got := s.all(append(text, strings.Repeat("a", 15)+"x"...)); !slices.Equal(got, []int{0}) {
		t.Fatalf("got %v, want 0", got)
	}
}

// TestTooLarge is of expressions that have no automaton.
func TestTooLarge(t *testing.T) {
	for _, re := range []string{`(?:[ab][cd][ef][gh][ij]){999}`, manyClasses()} {
		if _, ok := newDFA(re, &pool{max: 1 << 40}); ok {
			t.Errorf("%.20s: got an automaton, want none", re)
		}
		s, err := Compile([]Pattern{{"lemma|" + re, true}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.all([]byte("a lemma")); !slices.Equal(got, []int{0}) {
			t.Errorf("%.20s: got %v, want 0", re, got)
		}
	}
}

func manyClasses() string {
	var b strings.Builder
	b.WriteString("word")
	for r := rune(0x4e00); r < 0x4e00+260; r++ {
		b.WriteRune(r)
	}
	return b.String()
}

// TestPool has automata dropped all the time.
func TestPool(t *testing.T) {
	text := corpus(t)[:8<<10]
	patterns := benchmarked(text, text, 150)["common"]
	s, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	want := naive(patterns, []byte(text))
	if got := s.all([]byte(text)); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	full := s.pool.held.Load()
	s.pool.max = full / 10
	s.pool.add(1)
	for range 3 {
		if got := s.all([]byte(text)); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if held := s.pool.held.Load(); held > s.pool.max {
			t.Fatalf("got %d bytes held, want at most %d", held, s.pool.max)
		}
		kept := 0
		for _, e := range s.pool.all {
			if e.dfa.Load() != nil {
				kept++
			}
		}
		if kept == 0 || kept > len(s.pool.all)/2 {
			t.Fatalf("got %d of %d automata, want some", kept, len(s.pool.all))
		}
	}
}

// TestTogether has goroutines match different texts with one set, which drops
// automata meanwhile.
func TestTogether(t *testing.T) {
	whole := corpus(t)
	patterns := benchmarked(whole[:4<<10], whole, 80)["common"]
	s, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	s.pool.max = 100_000
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 3 {
				text := []byte(whole[(g%2+i)<<11:][:4<<10])
				if got, want := s.all(text), naive(patterns, text); !slices.Equal(got, want) {
					t.Errorf("text %d: got %v, want %v", g%2+i, got, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestNear has matches begin in all ways that differ from their words.
func TestNear(t *testing.T) {
	patterns := []Pattern{
		{`laser\d`, true}, {`\slaser\s+[xyz]{3,}`, true}, {`(?i)kelvin[0-9]|(meter)+ \d`, true}, {`(foo|bar|(baz.)+)\W+end`, true},
		{`  laser`, true}, {`--laser-?`, true}, {`(?s)^.{0,3}laser`, true}, {`éclair.`, true}, {`(abc|bca).*(xyz|$)`, true},
	}
	s, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"laser", "laser", " ", " ", "7", "\n", "beam", "xyzx", "\u212aelvin", "KELVIN", "meter", "foo", "baz", "end", "--", "éclair", "\xff", "\xe4\xb8", "abca", "世"}
	r := rand.New(rand.NewPCG(3, 3))
	hits := make([]int, len(patterns))
	for range 1500 {
		var text []byte
		for range r.IntN(30) {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		got, want := s.all(text), naive(patterns, text)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
		for _, i := range got {
			hits[i]++
		}
	}
	if n := slices.Min(hits); n == 0 {
		t.Errorf("got %v matches, want some of each", hits)
	}
}

func TestBeginnings(t *testing.T) {
	for _, tt := range []struct{ re, want string }{
		{`(?i)\bLaser\W+beam`, "laser"},
		{`(laser|maser).*x`, "laser|maser"},
		{`(laser \D+|(maser)+) x`, "laser |maser"},
		{`x?laser`, "laser|xlaser"},
		{`^the (abc.*)+`, "the abc"},
		{`[a-z]*laser`, ""},
		{`(laser|.*maser)`, ""},
		{`la.laser`, ""},
	} {
		s, err := Compile([]Pattern{{tt.re, true}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range s.exprs[0].begin {
			got = append(got, s.words[w])
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.re, got, tt.want)
		}
	}
}

// FuzzMatch compares a set, with the pattern in it alone and among others, and
// the automaton of the pattern, with Go's regexp.
func FuzzMatch(f *testing.F) {
	f.Add("laser intensity", "a Laser-intensity", false)
	f.Add(`(?i)las[ae]r.*(x|yy)+`, "laser\xff yy", true)
	f.Add("(a|b)c?d{2,4}", "abcdd", true)
	f.Add(`(?m)^\bab\b$|\Bx`, "ab\nabx", true)
	f.Add(`\slaser|  maser`, "laser   maser", true)
	f.Add(`\p{Greek}+$`, "\u1f7d\xce", true)
	others := []Pattern{{"other words", false}, {"a.*b", true}, {"(?i)laser|[bc]{3}", true}, {`abc\W+\w+$`, true}, {`\babc`, true}, {"abcd?", true}, {"[ab]bc+", true}}
	f.Fuzz(func(t *testing.T, p, text string, re bool) {
		for _, all := range [][]Pattern{{{p, re}}, append([]Pattern{{p, re}}, others...)} {
			s, err := Compile(all)
			if err != nil {
				return
			}
			want := naive(all, []byte(text))
			for range 2 { // the second time with states that are there
				if got := s.all([]byte(text)); !slices.Equal(got, want) {
					t.Fatalf("%+v in %q: got %v, want %v", all, text, got, want)
				}
			}
			if !re {
				continue
			}
			if got, done := alone(t, p, []byte(text)); done && got != slices.Contains(want, 0) {
				t.Fatalf("%+v in %q: got %t by its automaton, want %v", p, text, got, want)
			}
		}
	})
}
