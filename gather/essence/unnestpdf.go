package essence

import (
	"bytes"
	"encoding/ascii85"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zlib"

	"harvest/gather/essence/unpack"
)

// A pdfFiles is a PDF file as an archive of what is attached to it: first what its
// tree of names has, in its order, then what else says that it is a file, such as a
// pin on a page, in the order of objects' numbers.
type pdfFiles struct {
	f     *pdfFile
	w     *worker
	in    *counter
	specs []pdfSpec
	seen  map[pdfRef]bool // streams, and nodes of the tree
	r     io.Reader
}

// A pdfSpec is a file specification with the file in it.
type pdfSpec struct {
	d    pdfDict
	name string // in the tree, for one that has none itself
}

// specBytes is how far into an object is looked for a file specification.
const specBytes = 4 << 10

// openPDF takes what sumPDF has read, or reads it.
func openPDF(w *worker, c *content, in *counter) (archive, func(), error) {
	f, err := w.pdf(c)
	if err != nil {
		return nil, nil, err
	}
	c.pdf = nil
	a := &pdfFiles{f: f, w: w, in: in, seen: make(map[pdfRef]bool)}
	if c.size > maxPDF {
		w.short(c, fmt.Sprintf("attachments looked for in %d of %d bytes", maxPDF, c.size))
	}
	if f.secret {
		return w.encryptedPDF(c, in)
	}
	if !f.mentions("/EF") {
		return &pdfFiles{}, keepNothing, nil
	}
	size := len(f.b)
	for _, b := range f.loose {
		size += len(b)
	}
	done, err := w.reserve(int64(size))
	if err != nil {
		return nil, nil, err
	}
	catalog := f.dict(f.root("Root"))
	a.tree(f.dict(catalog["Names"])["EmbeddedFiles"], 0)
	a.elsewhere()
	return a, done, nil
}

// mentions reports whether a word stands anywhere in a file.
func (f *pdfFile) mentions(word string) bool {
	return slices.ContainsFunc(append([][]byte{f.b}, f.loose...), func(b []byte) bool { return bytes.Contains(b, []byte(word)) })
}

// tree walks the tree of names of embedded files.
func (a *pdfFiles) tree(v any, depth int) {
	if r, ok := v.(pdfRef); ok {
		if a.seen[r] {
			return
		}
		a.seen[r] = true
	}
	if depth > 32 || a.w.over() != nil {
		return
	}
	node := a.f.dict(v)
	names, _ := a.f.resolve(node["Names"]).([]any)
	for i := 0; i+1 < len(names); i += 2 {
		a.add(a.f.dict(names[i+1]), a.f.text(names[i]))
	}
	kids, _ := a.f.resolve(node["Kids"]).([]any)
	for _, k := range kids {
		a.tree(k, depth+1)
	}
}

// elsewhere looks at all objects.
func (a *pdfFiles) elsewhere() {
	var nums []int
	for n, b := range a.f.at {
		if b = b[:min(len(b), specBytes)]; bytes.Contains(b, []byte("/EF")) {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	for _, n := range nums {
		if a.w.over() != nil {
			return
		}
		b := a.f.at[n]
		p := pdfParser{b: b[:min(len(b), specBytes)]}
		d, _ := p.value(0).(pdfDict)
		a.add(d, "")
		if fs, ok := d["FS"].(pdfDict); ok { // a pin with the specification in it
			a.add(fs, "")
		}
	}
}

// add keeps a specification, if it has a file that no other has.
func (a *pdfFiles) add(d pdfDict, name string) {
	r, ok := a.f.file(d)
	if !ok || a.seen[r] {
		return
	}
	a.seen[r] = true
	a.specs = append(a.specs, pdfSpec{d, name})
}

// file is the stream of a specification.
func (f *pdfFile) file(d pdfDict) (pdfRef, bool) {
	ef := f.dict(d["EF"])
	for _, key := range []string{"UF", "F", "Unix", "DOS", "Mac"} {
		if r, ok := ef[key].(pdfRef); ok {
			return r, true
		}
	}
	return 0, false
}

func (a *pdfFiles) Next() (*unpack.Header, error) {
	a.r = nil
	if len(a.specs) == 0 {
		return nil, io.EOF
	}
	s := a.specs[0]
	a.specs = a.specs[1:]
	h := &unpack.Header{Name: s.name, Size: -1, Packed: -1, Regular: true}
	for _, key := range []string{"Mac", "DOS", "Unix", "F", "UF"} { // the last is best
		if n := a.f.text(s.d[key]); n != "" {
			h.Name = n
		}
	}
	r, _ := a.f.file(s.d)
	raw, d := a.f.raw(a.f.at[int(r)])
	params := a.f.dict(d["Params"])
	if n := num(a.f.resolve(params["Size"])); n > 0 {
		h.Size = int64(n)
	}
	h.Modified, _ = time.Parse(time.RFC3339, pdfTime(a.f.text(params["ModDate"])))
	h.Err = a.open(raw, d)
	return h, nil
}

// open begins to read a stream.
func (a *pdfFiles) open(raw []byte, d pdfDict) error {
	if raw == nil {
		return fmt.Errorf("an attachment that is not there: %w", unpack.ErrDamaged)
	}
	a.in.r = &timed{a.w, bytes.NewReader(raw)}
	a.r = a.in
	filters, ok := a.f.resolve(d["Filter"]).([]any)
	if !ok && d["Filter"] != nil {
		filters = []any{d["Filter"]}
	}
	if len(filters) > 4 {
		return unpack.Unread(fmt.Sprintf("%d filters", len(filters)))
	}
	for _, v := range filters {
		switch name, _ := a.f.resolve(v).(pdfName); name {
		case "FlateDecode", "Fl":
			z, err := zlib.NewReader(a.r)
			if err != nil {
				return fmt.Errorf("%w: %w", err, unpack.ErrDamaged)
			}
			a.r = z
		case "ASCII85Decode", "A85":
			body, _, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("<~")), []byte("~>"))
			a.in.r = &timed{a.w, bytes.NewReader(body)}
			a.r = ascii85.NewDecoder(a.r)
		default:
			return unpack.Unread(fmt.Sprintf("filter %.20s", name))
		}
	}
	if p := a.f.dict(d["DecodeParms"]); num(p["Predictor"]) > 1 {
		return unpack.Unread("a predictor")
	}
	return nil
}

func (a *pdfFiles) Read(p []byte) (int, error) {
	if a.r == nil {
		return 0, io.EOF
	}
	return a.r.Read(p)
}
