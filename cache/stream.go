package cache

import (
	"errors"
	"io"
	"os"

	"harvest/cache/http1"
	"harvest/fs/ndb"
)

// stream takes the body of an answer in, and lets all readers know.
func (f *flight) stream(x *exchange) error {
	var scratch []byte // for what goes to a file
	for {
		b := scratch
		if b == nil {
			b = f.space()
		}
		n, err := x.Read(b)
		if n > 0 {
			if terr := f.take(b[:n], scratch != nil); terr != nil {
				return terr
			}
			if scratch == nil && f.size >= spillAt && err == nil {
				if serr := f.spill(); serr != nil {
					return serr
				}
				scratch = make([]byte, 64<<10)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// space is where the next bytes go in memory.
func (f *flight) space() []byte {
	n := len(f.mem)
	if n < cap(f.mem) {
		return f.mem[n:cap(f.mem)]
	}
	more := max(4<<10, 2*n)
	if n == 0 && f.length > 0 {
		more = 64 << 10
	}
	if f.length > int64(n) {
		more = int(min(int64(more), f.length))
	}
	b := make([]byte, n, more)
	copy(b, f.mem)
	f.mu.Lock()
	f.mem = b
	f.mu.Unlock()
	return b[n:cap(b)]
}

// take counts bytes that came.
func (f *flight) take(b []byte, toFile bool) error {
	if toFile {
		if _, err := f.file.Write(b); err != nil {
			return err
		}
	}
	f.mu.Lock()
	if !toFile {
		f.mem = f.mem[:len(f.mem)+len(b)]
	}
	f.size += int64(len(b))
	f.signal()
	over := f.over
	if !over && f.size > f.c.conf.Load().object {
		f.over, over = true, true
	}
	f.mu.Unlock()
	if over {
		return f.pace()
	}
	return nil
}

// spill moves a body that gets large from memory to a file.
func (f *flight) spill() error {
	file, err := f.c.store.Create()
	if err != nil {
		return err
	}
	if _, err := file.Write(f.mem); err != nil {
		file.Drop()
		return err
	}
	f.mu.Lock()
	f.file, f.mem = file, nil
	f.mu.Unlock()
	return nil
}

// ahead is how far a body that is not kept may come ahead of its slowest reader.
const ahead = 8 << 20

// pace holds a body back that is too large to be kept, so that what of it is on
// disk is bounded, and lets go of what all readers have.
func (f *flight) pace() error {
	for {
		f.mu.Lock()
		slowest := f.size
		for b := range f.reading {
			slowest = min(slowest, b.off)
		}
		nobody := f.readers == 0
		moved := f.moved
		size, file := f.size, f.file
		f.mu.Unlock()
		if nobody {
			return errTooLarge
		}
		if file != nil {
			file.Discard(slowest)
		}
		if size-slowest <= ahead {
			return nil
		}
		select {
		case <-moved:
		case <-f.c.life.Done():
			return os.ErrClosed
		}
	}
}

var errTooLarge = errors.New("larger than what is kept")

// finish keeps a body that is whole, and lets readers come to its end.
func (f *flight) finish(err error, x *exchange) {
	if err == nil && f.length >= 0 && f.size != f.length {
		err = io.ErrUnexpectedEOF
	}
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	var v *variant
	if err == nil && !over && !f.unwanted.Load() {
		var kerr error
		if v, kerr = f.c.keep(f.q.key, f.q.header, f.p, f.reason, content{f.mem, f.file}); kerr != nil {
			f.c.lg.Warn("keep", "url", f.q.url, "err", kerr)
			f.event("not kept", kerr)
			f.lose(kerr)
		}
		if f.unwanted.Load() { // purged just now
			f.c.purge(f.q.key)
		}
	}
	if err != nil {
		f.event("cut", err)
	}
	f.c.landed(f)
	f.settle(v, err)
}

// lose lets readers know that the file of a body is gone: it could not be kept, and
// what is not read yet cannot be had any more.
func (f *flight) lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		f.file, f.err = nil, err
	}
}

// settle marks the end. What readers still want of a file is read from the object
// that it has become.
func (f *flight) settle(v *variant, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.v, f.ended = v, true
	if err != nil {
		f.err = err
	}
	defer f.signal()
	if f.file == nil {
		return
	}
	if v == nil {
		if f.readers == 0 {
			f.file.Drop()
			f.file = nil
		}
		return // else the last reader drops it
	}
	f.file = nil
	if f.readers == 0 {
		return
	}
	o, oerr := f.c.store.Open(v.ref)
	if oerr != nil {
		f.err = oerr
		return
	}
	f.stored = o
}

func (f *flight) event(what string, err error) {
	f.c.event(what, ndb.Of("url", f.q.url), ndb.Of("bytes", f.size), ndb.Of("of", f.length), ndb.Of("why", err))
}

// A flightBody reads a flight's body from the start, or a part of it. Close counts
// its reader out.
type flightBody struct {
	f        *flight
	off, end int64 // end -1: all
	stop     <-chan struct{}
	err      error // when stop is closed
	closed   bool
}

// body makes a reader of what was joined.
func (f *flight) body(off, end int64, stop <-chan struct{}, err error) *flightBody {
	b := &flightBody{f: f, off: off, end: end, stop: stop, err: err}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reading == nil {
		f.reading = make(map[*flightBody]struct{})
	}
	f.reading[b] = struct{}{}
	return b
}

func (b *flightBody) Read(p []byte) (int, error) {
	f := b.f
	for {
		if b.end >= 0 {
			if b.off >= b.end {
				return 0, io.EOF
			}
			p = p[:min(int64(len(p)), b.end-b.off)]
		}
		f.mu.Lock()
		moved, n, from := f.moved, f.size-b.off, io.ReaderAt(nil)
		switch {
		case n <= 0 && f.ended && f.err != nil:
			f.mu.Unlock()
			return 0, f.err
		case n <= 0 && f.ended:
			f.mu.Unlock()
			return 0, io.EOF
		case n <= 0:
		case f.stored != nil:
			from = f.stored
		case f.file != nil:
			from = f.file
		default:
			n = int64(copy(p, f.mem[min(b.off, int64(len(f.mem))):]))
			b.moveTo(b.off + n)
			f.mu.Unlock()
			if n == 0 {
				return 0, os.ErrClosed
			}
			return int(n), nil
		}
		f.mu.Unlock()
		if from != nil {
			got, err := from.ReadAt(p[:min(int64(len(p)), n)], b.off)
			if got > 0 {
				f.mu.Lock()
				b.moveTo(b.off + int64(got))
				f.mu.Unlock()
				return got, nil
			}
			if !errors.Is(err, os.ErrClosed) {
				return 0, err
			}
			// The file has just become an object; it is told when that can be read.
		}
		select {
		case <-moved:
		case <-b.stop:
			return 0, b.err
		}
	}
}

// moveTo notes how far the reader is. f.mu is held.
func (b *flightBody) moveTo(off int64) {
	b.off = off
	if b.f.over {
		b.f.signal()
	}
}

func (b *flightBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	f := b.f
	f.mu.Lock()
	delete(f.reading, b)
	if f.over {
		f.signal()
	}
	if b.end >= 0 && b.off >= b.end && f.length <= maxWhole && !f.over {
		f.keeps = true // the client has what it wanted; the next wants another part
	}
	if f.readers == 1 && f.ended && f.file != nil {
		f.file.Drop()
		f.file = nil
	}
	f.mu.Unlock()
	f.leave()
	return nil
}

// detach takes an answer out of the hands of the flight that got it: it belongs to
// who began that, and no longer ends with it.
func (x *exchange) detach() {
	if x.stop != nil && x.stop() {
		x.stop = func() bool { return true }
	}
}

// direct makes the rest of an answer the body of one.
func (x *exchange) direct() (io.ReadCloser, int64) {
	if x.length == http1.Chunked || x.length == http1.UntilClose {
		return x, -1
	}
	return x, x.length
}
