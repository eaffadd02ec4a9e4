package essence

import (
	"bytes"
	"fmt"
	"strings"

	"harvest/gather/soif"
)

// An rcsFile is what is told of a ,v file.
type rcsFile struct {
	head, branch   string
	names          []string // symbolic
	desc           string
	dates, authors map[string]string // by revision
	order          []string          // of the revisions with a log
	logs           map[string]string
	text           []byte // of the head
}

// sumRCS summarizes a file of revisions: the head's number, date, author and
// log, the logs of the others, and the text at the head.
func sumRCS(w *worker, o *soif.Object, c *content, text []byte) {
	f := rcsFile{dates: make(map[string]string), authors: make(map[string]string), logs: make(map[string]string)}
	f.read(text)
	logs, authors := w.list(), w.list()
	for _, rev := range f.order {
		if l := words(f.logs[rev]); l != "" {
			logs.add(rev + ": " + l)
		}
	}
	authors.add(f.authors[f.head])
	for _, rev := range f.order {
		authors.add(f.authors[rev])
	}
	w.set(o, "Title", strings.TrimSuffix(c.name, ",v"))
	w.set(o, "Revision", f.head)
	w.set(o, "Date", rcsDate(f.dates[f.head]))
	w.set(o, "Author", authors.String())
	w.set(o, "Description", string(cutText([]byte(words(f.desc)), 400)))
	w.set(o, "Abstract", words(f.logs[f.head]))
	w.set(o, "Changes", logs.String())
	w.tell(o, c, f.text, "")
	w.set(o, "Tags", strings.Join(f.names, " "))
	w.fullText(o, c, plainText(f.text))
}

// rcsDate writes 97.03.01.12.30.00 as 1997-03-01 12:30:00.
func rcsDate(d string) string {
	p := strings.Split(d, ".")
	if len(p) != 6 {
		return d
	}
	if len(p[0]) == 2 {
		p[0] = "19" + p[0]
	}
	return fmt.Sprintf("%s-%s-%s %s:%s:%s", p[0], p[1], p[2], p[3], p[4], p[5])
}

// An rcsScan takes words and strings off the text of a ,v file.
type rcsScan struct{ b []byte }

// next is the next word, or the next string between @ with its @@ as they stand.
func (s *rcsScan) next() (word []byte, str bool) {
	s.b = bytes.TrimLeft(s.b, " \t\r\n\f")
	if len(s.b) == 0 {
		return nil, false
	}
	switch s.b[0] {
	case '@':
		i := 1
		for i < len(s.b) {
			j := bytes.IndexByte(s.b[i:], '@')
			if j < 0 {
				i = len(s.b)
				break
			}
			if i += j; i+1 < len(s.b) && s.b[i+1] == '@' {
				i += 2
				continue
			}
			break
		}
		word, s.b = s.b[1:min(i, len(s.b))], s.b[min(i+1, len(s.b)):]
		return word, true
	case ';', ':':
		word, s.b = s.b[:1], s.b[1:]
		return word, false
	}
	i := bytes.IndexAny(s.b, " \t\r\n\f;:@")
	if i < 0 {
		i = len(s.b)
	}
	word, s.b = s.b[:i], s.b[i:]
	return word, false
}

// value is a string's text, @@ made @.
func (s *rcsScan) value() string {
	word, str := s.next()
	if !str {
		return ""
	}
	return string(bytes.ReplaceAll(word, []byte("@@"), []byte("@")))
}

// until passes over words up to a semicolon and returns the first of them.
func (s *rcsScan) until() string {
	first := ""
	for {
		word, str := s.next()
		if len(word) == 0 && !str || !str && string(word) == ";" {
			return first
		}
		if first == "" {
			first = string(word)
		}
	}
}

// read reads what a ,v file tells, as far as it goes.
func (f *rcsFile) read(text []byte) {
	s := rcsScan{text}
	rev := ""
	for {
		word, str := s.next()
		if len(word) == 0 && !str {
			return
		}
		if str {
			continue
		}
		switch v := string(word); {
		case v == "head":
			f.head = s.until()
		case v == "branch":
			f.branch = s.until()
		case v == "symbols":
			f.symbols(&s)
		case v == "date":
			f.dates[rev] = s.until()
		case v == "author":
			f.authors[rev] = s.until()
		case v == "desc":
			f.desc = s.value()
		case v == "log":
			if f.logs[rev] == "" && len(f.order) < 1000 {
				f.order = append(f.order, rev)
				f.logs[rev] = s.value()
			}
		case v == "text":
			body, _ := s.next()
			if rev == f.head && f.text == nil {
				f.text = bytes.ReplaceAll(body, []byte("@@"), []byte("@"))
			}
		case v[0] >= '0' && v[0] <= '9' && len(v) < 64 && len(f.dates) < 100000:
			rev = v
		}
	}
}

func (f *rcsFile) symbols(s *rcsScan) {
	for {
		word, _ := s.next()
		if len(word) == 0 || string(word) == ";" {
			return
		}
		name := string(word)
		if colon, _ := s.next(); string(colon) == ":" {
			s.next()
		}
		if len(f.names) < 100 {
			f.names = append(f.names, name)
		}
	}
}

// sumSCCS summarizes an s. file: what its deltas say.
func sumSCCS(w *worker, o *soif.Object, c *content, text []byte) {
	var rev, date, what string
	authors, logs := w.list(), w.list()
	inText := false
	var body []byte
	delta, desc := "", w.list()
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) < 2 || line[0] != 1 {
			if inText {
				desc.add(string(line))
			} else if len(body) < w.lim.Text {
				body = append(append(body, line...), '\n')
			}
			continue
		}
		f := strings.Fields(string(line[2:min(len(line), 500)]))
		switch line[1] {
		case 'd': // D 1.2 97/03/01 12:30:00 user 2 1
			if len(f) < 5 {
				continue
			}
			delta = f[1]
			if rev == "" {
				rev, date = f[1], f[2]+" "+f[3]
			}
			authors.add(f[4])
		case 'c':
			if l := words(line[2:]); l != "" {
				if what == "" {
					what = l
				}
				logs.add(delta + ": " + l)
			}
		case 't':
			inText = true
		case 'T':
			inText = false
		}
	}
	w.set(o, "Title", strings.TrimPrefix(c.name, "s."))
	w.set(o, "Revision", rev)
	w.set(o, "Date", date)
	w.set(o, "Author", authors.String())
	w.set(o, "Description", words(desc.String()))
	w.set(o, "Abstract", what)
	w.set(o, "Changes", logs.String())
	w.tell(o, c, body, "")
	w.fullText(o, c, plainText(body))
}
