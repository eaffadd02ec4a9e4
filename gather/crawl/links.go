package crawl

import (
	"bytes"
	"html"
	"slices"
	"strings"
)

// references are what an HTML page refers to.
type references struct {
	links     []string // as they stand, each once, in order, fragments cut
	base      string   // what <base href> says, or ""
	canonical string   // what <link rel=canonical> says, or ""
}

// maxRefs bounds the references taken from one page.
const maxRefs = 20_000

// findRefs reads the references of an HTML page, and adds what its META tags ask
// of an agent to d. It looks at nothing but the tags that may have some, which it
// finds by their '<': a tokenizer would cost ten times as much, and a tree twice
// that again, and give up on deep nesting. What is not markup is passed over as
// the standard has it: comments, and the text of scripts, styles, titles and
// text areas.
func findRefs(page []byte, agent string, d *Directives) *references {
	r := &scan{page: page, agent: agent, directives: d, seen: make(map[string]struct{}, 64)}
	for {
		i := bytes.IndexByte(page[r.at:], '<')
		if i < 0 || r.at+i+1 >= len(page) {
			return &r.references
		}
		r.at += i + 1
		r.tag()
	}
}

// A scan is how far a page has been read.
type scan struct {
	references
	page       []byte
	at         int
	agent      string
	directives *Directives
	seen       map[string]struct{}
}

// tag reads one tag, of which at is the first byte after its '<'.
func (r *scan) tag() {
	rest := r.page[r.at:]
	switch c := rest[0] | 0x20; {
	case rest[0] == '!':
		r.comment(rest)
	case c == 'a' || c == 'b' || c == 'f' || c == 'i' || c == 'l' || c == 'm':
		r.element(name(rest))
	case c == 's' || c == 't' || c == 'x' || c == 'n':
		switch n := name(rest); {
		case is(n, "script") || is(n, "style") || is(n, "textarea") || is(n, "title") || is(n, "xmp") || is(n, "noembed") || is(n, "noframes"):
			r.at += len(n)
			for more := true; more; {
				_, _, more = r.attribute()
			}
			r.raw(n)
		}
	}
}

// name is the name that a tag begins with.
func name(tag []byte) []byte {
	n := 0
	for n < len(tag) && n < 16 && tag[n] > ' ' && tag[n] != '>' && tag[n] != '/' {
		n++
	}
	return tag[:n]
}

// is compares a name, whatever its case.
func is(name []byte, want string) bool {
	if len(name) != len(want) {
		return false
	}
	for i, c := range name {
		if c|0x20 != want[i] {
			return false
		}
	}
	return true
}

// comment passes over a comment, or what begins like a declaration.
func (r *scan) comment(rest []byte) {
	end := ">"
	if bytes.HasPrefix(rest, []byte("!--")) {
		end = "-->"
		if bytes.HasPrefix(rest, []byte("!-->")) || bytes.HasPrefix(rest, []byte("!--->")) {
			end = ">"
		}
	}
	if i := bytes.Index(rest, []byte(end)); i >= 0 {
		r.at += i
	} else {
		r.at = len(r.page)
	}
}

// raw passes over the text of an element that has no markup in it.
func (r *scan) raw(name []byte) {
	for {
		i := bytes.Index(r.page[r.at:], []byte("</"))
		if i < 0 {
			r.at = len(r.page)
			return
		}
		r.at += i + 2
		if rest := r.page[r.at:]; len(rest) >= len(name) && bytes.EqualFold(rest[:len(name)], name) {
			return
		}
	}
}

// element reads a tag whose name is one that may refer to something.
func (r *scan) element(n []byte) {
	want := ""
	switch {
	case is(n, "a") || is(n, "area") || is(n, "link") || is(n, "base"):
		want = "href"
	case is(n, "frame") || is(n, "iframe"):
		want = "src"
	case !is(n, "meta"):
		return
	}
	first := n[0] | 0x20
	r.at += len(n)
	var ref, rel, kind, key, content []byte
	for more := true; more; {
		var k, val []byte
		k, val, more = r.attribute()
		switch {
		case ref == nil && want != "" && is(k, want):
			ref = val
		case is(k, "rel"):
			rel = val
		case is(k, "type"):
			kind = val
		case is(k, "name"):
			key = val
		case is(k, "content"):
			content = val
		}
	}
	switch {
	case first == 'm':
		if len(key) > 0 && len(key) < 64 {
			r.directives.Meta(string(bytes.ToLower(key)), unescape(string(content)), r.agent)
		}
	case first == 'b':
		if r.base == "" {
			r.base = unescape(string(ref))
		}
	case first == 'l':
		r.link(string(bytes.ToLower(rel)), string(bytes.ToLower(kind)), ref)
	default:
		if rel == nil || !bytes.Contains(bytes.ToLower(rel), []byte("nofollow")) {
			r.add(ref)
		}
	}
}

// link reads a <link>: the original of the page, or a feed.
func (r *scan) link(rel, kind string, ref []byte) {
	words := strings.Fields(rel)
	switch {
	case slices.Contains(words, "canonical"):
		if r.canonical == "" && len(ref) <= 2*maxURL {
			r.canonical = unescape(string(ref))
		}
	case slices.Contains(words, "alternate") && (strings.HasPrefix(kind, "application/rss+xml") || strings.HasPrefix(kind, "application/atom+xml")),
		slices.Contains(words, "next") && !slices.Contains(words, "nofollow"):
		r.add(ref)
	}
}

// attribute reads the next attribute of a tag. There is no more once the tag has
// ended.
func (r *scan) attribute() (key, value []byte, more bool) {
	p, i := r.page, r.at
	for i < len(p) && (p[i] <= ' ' || p[i] == '/') {
		i++
	}
	start := i
	for i < len(p) && p[i] > ' ' && p[i] != '>' && p[i] != '/' && (p[i] != '=' || i == start) {
		i++
	}
	key = p[start:i]
	for i < len(p) && p[i] <= ' ' {
		i++
	}
	if i < len(p) && p[i] == '=' {
		i++
		for i < len(p) && p[i] <= ' ' {
			i++
		}
		switch {
		case i < len(p) && (p[i] == '"' || p[i] == '\''):
			end := bytes.IndexByte(p[i+1:], p[i])
			if end < 0 { // the page ends in the tag, which then is none
				r.at = len(p)
				return nil, nil, false
			}
			value = p[i+1 : i+1+end]
			i += end + 2
		default:
			start := i
			for i < len(p) && p[i] > ' ' && p[i] != '>' {
				i++
			}
			value = p[start:i]
		}
	}
	r.at = i
	switch {
	case i >= len(p):
		return nil, nil, false
	case p[i] == '>':
		r.at++
		return key, value, false
	}
	return key, value, true
}

// add takes a reference, as it stands, if it is new.
func (r *scan) add(ref []byte) {
	if i := bytes.IndexByte(ref, '#'); i >= 0 && bytes.IndexByte(ref[:i], '&') < 0 {
		ref = ref[:i]
	}
	if len(ref) == 0 || len(ref) > 2*maxURL || len(r.links) >= maxRefs {
		return
	}
	if bytes.IndexByte(ref, '&') >= 0 {
		s := unescape(string(ref))
		if i := strings.IndexByte(s, '#'); i >= 0 {
			s = s[:i]
		}
		ref = []byte(s)
	}
	if _, dup := r.seen[string(ref)]; dup || len(ref) == 0 {
		return
	}
	s := string(ref)
	r.seen[s] = struct{}{}
	r.links = append(r.links, s)
}

// baseOf is what the references of a page are relative to.
func (r *references) baseOf(page string) base {
	b := newBase(page)
	if r.base != "" {
		if u, err := b.resolve(r.base); err == nil {
			return newBase(u)
		}
	}
	return b
}

// resolve returns the canonical URLs of those origins that are wanted, each
// once, in order, without the page itself.
func (r *references) resolve(b *base, page string, wanted func(origin string) bool) []string {
	out := make([]string, 0, len(r.links))
	seen := make(map[string]struct{}, len(r.links)+1)
	seen[page] = struct{}{}
	last, ok := "", false // links to one server mostly stand together
	for _, ref := range r.links {
		u, err := b.resolve(ref)
		if err != nil {
			continue
		}
		if o := Origin(u); o != last {
			last, ok = o, wanted(o)
		}
		if _, dup := seen[u]; ok && !dup {
			seen[u] = struct{}{}
			out = append(out, u)
		}
	}
	return out
}

// original is the page that a page says it is a copy of, on the same host.
func (r *references) original(b *base, page string) string {
	if r.canonical == "" {
		return ""
	}
	u, err := b.resolve(r.canonical)
	if err != nil || u == page || Origin(u) != Origin(page) {
		return ""
	}
	return u
}

// unescape replaces the character references of an attribute's value. There, one
// without its semicolon that stands before a letter, a digit or = is none: the
// copy of "?a=1&copy=2".
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		n := i + 1
		for n < len(s) && (s[n] == '#' && n == i+1 || isAlnum(s[n])) {
			n++
		}
		switch {
		case n < len(s) && s[n] == ';':
			n++
			if t := html.UnescapeString(s[i:n]); strings.HasSuffix(t, ";") { // no such name
				b.WriteString(s[i:n])
			} else {
				b.WriteString(t)
			}
		case strings.HasPrefix(s[i:n], "&#"), n == len(s) || s[n] != '=':
			b.WriteString(shortReference(s[i:n]))
		default:
			b.WriteString(s[i:n])
		}
		s = s[n:]
	}
}

// shortReference replaces a reference without its semicolon, if it is all of
// the name.
func shortReference(s string) string {
	if t := html.UnescapeString(s); strings.HasPrefix(s, "&#") || len([]rune(t)) == 1 {
		return t
	}
	return s
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
