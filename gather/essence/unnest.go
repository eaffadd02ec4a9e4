package essence

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"harvest/gather/soif"
)

// slack is what unnesting may yield before its ratio to what it was made from
// is looked at: short files of blanks are no bombs.
const slack = 10 << 20

// A bomb is the error of unnesting that yields too much.
type bomb struct{ what string }

func (b bomb) Error() string { return b.what }

// A meter counts what unnesting yields, at whatever level, as it comes out: no
// header is believed. in counts what it is made from.
type meter struct {
	w  *worker
	r  io.Reader
	in *counter // nil when it is not compressed
	n  int64
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	m.w.out += int64(n)
	switch {
	case m.w.out > m.w.lim.Out:
		return n, bomb{fmt.Sprintf("unnesting stopped after %d bytes", m.w.lim.Out)}
	case m.in != nil && m.w.out > slack && m.w.out > m.w.lim.Ratio*max(m.in.n, 1):
		return n, bomb{fmt.Sprintf("unnesting stopped: more than %d times the size", m.w.lim.Ratio)}
	}
	return n, err
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// A tail is what follows the head that has been read of a stream.
type tail struct {
	r   io.Reader
	end bool
	err error
}

func (t *tail) Read(p []byte) (int, error) {
	if t.end {
		if t.err != nil {
			return 0, t.err
		}
		return 0, io.EOF
	}
	n, err := t.r.Read(p)
	if err != nil {
		t.end = true
		if err != io.EOF {
			t.err = err
		}
	}
	return n, err
}

// nested makes a content of a stream found inside another.
func (w *worker) nested(name, path string, r io.Reader) (*content, *tail) {
	t := &tail{r: r}
	var head bytes.Buffer
	_, err := io.CopyN(&head, t, int64(w.lim.Head))
	if err != nil {
		t.end = true
	}
	return &content{name: name, path: path, head: head.Bytes(), rest: t}, t
}

// containers are the types that unnest takes apart.
var containers = map[string]bool{"GNUCompressed": true, "Tar": true}

// unnest summarizes what is in a container.
func (w *worker) unnest(o *soif.Object, c *content, depth int) {
	switch c.typ {
	case "GNUCompressed":
		gunzip(w, o, c, depth)
	case "Tar":
		untar(w, o, c, depth)
	}
}

// gunzip summarizes what is in a gzip file as if it were the file itself.
func gunzip(w *worker, o *soif.Object, c *content, depth int) {
	in := &counter{r: c.all()}
	z, err := gzip.NewReader(in)
	if err != nil {
		w.limit(c, "gzip: "+err.Error())
		return
	}
	defer z.Close()
	name := strings.TrimSuffix(strings.TrimSuffix(c.name, ".gz"), ".GZ")
	if s, ok := strings.CutSuffix(name, ".tgz"); ok {
		name = s + ".tar"
	}
	out := &meter{w: w, r: z, in: in}
	m, t := w.nested(name, c.path, out)
	w.step(c, "unnest", name, "gzip")
	w.summarize(o, m, depth+1)
	w.drain(c, "gzip", t)
	outer := c.typ
	c.typ = m.typ
	if m.typ == "Tar" {
		c.typ = "GNUCompressedTar"
	}
	add(o, "Presentation", outer)
	add(o, "Unnested-Size", strconv.FormatInt(out.n, 10))
}

// drain reads what a summarizer left, so that damage and bombs are found, and
// tells of them.
func (w *worker) drain(c *content, what string, t *tail) {
	if !t.end {
		io.Copy(io.Discard, t)
	}
	if t.err == nil {
		return
	}
	var b bomb
	if !errors.As(t.err, &b) {
		w.limit(c, what+": "+t.err.Error())
	} else if !w.told(b.what) {
		w.limit(c, b.what)
	}
}

// told reports whether a limit has been noted, for whatever member.
func (w *worker) told(what string) bool {
	for _, l := range w.limits {
		if strings.HasSuffix(l, what) {
			return true
		}
	}
	return false
}

// untar summarizes the members of an archive, as Embed<n>- attributes.
func untar(w *worker, o *soif.Object, c *content, depth int) {
	r := tar.NewReader(c.all())
	n := 0
	defer func() { w.step(c, "unnest", strconv.Itoa(n)+" members", "tar") }()
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			var b bomb
			if !errors.As(err, &b) {
				w.limit(c, "tar: "+err.Error())
			} else if !w.told(b.what) {
				w.limit(c, b.what)
			}
			return
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse {
			continue
		}
		if w.members++; w.members > w.lim.Members {
			w.limit(c, fmt.Sprintf("only the first %d members", w.lim.Members))
			return
		}
		n++
		w.embed(o, c, n, h, r, depth)
		if w.out > w.lim.Out || w.ctx.Err() != nil {
			return
		}
	}
}

// embed adds the summary of one member of an archive.
func (w *worker) embed(o *soif.Object, c *content, n int, h *tar.Header, r io.Reader, depth int) {
	name := clean(h.Name)
	at := name
	if c.path != "" {
		at = c.path + "/" + name
	}
	d := newDigest(w.ctx, nil, &meter{w: w, r: r})
	m, t := w.nested(path.Base(name), at, d)
	var e soif.Object
	add(&e, "Nested-Filename", name)
	var body soif.Object
	w.safely(&body, m, depth+1)
	w.drain(m, "tar", t)
	add(&e, "Type", m.typ)
	add(&e, "File-Size", strconv.FormatInt(d.n, 10))
	if !h.ModTime.IsZero() && h.ModTime.Unix() > 0 {
		add(&e, "Last-Modification-Time", Time(h.ModTime))
	}
	if t.err == nil {
		add(&e, "MD5", d.sum())
	}
	e.Attrs = append(e.Attrs, body.Attrs...)
	o.AddEmbed(n, &e)
}

// clean makes a member's name fit to be shown: without control bytes, bounded.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	if len(name) > 512 {
		name = strings.ToValidUTF8(name[:512], "")
	}
	return name
}

func readerOf(b []byte) io.Reader { return bytes.NewReader(b) }
