package essence

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// # Pages with known answers
//
// The go-trafilatura project has collected real pages and, for each, phrases that
// are in its main text and phrases that are not, its title, authors and day. They
// are read from the module cache as data:
//
//	go mod download github.com/markusmobius/go-trafilatura@v1.12.2

const pagesModule = "github.com/markusmobius/go-trafilatura@v1.12.2"

// A gold is a page and what is known of it.
type gold struct {
	url, file, title, date string
	authors, tags          []string
	with, without          []string
	doc                    []byte
}

// first reports whether a page is of the half that rules were made with.
func (g *gold) first() bool {
	h := fnv.New32a()
	h.Write([]byte(g.url))
	return h.Sum32()%2 == 0
}

// goldPages reads the pages, or skips.
func goldPages(t testing.TB) []*gold {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skipf("go env: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), pagesModule)
	f, err := parser.ParseFile(gotoken.NewFileSet(), filepath.Join(dir, "scripts/comparison/data.go"), nil, 0)
	if err != nil {
		t.Skipf("%v: go mod download %s", err, pagesModule)
	}
	var all []*gold
	ast.Inspect(f, func(n ast.Node) bool {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		url, ok := kv.Key.(*ast.BasicLit)
		if !ok {
			return true
		}
		g := &gold{url: unquote(url)}
		for _, e := range kv.Value.(*ast.CompositeLit).Elts {
			g.field(e.(*ast.KeyValueExpr))
		}
		for _, sub := range []string{"comparison", "mock"} {
			if b, err := os.ReadFile(filepath.Join(dir, "test-files", sub, g.file)); err == nil && g.doc == nil {
				g.doc = b
			}
		}
		if g.doc == nil {
			t.Fatalf("%s: no page", g.file)
		}
		all = append(all, g)
		return false
	})
	if len(all) != 983 {
		t.Fatalf("got %d pages, want 983", len(all))
	}
	slices.SortFunc(all, func(a, b *gold) int { return strings.Compare(a.url, b.url) })
	return all
}

func unquote(l *ast.BasicLit) string {
	s, err := strconv.Unquote(l.Value)
	if err != nil {
		panic(err)
	}
	return s
}

func (g *gold) field(e *ast.KeyValueExpr) {
	text := func() string { return unquote(e.Value.(*ast.BasicLit)) }
	list := func() (out []string) {
		for _, s := range e.Value.(*ast.CompositeLit).Elts {
			out = append(out, unquote(s.(*ast.BasicLit)))
		}
		return out
	}
	switch e.Key.(*ast.Ident).Name {
	case "File":
		g.file = text()
	case "Title":
		g.title = text()
	case "Date":
		g.date = text()
	case "Authors":
		g.authors = list()
	case "Tags":
		g.tags = list()
	case "With":
		g.with = list()
	case "Without":
		g.without = list()
	}
}

// A tally is how many answers are right.
type tally struct {
	pages                 int
	tp, fn, fp            int
	titles, rightTitles   int
	authors, rightAuthors int
	dates, rightDates     int
}

func (a *tally) f1() (p, r, f float64) {
	p = float64(a.tp) / float64(a.tp+a.fp)
	r = float64(a.tp) / float64(a.tp+a.fn)
	return p, r, 2 * p * r / (p + r)
}

func (a *tally) String() string {
	p, r, f := a.f1()
	return fmt.Sprintf("%d pages: main text precision %.3f recall %.3f F1 %.3f; titles %d of %d, authors %d of %d, days %d of %d",
		a.pages, p, r, f, a.rightTitles, a.titles, a.rightAuthors, a.authors, a.rightDates, a.dates)
}

func (a *tally) add(b *tally) {
	a.pages += b.pages
	a.tp, a.fn, a.fp = a.tp+b.tp, a.fn+b.fn, a.fp+b.fp
	a.titles, a.rightTitles = a.titles+b.titles, a.rightTitles+b.rightTitles
	a.authors, a.rightAuthors = a.authors+b.authors, a.rightAuthors+b.rightAuthors
	a.dates, a.rightDates = a.dates+b.dates, a.rightDates+b.rightDates
}

// judge compares what was made of a page with what is known.
func (a *tally) judge(g *gold, main, title, author, date string) {
	a.pages++
	for _, s := range g.with {
		if strings.Contains(main, s) {
			a.tp++
		} else {
			a.fn++
		}
	}
	for _, s := range g.without {
		if strings.Contains(main, s) {
			a.fp++
		}
	}
	count := func(n, right *int, want, got string) {
		if want == "" {
			return
		}
		if *n++; strings.TrimSpace(got) == strings.TrimSpace(want) {
			*right++
		}
	}
	count(&a.titles, &a.rightTitles, g.title, title)
	count(&a.authors, &a.rightAuthors, strings.Join(g.authors, "; "), author)
	count(&a.dates, &a.rightDates, g.date, date)
}

func userTime() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano())
}

// TestPages judges the summaries of real pages.
func TestPages(t *testing.T) {
	pages := goldPages(t)
	var half [2]tally
	start := userTime()
	size := 0
	for _, g := range pages {
		p := newPage(defaultTable(), decodeHTML(g.doc, ""))
		p.read()
		p.readLD()
		p.main.choose(p.text)
		size += len(g.doc)
		i := 1
		if g.first() {
			i = 0
		}
		half[i].judge(g, string(p.main.chosen(p.text)), p.bestTitle(), p.bestAuthor(), p.date())
		if os.Getenv("HARVEST_PAGES_WRONG") != "" && i == 0 {
			wrong(t, g, p)
		}
	}
	d := userTime() - start
	t.Logf("%.2f ms of CPU time a page of %d KB", float64(d.Microseconds())/1000/float64(len(pages)), size/len(pages)>>10)
	t.Logf("made with: %v", &half[0])
	t.Logf("others:    %v", &half[1])
	all := half[0]
	all.add(&half[1])
	t.Logf("all:       %v", &all)
	if _, _, f := all.f1(); f < 0.85 || all.rightTitles < 700 || all.rightAuthors < 300 {
		t.Errorf("got %v; want F1 0.85, 700 titles, 300 authors", &all)
	}
	if _, _, f := half[1].f1(); f < 0.85 {
		t.Errorf("pages that nothing was made with: got F1 %.3f, want 0.85", f)
	}
}

// wrong shows what is wrong of a page.
func wrong(t *testing.T, g *gold, p *page) {
	main := string(p.main.chosen(p.text))
	what := os.Getenv("HARVEST_PAGES_WRONG")
	if strings.Contains(what, "main") {
		for _, s := range g.with {
			if !strings.Contains(main, s) {
				t.Logf("%s: misses %q (in text: %t)", g.file, s, strings.Contains(string(p.text), s))
			}
		}
		for _, s := range g.without {
			if strings.Contains(main, s) {
				t.Logf("%s: has %q", g.file, s)
			}
		}
	}
	if s := p.bestTitle(); strings.Contains(what, "title") && g.title != "" && s != g.title {
		t.Logf("%s: title %q, want %q; title %q, said %q, headings %q", g.file, s, g.title, words(p.title), p.values.first("Title"), p.told.heads[:min(4, len(p.told.heads))])
	}
	if s, want := p.bestAuthor(), strings.Join(g.authors, "; "); strings.Contains(what, "author") && want != "" && s != want {
		t.Logf("%s: author %q, want %q; %q", g.file, s, want, p.told.authors)
	}
	if s := p.date(); strings.Contains(what, "date") && g.date != "" && s != g.date {
		t.Logf("%s: date %q, want %q; %q", g.file, s, g.date, p.told.times)
	}
}
