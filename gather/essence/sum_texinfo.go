package essence

import (
	"bytes"
	"strings"

	"harvest/gather/soif"
)

// A texinfoReader goes through Texinfo line by line.
type texinfoReader struct {
	d        *document
	skip     string // the environment whose end is waited for
	includes []string
}

// sumTexinfo summarizes Texinfo, the source of manuals of GNU.
func sumTexinfo(w *worker, o *soif.Object, c *content, text []byte) {
	t := &texinfoReader{d: w.document()}
	for line := range bytes.Lines(text) {
		if t.line(strings.TrimSpace(string(line))); t.d.cut {
			break
		}
	}
	t.d.extra("Includes", strings.Join(t.includes, " "))
	t.d.put(w, o, c)
}

func (t *texinfoReader) line(l string) {
	if t.skip != "" {
		if l == "@end "+t.skip {
			t.skip = ""
		}
		return
	}
	d := t.d
	cmd, rest, _ := strings.Cut(l, " ")
	rest = strings.TrimSpace(rest)
	switch cmd {
	case "@settitle", "@title", "@subtitle", "@author", "@documentlanguage", "@include", "@dircategory":
		t.told(cmd, rest)
	case "@chapter", "@section", "@subsection", "@subsubsection", "@unnumbered", "@unnumberedsec", "@appendix", "@appendixsec", "@top", "@heading",
		"@majorheading", "@chapheading", "@subheading", "@unnumberedsubsec", "@appendixsubsec":
		t.heading(cmd, rest)
	case "@c", "@comment", "\\input", "@node", "@setfilename", "@cindex", "@findex", "@vindex", "@kindex", "@pindex", "@tindex", "@end", "@set", "@clear",
		"@printindex", "@contents", "@vskip", "@page", "@menu@":
	case "@ignore", "@menu", "@tex", "@html", "@copying", "@direntry", "@macro", "@ifhtml", "@iftex", "@titlepage@":
		t.skip = strings.TrimPrefix(cmd, "@")
	case "@item", "@itemx", "@deffn", "@defun", "@defvar", "@deftp", "@defmac", "@tab":
		d.gap(1)
		d.add([]byte(texinfoText(d, rest)))
		d.gap(1)
	case "":
		d.gap(2)
	default:
		if !strings.HasPrefix(cmd, "@") || strings.Contains(cmd, "{") { // no command alone on its line
			d.add([]byte(texinfoText(d, l) + "\n"))
		}
	}
}

// told keeps what a command says of the manual.
func (t *texinfoReader) told(cmd, rest string) {
	d := t.d
	switch cmd {
	case "@settitle", "@title":
		if d.title == "" || cmd == "@title" {
			d.title = texinfoText(d, rest)
		}
	case "@subtitle":
		d.subject = texinfoText(d, rest)
	case "@author":
		if d.author != "" {
			d.author += ", "
		}
		d.author += texinfoText(d, rest)
	case "@documentlanguage":
		d.language = rest
	case "@include":
		t.includes = append(t.includes, rest)
	case "@dircategory":
		d.extra("Category", texinfoText(d, rest))
	}
}

func (t *texinfoReader) heading(cmd, rest string) {
	d := t.d
	d.gap(2)
	h := texinfoText(d, rest)
	if cmd == "@top" && (h == "Top" || h == "") {
		return
	}
	d.heading(h)
	d.add([]byte(h))
	d.gap(2)
}

var (
	texinfoLink = expression(`@(?:url|uref|email)\{([^},]+)(?:,[^}]*)?\}`)
	texinfoRef  = expression(`@(?:anchor|image|math|inlinefmt)\{[^{}]*\}|@(?:url|uref|email|ref|xref|pxref|inforef|abbr|acronym)\{(?:[^{},]*,)*\s*([^{},]*)\}`)
	texinfoMark = expression(`@(?:[a-zA-Z]+\{([^{}]*)\}|([@{}])|[-/:*.!?]|[a-zA-Z]+\b)`)
)

// texinfoText is a line without its marks. Marks within others are taken out
// from the inner one on.
func texinfoText(d *document, l string) string {
	for _, m := range texinfoLink().FindAllStringSubmatch(l, 20) {
		if strings.Contains(m[1], "://") {
			d.link(m[1])
		}
	}
	l = texinfoRef().ReplaceAllString(l, "$1")
	l = strings.NewReplacer("@dots{}", "…", "@copyright{}", "©", "@result{}", "⇒", "@TeX{}", "TeX", "@@", "\x00").Replace(l)
	for range 4 {
		if !strings.Contains(l, "@") {
			break
		}
		l = texinfoMark().ReplaceAllString(l, "$1$2")
	}
	return strings.ReplaceAll(l, "\x00", "@")
}

var (
	infoNode  = expression(`(?m)^(?:\x1f\n)?File: [^\n]*Node: [^\n]*\n`)
	infoEntry = expression(`(?s)START-INFO-DIR-ENTRY\n\* ([^:\n]+):[^.\n]*\.\s*(.*?)END-INFO-DIR-ENTRY`)
	infoMenu  = expression(`(?m)^\* (?:Menu:.*|[^\n:]+::.*)$`)
)

// sumInfo summarizes a file of the Info reader: headings are underlined.
func sumInfo(w *worker, o *soif.Object, c *content, text []byte) {
	d := w.document()
	if i := bytes.Index(text, []byte("\x1f\nTag Table:")); i >= 0 {
		text = text[:i]
	}
	if m := infoEntry().FindSubmatch(text); m != nil {
		d.description = words(m[2])
		d.title = words(m[1])
	}
	if m := infoNode().FindIndex(text); m != nil {
		text = text[m[0]:]
	}
	text = infoMenu().ReplaceAll(infoNode().ReplaceAll(text, nil), nil)
	text = bytes.ReplaceAll(text, []byte("\x1f"), nil)
	prev := ""
	for line := range bytes.Lines(text) {
		l := strings.TrimRight(string(line), "\r\n ")
		if n := len(l); n > 2 && prev != "" && strings.Trim(l, string(l[0])) == "" && strings.IndexByte("*=-.", l[0]) >= 0 {
			if d.heading(prev); l[0] == '*' && len(d.headings) == 1 {
				d.title = prev
			}
		} else {
			d.add([]byte(l + "\n"))
		}
		prev = strings.TrimSpace(l)
	}
	d.put(w, o, c)
}
