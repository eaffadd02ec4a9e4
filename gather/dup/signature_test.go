package dup

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestSimilar: what changed few words is similar, in text as in markup.
func TestSimilar(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		changed float64 // of the words
		found   float64 // of the pairs, at least, at 0.7
	}{{0, 1}, {0.005, 0.99}, {0.02, 0.9}} {
		found := 0
		const pairs = 60
		for i := range pairs {
			words := strings.Fields(lorem(uint64(i), 1000))
			a, _ := Sign([]byte(strings.Join(words, " ")), false)
			for range int(c.changed * 1000) {
				words[r.IntN(len(words))] = fmt.Sprintf("new%d", r.Int())
			}
			b, _ := Sign([]byte("<p>"+strings.Join(words, "</p><p class=x>")), true)
			if Similar(&a, &b) >= 0.7 {
				found++
			}
		}
		t.Logf("%.1f %% of words changed: %.3f found", c.changed*100, float64(found)/pairs)
		if float64(found)/pairs < c.found {
			t.Errorf("%.1f %% of words changed: got %d of %d found, want %.2f", c.changed*100, found, pairs, c.found)
		}
	}
}

// TestNotSimilar: documents with the same frame and another text are not.
func TestNotSimilar(t *testing.T) {
	frame := lorem(0, 100)
	wrong := 0
	for i := range 200 {
		a, _ := Sign([]byte(frame+lorem(uint64(i+1), 100)), false)
		b, _ := Sign([]byte(frame+lorem(uint64(i+5000), 100)), false)
		if Similar(&a, &b) > 0.7 {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("got %d of 200 pairs taken for the same", wrong)
	}
}

func TestSign(t *testing.T) {
	sign := func(s string, markup bool) [2]Signature {
		text, shape := Sign([]byte(s), markup)
		return [2]Signature{text, shape}
	}
	zero := [2]Signature{}
	for _, empty := range []string{"", " .,", "<p>", "<!-- one two three -->", "<script>a b c</script>", "<STYLE x>a b c</sTyle >", "<script>a b c"} {
		if sign(empty, true) != zero {
			t.Errorf("%q: got words, want none", empty)
		}
	}
	same := func(a, b string, text, shape bool) {
		t.Helper()
		x, y := sign(a, true), sign(b, true)
		if (x[0] == y[0]) != text || (x[1] == y[1]) != shape {
			t.Errorf("%q, %q: got text %t, shape %t, want %t, %t", a, b, x[0] == y[0], x[1] == y[1], text, shape)
		}
	}
	same("One two three four", "<h1>one</h1><p>TWO, three<script>x y z</script> four<!-- five -->", true, true)
	same("day 17 of 2024", "day 8 of 1999", false, true)
	same("on Monday, 3 May 2024", "on freitag, 12 März 1999", false, true)
	same("log of 21Nov2026 and may2025", "log of 3january1999 and Mon7", false, true)
	same("log of 21Novel2026", "log of 21Nov2026", false, false)
	same("one", "two", false, false)
	same("one two", "two one", false, false)
	same("1 < 2 and 3 > 2", "1 2 and 3 2", true, true)
	same("a <b", "a", true, true)
	if a := sign("x", false)[0]; Similar(&a, &a) != 1 {
		t.Errorf("itself: got %v, want 1", Similar(&a, &a))
	}
	if s := (Signature{}); Similar(&s, &s) != 0 {
		t.Error("without words: got similar, want not")
	}
}

func FuzzSign(f *testing.F) {
	f.Add([]byte("<p>one <b>two</b> 3 <script>x</script> <!-- y"), true)
	f.Fuzz(func(t *testing.T, doc []byte, markup bool) {
		a, as := Sign(doc, markup)
		b, bs := Sign(append([]byte(" "), doc...), markup)
		if a != b || as != bs {
			t.Error("a blank before it makes another document")
		}
	})
}

func BenchmarkSign(b *testing.B) {
	page, err := os.ReadFile("/usr/share/doc/python3.11/html/library/os.html")
	if err != nil {
		page = []byte(strings.Repeat("<p class=x>"+lorem(1, 100), 1000))
	}
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		Sign(page, true)
	}
}

func BenchmarkSimilar(b *testing.B) {
	x, _ := Sign([]byte(lorem(1, 100)), false)
	y, _ := Sign([]byte(lorem(2, 100)), false)
	for b.Loop() {
		Similar(&x, &y)
	}
}
