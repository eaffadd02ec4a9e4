package crawl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	iofs "io/fs"
	"iter"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A Mention is a document, or a further sitemap, that a sitemap or a feed names.
type Mention struct {
	URL      string    // canonical
	Modified time.Time // when it was changed as it says; zero: it does not, or that is to come
	Sitemap  bool      // URL is a sitemap itself
}

// Bounds of a sitemap are those of its protocol.
const (
	maxSitemap  = 50 << 20 // bytes, once decompressed
	maxMentions = 50_000
)

// ErrNotSitemap is what a document is that is neither a sitemap nor a feed.
var ErrNotSitemap = errors.New("neither a sitemap nor a feed")

// ParseSitemap reads a sitemap, as XML, as an index of others, or as a text of
// one URL a line, plain or gzipped, or a feed that stands for one. from is its
// URL. It yields each document and each further sitemap once it has read it, in
// order; URLs that are none are left out, and what is beyond the protocol's
// 50,000 of them or 50 MiB ends with an error. What it holds in memory does not
// depend on the sitemap. Alternates (hreflang), images and videos are no
// mentions.
func ParseSitemap(r io.Reader, from string) iter.Seq2[Mention, error] {
	return func(yield func(Mention, error) bool) {
		m := newMentions(from, yield)
		if err := m.sitemap(r); err != nil && !m.done {
			yield(Mention{}, err)
		}
	}
}

// mentions hands on what is found.
type mentions struct {
	from  base
	yield func(Mention, error) bool
	now   time.Time
	size  int64 // bytes of a sitemap that are read
	most  int   // mentions that are taken
	n     int
	done  bool // yield has had enough
}

func newMentions(from string, yield func(Mention, error) bool) *mentions {
	return &mentions{from: newBase(from), yield: yield, now: time.Now(), size: maxSitemap, most: maxMentions}
}

var errMentions = fmt.Errorf("more than %d URLs: the rest is left out: %w", maxMentions, iofs.ErrInvalid)

// add hands on a reference. It is io.EOF when no more is wanted.
func (m *mentions) add(ref, date string, sitemap bool) error {
	ref = strings.TrimSpace(ref)
	u, err := m.from.resolve(ref)
	if ref == "" || err != nil || len(u) > maxURL {
		return nil // a bad one says nothing of the others
	}
	if m.n++; m.n > m.most {
		return errMentions
	}
	t := parseDate(date)
	if t.After(m.now.Add(24 * time.Hour)) {
		t = time.Time{}
	}
	if !m.yield(Mention{u, t, sitemap}, nil) {
		m.done = true
		return io.EOF
	}
	return nil
}

func (m *mentions) sitemap(r io.Reader) error {
	in := bufio.NewReader(r)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		defer z.Close()
		in = bufio.NewReader(z)
	}
	return m.plain(&limited{r: in, left: m.size})
}

// limited is a reader that fails when more than some bytes are there.
type limited struct {
	r    io.Reader
	left int64
}

var errLong = fmt.Errorf("longer than %d bytes: the rest is left out: %w", maxSitemap, iofs.ErrInvalid)

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func (m *mentions) plain(r io.Reader) error {
	in := bufio.NewReaderSize(transform.NewReader(r, unicode.BOMOverride(transform.Nop)), maxTag)
	head, err := in.Peek(2048)
	if err != nil && err != io.EOF {
		return noEOF(err)
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(head) == 0:
		return nil
	case head[0] != '<':
		return m.text(in)
	}
	switch rootName(head) {
	case "html":
		return ErrNotSitemap
	case "rss", "feed", "rdf":
		return m.feed(in)
	}
	return m.xml(in)
}

// text reads a URL a line. A text without any is no sitemap.
func (m *mentions) text(in *bufio.Reader) error {
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		// A URL of a text is whole.
		if s := strings.TrimSpace(string(line)); len(line) < in.Size() && strings.Contains(s, "://") {
			if err := m.add(s, "", false); err != nil {
				return noEOF(err)
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if m.n == 0 && (n == 100 || err == io.EOF) {
			return ErrNotSitemap
		}
		if err != nil {
			return noEOF(err)
		}
	}
}

// rootName is the local name of a document's first element, in lower case, or
// that of <!doctype html>.
func rootName(head []byte) string {
	if s := bytes.ToLower(head[:min(len(head), 14)]); string(s) == "<!doctype html" {
		return "html"
	}
	t := tags{in: bufio.NewReader(bytes.NewReader(head))}
	name, err := t.next()
	if err != nil {
		return ""
	}
	return strings.ToLower(name)
}

// xml reads the elements url and sitemap, and in them loc and lastmod.
func (m *mentions) xml(in *bufio.Reader) error {
	t := tags{in: in}
	var within, loc, date string // the element that holds loc, and what was in it
	for {
		name, err := t.next()
		if err != nil {
			return noEOF(err)
		}
		switch name {
		case "urlset", "sitemapindex":
			t.known = true
		case "url", "sitemap":
			within, loc, date = name, "", ""
		case "/url", "/sitemap":
			if within == name[1:] && t.known {
				err = m.add(html.UnescapeString(loc), date, within == "sitemap")
			}
			within = ""
		case "loc", "lastmod":
			if within == "" || t.depthIn(within) != 1 {
				break
			}
			var s string
			if s, err = t.text(); name == "loc" {
				loc = s
			} else {
				date = s
			}
		default:
			if !t.known && t.opened > 8 {
				return ErrNotSitemap
			}
		}
		if err != nil {
			return noEOF(err)
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // cut off: what came counts
	}
	return err
}

// parseDate reads a date of the W3C's profile of ISO 8601, or one of RFC 822;
// zero when it is neither.
func parseDate(s string) time.Time {
	s = strings.TrimSpace(s)
	for _, layout := range [...]string{time.RFC3339, "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01", "2006", time.RFC1123Z, time.RFC1123} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1969 {
			return t.UTC()
		}
	}
	return time.Time{}
}
