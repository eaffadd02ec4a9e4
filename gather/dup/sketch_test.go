package dup

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// lorem is a text of n words that is the same for one seed.
func lorem(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%c%c%c ", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26))
	}
	return b.String()
}

func sketch(texts ...string) *Sketch {
	var k Sketcher
	for _, text := range texts {
		k.Add(text)
	}
	s := k.Sketch()
	return &s
}

// resembling makes two texts of n words whose resemblance is r, or as near to
// it as can be: the second has a stretch at its end that the first has not.
func resembling(seed uint64, n int, r float64) (a, b string, is float64) {
	words := strings.Fields(lorem(seed, 2*n))
	own := int(math.Round(float64(n-2)*(1-r)/(1+r))) + 2 // two more: runs that cross
	first := words[:n]
	second := slices.Concat(words[:n-own], words[n:n+own])
	return strings.Join(first, " "), strings.Join(second, " "), same(runs(first), runs(second))
}

// TestResemblance: the estimate is right in the mean, and its spread is what
// Bound takes it to be.
func TestResemblance(t *testing.T) {
	const pairs = 200
	for _, words := range []int{60, 300, 3000} {
		for _, r := range []float64{0.25, 0.5, 0.8, 0.95} {
			sum, found, truth := 0.0, 0, 0.0
			for i := range pairs {
				a, b, is := resembling(uint64(i*7919+words), words, r)
				got := Resemblance(sketch(a), sketch(b))
				sum += got
				truth += is
				if got >= Bound(is) {
					found++
				}
			}
			mean, recall := sum/pairs, float64(found)/pairs
			t.Logf("%d words, resemblance %.3f: mean estimate %.3f, found %.3f", words, truth/pairs, mean, recall)
			if math.Abs(mean-truth/pairs) > 0.015 {
				t.Errorf("%d words, resemblance %.3f: got mean estimate %.3f", words, truth/pairs, mean)
			}
			if recall < 0.88 {
				t.Errorf("%d words, resemblance %.3f: got %.3f above the bound, want 0.95 or so", words, truth/pairs, recall)
			}
		}
	}
}

func TestSketchWords(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"One two, THREE four.", "one two three four", true},
		{"one two three four", "one two four three", false},
		{"one", "one", true},
		{"one", "two", false},
		{"one two", "two one", false},
		{"été à paris", "été à  Paris!", true},
		{"日本語", "日 本 語", true},
		{"日本語", "日語本", false},
		{"x日本", "x 日 本", true},
	} {
		if got := *sketch(tt.a) == *sketch(tt.b); got != tt.same {
			t.Errorf("%q, %q: got same %v, want %v", tt.a, tt.b, got, tt.same)
		}
	}
	if *sketch("one two three", "four five six") == *sketch("one two three four five six") {
		t.Error("a run goes from one text into another")
	}
	for _, none := range []string{"", " .,-", "\n"} {
		if s := sketch(none); !s.None() || Resemblance(s, s) != 0 {
			t.Errorf("%q: got words", none)
		}
	}
	if s := sketch("a"); Resemblance(s, s) != 1 {
		t.Errorf("itself: got %v", Resemblance(s, s))
	}
	var k Sketcher
	k.Add("left from another document")
	k.Sketch()
	k.Add("one two three")
	if k.Sketch() != *sketch("one two three") {
		t.Error("a Sketcher keeps something of the document before")
	}
}

func TestTree(t *testing.T) {
	s := Sketch{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0}
	if s.Tree(0) != 0x12345678 || s.Tree(1) != 0x9abcdef0 || Trees*Rows != sketchBins {
		t.Errorf("got trees %x, %x", s.Tree(0), s.Tree(1))
	}
}

func TestBound(t *testing.T) {
	if Bound(1) != 1 {
		t.Errorf("got %v for the same, want 1", Bound(1))
	}
	last := 0.0
	for r := 0.25; r < 1; r += 0.05 {
		b := Bound(r)
		if b <= last || b >= r || b < r-0.06 {
			t.Errorf("resemblance %.2f: got bound %.3f", r, b)
		}
		last = b
	}
}

func FuzzSketch(f *testing.F) {
	f.Add("one two three", "four")
	f.Add("日本\xe3\x80 x", "\xe0")
	f.Fuzz(func(t *testing.T, a, b string) {
		s := sketch(a, b)
		if *sketch(" "+a, b+"\n") != *s {
			t.Error("blanks around it make another document")
		}
		if r := Resemblance(s, s); r != 1 && !s.None() {
			t.Errorf("itself: got %v", r)
		}
	})
}

func BenchmarkSketch(b *testing.B) {
	text, err := os.ReadFile("/usr/share/common-licenses/GPL-3")
	if err != nil {
		text = []byte(lorem(1, 5000))
	}
	for _, n := range []int{100, 2000, len(text)} {
		part := string(text[:n])
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			var k Sketcher
			b.SetBytes(int64(n))
			for b.Loop() {
				k.Add(part)
				k.Sketch()
			}
		})
	}
}

func BenchmarkResemblance(b *testing.B) {
	x, y := sketch(lorem(1, 100)), sketch(lorem(2, 100))
	for b.Loop() {
		Resemblance(x, y)
	}
}
