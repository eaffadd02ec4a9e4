package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"harvest/index"
	"harvest/index/bench"
)

func benchRelevanceCommand() command {
	var kind string
	var feedback int
	return command{"bench relevance", "[--feedback N] [DIR…]", "measure how well judged queries are answered", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.StringVar(&kind, "kind", kindNames()[0], "of index")
		fl.IntVar(&feedback, "feedback", 10, "how many of the best hits name more words, in the second measurement")
		return func(ctx context.Context, args []string, std std) error {
			k, err := benchKindOf(kind)
			if err != nil {
				return err
			}
			rows := [][]string{{"collection", "documents", "queries", "nDCG@10", "MAP", "with feedback", "MAP"}}
			sets, err := judgedSets(args)
			if err != nil {
				return err
			}
			for _, s := range sets {
				row, err := relevance(ctx, k, s, feedback)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			table(std.out, rows)
			return nil
		}
	}}
}

// judgedSets reads the collections in the folders, or gives the one built in.
func judgedSets(dirs []string) (sets []*bench.Set, err error) {
	if len(dirs) == 0 {
		s, err := bench.Garden()
		return []*bench.Set{s}, err
	}
	for _, dir := range dirs {
		s, err := bench.ReadSet(os.DirFS(dir), dir)
		if err != nil {
			return nil, err
		}
		s.Name = filepath.Base(dir)
		sets = append(sets, s)
	}
	return sets, nil
}

// relevance measures one collection with and without feedback.
func relevance(ctx context.Context, kind benchKind, s *bench.Set, feedback int) (row []string, err error) {
	dir, done, err := workFolder("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	e, err := kind.open(filepath.Join(dir, "index"), index.Settings{Source: s})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Apply(ctx, s.All(), nil, "all"); err != nil {
		return nil, err
	}
	opt, err := bench.English()
	if err != nil {
		return nil, err
	}
	plain, err := s.Measure(ctx, e, opt)
	if err != nil {
		return nil, err
	}
	opt.Feedback = feedback
	more, err := s.Measure(ctx, e, opt)
	f := func(x float64) string { return fmt.Sprintf("%.4f", x) }
	return []string{s.Name, fmt.Sprint(len(s.Docs)), fmt.Sprint(plain.Queries), f(plain.NDCG), f(plain.MAP), f(more.NDCG), f(more.MAP)}, err
}
