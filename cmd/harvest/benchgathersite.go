package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The manuals that the site is made of, as Debian has them.
var siteManuals = map[string]string{
	"java":   "/usr/share/doc/openjdk-17-jre-headless/api",
	"python": "/usr/share/doc/python3.11/html",
}

// The paths of the site that are no files: a chain of redirects, and what is
// reached from traps.html alone.
const sitePaths = `
	location = /hop1 { return 301 /hop2; }
	location = /hop2 { return 301 /python/index.html; }
	location = /loop { return 302 /loop; }
	location = /busy { add_header Retry-After 2 always; return 429; }
	location = /slow { try_files /index.html =404; limit_rate 50; }
	location /soft404/ { default_type text/html; return 200 '<title>Not found</title>The page was not found'; }
	location ~ ^/trap/(?<day>[0-9]+)/ { default_type text/html;
		return 200 '<title>Day $day</title><a href="/trap/${day}1/">next</a> <a href="/trap/${day}2/">later</a> <a href="/trap/$day/?sid=$request_id">here</a>'; }
	absolute_redirect off;`

const siteHome = `<!doctype html><html><head><title>Test site</title>
<meta name="description" content="Two real manuals"></head><body>
<h1>Manuals</h1><ul><li><a href="/java/index.html">Java</a>
<li><a href="/java/allclasses-index.html">Java, all classes</a>
<li><a href="/python/index.html">Python</a>
<li><a href="/hop1">moved</a></ul></body></html>
`

const siteTraps = `<!doctype html><title>Traps</title><a href="/trap/1/">calendar</a>
<a href="/loop">loop</a> <a href="/busy">busy</a> <a href="/slow">slow</a>
<a href="/soft404/x">soft</a>
`

// emptySite is the site without its manuals.
func emptySite(dir string) (*nginx, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	www := filepath.Join(dir, "www")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(www, 0o755)); err != nil {
		return nil, err
	}
	err = errors.Join(os.WriteFile(filepath.Join(www, "index.html"), []byte(siteHome), 0o644),
		os.WriteFile(filepath.Join(www, "traps.html"), []byte(siteTraps), 0o644))
	return &nginx{dir: dir, addr: "127.0.0.1:" + port, conf: sitePaths}, err
}

// newSite lays out the site in dir: the manuals behind links, robots.txt with an
// exception to its rule, and site maps of every page.
func newSite(dir string) (*nginx, error) {
	n, err := emptySite(dir)
	if err != nil {
		return nil, err
	}
	www := filepath.Join(dir, "www")
	var pages []string
	for name, path := range siteManuals {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
		if err := os.Symlink(path, filepath.Join(www, name)); err != nil {
			return nil, err
		}
		err := filepath.WalkDir(path, func(p string, e iofs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(p, ".html") {
				pages = append(pages, "/"+name+strings.TrimPrefix(p, path))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(pages)
	home := "http://" + n.addr
	files := map[string]string{
		"robots.txt": "User-agent: *\nDisallow: /python/whatsnew/\nAllow: /python/whatsnew/3.11.html\nSitemap: " + home + "/sitemap.xml\n",
	}
	siteMaps(files, home, pages)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(www, name), []byte(text), 0o644))
	}
	return n, err
}

// siteMaps adds an index of site maps and two of them.
func siteMaps(files map[string]string, home string, pages []string) {
	const xmlns = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`
	head := `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	var index strings.Builder
	half := (len(pages) + 1) / 2
	part := 0
	for some := range slices.Chunk(pages, half) {
		part++
		var b strings.Builder
		for _, p := range some {
			fmt.Fprintf(&b, "<url><loc>%s%s</loc><lastmod>2024-10-15</lastmod></url>\n", home, p)
		}
		name := fmt.Sprintf("sitemap%d.xml", part)
		files[name] = head + "<urlset " + xmlns + ">\n" + b.String() + "</urlset>\n"
		fmt.Fprintf(&index, "<sitemap><loc>%s/%s</loc></sitemap>\n", home, name)
	}
	files["sitemap.xml"] = head + "<sitemapindex " + xmlns + ">\n" + index.String() + "</sitemapindex>\n"
}

// site gathers the site without a delay, then again unchanged, then has peers
// do the first of it.
func (b *gatherBench) site(ctx context.Context, args []string, std std) (err error) {
	if len(args) > 0 {
		return usagef("site takes no arguments")
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	n, err := newSite(filepath.Join(work, "site"))
	if err != nil {
		return fmt.Errorf("the site: %w", err)
	}
	n.gzip = b.gzip
	dir := filepath.Join(work, "gatherer")
	if err := b.begin(dir, "root url=http://"+n.addr+"/ delay=0s urls=unlimited\n"); err != nil {
		return err
	}
	rows := [][]string{siteHead()}
	for _, name := range []string{"first", "again"} {
		r, log, err := b.visitSite(ctx, n, name, dir, std)
		if err != nil {
			return err
		}
		r.counts(std.out)
		rows = append(rows, append(r.row(max(log.pages, log.unchanged)), log.row()...))
	}
	fmt.Fprintf(std.out, "on disk: %.1f MB\n", mustSize(dir))
	peers, err := b.sitePeers(ctx, n, work, std)
	fmt.Fprintln(std.out)
	table(std.out, append(rows, peers...))
	return err
}

func siteHead() []string {
	return gatherHead("pages", "requests", "304", "again", "forbidden", "connections", "MB", "server s")
}

// row shows what the server saw.
func (l *accessLog) row() []string {
	return []string{strconv.Itoa(l.requests), strconv.Itoa(l.unchanged), strconv.Itoa(l.again), strconv.Itoa(l.forbidden),
		strconv.Itoa(l.conns), fmt.Sprintf("%.0f", float64(l.bytes)/1e6), fmt.Sprintf("%.1f", l.cpu.Seconds())}
}

// visitSite makes a visit while the server runs.
func (b *gatherBench) visitSite(ctx context.Context, n *nginx, name, dir string, std std) (r gathering, log accessLog, err error) {
	if err := n.start(ctx, std); err != nil {
		return r, log, err
	}
	r, err = b.child(ctx, name, dir, std)
	log, stopped := n.stop()
	return r, log, errors.Join(err, stopped)
}

// mustSize is what a folder holds, in MB, 0 if that cannot be told.
func mustSize(dir string) float64 {
	n, err := folderSize(dir)
	if err != nil {
		return 0
	}
	return float64(n) / 1e6
}
