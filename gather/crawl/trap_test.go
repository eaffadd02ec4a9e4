package crawl

import (
	"crypto/md5"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/gather/dup"
)

// A walk visits a site, near pages first, as a visit does: what a Trap refuses
// is not queued, nor fetched when it was queued before. It ends at max requests.
type walk struct {
	trap    *Trap
	fetched []string
	refused map[string]string
	closed  []string
}

func walkSite(root string, max int, page func(u string) string) *walk {
	w := &walk{trap: NewTrap(), refused: make(map[string]string)}
	depth := map[string]int{root: 0}
	for queue := []string{root}; len(queue) > 0 && len(w.fetched) < max; queue = queue[1:] {
		u := queue[0]
		if why := w.trap.Refuses(u); why != "" {
			w.refused[u] = why
			continue
		}
		text := []byte(page(u))
		w.fetched = append(w.fetched, u)
		_, says := dup.Sign(text, true)
		if why := w.trap.Seen(u, depth[u], &says); why != "" {
			w.closed = append(w.closed, why)
		}
		h := findRefs(text, "harvest", new(Directives))
		for _, l := range resolveAll(h, u) {
			if _, met := depth[l]; met {
				continue
			}
			if depth[l] = depth[u] + 1; w.trap.Refuses(l) != "" {
				w.refused[l] = w.trap.Refuses(l)
				continue
			}
			queue = append(queue, l)
		}
	}
	return w
}

// lorem is a text of n words that is the same for one seed.
func lorem(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%c%c%c ", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26))
	}
	return b.String()
}

const menu = `<title>Events</title><p>Welcome to the calendar of our town, where you find all that is going on. Back to the start page, or write to us.</p>`

// traps are sites without an end. Each returns the page of a URL.
var traps = map[string]func(path, query string) string{
	"a tree of days and sessions": func(p, _ string) string { // that of ../shared/rigs/gather/site.sh
		day := strings.Trim(p, "/trap")
		return `<title>Day ` + day + `</title><a href="/trap/` + day + `1/">next</a> <a href="/trap/` + day + `2/">later</a> <a href="/trap/` +
			day + `/?sid=` + fmt.Sprintf("%x", md5.Sum([]byte(p+strconv.Itoa(rand.Int())))) + `">here</a>`
	},
	"a calendar in the query": func(_, q string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(q, "month="))
		return menu + `No events in month ` + strconv.Itoa(n) + `<a href="/cal?month=` + strconv.Itoa(n+1) + `">next</a><a href="/cal?month=` + strconv.Itoa(n-1) + `">previous</a>`
	},
	"a calendar in the path": func(p, _ string) string {
		t, err := time.Parse("/cal/2006/01/02/", p)
		if err != nil {
			t = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
		}
		link := func(d int) string { return `<a href="` + t.AddDate(0, 0, d).Format("/cal/2006/01/02/") + `">x</a>` }
		return menu + "Nothing on " + t.Format("2 of the month, 2006") + link(1) + link(-1) + link(7) + link(31)
	},
	"a calendar of named days": func(p, _ string) string {
		t, err := time.Parse("/calendar/2006-01-02", p)
		if err != nil {
			t = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
		}
		link := func(d int) string { return `<a href="` + t.AddDate(0, 0, d).Format("/calendar/2006-01-02") + `">x</a>` }
		return t.Format("<title>Monday, 2 January 2006</title>02Jan2006 2%20January%202006 ") + "No entries for this day. Choose another day of the calendar." + link(1) + link(-1) + link(31)
	},
	"relative links that grow": func(p, _ string) string {
		return menu + `<a href="help/index.html">help</a><a href="about/">about</a> ` + lorem(uint64(len(p)), 100)
	},
	"a path that echoes": func(p, _ string) string {
		return menu + p + `<a href="` + p + `/` + fmt.Sprint(rand.Int()) + `">more</a>`
	},
	"sessions in the path": func(string, string) string {
		s := fmt.Sprintf("%x", md5.Sum([]byte(strconv.Itoa(rand.Int()))))
		return menu + `<a href="/s/` + s + `/home.html">home</a><a href="/s/` + s + `/list.html">list</a>`
	},
	"words drawn by lot": func(p, _ string) string {
		return menu + `<a href="/poem/` + strings.ReplaceAll(lorem(rand.Uint64(), 2), " ", "") + `">one more</a>`
	},
	"a query that grows": func(_, q string) string {
		return menu + `<a href="/f?` + q + `&amp;sort=a">a</a><a href="/f?` + q + `&amp;sort=b">b</a>`
	},
	"a filter of many parts": func(_, q string) string {
		var b strings.Builder
		for i := range 30 {
			fmt.Fprintf(&b, `<a href="/f?%s&amp;k%d=%d">x</a>`, q, i, rand.IntN(9))
		}
		return menu + b.String()
	},
}

func TestTraps(t *testing.T) {
	for name, page := range traps {
		w := walkSite("http://site/trap/1/", 5000, func(u string) string {
			p, q, _ := strings.Cut(FilterPath(u), "?")
			return page(p, q)
		})
		t.Logf("%s: %d requests, closed %q", name, len(w.fetched), w.closed)
		if len(w.fetched) > 500 {
			t.Errorf("%s: got %d requests, want at most 500; the last %q", name, len(w.fetched), w.fetched[len(w.fetched)-3:])
		}
		if len(w.refused) == 0 {
			t.Errorf("%s: nothing is refused", name)
		}
		for _, why := range w.refused {
			if !strings.HasPrefix(why, "a trap: ") || len(why) > 2200 {
				t.Errorf("%s: got reason %q", name, why)
			}
		}
	}
}

// sites have many pages that look alike, and an end.
var sites = map[string]struct {
	pages int
	page  func(path, query string) string
}{
	"an archive by number": {3000, func(p, _ string) string {
		n, _ := strconv.Atoi(strings.TrimSuffix(path.Base(p), ".html"))
		if n >= 3000 {
			return menu
		}
		return menu + lorem(uint64(n), 60) + fmt.Sprintf(`<a href="/msg/%05d.html">next</a>`, n+1)
	}},
	"a list in many parts": {500, func(_, q string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(q, "page="))
		return menu + lorem(uint64(n), 40) + fmt.Sprintf(`<a href="/list?page=%d">next</a>`, min(n+1, 499))
	}},
	"years of events": {1096, func(p, _ string) string {
		t, err := time.Parse("/cal/2006/01/02/", p)
		if err != nil {
			t = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		if t.Year() == 2024 {
			return menu
		}
		return menu + "On " + t.Format("2 Jan 2006") + lorem(uint64(t.Unix()), 30) + t.AddDate(0, 0, 1).Format(`<a href="/cal/2006/01/02/">x</a>`)
	}},
	"the same words for each of many names": {1501, func(p, _ string) string {
		var b strings.Builder
		if p == "/trap/1/" {
			for i := range 1500 {
				fmt.Fprintf(&b, `<a href="/use/%s.html">x</a>`, strings.TrimSpace(lorem(uint64(i), 2)))
			}
		}
		return menu + "No usage of " + path.Base(p) + b.String()
	}},
	"chapter and verse 1/1/1": {125, func(p, _ string) string {
		var b strings.Builder
		for i := range 125 {
			fmt.Fprintf(&b, `<a href="/1/%d/%d/%d/">x</a>`, i/25+1, i/5%5+1, i%5+1)
		}
		return menu + lorem(uint64(len(p)), 10) + b.String()
	}},
}

func TestNoTraps(t *testing.T) {
	for name, s := range sites {
		w := walkSite("http://site/trap/1/", 5000, func(u string) string {
			p, q, _ := strings.Cut(FilterPath(u), "?")
			return s.page(p, q)
		})
		if len(w.refused)+len(w.closed) > 0 || len(w.fetched) < s.pages {
			t.Errorf("%s: got %d pages, refused %d, closed %q", name, len(w.fetched), len(w.refused), w.closed)
			for u, why := range w.refused {
				t.Logf("%s: %s", u, why)
				break
			}
		}
	}
}

// TestTrapReal walks real documentation, of which nothing may be refused.
func TestTrapReal(t *testing.T) {
	dirs := []string{"/usr/share/doc/python3.11/html", "/usr/share/doc/openjdk-17-jre-headless/api"}
	most := 100_000
	if os.Getenv("HARVEST_TRAP_REAL") == "" {
		t.Log("200 pages of the Python manual only; HARVEST_TRAP_REAL=1 walks all of it and that of Java, which takes 20 s")
		dirs, most = dirs[:1], 200
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Logf("%s is not here", dir)
			continue
		}
		site := os.DirFS(dir)
		w := walkSite("http://site/index.html", most, func(u string) string {
			name, _, _ := strings.Cut(strings.TrimPrefix(u, "http://site/"), "?")
			if name == "" || strings.HasSuffix(name, "/") {
				name += "index.html"
			}
			b, err := fs.ReadFile(site, strings.ReplaceAll(name, "%20", " "))
			if err != nil || !strings.HasSuffix(name, ".html") {
				return ""
			}
			return string(b)
		})
		t.Logf("%s: %d requests", dir, len(w.fetched))
		if len(w.refused)+len(w.closed) > 0 || len(w.fetched) < 200 {
			t.Errorf("%s: refused %d, closed %q", dir, len(w.refused), w.closed)
		}
	}
}

// TestTrapKept: what was closed is closed for a Trap that is made of it.
func TestTrapKept(t *testing.T) {
	w := walkSite("http://site/trap/1/", 5000, func(u string) string {
		p, q, _ := strings.Cut(FilterPath(u), "?")
		return traps["a tree of days and sessions"](p, q)
	})
	again := NewTrap(w.trap.Closed()...)
	for u := range w.refused {
		if again.Refuses(u) == "" {
			t.Errorf("%s: not refused again", u)
		}
	}
	if why := again.Refuses("http://site/other/1/"); why != "" {
		t.Errorf("other: got %q, want nothing", why)
	}
	if got := NewTrap("", "x", "zz", "q").Closed(); len(got) != 0 {
		t.Errorf("names that are none: got %q", got)
	}
}

// TestTrapBounded: memory stays bounded whatever the URLs are.
func TestTrapBounded(t *testing.T) {
	tr := NewTrap()
	says := dup.Signature{1}
	for i := range 5000 {
		u := fmt.Sprintf("http://site/%s/%d?%s=1", strings.TrimSpace(lorem(uint64(i), 1)), i, lorem(uint64(i), 3))
		tr.Seen(u, i, &says)
	}
	if len(tr.shapes) != maxShapes || len(tr.closed) > maxClosed {
		t.Errorf("got %d shapes, %d closed", len(tr.shapes), len(tr.closed))
	}
}

func TestRefuse(t *testing.T) {
	ahead := time.Now().Year() + 10
	for u, want := range map[string]string{
		"http://s/":                                             "",
		"http://s/a/b/a/b/c":                                    "",
		"http://s/a/b/a/b/a/b/":                                 "a trap: a/b again and again",
		"http://s/x/x/x":                                        "a trap: x again and again",
		"http://s/en/a/en/b/en/c/en/d":                          "a trap: the segment en is there 4 times",
		"http://s/2024/1/1/1":                                   "",
		"http://s/java/java.base/java/util":                     "",
		"http://s/?a=1&a=2&a=3&a=4&a=5":                         "a trap: a query with a 5 times",
		"http://s/?a[]=1&a[]=2&a[]=3&a[]=4&a[]=5":               "",
		fmt.Sprintf("http://s/cal/%d/01/", ahead):               fmt.Sprintf("a trap: a calendar of the year %d", ahead),
		fmt.Sprintf("http://s/cal?year=%d&month=2", ahead):      fmt.Sprintf("a trap: a calendar of the year %d", ahead),
		fmt.Sprintf("http://s/cal?date=%d-02-01", ahead):        fmt.Sprintf("a trap: a calendar of the year %d", ahead),
		fmt.Sprintf("http://s/bug/%d", ahead):                   "",
		fmt.Sprintf("http://s/papers?id=%d", ahead):             "",
		"http://s/cal/1925/01/":                                 "",
		"http://s/" + strings.Repeat("a/b/c/d/e/f/g/", 2):       "",
		"http://s" + strings.Repeat("/a1", 50):                  "a trap: a path of 50 segments",
		"http://s/?" + strings.Repeat("a=1&", 3) + manyKeys(30): "a trap: a query of more than 24 parts",
		"http://s///a":                                          "",
	} {
		if got := refuse(u); got != want {
			t.Errorf("%s: got %q, want %q", u, got, want)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d=1&", i)
	}
	return b.String()
}

func FuzzTrap(f *testing.F) {
	f.Add("http://site/a/1/b/2?c=3&d=4")
	f.Fuzz(func(t *testing.T, ref string) {
		b := newBase("http://site/d/")
		u, err := b.resolve(ref)
		if err != nil {
			return
		}
		tr := NewTrap()
		says := dup.Signature{1}
		for range trapRows[nameShape].row + 1 {
			tr.Seen(u, 1, &says)
		}
		if tr.Refuses(u) == "" {
			t.Errorf("%s: a thousand pages that say the same are no trap", u)
		}
	})
}

func BenchmarkTrap(b *testing.B) {
	t := NewTrap()
	says := dup.Signature{1}
	for i := range b.N {
		u := "http://site/java.base/java/util/class-use/Thing" + strconv.Itoa(i&1023) + ".html"
		says[i&63]++
		t.Refuses(u)
		t.Seen(u, 3, &says)
	}
}
