package replica

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/replica/topology"
)

// What measuring may take.
const (
	measureTime   = 30 * time.Second // a member, all in all
	measureAtOnce = 4                // members
	pings         = 3
	leastProbe    = 256 << 10 // bytes
	mostProbe     = 8 << 20
	probeChunk    = 16 << 10
	probeReads    = 64              // at a time
	probeEnough   = 2 * time.Second // a transfer that took so long is not followed by a longer one
	maxSelf       = 1 << 10
	maxLinksFile  = 4 << 20 // of bandwidth and topology
)

// measuring measures members and sees to the graph, until ctx ends.
func (r *Replica) measuring(ctx context.Context) {
	for {
		r.mu.Lock()
		c := *r.config
		r.mu.Unlock()
		t := time.NewTimer(c.measure.every)
		now := false
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		case <-r.links.due:
			now = true
		}
		t.Stop()
		r.measureAll(ctx, now)
	}
}

// measureAll measures some members drawn by lot, or all of them now, and then sees
// to the graph.
func (r *Replica) measureAll(ctx context.Context, now bool) {
	members := r.sorted()
	r.mu.Lock()
	c := *r.config
	r.mu.Unlock()
	if !now && len(members) > c.measure.members {
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		members = members[:c.measure.members]
	}
	probe := c.measure.probe
	if now {
		probe = 0
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, measureAtOnce)
	for _, m := range members {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m.measure(ctx, probe)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	r.sign(time.Now())
	if err := r.design(ctx, time.Now()); err != nil && ctx.Err() == nil {
		r.lg.Error("topology", "err", err)
	}
}

// measure measures the way to a member, if it is one that can answer, and takes what
// it knows of others.
func (m *member) measure(ctx context.Context, probe time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	c, err := m.connect(ctx)
	if err == nil {
		err = m.look(c, probe)
		c.close()
	}
	var l *lie
	switch {
	case err == nil || errors.Is(err, iofs.ErrNotExist): // a copy has nothing to tell
	case errors.As(err, &l):
		m.note(err)
	default:
		m.meter.Down()
	}
}

// look measures over a connection.
func (m *member) look(c *conn, probe time.Duration) error {
	id, err := readSelf(c.tree)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.id = id
	due := time.Since(m.probed) >= probe
	m.mu.Unlock()
	if id == m.r.mirror.self {
		return nil
	}
	if err := m.ping(c); err != nil {
		return err
	}
	if due {
		if err := m.probe(c.tree); err != nil {
			return err
		}
	}
	text, err := read(c.tree, "bandwidth", maxLinksFile)
	if err != nil || len(text) > maxLinksFile {
		return errors.Join(err, errTooLong(len(text), "bandwidth"))
	}
	if err := m.r.links.takeSheets(string(text), time.Now()); err != nil {
		return lief("bandwidth: %v", err)
	}
	if text, err = read(c.tree, "topology", maxLinksFile); err != nil || len(text) > maxLinksFile {
		return errors.Join(err, errTooLong(len(text), "topology"))
	}
	return m.r.takeGraph(string(text), time.Now())
}

func errTooLong(n int, name string) error {
	if n > maxLinksFile {
		return lief("%s: more than %d bytes", name, maxLinksFile)
	}
	return nil
}

// readSelf reads by which key a member signs.
func readSelf(tree iofs.FS) (w Writer, err error) {
	b, err := read(tree, "self", maxSelf)
	if err != nil {
		return w, err
	}
	e, err := ndb.ParseLine(strings.TrimSuffix(string(b), "\n"), 1)
	if err != nil {
		return w, lief("self: %v", err)
	}
	text, _ := e.Get("writer")
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 32 {
		return w, lief("self: %q: no key", text)
	}
	return WriterOf(key), nil
}

// self is the file by which others tell who this is.
func (r *Replica) self() string {
	return ndb.Format(ndb.Of("self", ""), ndb.Of("writer", fmt.Sprintf("%x", []byte(r.mirror.public())))) + "\n"
}

// ping times the shortest request there is.
func (m *member) ping(c *conn) error {
	at, ok := c.root.(io.ReaderAt)
	if c.root == nil || !ok {
		return nil
	}
	var b [rootSize]byte
	for range pings {
		begun := time.Now()
		if n, err := at.ReadAt(b[:], 0); n < len(b) {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		m.meter.RTT(time.Since(begun))
	}
	return nil
}

// probe times transfers, each twice as long as the one before, until two agree: by
// then TCP knows what the path bears.
func (m *member) probe(tree iofs.FS) error {
	last := 0.0
	for size := leastProbe; size <= mostProbe; size *= 2 {
		begun := time.Now()
		t, err := transfer(tree, size)
		if err != nil {
			return err
		}
		rate, ok := t.Rate()
		enough := time.Since(begun) > probeEnough || size == mostProbe
		if ok && (enough || last > 0 && rate < 1.1*last && last < 1.1*rate) {
			before, _, _ := m.meter.Link()
			m.meter.Transfer(t)
			m.mu.Lock()
			if m.probed = time.Now(); before.Bandwidth > 1.5*rate || before.Bandwidth > 0 && rate > 1.5*before.Bandwidth {
				m.probed = time.Time{} // it is soon to be known whether that stays
			}
			m.mu.Unlock()
			break
		}
		if last = 0; ok {
			last = rate
		}
	}
	return nil
}

// transfer reads size bytes of no use, with many requests under way at a time.
func transfer(tree iofs.FS, size int) (*topology.Transfer, error) {
	f, err := tree.Open(fmt.Sprintf("probe/%d", size))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("probe: %w", iofs.ErrNotExist)
	}
	var mu sync.Mutex // guards what follows
	t := new(topology.Transfer)
	var failed error
	var wg sync.WaitGroup
	slots := make(chan struct{}, probeReads)
	for off := 0; off < size; off += probeChunk {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			n, err := at.ReadAt(make([]byte, min(probeChunk, size-off)), int64(off))
			mu.Lock()
			defer mu.Unlock()
			t.Add(n, time.Now())
			if err != nil && err != io.EOF {
				failed = err
			}
		})
	}
	wg.Wait()
	return t, failed
}

// sign writes down what was measured here.
func (r *Replica) sign(now time.Time) {
	var list []measured
	for _, m := range r.sorted() {
		m.mu.Lock()
		id := m.id
		m.mu.Unlock()
		if l, _, ok := m.meter.Link(); ok && id != (Writer{}) && id != r.mirror.self && len(list) < maxLinks {
			list = append(list, measured{id, m.path, l})
		}
	}
	if len(list) == 0 {
		return
	}
	s, err := parseSheet(signText("measured", r.mirror.key, now, sheetBody(list)))
	if err != nil {
		r.lg.Error("measured", "err", err)
		return
	}
	r.links.take(s, now)
}
