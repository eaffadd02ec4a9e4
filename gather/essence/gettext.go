package essence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"harvest/gather/soif"
)

// sumGettext summarizes a catalogue of translations by its header, its size and
// its messages.
func sumGettext(w *worker, o *soif.Object, c *content, text []byte) {
	var header, comments, said []byte
	var id, str, ids []byte
	target := &id
	total, done := 0, 0
	flush := func() {
		if id == nil {
			return
		}
		if len(id) == 0 {
			header = append(header, str...)
		} else {
			if total++; len(str) > 0 {
				done++
			}
			if len(said) < w.lim.Text {
				ids = append(append(ids, id...), '\n')
				said = append(append(said, str...), '\n')
			}
		}
		id, str = nil, nil
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		word := firstWord(line)
		quote := bytes.IndexByte(line, '"')
		switch {
		case len(line) > 1 && line[0] == '#' && (line[1] == ' ' || line[1] == '.'):
			if len(comments) < w.lim.Attr {
				comments = appendComment(comments, line[2:], w.lim.Attr)
			}
		case string(word) == "msgid" && quote > 0:
			flush()
			id, target = []byte{}, &id
			*target = append(*target, poString(line[quote:])...)
		case string(word) == "msgstr" && quote > 0:
			target = &str
			*target = append(*target, poString(line[quote:])...)
		case string(word) == "msgid_plural", string(word) == "msgctxt":
			target = new([]byte)
		case quote == 0 && len(*target) < 1<<20:
			*target = append(*target, poString(line)...)
		}
	}
	flush()
	w.catalogue(o, c, header, total, done)
	w.set(o, "Comments", strings.TrimSpace(string(comments)))
	w.set(o, "Keywords", keywords(append(said[:len(said):len(said)], ids...), 30))
	w.fullText(o, c, plainText(append(ids, said...)))
}

// poString is what a string of a .po file says.
func poString(b []byte) []byte {
	b = bytes.TrimSpace(b)
	if len(b) < 2 || b[0] != '"' {
		return nil
	}
	b = bytes.TrimSuffix(b[1:], []byte(`"`))
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	return []byte(poEscapes.Replace(string(b)))
}

var poEscapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// catalogue adds what the header of translations says.
func (w *worker) catalogue(o *soif.Object, c *content, header []byte, total, done int) {
	f, _ := readFields(header)
	title := f.one("project-id-version")
	if title == "" || strings.HasPrefix(title, "PACKAGE") {
		title = c.name
	}
	language := f.one("language")
	if language == "" {
		language, _, _ = strings.Cut(c.name, ".")
	}
	authors := w.list()
	authors.add(f.one("last-translator"))
	authors.add(f.one("language-team"))
	w.set(o, "Title", title)
	w.set(o, "Language", language)
	w.set(o, "Author", authors.String())
	w.set(o, "Date", f.one("po-revision-date"))
	w.set(o, "Description", fmt.Sprintf("%d of %d messages translated", done, total))
}

// sumCatalog summarizes a compiled catalogue.
func sumCatalog(w *worker, o *soif.Object, c *content, text []byte) {
	if len(text) < 28 {
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint32(text) != 0x950412de {
		order = binary.BigEndian
	}
	if order.Uint32(text) != 0x950412de {
		w.limit(c, "catalogue: damaged")
		return
	}
	n := order.Uint32(text[8:])
	at := func(table, i uint32) []byte {
		p := uint64(order.Uint32(text[table:])) + 8*uint64(i)
		if p+8 > uint64(len(text)) {
			return nil
		}
		size, from := uint64(order.Uint32(text[p:])), uint64(order.Uint32(text[p+4:]))
		if from+size > uint64(len(text)) {
			return nil
		}
		return text[from : from+size]
	}
	var header, ids, said []byte
	total := 0
	for i := range min(n, 100000) {
		id, str := at(12, i), at(16, i)
		if len(id) == 0 {
			if i == 0 {
				header = str
			}
			continue
		}
		total++
		if len(said) < w.lim.Text {
			ids = append(append(ids, id...), '\n')
			said = append(append(said, str...), '\n')
		}
	}
	f, _ := readFields(header)
	_, cs, _ := strings.Cut(strings.ToLower(f.one("content-type")), "charset=")
	said, ids = decode(said, "text/plain; charset="+cs), decode(ids, "")
	w.catalogue(o, c, decode(header, "text/plain; charset="+cs), int(n)-1, total)
	w.set(o, "Keywords", keywords(append(said[:len(said):len(said)], ids...), 30))
	w.fullText(o, c, plainText(append(ids, said...)))
}
