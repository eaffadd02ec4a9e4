package essence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"harvest/gather/soif"
)

// A jsonScan goes through JSON value by value, in one pass and without a tree.
// What is damaged ends it; what came before counts.
type jsonScan struct {
	b     []byte
	i     int
	path  []string // keys of the objects the value is in; "" for elements of a list
	list  []bool   // whether a level is a list
	visit func(z *jsonScan, kind byte, raw []byte)
}

// maxJSON bounds the levels that are followed.
const maxJSON = 200

func (z *jsonScan) space() byte {
	for z.i < len(z.b) {
		switch z.b[z.i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			z.i++
		default:
			return z.b[z.i]
		}
	}
	return 0
}

// values visits all values that follow: one in a document, one a line in JSON
// lines. visit is told '{' and '[' before what is in them, 's' for a string with
// its quotes, 'v' for another value. It returns how many stood at the top, and
// whether all was well.
func (z *jsonScan) values() (n int, ok bool) {
	key := ""
	for z.i < len(z.b) {
		c := z.space()
		depth := len(z.list)
		switch c {
		case 0:
			return n, depth == 0
		case '}', ']':
			z.i++
			if depth == 0 {
				return n, false
			}
			z.list, z.path = z.list[:depth-1], z.path[:depth-1]
			continue
		}
		if depth > 0 && !z.list[depth-1] && key == "" {
			if c != '"' {
				return n, false
			}
			key = "\x00" + jsonString(z.str())
			continue
		}
		if depth == 0 {
			n++
		}
		name := strings.TrimPrefix(key, "\x00")
		key = ""
		switch c {
		case '{', '[':
			if depth >= maxJSON {
				return n, false
			}
			z.i++
			z.path = append(z.path, name)
			z.visit(z, c, nil)
			z.list = append(z.list, c == '[')
		case '"':
			raw := z.str()
			z.path = append(z.path, name)
			z.visit(z, 's', raw)
			z.path = z.path[:len(z.path)-1]
		default:
			start := z.i
			for z.i < len(z.b) && strings.IndexByte(",]}: \t\r\n\"{[", z.b[z.i]) < 0 {
				z.i++
			}
			if z.i == start {
				return n, false
			}
			z.path = append(z.path, name)
			z.visit(z, 'v', z.b[start:z.i])
			z.path = z.path[:len(z.path)-1]
		}
	}
	return n, len(z.list) == 0
}

// str takes a string, with its quotes.
func (z *jsonScan) str() []byte {
	n := endOfQuoted(z.b[z.i:], 1, `"`, true)
	n = min(n, len(z.b)-z.i)
	z.i += n
	return z.b[z.i-n : z.i]
}

// jsonString is what a string in quotes says.
func jsonString(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(bytes.Trim(raw, `"`))
	}
	return s
}

// jsonFields are the keys near the top that say what a document is about.
var jsonFields = map[string]string{
	"title": "Title", "name": "Title", "label": "Title", "displayname": "Title", "description": "Description", "summary": "Description", "abstract": "Description",
	"author": "Author", "authors": "Author", "contributors": "Author", "maintainers": "Author", "creator": "Author",
	"version": "Version", "license": "License", "keywords": "Keywords", "tags": "Keywords", "homepage": "URL-References", "url": "URL-References", "$schema": "URL-References",
	"repository": "URL-References", "date": "Date", "updated": "Date", "language": "Language", "type": "Subject",
	"dependencies": "Depends", "devdependencies": "Depends", "peerdependencies": "Depends", "require": "Depends",
}

// A jsonTold is what is read of a JSON document.
type jsonTold struct {
	w      *worker
	values map[string]*list // by attribute
	said   []byte           // what strings say
	items  int              // of the list at the top
}

// sumJSON summarizes JSON by its keys, by what it says of itself, and its text.
func sumJSON(w *worker, o *soif.Object, c *content, text []byte) {
	j := &jsonTold{w: w, values: make(map[string]*list)}
	z := &jsonScan{b: text, visit: j.visit}
	n, ok := z.values()
	if !ok && c.full == nil && !more(c.rest) {
		w.limit(c, "json: damaged")
	}
	j.put(o, c, n)
	w.fullText(o, c, plainText(j.said))
}

func (j *jsonTold) add(name, v string) {
	if j.values[name] == nil {
		j.values[name] = j.w.list()
	}
	j.values[name].add(v)
}

// visit takes a value.
func (j *jsonTold) visit(z *jsonScan, kind byte, raw []byte) {
	depth := len(z.path)
	key := z.path[depth-1]
	switch {
	case depth == 2 && key == "":
		j.items++
	case depth == 2, depth == 3 && z.path[1] == "" && j.items == 1:
		j.add("Headings", key)
	}
	if kind == 's' {
		j.str(z, depth, key, jsonString(raw))
	}
}

// str takes a string: text, and near the top what a key says the document is.
func (j *jsonTold) str(z *jsonScan, depth int, key, v string) {
	if len(j.said) < j.w.lim.Text && len(v) < 64<<10 {
		j.said = append(append(j.said, v...), '\n')
	}
	top := ""
	if depth >= 2 && depth <= 4 {
		top = jsonFields[strings.ToLower(z.path[1])]
	}
	switch {
	case depth == 2 && top != "":
		j.add(top, v)
	case top == "Author" && (key == "name" || key == ""), top == "Keywords" && key == "", top == "License" && key == "type", top == "URL-References" && key == "url":
		j.add(top, v)
	case top == "Depends" && depth == 3:
		j.add(top, key)
	}
}

// get is what has been told for an attribute.
func (j *jsonTold) get(name string) string {
	if j.values[name] == nil {
		return ""
	}
	return j.values[name].String()
}

// put sets the attributes of a document that has n values at the top.
func (j *jsonTold) put(o *soif.Object, c *content, n int) {
	w := j.w
	title, _, _ := strings.Cut(j.get("Title"), "\n")
	w.set(o, "Title", cmp.Or(title, c.name))
	w.set(o, "Description", string(cutText([]byte(words(j.get("Description"))), 400)))
	if n > 1 {
		w.set(o, "Records", fmt.Sprint(n))
	} else if j.items > 0 {
		w.set(o, "Records", fmt.Sprint(j.items))
	}
	for _, name := range []string{"Author", "Version", "License", "Date", "Language", "Subject", "Depends", "Headings", "URL-References"} {
		w.set(o, name, j.get(name))
	}
	if k := j.get("Keywords"); k != "" {
		w.set(o, "Keywords", strings.ReplaceAll(k, "\n", " "))
	} else {
		w.set(o, "Keywords", keywords(j.said, 30))
	}
}

// sumNotebook summarizes a Jupyter notebook: its text as Markdown, its code by
// the names it defines.
func sumNotebook(w *worker, o *soif.Object, c *content, text []byte) {
	cells := map[string][]byte{}
	cell, language := "", "Python"
	var sources [][]byte // of the cell being read, until its type is known
	flush := func() {
		for _, s := range sources {
			cells[cell] = append(cells[cell], s...)
		}
		if len(sources) > 0 {
			cells[cell] = append(cells[cell], "\n\n"...)
		}
		sources, cell = nil, ""
	}
	z := &jsonScan{b: text}
	z.visit = func(z *jsonScan, kind byte, raw []byte) {
		depth := len(z.path)
		key := z.path[depth-1]
		switch {
		case depth == 3 && kind == '{' && z.path[1] == "cells", depth == 5 && kind == '{' && z.path[3] == "cells":
			flush()
		case kind != 's':
		case key == "cell_type":
			cell = jsonString(raw)
		case depth >= 4 && (key == "source" || key == "input" || key == "" && (z.path[depth-2] == "source" || z.path[depth-2] == "input")):
			sources = append(sources, []byte(jsonString(raw)))
		case depth == 4 && z.path[1] == "metadata" && z.path[2] == "language_info" && key == "name", depth == 4 && z.path[2] == "kernelspec" && key == "language":
			language = jsonString(raw)
		}
	}
	z.values()
	flush()
	var page soif.Object
	quiet := &worker{ctx: w.ctx, lim: w.lim, tab: w.tab, text: w.lim.Text}
	sumMarkdown(quiet, &page, &content{name: c.name}, cells["markdown"])
	title := page.Text("Title")
	if title == "" {
		title = strings.TrimSuffix(c.name, path.Ext(c.name))
	}
	w.set(o, "Title", title)
	w.set(o, "Description", page.Text("Description"))
	w.set(o, "Headings", page.Text("Headings"))
	w.set(o, "Programming-Language", language)
	w.set(o, "URL-References", page.Text("URL-References"))
	if l := languages()[notebookLanguage(language)]; l != nil {
		m := l.mask(cells["code"], w.lim.Attr)
		s := &symbols{seen: make(map[string]bool), room: w.lim.Attr}
		imports := l.includes(cells["code"], m.code, w.lim.Attr)
		l.find(m.code, s)
		var names []string
		for _, sym := range s.all {
			names = append(names, sym.name)
		}
		w.set(o, "Symbols", strings.Join(names, " "))
		w.set(o, "Includes", imports)
	}
	w.set(o, "Keywords", page.Text("Keywords"))
	w.fullText(o, c, plainText(append(cells["markdown"], cells["code"]...)))
}

func notebookLanguage(name string) string {
	for _, l := range []string{"Python", "R", "Julia", "Scala", "JavaScript", "TypeScript", "Go", "Rust", "Ruby", "Haskell", "OCaml", "Kotlin", "Java"} {
		if strings.EqualFold(l, name) {
			return l
		}
	}
	if strings.HasPrefix(strings.ToLower(name), "python") {
		return "Python"
	}
	return ""
}
