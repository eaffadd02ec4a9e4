package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"harvest/index"
	"harvest/index/bench"
)

// indexBench is harvest bench index: every kind of index over one folder.
type indexBench struct {
	build
	kinds   []string
	classes []string
	queries string
	runs    int
	repeats int
	stored  bool
	peers   bool
	cold    bool
	tsv     string
	work    string
}

func benchIndexCommand() command {
	var b indexBench
	return command{"bench index", "[--kind KIND,…] [--queries FILE] [--tsv FILE] DIR", "time every kind of index over the text files of a folder", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.StringSliceVar(&b.kinds, "kind", kindNames(), "kinds of index")
		fl.StringVar(&b.queries, "queries", "", "ask the queries of this file (default: some chosen from the texts)")
		fl.StringSliceVar(&b.classes, "class", bench.Classes(), "classes of queries to ask")
		fl.IntVar(&b.runs, "runs", 1, "build each index so many times; the median counts")
		fl.IntVar(&b.repeats, "repeats", 10, "ask each query so many times after two that do not count")
		fl.BoolVar(&b.stored, "store", false, "take the texts from an object store made of the files, as a Broker does")
		fl.BoolVar(&b.peers, "peers", false, "measure glimpse, codesearch and ripgrep too, those that are installed")
		fl.BoolVar(&b.cold, "cold", false, "ask each query once, with neither index nor texts in memory")
		fl.StringVar(&b.tsv, "tsv", "", "write what was measured, a line each, to this file")
		fl.StringVar(&b.work, "work", "", "make the indexes in this folder and leave them there (default: a temporary one)")
		b.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) != 1 {
				return usagef("name a folder of text files")
			}
			if b.runs < 1 || b.repeats < 1 {
				return usagef("--runs and --repeats are 1 or more")
			}
			return b.run(ctx, args[0], std)
		}
	}}
}

// A kindResult is what was measured of one kind.
type kindResult struct {
	kind    string
	peer    bool
	builds  []built
	add     time.Duration // of the documents of DIR.add; 0: there are none
	opened  time.Duration // the share of that which opening the index took
	samples []sample
}

// A sample is one query, asked once.
type sample struct {
	query bench.Query
	took  time.Duration
	hits  int
}

func (b *indexBench) run(ctx context.Context, dir string, std std) (err error) {
	for _, name := range b.kinds {
		if _, err := benchKindOf(name); err != nil {
			return err
		}
	}
	c, err := bench.OpenCorpus(dir)
	if err != nil {
		return err
	}
	if len(c.Names) == 0 {
		return fmt.Errorf("%s: no files in it: %w", dir, iofs.ErrInvalid)
	}
	queries, err := b.read(ctx, c)
	if err != nil {
		return err
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if b.stored {
		b.store = filepath.Join(work, "store")
		shown := newProgress(std.err, "store", len(c.Names))
		err := fillStore(ctx, c, b.store, shown.show)
		shown.end()
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(std.out, "corpus: %.1f MB of text in %d files\n", float64(c.Bytes)/1e6, len(c.Names))
	var results []kindResult
	for _, name := range b.kinds {
		kind, _ := benchKindOf(name)
		r, err := b.measure(ctx, kind, dir, filepath.Join(work, name), queries, std)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, r)
	}
	for _, p := range peers() {
		if !b.peers || !p.installed() {
			continue
		}
		r, err := p.measure(ctx, dir, filepath.Join(work, p.name), b.runs, b.cold, queries, std)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		results = append(results, r)
	}
	printBuilds(std.out, results, c.Bytes)
	printQueries(std.out, results, b.classes)
	if b.tsv != "" {
		return os.WriteFile(b.tsv, []byte(tsv(results, c)), 0o666)
	}
	return nil
}

// read reads the queries, or chooses some, and keeps those of the classes asked for.
func (b *indexBench) read(ctx context.Context, c *bench.Corpus) ([]bench.Query, error) {
	for _, class := range b.classes {
		if !slices.Contains(bench.Classes(), class) {
			return nil, usagef("%s: not one of %s", class, strings.Join(bench.Classes(), ", "))
		}
	}
	var queries []bench.Query
	if b.queries == "" {
		var err error
		if queries, err = bench.Choose(ctx, c, 10); err != nil {
			return nil, err
		}
	} else {
		f, err := os.Open(b.queries)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if queries, err = bench.ReadQueries(f); err != nil {
			return nil, fmt.Errorf("%s: %w", b.queries, err)
		}
	}
	return slices.DeleteFunc(queries, func(q bench.Query) bool { return !slices.Contains(b.classes, q.Class) }), nil
}

// workFolder gives a folder and what to do with it in the end.
func workFolder(name string) (dir string, done func() error, err error) {
	if name != "" {
		if dir, err = filepath.Abs(name); err != nil { // servers take a source by it
			return "", nil, err
		}
		return dir, func() error { return nil }, os.MkdirAll(dir, 0o777)
	}
	dir, err = os.MkdirTemp("", "harvest-bench-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// measure builds an index of a kind, asks it everything, then adds DIR.add.
func (b *indexBench) measure(ctx context.Context, kind benchKind, dir, to string, queries []bench.Query, std std) (r kindResult, err error) {
	r.kind, b.kind = kind.name, kind.name
	for range b.runs {
		if err := os.RemoveAll(to); err != nil {
			return r, err
		}
		done, err := b.child(ctx, dir, to, std)
		if err != nil {
			return r, err
		}
		r.builds = append(r.builds, done)
	}
	docs, err := openDocuments(dir, b.store)
	if err != nil {
		return r, err
	}
	defer docs.Close()
	more, err := bench.OpenCorpus(strings.TrimRight(dir, "/") + ".add")
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return r, err
	}
	set := index.Settings{Workers: b.cores, Memory: int64(b.memory) << 20, Source: benchSources{docs, more}}
	path := filepath.Join(to, "index")
	file := b.profile
	if file != "" {
		file += "." + kind.name + ".queries"
	}
	err = profiled(file, func() error {
		if b.cold {
			r.samples, err = b.askCold(ctx, kind, dir, path, set, queries, std)
		} else {
			r.samples, err = b.ask(ctx, kind, path, set, queries, std)
		}
		return err
	})
	if err == nil && len(more.Names) > 0 {
		err = r.addMore(ctx, kind, path, set, more)
	}
	return r, err
}

// benchSources looks for a text in one place after the other.
type benchSources []index.Source

func (s benchSources) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	more := true
	for _, src := range s {
		err := src.Text(ctx, ids, func(i int, fields []index.Field) bool {
			more = yield(i, fields)
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// ask opens the index and asks each query, as the drivers of the peers do: in
// this process, first twice to warm up. One that takes seconds is asked once.
func (b *indexBench) ask(ctx context.Context, kind benchKind, path string, set index.Settings, queries []bench.Query, std std) (out []sample, err error) {
	e, err := kind.open(path, set)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	runtime.GC()
	shown := newProgress(std.err, kind.name+" queries", len(queries))
	defer shown.end()
	opt := kind.options()
	cannot := make(map[string]bool) // classes
	for n, q := range queries {
		for i := -2; i < b.repeats && !cannot[q.Class]; i++ {
			begin := time.Now()
			node, err := q.Node()
			if err != nil {
				return nil, err
			}
			r, err := e.Search(ctx, node, opt)
			took := time.Since(begin)
			if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, iofs.ErrInvalid) {
				fmt.Fprintf(std.err, "harvest: %s: %s is left out: %v\n", kind.name, q.Class, err)
				cannot[q.Class] = true
				break
			}
			if err != nil {
				return nil, fmt.Errorf("query %s: %w", q.ID, err)
			}
			opt.Buf = r.Hits
			slow := took > 2*time.Second
			if i >= 0 || slow {
				out = append(out, sample{q, took, r.Total})
			}
			if slow {
				break
			}
		}
		shown.show(n + 1)
	}
	return out, nil
}

// addMore adds documents to an index that has to be opened for it.
func (r *kindResult) addMore(ctx context.Context, kind benchKind, path string, set index.Settings, more *bench.Corpus) error {
	begin := time.Now()
	e, err := kind.open(path, set)
	if err != nil {
		return err
	}
	r.opened = time.Since(begin)
	before := e.Stats().Docs
	err = e.Apply(ctx, more.Docs(ctx, nil), nil, "more")
	r.add = time.Since(begin)
	if got := e.Stats().Docs - before; err == nil && got != len(more.Names) {
		err = fmt.Errorf("%s: %d of %d documents can be found after they were added", kind.name, got, len(more.Names))
	}
	return errors.Join(err, e.Close())
}

// printBuilds tells what each kind costs.
func printBuilds(w io.Writer, results []kindResult, text int64) {
	mb := float64(text) / 1e6
	rows := [][]string{{"kind", "build s", "MB/s", "cpu s", "peak MB", "index MB", "% of text", "+100 docs ms", "of it open ms"}}
	for _, r := range results {
		if len(r.builds) == 0 {
			continue
		}
		wall, cpu := medianOf(r.builds, func(b built) float64 { return b.wall.Seconds() }), medianOf(r.builds, func(b built) float64 { return b.cpu.Seconds() })
		peak := medianOf(r.builds, func(b built) float64 { return float64(b.peak) })
		size := float64(r.builds[len(r.builds)-1].bytes) / 1e6
		row := []string{r.kind, fmt.Sprintf("%.2f", wall), fmt.Sprintf("%.1f", mb/wall), fmt.Sprintf("%.2f", cpu), fmt.Sprintf("%.0f", peak/1024),
			fmt.Sprintf("%.2f", size), fmt.Sprintf("%.2f", size/mb*100), "–", "–"}
		if r.add > 0 {
			row[7] = fmt.Sprintf("%.1f", ms(r.add))
		}
		if r.opened > 0 {
			row[8] = fmt.Sprintf("%.1f", ms(r.opened))
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	table(w, rows)
}

// printQueries tells what each class takes: a row a class, median and 99th of
// a hundred, and how many documents match on average.
func printQueries(w io.Writer, results []kindResult, classes []string) {
	rows := [][]string{{"class"}}
	for _, r := range results {
		rows[0] = append(rows[0], r.kind, "p99", "matches")
	}
	for _, class := range classes {
		row := []string{class}
		for _, r := range results {
			row = append(row, r.class(class)...)
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	table(w, rows)
}

func (r *kindResult) class(class string) []string {
	var took []float64
	hits := make(map[string]int)
	for _, s := range r.samples {
		if s.query.Class == class {
			took = append(took, float64(s.took.Nanoseconds())/1e3)
			hits[s.query.ID] = s.hits
		}
	}
	if len(took) == 0 {
		return []string{"–", "–", "–"}
	}
	sum := 0
	for _, n := range hits {
		sum += n
	}
	return []string{micros(quantile(took, 0.5)), micros(quantile(took, 0.99)), fmt.Sprintf("%.0f", float64(sum)/float64(len(hits)))}
}

// tsv writes the lines that ../shared/rigs/index/peers.sh takes as EXTRA: the
// text, each build, each addition, each query.
func tsv(results []kindResult, c *bench.Corpus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "T\t%.1f\t%d\n", float64(c.Bytes)/1e6, len(c.Names))
	for _, r := range results {
		name := r.kind
		if !r.peer {
			name = "harvest-" + name
		}
		for _, d := range r.builds {
			fmt.Fprintf(&b, "I\t%s\t%.2f\t%.2f\t%d\t%d\n", name, d.wall.Seconds(), d.cpu.Seconds(), d.peak, d.bytes)
		}
		if r.add > 0 {
			fmt.Fprintf(&b, "A\t%s\t%.1f\n", name, ms(r.add))
		}
		for _, s := range r.samples {
			fmt.Fprintf(&b, "S\t%s\t%s\t%s\t%.1f\t%d\n", name, s.query.Class, s.query.ID, float64(s.took.Nanoseconds())/1e3, s.hits)
		}
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// quantile is the value of list that a share p of it does not exceed.
func quantile(list []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(p*float64(len(sorted)-1))]
}

func medianOf[T any](list []T, f func(T) float64) float64 {
	var v []float64
	for _, x := range list {
		v = append(v, f(x))
	}
	return quantile(v, 0.5)
}

// micros writes a number of microseconds in the unit that fits.
func micros(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.1f µs", v)
	case v < 1e3:
		return fmt.Sprintf("%.0f µs", v)
	case v < 1e4:
		return fmt.Sprintf("%.1f ms", v/1e3)
	case v < 1e6:
		return fmt.Sprintf("%.0f ms", v/1e3)
	}
	return fmt.Sprintf("%.1f s", v/1e6)
}
