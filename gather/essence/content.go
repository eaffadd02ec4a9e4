package essence

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"harvest/fs/ndb"
)

// A contentRule is a line of bycontent: conditions, all of which hold, and the
// type they tell. One that asks the library has no type.
type contentRule struct {
	kind   *kind
	line   int
	told   string // how it is told of
	media  string
	sure   bool // it overrules a name
	text   bool
	binary bool
	tar    bool
	names  *names // of which one fits
	bytes  []bytesAt
	zip    []*regexp.Regexp // nil entry: any member
	ole    []*regexp.Regexp
	re     []*regexp.Regexp
	first  byteSet // what a content may begin with
}

// bytesAt are bytes that begin from lo to hi.
type bytesAt struct {
	lo, hi int
	b      []byte
}

func (b *bytesAt) in(head []byte) bool {
	if b.lo == b.hi {
		return len(head) >= b.lo+len(b.b) && bytes.Equal(head[b.lo:b.lo+len(b.b)], b.b)
	}
	return b.lo < len(head) && bytes.Contains(head[b.lo:min(len(head), b.hi+len(b.b))], b.b)
}

// maxAt is the farthest that bytes are looked for.
const maxAt = 64 << 10

// startBytes are what regular expressions see of a content.
const startBytes = 4 << 10

func (t *Tables) parseByContent(text []byte) error {
	return lines(text, embedded("bycontent"), func(e ndb.Entry) error {
		if len(t.bycontent) >= most {
			return e.Errorf(e.First(), "more than %d lines", most)
		}
		if includes(e, "mimetype") {
			t.bycontent = append(t.bycontent, contentRule{line: e.Line})
			return nil
		}
		name, err := typeName(e)
		if err != nil {
			return err
		}
		r := contentRule{kind: t.kind(name), line: e.Line, first: allBytes}
		if err := r.parse(e); err != nil {
			return err
		}
		t.bycontent = append(t.bycontent, r)
		return nil
	})
}

// parse reads the conditions of a line.
func (r *contentRule) parse(e ndb.Entry) (err error) {
	lo, hi := 0, 0
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "at":
			lo, hi, err = offsets(e, p)
		case "bytes":
			var b []byte
			if b, err = unescaped(e, p); err == nil {
				r.bytes = append(r.bytes, bytesAt{lo, hi, b})
				r.begins(lo, hi, b[0])
			}
			lo, hi = 0, 0
		case "re":
			var re *regexp.Regexp
			if re, err = regexp.Compile(p.Value); err != nil || p.Value == "" {
				return e.Errorf(p, "re: '%s' is no regular expression: %v", p.Value, err)
			}
			r.re = append(r.re, re)
			r.first.meet(endsOf(p.Value).first)
		case "name":
			err = r.name(e, p)
		case "zip":
			err = holding(&r.zip, e, p)
		case "ole":
			err = holding(&r.ole, e, p)
		case "tar":
			r.tar, err = e.Bool(p)
		case "text":
			r.text, err = e.Bool(p)
		case "binary":
			r.binary, err = e.Bool(p)
		case "sure":
			r.sure, err = e.Bool(p)
		case "media":
			r.media = p.Value
		case "say":
			r.told = p.Value
		default:
			err = e.Errorf(p, "unknown key '%s'; there are bytes, at, tar, zip, ole, re, name, text, binary, sure, media and say", p.Key)
		}
		if err != nil {
			return err
		}
	}
	strong := r.tar || r.bytes != nil || r.zip != nil || r.ole != nil
	if !strong && r.re == nil && r.names == nil && !r.text && !r.binary {
		return e.Errorf(e.First(), "%s: no condition", r.kind.name)
	}
	r.sure = r.sure || strong
	if r.told == "" {
		r.told = r.tell(e)
	}
	return nil
}

// tell is the line in short: its conditions, as they are written.
func (r *contentRule) tell(e ndb.Entry) string {
	var words []string
	for _, p := range e.Pairs[1:] {
		if p.Key == "media" || p.Key == "sure" || p.Key == "text" && len(e.Pairs) > 2 {
			continue
		}
		w := p.Key
		if p.Value != "" {
			w += "='" + p.Value + "'"
		}
		if len(w) > 60 {
			w = string(cutText([]byte(w), 56)) + "…"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// begins notes the first byte of a content if that is told.
func (r *contentRule) begins(lo, hi int, c byte) {
	if lo == 0 && hi == 0 {
		var one byteSet
		one.add(c)
		r.first.meet(one)
	}
}

// name adds a pattern of a name; ” is a content without a name or suffix.
func (r *contentRule) name(e ndb.Entry, p ndb.Pair) error {
	if r.names == nil {
		r.names = new(names)
	}
	if p.Value == "" {
		return r.names.add(r.kind, e, ndb.Pair{Key: "re", Value: `\A[^.]*\z`, Col: p.Col})
	}
	return r.names.add(r.kind, e, ndb.Pair{Key: p.Value, Col: p.Col})
}

// holding adds a pattern of what a container holds; without a value anything.
func holding(to *[]*regexp.Regexp, e ndb.Entry, p ndb.Pair) error {
	if p.Value == "" {
		*to = append(*to, nil)
		return nil
	}
	re, err := globbed(p.Value)
	if err != nil {
		return e.Errorf(p, "%s: '%s' is no pattern: %v", p.Key, p.Value, err)
	}
	*to = append(*to, re)
	return nil
}

// offsets reads at=N and at=N-M.
func offsets(e ndb.Entry, p ndb.Pair) (lo, hi int, err error) {
	from, to, ranged := strings.Cut(p.Value, "-")
	if !ranged {
		to = from
	}
	lo, err = strconv.Atoi(from)
	if err == nil {
		hi, err = strconv.Atoi(to)
	}
	if err != nil || lo < 0 || hi < lo || hi > maxAt {
		return 0, 0, e.Errorf(p, "at: '%s' is not an offset up to %d, nor two with '-' between them", p.Value, maxAt)
	}
	return lo, hi, nil
}

// unescaped reads bytes=, written as in a Go string.
func unescaped(e ndb.Entry, p ndb.Pair) ([]byte, error) {
	var b []byte
	for rest := p.Value; rest != ""; {
		c, multi, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			return nil, e.Errorf(p, "bytes: '%s' is not written as in Go", p.Value)
		}
		if c < utf8.RuneSelf || !multi {
			b = append(b, byte(c))
		} else {
			b = utf8.AppendRune(b, c)
		}
		rest = tail
	}
	if len(b) == 0 || len(b) > 256 {
		return nil, e.Errorf(p, "bytes: from 1 to 256 of them")
	}
	return b, nil
}

// A sight is what recognition has seen of a content, each thing looked at once.
type sight struct {
	w       *worker
	c       *content
	head    []byte
	start   []byte // of it, in UTF-8 if it is UTF-16
	plain   bool   // it is the same as head there
	isText  bool
	isZip   bool
	isOLE   bool
	looked  bool // into members
	members []string
}

func newSight(w *worker, c *content) *sight {
	s := &sight{w: w, c: c, head: c.head, isText: looksText(c.head)}
	s.start = c.head[:min(len(c.head), startBytes)]
	if wide(s.start) != 0 {
		s.start = decode(s.start[:len(s.start)&^1], "")
	} else {
		s.plain = len(s.start) > 0
	}
	s.isZip = bytes.HasPrefix(c.head, []byte("PK\x03\x04"))
	s.isOLE = bytes.HasPrefix(c.head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
	return s
}

// inside are the names of what a container holds.
func (s *sight) inside() []string {
	if !s.looked {
		s.looked = true
		switch {
		case s.isZip:
			s.members = zipNames(s.head)
		case s.isOLE:
			s.members = s.oleNames()
		}
	}
	return s.members
}

// holds reports whether one of the patterns fits a member of a container.
func (s *sight) holds(all []*regexp.Regexp) bool {
	for _, re := range all {
		if re == nil {
			return true
		}
		for _, m := range s.inside() {
			if re.MatchString(m) {
				return true
			}
		}
	}
	return false
}

// fits reports whether all conditions of a line hold.
func (r *contentRule) fits(s *sight) bool {
	switch {
	case s.plain && !r.first.has(s.head[0]):
		return false
	case r.text && !s.isText, r.binary && s.isText:
		return false
	case r.zip != nil && !s.isZip, r.ole != nil && !s.isOLE:
		return false
	case r.names != nil && r.names.find(s.c.name) == nil:
		return false
	case r.tar && !isTar(s.head):
		return false
	}
	for i := range r.bytes {
		if !r.bytes[i].in(s.head) {
			return false
		}
	}
	if r.zip != nil && !s.holds(r.zip) || r.ole != nil && !s.holds(r.ole) {
		return false
	}
	for _, re := range r.re {
		if !re.Match(s.start) {
			return false
		}
	}
	return true
}

// isTar reports whether a tar archive begins here: by its mark, or by the sum of
// its first header where it is older than the mark.
func isTar(head []byte) bool {
	if len(head) < 512 {
		return false
	}
	sum, err := strconv.ParseInt(strings.Trim(string(head[148:156]), " \x00"), 8, 32)
	if err != nil || head[0] == 0 {
		return false
	}
	var unsigned, signed int64
	for i, b := range head[:512] {
		if i >= 148 && i < 156 {
			b = ' '
		}
		unsigned += int64(b)
		signed += int64(int8(b))
	}
	return sum == unsigned || sum == signed
}

// by is how a rule is told of in a trace.
func (r *contentRule) by() string { return fmt.Sprintf("bycontent: %s", r.told) }
