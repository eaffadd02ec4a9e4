package essence

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// explode has an exploder of a user's make objects of what is in a content, and
// tells whether one did. They are objects as members of archives are: with URLs
// below that of the document, which theirs become the last part of, so that a
// document cannot pass for another; or parts of its own object where nobody
// takes objects.
func (w *worker) explode(o *soif.Object, c *content) bool {
	for _, b := range w.brings.of(c.typ, true) {
		all, err := w.ask(b, c)
		if err != nil {
			continue
		}
		t := &taking{w: w, o: o, c: c, names: make(map[uint64]struct{}), seed: maphash.MakeSeed()}
		for i := range all {
			if w.members >= w.lim.Members {
				w.limit(c, fmt.Sprintf("only the first %d members", w.lim.Members))
				break
			}
			if w.over() != nil || !t.exploded(&all[i]) {
				break
			}
		}
		add(o, "Members", strconv.Itoa(t.n))
		w.step(c, "unnest", strconv.Itoa(t.n)+" objects", explodeName(b.File))
		return true
	}
	return false
}

func explodeName(file string) string { return "explode/" + file }

// exploded takes one object; false is the end of all.
func (t *taking) exploded(from *soif.Object) bool {
	w := t.w
	w.members++
	t.n++
	name := explodedName(from.URL, t.n)
	at := &content{path: clean(name), typ: from.Text("Type")}
	if t.c.path != "" {
		at.path = t.c.path + "/" + at.path
	}
	var body soif.Object
	if w.member == nil || t.c.at == "" {
		add(&body, "Nested-Filename", clean(name))
		add(&body, "Type", at.typ)
		w.take(&body, at, from)
		fit(&body, maxPrefix-t.c.prefix-len("Embed-")-len(strconv.Itoa(t.n)))
		if t.c.attrs(w, &body); w.attrs > maxMemberAttrs || w.bytes > maxMemberBytes {
			w.limit(t.c, fmt.Sprintf("no room for what is in it past %s", clean(name)))
			return false
		}
		t.o.AddEmbed(t.n, &body)
		return true
	}
	text, cuts := w.text, w.cuts
	w.text, w.cuts = w.lim.Text, nil
	body = soif.Object{Type: "FILE", URL: t.url(name)}
	add(&body, "Nested-Filename", clean(name))
	add(&body, "Type", at.typ)
	w.take(&body, at, from)
	if strings.Contains(from.URL, "://") {
		if _, ok := body.Get("URL-References"); !ok {
			w.set(&body, "URL-References", clean(from.URL))
		}
	}
	err := w.finish(&body, at)
	add(&body, "Summary-Limit", w.limitText())
	w.text, w.cuts = text, cuts
	switch {
	case errors.Is(err, ErrDeleted):
		t.n--
		return true
	case err == nil && w.ctx.Err() == nil:
		err = w.member(w.ctx, Member{Container: t.top(), Object: body})
	}
	w.failed = err
	return err == nil
}

// explodedName is what an object is called that an exploder made: its URL
// without scheme, or the number that it has.
func explodedName(url string, n int) string {
	if _, rest, ok := strings.Cut(url, memberMark); ok {
		url = rest
	}
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	url = strings.Trim(url, "/ -")
	if url == "" {
		return strconv.Itoa(n)
	}
	return url
}
