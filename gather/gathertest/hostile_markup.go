package gathertest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf16"
)

// markupTricks are pages that are hard to read.
func markupTricks() []Trick {
	text := func(typ, body string) func(*Hostile, http.ResponseWriter, *http.Request) {
		return func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{typ}
			io.WriteString(w, body)
		}
	}
	repeat := func(typ, head, piece string, n int) func(*Hostile, http.ResponseWriter, *http.Request) {
		return func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typ)
			io.WriteString(w, head)
			some := strings.Repeat(piece, 1000)
			for range n / 1000 {
				if _, err := io.WriteString(w, some); err != nil {
					return
				}
			}
		}
	}
	const latin = "<title>Caf\xe9</title><p>D\xe9j\xe0 vu, na\xefve \xfcber Stra\xdfe."
	return []Trick{
		{"charset-lie", "Latin-1 that says it is UTF-8", false, false, text("text/html; charset=utf-8", latin)},
		{"charset-none", "Latin-1 that says nothing", false, false, text("text/html", latin)},
		{"charset-unknown", "a charset that there is not", false, false, text("text/html; charset=x-frob", latin)},
		{"charset-utf16", "UTF-16 that says it is Latin-1", false, false, text("text/html; charset=iso-8859-1", wide("<title>Wide</title><p>Every letter has two bytes."))},
		{"charset-utf7", "script in UTF-7", false, false, text("text/html; charset=utf-7", "<title>+ADw-script+AD4-</title>")},
		{"type-long", "a Content-Type of 100,000 bytes", false, false, text("text/html; "+strings.Repeat("a=b; ", 20000), "<title>Long type</title>")},
		{"tags", "a million tags, none of them closed", false, false, repeat("text/html", "<title>Deep</title>", "<div><b>", 500_000)},
		{"links", "a million links, to a hundred pages", false, false, manyLinks},
		{"hosts", "links to ten thousand hosts", false, false, manyHosts},
		{"attribute", "a tag of 50 MB", false, false, repeat("text/html", "<title>Wide tag</title><a href='", "0123456789", 5_000_000)},
		{"entities", "a million entities", false, false, repeat("text/html", "<title>", "&amp;&#x1F600;&CounterClockwiseContourIntegral;", 1_000_000)},
		{"comment", "a comment that does not end", false, false, repeat("text/html", "<title>Comment</title><!-- ", "- - -> ", 1_000_000)},
		{"xml", "entities that multiply", false, false, text("application/xml", billion())},
		{"longurl", "links of 100,000 bytes", false, false, longLinks},
		{"nul", "a title of zeros", false, false, text("text/html", "<title>"+strings.Repeat("\x00", 1<<16)+"</title>")},
		{"controls", "a title that writes to the terminal", false, false, text("text/html", "<title>\x1b]0;owned\x07\x1b[2J\r\nobjects=0\tstate=idle</title>")},
		{"names", "links that are not names of files", false, false, oddLinks},
	}
}

func wide(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

func manyLinks(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/links/" {
		http.NotFound(w, r)
		return
	}
	html(w, "Links", "Links.")
	for i := range 1_000_000 {
		if _, err := fmt.Fprintf(w, "<a href=%d#%d>x</a>", i%100, i); err != nil {
			return
		}
	}
}

func manyHosts(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	html(w, "Hosts", "Hosts.")
	for i := range 10_000 {
		fmt.Fprintf(w, "<a href=http://h%d.invalid/>x</a>", i)
	}
}

// billion would be 10^9 times lol.
func billion() string {
	var b strings.Builder
	b.WriteString("<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a0 'lol'>")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "<!ENTITY a%d '%s'>", i, strings.Repeat(fmt.Sprintf("&a%d;", i-1), 10))
	}
	b.WriteString("]><r>&a9;</r>")
	return b.String()
}

func longLinks(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	html(w, "Long links", "Links.")
	for i := range 20 {
		fmt.Fprintf(w, "<a href='/longurl/%d%s'>x</a>", i, strings.Repeat("0123456789", 10_000))
	}
}

func oddLinks(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	html(w, "Names "+r.URL.Path, "Pages with names that files should not have.")
	if r.URL.Path == "/names/" {
		for _, n := range []string{"%2e%2e/%2e%2e/x", "..%2f..%2fetc%2fpasswd", "%00", "a%0ab", "%ff%fe", "con", "@", "@.soif", ".", "..", "*", "?a=/../b", strings.Repeat("n", 300)} {
			fmt.Fprintf(w, "<a href='/names/%s'>x</a>", n)
		}
	}
}
