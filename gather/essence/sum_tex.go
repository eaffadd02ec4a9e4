package essence

import (
	"bytes"
	"strings"

	"harvest/gather/soif"
)

// A texReader makes text of TeX: commands give their arguments or nothing,
// groups their content, and what LaTeX says of a document goes to d.
type texReader struct {
	d        *document
	b        []byte
	includes []string
	cites    []string
	math     bool
	depth    int
}

// sumTeX summarizes TeX and LaTeX: title, author, abstract, sections, what it
// includes and cites. Macros are not expanded.
func sumTeX(w *worker, o *soif.Object, c *content, text []byte) {
	t := &texReader{d: w.document(), b: text}
	first := texComment(text)
	if bytes.Contains(text, []byte(`\begin{document}`)) {
		head, body, _ := bytes.Cut(text, []byte(`\begin{document}`))
		t.preamble(head)
		t.read(body)
	} else {
		t.read(text)
	}
	d := t.d
	if d.title == "" && len(d.headings) == 0 && c.name != "" && strings.HasSuffix(c.name, ".sty") {
		d.title = c.name
	}
	if d.abstract == "" && !letters(d.text, 200) {
		d.description = first // of a package, whose text is code
	}
	d.extra("Includes", strings.Join(t.includes, " "))
	d.extra("Citations", strings.Join(t.cites, " "))
	d.put(w, o, c)
}

// texComment is the comment that a file begins with.
func texComment(text []byte) string {
	var out []byte
	for line := range bytes.Lines(text[:min(len(text), 4<<10)]) {
		l := bytes.TrimSpace(line)
		if len(l) == 0 && len(out) == 0 {
			continue
		}
		if !bytes.HasPrefix(l, []byte("%")) {
			break
		}
		if l = bytes.Trim(l, "% \t-=*"); letters(l, 3) && !licence().Match(l) {
			out = append(append(out, l...), ' ')
		}
	}
	return string(cutText([]byte(words(out)), 400))
}

// preamble reads only what is set there, for the rest is code.
func (t *texReader) preamble(b []byte) {
	r := &texReader{d: &document{seen: t.d.seen, room: 1 << 20}, b: b} // whose text is code
	r.read(b)
	d := t.d
	d.title, d.author, d.date, d.subject = r.d.title, r.d.author, r.d.date, r.d.subject
	d.keywords, d.abstract, d.language, d.links = r.d.keywords, r.d.abstract, r.d.language, r.d.links
	t.includes, t.cites = r.includes, r.cites
}

func (t *texReader) read(b []byte) {
	t.b = b
	for i := 0; i < len(t.b) && !t.d.cut; {
		switch c := t.b[i]; c {
		case '%':
			for i < len(t.b) && t.b[i] != '\n' {
				i++
			}
			for i++; i < len(t.b) && (t.b[i] == ' ' || t.b[i] == '\t'); i++ { // which begin the next line
			}
		case '\\':
			i = t.command(i + 1)
		case '{', '}':
			i++
		case '~':
			t.d.space(' ')
			i++
		case '$':
			t.math = !t.math
			i++
		case '&':
			t.d.space('\t')
			i++
		case '\n':
			if end := i + 1; end < len(t.b) && blankLine(t.b[end:]) {
				t.d.gap(2)
			} else {
				t.d.space('\n')
			}
			i++
		case '`', '\'', '-':
			n := 1
			for i+n < len(t.b) && n < 3 && t.b[i+n] == c {
				n++
			}
			t.d.add([]byte(texQuotes[c][n-1]))
			i += n
		case ' ', '\t', '\r':
			t.d.space(' ')
			i++
		default:
			end := bytes.IndexAny(t.b[i:], "%\\{}~$&\n`'- \t\r")
			if end <= 0 {
				end = len(t.b) - i
			}
			t.d.add(t.b[i : i+end])
			i += end
		}
	}
}

func blankLine(b []byte) bool {
	for _, c := range b {
		if c == '\n' {
			return true
		}
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return false
}

// group is the argument in braces at i, as written, and what follows it. Without
// one it is "" and i.
func (t *texReader) group(i int) (string, int) {
	at := i
	for at < len(t.b) && blank(t.b[at]) {
		at++
	}
	if at >= len(t.b) || t.b[at] != '{' {
		return "", i
	}
	return t.between(at, '{', '}')
}

// optional is the argument in brackets at i.
func (t *texReader) optional(i int) (string, int) {
	at := i
	for at < len(t.b) && blank(t.b[at]) {
		at++
	}
	if at >= len(t.b) || t.b[at] != '[' {
		return "", i
	}
	return t.between(at, '[', ']')
}

// maxGroup bounds an argument: one that is longer has no end.
const maxGroup = 8 << 10

func (t *texReader) between(at int, open, close byte) (string, int) {
	depth := 0
	for i := at; i < len(t.b) && i < at+maxGroup; i++ {
		switch t.b[i] {
		case '\\':
			i++
		case '%':
			for i+1 < len(t.b) && t.b[i+1] != '\n' {
				i++
			}
		case open:
			depth++
		case close:
			if depth--; depth == 0 {
				return string(t.b[at+1 : i]), i + 1
			}
		}
	}
	return "", at + 1
}

// plain is the text of an argument, on one line.
func (t *texReader) plain(arg string) string {
	if t.depth > 3 || !strings.ContainsAny(arg, "\\{}~$%`'-&") {
		return words(arg)
	}
	r := &texReader{d: &document{room: maxGroup, seen: make(map[string]bool)}, depth: t.depth + 1}
	r.read([]byte(arg))
	return words(r.d.text)
}
