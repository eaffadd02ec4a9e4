package replica

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"slices"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/store"
	"harvest/replica/topology"
)

// A member is another of the group, from whom this one reads.
type member struct {
	r     *Replica
	path  string
	turn  chan struct{} // held by whoever exchanges with it
	poke  chan struct{} // it is to be looked at now
	meter topology.Meter

	mu     sync.Mutex // guards what follows
	live   *conn      // as long as it is followed
	had    map[Writer]Version
	last   time.Time // that an exchange ended well
	next   time.Time // that one begins by itself
	aside  time.Time // until when nothing is believed
	fails  int
	err    error
	rtt    time.Duration // of the last look at root
	id     Writer        // by which it signs; zero: not known
	probed time.Time     // that its bandwidth was measured last
	total  pullCounts
}

func newMember(r *Replica, path string) *member {
	return &member{r: r, path: path, turn: make(chan struct{}, 1), poke: make(chan struct{}, 1), had: make(map[Writer]Version)}
}

// How long a member that lied is set aside, and how long to wait after failures.
const (
	asideFor   = 10 * time.Minute
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// A conn is a member's tree, as long as it can be read.
type conn struct {
	tree   iofs.FS
	closer io.Closer
	root   iofs.File // root.now, open; nil: it has none
	cancel context.CancelFunc
}

func (m *member) connect(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	tree, closer, err := m.r.open(ctx, m.path)
	if err != nil {
		cancel()
		return nil, err
	}
	c := &conn{tree: tree, closer: closer, cancel: cancel}
	if f, err := tree.Open("root.now"); err == nil {
		c.root = f
	}
	return c, nil
}

func (c *conn) close() error {
	if c.root != nil {
		c.root.Close()
	}
	err := c.closer.Close()
	c.cancel()
	return err
}

// same reads which mirrors the member has as they are here: one message.
func (c *conn) same(r *Replica) (same [2]bool, err error) {
	at, ok := c.root.(io.ReaderAt)
	if !ok {
		return same, nil
	}
	defer time.AfterFunc(patience, c.cancel).Stop()
	var b [2*rootSize + 1]byte
	if n, err := at.ReadAt(b[:], 0); n < len(b) {
		return same, errors.Join(err, io.ErrUnexpectedEOF)
	}
	ours := r.root()
	return [2]bool{string(b[:rootSize]) == ours[:rootSize], string(b[rootSize:]) == ours[rootSize:len(b)]}, nil
}

// follow exchanges with the member when it has news, and from time to time, until ctx
// ends.
func (m *member) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if !m.turnTo(ctx) {
			continue
		}
		err := m.attend(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errNoNeighbor) {
			continue
		}
		m.note(err)
		m.mu.Lock()
		wait := min(firstRetry<<min(m.fails, 20), lastRetry)
		if d := time.Until(m.aside); d > wait {
			wait = d
		}
		m.next = time.Now().Add(wait)
		m.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-m.poke:
		}
	}
}

var errNoNeighbor = errors.New("no neighbor in the graph")

// farther is how much more seldom a member is looked at that is no neighbor, if all is
// well with those that are.
const farther = 10

// turnTo waits until the member is to be attended to: at once if it is a neighbor.
func (m *member) turnTo(ctx context.Context) bool {
	for waited := 0; ; waited++ {
		near, changed := m.neighbor()
		m.mu.Lock()
		never := m.last.IsZero()
		m.mu.Unlock()
		if near || never || waited >= farther {
			return true
		}
		m.r.mu.Lock()
		full := m.r.config.full
		m.r.mu.Unlock()
		m.mu.Lock()
		m.next = time.Now().Add(time.Duration(farther-waited) * full)
		m.mu.Unlock()
		t := time.NewTimer(full)
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-m.poke:
			t.Stop()
			return true
		case <-changed:
			waited--
		case <-t.C:
		}
		t.Stop()
	}
}

// attend stays connected with the member and takes what it has, until something goes
// wrong.
func (m *member) attend(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	c, err := m.connect(ctx)
	if err != nil {
		cancel()
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.close()
	defer cancel()
	if err := m.exchange(ctx, c, new(tidings)); err != nil {
		return err
	}
	near, regraph := m.neighbor()
	if !near {
		return errNoNeighbor
	}
	m.connected(c)
	defer m.connected(nil)
	news := make(chan tidings)
	lost := make(chan error, 2)
	for _, which := range m.r.mirrors() {
		wg.Go(func() { lost <- watch(ctx, c, which, news) })
	}
	for {
		m.r.mu.Lock()
		full := m.r.config.full
		m.r.mu.Unlock()
		m.mu.Lock()
		m.next = time.Now().Add(full)
		m.mu.Unlock()
		var heard tidings
		t := time.NewTimer(full)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case heard = <-news:
		case err := <-lost:
			if !errors.Is(err, iofs.ErrNotExist) {
				t.Stop()
				return err
			}
			t.Stop()
			continue // it cannot tell: it is a copy
		case <-m.poke:
		case <-regraph:
			if near, regraph = m.neighbor(); !near {
				t.Stop()
				return errNoNeighbor
			}
		case <-t.C:
		}
		t.Stop()
		if err := m.exchange(ctx, c, &heard); err != nil {
			return err
		}
	}
}

// A channel is a mirror, and where a member has it.
type channel struct {
	*mirror
	prefix string
}

func (r *Replica) mirrors() []channel { return []channel{{r.mirror, ""}, {r.flood, "flood/"}} }

// tidings are heads that a member has told by itself; without them it is to be asked.
type tidings struct {
	of    channel
	heads []byte
}

// watch reads the member's news as they come.
func watch(ctx context.Context, c *conn, of channel, news chan<- tidings) error {
	f, err := c.tree.Open(of.prefix + "heads.live")
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	var text []byte
	for {
		n, err := f.Read(buf)
		if err != nil {
			return err
		}
		if text = append(text, buf[:n]...); n == 0 || text[len(text)-1] != '\n' {
			if len(text) > maxHeadsFile {
				return lief("heads.live: a line of more than %d bytes", maxHeadsFile)
			}
			continue
		}
		select {
		case news <- tidings{of, text}:
			text = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// exchange takes what the member has told, or if that is nothing what it has.
func (m *member) exchange(ctx context.Context, c *conn, heard *tidings) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if heard.heads != nil {
		return m.pull(ctx, c, heard.of, heard.heads)
	}
	begun := time.Now()
	same, err := c.same(m.r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.rtt = time.Since(begun)
	m.mu.Unlock()
	if same[0] {
		m.equal()
	}
	for i, of := range m.r.mirrors() {
		if same[i] {
			continue
		}
		if err := m.pull(ctx, c, of, nil); err != nil && !(of.prefix != "" && absent(err)) {
			return err
		}
	}
	return nil
}

func (m *member) pull(ctx context.Context, c *conn, of channel, heads []byte) error {
	p, out := of.pull(ctx, m.path, time.Now(), heads)
	defer p.end()
	if of.mirror == m.r.mirror {
		p.adopt = m.r.adopter()
	}
	run(ctx, c.tree, of.prefix, p, out, c.cancel)
	m.took(p, of, heads == nil)
	if p.err != nil {
		return p.err
	}
	return m.r.sweepDue(ctx)
}

// equal notes that the member has what is here.
func (m *member) equal() {
	heads, _ := m.r.mirror.heads()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.err, m.fails = time.Now(), nil, 0
	for i := range heads {
		m.had[heads[i].Writer()] = heads[i].Version
	}
}

// took notes what came of an exchange.
func (m *member) took(p *pull, of channel, full bool) {
	m.mu.Lock()
	m.total.add(p.pullCounts)
	var back []ndb.Pair
	for w, h := range p.had {
		if of.mirror != m.r.mirror {
			break // members tells of the mirror
		}
		if h.less(m.had[w]) {
			back = append(back, ndb.Of("member", m.path), ndb.Of("writer", w), ndb.Of("told", m.had[w]), ndb.Of("now", h.Version))
		}
		m.had[w] = h.Version
	}
	repaired := full && p.records > 0 && !m.last.IsZero()
	if p.err == nil {
		m.last, m.err, m.fails = time.Now(), nil, 0
	}
	m.mu.Unlock()
	if len(back) > 0 {
		m.r.told("replay", back...)
	}
	if repaired {
		m.r.told("repair", ndb.Of("member", m.path), ndb.Of("records", p.records))
		m.r.lg.Info("repair", "member", m.path, "records", p.records)
	}
}

// note notes that the member cannot be read, or not be believed.
func (m *member) note(err error) {
	var l *lie
	lied := errors.As(err, &l)
	m.mu.Lock()
	m.fails++
	known := m.err != nil && err != nil && m.err.Error() == err.Error()
	if m.err = err; lied {
		m.aside = time.Now().Add(asideFor)
	}
	m.mu.Unlock()
	if lied {
		m.r.told("lie", ndb.Of("member", m.path), ndb.Of("err", err))
	} else if !known {
		m.r.told("lost", ndb.Of("member", m.path), ndb.Of("err", err))
	}
}

func (m *member) connected(c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = c
}

// sync exchanges with the member now, over the connection that there is or, if it is not
// followed, one of its own.
func (m *member) sync(ctx context.Context) error {
	m.mu.Lock()
	live := m.live
	m.mu.Unlock()
	if live != nil {
		if err := m.exchange(ctx, live, new(tidings)); err == nil {
			return nil
		}
	}
	c, err := m.connect(ctx)
	if err == nil {
		err = m.exchange(ctx, c, new(tidings))
		c.close()
	}
	if err != nil {
		m.note(err)
	}
	return err
}

// adopter gives what looks objects up in a tree that was adopted, or nil.
func (r *Replica) adopter() func(oid store.OID) []byte {
	r.mu.Lock()
	tree := r.adopted
	r.mu.Unlock()
	if tree == nil {
		return nil
	}
	return func(oid store.OID) []byte {
		name := oid.String()
		b, err := read(tree, "objects/"+name[:2]+"/"+name+".soif", MaxObject)
		if err != nil {
			return nil
		}
		return b
	}
}

// sorted gives the members in the order of their paths.
func (r *Replica) sorted() (all []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *member) int {
		if a.path < b.path {
			return -1
		}
		return 1
	})
	return all
}
