package broker

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"harvest/index/query"
)

// maxFarText bounds what is read of why, refine and suggest of a back end.
const maxFarText = 4 << 20

// texts asks the back ends of an answer again, and gives what a file of theirs says.
// Those that fail are left out: the answer's status has named them.
func (p page) texts(ctx context.Context, file string, most int) (out []string) {
	m, err := p.b.front.pass(p.manner)
	if err != nil {
		return nil
	}
	m.limit = 0
	list, c := p.b.front.pick(p.q, p.manner)
	texts := make([]string, len(list))
	done := make(chan int, len(list))
	for i, k := range list {
		if k.down() != nil {
			done <- i
			continue
		}
		p.b.front.asking.Go(func() { // waited for below: each has its time
			ctx, cancel := context.WithTimeout(ctx, k.conf.timeout)
			defer cancel()
			text, err := k.text(ctx, p.q, askOptions{manner: m, most: min(most, k.conf.most), among: c.among}, file)
			if err == nil {
				texts[i] = text
			}
			done <- i
		})
	}
	for range list {
		i := <-done
		if texts[i] != "" {
			out = append(out, texts[i])
		}
	}
	return out
}

// text asks a query and reads one file of the answer.
func (k *backend) text(ctx context.Context, q query.Node, opt askOptions, file string) (text string, err error) {
	err = k.with(ctx, func(l *line) error {
		if err := l.query(q, opt); err != nil {
			return err
		}
		b, err := l.readFile("query/"+l.name+"/"+file, maxFarText)
		text = string(b)
		return err
	})
	return text, err
}

// writeFarWhy writes why each hit of the page is there, as its back end says.
func (p page) writeFarWhy(ctx context.Context, w *bufio.Writer) error {
	why := make(map[string]string, p.to-p.from)
	for _, text := range p.texts(ctx, "why", p.to) {
		oid := ""
		for line := range strings.Lines(text) {
			if cols := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); cols[0] != "" && len(cols) == 3 {
				oid = cols[2]
				if _, twice := why[oid]; twice {
					oid = ""
				} else {
					why[oid] = ""
				}
			} else if oid != "" {
				why[oid] += line
			}
		}
	}
	for i := p.from; i < p.to; i++ {
		h := p.farHit(i)
		if text, ok := why[h.oid.String()]; ok {
			fmt.Fprintf(w, "%d\t%.3f\t%s\n%s", i+1, h.score, h.oid, text)
		}
	}
	return nil
}

// writeFarRefine adds up what the back ends say.
func (p page) writeFarRefine(ctx context.Context, w *bufio.Writer) error {
	sum := sums(p.texts(ctx, "refine", 1), 2, 2)
	keys := slices.Collect(maps.Keys(sum))
	attr := func(key string) string { a, _, _ := strings.Cut(key, "\t"); return a }
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(cmp.Compare(attr(x), attr(y)), sum[y]-sum[x], cmp.Compare(x, y))
	})
	for _, key := range keys {
		fmt.Fprintf(w, "%s\t%d\n", key, sum[key])
	}
	return nil
}

// writeFarSuggest has a word that no back end finds; one of which any says nothing
// is found there.
func (p page) writeFarSuggest(ctx context.Context, w *bufio.Writer) error {
	texts := p.texts(ctx, "suggest", 1)
	words := make(map[string]int) // in how many texts
	for _, text := range texts {
		seen := make(map[string]bool)
		for line := range strings.Lines(text) {
			word, _, _ := strings.Cut(line, "\t")
			if !seen[word] {
				words[word]++
			}
			seen[word] = true
		}
	}
	asked, _ := p.b.front.pick(p.q, p.manner)
	sum := sums(texts, 3, 3)
	for _, key := range slices.SortedFunc(maps.Keys(sum), func(x, y string) int { return cmp.Or(sum[y]-sum[x], cmp.Compare(x, y)) }) {
		if word, _, _ := strings.Cut(key, "\t"); words[word] == len(asked) {
			fmt.Fprintf(w, "%s\t%d\n", key, sum[key])
		}
	}
	return nil
}

// sums adds the number in a column of lines up for all that have the same in those
// before.
func sums(texts []string, key, column int) map[string]int {
	sum := make(map[string]int)
	for _, text := range texts {
		for line := range strings.Lines(text) {
			cols := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(cols) != column+1 {
				continue
			}
			n, err := strconv.Atoi(cols[column])
			if err != nil || n < 0 {
				continue
			}
			k := strings.Join(cols[:key], "\t")
			sum[k] += n
		}
	}
	return sum
}
