package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// since writes what has changed after a cursor among the objects that the query
// finds, as an update stream: from 0 on those of the answer. After another cursor
// each object that changed is looked at, and one that the query does not find is
// written as deleted, whether it was found before or not: nothing is kept of who
// asks. The cursor at the end is the Broker's.
func (a *answer) since(ctx context.Context, w io.Writer, after store.Cursor) error {
	u := soif.NewUpdateWriter(w)
	if after.Seq == 0 {
		if a.cut != "" { // a stream with a part of the hits would look whole
			return fmt.Errorf("since/0: %s: %w", a.cut, syscall.E2BIG)
		}
		hits := a.hits
		if a.whole != nil { // who collects has what is shown to decide for himself
			hits = a.whole
		}
		for _, h := range hits {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := a.b.writeUpdate(u, h.oid); err != nil {
				return err
			}
		}
		at, err := a.b.store.ParseCursor(a.mark)
		if err != nil && a.mark != "" {
			return err
		}
		return u.Close(at.String())
	}
	now := a.b.store.Cursor()
	match, err := a.matcher(ctx)
	if err != nil {
		return err
	}
	for rec, err := range a.b.store.Changes(ctx, after) {
		if err == nil {
			err = a.writeChange(ctx, u, rec, match)
		}
		if err != nil {
			return err
		}
	}
	return u.Close(now.String())
}

// sinceZstd is since, compressed.
func (a *answer) sinceZstd(ctx context.Context, w io.Writer, after store.Cursor) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(z, 64<<10)
	if err := a.since(ctx, buf, after); err != nil {
		return err // not closed: the stream shall not look whole
	}
	return errors.Join(buf.Flush(), z.Close())
}

// matcher decides whether the query finds an object.
func (a *answer) matcher(ctx context.Context) (*index.Matcher, error) {
	opt, err := a.b.options(ctx, a.q, a.manner)
	if err != nil {
		return nil, err
	}
	m, err := index.Compile(a.manner.ask(a.q), opt)
	if err != nil {
		return nil, err
	}
	h := a.b.hold()
	defer h.release()
	if !h.files.numbers {
		m.WithoutNumbers()
	}
	return m, nil
}

func (a *answer) writeChange(ctx context.Context, u *soif.UpdateWriter, rec store.Record, match *index.Matcher) error {
	oid := rec.Entry.OID
	if rec.Op != soif.Delete {
		body, yes, err := a.finds(ctx, oid, match)
		switch {
		case errors.Is(err, iofs.ErrNotExist):
			return nil // as the next stream will tell
		case err != nil:
			return fmt.Errorf("object %s: %w", oid, err)
		case yes:
			return u.Write(soif.Update, body) // of a refresh too: who asks need not have it
		}
	}
	return writeDelete(u, oid, rec.Entry.URL)
}

// finds reads an object and looks whether the query finds it.
func (a *answer) finds(ctx context.Context, oid store.OID, match *index.Matcher) (body []byte, yes bool, err error) {
	err = a.b.inLane(ctx, func(context.Context) (err error) {
		if body, _, err = a.b.store.Get(oid); err != nil {
			return err
		}
		o, _, err := soif.Parse(body, soif.Limits{})
		if err == nil {
			yes = match.Match(document(oid, &o).Fields)
		}
		return err
	})
	return body, yes, err
}

// writeUpdate writes an object, if it is there.
func (b *Broker) writeUpdate(u *soif.UpdateWriter, oid store.OID) error {
	body, _, err := b.store.Get(oid)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil // as the next stream will tell
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", oid, err)
	}
	return u.Write(soif.Update, body)
}

func writeDelete(u *soif.UpdateWriter, oid store.OID, url string) error {
	o := soif.Object{Type: "FILE", URL: url}
	o.Add("Object-ID", []byte(oid.String()))
	return u.Write(soif.Delete, o.Append(nil))
}
