package unpack

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/textproto"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"
)

// A Mail reads the parts that are sent along with a message: attachments, pictures,
// forwarded messages, and what is uuencoded in it. The text that the message
// itself consists of, its first part that is text or HTML and is no attachment, is
// no member. A part's content is decoded as it is read, and of none more is held
// than a line: a message may be of any length, and multiparts nested to a depth.
type Mail struct {
	r      *bufio.Reader
	bounds []string // of the multiparts that are open, outermost first
	n      int      // parts that were members
	body   bool     // the text was seen
	part   io.Reader
	lines  *partLines
	uu     *UU
	err    error
}

const (
	maxMultiparts = 100
	maxMailHeader = 256 << 10
)

// IsMultipart reports whether a message's header says that there are parts, or
// its text has something uuencoded.
func IsMultipart(head []byte) bool {
	end := bytes.Index(head, []byte("\n\n"))
	if i := bytes.Index(head, []byte("\r\n\r\n")); i >= 0 && (end < 0 || i < end) {
		end = i
	}
	if end < 0 {
		end = len(head)
	}
	return multipart.Match(head[:end])
}

var multipart = regexp.MustCompile(`(?im)^content-type:\s*(?:multipart/|message/rfc822|application/|image/|audio/|video/)|^content-disposition:\s*attachment`)

// NewMail begins at the header of a message.
func NewMail(r io.Reader) *Mail { return &Mail{r: bufio.NewReaderSize(r, 16<<10)} }

// A partHead is what the header of a part says.
type partHead struct {
	kind, name, disposition, coding, boundary string
	modified                                  time.Time
}

var words = &mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader, error) {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, err
	}
	return e.NewDecoder().Reader(in), nil
}}

// head reads a header, as far as it goes; what is malformed in it says nothing.
func (m *Mail) head() (partHead, error) {
	h := textproto.MIMEHeader{}
	key, size := "", 0
	for {
		b, err := m.r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && len(b) == 0 {
			return partHead{}, err
		}
		line := strings.TrimRight(string(b), "\r\n")
		if line == "" {
			break
		}
		if m.isBoundary(b) >= 0 { // a part without a body
			m.lines = &partLines{m: m, ended: m.isBoundary(b), closing: m.closes(b)}
			break
		}
		if size += len(line); size > maxMailHeader {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			if v := h[key]; len(v) > 0 {
				v[len(v)-1] += " " + strings.TrimSpace(line)
			}
			continue
		}
		k, v, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(k, " \t") {
			continue
		}
		key = textproto.CanonicalMIMEHeaderKey(k)
		h[key] = append(h[key], strings.TrimSpace(v))
	}
	return parseHead(h), nil
}

func parseHead(h textproto.MIMEHeader) (p partHead) {
	kind, params := mediaType(h.Get("Content-Type"))
	p.kind, p.boundary, p.name = kind, params["boundary"], params["name"]
	p.disposition, params = mediaType(h.Get("Content-Disposition"))
	if n := params["filename"]; n != "" {
		p.name = n
	}
	if t, err := time.Parse(time.RFC1123Z, params["modification-date"]); err == nil {
		p.modified = t
	}
	if d, err := words.DecodeHeader(p.name); err == nil {
		p.name = d
	}
	p.coding = strings.ToLower(strings.TrimSpace(h.Get("Content-Transfer-Encoding")))
	return p
}

// parameter is one of a malformed header, as many programs write.
var parameter = regexp.MustCompile(`(?i)\b(boundary|name|filename)\s*=\s*(?:"([^"]*)"|([^\s;]+))`)

// mediaType takes a header apart, also one that is not quite right.
func mediaType(v string) (string, map[string]string) {
	kind, params, err := mime.ParseMediaType(v)
	if err == nil {
		return kind, params
	}
	kind, rest, _ := strings.Cut(v, ";")
	params = make(map[string]string)
	for _, m := range parameter.FindAllStringSubmatch(rest, 20) {
		if k := strings.ToLower(m[1]); params[k] == "" {
			params[k] = m[2] + m[3]
		}
	}
	return strings.ToLower(strings.TrimSpace(kind)), params
}

// Next goes to the next part that is a member; io.EOF is the end.
func (m *Mail) Next() (*Header, error) {
	if m.uu != nil {
		h, err := m.uu.Next()
		if err == nil {
			m.n++
			return h, nil
		}
		m.uu = nil
	}
	for {
		if err := m.forward(); err != nil {
			return nil, err
		}
		p, err := m.head()
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(p.kind, "multipart/") && p.boundary != "" && len(m.bounds) < maxMultiparts {
			m.bounds = append(m.bounds, p.boundary)
			continue
		}
		if m.lines == nil {
			m.lines = &partLines{m: m, ended: -1, start: true}
		}
		if h := m.member(p); h != nil {
			return h, nil
		}
		if m.uu != nil {
			return m.Next()
		}
	}
}

// forward reads up to the head of the next part: to the boundary that opens it.
func (m *Mail) forward() error {
	if m.lines == nil && len(m.bounds) == 0 {
		if m.part != nil || m.n > 0 || m.err != nil {
			return io.EOF
		}
		m.err = io.EOF // the head of the message itself is next, once
		return nil
	}
	if m.lines == nil {
		m.lines = &partLines{m: m, ended: -1, start: true} // what stands before the first part
	}
	for {
		if _, err := io.Copy(io.Discard, m.lines); err != nil {
			return err
		}
		l := m.lines
		m.lines = nil
		if l.ended < 0 {
			return io.EOF
		}
		m.bounds = m.bounds[:l.ended+1]
		if !l.closing {
			return nil
		}
		if m.bounds = m.bounds[:l.ended]; len(m.bounds) == 0 {
			m.part = l
			return io.EOF
		}
		m.lines = &partLines{m: m, ended: -1, start: true}
	}
}

// member is the header of a part, nil if it is the message's own text.
func (m *Mail) member(p partHead) *Header {
	attached := p.disposition == "attachment" || p.name != "" && p.disposition != "inline"
	text := p.kind == "" || p.kind == "text/plain" || p.kind == "text/html"
	m.part = m.decoded(p.coding)
	if text && !attached && p.name == "" {
		if !m.body && (p.kind == "" || p.kind == "text/plain") {
			m.uu = NewUU(m.part)
		}
		m.body = true
		return nil
	}
	m.n++
	name := path.Base(strings.ReplaceAll(p.name, `\`, "/"))
	if p.name == "" || name == "." || name == "/" {
		name = "part" + strconv.Itoa(m.n) + suffixOf(p.kind)
	}
	return &Header{Name: name, Size: -1, Packed: -1, Modified: p.modified, Regular: true}
}

// suffixOf is that of the name of a part that has none.
func suffixOf(kind string) string {
	for k, s := range map[string]string{"message/rfc822": ".eml", "text/plain": ".txt", "text/html": ".html", "image/jpeg": ".jpg", "image/png": ".png",
		"image/gif": ".gif", "application/pdf": ".pdf", "text/calendar": ".ics", "text/vcard": ".vcf", "text/x-vcard": ".vcf", "application/zip": ".zip"} {
		if k == kind {
			return s
		}
	}
	return ""
}

// decoded is the part in hand without what mail does to bytes.
func (m *Mail) decoded(coding string) io.Reader {
	switch coding {
	case "base64":
		return &loose64{r: bufio.NewReader(m.lines)}
	case "quoted-printable":
		return &quoted{quotedprintable.NewReader(m.lines)}
	case "x-uuencode", "uuencode", "x-uue":
		u := NewUU(m.lines)
		if _, err := u.Next(); err == nil {
			return u
		}
		return bytes.NewReader(nil)
	}
	return m.lines
}

// Read reads of the member.
func (m *Mail) Read(p []byte) (int, error) {
	switch {
	case m.uu != nil:
		return m.uu.Read(p)
	case m.part == nil:
		return 0, io.EOF
	}
	return m.part.Read(p)
}

// isBoundary is the multipart whose boundary a line is, -1 if none.
func (m *Mail) isBoundary(line []byte) int {
	if len(line) < 3 || line[0] != '-' || line[1] != '-' {
		return -1
	}
	line = bytes.TrimRight(line[2:], " \t\r\n")
	for i := len(m.bounds) - 1; i >= 0; i-- {
		if rest, ok := bytes.CutPrefix(line, []byte(m.bounds[i])); ok && (len(rest) == 0 || string(rest) == "--") {
			return i
		}
	}
	return -1
}

// closes reports whether a boundary is the last of its multipart.
func (m *Mail) closes(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r\n")
	return bytes.HasSuffix(line, []byte("--")) && !bytes.HasSuffix([]byte("--"+m.bounds[m.isBoundary(line)]), line)
}

// partLines is a part up to the next boundary. The end of the line before that
// belongs to the boundary.
type partLines struct {
	m       *Mail
	left    []byte
	end     []byte // of the line before
	start   bool   // at the start of a line
	ended   int    // the multipart whose boundary ended it; -1: none yet, or the end of all
	closing bool
	over    bool
}

func (l *partLines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		if l.over || l.ended >= 0 {
			return 0, io.EOF
		}
		l.next()
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

func (l *partLines) next() {
	b, err := l.m.r.ReadSlice('\n')
	if len(b) == 0 && err != nil {
		l.left, l.end, l.over = l.end, nil, true
		return
	}
	if l.start {
		if i := l.m.isBoundary(b); i >= 0 {
			l.ended, l.closing = i, l.m.closes(b)
			return
		}
	}
	text := b
	l.start = false
	if b[len(b)-1] == '\n' {
		l.start = true
		text = bytes.TrimSuffix(b[:len(b)-1], []byte("\r"))
	}
	l.left = append(append([]byte(nil), l.end...), text...)
	l.end = append(l.end[:0:0], b[len(text):]...)
}

// A loose64 decodes base64 in which other characters may stand.
type loose64 struct {
	r    *bufio.Reader
	out  []byte
	quad [4]byte
	buf  [3]byte
	err  error
}

func (d *loose64) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(d.out) == 0 {
			if d.err != nil {
				break
			}
			d.group()
			continue
		}
		m := copy(p[n:], d.out)
		d.out = d.out[m:]
		n += m
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, d.err
}

// group decodes the next four characters that mean something.
func (d *loose64) group() {
	n := 0
	for n < 4 {
		c, err := d.r.ReadByte()
		if err != nil {
			d.err = err
			break
		}
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' {
			d.quad[n] = c
			n++
		} else if c == '=' {
			break
		}
	}
	if n < 2 {
		return
	}
	m, _ := base64.RawStdEncoding.Decode(d.buf[:], d.quad[:n])
	d.out = d.buf[:m]
}

// quoted tells of damage in our words.
type quoted struct{ r *quotedprintable.Reader }

func (q *quoted) Read(p []byte) (int, error) {
	n, err := q.r.Read(p)
	if err != nil && err != io.EOF {
		err = damaged("quoted-printable: %v", err)
	}
	return n, err
}
