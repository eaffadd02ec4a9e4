package gathertest

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
)

// endlessTricks make up pages for as long as they are asked.
func endlessTricks() []Trick {
	return []Trick{
		{"endless", "two more pages behind every page", false, true, endlessPages},
		{"calendar", "a day before and a day after every day", false, true, calendar},
		{"deeper", "a folder that holds itself", false, true, deeper},
		{"session", "the same page under a new session each time", false, true, session},
		{"facets", "every choice of filters", false, true, facets},
		{"echo", "a page that says what it was asked", false, true, echo},
		{"hops", "a redirect to a redirect, without end", false, false, hops},
		{"soft404", "pages that are not there, and say so with 200", false, true, softMissing},
	}
}

func endlessPages(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	html(w, "Page", "A page like the others, of which there are many here.")
	fmt.Fprintf(w, "<a href=%s1>one</a> <a href=%s2>two</a>", r.URL.Path, r.URL.Path)
}

func calendar(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	day, err := time.Parse("2006-01-02", path.Base(r.URL.Path))
	if err != nil {
		day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	}
	html(w, day.Format("2 January 2006"), "No entries for this day. Choose another day from the calendar.")
	for _, d := range []int{-1, 1, 31} {
		next := day.AddDate(0, 0, d).Format("2006-01-02")
		fmt.Fprintf(w, "<a href=/calendar/%s>%s</a>\n", next, next)
	}
}

func deeper(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	html(w, "Folder", "A folder.")
	fmt.Fprint(w, "<a href=again/>again</a>")
}

func session(h *Hostile, w http.ResponseWriter, _ *http.Request) {
	html(w, "Shop", "The shop, which knows you.")
	fmt.Fprintf(w, "<a href=/session/?sid=%08x>go on</a> <a href=/session/cart?sid=%08x>cart</a>", h.Requests("session")*2654435761, h.Requests("session")*40503)
}

func facets(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	html(w, "Things", "Twelve things match what you chose.")
	for _, k := range []string{"size", "colour", "price", "page"} {
		q := r.URL.Query()
		q.Set(k, q.Get(k)+"1")
		fmt.Fprintf(w, "<a href='/facets/?%s'>%s</a>\n", q.Encode(), k)
	}
}

func echo(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	html(w, "Search", "You looked for "+strings.Repeat("x", len(r.URL.RawQuery)%7)+" and found nothing.")
	fmt.Fprintf(w, "<a href='/echo/?q=%x'>more</a>", len(r.URL.RawQuery)*7919)
	fmt.Fprintf(w, "<a href='/echo/more%d?back=%s'>like this</a>", len(r.URL.RawQuery), r.URL.EscapedPath())
}

func hops(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Location", r.URL.Path+"1")
	w.WriteHeader(http.StatusFound)
}

func softMissing(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	html(w, "Not found", "The page was not found. See the list of pages.")
	n := len(r.URL.Path)
	fmt.Fprintf(w, "<a href=/soft404/list/%d>list</a> <a href=/soft404/%d/index>index</a>", n*n, n+1)
}
