// Package bench holds what the measurements of index engines share, for
// harvest bench and for the tests of each engine: the text files of a folder as
// documents, queries by class, and judged collections with the measures that
// are usual for them. It times nothing itself.
//
// What it does not do: know an engine. It sees index.Engine.
package bench

import (
	"context"
	"errors"
	"hash/fnv"
	iofs "io/fs"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"harvest/index"
)

// A Corpus is the regular files below a folder, each a document of two
// attributes: title, its first line, and body, all of it. That is how the
// drivers of the engines it is compared with read them too.
type Corpus struct {
	Dir   string
	Names []string // below Dir, in order
	Bytes int64    // of all

	byID    map[index.ID]int
	readers sync.Pool // of *reader
}

// OpenCorpus lists the files of a folder; it reads none.
func OpenCorpus(dir string) (*Corpus, error) {
	c := &Corpus{Dir: dir, byID: make(map[index.ID]int)}
	err := filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		c.byID[ID(name)] = len(c.Names)
		c.Names = append(c.Names, name)
		c.Bytes += st.Size()
		return nil
	})
	return c, err
}

// ID is that of the document called name.
func ID(name string) (id index.ID) {
	h := fnv.New128a()
	h.Write([]byte(name))
	h.Sum(id[:0])
	return id
}

// Name is that of the document with the ID.
func (c *Corpus) Name(id index.ID) (string, bool) {
	i, ok := c.byID[id]
	if !ok {
		return "", false
	}
	return c.Names[i], true
}

// A reader reads files into memory that the next one takes again, with as few
// system calls as can be: an index of this kind reads thousands for a query.
type reader struct {
	buf []byte
}

func (c *Corpus) reader() *reader {
	if r, ok := c.readers.Get().(*reader); ok {
		return r
	}
	return &reader{make([]byte, 256<<10)}
}

// doc reads document i. What it gives is good until the next call.
func (c *Corpus) doc(r *reader, i int) (index.Doc, error) {
	path := c.Dir + "/" + c.Names[i]
	n, err := r.read(path)
	if err != nil {
		return index.Doc{}, &iofs.PathError{Op: "read", Path: path, Err: err}
	}
	return index.Doc{ID: ID(c.Names[i]), Fields: Fields(unsafe.String(unsafe.SliceData(r.buf), n))}, nil
}

// read fills buf with a file and tells how much that is.
func (r *reader) read(path string) (n int, err error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	for {
		got, err := syscall.Read(fd, r.buf[n:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, err
		}
		n += got
		if got == 0 || n < len(r.buf) {
			return n, nil // a file gives all that it has
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
}

// Fields are the attributes of a text.
func Fields(text string) []index.Field {
	title, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return []index.Field{{Name: "title", Text: title}, {Name: "body", Text: text}}
}

// Weight is index.Options.Weight: a word that names no attribute is looked
// for in body only, since title is in it.
func Weight(attribute string) float64 {
	if attribute == "body" {
		return 1
	}
	return 0
}

// Docs reads the documents in order; each is good until the next. It calls seen, if it is not nil, after
// each, with how many there were.
func (c *Corpus) Docs(ctx context.Context, seen func(n int)) iter.Seq2[*index.Doc, error] {
	return func(yield func(*index.Doc, error) bool) {
		r := c.reader()
		defer c.readers.Put(r)
		for i := range c.Names {
			d, err := c.doc(r, i)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(&d, err) || err != nil {
				return
			}
			if seen != nil {
				seen(i + 1)
			}
		}
	}
}

// Text is index.Source: the files themselves.
func (c *Corpus) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	r := c.reader()
	defer c.readers.Put(r)
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, ok := c.byID[id]
		if !ok {
			continue
		}
		d, err := c.doc(r, n)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !yield(i, d.Fields) {
			return nil
		}
	}
	return nil
}
