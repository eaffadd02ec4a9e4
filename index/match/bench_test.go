package match

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"
)

// benchText is the file TEXT names, or 8 MB of made-up prose.
func benchText(b *testing.B) []byte {
	if name := os.Getenv("TEXT"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		return text
	}
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 20000)
	for i := range words {
		words[i] = "a" + randomText(r, "eeeettttaaaooonnniiisssrrrhhlldcumfpgwybvkxjqz", 11)
	}
	var text []byte
	for i := 0; len(text) < 8<<20; i++ {
		text = append(text, words[int(float64(len(words))*r.Float64()*r.Float64()*r.Float64())]...)
		text = append(text, " \n"[min(i%11/10, 1)])
	}
	return text
}

// BenchmarkFind counts the matching lines of a text.
func BenchmarkFind(b *testing.B) {
	text := benchText(b)
	for _, bb := range []struct {
		name, expr string
		opt        Options
	}{
		{"rare", "zymurgy", Options{}},
		{"common", "function", Options{}},
		{"word", "the", Options{Word: true}},
		{"regexp-literal", "[a-z]+_lock", Options{Syntax: Regexp}},
		{"regexp-alternatives", "(read|write)[a-z]*lock", Options{Syntax: Regexp}},
		{"regexp", "[0-9]+bit", Options{Syntax: Regexp}},
		{"regexp-no-literal", "[0-9]{3}-[0-9]{4}", Options{Syntax: Regexp}},
		{"errors1", "algorithm", Options{Errors: 1}},
		{"errors2", "algorithm", Options{Errors: 2}},
		{"errors1-short", "mutex", Options{Errors: 1}},
		{"errors2-word", "mutex", Options{Errors: 2, Word: true}},
		{"errors4", "synchronization", Options{Errors: 4}},
		{"errors8", "synchronization", Options{Errors: 8, Word: true}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			bb.opt.Lines = true
			p := compile(b, bb.expr, bb.opt)
			begin, runs := userTime(b), 0
			for b.Loop() {
				runs++
				lines := 0
				for at := 0; ; lines++ {
					end, ok := p.Line(text, at)
					if !ok {
						break
					}
					at = end
				}
				b.ReportMetric(float64(lines), "lines")
			}
			used := userTime(b) - begin
			b.ReportMetric(float64(len(text))*float64(runs)/1e6/used.Seconds(), "MB/user-s")
		})
	}
}

// BenchmarkSteps walks words through an automaton, letter by letter.
func BenchmarkSteps(b *testing.B) {
	for _, bb := range []struct {
		name, expr string
		opt        Options
	}{
		{"errors1", "synchronize", Options{Errors: 1}},
		{"errors2", "synchronize", Options{Errors: 2}},
		{"errors3", "synchronize", Options{Errors: 3}},
		{"regexp", "[a-z]+_lock", Options{Syntax: Regexp}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			words := make([]string, 1000)
			for i := range words {
				words[i] = damage(r, "synchronize", "abcdefghijklmnopqrstuvwxyz", r.IntN(6))
			}
			p := compile(b, bb.expr, bb.opt)
			steps, begin := 0, userTime(b)
			for b.Loop() {
				a := p.Automaton()
				for _, w := range words {
					s := a.Start()
					for i := 0; i < len(w) && s >= 0; i++ {
						s = a.Step(s, w[i])
						steps++
					}
				}
			}
			b.ReportMetric(float64(userTime(b)-begin)/float64(steps), "user-ns/step")
		})
	}
}

// userTime is the processor time used so far; others' load leaves it alone.
func userTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}
