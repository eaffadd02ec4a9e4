package match

import (
	"math/rand/v2"
	"testing"
)

// TestLevenshteinBytes walks words byte by byte, characters cut off and bytes
// that are none among them, and wants what Match says of the whole.
func TestLevenshteinBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	pieces := []string{"a", "b", "c", "ab", "ö", "é", "日", "本", "ก", "한", "😀", "\x80", "\xff", "\xe6", "\xe6\x97", "\xf0\x9f", "\xc3", "\xed\xa0\x80", "\xe0\x80"}
	accepted := 0
	for range 50_000 {
		word, text := "", ""
		for range 1 + rng.IntN(3) {
			word += []string{"a", "b", "c", "ö", "日"}[rng.IntN(5)]
		}
		for range rng.IntN(5) {
			text += pieces[rng.IntN(len(pieces))]
		}
		p, err := Compile(word, Options{Errors: 1 + rng.IntN(2)})
		if err != nil {
			t.Fatal(err)
		}
		a := p.Automaton()
		state := a.Start()
		for i := 0; i < len(text) && state >= 0; i++ {
			state = a.Step(state, text[i])
		}
		got := state >= 0 && a.Accept(state)
		_, want := p.Match([]byte(text))
		if got != want {
			t.Errorf("%s with %d errors in %q: the walk says %v, want %v", word, p.Errors(), text, got, want)
		}
		if got {
			accepted++
		}
	}
	if accepted < 1000 {
		t.Errorf("got %d words accepted, too few to say anything", accepted)
	}
}
