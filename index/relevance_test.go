package index_test

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"testing"

	"harvest/index"
	"harvest/index/bench"
)

// A figure is nDCG@10 and MAP.
type figure struct{ ndcg, precision float64 }

// What is reached must not be lost again. The goals are what the best engine
// measured reaches on each collection, with its own analysis of English, and
// what feedback can add; they were not reached by tuning on anything else.
var relevance = []struct {
	name                  string
	plain, feedback       figure // reached
	goal, goalForFeedback figure
}{
	{name: "garden", plain: figure{0.85, 0.80}},
	{"cran", figure{0.385, 0.305}, figure{0.41, 0.335}, figure{0.384, 0.305}, figure{0.41, 0.335}},
	{"cisi", figure{0.40, 0.215}, figure{0.40, 0.235}, figure{0.404, 0.229}, figure{}},
}

// TestRelevance measures judged collections with one setting for all. Those
// that are not here are left out.
func TestRelevance(t *testing.T) {
	for _, g := range relevance {
		t.Run(g.name, func(t *testing.T) {
			s, err := judged(g.name)
			if errors.Is(err, iofs.ErrNotExist) {
				t.Skipf("is not measured: %v", err)
			}
			must(t, err)
			opt, err := bench.English()
			must(t, err)
			e, err := index.Open(t.TempDir(), index.Settings{Source: s})
			must(t, err)
			defer e.Close()
			must(t, e.Apply(ctx, s.All(), nil, "all"))
			atLeast(t, s, e, "plain", opt, g.plain, g.goal)
			opt.Feedback = feedbackDocs
			atLeast(t, s, e, "feedback", opt, g.feedback, g.goalForFeedback)
		})
	}
}

// feedbackDocs is how many of the best hits the setting with feedback learns from.
const feedbackDocs = 10

func atLeast(t *testing.T, s *bench.Set, e index.Engine, kind string, opt index.Options, want, goal figure) {
	t.Helper()
	r, err := s.Measure(context.Background(), e, opt)
	must(t, err)
	t.Logf("%s: %s: %d queries, nDCG@10 %.4f, MAP %.4f; the goal is %.4f, %.4f", s.Name, kind, r.Queries, r.NDCG, r.MAP, goal.ndcg, goal.precision)
	if r.NDCG < want.ndcg || r.MAP < want.precision {
		t.Errorf("%s: %s: got nDCG@10 %.4f and MAP %.4f, want at least %.4f and %.4f", s.Name, kind, r.NDCG, r.MAP, want.ndcg, want.precision)
	}
}

// judged reads a collection; all but the garden lie outside of the project.
func judged(name string) (*bench.Set, error) {
	if name == "garden" {
		return bench.Garden()
	}
	dir := os.Getenv("JUDGED")
	if dir == "" {
		dir = "../../shared/ir"
	}
	return bench.ReadSet(os.DirFS(dir+"/"+name), name)
}
