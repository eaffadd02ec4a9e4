package ninep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/knusbaum/go9p"
	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

const (
	inBuffer   = 16 << 10 // of a connection's reader
	maxHello   = 8 << 10  // longest message before the first attach
	maxCodec   = proto.MaxMsgLen
	readHeader = 11 // of an Rread before its data
	putHeader  = 23 // of a Twrite before its data
)

// A conn is one connection: a reader, a goroutine for each request that
// takes its time, and whoever is draining the outbox.
type conn struct {
	srv   *Server
	nc    net.Conn
	br    *bufio.Reader
	srvc  go9p.Srv
	s     *session
	out   *outbox
	base  context.Context
	trace bool
	work  sync.WaitGroup // the readers' and requests' goroutines
	ended chan error     // why the last reader ended

	attached atomic.Bool

	// mu guards the table of requests. Taking a tag out of it and queueing
	// its reply is one step under mu, or an Rflush could overtake the reply.
	mu      sync.Mutex
	changed sync.Cond // tags or inq shrank, or the connection is ending
	tags    map[uint16]*request
	lanes   map[uint32]*lane
	ready   queue // would run but for the number of those that do
	running int
	blocked int  // reads that may wait for ever; not counted in running
	inq     int  // bytes of requests not finished
	mute    bool // replies are dropped: a Tversion came
	closing bool // no more requests are read
	dead    bool // nor replies written

	hold  sync.Mutex
	held  int           // bytes of buffers read into or waiting to be written
	freed chan struct{} // closed when held shrinks; nil: nobody waits
}

// A request is a T-message from its arrival to its reply.
type request struct {
	kind  byte
	tag   uint16
	call  proto.FCall // all but Tread and Twrite
	fid   uint32
	off   uint64
	count uint32
	data  *buffer // of a Twrite
	cost  int     // bytes of inq

	links  [2]link
	n      int // of links in use
	live   bool
	state  state
	ctx    context.Context
	cancel context.CancelFunc

	left    bool // canceled with the connection: only a success is still answered
	flushed bool
	flushes []*request // the Tflushes that wait for it

	qprev, qnext *request // in ready
}

type state uint8

const (
	waiting state = iota // in a lane
	queued               // in ready
	running
)

// free tells whether nothing before r keeps it.
func (r *request) free() bool {
	for i := range r.n {
		if !r.links[i].on {
			return false
		}
	}
	return true
}

// queue is a list of requests that one can leave from the middle.
type queue struct{ first, last *request }

func (q *queue) push(r *request) {
	r.qprev = q.last
	if q.last != nil {
		q.last.qnext = r
	} else {
		q.first = r
	}
	q.last = r
}

func (q *queue) remove(r *request) {
	if r.qprev != nil {
		r.qprev.qnext = r.qnext
	} else {
		q.first = r.qnext
	}
	if r.qnext != nil {
		r.qnext.qprev = r.qprev
	} else {
		q.last = r.qprev
	}
	r.qprev, r.qnext = nil, nil
}

func (v *Server) newConn(ctx context.Context, nc net.Conn, root fs.Dir, u *fs.User) *conn {
	svc := service{v, root, u, context.WithoutCancel(ctx), MaxMsize}
	c := &conn{
		srv: v, nc: nc, srvc: svc, s: svc.session(),
		br:    bufio.NewReaderSize(nc, inBuffer),
		trace: v.lg.Enabled(ctx, levelTrace),
		ended: make(chan error, 1),
		tags:  make(map[uint16]*request), lanes: make(map[uint32]*lane),
	}
	c.changed.L = &c.mu
	c.base = c.s.base
	c.s.tagof = c.context
	c.out = newOutbox(nc, &v.pool, func(msgs, bytes, held int) {
		v.stats.replies.Add(int64(msgs))
		v.stats.out.Add(int64(bytes))
		c.release(held)
	})
	return c
}

// context is the context of the request that has the tag.
func (c *conn) context(tag uint16) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.tags[tag]; r != nil && r.ctx != nil {
		return r.ctx
	}
	return c.base
}

// serve answers until the client leaves or sends what is no 9P, or ctx ends;
// then what is running is given a moment to finish.
func (c *conn) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, c.stop)
	c.deadline(time.Now().Add(c.srv.limits.Handshake))
	c.startReader()
	err := <-c.ended
	stop()
	if ctx.Err() != nil {
		err = nil
		c.finishing()
	} else {
		c.nc.Close()
	}
	c.abort()
	c.work.Wait()
	c.nc.Close()
	c.s.end()
	return err
}

// stop makes the reader stop.
func (c *conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.nc.SetReadDeadline(time.Unix(1, 0))
	c.changed.Broadcast()
}

// finishing waits for the requests that will end by themselves. The reads that
// wait for events get no reply: their clients learn that the connection is lost.
func (c *conn) finishing() {
	late := time.AfterFunc(c.srv.limits.Grace, c.abort)
	defer late.Stop()
	c.nc.SetWriteDeadline(time.Now().Add(c.srv.limits.Grace))
	c.mu.Lock()
	for _, r := range c.tags {
		if r.live && r.cancel != nil {
			r.left = true
			r.cancel()
		}
	}
	for len(c.tags) > 0 && !c.dead {
		c.changed.Wait()
	}
	c.mu.Unlock()
	c.out.drain()
}

// abort cancels all there is.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing, c.dead = true, true
	c.cancelAll()
	c.changed.Broadcast()
}

// cancelAll ends what waits and cancels what runs; mu is held.
func (c *conn) cancelAll() {
	for _, r := range c.tags {
		r.left = true
		if r.cancel != nil {
			r.cancel()
		}
		// A Tflush ends with what it flushes. What becomes free by this
		// is not started: see start.
		if r.state != running && r.kind != proto.Tflush {
			c.end(r, nil)
		}
	}
}

// deadline sets when the reader gives up, unless it is to stop now.
func (c *conn) deadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.nc.SetReadDeadline(t)
	}
}

// A reader is the goroutine that reads requests. One that comes alone it runs
// itself, which saves waking another; should that take longer than handOver,
// a new reader takes its place, and it ends with the request.
//
// What watches for that is a timer, which is set anew only once it has run out:
// setting one may wake a thread, and a request seldom takes as long as that.
type reader struct {
	c      *conn
	state  atomic.Int32
	began  atomic.Int64 // when the request that runs did, of the process's clock
	armed  atomic.Bool  // the timer is running
	timer  *time.Timer
	passed bool // the place is taken
}

const (
	handOver = 500 * time.Microsecond

	reading = iota
	busy
	passedOn
)

// startReader makes a new reader. There is none, or it is busy.
func (c *conn) startReader() {
	rd := &reader{c: c}
	rd.timer = time.AfterFunc(time.Hour, rd.late)
	c.work.Go(func() {
		err := rd.loop()
		rd.timer.Stop()
		if !rd.passed {
			c.ended <- err
		}
	})
}

// run runs a request that is free. It tells whether reading goes on.
func (rd *reader) run(r *request) bool {
	c := rd.c
	rd.began.Store(int64(time.Since(c.srv.started)))
	rd.state.Store(busy)
	rd.arm(handOver)
	m, buf, n := c.run(r)
	r.cancel()
	rd.passed = !rd.state.CompareAndSwap(busy, reading)
	// While it reads on, what it has to say goes out before it waits.
	c.finish(r, m, buf, n, true, rd.passed)
	return !rd.passed
}

// arm sets the timer unless it is.
func (rd *reader) arm(d time.Duration) {
	if !rd.armed.Swap(true) {
		rd.timer.Reset(d)
	}
}

// late starts a new reader if this one is busy for too long.
func (rd *reader) late() {
	rd.armed.Store(false)
	if rd.state.Load() != busy {
		return // what runs next sets the timer
	}
	ran := time.Since(rd.c.srv.started) - time.Duration(rd.began.Load())
	if ran < handOver {
		rd.arm(handOver - ran)
	} else if rd.state.CompareAndSwap(busy, passedOn) {
		rd.c.startReader()
	}
}

// idle stops the timer before the reader waits: nothing runs.
func (rd *reader) idle() {
	if rd.timer.Stop() {
		rd.armed.Store(false)
	}
}

// loop reads requests until the connection ends or another reads.
func (rd *reader) loop() error {
	c := rd.c
	for {
		if c.br.Buffered() == 0 {
			rd.idle()
		}
		size, err := c.frame()
		if err != nil {
			return err
		}
		if err := c.backlog(size); err != nil {
			return err
		}
		r, err := c.read(size)
		if err != nil {
			return err
		}
		c.srv.stats.in.Add(int64(size))
		if c.trace {
			c.srv.lg.Log(c.base, levelTrace, "9p", "t", r.String())
		}
		switch {
		case r.kind == proto.Tversion:
			if err := c.version(r); err != nil {
				return err
			}
			continue
		case c.s.msize == 0:
			return frameError(r.kind, "before Tversion")
		}
		c.srv.stats.requests[r.kind-100].Add(1)
		if r.kind == proto.Tflush {
			c.flush(r)
		} else if c.dispatch(r) && !rd.run(r) {
			return nil
		}
	}
}

// frame waits for the next message and gives its size. What is queued for
// the client goes out first.
func (c *conn) frame() (int, error) {
	if c.br.Buffered() < 7 {
		c.out.drain()
		if c.br.Buffered() == 0 {
			if _, err := c.br.Peek(1); err != nil {
				return 0, err
			}
		}
	}
	// The message has begun, and is to be here whole before long.
	if c.br.Buffered() < 7 && c.attached.Load() {
		c.deadline(time.Now().Add(c.srv.limits.Frame))
		defer c.deadline(time.Time{})
	}
	h, err := c.br.Peek(7)
	if err != nil {
		return 0, cut(err)
	}
	size, kind := le.Uint32(h), h[4]
	limit := c.s.msize
	if !c.attached.Load() {
		limit = maxHello
	}
	if size < 7 || size > limit {
		return 0, frameError(kind, fmt.Sprintf("size %d", size))
	}
	if kind != proto.Twrite && size > maxCodec {
		return 0, frameError(kind, fmt.Sprintf("size %d", size))
	}
	return int(size), nil
}

func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// backlog waits until there is memory for a message of the size. When no more
// is read, what has come with what was read is taken still: a client sends at
// once what belongs together.
func (c *conn) backlog(size int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.inq > 0 && c.inq+size > c.srv.share() && !c.closing {
		c.mu.Unlock()
		c.out.drain()
		c.mu.Lock()
		if c.inq > 0 && c.inq+size > c.srv.share() && !c.closing {
			c.changed.Wait()
		}
	}
	if c.closing && (c.dead || size > c.br.Buffered()) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// read reads a message of the size. It never takes more memory than four
// times what has arrived.
func (c *conn) read(size int) (*request, error) {
	if size > c.br.Buffered() && c.attached.Load() {
		c.deadline(time.Now().Add(c.srv.limits.Frame))
		defer c.deadline(time.Time{})
	}
	h, err := c.br.Peek(min(size, putHeader))
	if err != nil {
		return nil, cut(err)
	}
	r := &request{kind: h[4], tag: le.Uint16(h[5:]), cost: size + 512}
	if r.kind == proto.Twrite {
		if size < putHeader || le.Uint32(h[19:]) != uint32(size-putHeader) {
			return nil, frameError(r.kind, "count")
		}
		r.fid, r.off, r.count = le.Uint32(h[7:]), le.Uint64(h[11:]), uint32(size-putHeader)
		c.br.Discard(putHeader)
		r.data, err = c.body(size - putHeader)
		return r, err
	}
	f, err := c.br.Peek(min(size, inBuffer))
	if err != nil {
		return nil, cut(err)
	}
	if size <= inBuffer {
		defer c.br.Discard(size)
	} else {
		b, err := c.body(size)
		if err != nil {
			return nil, err
		}
		defer c.srv.pool.put(b)
		f = b.b[:size]
	}
	if r.kind == proto.Tread {
		if err := check(f); err != nil {
			return nil, err
		}
		r.fid, r.off, r.count = le.Uint32(f[7:]), le.Uint64(f[11:]), le.Uint32(f[19:])
		return r, nil
	}
	if r.kind&1 != 0 {
		return nil, frameError(r.kind, "not a request")
	}
	r.call, err = decode(f)
	return r, err
}

// body reads n bytes into a buffer that grows with what arrives.
func (c *conn) body(n int) (*buffer, error) {
	b := c.srv.pool.get(min(n, inBuffer))
	for k := 0; k < n; {
		if k == len(b.b) {
			g := c.srv.pool.get(min(n, 4*k))
			copy(g.b, b.b)
			c.srv.pool.put(b)
			b = g
		}
		j, err := io.ReadFull(c.br, b.b[k:min(n, len(b.b))])
		k += j
		if err != nil {
			c.srv.pool.put(b)
			return nil, cut(err)
		}
	}
	return b, nil
}

// version ends all that was and begins anew.
func (c *conn) version(r *request) error {
	c.mu.Lock()
	c.mute = true
	c.cancelAll()
	for len(c.tags) > 0 {
		c.changed.Wait()
	}
	c.mute = false
	c.mu.Unlock()
	c.s.end()
	reply, err := c.srvc.Version(c.s, r.call.(*proto.TRVersion))
	if err != nil {
		return err
	}
	c.reply(reply)
	return nil
}

// reply queues a message that answers no request in the table.
func (c *conn) reply(m proto.FCall) {
	if c.trace {
		c.srv.lg.Log(c.base, levelTrace, "9p", "r", m.String())
	}
	c.out.wait()
	c.out.put(1, func(b []byte) []byte { return append(b, m.Compose()...) })
}

// flush ends the request with the old tag and answers once it has ended. Of
// what succeeded all the same the reply goes out first: its effect is there.
func (c *conn) flush(r *request) {
	old := r.call.(*proto.TFlush).Oldtag
	c.out.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tags[r.tag] != nil {
		c.refuse(r.tag, "tag in use")
		return
	}
	o := c.tags[old]
	c.tags[r.tag] = r
	c.inq += r.cost
	if o == nil {
		c.end(r, nil)
		return
	}
	c.srv.stats.flushed.Add(1)
	o.flushes = append(o.flushes, r)
	o.flushed = true
	if o.cancel != nil {
		o.cancel()
	}
	if o.state != running && o.kind != proto.Tflush {
		c.end(o, nil)
	}
}

// refuse answers a request that never got into the table; mu is held.
func (c *conn) refuse(tag uint16, text string) {
	c.srv.stats.errors.Add(1)
	m := rerror(tag, text)
	c.out.put(1, func(b []byte) []byte { return append(b, m.Compose()...) })
}

// dispatch puts a request into its lanes, and has it run if it may. It tells
// whether the reader is to do so itself.
func (c *conn) dispatch(r *request) bool {
	c.out.wait()
	c.mu.Lock()
	if c.tags[r.tag] != nil || r.tag == noTag {
		c.refuse(r.tag, "tag in use")
		c.mu.Unlock()
		c.srv.pool.put(r.data)
		return false
	}
	if c.dead {
		c.mu.Unlock()
		c.srv.pool.put(r.data)
		return false
	}
	fid, order, quick := r.fid, alone, false
	switch t := r.call.(type) {
	case nil:
		switch {
		case r.kind == proto.Twrite:
			order = change
		case c.s.live(fid):
			// What a read is, is known only when the fid is open. One sent
			// before the reply to its Topen takes its chance.
			order, r.live = turn, true
		case c.s.listed(fid):
			order = turn
		default:
			order = shared
		}
	case *proto.TAttach:
		fid, quick = t.Fid, t.Aname == ""
	case *proto.TAuth:
		fid, quick = t.Afid, true
	case *proto.TWalk:
		fid = t.Fid
		if t.Newfid != fid {
			order = shared
			c.join(r, t.Newfid, alone)
		}
		quick = len(t.Wname) == 0
	case *proto.TOpen:
		fid = t.Fid
	case *proto.TCreate:
		fid = t.Fid
	case *proto.TClunk:
		fid = t.Fid
		c.wake(fid)
		quick = c.s.plain(fid)
	case *proto.TRemove:
		fid = t.Fid
		c.wake(fid)
	case *proto.TStat:
		fid, order, quick = t.Fid, shared, true
	case *proto.TWstat:
		fid, order = t.Fid, change
	}
	if r.live && c.blocked >= c.srv.limits.Blocked {
		c.refuse(r.tag, ename(syscall.EAGAIN))
		c.mu.Unlock()
		return false
	}
	c.tags[r.tag] = r
	c.inq += r.cost
	if r.live {
		c.blocked++
	}
	c.join(r, fid, order)
	if !r.free() {
		c.mu.Unlock()
		return false
	}
	if quick {
		// It touches tables in memory and Stat, which never block.
		r.state = running
		c.mu.Unlock()
		m, buf, n := c.run(r)
		c.finish(r, m, buf, n, false, false)
		return false
	}
	if !r.live && c.running < c.srv.limits.Running && !c.heavyNext() {
		c.running++
		c.enter(r)
		c.mu.Unlock()
		return true
	}
	c.start(r)
	c.mu.Unlock()
	return false
}

// heavyRead is a Tread that is worth another thread.
const heavyRead = 32 << 10

// heavyNext tells whether what has arrived after this request is work that
// another thread had better do meanwhile.
func (c *conn) heavyNext() bool {
	n := c.br.Buffered()
	if n == 0 {
		return false
	}
	h, err := c.br.Peek(min(n, putHeader))
	if err != nil || len(h) < putHeader {
		return len(h) < 5 || h[4] == proto.Tread || h[4] == proto.Twrite
	}
	return h[4] == proto.Twrite || h[4] == proto.Tread && le.Uint32(h[19:]) >= heavyRead
}

func (c *conn) join(r *request, fid uint32, o order) {
	l := c.lanes[fid]
	if l == nil {
		l = &lane{fid: fid}
		c.lanes[fid] = l
	}
	k := &r.links[r.n]
	r.n++
	k.r, k.order = r, o
	l.join(k)
}

// wake cancels the reads of a fid that may wait for ever: it is to go.
func (c *conn) wake(fid uint32) {
	l := c.lanes[fid]
	if l == nil {
		return
	}
	for k := l.waiting.first; k != nil; {
		r := k.r
		k = k.next
		if r.live {
			c.end(r, rerror(r.tag, ename(syscall.EINTR)))
		}
	}
	for k := l.on.first; k != nil; {
		r := k.r
		k = k.next
		switch {
		case !r.live:
		case r.state == running:
			r.cancel()
		default:
			c.end(r, rerror(r.tag, ename(syscall.EINTR)))
		}
	}
}

// start runs a request that is free, or lines it up; mu is held.
func (c *conn) start(r *request) {
	if c.dead || c.mute || !r.live && c.running >= c.srv.limits.Running {
		r.state = queued
		c.ready.push(r)
		return
	}
	if !r.live {
		c.running++
	}
	c.launch(r)
}

// enter makes a request a running one; mu is held.
func (c *conn) enter(r *request) {
	r.state = running
	r.ctx, r.cancel = context.WithCancel(c.base)
}

func (c *conn) launch(r *request) {
	c.enter(r)
	c.work.Go(func() {
		m, buf, n := c.run(r)
		r.cancel()
		c.finish(r, m, buf, n, true, true)
	})
}

// run gives the reply to a request: a message, or a buffer with n bytes of
// an Rread.
func (c *conn) run(r *request) (m proto.FCall, buf *buffer, n int) {
	var err error
	switch t := r.call.(type) {
	case nil:
		if r.kind == proto.Twrite {
			k, err := c.s.write(r.ctx, r.fid, r.off, r.data.b[:r.count])
			if err != nil {
				return rerror(r.tag, refusal(err)), nil, 0
			}
			c.srv.stats.written.Add(int64(k))
			return &proto.RWrite{Header: header(proto.Rwrite, r.tag), Count: uint32(k)}, nil, 0
		}
		mem := replySpace{c: c}
		n, err := c.s.read(r.ctx, r.fid, r.off, r.count, &mem)
		if err != nil {
			if mem.buf != nil {
				c.out.free(mem.buf)
			}
			return rerror(r.tag, ename(err)), nil, 0
		}
		c.srv.stats.read.Add(int64(n))
		if b := mem.buf; n > 2048 {
			b.b = append(appendHeader(b.b[:0], readHeader+n, proto.Rread, r.tag), byte(n), byte(n>>8), byte(n>>16), byte(n>>24))[:len(b.b)]
			return nil, b, readHeader + n
		}
		// A short one is copied, so that many go out in one piece.
		m := &shortRead{tag: r.tag}
		if mem.buf != nil {
			m.data = append(m.data, mem.buf.b[readHeader:readHeader+n]...)
			c.out.free(mem.buf)
		}
		return m, nil, 0
	case *proto.TAuth:
		m, err = c.srvc.Auth(c.s, t)
	case *proto.TAttach:
		m, err = c.srvc.Attach(c.s, t)
		if _, ok := m.(*proto.RAttach); ok && !c.attached.Swap(true) {
			c.srv.attached(c)
			c.deadline(time.Time{})
		}
	case *proto.TWalk:
		m, err = c.srvc.Walk(c.s, t)
	case *proto.TOpen:
		m, err = c.srvc.Open(c.s, t)
	case *proto.TCreate:
		m, err = c.srvc.Create(c.s, t)
	case *proto.TClunk:
		m, err = c.srvc.Clunk(c.s, t)
	case *proto.TRemove:
		m, err = c.srvc.Remove(c.s, t)
	case *proto.TStat:
		m, err = c.srvc.Stat(c.s, t)
	case *proto.TWstat:
		m, err = c.srvc.Wstat(c.s, t)
	}
	if err != nil {
		m = rerror(r.tag, ename(err))
	}
	return m, nil, 0
}

// shortRead is an Rread.
type shortRead struct {
	proto.FCall
	tag  uint16
	data []byte
}

func (m *shortRead) GetTag() uint16 { return m.tag }
func (m *shortRead) String() string {
	return fmt.Sprintf("rread: [tag: %d, count: %d]", m.tag, len(m.data))
}
func (m *shortRead) Compose() []byte {
	b := appendHeader(make([]byte, 0, readHeader+len(m.data)), readHeader+len(m.data), proto.Rread, m.tag)
	return append(le.AppendUint32(b, uint32(len(m.data))), m.data...)
}

// replySpace is the memory of an Rread, header and all.
type replySpace struct {
	c   *conn
	buf *buffer
}

func (m *replySpace) room(ctx context.Context, n int) ([]byte, error) {
	c := m.c
	size := classSize(class(readHeader + n))
	var b *buffer
	if m.buf == nil {
		if err := c.acquire(ctx, size); err != nil {
			return nil, err
		}
		b = c.srv.pool.get(size)
	} else {
		// Whoever holds some must not wait for more.
		if !c.tryAcquire(size) {
			return nil, nil
		}
		b = c.srv.pool.get(size)
		copy(b.b, m.buf.b)
		c.out.free(m.buf)
	}
	m.buf = b
	return b.b[readHeader : readHeader+n], nil
}

func (c *conn) tryAcquire(n int) bool {
	c.hold.Lock()
	defer c.hold.Unlock()
	if c.held > 0 && c.held+n > c.srv.share() {
		return false
	}
	c.held += n
	return true
}

// acquire waits until there is memory for a reply of n bytes.
func (c *conn) acquire(ctx context.Context, n int) error {
	for !c.tryAcquire(n) {
		c.hold.Lock()
		if c.held == 0 {
			c.hold.Unlock()
			continue
		}
		if c.freed == nil {
			c.freed = make(chan struct{})
		}
		freed := c.freed
		c.hold.Unlock()
		c.out.drain() // what the reader has left for later may be it
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *conn) release(n int) {
	if n == 0 {
		return
	}
	c.hold.Lock()
	defer c.hold.Unlock()
	c.held -= n
	if c.freed != nil {
		close(c.freed)
		c.freed = nil
	}
}

// finish queues the reply of a request that ran and starts what waited for
// it. Counted says that it was counted in running, push that it is to be
// written now.
func (c *conn) finish(r *request, m proto.FCall, buf *buffer, n int, counted, push bool) {
	if c.trace && m != nil {
		c.srv.lg.Log(c.base, levelTrace, "9p", "r", m.String())
	}
	c.out.wait()
	c.mu.Lock()
	if counted && !r.live {
		c.running--
	}
	if buf != nil {
		if c.mute {
			c.out.free(buf)
		} else {
			c.out.putBuffer(buf, n)
		}
		m = nil
	}
	c.end(r, m)
	if next := c.ready.first; next != nil && c.running < c.srv.limits.Running && !c.dead && !c.mute {
		c.ready.remove(next)
		c.running++
		c.launch(next)
	}
	c.mu.Unlock()
	if push {
		c.out.drain()
	}
	if err := c.out.failed(); err != nil {
		c.abort()
	}
}

// end takes a request out of the table, queues its reply m, if any, and the
// Rflushes that waited for it, and starts what is free now; mu is held.
func (c *conn) end(r *request, m proto.FCall) {
	if _, ok := m.(*proto.RError); ok {
		c.srv.stats.errors.Add(1)
		if r.flushed || r.left {
			m = nil
		}
	}
	if m != nil && !c.mute {
		c.out.put(1, func(b []byte) []byte { return append(b, m.Compose()...) })
	}
	if r.state == queued {
		c.ready.remove(r)
	}
	if r.live {
		c.blocked--
	}
	c.srv.pool.put(r.data)
	r.data = nil
	for todo := []*request{r}; len(todo) > 0; todo = todo[1:] {
		t := todo[0]
		delete(c.tags, t.tag)
		c.inq -= t.cost
		if t.kind == proto.Tflush && !c.mute {
			tag := t.tag
			c.out.put(1, func(b []byte) []byte { return appendHeader(b, 7, proto.Rflush, tag) })
		}
		todo = append(todo, t.flushes...)
		t.flushes = nil
	}
	r.state = running // never again to be ended as waiting
	for i := range r.n {
		k := &r.links[i]
		l := k.lane
		l.leave(k, c.start)
		k.lane = nil
		if l.empty() {
			delete(c.lanes, l.fid)
		}
	}
	c.changed.Broadcast()
}

func (r *request) String() string {
	switch {
	case r.call != nil:
		return r.call.String()
	case r.kind == proto.Tread:
		return fmt.Sprintf("tread: [tag: %d, fid: %d, offset: %d, count: %d]", r.tag, r.fid, r.off, r.count)
	}
	return fmt.Sprintf("twrite: [tag: %d, fid: %d, offset: %d, count: %d]", r.tag, r.fid, r.off, r.count)
}

// quiet tells whether an error is only the way connections end.
func quiet(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrClosedPipe)
}
