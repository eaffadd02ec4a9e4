package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"sync"
	"syscall"
	"time"

	"harvest/fs"
	"harvest/gather/soif"
)

// The tree:
//
//	check       written SOIF, reads as its errors, a line each, and a count
//	clean       written SOIF, reads as what is good of it
//	from/FMT    written FMT, reads as SOIF
//	to/FMT      written SOIF, reads as FMT
//	schema/TYPE the attributes of a template type
//	err         what was refused last
//
// A file answers to what was written last: through the handle it was written by, and
// to the same user through others. docs/catalog.6.md is the manual.

// Bounds of what is written to a file here, and of what it answers; answers of all
// files and users are kept up to keepAnswers.
const (
	maxWritten  = 16 << 20
	maxAnswer   = 32 << 20
	keepAnswers = 64 << 20
)

// Files makes the directory. Its nodes are known by id.
func Files(id func(part ...string) uint64) fs.Dir {
	err := fs.NewErr(id("err"))
	kept := &answers{all: make(map[answerKey]*answer)}
	tool := func(name, usage string, run func(ctx context.Context, w io.Writer, r io.Reader) error) fs.Node {
		return &toolFile{path: id(name), name: name, usage: usage, err: err, run: run, kept: kept}
	}
	from, to, schema := make(map[string]fs.Node), make(map[string]fs.Node), make(map[string]fs.Node)
	for _, f := range Formats() {
		from[f] = tool("from/"+f, f+"\n", func(_ context.Context, w io.Writer, r io.Reader) error {
			return Convert(w, "soif", r, f, Options{}, stamp)
		})
		to[f] = tool("to/"+f, "SOIF\n", func(_ context.Context, w io.Writer, r io.Reader) error {
			return Convert(w, f, r, "soif", Options{}, nil)
		})
	}
	for _, typ := range soif.Types() {
		schema[typ] = fs.Text(id("schema", typ), func() string {
			s, _ := soif.SchemaOf(typ)
			return fmt.Sprint(s)
		})
	}
	return fs.Static(id("dir"), map[string]fs.Node{
		"check": tool("check", "SOIF\n", func(ctx context.Context, w io.Writer, r io.Reader) error {
			good, bad, err := Check(ctx, w, r)
			if err == nil {
				_, err = fmt.Fprintf(w, "objects=%d errors=%d\n", good, bad)
			}
			return err
		}),
		"clean":  tool("clean", "SOIF\n", Clean),
		"from":   fs.Static(id("from"), from),
		"to":     fs.Static(id("to"), to),
		"schema": fs.Static(id("schema"), schema),
		"err":    err,
	})
}

// stamp gives an object the time that it must have.
func stamp(o *soif.Object) {
	if _, ok := o.Get("Update-Time"); !ok {
		o.Add("Update-Time", strconv.AppendInt(nil, time.Now().Unix(), 10))
	}
}

// An answerKey is whose answer, of which file.
type answerKey struct{ file, user string }

type answer struct {
	text []byte
	at   uint64 // counts answers
}

// answers are the last of each user and file, the oldest making room.
type answers struct {
	mu   sync.Mutex
	all  map[answerKey]*answer
	size int
	n    uint64
}

func (a *answers) put(k answerKey, text []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.all[k]; was != nil {
		a.size -= len(was.text)
	}
	a.n++
	a.all[k] = &answer{text, a.n}
	for a.size += len(text); a.size > keepAnswers || len(a.all) > 1000; {
		var oldest answerKey
		first := a.n + 1
		for k, one := range a.all {
			if one.at < first {
				oldest, first = k, one.at
			}
		}
		a.size -= len(a.all[oldest].text)
		delete(a.all, oldest)
	}
}

func (a *answers) get(k answerKey) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.all[k]
	if one == nil {
		return nil, false
	}
	return one.text, true
}

// A toolFile makes of what is written what is read.
type toolFile struct {
	path  uint64
	name  string
	usage string // what it reads as before anything was written
	err   *fs.Err
	run   func(ctx context.Context, w io.Writer, r io.Reader) error
	kept  *answers
}

// Stat says that everybody may write.
func (f *toolFile) Stat() fs.Stat {
	return fs.Stat{Path: f.path, Kind: fs.Control, Mode: 0o666, Size: int64(len(f.usage))}
}

// Set takes any new size or time: what is written is one text in any case.
func (f *toolFile) Set(_ context.Context, ch fs.Change) error {
	if ch.Mode != nil && ch.Mode.Perm() != 0o666 {
		return iofs.ErrPermission
	}
	return nil
}

// Open gives a handle that reads the last answer until it is written to.
func (f *toolFile) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	h := &toolHandle{f: f, user: fs.UserOf(ctx).Name}
	text, ok := f.kept.get(answerKey{f.name, h.user})
	if !ok {
		text = []byte(f.usage)
	}
	h.answer = text
	return h, nil
}

type toolHandle struct {
	f    *toolFile
	user string

	mu      sync.Mutex
	written []byte
	dirty   bool // written since the answer
	answer  []byte
}

// WriteAt takes the bytes in the order they come in: an offset says nothing here.
func (h *toolHandle) WriteAt(_ context.Context, p []byte, _ int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.written)+len(p) > maxWritten {
		h.written, h.dirty = nil, false
		err := fmt.Errorf("%s: more than %d bytes; harvest soif takes any length: %w", h.f.name, maxWritten, syscall.EFBIG)
		h.f.err.Set(h.f.name, "", err)
		return 0, err
	}
	h.written, h.dirty = append(h.written, p...), true
	return len(p), nil
}

// ReadAt answers to what was written so far.
func (h *toolHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := h.Flush(ctx); err != nil {
		return 0, err
	}
	h.mu.Lock()
	text := h.answer
	h.mu.Unlock()
	return fs.Snapshot(text).ReadAt(ctx, p, off)
}

// Flush makes the answer. A text that is refused leaves the last one.
func (h *toolHandle) Flush(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty {
		return nil
	}
	h.dirty = false
	out := &boundedBuffer{max: maxAnswer}
	err := h.f.run(ctx, out, bytes.NewReader(h.written))
	if errors.Is(err, errResult) {
		err = fmt.Errorf("%s: %w", h.f.name, syscall.EFBIG)
	}
	var at interface{ Position() (line, col int) }
	line := ""
	if errors.As(err, &at) {
		n, _ := at.Position()
		line = lineOf(h.written, n)
	}
	h.f.err.Set(h.f.name, line, err)
	if err != nil {
		return err
	}
	h.answer = out.Bytes()
	h.f.kept.put(answerKey{h.f.name, h.user}, h.answer)
	return nil
}

// lineOf is a line of a text, its beginning.
func lineOf(text []byte, n int) string {
	for line := range bytes.Lines(text) {
		if n--; n == 0 {
			line = bytes.TrimRight(line, "\r\n")
			return fmt.Sprintf("%.200s", line)
		}
	}
	return ""
}

// Abort forgets what was begun.
func (h *toolHandle) Abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written, h.dirty = nil, false
}

func (h *toolHandle) Close() error { return nil }
