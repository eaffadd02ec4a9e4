// Package gatherd serves a store by the export protocol of the first Harvest:
// lines of text over TCP, answered by streams of SOIF. docs/gatherd.8.md is its
// manual. It is an adapter; the tree has the same streams as since/CURSOR.
package gatherd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// Options say who is served, and as whom. Name, Host and Version are those of
// the Gatherer; what else is zero has a default.
type Options struct {
	Name, Host, Version string

	Rules   []Rule
	DNS     Resolver      // finds names for rules; net.DefaultResolver
	Clients int           // at once; 64
	PerHost int           // of one address; 16
	Idle    time.Duration // until a client has asked or taken something; 1m
	Log     *slog.Logger
}

// A Server serves one store.
type Server struct {
	store *store.Store
	opt   Options

	mu     sync.Mutex
	rules  []Rule
	hosts  map[netip.Addr]int
	counts Counts
}

// Counts are what a Server has done.
type Counts struct {
	Clients  int   // that are connected
	Served   int64 // connections
	Refused  int64 // of them by a rule or a bound
	Requests int64
	Bytes    int64 // sent
}

// New returns a Server of a store.
func New(s *store.Store, opt Options) *Server {
	if opt.DNS == nil {
		opt.DNS = net.DefaultResolver
	}
	if opt.Clients <= 0 {
		opt.Clients = 64
	}
	if opt.PerHost <= 0 {
		opt.PerHost = 16
	}
	if opt.Idle <= 0 {
		opt.Idle = time.Minute
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{store: s, opt: opt, rules: opt.Rules, hosts: make(map[netip.Addr]int)}
}

// Admit has other rules decide who is served from now on.
func (s *Server) Admit(rules []Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = rules
}

func (s *Server) inForce() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules
}

// Counts returns what was done until now.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Serve serves who connects to l until ctx ends, closes l, and returns when the
// last client is gone.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if passing(err) { // and the clients that are here may soon be gone
			s.opt.Log.Warn("gatherd", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if err != nil {
			cancel() // and so l is closed, and so are the clients
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		wg.Go(func() { s.serve(ctx, c) })
	}
}

// passing reports whether a listener may do better the next time.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serve talks to a client until one of the two has enough.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	addr := addrOf(conn.RemoteAddr())
	c := &client{s: s, conn: newSender(conn, s.opt.Idle), in: bufio.NewReaderSize(conn, maxLine), addr: addr}
	defer func() { s.leave(addr, c.requests, c.conn.sent) }()
	switch ok := s.enter(addr); {
	case !ok:
		c.reply(busy, "too many clients; try again later")
		s.refuse(addr, "too many clients")
		return // and waits for nothing
	case !admits(ctx, s.inForce(), addr, s.opt.DNS):
		c.reply(denied, "%s: access denied", conn.RemoteAddr())
		s.refuse(addr, "access denied")
	default:
		c.reply(hello, "HELLO %s, this is the Gatherer %s, Harvest %s; HELP lists the commands", s.opt.Host, s.opt.Name, s.opt.Version)
		c.talk(ctx)
	}
	c.conn.linger()
}

// enter counts a client and reports whether there is room for it.
func (s *Server) enter(addr netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Clients++
	s.counts.Served++
	s.hosts[addr]++
	return s.counts.Clients <= s.opt.Clients && s.hosts[addr] <= s.opt.PerHost
}

func (s *Server) leave(addr netip.Addr, requests, sent int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Clients--
	s.counts.Requests += requests
	s.counts.Bytes += sent
	if s.hosts[addr]--; s.hosts[addr] <= 0 {
		delete(s.hosts, addr)
	}
}

func (s *Server) refuse(addr netip.Addr, why string) {
	s.mu.Lock()
	s.counts.Refused++
	s.mu.Unlock()
	s.opt.Log.Info("gatherd refuses", "client", addr, "why", why)
}

// Codes of replies. Those of the original are not known any more; as with its
// relatives the first digit tells what matters: 0 to 2 is well, 4 and 5 is not.
const (
	hello    = 0
	greeted  = 100
	help     = 110
	set      = 130
	bye      = 199
	info     = 200
	object   = 201
	changes  = 202
	denied   = 403
	absent   = 404
	busy     = 421
	trouble  = 451
	unknown  = 500
	badUsage = 501
)

// A client is one connection.
type client struct {
	s        *Server
	conn     *sender
	in       *bufio.Reader
	addr     netip.Addr
	packing  string // of updates: "", gzip or zstd
	requests int64
	err      error // after which there is nothing more to say
}

// maxLine bounds a command.
const maxLine = 1024

func (c *client) reply(code int, format string, arg ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, arg...)), " ")
	if _, err := fmt.Fprintf(c.conn, "%03d - %s\n", code, text); err != nil && c.err == nil {
		c.err = err
	}
}

// A verb is a command of the protocol.
type verb struct {
	usage, about string
	do           func(*client, context.Context, string)
}

func verbs() []verb {
	return []verb{
		{"HELLO name", "say who you are", (*client).hello},
		{"HELP", "this list", (*client).help},
		{"INFO", "the Gatherer as a SOIF object", (*client).info},
		{"SEND-OBJECT oid", "one object", (*client).sendObject},
		{"SEND-UPDATE timestamp", "what has changed since a time, in seconds since 1970, or a cursor; all since 0", (*client).sendUpdate},
		{"SET compression [gzip|zstd|none]", "how updates are packed; a packed one ends the session", (*client).set},
		{"QUIT", "end the session", (*client).quit},
	}
}

// talk answers commands until the last.
func (c *client) talk(ctx context.Context) {
	for c.err == nil && ctx.Err() == nil {
		c.conn.wait()
		line, err := c.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			c.reply(unknown, "a line of more than %d bytes", maxLine)
			return
		case err != nil && (err != io.EOF || len(line) == 0):
			return // it went away, or did nothing for too long
		}
		c.command(ctx, strings.TrimSpace(string(line)))
	}
}

func (c *client) command(ctx context.Context, line string) {
	name, arg, _ := strings.Cut(line, " ")
	if name == "" {
		return
	}
	c.requests++
	for _, v := range verbs() {
		want, _, needs := strings.Cut(v.usage, " ")
		if !strings.EqualFold(name, want) {
			continue
		}
		if arg = strings.TrimSpace(arg); (arg == "") == needs {
			c.reply(badUsage, "usage: %s", v.usage)
			return
		}
		v.do(c, ctx, arg)
		return
	}
	c.reply(unknown, "unknown command '%.40s'; HELP lists them", printable(name))
}

// printable is what a client said as others may see it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return '?'
		}
		return r
	}, s)
}

func (c *client) hello(_ context.Context, name string) {
	c.s.opt.Log.Debug("gatherd hello", "client", c.addr, "name", printable(name))
	c.reply(greeted, "hello %.100s, at %s", printable(name), c.addr)
}

func (c *client) help(context.Context, string) {
	for _, v := range verbs() {
		c.reply(help, "%s: %s", v.usage, v.about)
	}
	c.reply(help, "that is all")
}

func (c *client) info(context.Context, string) {
	o := soif.Object{Type: "GATHERER", URL: "harvest:" + c.s.opt.Name + "@" + c.s.opt.Host}
	add := func(name, value string) { o.Add(name, []byte(value)) }
	add("Gatherer-Name", c.s.opt.Name)
	add("Gatherer-Host", c.s.opt.Host)
	add("Gatherer-Version", c.s.opt.Version)
	add("Update-Time", strconv.FormatInt(time.Now().Unix(), 10))
	add("Objects", strconv.FormatInt(c.s.store.Count(), 10))
	add("Cursor", c.s.store.Cursor().String())
	add("Compression", "gzip zstd")
	c.reply(info, "information follows")
	c.send(o.Append(nil))
}

func (c *client) send(b []byte) {
	if _, err := c.conn.Write(b); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *client) sendObject(_ context.Context, arg string) {
	oid, err := store.ParseOID(strings.ToLower(arg))
	if err != nil {
		c.reply(badUsage, "'%.40s' is no OID: 32 hex digits", printable(arg))
		return
	}
	b, _, err := c.s.store.Get(oid)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		c.reply(absent, "%v", err)
	case err != nil:
		c.trouble(err)
	default:
		c.reply(object, "object %s follows, %d bytes", oid, len(b))
		c.send(b)
	}
}

// trouble tells a client that something is wrong here, and us what.
func (c *client) trouble(err error) {
	c.s.opt.Log.Error("gatherd", "client", c.addr, "err", err)
	c.reply(trouble, "%v", err)
}

// sendUpdate sends the changes after a time or cursor. One from before what is
// remembered of deletions is answered with everything: a reader that knows no
// cursors knows no deletions either, and leaves old objects to their time to
// live.
func (c *client) sendUpdate(ctx context.Context, arg string) {
	after, err := c.cursor(arg)
	whole := errors.Is(err, store.ErrCursor)
	switch {
	case whole:
		after = store.Cursor{}
	case errors.Is(err, iofs.ErrInvalid):
		c.reply(badUsage, "'%.40s' is neither a time in seconds nor a cursor", printable(arg))
		return
	case err != nil:
		c.trouble(err)
		return
	}
	write := map[string]func(context.Context, io.Writer, store.Cursor) error{
		"": c.s.store.WriteSince, "gzip": c.s.store.WriteSinceGzip, "zstd": c.s.store.WriteSinceZstd,
	}[c.packing]
	if whole {
		c.reply(changes, "it is not known any more what came after %.40s: all follows", printable(arg))
	} else {
		c.reply(changes, "changes after %.40s follow", printable(arg))
	}
	c.conn.begin()
	err = write(ctx, c.conn, after)
	err = cmp.Or(err, c.conn.end())
	switch {
	case err != nil:
		// The stream has no end now, and what we would say stood in it.
		if ctx.Err() == nil && c.conn.err == nil {
			c.s.opt.Log.Error("gatherd", "client", c.addr, "err", err)
		}
		c.err = err
	case c.packing != "":
		c.err = io.EOF // what is packed goes to the end of the connection
	}
}

// cursor reads what an update is asked to begin after.
func (c *client) cursor(arg string) (store.Cursor, error) {
	if n, err := strconv.ParseInt(arg, 10, 64); err == nil && n >= 0 {
		if n == 0 || n > 1<<40 {
			return store.Cursor{}, nil
		}
		arg = time.Unix(n, 0).UTC().Format(time.RFC3339)
	}
	return c.s.store.ParseCursor(arg)
}

func (c *client) set(_ context.Context, arg string) {
	f := strings.Fields(strings.ToLower(strings.ReplaceAll(arg, "=", " ")))
	how := "gzip"
	if len(f) > 1 {
		how = f[1]
	}
	if len(f) == 0 || len(f) > 2 || f[0] != "compression" || how != "gzip" && how != "zstd" && how != "none" {
		c.reply(badUsage, "usage: SET compression [gzip|zstd|none]")
		return
	}
	c.packing = how
	if how == "none" {
		c.packing = ""
	}
	c.reply(set, "compression %s", how)
}

func (c *client) quit(context.Context, string) {
	c.reply(bye, "goodbye")
	c.err = io.EOF
}
