package icp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Conn asks neighbours and answers them over one UDP socket, as caches do: a
// neighbour knows another by the address it asks from. All of it may be used
// at the same time; nothing is heard unless Serve runs.
type Conn struct {
	// Rate is how many queries a second one address may have answered,
	// and a tenth of it how many may come at once; 30,000 unless set. A
	// refusal counts for a hundred, so that asking in another's name
	// is a poor way to bother that other. What is above is dropped.
	Rate int

	// Source, if set, tells the measured round trip to the origin of a
	// URL for those who ask, and whether it is known. It must not wait.
	Source func(url string) (time.Duration, bool)

	pc      *net.UDPConn
	now     func() time.Time
	stats   counters
	buffers sync.Pool // *[]byte, what messages are written in

	mu   sync.Mutex
	next uint32
	open []open // by number modulo its length, the last asked in each place
}

// open is a question that may yet be answered.
type open struct {
	number uint32
	to     netip.AddrPort
	op     Op
	url    string
	sent   time.Time
	got    func(Reply) // nil: answered or given up
}

// places bounds the questions that can be open at once. At 10,000 misses a
// second with eight neighbours a question is forgotten after 200 ms.
const places = 1 << 14

// New makes a Conn of a socket, which it owns from then on.
func New(pc *net.UDPConn) *Conn {
	return &Conn{pc: pc, now: time.Now, next: rand.Uint32(), open: make([]open, places)}
}

// Close closes the socket. Serve then returns; what was asked stays unanswered.
func (c *Conn) Close() error { return c.pc.Close() }

// Addr is the address the Conn asks from and is asked at.
func (c *Conn) Addr() netip.AddrPort { return plain(c.pc.LocalAddr().(*net.UDPAddr).AddrPort()) }

// A Reply is a neighbour's answer.
type Reply struct {
	From      netip.AddrPort
	Op        Op // Hit, Miss, MissNoFetch, Denied, Err; HitObject is told as Hit
	RTT       time.Duration
	Source    time.Duration // what the neighbour measured to the origin,
	HasSource bool          // if it told
}

// Ask asks one neighbour and returns at once. Got is called from Serve when
// the answer comes, at most once and however late, unless many have been asked
// since; it must not wait. A URL that the protocol cannot carry is refused.
func (c *Conn) Ask(to netip.AddrPort, url string, got func(Reply)) error {
	return c.ask(Message{Op: Query, URL: url, WantSource: true}, to, got)
}

// Echo sends a SECHO to an origin's echo port and is otherwise as Ask: the
// answer, if there is one, has the opcode SourceEcho.
func (c *Conn) Echo(to netip.AddrPort, url string, got func(Reply)) error {
	return c.ask(Message{Op: SourceEcho, URL: url}, to, got)
}

// Query asks one neighbour and waits for its answer, or until ctx ends.
func (c *Conn) Query(ctx context.Context, to netip.AddrPort, url string) (Reply, error) {
	answer := make(chan Reply, 1)
	if err := c.Ask(to, url, func(r Reply) { answer <- r }); err != nil {
		return Reply{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("icp: %v: %w", to, context.Cause(ctx))
	}
}

func (c *Conn) ask(m Message, to netip.AddrPort, got func(Reply)) error {
	if len(m.URL) > MaxURL || !sound(m.URL) {
		return bad("url of %d octets cannot be asked for", len(m.URL))
	}
	to = plain(to)
	c.mu.Lock()
	c.next++
	m.Number = c.next
	c.open[m.Number%places] = open{m.Number, to, m.Op, m.URL, c.now(), got}
	c.mu.Unlock()
	c.stats.asked.Add(1)
	return c.send(m, to)
}

// send writes one message. A socket that is bound to an IPv6 address takes
// IPv4 ones only in their mapped form, and the other way round; net does that.
func (c *Conn) send(m Message, to netip.AddrPort) error {
	b, _ := c.buffers.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	defer c.buffers.Put(b)
	*b = m.Append((*b)[:0])
	_, err := c.pc.WriteToUDPAddrPort(*b, to)
	if err != nil {
		c.stats.unsent.Add(1)
	}
	return err
}

// heard finds the question that a message answers.
func (c *Conn) heard(m Message, from netip.AddrPort) {
	c.mu.Lock()
	o := &c.open[m.Number%places]
	if o.got == nil || o.number != m.Number || o.to != from || o.url != m.URL || (o.op == Query) == (m.Op == SourceEcho || m.Op == DumbEcho) {
		c.mu.Unlock()
		c.stats.stray.Add(1)
		return
	}
	q := *o
	*o = open{}
	c.mu.Unlock()
	if m.Op == HitObject {
		m.Op = Hit
	}
	c.stats.heard.Add(1)
	q.got(Reply{from, m.Op, c.now().Sub(q.sent), m.Source, m.HasSource})
}

// Serve reads the socket until ctx ends or the socket is closed, once. It gives
// answers to those who asked, and answers what others ask by calling answer
// with their address, from one goroutine: it must not wait. Hit, Miss,
// MissNoFetch, Denied and Err are sent, anything else says nothing, and a nil
// answer never says a thing.
func (c *Conn) Serve(ctx context.Context, answer func(from netip.AddrPort, url string) Op) error {
	stop := context.AfterFunc(ctx, func() { c.pc.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	b, l := make([]byte, MaxMessage+1), limit{rate: c.Rate}
	for failed := 0; ; {
		n, from, err := c.pc.ReadFromUDPAddrPort(b)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // the socket tells once of what an earlier datagram met
			if failed++; failed > 100 || errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("icp: %w", err)
			}
			continue
		}
		failed = 0
		c.take(b[:n], plain(from), &l, answer)
	}
}

// take handles one datagram.
func (c *Conn) take(b []byte, from netip.AddrPort, l *limit, answer func(netip.AddrPort, string) Op) {
	m, err := Parse(b)
	switch {
	case err != nil:
		c.stats.malformed.Add(1)
		return
	case m.Op != Query:
		c.heard(m, from)
		return
	}
	c.stats.queries.Add(1)
	if answer == nil {
		return
	}
	now := c.now()
	if !l.take(from.Addr(), now, 1) {
		c.stats.limited.Add(1)
		return
	}
	r := Message{Op: answer(from, m.URL), Number: m.Number, URL: m.URL}
	switch r.Op {
	case Hit, Miss, MissNoFetch, Err:
	case Denied:
		c.stats.denied.Add(1)
		if !l.take(from.Addr(), now, 99) {
			c.stats.limited.Add(1)
			return
		}
	default:
		return
	}
	if m.WantSource && c.Source != nil {
		r.Source, r.HasSource = c.Source(m.URL)
	}
	if r.Op == Hit {
		c.stats.hits.Add(1)
	}
	c.stats.answered.Add(1)
	c.send(r, from) // what cannot be sent is counted there
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

type counters struct {
	asked, heard, stray, malformed, queries, answered, hits, denied, limited, unsent atomic.Int64
}

// Stats are counts since the Conn was made.
type Stats struct {
	Asked, Heard int64 // questions of ours, and those answered
	Stray        int64 // answers to nothing we asked, or to what was forgotten
	Malformed    int64 // datagrams that are no message
	Queries      int64 // questions of others
	Answered     int64 // those that got an answer,
	Hits         int64 // by HIT
	Denied       int64 // those that were refused, told so or not
	Limited      int64 // those without an answer as too many came
	Unsent       int64 // messages that the system would not send
}

// Stats counts what the Conn did.
func (c *Conn) Stats() Stats {
	s := &c.stats
	return Stats{
		Asked: s.asked.Load(), Heard: s.heard.Load(), Stray: s.stray.Load(), Malformed: s.malformed.Load(), Queries: s.queries.Load(),
		Answered: s.answered.Load(), Hits: s.hits.Load(), Denied: s.denied.Load(), Limited: s.limited.Load(), Unsent: s.unsent.Load(),
	}
}
