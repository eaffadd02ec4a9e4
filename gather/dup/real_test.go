package dup

import (
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// realTexts are texts of this machine's documentation with 300 words or more.
func realTexts(t *testing.T, most int) (texts [][]string) {
	t.Helper()
	stop := fmt.Errorf("enough")
	for _, dir := range []string{"/usr/share/doc", "/usr/share/perl", "/usr/share/common-licenses", "/usr/include"} {
		err := filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".gz") {
				return nil
			}
			st, err := d.Info()
			if err != nil || st.Size() < 2000 || st.Size() > 200_000 {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil || strings.ContainsRune(string(text), 0) {
				return nil
			}
			if words := wordsOf(string(text)); len(words) >= 300 {
				texts = append(texts, words)
			}
			if len(texts) == most {
				return stop
			}
			return nil
		})
		if err == stop {
			break
		}
	}
	return texts
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// runs are the runs of three words of a text.
func runs(words []string) map[string]struct{} {
	set := make(map[string]struct{})
	for i := range max(len(words)-2, 0) {
		set[strings.Join(words[i:i+3], " ")] = struct{}{}
	}
	return set
}

// same is how much of two texts is the same, as Similar estimates it.
func same(a, b map[string]struct{}) float64 {
	both := 0
	for r := range a {
		if _, ok := b[r]; ok {
			both++
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}

// TestSimilarReal holds signatures to real texts: of those with few words
// changed nearly all are found, and of pairs that are found few are not alike.
// HARVEST_TEXTS sets how many are taken.
func TestSimilarReal(t *testing.T) {
	most := 250
	if n, err := strconv.Atoi(os.Getenv("HARVEST_TEXTS")); err == nil {
		most = n
	}
	texts := realTexts(t, most)
	if len(texts) < 100 {
		t.Skipf("%d texts of 300 words on this machine, and 100 are wanted", len(texts))
	}
	t.Logf("%d texts; HARVEST_TEXTS=4000 for more", len(texts))
	r := rand.New(rand.NewPCG(3, 4))
	sign := func(words []string) *Signature {
		s, _ := Sign([]byte(strings.Join(words, " ")), false)
		return &s
	}
	signs := make([]*Signature, len(texts))
	for i := range texts {
		signs[i] = sign(texts[i])
	}
	const threshold = 0.7
	for _, c := range []struct{ changed, found float64 }{{0.005, 0.99}, {0.02, 0.9}} {
		found := 0
		for i, words := range texts {
			other := append([]string(nil), words...)
			for range int(c.changed*float64(len(words)) + 0.5) {
				other[r.IntN(len(other))] = fmt.Sprintf("new%d", r.Int())
			}
			if Similar(signs[i], sign(other)) >= threshold {
				found++
			}
		}
		part := float64(found) / float64(len(texts))
		t.Logf("%.1f %% of words changed: %.4f found", c.changed*100, part)
		if part < c.found {
			t.Errorf("%.1f %% of words changed: got %.4f found, want %.2f", c.changed*100, part, c.found)
		}
	}
	pairs, wrong, near := 0, 0, 0
	for i := range texts {
		for j := range i {
			if Similar(signs[i], signs[j]) < threshold {
				continue
			}
			pairs++
			switch s := same(runs(texts[i]), runs(texts[j])); {
			case s < 0.5:
				wrong++
			case s < threshold:
				near++
			}
		}
	}
	t.Logf("%d pairs found, %d of them less than half the same, %d less than %.1f", pairs, wrong, near, threshold)
	if wrong*10 > pairs {
		t.Errorf("got %d of %d pairs that are less than half the same, want a tenth at most", wrong, pairs)
	}
}
