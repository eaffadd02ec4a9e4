package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Options say how files are written. The zero value is good.
type Options struct {
	Prefix string        // of their names; "harvest"
	Size   int64         // after which a file is full; 1 GB
	Sync   time.Duration // what is written is on disk after so long, if more follows; 1s
	Info   Header        // of the warcinfo record: software, robots, …
}

// A Writer writes WARC files in a folder, one after the other, with a gzip
// member for each record. The file that is being written has a name that ends in
// .open. It may be used concurrently.
type Writer struct {
	dir string
	opt Options

	mu     sync.Mutex
	f      *os.File
	size   int64
	synced time.Time
	serial int
	closed bool
	err    error // after which nothing can be written
}

// Suffixes of files, and what is added while one is written.
const (
	suffix  = ".warc.gz"
	opening = ".open"
)

// Open returns a Writer of files in dir, which it makes if it is absent. A file
// that a crash has left open is cut off after its last whole record and closed.
func Open(dir string, opt Options) (*Writer, error) {
	opt.Prefix = cmp.Or(opt.Prefix, "harvest")
	opt.Size = cmp.Or(opt.Size, 1e9)
	opt.Sync = cmp.Or(opt.Sync, time.Second)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+suffix+opening))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := heal(name); err != nil {
			return nil, fmt.Errorf("warc %s: %w", filepath.Base(name), err)
		}
	}
	return &Writer{dir: dir, opt: opt}, nil
}

// heal gives a file that was left open its name, with what is whole of it.
// One that has nothing but its own warcinfo is removed.
func heal(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size, records, err := whole(f)
	if err == nil && records > 1 {
		if err = f.Truncate(size); err == nil {
			err = f.Sync()
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if records <= 1 {
		return os.Remove(name)
	}
	return finished(name)
}

// whole returns how much of a file is whole members, a record each, and how many.
func whole(f *os.File) (size int64, records int, err error) {
	m, err := newMembers(io.NewSectionReader(f, 0, 1<<62), 0)
	if err != nil || m.kind != gzipped {
		return 0, 0, err
	}
	for {
		if err = m.next(); err == nil {
			_, err = io.Copy(io.Discard, m.gz)
		}
		var disk *iofs.PathError
		if errors.As(err, &disk) {
			return 0, 0, err
		}
		if err != nil { // the end, or what was not written to its end
			return size, records, nil
		}
		size = m.in.n
		records++
	}
}

// finished renames a file whose content is on disk.
func finished(name string) error {
	if err := os.Rename(name, strings.TrimSuffix(name, opening)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// An Entry is a record to be written. Header has the fields but those that
// Write adds: WARC-Type, WARC-Record-ID, WARC-Date when they are missing, and
// Content-Length.
type Entry struct {
	Type   string
	ID     string // "" is a new one
	Date   time.Time
	Header Header
	Head   []byte    // what the block begins with
	Body   io.Reader // what follows, may be nil
	Size   int64     // of Body
}

// NewID returns the identity of a record that is to be written.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (e *Entry) header() Header {
	var h Header
	h.Add("WARC-Type", e.Type)
	h.Add("WARC-Record-ID", cmp.Or(e.ID, NewID()))
	date := e.Date
	if date.IsZero() {
		date = time.Now()
	}
	h.Add("WARC-Date", date.UTC().Format("2006-01-02T15:04:05.000Z"))
	h = append(h, e.Header...)
	h.Add("Content-Length", fmt.Sprint(int64(len(e.Head))+e.Size))
	return h
}

// inMemory is how much of a record's block is packed before the Writer is taken,
// at the same time as others'.
const inMemory = 4 << 20

// Write writes records behind one another in one file. When that fails nothing
// of them is there.
func (w *Writer) Write(entries ...Entry) error {
	var packed bytes.Buffer
	total := int64(0)
	for i := range entries {
		total += entries[i].Size
	}
	if total <= inMemory {
		if err := pack(&packed, entries); err != nil {
			return err
		}
		entries = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(); err != nil {
		return err
	}
	return w.add(func(f io.Writer) error {
		if entries == nil {
			_, err := f.Write(packed.Bytes())
			return err
		}
		return pack(f, entries)
	})
}

// packers are kept: each has a megabyte of tables.
var packers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, 3)
	if err != nil {
		panic(err) // the level is ours
	}
	return z
}}

// pack writes entries as members.
func pack(w io.Writer, entries []Entry) error {
	z := packers.Get().(*gzip.Writer)
	defer packers.Put(z)
	for i := range entries {
		e := &entries[i]
		z.Reset(w)
		if _, err := z.Write(append(e.header().append(nil), e.Head...)); err != nil {
			return err
		}
		if e.Body != nil {
			n, err := io.Copy(z, e.Body)
			if err == nil && n != e.Size {
				err = fmt.Errorf("warc: a body of %d bytes has %d: %w", e.Size, n, iofs.ErrInvalid)
			}
			if err != nil {
				return err
			}
		}
		if _, err := io.WriteString(z, "\r\n\r\n"); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
	}
	return nil
}

// add has something written at the end of the file, all of it or nothing. mu is
// held.
func (w *Writer) add(write func(io.Writer) error) error {
	out := &tail{f: w.f, at: w.size}
	buf := bufio.NewWriterSize(out, 256<<10)
	err := write(buf)
	if err == nil {
		err = buf.Flush()
	}
	if err != nil {
		if terr := w.f.Truncate(w.size); terr != nil {
			w.err = fmt.Errorf("warc %s: %w", filepath.Base(w.f.Name()), terr)
		}
		return err
	}
	w.size = out.at
	if time.Since(w.synced) < w.opt.Sync {
		return nil
	}
	w.synced = time.Now()
	return w.f.Sync()
}

// tail writes at the end of what is known to be whole.
type tail struct {
	f  *os.File
	at int64
}

func (t *tail) Write(p []byte) (int, error) {
	n, err := t.f.WriteAt(p, t.at)
	t.at += int64(n)
	return n, err
}

// ready makes sure that there is a file with room. mu is held.
func (w *Writer) ready() error {
	switch {
	case w.closed:
		return fmt.Errorf("warc: %w", iofs.ErrClosed)
	case w.err != nil:
		return w.err
	case w.f != nil && w.size < w.opt.Size:
		return nil
	}
	if err := w.finish(); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%05d%s", w.opt.Prefix, time.Now().UTC().Format("20060102150405"), w.serial, suffix)
	w.serial++
	f, err := os.OpenFile(filepath.Join(w.dir, name+opening), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.f, w.size, w.synced = f, 0, time.Now()
	return w.add(func(f io.Writer) error { return pack(f, []Entry{w.info(name)}) })
}

// info is the first record of a file.
func (w *Writer) info(name string) Entry {
	var b []byte
	for _, f := range append(Header{{"format", "WARC File Format 1.1"}}, w.opt.Info...) {
		b = fmt.Appendf(b, "%s: %s\r\n", f.Name, oneLine(f.Value))
	}
	return Entry{Type: Info, Head: b, Header: Header{
		{"WARC-Filename", name}, {"Content-Type", "application/warc-fields"},
	}}
}

// finish closes the file that is open. mu is held.
func (w *Writer) finish() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return finished(f.Name())
}

// Finish ends the file that is being written, if there is one; what comes next
// goes into another.
func (w *Writer) Finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finish()
}

// Close ends the file that is being written. Write fails from then on.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.finish()
}
