package replica

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

var t0 = time.Unix(1_790_000_000, 0)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// events collects what a mirror tells.
type events []string

func (e *events) told(event string, pairs ...ndb.Pair) {
	*e = append(*e, ndb.Format(append([]ndb.Pair{ndb.Of("event", event)}, pairs...)...))
}

func (e events) has(text string) bool { return strings.Contains(strings.Join(e, "\n"), text) }

// newTestMirror makes a mirror with its objects in its database. The seed is its key.
func newTestMirror(tb testing.TB, dir string, seed uint64) (*mirror, *events) {
	tb.Helper()
	db, err := openTable(filepath.Join(dir, "replica.db"), false)
	must(tb, err)
	tb.Cleanup(func() { db.Close() })
	e := new(events)
	m, err := newMirror(mirrorConfig{kind: "mirror", db: db, bodies: tableBodies{db}, key: testKey(seed), told: e.told})
	must(tb, err)
	return m, e
}

func testKey(seed uint64) ed25519.PrivateKey {
	b := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(b, seed)
	return ed25519.NewKeyFromSeed(b)
}

func testOID(n uint64) store.OID { return store.ID(fmt.Sprint(n), "test") }

// put publishes objects with the numbers and a text.
func put(tb testing.TB, m *mirror, now time.Time, text string, numbers ...uint64) {
	tb.Helper()
	var list []publication
	for _, n := range numbers {
		list = append(list, publication{oid: testOID(n), body: fmt.Appendf(nil, "%d %s", n, text), updated: now})
	}
	_, err := m.publish(context.Background(), list, now)
	must(tb, err)
}

func drop(tb testing.TB, m *mirror, numbers ...uint64) {
	tb.Helper()
	var list []publication
	for _, n := range numbers {
		list = append(list, publication{oid: testOID(n)})
	}
	_, err := m.publish(context.Background(), list, t0)
	must(tb, err)
}

func upTo(n uint64) (all []uint64) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// exchange has one mirror pull from another; answer may be nil, or change what is
// answered.
func exchange(tb testing.TB, to, from *mirror, answer func(path string) ([]byte, error)) *pull {
	tb.Helper()
	if answer == nil {
		answer = from.answer
	}
	p, out := to.pull(context.Background(), "peer", t0, nil)
	defer p.end()
	for len(out) > 0 && !p.done() {
		r := out[0]
		b, err := answer(r.Path)
		out = append(out[1:], p.step(Reply{r.ID, b, err})...)
	}
	if !p.done() {
		tb.Fatalf("got a pull that asks nothing and waits for %d replies", len(p.waiting))
	}
	return p
}

// same fails unless two mirrors have the same, and it is what their digests say.
func same(tb testing.TB, a, b *mirror) {
	tb.Helper()
	if x, y := string(a.headsFile()), string(b.headsFile()); x != y || a.rootNow() != b.rootNow() {
		tb.Errorf("got heads\n%s\nand\n%s\nwant equal ones", x, y)
	}
	if x, y := objects(tb, a), objects(tb, b); len(x) != len(y) {
		tb.Errorf("got %d and %d objects, want as many", len(x), len(y))
	} else {
		for oid, body := range x {
			if y[oid] != body {
				tb.Errorf("object %s: got %q and %q, want the same", oid, body, y[oid])
			}
		}
	}
	whole(tb, a)
	whole(tb, b)
}

// whole fails unless each record has its object, and the digests are those of the
// records.
func whole(tb testing.TB, m *mirror) {
	tb.Helper()
	for w := range m.writers {
		v := m.of(w)
		must(tb, m.db.View(func(tx *bbolt.Tx) error {
			tr, n, err := tableOf(tx, w).build()
			if tr.sum != v.trie.sum || n != v.count {
				tb.Errorf("writer %s: got %d records with digest %x, want %d with %x", w, v.count, v.trie.sum, n, tr.sum)
			}
			return err
		}))
	}
}

func objects(tb testing.TB, m *mirror) map[store.OID]string {
	tb.Helper()
	all := make(map[store.OID]string)
	must(tb, m.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("body")).ForEach(func(k, v []byte) error {
			all[store.OID(k)] = string(v)
			return nil
		})
	}))
	return all
}

// TestPull goes through all ways of taking what a writer has: the first time by log
// and by walk, changes by log, changes by walk, deletions, nothing.
func TestPull(t *testing.T) {
	for _, n := range []uint64{1, 100, 6000} {
		a, _ := newTestMirror(t, t.TempDir(), 1)
		b, _ := newTestMirror(t, t.TempDir(), 2)
		put(t, a, t0, "one", upTo(n)...)
		p := exchange(t, b, a, nil)
		must(t, p.err)
		if walks := min(1, int(n)/5000); p.walks != walks || p.objects != int(n) {
			t.Errorf("%d objects: got %d walks for %d, want %d", n, p.walks, p.objects, walks)
		}
		same(t, a, b)

		put(t, a, t0.Add(time.Second), "two", 0, n/2, n+1)
		drop(t, a, n/3)
		p = exchange(t, b, a, nil)
		must(t, p.err)
		if p.walks != 0 || p.requests > 3 {
			t.Errorf("%d objects, three changes: got %d walks and %d requests, want them by log", n, p.walks, p.requests)
		}
		same(t, a, b)

		put(t, a, t0.Add(2*time.Second), "three", 0, n/2, n+2)
		drop(t, a, n+1)
		p = exchange(t, b, a, func(path string) ([]byte, error) {
			if strings.HasPrefix(path, "changes/") {
				return nil, errFar
			}
			return a.answer(path)
		})
		must(t, p.err)
		if p.walks != 1 {
			t.Errorf("%d objects, three changes: got %d walks, want one", n, p.walks)
		}
		same(t, a, b)

		// What came by a walk goes on to others.
		c, _ := newTestMirror(t, t.TempDir(), 3)
		must(t, exchange(t, c, b, nil).err)
		same(t, b, c)
		p = exchange(t, c, a, nil)
		must(t, p.err)
		if p.requests != 1 || p.objects != 0 {
			t.Errorf("nothing to take: got %d requests and %d objects, want the heads alone", p.requests, p.objects)
		}
	}
}

// TestPullRandom does random things to three writers that pull from each other, and
// holds what comes of it to a map.
func TestPullRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var all []*mirror
		want := make(map[store.OID]string)
		for i := range uint64(3) {
			m, _ := newTestMirror(t, t.TempDir(), i+1)
			all = append(all, m)
		}
		now := t0
		for range 60 {
			now = now.Add(time.Second)
			i := r.IntN(3)
			switch r.IntN(3) {
			case 0: // each writer has its own numbers
				n := uint64(r.IntN(50)*3 + i)
				put(t, all[i], now, fmt.Sprint(now), n)
				want[testOID(n)] = fmt.Sprintf("%d %s", n, now)
			case 1:
				n := uint64(r.IntN(50)*3 + i)
				drop(t, all[i], n)
				delete(want, testOID(n))
			case 2:
				must(t, exchange(t, all[i], all[(i+1+r.IntN(2))%3], nil).err)
			}
		}
		for range 2 {
			for i := range 3 {
				must(t, exchange(t, all[i], all[(i+1)%3], nil).err)
				must(t, exchange(t, all[i], all[(i+2)%3], nil).err)
			}
		}
		same(t, all[0], all[1])
		same(t, all[1], all[2])
		got := objects(t, all[0])
		if len(got) != len(want) {
			t.Errorf("seed %d: got %d objects, want %d", seed, len(got), len(want))
		}
		for oid, body := range want {
			if got[oid] != body {
				t.Errorf("seed %d: object %s: got %q, want %q", seed, oid, got[oid], body)
			}
		}
	}
}

// noBodies keeps no objects: all are there.
type noBodies struct{}

func (noBodies) put(context.Context, []*Record, [][]byte) error { return nil }
func (noBodies) remove(context.Context, []store.OID) error      { return nil }
func (noBodies) get(store.OID) ([]byte, error)                  { return nil, iofs.ErrNotExist }
func (noBodies) has(*Record) bool                               { return true }
