package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// mbox answers for mailboxes in files: mbox:///path/list.mbox/ is the list of its
// messages, mbox:///path/list.mbox/ID one of them. ID is of the message, not of
// its place, so that a mailbox may be sorted, split or shortened and its messages
// keep their URLs. A folder lists the mailboxes in it.
func (t *Transport) mbox(req *http.Request) (*http.Response, error) {
	name, err := localPath(req.URL)
	if err != nil {
		return answer(req, http.StatusBadRequest, err.Error()), nil
	}
	if strings.HasSuffix(req.URL.Path, "/") {
		return t.mailbox(req, name, "")
	}
	s, rel, err := openSpace(req.Context(), name)
	if err == nil {
		var fi os.FileInfo
		fi, err = s.stat(rel)
		s.close()
		if err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
			resp := answer(req, http.StatusMovedPermanently, "a mailbox")
			resp.Header.Set("Location", Escape(req.URL.Path)+"/")
			return resp, nil
		}
	}
	return t.mailbox(req, filepath.Dir(name), filepath.Base(name))
}

// mailbox answers for a mailbox, or for a message in it.
func (t *Transport) mailbox(req *http.Request, name, id string) (*http.Response, error) {
	s, rel, err := openSpace(req.Context(), name)
	if err != nil {
		return refuse(req, err)
	}
	defer s.close()
	fi, err := s.stat(rel)
	switch {
	case err != nil:
		return refuse(req, err)
	case fi.IsDir() && id == "":
		return mailboxes(req, s, rel)
	case !fi.Mode().IsRegular():
		return answer(req, http.StatusNotFound, "not a mailbox"), nil
	}
	f, err := s.open(rel)
	if err != nil {
		return refuse(req, err)
	}
	if fi, err = f.Stat(); err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file: %w", name, iofs.ErrPermission)
	}
	var box *box
	if err == nil {
		box, err = t.boxes.open(req.Context(), name, f, fi)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, errNoMailbox) {
			return answer(req, http.StatusForbidden, "not a mailbox"), nil
		}
		return refuse(req, err)
	}
	if id == "" {
		f.Close()
		resp := head(req, etag(fi), fi.ModTime(), -1)
		if resp.StatusCode == http.StatusOK {
			resp = box.list(req)
			resp.Header.Set("ETag", etag(fi))
		}
		return resp, nil
	}
	return box.message(req, f, id)
}

// mailboxes lists those in a folder.
func mailboxes(req *http.Request, s *space, rel string) (*http.Response, error) {
	f, err := s.open(rel)
	if err != nil {
		return refuse(req, err)
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return nil, err
	}
	var items []item
	for _, e := range entries {
		i := item{kind: kindName(e.Type())[0], href: Escape(e.Name())}
		if i.kind == 'd' || i.kind == 'f' && isMailbox(s, filepath.Join(rel, e.Name())) {
			i.kind = 'd'
			i.href += "/"
		} else if i.kind == 'f' {
			i.kind = 's'
		}
		items = append(items, i)
	}
	return list(req, items), nil
}

// isMailbox reports whether a file begins as a mailbox does.
func isMailbox(s *space, name string) bool {
	f, err := s.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var start [5]byte
	_, err = io.ReadFull(f, start[:])
	return err == nil && string(start[:]) == "From "
}

var errNoMailbox = errors.New("not a mailbox")

// Bounds of what is known of mailboxes.
const (
	maxMessages = 1 << 20 // of one
	maxBoxes    = 16
)

// boxes are the mailboxes that have been read, the last one last, so that a
// message is found without reading the mailbox to it.
type boxes struct {
	mu   sync.Mutex // held while one is read: another reader of it would do the same work
	list []*box
}

func newBoxes() *boxes { return new(boxes) }

// A box is what is known of one state of a mailbox. It does not change.
type box struct {
	name, tag string
	messages  []message // in the order of their ids
}

// open returns the box of an open file.
func (b *boxes) open(ctx context.Context, name string, f *os.File, fi os.FileInfo) (*box, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tag := etag(fi)
	for i, x := range b.list {
		if x.name == name {
			b.list = slices.Delete(b.list, i, i+1)
			if x.tag == tag {
				b.list = append(b.list, x)
				return x, nil
			}
			break
		}
	}
	x := &box{name: name, tag: tag}
	var err error
	if x.messages, err = splitMailbox(contextReader{ctx, f}); err != nil {
		return nil, err
	}
	b.list = append(b.list, x)
	total := len(x.messages)
	for i := len(b.list) - 2; i >= 0; i-- { // others as far as there is room
		if total += len(b.list[i].messages); total > maxMessages || len(b.list)-i > maxBoxes {
			b.list = slices.Delete(b.list, 0, i+1)
			break
		}
	}
	return x, nil
}

// A contextReader ends with its context.
type contextReader struct {
	ctx context.Context // of the call that reads
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

func (x *box) list(req *http.Request) *http.Response {
	n := 0
	return listed(req, &lister{more: func() (items []item, err error) {
		for ; n < len(x.messages); n++ {
			if len(items) == 256 {
				return items, nil
			}
			m := &x.messages[n]
			items = append(items, item{kind: 'f', size: m.size, time: m.date, tag: m.tag(), href: m.id, name: m.subject})
		}
		return items, io.EOF
	}})
}

// message answers with one message. It has f.
func (x *box) message(req *http.Request, f *os.File, id string) (*http.Response, error) {
	i, ok := slices.BinarySearchFunc(x.messages, id, func(m message, id string) int { return cmp.Compare(m.id, id) })
	if !ok {
		f.Close()
		return answer(req, http.StatusNotFound, ""), nil
	}
	m := &x.messages[i]
	resp := head(req, m.tag(), m.date, -1)
	if resp.StatusCode != http.StatusOK || req.Method == http.MethodHead {
		f.Close()
		return resp, nil
	}
	resp.Header.Set("Content-Type", "message/rfc822")
	if m.subject != "" {
		resp.Header.Set(Title, Escape(m.subject))
	}
	resp.Body = &unquoted{r: io.NewSectionReader(f, m.at, m.size), f: f, start: true}
	return resp, nil
}

// An unquoted is a message whose lines that begin with From are as they were
// written: the mailbox has a > before them.
type unquoted struct {
	r     io.Reader
	f     io.Closer
	in    []byte
	out   []byte
	start bool // in begins a line
	err   error
}

func (u *unquoted) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// fill reads on, and gives out whole lines, and long ones in pieces.
func (u *unquoted) fill() {
	u.in = slices.Grow(u.in, 32<<10)
	n, err := u.r.Read(u.in[len(u.in):cap(u.in)])
	u.in = u.in[:len(u.in)+n]
	if err != nil && err != io.EOF {
		u.err = err
		return
	}
	u.err = err
	in := u.in
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		line := in
		if i := slices.Index(in, '\n'); i >= 0 {
			line = in[:i+1]
		} else if err == nil && u.start && len(in) < 1<<10 { // its beginning is not all here
			break
		}
		in = in[len(line):]
		if u.start && isQuoted(line) {
			line = line[1:]
		}
		out = append(out, line...)
		u.start = len(line) > 0 && line[len(line)-1] == '\n'
	}
	u.in = append(u.in[:0], in...)
	u.out = out
}

func isQuoted(line []byte) bool {
	i := 0
	for i < len(line) && line[i] == '>' {
		i++
	}
	return i > 0 && strings.HasPrefix(string(line[i:min(len(line), i+5)]), "From ")
}

func (u *unquoted) Close() error { return u.f.Close() }
