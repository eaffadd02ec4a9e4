package catalog

import (
	"io"
	"strings"

	"harvest/gather/soif"
)

// # Linux Software Map
//
// Entries between Begin3 or Begin4 and End, of fields as in IAFA templates. What stands
// outside of entries is passed over. The URL is that of the first file of
// Primary-site:
//
//	Primary-site:   ftp.funet.fi /pub/Linux/util
//	                12kB  thing-1.0.tar.gz
//
// is ftp://ftp.funet.fi/pub/Linux/util/thing-1.0.tar.gz. A Primary-site that is a
// URL is nothing else.

type lsmReader struct {
	l    *lines
	base string
	n    int
}

func newLSMReader(r io.Reader, base string) Reader { return &lsmReader{l: newLines(r), base: base} }

func (r *lsmReader) Next() (soif.Object, error) {
	var all []field
	begun, size := 0, 0
	for {
		line, err := r.l.next()
		if err == io.EOF && begun > 0 {
			err = &Error{begun, 1, "an entry without its End"}
			r.l.err = err
		}
		if err != nil {
			return soif.Object{}, err
		}
		word := strings.ToLower(strings.TrimSpace(line))
		switch {
		case begun == 0:
			if strings.HasPrefix(word, "begin") && len(word) == len("begin3") {
				begun = r.l.n
			}
			continue
		case word == "end" && line[0] != ' ' && line[0] != '\t':
			return r.object(all), nil
		case word == "":
			continue
		}
		if size += len(line); size > MaxRecord {
			return soif.Object{}, r.l.errorf(1, "an entry of over %d bytes", MaxRecord)
		}
		if all, err = r.l.colon(all, line); err != nil {
			r.l.err = err
			return soif.Object{}, err
		}
	}
}

func (r *lsmReader) object(all []field) soif.Object {
	r.n++
	o := soif.Object{Type: "FILE"}
	for _, f := range all {
		if same(f.name, "Primary-site") && o.URL == "" {
			if o.URL = siteURL(f.value); o.URL == f.value {
				continue
			}
		}
		add(&o, f.name, f.value)
	}
	if o.URL == "" {
		o.URL = keyed(r.base, "", r.n)
	}
	return o
}

// siteURL is the URL of what a site has, "" if there is no telling.
func siteURL(site string) string {
	if isURL(site) && strings.Contains(site, "://") {
		return site
	}
	first, rest, _ := strings.Cut(site, "\n")
	words := strings.Fields(first)
	if len(words) == 0 {
		return ""
	}
	if isURL(words[0]) && strings.Contains(words[0], "://") {
		return words[0]
	}
	if !strings.Contains(words[0], ".") {
		return ""
	}
	dir := "/"
	if len(words) > 1 {
		dir = "/" + strings.Trim(words[1], "/") + "/"
		if dir == "//" {
			dir = "/"
		}
	}
	name := ""
	for line := range strings.Lines(rest) {
		if w := strings.Fields(line); len(w) > 0 && name == "" {
			name = w[len(w)-1]
		}
	}
	return "ftp://" + words[0] + dir + strings.TrimPrefix(name, "/")
}

type lsmWriter struct{ w io.Writer }

func newLSMWriter(w io.Writer) Writer { return lsmWriter{w} }

func (w lsmWriter) Write(o *soif.Object) error {
	var b strings.Builder
	b.WriteString("Begin4\n")
	site, ok := o.Get("Primary-site")
	if o.URL != "" && (!ok || siteURL(string(site)) != o.URL) {
		writeField(&b, "Primary-site", o.URL)
	}
	unique(o, func(name string, value []byte) { writeField(&b, name, string(value)) })
	b.WriteString("End\n\n")
	_, err := io.WriteString(w.w, b.String())
	return err
}

func (w lsmWriter) Close() error { return nil }
