// Package route tells which of many Brokers a query is worth asking, from
// digests that they publish: the words each has, in how many objects, and how
// much each can say of one at most.
//
// That is GlOSS (Gravano, García-Molina and Tomasic 1994) with the greatest
// weight of a word beside the number of objects, as Meng, Liu, Yu et al.
// found (1999): Brokers in order of the greatest weight of a word have the best
// objects for it in the first few, which sums of weights do not tell. A Broker
// without a word is left out at no loss at all.
//
// The package neither reads an index nor asks anybody.
package route

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/index"
)

// A digest is a text: what is known of all objects, then of each attribute, then
// of each word, in order.
//
//	digest=1 mark=… objects=N words=N terms=N least=N stem=LANGUAGE
//	attribute=NAME objects=N low=NUMBER high=NUMBER first=TIME last=TIME
//	…
//
//	WORD <tab> objects <tab> most <tab> attributes
//
// Words of fewer objects than least are left out. With a stem, words stand for
// all of their stem. most is the greatest that a word gives to a score of an
// object, before its rarity is multiplied with it, in hundredths, rounded up.
// attributes is a hexadecimal number: bit i is attribute i, counted from 0, the
// last all others.

// Attributes is how many a digest tells apart.
const Attributes = 63

// A Head is what a digest says of all objects.
type Head struct {
	Mark    string // of the index
	Objects int
	Words   int64 // in them
	Terms   int
	Least   int    // objects that a word has to be listed
	Stem    string // language; "": words are words
	Attrs   []Attr
}

// An Attr is what it says of an attribute.
type Attr struct {
	Name        string
	Objects     int
	Numbers     bool // some values are numbers, from Low to High
	Low, High   float64
	Dates       bool // and dates, from First to Last
	First, Last time.Time
}

// A Word is what it says of a word.
type Word struct {
	Objects int
	Most    float64
	attrs   uint64
}

// A Digest is one that was read. It does not change.
type Digest struct {
	Head
	text []byte // the lines of words
	bit  map[string]int
	stem func(string) string
}

// A Line is a word for WriteTo: Attrs are attributes by their places in Head.
type Line struct {
	Word    string
	Objects int
	Most    float64
	Attrs   uint64
}

// Write writes a digest of lines in order.
func Write(w io.Writer, h Head, lines []Line) error {
	b := bufio.NewWriterSize(w, 32<<10)
	fmt.Fprintln(b, ndb.Format(ndb.Of("digest", 1), ndb.Of("mark", h.Mark), ndb.Of("objects", h.Objects), ndb.Of("words", h.Words),
		ndb.Of("terms", len(lines)), ndb.Of("least", h.Least), ndb.Of("stem", h.Stem)))
	for _, a := range h.Attrs {
		pairs := []ndb.Pair{ndb.Of("attribute", a.Name), ndb.Of("objects", a.Objects)}
		if a.Numbers {
			pairs = append(pairs, ndb.Of("low", a.Low), ndb.Of("high", a.High))
		}
		if a.Dates {
			pairs = append(pairs, ndb.Of("first", a.First), ndb.Of("last", a.Last))
		}
		fmt.Fprintln(b, ndb.Format(pairs...))
	}
	b.WriteByte('\n')
	var line []byte
	for i := range lines {
		l := &lines[i]
		line = append(append(line[:0], l.Word...), '\t')
		line = append(strconv.AppendInt(line, int64(l.Objects), 10), '\t')
		line = append(strconv.AppendInt(line, int64(math.Ceil(l.Most*100-1e-9)), 10), '\t')
		line = append(strconv.AppendUint(line, l.Attrs, 16), '\n')
		b.Write(line)
	}
	return b.Flush()
}

// maxHead bounds the lines before the words.
const maxHead = Attributes + 1

// Read reads a digest of at most max bytes. An error about what it holds wraps
// iofs.ErrInvalid.
func Read(r io.Reader, max int64) (*Digest, error) {
	text, err := io.ReadAll(io.LimitReader(r, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > max {
		return nil, fmt.Errorf("digest: more than %d bytes: %w", max, iofs.ErrInvalid)
	}
	return Parse(text)
}

// Mark is the mark in a digest's first line, "" if that is none.
func Mark(line string) string {
	e, err := ndb.ParseLine(line, 1)
	if err != nil || len(e.Pairs) == 0 || e.First().Key != "digest" {
		return ""
	}
	mark, _ := e.Get("mark")
	return mark
}

// Parse is Read of a text, which it keeps.
func Parse(text []byte) (*Digest, error) {
	d := &Digest{bit: make(map[string]int)}
	for n := 1; ; n++ {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok || n > maxHead+1 {
			return nil, fmt.Errorf("digest: no empty line after the head: %w", iofs.ErrInvalid)
		}
		if text = rest; len(line) == 0 && n > 1 {
			break
		}
		e, err := ndb.ParseLine(string(line), n)
		if err == nil && len(e.Pairs) == 0 {
			err = fmt.Errorf("line %d: empty", n)
		}
		if err == nil && n == 1 {
			err = d.head(e)
		} else if err == nil {
			err = d.attr(e)
		}
		if err != nil {
			return nil, fmt.Errorf("digest: %w: %w", err, iofs.ErrInvalid)
		}
	}
	d.text = text
	if d.Stem != "" {
		var err error
		if d.stem, err = index.Stemmer(d.Stem); err != nil {
			return nil, fmt.Errorf("digest: %w: %w", err, iofs.ErrInvalid)
		}
	}
	return d, d.check()
}

func (d *Digest) head(e ndb.Entry) (err error) {
	if p := e.First(); p.Key != "digest" || p.Value != "1" {
		return fmt.Errorf("%s=%s: not digest=1", p.Key, p.Value)
	}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "mark":
			d.Mark = p.Value
		case "objects":
			d.Objects, err = count(p)
		case "words":
			d.Words, err = strconv.ParseInt(p.Value, 10, 62)
		case "terms":
			d.Terms, err = count(p)
		case "least":
			d.Least, err = count(p)
		case "stem":
			d.Stem = p.Value
		}
		if err != nil {
			return fmt.Errorf("%s=%s is no number", p.Key, p.Value)
		}
	}
	return nil
}

func count(p ndb.Pair) (int, error) {
	n, err := strconv.ParseUint(p.Value, 10, 31)
	return int(n), err
}

func (d *Digest) attr(e ndb.Entry) (err error) {
	a := Attr{Name: e.First().Value}
	if e.First().Key != "attribute" || len(d.Attrs) == Attributes {
		return fmt.Errorf("%s: not one of %d attributes", e.First().Key, Attributes)
	}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "objects":
			a.Objects, err = count(p)
		case "low":
			a.Numbers = true
			a.Low, err = strconv.ParseFloat(p.Value, 64)
		case "high":
			a.High, err = strconv.ParseFloat(p.Value, 64)
		case "first":
			a.Dates = true
			a.First, err = when(p.Value)
		case "last":
			a.Last, err = when(p.Value)
		}
		if err != nil {
			return fmt.Errorf("attribute %s: %s=%s: no such value", a.Name, p.Key, p.Value)
		}
	}
	d.bit[a.Name] = len(d.Attrs)
	d.Attrs = append(d.Attrs, a)
	return nil
}

// when reads a time; the first of all is written as nothing.
func when(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

// check goes through the words once: a search in what is not in order would find
// nothing there.
func (d *Digest) check() error {
	var last []byte
	n := 0
	for text := d.text; len(text) > 0; n++ {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		word, _, good := parse(line)
		if !ok || !good || n > 0 && bytes.Compare(word, last) <= 0 {
			return fmt.Errorf("digest: word %d: damaged or out of order: %w", n+1, iofs.ErrInvalid)
		}
		last, text = word, rest
	}
	if n != d.Terms {
		return fmt.Errorf("digest: %d words of %d: %w", n, d.Terms, iofs.ErrInvalid)
	}
	return nil
}

// parse reads the line of a word.
func parse(line []byte) (word []byte, w Word, ok bool) {
	word, rest, _ := bytes.Cut(line, []byte("\t"))
	docs, rest, _ := bytes.Cut(rest, []byte("\t"))
	most, attrs, _ := bytes.Cut(rest, []byte("\t"))
	n, err1 := strconv.ParseUint(string(docs), 10, 31)
	m, err2 := strconv.ParseUint(string(most), 10, 31)
	a, err3 := strconv.ParseUint(string(attrs), 16, 64)
	return word, Word{int(n), float64(m) / 100, a}, err1 == nil && err2 == nil && err3 == nil && len(word) > 0
}

// Word is what is known of a word, as index.Words gives it. A word that is not
// listed has no objects.
func (d *Digest) Word(word string) Word {
	if d.stem != nil {
		if s := d.stem(word); s != "" {
			word = s
		}
	}
	text, at := d.text, 0
	for n := len(text); at < n; {
		mid := at + (n-at)/2
		start := bytes.LastIndexByte(text[:mid], '\n') + 1
		end := start + bytes.IndexByte(text[start:], '\n')
		name, w, _ := parse(text[start:end])
		switch strings.Compare(string(name), word) {
		case 0:
			return w
		case -1:
			at = end + 1
		default:
			n = start
		}
	}
	return Word{}
}

// has tells whether an attribute may have a word that is there.
func (d *Digest) has(w Word, attr string) bool {
	if attr == "" || w.Objects == 0 { // what says nothing stands only where it has to be named
		return w.Objects > 0 && w.Most > 0
	}
	return w.attrs&(1<<d.place(attr)) != 0
}

// place is the bit of an attribute: the last for those that are not told apart.
func (d *Digest) place(attr string) int {
	if i, ok := d.bit[attr]; ok {
		return i
	}
	return Attributes
}

// Bit is the bit of attribute i of a Head.
func Bit(i int) uint64 { return 1 << min(i, Attributes) }

// of is what is known of an attribute; of one that may be among the others, all
// that could be.
func (d *Digest) of(name string) (a Attr, ok bool) {
	if i := slices.IndexFunc(d.Attrs, func(a Attr) bool { return a.Name == name }); i >= 0 {
		return d.Attrs[i], true
	}
	if len(d.Attrs) < Attributes {
		return a, false
	}
	return Attr{Name: name, Objects: d.Objects, Numbers: true, Low: math.Inf(-1), High: math.Inf(1), Dates: true, Last: time.Unix(1<<40, 0)}, true
}
