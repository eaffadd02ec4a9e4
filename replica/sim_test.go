package replica

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/store"
)

// A sim is a group of members in one goroutine: the step function and the answers are
// those of the product, databases too; time, the network and what goes wrong are made
// of a seed.
type sim struct {
	t      *testing.T
	r      *rand.Rand
	now    time.Time
	agenda agenda
	nodes  []*simNode
	seq    int

	loss, double float64 // of messages
	delay        func(from, to int) time.Duration
	cut          func(from, to int) bool
	messages     int
}

// A simNode is a member.
type simNode struct {
	*mirror
	ev     *events
	id     int
	dir    string
	up     bool
	pulls  map[int]*simPull // by member
	aside  map[int]time.Time
	lies   map[int]string                    // members that were found out
	answer func(path string) ([]byte, error) // instead of the mirror's own; nil: that
	arrive map[store.OID]int                 // how often each object came
}

// A simPull is a pull that is under way.
type simPull struct {
	p     *pull
	asked map[uint64]Request
}

type event struct {
	at  time.Time
	seq int // of equal times the first that was planned
	do  func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}

func (s *sim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.agenda, event{s.now.Add(d), s.seq, do})
}

// run goes on for a time.
func (s *sim) run(d time.Duration) {
	end := s.now.Add(d)
	for len(s.agenda) > 0 && !s.agenda[0].at.After(end) {
		e := heap.Pop(&s.agenda).(event)
		s.now = e.at
		e.do()
	}
	s.now = end
}

// simDir is where databases are quick to make.
func simDir(t *testing.T) string {
	if dir, err := os.MkdirTemp("/dev/shm", "harvest-sim-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

func newSim(t *testing.T, seed uint64, n int) *sim {
	s := &sim{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: t0}
	s.delay = func(int, int) time.Duration { return time.Duration(10+s.r.IntN(115)) * time.Millisecond }
	s.cut = func(int, int) bool { return false }
	dir := simDir(t)
	for i := range n {
		d := filepath.Join(dir, fmt.Sprint(i))
		must(t, os.Mkdir(d, 0o777))
		node := &simNode{id: i, dir: d, lies: make(map[int]string), aside: make(map[int]time.Time), arrive: make(map[store.OID]int)}
		s.nodes = append(s.nodes, node)
		s.start(node)
	}
	t.Cleanup(func() {
		for _, n := range s.nodes {
			n.db.Close()
		}
	})
	return s
}

// start opens a node's database and has it look at all others.
func (s *sim) start(n *simNode) {
	db, err := openTable(filepath.Join(n.dir, "replica.db"), false)
	must(s.t, err)
	if n.ev == nil {
		n.ev = new(events)
	}
	n.mirror, err = newMirror(mirrorConfig{kind: "mirror", db: db, bodies: tableBodies{db}, key: testKey(uint64(n.id + 1)), told: n.ev.told,
		taken: func(_ Writer, r *Record, _ []byte) { n.arrive[r.OID]++ }})
	must(s.t, err)
	n.up, n.pulls = true, make(map[int]*simPull)
	for i := range s.nodes {
		s.every(n, i)
	}
}

// kill ends a node between two steps: what it had not on disk is gone.
func (s *sim) kill(n *simNode) {
	n.up = false
	must(s.t, n.db.Close())
}

// every has a node exchange with another each minute, as long as it is up.
func (s *sim) every(n *simNode, peer int) {
	m := n.mirror
	var again func()
	again = func() {
		if n.mirror == m && n.up {
			s.pull(n, peer, nil)
			s.after(time.Minute, again)
		}
	}
	s.after(time.Duration(s.r.IntN(1000))*time.Millisecond, again)
}

// tell has a node say that it has news, as heads.live does: to all others, by messages
// that may be lost.
func (s *sim) tell(n *simNode) {
	heads := n.headsFile()
	if n.answer != nil {
		heads, _ = n.answer("heads")
	}
	for i := range s.nodes {
		if i != n.id {
			s.send(n.id, i, func() { s.pull(s.nodes[i], n.id, heads) })
		}
	}
}

// send has something done at a node after a while, if no message is lost, and maybe
// twice.
func (s *sim) send(from, to int, do func()) {
	s.messages++
	if s.cut(from, to) || s.r.Float64() < s.loss {
		return
	}
	s.after(s.delay(from, to), do)
	if s.r.Float64() < s.double {
		s.after(s.delay(from, to)+time.Duration(s.r.IntN(500))*time.Millisecond, do)
	}
}

// pull has a node pull from another.
func (s *sim) pull(n *simNode, peer int, heads []byte) {
	if !n.up || n.pulls[peer] != nil || peer == n.id || s.now.Before(n.aside[peer]) {
		return
	}
	before := n.rootNow()
	p, out := n.mirror.pull(context.Background(), fmt.Sprint(peer), s.now, heads)
	sp := &simPull{p: p, asked: make(map[uint64]Request)}
	n.pulls[peer] = sp
	s.went(n, peer, sp, out, before)
}

// went sends what a step asks for, or ends the pull.
func (s *sim) went(n *simNode, peer int, sp *simPull, out []Request, before digest) {
	for _, q := range out {
		sp.asked[q.ID] = q
		s.request(n, peer, sp, q, 0)
	}
	if n.rootNow() != before {
		s.tell(n)
	}
	if !sp.p.done() {
		return
	}
	sp.p.end()
	delete(n.pulls, peer)
	if l, ok := sp.p.err.(*lie); ok {
		n.lies[peer] = l.text
		n.aside[peer] = s.now.Add(asideFor)
	}
}

// request sends a request, again when there is no reply in two seconds, and gives up
// after five times.
func (s *sim) request(n *simNode, peer int, sp *simPull, q Request, try int) {
	m := n.mirror
	s.send(n.id, peer, func() {
		from := s.nodes[peer]
		if !from.up {
			return
		}
		answer := from.answer
		if answer == nil {
			answer = from.mirror.answer
		}
		b, err := answer(q.Path)
		s.send(peer, n.id, func() {
			if !n.up || n.mirror != m || n.pulls[peer] != sp {
				return
			}
			delete(sp.asked, q.ID)
			before := n.rootNow()
			s.went(n, peer, sp, sp.p.step(Reply{q.ID, b, err}), before)
		})
	})
	s.after(2*time.Second, func() {
		if _, waits := sp.asked[q.ID]; !waits || !n.up || n.mirror != m || n.pulls[peer] != sp {
			return
		}
		if try == 5 {
			sp.p.fail(context.DeadlineExceeded)
			s.went(n, peer, sp, nil, n.rootNow())
			return
		}
		s.request(n, peer, sp, q, try+1)
	})
}

// publish has a node write something.
func (s *sim) publish(n *simNode, list ...publication) {
	if !n.up {
		return
	}
	_, err := n.mirror.publish(context.Background(), list, s.now)
	must(s.t, err)
	s.tell(n)
}

// simSeeds is how many schedules each test goes through.
func simSeeds(t *testing.T, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("HARVEST_SEEDS")); err == nil {
		usual = n
	}
	t.Logf("%d seeds; HARVEST_SEEDS=1000 goes through 1000", usual)
	return usual
}

// simWorld is what the members are to have in the end.
type simWorld map[store.OID]string

// work has a node write or delete one of its own 40 objects.
func (s *sim) work(n *simNode, want simWorld) {
	if !n.up {
		return
	}
	number := uint64(s.r.IntN(40)*len(s.nodes) + n.id)
	oid := testOID(number)
	if s.r.IntN(4) == 0 {
		delete(want, oid)
		s.publish(n, publication{oid: oid})
		return
	}
	text := fmt.Sprintf("%d %d", number, s.r.Uint64())
	want[oid] = text
	s.publish(n, publication{oid: oid, body: []byte(text), updated: s.now})
}

// converged fails unless all have the same, and just what was written last.
func (s *sim) converged(seed int, want simWorld, except ...int) {
	s.t.Helper()
	var root digest
	for _, n := range s.nodes {
		if slices.Contains(except, n.id) {
			continue
		}
		got := objects(s.t, n.mirror)
		for oid, text := range want {
			if got[oid] != text {
				s.t.Errorf("seed %d: member %d has %q of %s, want %q: lost", seed, n.id, got[oid], oid, text)
			}
		}
		for oid := range got {
			if _, ok := want[oid]; !ok {
				s.t.Errorf("seed %d: member %d has %s, which was deleted: resurrected", seed, n.id, oid)
			}
		}
		if root == (digest{}) {
			root = n.rootNow()
		}
		if n.rootNow() != root {
			s.t.Errorf("seed %d: member %d has another root than the first\n%s", seed, n.id, n.headsFile())
		}
		whole(s.t, n.mirror)
		if len(n.lies) > 0 && len(except) == 0 {
			s.t.Errorf("seed %d: member %d calls %v liars, and there are none", seed, n.id, n.lies)
		}
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// TestSimLoss loses and doubles messages while all members write: when they are done,
// all have the same.
func TestSimLoss(t *testing.T) {
	for seed := range simSeeds(t, 8) {
		s := newSim(t, uint64(seed), 5)
		s.loss, s.double = 0.1, 0.1
		want := make(simWorld)
		for range 100 {
			s.work(s.nodes[s.r.IntN(5)], want)
			s.run(time.Duration(s.r.IntN(2000)) * time.Millisecond)
		}
		s.run(5 * time.Minute)
		s.converged(seed, want)
	}
}

// TestSimPartition cuts five members from five for ten minutes, while both sides write,
// and has the cut healed.
func TestSimPartition(t *testing.T) {
	var healed time.Duration
	for seed := range simSeeds(t, 4) {
		s := newSim(t, uint64(seed), 10)
		want := make(simWorld)
		for range 30 {
			s.work(s.nodes[s.r.IntN(10)], want)
			s.run(200 * time.Millisecond)
		}
		s.cut = func(from, to int) bool { return from < 5 != (to < 5) }
		for range 120 {
			s.work(s.nodes[s.r.IntN(10)], want)
			s.run(5 * time.Second)
		}
		if s.nodes[0].rootNow() == s.nodes[9].rootNow() {
			t.Errorf("seed %d: both sides have the same root, though they were cut from each other", seed)
		}
		s.cut = func(int, int) bool { return false }
		begun := s.now
		for !s.equal() && s.now.Sub(begun) < 5*time.Minute {
			s.run(100 * time.Millisecond)
		}
		healed = max(healed, s.now.Sub(begun))
		s.converged(seed, want)
	}
	t.Logf("equal %s after healing at most: members look at each other once a minute", healed)
}

func (s *sim) equal() bool {
	for _, n := range s.nodes[1:] {
		if n.rootNow() != s.nodes[0].rootNow() {
			return false
		}
	}
	return true
}

// TestSimKill kills members in the middle of what they do, twenty times each run.
func TestSimKill(t *testing.T) {
	for seed := range simSeeds(t, 4) {
		s := newSim(t, uint64(seed), 4)
		s.loss = 0.1
		want := make(simWorld)
		for range 20 {
			for range 5 {
				s.work(s.nodes[s.r.IntN(4)], want)
				s.run(time.Duration(s.r.IntN(150)) * time.Millisecond)
			}
			n := s.nodes[s.r.IntN(4)]
			s.kill(n)
			s.run(time.Duration(s.r.IntN(3000)) * time.Millisecond)
			s.start(n)
		}
		s.run(5 * time.Minute)
		s.converged(seed, want)
	}
}

// TestSimOld gives a writer an old disk: what it wrote since is gone here and known
// elsewhere; it goes on in another epoch, and all have what it says then.
func TestSimOld(t *testing.T) {
	for seed := range simSeeds(t, 3) {
		s := newSim(t, uint64(seed), 3)
		want := make(simWorld)
		for range 30 {
			s.work(s.nodes[s.r.IntN(3)], want)
			s.run(300 * time.Millisecond)
		}
		s.run(time.Minute)
		n := s.nodes[0]
		kept, err := copyDB(n)
		must(t, err)
		had := objects(t, n.mirror)
		for range 10 {
			s.work(n, make(simWorld))
			s.run(time.Second)
		}
		s.kill(n)
		must(t, os.WriteFile(filepath.Join(n.dir, "replica.db"), kept, 0o600))
		s.start(n)
		s.run(5 * time.Minute)
		if !n.ev.has("event=epoch") {
			t.Errorf("seed %d: got events %v, want another epoch", seed, *n.ev)
		}
		s.converged(seed, simWorld(had))
		s.work(n, want)
		s.run(time.Minute)
		if !s.equal() {
			t.Errorf("seed %d: not equal after the writer went on", seed)
		}
	}
}

func copyDB(n *simNode) ([]byte, error) {
	var b bytes.Buffer
	err := n.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&b)
		return err
	})
	return b.Bytes(), err
}

// TestSimLiars has one member of five lie in each of the ways there are: nothing that
// was not signed is taken by any other, the liar is named, and all others end equal.
func TestSimLiars(t *testing.T) {
	liars := []struct {
		name  string
		named string // what is said of it
		lie   func(s *sim, n *simNode) func(path string) ([]byte, error)
	}{
		{"flips bits of objects", "is not what writer", func(s *sim, n *simNode) func(string) ([]byte, error) {
			return flip(s, n, "batch/", "pack/", "changes/") // what is at the end of a log is an object
		}},
		{"flips bits of digests", "is not what", func(s *sim, n *simNode) func(string) ([]byte, error) {
			return func(path string) ([]byte, error) {
				if strings.HasPrefix(path, "changes/") {
					return nil, errFar
				}
				return flip(s, n, "sum/")(path)
			}
		}},
		{"flips bits of signatures", "head", func(s *sim, n *simNode) func(string) ([]byte, error) {
			return func(path string) ([]byte, error) {
				b, err := n.mirror.answer(path)
				if i := bytes.IndexByte(b, '\n'); path == "heads" && i > 0 {
					b = bytes.Clone(b)
					b[i-40] ^= 1 // of the signature
				}
				return b, err
			}
		}},
		{"raises a head that it did not sign", "not signed by it", func(s *sim, n *simNode) func(string) ([]byte, error) {
			return func(path string) ([]byte, error) {
				b, err := n.mirror.answer(path)
				if path == "heads" && err == nil {
					heads, _, err := parseHeads(b)
					must(s.t, err)
					b = nil
					for i := range heads {
						heads[i].Seq += 1000
						b = append(b, heads[i].line()+"\n"...)
					}
				}
				return b, err
			}
		}},
		{"leaves changes out of logs", "does not lead to its head", func(s *sim, n *simNode) func(string) ([]byte, error) {
			return func(path string) ([]byte, error) {
				b, err := n.mirror.answer(path)
				lines, _, _ := cutLog(b)
				if i := bytes.LastIndexByte(lines[:max(len(lines)-1, 0)], '\n'); strings.HasPrefix(path, "changes/") && i >= 0 {
					b = lines[:i+1]
				}
				return b, err
			}
		}},
		{"sends rubbish", "", func(s *sim, n *simNode) func(string) ([]byte, error) {
			return func(path string) ([]byte, error) {
				b := make([]byte, s.r.IntN(4000))
				for i := range b {
					b[i] = byte(s.r.Uint32())
				}
				return b, nil
			}
		}},
	}
	for _, l := range liars {
		t.Run(l.name, func(t *testing.T) {
			found := 0 // seeds in which it was named; it may never be asked
			for seed := range simSeeds(t, 2) {
				s := newSim(t, uint64(seed), 5)
				n := s.nodes[4]
				n.answer = l.lie(s, n)
				want := make(simWorld)
				for range 60 {
					s.work(s.nodes[s.r.IntN(4)], want)
					s.run(time.Duration(s.r.IntN(400)) * time.Millisecond)
				}
				s.run(20 * time.Minute)
				s.converged(seed, want, 4)
				named := false
				for _, o := range s.nodes[:4] {
					named = named || strings.Contains(o.lies[4], l.named) && o.lies[4] != ""
					for peer, text := range o.lies {
						if peer != 4 {
							t.Errorf("seed %d: member %d calls %d a liar: %s", seed, o.id, peer, text)
						}
					}
				}
				if named {
					found++
				}
			}
			if found == 0 {
				t.Errorf("got no member that says of the liar %q", l.named)
			}
		})
	}
}

// flip flips a bit of some answers.
func flip(s *sim, n *simNode, kinds ...string) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		b, err := n.mirror.answer(path)
		for _, k := range kinds {
			if strings.HasPrefix(path, k) && len(b) > 0 {
				b = bytes.Clone(b)
				b[len(b)-1-s.r.IntN(min(len(b), 8))] ^= 1 << s.r.IntN(8)
			}
		}
		return b, err
	}
}

// TestSimReplay has a member go back to old heads: nothing is taken back.
func TestSimReplay(t *testing.T) {
	for seed := range simSeeds(t, 1) {
		s := newSim(t, uint64(seed), 4)
		want := make(simWorld)
		for range 30 {
			s.work(s.nodes[s.r.IntN(3)], want)
			s.run(300 * time.Millisecond)
		}
		n := s.nodes[3]
		old := n.headsFile()
		n.answer = func(path string) ([]byte, error) {
			if path == "heads" {
				return old, nil
			}
			return n.mirror.answer(path)
		}
		for range 30 {
			s.work(s.nodes[s.r.IntN(3)], want)
			s.run(300 * time.Millisecond)
		}
		s.run(5 * time.Minute)
		s.converged(seed, want)
	}
}

// TestSimFork has a writer sign two different things for one version, and tell them to
// different members: all come to have the one with the higher digest, and the proof.
func TestSimFork(t *testing.T) {
	for seed := range simSeeds(t, 3) {
		s := newSim(t, uint64(seed), 5)
		s.work(s.nodes[0], make(simWorld))
		s.run(time.Minute)
		// A twin of member 4 with the same key, that only member 0 hears.
		n := s.nodes[4]
		dir := filepath.Join(n.dir, "twin")
		must(t, os.Mkdir(dir, 0o777))
		twin := &simNode{id: 4, dir: dir, lies: make(map[int]string), aside: make(map[int]time.Time), arrive: make(map[store.OID]int)}
		db, err := openTable(filepath.Join(dir, "replica.db"), false)
		must(t, err)
		defer db.Close()
		twin.mirror, err = newMirror(mirrorConfig{kind: "mirror", db: db, bodies: tableBodies{db}, key: testKey(5)})
		must(t, err)
		put(t, n.mirror, s.now, "one", 1, 2, 3)
		put(t, twin.mirror, s.now, "two", 1, 2, 4)
		p := exchange(t, s.nodes[0].mirror, twin.mirror, nil)
		must(t, p.err)
		s.kill(n) // it says no more
		must(t, exchange(t, s.nodes[1].mirror, reopened(t, n), nil).err)
		s.run(10 * time.Minute)
		for i, o := range s.nodes[:4] {
			if o.rootNow() != s.nodes[0].rootNow() {
				t.Errorf("seed %d: member %d has another root than the first\n%s", seed, i, o.headsFile())
			}
			if _, forks := o.heads(); len(forks) != 1 || forks[0][0].Writer() != n.self {
				t.Errorf("seed %d: member %d has %d proofs, want one of writer %s", seed, i, len(forks), n.self)
			}
			if len(o.lies) > 0 {
				t.Errorf("seed %d: member %d calls %v liars, though the writer forked", seed, i, o.lies)
			}
			whole(t, o.mirror)
		}
	}
}

// reopened is what a killed node had.
func reopened(t *testing.T, n *simNode) *mirror {
	db, err := openTable(filepath.Join(n.dir, "replica.db"), false)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	m, err := newMirror(mirrorConfig{kind: "mirror", db: db, bodies: tableBodies{db}, key: testKey(uint64(n.id + 1))})
	must(t, err)
	return m
}
