package index_test

import (
	"errors"
	iofs "io/fs"
	"slices"
	"sync"
	"testing"

	"harvest/index"
)

func TestStemmer(t *testing.T) {
	stem, err := index.Stemmer("english")
	must(t, err)
	for _, group := range [][]string{
		{"connect", "connected", "connecting", "connection", "connections"},
		{"fly", "flies"},
		{"caresses", "caress"},
	} {
		for _, w := range group {
			if got, want := stem(w), stem(group[0]); got != want {
				t.Errorf("%s: got stem %q, want %q as %s has", w, got, want, group[0])
			}
		}
	}
	for _, pair := range [][2]string{{"university", "united"}, {"sing", "sin"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%s and %s: got the same stem %q, want two", pair[0], pair[1], stem(pair[0]))
		}
	}
	if _, err := index.Stemmer("klingon"); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("got %v, want %v", err, iofs.ErrInvalid)
	}
}

// Every language that is named is known, takes any word, and may be asked
// from several goroutines.
func TestLanguages(t *testing.T) {
	words := []string{"", "a", "9", "x86_64", "running", "haeuser", "maisons", "книги", "日本", "don't", "\xff"}
	for _, name := range index.Languages() {
		stem, err := index.Stemmer(name)
		must(t, err)
		want := make([]string, len(words))
		for i, w := range words {
			want[i] = stem(w)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					for i, w := range words {
						if got := stem(w); got != want[i] {
							t.Errorf("%s: %q: got stem %q, want %q as before", name, w, got, want[i])
						}
					}
				}
			})
		}
		wg.Wait()
	}
}

// Stop words are words, in order, each once.
func TestStopWords(t *testing.T) {
	list := index.StopWords()
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("got %q, want them in order, each once", list)
	}
	for _, s := range list {
		n := 0
		index.Words(s, func(w *index.Word) bool {
			if n++; string(w.Text) != s {
				t.Errorf("%q: got the word %q of it", s, w.Text)
			}
			return true
		})
		if n != 1 {
			t.Errorf("%q: got %d words of it, want one", s, n)
		}
	}
}
