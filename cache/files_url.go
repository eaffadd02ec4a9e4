package cache

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/cache/http1"
	"harvest/cache/segment"
	"harvest/fs"
)

// Names in the folders of URLs that no part of a URL has.
const (
	selfName  = ".self" // the URL of the folder itself, without a slash at its end
	indexName = "@"     // the URL of the folder with one
)

// hostsDir is the folder of a scheme: the hosts that something is kept of.
type hostsDir struct {
	c      *Cache
	scheme string
}

func (d *hostsDir) Stat() fs.Stat { return fs.Stat{Path: d.c.id(d.scheme), Mode: 0o555} }

func (d *hostsDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	host, err := canonicalHost(name, d.scheme)
	if err != nil || host != name {
		return nil, fmt.Errorf("%s/%.100s: not a host: %w", d.scheme, name, iofs.ErrNotExist)
	}
	return &urlDir{d.c, d.scheme + "://" + host + "/"}, nil
}

func (d *hostsDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	prefix := d.scheme + "://"
	return d.c.listURLs(ctx, after, prefix, func(rest string) (string, fs.Node) {
		host, _, _ := strings.Cut(rest, "/")
		return host, &urlDir{d.c, prefix + host + "/"}
	})
}

// urlDir is the folder of the URLs that begin with one, which ends in a slash.
type urlDir struct {
	c   *Cache
	url string
}

func (d *urlDir) Stat() fs.Stat { return fs.Stat{Path: d.c.id("dir", d.url), Mode: 0o555} }

// Lookup finds a folder or a file by its name alone: whether anything is there is
// found out when it is read.
func (d *urlDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	base, face := name, ""
	for _, f := range faces {
		if b, ok := strings.CutSuffix(name, f); ok && b != "" {
			base, face = b, f
		}
	}
	if face == "" {
		return d.child(name)
	}
	n, err := d.child(base)
	if err != nil {
		return nil, err
	}
	u, ok := n.(*urlFile)
	if !ok {
		return nil, fmt.Errorf("%.100s: %w", name, iofs.ErrNotExist)
	}
	return fs.Text(d.c.id("face", face, u.url), func() string { return u.face(face) }), nil
}

// The faces of a URL that can be read beside it.
var faces = [...]string{".@head", ".@meta"}

func (d *urlDir) child(name string) (fs.Node, error) {
	switch name {
	case selfName:
		if strings.Count(d.url, "/") == 3 {
			return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
		}
		return &urlFile{d.c, strings.TrimSuffix(d.url, "/")}, nil
	case indexName:
		return &urlFile{d.c, d.url}, nil
	}
	part, err := urlPart(name)
	if err != nil {
		return nil, err
	}
	if isFileName(part) && !d.c.names.isDir(d.url+part+"/") {
		return &urlFile{d.c, d.url + part}, nil
	}
	return &urlDir{d.c, d.url + part + "/"}, nil
}

// urlPart is the part of a URL that a name stands for.
func urlPart(name string) (string, error) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }) {
		return "", fmt.Errorf("%.100q: not in a URL: %w", name, iofs.ErrNotExist)
	}
	path, query, ok := strings.Cut(name, "?")
	if !ok {
		return name, nil
	}
	return path + "?" + strings.ReplaceAll(query, "%2F", "/"), nil
}

// maxNameLen is how long a name may be on most systems.
const maxNameLen = 255

// nameOf is the name of a part of a URL; "" if it can have none.
func nameOf(part string) string {
	path, query, ok := strings.Cut(part, "?")
	if ok {
		path += "?" + strings.ReplaceAll(query, "/", "%2F")
	}
	if len(path) > maxNameLen || path == "." || path == ".." || path == selfName || path == indexName {
		return ""
	}
	return path
}

func (d *urlDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	self := strings.TrimSuffix(d.url, "/")
	return d.c.listURLs(ctx, after, self, func(rest string) (string, fs.Node) {
		switch {
		case rest == "":
			return selfName, &urlFile{d.c, self}
		case rest == "/":
			return indexName, &urlFile{d.c, d.url}
		case rest[0] != '/':
			return "", nil
		}
		part := rest[1:]
		end := strings.IndexAny(part, "/?")
		if end < 0 || part[end] == '?' {
			end = len(part)
		}
		name := nameOf(part[:end])
		if name == "" {
			return "", nil
		}
		n, err := d.child(name)
		if err != nil {
			return "", nil
		}
		return name, n
	})
}

// listPage is how many names are held at once while a folder is listed.
const listPage = 1 << 14

// listURLs lists what pick makes of the URLs behind a prefix, in order. Names are
// found by reading the names of all that is kept, once for each page.
func (c *Cache) listURLs(ctx context.Context, after, prefix string, pick func(rest string) (string, fs.Node)) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		for {
			page, more, err := c.pageOf(ctx, after, prefix, pick)
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Name
			}
			if !more {
				return
			}
		}
	}
}

// pageOf finds the first names after one.
func (c *Cache) pageOf(ctx context.Context, after, prefix string, pick func(rest string) (string, fs.Node)) (page []fs.Entry, more bool, err error) {
	found := make(map[string]fs.Node)
	top := "" // names from here on are of another page
	n := 0
	err = c.names.each(func(_ segment.Key, url []byte) bool {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return false
		}
		rest, ok := strings.CutPrefix(string(url), prefix)
		if !ok {
			return true
		}
		name, node := pick(rest)
		if name == "" || name <= after || top != "" && name >= top {
			return true
		}
		if found[name] == nil {
			found[name] = node
		}
		if len(found) >= 2*listPage {
			top, more = cut(found), true
		}
		return true
	})
	if err == nil {
		err = ctx.Err()
	}
	for name, node := range found {
		page = append(page, fs.Entry{Name: name, Node: node})
	}
	slices.SortFunc(page, func(a, b fs.Entry) int { return strings.Compare(a.Name, b.Name) })
	return page, more, err
}

// cut leaves the first half of the names, and returns where the other begins.
func cut(found map[string]fs.Node) string {
	all := make([]string, 0, len(found))
	for name := range found {
		all = append(all, name)
	}
	sort.Strings(all)
	for _, name := range all[listPage:] {
		delete(found, name)
	}
	return all[listPage]
}

// urlFile is a URL: reading it is asking the cache for it.
type urlFile struct {
	c   *Cache
	url string
}

// held finds what is kept for who asks for nothing special.
func (u *urlFile) held() *variant {
	vs, ok := u.c.mem.peek(keyOf(u.url))
	if !ok {
		vs = u.c.peek(keyOf(u.url))
	}
	v, _, _ := selected(vs, nil)
	return v
}

// Stat tells length and time of what is kept, and asks nobody.
func (u *urlFile) Stat() fs.Stat {
	st := fs.Stat{Path: u.c.id("url", u.url), Kind: fs.Made, Mode: 0o444}
	if v := u.held(); v != nil {
		st.Size, st.Vers = v.size, uint32(v.came>>20)
		if t, err := http.ParseTime(v.text("Last-Modified")); err == nil {
			st.Mtime = t
		} else {
			st.Mtime = time.Unix(0, v.came)
		}
	}
	return st
}

// Open asks for the URL. What the server refuses is an error of its class.
func (u *urlFile) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	c := u.c
	if !c.begin() {
		return nil, iofs.ErrClosed
	}
	life, cancel := context.WithCancel(c.life)
	stop := context.AfterFunc(ctx, cancel) // until the head is here
	a, q, err := c.askTree(life, u.url)
	if !stop() && err == nil {
		a.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		c.work.Done()
		return nil, err
	}
	h := &urlHandle{c: c, q: q, a: a, cancel: cancel, turn: make(chan struct{}, 1)}
	return h, nil
}

// askTree asks for a URL as a reader of the tree does.
func (c *Cache) askTree(ctx context.Context, url string) (*answer, *request, error) {
	l, err := parseURL(url)
	if err != nil {
		return nil, nil, err
	}
	q := &request{method: "GET", door: "tree", minor: 1, began: time.Now()}
	q.setLocation(l)
	q.header = http1.Header{}
	a := c.answer(ctx, q)
	if a.status >= 200 && a.status < 300 {
		return a, q, nil
	}
	a.Close()
	c.done(q, a, 0, nil)
	class := error(syscall.EIO)
	switch a.status {
	case 404, 410:
		class = iofs.ErrNotExist
	case 401, 403, 407:
		class = iofs.ErrPermission
	case 504:
		class = context.DeadlineExceeded
	}
	why := a.outcome.why
	if a.outcome.server != 0 {
		why = statusText(a.status)
	}
	return nil, nil, fmt.Errorf("%s: %d %s: %w", url, a.status, why, class)
}

// urlHandle is an open URL: what was read of it can be read again as long as it is
// kept in memory or in the store; a body that only passes is read once, in order.
type urlHandle struct {
	c      *Cache
	q      *request
	a      *answer
	cancel context.CancelFunc
	turn   chan struct{} // held by whoever reads

	mu   sync.Mutex
	sent int64
	buf  []byte // of what only passes
	end  error
}

func (h *urlHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-h.turn }()
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	switch b := h.a.body.(type) {
	case nil:
		return 0, io.EOF
	case *memBody:
		if off >= int64(len(b.left)) {
			return 0, io.EOF
		}
		n := copy(p, b.left[off:])
		runtime.KeepAlive(b)
		h.note(off + int64(n))
		return n, nil
	case *storedBody:
		n, err := b.o.ReadAt(p, off)
		h.note(off + int64(n))
		if n > 0 {
			err = nil
		}
		return n, err
	case *flightBody:
		b.f.mu.Lock()
		b.off = off
		b.f.mu.Unlock()
		b.stop, b.err = ctx.Done(), context.Canceled
		n, err := b.Read(p)
		h.note(off + int64(n))
		return n, err
	}
	return h.passing(p, off)
}

func (h *urlHandle) note(end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = max(h.sent, end)
}

// maxPassing is how much of a body that is not kept an open file remembers.
const maxPassing = 16 << 20

// passing reads what is not kept: as far as asked, remembering it.
func (h *urlHandle) passing(p []byte, off int64) (int, error) {
	for int64(len(h.buf)) <= off && h.end == nil {
		if len(h.buf) >= maxPassing {
			return 0, fmt.Errorf("%s: not kept, and larger than %d bytes: %w", h.q.url, maxPassing, syscall.EFBIG)
		}
		h.buf = slices.Grow(h.buf, 16<<10)
		n, err := h.a.body.Read(h.buf[len(h.buf):cap(h.buf)])
		h.buf = h.buf[:len(h.buf)+n]
		h.end = err
	}
	if off >= int64(len(h.buf)) {
		return 0, h.end
	}
	n := copy(p, h.buf[off:])
	h.note(off + int64(n))
	return n, nil
}

func (h *urlHandle) WriteAt(context.Context, []byte, int64) (int, error) {
	return 0, iofs.ErrPermission
}
func (h *urlHandle) Flush(context.Context) error { return nil }

func (h *urlHandle) Close() error {
	h.a.Close()
	h.cancel()
	h.c.done(h.q, h.a, h.sent, nil)
	h.c.work.Done()
	return nil
}

// face is what is kept of a URL, told in text.
func (u *urlFile) face(face string) string {
	v := u.held()
	if v == nil {
		return ""
	}
	if face == ".@head" {
		head := string(v.head()) + fmt.Sprintf("Content-Length: %d\r\n", v.size)
		runtime.KeepAlive(v)
		return head
	}
	var b strings.Builder
	for _, v := range u.c.peek(keyOf(u.url)) {
		b.WriteString(u.c.objectLine(v) + "\n")
	}
	return b.String()
}
