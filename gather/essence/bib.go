package essence

import (
	"bytes"
	"fmt"
	"strings"

	"harvest/gather/soif"
)

// A bibliography is what is kept of one: people, works, words, keys.
type bibliography struct {
	authors, titles, keys, words, urls *list
	n                                  int
	abstract                           string
	date                               string
}

func (w *worker) bibliography() *bibliography {
	return &bibliography{authors: w.list(), titles: w.list(), keys: w.list(), words: w.list(), urls: w.list()}
}

func (b *bibliography) set(w *worker, o *soif.Object, c *content, text []byte) {
	title := c.name
	if b.n == 1 {
		title = b.titles.String()
		w.set(o, "Abstract", b.abstract)
		w.set(o, "Date", b.date)
	}
	w.set(o, "Title", title)
	w.set(o, "Author", b.authors.String())
	w.set(o, "Records", fmt.Sprint(b.n))
	w.set(o, "Headings", b.titles.String())
	w.set(o, "Symbols", strings.ReplaceAll(b.keys.String(), "\n", " "))
	w.set(o, "URL-References", b.urls.String())
	if k := b.words.String(); k != "" {
		w.set(o, "Keywords", strings.ReplaceAll(k, "\n", " "))
	} else {
		w.set(o, "Keywords", keywords(text, 30))
	}
	w.fullText(o, c, plainText(text))
}

// sumBibTeX summarizes a BibTeX database.
func sumBibTeX(w *worker, o *soif.Object, c *content, text []byte) {
	b := w.bibliography()
	macros := make(map[string]string)
	for rest := text; ; {
		i := bytes.IndexByte(rest, '@')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		kind := strings.ToLower(string(firstName(rest)))
		after := bytes.TrimLeft(rest[len(kind):], " \t\r\n")
		if kind == "" || len(after) == 0 || after[0] != '{' && after[0] != '(' {
			continue
		}
		if kind == "comment" || kind == "preamble" {
			rest = after[1:]
			continue
		}
		rest = b.entry(kind, after[1:], macros)
	}
	b.set(w, o, c, text)
}

// entry takes the fields of an entry.
func (b *bibliography) entry(kind string, text []byte, macros map[string]string) []byte {
	if kind != "string" {
		end := bytes.IndexAny(text, ",}\n")
		if end < 0 {
			return nil
		}
		b.n++
		b.keys.add(string(text[:end]))
		text = text[end:]
	}
	for {
		text = bytes.TrimLeft(text, " \t\r\n,")
		name := firstName(text)
		if len(name) == 0 {
			return text
		}
		text = text[len(name):]
		for len(text) > 0 && text[0] == '-' { // archive-prefix
			more := firstName(text[1:])
			text = text[1+len(more):]
		}
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 || text[0] != '=' {
			return text
		}
		var v string
		v, text = bibValue(text[1:], macros)
		if kind == "string" && len(macros) < 10000 {
			macros[strings.ToLower(string(name))] = v
		} else {
			b.field(strings.ToLower(string(name)), v)
		}
	}
}

// field takes a field of an entry.
func (b *bibliography) field(name, v string) {
	v = plainTeX(v)
	switch name {
	case "author", "editor":
		for a := range strings.SplitSeq(strings.ReplaceAll(v, "\n", " "), " and ") {
			b.authors.add(a)
		}
	case "title":
		b.titles.add(v)
	case "keywords", "keyword":
		b.words.add(strings.NewReplacer(",", " ", ";", " ").Replace(v))
	case "url", "doi", "howpublished":
		if name != "howpublished" || strings.Contains(v, "://") {
			b.urls.add(v)
		}
	case "abstract":
		b.abstract = words(v)
	case "year", "date":
		b.date = v
	}
}

// bibValue takes a value: pieces in braces, in quotes, numbers and macros, joined
// by #.
func bibValue(text []byte, macros map[string]string) (string, []byte) {
	var out []byte
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 {
			break
		}
		switch c := text[0]; {
		case c == '{' || c == '"':
			n := braced(text)
			out = append(out, text[1:max(1, n-1)]...)
			text = text[n:]
		default:
			n := 0
			for n < len(text) && (nameBytes[text[n]] || text[n] == '-' || text[n] == '.' || text[n] == ':') {
				n++
			}
			if n == 0 {
				return string(out), text
			}
			if m, ok := macros[strings.ToLower(string(text[:n]))]; ok {
				out = append(out, m...)
			} else {
				out = append(out, text[:n]...)
			}
			text = text[n:]
		}
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 || text[0] != '#' || len(out) > 64<<10 {
			break
		}
		text = text[1:]
	}
	return string(out), text
}

// braced is the length of a value in braces or quotes.
func braced(text []byte) int {
	depth := 0
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 && text[0] == '{' {
				return i + 1
			}
		case c == '"' && text[0] == '"' && depth == 0 && i > 0:
			return i + 1
		}
	}
	return len(text)
}

// teXLetters are the letters that TeX writes with commands.
var teXLetters = strings.NewReplacer(`\"a`, "ä", `\"o`, "ö", `\"u`, "ü", `\"A`, "Ä", `\"O`, "Ö", `\"U`, "Ü", `\'e`, "é", `\'a`, "á", `\'o`, "ó", `\'i`, "í", `\'u`, "ú",
	"\\`e", "è", "\\`a", "à", `\^e`, "ê", `\^o`, "ô", `\~n`, "ñ", `\c c`, "ç", `\c{c}`, "ç", `\ss`, "ß", `\o`, "ø", `\aa`, "å", `\ae`, "æ", `\v s`, "š", `\v{s}`, "š", `\v{c}`, "č",
	`\&`, "&", `\%`, "%", `\_`, "_", `\-`, "", "~", " ", "---", "—", "--", "–")

// plainTeX is a value without braces and the commonest commands.
func plainTeX(v string) string {
	if strings.ContainsAny(v, `\~-`) {
		v = strings.NewReplacer(`{\"{`, `{\"`, `{\'{`, `{\'`, `\"{`, `\"`, `\'{`, `\'`, "\\`{", "\\`", `\^{`, `\^`, `\~{`, `\~`).Replace(v)
		v = teXLetters.Replace(v)
	}
	v = strings.Map(func(r rune) rune {
		if r == '{' || r == '}' || r == '$' {
			return -1
		}
		return r
	}, v)
	return words(v)
}

// sumRefer summarizes refer's %A lines, and RIS's `AU  - `.
func sumRefer(w *worker, o *soif.Object, c *content, text []byte) {
	b := w.bibliography()
	field, value := "", ""
	open := false
	flush := func() {
		switch field {
		case "A", "E", "AU", "A1", "ED", "A2":
			b.authors.add(value)
		case "T", "TI", "T1":
			b.titles.add(value)
		case "K", "KW":
			b.words.add(value)
		case "X", "AB", "N2":
			b.abstract = value
		case "D", "PY", "Y1":
			b.date = value
		case "U", "UR", "L1", "DO":
			b.urls.add(value)
		case "L", "F", "ID":
			b.keys.add(value)
		}
		field, value = "", ""
	}
	for line := range bytes.Lines(text) {
		l := string(bytes.TrimRight(line[:min(len(line), 8<<10)], " \t\r\n"))
		switch {
		case len(l) >= 2 && l[0] == '%' && (l[1] >= 'A' && l[1] <= 'Z' || l[1] >= '0' && l[1] <= '9'):
			flush()
			if !open {
				open = true
				b.n++
			}
			field, value = l[1:2], strings.TrimSpace(l[2:])
		case len(l) >= 5 && l[2:5] == "  -":
			flush()
			if field = l[:2]; field == "TY" {
				b.n++
			}
			value = strings.TrimSpace(l[5:])
		case strings.TrimSpace(l) == "":
			flush()
			open = false
		case len(value) < 8<<10:
			value += " " + strings.TrimSpace(l)
		}
	}
	flush()
	b.set(w, o, c, text)
}
