package essence

import (
	"bytes"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"harvest/gather/soif"
)

// composed is a letter with an accent, in one character where there is one.
func composed(letter, accent rune) string { return norm.NFC.String(string(letter) + string(accent)) }

// A troffReader reads troff in the macros of ms, me, mm or mom. Requests are
// dropped, and so are the preprocessors' pictures and equations.
type troffReader struct {
	d     *document
	set   string // of macros
	part  string // where lines go: "title", "author", "abstract", "heading", "" the text
	buf   []byte // of a title or a heading
	skip  string // what ends what is skipped
	names []string
}

// The macros that tell a set apart.
var troffSets = []struct {
	set string
	re  func() *regexp.Regexp
}{
	{"mom", expression(`(?m)^\.(?:DOCTITLE|PRINTSTYLE|START|HEADING)\b`)},
	{"mm", expression(`(?m)^\.(?:H [1-7]|HU |AS\b|AF\b|MT\b|ND\b.*\n\.TL|COVER\b)`)},
	{"ms", expression(`(?m)^\.(?:TL|NH|SH|AB|RP|AI|PP|LP)\b`)},
	{"me", expression(`(?m)^\.(?:pp|lp|np|uh|sh|\(l|\(b|\(q|tp|he)\b`)},
}

var manMacro = expression(`(?m)^['.](?:TH|Dt)[ \t]+\S`)

// troffCall is a string that sets its argument.
var troffCall = expression(`\\\*\[\w+ "((?:[^"\\]|\\.)*)"\]`)

// sumTroff summarizes troff by its set of macros.
func sumTroff(w *worker, o *soif.Object, c *content, text []byte) {
	if manMacro().Match(text[:min(len(text), 8<<10)]) {
		sumMan(w, o, c, text)
		return
	}
	t := &troffReader{d: w.document(), set: "none"}
	for _, s := range troffSets {
		if s.re().Match(text) {
			t.set = s.set
			break
		}
	}
	w.step(c, "select", t.set, "macros")
	var begun []byte // of a line that goes on in the next
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if n := len(line); n > 1 && line[n-1] == '\\' && line[n-2] != '\\' && len(begun) < maxLine {
			begun = append(begun, line[:n-1]...)
			continue
		}
		if len(begun) > 0 {
			line, begun = append(begun, line...), nil
		}
		t.line(line)
		if t.d.cut {
			break
		}
	}
	t.flush("")
	t.d.author = strings.Join(t.names, ", ")
	t.d.put(w, o, c)
}

func (t *troffReader) line(l []byte) {
	if t.skip != "" {
		if strings.TrimSpace(string(l)) == t.skip {
			t.skip = ""
		}
		return
	}
	if len(l) == 0 {
		t.d.gap(2)
		return
	}
	if l[0] != '.' && l[0] != '\'' {
		t.words(unescape(troffCall().ReplaceAll(l, []byte("$1"))))
		return
	}
	name, rest, _ := bytes.Cut(bytes.TrimLeft(l[1:], " \t"), []byte(" "))
	macro := string(bytes.TrimSpace(name))
	switch macro {
	case "de", "de1", "am", "ig":
		t.skip = ".."
		if a := arguments(rest); macro == "ig" && len(a) > 0 {
			t.skip = "." + a[0]
		} else if len(a) > 1 {
			t.skip = "." + a[1]
		}
	case "EQ":
		t.skip = ".EN"
	case "PS":
		t.skip = ".PE"
	case "so", "mso":
		t.d.extra("Includes", string(rest))
	default:
		t.macro(macro, arguments(rest))
	}
}

// macro acts on those that tell the structure; the rest ends what was begun or
// sets its arguments.
func (t *troffReader) macro(m string, args []string) {
	all := strings.Join(args, " ")
	switch {
	case m == "TL" || m == "DOCTITLE" || m == "TITLE":
		t.flush("title")
		t.words([]byte(all))
	case m == "AU" || m == "AUTHOR":
		t.flush("author")
		if t.set == "mm" && len(args) > 0 { // initials and the like follow
			all = args[0]
		}
		t.words([]byte(all))
	case m == "AI":
		t.flush("skip")
	case m == "AB" || m == "AS":
		t.flush("abstract")
	case m == "AE":
		t.flush("")
	case m == "NH" || m == "SH" || m == "uh" && all == "":
		t.flush("heading")
	case m == "XH" || m == "HEADING" || m == "HU" || m == "uh" || m == "SUBHEAD" || m == "HEAD":
		t.heading(all)
	case m == "H" && len(args) > 1, m == "sh" && len(args) > 1, m == "XN":
		if m != "XN" {
			all = strings.Join(args[1:], " ")
		}
		t.heading(all)
	case m == "ND" || m == "DA":
		t.d.date = all
	case troffParagraphs[m]:
		if t.part != "abstract" {
			t.flush("")
		}
		t.d.gap(2)
		if m == "IP" && len(args) > 0 {
			t.words([]byte(args[0]))
		}
	case m == "pdfhref":
		t.href(args)
	case m == "URL" || m == "UR" || m == "MTO":
		if len(args) > 0 && strings.Contains(args[0], "://") {
			t.d.link(args[0])
		}
		t.words([]byte(strings.Join(args, " ")))
	case troffFonts[m]:
		t.words([]byte(all))
	case m == "br" || m == "sp" || m == "bp":
		t.d.gap(1)
	}
}

// href reads a link of groff's: -D and where it leads, -- and its text.
func (t *troffReader) href(args []string) {
	for i, a := range args {
		switch {
		case a == "-D" && i+1 < len(args):
			t.d.link(args[i+1])
		case a == "--":
			t.words([]byte(strings.Join(args[i+1:], " ")))
			return
		}
	}
}

// troffParagraphs begin a paragraph, and end a heading.
var troffParagraphs = map[string]bool{"PP": true, "LP": true, "IP": true, "QP": true, "XP": true, "P": true, "pp": true, "lp": true, "np": true, "ip": true,
	"DS": true, "LD": true, "ID": true, "CD": true, "TS": true, "RS": true, "(l": true, "(b": true, "(q": true, "BL": true, "AL": true, "LI": true, "PARA": true}

// troffFonts set their arguments.
var troffFonts = map[string]bool{"B": true, "I": true, "R": true, "BI": true, "CW": true, "UL": true, "BX": true, "SM": true, "LG": true, "b": true, "i": true, "r": true, "bi": true,
	"q": true, "u": true, "bx": true, "sm": true, "ul": true}

func (t *troffReader) heading(h string) {
	t.flush("")
	t.d.gap(2)
	t.d.heading(h)
	t.d.add([]byte(h))
	t.d.gap(2)
}

// words adds text to whatever part is open.
func (t *troffReader) words(text []byte) {
	switch {
	case len(text) == 0 || t.part == "skip":
	case t.part == "":
		t.d.add(append(text[:len(text):len(text)], '\n'))
	case len(t.buf) < 16<<10:
		t.buf = append(append(t.buf, text...), '\n')
	}
}

// flush ends the open part and begins another.
func (t *troffReader) flush(next string) {
	d := t.d
	text := words(t.buf)
	lines := strings.TrimSpace(string(t.buf))
	part := t.part
	t.part, t.buf = next, t.buf[:0]
	if text == "" {
		return
	}
	switch part {
	case "title":
		if d.title == "" {
			d.title = text
		}
	case "author":
		for n := range strings.SplitSeq(lines, "\n") {
			if n = words(n); n != "" && len(t.names) < 50 {
				t.names = append(t.names, n)
			}
		}
	case "abstract":
		d.abstract = string(cutText([]byte(text), 4<<10))
	case "heading":
		d.gap(2)
		d.heading(text)
	}
	d.add([]byte(text))
	d.gap(2)
}
