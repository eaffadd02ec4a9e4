package essence

import (
	"bytes"
	"strings"

	"harvest/gather/soif"
)

var (
	mdLink   = expression(`\[[^\]\n]*\]\(<?([^)\s>]+)`)
	mdMarker = expression("[*_`]+|!?\\[([^\\]\n]*)\\]\\([^)\n]*\\)")
)

// sumMarkdown summarizes Markdown: its headings of both forms, the first of
// which is the title unless the front matter has one, and its links.
func sumMarkdown(w *worker, o *soif.Object, c *content, text []byte) {
	text = plainText(text)
	body := text
	title := ""
	if rest, ok := bytes.CutPrefix(text, []byte("---\n")); ok {
		if front, after, ok := bytes.Cut(rest, []byte("\n---\n")); ok {
			body = after
			for line := range bytes.Lines(front) {
				if v, ok := bytes.CutPrefix(line, []byte("title:")); ok {
					title = strings.Trim(words(v), `"'`)
				}
			}
		}
	}
	headings, para := mdStructure(body)
	if title == "" && len(headings) > 0 {
		title = headings[0]
	}
	if title == "" {
		title, _ = firstLine(body)
	}
	w.set(o, "Title", title)
	w.set(o, "Description", para)
	w.set(o, "Headings", strings.Join(headings, "\n"))
	w.tell(o, c, body, "")
	var links []string
	seen := make(map[string]bool)
	for _, m := range mdLink().FindAllSubmatch(body, maxLinks) {
		if u, _, _ := strings.Cut(string(m[1]), "#"); u != "" && !seen[u] {
			seen[u] = true
			links = append(links, u)
		}
	}
	w.set(o, "URL-References", strings.Join(links, "\n"))
	w.fullText(o, c, text)
}

// maxLine is the part of a line that is looked at for marks.
const maxLine = 4 << 10

// maxHeadings is how many headings of a text are kept.
const maxHeadings = 500

// mdStructure returns the headings and the first paragraph of text that is not
// code.
func mdStructure(text []byte) (headings []string, para string) {
	code := false
	prev := ""
	var lead []byte
	done := false
	for line := range bytes.Lines(text) {
		if len(headings) >= maxHeadings {
			break
		}
		if len(line) > maxLine { // no line of prose; the expressions below would take its square
			line = line[:maxLine]
		}
		l := strings.TrimRight(string(line), " \t\r\n")
		if strings.HasPrefix(strings.TrimSpace(l), "```") || strings.HasPrefix(strings.TrimSpace(l), "~~~") {
			code = !code
			prev = ""
			continue
		}
		if code {
			continue
		}
		h := strings.TrimLeft(l, "#")
		switch level := len(l) - len(h); {
		case level >= 1 && level <= 6 && strings.HasPrefix(h, " "):
			headings = append(headings, mdPlain(strings.Trim(h, " #")))
			l = ""
		case prev != "" && len(l) > 1 && (strings.Trim(l, "=") == "" || strings.Trim(l, "-") == ""):
			headings = append(headings, mdPlain(prev))
			if !done {
				lead = nil
			}
			l = ""
		}
		switch {
		case done:
		case l == "" || strings.HasPrefix(l, "    ") || strings.HasPrefix(l, "[!["):
			done = letters(lead, 20)
			if !done {
				lead = nil
			}
		default:
			lead = append(append(lead, l...), ' ')
			done = len(lead) > 2000
		}
		prev = l
	}
	return headings, string(cutText([]byte(words(mdPlain(string(lead)))), 400))
}

// mdPlain takes the marks out of a line.
func mdPlain(s string) string {
	return strings.TrimSpace(mdMarker().ReplaceAllString(s, "$1"))
}
