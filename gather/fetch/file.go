package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ListingType is the Content-Type of a directory. Its body has one line for
// each entry, in the order of the last field, fields separated by a tab:
//
//	f	1274	2026-11-21T12:40:03.5Z	"9c41-17f0a3b2c1d0e000-4fa"	read%20me.txt
//	d	0	2026-11-20T08:00:00Z	-	html/
//
// The kind is f (regular file), d (directory), l (symbolic link) or s (anything
// else: device, pipe, socket, or what could not be examined); then size, time
// of modification, the ETag that a GET of the entry would have, and the
// reference, relative to the directory, percent-encoded, a directory's with a
// slash. A body that ends without an error is the whole directory.
//
// Containers of other schemes answer in the same way: d is a container, f an
// object, s what cannot be gathered; a size of 0, a time or an ETag of - are not
// known. There, references are as in a page, so that they may be absolute URLs or
// have several segments, and a sixth field is what the server calls the object.
// Lists that are made elsewhere (ls-lR, a news group) come in their own order.
const ListingType = "text/x-harvest-listing"

type rootKey struct{}

// Within returns a context for requests of file URLs that must stay inside the
// directory root, itself a file URL: what lies elsewhere, or is reached there by
// a symbolic link, is answered with 403. The root itself may be reached by links.
// Requests without it may name any file, but not a symbolic link.
func Within(ctx context.Context, root string) context.Context {
	return context.WithValue(ctx, rootKey{}, root)
}

// file answers a request for a file URL.
func file(req *http.Request) (*http.Response, error) {
	name, err := localPath(req.URL)
	if err != nil {
		return answer(req, http.StatusBadRequest, err.Error()), nil
	}
	s, rel, err := openSpace(req.Context(), name)
	if err != nil {
		return refuse(req, err)
	}
	defer s.close()
	fi, err := s.stat(rel)
	if err != nil {
		return refuse(req, err)
	}
	slash := strings.HasSuffix(req.URL.Path, "/")
	switch {
	case fi.IsDir() && !slash:
		resp := answer(req, http.StatusMovedPermanently, "a directory")
		resp.Header.Set("Location", Escape(req.URL.Path)+"/")
		return resp, nil
	case fi.IsDir():
		return directory(req, s, rel)
	case !fi.Mode().IsRegular():
		return answer(req, http.StatusForbidden, "not a regular file: "+kindName(fi.Mode())), nil
	case slash:
		return answer(req, http.StatusNotFound, "not a directory"), nil
	}
	return regular(req, s, rel, fi)
}

// regular answers for a regular file, opening it only if its bytes are wanted.
func regular(req *http.Request, s *space, rel string, fi os.FileInfo) (*http.Response, error) {
	if req.Method == http.MethodHead || unchanged(req.Header, fi) {
		return fileAnswer(req, fi), nil
	}
	f, err := s.open(rel)
	if err != nil {
		return refuse(req, err)
	}
	// What is open is what is described, whatever happened to the name.
	if fi, err = f.Stat(); err == nil && !fi.Mode().IsRegular() {
		f.Close()
		return answer(req, http.StatusForbidden, "not a regular file: "+kindName(fi.Mode())), nil
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	resp := fileAnswer(req, fi)
	if resp.StatusCode != http.StatusOK {
		f.Close()
		return resp, nil
	}
	resp.Body = f
	return resp, nil
}

// fileAnswer is the header for a regular file: 200, or 304 if the request's
// conditions say so.
func fileAnswer(req *http.Request, fi os.FileInfo) *http.Response {
	resp := answer(req, http.StatusOK, "")
	if unchanged(req.Header, fi) {
		resp = answer(req, http.StatusNotModified, "")
	} else {
		resp.ContentLength = fi.Size()
		resp.Header.Set("Content-Length", strconv.FormatInt(fi.Size(), 10))
	}
	resp.Header.Set("ETag", etag(fi))
	resp.Header.Set("Last-Modified", fi.ModTime().UTC().Format(http.TimeFormat))
	return resp
}

// unchanged applies If-None-Match, and only without it If-Modified-Since (RFC
// 9110, section 13.1.3).
func unchanged(h http.Header, fi os.FileInfo) bool {
	if match := h.Get("If-None-Match"); match != "" {
		tag := etag(fi)
		for m := range strings.SplitSeq(match, ",") {
			if m = strings.TrimSpace(m); m == "*" || strings.TrimPrefix(m, "W/") == tag {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(h.Get("If-Modified-Since"))
	return err == nil && !fi.ModTime().Truncate(time.Second).After(since)
}

// etag names one version of a file: inode, time of modification and size. A
// file that is replaced has another inode even when time and size are kept.
func etag(fi os.FileInfo) string {
	var ino uint64
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		ino = st.Ino
	}
	b := make([]byte, 0, 48)
	b = append(b, '"')
	b = strconv.AppendUint(b, ino, 16)
	b = append(b, '-')
	b = strconv.AppendInt(b, fi.ModTime().UnixNano(), 16)
	b = append(b, '-')
	b = strconv.AppendInt(b, fi.Size(), 16)
	return string(append(b, '"'))
}

// localPath is the path that a file URL names.
func localPath(u *url.URL) (string, error) {
	switch {
	case u.Host != "" && u.Host != "localhost":
		return "", errors.New("a file URL of another host")
	case u.RawQuery != "" || u.ForceQuery:
		return "", errors.New("a file URL with a query")
	case !strings.HasPrefix(u.Path, "/"):
		return "", errors.New("a file URL without an absolute path")
	case strings.IndexByte(u.Path, 0) >= 0:
		return "", errors.New("a NUL in the path")
	}
	return filepath.Clean(u.Path), nil
}

// A space is the part of the file system that one request may see.
type space struct{ root *os.Root }

// openSpace finds where the request may look, and what name is called there.
func openSpace(ctx context.Context, name string) (*space, string, error) {
	within, _ := ctx.Value(rootKey{}).(string)
	if within == "" {
		return &space{}, name, nil
	}
	u, err := url.Parse(within)
	if err != nil {
		return nil, "", err
	}
	dir, err := localPath(u)
	if err != nil {
		return nil, "", err
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "", fmt.Errorf("%s: outside of %s: %w", name, dir, iofs.ErrPermission)
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		return &space{root}, rel, nil
	}
	if fi, serr := os.Stat(dir); serr == nil && !fi.IsDir() && rel == "." { // the root is a file
		return &space{}, name, nil
	}
	return nil, "", err
}

func (s *space) close() {
	if s.root != nil {
		s.root.Close()
	}
}

// stat examines name. Inside a root links are followed as far as they stay in it.
func (s *space) stat(name string) (os.FileInfo, error) {
	if s.root != nil {
		return s.root.Stat(name)
	}
	return os.Lstat(name)
}

// open opens name, which has been found to be a file or a directory. Should it
// have become a pipe since, O_NONBLOCK keeps the open from waiting for a writer.
func (s *space) open(name string) (*os.File, error) {
	const flag = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
	if s.root != nil {
		return s.root.OpenFile(name, flag, 0)
	}
	return os.OpenFile(name, flag|syscall.O_NOFOLLOW, 0)
}

// directory answers with a listing. The entries are examined while it is read.
func directory(req *http.Request, s *space, rel string) (*http.Response, error) {
	resp := answer(req, http.StatusOK, "")
	resp.Header.Set("Content-Type", ListingType)
	resp.ContentLength = -1
	if req.Method == http.MethodHead {
		return resp, nil
	}
	f, err := s.open(rel)
	if err != nil {
		return refuse(req, err)
	}
	found, err := f.ReadDir(-1)
	if err != nil {
		f.Close()
		return nil, err
	}
	l := &listing{ctx: req.Context(), dir: f, entries: make([]entry, len(found))}
	for i, e := range found {
		href := Escape(e.Name())
		if e.IsDir() {
			href += "/"
		}
		l.entries[i] = entry{href, e}
	}
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.href, b.href) })
	resp.Body = l
	return resp, nil
}

// A listing is the body of a directory's answer, made as it is read.
type listing struct {
	ctx     context.Context // of the request, which ends no later than the body
	dir     *os.File
	entries []entry
	buf     bytes.Buffer
}

type entry struct {
	href string
	d    os.DirEntry
}

func (l *listing) Close() error { return l.dir.Close() }

func (l *listing) Read(p []byte) (int, error) {
	for l.buf.Len() < len(p) && len(l.entries) > 0 {
		if err := l.ctx.Err(); err != nil {
			return 0, err
		}
		l.entries[0].line(&l.buf)
		l.entries = l.entries[1:]
	}
	if l.buf.Len() == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return l.buf.Read(p)
}

// line writes one entry. What vanished since the directory was read is left
// out; what cannot be examined stays, as something that is there.
func (e *entry) line(w *bytes.Buffer) {
	fi, err := e.d.Info()
	if errors.Is(err, iofs.ErrNotExist) {
		return
	}
	if err != nil {
		fmt.Fprintf(w, "s\t0\t-\t-\t%s\n", e.href)
		return
	}
	tag := "-"
	kind := kindName(fi.Mode())[0]
	if kind == 'f' {
		tag = etag(fi)
	}
	b := w.AvailableBuffer()
	b = append(b, kind, '\t')
	b = strconv.AppendInt(b, fi.Size(), 10)
	b = append(b, '\t')
	b = fi.ModTime().UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '\t')
	b = append(b, tag...)
	b = append(b, '\t')
	b = append(b, e.href...)
	w.Write(append(b, '\n'))
}

// kindName says what is not a regular file; the first letters are those of a
// listing.
func kindName(m iofs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "directory"
	case m&iofs.ModeSymlink != 0:
		return "link"
	}
	return "special"
}

// refuse turns what the file system says into a status where HTTP has one.
func refuse(req *http.Request, err error) (*http.Response, error) {
	switch {
	case errors.Is(err, iofs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return answer(req, http.StatusNotFound, ""), nil
	case errors.Is(err, iofs.ErrPermission):
		return answer(req, http.StatusForbidden, ""), nil
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EXDEV), isEscape(err):
		return answer(req, http.StatusForbidden, "a symbolic link leads out of the root"), nil
	}
	return nil, err
}

// isEscape recognises os.Root's refusal, which has no exported value.
func isEscape(err error) bool {
	var pe *iofs.PathError
	return errors.As(err, &pe) && pe.Err != nil && pe.Err.Error() == "path escapes from parent"
}

// answer is a response without a body.
func answer(req *http.Request, code int, why string) *http.Response {
	if why == "" {
		why = http.StatusText(code)
	}
	return &http.Response{
		Status:     strconv.Itoa(code) + " " + why,
		StatusCode: code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  make(http.Header),
		Body:    http.NoBody,
		Request: req,
	}
}

// Escape percent-encodes the bytes of a path that a URL cannot hold as they
// are, in the one way that is canonical for the WHATWG's URL parser too: it
// leaves letters, digits, "/" and -._~!$&'()*+,;=:@ alone.
func Escape(path string) string {
	n := 0
	for i := 0; i < len(path); i++ {
		if !plain(path[i]) {
			n++
		}
	}
	if n == 0 {
		return path
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(path)+2*n)
	for i := 0; i < len(path); i++ {
		if c := path[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0
}
