package ninep

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	writeWait = 30 * time.Second // without progress, of one write
	smallMax  = 256 << 10        // bytes of queued small messages before their makers wait
)

// buffer is a byte slice from a pool.
type buffer struct {
	b     []byte
	class int
}

// buffers are pools of buffers by size: 4 KiB, and four times that, to 1 MiB.
type buffers [5]sync.Pool

func classSize(c int) int { return 4096 << (2 * c) }

// class is that of the smallest buffers of at least n bytes, n at most
// MaxMsize.
func class(n int) int {
	c := 0
	for classSize(c) < n {
		c++
	}
	return c
}

// get gives a buffer of at least n bytes.
func (p *buffers) get(n int) *buffer {
	c := class(n)
	if b, ok := p[c].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, classSize(c)), c}
}

func (p *buffers) put(b *buffer) {
	if b != nil {
		p[b.class].Put(b)
	}
}

// An outbox is the writing side of a connection. Messages are queued in
// order; whoever calls drain while nobody else is writing writes until the
// queue is empty, everything there in one writev.
type outbox struct {
	nc   net.Conn
	pool *buffers
	sent func(msgs, bytes, held int) // after each write; held: of buffers now free

	mu      sync.Mutex
	room    sync.Cond // small shrank, or err came
	queue   []segment
	small   int // bytes queued by put
	msgs    int
	writing bool
	err     error
	wide    bool      // the kernel was asked to take much at a time
	set     time.Time // when the write deadline was set last
	spare   []byte
	vec     net.Buffers
	last    []segment
}

// segment is a run of small messages, or one message in a buffer of its own.
type segment struct {
	b   []byte
	own *buffer
}

func newOutbox(nc net.Conn, pool *buffers, sent func(msgs, bytes, held int)) *outbox {
	o := &outbox{nc: nc, pool: pool, sent: sent}
	o.room.L = &o.mu
	return o
}

// wait returns when there is room for another small message.
func (o *outbox) wait() {
	o.mu.Lock()
	for o.small > smallMax && o.err == nil && o.writing {
		o.room.Wait()
	}
	o.mu.Unlock()
}

// put queues what f appends, which is n messages.
func (o *outbox) put(n int, f func(b []byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return
	}
	o.msgs += n
	if k := len(o.queue) - 1; k >= 0 && o.queue[k].own == nil {
		was := len(o.queue[k].b)
		o.queue[k].b = f(o.queue[k].b)
		o.small += len(o.queue[k].b) - was
		return
	}
	b := f(o.spare[:0])
	o.spare = nil
	o.small += len(b)
	o.queue = append(o.queue, segment{b: b})
}

// putBuffer queues the first n bytes of b as one message; b is the outbox's.
func (o *outbox) putBuffer(b *buffer, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		o.free(b)
		return
	}
	o.msgs++
	o.queue = append(o.queue, segment{b.b[:n], b})
}

func (o *outbox) free(b *buffer) {
	held := len(b.b)
	o.pool.put(b)
	o.sent(0, 0, held)
}

// drain writes what is queued, unless somebody is doing so. A write error
// stays, closes the connection and drops all that comes later.
func (o *outbox) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return
	}
	o.writing = true
	for len(o.queue) > 0 && o.err == nil {
		q, msgs := o.queue, o.msgs
		o.queue, o.msgs, o.small = o.last[:0], 0, 0
		o.mu.Unlock()
		n, err := o.write(q)
		held := 0
		for _, s := range q {
			if s.own != nil {
				held += len(s.own.b)
				o.pool.put(s.own)
			}
		}
		o.sent(msgs, n, held)
		o.mu.Lock()
		for i, s := range q {
			if s.own == nil && cap(s.b) <= 64<<10 {
				o.spare = s.b[:0]
			}
			q[i] = segment{}
		}
		o.last = q[:0]
		if err != nil {
			o.fail(err)
		}
		o.room.Broadcast()
	}
	o.writing = false
	o.room.Broadcast()
}

// failed gives the error of the write that failed.
func (o *outbox) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// fail drops the queue; mu is held.
func (o *outbox) fail(err error) {
	o.err = err
	held := 0
	for _, s := range o.queue {
		if s.own != nil {
			held += len(s.own.b)
			o.pool.put(s.own)
		}
	}
	o.queue, o.small = nil, 0
	o.sent(0, 0, held)
	o.nc.Close()
	o.room.Broadcast()
}

// wideFrom is a reply that is worth a wide socket.
const wideFrom = 128 << 10

// widen has the kernel take a long reply at once from here on. By itself a unix
// socket takes 208 KiB, and a reply of a MiB would wake this side five times. A
// TCP socket grows as it needs. Only the writer calls it.
func (o *outbox) widen(q []segment) {
	u, ok := o.nc.(*net.UnixConn)
	if !ok || o.wide {
		return
	}
	for _, s := range q {
		if len(s.b) >= wideFrom {
			o.wide = true
			u.SetWriteBuffer(MaxMsize / 2) // the kernel doubles it; it goes without, too
			return
		}
	}
}

// write writes all of q. The deadline is of progress: as long as some bytes
// leave in writeWait, it goes on.
func (o *outbox) write(q []segment) (int, error) {
	o.widen(q)
	if len(q) == 1 {
		rest := q[0].b
		return o.progress(func() (int, bool, error) {
			n, err := o.nc.Write(rest)
			rest = rest[n:]
			return n, len(rest) == 0, err
		})
	}
	vec := o.vec[:0]
	for _, s := range q {
		vec = append(vec, s.b)
	}
	o.vec = vec // only the writer touches it
	return o.progress(func() (int, bool, error) {
		n, err := vec.WriteTo(o.nc)
		return int(n), len(vec) == 0, err
	})
}

func (o *outbox) progress(write func() (n int, done bool, err error)) (int, error) {
	total := 0
	for {
		if now := time.Now(); now.Sub(o.set) > writeWait/8 {
			o.set = now
			o.nc.SetWriteDeadline(now.Add(writeWait))
		}
		n, done, err := write()
		total += n
		if err == nil || done {
			return total, nil
		}
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return total, err
		}
		o.set = time.Time{}
	}
}
