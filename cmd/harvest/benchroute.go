package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"harvest/broker"
	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// routeBench is harvest bench route: many Brokers of some packages' documents
// each, a front end that asks the likely ones, and one Broker of everything, which
// says what the best hits are.
type routeBench struct {
	brokers, queries, share, hits, most int
	seed                                uint64

	dir   string
	trees map[string]iofs.FS
	docs  []routeDoc
	ask   []routeQuery
}

// A routeDoc is a document of a Broker.
type routeDoc struct {
	broker         int
	name, pkg      string
	title, content string
}

type routeQuery struct{ class, text string }

func benchRouteCommand() command {
	b := routeBench{}
	return command{"bench route", "[--brokers N] [--share PERCENT] [DIR]", "ask the likely ones of many Brokers, and compare with all", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.IntVar(&b.brokers, "brokers", 100, "Brokers to make")
		fl.IntVar(&b.queries, "queries", 210, "queries to ask, of seven classes")
		fl.IntVar(&b.share, "share", 20, "percent of the Brokers to ask")
		fl.IntVar(&b.hits, "hits", 10, "best hits that are wanted")
		fl.IntVar(&b.most, "bytes", 32<<10, "bytes of a document to take")
		fl.Uint64Var(&b.seed, "seed", 1, "of the choice of queries")
		return func(ctx context.Context, args []string, std std) error {
			dir := "/usr/share/doc"
			if len(args) > 1 {
				return usagef("name one folder, of a folder for each package")
			}
			if len(args) == 1 {
				dir = args[0]
			}
			return b.run(ctx, dir, std)
		}
	}}
}

func (b *routeBench) run(ctx context.Context, dir string, std std) (err error) {
	work, done, err := workFolder("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	b.dir, b.trees = work, make(map[string]iofs.FS)
	if err := b.read(dir); err != nil {
		return err
	}
	b.choose()
	config := ""
	var words, objects int64
	begin := time.Now()
	for i := range b.brokers {
		br, err := b.broker(ctx, i)
		if err != nil {
			return err
		}
		defer br.Close()
		tree := fs.IO(ctx, br.Files())
		b.trees[fmt.Sprintf("broker/%d", i)] = tree
		text, err := iofs.ReadFile(tree, "words")
		if err != nil {
			return err
		}
		words += int64(len(text))
		config += fmt.Sprintf("backend path=broker/%d\n", i)
	}
	all, err := b.broker(ctx, -1)
	if err != nil {
		return err
	}
	defer all.Close()
	for i := range b.docs {
		objects += int64(len(b.docs[i].content) + len(b.docs[i].title))
	}
	least, most := b.sizes()
	fmt.Fprintf(std.out, "%d Brokers of %d documents, %d to %d each, %.1f MB; digests %.1f MB, %.1f %%; made in %.1f s\n", b.brokers, len(b.docs), least, most, float64(objects)/1e6,
		float64(words)/1e6, 100*float64(words)/float64(objects), time.Since(begin).Seconds())
	return b.compare(ctx, config, all, std)
}

// read takes the text files of each package, and gives packages to Brokers in
// order of their names, so that each has about as much.
func (b *routeBench) read(dir string) error {
	var bytes []int
	err := filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := documentText(path, b.most)
		if err != nil || text == "" {
			return err
		}
		pkg, _, _ := strings.Cut(name, "/")
		title, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		b.docs = append(b.docs, routeDoc{name: name, pkg: pkg, title: oneTitle(title), content: text})
		bytes = append(bytes, len(text))
		return nil
	})
	b.part(bytes)
	packages := b.deal(bytes)
	if err == nil && packages < b.brokers {
		err = fmt.Errorf("%s: %d folders with text, for %d Brokers: %w", dir, packages, b.brokers, iofs.ErrInvalid)
	}
	return err
}

// part takes the folders of a package for packages, and theirs, where it has more
// than two Brokers' share of everything.
func (b *routeBench) part(bytes []int) {
	sum := 0
	for _, n := range bytes {
		sum += n
	}
	for depth := 2; depth < 6; depth++ {
		has := make(map[string]int)
		for i, n := range bytes {
			has[b.docs[i].pkg] += n
		}
		for i := range b.docs {
			d := &b.docs[i]
			if parts := strings.Split(d.name, "/"); has[d.pkg]*b.brokers > 2*sum && len(parts) > depth {
				d.pkg = strings.Join(parts[:depth], "/")
			}
		}
	}
}

// deal gives packages to Brokers in order, each until it has its share of what is
// left; every one has a package at least, if there are enough.
func (b *routeBench) deal(bytes []int) (packages int) {
	sum, left := 0, 0
	for i, n := range bytes {
		sum += n
		if i == 0 || b.docs[i].pkg != b.docs[i-1].pkg {
			left++
		}
	}
	packages = left
	at, have := 0, 0
	for i, n := range bytes {
		if i > 0 && b.docs[i].pkg != b.docs[i-1].pkg {
			left--
			if rest := b.brokers - at; at+1 < b.brokers && (have*rest >= sum || left < rest) {
				at++
				sum -= have
				have = 0
			}
		}
		b.docs[i].broker = at
		have += n
	}
	return packages
}

// sizes are the documents of the least Broker and of the greatest.
func (b *routeBench) sizes() (least, most int) {
	n := make([]int, b.brokers)
	for i := range b.docs {
		n[b.docs[i].broker]++
	}
	return slices.Min(n), slices.Max(n)
}

func oneTitle(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ToValidUTF8(s[:min(len(s), 100)], "")
}

// documentText is the beginning of a text file, "" of what is none.
func documentText(path string, most int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var r io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return "", nil // it is none
		}
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(most)))
	if err != nil || !utf8.Valid(text[:max(0, len(text)-utf8.UTFMax)]) || bytes.IndexByte(text, 0) >= 0 {
		return "", nil
	}
	return strings.ToValidUTF8(string(text), ""), nil
}

// broker makes one of the documents with its number, or of all.
func (b *routeBench) broker(ctx context.Context, n int) (*broker.Broker, error) {
	name := fmt.Sprintf("all%d", n)
	st, err := store.Open(filepath.Join(b.dir, name, "gather"), slog.New(slog.DiscardHandler), store.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var changes []store.Change
	for i := range b.docs {
		if d := &b.docs[i]; n < 0 || d.broker == n {
			changes = append(changes, d.change())
		}
	}
	if _, err := st.Apply(ctx, changes); err != nil {
		return nil, err
	}
	path := "gather/" + name
	b.trees[path] = fs.IO(ctx, fs.Static(fs.ID(path), st.Files(func(parts ...string) uint64 { return fs.ID(append([]string{path}, parts...)...) }, nil, nil)))
	br, err := b.open(ctx, name, "source path="+path+" every=720h\n")
	if err != nil {
		return nil, err
	}
	return br, br.Collect(ctx, path)
}

func (d *routeDoc) change() store.Change {
	at := "file:///" + d.name
	o := soif.Object{Type: "FILE", URL: at}
	for _, a := range [][2]string{{"Title", d.title}, {"Package", d.pkg}, {"Bytes", strconv.Itoa(len(d.content))}, {"Full-Text", d.content}, {"Time-to-Live", "3000000000"}, {"Update-Time", "1700000000"}} {
		o.Add(a[0], []byte(a[1]))
	}
	return store.Change{Op: soif.Update, OID: store.ID(at, "bench"), URL: at, Body: o.Append(nil)}
}

func (b *routeBench) open(ctx context.Context, name, config string) (*broker.Broker, error) {
	br, err := broker.Open(filepath.Join(b.dir, name, "broker"), name, slog.New(slog.DiscardHandler), broker.Options{Open: func(_ context.Context, path string) (iofs.FS, io.Closer, error) {
		tree, ok := b.trees[path]
		if !ok {
			return nil, nil, fmt.Errorf("%s: %w", path, iofs.ErrNotExist)
		}
		return tree, nopCloser{}, nil
	}})
	if err != nil {
		return nil, err
	}
	return br, nineDoor{br.Files()}.write(ctx, "config", config)
}

// choose draws queries from documents.
func (b *routeBench) choose() {
	r := rand.New(rand.NewPCG(b.seed, 7))
	for len(b.ask) < b.queries {
		d := &b.docs[r.IntN(len(b.docs))]
		words := plainWords(d.content)
		if len(words) < 10 {
			continue
		}
		word := func() string { return words[r.IntN(len(words))] }
		q := routeQuery{}
		switch len(b.ask) % 7 {
		case 0:
			q = routeQuery{"one word", word()}
		case 1:
			q = routeQuery{"two words", word() + " " + word()}
		case 2:
			q = routeQuery{"two joined", word() + " and " + word()}
		case 3:
			i := r.IntN(len(words) - 1)
			q = routeQuery{"phrase", `"` + words[i] + " " + words[i+1] + `"`}
		case 4:
			if t := plainWords(d.title); len(t) > 1 {
				q = routeQuery{"title", strings.Join(t[:min(len(t), 5)], " ")}
			}
		case 5:
			if t := plainWords(d.title); len(t) > 0 {
				q = routeQuery{"attribute", "title : " + t[r.IntN(len(t))]}
			}
		case 6:
			q = routeQuery{"range", fmt.Sprintf("%s and bytes > %d", word(), len(d.content)/2)}
		}
		if q.text != "" {
			b.ask = append(b.ask, q)
		}
	}
}

// plainWords are the words of a text that somebody would look for.
func plainWords(text string) (words []string) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch low := strings.ToLower(w); {
		case len(w) < 4 || len(w) > 20, low == "near", low == "except":
		default:
			words = append(words, low)
		}
	}
	return words
}

// A routeRow sums up a class of queries.
type routeRow struct {
	queries, asked, could int
	found, best           int // of the best hits
	hits, all             int // of all hits
	took                  time.Duration
}

// compare asks the front end and the Broker of everything the same.
func (b *routeBench) compare(ctx context.Context, config string, all *broker.Broker, std std) error {
	front, err := b.open(ctx, "front", fmt.Sprintf("route share=%d every=1h\n%s", b.share, config))
	if err != nil {
		return err
	}
	defer front.Close()
	running, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { front.Run(running) })
	if err := b.ready(ctx, front); err != nil {
		return err
	}
	rows, sum := make(map[string]*routeRow), new(routeRow)
	for _, q := range b.ask {
		row := rows[q.class]
		if row == nil {
			row = new(routeRow)
			rows[q.class] = row
		}
		if err := b.compareOne(ctx, q, front, all, []*routeRow{row, sum}); err != nil {
			return fmt.Errorf("query %s: %w", q.text, err)
		}
	}
	table(std.out, b.table(rows, sum))
	return nil
}

// ready waits until the front end has all digests.
func (b *routeBench) ready(ctx context.Context, front *broker.Broker) error {
	for range 600 {
		text, err := iofs.ReadFile(fs.IO(ctx, front.Files()), "status")
		if err != nil || strings.Count(string(text), "digest path=") == strings.Count(string(text), " terms=") && strings.Count(string(text), " terms=") == b.brokers {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("digests are not all there after a minute: %w", os.ErrDeadlineExceeded)
}

func (b *routeBench) compareOne(ctx context.Context, q routeQuery, front, all *broker.Broker, rows []*routeRow) error {
	want, total, _, err := b.hitsOf(ctx, all, q.text)
	if err != nil {
		return err
	}
	begin := time.Now()
	got, hits, routed, err := b.hitsOf(ctx, front, q.text)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	found := 0
	for _, oid := range want {
		if slices.Contains(got, oid) {
			found++
		}
	}
	asked, past := strings.Count(routed, "asked\t"), strings.Count(routed, ", past ")
	for _, r := range rows {
		r.queries++
		r.asked += asked
		r.could += asked + past
		r.found += found
		r.best += len(want)
		r.hits += hits
		r.all += total
		r.took += took
	}
	return nil
}

// hitsOf asks for a page: its OIDs, how many hits there are, and who was asked.
func (b *routeBench) hitsOf(ctx context.Context, br *broker.Broker, text string) (oids []string, total int, routed string, err error) {
	d := nineDoor{br.Files()}
	if err := d.mkdir(ctx, "query/bench"); err != nil && !errors.Is(err, iofs.ErrExist) {
		return nil, 0, "", err
	}
	if err := d.write(ctx, "query/bench/ctl", fmt.Sprintf("set limit=%d\nquery %s\n", b.hits, text)); err != nil {
		return nil, 0, "", err
	}
	tree := fs.IO(ctx, br.Files())
	lines, err := iofs.ReadFile(tree, "query/bench/hits")
	if err != nil {
		return nil, 0, "", err
	}
	for line := range strings.Lines(string(lines)) {
		oids = append(oids, strings.Split(line, "\t")[2])
	}
	status, err := iofs.ReadFile(tree, "query/bench/status")
	if err != nil {
		return nil, 0, "", err
	}
	entries, err := ndb.Parse(string(status))
	for _, e := range entries {
		if _, ok := e.Get("hits"); ok {
			total = number(e, "hits")
		}
	}
	who, err2 := iofs.ReadFile(tree, "query/bench/routed")
	return oids, total, string(who), errors.Join(err, err2)
}

func (b *routeBench) table(rows map[string]*routeRow, sum *routeRow) [][]string {
	out := [][]string{{"class", "queries", "may have hits", "asked", fmt.Sprintf("recall of the best %d", b.hits), "of all hits", "a query"}}
	line := func(name string, r *routeRow) {
		per := func(n int) string {
			return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(r.queries, 1)*b.brokers))
		}
		out = append(out, []string{name, strconv.Itoa(r.queries), per(r.could), per(r.asked), fmt.Sprintf("%.3f", float64(r.found)/float64(max(r.best, 1))),
			fmt.Sprintf("%.3f", float64(r.hits)/float64(max(r.all, 1))), micros(float64(r.took.Microseconds()) / float64(max(r.queries, 1)))})
	}
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	for _, name := range names {
		line(name, rows[name])
	}
	line("all", sum)
	return out
}
