package essence

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"

	"harvest/gather/catalog"
	"harvest/gather/soif"
)

// # Records as objects
//
// Of a catalogue each record becomes an object, where the table unnest has
// as=objects for its type: package catalog reads it. Its URL is that of a member of
// the document (unnestobject.go), since whoever writes a catalogue has no say in
// what other URLs are; what the record says its URL is stands in the attribute
// URI.

// catalogs are the types that are read so, and their formats.
var catalogs = map[string]string{"IAFA": "iafa", "LSM": "lsm", "BibTeX": "bibtex", "SOIFStream": "soif"}

// maxRecordAttrs bounds the attributes of a record.
const maxRecordAttrs = 1000

// records hands on the records of a catalogue, after it has been summarized.
func (w *worker) records(c *content, k *kind) {
	format, ok := catalogs[c.typ]
	if !ok || w.member == nil || w.tab.policy(k).as != "objects" {
		return
	}
	from := c.all()
	if c.full != nil {
		from = io.NewSectionReader(c.full, 0, c.size)
	}
	r, err := catalog.NewReader(format, from, catalog.Options{})
	if err != nil {
		w.damage(c, format, err)
		return
	}
	p := w.tab.policy(k)
	w.clock(p.time)
	t := &taking{w: w, c: c, p: &p, names: make(map[uint64]struct{}), seed: maphash.MakeSeed()}
	for w.over() == nil {
		o, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			w.damage(c, format, err)
			break
		}
		if t.n++; t.n > p.members || w.members >= w.lim.Members {
			w.short(c, fmt.Sprintf("only the first %d records", t.n-1))
			t.n--
			break
		}
		w.members++
		if !t.record(&o) {
			break
		}
	}
	w.step(c, "unnest", strconv.Itoa(t.n)+" records", format)
}

// record makes an object of a record and hands it on; false is the end of all.
func (t *taking) record(r *soif.Object) bool {
	w := t.w
	o := soif.Object{Type: r.Type, URL: t.url(recordKey(r, t.n))}
	if _, ok := r.Get("Type"); !ok {
		add(&o, "Type", t.c.typ)
	}
	if r.URL != "" && r.URL != "-" {
		w.set(&o, "URI", r.URL)
	}
	for _, a := range r.Attrs {
		full := strings.EqualFold(a.Name, "Full-Text")
		switch {
		case isGatherers(a.Name), full && !w.full, len(o.Attrs) >= maxRecordAttrs:
		case full:
			o.Add(a.Name, slices.Clone(cutText(a.Value, w.lim.Text)))
		default:
			w.set(&o, a.Name, string(a.Value))
		}
	}
	err := w.finish(&o, t.c)
	if errors.Is(err, ErrDeleted) {
		return true
	}
	if err == nil {
		w.made++
		err = w.member(w.ctx, Member{Container: t.top(), Object: o})
	}
	w.failed = err
	return err == nil
}

// recordKey is what tells a record from others of its catalogue: its key, or its
// URL, or its number.
func recordKey(o *soif.Object, n int) string {
	for _, name := range []string{"Citation-Key", "Handle"} {
		if key := o.Text(name); key != "" {
			return key
		}
	}
	if scheme, rest, ok := strings.Cut(o.URL, "://"); ok {
		return scheme + "/" + rest
	}
	return strconv.Itoa(n)
}
