package fetch

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A Local is a prefix of URLs whose documents are files in a folder here as
// well: asked for "a/b" below URL, the file "a/b" below Path is read instead of the network, as far as a
// web server would serve it as it stands. That is, not if it is no regular file
// or reached by a symbolic link, if it may be executed (the server would run it),
// if others may not read it (the server decides who may), if its name needs
// escapes, or if the URL has a query. The network is asked then.
type Local struct {
	URL  string // canonical
	Path string // absolute, of a folder
}

// local answers for a URL that is a file here, nil if none is.
func (t *Transport) local(req *http.Request) *http.Response {
	if len(t.o.Local) == 0 || req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil
	}
	dir, name := t.mapped(req.URL)
	if name == "" {
		return nil
	}
	f, err := openBelow(dir, name)
	if err != nil {
		return nil
	}
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 != 0 || fi.Mode()&0o004 == 0 {
		f.Close()
		return nil
	}
	resp := fileAnswer(req, fi)
	if typ := localTypes[strings.ToLower(path.Ext(name))]; typ != "" {
		resp.Header.Set("Content-Type", typ)
	}
	if resp.StatusCode != http.StatusOK || req.Method == http.MethodHead {
		f.Close()
		return resp
	}
	resp.Body = f
	return resp
}

// localTypes are the types that a page's links are looked for in, and that every
// server knows.
var localTypes = map[string]string{
	".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".txt": "text/plain", ".xml": "text/xml", ".css": "text/css",
}

// mapped finds the folder and the name in it for a URL, "" if it has none. The
// prefix that is longest counts.
func (t *Transport) mapped(u *url.URL) (dir, name string) {
	if u.RawQuery != "" || u.ForceQuery || u.User != nil {
		return "", ""
	}
	s := u.String()
	best := -1
	for i := range t.o.Local {
		if l := &t.o.Local[i]; strings.HasPrefix(s, l.URL) && (best < 0 || len(l.URL) > len(t.o.Local[best].URL)) {
			best = i
		}
	}
	if best < 0 {
		return "", ""
	}
	l := &t.o.Local[best]
	rest := s[len(l.URL):]
	if !strings.HasSuffix(l.URL, "/") {
		var slash bool
		if rest, slash = strings.CutPrefix(rest, "/"); !slash {
			return "", "" // the prefix ends within a name
		}
	}
	if rest == "" || strings.HasSuffix(rest, "/") || strings.ContainsAny(rest, "%\x00") || strings.Contains("/"+rest, "/.") {
		return "", "" // a folder, a name that needs escapes, or one that servers hide
	}
	if !filepath.IsAbs(l.Path) || !filepath.IsLocal(rest) {
		return "", ""
	}
	return l.Path, rest
}

var errLink = errors.New("a symbolic link")

// openWalk opens a file below a folder, looking at each name on the way. It is
// what systems without a better call have: a name may become a link between the
// look and the opening.
func openWalk(dir, name string) (*os.File, error) {
	at := dir
	for seg := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		at = filepath.Join(at, seg)
		fi, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		if fi.Mode()&os.ModeSymlink != 0 {
			return nil, errLink
		}
	}
	return (&space{}).open(at)
}
