package index

import (
	"bytes"
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"harvest/index/dict"
	"harvest/index/match"
)

// Suggestions have at most so many errors.
const suggestErrors = 2

// Suggest gives words of the documents that are near word in spelling, those
// with the fewest errors first, of these those that the most documents have.
// The word itself is none.
func (e *engine) Suggest(ctx context.Context, word string, n int) ([]Suggestion, error) {
	v, err := e.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	folded := string(Fold(nil, word))
	var out []Suggestion
	for k := 1; k <= suggestErrors && len(out) < n; k++ {
		m, err := match.Compile(folded, match.Options{Errors: k})
		if err != nil {
			return nil, err
		}
		if out, err = v.suggest(ctx, e.cache, m, folded); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(a.Errors, b.Errors), cmp.Compare(b.Docs, a.Docs), strings.Compare(a.Word, b.Word))
	})
	return out[:min(n, len(out))], nil
}

func (v *view) suggest(ctx context.Context, cache *dict.Cache, m *match.Pattern, word string) ([]Suggestion, error) {
	var list []Suggestion
	var info termInfo
	for i := range v.parts {
		p := &v.parts[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := accepted(p.terms(), cache, m, nil, func(term, value []byte, _ int) bool {
			if errors, ok := m.Match(term); ok && string(term) != word && p.decode(value, &info) {
				list = append(list, Suggestion{string(term), errors, int(info.docs)})
			}
			return len(list)%256 != 255 || ctx.Err() == nil
		})
		if err != nil {
			return nil, corrupt(p.path, "%v", err)
		}
	}
	slices.SortFunc(list, func(a, b Suggestion) int { return bytes.Compare([]byte(a.Word), []byte(b.Word)) })
	out := list[:0]
	for _, s := range list {
		if k := len(out) - 1; k >= 0 && out[k].Word == s.Word {
			out[k].Docs += s.Docs
		} else {
			out = append(out, s)
		}
	}
	return out, ctx.Err()
}
