package fstest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// A Site is a web site for httptest to serve, made of the files of a txtar
// archive or of a folder: each answers the URL path that is its name,
// index.html also that of its folder. Answers carry an ETag and a
// Last-Modified, and requests made conditional on them get a 304.
//
// A file that begins with "HTTP/1.1 " is a whole response, for redirects,
// errors and headers of one's own.
type Site struct {
	files map[string][]byte

	mu  sync.Mutex
	log []string
}

// NewSite reads the archive or folder at a path.
func NewSite(name string) (*Site, error) {
	s := &Site{files: make(map[string][]byte)}
	i, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		return s, filepath.Walk(name, func(p string, i os.FileInfo, err error) error {
			if err != nil || i.IsDir() {
				return err
			}
			rel, err := filepath.Rel(name, p)
			if err != nil {
				return err
			}
			b, err := os.ReadFile(p)
			s.add(rel, b)
			return err
		})
	}
	a, err := txtar.ParseFile(name)
	if err != nil {
		return nil, err
	}
	if len(a.Files) == 0 {
		return nil, fmt.Errorf("site %s: no files in it", name)
	}
	for _, f := range a.Files {
		s.add(f.Name, f.Data)
	}
	return s, nil
}

func (s *Site) add(name string, b []byte) {
	p := path.Clean("/" + name)
	s.files[p] = b
	if dir, ok := strings.CutSuffix(p, "/index.html"); ok {
		s.files[dir+"/"] = b
	}
}

// Requests gives a line for each request served so far: method, path with
// query, status.
func (s *Site) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// ServeHTTP answers one request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &coded{w, http.StatusOK}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, fmt.Sprintf("%s %s %d", r.Method, r.URL.RequestURI(), c.status))
	}()
	b, ok := s.files[r.URL.Path]
	if _, dir := s.files[r.URL.Path+"/"]; !ok && dir {
		http.Redirect(c, r, r.URL.Path+"/", http.StatusMovedPermanently)
		return
	}
	if !ok {
		http.NotFound(c, r)
		return
	}
	if bytes.HasPrefix(b, []byte("HTTP/1.1 ")) {
		s.raw(c, r, b)
		return
	}
	c.Header().Set("ETag", fmt.Sprintf(`"%.8x"`, sha256.Sum256(b)))
	// A fixed time: a site says the same in every run.
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	http.ServeContent(c, r, typeName(r.URL.Path), at, bytes.NewReader(b))
}

// raw answers with a response as it stands in the archive.
func (s *Site) raw(w http.ResponseWriter, r *http.Request, b []byte) {
	head, body, _ := bytes.Cut(b, []byte("\n\n"))
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(head)+"\n\n")), r)
	if err != nil {
		http.Error(w, "site: "+err.Error(), http.StatusInternalServerError)
		return
	}
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	w.Write(body)
}

// coded remembers the status for the log.
type coded struct {
	http.ResponseWriter
	status int
}

func (c *coded) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// typeName is the name whose ending tells the type of what is at a path.
func typeName(p string) string {
	if strings.HasSuffix(p, "/") {
		return "index.html"
	}
	return path.Base(p)
}
