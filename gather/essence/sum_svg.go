package essence

import (
	"fmt"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// sumSVG summarizes a drawing by its title, description, the text in it, and
// what RDF in it tells.
func sumSVG(w *worker, o *soif.Object, c *content, text []byte) {
	d := w.document()
	d.name = c.name
	d.extra("Image-Format", "SVG")
	s := &xmlScanner{b: text}
	depth := 0
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k == xmlClose {
			depth--
			continue
		}
		if k != xmlOpen {
			continue
		}
		depth++
		switch string(s.name) {
		case "svg":
			if depth == 1 {
				d.size(s)
			}
		case "title":
			if depth > 2 {
				d.comment(s.inner())
			} else if t := s.inner(); d.title == "" {
				d.title = t
			}
			depth--
		case "desc":
			if depth > 2 {
				d.comment(s.inner())
			} else {
				d.description = s.inner()
			}
			depth--
		case "text":
			if t := s.inner(); t != "" {
				d.add([]byte(t + "\n"))
			}
			depth--
		case "creator":
			d.author, depth = s.inner(), depth-1
		case "rights":
			d.extra("Rights", s.inner())
			depth--
		case "date":
			d.date, depth = isoTime(s.inner()), depth-1
		case "li":
			d.keywords, depth = append(d.keywords, s.inner()), depth-1
		case "a":
			d.link(s.attr("href"))
		case "style", "script":
			s.skip()
			depth--
		}
	}
	d.put(w, o, c)
}

// size is that of a drawing, where it is told in numbers.
func (d *document) size(s *xmlScanner) {
	unit := func(v string) float64 {
		n, _ := strconv.ParseFloat(strings.TrimSuffix(v, "px"), 64)
		return n
	}
	wide, high := unit(s.attr("width")), unit(s.attr("height"))
	if f := strings.Fields(strings.ReplaceAll(s.attr("viewBox"), ",", " ")); wide == 0 && len(f) == 4 {
		wide, high = unit(f[2]), unit(f[3])
	}
	if wide > 0 && high > 0 {
		d.extra("Dimensions", fmt.Sprintf("%.0fx%.0f", wide, high))
	}
}
