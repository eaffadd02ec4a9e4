package essence

import (
	"bytes"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// fewPages is how much of a document's pages is set where its full text is not
// wanted.
const fewPages = "20"

// sumPDF summarizes a PDF file. What is said about it, its outline and links are
// read here; the words of its pages by pdftotext, in a jail.
func sumPDF(w *worker, o *soif.Object, c *content, _ []byte) {
	d := w.document()
	f, err := w.pdf(c)
	if err != nil {
		w.limit(c, "pdf: "+err.Error())
		return
	}
	f.about(d)
	if f.secret {
		w.pdfInfo(c, d)
	}
	args := []string{"-q", "-enc", "UTF-8"}
	if !w.full {
		args = append(args, "-l", fewPages)
	}
	text, err := w.run(c, "pdftotext", append(args, "{}", "-")...)
	if err != nil {
		w.limit(c, err.Error())
	}
	pages := bytes.Count(text, []byte("\f"))
	if d.pages == 0 && w.full {
		d.pages = pages
	}
	d.add(bytes.ReplaceAll(text, []byte("\f"), []byte("\n")))
	if len(text) > 0 {
		if !tells(words(d.title), c) {
			d.title = w.largest(c)
		}
		d.paper(c)
	}
	d.put(w, o, c)
}

// pdfInfo has pdfinfo tell what stands encrypted in a file that anybody may
// read.
func (w *worker) pdfInfo(c *content, d *document) {
	text, err := w.run(c, "pdfinfo", "-isodates", "-enc", "UTF-8", "{}")
	if err != nil {
		w.limit(c, err.Error())
	}
	for line := range bytes.Lines(text) {
		key, val, _ := strings.Cut(words(line), ": ")
		switch key {
		case "Title":
			d.title = val
		case "Author":
			d.author = val
		case "Subject":
			d.subject = val
		case "Keywords":
			d.keywords = strings.Split(val, ",")
		case "Creator":
			d.generator = val
		case "CreationDate":
			d.created = isoTime(zoneMinutes(val))
		case "ModDate":
			d.modified = isoTime(zoneMinutes(val))
		case "Pages":
			d.pages, _ = strconv.Atoi(val)
		}
	}
}

// zoneMinutes completes a zone that is told in hours alone.
func zoneMinutes(s string) string {
	if n := len(s); n > 3 && (s[n-3] == '+' || s[n-3] == '-') {
		return s + ":00"
	}
	return s
}

// largest is the text that is set largest on the first page.
func (w *worker) largest(c *content) string {
	text, _ := w.run(c, "pdftotext", "-q", "-bbox-layout", "-l", "1", "{}", "-")
	s := &xmlScanner{b: text}
	best, height, last, lines, sum := "", 0.0, false, 0.0, 0.0 // last: the line before is of it
	var line []byte
	tall := 0.0
	for k := s.next(); k != xmlEnd; k = s.next() {
		switch {
		case k == xmlOpen && string(s.name) == "line":
			line, tall = nil, 0
		case k == xmlOpen && string(s.name) == "word":
			top, _ := strconv.ParseFloat(s.attr("yMin"), 64)
			bottom, _ := strconv.ParseFloat(s.attr("yMax"), 64)
			tall = max(tall, bottom-top)
			line = appendWords(append(line, ' '), []byte(s.inner()))
		case k == xmlClose && string(s.name) == "line":
			switch {
			case !letters(line, 3):
				continue
			case tall > height*1.05:
				best, height, last = words(line), tall, true
			case tall > height*0.95 && last && len(best) < 200: // it goes on in the next line
				best += " " + words(line)
			default:
				last = false
			}
			lines, sum = lines+1, sum+tall
		}
	}
	if height*lines < 1.1*sum { // all lines are alike
		return ""
	}
	return best
}

var (
	abstractLine = expression(`(?im)^[ \t]*(?:abstract|summary|zusammenfassung|résumé|resumen)[ \t]*(?:[.:\x{2014}\x{2013}]|$)`)
	pastAbstract = expression(`(?m)^[ \t]*(?:(?:[1I]\.?[ \t]+)?Introduction|INTRODUCTION|[0-9]{1,2}\.?[ \t]+\p{Lu}\w+|Key ?words|KEYWORDS|Index Terms|Contents|CONTENTS)\b`)
	numbered     = expression(`(?m)^[ \t]*((?:(?:Chapter|Section|Appendix)[ \t]+)?(?:[0-9]{1,2}(?:\.[0-9]{1,2}){0,3}|[A-Z]|[IVX]{1,5})\.?[ \t]+\p{Lu}[^\n]{2,70})$`)
)

// paper looks for the structure that papers show in their text alone: an
// abstract, and numbered headings where there is no outline.
func (d *document) paper(c *content) {
	start := d.text[:min(len(d.text), 16<<10)]
	if m := abstractLine().FindIndex(start); m != nil && d.abstract == "" {
		body := start[m[1]:]
		if e := pastAbstract().FindIndex(body); e != nil {
			body = body[:e[0]]
		}
		body = bytes.TrimLeft(body, " \t\r\n")
		if e := bytes.Index(body, []byte("\n\n")); e > 200 {
			body = body[:e]
		}
		d.abstract = string(cutText([]byte(words(body)), 2000))
	}
	if len(d.headings) > 0 {
		return
	}
	if !tells(words(d.title), c) {
		d.title, _ = firstLine(d.text)
	}
	seen := make(map[string]bool)
	for _, m := range numbered().FindAllSubmatch(d.text, maxPoints) {
		h := words(m[1])
		if end := h[len(h)-1]; strings.Contains(h, ". .") || strings.Contains(h, "...") || end >= '0' && end <= '9' ||
			strings.IndexByte(".,;:", end) >= 0 || seen[h] {
			continue // of a table of contents, or the beginning of a sentence
		}
		seen[h] = true
		d.heading(h)
	}
}
