package essence

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the functions by hand do, as expressions say it.
var (
	restOracle    = regexp.MustCompile("`([^`<\n]+?)\\s*(?:<[^>\n]*>)?`_?_?|\\*\\*([^*\n]+)\\*\\*|\\*([^*\n]+)\\*|:[a-z:]+:`([^`\n]+)`")
	podOracle     = regexp.MustCompile(`[BCIFSX]<([^<>]*)>|L<(?:([^<>|]*)\|)?([^<>]*)>|E<(lt|gt|amp|sol|verbar)>|Z<>`)
	orgLinkOracle = regexp.MustCompile(`\[\[([^\]\n]+)\](?:\[([^\]\n]+)\])?\]`)
	orgHeadOracle = regexp.MustCompile(`^\*+[ \t]+(?:TODO[ \t]+|DONE[ \t]+)?(?:\[#\w\][ \t]+)?(.*?)(?:[ \t]+(:[\w@#%:]+:))?$`)
	linkOracle    = regexp.MustCompile(`(?:https?|ftp|gopher)://[^\s<>"'` + "`" + `()\[\]{}|\\^]+`)
	pageOracle    = regexp.MustCompile(`(?m)^(?:\S.*\[Page \d+\]|\f|RFC \d+ {3,}.*|Internet-Draft {3,}.*|draft-\S+ {3,}.*\d{4})[ \t]*\r?$`)
)

func podByOracle(l string) string {
	return podOracle.ReplaceAllStringFunc(l, func(s string) string {
		m := podOracle.FindStringSubmatch(s)
		switch {
		case m[4] != "":
			return podDelim[m[4]]
		case m[2] != "":
			return m[2]
		}
		return m[1] + m[3]
	})
}

// sameAsOracles compares a text, and each of its lines.
func sameAsOracles(t *testing.T, text []byte) {
	t.Helper()
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if got, want := restPlain(line), restOracle.ReplaceAllString(string(line), "$1$2$3$4"); got != want {
			t.Fatalf("restPlain(%q): got %q, want %q", line, got, want)
		}
		if got, want := podInner(string(line)), podByOracle(string(line)); got != want {
			t.Fatalf("podInner(%q): got %q, want %q", line, got, want)
		}
		sameOrg(t, strings.TrimRight(string(line), " \t\r\n"))
	}
	if got, want := withoutPages(text), pageOracle.ReplaceAll(text, nil); !bytes.Equal(got, want) {
		t.Fatalf("withoutPages(%q): got %q, want %q", text, got, want)
	}
	var want []string
	for _, m := range linkOracle.FindAllString(string(text), 500) {
		want = append(want, strings.TrimRight(m, ".,;:'"))
	}
	if got := bareLinks(text, 500); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("bareLinks(%q): got %q, want %q", text, got, want)
	}
}

func sameOrg(t *testing.T, l string) {
	t.Helper()
	got, links := orgPlain(l)
	if want := orgLinkOracle.ReplaceAllString(l, "$2"); got != want {
		t.Fatalf("orgPlain(%q): got %q, want %q", l, got, want)
	}
	for i, m := range orgLinkOracle.FindAllStringSubmatch(l, 50) {
		if i >= len(links) || links[i] != m[1] {
			t.Fatalf("orgPlain(%q): got links %q, want %q as link %d", l, links, m[1], i)
		}
	}
	title, tags, ok := orgHeading(l)
	m := orgHeadOracle.FindStringSubmatch(l)
	if ok != (m != nil) || ok && (title != m[1] || tags != m[2]) {
		t.Fatalf("orgHeading(%q): got %q, %q, %v, want %q", l, title, tags, ok, m)
	}
}

// marked are lines with marks, whole and broken.
var marked = []string{
	"see `Text <http://a.org/x>`_, `plain`__ and ``code`` or `a`b`", "**strong *emphasis* **x* ***y*** *", "` `x` `\t<y>` `a<b>c` `a<",
	":ref:`x` ::`y` :a:b:`c` :a`z` :c:func:``", "B<bold C<code> I<x>> L<a|b> L<|c> L<d> L<e|f|g> E<lt>E<nope>Z<>Z<x> <B<>", "B<<< x >>> Lo<x>XX<y>",
	"a [[x][y]] [[z]] [[[a]] [[]] [[a][]] [[b][c] [[[[d] [[e]", "* TODO [#A] Dig  :a:b@:", "** DONE", "*  :t:", "* a :b: c:", "***", "*x*", "* TODO  :a:", "* [#A]", "* [#\x80] 0", "* a :é:",
	"http://a.org/. xhttps://b.org/(c) ://x http://ftp://z gopher://", "\f\nRFC 1234    Title   1999\nSmith    [Page 3]  \r\n\fx\nRx\ndraft-a-b    x 1999\n [Page 4]\nInternet-Draft    y",
}

func TestInlineMarks(t *testing.T) {
	for _, l := range marked {
		sameAsOracles(t, []byte(l))
	}
	names, _ := filepath.Glob("testdata/in/*")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sameAsOracles(t, text[:min(len(text), 64<<10)])
	}
}

func FuzzInlineMarks(f *testing.F) {
	for _, l := range marked {
		f.Add([]byte(l))
	}
	f.Fuzz(sameAsOracles)
}
