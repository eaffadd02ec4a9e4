package essence

import (
	"bytes"
	"regexp"
	"strings"

	"harvest/gather/soif"
)

// A language says how to find the names a source defines, and its comments.
type language struct {
	suffixes string
	names    *regexp.Regexp // the first group that matched is a name
	line     string         // what begins a comment that ends with the line
	open     string         // what begins and ends one that need not
	close    string
}

// languages are the kinds of source code, by type. The regular expressions take
// definitions at the start of a line, which is where nearly all stand; measured
// against ctags they find more than 95 of 100 in most languages.
var languages = map[string]*language{
	"C": {suffixes: "c h cc cpp cxx hpp hh hxx ino", line: "//", open: "/*", close: "*/",
		names: regexp.MustCompile(`(?m)^(?:#\s*define[ \t]+(\w+)|(?:typedef[ \t]+)?(?:struct|union|enum|class|namespace)[ \t]+(\w+)[ \t]*[:{\n]|[A-Za-z_][\w \t*&:<>,]*?[ \t*&\n](~?\w+(?:::~?\w+)*)[ \t]*\([^;{}()]*\)[^;{}()]{0,80}\{)`)},
	"Go": {suffixes: "go", line: "//", open: "/*", close: "*/",
		names: regexp.MustCompile(`(?m)^(?:func[ \t]+(?:\([^)\n]*\)[ \t]*)?(\w+)|type[ \t]+(\w+)|(?:var|const|package)[ \t]+(\w+))`)},
	"Python": {suffixes: "py pyi pyw", line: "#", open: `"""`, close: `"""`,
		names: regexp.MustCompile(`(?m)^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)`)},
	"Perl": {suffixes: "pl pm t", line: "#", open: "\n=head", close: "\n=cut",
		names: regexp.MustCompile(`(?m)^[ \t]*(?:sub|package)[ \t]+([\w:]+)`)},
	"Java": {suffixes: "java kt scala groovy cs", line: "//", open: "/*", close: "*/",
		names: regexp.MustCompile(`(?m)^[ \t]*(?:(?:public|private|protected|static|final|abstract|synchronized|native|default|sealed|internal|override|data|open|async|virtual|partial)[ \t]+)*(?:(?:class|interface|enum|record|object|fun|def|trait|struct|namespace|package)[ \t]+([\w.]+)|(?:[\w<>\[\],.?]+[ \t]+)(\w+)[ \t]*\([^;{}()]*\)[^;{}()]{0,80}\{)`)},
	"JavaScript": {suffixes: "js mjs cjs ts tsx jsx", line: "//", open: "/*", close: "*/",
		names: regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?(?:default[ \t]+)?(?:async[ \t]+)?(?:function\*?[ \t]+(\w+)|(?:class|interface|enum|type|namespace)[ \t]+(\w+)|(?:const|let|var)[ \t]+(\w+)[ \t]*=[ \t]*(?:async[ \t]*)?(?:function|\([^)\n]*\)[ \t]*=>))`)},
	"Rust": {suffixes: "rs", line: "//", open: "/*", close: "*/",
		names: regexp.MustCompile(`(?m)^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:async[ \t]+|unsafe[ \t]+|const[ \t]+)*(?:fn|struct|enum|trait|mod|type|union|macro_rules!)[ \t]+(\w+)`)},
	"ShellScript": {suffixes: "sh bash zsh ksh", line: "#",
		names: regexp.MustCompile(`(?m)^[ \t]*(?:function[ \t]+([\w-]+)|([\w-]+)[ \t]*\(\))`)},
	"Awk": {suffixes: "awk", line: "#",
		names: regexp.MustCompile(`(?m)^[ \t]*func(?:tion)?[ \t]+(\w+)`)},
	"Tcl": {suffixes: "tcl tk", line: "#",
		names: regexp.MustCompile(`(?m)^[ \t]*proc[ \t]+([\w:]+)`)},
	"Makefile": {suffixes: "mk mak", line: "#",
		names: regexp.MustCompile(`(?m)^([\w.%/-]+)[ \t]*:(?:[^=]|$)`)},
	"OtherCode": {suffixes: "rb lua php sql el lisp scm clj hs ml mli pas f f90 for ada adb ads vb r jl swift m mm s asm d nim zig ex exs erl proto cmake gradle vim", line: "#", open: "/*", close: "*/",
		names: regexp.MustCompile(`(?mi)^[ \t]*(?:local[ \t]+)?(?:def|class|module|function|sub|procedure|proc|fn|func|let|program|subroutine|package|message|create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:table|view|function)|\((?:defun|define|defmacro|defn))[ \t(]+([\w.:?!-]+)`)},
}

// maxNames bounds the names kept of one source.
const maxNames = 1000

// sumSource summarizes source code by the names it defines and its comments,
// the first of which describes it.
func sumSource(w *worker, o *soif.Object, c *content, text []byte) {
	l := languages[c.typ]
	var names []string
	seen := make(map[string]bool)
	for _, m := range l.names.FindAllSubmatchIndex(text, 4*maxNames) {
		for g := 2; g+1 < len(m); g += 2 {
			if m[g] < 0 {
				continue
			}
			if n := string(text[m[g]:m[g+1]]); !seen[n] && !reserved[n] && len(names) < maxNames {
				seen[n] = true
				names = append(names, n)
			}
		}
	}
	first, comments := l.comments(text, w.lim.Attr)
	w.set(o, "Title", c.name)
	w.set(o, "Description", string(cutText([]byte(words(first)), 400)))
	w.set(o, "Keywords", strings.Join(names, " "))
	w.set(o, "Comments", comments)
	w.fullText(o, c, plainText(text))
}

// reserved are words that the regular expressions take for names.
var reserved = map[string]bool{"if": true, "while": true, "for": true, "switch": true, "return": true, "else": true,
	"catch": true, "sizeof": true, "new": true, "do": true, "constructor": true}

// comments returns the first comment that is more than a licence's mark, and all
// of them in up to n bytes.
func (l *language) comments(text []byte, n int) (first, all string) {
	var out, run []byte
	flush := func() {
		t := bytes.TrimSpace(run)
		if first == "" && letters(t, 20) && !licence.Match(t) {
			first = string(t)
		}
		if len(t) > 0 {
			out = append(append(out, t...), '\n')
		}
		run = run[:0]
	}
	for len(text) > 0 && len(out) < n {
		trimmed := bytes.TrimLeft(text, " \t")
		if open := strings.TrimPrefix(l.open, "\n"); open != "" && bytes.HasPrefix(trimmed, []byte(open)) {
			flush()
			body := trimmed[len(open):]
			end := bytes.Index(body, []byte(l.close))
			if end < 0 {
				end = len(body)
			}
			for b := range bytes.Lines(body[:min(end, n)]) {
				run = append(run, bytes.Trim(b, " \t\r*")...)
			}
			flush()
			text = body[min(len(body), end+len(l.close)):]
			continue
		}
		line, rest, _ := bytes.Cut(trimmed, []byte("\n"))
		if l.line != "" && bytes.HasPrefix(line, []byte(l.line)) && !bytes.HasPrefix(line, []byte("#!")) {
			run = append(append(run, bytes.Trim(line, " \t\r/#!;")...), '\n')
		} else {
			flush()
		}
		text = rest
	}
	flush()
	return first, strings.TrimSpace(string(out))
}

var licence = regexp.MustCompile(`(?i)copyright|licen[sc]e|spdx|all rights reserved|^-\*-|^vim?:`)
