package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/soif"
)

func TestSorter(t *testing.T) {
	for _, limit := range []int{1, 100, 5000, 1 << 20} {
		s := sorter{dir: t.TempDir(), limit: limit}
		r := rand.New(rand.NewPCG(1, uint64(limit)))
		type kv struct{ k, v string }
		var want []kv
		for i := range 1000 {
			p := kv{fmt.Sprintf("%0*d", 1+r.IntN(9), r.IntN(200)), fmt.Sprint(i)}
			want = append(want, p)
			if err := s.add([]byte(p.k), []byte(p.v)); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortStableFunc(want, func(a, b kv) int { return bytes.Compare([]byte(a.k), []byte(b.k)) })
		var got []kv
		err := s.each(func(k, v []byte) error {
			got = append(got, kv{string(k), string(v)})
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("limit %d: got %d pairs %v, want %d in order", limit, len(got), err, len(want))
		}
		if spilled := len(s.runs) > 0; spilled != (limit < 1<<20) {
			t.Errorf("limit %d: %d runs", limit, len(s.runs))
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(s.dir); len(left) > 0 {
			t.Errorf("limit %d: left %v", limit, left)
		}
	}
}

// dump returns all that the index has, but what a new one may have otherwise.
func dump(t *testing.T, s *Store) map[string]string {
	t.Helper()
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	err := s.db.View(func(tx *bbolt.Tx) error {
		for _, name := range bucketNames {
			err := tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error {
				all[name+" "+string(k)] = string(v)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The tree counts as changed by the last change.
	tree := binary.BigEndian.Uint64([]byte(all["meta tree"]))
	if seq := binary.BigEndian.Uint64([]byte(all["meta seq"])); tree > seq {
		t.Errorf("tree %d, after the last change %d", tree, seq)
	}
	delete(all, "meta tree")
	return all
}

// TestRebuild wants an index that is made anew to be the one that grew with the
// changes, key by key, also when all did not fit into memory.
func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Frame: 3000, Segment: 100 << 10, Pending: 8, NoSync: true}
	s := open(t, dir, opt)
	r := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		var batch []Change
		for range 20 {
			oid := ID(fmt.Sprint(r.IntN(1500)), "g")
			switch r.IntN(8) {
			case 0:
				batch = append(batch, Change{Op: soif.Delete, OID: oid})
			default:
				// Objects share URLs, and change them.
				c := update(fmt.Sprintf("http://h%d/%d", r.IntN(3), r.IntN(300)), fmt.Sprint(r.IntN(5)))
				c.OID, c.TTL = oid, time.Duration(r.IntN(3))*time.Hour
				batch = append(batch, c)
			}
		}
		apply(t, s, batch...)
	}
	want := dump(t, s)
	shut(t, s)
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, opt)
	got := dump(t, s)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%q: got %q, want %q", k, got[k], v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%q: got %q, want nothing", k, got[k])
		}
	}
	shut(t, s)
	if len(want) < 4000 {
		t.Errorf("only %d keys were compared", len(want))
	}
	if _, err := os.Stat(filepath.Join(dir, sortName)); err == nil {
		t.Errorf("%s is left", sortName)
	}
}
