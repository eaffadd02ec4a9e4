package fuse

import (
	"context"
	"io"
	"iter"

	"harvest/fs"
)

const (
	atOnce    = 128  // entries taken from a List at a time
	markEvery = 1024 // entries between names remembered, for seekdir(3)
)

// A cursor reads a Dir by entry number. It holds a window of the listing that
// its user moves forward with drop, and the name of every 1,024th entry, from
// which any number can be found again; so a directory of a million entries
// costs it a few kilobytes. A List that was interrupted, or failed, is begun
// anew after the last name it gave.
type cursor struct {
	dir    fs.Dir
	user   *fs.User
	window []fs.Entry // numbers base, base+1 …
	base   uint64
	last   string   // name of the entry before what is fetched next
	marks  []string // names of the entries number markEvery-1, 2*markEvery-1 …

	pull   func() ([]fs.Entry, error, bool) // goes on with the List; nil: there is none
	halt   func()
	cancel context.CancelFunc
}

// at gives the entry number i, io.EOF past the last.
func (c *cursor) at(ctx context.Context, i uint64) (fs.Entry, error) {
	if i < c.base || i/markEvery > c.next()/markEvery && uint64(len(c.marks)) > c.next()/markEvery {
		c.rewind(min(i/markEvery, uint64(len(c.marks))))
	}
	for i >= c.next() {
		if i > c.next()+atOnce { // far ahead: what is before it is not asked for
			c.drop(c.next())
		}
		if err := c.fetch(ctx); err != nil {
			return fs.Entry{}, err
		}
	}
	return c.window[i-c.base], nil
}

// next is the number of the entry that is fetched next.
func (c *cursor) next() uint64 { return c.base + uint64(len(c.window)) }

// drop forgets the entries before number i.
func (c *cursor) drop(i uint64) {
	if i <= c.base {
		return
	}
	n := copy(c.window, c.window[min(i-c.base, uint64(len(c.window))):])
	c.base += uint64(len(c.window) - n)
	clear(c.window[n:])
	c.window = c.window[:n]
}

// rewind begins anew after mark m; 0 is the beginning.
func (c *cursor) rewind(m uint64) {
	c.close()
	c.window, c.base, c.last = c.window[:0], m*markEvery, ""
	if m > 0 {
		c.last = c.marks[m-1]
	}
}

// fetch takes more entries from the List. The List outlives the request, so
// it runs in a context of its own, which ends when a request is interrupted
// while the List makes it wait.
func (c *cursor) fetch(ctx context.Context) error {
	if c.pull == nil {
		var own context.Context
		own, c.cancel = context.WithCancel(fs.WithUser(context.Background(), c.user))
		c.pull, c.halt = iter.Pull2(chunks(own, c.dir, c.last))
	}
	stop := context.AfterFunc(ctx, c.cancel)
	es, err, ok := c.pull()
	if !stop() || err != nil {
		c.close()
	}
	for _, e := range es {
		c.window = append(c.window, e)
		c.last = e.Name
		if n := c.next(); n%markEvery == 0 && uint64(len(c.marks)) == n/markEvery-1 {
			c.marks = append(c.marks, e.Name)
		}
	}
	switch {
	case len(es) > 0:
		return nil
	case err != nil:
		return err
	case !ok:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.close()
		return io.EOF
	}
	return nil
}

// close ends the List.
func (c *cursor) close() {
	if c.pull == nil {
		return
	}
	c.cancel()
	c.halt()
	c.pull = nil
}

// chunks gives the entries of a List some at a time, for stepping from one
// goroutine's stack to another's costs more than an entry. An error comes
// with the entries before it.
func chunks(ctx context.Context, d fs.Dir, after string) iter.Seq2[[]fs.Entry, error] {
	return func(yield func([]fs.Entry, error) bool) {
		es := make([]fs.Entry, 0, atOnce)
		for e, err := range d.List(ctx, after) {
			if err != nil {
				yield(es, err)
				return
			}
			if es = append(es, e); len(es) == atOnce {
				if !yield(es, nil) {
					return
				}
				es = es[:0]
			}
		}
		if len(es) > 0 {
			yield(es, nil)
		}
	}
}
