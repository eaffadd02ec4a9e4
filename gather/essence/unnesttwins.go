package essence

import (
	"fmt"
	"path"
	"strings"

	"harvest/gather/soif"
)

// What is redundant beside another member of an archive is left out, as the table
// select says of documents. An archive is read from its beginning to its end: of
// embedded members, which are kept till then, all that are redundant go; of those
// that are objects, which are handed on as they come, those whose twin came before.

// dropTwins leaves of the redundant members what they are called, and why.
func (t *taking) dropTwins() {
	if t.names != nil {
		return
	}
	why := t.w.tab.twins(t.have)
	if len(why) == 0 {
		return
	}
	prefixes := make(map[string]string, len(why))
	for i, w := range why {
		prefixes[fmt.Sprintf("Embed%d-", i+1)] = w
	}
	kept := t.o.Attrs[:0:0]
	for _, a := range t.o.Attrs {
		mark := strings.IndexByte(a.Name, '-') + 1
		reason, redundant := prefixes[a.Name[:mark]]
		if redundant && !identity[a.Name[mark:]] {
			continue
		}
		kept = append(kept, a)
		if redundant && a.Name[mark:] == "Nested-Filename" {
			kept = append(kept, soif.Attr{Name: a.Name[:mark] + "Rejected", Value: []byte(reason)})
		}
	}
	t.o.Attrs = kept
}

// identity are the attributes of a member that is not wanted for what is in it.
var identity = map[string]bool{"Nested-Filename": true, "Type": true, "File-Size": true, "Last-Modification-Time": true, "MD5": true}

// twin is why a member is redundant beside one that came before, "" if it is not.
func (t *taking) twin(name string) string {
	if len(t.w.tab.drops) == 0 {
		return ""
	}
	if t.here == nil {
		t.here = make(map[string]bool)
	}
	dir, base := path.Split(name)
	for other, why := range t.w.tab.Redundant(base) {
		if t.here[dir+other] {
			return why + ": " + dir + other + " is there"
		}
	}
	t.here[name] = true
	return ""
}

// distribution tells of sources what is in them: what the README nearest to the
// top says of them, and what their manual pages are about.
func distribution(w *worker, o *soif.Object) {
	readme, depth := "", 0
	var pages strings.Builder
	for _, a := range o.Attrs {
		mark := strings.IndexByte(a.Name, '-') + 1
		if !strings.HasPrefix(a.Name, "Embed") || a.Name[mark:] != "Type" {
			continue
		}
		of := a.Name[:mark]
		switch string(a.Value) {
		case "README", "Markdown", "ReST", "Text":
			name := o.Text(of + "Nested-Filename")
			if n := strings.Count(name, "/"); strings.HasPrefix(strings.ToUpper(path.Base(name)), "README") && (readme == "" || n < depth) {
				readme, depth = of, n
			}
		case "ManPage":
			if title := o.Text(of + "Title"); title != "" && pages.Len() < w.lim.Attr {
				fmt.Fprintf(&pages, "%s - %s\n", title, o.Text(of+"Description"))
			}
		}
	}
	if readme != "" {
		for _, name := range []string{"Title", "Description", "Keywords", "Full-Text"} {
			if v := o.Text(readme + name); v != "" {
				add(o, name, v)
			}
		}
	}
	w.set(o, "Headings", strings.TrimSuffix(pages.String(), "\n"))
}
