package ninep

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"sync"
	"time"

	"harvest/fs"
)

const levelTrace = slog.LevelDebug

// Limits bound what clients may cost. A zero field has its default.
type Limits struct {
	Conns     int           // connections: 512
	PerAddr   int           // of them from one address that is not this machine: 64
	HalfOpen  int           // of them not attached yet; one more and the oldest goes: 64
	Fids      int           // of a connection: 16384
	Running   int           // requests of a connection that run at a time: 64
	Blocked   int           // reads of a connection that wait for a Live file: 256
	Memory    int64         // bytes of messages, all connections together, and no less than 1 MiB each: 32 MiB
	Handshake time.Duration // from connecting to the first attach: 10 s
	Frame     time.Duration // from a message's first byte to its last: 30 s
	Grace     time.Duration // for requests to end when the server does: 2 s
}

// maxShare is a connection's part of Limits.Memory, each way.
const maxShare = 8 << 20

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// A Server serves trees over 9P2000.
type Server struct {
	lg      *slog.Logger
	limits  Limits
	started time.Time
	owner   string // of nodes without one: who runs this
	group   string
	unmark  bool // stats do not tell Kinds, as others' do not
	pool    buffers
	stats   counters

	mu    sync.Mutex
	conns map[net.Conn]string // their addresses
	addrs map[string]int
	half  []net.Conn // not attached yet, the oldest first
}

// NewServer makes a server; Serve and ServeConn may be called on it any
// number of times.
func NewServer(lg *slog.Logger, lim Limits) *Server {
	def(&lim.Conns, 512)
	def(&lim.PerAddr, 64)
	def(&lim.HalfOpen, 64)
	def(&lim.Fids, 16384)
	def(&lim.Running, 64)
	def(&lim.Blocked, 256)
	def(&lim.Memory, 32<<20)
	def(&lim.Handshake, 10*time.Second)
	def(&lim.Frame, 30*time.Second)
	def(&lim.Grace, 2*time.Second)
	v := &Server{
		lg: lg, limits: lim, started: time.Now(),
		conns: make(map[net.Conn]string), addrs: make(map[string]int),
	}
	me := local(os.Getuid(), nil)
	v.owner, v.group = me.Name, me.Name
	if len(me.Groups) > 0 {
		v.group = me.Groups[0]
	}
	return v
}

// share is how many bytes a connection may hold each way.
func (v *Server) share() int {
	n := max(v.stats.conns.Load(), 1)
	return int(min(max(v.limits.Memory/n, MaxMsize), maxShare))
}

// Serve answers l's connections with the tree under root until ctx ends. It
// closes l and returns when every request has ended and every handle is
// closed.
func (v *Server) Serve(ctx context.Context, l *Listener, root fs.Dir) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		nc, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			return nil
		}
		if err != nil {
			// Out of descriptors, most likely: they come back.
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			v.lg.Warn("accept", "addr", l.String(), "err", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if !v.admit(nc) {
			v.stats.refused.Add(1)
			v.lg.Warn("9p: too many connections", "remote", nc.RemoteAddr())
			nc.Close()
			continue
		}
		conns.Go(func() {
			defer v.leave(nc)
			defer nc.Close()
			u, err := l.user(ctx, nc, v.limits.Handshake)
			if err == nil {
				v.lg.Debug("9p: connection", "remote", nc.RemoteAddr(), "user", u.Name, "owner", u.Owner, "readonly", u.ReadOnly)
				c := v.newConn(ctx, nc, root, u)
				err = c.serve(ctx)
			}
			if !quiet(err) {
				v.stats.broken.Add(1)
				v.lg.Warn("9p: connection", "remote", nc.RemoteAddr(), "err", err)
			}
		})
	}
}

// ServeConn answers one connection, for a user found out by other means,
// until it ends or ctx does. It closes nc.
func (v *Server) ServeConn(ctx context.Context, nc net.Conn, root fs.Dir, u *fs.User) error {
	if !v.admit(nc) {
		v.stats.refused.Add(1)
		nc.Close()
		return errors.New("too many connections")
	}
	defer v.leave(nc)
	err := v.newConn(ctx, nc, root, u).serve(ctx)
	if quiet(err) {
		return nil
	}
	v.stats.broken.Add(1)
	return err
}

// admit counts a connection in, if there is room for it. Those that have
// connected and said nothing make room for it.
func (v *Server) admit(nc net.Conn) bool {
	addr := ""
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		addr = a.IP.String()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if addr != "" && v.addrs[addr] >= v.limits.PerAddr {
		return false
	}
	if len(v.half) >= v.limits.HalfOpen || len(v.conns) >= v.limits.Conns && len(v.half) > 0 {
		v.half[0].Close()
		v.drop(v.half[0])
		v.stats.evicted.Add(1)
	}
	if len(v.conns) >= v.limits.Conns {
		return false
	}
	v.half = append(v.half, nc)
	v.conns[nc] = addr
	if addr != "" {
		v.addrs[addr]++
	}
	v.stats.conns.Add(1)
	v.stats.accepted.Add(1)
	return true
}

// drop takes a connection out of the books; mu is held.
func (v *Server) drop(nc net.Conn) {
	addr, ok := v.conns[nc]
	if !ok {
		return
	}
	delete(v.conns, nc)
	if addr != "" {
		if v.addrs[addr]--; v.addrs[addr] == 0 {
			delete(v.addrs, addr)
		}
	}
	v.unhalf(nc)
	v.stats.conns.Add(-1)
}

func (v *Server) unhalf(nc net.Conn) {
	for i, h := range v.half {
		if h == nc {
			v.half = append(v.half[:i], v.half[i+1:]...)
			return
		}
	}
}

func (v *Server) leave(nc net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop(nc)
}

func (v *Server) attached(c *conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unhalf(c.nc)
	v.stats.attached.Add(1)
}

// ListenOptions say how to listen.
type ListenOptions struct {
	// Insecure lets a tcp address be another than this machine's own. Who
	// comes that way is nobody in particular and may only read.
	Insecure bool
	// Certificate is the server's, for tls.
	Certificate *tls.Certificate
	// Users is a file that tells users by their certificates; see
	// docs/9p.8.md. It is read for each connection.
	Users string
}

// A Listener waits for connections at an address.
type Listener struct {
	net.Listener
	network string
	opt     ListenOptions
}

// Listen listens at tcp!host!port, tls!host!port or unix!path. A socket that
// nobody listens at any more is replaced.
func Listen(ctx context.Context, addr string, opt ListenOptions) (*Listener, error) {
	network, target, err := parseAddr(addr)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l := &Listener{network: network, opt: opt}
	switch network {
	case "unix":
		if c, err := net.Dial("unix", target); err == nil {
			c.Close()
			return nil, fmt.Errorf("%s: somebody listens there already", addr)
		}
		if st, err := os.Lstat(target); err == nil && st.Mode().Type() == os.ModeSocket {
			if err := os.Remove(target); err != nil {
				return nil, err
			}
		}
		if l.Listener, err = lc.Listen(ctx, "unix", target); err != nil {
			return nil, err
		}
		// The kernel tells who connects, so all may.
		if err := os.Chmod(target, 0o666); err != nil {
			l.Close()
			return nil, err
		}
		return l, nil
	case "tls":
		if opt.Certificate == nil {
			return nil, fmt.Errorf("%s: no certificate", addr)
		}
	case "tcp":
		a, err := net.ResolveTCPAddr("tcp", target)
		if err != nil {
			return nil, err
		}
		if !a.IP.IsLoopback() && !opt.Insecure {
			return nil, fmt.Errorf("%s: not this machine's own address, and tcp hides nothing (use tls, or --insecure)", addr)
		}
		target = a.String()
	}
	if l.Listener, err = lc.Listen(ctx, "tcp", target); err != nil {
		return nil, err
	}
	if network == "tls" {
		l.Listener = tls.NewListener(l.Listener, &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{*opt.Certificate},
			// Any certificate will do: its fingerprint is what counts, and
			// the handshake proves that the client has the key.
			ClientAuth: tls.RequestClientCert,
			// Resumed sessions would skip the proof.
			SessionTicketsDisabled: true,
		})
	}
	return l, nil
}

// String is the address as a dial string, with the port that was found.
func (l *Listener) String() string {
	if l.network == "unix" {
		return "unix!" + l.Addr().String()
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return l.network + "!" + l.Addr().String()
	}
	return l.network + "!" + host + "!" + port
}

// user finds out who has connected.
func (l *Listener) user(ctx context.Context, nc net.Conn, wait time.Duration) (*fs.User, error) {
	known, err := readUsers(l.opt.Users)
	if err != nil {
		return nil, err
	}
	switch c := nc.(type) {
	case *tls.Conn:
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if err := c.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		if certs := c.ConnectionState().PeerCertificates; len(certs) > 0 {
			return known.certified(certs[0].Raw), nil
		}
	case *net.UnixConn:
		if uid, ok := unixPeer(c); ok {
			return local(uid, known), nil
		}
	case *net.TCPConn:
		if uid, ok := tcpPeer(c); ok {
			return local(uid, known), nil
		}
	}
	return nobody(), nil
}

// local is the user of this machine with the uid. Who runs the server and
// root own the tree.
func local(uid int, known users) *fs.User {
	u := &fs.User{Name: fmt.Sprint(uid), Owner: uid == 0 || uid == os.Getuid(), Local: true}
	if who, err := user.LookupId(u.Name); err == nil {
		u.Name = who.Username
		ids, _ := who.GroupIds() // without them, it has fewer rights
		for _, id := range ids {
			if g, err := user.LookupGroupId(id); err == nil {
				u.Groups = append(u.Groups, g.Name)
			}
		}
	}
	if k := known.named(u.Name); k != nil {
		u.Groups = append(u.Groups, k.Groups...)
		u.Owner = u.Owner || k.Owner
	}
	return u
}

func nobody() *fs.User { return &fs.User{Name: "none", ReadOnly: true} }
