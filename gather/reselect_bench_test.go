package gather

import (
	"bufio"
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"harvest/gather/crawl"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A bigWeb answers for as many servers as are asked for, of a hundred pages each.
// A page has ten links, half of them to other servers.
type bigWeb struct{ servers int }

func (w bigWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	var b strings.Builder
	var server, page int
	status := 200
	switch n, _ := fmt.Sscanf(r.URL.Host+r.URL.Path, "s%d.test/p/%d.html", &server, &page); {
	case r.URL.Path == "/robots.txt":
		status = 404
	case r.URL.Host == "start.test":
		for i := range w.servers {
			fmt.Fprintf(&b, "<a href=http://s%d.test/>", i)
		}
	case n == 1:
		fmt.Sscanf(r.URL.Host, "s%d.test", &server)
		for i := range 99 {
			fmt.Fprintf(&b, "<a href=/p/%d.html>", i)
		}
	default:
		for i := range uint32(5) {
			x := (uint32(server*100+page)*10 + i) * 2654435761 >> 8
			fmt.Fprintf(&b, "<a href=/p/%d.html><a href=http://s%d.test/p/%d.html>", x%99, x/99%uint32(w.servers), x%7)
		}
	}
	return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(b.Len()),
		Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(b.String()))}, nil
}

// small keeps an object of each page that says next to nothing; every twentieth
// is a copy of another.
type small struct{ g *Gatherer }

func (s small) Handle(_ context.Context, p *crawl.Page) {
	sum := md5.Sum([]byte(p.URL))
	if sum[0] < 13 {
		sum = md5.Sum(sum[:2])
	}
	p.MD5, p.Size, p.Weight = sum, 1000, 100
}

func (s small) Commit(ctx context.Context, pages []*crawl.Page) error {
	var changes []store.Change
	for _, p := range pages {
		if p.Outcome == crawl.Fetched {
			o := soif.Object{Type: "FILE", URL: p.URL}
			o.Add("Type", []byte("HTML"))
			changes = append(changes, store.Change{Op: soif.Update, OID: s.g.oid(p.URL), URL: p.URL, Body: o.Append(nil)})
		}
	}
	_, err := s.g.store.Apply(ctx, changes)
	return err
}

// BenchmarkReselect selects, and writes tables, of the documents of a made-up web:
// HARVEST_BENCH_DOCS of them, 20,000 else.
func BenchmarkReselect(b *testing.B) {
	docs := 20_000
	if n, err := strconv.Atoi(os.Getenv("HARVEST_BENCH_DOCS")); err == nil {
		docs = n
	}
	dir := os.Getenv("HARVEST_BENCH_DIR") // kept, if there is one
	if dir == "" {
		dir = b.TempDir()
	}
	g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	if g.store.Count() == 0 {
		plan := crawl.Plan{Roots: []crawl.Root{{URL: "http://start.test/", Depth: -1, Hosts: docs/100 + 2}}, Agent: "bench", Limits: crawl.Limits{Pages: 64}}
		var c crawl.Counts
		if err := g.db.Visit(b.Context(), plan, bigWeb{docs / 100}, small{g}, &c); err != nil {
			b.Fatal(err)
		}
		b.Logf("%d fetched, %d excluded, %d failed", c.Fetched.Load(), c.Excluded.Load(), c.Failed.Load())
	}
	name := fmt.Sprintf("docs=%d", g.store.Count()+g.hidden())
	for _, text := range []string{"", "select shortest=10\nselect inlinks=5\nselect limit=100000", "select limit=100000 order=inlinks",
		"select shortest=10 allow=html\nselect out allow=/[0-9]*7.html", "select cover=1000 radius=1"} {
		c, err := parseConfig("root url=http://start.test/\n" + text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/choose/"+strings.ReplaceAll(text, "\n", ";"), func(b *testing.B) {
			for b.Loop() {
				h, err := g.choose(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(h.count[taken]), "taken")
				b.ReportMetric(float64(h.count[copied]), "copies")
			}
		})
	}
	for what, write := range map[string]rowWriter{"documents": g.writeDocuments, "links": g.writeLinks, "top25": g.writeTop25, "duplicates": g.writeDuplicates} {
		b.Run(name+"/table/"+what, func(b *testing.B) {
			for b.Loop() {
				if err := write(b.Context(), bufio.NewWriter(io.Discard)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, text := range []string{"select out allow=/5[0-9].html", "select out allow=/[56][0-9].html", ""} { // a tenth each
		b.Run(name+"/carry/"+text, func(b *testing.B) {
			if err := g.setConfig(b.Context(), "root url=http://start.test/\nduplicates=keep\n"+text+"\n"); err != nil {
				b.Fatal(err)
			}
			was := g.store.Count()
			for b.Loop() {
				if err := g.reselect(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(g.store.Count()-was), "moved")
		})
	}
}
