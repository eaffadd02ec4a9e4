package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"harvest/fs/ndb"
	"harvest/gather/store"
	"harvest/index/query"
)

// A line is a connection to a back end with a query session open on it: one
// question at a time, each written to the session's ctl and read from its files.
type line struct {
	tree   iofs.FS
	closer io.Closer
	end    context.CancelFunc
	ctl    iofs.File
	name   string // of the session
}

// A writable tree has files that can be written to.
type writable interface {
	OpenFile(name string, flag int, perm iofs.FileMode) (iofs.File, error)
}

// Bounds of what is read of a back end, which may be anybody's.
const (
	maxFarLine   = 64 << 10
	maxFarStatus = 256 << 10
	maxFarObject = 64 << 20
	maxIdle      = 8 // connections
)

// dial opens a line. It lives until it is hung up, or the front end ends; ctx
// bounds the dialling.
func (k *backend) dial(ctx context.Context) (l *line, err error) {
	lctx, end := context.WithCancel(k.front.ctx)
	stop := context.AfterFunc(ctx, end)
	l = &line{end: end}
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			l.hangUp()
		}
	}()
	if l.tree, l.closer, err = k.front.b.open(lctx, k.conf.path); err != nil {
		return l, err
	}
	w, ok := l.tree.(writable)
	if !ok {
		return l, fmt.Errorf("%s: nothing can be asked of what is only read: %w", k.conf.path, syscall.EROFS)
	}
	if l.ctl, err = w.OpenFile("query/clone", os.O_RDWR, 0); err != nil {
		return l, err
	}
	if _, ok := l.ctl.(io.Writer); !ok {
		return l, fmt.Errorf("query/clone: %w", syscall.EROFS)
	}
	name := make([]byte, 64)
	n, err := l.ctl.Read(name)
	if err != nil && err != io.EOF {
		return l, err
	}
	l.name = strings.TrimSpace(string(name[:n]))
	if !iofs.ValidPath("query/"+l.name) || strings.Contains(l.name, "/") || l.name == "" {
		return l, fmt.Errorf("query/clone: %q is no session: %w", l.name, iofs.ErrInvalid)
	}
	return l, nil
}

func (l *line) hangUp() {
	l.end()
	if l.ctl != nil {
		l.ctl.Close()
	}
	closing(l.closer)
}

// take gives a line, and whether it is a new one.
func (k *backend) take(ctx context.Context) (*line, bool, error) {
	k.mu.Lock()
	if n := len(k.idle); n > 0 {
		l := k.idle[n-1]
		k.idle = k.idle[:n-1]
		k.mu.Unlock()
		return l, false, nil
	}
	k.mu.Unlock()
	l, err := k.dial(ctx)
	return l, true, err
}

// give takes a line back that is well.
func (k *backend) give(l *line) {
	k.front.mu.Lock()
	mine := k.front.all[k.conf.path] == k && k.front.ctx.Err() == nil
	k.front.mu.Unlock()
	k.mu.Lock()
	if mine && len(k.idle) < maxIdle {
		k.idle = append(k.idle, l)
		l = nil
	}
	k.mu.Unlock()
	if l != nil {
		l.hangUp()
	}
}

// with does something on a line. One that was idle may have broken meanwhile: then
// it is done once more, on a new one.
func (k *backend) with(ctx context.Context, do func(l *line) error) error {
	for {
		l, fresh, err := k.take(ctx)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, l.end)
		err = do(l)
		switch well := stop() && ctx.Err() == nil; {
		case err == nil && well, errors.Is(err, iofs.ErrInvalid) && well:
			k.give(l)
			return err
		case fresh || !well:
			l.hangUp()
			return err
		}
		l.hangUp()
	}
}

// ask asks on a line.
func (k *backend) ask(ctx context.Context, q query.Node, opt askOptions) (r reply, err error) {
	err = k.with(ctx, func(l *line) (err error) {
		if err = l.query(q, opt); err == nil {
			r, err = k.read(l, opt)
		}
		return err
	})
	return r, err
}

// query writes a question; it returns when the answer can be read.
func (l *line) query(q query.Node, opt askOptions) error {
	m := opt.manner
	if opt.among != "" {
		m.among = opt.among
	}
	set := append(m.pairs(), ndb.Of("limit", opt.most), ndb.Of("fields", strings.Join(opt.fields, ",")))
	text := "reset\nset"
	for _, p := range set {
		if p.Value != "" {
			text += " " + ndb.Format(p)
		}
	}
	_, err := io.WriteString(l.ctl.(io.Writer), text+"\nquery "+q.String()+"\n")
	return err
}

// read reads the answer of a session.
func (k *backend) read(l *line, opt askOptions) (r reply, err error) {
	text, err := l.readFile("query/"+l.name+"/status", maxFarStatus)
	if err != nil {
		return r, err
	}
	if err := r.status(string(text)); err != nil {
		return r, err
	}
	f, err := l.tree.Open("query/" + l.name + "/hits")
	if err != nil {
		return r, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 0, 4096), maxFarLine)
	for len(r.hits) < opt.most && in.Scan() {
		h, err := parseHit(in.Text(), len(opt.fields))
		if err != nil {
			return r, err
		}
		h.from = k
		h.score *= float32(k.conf.weight)
		r.hits = append(r.hits, h)
	}
	return r, in.Err()
}

// status takes what the status of a session says of the answer.
func (r *reply) status(text string) error {
	entries, err := ndb.Parse(text)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	for _, e := range entries {
		switch p := e.First(); p.Key {
		case "hits":
			if r.total, err = e.Int(p); err != nil || r.total < 0 {
				return fmt.Errorf("status: hits=%s is no number: %w", p.Value, iofs.ErrInvalid)
			}
		case "more":
			r.more = p.Value == "yes"
		case "cut":
			r.cut = p.Value
		case "index":
			r.mark = p.Value
		case "missing":
			r.missing = append(r.missing, p.Value)
		}
	}
	return nil
}

// parseHit reads a line of hits with so many fields.
func parseHit(text string, fields int) (h farHit, err error) {
	cols := strings.Split(text, "\t")
	if len(cols) != 6+fields {
		return h, fmt.Errorf("hits: a line of %d columns, want %d: %w", len(cols), 6+fields, iofs.ErrInvalid)
	}
	score, err := strconv.ParseFloat(cols[1], 32)
	if err != nil || score != score {
		return h, fmt.Errorf("hits: score %q: %w", cols[1], iofs.ErrInvalid)
	}
	h.score = float32(score)
	if h.oid, err = store.ParseOID(cols[2]); err != nil {
		return h, err
	}
	h.kind, h.url, h.title, h.fields = cols[3], cols[4], cols[5], cols[6:]
	return h, nil
}

// readFile reads a file that is not longer than it may be.
func (l *line) readFile(name string, most int64) ([]byte, error) {
	f, err := l.tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(&atMost{f, most, most})
}

// object reads an object of the back end.
func (k *backend) object(ctx context.Context, oid store.OID) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.conf.timeout)
	defer cancel()
	name := oid.String()
	err = k.with(ctx, func(l *line) (err error) {
		body, err = l.readFile("objects/"+name[:2]+"/"+name+objectSuffix, maxFarObject)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("backend %s: object %s: %w", k.conf.path, oid, err)
	}
	return body, nil
}
