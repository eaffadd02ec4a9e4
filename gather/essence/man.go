package essence

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"harvest/gather/soif"
)

// A manual is what is read of a manual page's source, in the macros of man(7)
// or mdoc(7). It is not formatted: requests are dropped, macros give their
// arguments, escapes what they stand for.
type manual struct {
	title, section string
	heading        string
	headings       []string
	parts          map[string][]byte // by heading: NAME, SYNOPSIS, AUTHOR
	text           []byte
	name, about    string // of mdoc: .Nm and .Nd
	skip           bool   // inside .ig or a table's format
}

func sumMan(w *worker, o *soif.Object, c *content, text []byte) {
	m := manual{parts: make(map[string][]byte)}
	for line := range bytes.Lines(text) {
		m.line(bytes.TrimRight(line, "\r\n"))
	}
	name := words(m.parts["NAME"])
	title, about := name, ""
	for _, dash := range []string{" - ", " \u2013 ", " \u2014 ", " -- "} {
		if t, a, ok := strings.Cut(name, dash); ok {
			title, about = t, a
			break
		}
	}
	if m.about != "" {
		title, about = m.name, m.about
	}
	if title == "" || len(title) > 200 {
		title = m.title
	}
	if title != "" && m.section != "" && !strings.HasSuffix(title, ")") {
		title += "(" + m.section + ")"
	}
	w.set(o, "Title", title)
	w.set(o, "Description", about)
	w.set(o, "Synopsis", words(m.parts["SYNOPSIS"]))
	author := m.parts["AUTHOR"]
	if author == nil {
		author = m.parts["AUTHORS"]
	}
	w.set(o, "Author", string(cutText([]byte(words(author)), 500)))
	w.set(o, "Headings", strings.Join(m.headings, "\n"))
	body := bytes.TrimSpace(m.text)
	w.tell(o, c, body, "")
	w.fullText(o, c, body)
}

func (m *manual) line(l []byte) {
	if m.skip {
		m.skip = !bytes.Equal(l, []byte(".."))
		return
	}
	if len(l) == 0 || l[0] != '.' && l[0] != '\'' {
		m.add(unescape(l))
		return
	}
	macro, rest, _ := bytes.Cut(bytes.TrimLeft(l[1:], " \t"), []byte(" "))
	switch string(macro) {
	case "TH", "Dt":
		if a := arguments(rest); len(a) > 0 && m.title == "" {
			if m.title = a[0]; len(a) > 1 && len(a[1]) < 10 {
				m.section = a[1]
			}
		}
	case "SH", "Sh", "SS", "Ss":
		h := strings.Join(arguments(rest), " ")
		if string(macro) == "SH" || string(macro) == "Sh" {
			m.heading = strings.ToUpper(h)
		}
		if h != "" && len(m.headings) < 500 {
			m.headings = append(m.headings, h)
		}
		m.text = append(append(m.text, h...), '\n')
	case "Nm":
		a := arguments(rest)
		if len(a) > 0 && m.name == "" {
			m.name = a[0]
		}
		if len(a) == 0 {
			a = []string{m.name}
		}
		m.add([]byte(strings.Join(a, " ")))
	case "Nd":
		m.about = strings.Join(arguments(rest), " ")
		m.add([]byte(m.about))
	case "ig", "de", "de1", "am":
		m.skip = true
	case "B", "I", "SM", "SB", "TP", "IP", "LP", "PP", "P", "UR", "MT", "ME", "UE", "TQ":
		m.add([]byte(strings.Join(arguments(rest), " ")))
	case "BR", "RB", "BI", "IB", "IR", "RI":
		m.add([]byte(strings.Join(arguments(rest), ""))) // set close together
	default:
		if mdoc[string(macro)] {
			m.add([]byte(mdocWords(string(macro), arguments(rest))))
		}
	}
}

// mdoc are the macros of mdoc(7) that set words, alone or within one another.
var mdoc = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`Fl Ar Cm Op Pa Xr Ev Va Vt Fn Fa Ft Em Sy Li Dq Sq Ql It An Aq Dl Ic Ns Pq Qq
		D1 Er In Fd Cd Tn St Bx Fx Nx Ox Nm Brq Bq`) {
		m[w] = true
	}
	return m
}()

// mdocWords writes what a line of mdoc macros sets: flags with their dash,
// options in brackets, the rest as words.
func mdocWords(macro string, args []string) string {
	var words []string
	closing := ""
	for i, a := range append([]string{macro}, args...) {
		switch {
		case !mdoc[a] || i > 0 && len(words) > 0 && words[len(words)-1] == "-":
			if n := len(words); n > 0 && words[n-1] == "-" {
				words[n-1] += a
			} else {
				words = append(words, a)
			}
		case a == "Fl":
			words = append(words, "-")
		case a == "Op":
			words, closing = append(words, "["), closing+" ]"
		case a == "Ar" && i == len(args):
			words = append(words, "file ...")
		}
	}
	return strings.Join(words, " ") + closing
}

func (m *manual) add(line []byte) {
	if bytes.HasPrefix(line, []byte(`.\"`)) {
		return
	}
	m.text = append(append(m.text, line...), '\n')
	switch m.heading {
	case "NAME", "SYNOPSIS", "AUTHOR", "AUTHORS":
		if p := m.parts[m.heading]; len(p) < 4096 {
			m.parts[m.heading] = append(append(p, line...), ' ')
		}
	}
}

// arguments are those of a macro: blank-separated, or between double quotes.
func arguments(rest []byte) []string {
	var args []string
	for len(rest) > 0 && len(args) < 100 {
		rest = bytes.TrimLeft(rest, " \t")
		if len(rest) == 0 || bytes.HasPrefix(rest, []byte(`\"`)) {
			break
		}
		var arg []byte
		if rest[0] == '"' {
			end := bytes.IndexByte(rest[1:], '"')
			if end < 0 {
				arg, rest = rest[1:], nil
			} else {
				arg, rest = rest[1:1+end], rest[2+end:]
			}
		} else {
			end := 0
			for end < len(rest) && rest[end] != ' ' && rest[end] != '\t' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(rest))
			arg, rest = rest[:end], rest[end:]
		}
		if s := string(bytes.TrimSpace(unescape(arg))); s != "" {
			args = append(args, s)
		}
	}
	return args
}

// glyphs are the two-letter escapes that are frequent in manual pages.
var glyphs = map[string]string{
	"em": "\u2014", "en": "\u2013", "hy": "-", "aq": "'", "dq": "\"", "lq": "\u201c", "rq": "\u201d", "oq": "\u2018", "cq": "\u2019",
	"bu": "\u2022", "co": "\u00a9", "rg": "\u00ae", "ha": "^", "ti": "~", "rs": "\\", "ga": "`", "fo": "\u2039", "fc": "\u203a",
	"Fo": "\u00ab", "Fc": "\u00bb", "mi": "-", "pl": "+", "mu": "\u00d7", "<=": "\u2264", ">=": "\u2265", "->": "\u2192", "<-": "\u2190",
	"ss": "\u00df", ":a": "\u00e4", ":o": "\u00f6", ":u": "\u00fc", "'e": "\u00e9", "`e": "\u00e8", "la": "\u27e8", "ra": "\u27e9",
	"lB": "[", "rB": "]", "lC": "{", "rC": "}", "sl": "/", "at": "@", "sh": "#", "Do": "$", "tm": "\u2122", "+-": "\u00b1",
}

// unescape replaces troff's escapes by what they print.
func unescape(l []byte) []byte {
	if bytes.IndexByte(l, '\\') < 0 {
		return l
	}
	out := make([]byte, 0, len(l))
	for i := 0; i < len(l); i++ {
		if l[i] != '\\' || i+1 >= len(l) {
			out = append(out, l[i])
			continue
		}
		i++
		switch c := l[i]; c {
		case '"', '#':
			return out // a comment
		case '-', '\\', '.', '\'', '`', '_':
			out = append(out, c)
		case 'e':
			out = append(out, '\\')
		case ' ', '~', '0':
			out = append(out, ' ')
		case '(':
			if i+2 < len(l) {
				out = append(out, glyphs[string(l[i+1:i+3])]...)
			}
			i += 2
		case '[':
			end := bytes.IndexByte(l[i:], ']')
			if end < 0 {
				return out
			}
			out = append(out, glyph(string(l[i+1:i+end]))...)
			i += end
		case 'f', 'F', 'm', 'M', 'g', 'k', 'n', 'Y', '*':
			i = skipName(l, i+1)
		case 's':
			i++
			if i < len(l) && (l[i] == '+' || l[i] == '-') {
				i++
			}
			for i+1 < len(l) && l[i+1] >= '0' && l[i+1] <= '9' {
				i++
			}
		case 'h', 'v', 'w', 'D', 'l', 'L', 'o', 'b', 'x', 'X', 'Z', 'N', 'C', 'A', 'B', 'R', 'S', 'H':
			if i+1 < len(l) { // an argument between two of the same
				if end := bytes.IndexByte(l[i+2:], l[i+1]); end >= 0 {
					i += 2 + end
				} else {
					return out
				}
			}
		}
	}
	return out
}

// glyph is what \[name] prints.
func glyph(name string) string {
	if s, ok := glyphs[name]; ok {
		return s
	}
	if len(name) > 1 && len(name) < 8 && name[0] == 'u' { // \[u2014]
		n := rune(0)
		for _, c := range name[1:] {
			switch {
			case c >= '0' && c <= '9':
				n = n<<4 | (c - '0')
			case c >= 'A' && c <= 'F':
				n = n<<4 | (c - 'A' + 10)
			default:
				return ""
			}
		}
		if utf8.ValidRune(n) {
			return string(n)
		}
	}
	return ""
}

// skipName is the end of a name that begins at i: x, (xx or [xxx].
func skipName(l []byte, i int) int {
	switch {
	case i >= len(l):
		return i
	case l[i] == '(':
		return i + 2
	case l[i] == '[':
		if end := bytes.IndexByte(l[i:], ']'); end >= 0 {
			return i + end
		}
		return len(l)
	}
	return i
}
