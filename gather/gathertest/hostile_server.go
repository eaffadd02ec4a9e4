package gathertest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// serverTricks are played by a whole server, before any page or beside all.
func serverTricks() []Trick {
	robots := func(f func(h *Hostile, w http.ResponseWriter, r *http.Request)) func(*Hostile, http.ResponseWriter, *http.Request) {
		return func(h *Hostile, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				f(h, w, r)
				return
			}
			html(w, "Home", "The server whose robots.txt is odd.")
			fmt.Fprint(w, "<a href=/other.html>other</a>")
		}
	}
	return []Trick{
		{"robots-big", "a robots.txt of 50 MB", true, false, robots(bigRobots)},
		{"robots-drip", "a robots.txt at ten bytes a second", true, false, robots(func(h *Hostile, w http.ResponseWriter, r *http.Request) {
			for h.pause(r, 1e8) {
				if _, err := io.WriteString(w, "#"); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		})},
		{"robots-loop", "a robots.txt that redirects to itself", true, false, robots(func(_ *Hostile, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/robots.txt", http.StatusFound)
		})},
		{"robots-page", "a robots.txt that is a page", true, false, robots(func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
			html(w, "Not found", "Disallow: everything, allow: nothing")
		})},
		{"robots-error", "a robots.txt that cannot be had", true, false, robots(func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		})},
		{"robots-headers", "a robots.txt with a header without end", true, false, robots(func(h *Hostile, w http.ResponseWriter, _ *http.Request) {
			h.wire(w, func(w *bufio.Writer, gone func() bool) {
				io.WriteString(w, "HTTP/1.1 200 OK\r\n")
				for i := 0; !gone(); i++ {
					fmt.Fprintf(w, "X-%d: flood\r\n", i)
				}
			})
		})},
		{"robots-delay", "a Crawl-delay of a year", true, false, robots(func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "User-agent: *\nCrawl-delay: 31536000\n")
		})},
		{"sitemaps", "site maps of site maps, without end", true, true, sitemaps},
		{"sitemap-bomb", "a site map that is a bomb", true, false, sitemapBomb},
		{"everything", "every path is a page that links to a new one", true, true, func(_ *Hostile, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			html(w, "Product "+r.URL.Path, "A product among many, with words of its own: "+strings.ReplaceAll(r.URL.Path, "/", " "))
			n := len(r.URL.Path)
			fmt.Fprintf(w, "<a href=/product/%d/%x>next</a> <a href=/product/%x/%d>more</a>", n*31, n*17, n*13, n*11)
			fmt.Fprintf(w, "<a href=%s/of>of</a>", strings.TrimSuffix(r.URL.Path, "/"))
		}},
	}
}

// bigRobots forbids a page early, and has 50 MB of rules after it.
func bigRobots(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "User-agent: *\nDisallow: /other.html\n")
	line := strings.Repeat("Disallow: /*a*b*c*d*e*f$\nAllow: /x\n", 1000)
	for n := 0; n < 50<<20; n += len(line) {
		if _, err := io.WriteString(w, line); err != nil {
			return
		}
	}
}

// sitemaps name two more, and pages that are not there, wherever one looks.
func sitemaps(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	origin := "http://" + r.Host
	switch {
	case r.URL.Path == "/robots.txt":
		for i := range 10_000 {
			fmt.Fprintf(w, "Sitemap: %s/map%d.xml\n", origin, i)
		}
	case strings.HasSuffix(r.URL.Path, ".xml"):
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprint(w, "<sitemapindex>")
		p := strings.TrimSuffix(r.URL.Path, ".xml")
		for i := range 100 {
			fmt.Fprintf(w, "<sitemap><loc>%s%s%d.xml</loc></sitemap>", origin, p, i)
		}
		fmt.Fprint(w, "</sitemapindex>")
	case r.URL.Path == "/":
		html(w, "Home", "A site with many maps.")
	default:
		http.NotFound(w, r)
	}
}

func sitemapBomb(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/robots.txt":
		fmt.Fprintf(w, "Sitemap: http://%s/sitemap.xml.gz\n", r.Host)
	case "/sitemap.xml.gz":
		w.Header().Set("Content-Type", "application/gzip")
		gzipBomb(w)
	case "/":
		html(w, "Home", "A site whose map is a bomb.")
	default:
		http.NotFound(w, r)
	}
}
