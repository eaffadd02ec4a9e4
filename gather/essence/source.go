package essence

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// A language says how to find the names a source defines, and its comments.
type language struct {
	suffixes string
	*syntax
	scan    func(l *language, code []byte, s *symbols) // nil: rules
	rules   []rule
	imports *regexp.Regexp // its groups are what a source is made with, in a line
	heads   string         // the first words of lines that imports is tried on, "" any
	indent  bool           // blocks are told by indentation, not by brackets
	fold    bool           // case does not count in words
	nested  bool           // definitions stand in the blocks of others too
	goesOn  string         // what a line ends with that the next continues
	flat    bool           // brackets say nothing

	contexts map[string]*ruleSet
	import1  map[string]bool
}

// A rule finds definitions in a line of code, which has lost its indentation.
type rule struct {
	in    string // the block that it is for; "" any that is not named
	heads string // the first words of the lines it is tried on, "" any
	re    *regexp.Regexp
	opens string // the kind of block that the line opens
	minor bool   // members, variables, constants: not in Keywords
}

// A symbol is a name that a source defines.
type symbol struct {
	name  string
	minor bool
}

// symbols are those of a source, each once, in the order they come.
type symbols struct {
	all  []symbol
	seen map[string]bool
	room int // in bytes
	cut  bool
}

// add keeps a name.
func (s *symbols) add(name []byte, minor bool) {
	if len(name) == 0 || len(name) > 200 || s.seen[string(name)] {
		return
	}
	if s.room -= len(name) + 1; s.room < 0 {
		s.cut = true
		return
	}
	n := string(name)
	s.seen[n] = true
	s.all = append(s.all, symbol{n, minor})
}

// addList keeps the names of a list, which commas part.
func (s *symbols) addList(names []byte, minor bool) {
	if bytes.IndexByte(names, ',') < 0 {
		s.add(bytes.TrimPrefix(names, []byte(":")), minor)
		return
	}
	for n := range bytes.SplitSeq(names, []byte(",")) {
		n = bytes.TrimLeft(n, " \t\n*&:$@")
		if i := bytes.IndexAny(n, " \t\r\n=:"); i >= 0 {
			n = n[:i]
		}
		s.add(n, minor)
	}
}

// symbolRoom is how many times as long as another value Symbols may be.
const symbolRoom = 4

// sumSource summarizes source code by the names it defines, what it is made
// with, and its comments, the first of which describes it.
func sumSource(w *worker, o *soif.Object, c *content, text []byte) {
	l := languages()[c.typ]
	m := l.mask(text, w.lim.Attr)
	first, comments := m.prose(text, w.lim.Attr)
	s := &symbols{seen: make(map[string]bool), room: symbolRoom * w.lim.Attr}
	l.find(m.code, s)
	w.set(o, "Title", c.name)
	w.set(o, "Description", string(cutText([]byte(words(first)), 400)))
	if m := spdx().FindSubmatch(text[:min(len(text), 4<<10)]); m != nil {
		w.set(o, "License", string(m[1]))
	}
	w.symbols(o, c, s)
	w.set(o, "Includes", l.includes(text, m.code, w.lim.Attr))
	w.set(o, "Comments", comments)
	w.fullText(o, c, plainText(text))
}

// symbols adds the names of a source: those of functions, types and the like as
// keywords, and all as symbols.
func (w *worker) symbols(o *soif.Object, c *content, s *symbols) {
	var all, major []string
	for _, sym := range s.all {
		all = append(all, sym.name)
		if !sym.minor {
			major = append(major, sym.name)
		}
	}
	w.set(o, "Keywords", strings.Join(major, " "))
	add(o, "Symbols", strings.Join(all, " "))
	if s.cut {
		w.limit(c, "Symbols cut at "+strconv.Itoa(symbolRoom*w.lim.Attr)+" bytes")
	}
}

// find finds the names that code defines.
func (l *language) find(code []byte, s *symbols) {
	if l.scan != nil {
		l.scan(l, code, s)
		return
	}
	l.lines(code, s)
}

// includes lists what a source says it is made with. Code tells where it stands,
// text what: names of files are strings.
func (l *language) includes(text, code []byte, n int) string {
	if l.imports == nil {
		return ""
	}
	var out []byte
	seen := make(map[string]bool)
	at := 0
	for line := range bytes.Lines(code) {
		start := at
		at += len(line)
		i := len(line) - len(bytes.TrimLeft(line, " \t"))
		if len(out) >= n || i == len(line) || l.import1 != nil && !l.import1[string(firstWord(line[i:]))] {
			continue
		}
		for _, m := range l.imports.FindAllSubmatch(bytes.TrimRight(text[start+i:at], "\r\n"), 20) {
			for _, name := range m[1:] {
				name = bytes.Trim(name, " \t")
				if len(name) > 0 && len(name) < 200 && !seen[string(name)] {
					seen[string(name)] = true
					out = append(append(out, name...), '\n')
				}
			}
		}
	}
	return strings.TrimRight(string(out[:min(len(out), n)]), "\n")
}

// prose returns the first comment that is more than a licence's mark, and all of
// them in up to n bytes. Comments of a line each that follow one another are one.
func (m *masked) prose(text []byte, n int) (first, all string) {
	var out []byte
	for i := 0; i < len(m.comments) && len(out) < n; {
		start := len(out)
		for j := i; ; {
			out = appendComment(out, text[m.comments[j].start:m.comments[j].end], n)
			i = j + 1
			if i == len(m.comments) || !m.comments[j].line || !m.comments[i].line || !adjacent(text[m.comments[j].end:m.comments[i].start]) {
				break
			}
			j = i
		}
		if t := out[start:]; first == "" && letters(t, 20) && !licence().Match(t) {
			first = string(t)
		}
	}
	out = bytes.TrimSpace(out)
	return first, string(out[:min(len(out), n)])
}

// adjacent reports whether nothing but the start of the next comment stands
// between two.
func adjacent(gap []byte) bool {
	lines := 0
	for _, c := range gap {
		switch {
		case c == '\n':
			lines++
		case c > ' ' && (wordBytes[c] || c == '{' || c == '}' || c == '(' || c == ')'):
			return false
		}
	}
	return lines == 1
}

// appendComment adds the lines of a comment, without their ornaments.
func appendComment(out, comment []byte, n int) []byte {
	for line := range bytes.Lines(comment) {
		line = bytes.Trim(line, " \t\r\n*/#!;-=%|~+")
		if len(line) > 0 && len(out) < n {
			out = append(append(out, line...), '\n')
		}
	}
	return out
}

var licence = expression(`(?i)copyright|licen[sc]e|spdx|all rights reserved|^-\*-|^vim?:|^coding[:=]`)
