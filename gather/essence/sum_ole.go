package essence

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/richardlehane/mscfb"
	"github.com/richardlehane/msoleps"
	"github.com/richardlehane/msoleps/types"

	"harvest/gather/soif"
)

// A compound is an OLE2 file: streams in folders, by path.
type compound struct {
	w       *worker
	c       *content
	streams map[string]*mscfb.File
	names   []string
}

// maxStream is how much is read of one stream.
const maxStream = 32 << 20

func (w *worker) compound(c *content) (*compound, error) {
	r, _, err := w.whole(c)
	if err != nil {
		return nil, err
	}
	m, err := mscfb.New(r)
	if err != nil {
		return nil, err
	}
	f := &compound{w: w, c: c, streams: make(map[string]*mscfb.File)}
	for e, err := m.Next(); err == nil && len(f.names) < maxParts; e, err = m.Next() {
		name := strings.Join(append(e.Path[:len(e.Path):len(e.Path)], e.Name), "/")
		if _, ok := f.streams[name]; !ok && e.Size > 0 {
			f.streams[name] = e
			f.names = append(f.names, name)
		}
	}
	return f, nil
}

// stream reads a stream, nil if there is none.
func (f *compound) stream(name string) []byte {
	e := f.streams[name]
	if e == nil || f.w.out > f.w.lim.Out {
		return nil
	}
	var out bytes.Buffer
	_, err := io.Copy(&out, io.LimitReader(&meter{w: f.w, r: e}, min(e.Size, maxStream)))
	var b bomb
	if errors.As(err, &b) && !f.w.told(b.what) {
		f.w.limit(f.c, b.what)
	}
	return out.Bytes()
}

// sumOLE2 summarizes what programs of Microsoft kept their documents in until
// 2007, and mail still: what it is tell the names of its streams.
func sumOLE2(w *worker, o *soif.Object, c *content, _ []byte) {
	f, err := w.compound(c)
	if err != nil {
		w.limit(c, "ole2: "+err.Error())
		return
	}
	d := w.document()
	for _, name := range f.names {
		if e := f.streams[name]; len(e.Path) == 0 && msoleps.IsMSOLEPS(e.Initial) {
			f.properties(d, f.stream(name))
		}
	}
	what := ""
	switch {
	case f.streams["WordDocument"] != nil:
		what = "word"
		f.word(d)
	case f.streams["Workbook"] != nil:
		what = "excel"
		biff(d, f.stream("Workbook"))
	case f.streams["Book"] != nil:
		what = "excel"
		biff(d, f.stream("Book"))
	case f.streams["PowerPoint Document"] != nil:
		what = "powerpoint"
		slides(d, f.stream("PowerPoint Document"))
	case f.streams["EncryptedPackage"] != nil:
		w.limit(c, "is encrypted")
	case f.streams["__properties_version1.0"] != nil:
		what = "message"
		f.message(d)
	case f.installer():
		what = "installer"
		d.title, d.subject, d.pages = d.subject, "", 0 // "Installation Database", and the least version of the installer
	}
	if what != "" {
		w.step(c, "select", what, "streams")
	}
	d.put(w, o, c)
}

// installer reports whether the streams are tables of Windows Installer, whose names
// are packed into characters that no name has.
func (f *compound) installer() bool {
	for _, name := range f.names {
		if r, _ := utf8.DecodeRuneInString(name); r >= 0x3800 && r <= 0x4840 {
			return true
		}
	}
	return false
}

// properties reads a property set. One that is damaged tells what was read of it:
// msoleps believes the sizes in it, and panics.
func (f *compound) properties(d *document, b []byte) {
	if len(b) > 1<<20 {
		return
	}
	defer func() { _ = recover() }()
	set, err := msoleps.NewFrom(bytes.NewReader(b))
	if err != nil {
		return
	}
	page := 0
	for _, p := range set.Property {
		if p == nil || p.T == nil {
			continue
		}
		v := strings.TrimSpace(strings.Trim(oleText(p.T, page), "\x00"))
		if v == "" || len(v) > 64<<10 {
			continue
		}
		switch p.Name {
		case "CodePage":
			n, _ := strconv.Atoi(v)
			page = int(uint16(n)) // 65001 is written as -535
		case "AppName":
			d.generator = v
		case "CreateTime":
			d.created = oleTime(v)
		case "LastSaveTime":
			d.modified = oleTime(v)
		case "PageCount", "Slide count":
			if n, err := strconv.Atoi(v); err == nil && n > 0 && n < 1e6 {
				d.pages = n
			}
		default:
			d.property(strings.ToLower(p.Name), v)
		}
	}
}

// oleText is the value of a property, text in the code page of its set: msoleps
// knows UTF-16 only.
func oleText(t types.Type, page int) string {
	s, ok := t.(*types.CodeString)
	if !ok || page == 1200 {
		return t.String()
	}
	chars, _, _ := bytes.Cut(s.Chars, []byte{0})
	if e := rtfCharset("cpg", page); e != nil && !utf8.Valid(chars) { // some write UTF-8 whatever they declare
		chars, _ = e.NewDecoder().Bytes(chars)
	}
	return string(chars)
}

// oleTime writes a time of a property; one that is not set reads as 1601.
func oleTime(v string) string {
	if i := strings.Index(v, " +"); i > 0 {
		v = v[:i]
	}
	v, _, _ = strings.Cut(v, ".")
	if v = isoTime(v); v < "1970-01-02" {
		return ""
	}
	return v + "Z"
}
