package crawl

import (
	"bufio"
	"errors"
	"strings"
)

// maxTag is the longest tag, and the longest text in one, that is looked at.
const maxTag = 8 << 10

// tags reads the tags of an XML document, however broken: sitemaps are written
// by programs that know no escapes. What is longer than maxTag is passed over.
type tags struct {
	in     *bufio.Reader
	tag    string // the last, as it stands between < and >
	known  bool   // a root of a sitemap was there
	opened int    // tags so far

	path []string // of open elements, no deeper than maxPath
	deep int      // elements open below those
}

const maxPath = 32

// next gives the local name of the next tag, "/name" of one that closes.
func (t *tags) next() (string, error) {
	for {
		if err := t.skip('<'); err != nil {
			return "", err
		}
		head, err := t.in.Peek(8)
		if len(head) == 0 {
			return "", err
		}
		switch {
		case strings.HasPrefix(string(head), "!--"):
			_, err = t.past('-')
		case string(head) == "![CDATA[":
			_, err = t.past(']')
		case head[0] == '?' || head[0] == '!':
			err = t.skip('>')
		default:
			return t.read()
		}
		if err != nil {
			return "", err
		}
	}
}

// read reads a tag after its '<'.
func (t *tags) read() (string, error) {
	line, err := t.in.ReadSlice('>')
	if errors.Is(err, bufio.ErrBufferFull) {
		t.tag = "" // no tag that counts
		return "", t.skip('>')
	}
	if err != nil {
		return "", err
	}
	t.tag = string(line[:len(line)-1])
	t.opened++
	name := t.tag
	if i := strings.IndexAny(name, " \t\r\n"); i >= 0 {
		name = name[:i]
	}
	closes := strings.HasPrefix(name, "/")
	name = strings.Trim(name, "/")
	name = name[strings.LastIndexByte(name, ':')+1:]
	switch {
	case closes:
		t.close(name)
		return "/" + name, nil
	case strings.HasSuffix(t.tag, "/"):
	case len(t.path) == maxPath:
		t.deep++
	default:
		t.path = append(t.path, name)
	}
	return name, nil
}

func (t *tags) close(name string) {
	if t.deep > 0 {
		t.deep--
		return
	}
	for i := len(t.path) - 1; i >= 0; i-- {
		if t.path[i] == name {
			t.path = t.path[:i]
			return
		}
	}
}

// depthIn is how deep the tag just opened is in the element of that name, 1 for
// its child, 0 when it is in none.
func (t *tags) depthIn(name string) int {
	for i := len(t.path) - 1; i >= 0; i-- {
		if t.path[i] == name {
			return len(t.path) - 1 - i + t.deep
		}
	}
	return 0
}

// text reads the text that follows, up to the next tag, CDATA undone.
func (t *tags) text() (string, error) {
	var b strings.Builder
	for {
		s, err := t.in.ReadSlice('<')
		if errors.Is(err, bufio.ErrBufferFull) {
			keep(&b, s)
			continue
		}
		if err != nil {
			keep(&b, s)
			return b.String(), err
		}
		keep(&b, s[:len(s)-1])
		if err := t.in.UnreadByte(); err != nil {
			return "", err
		}
		if head, _ := t.in.Peek(9); string(head) != "<![CDATA[" {
			return b.String(), nil
		}
		t.in.Discard(9)
		inner, err := t.past(']')
		if keep(&b, []byte(inner)); err != nil {
			return b.String(), err
		}
	}
}

func keep(b *strings.Builder, s []byte) {
	if b.Len() < maxTag {
		b.Write(s)
	}
}

// skip reads up to and with a byte.
func (t *tags) skip(c byte) error {
	for {
		_, err := t.in.ReadSlice(c)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// past reads up to and with "-->" or "]]>", twice the byte given and one more,
// and gives what stands before.
func (t *tags) past(twice byte) (string, error) {
	var b strings.Builder
	for run := 0; ; {
		c, err := t.in.ReadByte()
		switch {
		case err != nil:
			return b.String(), err
		case c == '>' && run >= 2:
			return strings.TrimSuffix(b.String(), string([]byte{twice, twice})), nil
		case c == twice:
			run++
		default:
			run = 0
		}
		if b.Len() < maxTag {
			b.WriteByte(c)
		}
	}
}
