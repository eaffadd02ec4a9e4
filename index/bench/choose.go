package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"harvest/index"
)

// How much of a corpus Choose looks at.
const (
	sampleDocs  = 400
	sampleBytes = 32 << 10 // of each
)

// A sample is what Choose knows of a corpus.
type sample struct {
	docs   map[string]int // by word, the documents it is in
	pairs  map[[2]string]int
	titles []string
	inAll  map[string]int // by word, the titles it is in
	stop   map[string]bool
}

// Choose makes up to n queries of each class (half as many of bool) from the
// words of the corpus itself: the same ones each time. What a class needs may
// not be there in a small corpus; then it has fewer.
func Choose(ctx context.Context, c *Corpus, n int) ([]Query, error) {
	s := &sample{docs: make(map[string]int), pairs: make(map[[2]string]int), inAll: make(map[string]int), stop: make(map[string]bool)}
	for _, w := range index.StopWords() {
		s.stop[w] = true
	}
	r := c.reader()
	defer c.readers.Put(r)
	step := max(1, len(c.Names)/sampleDocs)
	for i := 0; i < len(c.Names); i += step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := c.doc(r, i)
		if err != nil {
			return nil, err
		}
		s.take(d.Fields[0].Text, d.Fields[1].Text)
	}
	var out []Query
	for _, class := range Classes() {
		for i, args := range s.choose(class, n) {
			out = append(out, Query{fmt.Sprintf("%s%02d", class, i+1), class, args})
		}
	}
	return out, nil
}

func (s *sample) take(title, body string) {
	seen := make(map[string]bool)
	last, end := "", 0
	text := body[:min(len(body), sampleBytes)]
	index.Words(text, func(w *index.Word) bool {
		if w.Whole {
			return true
		}
		word, from, to := string(w.Text), w.Start, w.End
		if !plain(word) || s.stop[word] {
			last = ""
			return true
		}
		if !seen[word] {
			seen[word] = true
			s.docs[word]++
		}
		if last != "" && text[end:from] == " " {
			s.pairs[[2]string{last, word}]++
		}
		last, end = word, to
		return true
	})
	var words []string
	index.Words(title, func(w *index.Word) bool {
		if word := string(w.Text); plain(word) && !w.Whole {
			words = append(words, word)
			s.inAll[word]++
		}
		return true
	})
	if len(words) >= 4 && len(words) <= 7 {
		s.titles = append(s.titles, strings.Join(words, " "))
	}
}

// plain tells whether a word is one that a query file can hold as it is.
func plain(word string) bool {
	return len(word) >= 3 && len(word) <= 16 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == ""
}

// byCount gives keys, those counted most often first.
func byCount[K comparable](counts map[K]int, less func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		if c := cmp.Compare(counts[b], counts[a]); c != 0 {
			return c
		}
		return less(a, b)
	})
}

// spread takes up to n of list, evenly.
func spread[T any](list []T, n int) (out []T) {
	step := max(1, len(list)/max(n, 1))
	for i := 0; i < len(list) && len(out) < n; i += step {
		out = append(out, list[i])
	}
	return out
}

func (s *sample) choose(class string, n int) (out [][]string) {
	words := byCount(s.docs, strings.Compare)
	common := words[:min(len(words), n)]
	middle := words[len(words)/50 : len(words)/5] // known words that most documents do not have
	long := slices.DeleteFunc(slices.Clone(middle), func(w string) bool { return len(w) < 6 })
	pairs := byCount(s.pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	one := func(list []string, f func(string) string) {
		for _, w := range list {
			out = append(out, []string{f(w)})
		}
	}
	same := func(w string) string { return w }
	switch class {
	case "common":
		one(common, same)
	case "rare":
		one(spread(words[len(words)-len(words)/4:], n), same)
	case "and2":
		for _, p := range spread(pairs[:len(pairs)/20], n) {
			out = append(out, p[:])
		}
	case "phrase":
		for _, p := range pairs[:min(len(pairs), n)] {
			out = append(out, []string{p[0] + " " + p[1]})
		}
	case "not":
		for i, w := range spread(middle, n) {
			out = append(out, []string{w, common[(i+1)%len(common)]})
		}
	case "bool":
		for w := range slices.Chunk(spread(middle, n/2*3), 3) {
			if len(w) == 3 {
				out = append(out, []string{w[0], w[1], common[0], w[2]})
			}
		}
	case "regex":
		one(spread(long, n), pattern)
	case "fuzzy1":
		one(spread(long, n), func(w string) string { return w[:2] + w[3:] })
	case "fuzzy2":
		one(spread(long, n), func(w string) string { return w[:2] + w[3:4] + w[2:3] + w[4:len(w)-1] })
	case "attr":
		one(spread(byCount(s.inAll, strings.Compare), n), same)
	case "ranked", "bag":
		one(spread(s.titles, n), same)
	}
	return out
}

// pattern is a regular expression that word matches, of one of three kinds.
func pattern(word string) string {
	switch len(word) % 3 {
	case 0:
		return word[:3] + "[a-z]+" + word[len(word)-2:]
	case 1:
		return word[:len(word)-2] + "(ed|ing|s)?"
	}
	return ".*" + word[1:6] + ".*"
}
