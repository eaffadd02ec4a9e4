package essence

import (
	"bytes"
	"fmt"
	"strings"

	"harvest/gather/soif"
)

// A contentLine is one of iCalendar or vCard: NAME;PARAM=x:value.
type contentLine struct{ name, param, value string }

// contentLines unfolds and parts the lines of an iCalendar or vCard.
func contentLines(text []byte, visit func(contentLine)) {
	var line []byte
	flush := func() {
		if len(line) == 0 {
			return
		}
		i, quoted := 0, false
		for i < len(line) && (line[i] != ':' || quoted) {
			if line[i] == '"' {
				quoted = !quoted
			}
			i++
		}
		if i == len(line) {
			return
		}
		name, param, _ := strings.Cut(string(line[:i]), ";")
		if _, n, ok := strings.Cut(name, "."); ok { // group.TEL
			name = n
		}
		visit(contentLine{strings.ToUpper(name), param, unescapeContent(string(line[i+1:]))})
	}
	for l := range bytes.Lines(text) {
		l = bytes.TrimRight(l, "\r\n")
		if len(l) > 0 && (l[0] == ' ' || l[0] == '\t') {
			if len(line) < 64<<10 {
				line = append(line, l[1:]...)
			}
			continue
		}
		flush()
		line = append(line[:0], l...)
	}
	flush()
}

var contentEscapes = strings.NewReplacer(`\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\\`, `\`)

func unescapeContent(v string) string { return contentEscapes.Replace(v) }

// sumCalendar summarizes a calendar by its events.
func sumCalendar(w *worker, o *soif.Object, c *content, text []byte) {
	titles, people, places, urls := w.list(), w.list(), w.list(), w.list()
	var name, first, last, description, product string
	var said []byte
	n := 0
	contentLines(text, func(l contentLine) {
		switch l.name {
		case "BEGIN":
			if v := strings.ToUpper(l.value); v == "VEVENT" || v == "VTODO" || v == "VJOURNAL" {
				n++
			}
		case "X-WR-CALNAME", "NAME":
			name = l.value
		case "X-WR-CALDESC":
			description = l.value
		case "PRODID":
			product = l.value
		case "SUMMARY":
			titles.add(l.value)
			said = append(append(said, l.value...), '\n')
		case "DESCRIPTION", "COMMENT":
			if description == "" && n == 1 {
				description = l.value
			}
			if len(said) < w.lim.Text {
				said = append(append(said, l.value...), '\n')
			}
		case "LOCATION":
			places.add(l.value)
			said = append(append(said, l.value...), '\n')
		case "ORGANIZER", "ATTENDEE":
			people.add(calendarPerson(l))
		case "URL", "ATTACH":
			if strings.Contains(l.value, "://") {
				urls.add(l.value)
			}
		case "DTSTART":
			if n > 0 && len(l.value) >= 8 {
				if first == "" || l.value < first {
					first = l.value
				}
				last = max(last, l.value)
			}
		}
	})
	if name == "" {
		name, _, _ = strings.Cut(titles.String(), "\n")
	}
	if first != last {
		first += " - " + last
	}
	w.set(o, "Title", name)
	w.set(o, "Author", people.String())
	w.set(o, "Date", first)
	w.set(o, "Description", string(cutText([]byte(words(description)), 400)))
	w.set(o, "Records", fmt.Sprint(n))
	w.set(o, "Headings", titles.String())
	w.set(o, "Location", places.String())
	w.set(o, "URL-References", urls.String())
	w.set(o, "Generator", product)
	w.set(o, "Keywords", keywords(said, 30))
	w.fullText(o, c, plainText(said))
}

// calendarPerson is the name of someone who takes part, or the address.
func calendarPerson(l contentLine) string {
	for p := range strings.SplitSeq(l.param, ";") {
		if n, ok := strings.CutPrefix(p, "CN="); ok {
			return strings.Trim(n, `"`)
		}
	}
	return strings.TrimPrefix(strings.ToLower(l.value), "mailto:")
}

// sumCard summarizes cards of people and organizations.
func sumCard(w *worker, o *soif.Object, c *content, text []byte) {
	names, orgs, roles, urls, mails := w.list(), w.list(), w.list(), w.list(), w.list()
	note := ""
	contentLines(text, func(l contentLine) {
		switch l.name {
		case "FN":
			names.add(l.value)
		case "ORG":
			orgs.add(strings.Trim(strings.ReplaceAll(l.value, ";", ", "), ", "))
		case "TITLE", "ROLE":
			roles.add(l.value)
		case "URL":
			urls.add(l.value)
		case "EMAIL":
			mails.add(l.value)
		case "NOTE":
			if note == "" {
				note = l.value
			}
		case "CATEGORIES":
			roles.add(l.value)
		}
	})
	title, rest, _ := strings.Cut(names.String(), "\n")
	w.set(o, "Title", title)
	w.set(o, "Headings", rest)
	w.set(o, "Organization", orgs.String())
	w.set(o, "Subject", roles.String())
	w.set(o, "From", mails.String())
	w.set(o, "Description", string(cutText([]byte(words(note)), 400)))
	w.set(o, "URL-References", urls.String())
	w.set(o, "Keywords", words(names.String()+" "+orgs.String()))
	w.fullText(o, c, plainText([]byte(names.String()+"\n"+orgs.String()+"\n"+roles.String()+"\n"+note)))
}
