package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"harvest/index"
	"harvest/index/match"
	"harvest/index/query"
)

// settle puts numbers of errors in place of Best: the fewest with which the word
// finds anything where it stands.
func (e *engine) settle(ctx context.Context, q query.Node, opt index.Options) (_ query.Node, err error) {
	opt.Rank = index.RankNone
	q = query.Map(q, func(q query.Node, attr string) query.Node {
		f, ok := q.(query.Fuzzy)
		if !ok || !f.Best || err != nil {
			return nil
		}
		plain := strings.NewReplacer(`\<`, "_", `\>`, "_", "<", "", ">", "", `\\`, "_", `\`, "").Replace(f.Text)
		f.Best = false
		for f.Errors = 0; f.Errors <= min(match.MaxErrors, max(1, utf8.RuneCountInString(plain)/2)); f.Errors++ {
			var alone query.Node = f
			if attr != "" {
				alone = query.Attr{Name: attr, Value: f}
			}
			var hits []found
			if hits, _, err = e.find(ctx, alone, opt); err != nil || len(hits) > 0 {
				return f
			}
		}
		return query.Or{}
	})
	return q, err
}

// values counts the documents of each value of each attribute; of "" those that
// have the attribute.
func (e *engine) values(ctx context.Context) (map[string]map[string]int, map[string]int, error) {
	values, docs := make(map[string]map[string]int), make(map[string]int)
	err := e.each(ctx, func(_ index.ID, fields []index.Field) {
		seen := make(map[[2]string]bool)
		for _, f := range fields {
			attr := index.Attr(f.Name)
			if values[attr] == nil {
				values[attr] = make(map[string]int)
			}
			if has := [2]string{attr, "\xff"}; !seen[has] {
				seen[has] = true
				docs[attr]++
			}
			index.Keys(nil, f.Text, func(k []byte) bool {
				if v := [2]string{attr, string(k[1:])}; k[0] == index.KeyText && !seen[v] {
					seen[v] = true
					values[attr][v[1]]++
				}
				return true
			})
		}
	})
	return values, docs, err
}

func (e *engine) Attributes(ctx context.Context) (out []index.Attribute, err error) {
	values, docs, err := e.values(ctx)
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		out = append(out, index.Attribute{Name: name, Docs: docs[name], Distinct: len(values[name])})
	}
	return out, err
}

func (e *engine) Values(ctx context.Context, attribute, after string, yield func(index.Value) bool) error {
	values, _, err := e.values(ctx)
	if err != nil {
		return err
	}
	of := values[index.Attr(attribute)]
	for _, text := range slices.Sorted(maps.Keys(of)) {
		if (text > after || after == "") && !yield(index.Value{Text: text, Docs: of[text]}) {
			break
		}
	}
	return nil
}

func (e *engine) Suggest(ctx context.Context, word string, n int) ([]index.Suggestion, error) {
	words := make(map[string]int)
	err := e.each(ctx, func(_ index.ID, fields []index.Field) {
		seen := make(map[string]bool)
		for _, f := range fields {
			index.Words(f.Text, func(w *index.Word) bool {
				if text := string(w.Text); !seen[text] && !(e.set.NoNumbers && strings.Trim(text, "0123456789_.,:;'") == "") {
					seen[text] = true
					words[text]++
				}
				return true
			})
		}
	})
	if err != nil {
		return nil, err
	}
	return index.Suggestions(ctx, word, n, func(_ *match.Pattern, add func([]byte, func() int) bool) error {
		for text, docs := range words {
			if !add([]byte(text), func() int { return docs }) {
				break
			}
		}
		return nil
	})
}

// Check has bbolt look at all of its file.
func (e *engine) Check(ctx context.Context) error {
	if _, err := e.documents(); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return wrap(e.db.View(func(tx *bbolt.Tx) (err error) {
		for bad := range tx.Check() { // to its end, which its goroutine waits for
			err = fmt.Errorf("%s: %w: %w", e.db.Path(), index.ErrCorrupt, bad)
		}
		return err
	}))
}

func (e *engine) Stats() (st index.Stats) {
	e.db.View(func(tx *bbolt.Tx) error { // of one that is closed there are none
		st = index.Stats{Docs: tx.Bucket(ids).Stats().KeyN, Bytes: tx.Size()}
		return nil
	})
	return st
}

func (e *engine) Close() error { return e.db.Close() }
