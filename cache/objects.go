package cache

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
)

// maxVariants is how many responses of one URL are kept.
const maxVariants = 16

func (c *Cache) lock(k segment.Key) *sync.Mutex { return &c.changing[k[2]] }

// lookup finds what is kept of a URL, newest first.
func (c *Cache) lookup(k segment.Key) []*variant {
	if vs, ok := c.mem.get(k); ok {
		return vs
	}
	if !c.isHeld(k) {
		return nil
	}
	mu := c.lock(k)
	mu.Lock()
	defer mu.Unlock()
	return c.known(k, segment.Ref{})
}

// isHeld reports whether the store has anything of a URL.
func (c *Cache) isHeld(k segment.Key) bool { return c.store.Has(k) }

// known is what is kept of a URL but for one that has just come, read from the store
// if memory does not know. The key's lock is held.
func (c *Cache) known(k segment.Key, but segment.Ref) []*variant {
	if vs, ok := c.mem.get(k); ok {
		return vs
	}
	var vs []*variant
	for _, ref := range c.store.Find(k) {
		if len(vs) == maxVariants {
			break
		}
		if ref == but {
			continue
		}
		if v := c.read(ref); v != nil {
			vs = append(vs, v)
		}
	}
	if but == (segment.Ref{}) {
		c.mem.put(k, vs)
	}
	return vs
}

// read makes a variant of what the store has; nil of what it has no more.
func (c *Cache) read(ref segment.Ref) *variant {
	o, err := c.store.Open(ref)
	if err != nil {
		if !errors.Is(err, segment.ErrGone) {
			c.lg.Error("read", "err", err)
		}
		return nil
	}
	defer o.Close()
	var body []byte
	if c.mem.holds(o.Size) {
		body = make([]byte, o.Size)
		if n, err := o.ReadAt(body, 0); int64(n) < o.Size {
			c.lg.Warn("read", "err", err)
			return nil
		}
	}
	v, err := newVariant(ref, o.Meta, o.Size, body, c.mem.holds(o.Size), c.conf.Load().rules, c.mem.arena())
	if err != nil {
		c.lg.Error("read", "err", err)
		c.store.Forget(ref)
		return nil
	}
	return v
}

// A content is the body of a new object: in memory, or a file of the store.
type content struct {
	mem  []byte
	file *segment.Body
}

// keep stores a response that a request with header q got, in place of those it
// stands for.
func (c *Cache) keep(k segment.Key, q http1.Header, p *policy.Response, reason string, b content) (*variant, error) {
	meta := appendMeta(nil, p, reason)
	var ref segment.Ref
	var err error
	size := int64(len(b.mem))
	if b.file != nil {
		size = b.file.Size()
		ref, err = c.store.PutBody(k, meta, b.file, p.Came)
	} else {
		ref, err = c.store.Put(k, meta, b.mem, p.Came)
	}
	if err != nil {
		return nil, err
	}
	v, err := newVariant(ref, meta, size, b.mem, b.file == nil && c.mem.holds(size), c.conf.Load().rules, c.mem.arena())
	if err != nil {
		return nil, err
	}
	c.admit(k, v, func(old *policy.Response) bool { return old.Selects(q) })
	c.count.stored.Add(1)
	return v, nil
}

// admit puts a variant in front of what is kept of a URL, without those that it
// stands for.
func (c *Cache) admit(k segment.Key, v *variant, replaces func(old *policy.Response) bool) {
	mu := c.lock(k)
	mu.Lock()
	defer mu.Unlock()
	old := c.known(k, v.ref)
	vs := []*variant{v}
	for _, x := range old {
		p, _ := x.response()
		switch {
		case x.ref == v.ref:
		case replaces(p) || len(vs) == maxVariants:
			c.store.Forget(x.ref)
		default:
			vs = append(vs, x)
		}
	}
	c.mem.put(k, vs)
	if len(vs) == 1 {
		c.names.add(k, v.url())
	}
}

// refresh puts what a 304 said of a variant in force: of a small one by keeping it
// anew.
func (c *Cache) refresh(k segment.Key, v *variant, p *policy.Response, reason string) (*variant, error) {
	meta := appendMeta(nil, p, reason)
	ref, err := c.store.Refresh(v.ref, meta, p.Came)
	if err != nil {
		return nil, err
	}
	n, err := newVariant(ref, meta, v.size, v.body(), v.inside, c.conf.Load().rules, c.mem.arena())
	runtime.KeepAlive(v)
	if err != nil {
		return nil, err
	}
	n.hits.Store(v.hits.Load())
	c.replace(k, v, n)
	return n, nil
}

// replace puts n in the place of v.
func (c *Cache) replace(k segment.Key, v, n *variant) {
	mu := c.lock(k)
	mu.Lock()
	defer mu.Unlock()
	vs := []*variant{n}
	for _, x := range c.known(k, n.ref) {
		if x.ref != v.ref && x.ref != n.ref {
			vs = append(vs, x)
		}
	}
	c.mem.put(k, vs)
}

// dropped forgets a variant that turned out to be gone.
func (c *Cache) dropped(k segment.Key, v *variant) {
	mu := c.lock(k)
	mu.Lock()
	defer mu.Unlock()
	c.store.Forget(v.ref)
	if vs, ok := c.mem.get(k); ok {
		var left []*variant
		for _, x := range vs {
			if x.ref != v.ref {
				left = append(left, x)
			}
		}
		c.mem.put(k, left)
	}
}

// purge removes all that is kept of a URL, and reports whether there was any. It
// lasts.
func (c *Cache) purge(k segment.Key) (bool, error) {
	c.mu.Lock()
	if f := c.flights[k]; f != nil { // what is on its way is not for those who ask later
		delete(c.flights, k)
		f.unwanted.Store(true)
	}
	c.mu.Unlock()
	mu := c.lock(k)
	mu.Lock()
	defer mu.Unlock()
	_, inMemory := c.mem.get(k)
	c.mem.put(k, nil)
	if !c.isHeld(k) {
		return inMemory, nil
	}
	return true, c.store.RemoveAll(k)
}

// used counts that a variant answered, and tells the store now and then, which lets
// go of what nobody asks for.
func (c *Cache) used(v *variant, now time.Time) {
	v.hits.Add(1)
	if t, last := now.UnixNano(), v.told.Load(); t-last > int64(20*time.Second) && v.told.CompareAndSwap(last, t) {
		c.store.Use(v.ref)
	}
}

// bodyOf opens a part of a variant's body.
func (c *Cache) bodyOf(v *variant, from, n int64) (io.ReadCloser, error) {
	if v.inside {
		return &memBody{v.body()[from : from+n], v}, nil
	}
	if v.size == 0 {
		return &memBody{nil, v}, nil
	}
	o, err := c.store.Open(v.ref)
	if err != nil {
		return nil, err
	}
	return &storedBody{o, from, from + n}, nil
}

// A memBody is a body in memory, of a variant that it keeps alive, or of none.
type memBody struct {
	left []byte
	v    *variant
}

func (b *memBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	runtime.KeepAlive(b)
	return n, nil
}

func (b *memBody) Close() error { return nil }

// A storedBody is a part of a body in the store.
type storedBody struct {
	o        *segment.Object
	off, end int64
}

func (b *storedBody) Read(p []byte) (int, error) {
	if b.off >= b.end {
		return 0, io.EOF
	}
	n, err := b.o.ReadAt(p[:min(int64(len(p)), b.end-b.off)], b.off)
	b.off += int64(n)
	if err == io.EOF && n > 0 {
		err = nil
	}
	return n, err
}

func (b *storedBody) Close() error { return b.o.Close() }

// file is the file that has the body, and where; ok if it need not be checked while
// it is read.
func (b *storedBody) file() (f *os.File, at int64, ok bool) {
	f, at, ok = b.o.File()
	return f, at + b.off, ok
}

// invalidate marks what is kept of a URL as doubtful after a request that changed
// it: it is removed, as are those on the same server that the answer names
// (RFC 9111, 4.4).
func (c *Cache) invalidate(q *request, h http1.Header) {
	keys := []segment.Key{q.key}
	for _, name := range [...]string{"Location", "Content-Location"} {
		if v, ok := h.Get(name); ok {
			if l, err := q.resolve(v); err == nil && l.scheme == q.scheme && l.host == q.location.host {
				keys = append(keys, keyOf(l.String()))
			}
		}
	}
	for _, k := range keys {
		if gone, err := c.purge(k); err != nil {
			c.lg.Error("invalidate", "url", q.url, "err", err)
		} else if gone {
			c.count.invalidated.Add(1)
		}
	}
}

// resolve reads a reference as it stands in an answer.
func (q *request) resolve(ref string) (*location, error) {
	switch {
	case strings.HasPrefix(ref, "//"):
		return parseURL(q.scheme + ":" + ref)
	case strings.HasPrefix(ref, "/"):
		return parseURL(q.scheme + "://" + q.location.host + ref)
	case strings.Contains(ref, "://"):
		return parseURL(ref)
	}
	return resolveRelative(q.url, ref)
}
