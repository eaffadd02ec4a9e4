package pattern

import (
	"bytes"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func find(t testing.TB, patterns []Pattern, text string) []int {
	t.Helper()
	s, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return s.all([]byte(text))
}

func (s *Set) all(text []byte) (found []int) {
	h := s.Hits()
	s.Match(h, text)
	for i := range s.exprs {
		if h.Has(i) {
			found = append(found, i)
		}
	}
	return found
}

// naive is what a set is to find.
func naive(patterns []Pattern, text []byte) (found []int) {
	whole := phrase(strings.ToValidUTF8(string(text), "\uFFFD"))
	for i, p := range patterns {
		if p.Regexp && regexp.MustCompile(p.Text).Match(text) || !p.Regexp && bytes.Contains(whole, phrase(p.Text)) {
			found = append(found, i)
		}
	}
	return found
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern string // of a regular expression between slashes
		text    string
		want    bool
	}{
		{"laser intensity", "The LASER-\nIntensity, measured", true},
		{"laser intensity", "laser intensity", true},
		{"laser intensity", "laser intensities", false},
		{"laser intensity", "dilaser intensity", false},
		{"laser  intensity!", "far laser... intensity", true},
		{"c", "C++", true},
		{"c", "abc", false},
		{"straße", "STRAßE 7", true},
		{"Ωhm", "ωHM", true},
		{"kelvin", "\u212aelvin", true},
		{"naïve", "na\u00efve", true},
		{"x", "", false},
		{"/las.r/", "a laser", true},
		{"/las.r/", "a Laser", false},
		{"/(?i)laser/", "LASER", true},
		{"/(?i)\u212aelvin/", "kelvin", true},
		{`/\d{4}-\d\d/`, "in 1991-07", true},
		{`/^the\b/`, "the end", true},
		{`/^the\b/`, "in the end", false},
		{`/colou?r/`, "color", true},
		{`/colou?r/`, "colour", true},
		{`/(cat|dog)s?/`, "a dog", true},
		{`/(cat|dog)s?/`, "a cow", false},
		{`/[abc]x[0-3]/`, "bx2", true},
		{`/[abc]x[0-3]/`, "bx4", false},
		{`/(ab)+c/`, "ababc", true},
		{`/a.*z/`, "begin a\nz", false},
		{`/(?s)a.*z/`, "begin a\nz", true},
		{`/\+\+i/`, "++i", true},
		{`/\+\+i/`, "i", false},
		{`/x y/`, "x  y", false},
		{`/x  y/`, "x  y", true},
		{`/x\x{FFFD}y/`, "x\xffy", true},
	}
	for _, tt := range tests {
		p := Pattern{Text: tt.pattern}
		if strings.HasPrefix(p.Text, "/") {
			p = Pattern{strings.Trim(p.Text, "/"), true}
		}
		other := Pattern{Text: "another thing"}
		if got := len(find(t, []Pattern{other, p}, tt.text)) > 0; got != tt.want {
			t.Errorf("%s in %q: got %t, want %t", tt.pattern, tt.text, got, tt.want)
		}
	}
}

// TestFold holds fold to what (?i) takes for the same, over all of Unicode.
func TestFold(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if fold(f) != fold(r) {
				t.Fatalf("%U and %U: got %U and %U, want the same", r, f, fold(r), fold(f))
			}
		}
	}
}

func TestRequired(t *testing.T) {
	tests := []struct{ re, want string }{
		{`laser`, "laser"},
		{`(?i)Laser.*beam`, "laser&beam"},
		{`x.*intensity`, "intensity"},
		{`(laser|maser).*(beam|ray).*[0-9]`, "laser|maser&beam|ray"},
		{`(x|(one|two).*more) [ab]`, ""},
		{`(xyz|(one|two).*more) [ab]`, "more|xyz"},
		{`(data set|series) [A-F]`, "data set a|data set b|data set c|data set d|data set e|data set f|series a|series b|series c|series d|series e|series f"},
		{`(foo|bar|quux)\d+`, "bar|foo|quux"},
		{`(foo|\d+)`, ""},
		{`\d+`, ""},
		{`.*`, ""},
		{`a?`, ""},
		{`(abc){2,3}`, "abcabc|abcabcabc"},
		{`(?:abc)+`, "abc"},
		{`[a-z]+ing`, "ing"},
		{`--`, ""},
		{`a[^b]c`, ""},
	}
	for _, tt := range tests {
		tree, err := syntax.Parse(tt.re, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		var sets []string
		for _, set := range required(tree.Simplify()) {
			sets = append(sets, strings.Join(set, "|"))
		}
		if got := strings.Join(sets, "&"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.re, got, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	blind := make([]Pattern, MaxBlind+1)
	for i := range blind {
		blind[i] = Pattern{fmt.Sprintf(`\d{%d}`, i+1), true}
	}
	for _, tt := range []struct {
		p     []Pattern
		index int
		want  string
	}{
		{[]Pattern{{Text: "a"}, {Text: " -- "}}, 1, "has no letter"},
		{[]Pattern{{Text: "("}, {Text: "(", Regexp: true}}, 0, "has no letter"},
		{[]Pattern{{Text: "a"}, {Text: "(", Regexp: true}}, 1, "missing closing )"},
		{[]Pattern{{Text: strings.Repeat("a", MaxSize+1)}}, 0, "over 1024 bytes"},
		{blind, MaxBlind, "without any word"},
		{make([]Pattern, MaxPatterns+1), MaxPatterns, "no more than"},
	} {
		_, err := Compile(tt.p)
		var e *Error
		if !errors.As(err, &e) || e.Index != tt.index || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("got %v, want %q of pattern %d", err, tt.want, tt.index)
		}
	}
}

// TestRandom holds sets to what each pattern finds by itself, over texts and
// patterns of few letters, so that words overlap.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	piece := func(parts []string, n int) string {
		var b strings.Builder
		for range 1 + r.IntN(n) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		return b.String()
	}
	letters := []string{"a", "b", "A", " ", "-", "é", "É", "ab", "\xff", "\n"}
	parts := append(letters[:8:8], "a+", "b?", "[ab]", "(a|bb)", ".", `\b`, "(?i)a", "(ab|b a)*", "c{0,2}")
	for range 500 {
		var patterns []Pattern
		for len(patterns) < 1+r.IntN(40) {
			p := Pattern{piece(parts, 5), r.IntN(2) == 0}
			if _, err := Compile([]Pattern{p}); err == nil {
				patterns = append(patterns, p)
			}
		}
		s, err := Compile(patterns)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			text := []byte(piece(letters, 30))
			if got, want := s.all(text), naive(patterns, text); !slices.Equal(got, want) {
				t.Fatalf("%+v in %q: got %v, want %v", patterns, text, got, want)
			}
		}
	}
}

// TestSparse holds states without a row of their own to the same answers.
func TestSparse(t *testing.T) {
	var patterns []Pattern
	for i := range 30_000 {
		patterns = append(patterns, Pattern{Text: fmt.Sprintf("common beginning of the series %d, and its end %d", i%7000, i)})
	}
	s, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	if states := len(s.auto.word); states < 10*int(s.auto.rows) {
		t.Fatalf("got %d states of which %d have rows, want many without", states, s.auto.rows)
	}
	for _, i := range []int{0, 6999, 7000, 29_999} {
		text := "common beginning of the series common " + patterns[i].Text + "9"
		if got := s.all([]byte(text)); len(got) != 0 {
			t.Errorf("%q: got %v, want none", text, got)
		}
		text = "common beginning of the series common " + patterns[i].Text + " 9"
		if got := s.all([]byte(text)); !slices.Equal(got, []int{i}) {
			t.Errorf("%q: got %v, want %d", text, got, i)
		}
	}
}
