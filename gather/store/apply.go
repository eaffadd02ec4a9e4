package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	iofs "io/fs"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"harvest/gather/soif"
)

// A request is one call of Apply.
type request struct {
	items []*item
	do    func() error // what the leader does first, in place of items
	bytes int
	seq   uint64
	err   error
	lead  bool          // this caller has to commit the next group; under queueMu
	wake  chan struct{} // closed when done, or when lead was set
	done  bool
}

// An item is one change on its way.
type item struct {
	op     soif.Op
	row    *row
	body   []byte
	old    row
	had    bool // old is there, and not deleted
	hadOld bool // old is there, or deleted
}

// Apply makes the changes, in order and all or none, and returns the number of
// the last one. When it returns nil they are on disk. Concurrent callers share
// the wait for the disk. A change that cannot be made (an object that is no
// SOIF, a refresh of what is not there) refuses the whole call. Once ctx has
// ended nothing new is begun, but what is being written is waited for.
//
// An update that changes nothing, down to the Update-Time, is no change.
func (s *Store) Apply(ctx context.Context, changes []Change) (seq uint64, err error) {
	r := new(request)
	for i := range changes {
		if i%64 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		it, err := prepare(&changes[i])
		if err != nil {
			return 0, fmt.Errorf("object %s: %w", changes[i].OID, err)
		}
		r.items = append(r.items, it)
		r.bytes += len(it.body)
	}
	return s.submit(ctx, r)
}

// submit has a request committed, by this caller or by the one before it.
func (s *Store) submit(ctx context.Context, r *request) (seq uint64, err error) {
	r.wake = make(chan struct{})
	s.queueMu.Lock()
	s.queue = append(s.queue, r)
	lead := !s.leading
	if lead {
		s.leading, r.lead = true, true
	}
	s.queueMu.Unlock()
	if !lead {
		select {
		case <-r.wake:
		case <-ctx.Done():
			if s.withdraw(r) {
				return 0, ctx.Err()
			}
			<-r.wake
		}
	}
	if !r.done {
		s.lead()
	}
	return r.seq, r.err
}

// withdraw takes a request out of the queue, unless it is being worked on or has
// been told to lead.
func (s *Store) withdraw(r *request) bool {
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	i := slices.Index(s.queue, r)
	if i < 0 || r.lead {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// groupBytes bounds what is synced with one wait for the disk.
const groupBytes = 8 << 20

// lead commits the requests that have gathered, its caller's first, and then
// hands the lead to the caller of the next. There is one leader at a time.
func (s *Store) lead() {
	s.queueMu.Lock()
	n, size := 0, 0
	for n < len(s.queue) && (n == 0 || size+s.queue[n].bytes <= groupBytes) {
		size += s.queue[n].bytes
		n++
	}
	group := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	s.queueMu.Unlock()

	if err := s.commit(group); err != nil {
		for _, r := range group {
			if r.err == nil {
				r.seq, r.err = 0, err
			}
		}
	}

	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	for i, r := range group {
		r.done = true
		if i > 0 {
			close(r.wake)
		}
	}
	if len(s.queue) == 0 {
		s.leading = false
		return
	}
	s.queue[0].lead = true
	close(s.queue[0].wake)
}

// prepare checks a change and finds out what can be known without the store.
func prepare(c *Change) (*item, error) {
	it := &item{op: c.Op, row: &row{op: c.Op}}
	it.row.OID, it.row.URL, it.row.Updated, it.row.TTL = c.OID, c.URL, c.Updated, c.TTL
	switch c.Op {
	case soif.Delete, soif.Refresh:
		return it, nil
	case soif.Update:
	default:
		return nil, fmt.Errorf("operation %d: %w", c.Op, iofs.ErrInvalid)
	}
	if len(c.Body) > maxObject {
		return nil, fmt.Errorf("%d bytes: %w", len(c.Body), syscall.EFBIG)
	}
	o, n, err := soif.Parse(c.Body, soif.Limits{})
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(c.Body[n:])) > 0 {
		return nil, fmt.Errorf("more than one object: %w", iofs.ErrInvalid)
	}
	it.setBody(c.Body, &o)
	if it.row.Updated.IsZero() {
		it.row.Updated = attrTime(&o, "Update-Time")
	}
	if it.row.TTL == 0 {
		it.row.TTL = attrDuration(&o, "Time-to-Live")
	}
	return it, nil
}

// setBody gives an item its object. One that does not end its line gets a
// newline, so that objects can follow one another.
func (it *item) setBody(body []byte, o *soif.Object) {
	if !bytes.HasSuffix(body, []byte("\n")) {
		body = append(bytes.Clone(body), '\n')
	}
	it.body = body
	sum := sha256.Sum256(body)
	copy(it.row.Hash[:], sum[:])
	it.row.Size = int64(len(body))
	it.row.URL, it.row.Type = o.URL, o.Text("Type")
}

// attrTime reads a time as SOIF has it, Unix seconds, or as the tree has it.
func attrTime(o *soif.Object, name string) time.Time {
	text := o.Text(name)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0).UTC()
	}
	t, _ := time.Parse(time.RFC3339, text)
	return t.UTC()
}

// attrDuration reads a duration as SOIF has it, in seconds, or as the tree has it.
func attrDuration(o *soif.Object, name string) time.Duration {
	text := o.Text(name)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
	}
	d, _ := time.ParseDuration(text)
	return max(d, 0)
}

// refreshed returns the object with a new Update-Time and Time-to-Live, written
// the way they were.
func refreshed(o *soif.Object, updated time.Time, ttl time.Duration) []byte {
	text := strconv.FormatInt(updated.Unix(), 10)
	if old := o.Text("Update-Time"); old != "" {
		if _, err := strconv.ParseInt(old, 10, 64); err != nil {
			text = updated.UTC().Format(time.RFC3339)
		}
	}
	o.Set("Update-Time", []byte(text))
	if ttl > 0 {
		text := strconv.FormatInt(seconds(ttl), 10)
		if old := o.Text("Time-to-Live"); old != "" {
			if _, err := strconv.ParseInt(old, 10, 64); err != nil {
				text = ttl.String()
			}
		}
		o.Set("Time-to-Live", []byte(text))
	}
	return o.Append(nil)
}

// A group is the requests that are committed together.
type group struct {
	s     *Store
	seq   uint64
	now   int64
	items []*item
	fresh map[OID]*item // the latest of each object
}

// commit makes the requests' changes. An error is that of them all; one that
// concerns a single request is left there.
func (s *Store) commit(reqs []*request) error {
	if err := s.ready(); err != nil {
		return err
	}
	for _, r := range reqs {
		if r.do != nil {
			r.err = r.do()
		}
	}
	s.mu.RLock()
	g := &group{s: s, seq: s.totals.seq, now: max(time.Now().Unix(), s.totals.second), fresh: make(map[OID]*item)}
	s.mu.RUnlock()
	base := g.seq + 1
	g.resolve(reqs)
	if len(g.items) == 0 {
		return nil
	}
	frames, err := s.write(g.items, base, g.now)
	if err != nil {
		return err
	}
	s.publish(g, frames)
	s.announce(g.items)
	s.stir()
	return nil
}

// stir tells runIndex that there is something for it to do.
func (s *Store) stir() {
	select {
	case s.dirty <- struct{}{}:
	default: // told already
	}
}

// ready makes room: it waits for the index when that is far behind, and begins a
// new segment when the last is full.
func (s *Store) ready() error {
	if err := s.trouble(); err != nil {
		return err
	}
	s.mu.RLock()
	n := s.active.n
	s.mu.RUnlock()
	if n >= 2*s.opt.Pending {
		if err := s.flush(); err != nil && n >= 4*s.opt.Pending {
			return err
		}
	}
	if s.log.size >= s.opt.Segment {
		return s.roll()
	}
	return nil
}

// trouble returns the error after which no change can be made until the store
// is opened again.
func (s *Store) trouble() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.broken
}

// roll begins a new segment. Only the leader calls it, and Open.
func (s *Store) roll() error {
	seg, err := createSegment(s.dir, s.takeNumber(), kindLog, s.epoch, nil)
	if err != nil {
		return err
	}
	if !s.opt.NoSync {
		if err = seg.f.Sync(); err == nil {
			err = syncDir(s.dir)
		}
	}
	if err != nil {
		seg.release()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segs[seg.id] = seg
	s.log = seg
	return nil
}

func (s *Store) takeNumber() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSegment++
	return s.lastSegment
}

// resolve finds what each change means for what is stored. A request that cannot
// be carried out leaves nothing behind.
func (g *group) resolve(reqs []*request) {
	g.look(reqs)
	for _, r := range reqs {
		if r.err != nil {
			continue
		}
		seq, n := g.seq, len(g.items)
		undo := make(map[OID]*item)
		for _, it := range r.items {
			prev := g.fresh[it.row.OID]
			kept, err := g.resolveItem(it, prev)
			if err != nil {
				r.err = fmt.Errorf("object %s: %w", it.row.OID, err)
				break
			}
			if !kept {
				continue
			}
			if _, ok := undo[it.row.OID]; !ok {
				undo[it.row.OID] = prev
			}
			g.fresh[it.row.OID] = it
			g.items = append(g.items, it)
		}
		if r.err == nil {
			r.seq = g.seq
			continue
		}
		g.seq, g.items = seq, g.items[:n]
		for oid, prev := range undo {
			delete(g.fresh, oid)
			if prev != nil {
				g.fresh[oid] = prev
			}
		}
	}
}

// look finds the objects as they are, in one transaction: while there is a leader
// nobody else changes them.
func (g *group) look(reqs []*request) {
	err := g.s.view(func(v view) (err error) {
		for _, r := range reqs {
			for _, it := range r.items {
				if it.old, it.hadOld, err = v.state(it.row.OID); err != nil {
					r.err = fmt.Errorf("object %s: %w", it.row.OID, err)
					break
				}
			}
		}
		return nil
	})
	for _, r := range reqs {
		r.err = cmp.Or(r.err, err)
	}
}

// resolveItem finds out what a change does to the object as it is, prev being
// the change before it in this group. It reports whether it does anything.
func (g *group) resolveItem(it, prev *item) (kept bool, err error) {
	if prev != nil {
		it.old, it.hadOld = *prev.row, true
	}
	it.had = it.hadOld && !it.old.gone
	r := it.row
	switch it.op {
	case soif.Delete:
		if !it.had {
			return false, nil
		}
		r.gone, r.URL, r.Updated = true, it.old.URL, time.Unix(g.now, 0).UTC()
	case soif.Refresh:
		if !it.had {
			return false, iofs.ErrNotExist
		}
		if err := g.refresh(it, prev); err != nil {
			return false, err
		}
	}
	if r.Updated.IsZero() {
		r.Updated = time.Unix(g.now, 0)
	}
	r.Updated = time.Unix(r.Updated.Unix(), 0).UTC()
	r.TTL = duration(uint64(seconds(r.TTL)))
	if it.had && !r.gone && r.Hash == it.old.Hash && r.Updated.Equal(it.old.Updated) && r.TTL == it.old.TTL {
		return false, nil
	}
	g.seq++
	r.Seq, r.Body = g.seq, g.seq
	if it.op == soif.Refresh {
		r.Body = it.old.Body
	}
	return true, nil
}

// refresh makes the object that a refresh stores.
func (g *group) refresh(it, prev *item) (err error) {
	var body []byte
	if prev != nil {
		body = prev.body
	} else if it.old, body, err = g.s.read(it.row.OID); err != nil {
		return err
	}
	o, _, err := soif.Parse(body, soif.Limits{})
	if err != nil {
		return err
	}
	if it.row.Updated.IsZero() {
		it.row.Updated = time.Unix(g.now, 0)
	}
	if it.row.TTL == 0 {
		it.row.TTL = it.old.TTL
		it.setBody(refreshed(&o, it.row.Updated, 0), &o)
		return nil
	}
	it.setBody(refreshed(&o, it.row.Updated, it.row.TTL), &o)
	return nil
}

// write appends the changes to the active segment and waits for the disk. When
// that fails the segment is as it was, or the store takes no more changes.
func (s *Store) write(items []*item, base uint64, now int64) ([]frameInfo, error) {
	start := s.log.size
	frames, err := s.writeFrames(items, base, now)
	if err == nil && !s.opt.NoSync {
		if err = s.log.f.Sync(); err != nil {
			// What the disk has now is unknown, and the next sync
			// may say all is well. Only reading it again tells.
			s.breakDown(err)
		}
	}
	if err != nil {
		s.log.size = start
		if terr := s.log.f.Truncate(start); terr != nil {
			s.breakDown(fmt.Errorf("%w, and then %w", err, terr))
		}
		return nil, err
	}
	return frames, nil
}

func (s *Store) breakDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = fmt.Errorf("store takes no changes until it is opened again: %w", err)
	s.lg.Error("store", "dir", s.dir, "err", s.broken)
}

// window is how many frames are packed, at the same time, between two writes.
const window = 32

func (s *Store) writeFrames(items []*item, base uint64, now int64) (frames []frameInfo, err error) {
	parts := s.split(items)
	for len(parts) > 0 {
		some := parts[:min(window, len(parts))]
		parts = parts[len(some):]
		packed := s.pack(some)
		var buf []byte
		for i, part := range some {
			at := s.log.size + int64(len(buf))
			f := frameInfo{seg: s.log.id, off: uint32(at), count: len(part), base: part[0].row.Seq}
			metas := make([]meta, len(part))
			for j, it := range part {
				it.row.at = loc{s.log.id, uint32(at), uint32(j)}
				metas[j] = it.row.meta()
				f.raw += int64(len(it.body))
			}
			f.live = f.raw
			if at > math.MaxUint32 {
				return nil, fmt.Errorf("segment %08x: %d bytes: %w", s.log.id, at, syscall.EFBIG)
			}
			n := len(buf)
			buf = appendFrame(buf, metas, int(f.raw), packed[i], base, now, len(parts) == 0 && i == len(some)-1)
			f.length, f.meta = len(buf)-n, len(buf)-n-frameHeader-len(packed[i])
			frames = append(frames, f)
		}
		if _, err := s.log.f.WriteAt(buf, s.log.size); err != nil {
			return nil, err
		}
		s.log.size += int64(len(buf))
	}
	return frames, nil
}

func (r *row) meta() meta {
	m := meta{op: r.op, oid: r.OID, seq: r.Seq, body: r.Body, updated: r.Updated.Unix(), ttl: seconds(r.TTL), size: int(r.Size)}
	if r.gone {
		m.url, m.size = r.URL, 0
	}
	return m
}

// maxCount bounds the changes of a frame that has no or tiny objects.
const maxCount = 4096

// split divides changes into frames. An object that fills a frame has it alone.
func (s *Store) split(items []*item) (parts [][]*item) {
	first, size := 0, 0
	for i, it := range items {
		n := len(it.body)
		if i > first && (size+n > s.opt.Frame || i-first == maxCount) {
			parts = append(parts, items[first:i])
			first, size = i, 0
		}
		size += n
	}
	return append(parts, items[first:])
}

// pack compresses the bodies of each part, on all processors.
func (s *Store) pack(parts [][]*item) [][]byte {
	packed := make([][]byte, len(parts))
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(parts))
	for w := range workers {
		wg.Go(func() {
			var raw []byte
			for i := w; i < len(parts); i += workers {
				raw = raw[:0]
				for _, it := range parts[i] {
					raw = append(raw, it.body...)
				}
				if len(raw) > 0 {
					packed[i] = s.enc.EncodeAll(raw, make([]byte, 0, len(raw)/2))
				}
			}
		})
	}
	wg.Wait()
	return packed
}

// publish makes changes that are on disk visible.
func (s *Store) publish(g *group, frames []frameInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.active
	for _, it := range g.items {
		t.put(it.row)
		s.totals.count(it)
		if it.op == soif.Refresh {
			s.refreshed = it.row.Seq
		}
	}
	t.frames = append(t.frames, frames...)
	s.markTime(g.now, g.items[0].row.Seq-1)
	s.end = place{s.log.id, uint32(s.log.size)}
	close(s.moved)
	s.moved = make(chan struct{})
}

// told is a change that the doors are to hear of.
type told struct {
	oid  OID
	url  string
	name bool // it came or went
}

// announce tells the doors of changes, which readers can see by now.
func (s *Store) announce(items []*item) {
	s.mu.RLock()
	tell := s.tell
	s.mu.RUnlock()
	if tell == nil {
		return
	}
	changes := make([]told, len(items))
	for i, it := range items {
		changes[i] = told{it.row.OID, it.row.URL, !it.had || it.row.gone}
	}
	tell(changes)
}

// markTime notes which change was the last before a second. Called with mu held.
func (s *Store) markTime(now int64, before uint64) {
	if now > s.totals.second {
		s.active.times = append(s.active.times, timeMark{now, before})
		s.totals.second = now
	}
}

// put enters a row in the table. One it replaces is dead in its frame; one that
// the index has is found there when the table is entered.
func (t *table) put(r *row) {
	if old := t.rows[r.OID]; old != nil && !old.gone {
		t.dead = append(t.dead, corpse{old.at, old.Size})
	}
	t.rows[r.OID] = r
	t.n++
}

// count moves the totals by one change.
func (m *totals) count(it *item) {
	r := it.row
	m.seq = max(m.seq, r.Seq)
	m.vers[r.OID[0]] = max(m.vers[r.OID[0]], r.Seq)
	if it.had {
		m.objects--
		m.bytes -= it.old.Size
		m.dead += it.old.Size
	} else if it.hadOld {
		m.tombs--
	}
	if r.gone {
		m.tombs++
	} else {
		m.objects++
		m.bytes += r.Size
	}
	if !it.had || r.gone || r.URL != it.old.URL {
		m.tree = max(m.tree, r.Seq)
	}
}
