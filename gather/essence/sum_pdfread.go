package essence

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zlib"
)

// A pdfFile is what is read of a PDF file without setting its pages: who made
// it, the outline, links. Objects are found by looking for them and not by the
// table at the end of the file, which is damaged where anything is.
type pdfFile struct {
	w      *worker
	b      []byte
	at     map[int][]byte // where an object begins; the last of a number counts
	loose  [][]byte       // the object streams, inflated
	heads  []pdfDict      // trailers
	seen   map[int]bool   // of the outline
	room   int            // bytes of object streams left
	look   int            // bytes left to look for the lengths of streams in
	secret bool           // strings are encrypted
}

// Values of PDF: pdfName, pdfRef, pdfDict, []any, float64, and bytes of a string
// as []byte.
type (
	pdfName string
	pdfRef  int
	pdfDict map[string]any
)

// maxPDF is how much of a file is looked at; of a longer one the beginning and
// the end.
const maxPDF = 64 << 20

// pdf reads a file once: what is said of it and what is attached to it want it.
func (w *worker) pdf(c *content) (*pdfFile, error) {
	if c.pdf != nil {
		return c.pdf, nil
	}
	r, size, err := w.whole(c)
	if err != nil {
		return nil, err
	}
	f := &pdfFile{w: w, at: make(map[int][]byte), seen: make(map[int]bool), room: maxPDF, look: 8 * maxPDF}
	n := min(size, maxPDF/2)
	f.b = make([]byte, n, n+min(size-n, maxPDF/2))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, n), f.b); err != nil {
		return nil, err
	}
	if size > n {
		rest := f.b[n:cap(f.b)]
		if _, err := io.ReadFull(io.NewSectionReader(r, size-int64(len(rest)), int64(len(rest))), rest); err != nil {
			return nil, err
		}
		f.b = f.b[:cap(f.b)]
	}
	f.scan()
	c.pdf = f
	return f, nil
}

// scan finds the objects.
func (f *pdfFile) scan() {
	var streams [][]byte
	plain := 0 // where the last stream ended
	for i := 0; ; {
		n := bytes.Index(f.b[i:], []byte("obj"))
		if n < 0 {
			break
		}
		at := i + n
		i = at + 3
		num, ok := objectNumber(f.b[max(0, at-24):at])
		if !ok || len(f.at) > 1<<20 {
			continue
		}
		body := f.b[i:]
		f.at[num] = body
		switch head := body[:min(len(body), 400)]; {
		case bytes.Contains(head, []byte("/ObjStm")):
			streams = append(streams, body)
		case bytes.Contains(head, []byte("/XRef")):
			f.head(body)
		case bytes.Contains(head, []byte("/Length")):
			n := f.streamEnd(body)
			f.trailers(f.b[plain:i])
			i += n
			plain = i
		}
	}
	f.trailers(f.b[plain:])
	if f.secret {
		return
	}
	for _, s := range streams {
		f.unpack(s)
	}
}

// trailers finds those in what is no stream.
func (f *pdfFile) trailers(b []byte) {
	for {
		i := bytes.Index(b, []byte("trailer"))
		if i < 0 {
			return
		}
		b = b[i+7:]
		f.head(b)
	}
}

// streamEnd is where the stream of an object ends, 0 if that cannot be told
// surely: what is in a stream is nothing of the file's, though it be a PDF file.
func (f *pdfFile) streamEnd(body []byte) int {
	p := pdfParser{b: body[:min(len(body), specBytes)]}
	d, _ := p.value(0).(pdfDict)
	p.blanks()
	rest, ok := bytes.CutPrefix(body[p.i:], []byte("stream"))
	n := int64(num(f.length(d["Length"], body)))
	if !ok || n <= 0 || n > int64(len(rest)) {
		return 0
	}
	end := len(body) - len(rest) + int(n)
	after := body[end:min(len(body), end+16)]
	i := bytes.Index(after, []byte("endstream"))
	if i < 0 {
		return 0
	}
	return end + i
}

// length is the length of a stream, which may stand in an object that follows.
func (f *pdfFile) length(v any, body []byte) any {
	r, ok := v.(pdfRef)
	if !ok || f.at[int(r)] != nil {
		return f.resolve(v)
	}
	body = body[:min(len(body), f.look)]
	before, after, ok := bytes.Cut(body, fmt.Appendf(nil, "\n%d 0 obj", int(r)))
	f.look -= len(before)
	if !ok {
		return nil
	}
	p := pdfParser{b: after[:min(len(after), 32)]}
	return p.value(0)
}

// objectNumber is the number in "12 0 " that stands at the end of b.
func objectNumber(b []byte) (int, bool) {
	m := objectStart().FindSubmatch(b)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(m[1]))
	return n, err == nil
}

var objectStart = expression(`(?:^|[^0-9])([0-9]{1,9})\s+[0-9]{1,5}\s+$`)

// head keeps a trailer.
func (f *pdfFile) head(b []byte) {
	if len(f.heads) >= 1000 {
		return
	}
	p := pdfParser{b: b}
	if d, ok := p.value(0).(pdfDict); ok {
		f.heads = append(f.heads, d)
		if d["Encrypt"] != nil {
			f.secret = true
		}
	}
}

// unpack takes the objects out of an object stream.
func (f *pdfFile) unpack(b []byte) {
	text, d := f.stream(b)
	n, first := int(num(d["N"])), int(num(d["First"]))
	if first < 0 || first > len(text) {
		return
	}
	if f.room -= len(text); f.room < 0 {
		return
	}
	f.loose = append(f.loose, text)
	p := pdfParser{b: text[:first]}
	for range n {
		id, ok := p.value(0).(float64)
		off, ok2 := p.value(0).(float64)
		if !ok || !ok2 || off < 0 || first+int(off) > len(text) || len(f.at) > 1<<20 {
			return
		}
		if _, ok := f.at[int(id)]; !ok {
			f.at[int(id)] = text[first+int(off):]
		}
	}
}

// raw is what a stream object holds, as it stands there, and its dictionary.
func (f *pdfFile) raw(b []byte) ([]byte, pdfDict) {
	p := pdfParser{b: b}
	d, ok := p.value(0).(pdfDict)
	if !ok {
		return nil, nil
	}
	rest := bytes.TrimLeft(b[p.i:], " \t\r\n")
	rest, ok = bytes.CutPrefix(rest, []byte("stream"))
	if !ok {
		return nil, d
	}
	rest = bytes.TrimPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n"))
	if n, ok := f.resolve(d["Length"]).(float64); ok && n >= 0 && int(n) <= len(rest) {
		rest = rest[:int(n)]
	} else if i := bytes.Index(rest, []byte("endstream")); i >= 0 {
		rest = rest[:i]
	}
	return rest, d
}

// stream is what a stream object holds, inflated, and its dictionary.
func (f *pdfFile) stream(b []byte) ([]byte, pdfDict) {
	rest, d := f.raw(b)
	filter := f.resolve(d["Filter"])
	if a, ok := filter.([]any); ok && len(a) == 1 {
		filter = a[0]
	}
	switch filter {
	case nil:
		return rest, d
	case pdfName("FlateDecode"), pdfName("Fl"):
		in := &counter{r: bytes.NewReader(rest)}
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, d
		}
		defer z.Close()
		var out bytes.Buffer
		io.Copy(&out, io.LimitReader(&meter{w: f.w, r: z, in: in}, maxPart/4)) // what is damaged gives its beginning
		return out.Bytes(), d
	}
	return nil, d
}

// resolve is the value that a reference leads to.
func (f *pdfFile) resolve(v any) any {
	for range 8 {
		r, ok := v.(pdfRef)
		if !ok {
			return v
		}
		p := pdfParser{b: f.at[int(r)]}
		v = p.value(0)
	}
	return nil
}

func (f *pdfFile) dict(v any) pdfDict {
	d, _ := f.resolve(v).(pdfDict)
	return d
}

// text is a text string.
func (f *pdfFile) text(v any) string {
	b, _ := f.resolve(v).([]byte)
	return strings.TrimSpace(pdfText(b))
}

func num(v any) float64 {
	n, _ := v.(float64)
	return n
}

// root is the last value of a trailer.
func (f *pdfFile) root(key string) any {
	for i := len(f.heads) - 1; i >= 0; i-- {
		if v := f.heads[i][key]; v != nil {
			return v
		}
	}
	return nil
}

// about reads who made the file, when, and what about.
func (f *pdfFile) about(d *document) {
	catalog := f.dict(f.root("Root"))
	if n := num(f.resolve(f.dict(catalog["Pages"])["Count"])); n > 0 && n < 1e6 {
		d.pages = int(n)
	}
	if f.secret {
		return
	}
	if r, ok := catalog["Metadata"].(pdfRef); ok {
		text, _ := f.stream(f.at[int(r)])
		xmp(d, decode(text, ""))
	}
	info := f.dict(f.root("Info"))
	set := func(s *string, key string) {
		if v := f.text(info[key]); v != "" {
			*s = v
		}
	}
	set(&d.title, "Title")
	set(&d.author, "Author")
	set(&d.subject, "Subject")
	set(&d.generator, "Producer")
	set(&d.generator, "Creator")
	if k := f.text(info["Keywords"]); k != "" {
		d.keywords = strings.FieldsFunc(k, func(r rune) bool { return r == ',' || r == ';' })
	}
	if t := pdfTime(f.text(info["CreationDate"])); t != "" {
		d.created = t
	}
	if t := pdfTime(f.text(info["ModDate"])); t != "" {
		d.modified = t
	}
	if l := f.text(catalog["Lang"]); l != "" {
		d.language = l
	}
	f.outline(d, f.dict(catalog["Outlines"])["First"], 0)
	f.uris(d)
}

// outline walks an outline in the order it is shown.
func (f *pdfFile) outline(d *document, v any, depth int) {
	for depth < 16 && len(d.headings) < maxPoints {
		r, ok := v.(pdfRef)
		if !ok || f.seen[int(r)] {
			return
		}
		f.seen[int(r)] = true
		item := f.dict(r)
		d.heading(f.text(item["Title"]))
		f.outline(d, item["First"], depth+1)
		v = item["Next"]
	}
}

// uris finds where links lead, wherever they stand.
func (f *pdfFile) uris(d *document) {
	for _, b := range append([][]byte{f.b}, f.loose...) {
		for {
			i := bytes.Index(b, []byte("/URI"))
			if i < 0 {
				break
			}
			b = b[i+4:]
			p := pdfParser{b: b}
			if s, ok := p.value(0).([]byte); ok && utf8.Valid(s) {
				d.link(string(s))
			}
		}
	}
}

// xmp reads a packet of XMP: Dublin Core, and the times of creation and change.
func xmp(d *document, b []byte) {
	s := &xmlScanner{b: b}
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen {
			continue
		}
		switch string(s.name) {
		case "Description": // the short form has values as attributes
			if t := s.attr("xmp:CreateDate"); t != "" {
				d.created = isoTime(t)
			}
			if t := s.attr("xmp:ModifyDate"); t != "" {
				d.modified = isoTime(t)
			}
			if t := s.attr("xmp:CreatorTool"); t != "" {
				d.generator = t
			}
		case "title":
			d.title = s.inner()
		case "creator":
			d.author = s.inner()
		case "description":
			d.subject = s.inner()
		case "subject":
			d.keywords = append(d.keywords, s.inner())
		case "CreateDate":
			d.created = isoTime(s.inner())
		case "ModifyDate":
			d.modified = isoTime(s.inner())
		case "CreatorTool":
			d.generator = s.inner()
		case "publisher":
			d.publisher = s.inner()
		case "rights":
			d.extra("Rights", s.inner())
		}
	}
}

// pdfTime is a date such as D:20200102150405+01'00', as isoTime has it.
func pdfTime(s string) string {
	s = strings.TrimPrefix(s, "D:")
	digits := 0
	for digits < len(s) && digits < 14 && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits < 4 {
		return isoTime(s)
	}
	t := (s[:digits] + "00000101000000"[digits:])[:14]
	if digits < 8 { // the month and the day count from 1
		t = s[:digits] + "00000101000000"[digits:]
	}
	out := t[:4] + "-" + t[4:6] + "-" + t[6:8] + "T" + t[8:10] + ":" + t[10:12] + ":" + t[12:14]
	if zone := strings.ReplaceAll(s[digits:], "'", ""); len(zone) == 5 && (zone[0] == '+' || zone[0] == '-') {
		out += zone[:3] + ":" + zone[3:]
	} else if zone == "Z" || strings.HasPrefix(zone, "Z00") {
		out += "Z"
	}
	return isoTime(out)
}

// pdfText is a text string: UTF-16, UTF-8 when marked so, or PDFDocEncoding.
func pdfText(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		u := make([]uint16, 0, len(b)/2)
		for i := 2; i+1 < len(b); i += 2 {
			u = append(u, uint16(b[i])<<8|uint16(b[i+1]))
		}
		return string(utf16.Decode(u))
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return wideText(b[2:])
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return string(bytes.ToValidUTF8(b[3:], []byte("\uFFFD")))
	}
	high := false
	for _, c := range b {
		high = high || c >= 0x80
	}
	if !high || utf8.Valid(b) { // which some write without the mark
		return string(b)
	}
	var out []rune
	for _, c := range b {
		if c >= 0x80 && c < 0xa1 {
			out = append(out, pdfDoc[c-0x80])
		} else {
			out = append(out, rune(c))
		}
	}
	return string(out)
}

// pdfDoc are the characters of PDFDocEncoding from 0x80 on (ISO 32000-1 D.2).
var pdfDoc = []rune("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\uFFFD€")
