package crawl

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// hrefs are what an HTML page refers to.
type hrefs struct {
	refs     []string // as they stand, each once, in order, fragments cut
	base     string   // what <base href> says, or ""
	noindex  bool     // <meta name=robots> asks that the page be left out
	nofollow bool     // ... or that its links be
}

// maxRefs bounds the references taken from one page.
const maxRefs = 20_000

// findLinks reads the references of an HTML page off its tokens. It needs no
// tree: a parser's would cost twice as much and give up on deep nesting.
func findLinks(page []byte) hrefs {
	var h hrefs
	seen := make(map[string]struct{}, 64)
	z := html.NewTokenizer(bytes.NewReader(page))
	z.SetMaxBuf(len(page) + 1)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return h
		case html.StartTagToken, html.SelfClosingTagToken:
			h.tag(z, seen)
		}
	}
}

func (h *hrefs) tag(z *html.Tokenizer, seen map[string]struct{}) {
	if !mayRefer(z.Raw()) {
		return // most tags: asking for a name costs an allocation
	}
	name, more := z.TagName()
	want := "href"
	switch string(name) {
	case "a", "area":
	case "frame", "iframe":
		want = "src"
	case "base", "meta":
		h.special(z, string(name), more)
		return
	default:
		return
	}
	var ref []byte
	for more {
		var k, v []byte
		k, v, more = z.TagAttr()
		switch string(k) {
		case want:
			if ref == nil {
				ref = v
			}
		case "rel":
			if bytes.Contains(bytes.ToLower(v), []byte("nofollow")) {
				return
			}
		}
	}
	if i := bytes.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	if len(ref) == 0 || len(ref) > 2*maxURL || len(h.refs) >= maxRefs {
		return
	}
	if _, dup := seen[string(ref)]; !dup {
		s := string(ref)
		seen[s] = struct{}{}
		h.refs = append(h.refs, s)
	}
}

// mayRefer reports whether a tag's first letter is that of one with a reference.
func mayRefer(raw []byte) bool {
	if len(raw) < 2 {
		return false
	}
	switch raw[1] | 0x20 {
	case 'a', 'f', 'i', 'b', 'm':
		return true
	}
	return false
}

func (h *hrefs) special(z *html.Tokenizer, name string, more bool) {
	var key, content string
	for more {
		var k, v []byte
		k, v, more = z.TagAttr()
		switch string(k) {
		case "href":
			if name == "base" && h.base == "" {
				h.base = string(v)
			}
		case "name":
			key = strings.ToLower(string(v))
		case "content":
			content = string(v)
		}
	}
	if name == "meta" && (key == "robots" || key == "harvest") {
		noindex, nofollow := robotsWords(content)
		h.noindex, h.nofollow = h.noindex || noindex, h.nofollow || nofollow
	}
}

// robotsWords reads the words of a robots META tag or an X-Robots-Tag header.
func robotsWords(s string) (noindex, nofollow bool) {
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return r == ',' || r == ' ' }) {
		noindex = noindex || w == "noindex" || w == "none"
		nofollow = nofollow || w == "nofollow" || w == "none"
	}
	return noindex, nofollow
}

// resolve returns the canonical URLs on the page's own host, each once, in
// order, without the page itself.
func (h *hrefs) resolve(page string) []string {
	b := newBase(page)
	if h.base != "" {
		if u, err := b.resolve(h.base); err == nil {
			b = newBase(u)
		}
	}
	own := Origin(page)
	var out []string
	seen := map[string]struct{}{page: {}}
	for _, ref := range h.refs {
		u, err := b.resolve(ref)
		if err != nil || !sameHost(Origin(u), own) {
			continue
		}
		if _, dup := seen[u]; !dup {
			seen[u] = struct{}{}
			out = append(out, u)
		}
	}
	return out
}
