package enginetest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"harvest/index"
)

// Of a query without operators those come first that have all words; among
// them those that have them as a phrase, then those that have them close.
func (s suite) tiers(t *testing.T) {
	if s.opt.Unranked || s.opt.NoPositions {
		t.Skip("the engine does not know how close words are")
	}
	p := s.fresh(t)
	p.apply([]index.Doc{
		doc(1, "body", "restaurants restaurants restaurants restaurants in san san san san"),
		doc(2, "body", "francisco is where restaurants are in a san that is far far from here "+strings.Repeat("and so on ", 9)),
		doc(3, "body", "where there are many "+strings.Repeat("and so on ", 12)+" restaurants in san francisco"),
		doc(4, "body", "francisco francisco"),
		doc(5, "body", "nothing of all that"),
		doc(6, "body", "where there are many "+strings.Repeat("and so on ", 12)+" francisco san in restaurants"),
	}, nil, "m")
	opt := index.Options{Stop: func(w string) bool { return w == "in" }}
	for _, tt := range []struct {
		query string
		opt   index.Options
		first string
		set   string
	}{
		{"restaurants in san francisco", opt, "3", "1 2 3 4 6"},
		{"restaurants in san francisco", index.Options{}, "3", "1 2 3 4 6"},
		{"san francisco", opt, "3", "1 2 3 4 6"},
		{"in", opt, "", "1 2 3 6"},
		{"in in", opt, "", "1 2 3 6"},
		{`"san francisco" many`, opt, "3", "3 6"},
	} {
		hits := p.search(tt.query, tt.opt).Hits
		if got := ids(hits); !strings.HasPrefix(got, tt.first) {
			t.Errorf("%s: got order %s, want %s first", tt.query, got, tt.first)
		}
		if got := p.set(tt.query, tt.opt); got != tt.set {
			t.Errorf("%s: got documents %s, want %s", tt.query, got, tt.set)
		}
	}
	all := p.search("restaurants in san francisco", opt).Hits
	if got := ids(all[:3]); got != "3 6 2" && got != "3 2 6" {
		t.Errorf("got order %s, want those with all words before those with many of some", ids(all))
	}
}

// The first system's formula: a document's share of a word, times how rare the
// word is, summed up and scaled for the best to be 1.
func (s suite) vector(t *testing.T) {
	if s.opt.Unranked {
		t.Skip("the engine has no scores")
	}
	p := s.fresh(t)
	texts := []string{"", "plan plan fuse a", "plan b", "fuse c d e f g", "h i j", "plan fuse fuse k l m n o p q"}
	var docs []index.Doc
	for i, text := range texts[1:] {
		docs = append(docs, doc(byte(i+1), "body", text))
	}
	p.apply(docs, nil, "m")
	rarity := func(df float64) float64 { return 1 - math.Log(df)/math.Log(5) }
	raw := map[byte]float64{
		1: 2.0/4*rarity(3) + 1.0/4*rarity(3),
		2: 1.0 / 2 * rarity(3),
		3: 1.0 / 6 * rarity(3),
		5: 1.0/10*rarity(3) + 2.0/10*rarity(3),
	}
	r := p.search("plan or fuse", index.Options{Rank: index.RankVector})
	if got := ids(r.Hits); got != "1 2 5 3" {
		t.Errorf("got order %s, want 1 2 5 3", got)
	}
	for _, h := range r.Hits {
		if want := raw[h.ID[0]] / raw[1]; !near(h.Score, want, 1e-6) {
			t.Errorf("document %d: got score %v, want %v", h.ID[0], h.Score, want)
		}
	}
}

// Hits come in the order of an attribute's values, numbers as numbers, those
// without it last; equals by ID.
func (s suite) sort(t *testing.T) {
	if s.opt.Unranked {
		t.Skip("the engine has no order of its own")
	}
	p := s.fresh(t)
	p.apply([]index.Doc{
		doc(1, "n", "10", "name", "beta", "x", "y"),
		doc(2, "n", "9", "name", "Alpha", "x", "y"),
		doc(3, "x", "y"),
		doc(4, "n", "-1", "name", "gamma", "x", "y"),
	}, nil, "m")
	p.apply([]index.Doc{doc(5, "n", "1K", "name", "alpha", "x", "y"), doc(6, "n", "9.5", "x", "z")}, nil, "n")
	for _, tt := range []struct {
		opt  index.Options
		want string
	}{
		{index.Options{Sort: "n"}, "4 2 1 5 3"},
		{index.Options{Sort: "N", Reverse: true}, "5 1 2 4 3"},
		{index.Options{Sort: "name"}, "2 5 1 4 3"},
		{index.Options{Sort: "name", Limit: 2, Offset: 1}, "5 1"},
		{index.Options{Sort: "nothing"}, "1 2 3 4 5"},
	} {
		tt.opt.Rank = index.RankValue
		if got := ids(p.search("x : y", tt.opt).Hits); got != tt.want {
			t.Errorf("sort %s reverse %v: got order %s, want %s", tt.opt.Sort, tt.opt.Reverse, got, tt.want)
		}
	}
}

func (s suite) weights(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{
		doc(1, "title", "x", "body", "fuse y z"),
		doc(2, "title", "fuse", "body", "x y z"),
		doc(3, "md5", "fuse", "body", "x y z"),
	}, nil, "m")
	opt := index.Options{Weight: func(a string) float64 { return map[string]float64{"title": 4, "body": 1}[a] }, Why: true}
	if got := p.set("fuse", opt); got != "1 2" {
		t.Errorf("got documents %s, want 1 2", got)
	}
	if got := p.set("md5 : fuse", opt); got != "3" {
		t.Errorf("attribute of no weight, named: got documents %q, want 3", got)
	}
	if s.opt.Unranked {
		return
	}
	r := p.search("fuse", opt)
	if got := ids(r.Hits); got != "2 1" {
		t.Errorf("got order %s, want 2 1", got)
	}
	twice := p.search("fuse or fuse and not title : (not fuse) or FUSE", opt)
	if len(twice.Hits) != 2 || twice.Hits[0].Score != r.Hits[0].Score {
		t.Errorf("the same word again: got %v, want it to count once, as in %v", twice.Hits, r.Hits)
	}
	title := slices.IndexFunc(r.Hits[0].Why, func(p index.Part) bool { return p.Attr == "title" })
	if title < 0 || r.Hits[0].Why[title].Count != 1 || r.Hits[0].Why[title].Weight != 4 {
		t.Errorf("got why %+v, want fuse once in a title of weight 4", r.Hits[0].Why)
	}
}

// page joins pages of a long list.
func (s suite) page(t *testing.T) {
	p := s.fresh(t)
	var docs []index.Doc
	for i := range byte(250) {
		docs = append(docs, doc(i, "a", strings.Repeat("x ", int(i)%7+1)+"y", "b", string(rune('a'+i%3))))
	}
	p.apply(docs[:100], nil, "m")
	p.apply(docs[100:], nil, "m")
	for _, q := range []string{"x", "x and y", "x not b : c", "x y", "*", `"x y"`, "x*"} {
		all := p.search(q, index.Options{})
		if all.Total != len(all.Hits) || all.Total < 150 {
			t.Fatalf("%s: got %d hits of %d, want all", q, len(all.Hits), all.Total)
		}
		var joined []index.Hit
		for at := 0; at < 280; at += 7 {
			r := p.search(q, index.Options{Offset: at, Limit: 7, Count: true})
			if r.Total != all.Total {
				t.Errorf("%s: page at %d: got total %d, want %d", q, at, r.Total, all.Total)
			}
			joined = append(joined, r.Hits...)
		}
		same := slices.EqualFunc(all.Hits, joined, func(a, b index.Hit) bool { return a.ID == b.ID && a.Score == b.Score })
		if !same {
			t.Errorf("%s: got pages %v, want them to join to %v", q, brief(joined), brief(all.Hits))
		}
	}
}
