package essence

import (
	"bytes"
	"strings"
)

// What marks a few words in a line is looked for by hand: most lines have none,
// and an expression tried at each of their bytes costs more than all else does.

// bareLinks returns the first n addresses that stand in a text.
func bareLinks(text []byte, n int) []string {
	var links []string
	for len(links) < n {
		i := bytes.Index(text, []byte("://"))
		if i < 0 {
			break
		}
		start := i - len(linkScheme(text[:i]))
		end := i + 3
		for end < len(text) && !linkEnds[text[end]] {
			end++
		}
		if start == i || end == i+3 {
			text = text[i+3:]
			continue
		}
		links = append(links, strings.TrimRight(string(text[start:end]), ".,;:'"))
		text = text[end:]
	}
	return links
}

// linkScheme is the scheme that a text ends with, "" if none of the web.
func linkScheme(text []byte) string {
	for _, s := range [...]string{"https", "http", "ftp", "gopher"} {
		if bytes.HasSuffix(text, []byte(s)) {
			return s
		}
	}
	return ""
}

// linkEnds are the bytes that no address in a text has.
var linkEnds = func() (t [256]bool) {
	for _, b := range []byte(" \t\n\f\r<>\"'`()[]{}|\\^") {
		t[b] = true
	}
	return t
}()

// restPlain is a line of reStructuredText without its marks: `text <link>`_,
// **strong**, *emphasis* and :role:`text`.
func restPlain(line []byte) string {
	if bytes.IndexByte(line, '`') < 0 && bytes.IndexByte(line, '*') < 0 {
		return string(line)
	}
	out := make([]byte, 0, len(line))
	closed := bytes.LastIndexByte(line, '>')
	for i := 0; i < len(line); {
		var text []byte
		n := 0
		switch line[i] {
		case '`':
			text, n = restQuoted(line[i:], closed-i)
		case '*':
			text, n = restStars(line[i:])
		case ':':
			text, n = restRole(line[i:])
		}
		if n == 0 {
			out = append(out, line[i])
			n = 1
		}
		out = append(out, text...)
		i += n
	}
	return string(out)
}

// restQuoted is the text that b begins with in back quotes, less the link it may
// have, and the length of it all. The line's last > is at closed.
func restQuoted(b []byte, closed int) (text []byte, n int) {
	end := bytes.IndexAny(b[1:], "`<") + 1
	if end <= 1 {
		return nil, 0
	}
	n = end
	if b[end] == '<' {
		if closed < end {
			return nil, 0
		}
		if n += bytes.IndexByte(b[end:], '>') + 1; n >= len(b) || b[n] != '`' {
			return nil, 0
		}
	}
	n++
	for range 2 {
		if n < len(b) && b[n] == '_' {
			n++
		}
	}
	if text = bytes.TrimRight(b[1:end], " \t\f\r"); len(text) == 0 {
		text = b[1:2]
	}
	return text, n
}

// restStars is the text that b begins with between stars, one or two.
func restStars(b []byte) (text []byte, n int) {
	marks := 1
	if len(b) > 1 && b[1] == '*' {
		marks = 2
	}
	size := bytes.IndexByte(b[marks:], '*')
	n = size + 2*marks
	if size <= 0 || n > len(b) || b[n-1] != '*' {
		return nil, 0
	}
	return b[marks : marks+size], n
}

// restRole is the text of the role that b begins with. Where that is none, its
// letters and colons are the text: none can begin in them.
func restRole(b []byte) (text []byte, n int) {
	i := 1
	for i < len(b) && (b[i] == ':' || b[i] >= 'a' && b[i] <= 'z') {
		i++
	}
	if i == len(b) || b[i] != '`' || i < 3 || b[i-1] != ':' {
		return b[:i], i
	}
	size := bytes.IndexByte(b[i+1:], '`')
	if size <= 0 {
		return b[:i], i
	}
	return b[i+1 : i+1+size], i + size + 2
}

// podPlain is a line of POD without its codes, which stand in one another four
// deep at most.
func podPlain(l string) string {
	for n := 0; n < 4 && strings.IndexByte(l, '<') >= 0; n++ {
		was := l
		if l = podInner(l); l == was {
			break
		}
	}
	return l
}

// podInner is a line without the codes that have no others in them.
func podInner(l string) string {
	var out []byte
	done := 0
	for i := 0; ; {
		open := strings.IndexByte(l[i:], '<')
		if open < 0 {
			break
		}
		open += i
		size := strings.IndexAny(l[open+1:], "<>")
		if size < 0 {
			break
		}
		i = open + 1 + size
		if l[i] == '<' {
			continue
		}
		i++
		if open == done {
			continue
		}
		if text, ok := podText(l[open-1], l[open+1:i-1]); ok {
			out = append(append(out, l[done:open-1]...), text...)
			done = i
		}
	}
	if done == 0 {
		return l
	}
	return string(append(out, l[done:]...))
}

// podText is what a code shows of its text; false if it is no code.
func podText(code byte, text string) (string, bool) {
	switch code {
	case 'B', 'C', 'I', 'F', 'S', 'X':
		return text, true
	case 'L': // shown|page
		shown, page, _ := strings.Cut(text, "|")
		if shown == "" {
			return page, true
		}
		return shown, true
	case 'E':
		s, ok := podDelim[text]
		return s, ok
	case 'Z':
		return "", text == ""
	}
	return "", false
}

var podDelim = map[string]string{"lt": "<", "gt": ">", "amp": "&", "sol": "/", "verbar": "|"}

// orgPlain is a line of Org with the names of its links for them, and where the
// first of those go.
func orgPlain(l string) (plain string, links []string) {
	if !strings.Contains(l, "[[") {
		return l, nil
	}
	var out []byte
	done := 0
	for i := 0; ; {
		open := strings.Index(l[i:], "[[")
		if open < 0 {
			break
		}
		open += i
		size := strings.IndexByte(l[open+2:], ']')
		if size < 0 {
			break
		}
		i = open + 2 + size // none begins before, if this is none
		name, n := orgName(l[i+1:])
		if size == 0 || n == 0 {
			continue
		}
		if len(links) < 50 {
			links = append(links, l[open+2:i])
		}
		out = append(append(out, l[done:open]...), name...)
		i += 1 + n
		done = i
	}
	return string(append(out, l[done:]...)), links
}

// orgName is the name of a link, of which s is what follows the address, and how
// much of s is the link's; 0 if it is none.
func orgName(s string) (name string, n int) {
	if strings.HasPrefix(s, "]") {
		return "", 1
	}
	end := strings.IndexByte(s, ']')
	if end < 2 || s[0] != '[' || !strings.HasPrefix(s[end+1:], "]") {
		return "", 0
	}
	return s[1:end], end + 2
}

// orgHeading is what a heading of Org says, without its state and its rank, and
// its tags; false if the line is none.
func orgHeading(l string) (title, tags string, ok bool) {
	rest := strings.TrimLeft(l, "*")
	title = strings.TrimLeft(rest, " \t")
	if len(rest) == len(l) || len(title) == len(rest) {
		return "", "", false
	}
	for _, state := range [...]string{"TODO", "DONE"} {
		if s, ok := strings.CutPrefix(title, state); ok && s != "" && (s[0] == ' ' || s[0] == '\t') {
			title = strings.TrimLeft(s, " \t")
			break
		}
	}
	if len(title) > 4 && strings.HasPrefix(title, "[#") && title[2] < 0x80 && wordBytes[title[2]] && title[3] == ']' && (title[4] == ' ' || title[4] == '\t') {
		title = strings.TrimLeft(title[4:], " \t")
	}
	at := strings.LastIndexAny(title, " \t") + 1
	t := title[at:]
	if at == 0 || len(t) < 3 || t[0] != ':' || t[len(t)-1] != ':' || strings.ContainsFunc(t, notInTag) {
		return title, "", true
	}
	return strings.TrimRight(title[:at], " \t"), t, true
}

func notInTag(r rune) bool {
	return r >= 0x80 || !wordBytes[r] && !strings.ContainsRune("@#%:", r)
}
