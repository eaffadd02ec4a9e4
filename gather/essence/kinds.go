package essence

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"harvest/fs/ndb"
)

// A kind is a type of object, as far as recognition goes: what is done with it
// stands in summarizers and containers, by its name.
type kind struct {
	name   string
	on     []*kind  // whose content it has, any of them
	text   bool     // is text, so that binary content belies the name
	binary bool     // is none, so that text belies it
	magic  bool     // is told by its content: a name alone is not believed
	media  []string // its media types
	about  string
}

// is reports whether content of k is content of other.
func (k *kind) is(other *kind) bool { return k.chain(func(on *kind) bool { return on == other }) }

// fits reports whether a pattern fits the type, or one that it stands on.
func (k *kind) fits(re *regexp.Regexp) bool {
	return k.chain(func(on *kind) bool { return re.MatchString(on.name) })
}

// any is fits for one of several patterns.
func (k *kind) any(all []*regexp.Regexp) bool {
	return slices.ContainsFunc(all, k.fits)
}

// chain reports whether there is one, of the type and those that it stands on.
func (k *kind) chain(found func(*kind) bool) bool {
	return found(k) || slices.ContainsFunc(k.on, func(on *kind) bool { return on.chain(found) })
}

func (t *Tables) parseKinds(text []byte) error {
	t.kinds, t.media = make(map[string]*kind), make(map[string]*kind)
	err := lines(text, embedded("kinds"), t.parseKind)
	for _, name := range []string{"Empty", "Text", "Data", "HTML"} { // recognition ends with them
		t.kind(name)
	}
	return err
}

// parseKind reads a line. The first about a type counts: a user's own stands
// before the program's.
func (t *Tables) parseKind(e ndb.Entry) error {
	name, err := typeName(e)
	if err != nil {
		return err
	}
	k := kind{name: name}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "text":
			k.text, err = e.Bool(p)
		case "binary":
			k.binary, err = e.Bool(p)
		case "magic":
			k.magic, err = e.Bool(p)
		case "on":
			err = t.standsOn(&k, e, p)
		case "media":
			for m := range strings.SplitSeq(p.Value, ",") {
				if m = strings.ToLower(strings.TrimSpace(m)); !strings.Contains(m, "/") {
					return e.Errorf(p, "media: '%s' is not a media type such as text/plain", m)
				}
				k.media = append(k.media, m)
			}
		case "about":
			k.about = p.Value
		default:
			err = e.Errorf(p, "unknown key '%s'; there are on, text, binary, magic, media and about", p.Key)
		}
		if err != nil {
			return err
		}
	}
	if k.text && k.binary {
		return e.Errorf(e.First(), "%s: it cannot be text and binary", name)
	}
	if is := t.kind(name); is.about == "" && is.media == nil && !is.text && !is.binary && !is.magic && is.on == nil {
		*is = k
		for _, m := range k.media {
			if t.media[m] == nil {
				t.media[m] = is
			}
		}
	}
	return nil
}

// standsOn reads on=, types that a type has the content of.
func (t *Tables) standsOn(k *kind, e ndb.Entry, p ndb.Pair) error {
	for name := range strings.SplitSeq(p.Value, ",") {
		if !isType(name) {
			return e.Errorf(p, "on: '%s' is no type", name)
		}
		on := t.kind(name) // its line may follow
		if self := t.kinds[k.name]; name == k.name || self != nil && on.is(self) {
			return e.Errorf(p, "on: %s stands on %s itself", name, k.name)
		}
		k.on = append(k.on, on)
	}
	return nil
}

// kind is the type of that name, which is made if no line was about it.
func (t *Tables) kind(name string) *kind {
	k := t.kinds[name]
	if k == nil {
		k = &kind{name: name}
		t.kinds[name] = k
	}
	return k
}

// typed is the type of that name, or one of which nothing is known.
func (t *Tables) typed(name string) *kind {
	if k := t.kinds[name]; k != nil {
		return k
	}
	return &kind{name: name}
}

// A Type is what Types tells of one.
type Type struct {
	Name  string
	Does  string   // "unnest", "summarize", "text": what is done with it; "" is nothing but to describe it
	On    []string // the types whose content it has
	Media []string
	About string
}

// Has reports whether there is a type of that name.
func (t *Tables) Has(name string) bool { return t.kinds[name] != nil }

// takenApart are the types that there is nothing to summarize in but what they
// hold.
var takenApart = func() map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(`GNUCompressed Compressed BzipCompressed XZCompressed ZstdCompressed LZ4Compressed
		BrotliCompressed LzipCompressed LzmaCompressed SnappyCompressed ZlibCompressed MacCompressed Uuencoded
		YEnc Tar GNUCompressedTar CompressedTar SourceDistribution Archive DebianPackage RPM Cpio PCCompressed Jar
		AndroidPackage PythonWheel SevenZip RAR ShellArchive TNEF`) {
		m[name] = true
	}
	return m
}()

// Types returns all types, in the order of their names. t may be nil: then they
// are the program's own.
func (t *Tables) Types() (all []Type) {
	if t == nil {
		t = ownTables()
	}
	for _, name := range slices.Sorted(maps.Keys(t.kinds)) {
		k := t.kinds[name]
		x := Type{Name: name, Media: k.media, About: k.about}
		for _, on := range k.on {
			x.On = append(x.On, on.name)
		}
		_, known := summarizers()[name]
		switch {
		case takenApart[name] && t.policy(k).as != "no":
			x.Does = "unnest"
		case known:
			x.Does = "summarize"
		case k.text:
			x.Does = "text"
		}
		all = append(all, x)
	}
	return all
}

// ofMedia is the type that a media type names, nil if it is none of them or says
// nothing.
func (t *Tables) ofMedia(media string) *kind {
	media, _, _ = strings.Cut(media, ";")
	return t.media[strings.ToLower(strings.TrimSpace(media))]
}
