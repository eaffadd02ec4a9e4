package soif

import (
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"time"
)

// A Schema declares the attributes of a registered template type. Objects may
// have others as well.
type Schema struct {
	Type  string
	Text  string // what objects of the type describe
	Attrs []Decl
}

// A Decl declares an attribute.
type Decl struct {
	Name string
	Need Need
	Kind Kind
	Text string // what it says
}

// Need says how much an attribute is wanted.
type Need uint8

// The degrees of need.
const (
	Optional Need = iota
	Recommended
	Mandatory
)

func (n Need) String() string { return [...]string{"optional", "recommended", "mandatory"}[n] }

// Kind says what a value must look like.
type Kind uint8

// The kinds of values.
const (
	Any     Kind = iota // any bytes, as a rule text
	Number              // decimal digits
	Seconds             // decimal digits, a length of time
	Time                // seconds since 1970 in decimal digits, or RFC 3339
	MD5                 // 32 hex digits
)

func (k Kind) String() string { return [...]string{"any", "number", "seconds", "time", "md5"}[k] }

// A template declares the attributes of a type by name; what a name stands for is
// the same in all types.
type template struct {
	typ, text                        string
	mandatory, recommended, optional string
}

// templates are the registered types. The parts of the system describe themselves
// to a registry, where a description lapses when its time to live does.
var templates = [...]template{{
	typ: "FILE", text: "a file, page or other thing that was gathered",
	mandatory:   "Update-Time",
	recommended: "Type File-Size MD5 Last-Modification-Time Time-to-Live Refresh-Rate Gatherer-Name Gatherer-Host Gatherer-Version",
	optional:    "Title Author Abstract Description Keywords Full-Text URL-References URI Gatherer-Port",
}, {
	typ: "DOCUMENT", text: "a publication, as its author or a librarian describes it",
	mandatory:   "Update-Time",
	recommended: "Title Author Abstract Keywords Time-to-Live",
	optional:    "Description Full-Text Type File-Size MD5 Last-Modification-Time Refresh-Rate URI URL-References Gatherer-Name Gatherer-Host Gatherer-Port Gatherer-Version",
}, {
	typ: "GATHERER", text: "a Gatherer: what it gathers and where it serves it",
	mandatory:   "Update-Time Time-to-Live Gatherer-Name Gatherer-Host Gatherer-Version",
	recommended: "Gatherer-Port " + selfRecommended, optional: selfOptional,
}, {
	typ: "BROKER", text: "a Broker: what it indexes and where it answers",
	mandatory:   "Update-Time Time-to-Live Broker-Name Broker-Host Broker-Version",
	recommended: "Broker-Port " + selfRecommended, optional: selfOptional,
}, {
	typ: "CACHE", text: "an object cache: whom it serves and where",
	mandatory:   "Update-Time Time-to-Live Cache-Name Cache-Host Cache-Version",
	recommended: "Cache-Port " + selfRecommended, optional: selfOptional,
}, {
	typ: "REPLICATOR", text: "a member of a replication group",
	mandatory:   "Update-Time Time-to-Live Replicator-Name Replicator-Host Replicator-Version",
	recommended: "Replicator-Port " + selfRecommended, optional: selfOptional,
}, {
	typ: cursorType, text: "the end of an update stream",
	mandatory: cursorAttr,
}}

const (
	selfRecommended = "Administrator Description Object-Types"
	selfOptional    = "Keywords Location Refresh-Rate URI"
)

// unregistered is what any object must have.
var unregistered = template{text: "not a registered type", mandatory: updateTime}

func templateOf(typ string) *template {
	for i := range templates {
		if equalName(templates[i].typ, typ) {
			return &templates[i]
		}
	}
	return &unregistered
}

// Types returns the registered template types.
func Types() []string {
	var all []string
	for _, t := range templates {
		all = append(all, t.typ)
	}
	return all
}

// SchemaOf returns the schema of a template type, whose case does not matter. For
// a type that is not registered ok is false and the schema asks for an
// Update-Time, as any object must have.
func SchemaOf(typ string) (s Schema, ok bool) {
	t := templateOf(typ)
	s = Schema{Type: t.typ, Text: t.text}
	add := func(need Need, names string) {
		for name := range strings.FieldsSeq(names) {
			d := standardDecl(name)
			s.Attrs = append(s.Attrs, Decl{name, need, d.Kind, d.Text})
		}
	}
	add(Mandatory, t.mandatory)
	add(Recommended, t.recommended)
	add(Optional, t.optional)
	if t == &unregistered {
		s.Type = typ
		return s, false
	}
	return s, true
}

// String prints the schema: a line for the type, then a line an attribute, name,
// need, kind and text between tabs.
func (s Schema) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "@%s\t%s\n", s.Type, s.Text)
	for _, a := range s.Attrs {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", a.Name, a.Need, a.Kind, a.Text)
	}
	return b.String()
}

// Check compares o with the schema of its template type. The error joins one for
// each mandatory attribute that is missing and for each standard attribute, of
// o or of its members, whose value is not of its kind; each wraps fs.ErrInvalid.
func (o *Object) Check() error {
	var all []error
	o.troubles(templateOf(o.Type).mandatory, func(_ int, attr, text string) {
		all = append(all, fmt.Errorf("%s: %s: %s: %w", o.id(), attr, text, iofs.ErrInvalid))
	})
	return errors.Join(all...)
}

// Check is o.Check for the object that Next returned last, still as Next returned
// it. Each error it joins is an *Error with the place of the attribute, or of
// the object when the attribute is missing.
func (d *Decoder) Check(o *Object) error { return d.check(o, templateOf(o.Type).mandatory) }

// Check is Decoder.Check for the change that Next returned last. A deleted object
// needs no attributes, a refreshed one only an Update-Time.
func (u *UpdateReader) Check(c *Change) error {
	switch c.Op {
	case Delete:
		return u.d.check(&c.Object, "")
	case Refresh:
		return u.d.check(&c.Object, updateTime)
	}
	return u.d.Check(&c.Object)
}

func (d *Decoder) check(o *Object, want string) error {
	var all []error
	o.troubles(want, func(i int, attr, text string) {
		at := 0
		if i >= 0 {
			at = d.spans[i].attr
		}
		all = append(all, d.fault(at, o.id(), attr, text, iofs.ErrInvalid))
	})
	return errors.Join(all...)
}

// troubles tells what is wrong with o: attribute i, or none when i is -1.
func (o *Object) troubles(want string, tell func(i int, attr, text string)) {
	for name := range strings.FieldsSeq(want) {
		if o.index(name) < 0 {
			tell(-1, name, "mandatory attribute is missing")
		}
	}
	for i := range o.Attrs {
		name, v := o.Attrs[i].Name, o.Attrs[i].Value
		if k := kindOf(bare(name)); !k.fits(v) {
			tell(i, name, fmt.Sprintf("%.40q is not %s", v, k.a()))
		}
	}
}

// bare returns the name of a member's attribute without its prefixes.
func bare(name string) string {
	for {
		n, rest := embedded(name)
		if n == 0 {
			return name
		}
		name = rest
	}
}

func (k Kind) fits(v []byte) bool {
	switch k {
	case Number, Seconds:
		_, err := strconv.ParseUint(string(v), 10, 63)
		return err == nil
	case Time:
		_, ok := parseTime(v)
		return ok
	case MD5:
		_, err := hex.DecodeString(string(v))
		return err == nil && len(v) == 32
	}
	return true
}

// a is the kind as an error names it.
func (k Kind) a() string {
	switch k {
	case Seconds:
		return "a number of seconds"
	case Time:
		return "a time: neither seconds since 1970 nor RFC 3339"
	case MD5:
		return "32 hex digits"
	}
	return "a " + k.String()
}

// Time returns the time that the first attribute called name holds, which is
// seconds since 1970 or RFC 3339; ok is false when there is none or it is not a
// time.
func (o *Object) Time(name string) (t time.Time, ok bool) {
	v, _ := o.Get(name)
	return parseTime(v)
}

// Seconds returns the length of time that the first attribute called name holds,
// as Time-to-Live does; ok is false when there is none, it is not a number, or
// too long for a Duration.
func (o *Object) Seconds(name string) (d time.Duration, ok bool) {
	v, _ := o.Get(name)
	n, err := strconv.ParseUint(string(v), 10, 63)
	if err != nil || n > uint64(1<<63-1)/uint64(time.Second) {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

func parseTime(v []byte) (time.Time, bool) {
	if len(v) == 0 || len(v) > 40 {
		return time.Time{}, false
	}
	if n, err := strconv.ParseUint(string(v), 10, 38); err == nil { // to the year 10680
		return time.Unix(int64(n), 0).UTC(), true
	}
	t, err := time.Parse(time.RFC3339, string(v))
	return t.UTC(), err == nil
}

const updateTime = "Update-Time"

// standards are the attributes with a meaning in every type: first the 19 that
// summaries have, then those by which parts of the system describe themselves.
var standards = [...]Decl{
	{Name: "Abstract", Text: "short account of the object"},
	{Name: "Author", Text: "who wrote it"},
	{Name: "Description", Text: "what it is"},
	{Name: "File-Size", Kind: Number, Text: "bytes of the object"},
	{Name: "Full-Text", Text: "all of its text"},
	{Name: "Gatherer-Host", Text: "host the Gatherer ran on"},
	{Name: "Gatherer-Name", Text: "name of the Gatherer"},
	{Name: "Gatherer-Port", Kind: Number, Text: "port the Gatherer serves on"},
	{Name: "Gatherer-Version", Text: "version of the Gatherer"},
	{Name: updateTime, Kind: Time, Text: "when the summary was made or last found true"},
	{Name: "Keywords", Text: "words to search for"},
	{Name: "Last-Modification-Time", Kind: Time, Text: "when the object last changed"},
	{Name: "MD5", Kind: MD5, Text: "checksum of the object"},
	{Name: "Refresh-Rate", Kind: Seconds, Text: "seconds after Update-Time when the summary is to be made again"},
	{Name: "Time-to-Live", Kind: Seconds, Text: "seconds after Update-Time when the summary is no longer valid"},
	{Name: "Title", Text: "its title"},
	{Name: "Type", Text: "its type: HTML, PostScript, README"},
	{Name: "URI", Text: "its identifier"},
	{Name: "URL-References", Text: "URLs it refers to"},

	{Name: cursorAttr, Text: "where the next collection goes on"},
	{Name: "Administrator", Text: "who runs it, with an address"},
	{Name: "Location", Text: "where it stands"},
	{Name: "Object-Types", Text: "types of the objects it holds"},
	{Name: "Broker-Name", Text: "name of the Broker"},
	{Name: "Broker-Host", Text: "host or address it is reached at"},
	{Name: "Broker-Port", Kind: Number, Text: "port it answers on"},
	{Name: "Broker-Version", Text: "version of the Broker"},
	{Name: "Cache-Name", Text: "name of the cache"},
	{Name: "Cache-Host", Text: "host or address it is reached at"},
	{Name: "Cache-Port", Kind: Number, Text: "port it answers on"},
	{Name: "Cache-Version", Text: "version of the cache"},
	{Name: "Replicator-Name", Text: "name of the replicator"},
	{Name: "Replicator-Host", Text: "host or address it is reached at"},
	{Name: "Replicator-Port", Kind: Number, Text: "port it answers on"},
	{Name: "Replicator-Version", Text: "version of the replicator"},
}

func standardDecl(name string) Decl {
	for i := range standards {
		if equalName(standards[i].Name, name) {
			return standards[i]
		}
	}
	return Decl{Name: name}
}

func kindOf(name string) Kind { return standardDecl(name).Kind }

// standard returns b as a string if it is a name that most objects have, so that
// Parse need not allocate it, and "" otherwise. The compiler makes a binary
// search of it; a loop over standards took a fifth of the time of decoding.
func standard(b []byte) string {
	switch string(b) {
	case "FILE":
		return "FILE"
	case "DOCUMENT":
		return "DOCUMENT"
	case "Abstract":
		return "Abstract"
	case "Author":
		return "Author"
	case "Description":
		return "Description"
	case "File-Size":
		return "File-Size"
	case "Full-Text":
		return "Full-Text"
	case "Gatherer-Host":
		return "Gatherer-Host"
	case "Gatherer-Name":
		return "Gatherer-Name"
	case "Gatherer-Port":
		return "Gatherer-Port"
	case "Gatherer-Version":
		return "Gatherer-Version"
	case "Update-Time":
		return "Update-Time"
	case "Keywords":
		return "Keywords"
	case "Last-Modification-Time":
		return "Last-Modification-Time"
	case "MD5":
		return "MD5"
	case "Refresh-Rate":
		return "Refresh-Rate"
	case "Time-to-Live":
		return "Time-to-Live"
	case "Title":
		return "Title"
	case "Type":
		return "Type"
	case "URI":
		return "URI"
	case "URL-References":
		return "URL-References"
	}
	return ""
}
