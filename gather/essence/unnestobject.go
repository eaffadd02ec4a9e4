package essence

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"strconv"
	"strings"

	"harvest/gather/essence/unpack"
	"harvest/gather/soif"
)

// # Members as objects
//
// The URL of a member is that of its container, !/ and the member's path:
//
//	http://site/a.zip!/doc/page.html
//	http://site/a.tgz!/mail.mbox!/3.eml!/report.pdf
//
// so that in the tree of URLs a container is a folder. A ? of the container's URL
// is written %3F there, or all members would have one name. The path has no empty
// part, no . and no .., and is escaped as a canonical URL is. Of several members
// with one path the second has ~2 behind it, and so on; one that is longer than
// 1,000 bytes keeps 900 of them and the MD5 of the whole.
const (
	memberMark = "!/"
	longPath   = 1000
	keptPath   = 900
)

// ContainerOf returns the URLs that the document may have which a member of that
// URL is in, the likeliest first; none if it is not that of a member.
func ContainerOf(url string) []string {
	container, _, ok := strings.Cut(url, memberMark)
	if !ok {
		return nil
	}
	if plain := strings.Replace(container, "%3F", "?", 1); plain != container {
		return []string{container, plain}
	}
	return []string{container}
}

// MembersOf returns what the URLs of a document's members begin with.
func MembersOf(url string) string { return strings.Replace(url, "?", "%3F", 1) + memberMark }

// memberURL is the URL of a member.
func memberURL(container, name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		escapePart(&b, part)
		if b.Len() > 4*longPath {
			break
		}
	}
	p := b.String()
	switch {
	case p == "":
		p = "unnamed"
	case len(p) > longPath:
		sum := md5.Sum([]byte(name))
		kept := strings.TrimRight(p[:keptPath], "%0123456789ABCDEF/")
		p = kept + "~" + hex.EncodeToString(sum[:8])
	}
	return MembersOf(container) + p
}

// escapePart writes a part of a path as a canonical URL has it.
func escapePart(b *strings.Builder, part string) {
	const digits = "0123456789ABCDEF"
	dots := strings.Trim(part, ".") == "" // ... is no way up, but nobody should have to know
	for i := range len(part) {
		switch c := part[i]; {
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"#%<>?\\^`{|}", c) >= 0 || dots:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		default:
			b.WriteByte(c)
		}
	}
}

// url is the URL of a member, which no other of the container has.
func (t *taking) url(name string) string {
	u := memberURL(t.c.at, name)
	is := u
	for i := 2; ; i++ {
		key := maphash.String(t.seed, is)
		if _, ok := t.names[key]; !ok {
			t.names[key] = struct{}{}
			return is
		}
		is = u + "~" + strconv.Itoa(i)
	}
}

// object makes an object of a member and hands it on; false is the end of all.
func (t *taking) object(h *unpack.Header, name, at string) bool {
	w := t.w
	text, attrs, bytes, cuts := w.text, w.attrs, w.bytes, w.cuts
	w.text, w.attrs, w.bytes, w.cuts = w.lim.Text, 0, 0, nil
	url := t.url(h.Name)
	m, e := t.summary(h, name, at, url, 0)
	o := soif.Object{Type: "FILE", URL: url, Attrs: make([]soif.Attr, 0, len(e.Attrs)+2)}
	o.Attrs = append(o.Attrs, e.Attrs...)
	c := m
	if c == nil {
		c = &content{path: at}
	}
	err := w.finish(&o, c)
	add(&o, "Summary-Limit", w.limitText())
	mine := w.cuts
	w.text, w.attrs, w.bytes, w.cuts = text, attrs, bytes, cuts
	for _, l := range mine {
		w.note(l.path, l.what)
	}
	if m != nil {
		w.release(m)
	}
	switch {
	case errors.Is(err, ErrDeleted):
		t.n--
		return true
	case err == nil && w.ctx.Err() == nil:
		err = w.member(w.ctx, Member{Container: t.top(), Object: o})
	}
	if w.failed = err; err == nil {
		w.made++
	}
	return err == nil
}

// top is the URL of the document that all is in.
func (t *taking) top() string {
	c := t.c
	for c.in != nil {
		c = c.in
	}
	return c.at
}
