package essence

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// changeFamily are the types that tell of changes.
func changeFamily() map[string]entry {
	return map[string]entry{
		"Patch":           {sum: sumPatch},
		"RCS":             {sum: sumRCS},
		"SCCS":            {sum: sumSCCS},
		"ChangeLog":       {sum: sumChangeLog},
		"DebianChangelog": {sum: sumDebianChangelog},
		"Log":             {sum: sumLog},
	}
}

var (
	patchFile  = expression(`^(?:(?:---|\+\+\+|\*\*\*) ([^\t\n]+?)(?:\t.*|[ \t]+(?:\d{4}-\d\d-\d\d|\w{3} \w{3} ).*)?|Index: (.+)|diff --git a/\S+ b/(.+))$`)
	patchStart = expression(`^(?:--- \S|\*\*\* \S|Index: |diff |@@ |Only in |={20})`)
)

// sumPatch summarizes a patch by the files it changes, and by what stands before
// the first of them: who made it and why.
func sumPatch(w *worker, o *soif.Object, c *content, text []byte) {
	head := text
	at := 0
	for line := range bytes.Lines(text) {
		if patchStart().Match(line) && !bytes.HasPrefix(line, []byte("--- \n")) {
			head = text[:at]
			break
		}
		at += len(line)
	}
	files, added, removed := patchFiles(w, text[len(head):])
	if len(head) == len(text) {
		head = nil
	}
	title, description, f := patchHead(head)
	if title == "" {
		title, _, _ = strings.Cut(files.String(), "\n")
	}
	w.set(o, "Title", title)
	w.set(o, "Author", f.one("from", "author", "origin-author"))
	w.set(o, "Date", f.one("date", "last-update"))
	w.set(o, "Description", string(cutText([]byte(words(description)), 400)))
	w.set(o, "Files", files.String())
	w.set(o, "Changes", fmt.Sprintf("%d files, %d lines added, %d removed", len(files.seen), added, removed))
	w.set(o, "URL-References", f.one("forwarded", "bug", "bug-debian", "origin"))
	w.set(o, "Keywords", keywords(text, 30))
	w.fullText(o, c, plainText(text))
}

// patchFiles lists the files of a patch, and counts lines.
func patchFiles(w *worker, text []byte) (files *list, added, removed int) {
	files = w.list()
	before, after := 0, 0 // lines left of each side of a hunk
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if before > 0 || after > 0 {
			switch {
			case len(line) == 0 || line[0] == ' ':
				before--
				after--
				continue
			case line[0] == '+':
				added++
				after--
				continue
			case line[0] == '-':
				removed++
				before--
				continue
			case line[0] == '\\':
				continue
			}
		}
		before, after = hunkSize(line)
		if before > 0 || after > 0 {
			continue
		}
		m := patchFile().FindSubmatch(line[:min(len(line), 1000)])
		if m == nil {
			continue
		}
		for _, name := range m[1:] {
			n := string(name)
			if n != "" && !strings.HasPrefix(n, "/dev/null") && !strings.HasSuffix(n, "****") && !contextRange().MatchString(n) {
				files.add(cleanPatchName(n))
			}
		}
	}
	return files, added, removed
}

var contextRange = expression(`^\d+(?:,\d+)? [-*]{4}$`)

// cleanPatchName takes off what diff puts before names.
func cleanPatchName(n string) string {
	n = strings.TrimSuffix(n, ".orig")
	if len(n) > 2 && (n[:2] == "a/" || n[:2] == "b/") {
		return n[2:]
	}
	return n
}

var hunkLine = expression(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// hunkSize is the lines of the sides of a hunk `@@ -a,b +c,d @@`.
func hunkSize(line []byte) (before, after int) {
	if !bytes.HasPrefix(line, []byte("@@ -")) {
		return 0, 0
	}
	m := hunkLine().FindSubmatch(line[:min(len(line), 100)])
	if m == nil {
		return 0, 0
	}
	size := func(b []byte) int {
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return 1
		}
		return n
	}
	return size(m[1]), size(m[2])
}

// patchHead reads what stands before the first file: a mail, Debian's fields, or
// words.
func patchHead(head []byte) (title, description string, f fields) {
	var body []byte
	if bytes.HasPrefix(head, []byte("From ")) {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	f, body = readFields(bytes.TrimLeft(head, "\r\n"))
	title = f.one("subject")
	title = strings.TrimSpace(patchMark().ReplaceAllString(decodeWords(title), ""))
	d := f["description"]
	if d != "" && title == "" {
		title, d, _ = strings.Cut(d, "\n")
	}
	if words(d) == "" {
		d = firstParagraph(body, 400)
	}
	if title == "" {
		line, rest := firstLine(body)
		title, d = line, firstParagraph(rest, 400)
		if d == "" {
			d = line
		}
	}
	return words(title), d, f
}

var patchMark = expression(`^\[[^\]]*PATCH[^\]]*\]`)

// sumLog summarizes a log by when it begins and ends.
func sumLog(w *worker, o *soif.Object, c *content, text []byte) {
	lines := bytes.Count(text, []byte("\n"))
	first, last := logTime().Find(text[:min(len(text), 4<<10)]), []byte(nil)
	for _, m := range logTime().FindAll(text[max(0, len(text)-4<<10):], -1) {
		last = m
	}
	w.set(o, "Title", c.name)
	w.set(o, "Description", fmt.Sprintf("log of %d lines", lines))
	w.set(o, "Date", strings.TrimSuffix(string(first)+" - "+string(last), " - "))
	w.set(o, "Keywords", keywords(text, 30))
	w.fullText(o, c, plainText(text))
}

var logTime = expression(`\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?`)

var gnuEntry = expression(`(?m)^(\d{4}-\d\d-\d\d)[ \t]+([^<\n]{2,60}?)[ \t]*<`)

// sumChangeLog summarizes a ChangeLog by who changed what when.
func sumChangeLog(w *worker, o *soif.Object, c *content, text []byte) {
	authors, files := w.list(), w.list()
	var newest, oldest string
	for _, m := range gnuEntry().FindAllSubmatch(text, 10000) {
		if newest == "" {
			newest = string(m[1])
		}
		oldest = string(m[1])
		authors.add(string(m[2]))
	}
	for _, m := range changedFile().FindAllSubmatch(text, 10000) {
		for n := range strings.SplitSeq(string(m[1]), ",") {
			files.add(n)
		}
	}
	title, rest := firstLine(text)
	if newest != "" {
		title = c.name
	}
	w.set(o, "Title", title)
	w.set(o, "Author", authors.String())
	w.set(o, "Date", newest)
	if oldest != newest {
		w.set(o, "Description", "changes from "+oldest+" to "+newest)
	} else if newest == "" {
		w.set(o, "Description", firstParagraph(rest, 400))
	}
	w.set(o, "Files", files.String())
	w.set(o, "Keywords", keywords(text, 30))
	w.fullText(o, c, plainText(text))
}

var changedFile = expression(`(?m)^[ \t]+\* ([\w./+-]+(?:, [\w./+-]+)*)(?: \([^)\n]*\))?(?: <[^>\n]*>)?:`)
