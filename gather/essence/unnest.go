package essence

import (
	"crypto/md5"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"path"
	"strconv"
	"strings"

	"harvest/gather/essence/unpack"
	"harvest/gather/soif"
)

// Unnesting takes what is compressed, packed or sent along out of what it is in,
// to any depth. It streams: a member is summarized while it is read, and of an
// archive no more is held than its index asks for. Nothing is ever written to a
// place that a name in an archive could lead to.
//
// What is merely compressed is summarized in its stead. The members of an archive
// become Embed<n>- attributes of its object or objects of their own, as the table
// unnest says: see policy.

// A Member is an object made of what is in another.
type Member struct {
	Container string // URL of the document that it is in, at whatever depth
	Object    soif.Object
}

// An archive gives its members one after another.
type archive interface {
	Next() (*unpack.Header, error) // io.EOF at the end
	io.Reader                      // of the member
}

// container is the format that a content is taken apart as, nil if it is not, and
// what is to be done with it.
func (w *worker) container(k *kind, c *content) (*format, policy) {
	p := w.tab.policy(k)
	if p.as == "no" || len(c.head) == 0 || w.brings.summarizes(k.name) {
		return nil, p
	}
	for i := range formats {
		f := &formats[i]
		if p.wants(f) && f.is(c) {
			return f, p
		}
	}
	return nil, p
}

// beside reports whether a content is a document of its own besides what is in it.
func (f *format) beside(k *kind) bool {
	_, ok := summarizers()[k.name]
	return f.decode == nil && (ok || k.text) && f.name != "shar" && k.name != "Uuencoded"
}

// wants reports whether a type may be of a format.
func (p *policy) wants(f *format) bool {
	for _, name := range p.formats {
		if name == f.name {
			return true
		}
	}
	return p.formats == nil
}

// unnest takes a content apart, unless it is too deep or has itself inside. It
// reports whether it did.
func (w *worker) unnest(o *soif.Object, c *content, depth int, f *format, p *policy) {
	if deepest := min(w.lim.Depth, max(p.depth, 1)); depth >= deepest {
		w.short(c, fmt.Sprintf("nested more than %d deep", deepest))
		return
	}
	head := c.head[:min(len(c.head), w.lim.Head)]
	c.self = md5.Sum(head)
	for up := c.in; up != nil; up = up.in {
		if up.self == c.self && len(up.head) == len(c.head) {
			w.limit(c, "it contains itself")
			return
		}
	}
	w.clock(p.time)
	if f.decode != nil {
		w.decode(o, c, depth, f)
	} else {
		w.takeApart(o, c, depth, f, p)
	}
}

// decode summarizes what is in a compressed file as if it were the file itself.
func (w *worker) decode(o *soif.Object, c *content, depth int, f *format) {
	outer := c.form
	if outer == "" {
		outer = c.typ
	}
	in := &counter{r: &timed{w, c.all()}}
	r, done, err := f.decode(w, c, in)
	if err != nil {
		giveBack(done)
		w.damage(c, f.name, err)
		return
	}
	defer done()
	out := &meter{w: w, r: r, in: in}
	m, t := w.nested(f.inner(c), c.path, out)
	m.in, m.at, m.prefix = c, c.at, c.prefix
	w.step(c, "unnest", m.name, f.name)
	w.summarize(o, m, depth+1)
	w.drain(c, f.name, t)
	c.typ = w.typeOf(c, m)
	add(o, "Presentation", outer)
	add(o, "Unnested-Size", strconv.FormatInt(out.n, 10))
}

func giveBack(done func()) {
	if done != nil {
		done()
	}
}

// typeOf is the type of what was compressed: that of what is in it, but a tar
// archive is called after its compression, and what stands on such keeps its name.
func (w *worker) typeOf(c, m *content) string {
	k := w.tab.kind(c.typ)
	tars := k.is(w.tab.kind("GNUCompressedTar")) || k.is(w.tab.kind("CompressedTar"))
	switch {
	case m.typ == "":
		return c.typ
	case m.typ != "Tar":
		return m.typ
	case tars:
		return c.typ
	case c.typ == "GNUCompressed":
		return "GNUCompressedTar"
	}
	return "CompressedTar"
}

// drain reads what a summarizer left, so that damage and bombs are found, and
// tells of them.
func (w *worker) drain(c *content, what string, t *tail) {
	if !t.end {
		io.Copy(io.Discard, t)
	}
	if t.err != nil {
		w.damage(c, what, t.err)
	}
}

// takeApart summarizes the members of an archive.
func (w *worker) takeApart(o *soif.Object, c *content, depth int, f *format, p *policy) {
	in := &counter{r: &timed{w, c.all()}}
	a, done, err := f.open(w, c, in)
	if err != nil {
		giveBack(done)
		w.damage(c, f.name, err)
		return
	}
	defer done()
	t := &taking{w: w, o: o, c: c, in: in, a: a, f: f, p: p, depth: depth}
	if p.as == "objects" && w.member != nil {
		t.names = make(map[uint64]struct{})
		t.seed = maphash.MakeSeed()
	}
	t.all()
	t.dropTwins()
	if t.names == nil && c.in != nil && c.in.typ == "SourceDistribution" {
		distribution(w, o)
	}
	w.step(c, "unnest", strconv.Itoa(t.n)+" members", f.name)
	if n, ok := a.(interface {
		Notes(*worker, *soif.Object, *content)
	}); ok {
		n.Notes(w, o, c)
	}
}

// A taking is an archive whose members are being taken.
type taking struct {
	w     *worker
	o     *soif.Object
	c     *content
	in    *counter
	a     archive
	f     *format
	p     *policy
	depth int
	n     int
	names map[uint64]struct{} // of objects, so that each has a URL of its own
	have  []string            // names of members, by number
	here  map[string]bool     // the same, where members are objects
	seed  maphash.Seed
}

// all takes the members, until a bound is met.
func (t *taking) all() {
	w := t.w
	for w.over() == nil {
		h, err := t.a.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			w.damage(t.c, t.f.name, err)
			return
		}
		if !h.Regular || !t.p.takes(h.Name) {
			continue
		}
		if t.n >= t.p.members {
			w.short(t.c, fmt.Sprintf("only the first %d members", t.p.members))
			return
		}
		if w.members >= w.lim.Members {
			w.short(t.c, fmt.Sprintf("only the first %d members", w.lim.Members))
			return
		}
		w.members++
		t.n++
		if !t.one(h) {
			return
		}
	}
	w.damage(t.c, t.f.name, w.over())
}

// one summarizes a member; false means that there is no room for more.
func (t *taking) one(h *unpack.Header) bool {
	w := t.w
	name := clean(h.Name)
	at := name
	if t.c.path != "" {
		at = t.c.path + "/" + name
	}
	t.have = append(t.have, name)
	if t.names != nil {
		if why := t.twin(name); why != "" {
			w.step(&content{path: at}, "select", "rejected", why)
			t.n--
			return true
		}
		return t.object(h, name, at)
	}
	prefix := t.c.prefix + len("Embed-") + len(strconv.Itoa(t.n))
	if prefix+longestName > maxPrefix {
		w.limit(t.c, "nested too deep for the names of attributes")
		return false
	}
	m, e := t.summary(h, name, at, memberURL(t.c.at, h.Name), prefix)
	if m != nil {
		w.release(m)
	}
	fit(e, maxPrefix-prefix)
	if t.c.attrs(w, e); w.attrs > maxMemberAttrs || w.bytes > maxMemberBytes {
		w.limit(t.c, fmt.Sprintf("no room for what is in it past %s", name))
		return false
	}
	t.o.AddEmbed(t.n, e)
	return true
}

// summary is what is told of a member, and the content that it was, nil if it
// could not be read.
func (t *taking) summary(h *unpack.Header, name, at, url string, prefix int) (*content, *soif.Object) {
	w := t.w
	e := new(soif.Object)
	add(e, "Nested-Filename", name)
	if h.Err != nil {
		if h.Size >= 0 {
			add(e, "File-Size", strconv.FormatInt(h.Size, 10))
		}
		partial := w.partial
		w.damage(&content{path: at}, t.f.name, h.Err)
		w.partial = partial // it is known, if nothing of what is in it
		return nil, e
	}
	d := newDigest(w.ctx, nil, &meter{w: w, r: t.a, in: t.in, most: t.p.size})
	m, rest := w.nested(path.Base(name), at, d)
	m.in, m.prefix, m.at = t.c, prefix, url
	var body soif.Object
	w.safely(&body, m, t.depth+1)
	w.drain(m, t.f.name, rest)
	add(e, "Type", m.typ)
	add(e, "File-Size", strconv.FormatInt(d.n, 10))
	if !h.Modified.IsZero() && h.Modified.Unix() > 0 {
		add(e, "Last-Modification-Time", Time(h.Modified))
	}
	if rest.err == nil && !rest.left {
		add(e, "MD5", d.sum())
	}
	if m.rejected != "" {
		add(e, "Rejected", m.rejected)
	}
	e.Attrs = append(e.Attrs, body.Attrs...)
	return m, e
}

// What the names and the values of one object may come to: what soif.Limits has
// for a reader that says nothing, and an object that can be held.
const (
	maxPrefix      = 256 // of a name, with what it begins with
	longestName    = 22  // Last-Modification-Time
	maxMemberAttrs = 50_000
	maxMemberBytes = 16 << 20
)

// fit drops attributes whose names have no room.
func fit(e *soif.Object, room int) {
	kept := e.Attrs[:0]
	for _, a := range e.Attrs {
		if len(a.Name) <= room {
			kept = append(kept, a)
		}
	}
	e.Attrs = kept
}

// attrs counts what a member has besides what its own members have, which were
// counted.
func (c *content) attrs(w *worker, e *soif.Object) {
	for _, a := range e.Attrs {
		if soif.Depth(a.Name) == 0 {
			w.attrs++
			w.bytes += len(a.Value)
		}
	}
}

// nested makes a content of a stream found inside another.
func (w *worker) nested(name, path string, r io.Reader) (*content, *tail) {
	t := &tail{r: r}
	head, err := io.ReadAll(io.LimitReader(t, int64(w.lim.Head)))
	if err != nil || len(head) < w.lim.Head {
		t.end = true
	}
	return &content{name: name, path: path, head: head, rest: t, mark: len(w.opened)}, t
}

// clean makes a member's name fit to be shown: without control bytes, bounded.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name[:min(len(name), 2048)], "?"))
	if len(name) > 512 {
		name = strings.ToValidUTF8(name[:512], "")
	}
	return name
}
