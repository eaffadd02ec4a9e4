package catalog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"harvest/gather/soif"
)

// KeywordsLimit is how long Keywords may be, as in the first Harvest.
const KeywordsLimit = 8 << 10

// objects yields the objects of a SOIF stream, or of an update stream, with the
// trouble that each has; of input that is no object the object is nil. It ends
// with an error of reading, or of do.
func objects(ctx context.Context, r io.Reader, do func(o *soif.Object, trouble error) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	head, _ := br.Peek(4 << 10)
	lim := soif.Limits{Object: 64 << 20, Value: 64 << 20}
	var c soif.Change
	var next, check, resync func() error
	if soif.IsUpdate(head) {
		u := soif.NewUpdateReader(br, lim)
		next, check, resync = func() error { return u.Next(&c) }, func() error { return u.Check(&c) }, u.Resync
	} else {
		d := soif.NewDecoder(br, lim)
		next, check, resync = func() error { return d.Next(&c.Object) }, func() error { return d.Check(&c.Object) }, d.Resync
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			if err := do(&c.Object, check()); err != nil {
				return err
			}
			continue
		}
		if place := new(soif.Error); !errors.As(err, &place) {
			return err
		}
		if err := do(nil, err); err != nil {
			return err
		}
		if err := resync(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Check writes a line LINE:BYTE: TROUBLE for each error of a SOIF stream, of syntax or
// of the schema of a template type, and tells how many objects it has and how many
// errors there are.
func Check(ctx context.Context, w io.Writer, r io.Reader) (good, bad int, err error) {
	err = objects(ctx, r, func(o *soif.Object, trouble error) error {
		if trouble == nil {
			good++
			return nil
		}
		bad++
		return tell(w, trouble)
	})
	return good, bad, err
}

// tell writes a line for each error in one.
func tell(w io.Writer, err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if err := tell(w, e); err != nil {
				return err
			}
		}
		return nil
	}
	if at, ok := errors.AsType[*soif.Error](err); ok {
		_, err = fmt.Fprintf(w, "%d:%d: %s\n", at.Line, at.Offset, at.Trouble())
		return err
	}
	_, err = fmt.Fprintf(w, "%v\n", err)
	return err
}

// Clean writes the objects of a SOIF stream that are as they should be, without
// values that are not text and with Keywords of no more than KeywordsLimit.
func Clean(ctx context.Context, w io.Writer, r io.Reader) error {
	e := soif.NewEncoder(w)
	return objects(ctx, r, func(o *soif.Object, trouble error) error {
		if o == nil || trouble != nil {
			return nil
		}
		o.Clean(true, KeywordsLimit)
		return e.Encode(o)
	})
}

// A boundedBuffer refuses to hold more than it may.
type boundedBuffer struct {
	bytes.Buffer
	max int
}

var errResult = errors.New("the result is too long")

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, errResult
	}
	return b.Buffer.Write(p)
}
