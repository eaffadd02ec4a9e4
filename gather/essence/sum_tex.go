package essence

import (
	"bytes"
	"slices"
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

var texQuotes = map[byte][]string{'`': {"\u2018", "\u201c", "\u201c\u2018"}, '\'': {"\u2019", "\u201d", "\u201d\u2019"}, '-': {"-", "\u2013", "\u2014"}}

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

// command reads a command, whose name begins at i, and returns where reading
// goes on.
func (t *texReader) command(i int) int {
	start := i
	for i < len(t.b) && (t.b[i]|0x20 >= 'a' && t.b[i]|0x20 <= 'z' || t.b[i] == '@') {
		i++
	}
	if i == start {
		return t.texSymbol(i)
	}
	name := string(t.b[start:i])
	if i < len(t.b) && t.b[i] == '*' {
		i++
	}
	after := i
	for i < len(t.b) && (t.b[i] == ' ' || t.b[i] == '\t') {
		i++
	}
	if texHeads[name] {
		short, at := t.optional(i)
		arg, at := t.group(at)
		if arg == "" {
			return at
		}
		t.d.gap(2)
		h := t.plain(arg)
		if h == "" {
			h = short
		}
		t.d.heading(h)
		t.d.add([]byte(h))
		t.d.gap(2)
		return at
	}
	if end, ok := t.told(name, i); ok {
		return end
	}
	if s, ok := texWords[name]; ok {
		t.d.add([]byte(s))
		return i
	}
	if skip, ok := texDrop[name]; ok { // arguments that are no text
		for range skip {
			_, i = t.optional(i)
			_, i = t.group(i)
		}
		return i
	}
	if i < len(t.b) && t.b[i] == '[' {
		_, i = t.optional(i)
		return i
	}
	if i == after || i < len(t.b) && t.b[i] == '{' {
		return i
	}
	return after
}

// told reads commands that say something of the document.
func (t *texReader) told(name string, i int) (end int, ok bool) {
	d := t.d
	switch name {
	case "title", "author", "date", "subject", "keywords", "abstract", "institute", "affiliation", "ititle", "Title", "Author":
		_, i = t.optional(i)
		arg, end := t.group(i)
		v := t.plain(arg)
		switch name {
		case "title", "Title":
			d.title = v
		case "author", "Author":
			if d.author != "" {
				v = d.author + ", " + v
			}
			d.author = v
		case "date":
			d.date = v
		case "subject":
			d.subject = v
		case "keywords":
			d.keywords = strings.Split(v, ",")
		case "abstract":
			d.abstract = v
		}
		return end, true
	case "begin":
		return t.environment(i), true
	case "end":
		_, end := t.group(i)
		d.gap(2)
		return end, true
	case "input", "include", "includegraphics", "usepackage", "RequirePackage", "bibliography", "documentclass", "documentstyle", "includeonly", "addbibresource", "subfile", "import":
		_, i = t.optional(i)
		arg, end := t.group(i)
		if arg == "" { // plain TeX: \input name
			for end < len(t.b) && !blank(t.b[end]) && t.b[end] != '\\' && t.b[end] != '%' && t.b[end] != '}' {
				end++
			}
			arg = string(t.b[min(i, end):end])
		}
		if name != "documentclass" && name != "documentstyle" {
			t.includes = texNames(t.includes, arg)
		} else {
			d.extra("Document-Class", arg)
		}
		return end, true
	case "cite", "citep", "citet", "citealp", "citeauthor", "citeyear", "nocite", "parencite", "textcite", "autocite", "footcite":
		_, i = t.optional(i)
		_, i = t.optional(i)
		arg, end := t.group(i)
		t.cites = texNames(t.cites, arg)
		return end, true
	case "url", "href", "hyperlink":
		arg, end := t.group(i)
		d.link(strings.ReplaceAll(arg, `\`, ""))
		if name == "url" {
			d.add([]byte(strings.ReplaceAll(arg, `\`, "")))
		}
		return end, true
	case "footnote", "thanks":
		d.space(' ')
		return i, true
	case "verb":
		if i < len(t.b) {
			if n := bytes.IndexByte(t.b[i+1:], t.b[i]); n >= 0 && n < 1<<10 {
				d.add(t.b[i+1 : i+1+n])
				return i + n + 2, true
			}
		}
		return i, true
	case "par", "item", "newline", "linebreak", "bigskip", "medskip", "smallskip", "break", "centerline", "bye", "cr":
		d.gap(1)
		label, end := t.optional(i)
		if name == "item" && label != "" {
			d.add([]byte(t.plain(label) + "\n"))
		}
		return end, true
	}
	return i, false
}

// texNames adds the names of a list with commas.
func texNames(list []string, arg string) []string {
	for n := range strings.SplitSeq(arg, ",") {
		if n = words(n); n != "" && len(n) < 200 && len(list) < maxPoints && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// environment begins one. That of an abstract is the abstract; of verbatim text
// nothing is a command.
func (t *texReader) environment(i int) int {
	name, i := t.group(i)
	d := t.d
	d.gap(2)
	end := []byte(`\end{` + name + `}`)
	switch strings.TrimSuffix(name, "*") {
	case "verbatim", "lstlisting", "Verbatim", "alltt", "minted", "comment", "filecontents", "macrocode":
		n := bytes.Index(t.b[i:], end)
		if n < 0 {
			n = len(t.b) - i
		}
		if name != "comment" && !strings.HasPrefix(name, "filecontents") {
			d.add(bytes.TrimLeft(t.b[i:i+n], "\r\n"))
			d.gap(2)
		}
		return min(i+n+len(end), len(t.b))
	case "abstract":
		n := bytes.Index(t.b[i:], end)
		if n >= 0 && d.abstract == "" {
			d.abstract = string(cutText([]byte(t.plain(string(t.b[i:i+n]))), 4<<10))
		}
	case "tabular", "tabularx", "longtable", "array", "minipage", "thebibliography", "multicols", "list", "wrapfigure":
		_, i = t.optional(i)
		_, i = t.group(i)
		if name == "tabularx" || name == "list" || name == "wrapfigure" {
			_, i = t.group(i)
		}
	default:
		_, i = t.optional(i)
	}
	return i
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

// texSymbol reads a command whose name is no letter: accents, and characters
// that are otherwise commands.
func (t *texReader) texSymbol(i int) int {
	if i >= len(t.b) {
		return i
	}
	c := t.b[i]
	i++
	switch c {
	case '\\':
		t.d.gap(1)
		_, i = t.optional(i)
	case '&', '%', '$', '#', '_', '{', '}':
		t.d.add([]byte{c})
	case ' ', '\n', '\t', ',', ';', ':':
		t.d.space(' ')
	case '\'', '`', '^', '"', '~', '=', '.':
		return t.accent(c, i)
	case '(', ')', '[', ']':
		t.math = c == '(' || c == '['
	}
	return i
}

// accent puts an accent over the letter that follows.
func (t *texReader) accent(c byte, i int) int {
	braces := 0
	for i < len(t.b) && (t.b[i] == '{' || t.b[i] == '\\' || t.b[i] == ' ' && braces == 0) && braces < 4 {
		braces++
		i++
	}
	if i >= len(t.b) || t.b[i]|0x20 < 'a' || t.b[i]|0x20 > 'z' {
		return i
	}
	t.d.add([]byte(composed(rune(t.b[i]), texAccents[c])))
	i++
	if i < len(t.b) && t.b[i] == '}' && braces > 0 {
		i++
	}
	return i
}

var texAccents = map[byte]rune{'\'': 0x301, '`': 0x300, '^': 0x302, '"': 0x308, '~': 0x303, '=': 0x304, '.': 0x307}

// texHeads are the commands whose argument is a heading.
var texHeads = map[string]bool{"part": true, "chapter": true, "section": true, "subsection": true, "subsubsection": true, "paragraph": true,
	"subparagraph": true, "frametitle": true, "addsec": true, "addchap": true, "beginsection": false}

// texWords are commands that set something.
var texWords = map[string]string{"TeX": "TeX", "LaTeX": "LaTeX", "LaTeXe": "LaTeX2e", "BibTeX": "BibTeX", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
	"o": "ø", "O": "Ø", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł", "i": "i", "j": "j", "dots": "…", "ldots": "…", "cdots": "…", "textendash": "–", "textemdash": "—",
	"textbackslash": `\`, "textasciitilde": "~", "textasciicircum": "^", "copyright": "©", "S": "§", "P": "¶", "pounds": "£", "euro": "€", "slash": "/",
	"quad": " ", "qquad": " ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "pi": "π", "sigma": "σ", "omega": "ω",
	"to": "→", "rightarrow": "→", "leq": "≤", "geq": "≥", "neq": "≠", "times": "×", "infty": "∞", "and": ", "}

// texDrop are commands whose arguments are no text, and how many they are.
var texDrop = map[string]int{"label": 1, "ref": 1, "pageref": 1, "eqref": 1, "autoref": 1, "cref": 1, "index": 1, "vspace": 1, "hspace": 1, "setlength": 2, "addtolength": 2,
	"newcommand": 2, "renewcommand": 2, "providecommand": 2, "newenvironment": 3, "def": 0, "setcounter": 2, "addtocounter": 2, "pagestyle": 1, "thispagestyle": 1,
	"bibliographystyle": 1, "color": 1, "textcolor": 1, "definecolor": 3, "geometry": 1, "hypersetup": 1, "newtheorem": 2, "input@path": 1, "graphicspath": 1,
	"pagenumbering": 1, "hyphenation": 1, "DeclareMathOperator": 2, "hypertarget": 1, "fontsize": 2, "selectlanguage": 1, "newlength": 1, "rule": 2, "phantom": 1,
	"ProvidesPackage": 1, "ProvidesClass": 1, "NeedsTeXFormat": 1, "DeclareOption": 2, "PassOptionsToPackage": 2, "ifthenelse": 1, "tikzset": 1, "lstset": 1}

// sumTexinfo summarizes Texinfo, the source of manuals of GNU.
func sumTexinfo(w *worker, o *soif.Object, c *content, text []byte) {
	d := w.document()
	skip := ""
	var includes []string
	for line := range bytes.Lines(text) {
		l := strings.TrimSpace(string(line))
		if skip != "" {
			if strings.TrimSpace(l) == "@end "+skip {
				skip = ""
			}
			continue
		}
		cmd, rest, _ := strings.Cut(l, " ")
		rest = strings.TrimSpace(rest)
		plain := func() string { return texinfoText(d, rest) }
		switch cmd {
		case "@settitle", "@title":
			if d.title == "" || cmd == "@title" {
				d.title = plain()
			}
		case "@subtitle":
			d.subject = plain()
		case "@author":
			if d.author != "" {
				d.author += ", "
			}
			d.author += plain()
		case "@chapter", "@section", "@subsection", "@subsubsection", "@unnumbered", "@unnumberedsec", "@appendix", "@appendixsec", "@top", "@heading",
			"@majorheading", "@chapheading", "@subheading", "@unnumberedsubsec", "@appendixsubsec":
			d.gap(2)
			h := plain()
			if cmd == "@top" && (h == "Top" || h == "") {
				continue
			}
			d.heading(h)
			d.add([]byte(h))
			d.gap(2)
		case "@documentlanguage":
			d.language = rest
		case "@include":
			includes = append(includes, rest)
		case "@dircategory":
			d.extra("Category", plain())
		case "@c", "@comment", "\\input", "@node", "@setfilename", "@cindex", "@findex", "@vindex", "@kindex", "@pindex", "@tindex", "@end", "@set", "@clear",
			"@printindex", "@contents", "@vskip", "@page", "@menu@":
		case "@ignore", "@menu", "@tex", "@html", "@copying", "@direntry", "@macro", "@ifhtml", "@iftex", "@titlepage@":
			skip = strings.TrimPrefix(cmd, "@")
		case "@item", "@itemx", "@deffn", "@defun", "@defvar", "@deftp", "@defmac", "@tab":
			d.gap(1)
			d.add([]byte(plain()))
			d.gap(1)
		case "":
			d.gap(2)
		default:
			if strings.HasPrefix(cmd, "@") && !strings.Contains(cmd, "{") {
				continue // a command alone on its line
			}
			d.add([]byte(texinfoText(d, l) + "\n"))
		}
		if d.cut {
			break
		}
	}
	d.extra("Includes", strings.Join(includes, " "))
	d.put(w, o, c)
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
