package bench

import (
	"bufio"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"

	"harvest/index/query"
)

// A Query to time. A file of them has a line each, with tabs between: id,
// class, arguments; # begins a comment. The classes, with their arguments in
// lower case:
//
//	common WORD      a word of many documents
//	rare WORD        of a few
//	and2 A B         both
//	phrase "A B…"    one after the other
//	not A B          A but not B
//	bool A B C D     ((A or B) and C and not D)
//	regex RE …       a regular expression of whole words; what follows is for others
//	fuzzy1 WORD      a word with one error
//	fuzzy2 WORD      with two
//	attr WORD        in the title
//	ranked "A B…"    any of them, the best first
type Query struct {
	ID    string
	Class string
	Args  []string
}

// Classes are those that a Query may have, in the order of tables. The last,
// bag, is what searchers get who type the words of ranked: with those first
// that have all words, and with phrases and nearness looked at.
func Classes() []string {
	return []string{"common", "rare", "and2", "phrase", "not", "bool", "regex", "fuzzy1", "fuzzy2", "attr", "ranked", "bag"}
}

// ReadQueries reads a file of queries. Those of ranked are there once more as
// bag.
func ReadQueries(r io.Reader) ([]Query, error) {
	var out, bags []Query
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) < 3 {
			return nil, fmt.Errorf("queries: line %d: got %d columns, want id, class and arguments: %w", n, len(f), iofs.ErrInvalid)
		}
		q := Query{f[0], f[1], f[2:]}
		if _, err := q.Node(); err != nil {
			return nil, fmt.Errorf("queries: line %d: %w", n, err)
		}
		out = append(out, q)
		if q.Class == "ranked" {
			bags = append(bags, Query{"bag" + strings.TrimPrefix(q.ID, "ranked"), "bag", q.Args})
		}
	}
	return append(out, bags...), s.Err()
}

// Node makes the tree.
func (q Query) Node() (query.Node, error) {
	need := map[string]int{"and2": 2, "not": 2, "bool": 4}[q.Class]
	if len(q.Args) < max(need, 1) || slices.Contains(q.Args, "") {
		return nil, fmt.Errorf("%s: got %d arguments, want %d: %w", q.Class, len(q.Args), max(need, 1), iofs.ErrInvalid)
	}
	word := func(i int) query.Node { return query.Word{Text: q.Args[i]} }
	switch q.Class {
	case "common", "rare":
		return word(0), nil
	case "and2":
		return query.And{word(0), word(1)}, nil
	case "phrase":
		return query.Phrase{Text: q.Args[0]}, nil
	case "not":
		return query.And{word(0), query.Not{Node: word(1)}}, nil
	case "bool":
		return query.And{query.Or{word(0), word(1)}, word(2), query.Not{Node: word(3)}}, nil
	case "regex":
		return query.Regexp{Expr: q.Args[0]}, nil
	case "fuzzy1", "fuzzy2":
		return query.Fuzzy{Text: q.Args[0], Errors: int(q.Class[5] - '0')}, nil
	case "attr":
		return query.Attr{Name: "title", Value: word(0)}, nil
	case "ranked":
		return query.Or(words(q.Args[0])), nil
	case "bag":
		return query.Bag(words(q.Args[0])), nil
	}
	return nil, fmt.Errorf("class %s: not one of %s: %w", q.Class, strings.Join(Classes(), " "), iofs.ErrInvalid)
}

func words(text string) (out []query.Node) {
	for _, w := range strings.Fields(text) {
		out = append(out, query.Word{Text: w})
	}
	return out
}
