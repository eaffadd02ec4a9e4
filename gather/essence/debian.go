package essence

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"harvest/gather/soif"
)

// packageFamily are the types that describe packages of software.
func packageFamily() map[string]entry {
	return map[string]entry{
		"DebianControl":   {sum: sumControl},
		"DebianCopyright": {sum: sumCopyright},
		"DesktopEntry":    {sum: sumDesktop},
		"LSM":             {sum: sumLSM},
	}
}

// sumControl summarizes control files: of a source and its packages, or of those
// in an archive.
func sumControl(w *worker, o *soif.Object, c *content, text []byte) {
	names, headings, authors, sections, depends, urls := w.list(), w.list(), w.list(), w.list(), w.list(), w.list()
	var source, description, ver string
	for rest, n := text, 0; len(rest) > 0 && n < 100000; n++ {
		var f fields
		before := len(rest)
		f, rest = readFields(rest)
		if len(rest) == before { // neither a field nor an end: signatures and the like
			_, rest, _ = bytes.Cut(rest, []byte("\n"))
			continue
		}
		if s := f.one("source"); s != "" && source == "" {
			source = s
		}
		short, long, _ := strings.Cut(f["description"], "\n")
		if name := f.one("package"); name != "" {
			names.add(name)
			headings.add(name + ": " + short)
		}
		if description == "" && short != "" {
			description = short + ". " + firstParagraph([]byte(paragraph(long)), 300)
		}
		if ver == "" {
			ver = f.one("version")
		}
		authors.add(decodeWords(f.one("maintainer", "original-maintainer")))
		sections.add(f.one("section"))
		urls.add(f.one("homepage"))
		urls.add(f.one("vcs-browser"))
		for d := range strings.SplitSeq(f["depends"]+","+f["pre-depends"]+","+f["build-depends"], ",") {
			d, _, _ = strings.Cut(strings.TrimSpace(d), " ")
			if !strings.HasPrefix(d, "$") {
				depends.add(d)
			}
		}
	}
	if source == "" {
		source, _, _ = strings.Cut(names.String(), "\n")
	}
	w.set(o, "Title", source)
	w.set(o, "Version", ver)
	w.set(o, "Author", authors.String())
	w.set(o, "Description", string(cutText([]byte(words(description)), 400)))
	w.set(o, "Headings", headings.String())
	w.set(o, "Subject", sections.String())
	w.set(o, "Depends", depends.String())
	w.set(o, "URL-References", urls.String())
	w.set(o, "Keywords", strings.ReplaceAll(names.String(), "\n", " "))
	w.fullText(o, c, plainText(text))
}

// sumCopyright summarizes a copyright file: whose it is, under which licences.
func sumCopyright(w *worker, o *soif.Object, c *content, text []byte) {
	holders, licences, urls := w.list(), w.list(), w.list()
	var title string
	for rest, n := text, 0; len(rest) > 0 && n < 20000; n++ {
		var f fields
		before := len(rest)
		f, rest = readFields(rest)
		if len(rest) == before {
			_, rest, _ = bytes.Cut(rest, []byte("\n"))
			continue
		}
		if title == "" {
			title = f.one("upstream-name")
		}
		urls.add(f.one("source"))
		for h := range strings.SplitSeq(f["copyright"], "\n") {
			holders.add(copyrightYears().ReplaceAllString(h, ""))
		}
		l, _, _ := strings.Cut(f["license"], "\n")
		licences.add(l)
	}
	if title == "" {
		title, _ = firstLine(text)
	}
	if licences.String() == "" {
		for _, l := range licencesIn(text) {
			licences.add(l)
		}
		for _, m := range copyrightLine().FindAllSubmatch(text, 500) {
			holders.add(copyrightYears().ReplaceAllString(string(m[1]), ""))
		}
	}
	w.set(o, "Title", title)
	w.set(o, "Author", holders.String())
	w.set(o, "License", licences.String())
	w.set(o, "URL-References", urls.String())
	w.set(o, "Keywords", keywords(text, 30))
	w.fullText(o, c, plainText(text))
}

var (
	copyrightYears = expression(`(?i)^(?:copyright|\(c\)|©|[\d ,–-])+(?:by )?`)
	copyrightLine  = expression(`(?im)^[ \t*#/]*copyright[ \t:]+(?:\(c\)|©)?[ \t]*(\S.{3,120})$`)
)

// licenceTexts are words that a licence alone has, and its name in SPDX.
var licenceTexts = []struct {
	name string
	word string // that is in it, in lower case
	re   func() *regexp.Regexp
}{
	{"AGPL-3.0", "affero", expression(`(?i)affero\s+general\s+public\s+licen[sc]e`)},
	{"LGPL", "general", expression(`(?i)(?:lesser|library)\s+general\s+public\s+licen[sc]e`)},
	{"GPL", "gnu general public", expression(`(?i)gnu\s+general\s+public\s+licen[sc]e`)},
	{"GPL", "common-licenses/gpl", expression(`(?i)common-licenses/GPL`)},
	{"Apache-2.0", "apache", expression(`(?i)apache\s+license,?\s+version\s+2|common-licenses/Apache-2`)},
	{"MPL-2.0", "mozilla", expression(`(?i)mozilla\s+public\s+license,?\s+v(?:ersion|\.)\s*2`)},
	{"MIT", "hereby", expression(`(?i)permission\s+is\s+hereby\s+granted,\s+free\s+of\s+charge,\s+to\s+any\s+person\s+obtaining`)},
	{"ISC", "distribute", expression(`(?i)permission\s+to\s+use,\s+copy,\s+modify,\s+and(?:/or)?\s+distribute\s+this\s+software\s+for\s+any`)},
	{"BSD", "redistribution", expression(`(?i)redistributions?\s+of\s+source\s+code\s+must\s+retain`)},
	{"GFDL", "documentation", expression(`(?i)gnu\s+free\s+documentation\s+licen[sc]e`)},
	{"Artistic", "artistic", expression(`(?i)artistic\s+licen[sc]e`)},
	{"CC0-1.0", "universal", expression(`(?i)cc0\s+1\.0\s+universal`)},
	{"CC-BY", "attribution", expression(`(?i)creative\s+commons\s+attribution`)},
	{"Unlicense", "unencumbered", expression(`(?i)free\s+and\s+unencumbered\s+software\s+released\s+into\s+the\s+public\s+domain`)},
	{"Zlib", "altered", expression(`(?i)altered\s+source\s+versions\s+must\s+be\s+plainly\s+marked`)},
}

var spdx = expression(`SPDX-License-Identifier:[ \t]*([\w.+ ()-]+\w\)?)`)

// licencesIn names the licences a text has or is under, by what its first 64 KB say.
func licencesIn(text []byte) []string {
	text = text[:min(len(text), 64<<10)]
	if m := spdx().FindSubmatch(text); m != nil {
		return []string{string(m[1])}
	}
	low := appendWords(nil, bytes.ToLower(text))
	var names []string
	for _, l := range licenceTexts {
		if bytes.Contains(low, []byte(l.word)) && l.re().Match(text) && !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	return names
}

var debianEntry = expression(`(?m)^([a-z0-9][a-z0-9+.-]*) \(([^)\s]+)\) ([^;\n]*);[ \t]*(.*)$`)

// sumDebianChangelog summarizes a package's history by its newest version.
func sumDebianChangelog(w *worker, o *soif.Object, c *content, text []byte) {
	versions, authors := w.list(), w.list()
	all := linesThat(debianEntry(), text, 5000, func(l []byte) bool {
		return l[0] >= 'a' && l[0] <= 'z' || l[0] >= '0' && l[0] <= '9'
	})
	if len(all) == 0 {
		sumChangeLog(w, o, c, text)
		return
	}
	at := func(m []int, g int) string { return string(text[m[2*g]:m[2*g+1]]) }
	for _, m := range all {
		versions.add(at(m, 2))
	}
	end := len(text)
	if len(all) > 1 {
		end = all[1][0]
	}
	newest := text[all[0][1]:end]
	date := ""
	for _, m := range linesThat(debianTrailer(), text, 5000, func(l []byte) bool { return bytes.HasPrefix(l, []byte(" -- ")) }) {
		authors.add(at(m, 1))
		if date == "" {
			date = at(m, 2)
		}
	}
	newest = debianTrailer().ReplaceAll(newest, nil)
	w.set(o, "Title", at(all[0], 1)+" "+at(all[0], 2))
	w.set(o, "Revision", at(all[0], 2))
	w.set(o, "Date", date)
	w.set(o, "Author", authors.String())
	w.set(o, "Description", string(cutText([]byte(words(newest)), 400)))
	w.set(o, "Versions", versions.String())
	w.tell(o, c, text, "en")
	w.fullText(o, c, plainText(text))
}

// linesThat returns where the first n lines match an expression, tried on those
// that may.
func linesThat(re *regexp.Regexp, text []byte, n int, may func(line []byte) bool) (all [][]int) {
	for at := 0; at < len(text) && len(all) < n; {
		line, _, _ := bytes.Cut(text[at:], []byte("\n"))
		if len(line) > 0 && may(line) {
			if m := re.FindSubmatchIndex(line); m != nil {
				for i := range m {
					if m[i] >= 0 {
						m[i] += at
					}
				}
				all = append(all, m)
			}
		}
		at += len(line) + 1
	}
	return all
}

var debianTrailer = expression(`(?m)^ -- (.+?) *(?:<[^>\n]*>)?  (\w{3}, .*)$`)

// sumDesktop summarizes a desktop entry.
func sumDesktop(w *worker, o *soif.Object, c *content, text []byte) {
	get := make(map[string]string)
	section := ""
	actions := w.list()
	for line := range bytes.Lines(text) {
		l := strings.TrimSpace(string(line[:min(len(line), 4096)]))
		if strings.HasPrefix(l, "[") {
			section = l
			continue
		}
		k, v, ok := strings.Cut(l, "=")
		k = strings.TrimSpace(k)
		if !ok || strings.HasPrefix(l, "#") || strings.Contains(k, "[") {
			continue
		}
		if section == "[Desktop Entry]" && get[k] == "" {
			get[k] = strings.TrimSpace(v)
		} else if k == "Name" {
			actions.add(v)
		}
	}
	w.set(o, "Title", get["Name"])
	w.set(o, "Description", strings.TrimSpace(get["Comment"]))
	w.set(o, "Subject", get["GenericName"])
	w.set(o, "Headings", actions.String())
	w.set(o, "Synopsis", get["Exec"])
	w.set(o, "URL-References", get["URL"])
	w.set(o, "Keywords", words(strings.ReplaceAll(get["Keywords"]+";"+get["Categories"], ";", " ")))
	w.fullText(o, c, plainText(text))
}

// sumLSM summarizes an entry of the Linux Software Map.
func sumLSM(w *worker, o *soif.Object, c *content, text []byte) {
	if i := bytes.Index(text, []byte("Begin")); i >= 0 {
		_, text, _ = bytes.Cut(text[i:], []byte("\n"))
	}
	f, _ := readFields(text)
	w.set(o, "Title", f.one("title"))
	w.set(o, "Author", f.one("author"))
	w.set(o, "Version", f.one("version"))
	w.set(o, "Date", f.one("entered-date"))
	w.set(o, "Description", f.one("description"))
	w.set(o, "Keywords", f.one("keywords"))
	w.set(o, "License", f.one("copying-policy"))
	w.set(o, "URL-References", strings.TrimSpace(f.one("primary-site")+"\n"+f.one("alternate-site")))
	w.fullText(o, c, plainText(text))
}
