// Package essence makes summaries: bytes in, attributes out.
//
// It works in Essence's four steps. Recognition finds the type of an object by
// its name, and by its content where the name is silent or wrong; unnesting
// takes compressed files and archives apart; selection decides what is worth a
// summary; and a summarizer for the type picks the telling parts. An object of
// a type without a summarizer is described by name, size, time and MD5.
//
// Nothing an object contains makes Summarize panic, allocate what the object
// claims, or run for longer than its bounds; what a bound cut off is said in
// the attribute Summary-Limit. The types and their rules are in docs/essence.6.md.
package essence

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"harvest/gather/essence/unpack"
	"harvest/gather/soif"
)

// Version moves when summaries of the same object do, so that they are made
// anew.
const Version = 4

// An Input is an object to summarize. Its bytes are those of Head and then
// those of Rest.
type Input struct {
	URL      string
	Name     string    // its type is recognised by; "" is the last part of the URL
	Type     string    // Content-Type as a server declared it, or ""
	Size     int64     // as declared, < 0 when unknown; what is read counts
	Modified time.Time // zero when unknown
	Head     []byte    // not changed, and not kept
	Rest     io.Reader // nil when Head is all
	FullText bool      // keep the text as Full-Text
	Limits   Limits
	Tables   *Tables   // what its user has set; nil: nothing
	Programs *Programs // what its user has brought; nil: nothing

	// Member takes the objects that are made of members, where the table unnest
	// says so, each as soon as it is made; its error ends Summarize. Without it
	// they are described in the object itself.
	Member func(ctx context.Context, m Member) error
	// Took is told at the end how many they were, and whether that is all there
	// are: nothing was damaged, and no bound was met. It may be nil.
	Took func(n int, whole bool)
}

// Limits bound what a summary costs and holds. A field of zero means its default.
type Limits struct {
	Text    int   // bytes of Full-Text, of an object and its members together; 1 MiB
	Attr    int   // bytes of any other value; 8 KiB
	Head    int   // bytes that a summary is made of, where Input.Head does not say; 1 MiB
	Out     int64 // bytes that unnesting may yield; 256 MiB
	Ratio   int64 // that yield over what it was made from, once past 10 MiB; 200
	Depth   int   // levels of nesting, whatever the table unnest says; 32
	Members int   // of all containers in an object, whatever it says; 100,000
}

func (l *Limits) defaults() {
	set := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	set(&l.Text, 1<<20)
	set(&l.Attr, 8<<10)
	set(&l.Head, 1<<20)
	set(&l.Depth, 32)
	set(&l.Members, 100_000)
	if l.Out <= 0 {
		l.Out = 256 << 20
	}
	if l.Ratio <= 0 {
		l.Ratio = 200
	}
}

// A Trace tells how a summary came about: one step for each decision.
type Trace []Step

// A Step is a decision about an object, or about a member of it.
type Step struct {
	Member string // path of the member in the object, "" for the object
	Step   string // recognize, unnest, select, summarize, derive, rule
	Result string // the type, the number of members, ...
	Rule   string // what decided
}

// String gives the steps a line each, fields separated by a tab.
func (t Trace) String() string {
	var b strings.Builder
	for _, s := range t {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", s.Step, s.Result, s.Rule, s.Member)
	}
	return b.String()
}

// Summarize reads an object to its end and returns its summary, an object of
// template type FILE whose values are its own memory. The attributes are in no
// way about who made it: Update-Time and the like are for the caller to add;
// Time-to-Live and Refresh-Rate are there when a rule has set them, and good. An
// error is one of reading, or of ctx, or wraps ErrDeleted or ErrRejected; hostile
// content is none.
func Summarize(ctx context.Context, in Input) (soif.Object, Trace, error) {
	w := &worker{ctx: ctx, lim: in.Limits, full: in.FullText, tab: in.Tables, brings: in.Programs, url: in.URL}
	if w.tab == nil {
		w.tab = ownTables()
	}
	defer w.close()
	w.lim.defaults()
	w.text = w.lim.Text
	name := in.Name
	if name == "" {
		name = nameOf(in.URL)
	}
	r := newDigest(ctx, in.Head, in.Rest)
	w.base, w.member = r, in.Member
	c := &content{url: in.URL, at: in.URL, name: name, declared: in.Type, head: in.Head, rest: r}
	if len(in.Head) == 0 && in.Rest != nil {
		c, _ = w.nested(name, "", r)
		c.url, c.at, c.declared = in.URL, in.URL, in.Type
	}
	var body soif.Object
	w.safely(&body, c, 0)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return soif.Object{}, w.trace, fmt.Errorf("read: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return soif.Object{}, w.trace, err
	}
	if w.failed != nil {
		return soif.Object{}, w.trace, w.failed
	}

	if in.Took != nil {
		in.Took(w.made, !w.partial)
	}
	o := soif.Object{Type: "FILE", URL: in.URL, Attrs: make([]soif.Attr, 0, len(body.Attrs)+8)}
	add(&o, "Type", c.typ)
	if t := body.Text("Title"); t != "" {
		add(&o, "Title", t)
		body.Del("Title")
	}
	add(&o, "File-Size", strconv.FormatInt(r.n, 10))
	if !in.Modified.IsZero() {
		add(&o, "Last-Modification-Time", Time(in.Modified))
	}
	opt := w.tab.option(c.typ)
	add(&o, "MD5", opt.sum(r, in.URL))
	if w.made > 0 {
		add(&o, "Members", strconv.Itoa(w.made))
	}
	o.Attrs = append(o.Attrs, body.Attrs...)
	if err := w.unwanted(c); err != nil {
		return o, w.trace, err
	}
	if err := w.finish(&o, c); err != nil {
		return o, w.trace, err
	}
	add(&o, "Summary-Limit", w.limitText())
	return o, w.trace, nil
}

// Time writes a time as SOIF objects have it: seconds since 1970.
func Time(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// A worker makes one summary.
type worker struct {
	ctx     context.Context // of the call, which the worker does not outlive
	lim     Limits
	full    bool
	tab     *Tables
	brings  *Programs
	url     string     // of the object, whatever member of it is looked at
	opened  []*os.File // by whole
	held    int        // bytes in memory, by whole
	text    int        // bytes of Full-Text left
	out     int64      // bytes that unnesting has yielded
	members int
	cuts    []cutNote // what was cut, and why

	member   func(context.Context, Member) error // takes members that are objects; may be nil
	made     int                                 // how many it took
	partial  bool                                // there may be more
	failed   error                               // what it said
	base     *digest                             // the object as it comes
	began    time.Time                           // when unnesting did
	time     time.Duration                       // that it may take
	reserved int64                               // memory of decoders
	attrs    int                                 // of members, and the bytes of their values
	bytes    int
	trace    Trace
}

// A content is what is being summarized: an object, or a member of one.
type content struct {
	url      string // of an object; "" of a member
	name     string
	declared string
	path     string // of the member in the object
	typ      string
	media    string // its media type, as the rule has it that told its type; perhaps ""
	form     string // the type that its bytes give away; perhaps ""
	rejected string // the rule by which its type is not wanted
	opt      options
	head     []byte
	rest     io.Reader
	full     io.ReaderAt // all of it, once whole was called
	size     int64       // of full
	pdf      *pdfFile    // as it was read

	in     *content // that it was found in; nil of the object
	at     string   // its URL, that of a member too
	self   [16]byte // MD5 of its head, of a container
	prefix int      // bytes that its attributes' names begin with
	mark   int      // files that were open before it was
	held   int      // bytes of full, in memory
}

// all is the content from its first byte.
func (c *content) all() io.Reader {
	if c.full != nil {
		return io.NewSectionReader(c.full, 0, c.size)
	}
	if c.rest == nil {
		return bytes.NewReader(c.head)
	}
	return io.MultiReader(bytes.NewReader(c.head), c.rest)
}

// safely summarizes a content and survives a summarizer that panics.
func (w *worker) safely(o *soif.Object, c *content, depth int) {
	defer func() {
		if r := recover(); r != nil {
			o.Attrs = nil
			w.limit(c, fmt.Sprintf("the summarizer failed: %v", r))
		}
	}()
	w.summarize(o, c, depth)
}

func (w *worker) summarize(o *soif.Object, c *content, depth int) {
	k, rule := w.recognize(c)
	c.typ, c.opt = k.name, w.tab.option(k.name)
	w.step(c, "recognize", k.name, rule)
	why, wanted := w.tab.selects(k)
	if why == "" {
		why = "no rule rejects it"
	}
	form, policy := w.container(k, c)
	switch {
	case !wanted:
		c.rejected = why
		w.step(c, "select", "rejected", why)
	case is(c.opt.typeOnly):
		w.step(c, "select", "none", "options: typeonly")
	case w.explode(o, c):
		w.step(c, "select", "accepted", why)
		w.step(c, "summarize", strconv.Itoa(len(o.Attrs))+" attributes", "what is in it")
	case form == nil:
		w.step(c, "unnest", "none", k.name+" is no container")
		w.leaf(o, c, k, why)
		w.records(c, k)
	default:
		if form.beside(k) {
			w.leaf(o, c, k, why)
			w.unnest(o, c, depth, form, &policy)
			return
		}
		w.unnest(o, c, depth, form, &policy)
		w.step(c, "select", "accepted", why)
		w.step(c, "summarize", strconv.Itoa(len(o.Attrs))+" attributes", "what is in it")
	}
}

// leaf summarizes what holds nothing else.
func (w *worker) leaf(o *soif.Object, c *content, k *kind, why string) {
	e, ok := summarizers()[k.name]
	if !ok && k.text {
		e, ok = entry{sum: sumText}, true
	}
	if !ok && !w.brings.summarizes(k.name) {
		w.step(c, "select", "none", "no summarizer for "+k.name)
		return
	}
	w.step(c, "select", "accepted", why)
	if w.brought(o, c) || !ok {
		return
	}
	text := c.head
	if c.opt.head > 0 {
		text = text[:min(len(text), c.opt.head)]
	}
	cut := c.opt.head > 0 && c.opt.head < len(c.head)
	if !e.bytes {
		text = unpack.WithoutUU(decode(text, c.declared))
	}
	from := len(o.Attrs)
	e.sum(w, o, c, text)
	c.opt.apply(o, from)
	switch {
	case cut:
		w.limit(c, fmt.Sprintf("summary of the first %d bytes", c.opt.head))
	case c.full == nil && more(c.rest):
		w.limit(c, fmt.Sprintf("summary of the first %d bytes", len(c.head)))
	}
	w.step(c, "summarize", strconv.Itoa(len(o.Attrs))+" attributes", k.name)
}

// maxTrace bounds the steps that are told of an object and its members.
const maxTrace = 10_000

func (w *worker) step(c *content, step, result, rule string) {
	switch {
	case len(w.trace) < maxTrace:
		w.trace = append(w.trace, Step{c.path, step, result, rule})
	case len(w.trace) == maxTrace:
		w.trace = append(w.trace, Step{"", "trace", "cut", fmt.Sprintf("more than %d steps", maxTrace)})
	}
}

// limit notes that a bound has been met, and what it was.
func (w *worker) limit(c *content, what string) {
	w.step(c, "select", "cut", what)
	w.note(c.path, what)
}

// fullText keeps text as Full-Text, as far as there is room for it.
func (w *worker) fullText(o *soif.Object, c *content, text []byte) {
	full := w.full
	if c.opt.fullText != nil {
		full = *c.opt.fullText
	}
	if !full || len(text) == 0 {
		return
	}
	if c.opt.text > 0 && len(text) > c.opt.text {
		w.limit(c, fmt.Sprintf("Full-Text cut at %d of %d bytes", c.opt.text, len(text)))
		text = cutText(text, c.opt.text)
	}
	if len(text) > w.text {
		w.limit(c, fmt.Sprintf("Full-Text cut at %d of %d bytes", w.text, len(text)))
		text = cutText(text, w.text)
	}
	w.text -= len(text)
	if len(text) > 0 {
		o.Add("Full-Text", append([]byte(nil), text...))
	}
}

// set keeps an attribute's text, unless it is empty, in the bounds of one.
func (w *worker) set(o *soif.Object, name, text string) {
	if len(text) > w.lim.Attr {
		text = string(cutText([]byte(text), w.lim.Attr))
	}
	add(o, name, text)
}

func add(o *soif.Object, name, text string) {
	if text != "" {
		o.Add(name, []byte(text))
	}
}

// cutText shortens text to n bytes at most, after a word if one ends near.
func cutText(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	i := max(n, 0)
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	for j := i; j > 0 && j > i-100; j-- {
		if text[j] == ' ' || text[j] == '\n' {
			return text[:j]
		}
	}
	return text[:i]
}

// nameOf is the last part of a URL's path, with its escapes undone.
func nameOf(url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	if i := strings.Index(url, "://"); i >= 0 {
		if url = url[i+3:]; strings.IndexByte(url, '/') < 0 {
			return ""
		}
	}
	if strings.HasSuffix(url, "/") {
		return ""
	}
	name := path.Base(url)
	if strings.IndexByte(name, '%') < 0 {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if c, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(c))
				i += 2
				continue
			}
		}
		b = append(b, name[i])
	}
	return string(b)
}

// A digest is the part of an object after its head; it knows the size and the
// MD5 of all that has been read, head included.
type digest struct {
	ctx context.Context // of the call
	r   io.Reader
	md5 hash.Hash
	n   int64
	err error

	waited time.Duration // for what is read
}

func newDigest(ctx context.Context, head []byte, rest io.Reader) *digest {
	d := &digest{ctx: ctx, r: rest, md5: md5.New(), n: int64(len(head))}
	d.md5.Write(head)
	if rest == nil {
		d.err = io.EOF
	}
	return d
}

func (d *digest) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if err := d.ctx.Err(); err != nil {
		d.err = err
		return 0, err
	}
	start := time.Now()
	n, err := d.r.Read(p)
	d.waited += time.Since(start)
	d.md5.Write(p[:n])
	d.n += int64(n)
	d.err = err
	return n, err
}

func (d *digest) sum() string { return hex.EncodeToString(d.md5.Sum(nil)) }

// more reports whether a reader may have something left.
func more(r io.Reader) bool {
	switch r := r.(type) {
	case nil:
		return false
	case *digest:
		return !errors.Is(r.err, io.EOF)
	case *tail:
		return !r.end
	}
	return true
}
