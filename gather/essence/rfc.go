package essence

import (
	"bytes"
	"strings"

	"harvest/gather/soif"
)

// noteFamily are the documents of the Internet's engineers.
func noteFamily() map[string]entry {
	return map[string]entry{
		"RFC": {sum: sumRFC}, "FYI": {sum: sumRFC}, "Internet-Draft": {sum: sumRFC},
	}
}

var (
	rfcNumber  = expression(`(?i)^(?:request for comments|rfc)\s*:?\s*#?\s*(\d{1,5})`)
	rfcFYI     = expression(`(?i)^(?:fyi|std|bcp):?\s*(\d+)`)
	rfcDate    = expression(`^(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{1,2},)? (?:19|20)\d\d$`)
	rfcSection = expression(`^(?:\d+(?:\.\d+)*\.?|[A-Z](?:\.\d+)*\.|Appendix [A-Z][.:]?)  ?\S.{1,90}$`)
	rfcDraft   = expression(`^<?draft-[\w.+-]+>?$`)
	rfcPage    = expression(`^(?:\S.*\[Page \d+\]|\f|RFC \d+ {3,}.*|Internet-Draft {3,}.*|draft-\S+ {3,}.*\d{4})[ \t]*\r?$`)
	rfcPlace   = expression(`(?i)\b(?:company|universi\w+|inc|ltd|corp\w*|systems?|institute?|networks?|labs?|laborator\w+|research|group|technolog\w+|foundation|cent(?:er|re)|college|communications|consulting|software|microsystems|editors?|project|telecom\w*|school|agency|the)\b`)
	rfcPerson  = expression(`^(?:[A-Z]\.[ -]?)+ ?[\p{L}' -]+(?:, (?:Ed\.|Editor|Jr\.|III))?$|^[A-Z]\p{Ll}+ [A-Z][\p{L}. ]+$`)
)

// sumRFC summarizes an RFC, an FYI or an Internet-Draft: the two columns it
// begins with, its title, its abstract, its sections.
func sumRFC(w *worker, o *soif.Object, c *content, text []byte) {
	pages := withoutPages(text)
	r := rfc{authors: w.list(), sections: w.list(), refs: w.list()}
	r.header(pages)
	r.sectionTexts(pages)
	w.set(o, "Title", r.title)
	w.set(o, "Author", r.authors.String())
	w.set(o, "Date", r.date)
	w.set(o, "Number", r.number)
	w.set(o, "Category", r.category)
	w.set(o, "References", r.refs.String())
	w.set(o, "Abstract", words(r.abstract))
	if r.abstract == "" {
		w.set(o, "Description", firstParagraph(r.rest, 400))
	}
	w.set(o, "Headings", r.sections.String())
	w.tell(o, c, pages, "")
	w.fullText(o, c, plainText(text))
}

// withoutPages is a text without the lines at the ends of its pages, which stay as
// empty ones.
func withoutPages(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n')
		if n < 0 {
			n = len(text)
		}
		line := text[:n]
		if !pageEnd(line) {
			out = append(out, line...)
		}
		if text = text[n:]; len(text) > 0 {
			out, text = append(out, '\n'), text[1:]
		}
	}
	return out
}

// pageEnd reports whether a line is one of those at the ends of pages.
func pageEnd(line []byte) bool {
	if len(line) == 0 || line[0] == ' ' || line[0] == '\t' {
		return false
	}
	switch line[0] {
	case '\f', 'R', 'I', 'd':
	default:
		if !bytes.Contains(line, []byte("[Page ")) {
			return false
		}
	}
	return rfcPage().Match(line)
}

type rfc struct {
	title, date, number, category, abstract string
	authors, sections, refs                 *list
	rest                                    []byte // after the title
}

// header reads the columns at the top, left and right, and the title, which is
// the first paragraph that is neither.
func (r *rfc) header(text []byte) {
	rest := text
	columns := false
	var title []string
	for n := 0; len(rest) > 0 && n < 80; n++ {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		l := strings.TrimRight(string(line[:min(len(line), 200)]), " \t\r")
		switch trimmed := strings.TrimSpace(l); {
		case trimmed == "" || strings.HasPrefix(trimmed, "\ufeff"):
			if len(title) > 0 {
				r.entitle(title, after)
				return
			}
		case r.columnLine(l, columns):
			columns = true
			title = nil
		case len(title) < 5:
			title = append(title, trimmed)
		default:
			r.entitle(title, after)
			return
		}
		rest = after
	}
	r.entitle(title, rest)
}

// entitle takes the lines of the title, of which a draft's last is its name.
func (r *rfc) entitle(title []string, rest []byte) {
	if n := len(title) - 1; n > 0 && rfcDraft().MatchString(title[n]) {
		r.numbered(strings.Trim(title[n], "<>"))
		title = title[:n]
	}
	r.title, r.rest = strings.Join(title, " "), rest
}

// numbered keeps a number, a line each: an FYI has one as an RFC too.
func (r *rfc) numbered(n string) {
	if r.number != "" {
		n = r.number + "\n" + n
	}
	r.number = n
}

var columnGap = expression(` {3,}`)

// columnLine takes a line of the two columns; false if it is none.
func (r *rfc) columnLine(l string, columns bool) bool {
	left, right := l, ""
	if m := columnGap().FindAllStringIndex(l, -1); len(m) > 0 && m[len(m)-1][0] > 0 {
		left, right = strings.TrimSpace(l[:m[len(m)-1][0]]), l[m[len(m)-1][1]:]
	} else if strings.HasPrefix(l, "                    ") {
		left, right = "", strings.TrimSpace(l)
		if !rfcDate().MatchString(right) && !rfcPerson().MatchString(right) || !columns {
			return false
		}
	}
	known := r.leftColumn(left)
	if right == "" {
		return known
	}
	switch {
	case rfcDate().MatchString(right):
		r.date = right
	case rfcPerson().MatchString(right):
		if !rfcPlace().MatchString(right) {
			r.authors.add(right)
		}
	case !known && !columns:
		return left != "" && len(l) > 60 && strings.HasPrefix(left, "Network Working Group")
	}
	return true
}

// leftColumn takes what stands at the left: number, category, what it replaces.
func (r *rfc) leftColumn(left string) bool {
	name, value, ok := strings.Cut(left, ":")
	switch {
	case left == "":
		return true
	case rfcNumber().MatchString(left):
		r.numbered("RFC " + rfcNumber().FindStringSubmatch(left)[1])
	case rfcFYI().MatchString(left):
		r.numbered(strings.ToUpper(left[:3]) + " " + rfcFYI().FindStringSubmatch(left)[1])
	case strings.HasPrefix(left, "draft-"):
		r.numbered(left)
	case ok && (name == "Category" || name == "Intended status"):
		r.category = strings.TrimSpace(value)
	case ok && (name == "Obsoletes" || name == "Updates" || name == "Replaces"):
		r.refs.add(name + ": " + strings.TrimSpace(value))
	case ok && (name == "ISSN" || name == "Expires" || name == "Internet-Draft" || name == "NIC" || name == "Related RFCs"):
	case left == "Network Working Group" || left == "Internet Engineering Task Force (IETF)" || left == "Internet-Draft" || left == "INTERNET-DRAFT" || left == "Internet Draft" || strings.HasPrefix(left, "Independent Submission") || strings.HasPrefix(left, "Internet Architecture Board") || strings.HasPrefix(left, "Internet Research"):
	default:
		return false
	}
	return true
}

// sectionTexts finds the abstract and the headings, those of the table of
// contents left out.
func (r *rfc) sectionTexts(text []byte) {
	var abstract []byte
	in := false
	for line := range bytes.Lines(text) {
		l := strings.TrimRight(string(line[:min(len(line), 200)]), " \t\r\n")
		if l == "" {
			if in {
				abstract = append(abstract, '\n')
			}
			continue
		}
		if l[0] != ' ' {
			in = (strings.EqualFold(l, "Abstract") || strings.EqualFold(l, "Summary")) && len(abstract) == 0
			if rfcSection().MatchString(l) && !strings.Contains(l, "...") && !strings.Contains(l, ". . .") {
				r.sections.add(l)
			}
			continue
		}
		if in && len(abstract) < 8<<10 {
			abstract = append(append(abstract, l...), '\n')
		}
	}
	r.abstract = string(abstract)
}
