package essence

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path"
	"strings"

	"harvest/gather/soif"
)

// formFamily are forms of the original's time, and others that stand alone.
func formFamily() map[string]entry {
	return map[string]entry{
		"WaisSource":   {sum: sumWais},
		"FrameMaker":   {sum: sumFrameMaker},
		"SOIFStream":   {sum: sumSOIF, bytes: true},
		"SymbolicLink": {sum: sumLink, bytes: true},
		"Command":      {sum: sumCommand},
		"Certificate":  {sum: sumCertificate, bytes: true},
		"PGP":          {sum: sumPGP},
	}
}

var waisField = expression(`:([\w-]+)[ \t\n]+(?:"((?:[^"\\]|\\.)*)"|([^\s()":]+))`)

// sumWais summarizes the description of a WAIS database.
func sumWais(w *worker, o *soif.Object, c *content, text []byte) {
	f := make(fields)
	for _, m := range waisField().FindAllSubmatch(text, 200) {
		if n := strings.ToLower(string(m[1])); f[n] == "" {
			f[n] = strings.ReplaceAll(string(m[2])+string(m[3]), `\"`, `"`)
		}
	}
	description := strings.TrimSpace(f["description"])
	w.set(o, "Title", f.one("database-name"))
	w.set(o, "Author", f.one("maintainer"))
	w.set(o, "Description", string(cutText([]byte(words(description)), 400)))
	if h := f.one("ip-name", "ip-address"); h != "" {
		if p := f.one("tcp-port"); p != "" {
			h += ":" + p
		}
		w.set(o, "URL-References", "wais://"+h+"/"+f.one("database-name"))
	}
	w.set(o, "Keywords", keywords([]byte(description), 30))
	w.fullText(o, c, plainText([]byte(description)))
}

var (
	mifEscape  = expression(`\\(?:x([0-9a-f]{2}) |([t>qQ\\]))`)
	mifHeading = expression(`(?i)head|title|chapter|section|^h\d`)
)

// sumFrameMaker summarizes FrameMaker's documents: text and headings of MIF, the
// words in the others.
func sumFrameMaker(w *worker, o *soif.Object, c *content, text []byte) {
	if !bytes.HasPrefix(text, []byte("<MIFFile")) && !bytes.HasPrefix(text, []byte("<MML")) {
		said := []byte(strings.Join(printable(text, 12, w.lim.Text), "\n"))
		w.set(o, "Title", c.name)
		w.set(o, "Keywords", keywords(said, 30))
		w.fullText(o, c, said)
		return
	}
	t := w.lightText()
	tag, para := "", []byte(nil)
	end := func() {
		if p := words(para); p != "" {
			if mifHeading().MatchString(tag) {
				t.heading(p)
			} else {
				t.body = append(append(t.body, p...), "\n\n"...)
			}
		}
		tag, para = "", para[:0]
	}
	for len(text) > 0 {
		var name, value []byte
		name, value, text = mifPiece(text)
		switch string(name) {
		case "Para":
			end()
		case "PgfTag":
			tag = string(value)
		case "String":
			para = append(para, mifText(value)...)
		case "Char":
			switch string(value) {
			case "Tab", "HardReturn", "HardSpace", "EnSpace", "EmSpace":
				para = append(para, ' ')
			case "HardHyphen":
				para = append(para, '-')
			}
		}
	}
	end()
	t.set(w, o, c, nil)
}

// mifPiece is the name of the next statement of MIF, the string or the word it
// begins with, and what follows that.
func mifPiece(text []byte) (name, value, rest []byte) {
	_, text, _ = bytes.Cut(text, []byte("<"))
	if len(text) == 0 {
		return nil, nil, nil
	}
	name = firstWord(text)
	rest = bytes.TrimPrefix(text[len(name):], []byte(" "))
	if len(rest) == 0 || rest[0] != '`' {
		if len(rest) > 0 && wordBytes[rest[0]] {
			value = firstWord(rest)
		}
		return name, value, rest
	}
	if end := bytes.IndexAny(rest, "'\n"); end > 0 && rest[end] == '\'' {
		return name, rest[1:end], rest[end+1:]
	}
	return name, nil, rest
}

// mifText undoes MIF's escapes.
func mifText(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	return mifEscape().ReplaceAllFunc(b, func(s []byte) []byte {
		switch m := mifEscape().FindSubmatch(s); {
		case len(m[1]) > 0:
			return []byte(" ")
		case m[2][0] == 't':
			return []byte(" ")
		case m[2][0] == '>':
			return []byte(">")
		case m[2][0] == 'q':
			return []byte("'")
		case m[2][0] == 'Q':
			return []byte("`")
		default:
			return m[2]
		}
	})
}

// sumSOIF summarizes a stream of objects by their URLs and titles.
func sumSOIF(w *worker, o *soif.Object, c *content, text []byte) {
	titles, urls, types := w.list(), w.list(), w.list()
	n := 0
	for rest := text; len(rest) > 0; {
		i := bytes.IndexByte(rest, '@')
		if i < 0 {
			break
		}
		rest = rest[i:]
		obj, size, err := soif.Parse(rest, soif.Limits{})
		if err != nil || size == 0 {
			rest = rest[1:]
			if n == 0 && len(text)-len(rest) > 64<<10 {
				break
			}
			if next := bytes.Index(rest, []byte("\n@")); next >= 0 {
				rest = rest[next:]
				continue
			}
			break
		}
		n++
		titles.add(obj.Text("Title"))
		urls.add(obj.URL)
		types.add(obj.Type)
		rest = rest[size:]
	}
	w.set(o, "Title", c.name)
	w.set(o, "Records", fmt.Sprint(n))
	w.set(o, "Subject", types.String())
	w.set(o, "Headings", titles.String())
	w.set(o, "URL-References", urls.String())
	w.set(o, "Keywords", keywords([]byte(titles.String()), 30))
}

// sumLink summarizes a symbolic link by what it points at: its content, or, where a
// file stands for one, what Cygwin or Interix write after their marks.
func sumLink(w *worker, o *soif.Object, c *content, b []byte) {
	b = b[:min(len(b), 4096)]
	if t, ok := bytes.CutPrefix(b, []byte("!<symlink>")); ok {
		b = t
	} else if t, ok := bytes.CutPrefix(b, []byte("IntxLNK\x01")); ok {
		b = []byte(wideText(t))
	}
	target := clean(string(bytes.Trim(decode(b, ""), " \t\r\n\x00")))
	w.set(o, "Title", c.name)
	w.set(o, "Description", "symbolic link to "+target)
	w.set(o, "URL-References", target)
}

// sumCommand summarizes a script for whatever interpreter by its comments.
func sumCommand(w *worker, o *soif.Object, c *content, text []byte) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f := strings.Fields(strings.TrimPrefix(string(line), "#!"))
	typ := "OtherCode"
	if len(f) > 0 {
		name := path.Base(f[0])
		if name == "env" && len(f) > 1 {
			name = f[1]
		}
		w.set(o, "Programming-Language", clean(name))
		typ = interpreted(name)
	}
	inner := *c
	inner.typ = typ
	sumSource(w, o, &inner, text)
}

// interpreted is the type of what an interpreter reads.
func interpreted(name string) string {
	name = strings.TrimRight(name, "0123456789.")
	for prefix, typ := range map[string]string{"python": "Python", "perl": "Perl", "ruby": "Ruby", "node": "JavaScript", "lua": "Lua", "php": "PHP",
		"tclsh": "Tcl", "wish": "Tcl", "expect": "Tcl", "awk": "Awk", "gawk": "Awk", "mawk": "Awk", "sed": "Sed", "Rscript": "R", "guile": "Scheme",
		"make": "Makefile", "julia": "Julia", "escript": "Erlang", "elixir": "Elixir", "ocaml": "OCaml", "runghc": "Haskell", "bash": "ShellScript", "sh": "ShellScript",
		"dash": "ShellScript", "zsh": "ShellScript", "ksh": "ShellScript", "emacs": "Lisp", "sbcl": "Lisp", "pwsh": "PowerShell"} {
		if name == prefix {
			return typ
		}
	}
	return "OtherCode"
}

// sumCertificate summarizes X.509 certificates: whose, by whom, until when.
func sumCertificate(w *worker, o *soif.Object, c *content, text []byte) {
	subjects, issuers, names, kinds := w.list(), w.list(), w.list(), w.list()
	until := ""
	take := func(der []byte) {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		subjects.add(cert.Subject.String())
		issuers.add(cert.Issuer.String())
		for _, n := range cert.DNSNames {
			names.add(n)
		}
		if until == "" {
			until = cert.NotBefore.Format("2006-01-02") + " - " + cert.NotAfter.Format("2006-01-02")
		}
	}
	for rest, n := text, 0; n < 1000; n++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			if n == 0 {
				take(text)
			}
			break
		}
		kinds.add(b.Type)
		if strings.HasSuffix(b.Type, "CERTIFICATE") {
			take(b.Bytes)
		}
	}
	title, rest, _ := strings.Cut(subjects.String(), "\n")
	if title == "" {
		title = c.name
	}
	w.set(o, "Title", title)
	w.set(o, "Author", issuers.String())
	w.set(o, "Date", until)
	w.set(o, "Description", strings.ToLower(strings.ReplaceAll(kinds.String(), "\n", ", ")))
	w.set(o, "Headings", strings.TrimSpace(rest+"\n"+names.String()))
	w.set(o, "Keywords", keywords([]byte(subjects.String()+"\n"+names.String()), 30))
}

var pgpBegin = expression(`(?m)^-----BEGIN PGP ([A-Z ]+)-----`)

// sumPGP summarizes what PGP has signed, by its text, or what kind of armour it is.
func sumPGP(w *worker, o *soif.Object, c *content, text []byte) {
	kinds := w.list()
	for _, m := range pgpBegin().FindAllSubmatch(text, 20) {
		kinds.add("PGP " + strings.ToLower(string(m[1])))
	}
	i := bytes.Index(text, []byte("-----BEGIN PGP SIGNED MESSAGE-----"))
	if i < 0 {
		w.set(o, "Title", c.name)
		w.set(o, "Description", strings.ReplaceAll(kinds.String(), "\n", ", "))
		return
	}
	_, body, _ := bytes.Cut(text[i:], []byte("\n\n"))
	if end := bytes.Index(body, []byte("-----BEGIN PGP SIGNATURE-----")); end >= 0 {
		body = body[:end]
	}
	sumText(w, o, c, body)
	w.set(o, "Subject", strings.ReplaceAll(kinds.String(), "\n", ", "))
}
