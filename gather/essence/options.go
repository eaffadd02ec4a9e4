package essence

import (
	"crypto/md5"
	"encoding/hex"
	iofs "io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// options are what is kept of a type. What no line says is as the zero value.
type options struct {
	fullText *bool // nil: as Input.FullText
	mainText *bool // Full-Text of HTML is the main text alone
	text     int   // bytes of Full-Text, 0: as Limits
	attr     int   // of any other value
	head     int   // bytes that a summary is made of
	keywords *int  // words of Keywords
	share    int   // with keywords: more of them, to so many percent of the text
	stop     map[string]bool
	terse    *bool
	typeOnly *bool
	md5      string // "", "yes", "no", "fake"
	keep     []*regexp.Regexp
	omit     []*regexp.Regexp
}

// An optionRule is a line: the types it is about, and what it sets.
type optionRule struct {
	types []*regexp.Regexp
	set   options
	text  string
}

// terseAttrs are what is kept of a terse summary.
var terseAttrs = []string{"Title", "Author", "Description", "Keywords"}

func (t *Tables) parseOptions(text []byte) error {
	return lines(text, embedded("options"), t.parseOptionLine)
}

func (t *Tables) parseOptionLine(e ndb.Entry) error {
	r := optionRule{text: e.String()}
	if len(t.opts) >= most {
		return e.Errorf(e.First(), "more than %d lines", most)
	}
	types, set, err := t.typesOf(e, "options, and no option is called so", func(p ndb.Pair) (bool, error) {
		known, err := r.set.parse(e, p)
		if err == nil && !known && p.Value != "" {
			err = e.Errorf(p, "unknown key '%s'; there are fulltext, maintext, text, attr, keywords, stop, terse, typeonly, head, md5, keep and omit", p.Key)
		}
		return known, err
	})
	if err != nil {
		return err
	}
	if !set {
		return e.Errorf(e.First(), "no option")
	}
	r.types = types
	t.opts = append(t.opts, r)
	return nil
}

// parse reads an option; known is false if the word is none.
func (o *options) parse(e ndb.Entry, p ndb.Pair) (known bool, err error) {
	yes := func(to **bool) {
		v, no := e.Bool(p)
		*to, err = &v, no
	}
	size := func(to *int, most int64) {
		n, no := e.Size(p)
		if err = no; err == nil && (n < 1 || n > most) {
			err = e.Errorf(p, "%s: from 1 byte to %d", p.Key, most)
		}
		*to = int(n)
	}
	switch p.Key {
	case "fulltext":
		yes(&o.fullText)
	case "maintext":
		yes(&o.mainText)
	case "terse":
		yes(&o.terse)
	case "typeonly":
		yes(&o.typeOnly)
	case "text":
		size(&o.text, 64<<20)
	case "attr":
		size(&o.attr, 1<<20)
	case "head":
		size(&o.head, 64<<20)
	case "keywords":
		err = o.parseKeywords(e, p)
	case "stop":
		o.stop = make(map[string]bool)
		for w := range strings.FieldsSeq(p.Value) {
			o.stop[strings.ToLower(w)] = true
		}
	case "md5":
		if o.md5 = p.Value; p.Value != "yes" && p.Value != "no" && p.Value != "fake" {
			err = e.Errorf(p, "md5: '%s' is neither yes, no nor fake", p.Value)
		}
	case "keep":
		o.keep, err = attributes(e, p)
	case "omit":
		o.omit, err = attributes(e, p)
	default:
		return false, nil
	}
	return true, err
}

// parseKeywords reads no, 60, or 60+5%.
func (o *options) parseKeywords(e ndb.Entry, p ndb.Pair) (err error) {
	number, share, more := strings.Cut(p.Value, "+")
	n, no := strconv.Atoi(number)
	if number == "no" && !more {
		n, no = 0, nil
	}
	if more {
		var percent error
		o.share, percent = strconv.Atoi(strings.TrimSuffix(share, "%"))
		if percent != nil || !strings.HasSuffix(share, "%") || o.share < 0 || o.share > 100 {
			no = iofs.ErrInvalid
		}
	}
	if no != nil || n < 0 || n > 1000 {
		err = e.Errorf(p, "keywords: no, a number up to 1000, or with a part of the text as in 60+5%%")
	}
	o.keywords = &n
	return err
}

// attributes reads patterns of attributes with blanks between them.
func attributes(e ndb.Entry, p ndb.Pair) (all []*regexp.Regexp, err error) {
	for w := range strings.FieldsSeq(p.Value) {
		re, err := globbed(strings.ToLower(w)) // names of attributes know no case
		if err != nil {
			return nil, e.Errorf(p, "%s: '%s' is no pattern: %v", p.Key, w, err)
		}
		all = append(all, re)
	}
	if all == nil {
		return nil, e.Errorf(p, "%s: no attribute", p.Key)
	}
	return all, nil
}

// option is what holds for a type, as the lines have it that are about the type
// or one it stands on.
func (t *Tables) option(typ string) (o options) {
	if len(t.opts) == 0 {
		return o
	}
	k := t.kinds[typ]
	if k == nil {
		k = &kind{name: typ}
	}
	for i := range t.opts {
		if k.any(t.opts[i].types) {
			o.join(&t.opts[i].set)
		}
	}
	return o
}

// join takes what is not set yet from another line.
func (o *options) join(p *options) {
	or := func(to **bool, from *bool) {
		if *to == nil {
			*to = from
		}
	}
	or(&o.fullText, p.fullText)
	or(&o.mainText, p.mainText)
	or(&o.terse, p.terse)
	or(&o.typeOnly, p.typeOnly)
	if o.text == 0 {
		o.text = p.text
	}
	if o.attr == 0 {
		o.attr = p.attr
	}
	if o.head == 0 {
		o.head = p.head
	}
	if o.keywords == nil {
		o.keywords, o.share = p.keywords, p.share
	}
	if o.stop == nil {
		o.stop = p.stop
	}
	if o.md5 == "" {
		o.md5 = p.md5
	}
	if o.keep == nil {
		o.keep = p.keep
	}
	if o.omit == nil {
		o.omit = p.omit
	}
}

func is(b *bool) bool { return b != nil && *b }

// apply leaves of an object's attributes, from the one with number from, what
// the options of its type keep.
func (o *options) apply(obj *soif.Object, from int) {
	kept := obj.Attrs[:from]
	for _, a := range obj.Attrs[from:] {
		if !o.keeps(a.Name) {
			continue
		}
		if strings.EqualFold(a.Name, "Keywords") && (o.keywords != nil && o.share == 0 || o.stop != nil) {
			a.Value = o.words(a.Value)
		}
		if o.attr > 0 && len(a.Value) > o.attr && !strings.EqualFold(a.Name, "Full-Text") {
			a.Value = cutText(a.Value, o.attr)
		}
		if len(a.Value) > 0 {
			kept = append(kept, a)
		}
	}
	obj.Attrs = kept
}

// keeps reports whether an attribute is kept.
func (o *options) keeps(name string) bool {
	fits := func(re *regexp.Regexp) bool { return re.MatchString(name) }
	switch {
	case strings.EqualFold(name, "Keywords") && o.keywords != nil && *o.keywords == 0,
		strings.EqualFold(name, "Full-Text") && o.fullText != nil && !*o.fullText:
		return false
	case slices.ContainsFunc(o.omit, fits):
		return false
	case o.keep != nil:
		return slices.ContainsFunc(o.keep, fits)
	case is(o.terse):
		return slices.ContainsFunc(terseAttrs, func(a string) bool { return strings.EqualFold(a, name) })
	}
	return true
}

// words are keywords without those that are stopped, as many as there may be.
func (o *options) words(value []byte) []byte {
	all := strings.Fields(string(value))
	all = slices.DeleteFunc(all, func(w string) bool { return o.stop[strings.ToLower(w)] })
	if o.keywords != nil && o.share == 0 {
		all = all[:min(len(all), *o.keywords)]
	}
	return []byte(strings.Join(all, " "))
}

// sum is the MD5 of an object as the options want it, "" for none.
func (o *options) sum(d *digest, url string) string {
	switch o.md5 {
	case "no":
		return ""
	case "fake":
		s := md5.Sum([]byte(url))
		return hex.EncodeToString(s[:])
	}
	return d.sum()
}
