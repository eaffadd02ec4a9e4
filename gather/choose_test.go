package gather

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/gather/dup"
)

// yields iterates over candidates.
func yields(docs []candidate) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// joins is a linker of a table.
func joins(out map[uint32][]uint32) linker {
	return func(_ context.Context, g *graph, node func(uint32) (uint32, bool)) error {
		for from, to := range out {
			f, ok := node(from)
			if !ok {
				continue
			}
			var nodes []uint32
			for _, id := range to {
				if n, ok := node(id); ok {
					nodes = append(nodes, n)
				}
			}
			g.link(f, nodes)
		}
		return nil
	}
}

// aWeb makes up documents on a few servers, in the order of their URLs.
func aWeb(r *rand.Rand, n int) ([]candidate, map[uint32][]uint32) {
	docs := make([]candidate, n)
	for i := range docs {
		server := uint32(1 + r.IntN(5))
		docs[i] = candidate{
			server: server, stored: r.IntN(8) > 0,
			url:       fmt.Sprintf("http://s%d.test/%s%d", server, strings.Repeat("d/", r.IntN(4)), i),
			inbound:   r.IntN(5),
			inlinks:   r.IntN(4),
			submitted: max(0, r.IntN(10)-8),
		}
	}
	slices.SortFunc(docs, func(a, b candidate) int { return cmp.Compare(a.url, b.url) })
	for i, id := range r.Perm(n) { // IDs say nothing of the order
		docs[i].id = uint32(id + 1)
	}
	out := make(map[uint32][]uint32)
	for range 3 * n {
		from, to := uint32(1+r.IntN(n)), uint32(1+r.IntN(n))
		if !slices.Contains(out[from], to) {
			out[from] = append(out[from], to)
		}
	}
	return docs, out
}

func parseSelection(t testing.TB, text string) *selection {
	t.Helper()
	c, err := parseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	return &c.selection
}

// naive does what choose does by looking at everything again and again.
func naive(s *selection, met []candidate, out map[uint32][]uint32, copies map[uint32]bool) map[uint32]verdict {
	docs := slices.Clone(met)
	slices.SortFunc(docs, func(a, b candidate) int { return cmp.Compare(a.url, b.url) })
	got := make(map[uint32]verdict)
	var free []candidate
	ord, came := make(map[uint32]int), make(map[uint32]int)
	for i, d := range met {
		came[d.id] = i
	}
	byID := make(map[uint32]candidate)
	for i, d := range docs {
		ord[d.id], byID[d.id] = i, d
		switch {
		case !d.stored:
		case copies[d.id]:
			got[d.id] = copied
		case slices.ContainsFunc(s.out, func(r *rule) bool { return r.meets(&d) }):
			got[d.id] = leftOut
		default:
			got[d.id] = untaken
			free = append(free, d)
		}
	}
	sorted := func(docs []candidate, o order) []candidate {
		docs = slices.Clone(docs)
		slices.SortStableFunc(docs, func(a, b candidate) int {
			switch o {
			case byScore:
				return dup.ScoreOf(b.url, b.inbound, b.submitted).Sum() - dup.ScoreOf(a.url, a.inbound, a.submitted).Sum()
			case byInlinks:
				return b.inlinks - a.inlinks
			}
			return pathLen(a.url) - pathLen(b.url)
		})
		return docs
	}
	manual := make(map[uint32]bool)
	for i, r := range s.rules {
		var met []candidate
		for _, d := range free {
			if r.meets(&d) {
				met = append(met, d)
				manual[d.id] = manual[d.id] || r.urls != nil
			}
		}
		if r.shortest > 0 {
			count := make(map[uint32]int)
			met = slices.DeleteFunc(sorted(met, byShortest), func(d candidate) bool {
				count[d.server]++
				return count[d.server] > r.shortest
			})
			slices.SortFunc(met, func(a, b candidate) int { return ord[a.id] - ord[b.id] })
		}
		if r.cover > 0 {
			slices.SortFunc(met, func(a, b candidate) int { return came[a.id] - came[b.id] })
			met = naiveCover(docs, met, out, r.cover, r.radius)
		}
		if r.limit > 0 {
			met = sorted(met, r.order)
			met = met[:min(len(met), r.limit)]
		}
		for _, d := range met {
			if !got[d.id].in() {
				got[d.id] = taken + verdict(i)
			}
		}
	}
	if len(s.rules) == 0 {
		for _, d := range free {
			got[d.id] = taken
		}
	}
	if s.limit > 0 {
		var in []candidate
		for _, d := range free {
			if got[d.id].in() {
				in = append(in, d)
			}
		}
		in = sorted(in, s.order)
		slices.SortStableFunc(in, func(a, b candidate) int {
			switch {
			case manual[a.id] == manual[b.id]:
				return 0
			case manual[a.id]:
				return -1
			}
			return 1
		})
		for i, d := range in {
			if i >= s.limit {
				got[d.id] = beyond
			}
		}
	}
	return got
}

// naiveCover tries every document at every step, from the definition.
func naiveCover(all, from []candidate, out map[uint32][]uint32, n, radius int) []candidate {
	var got []candidate
	for range n {
		least, at := -1, -1
		for i, d := range from {
			if slices.ContainsFunc(got, func(g candidate) bool { return g.id == d.id }) {
				continue
			}
			if sum := distances(all, append(got[:len(got):len(got)], d), out, radius); at < 0 || sum < least {
				least, at = sum, i
			}
		}
		if at < 0 {
			break
		}
		got = append(got, from[at])
	}
	return got
}

// distances is the sum over all documents of the links from the nearest of some.
func distances(all, some []candidate, out map[uint32][]uint32, radius int) int {
	far := make(map[uint32]int)
	for _, d := range all {
		far[d.id] = radius + 1
	}
	var front []uint32
	for _, d := range some {
		far[d.id] = 0
		front = append(front, d.id)
	}
	for len(front) > 0 {
		id := front[0]
		front = front[1:]
		for _, to := range out[id] {
			if far[id]+1 < far[to] {
				far[to] = far[id] + 1
				front = append(front, to)
			}
		}
	}
	sum := 0
	for _, n := range far {
		sum += n
	}
	return sum
}

// TestChoose compares choose with the naive model, over made-up webs and lines.
func TestChoose(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	some := []string{
		"select shortest=%d", "select shortest=%d limit=7 order=inlinks", "select inlinks=%d", "select out inlinks=%d",
		"select limit=%d", "select limit=%d order=shortest allow=d/", "select submitted=1 limit=%d", "select cover=%d",
		"select cover=%d radius=1 allow=s[1-3]", "select cover=%d radius=3", "select out allow=/d/d/d deny=%d", "select allow=%d deny=d/d",
		"select limit=%d order=score deny=s1", "select out allow=s%d",
	}
	for round := range 300 {
		docs, out := aWeb(r, 1+r.IntN(60))
		var text strings.Builder
		limited := false
		for range r.IntN(5) {
			l := fmt.Sprintf(some[r.IntN(len(some))], 1+r.IntN(6))
			if strings.HasPrefix(l, "select limit=") && !strings.Contains(l, "allow") && !strings.Contains(l, "deny") {
				if limited {
					continue
				}
				limited = true
			}
			text.WriteString(l + "\n")
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&text, "select url=%s url=%s\n", docs[r.IntN(len(docs))].url, docs[r.IntN(len(docs))].url)
		}
		s := parseSelection(t, text.String())
		c, copies := new(choice), make(map[uint32]bool)
		for _, d := range docs {
			if d.stored && r.IntN(10) == 0 {
				copies[d.id] = true
				*c.cell(d.id) = copied
			}
		}
		met := slices.Clone(docs)
		slices.SortFunc(met, func(a, b candidate) int { return int(a.id) - int(b.id) })
		if err := s.choose(t.Context(), yields(met), joins(out), c); err != nil {
			t.Fatal(err)
		}
		want := naive(s, met, out, copies)
		count := make(map[verdict]int)
		for _, d := range docs {
			if got := c.get(d.id); got != want[d.id] {
				t.Fatalf("round %d: %s: got %d, want %d, by\n%s", round, d.url, got, want[d.id], text.String())
			}
			count[min(want[d.id], taken)]++
		}
		for _, v := range []verdict{copied, leftOut, untaken, beyond, taken} {
			if c.count[v] != count[v] {
				t.Errorf("round %d: got %d of verdict %d, want %d", round, c.count[v], v, count[v])
			}
		}
	}
}

// TestChooseEnds: a choice that is no longer wanted ends.
func TestChooseEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	endless := func(yield func(candidate, error) bool) {
		for ; yield(candidate{id: uint32(n%1000) + 1, stored: true, url: "http://h/"}, nil); n++ {
			if n == 5000 {
				cancel()
			}
		}
	}
	if err := new(selection).choose(ctx, endless, nil, new(choice)); err != context.Canceled || n > 10000 {
		t.Errorf("got %v after %d documents", err, n)
	}
}

// BenchmarkChoose computes a selection of a million documents on 10,000 servers.
func BenchmarkChoose(b *testing.B) {
	const docs = 1_000_000
	web := func(yield func(candidate, error) bool) {
		for i := range uint32(docs) {
			d := candidate{id: i + 1, server: i/100 + 1, stored: true, inlinks: int(i*2654435761>>24) % 20, inbound: int(i) % 30,
				url: fmt.Sprintf("http://www.server%d.test/a/path/of/some/length/%d.html", i/100, i*7919%docs)}
			if !yield(d, nil) {
				return
			}
		}
	}
	for _, text := range []string{
		"select shortest=10\nselect inlinks=15\nselect limit=100000\n",
		"select out allow=/[0-9]*77[.]html$\nselect shortest=3\nselect limit=1000 order=inlinks deny=server[0-9]*0[.]\n",
	} {
		s := parseSelection(b, text)
		b.Run(strings.ReplaceAll(strings.TrimSpace(text), "\n", ";"), func(b *testing.B) {
			for b.Loop() {
				c := new(choice)
				if err := s.choose(b.Context(), web, nil, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
