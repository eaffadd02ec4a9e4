package fetch

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An item is one line of a listing.
type item struct {
	kind byte
	size int64
	time time.Time // zero: unknown
	tag  string    // "" is none
	href string
	name string // what the server calls it, "" is nothing
}

// append adds the line.
func (e *item) append(b []byte) []byte {
	b = append(b, e.kind, '\t')
	b = strconv.AppendInt(b, e.size, 10)
	b = append(b, '\t')
	if e.time.IsZero() {
		b = append(b, '-')
	} else {
		b = e.time.UTC().AppendFormat(b, time.RFC3339Nano)
	}
	b = append(b, '\t')
	b = append(b, cmp.Or(e.tag, "-")...)
	b = append(b, '\t')
	b = append(b, e.href...)
	if e.name != "" {
		b = append(b, '\t')
		b = append(b, oneLine(e.name)...)
	}
	return append(b, '\n')
}

// oneLine is a name without what would end its field.
func oneLine(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xFFFD }) < 0 {
		return s
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
}

// list answers with a listing of items, in the order of their references; of two
// that are the same the first is kept.
func list(req *http.Request, items []item) *http.Response {
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.href, b.href) })
	items = slices.CompactFunc(items, func(a, b item) bool { return a.href == b.href })
	var b []byte
	for i := range items {
		b = items[i].append(b)
	}
	resp := listed(req, io.NopCloser(bytes.NewReader(b)))
	resp.ContentLength = int64(len(b))
	return resp
}

// listed answers with a listing that is made as it is read.
func listed(req *http.Request, body io.ReadCloser) *http.Response {
	resp := answer(req, http.StatusOK, "")
	resp.Header.Set("Content-Type", ListingType)
	resp.ContentLength = -1
	if req.Method == http.MethodHead {
		body.Close()
		return resp
	}
	resp.Body = body
	return resp
}

// A lister is the body of a listing that is made as it is read: more gives the
// next items, and io.EOF, with them or alone, after the last.
type lister struct {
	more func() ([]item, error)
	done func(err error) // once, with nil at the end, or when the body is closed before it
	buf  bytes.Buffer
	err  error
}

func (l *lister) Read(p []byte) (int, error) {
	for l.buf.Len() == 0 && l.err == nil {
		var items []item
		items, l.err = l.more()
		for i := range items {
			l.buf.Write(items[i].append(l.buf.AvailableBuffer()))
		}
		if l.err == io.EOF {
			l.finish(nil)
		} else if l.err != nil {
			l.finish(l.err)
		}
	}
	if l.buf.Len() == 0 {
		return 0, l.err
	}
	return l.buf.Read(p)
}

func (l *lister) finish(err error) {
	if l.done != nil {
		l.done(err)
		l.done = nil
	}
}

func (l *lister) Close() error {
	l.finish(io.ErrClosedPipe)
	l.err = cmp.Or(l.err, io.ErrClosedPipe)
	return nil
}
