package essence

import (
	"bytes"
	"slices"
	"strings"
)

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
	switch name {
	case "title", "author", "date", "subject", "keywords", "abstract", "institute", "affiliation", "ititle", "Title", "Author":
		_, i = t.optional(i)
		arg, end := t.group(i)
		t.field(name, t.plain(arg))
		return end, true
	case "begin":
		return t.environment(i), true
	case "end":
		_, end := t.group(i)
		t.d.gap(2)
		return end, true
	case "input", "include", "includegraphics", "usepackage", "RequirePackage", "bibliography", "documentclass", "documentstyle", "includeonly", "addbibresource", "subfile", "import":
		return t.include(name, i), true
	case "cite", "citep", "citet", "citealp", "citeauthor", "citeyear", "nocite", "parencite", "textcite", "autocite", "footcite":
		_, i = t.optional(i)
		_, i = t.optional(i)
		arg, end := t.group(i)
		t.cites = texNames(t.cites, arg)
		return end, true
	case "url", "href", "hyperlink":
		arg, end := t.group(i)
		arg = strings.ReplaceAll(arg, `\`, "")
		t.d.link(arg)
		if name == "url" {
			t.d.add([]byte(arg))
		}
		return end, true
	case "footnote", "thanks":
		t.d.space(' ')
		return i, true
	case "verb":
		return t.verbatim(i), true
	case "par", "item", "newline", "linebreak", "bigskip", "medskip", "smallskip", "break", "centerline", "bye", "cr":
		t.d.gap(1)
		label, end := t.optional(i)
		if name == "item" && label != "" {
			t.d.add([]byte(t.plain(label) + "\n"))
		}
		return end, true
	}
	return i, false
}

// field keeps what a command such as \title gives.
func (t *texReader) field(name, v string) {
	d := t.d
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
}

// include keeps the file that a command brings in, or the document's class.
func (t *texReader) include(name string, i int) int {
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
		t.d.extra("Document-Class", arg)
	}
	return end
}

// verbatim adds what stands between the byte at i and the next that is the same.
func (t *texReader) verbatim(i int) int {
	if i < len(t.b) {
		if n := bytes.IndexByte(t.b[i+1:], t.b[i]); n >= 0 && n < 1<<10 {
			t.d.add(t.b[i+1 : i+1+n])
			return i + n + 2
		}
	}
	return i
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
