package essence

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"harvest/gather/soif"
)

// manLanguages are the folders of manual pages, and the languages in them.
var manLanguages = map[string]string{
	"cs": "cs", "da": "da", "de": "de", "el": "el", "es": "es", "fi": "fi", "fr": "fr", "hr": "hr", "hu": "hu", "id": "id", "it": "it", "ja": "ja",
	"ko": "ko", "nb": "nb", "nl": "nl", "pl": "pl", "pt": "pt", "pt_BR": "pt", "ro": "ro", "ru": "ru", "sl": "sl", "sr": "sr", "sv": "sv", "tr": "tr",
	"uk": "uk", "zh_CN": "zh", "zh_TW": "zh",
}

// manText is the text of a manual page.
func manText(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	page, err := io.ReadAll(io.LimitReader(z, 1<<20))
	if err != nil {
		return nil
	}
	var o soif.Object
	w := &worker{full: true, text: 1 << 20, tab: new(Tables)}
	w.lim.defaults()
	sumMan(w, &o, &content{name: "x.1", typ: "ManPage"}, decode(page, ""))
	full, _ := o.Get("Full-Text")
	return full
}

// TestLanguages tells the language of the manual pages that are installed, of
// 600 bytes of each and of all. Those of which a third of the lines and more are
// in the page's English version, not translated, are left out.
func TestLanguages(t *testing.T) {
	most := 30
	if n, err := strconv.Atoi(os.Getenv("HARVEST_LANGUAGES")); err == nil {
		most = n
	} else {
		t.Logf("%d pages of each language; HARVEST_LANGUAGES=N takes more", most)
	}
	var pages, short, long int
	var table []string
	for _, dir := range slices.Sorted(maps.Keys(manLanguages)) {
		files, _ := filepath.Glob("/usr/share/man/" + dir + "/man[1-8]/*.gz")
		n, s, l := 0, 0, 0
		wrong := map[string]int{}
		for _, f := range every(files, most) {
			text := manText(t, f)
			if !letters(text, 1500) || english(t, f, text) {
				continue
			}
			n++
			text = text[min(len(text)/3, 2000):]
			if spoken(cutText(text, 600)) == manLanguages[dir] {
				s++
			}
			if got := spoken(text); got == manLanguages[dir] {
				l++
			} else {
				wrong[got]++
			}
		}
		if n > 0 {
			table = append(table, fmt.Sprintf("%-5s %4d pages: %.3f of 600 bytes, %.3f of all; else %v", dir, n, float64(s)/float64(n), float64(l)/float64(n), wrong))
		}
		pages, short, long = pages+n, short+s, long+l
	}
	if pages < 300 {
		t.Skipf("%d manual pages in other languages; install manpages-de manpages-fr …", pages)
	}
	t.Logf("\n%s\nall   %4d pages: %.3f of 600 bytes, %.3f of all", strings.Join(table, "\n"), pages, float64(short)/float64(pages), float64(long)/float64(pages))
	if float64(short) < 0.87*float64(pages) || float64(long) < 0.92*float64(pages) {
		t.Errorf("got %d and %d of %d right, want 0.87 and 0.92", short, long, pages)
	}
}

// english reports whether a page has not been translated, for a third or more.
func english(t *testing.T, file string, text []byte) bool {
	dir, name := filepath.Split(file)
	original := filepath.Join("/usr/share/man", filepath.Base(dir), name)
	if _, err := os.Stat(original); err != nil {
		return false
	}
	lines := make(map[string]bool)
	for l := range strings.Lines(string(manText(t, original))) {
		lines[l] = true
	}
	all, same := 0, 0
	for l := range strings.Lines(string(text)) {
		if len(l) < 30 {
			continue
		}
		if all++; lines[l] {
			same++
		}
	}
	return 3*same >= all
}

// every takes at most n of names, from all over.
func every(names []string, n int) (out []string) {
	for i, name := range names {
		if i%(len(names)/n+1) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// spoken is the language that a text is told to be in.
func spoken(text []byte) string {
	words := newTerms()
	words.count(text[:min(len(text), maxCounted)], 1)
	return languageOf(words.language(), text, "")
}
