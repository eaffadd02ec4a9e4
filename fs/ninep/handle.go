package ninep

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"sync"
	"syscall"

	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

const (
	pipelined = 8 // Treads of one ReadAt under way at a time
	maxAhead  = 4 // chunks read ahead
)

func openByte(m fs.Mode) byte {
	var b byte
	switch m & (fs.Read | fs.Write) {
	case fs.Write:
		b = byte(proto.Owrite)
	case fs.Read | fs.Write:
		b = byte(proto.Ordwr)
	}
	if m&fs.Trunc != 0 {
		b |= byte(proto.Otrunc)
	}
	return b
}

func openCall(fid uint32, mode byte) *call {
	return &call{want: proto.Ropen, msg: func(tag uint16) []byte {
		return (&proto.TOpen{Header: header(proto.Topen, tag), Fid: fid, Mode: proto.Mode(mode)}).Compose()
	}}
}

func readCall(fid uint32, off uint64, p []byte) *call {
	return &call{want: proto.Rread, dst: p, msg: func(tag uint16) []byte {
		b := appendHeader(make([]byte, 0, 23), 23, proto.Tread, tag)
		b = le.AppendUint32(b, fid)
		b = le.AppendUint64(b, off)
		return le.AppendUint32(b, uint32(len(p)))
	}}
}

// Open opens the file.
func (f *file) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	var open, stat *call
	fid, err := f.c.at(ctx, f.path, true, func(fid uint32) []*call {
		open = openCall(fid, openByte(m))
		if f.c.ours && f.st.Kind == fs.Made {
			stat = f.c.statCall(fid) // how long it is, which saves asking for what is past its end
			return []*call{open, stat}
		}
		return []*call{open}
	})
	if err != nil {
		return nil, err
	}
	r := open.reply.(*proto.ROpen)
	if r.Qid.Uid == f.st.Path {
		h := f.handle(fid, m, r.Iounit)
		if stat != nil {
			h.measure(&stat.reply.(*proto.RStat).Stat)
		}
		return h, nil
	}
	// The open fid is another file: that which a clone has made, or the one
	// that has the name now.
	stat = f.c.statCall(fid)
	if err := f.c.do(ctx, stat); err != nil {
		f.c.forget(fid)
		return nil, err
	}
	n, ok := f.c.node(f.path, &stat.reply.(*proto.RStat).Stat).(*file)
	if !ok {
		f.c.forget(fid)
		return nil, syscall.EISDIR
	}
	return moved{n.handle(fid, m, r.Iounit), n}, nil
}

type moved struct {
	*handle
	node fs.Node
}

func (m moved) Node() fs.Node { return m.node }

// A handle is an open file.
type handle struct {
	c      *Client
	fid    uint32
	st     fs.Stat
	unit   int  // bytes of a Tread or Twrite at most
	append bool // writes go to the end, which this side has to find
	pipe   bool // Treads may be sent before it is known that they are wanted
	sized  bool // st.Size is how long it is, and stays so

	seq   sync.Mutex // what is read ahead; held while waiting for it
	next  int64      // where a read in sequence would begin
	run   int        // reads in sequence so far
	ahead []*chunk

	mu    sync.Mutex
	dirty bool // written since the last Flush
}

// A chunk is a Tread sent ahead.
type chunk struct {
	k   *call
	buf *buffer
	off int64
	len int
}

func (f *file) handle(fid uint32, m fs.Mode, iounit uint32) *handle {
	unit := int(f.c.msize) - ioHeader
	if iounit > 0 && int64(iounit) < int64(unit) {
		unit = int(iounit)
	}
	h := &handle{c: f.c, fid: fid, st: f.st, unit: unit}
	h.append = m&fs.Append != 0 && f.st.Kind != fs.Growing
	// A stream loses what is read past a record, and other servers do not
	// say what a stream is.
	switch f.st.Kind {
	case fs.Plain:
		h.pipe = true
	case fs.Made, fs.Growing:
		h.pipe = f.c.ours
	}
	return h
}

// measure notes what a stat of the open fid tells: there, what is made and has
// a length is Plain.
func (h *handle) measure(p *proto.Stat) {
	if st := h.c.stat(p); st.Path == h.st.Path && st.Kind == fs.Plain {
		h.st.Size, h.sized = st.Size, true
	}
}

// ReadAt reads.
func (h *handle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if len(p) == 0 {
		return 0, nil
	}
	if h.sized {
		if off >= h.st.Size {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), h.st.Size-off)]
	}
	if h.pipe && h.seq.TryLock() {
		n, err := h.sequence(ctx, p, off)
		h.next = off + int64(n)
		h.seq.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
	}
	if h.pipe && len(p) > h.unit {
		return h.many(ctx, p, off)
	}
	k := readCall(h.fid, uint64(off), p[:min(len(p), h.unit)])
	if err := h.c.do(ctx, k); err != nil {
		return 0, err
	}
	h.advance(off, k.n)
	if k.n == 0 {
		return 0, io.EOF
	}
	return k.n, nil
}

// advance notes a read that was not served from ahead.
func (h *handle) advance(off int64, n int) {
	if h.pipe && h.seq.TryLock() {
		if h.next == off {
			h.next = off + int64(n)
		}
		h.seq.Unlock()
	}
}

// many reads into p by several Treads at a time. Only the bytes before the
// first gap count.
func (h *handle) many(ctx context.Context, p []byte, off int64) (int, error) {
	var calls []*call
	at := 0
	send := func() {
		n := min(len(p)-at, h.unit)
		k := readCall(h.fid, uint64(off)+uint64(at), p[at:at+n])
		h.c.send(k)
		calls = append(calls, k)
		at += n
	}
	for at < len(p) && len(calls) < pipelined {
		send()
	}
	h.c.out.drain()
	n, end := 0, false
	var err error
	for len(calls) > 0 {
		k := calls[0]
		calls = calls[1:]
		e := h.c.wait(ctx, k)
		if end || err != nil {
			continue // its reply had to be waited for, it writes into p
		}
		if err = e; err != nil {
			continue
		}
		n += k.n
		if end = k.n < len(k.dst); !end && at < len(p) {
			send()
			h.c.out.drain()
		}
	}
	h.advance(off, n)
	if n > 0 {
		return n, nil
	}
	if err == nil {
		err = io.EOF
	}
	return 0, err
}

// sequence serves a read from what was read ahead, and reads ahead once
// reads come in sequence. It gives 0 and no error where it has nothing; seq
// is held.
func (h *handle) sequence(ctx context.Context, p []byte, off int64) (int, error) {
	if off != h.next {
		h.run = 0
		h.drop()
		return 0, nil
	}
	if h.run++; h.run < 3 || len(p) > 2*h.unit {
		return 0, nil
	}
	h.fill(off)
	if len(h.ahead) == 0 {
		return 0, nil
	}
	n := 0
	for n < len(p) && len(h.ahead) > 0 {
		a := h.ahead[0]
		if n > 0 {
			select {
			case <-a.k.done:
			default:
				return n, nil // what there is, now
			}
		}
		if err := h.c.wait(ctx, a.k); err != nil {
			h.drop()
			if n > 0 {
				err = nil
			}
			return n, err
		}
		at := int(off + int64(n) - a.off)
		if at < a.k.n {
			n += copy(p[n:], a.buf.b[at:a.k.n])
			at = int(off + int64(n) - a.off)
		}
		if at < a.k.n {
			return n, nil
		}
		short := a.k.n < a.len
		h.c.pool.put(a.buf)
		h.ahead = h.ahead[1:]
		if short {
			// The end, when this was read; it may be elsewhere now.
			h.drop()
			h.run = 0
			return n, nil
		}
		h.fill(off + int64(n))
	}
	return n, nil
}

// fill sends Treads for what comes at and after off.
func (h *handle) fill(off int64) {
	if k := len(h.ahead); k > 0 {
		off = h.ahead[k-1].off + int64(h.ahead[k-1].len)
	}
	sent := false
	for len(h.ahead) < min(maxAhead, h.run-1) {
		n := h.unit
		if h.st.Kind != fs.Made || h.st.Size > 0 {
			// Reading past the known end is left to whoever wants it.
			if off >= h.st.Size {
				break
			}
			n = int(min(int64(n), h.st.Size-off))
		}
		b := h.c.pool.get(n)
		a := &chunk{k: readCall(h.fid, uint64(off), b.b[:n]), buf: b, off: off, len: n}
		h.c.send(a.k)
		h.ahead = append(h.ahead, a)
		off += int64(n)
		sent = true
	}
	if sent {
		h.c.out.drain()
	}
}

// drop gives up what was read ahead; seq is held.
func (h *handle) drop() {
	for _, a := range h.ahead {
		h.c.abandon(a.k, func() { h.c.pool.put(a.buf) })
	}
	h.ahead = nil
}

// WriteAt writes, a Twrite after the other: one that is refused ends it.
func (h *handle) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > math.MaxInt64-int64(len(p)) {
		return 0, iofs.ErrInvalid
	}
	h.seq.Lock()
	h.run = 0
	h.drop()
	h.seq.Unlock()
	h.mu.Lock()
	h.dirty = true
	h.mu.Unlock()
	if h.append {
		st, err := h.Restat(ctx)
		if err != nil {
			return 0, err
		}
		off = st.Size
	}
	for n := 0; ; {
		q := p[n:min(len(p), n+h.unit)]
		k, err := h.c.write(ctx, h.fid, uint64(off)+uint64(n), q)
		if err == nil && (k > len(q) || k == 0 && len(q) > 0) {
			err = fmt.Errorf("wrote %d of %d bytes: %w", k, len(q), syscall.EIO)
		}
		if err != nil {
			return n, err
		}
		if n += k; n == len(p) {
			return n, nil
		}
	}
}

func (c *Client) write(ctx context.Context, fid uint32, off uint64, p []byte) (int, error) {
	b := c.pool.get(putHeader + len(p))
	m := appendHeader(b.b[:0], putHeader+len(p), proto.Twrite, 0)
	m = le.AppendUint32(m, fid)
	m = le.AppendUint64(m, off)
	m = le.AppendUint32(m, uint32(len(p)))
	m = append(m, p...)
	k := &call{want: proto.Rwrite, body: b, size: len(m)}
	if err := c.do(ctx, k); err != nil {
		return 0, err
	}
	return int(min(k.reply.(*proto.RWrite).Count, math.MaxInt32)), nil
}

// Flush says that the text is complete, by a Twstat that changes nothing.
// Other servers may not know what it is for.
func (h *handle) Flush(ctx context.Context) error {
	h.mu.Lock()
	dirty := h.dirty
	h.dirty = false
	h.mu.Unlock()
	if !dirty {
		return nil
	}
	err := h.c.do(ctx, wstatCall(h.fid, untouched()))
	var r *remoteError
	if !h.c.ours && errors.As(err, &r) {
		return nil
	}
	return err
}

// Restat asks the server for the attributes of the open file.
func (h *handle) Restat(ctx context.Context) (fs.Stat, error) {
	k := h.c.statCall(h.fid)
	if err := h.c.do(ctx, k); err != nil {
		return fs.Stat{}, err
	}
	return h.c.stat(&k.reply.(*proto.RStat).Stat), nil
}

// Close clunks, and tells what the server says to that.
func (h *handle) Close() error {
	h.seq.Lock()
	h.drop()
	h.seq.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	k := fidCall(proto.Tclunk, h.fid)
	err := h.c.do(ctx, k)
	if h.c.Err() == nil && ctx.Err() == nil {
		h.c.freeFid(h.fid)
	}
	return err
}
