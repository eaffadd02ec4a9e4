package match

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestHalves wants every word that a pattern accepts in one of its halves, and
// in the first none but those.
func TestHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 11))
	letters := []string{"a", "b", "c", "k", "s", "ö", "日", "ſ", "\x80", "\xe6", "\xe6\x97"}
	var accepted [2]int
	for range 30_000 {
		word := ""
		for range 5 + rng.IntN(5) {
			word += letters[rng.IntN(5)]
		}
		p, err := Compile(word, Options{Errors: 1 + rng.IntN(2)})
		if err != nil {
			t.Fatal(err)
		}
		h, ok := p.Halves()
		if !ok {
			continue
		}
		for range 4 {
			text := edited(rng, word, letters, rng.IntN(p.Errors()+2))
			front := strings.HasPrefix(text, h.Prefix) && run(t, h.Front, text)
			_, want := p.Match([]byte(text))
			if front && !want {
				t.Errorf("%s with %d errors in %q: the front half takes it", word, p.Errors(), text)
			}
			if tail := strings.HasSuffix(text, h.Tail); want && !front && !tail {
				t.Errorf("%s with %d errors in %q: is in no half", word, p.Errors(), text)
			} else if want && !front {
				accepted[1]++
			} else if want {
				accepted[0]++
			}
			if n := len([]rune(text)); want && (n < h.Least || n > h.Most) {
				t.Errorf("%s with %d errors in %q: got %d characters, want %d to %d", word, p.Errors(), text, n, h.Least, h.Most)
			}
		}
	}
	if accepted[0] < 1000 || accepted[1] < 1000 {
		t.Errorf("got %d words in the halves, too few to say anything", accepted)
	}
}

// edited is word with some errors.
func edited(rng *rand.Rand, word string, letters []string, errors int) string {
	for range errors {
		i, l := rng.IntN(len(word)+1), letters[rng.IntN(len(letters))]
		j := min(i+1, len(word))
		switch rng.IntN(4) {
		case 0:
			word = word[:i] + l + word[i:]
		case 1:
			word = word[:i] + word[j:]
		case 2:
			word = word[:i] + l + word[j:]
		case 3:
			if k := min(j+1, len(word)); k > j {
				word = word[:i] + word[j:k] + word[i:j] + word[k:]
			}
		}
	}
	return word
}

// run tells whether a accepts text, and wants Live to leave out nothing of it.
func run(t *testing.T, a Automaton, text string) bool {
	state := a.Start()
	var skipped []int
	for i := 0; i < len(text) && state >= 0; i++ {
		if a.(interface{ Live(state, from int) int }).Live(state, int(text[i])) != int(text[i]) {
			skipped = append(skipped, i)
		}
		state = a.Step(state, text[i])
	}
	ok := state >= 0 && a.Accept(state)
	if ok && len(skipped) > 0 {
		t.Errorf("%q is accepted, but its bytes %d are said to be dead", text, skipped)
	}
	return ok
}
