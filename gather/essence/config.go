package essence

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"

	"harvest/gather/soif"
)

// dataFamily are the types of text that holds data and settings.
func dataFamily() map[string]entry {
	return map[string]entry{
		"JSON": {sum: sumJSON}, "Jupyter": {sum: sumNotebook},
		"YAML": {sum: sumConfig}, "TOML": {sum: sumConfig}, "Configuration": {sum: sumConfig}, "DotFile": {sum: sumConfig},
		"CSV": {sum: sumCSV}, "LDIF": {sum: sumLDIF},
		"BibTeX": {sum: sumBibTeX}, "Bibliographic": {sum: sumRefer},
		"ICalendar": {sum: sumCalendar}, "VCard": {sum: sumCard},
		"SQLite":  {sum: sumSQLite, bytes: true},
		"Gettext": {sum: sumGettext}, "GettextCatalog": {sum: sumCatalog, bytes: true},
	}
}

var (
	settingSection = expression(`^\[+([^\]\n]+)\]+$`)
	settingKey     = expression(`^([\w][\w.$/@-]*|"[^"]+")[ \t]*(?:[:=](.*)|[ \t]+(\S.*))?$`)
)

// sumConfig summarizes settings by their sections, their keys at the left edge,
// and their comments.
func sumConfig(w *worker, o *soif.Object, c *content, text []byte) {
	if bytes.HasPrefix(text, []byte("module ")) && strings.HasSuffix(c.name, "go.mod") || c.name == "go.mod" {
		sumGoMod(w, o, c, text)
		return
	}
	if n := strings.ToUpper(c.name); n == "PKG-INFO" || n == "METADATA" {
		sumPackageInfo(w, o, c, text)
		return
	}
	s := &settings{w: w, sections: w.list(), keys: w.list(), values: make(map[string]string)}
	for line := range bytes.Lines(text) {
		s.line(bytes.TrimRight(line, " \t\r\n"))
	}
	s.endRun()
	s.put(o, c)
	w.fullText(o, c, plainText(text))
}

// settings are what is read of a file of them.
type settings struct {
	w              *worker
	sections, keys *list
	section        string            // that the line is in
	values         map[string]string // by key, and by section.key
	comments       []byte
	run            []byte // comments of lines that follow one another
	first          string // the first run that describes
}

// line takes a line: a comment, a section, a key and its value, or neither.
func (s *settings) line(line []byte) {
	switch {
	case len(line) == 0:
		s.endRun()
		return
	case line[0] == '#' || line[0] == ';' || line[0] == '!' || bytes.HasPrefix(line, []byte("//")):
		if n := s.w.lim.Attr; len(s.comments) < n && !bytes.HasPrefix(line, []byte("#!")) {
			s.comments = appendComment(s.comments, line, n)
			s.run = appendComment(s.run, line, n)
		}
		return
	}
	s.endRun()
	line = line[:min(len(line), 1000)]
	if m := settingSection().FindSubmatch(line); m != nil {
		s.section = strings.ToLower(string(m[1]))
		s.sections.add(string(m[1]))
	} else if m := settingKey().FindSubmatch(line); m != nil {
		s.value(strings.Trim(string(m[1]), `"`), strings.Trim(strings.TrimSpace(string(m[2])), `"'`))
	}
}

// value keeps a key, and its value unless that goes on in lines to come.
func (s *settings) value(key, v string) {
	s.keys.add(key)
	if len(v) == 0 || strings.IndexByte("|>{[", v[0]) >= 0 {
		return
	}
	key = strings.ToLower(key)
	for _, name := range []string{s.section + "." + key, key} {
		if s.values[name] == "" && len(s.values) < 2000 {
			s.values[name] = v
		}
	}
}

// endRun ends comments of lines that follow one another.
func (s *settings) endRun() {
	if s.first == "" && letters(s.run, 20) && !licence().Match(s.run) {
		s.first = string(s.run)
	}
	s.run = s.run[:0]
}

// get is the first value that is told.
func (s *settings) get(names ...string) string {
	for _, n := range names {
		if s.values[n] != "" {
			return words(s.values[n])
		}
	}
	return ""
}

// put sets the attributes.
func (s *settings) put(o *soif.Object, c *content) {
	w := s.w
	title := s.get("title", "package.name", "project.name", "tool.poetry.name", "metadata.name", "name", "unit.description")
	description := s.get("description", "unit.description", "package.description", "project.description", "summary")
	w.set(o, "Title", cmp.Or(title, c.name))
	w.set(o, "Description", string(cutText([]byte(words(cmp.Or(description, s.first))), 400)))
	w.set(o, "Author", s.get("author", "authors", "maintainer", "metadata.author"))
	w.set(o, "Version", s.get("package.version", "project.version", "tool.poetry.version", "metadata.version", "version"))
	w.set(o, "License", s.get("license", "package.license", "project.license"))
	w.set(o, "Synopsis", s.get("service.execstart"))
	w.set(o, "URL-References", s.get("homepage", "url", "documentation", "repository"))
	w.set(o, "Headings", s.sections.String())
	w.set(o, "Keywords", strings.ReplaceAll(s.keys.String(), "\n", " "))
	w.set(o, "Comments", strings.TrimSpace(string(s.comments)))
}

var goRequire = expression(`(?m)^[ \t]*(?:require[ \t]+)?([\w.~-]+\.[\w.~/-]+)[ \t]+v\S+`)

// sumGoMod summarizes a Go module by its path and what it needs.
func sumGoMod(w *worker, o *soif.Object, c *content, text []byte) {
	needs := w.list()
	for _, m := range goRequire().FindAllSubmatch(text, 2000) {
		needs.add(string(m[1]))
	}
	module, _, _ := bytes.Cut(bytes.TrimPrefix(text[max(0, bytes.Index(text, []byte("module "))):], []byte("module ")), []byte("\n"))
	w.set(o, "Title", words(module))
	w.set(o, "Description", "Go module")
	w.set(o, "Depends", needs.String())
	w.fullText(o, c, plainText(text))
}

// sumPackageInfo summarizes the metadata of a Python package.
func sumPackageInfo(w *worker, o *soif.Object, c *content, text []byte) {
	f, body := readFields(text)
	w.set(o, "Title", f.one("name"))
	w.set(o, "Version", f.one("version"))
	w.set(o, "Description", f.one("summary"))
	w.set(o, "Author", f.one("author", "author-email", "maintainer"))
	w.set(o, "License", f.one("license", "license-expression"))
	w.set(o, "Subject", f["classifier"])
	w.set(o, "Depends", f["requires-dist"])
	w.set(o, "URL-References", strings.TrimSpace(f.one("home-page")+"\n"+f.one("download-url")))
	if k := f.one("keywords"); k != "" {
		w.set(o, "Keywords", strings.ReplaceAll(k, ",", " "))
	} else {
		w.set(o, "Keywords", keywords(body, 30))
	}
	w.fullText(o, c, plainText(text))
}

// sumCSV summarizes a table by its columns and size.
func sumCSV(w *worker, o *soif.Object, c *content, text []byte) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	comma := separator(first)
	rows, columns := 0, w.list()
	var said []byte
	n := 0
	for rest := text; len(rest) > 0; {
		var row [][]byte
		row, rest = csvRow(rest, comma)
		if len(row) == 1 && len(bytes.TrimSpace(row[0])) == 0 {
			continue
		}
		if rows == 0 {
			n = len(row)
			for _, f := range row {
				columns.add(string(f))
			}
		}
		rows++
		if len(said) < 64<<10 {
			said = append(append(said, bytes.Join(row, []byte(" "))...), '\n')
		}
	}
	w.set(o, "Title", strings.TrimSuffix(c.name, path.Ext(c.name)))
	what := fmt.Sprintf("table of %d rows, %d columns", rows, n)
	if more(c.rest) {
		what = fmt.Sprintf("table of more than %d rows, %d columns", rows, n)
	}
	w.set(o, "Description", what)
	w.set(o, "Headings", columns.String())
	w.set(o, "Keywords", keywords(said, 30))
	w.fullText(o, c, plainText(text))
}

// separator is the byte that parts the most fields of a line.
func separator(line []byte) byte {
	best, most := byte(','), 0
	for _, c := range []byte(",\t;|") {
		if n := bytes.Count(line, []byte{c}); n > most {
			best, most = c, n
		}
	}
	return best
}

// csvRow takes a row, whose fields may be in quotes and hold lines then.
func csvRow(text []byte, comma byte) (row [][]byte, rest []byte) {
	for len(row) < 10000 {
		field := text
		if len(text) > 0 && text[0] == '"' {
			i := 1
			for i < len(text) {
				j := bytes.IndexByte(text[i:], '"')
				if j < 0 {
					i = len(text)
					break
				}
				if i += j; i+1 < len(text) && text[i+1] == '"' {
					i += 2
					continue
				}
				break
			}
			field, text = text[1:min(i, len(text))], text[min(i+1, len(text)):]
			if end := bytes.IndexAny(text, string(comma)+"\n"); end >= 0 {
				text = text[end:]
			} else {
				text = nil
			}
		} else {
			end := bytes.IndexAny(text, string(comma)+"\n")
			if end < 0 {
				end = len(text)
			}
			field, text = bytes.TrimSpace(text[:end]), text[end:]
		}
		row = append(row, field)
		if len(text) == 0 {
			return row, nil
		}
		sep := text[0]
		text = text[1:]
		if sep == '\n' {
			return row, text
		}
	}
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return row, text
}

// sumLDIF summarizes entries of a directory.
func sumLDIF(w *worker, o *soif.Object, c *content, text []byte) {
	names, classes := w.list(), w.list()
	n := 0
	for rest := text; len(rest) > 0; {
		var f fields
		before := len(rest)
		if f, rest = readFields(rest); len(rest) == before {
			_, rest, _ = bytes.Cut(rest, []byte("\n"))
			continue
		}
		if dn := f.one("dn"); dn != "" {
			n++
			if s := f.one("displayname", "cn", "ou", "o"); s != "" {
				names.add(s)
			} else {
				names.add(dn)
			}
			for k := range strings.SplitSeq(f["objectclass"], "\n") {
				classes.add(k)
			}
		}
	}
	w.set(o, "Title", c.name)
	w.set(o, "Records", fmt.Sprint(n))
	w.set(o, "Headings", names.String())
	w.set(o, "Subject", classes.String())
	w.set(o, "Keywords", keywords(text, 30))
	w.fullText(o, c, plainText(text))
}
