package index

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"harvest/index/match"
)

// Suggestions have at most so many errors.
const suggestErrors = 2

// Suggestions gives words that are near word in spelling, those with the
// fewest errors first, of these those that the most documents have. The word
// itself is none. Near finds those of an engine: it calls add, until add returns
// false, with each word that m may match and how many documents have it; a
// word may come again with others.
func Suggestions(ctx context.Context, word string, n int, near func(m *match.Pattern, add func(term []byte, docs func() int) bool) error) ([]Suggestion, error) {
	folded := string(Fold(nil, word))
	var out []Suggestion
	for k := 1; k <= suggestErrors && len(out) < n; k++ {
		m, err := match.Compile(folded, match.Options{Errors: k})
		if err != nil {
			return nil, err
		}
		out = out[:0]
		seen := make(map[string]int) // place in out
		err = near(m, func(term []byte, docs func() int) bool {
			if errors, ok := m.Match(term); ok && string(term) != folded {
				if n := docs(); n > 0 {
					k, known := seen[string(term)]
					if !known {
						k = len(out)
						seen[string(term)] = k
						out = append(out, Suggestion{Word: string(term), Errors: errors})
					}
					out[k].Docs += n
				}
			}
			return len(out)%256 != 255 || ctx.Err() == nil
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(a.Errors, b.Errors), cmp.Compare(b.Docs, a.Docs), strings.Compare(a.Word, b.Word))
	})
	return out[:min(n, len(out))], nil
}

// Suggest gives words of the documents that are near word in spelling.
func (e *engine) Suggest(ctx context.Context, word string, n int) ([]Suggestion, error) {
	v, err := e.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	var info termInfo
	return Suggestions(ctx, word, n, func(m *match.Pattern, add func([]byte, func() int) bool) error {
		for i := range v.parts {
			p := &v.parts[i]
			err := Accepted(p.terms(), e.cache, m, nil, func(term, value []byte, _ int) bool {
				return add(term, func() int {
					if !p.decode(value, &info) {
						return 0
					}
					return int(info.docs)
				})
			})
			if err != nil {
				return p.Corrupt("%v", err)
			}
		}
		return nil
	})
}
