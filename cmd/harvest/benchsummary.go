package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"harvest/gather/essence"
	"harvest/gather/soif"
	"harvest/index"
	"harvest/index/bench"
	"harvest/index/query"
)

// summaryBench is harvest bench summaries: the same queries over the summaries of
// documents and over their full text.
type summaryBench struct {
	queries int
	most    int
}

func benchSummariesCommand() command {
	var b summaryBench
	return command{"bench summaries", "[--queries N] DIR…", "ask summaries and full texts of documents the same", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.IntVar(&b.queries, "queries", 300, "of each class")
		fl.IntVar(&b.most, "documents", 20_000, "take so many at most, from all over")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 || b.queries < 1 {
				return usagef("name folders of documents")
			}
			return b.run(ctx, args, std)
		}
	}}
}

// A summarized is a document: what is searched of it, in each way.
type summarized struct {
	id    index.ID
	title string
	full  []byte
	attrs []index.Field // of the summary
}

// ways are how documents are searched.
var summaryWays = [...]string{"full text", "summaries"}

func (b *summaryBench) run(ctx context.Context, dirs []string, std std) error {
	var size [3]int64 // of the documents, of their texts, of their summaries
	docs, err := b.summarize(ctx, dirs, &size, std)
	if err != nil {
		return err
	}
	work, done, err := workFolder("")
	if err != nil {
		return err
	}
	defer done()
	var engines [len(summaryWays)]index.Engine
	var disk [len(summaryWays)]int64
	for i, way := range summaryWays {
		dir := filepath.Join(work, strings.ReplaceAll(way, " ", "-"))
		e, err := index.Open(dir, index.Settings{})
		if err != nil {
			return err
		}
		defer e.Close()
		if err := e.Apply(ctx, ways(docs, i), nil, "1"); err != nil {
			return err
		}
		if disk[i], err = folderSize(dir); err != nil {
			return err
		}
		engines[i] = e
	}
	percent := func(a, of int64) string { return fmt.Sprintf("%.1f%%", 100*float64(a)/float64(of)) }
	fmt.Fprintf(std.out, "%d documents, %.1f MB, text %.1f MB; summaries %.1f MB, %s of the documents (1/%.0f), %s of the text\n", len(docs),
		float64(size[0])/1e6, float64(size[1])/1e6, float64(size[2])/1e6, percent(size[2], size[0]), float64(size[0])/float64(size[2]), percent(size[2], size[1]))
	fmt.Fprintf(std.out, "index: of full text %.1f MB, of summaries %.1f MB, %s\n\n", float64(disk[0])/1e6, float64(disk[1])/1e6, percent(disk[1], disk[0]))
	rows := [][]string{{"class", "queries", "answers", "recall", "precision", "document found, full text", "summaries", "in the first 10, full text", "summaries"}}
	for _, class := range []string{"title", "heading", "word", "passage"} {
		row, err := b.ask(ctx, class, docs, engines)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	table(std.out, rows)
	return nil
}

// summarize makes the documents, of the files in the folders with text in them.
func (b *summaryBench) summarize(ctx context.Context, dirs []string, size *[3]int64, std std) (docs []*summarized, err error) {
	var names []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, e iofs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	shown := newProgress(std.err, "summaries", min(len(names), b.most))
	defer shown.end()
	seen := make(map[string]bool) // documents that are there twice are one
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(docs) == b.most {
			break
		}
		o, err := summaryOf(ctx, name)
		if err != nil {
			return nil, err
		}
		full, _ := o.Get("Full-Text")
		if sum := o.Text("MD5"); len(full) < 500 || seen[sum] {
			continue
		}
		seen[o.Text("MD5")] = true
		d := &summarized{id: bench.ID(name), title: o.Text("Title"), full: full}
		o.Del("Full-Text")
		if n, err := strconv.ParseInt(cmp.Or(o.Text("Unnested-Size"), o.Text("File-Size")), 10, 64); err == nil {
			size[0] += n
		}
		size[1] += int64(len(full))
		size[2] += int64(len(o.Append(nil)))
		for _, a := range o.Attrs {
			d.attrs = append(d.attrs, index.Field{Name: a.Name, Text: string(a.Value)})
		}
		docs = append(docs, d)
		shown.show(len(docs))
	}
	if len(docs) == 0 {
		return nil, errors.New("no documents with text")
	}
	return docs, nil
}

func summaryOf(ctx context.Context, name string) (soif.Object, error) {
	f, err := os.Open(name)
	if err != nil {
		return soif.Object{}, err
	}
	defer f.Close()
	var head bytes.Buffer
	if _, err := io.CopyN(&head, f, 4<<20); err != nil && !errors.Is(err, io.EOF) {
		return soif.Object{}, err
	}
	o, _, err := essence.Summarize(ctx, essence.Input{URL: "file://" + name, Name: filepath.Base(name), Head: head.Bytes(), Rest: f, FullText: true})
	return o, err
}

// ways are the documents as one of the ways has them.
func ways(docs []*summarized, way int) iter.Seq2[*index.Doc, error] {
	return func(yield func(*index.Doc, error) bool) {
		for _, d := range docs {
			doc := &index.Doc{ID: d.id, Fields: d.attrs}
			if way == 0 {
				doc.Fields = []index.Field{{Name: "Title", Text: d.title}, {Name: "Full-Text", Text: string(d.full)}}
			}
			if !yield(doc, nil) {
				return
			}
		}
	}
}

// ask asks queries of a class, each with a document in mind: recall is how much of
// what the full text answers the summaries do, precision how much of what they
// answer the full text does.
func (b *summaryBench) ask(ctx context.Context, class string, docs []*summarized, engines [len(summaryWays)]index.Engine) ([]string, error) {
	r := rand.New(rand.NewPCG(3, uint64(len(class))))
	count := documentsWith(docs)
	var n, answers, both, theirs int
	var recall float64
	var found, first [len(summaryWays)]int
	for try := 0; n < b.queries && try < 20*b.queries; try++ {
		d := docs[r.IntN(len(docs))]
		words := summaryQuery(class, d, count, len(docs), r)
		if words == nil {
			continue
		}
		q, err := query.Parse(strings.Join(words, " AND "))
		if err != nil {
			continue // a word that is one of the language of queries
		}
		var hits [len(summaryWays)][]index.Hit
		for i, e := range engines {
			res, err := e.Search(ctx, q, index.Options{})
			if err != nil {
				return nil, err
			}
			hits[i] = res.Hits
			if at := slices.IndexFunc(res.Hits, func(h index.Hit) bool { return h.ID == d.id }); at >= 0 {
				found[i]++
				if at < 10 {
					first[i]++
				}
			}
		}
		if len(hits[0]) == 0 {
			continue
		}
		n++
		in := make(map[index.ID]bool)
		for _, h := range hits[0] {
			in[h.ID] = true
		}
		common := 0
		for _, h := range hits[1] {
			if in[h.ID] {
				common++
			}
		}
		answers, both, theirs = answers+len(hits[0]), both+common, theirs+len(hits[1])
		recall += float64(common) / float64(len(hits[0]))
	}
	if n == 0 {
		return []string{class, "0"}, nil
	}
	part := func(a int) string { return fmt.Sprintf("%.2f", float64(a)/float64(n)) }
	return []string{class, fmt.Sprint(n), fmt.Sprintf("%.1f", float64(answers)/float64(n)), fmt.Sprintf("%.2f", recall/float64(n)),
		fmt.Sprintf("%.2f", float64(both)/float64(max(theirs, 1))), part(found[0]), part(found[1]), part(first[0]), part(first[1])}, nil
}

// documentsWith counts the documents that have a word in their text.
func documentsWith(docs []*summarized) map[string]int {
	count := make(map[string]int)
	for _, d := range docs {
		in := make(map[string]bool)
		for _, w := range summaryWords(string(d.full)) {
			if !in[w] {
				in[w] = true
				count[w]++
			}
		}
	}
	return count
}

// summaryWords are the words of a text of four letters and more, in small letters.
func summaryWords(text string) (out []string) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && r < 0x80 }) {
		if len(w) >= 4 && len(w) <= 20 && strings.IndexFunc(w, func(r rune) bool { return r >= 0x80 }) < 0 {
			out = append(out, strings.ToLower(w))
		}
	}
	return out
}

// summaryQuery chooses the words of a query that a document answers, nil if it
// has none for the class: two or three of the title or of a heading, a word of
// the text that one document in twenty has at most, or the two rarest words of
// a line of it that others have too.
func summaryQuery(class string, d *summarized, count map[string]int, docs int, r *rand.Rand) []string {
	text := string(d.full)
	rare := func(words []string, least, most int) []string {
		words = slices.DeleteFunc(slices.Compact(words), func(w string) bool { return count[w] < least || count[w] > most })
		slices.SortStableFunc(words, func(a, b string) int { return count[a] - count[b] })
		return slices.Compact(words)
	}
	line := func(text string) string {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return len(strings.Fields(l)) < 2 })
		if len(lines) == 0 {
			return ""
		}
		return lines[r.IntN(len(lines))]
	}
	var words []string
	n := 2
	switch class {
	case "title":
		words, n = rare(summaryWords(d.title), 1, docs/3), 3
	case "heading":
		for _, a := range d.attrs {
			if a.Name == "Headings" {
				words = rare(summaryWords(line(a.Text)), 1, docs/3)
			}
		}
	case "word":
		if words = rare(summaryWords(text), 2, docs/20); len(words) > 0 {
			return []string{words[r.IntN(len(words))]}
		}
	case "passage":
		words = rare(summaryWords(line(text)), 2, docs/20)
	}
	if len(words) < 2 {
		return nil
	}
	return words[:min(n, len(words))]
}
