package essence

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/flate"
)

// A parcel is a zip file that is one document: parts by name. What its parts
// yield is counted with all that is unnested, so that a bomb in a document is
// one.
type parcel struct {
	w     *worker
	c     *content
	parts map[string]*zip.File
	names []string // in the order of the file
}

// maxParts bounds the parts that a document may have.
const maxParts = 20000

// maxPart is how much is read of one part.
const maxPart = 64 << 20

// parcel opens a document that is a zip file.
func (w *worker) parcel(c *content) (*parcel, error) {
	r, size, err := w.whole(c)
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	if len(z.File) > maxParts {
		w.limit(c, fmt.Sprintf("only the first %d of %d parts", maxParts, len(z.File)))
		z.File = z.File[:maxParts]
	}
	p := &parcel{w: w, c: c, parts: make(map[string]*zip.File, len(z.File))}
	for _, f := range z.File {
		name := strings.TrimPrefix(strings.ReplaceAll(f.Name, `\`, "/"), "/")
		if _, ok := p.parts[name]; !ok {
			p.parts[name] = f
			p.names = append(p.names, name)
		}
	}
	return p, nil
}

// part reads a part, nil if there is none. One that is damaged gives what could
// be read of it, and a bomb no more than there is room for; both are told.
func (p *parcel) part(name string) []byte {
	f := p.find(name)
	if f == nil || p.w.out > p.w.lim.Out {
		return nil
	}
	raw, err := f.OpenRaw()
	if err != nil {
		p.w.limit(p.c, name+": "+err.Error())
		return nil
	}
	in := &counter{r: raw}
	var plain io.Reader = in
	switch f.Method {
	case zip.Store:
	case zip.Deflate:
		z := flate.NewReader(in)
		defer z.Close()
		plain = z
	default:
		p.w.limit(p.c, fmt.Sprintf("%s: zip method %d is not known", name, f.Method))
		return nil
	}
	if f.Flags&1 != 0 {
		p.w.limit(p.c, name+": is encrypted")
		return nil
	}
	var out bytes.Buffer
	m := &meter{w: p.w, r: plain, in: in}
	_, err = io.Copy(&out, io.LimitReader(m, maxPart))
	var b bomb
	switch {
	case errors.As(err, &b):
		if !p.w.told(b.what) {
			p.w.limit(p.c, b.what)
		}
	case err != nil && p.w.ctx.Err() == nil:
		p.w.limit(p.c, name+": "+err.Error())
	case out.Len() == maxPart:
		p.w.limit(p.c, fmt.Sprintf("%s: only the first %d bytes", name, maxPart))
	}
	return out.Bytes()
}

// find looks a part up, in the case it is written in or another: what made a
// document need not have cared.
func (p *parcel) find(name string) *zip.File {
	if f, ok := p.parts[name]; ok {
		return f
	}
	for _, n := range p.names {
		if strings.EqualFold(n, name) {
			return p.parts[n]
		}
	}
	return nil
}

// xml reads a part to scan it.
func (p *parcel) xml(name string) *xmlScanner {
	return &xmlScanner{b: decode(p.part(name), "")}
}

// beside resolves the name of a part that another one refers to.
func beside(part, target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return path.Join(path.Dir(part), target)
}
