package pattern

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
)

// corpus is a text of real words: manual pages.
func corpus(tb testing.TB) string {
	names, _ := filepath.Glob("../../../docs/*.md")
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		all.Write(b)
	}
	if all.Len() < 200<<10 {
		tb.Fatalf("got %d bytes of text, want more", all.Len())
	}
	return all.String()
}

// longWords are words of ASCII: they are cut into pieces below.
func longWords(text string) (words []string) {
	letter := func(r rune) bool { return r < unicode.MaxASCII && unicode.IsLetter(r) }
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !letter(r) }) {
		if len(w) >= 4 {
			words = append(words, w)
		}
	}
	return words
}

// names makes n patterns of two words each, every other one a regular expression.
func names(n int, pair func() (x, y string)) (patterns []Pattern) {
	for i := range n {
		x, y := pair()
		p := Pattern{Text: x + " " + y}
		if i%2 == 0 {
			p = Pattern{`(?i)\b` + x + `\W+(\w+\W+){0,3}` + y + `\b`, true}
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// benchmarked are sorts of patterns for a text of a corpus: names of things that
// other texts are about, of which one in a hundred is here; pairs of words as
// frequent as they are in the corpus; pairs of words of this very text, so that
// each expression has to be tried.
func benchmarked(text, corpus string, n int) map[string][]Pattern {
	r := rand.New(rand.NewPCG(7, 7))
	all, here := longWords(corpus), longWords(text)
	any := func(words []string) string { return words[r.IntN(len(words))] }
	return map[string][]Pattern{
		"rare": names(n, func() (x, y string) {
			if r.IntN(100) == 0 {
				i := r.IntN(len(here) - 1)
				return here[i], here[i+1]
			}
			return any(all), fmt.Sprintf("%s%c%c%s", any(all)[:3], 'a'+r.IntN(26), 'a'+r.IntN(26), any(all)[:3])
		}),
		"mixed":  names(n, func() (x, y string) { return any(all), any(all) }),
		"common": names(n, func() (x, y string) { return any(here), any(here) }),
	}
}

// BenchmarkMatch is of a summary of 8 KiB of manual pages: in one run a set, the
// same one with each expression whose words are there searched by Go's regexp,
// and all patterns one after the other. cold-ms is what the first text takes.
func BenchmarkMatch(b *testing.B) {
	whole := corpus(b)
	text := []byte(whole[:8<<10])
	for _, n := range []int{1000, 10_000} {
		sorts := benchmarked(string(text), whole, n)
		for _, sort := range []string{"rare", "mixed", "common"} {
			patterns := sorts[sort]
			name := fmt.Sprintf("patterns=%d/%s/", n, sort)
			b.Run(name+"set", func(b *testing.B) { benchmarkSet(b, patterns, text, false) })
			b.Run(name+"regexp", func(b *testing.B) { benchmarkSet(b, patterns, text, true) })
			b.Run(name+"each", func(b *testing.B) { benchmarkEach(b, patterns, text) })
		}
	}
}

func benchmarkSet(b *testing.B, patterns []Pattern, text []byte, plain bool) {
	s, err := Compile(patterns)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range s.pool.all {
		e.plain.Store(plain)
	}
	cold := user()
	n := len(s.all(text))
	cold = user() - cold
	b.SetBytes(int64(len(text)))
	start := user()
	for b.Loop() {
		s.all(text)
	}
	b.ReportMetric(float64((user()-start).Microseconds())/1000/float64(b.N), "user-ms/op")
	b.ReportMetric(float64(cold.Microseconds())/1000, "cold-ms")
	b.ReportMetric(float64(s.pool.held.Load())/1e6, "MB")
	b.ReportMetric(float64(n), "found")
}

func benchmarkEach(b *testing.B, patterns []Pattern, text []byte) {
	var regs []*regexp.Regexp
	for _, p := range patterns {
		if !p.Regexp {
			p.Text = `(?i)\b` + strings.ReplaceAll(p.Text, " ", `\W+`) + `\b`
		}
		regs = append(regs, regexp.MustCompile(p.Text))
	}
	b.SetBytes(int64(len(text)))
	start := user()
	for b.Loop() {
		for _, re := range regs {
			re.Match(text)
		}
	}
	b.ReportMetric(float64((user()-start).Microseconds())/1000/float64(b.N), "user-ms/op")
}

// user is the processor time of this process, which others on the machine change
// least.
func user() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}
