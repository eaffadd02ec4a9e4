package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	iofs "io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Replay answers requests with what WARC files have: the last response of each
// URL, to conditional requests 304 when it is what they hold. A URL that is in no
// file is an error and not a 404, since nothing says that it is gone; but a
// robots.txt that nobody fetched forbids nothing.
type Replay struct {
	files []string
	seed  maphash.Seed
	all   []found // by URL's hash, then date
}

// found is where a record is.
type found struct {
	url   uint64
	date  int64 // nanoseconds
	file  uint32
	place Place
}

// OpenReplay reads through a file, or all WARC files below a folder. What of
// them is damaged is told by trouble, and not there.
func OpenReplay(ctx context.Context, path string, trouble func(error)) (*Replay, error) {
	r := &Replay{seed: maphash.MakeSeed()}
	err := filepath.WalkDir(path, func(name string, d iofs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (name == path || isWARC(name)) {
			r.files = append(r.files, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("%s: no WARC file is there: %w", path, iofs.ErrNotExist)
	}
	for i := range r.files {
		if err := r.scan(ctx, i); errors.Is(err, ctx.Err()) && err != nil {
			return nil, err
		} else if err != nil {
			trouble(fmt.Errorf("%s: %w", r.files[i], err))
		}
	}
	slices.SortFunc(r.all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.date, b.date), cmp.Compare(a.file, b.file))
	})
	return r, nil
}

// isWARC tells by its name whether a file is one, or one that is being written.
func isWARC(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(filepath.Base(name)), opening)
	for _, end := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.HasSuffix(name, ".warc")
}

// scan finds what a file has.
func (r *Replay) scan(ctx context.Context, file int) error {
	f, err := os.Open(r.files[file])
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := NewReader(f)
	if err != nil {
		return err
	}
	defer in.Close()
	for {
		rec, err := in.Next()
		if err == io.EOF {
			return ctx.Err()
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		switch rec.Header.Type() {
		case Response, Revisit, Resource:
			at := found{r.hash(rec.Header.Target()), rec.Header.Date().UnixNano(), uint32(file), rec.Place}
			r.all = append(r.all, at)
		}
	}
}

func (r *Replay) hash(url string) uint64 { return maphash.String(r.seed, url) }

// records returns those of a URL, the latest first.
func (r *Replay) records(url string) iter.Seq[found] {
	h := r.hash(url)
	end, _ := slices.BinarySearchFunc(r.all, h, func(f found, h uint64) int {
		if f.url <= h {
			return -1
		}
		return 1
	})
	return func(yield func(found) bool) {
		for i := end - 1; i >= 0 && r.all[i].url == h; i-- {
			if !yield(r.all[i]) {
				return
			}
		}
	}
}

// URLs yields the URLs of the files in no order, each as often as it is there.
func (r *Replay) URLs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, at := range r.all {
			rec, done, err := r.open(at)
			if err == nil {
				err = ctx.Err()
				done()
			}
			if err != nil {
				yield("", err)
				return
			}
			if !yield(rec.Header.Target(), nil) {
				return
			}
		}
	}
}

// open returns a record, and what is to be called when it was read.
func (r *Replay) open(at found) (rec *Record, done func(), err error) {
	f, err := os.Open(r.files[at.file])
	if err != nil {
		return nil, nil, err
	}
	in, err := newReader(io.NewSectionReader(f, at.place.Member, 1<<62), at.place.Member)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	done = func() {
		in.Close()
		f.Close() // it was only read
	}
	if at.place.Member > 0 && in.in.m.kind == zstandard {
		in.in.m.dict = r.dict(f)
	}
	if _, err = io.CopyN(io.Discard, &in.in, at.place.Inside); err == nil {
		rec, err = in.Next()
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("%s: %w", r.files[at.file], cutShort(err))
	}
	return rec, done, nil
}

// dict returns the dictionary that a zstd file begins with, if it does.
func (r *Replay) dict(f *os.File) []byte {
	m, err := newMembers(io.NewSectionReader(f, 0, 1<<62), 0)
	if err != nil || m.next() != nil {
		return nil
	}
	defer m.close()
	return m.dict
}

// RoundTrip answers a request.
func (r *Replay) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	url := target(req)
	if req.Method != http.MethodGet && req.Method != http.MethodHead && req.Method != "" {
		return nil, fmt.Errorf("%s: an archive answers no %s: %w", url, req.Method, iofs.ErrInvalid)
	}
	var last error
	for at := range r.records(url) {
		resp, err := r.answer(req, url, at, 0)
		if err == nil {
			return conditional(req, resp), nil
		}
		if last == nil && err != errOther {
			last = err
		}
	}
	switch {
	case last != nil:
		return nil, last
	case req.URL.Path == "/robots.txt":
		return made(req, http.StatusNotFound), nil
	}
	return nil, fmt.Errorf("%s: not in the archive: %w", url, iofs.ErrNotExist)
}

// errOther says that a record does not have what is looked for: it is of another
// URL with the same hash, or of no change to an earlier one.
var errOther = errors.New("another record")

// answer makes a response of a record. Depth counts revisits of revisits.
func (r *Replay) answer(req *http.Request, url string, at found, depth int) (*http.Response, error) {
	rec, done, err := r.open(at)
	if err != nil {
		return nil, err
	}
	resp, err := r.read(req, url, rec, depth)
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = &archived{resp.Body, done}
	return resp, nil
}

func (r *Replay) read(req *http.Request, url string, rec *Record, depth int) (*http.Response, error) {
	h := rec.Header
	switch {
	case h.Target() != url:
		return nil, errOther
	case h.Type() == Resource:
		resp := made(req, http.StatusOK)
		resp.Header.Set("Content-Type", h.Get("Content-Type"))
		resp.ContentLength, resp.Body = rec.Length, io.NopCloser(rec)
		return resp, nil
	case h.Type() == Revisit && !strings.Contains(h.Get("WARC-Profile"), "identical-payload"):
		return nil, errOther // not modified: what was there before stands
	}
	resp, err := parse(req, rec)
	if err != nil || h.Type() != Revisit {
		return resp, err
	}
	return r.refer(req, resp, h, depth)
}

// parse reads a recorded response. Some programs keep the header that says that
// the body is chunked with a body that is not: those are told by how it begins.
func parse(req *http.Request, rec *Record) (*http.Response, error) {
	b := bufio.NewReaderSize(rec, 64<<10)
	head, _ := b.Peek(64 << 10) // as much as is there
	if i := bytes.Index(head, []byte("\r\n\r\n")); i >= 0 && i+4 < len(head) && !chunked(head[i+4:]) {
		if at := bytes.Index(bytes.ToLower(head[:i]), []byte("\r\ntransfer-encoding:")); at >= 0 {
			copy(head[at+2:], "X-Transfer-Coding") // which is as long
		}
	}
	resp, err := http.ReadResponse(b, req)
	if err != nil {
		return nil, fmt.Errorf("%s: recorded response: %w", rec.Header.Target(), cutShort(err))
	}
	resp.Proto, resp.ProtoMajor = "HTTP/1.1", 1
	return resp, nil
}

// chunked reports whether a body begins as a chunk does: with hex digits, and
// then the end of the line or an extension.
func chunked(body []byte) bool {
	n := 0
	for n < len(body) && n < 16 && strings.IndexByte("0123456789abcdefABCDEF", body[n]) >= 0 {
		n++
	}
	rest := bytes.TrimLeft(body[n:], " \t")
	return n > 0 && len(rest) > 0 && (rest[0] == '\r' || rest[0] == '\n' || rest[0] == ';')
}

// refer gives a revisit the body of the record it is a revisit of.
func (r *Replay) refer(req *http.Request, resp *http.Response, h Header, depth int) (*http.Response, error) {
	resp.Body.Close()
	url := h.Get("WARC-Refers-To-Target-URI")
	if url == "" {
		url = h.Target()
	}
	url = strings.Trim(url, "<>")
	date, err := time.Parse(time.RFC3339Nano, h.Get("WARC-Refers-To-Date"))
	for at := range r.records(url) {
		if depth > 3 || err == nil && at.date != date.UnixNano() {
			continue
		}
		was, err := r.answer(req, url, at, depth+1)
		if err == errOther {
			continue
		}
		if err != nil {
			return nil, err
		}
		resp.Body, resp.ContentLength, resp.TransferEncoding = was.Body, was.ContentLength, nil
		return resp, nil
	}
	return nil, fmt.Errorf("%s: the record it is a revisit of is not in the archive: %w", h.Target(), iofs.ErrNotExist)
}

// conditional answers 304 if the response is what the request holds already.
func conditional(req *http.Request, resp *http.Response) *http.Response {
	if resp.StatusCode != http.StatusOK {
		return resp
	}
	same := false
	if tags := req.Header.Get("If-None-Match"); tags != "" {
		tag := strings.TrimPrefix(resp.Header.Get("ETag"), "W/")
		same = tag != "" && strings.Contains(tags, tag)
	} else if since, err := http.ParseTime(req.Header.Get("If-Modified-Since")); err == nil {
		modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
		same = err == nil && !modified.After(since)
	}
	if !same {
		return resp
	}
	resp.Body.Close()
	not := made(req, http.StatusNotModified)
	not.Header = resp.Header
	not.Header.Del("Content-Length")
	return not
}

// made is a response that is in no record.
func made(req *http.Request, status int) *http.Response {
	return &http.Response{
		Status:     strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: http.NoBody, Request: req,
	}
}

// archived is a body in a file.
type archived struct {
	io.ReadCloser
	done func()
}

func (a *archived) Close() error {
	err := a.ReadCloser.Close()
	if a.done != nil {
		a.done()
		a.done = nil
	}
	return err
}
