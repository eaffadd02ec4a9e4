package ninep

import (
	"bufio"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os/user"
	"sync"
	"syscall"
	"time"

	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

// DialOptions say how to dial.
type DialOptions struct {
	// User is the uname of the attach, for servers that look at it; the
	// default is who runs this.
	User string
	// Path is the directory of the server's tree to take for the root.
	Path string
	// Certificate is the client's, for tls; without one it is nobody in
	// particular there.
	Certificate *tls.Certificate
	// Fingerprint is that of the tls server's certificate. Without it, the
	// system's certificate authorities have to vouch for the server.
	Fingerprint string
	// Msize is the largest message; the default is MaxMsize.
	Msize uint32
}

const (
	helloWait = 10 * time.Second // for the server to answer version and attach
	flushWait = 10 * time.Second // for a server to answer a Tflush before it counts as dead
	closeWait = 10 * time.Second // for a server to answer a Tclunk
)

// A Client is a connection to a 9P2000 server. Its calls are pipelined: any
// number may be under way. When the connection is lost every call ends.
type Client struct {
	addr  string
	nc    net.Conn
	br    *bufio.Reader
	out   *outbox
	pool  buffers
	msize uint32
	ours  bool // the server is one of this package: requests are done in order, Kinds are told
	root  *dir

	reading sync.WaitGroup
	dead    chan struct{} // closed when err is set

	mu    sync.Mutex
	err   error // why the connection is lost
	calls map[uint16]*call
	tag   uint16
	fids  []uint32 // free ones
	fid   uint32   // never used, this and above
	lists []*parked
	kept  map[string]*kept // by their paths
	uses  uint64           // of them
	moves uint64           // times that this client changed names
}

// A call is a request that waits for its reply.
type call struct {
	msg  func(tag uint16) []byte
	want byte
	dst  []byte // for an Rread's data
	n    int    // of it, got

	tag   uint16
	reply proto.FCall
	err   error
	done  chan struct{}
	then  func()  // runs when it is done and nobody waits for it
	body  *buffer // the whole message, if it is large, in place of msg
	size  int
}

// Dial connects to the server at tcp!host!port, tls!host!port or unix!path
// and attaches.
func Dial(ctx context.Context, addr string, opt DialOptions) (*Client, error) {
	network, target, err := parseAddr(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	var d net.Dialer
	var nc net.Conn
	if network == "tls" {
		nc, err = (&tls.Dialer{NetDialer: &d, Config: clientTLS(opt)}).DialContext(ctx, "tcp", target)
	} else {
		nc, err = d.DialContext(ctx, network, target)
	}
	if err != nil {
		return nil, err
	}
	return NewClient(ctx, nc, addr, opt)
}

func clientTLS(opt DialOptions) *tls.Config {
	t := &tls.Config{MinVersion: tls.VersionTLS13}
	if opt.Certificate != nil {
		t.Certificates = []tls.Certificate{*opt.Certificate}
	}
	if want := plainPrint(opt.Fingerprint); want != "" {
		// The fingerprint stands for all that would be verified.
		t.InsecureSkipVerify = true
		t.VerifyConnection = func(s tls.ConnectionState) error {
			got := Fingerprint(s.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
				return fmt.Errorf("server's certificate has another fingerprint: %s", got)
			}
			return nil
		}
	}
	return t
}

// NewClient attaches over a connection that is there. It is the client's
// from now on; addr is for messages.
func NewClient(ctx context.Context, nc net.Conn, addr string, opt DialOptions) (*Client, error) {
	def(&opt.Msize, MaxMsize)
	c := &Client{
		addr: addr, nc: nc, br: bufio.NewReaderSize(nc, inBuffer), msize: min(opt.Msize, MaxMsize),
		dead: make(chan struct{}), calls: make(map[uint16]*call), fid: 1,
		kept: make(map[string]*kept),
	}
	c.out = newOutbox(nc, &c.pool, func(int, int, int) {})
	c.reading.Go(func() {
		c.lose(c.read())
		// Nobody writes into the callers' memory any more.
		c.mu.Lock()
		calls := c.calls
		c.calls = nil
		c.mu.Unlock()
		for _, k := range calls {
			k.err = c.err
			c.finished(k)
		}
	})
	if err := c.hello(ctx, opt); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return c, nil
}

func (c *Client) hello(ctx context.Context, opt DialOptions) error {
	v := &call{want: proto.Rversion, tag: noTag, msg: func(tag uint16) []byte {
		return (&proto.TRVersion{Header: header(proto.Tversion, tag), Msize: c.msize, Version: "9P2000"}).Compose()
	}}
	if err := c.do(ctx, v); err != nil {
		return err
	}
	r := v.reply.(*proto.TRVersion)
	if r.Version != "9P2000" {
		return fmt.Errorf("speaks %q, not 9P2000", r.Version)
	}
	if r.Msize < minMsize || r.Msize > c.msize {
		return fmt.Errorf("msize of %d", r.Msize)
	}
	c.mu.Lock()
	c.msize = r.Msize
	c.mu.Unlock()
	if opt.User == "" {
		opt.User = "none"
		if u, err := user.Current(); err == nil {
			opt.User = u.Username
		}
	}
	a := &call{want: proto.Rattach, msg: func(tag uint16) []byte {
		return (&proto.TAttach{Header: header(proto.Tattach, tag), Fid: 0, Afid: noFid, Uname: opt.User, Aname: opt.Path}).Compose()
	}}
	if err := c.do(ctx, a); err != nil {
		return err
	}
	s := c.statCall(0)
	if err := c.do(ctx, s); err != nil {
		return err
	}
	st := s.reply.(*proto.RStat).Stat
	if st.Mode&proto.DMDIR == 0 {
		return errors.New("root is not a directory")
	}
	c.ours = st.Type == kindMark
	c.root = &dir{node{c: c, st: c.stat(&st)}}
	return nil
}

// Root is the server's tree. Its nodes are names: a Stat tells what was true
// when the node was looked up, and all else asks the server.
func (c *Client) Root() fs.Dir { return c.root }

// Done is closed when the connection is lost or closed.
func (c *Client) Done() <-chan struct{} { return c.dead }

// Err tells why the connection is lost, nil if it is not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection, and all calls.
func (c *Client) Close() error {
	c.lose(net.ErrClosed)
	c.reading.Wait()
	return nil
}

// lose ends the connection, and with it every call.
func (c *Client) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if e := c.out.failed(); e != nil {
		err = e
	} else if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	c.err = fs.Class(fmt.Errorf("%s: connection lost: %w", c.addr, err), syscall.EIO)
	close(c.dead)
	c.nc.Close()
}

// finished tells whoever waits for the call.
func (c *Client) finished(k *call) {
	c.mu.Lock()
	then := k.then
	close(k.done)
	c.mu.Unlock()
	if then != nil {
		then()
	}
}

// abandon leaves a call to itself: then runs when it is done.
func (c *Client) abandon(k *call, then func()) {
	c.mu.Lock()
	select {
	case <-k.done:
		c.mu.Unlock()
		then()
	default:
		k.then = then
		c.mu.Unlock()
	}
}

// send queues a call's message.
func (c *Client) send(k *call) error {
	c.out.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	k.done = make(chan struct{})
	if c.err == nil && len(c.calls) >= noTag-1 {
		k.err = errors.New("too many calls at a time")
		close(k.done)
		return k.err
	}
	if c.err != nil {
		k.err = c.err
		close(k.done)
		if k.body != nil {
			c.pool.put(k.body)
		}
		return c.err
	}
	if k.want != proto.Rversion {
		for {
			c.tag++
			if c.tag != noTag && c.calls[c.tag] == nil {
				break
			}
		}
		k.tag = c.tag
	}
	c.calls[k.tag] = k
	if k.body != nil {
		le.PutUint16(k.body.b[5:], k.tag)
		c.out.putBuffer(k.body, k.size)
		return nil
	}
	c.out.put(1, func(b []byte) []byte { return append(b, k.msg(k.tag)...) })
	return nil
}

// wait waits for a call that was sent. When ctx ends first the call is
// flushed; what it did before that is its result all the same.
func (c *Client) wait(ctx context.Context, k *call) error {
	select {
	case <-k.done:
		return k.err
	default:
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
	}
	if k.want == proto.Rversion || k.want == proto.Rattach {
		c.lose(ctx.Err()) // without them there is no connection
		<-k.done
		return k.err
	}
	f := &call{want: proto.Rflush, msg: func(tag uint16) []byte {
		return (&proto.TFlush{Header: header(proto.Tflush, tag), Oldtag: k.tag}).Compose()
	}}
	if c.send(f) == nil {
		c.out.drain()
		late := time.NewTimer(flushWait)
		defer late.Stop()
		select {
		case <-f.done:
		case <-late.C:
			c.lose(errors.New("server does not answer"))
			<-f.done
		}
	}
	// The reply came before the Rflush, or will not come.
	c.mu.Lock()
	if c.calls[k.tag] == k {
		delete(c.calls, k.tag)
		k.err = ctx.Err()
		close(k.done)
	}
	c.mu.Unlock()
	<-k.done
	return k.err
}

// do makes calls, each of which needs the one before. Our own servers do
// requests on a fid in order, so all go out at once; others get one at a
// time. The error is the first; later calls have errors then too.
func (c *Client) do(ctx context.Context, calls ...*call) (err error) {
	if err := ctx.Err(); err != nil {
		for _, k := range calls {
			k.err = err
		}
		return err
	}
	if !c.ours && len(calls) > 1 {
		for _, k := range calls {
			if k.err = err; err == nil {
				err = c.do(ctx, k)
			}
		}
		return err
	}
	for _, k := range calls {
		c.send(k) // the error is the call's
	}
	c.out.drain()
	return c.waitAll(ctx, calls)
}

func (c *Client) waitAll(ctx context.Context, calls []*call) (err error) {
	for _, k := range calls {
		if e := c.wait(ctx, k); err == nil {
			err = e
		}
	}
	return err
}

// newFid gives a fid to walk to.
func (c *Client) newFid() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.fids); n > 0 {
		f := c.fids[n-1]
		c.fids = c.fids[:n-1]
		return f
	}
	c.fid++
	return c.fid - 1
}

func (c *Client) freeFid(f uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fids = append(c.fids, f)
}

func fidCall(kind byte, fid uint32) *call {
	return &call{want: kind + 1, msg: func(tag uint16) []byte {
		return le.AppendUint32(appendHeader(make([]byte, 0, 11), 11, kind, tag), fid)
	}}
}

func (c *Client) statCall(fid uint32) *call { return fidCall(proto.Tstat, fid) }

func walkCall(fid, newfid uint32, names []string) *call {
	return &call{want: proto.Rwalk, msg: func(tag uint16) []byte {
		return (&proto.TWalk{
			Header: header(proto.Twalk, tag), Fid: fid, Newfid: newfid, Nwname: uint16(len(names)), Wname: names,
		}).Compose()
	}}
}

// forgetting is a clunk that nobody waits for; if the server does not know
// the fid, it is free all the same.
func (c *Client) forgetting(fid uint32) *call {
	k := fidCall(proto.Tclunk, fid)
	k.then = func() { c.freeFid(fid) }
	return k
}

func (c *Client) forget(fid uint32) {
	c.send(c.forgetting(fid)) // without a connection there is nothing to forget
	c.out.drain()
}

// read takes replies until the connection ends.
func (c *Client) read() error {
	for {
		h, err := c.br.Peek(7)
		if err != nil {
			return err
		}
		size, kind, tag := le.Uint32(h), h[4], le.Uint16(h[5:])
		c.mu.Lock()
		k, msize := c.calls[tag], c.msize
		c.mu.Unlock()
		switch {
		case size < 7 || size > msize:
			return frameError(kind, fmt.Sprintf("size %d", size))
		case k == nil:
			return frameError(kind, "answers nothing")
		case kind != k.want && kind != proto.Rerror:
			return frameError(kind, fmt.Sprintf("answers type %d", k.want-1))
		}
		if kind == proto.Rread {
			err = c.data(k, int(size))
		} else {
			k.reply, err = c.message(int(size))
		}
		if err != nil {
			return cut(err)
		}
		if e, ok := k.reply.(*proto.RError); ok {
			k.err = fromText(e.Ename)
		}
		c.mu.Lock()
		delete(c.calls, tag)
		c.mu.Unlock()
		c.finished(k)
	}
}

// data reads an Rread's data to where its caller wants it.
func (c *Client) data(k *call, size int) error {
	h, err := c.br.Peek(min(size, readHeader))
	if err != nil {
		return err
	}
	if size < readHeader || int64(le.Uint32(h[7:])) != int64(size-readHeader) {
		return frameError(proto.Rread, "count")
	}
	if size-readHeader > len(k.dst) {
		return frameError(proto.Rread, "more than was asked for")
	}
	c.br.Discard(readHeader)
	k.n, err = io.ReadFull(c.br, k.dst[:size-readHeader])
	return err
}

// message reads any other message.
func (c *Client) message(size int) (proto.FCall, error) {
	if size > maxCodec {
		return nil, fmt.Errorf("%w: size %d", errFrame, size)
	}
	if size <= inBuffer {
		f, err := c.br.Peek(size)
		if err != nil {
			return nil, err
		}
		defer c.br.Discard(size)
		return decode(f)
	}
	f := make([]byte, 0, inBuffer)
	for len(f) < size {
		p, err := c.br.Peek(min(size-len(f), inBuffer))
		if err != nil {
			return nil, err
		}
		f = append(f, p...)
		c.br.Discard(len(p))
	}
	return decode(f)
}
