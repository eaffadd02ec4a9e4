package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/bench"
)

// documents are a corpus as it is indexed: its files, or an object store made
// of them, in which a Broker has its texts.
type documents struct {
	*bench.Corpus
	store *store.Store // or nil
}

func openDocuments(dir, stored string) (*documents, error) {
	c, err := bench.OpenCorpus(dir)
	if err != nil || stored == "" {
		return &documents{Corpus: c}, err
	}
	st, err := store.Open(stored, slog.New(slog.DiscardHandler), store.Options{})
	return &documents{c, st}, err
}

func (d *documents) Close() error {
	if d.store == nil {
		return nil
	}
	return d.store.Close()
}

// Docs gives the documents in the order of the files, which is the order in
// which they came into the store.
func (d *documents) Docs(ctx context.Context, seen func(n int)) iter.Seq2[*index.Doc, error] {
	if d.store == nil {
		return d.Corpus.Docs(ctx, seen)
	}
	return func(yield func(*index.Doc, error) bool) {
		n := 0
		for rec, err := range d.store.Changes(ctx, store.Cursor{}) {
			var doc index.Doc
			if err == nil {
				var body []byte
				doc.ID = index.ID(rec.Entry.OID)
				if body, _, err = d.store.Get(rec.Entry.OID); err == nil {
					doc.Fields, err = stored(body)
				}
			}
			if !yield(&doc, err) || err != nil {
				return
			}
			n++
			seen(n)
		}
	}
}

// stored are the fields of an object.
func stored(body []byte) ([]index.Field, error) {
	o, _, err := soif.Parse(body, soif.Limits{})
	return []index.Field{{Name: "title", Text: o.Text("Title")}, {Name: "body", Text: o.Text("Body")}}, err
}

// Text is index.Source.
func (d *documents) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	if d.store == nil {
		return d.Corpus.Text(ctx, ids, yield)
	}
	oids := make([]store.OID, len(ids))
	for i, id := range ids {
		oids[i] = store.OID(id)
	}
	var bad error
	err := d.store.Bodies(ctx, oids, func(i int, body []byte, err error) bool {
		var fields []index.Field
		if err == nil {
			fields, err = stored(body)
		}
		bad = err
		return err == nil && yield(i, fields)
	})
	return errors.Join(bad, err)
}

// fillStore makes an object of each document.
func fillStore(ctx context.Context, c *bench.Corpus, dir string, seen func(n int)) (err error) {
	st, err := store.Open(dir, slog.New(slog.DiscardHandler), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var batch []store.Change
	n, size := 0, 0
	for d, err := range c.Docs(ctx, nil) {
		if err != nil {
			return err
		}
		o := soif.Object{Type: "FILE", URL: "file:///" + c.Names[n]}
		o.Add("Title", []byte(d.Fields[0].Text))
		o.Add("Body", []byte(d.Fields[1].Text))
		batch = append(batch, store.Change{Op: soif.Update, OID: store.OID(d.ID), URL: o.URL, Body: o.Append(nil)})
		size += len(d.Fields[1].Text)
		if n++; n == len(c.Names) || len(batch) == 500 || size > 8<<20 {
			if _, err := st.Apply(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
			seen(n)
		}
	}
	return nil
}

// fillPieces makes a store of about n objects: the texts of all corpora, cut at
// the ends of lines into pieces as long as that takes, as summaries of plain
// text have them. A text that is shorter than a piece is one.
func fillPieces(ctx context.Context, all []*bench.Corpus, n int, dir string, seen func(n int)) (err error) {
	st, err := store.Open(dir, slog.New(slog.DiscardHandler), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var bytes, done int64
	for _, c := range all {
		bytes += c.Bytes
	}
	var batch []store.Change
	made := 0
	flush := func() error {
		_, err := st.Apply(ctx, batch)
		made += len(batch)
		batch = batch[:0]
		seen(made)
		return err
	}
	for _, c := range all {
		i := 0
		for d, err := range c.Docs(ctx, nil) {
			if err != nil {
				return err
			}
			name := c.Names[i]
			i++
			text := d.Fields[1].Text
			done += int64(len(text))
			want := int(float64(n)*float64(done)/float64(bytes)) - made - len(batch)
			for j, piece := range pieces(text, want) {
				batch = append(batch, pieceChange(name, j, piece))
				if len(batch) == 5000 {
					if err := flush(); err != nil {
						return err
					}
				}
			}
		}
	}
	return flush()
}

// pieces cuts text at ends of lines into n parts, fewer if it has not as many
// lines, one at least.
func pieces(text string, n int) (out []string) {
	for ; n > 1 && len(text) > 0; n-- {
		at := len(text) / n
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		out = append(out, text[:at+i+1])
		text = text[at+i+1:]
	}
	if len(text) > 0 || len(out) == 0 {
		out = append(out, text)
	}
	return out
}

// pieceTime is one between 1995 and 2020, in no order.
func pieceTime(at string) string {
	h := fnv.New32a()
	h.Write([]byte(at))
	begin := time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return strconv.FormatInt(begin+int64(h.Sum32())%(25*365*24*3600), 10)
}

// pieceChange is the summary of a piece, dated long ago and to live for long.
func pieceChange(name string, i int, text string) store.Change {
	at := fmt.Sprintf("file:///%s#%d", (&url.URL{Path: name}).EscapedPath(), i)
	o := soif.Object{Type: "FILE", URL: at}
	title := bench.Fields(text)[0].Text
	for _, a := range [][2]string{
		{"Type", "Text"}, {"Title", strings.TrimSpace(title)}, {"File-Size", strconv.Itoa(len(text))},
		{"Update-Time", "1000000000"}, {"Last-Modification-Time", pieceTime(at)}, {"Time-to-Live", "3000000000"}, {"Refresh-Rate", "604800"},
		{"Gatherer-Name", benchName}, {"Gatherer-Host", "localhost"}, {"Gatherer-Version", version}, {"Full-Text", text},
	} {
		o.Add(a[0], []byte(a[1]))
	}
	return store.Change{Op: soif.Update, OID: store.ID(at, benchName), URL: at, Body: o.Append(nil)}
}
