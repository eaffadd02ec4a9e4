package soif

import (
	"bytes"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"syscall"
)

// Limits bound what is decoded. A field of zero or less means its default, and
// math.MaxInt64 no limit. Nothing is ever allocated because a byte count claims
// it: memory grows with the bytes that are there, to at most about three times
// the largest object, and with some 56 bytes an attribute.
type Limits struct {
	Object int64 // bytes of one object as encoded, 64 MiB
	Value  int64 // bytes of one value, 64 MiB
	Attrs  int64 // attributes of one object, 65,536
	Name   int64 // bytes of an attribute's name or a template type, 256
	URL    int64 // bytes of a URL, 16,384
	Depth  int64 // levels of Embed<n>- in a name, 32
}

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		field *int64
		value int64
	}{
		{&l.Object, 64 << 20}, {&l.Value, 64 << 20}, {&l.Attrs, 1 << 16},
		{&l.Name, 256}, {&l.URL, 16 << 10}, {&l.Depth, 32},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
		*f.field = min(*f.field, 1<<50) // far from overflow in sums
	}
	return l
}

// An Error says where decoding or a check met trouble, and with what. Its class,
// for errors.Is, is io.ErrUnexpectedEOF when the input ends inside an object,
// syscall.EFBIG when a limit is passed, and fs.ErrInvalid otherwise.
type Error struct {
	Line   int64  // counted from 1
	Offset int64  // bytes from the start of the input
	Object string // URL of the object, @TYPE if it has none, or ""
	Attr   string // name of the attribute, or ""
	Text   string // the trouble
	Class  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, byte %d: %s", e.Line, e.Offset, e.Trouble())
}

// Trouble is the error without its place: the object, the attribute, the text.
func (e *Error) Trouble() string {
	s := e.Text
	if e.Attr != "" {
		s = e.Attr + ": " + s
	}
	if e.Object != "" {
		s = e.Object + ": " + s
	}
	return s
}

func (e *Error) Unwrap() error { return e.Class }

// Parse decodes the object at the start of b, after any white space. The values
// alias b. n is the number of bytes taken, with the newline that ends the
// object. Without an object it returns io.EOF; other errors are an *Error whose
// place is counted from the start of b.
func Parse(b []byte, lim Limits) (o Object, n int, err error) {
	d := Decoder{buf: b, rerr: io.EOF, lim: lim.orDefault()}
	o.Attrs = make([]Attr, 0, 22)
	if err := d.object(&o); err != nil {
		return Object{}, 0, err
	}
	n = d.pos
	if n < len(b) && b[n] == '\r' {
		n++
	}
	if n < len(b) && b[n] == '\n' {
		n++
	}
	return o, n, nil
}

// A Decoder reads objects from a stream. It keeps one buffer, which grows to
// hold the largest object and no more than Limits allow. It is not safe for
// concurrent use.
type Decoder struct {
	r    io.Reader
	rerr error // what r returned last, to be seen when the buffer is used up
	lim  Limits
	err  error // what Next returned, until Resync

	buf   []byte // the input from offset base on
	base  int64
	pos   int    // next byte to look at
	hold  int    // bytes before this are not needed any more: the object's first
	moved bool   // buf moved since the object began: its values point elsewhere
	marks []mark // line numbers known within buf, in order, the first at base

	spans []span // of the attributes of the object, counted from hold
	back  int64  // offset where Resync begins to look
	names map[string]string
}

// A mark says that the byte at offset off has line newlines before it.
type mark struct{ off, line int64 }

// A span is where an attribute and its value begin.
type span struct{ attr, value int }

const (
	firstBuffer = 64 << 10
	oneRead     = 64 << 10 // so that a line number is never more than this much counting away
	maxBlank    = 4 << 10  // white space in a row inside an object
	maxNames    = 1 << 10  // names kept to save allocating them again,
	maxKept     = 64       // of those not longer than this
	maxDigits   = 19
)

// NewDecoder returns a Decoder that reads from r, ahead of what it returns but
// never past the end of an object that is whole in order to return that object.
func NewDecoder(r io.Reader, lim Limits) *Decoder {
	return &Decoder{r: r, lim: lim.orDefault(), names: make(map[string]string)}
}

// Next decodes the next object into o, reusing o.Attrs. The values are valid
// until the next call. It returns io.EOF at the end of the stream, an *Error for
// input that is not SOIF, or the reader's error. After an error every call
// returns it again, until Resync.
func (d *Decoder) Next(o *Object) error {
	if d.err == nil {
		d.err = d.object(o)
	}
	return d.err
}

// Pos returns where the object that Next returned last begins.
func (d *Decoder) Pos() (line, offset int64) {
	offset = d.base + int64(d.hold)
	return d.line(offset), offset
}

// object decodes one object of a plain stream.
func (d *Decoder) object(o *Object) error {
	c, err := d.gap()
	if err != nil {
		return err
	}
	if c != '@' {
		return d.stray()
	}
	if err := d.open(o); err != nil {
		return err
	}
	if frameOp(o.Type) != 0 {
		d.back = d.base + int64(d.pos)
		return d.fault(0, "@"+o.Type, "", "opens a frame: this is an update stream", iofs.ErrInvalid)
	}
	return d.body(o)
}

// gap skips the white space between objects and returns the byte after it.
func (d *Decoder) gap() (byte, error) {
	for {
		for ; d.pos < len(d.buf); d.pos++ {
			if c := d.buf[d.pos]; !isSpace(c) {
				d.hold = d.pos
				return c, nil
			}
		}
		d.hold = d.pos
		if err := d.fill(); err != nil {
			return 0, err
		}
	}
}

// stray is the error for what stands at d.pos, outside of an object.
func (d *Decoder) stray() error {
	d.hold = d.pos
	d.back = d.base + int64(d.pos)
	return d.fault(0, "", "", "text outside of an object: "+d.quote(0), iofs.ErrInvalid)
}

// open reads "@TYPE {", which begins an object or a frame.
func (d *Decoder) open(o *Object) error {
	*o = Object{Attrs: o.Attrs[:0]}
	d.hold, d.moved, d.spans = d.pos, false, d.spans[:0]
	d.back = d.base + int64(d.pos) + 1
	d.pos++
	n, err := d.token(&nameByte, d.lim.Name, o, "template type")
	if err != nil {
		return err
	}
	if n == 0 {
		return d.fault(d.here(), "", "", "no template type after @", iofs.ErrInvalid)
	}
	o.Type = d.name(d.buf[d.pos : d.pos+n])
	d.pos += n
	c, err := d.blank(o)
	if err != nil {
		return err
	}
	if c != '{' {
		return d.fault(d.here(), "@"+o.Type, "", "no { after the template type", iofs.ErrInvalid)
	}
	d.pos++
	d.back = d.base + int64(d.pos)
	return nil
}

// body reads what follows "@TYPE {" in an object.
func (d *Decoder) body(o *Object) error {
	if err := d.url(o); err != nil {
		return err
	}
	d.back = d.base + int64(d.pos)
	for {
		if d.quick(o) {
			continue
		}
		done, err := d.attr(o)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if d.moved {
		for i := range o.Attrs {
			at := d.hold + d.spans[i].value
			end := at + len(o.Attrs[i].Value)
			o.Attrs[i].Value = d.buf[at:end:end]
		}
	}
	return nil
}

// url reads the URL, which ends at white space and stands on the line of the {.
func (d *Decoder) url(o *Object) error {
	for {
		c, ok, err := d.byteAt(0, o)
		if !ok {
			return err
		}
		if c != ' ' && c != '\t' {
			break
		}
		if d.pos++; d.here() > int(d.lim.Name)+maxBlank {
			return d.fault(d.here(), o.id(), "", "too much white space", syscall.EFBIG)
		}
	}
	n, err := d.token(&urlByte, d.lim.URL, o, "URL")
	if err != nil {
		return err
	}
	u := d.buf[d.pos : d.pos+n]
	if n == 0 || string(u) == "}" {
		return d.fault(d.here(), o.id(), "", "no URL on the line of the {", iofs.ErrInvalid)
	}
	if c, ok, err := d.byteAt(n, o); !ok {
		return err
	} else if !isSpace(c) {
		return d.fault(d.here()+n, o.id(), "", "control character in the URL", iofs.ErrInvalid)
	}
	if u = d.buf[d.pos : d.pos+n]; string(u) != "-" {
		o.URL = string(u)
	}
	d.pos += n
	return nil
}

// quick reads one attribute as attr does if it is written in canonical form, lies
// in the buffer with the byte after it, and offends no limit. Otherwise it takes
// nothing and attr decides. It halves the time of decoding.
func (d *Decoder) quick(o *Object) bool {
	b := d.buf[d.pos:]
	if len(b) == 0 || b[0] != '\n' {
		return false
	}
	i := 1
	for last := min(int64(len(b)), d.lim.Name+1); int64(i) < last && nameByte[b[i]]; {
		i++
	}
	if i == 1 || i+5 > len(b) || b[i] != '{' || b[i+1] == '}' {
		return false
	}
	nameEnd := i
	size := 0
	for i++; i < len(b) && '0' <= b[i] && b[i] <= '9' && i-nameEnd < maxDigits; i++ {
		size = size*10 + int(b[i]-'0')
	}
	if len(b)-i < len(delimiter) || string(b[i:i+len(delimiter)]) != delimiter {
		return false
	}
	i += len(delimiter)
	if size >= len(b)-i || b[i+size] != '\n' || int64(size) > d.lim.Value ||
		int64(d.here()+i+size) > d.lim.Object || int64(len(o.Attrs)) >= d.lim.Attrs {
		return false
	}
	name := d.name(b[1:nameEnd])
	if lower(name[0]) == 'e' && int64(Depth(name)) > d.lim.Depth {
		return false
	}
	o.Attrs = append(o.Attrs, Attr{name, b[i : i+size : i+size]})
	if d.r != nil {
		d.spans = append(d.spans, span{d.here() + 1, d.here() + i})
	}
	d.back = d.base + int64(d.pos+1)
	d.pos += i + size
	return true
}

// attr reads one attribute, or the } that ends the object.
func (d *Decoder) attr(o *Object) (done bool, err error) {
	c, err := d.blank(o)
	if err != nil {
		return false, err
	}
	if c == '}' {
		d.pos++
		return true, nil
	}
	at := d.here()
	n, err := d.token(&nameByte, d.lim.Name, o, "attribute name")
	if err != nil {
		return false, err
	}
	if c, ok, err := d.byteAt(n, o); !ok {
		return false, err
	} else if n == 0 || c != '{' {
		return false, d.fault(at, o.id(), "", "attribute Name{size} expected, not "+d.quote(at), iofs.ErrInvalid)
	}
	name := d.name(d.buf[d.pos : d.pos+n])
	d.pos += n + 1
	if lower(name[0]) == 'e' && int64(Depth(name)) > d.lim.Depth {
		return false, d.fault(at, o.id(), name, fmt.Sprintf("over the limit of %d levels of Embed", d.lim.Depth), syscall.EFBIG)
	}
	size, err := d.size(o, name, at)
	if err != nil {
		return false, err
	}
	return false, d.value(o, name, at, size)
}

// size reads "12}:<tab>" of an attribute.
func (d *Decoder) size(o *Object, name string, at int) (int64, error) {
	size, digits := int64(0), 0
	for {
		c, ok, err := d.byteAt(digits, o)
		if !ok {
			return 0, err
		}
		if c < '0' || c > '9' {
			break
		}
		if digits++; digits > maxDigits || size > (1<<63-1-9)/10 {
			return 0, d.fault(at, o.id(), name, "size is over the limit", syscall.EFBIG)
		}
		size = size*10 + int64(c-'0')
	}
	d.pos += digits
	for i := range len(delimiter) {
		c, ok, err := d.byteAt(i, o)
		if !ok {
			return 0, err
		}
		if c == delimiter[i] && (i > 0 || digits > 0) {
			continue
		}
		if i == 0 {
			return 0, d.fault(at, o.id(), name, "size is not a number", iofs.ErrInvalid)
		}
		return 0, d.fault(at, o.id(), name, "no colon and tab after the size", iofs.ErrInvalid)
	}
	d.pos += len(delimiter)
	return size, nil
}

const delimiter = "}:\t"

// value takes the size bytes of an attribute's value and adds it to o.
func (d *Decoder) value(o *Object, name string, at int, size int64) error {
	// If this or what follows makes no sense, the size is the suspect.
	d.back = d.base + int64(d.hold+at)
	switch {
	case size > d.lim.Value:
		return d.fault(at, o.id(), name, fmt.Sprintf("value of %d bytes is over the limit of %d", size, d.lim.Value), syscall.EFBIG)
	case int64(d.here())+size > d.lim.Object:
		return d.fault(at, o.id(), name, fmt.Sprintf("with its %d bytes the object is over the limit of %d", size, d.lim.Object), syscall.EFBIG)
	case int64(len(o.Attrs)) >= d.lim.Attrs:
		return d.fault(at, o.id(), name, fmt.Sprintf("over the limit of %d attributes", d.lim.Attrs), syscall.EFBIG)
	}
	n := int(size)
	for len(d.buf)-d.pos <= n { // the byte after the value as well
		if err := d.fill(); err == io.EOF {
			return d.fault(at, o.id(), name, fmt.Sprintf("value of %d bytes runs past the end of the input", n), io.ErrUnexpectedEOF)
		} else if err != nil {
			return err
		}
	}
	end := d.pos + n
	if c := d.buf[end]; !isSpace(c) && c != '}' {
		return d.fault(at, o.id(), name, fmt.Sprintf("size is wrong: after %d bytes stands %q, not white space", n, c), iofs.ErrInvalid)
	}
	o.Attrs = append(o.Attrs, Attr{name, d.buf[d.pos:end:end]})
	if d.r != nil {
		d.spans = append(d.spans, span{at, d.here()})
	}
	d.pos = end
	return nil
}

// blank skips white space inside an object and returns the byte after it.
func (d *Decoder) blank(o *Object) (byte, error) {
	for i := 0; ; i++ {
		c, ok, err := d.byteAt(i, o)
		if !ok {
			return 0, err
		}
		if !isSpace(c) {
			d.pos += i
			return c, nil
		}
		if i == maxBlank {
			return 0, d.fault(d.here(), o.id(), "", fmt.Sprintf("over %d bytes of white space", maxBlank), syscall.EFBIG)
		}
	}
}

// token returns how many bytes of the class follow; the byte after them is in
// the buffer. It does not take them.
func (d *Decoder) token(class *[256]bool, limit int64, o *Object, what string) (int, error) {
	n := 0
	for {
		for b := d.buf[d.pos:]; n < len(b); n++ {
			if !class[b[n]] {
				return n, nil
			}
			if int64(n) >= limit {
				return 0, d.fault(d.here(), o.id(), "", fmt.Sprintf("%s is over the limit of %d bytes", what, limit), syscall.EFBIG)
			}
		}
		if _, ok, err := d.byteAt(n, o); !ok {
			return 0, err
		}
	}
}

// byteAt returns the byte i after d.pos, reading it if need be. When ok is false
// the input ended there and err says so.
func (d *Decoder) byteAt(i int, o *Object) (c byte, ok bool, err error) {
	if d.pos+i < len(d.buf) {
		return d.buf[d.pos+i], true, nil
	}
	return d.byteRead(i, o)
}

func (d *Decoder) byteRead(i int, o *Object) (c byte, ok bool, err error) {
	for d.pos+i >= len(d.buf) {
		if err := d.fill(); err == io.EOF {
			return 0, false, d.fault(len(d.buf)-d.hold, o.id(), "", "input ends before the closing }", io.ErrUnexpectedEOF)
		} else if err != nil {
			return 0, false, err
		}
	}
	return d.buf[d.pos+i], true, nil
}

// here is d.pos counted from the object's first byte, which stays true when the
// buffer moves.
func (d *Decoder) here() int { return d.pos - d.hold }

// fill reads more, or returns why there is no more.
func (d *Decoder) fill() error {
	if d.rerr != nil {
		return d.rerr
	}
	if len(d.buf) == cap(d.buf) {
		d.room()
	}
	for range 100 {
		old := len(d.buf)
		n, err := d.r.Read(d.buf[old:min(cap(d.buf), old+oneRead)])
		d.buf, d.rerr = d.buf[:old+n], err
		if n > 0 {
			last := d.marks[len(d.marks)-1]
			d.marks = append(d.marks, mark{d.base + int64(old), d.count(last, d.base+int64(old))})
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.rerr = io.ErrNoProgress
	return d.rerr
}

// room makes room at the end of a full buffer: by moving what is held to the
// front when that frees a quarter, so that moving costs at most three bytes a
// byte read, otherwise by doubling.
func (d *Decoder) room() {
	held := d.buf[d.hold:]
	first := mark{d.base + int64(d.hold), 0}
	if len(d.marks) > 0 {
		first.line = d.line(first.off) - 1
	}
	if cap(d.buf) > 0 && len(held) <= cap(d.buf)/4*3 {
		d.buf = d.buf[:copy(d.buf, held)]
	} else {
		d.buf = append(make([]byte, 0, max(firstBuffer, 2*cap(d.buf))), held...)
	}
	d.base, d.pos, d.hold, d.moved = first.off, d.pos-d.hold, 0, true
	i := 0
	for i < len(d.marks) && d.marks[i].off <= first.off {
		i++
	}
	d.marks = slices.Replace(d.marks, 0, i, first)
}

// line returns the number of the line of the byte at an offset within the buffer.
func (d *Decoder) line(off int64) int64 {
	m := mark{d.base, 0}
	for i := len(d.marks) - 1; i >= 0; i-- {
		if d.marks[i].off <= off {
			m = d.marks[i]
			break
		}
	}
	return d.count(m, off) + 1
}

// count returns the newlines before off, knowing those before m.
func (d *Decoder) count(m mark, off int64) int64 {
	return m.line + int64(bytes.Count(d.buf[m.off-d.base:off-d.base], newline))
}

var newline = []byte{'\n'}

// fault makes the error for the byte at, counted from the object's first.
func (d *Decoder) fault(at int, object, attr, text string, class error) error {
	off := d.base + int64(d.hold+at)
	return &Error{d.line(off), off, object, attr, text, class}
}

// quote shows the text at, counted from the object's first byte.
func (d *Decoder) quote(at int) string {
	s := d.buf[d.hold+at:]
	if i := bytes.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	if len(s) > 24 {
		s = s[:24]
	}
	return fmt.Sprintf("%q", s)
}

// Resync goes on after an *Error: it skips to the next line that begins with
// "@TYPE {" and returns nil, or io.EOF if there is none. It looks from the value
// before the trouble on, for if that value's size is wrong it has swallowed the
// objects after it. So it may find what only looks like an object, inside of a
// value. After any other error it returns that error.
func (d *Decoder) Resync() error {
	if _, bad := d.err.(*Error); !bad {
		return d.err
	}
	d.pos = int(d.back - d.base)
	for d.hold = d.pos; ; {
		if err := d.nextLine(); err != nil {
			d.err = err
			return err
		}
		d.hold = d.pos
		yes, err := d.plausible()
		if err != nil {
			d.err = err
			return err
		}
		if yes {
			d.err = nil
			return nil
		}
		d.pos++
	}
}

// nextLine goes to the next line that begins with @, which may be this one.
func (d *Decoder) nextLine() error {
	for {
		if d.pos > 0 && d.buf[d.pos-1] == '\n' || d.base+int64(d.pos) == 0 {
			if d.pos < len(d.buf) && d.buf[d.pos] == '@' {
				return nil
			}
		}
		if i := bytes.Index(d.buf[d.pos:], []byte("\n@")); i >= 0 {
			d.pos += i + 1
			return nil
		}
		// The last byte may be the newline before an @ not yet read.
		d.pos = len(d.buf)
		d.hold = max(d.pos-1, 0)
		if err := d.fill(); err != nil {
			return err
		}
	}
}

// plausible reports whether "@TYPE {" stands at d.pos.
func (d *Decoder) plausible() (bool, error) {
	named := false
	for i := 1; i <= int(d.lim.Name)+maxBlank; i++ {
		for d.pos+i >= len(d.buf) {
			if err := d.fill(); err != nil {
				return false, err
			}
		}
		switch c := d.buf[d.pos+i]; {
		case c == '{':
			return named, nil
		case c == ' ' || c == '\t':
		case !nameByte[c] || i > 1 && !nameByte[d.buf[d.pos+i-1]]:
			return false, nil
		default:
			named = true
		}
	}
	return false, nil
}

// name returns b as a string, without allocating for names met before.
func (d *Decoder) name(b []byte) string {
	if s := standard(b); s != "" {
		return s
	}
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.names != nil && len(d.names) < maxNames && len(s) <= maxKept {
		d.names[s] = s
	}
	return s
}

// id names o in an error.
func (o *Object) id() string {
	switch {
	case o.URL != "":
		return o.URL
	case o.Type != "":
		return "@" + o.Type
	}
	return ""
}

func isSpace(c byte) bool {
	return c == '\n' || c == ' ' || c == '\t' || c == '\r'
}

// nameByte says which bytes may stand in attribute names and template types:
// more than the grammar's letters and digits, since META tags and older software
// have put more in. Urlbyte says which may stand in a URL.
var (
	nameByte = class("{}@")
	urlByte  = class("")
)

func class(except string) (set [256]bool) {
	for c := range set {
		set[c] = c > ' ' && c != 0x7f
	}
	for _, c := range []byte(except) {
		set[c] = false
	}
	return set
}
