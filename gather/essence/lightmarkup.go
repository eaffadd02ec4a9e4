package essence

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"harvest/gather/soif"
)

// lightFamily are the types marked by a few characters.
func lightFamily() map[string]entry {
	return map[string]entry{
		"ReST":     {sum: sumReST},
		"AsciiDoc": {sum: sumAsciiDoc},
		"Org":      {sum: sumOrg},
		"POD":      {sum: sumPOD},
	}
}

// A lightText is what is kept of such a text.
type lightText struct {
	title, author, date, language, description string
	headings, links, comments                  *list
	words                                      *list
	body                                       []byte
}

func (w *worker) lightText() *lightText {
	return &lightText{headings: w.list(), links: w.list(), comments: w.list(), words: w.list()}
}

// heading takes a heading; the first is the title.
func (t *lightText) heading(h string) {
	if h = words(h); t.title == "" {
		t.title = h
	} else {
		t.headings.add(h)
	}
	t.body = append(append(append(t.body, '\n'), h...), "\n\n"...)
}

func (t *lightText) set(w *worker, o *soif.Object, c *content, text []byte) {
	for _, l := range bareLinks(text, 500) {
		t.links.add(l)
	}
	if t.description == "" {
		t.description = pastHeadings(t.body)
	}
	title := t.title
	if title == "" {
		title, _ = firstLine(t.body)
	}
	w.set(o, "Title", title)
	w.set(o, "Author", t.author)
	w.set(o, "Date", t.date)
	w.set(o, "Language", t.language)
	w.set(o, "Description", string(cutText([]byte(words(t.description)), 400)))
	w.set(o, "Headings", t.headings.String())
	w.set(o, "URL-References", t.links.String())
	if k := t.words.String(); k != "" {
		w.set(o, "Keywords", strings.ReplaceAll(k, "\n", " "))
	} else {
		w.tell(o, c, t.body, "")
	}
	w.set(o, "Comments", t.comments.String())
	w.fullText(o, c, plainText(t.body))
}

// pastHeadings is the first paragraph of some length.
func pastHeadings(body []byte) string {
	for range 30 {
		body = bytes.TrimLeft(body, " \t\r\n")
		end := bytes.Index(body, []byte("\n\n"))
		if end < 0 {
			end = len(body)
		}
		if letters(body[:end], 40) {
			return string(cutText([]byte(words(body[:min(end, 1600)])), 400))
		}
		if body = body[end:]; len(body) == 0 {
			break
		}
	}
	return ""
}

var restField = expression(`^:(\w[\w -]*):[ \t]*(.*)$`)

// sumReST summarizes reStructuredText.
func sumReST(w *worker, o *soif.Object, c *content, text []byte) {
	t := w.lightText()
	lines := bytes.Split(text, []byte("\n"))
	for i := 0; i < len(lines); i++ {
		line := bytes.TrimRight(lines[i], " \t\r")
		switch {
		case i+1 < len(lines) && len(line) > 0 && line[0] != ' ' && underlines(lines[i+1], line):
			t.heading(restPlain(line))
			i++
		case ornament(line) && i+2 < len(lines) && ornament(bytes.TrimRight(lines[i+2], " \t\r")) && len(bytes.TrimSpace(lines[i+1])) > 0:
			t.heading(restPlain(bytes.TrimSpace(lines[i+1])))
			i += 2
		case bytes.HasPrefix(line, []byte(".. ")):
			t.directive(string(line[3:]))
		case len(line) > 1 && line[0] == ':' && restField().Match(line):
			m := restField().FindSubmatch(line)
			t.meta(string(m[1]), string(m[2]))
		default:
			t.body = append(append(t.body, restPlain(line)...), '\n')
		}
	}
	t.set(w, o, c, text)
}

// ornament reports whether a line is one character, over and over.
func ornament(line []byte) bool {
	if len(line) < 3 || strings.IndexByte("=-~^\"'`#*+:.<>_", line[0]) < 0 {
		return false
	}
	for _, b := range line {
		if b != line[0] {
			return false
		}
	}
	return true
}

// underlines reports whether a line makes a heading of the one above.
func underlines(line, above []byte) bool {
	line = bytes.TrimRight(line, " \t\r")
	return ornament(line) && !ornament(above) && len(line)+2 >= utf8.RuneCount(above)
}

// directive takes `.. name:: value`; anything else after two dots is a comment,
// a target or a note.
func (t *lightText) directive(d string) {
	name, value, ok := strings.Cut(d, "::")
	switch {
	case ok && (name == "image" || name == "figure" || name == "include" || name == "literalinclude"):
		t.links.add(value)
	case ok && (name == "module" || name == "automodule" || name == "function" || name == "class" || name == "index" || strings.HasPrefix(name, "py:") || strings.HasPrefix(name, "c:")):
		t.words.add(strings.TrimSpace(value))
	case ok:
	case strings.HasPrefix(d, "_"):
		if _, url, ok := strings.Cut(d, ": "); ok {
			t.links.add(url)
		}
	case !strings.HasPrefix(d, "["):
		if letters([]byte(d), 8) {
			t.comments.add(d)
		}
	}
}

// meta takes a field of the document.
func (t *lightText) meta(name, v string) {
	v = words(v)
	switch strings.ToLower(name) {
	case "title":
		if t.title == "" {
			t.title = v
		}
	case "author", "authors":
		if t.author == "" {
			t.author = v
		}
	case "date", "revdate":
		t.date = v
	case "description", "subtitle":
		t.description = v
	case "keywords", "filetags", "tags":
		t.words.add(strings.NewReplacer(",", " ", ":", " ").Replace(v))
	case "language", "lang":
		t.language = v
	}
}

var (
	adocHeading = expression(`^={1,6}[ \t]+(\S.*?)(?:[ \t]+=+)?$`)
	adocAuthor  = expression(`^(\p{Lu}[\p{L}.'-]*(?: [\p{L}.'-]+){0,3})(?: <([^>]+)>)?$`)
	adocLink    = expression(`(?:\blink:|image::?|include::|xref:)([^\s\[]+)\[`)
	adocInline  = expression(`(?:https?|ftp|link|mailto|xref):\S*?\[([^\]\n]*)\]|<<[^,>\n]*(?:,([^>\n]*))?>>`)
)

// sumAsciiDoc summarizes AsciiDoc.
func sumAsciiDoc(w *worker, o *soif.Object, c *content, text []byte) {
	t := w.lightText()
	lines := bytes.Split(text, []byte("\n"))
	block := ""
	for i := 0; i < len(lines); i++ {
		line := bytes.TrimRight(lines[i], " \t\r")
		l := string(line)
		switch {
		case block != "":
			if l == block {
				block = ""
			} else if block != "////" {
				t.body = append(append(t.body, l...), '\n')
			}
		case l == "----" || l == "...." || l == "////" || l == "++++":
			block = l
		case l != "" && l[0] == '=' && adocHeading().MatchString(l):
			t.heading(adocHeading().FindStringSubmatch(l)[1])
		case i+1 < len(lines) && len(line) > 2 && line[0] != '[' && line[0] != '.' && underlines(lines[i+1], line) && bytes.IndexByte([]byte("=-~^+"), lines[i+1][0]) >= 0:
			t.heading(l)
			i++
			if i == 1 && i+1 < len(lines) && t.author == "" {
				if m := adocAuthor().FindSubmatch(bytes.TrimRight(lines[i+1], " \r")); m != nil {
					t.author = string(m[1])
					i++
				}
			}
		case strings.HasPrefix(l, "//"):
			t.comments.add(strings.TrimLeft(l, "/"))
		case len(l) > 2 && l[0] == ':' && restField().MatchString(l):
			m := restField().FindStringSubmatch(l)
			t.meta(m[1], m[2])
		case i == 1 && t.author == "" && adocAuthor().MatchString(l):
			t.author = adocAuthor().FindStringSubmatch(l)[1]
		default:
			if open := strings.LastIndexByte(l, '['); open > 0 && strings.IndexByte(l[:open], ':') > 0 || strings.Contains(l, "<<") {
				for _, m := range adocLink().FindAllStringSubmatch(l, 20) {
					t.links.add(m[1])
				}
				l = adocInline().ReplaceAllString(l, "$1$2")
			}
			t.body = append(append(t.body, l...), '\n')
		}
	}
	t.set(w, o, c, text)
}

var orgKey = expression(`(?i)^#\+(\w+):[ \t]*(.*)$`)

// sumOrg summarizes Org.
func sumOrg(w *worker, o *soif.Object, c *content, text []byte) {
	t := w.lightText()
	for line := range bytes.Lines(text) {
		l := strings.TrimRight(string(line), " \t\r\n")
		title, tags, heading := orgHeading(l)
		switch {
		case heading:
			t.heading(title)
			t.words.add(strings.ReplaceAll(tags, ":", " "))
		case strings.HasPrefix(l, "#+"):
			if m := orgKey().FindStringSubmatch(l); m != nil {
				t.meta(m[1], m[2])
			}
		case strings.HasPrefix(l, "# "):
			t.comments.add(l[2:])
		default:
			plain, links := orgPlain(l)
			for _, to := range links {
				t.links.add(to)
			}
			t.body = append(append(t.body, plain...), '\n')
		}
	}
	t.set(w, o, c, text)
}

var podDash = expression(`[ \t]+(?:-|--|–|—)[ \t]+`)

// sumPOD summarizes Perl's documentation, which has the sections of manual pages.
func sumPOD(w *worker, o *soif.Object, c *content, text []byte) {
	t := w.lightText()
	section, synopsis := "", []byte(nil)
	in := bytes.HasPrefix(text, []byte("=")) || !bytes.Contains(text, []byte("\n=cut"))
	for line := range bytes.Lines(text) {
		l := strings.TrimRight(string(line), " \t\r\n")
		if strings.HasPrefix(l, "=") {
			word, rest, _ := strings.Cut(l, " ")
			rest = podPlain(strings.TrimSpace(rest))
			in = word != "=cut"
			switch {
			case strings.HasPrefix(word, "=head"):
				section = rest
				t.headings.add(rest)
				t.body = append(append(append(t.body, '\n'), rest...), "\n\n"...)
			case word == "=item":
				t.body = append(append(t.body, rest...), '\n')
			}
			continue
		}
		if !in {
			continue
		}
		plain := podPlain(l)
		switch {
		case section == "NAME" && t.title == "" && strings.TrimSpace(plain) != "":
			if m := podDash().FindStringIndex(plain); m != nil {
				t.title, t.description = strings.TrimSpace(plain[:m[0]]), plain[m[1]:]
			} else {
				t.title = strings.TrimSpace(plain)
			}
		case section == "SYNOPSIS" && len(synopsis) < w.lim.Attr:
			synopsis = append(append(synopsis, l...), '\n')
		case (section == "AUTHOR" || section == "AUTHORS") && t.author == "":
			t.author = strings.TrimSpace(plain)
		}
		t.body = append(append(t.body, plain...), '\n')
	}
	w.set(o, "Synopsis", strings.Trim(string(synopsis), "\n"))
	t.set(w, o, c, text)
}
