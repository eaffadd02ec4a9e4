package replica

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// A Request asks a peer for a file, and no more of it than Max bytes.
type Request struct {
	ID   uint64
	Path string
	Max  int
}

// A Reply is the file, or why there is none.
type Reply struct {
	ID   uint64
	Data []byte
	Err  error
}

// A pull is one exchange with a peer: it reads the peer's heads, and of each writer
// that the peer knows more of, what is lacking here. It is a step function: given the
// reply to a request it says what to ask next, and what it takes it has on disk. It
// waits for nothing and asks nobody itself, so that connections, or a simulation of
// them, are somebody else's. It is not safe for concurrent use.
type pull struct {
	m     *mirror
	ctx   context.Context
	peer  string
	now   time.Time
	adopt func(oid store.OID) []byte // objects that are nearer than the peer; may be nil

	id      uint64
	waiting map[uint64]*asked
	queue   []*asked // not sent yet
	weight  int      // of what is waiting
	jobs    map[Writer]*job
	had     map[Writer]Head // the peer's heads
	err     error
	pullCounts
}

// pullCounts are of one pull, or of all with a member.
type pullCounts struct {
	requests int   // files asked for
	bytes    int64 // of them
	objects  int   // that were taken
	records  int   // that were changed
	walks    int   // writers whose digests were walked
}

func (c *pullCounts) add(o pullCounts) {
	c.requests += o.requests
	c.bytes += o.bytes
	c.objects += o.objects
	c.records += o.records
	c.walks += o.walks
}

// asked is a request that has no reply yet.
type asked struct {
	Request
	weight int
	then   func(b []byte, err error) error
}

// window bounds the weight of the requests that wait: some 250 nodes, or two packs.
const (
	window       = 256
	weightSmall  = 1
	weightFolder = 16
	weightPack   = 128
)

// A lie is what a peer told that cannot be.
type lie struct{ text string }

func (l *lie) Error() string { return l.text }
func (l *lie) Unwrap() error { return iofs.ErrInvalid }

func lief(format string, arg ...any) error { return &lie{fmt.Sprintf(format, arg...)} }

// pull begins an exchange with a peer; the requests are to be sent. Heads are some that
// the peer has just told, nil if it is to be asked.
func (m *mirror) pull(ctx context.Context, peer string, now time.Time, heads []byte) (*pull, []Request) {
	p := &pull{m: m, ctx: ctx, peer: peer, now: now, waiting: make(map[uint64]*asked), jobs: make(map[Writer]*job), had: make(map[Writer]Head)}
	if heads == nil {
		p.ask("heads", maxHeadsFile, weightSmall, p.heads)
	} else if err := p.heads(heads, nil); err != nil {
		p.fail(err)
	}
	return p, p.send()
}

// step takes a reply and gives the next requests. One that nobody waits for is
// nothing new.
func (p *pull) step(r Reply) []Request {
	a := p.waiting[r.ID]
	if a == nil || p.err != nil {
		return nil
	}
	delete(p.waiting, r.ID)
	p.weight -= a.weight
	p.bytes += int64(len(r.Data))
	r.Data = r.Data[:min(len(r.Data), a.Max)]
	if err := a.then(r.Data, r.Err); err != nil {
		p.fail(err)
		return nil
	}
	return p.send()
}

// done tells that nothing is waited for any more.
func (p *pull) done() bool { return p.err != nil || len(p.waiting)+len(p.queue) == 0 }

// end gives up what was begun: other pulls may take it up. It is called once, at last.
func (p *pull) end() {
	for w := range p.jobs {
		p.m.release(w, p.peer)
	}
	clear(p.jobs)
}

func (p *pull) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *pull) ask(path string, most, weight int, then func([]byte, error) error) {
	p.id++
	a := &asked{Request{p.id, path, most}, weight, then}
	if strings.HasPrefix(path, "pack/") {
		// Before the digests of what else there is: a new member shows its first
		// objects soon, and keeps those if it is interrupted.
		p.queue = slices.Insert(p.queue, 0, a)
		return
	}
	p.queue = append(p.queue, a)
}

// send takes from the queue what fits the window.
func (p *pull) send() (out []Request) {
	for len(p.queue) > 0 && (p.weight == 0 || p.weight+p.queue[0].weight <= window) {
		a := p.queue[0]
		p.queue = p.queue[1:]
		p.weight += a.weight
		p.requests++
		p.waiting[a.ID] = a
		out = append(out, a.Request)
	}
	return out
}

// claim makes taking a writer's records one pull's. Release ends that.
func (m *mirror) claim(w Writer, peer string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.writers[w]
	if x == nil {
		if len(m.writers) >= maxWriters {
			return false
		}
		x = &writer{trie: new(trie)}
		m.writers[w] = x
	}
	if x.busy != "" {
		return false
	}
	x.busy = peer
	return true
}

func (m *mirror) release(w Writer, peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.writers[w]; x != nil && x.busy == peer {
		x.busy = ""
	}
}

// heads looks at what the peer knows.
func (p *pull) heads(b []byte, err error) error {
	if err != nil {
		return err
	}
	heads, forks, err := parseHeads(b)
	if err != nil {
		return lief("%v", err)
	}
	for _, f := range forks {
		if p.m.welcome(f[0].Writer()) {
			if err := p.m.takeFork(f[0], f[1]); err != nil {
				return lief("%v", err)
			}
		}
	}
	for i := range heads {
		if err := p.consider(&heads[i]); err != nil {
			return err
		}
	}
	return p.wants()
}

// welcome tells whether a writer's heads are taken.
func (m *mirror) welcome(w Writer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.masters == nil || m.masters[w] || w == m.self
}

// consider begins to take what a head stands for, if it is news.
func (p *pull) consider(h *Head) error {
	w := h.Writer()
	p.had[w] = *h
	if !p.m.welcome(w) {
		return nil
	}
	v := p.m.of(w)
	if v.head.Key != nil && h.forks(&v.head) {
		if err := p.m.takeFork(v.head, *h); err != nil {
			return lief("%v", err)
		}
	}
	if v.head.Key != nil && !h.newer(&v.head) && !(v.filling && h.Version == v.head.Version) {
		return nil
	}
	if err := h.verify(p.m.kind); err != nil {
		return lief("%v", err)
	}
	if w == p.m.self && v.head.Key != nil {
		return p.m.recall(h, p.now)
	}
	if !p.m.claim(w, p.peer) {
		return nil
	}
	j := &job{p: p, w: w, head: *h}
	p.jobs[w] = j
	return j.begin()
}

// A job takes what one writer has under one head.
type job struct {
	p       *pull
	w       Writer
	head    Head
	base    view
	again   int       // how often the peer's head moved on
	suspect string    // what the peer told in a log that led nowhere
	open    int       // files of digests that are waited for
	units   int       // units that wait for objects
	pending []Record  // changes that are to be taken together
	ready   []Record  // changes whose objects are here
	recs    []*Record // of the objects that are not stored yet
	objects [][]byte  // those
	size    int       // of those
	closed  bool      // the last commit was made
	walked  bool
	oldest  *Version           // of the records that differ
	small   map[[8]byte][]byte // objects that came with a log, by the beginning of their hashes
	wants   []*Record          // if all it is for are objects that were not to be had before
}

const (
	logWorth   = 4096 // records of a writer that are asked for in a log rather than walked
	maxPuts    = 4 << 20
	maxReady   = 8192
	maxPending = 1024
	mostAgain  = 3
	fewLeaves  = 16 // leaves that are read one by one rather than with all others of a folder
)

// begin asks for the log, or for the root of the digests.
func (j *job) begin() error {
	j.base = j.p.m.of(j.w)
	known := !j.base.filling && j.base.head.Key != nil
	switch {
	case known, j.base.count == 0 && j.head.Count <= logWorth:
		after := Version{}
		if known {
			after = j.base.head.Version
		}
		j.ask("changes/"+j.w.String()+"/"+after.String(), maxDelta*200, weightFolder, j.log)
	default:
		j.walk()
	}
	return nil
}

// ask counts what is open: the job is complete when nothing is.
func (j *job) ask(path string, most, weight int, then func([]byte, error) error) {
	j.open++
	j.p.ask(path, most, weight, func(b []byte, err error) error {
		if j.closed {
			return nil
		}
		if err := then(b, err); err != nil {
			return err
		}
		// Not before: what it asks for may be here already. What leaves have is taken
		// together, so that their objects come in few batches.
		if j.open--; !j.closed && len(j.pending) > 0 && (j.open == 0 || len(j.pending) >= maxPending) {
			changes := j.pending
			j.pending = nil
			if err := j.take(changes, nil); err != nil {
				return err
			}
		}
		return j.check()
	})
}

// log takes the changes after the base. That they lead to what is signed shows that
// they are all, and right.
func (j *job) log(b []byte, err error) error {
	if err != nil {
		if absent(err) {
			j.walk()
			return nil
		}
		return err
	}
	head, changes, small, err := parseLog(b)
	if err != nil {
		return lief("%v", err)
	}
	if head.Writer() != j.w || j.head.newer(&head) {
		return lief("log of writer %s leads to %s of %s, not to %s", j.w, head.Version, head.Writer(), j.head.Version)
	}
	if err := head.verify(j.p.m.kind); err != nil {
		return lief("%v", err)
	}
	j.head = head // it may have moved on
	t, count, err := j.p.m.preview(j.w, j.base, changes)
	if err != nil {
		return err
	}
	if t.sum != j.head.Digest || count != j.head.Count {
		j.suspect = fmt.Sprintf("log of writer %s after %s does not lead to its head %s", j.w, j.base.head.Version, j.head.Version)
		j.walk()
		return nil
	}
	j.small = make(map[[8]byte][]byte)
	err = parseObjects(small, func(hash [8]byte, body []byte) error {
		j.small[hash] = body
		return nil
	})
	if err != nil {
		return lief("log of writer %s: %v", j.w, err)
	}
	for len(changes) > 0 {
		n := min(len(changes), 1024)
		if err := j.take(changes[:n], nil); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// absent tells that a peer does not have a file. A mount has no more than an errno.
func absent(err error) bool {
	for _, class := range []error{iofs.ErrNotExist, iofs.ErrInvalid, syscall.EINVAL, syscall.ESTALE} {
		if errors.Is(err, class) {
			return !isLie(err)
		}
	}
	return false
}

// check makes the last commit when all is here.
func (j *job) check() error {
	if j.open > 0 || j.units > 0 || j.closed {
		return nil
	}
	return j.close()
}

// close commits what is left, under the head.
func (j *job) close() error {
	j.closed = true
	if j.wants != nil {
		if err := j.store(); err != nil {
			return err
		}
		return j.p.m.unwant(j.wants)
	}
	err := j.commit(&j.head)
	if errors.Is(err, errUnequal) {
		// Some of it came from a later state of the peer than the rest.
		return j.restart(err)
	}
	if err != nil {
		return err
	}
	if j.suspect != "" {
		j.blame()
	}
	j.p.m.told("pulled", ndb.Of("peer", j.p.peer), ndb.Of("writer", j.w), ndb.Of("version", j.head.Version), ndb.Of("objects", j.p.objects))
	delete(j.p.jobs, j.w)
	j.p.m.release(j.w, j.p.peer)
	return nil
}

// blame says who is to blame for a log that led nowhere: the writer, if what the walk
// found is older than what was signed to be known here, and else the peer.
func (j *job) blame() {
	if j.oldest != nil && !j.base.head.less(*j.oldest) {
		j.p.m.told("rewritten", ndb.Of("writer", j.w), ndb.Of("known", j.base.head.Version), ndb.Of("changed", *j.oldest), ndb.Of("head", j.head.Version))
		return
	}
	j.p.fail(lief("%s", j.suspect))
}

// doubt is what to do about something that is not under the head: if the peer has
// another head by now it was from that, else the peer lied.
func (j *job) doubt(cause error) error {
	if j.closed {
		return nil
	}
	j.closed = true
	j.p.ask("heads", maxHeadsFile, weightSmall, func(b []byte, err error) error {
		if err != nil {
			return err
		}
		heads, _, err := parseHeads(b)
		if err != nil {
			return lief("%v", err)
		}
		for i := range heads {
			h := &heads[i]
			if h.Writer() == j.w && h.newer(&j.head) && h.verify(j.p.m.kind) == nil {
				j.p.had[j.w] = *h
				j.head = *h
				return j.restart(cause)
			}
		}
		return cause
	})
	return nil
}

// restart begins anew with the head that the peer has now. What is committed stays.
func (j *job) restart(cause error) error {
	if j.again++; j.again > mostAgain {
		return fmt.Errorf("writer %s changes faster than it can be read: %w", j.w, cause)
	}
	n := &job{p: j.p, w: j.w, head: j.head, again: j.again, suspect: j.suspect}
	j.p.jobs[j.w] = n
	return n.begin()
}

// commit has what is ready on disk.
func (j *job) commit(head *Head) error {
	m := j.p.m
	if err := j.store(); err != nil {
		return err
	}
	m.commits.Lock()
	defer m.commits.Unlock()
	o := outcome{foreign: j.w == m.self}
	if head != nil {
		o.sign = func(*trie, int64) *Head { return head }
		if j.walked || j.base.head.Key == nil {
			o.floor = head.Version // what was deleted before is not in the log here
		}
	}
	if err := m.commit(j.p.ctx, j.w, j.ready, o, j.p.now); err != nil {
		return err
	}
	j.p.records += len(j.ready)
	j.ready = nil
	return nil
}

// store stores the objects that have come.
func (j *job) store() error {
	if len(j.recs) == 0 {
		return nil
	}
	put := j.p.m.bodies.put
	if j.wants != nil {
		put = j.p.m.putWanted
	}
	if err := put(j.p.ctx, j.recs, j.objects); err != nil {
		return err
	}
	if j.p.m.taken != nil {
		for i, r := range j.recs {
			j.p.m.taken(j.w, r, j.objects[i])
		}
	}
	j.p.objects += len(j.recs)
	j.recs, j.objects, j.size = nil, nil, 0
	return nil
}

// A unit is changes that wait for their objects.
type unit struct {
	j       *job
	changes []Record
	missing map[[8]byte][]*Record // by the beginning of their hashes
	single  map[store.OID]bool    // asked for one by one
	open    int                   // files that are waited for
	over    bool
}

// take takes changes, and asks for the objects that are not here. Folder is the byte
// that all OIDs begin with, if these are all records below it that differ.
func (j *job) take(changes []Record, folder *byte) error {
	u := &unit{j: j, changes: changes, missing: make(map[[8]byte][]*Record), single: make(map[store.OID]bool)}
	for i := range changes {
		if r := &changes[i]; !r.gone() && (j.oldest == nil || r.less(*j.oldest)) {
			j.oldest = &r.Version
		}
	}
	wanted, err := j.p.m.lacking(j.w, changes, j.p.now)
	if err != nil {
		return err
	}
	var list []*Record
	size := 0
	for _, r := range wanted {
		if body := j.small[[8]byte(r.Hash[:8])]; body != nil {
			if !r.describes(body) {
				return lief("object %s is not what writer %s signed", r.OID, j.w)
			}
			if err := j.arrived(r, body); err != nil {
				return err
			}
			continue
		}
		if j.p.adopt != nil {
			if body := j.p.adopt(r.OID); body != nil && r.describes(body) {
				if err := j.arrived(r, body); err != nil {
					return err
				}
				continue
			}
		}
		list = append(list, r)
		key := [8]byte(r.Hash[:8])
		u.missing[key] = append(u.missing[key], r)
		size += int(r.Size) + 40
	}
	j.units++
	if folder != nil && len(list) > 4*maxBatch && size <= maxAnswer {
		u.open++
		j.p.ask(fmt.Sprintf("pack/%s/%02x", j.w, *folder), maxAnswer+MaxObject, weightPack, u.answer(true, maxAnswer+MaxObject))
	} else {
		u.batches(list)
	}
	return u.check()
}

// lacking gives the changes of which the object is to be fetched: it is not here, has
// time left, and is the one of all writers' that is shown.
func (m *mirror) lacking(w Writer, changes []Record, now time.Time) (list []*Record, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		for i := range changes {
			if r := &changes[i]; !r.gone() && !r.expired(now) && m.shows(tx, w, r) {
				list = append(list, r)
			}
		}
		return nil
	})
	return slices.DeleteFunc(list, m.bodies.has), err
}

func (u *unit) batches(list []*Record) {
	for len(list) > 0 {
		path, size, n := "", 0, 0
		for ; n < len(list) && n < maxBatch && (n == 0 || size < 1<<20); n++ {
			path += "," + list[n].OID.String()
			size += len(objectLine(list[n].Hash, int(list[n].Size))) + int(list[n].Size)
		}
		list = list[n:]
		u.open++
		// If objects are others by now it may be more: then what is cut off is asked for
		// by itself.
		u.j.p.ask("batch/"+path[1:], size, weightSmall+size>>13, u.answer(false, size))
	}
}

// answer takes objects. What was not among those of a pack is asked for in batches,
// what was in none by itself, and what is not there either is left for later.
func (u *unit) answer(pack bool, most int) func([]byte, error) error {
	return func(b []byte, err error) error {
		if u.j.closed {
			return nil
		}
		if err != nil && !absent(err) {
			return err
		}
		if err == nil {
			err := parseObjects(b, u.object)
			if cut := len(b) == most && !isLie(err); err != nil && !cut {
				return u.j.doubt(asLie(err))
			}
		}
		if pack {
			u.batches(u.left())
		}
		u.open--
		return u.check()
	}
}

func isLie(err error) bool {
	var l *lie
	return errors.As(err, &l)
}

func asLie(err error) error {
	if isLie(err) {
		return err
	}
	return lief("%v", err)
}

// object takes one. That it is not what its line says shows a peer that is broken, or
// worse; that it is another than is wanted does not.
func (u *unit) object(hash [8]byte, body []byte) error {
	list := u.missing[hash]
	if list == nil {
		return nil
	}
	for _, r := range list {
		if !r.describes(body) {
			return lief("object %s is not what writer %s signed", r.OID, u.j.w)
		}
		if err := u.j.arrived(r, body); err != nil {
			return err
		}
	}
	delete(u.missing, hash)
	return nil
}

func (u *unit) left() (list []*Record) {
	for _, recs := range u.missing {
		list = append(list, recs...)
	}
	sortByOID(list)
	return list
}

// arrived keeps an object until there are enough to be stored.
func (j *job) arrived(r *Record, body []byte) error {
	j.recs, j.objects = append(j.recs, r), append(j.objects, body)
	if j.size += len(body); j.size < maxPuts {
		return nil
	}
	return j.store()
}

// check ends a unit whose objects are here, or nowhere.
func (u *unit) check() error {
	if u.open > 0 || u.over {
		return nil
	}
	for _, r := range u.left() {
		if !u.single[r.OID] {
			u.single[r.OID] = true
			u.open++
			name := r.OID.String()
			u.j.p.ask("tree/objects/"+name[:2]+"/"+name+".soif", int(r.Size), weightSmall+int(r.Size)>>13, u.lone(r))
		}
	}
	if u.open > 0 {
		return nil
	}
	u.over = true
	j := u.j
	if err := j.p.m.want(u.left()); err != nil {
		return err
	}
	j.ready = append(j.ready, u.changes...)
	if j.units--; len(j.ready) >= maxReady && (j.open > 0 || j.units > 0) {
		if err := j.commit(nil); err != nil {
			return err
		}
	}
	return j.check()
}

// lone takes an object from the tree: a copy of one has nothing else.
func (u *unit) lone(r *Record) func([]byte, error) error {
	return func(b []byte, err error) error {
		u.open--
		if u.j.closed {
			return nil
		}
		if err != nil && !absent(err) {
			return err
		}
		if err == nil && r.describes(b) {
			if err := u.object([8]byte(r.Hash[:8]), b); err != nil {
				return err
			}
		}
		return u.check()
	}
}

// wants asks for the objects that no peer had when their records came.
func (p *pull) wants() error {
	all, err := p.m.wanted(p.now)
	if err != nil {
		return err
	}
	for _, w := range slices.SortedFunc(maps.Keys(all), compareWriters) {
		j := &job{p: p, w: w, wants: all[w]}
		u := &unit{j: j, missing: make(map[[8]byte][]*Record), single: make(map[store.OID]bool)}
		for _, r := range j.wants {
			u.missing[[8]byte(r.Hash[:8])] = append(u.missing[[8]byte(r.Hash[:8])], r)
		}
		j.units++
		u.batches(j.wants)
	}
	return nil
}
