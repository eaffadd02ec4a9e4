package essence

import (
	"bytes"
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
	sections, keys := w.list(), w.list()
	values := make(map[string]string)
	var comments, run []byte
	first := ""
	flush := func() {
		if first == "" && letters(run, 20) && !licence().Match(run) {
			first = string(run)
		}
		run = run[:0]
	}
	section := ""
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\r\n")
		if len(line) == 0 || line[0] == '#' || line[0] == ';' || line[0] == '!' || bytes.HasPrefix(line, []byte("//")) {
			if len(line) == 0 {
				flush()
			} else if len(comments) < w.lim.Attr && !bytes.HasPrefix(line, []byte("#!")) {
				comments = appendComment(comments, line, w.lim.Attr)
				run = appendComment(run, line, w.lim.Attr)
			}
			continue
		}
		flush()
		line = line[:min(len(line), 1000)]
		if m := settingSection().FindSubmatch(line); m != nil {
			section = strings.ToLower(string(m[1]))
			sections.add(string(m[1]))
			continue
		}
		if m := settingKey().FindSubmatch(line); m != nil {
			k := strings.Trim(string(m[1]), `"`)
			keys.add(k)
			v := strings.Trim(strings.TrimSpace(string(m[2])), `"'`)
			for _, name := range []string{section + "." + strings.ToLower(k), strings.ToLower(k)} {
				if values[name] == "" && len(values) < 2000 && len(v) > 0 && v[0] != '|' && v[0] != '>' && v[0] != '{' && v[0] != '[' {
					values[name] = v
				}
			}
		}
	}
	flush()
	get := func(names ...string) string {
		for _, n := range names {
			if values[n] != "" {
				return words(values[n])
			}
		}
		return ""
	}
	title := get("title", "package.name", "project.name", "tool.poetry.name", "metadata.name", "name", "unit.description")
	if title == "" {
		title = c.name
	}
	description := get("description", "unit.description", "package.description", "project.description", "summary")
	if description == "" {
		description = first
	}
	w.set(o, "Title", title)
	w.set(o, "Description", string(cutText([]byte(words(description)), 400)))
	w.set(o, "Author", get("author", "authors", "maintainer", "metadata.author"))
	w.set(o, "Version", get("package.version", "project.version", "tool.poetry.version", "metadata.version", "version"))
	w.set(o, "License", get("license", "package.license", "project.license"))
	w.set(o, "Synopsis", get("service.execstart"))
	w.set(o, "URL-References", get("homepage", "url", "documentation", "repository"))
	w.set(o, "Headings", sections.String())
	w.set(o, "Keywords", strings.ReplaceAll(keys.String(), "\n", " "))
	w.set(o, "Comments", strings.TrimSpace(string(comments)))
	w.fullText(o, c, plainText(text))
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
