package essence

import "strings"

// drawing reads the pages of a Visio drawing in their order: names that people
// gave them as headings, and what stands in shapes, a shape a line. Shapes that a
// page's master lends have their text there, if they have none of their own.
func (x *ooxml) drawing(main string) {
	rels := x.relations(main)
	masters := make(map[string]string)
	for _, id := range sortedKeys(rels) {
		if r := rels[id]; r.kind == "masters" {
			masters = x.masters(r.target)
		}
	}
	for _, id := range sortedKeys(rels) {
		if r := rels[id]; r.kind == "pages" {
			x.pages(r.target, masters)
		}
	}
}

// masters are the texts of master shapes, by the number that shapes name.
func (x *ooxml) masters(part string) map[string]string {
	texts := make(map[string]string)
	x.listed(part, "Master", func(s *xmlScanner, target string) {
		m := &ooxml{parcel: x.parcel, d: x.w.document()}
		m.d.room = min(m.d.room, minText)
		m.figures(target, nil)
		texts[s.attr("ID")] = strings.TrimSpace(string(m.d.text))
	})
	return texts
}

// pages reads the pages of a drawing, but for backgrounds, which repeat.
func (x *ooxml) pages(part string, masters map[string]string) {
	n := 0
	x.listed(part, "Page", func(s *xmlScanner, target string) {
		if s.attr("Background") == "1" {
			return
		}
		n++
		if name := s.attr("Name"); !strings.HasPrefix(s.attr("NameU"), "Page-") {
			x.d.heading(name)
		}
		x.figures(target, masters)
		x.d.gap(2)
	})
	x.d.pages = n
}

// listed tells of each element of a part that has the name, and the part that it
// leads to by its Rel.
func (x *ooxml) listed(part, name string, tell func(s *xmlScanner, target string)) {
	rels := x.relations(part)
	s := x.xml(part)
	for k, n := s.next(), 0; k != xmlEnd && n < maxParts; k = s.next() {
		if k != xmlOpen || string(s.name) != name {
			continue
		}
		n++
		start := *s // its attributes are asked when its Rel is known
		for k = s.next(); k != xmlEnd && (k != xmlClose || string(s.name) != name); k = s.next() {
			if k == xmlOpen && string(s.name) == "Rel" {
				if r, ok := rels[s.attr("r:id")]; ok && !r.external {
					tell(&start, r.target)
				}
			}
		}
	}
}

// figures reads the shapes of a page or of a master.
func (x *ooxml) figures(part string, masters map[string]string) {
	d := x.d
	s := x.xml(part)
	lent, own := "", false // what the master of the shape says, and whether it speaks itself
	settle := func() {
		if !own && lent != "" {
			d.add([]byte(lent))
			d.gap(1)
		}
		lent, own = "", false
	}
	for k := s.next(); k != xmlEnd; k = s.next() {
		name := string(s.name)
		switch {
		case k == xmlOpen && name == "Shape":
			settle()
			lent = masters[s.attr("Master")]
		case k == xmlOpen && name == "Text":
			own = true
			d.blanks([]byte(s.inner()))
			d.gap(1)
		case k == xmlClose && name == "Shape":
			settle()
		}
	}
}
