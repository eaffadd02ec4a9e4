package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
)

func TestParseCursor(t *testing.T) {
	s := opened(t, Options{})
	before := time.Now().Add(-time.Minute).UTC()
	apply(t, s, update("http://h/a", "1"), update("http://h/b", "1"))
	now := s.Cursor()
	for _, flushed := range []bool{false, true} {
		for text, want := range map[string]Cursor{
			"0":                              {},
			now.String():                     now,
			before.Format(time.RFC3339):      {},
			before.Format(time.RFC3339Nano):  {},
			"2999-01-01T00:00:00+02:00":      now,
			fmt.Sprintf("%08x.1", now.Epoch): {now.Epoch, 1},
			"0001-01-01T00:00:01Z":           {},
		} {
			if got, err := s.ParseCursor(text); err != nil || got != want {
				t.Errorf("flushed %v: %s: got %v %v, want %v", flushed, text, got, err, want)
			}
		}
		for text, class := range map[string]error{
			"": iofs.ErrInvalid, "1": iofs.ErrInvalid, "00": iofs.ErrInvalid, ".": iofs.ErrInvalid, "yesterday": iofs.ErrInvalid,
			fmt.Sprintf("%08x.01", now.Epoch): iofs.ErrInvalid, fmt.Sprintf("%08x.-1", now.Epoch): iofs.ErrInvalid,
			fmt.Sprintf("%08x.1", now.Epoch+2): ErrCursor, fmt.Sprintf("%08x.3", now.Epoch): ErrCursor,
		} {
			if got, err := s.ParseCursor(text); !errors.Is(err, class) {
				t.Errorf("flushed %v: %q: got %v %v, want %v", flushed, text, got, err, class)
			}
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, text := range []string{"0", "0123abcd.17", "2026-11-21T12:00:00Z", "ffffffff.18446744073709551615", "2026-11-21T12:00:00.5+01:30", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, at, err := splitCursor(text)
		if err != nil {
			return
		}
		if at.IsZero() && c.Seq > 0 && c.String() != text {
			t.Errorf("%q is the cursor %v", text, c)
		}
		if !at.IsZero() && c != (Cursor{}) {
			t.Errorf("%q is a time and the cursor %v", text, c)
		}
	})
}

// TestTimes makes changes in seconds that lie apart, and asks by time.
func TestTimes(t *testing.T) {
	s := opened(t, Options{NoSync: true})
	for i, second := range []int64{100, 200, 300} {
		s.mu.Lock()
		s.totals.second = second - 1
		s.mu.Unlock()
		g := &group{s: s, seq: s.Cursor().Seq, now: second, fresh: make(map[OID]*item)}
		it, err := prepare(&Change{Op: soif.Update, OID: ID(fmt.Sprint(i), "g"), Body: object("http://h/"+fmt.Sprint(i), "x", second)})
		if err != nil {
			t.Fatal(err)
		}
		g.resolve([]*request{{items: []*item{it}}})
		frames, err := s.write(g.items, g.seq, second)
		if err != nil {
			t.Fatal(err)
		}
		s.publish(g, frames)
		if i == 1 {
			if err := s.flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for second, want := range map[int64]uint64{1: 0, 99: 0, 100: 0, 101: 1, 200: 1, 201: 2, 300: 2, 301: 3, 1e9: 3} {
		if c, err := s.cursorAt(time.Unix(second, 0)); err != nil || c.Seq != want {
			t.Errorf("second %d: got %v %v, want change %d", second, c, err, want)
		}
	}
}

func TestWriteSince(t *testing.T) {
	s := opened(t, Options{})
	apply(t, s, update("http://h/a", "1"), update("http://h/b", "1"), update("http://h/c", "1"), update("http://h/d", "1"))
	after := s.Cursor()
	apply(t, s, Change{Op: soif.Refresh, OID: ID("http://h/b", "g"), Updated: time.Unix(800000000, 0), TTL: time.Hour},
		update("http://h/c", "2"), Change{Op: soif.Delete, OID: ID("http://h/a", "g")}, update("http://h/e", "new"))
	for _, packed := range []bool{false, true} {
		var b bytes.Buffer
		write := s.WriteSince
		if packed {
			write = s.WriteSinceZstd
		}
		if err := write(ctx, &b, after); err != nil {
			t.Fatal(err)
		}
		if packed {
			zr, err := zstd.NewReader(&b)
			if err != nil {
				t.Fatal(err)
			}
			defer zr.Close()
			var raw bytes.Buffer
			if _, err := zr.WriteTo(&raw); err != nil {
				t.Fatal(err)
			}
			b = raw
		}
		var got []string
		u := soif.NewUpdateReader(&b, soif.Limits{})
		var c soif.Change
		for u.Next(&c) == nil {
			line := c.Op.String() + " " + c.Object.URL
			if id := c.Object.Text("Object-ID"); id != "" {
				line += " " + id[:4]
			}
			if c.Op == soif.Refresh {
				line += " " + c.Object.Text("Update-Time") + " " + c.Object.Text("Time-to-Live")
			}
			got = append(got, line)
		}
		want := []string{
			"DELETE http://h/a " + ID("http://h/a", "g").String()[:4],
			"REFRESH http://h/b " + ID("http://h/b", "g").String()[:4] + " 800000000 3600",
			"UPDATE http://h/c", "UPDATE http://h/e",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || u.Cursor() != s.Cursor().String() {
			t.Errorf("packed %v: got %q and cursor %s, want %q and %s", packed, got, u.Cursor(), want, s.Cursor())
		}
	}
	b, _, err := s.Get(ID("http://h/b", "g"))
	if o, _, perr := soif.Parse(b, soif.Limits{}); err != nil || perr != nil || o.Text("Update-Time") != "800000000" || o.Text("Time-to-Live") != "3600" || o.Text("Full-Text") != "1" {
		t.Errorf("refreshed object: got %q %v %v", b, err, perr)
	}
}

func TestExpire(t *testing.T) {
	s := opened(t, Options{})
	for i := range 10 {
		c := update(fmt.Sprintf("http://h/%d", i), "x")
		c.Updated, c.TTL = time.Unix(1000, 0), time.Duration(i)*time.Minute // 0 lives for ever
		apply(t, s, c)
	}
	apply(t, s, Change{Op: soif.Refresh, OID: ID("http://h/1", "g"), Updated: time.Unix(5000, 0)})
	n, err := s.Expire(ctx, time.Unix(1000+5*60, 0))
	if err != nil || n != 3 || s.Count() != 7 { // 2, 3, 4: the fifth lasts to the second
		t.Errorf("got %d expired %v, %d left, want 3 and 7", n, err, s.Count())
	}
	if n, err = s.Expire(ctx, time.Unix(1e9, 0)); err != nil || n != 6 || s.Count() != 1 {
		t.Errorf("got %d expired %v, %d left, want 6 and 1", n, err, s.Count())
	}
	if _, err := s.Stat(ID("http://h/0", "g")); err != nil {
		t.Errorf("without a time to live: %v", err)
	}
}

// TestHorizon forgets deletions, and refuses cursors from before them.
func TestHorizon(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{Horizon: time.Nanosecond})
	apply(t, s, update("http://h/a", "1"), update("http://h/b", "1"))
	early := s.Cursor()
	apply(t, s, Change{Op: soif.Delete, OID: ID("http://h/a", "g")})
	late := s.Cursor()
	apply(t, s, update("http://h/c", "1"))
	if _, err := s.ParseCursor(early.String()); err != nil {
		t.Errorf("before: %v", err)
	}
	// A deletion counts from its second; let that be over.
	if err := s.forgetDeletions(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ParseCursor(early.String()); !errors.Is(err, ErrCursor) {
		t.Errorf("cursor before the deletion: got %v, want ErrCursor", err)
	}
	for _, err := range s.Changes(ctx, early) {
		if !errors.Is(err, ErrCursor) {
			t.Errorf("changes after it: got %v, want ErrCursor", err)
		}
	}
	if _, err := s.ParseCursor(late.String()); err != nil {
		t.Errorf("cursor after the deletion: %v", err)
	}
	if st, err := s.Stats(); err != nil || st.Tombstones != 0 {
		t.Errorf("got %d tombstones %v, want none", st.Tombstones, err)
	}
	shut(t, s)
	// An index made anew cannot know what was forgotten.
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{})
	if _, err := s.ParseCursor(early.String()); !errors.Is(err, ErrCursor) || s.Count() != 2 {
		t.Errorf("with a new index: got %v and %d objects, want ErrCursor and 2", err, s.Count())
	}
	shut(t, s)
}

// TestGhost forgets a deletion whose object is still in a segment that Compact
// has left as it is, and has the index made anew.
func TestGhost(t *testing.T) {
	dir := t.TempDir()
	opt := Options{NoSync: true, Frame: 500}
	s := open(t, dir, opt)
	for i := range 100 {
		apply(t, s, update(fmt.Sprintf("http://h/%d", i), fmt.Sprintf("%0500d", i)))
	}
	if err := s.Compact(ctx); err != nil { // begins the second segment
		t.Fatal(err)
	}
	first := s.log.id - 1
	apply(t, s, Change{Op: soif.Delete, OID: ID("http://h/50", "g")})
	for i := range 30 { // frames worth joining
		apply(t, s, update(fmt.Sprintf("http://small/%d", i), ""), Change{Op: soif.Delete, OID: ID(fmt.Sprintf("http://small/%d", i-1), "g")})
	}
	second := s.log.id
	if err := s.forgetDeletions(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if s.segs[first] == nil || s.segs[second] != nil {
		t.Fatalf("segments: got the first %v, the second %v, want only the first to stay", s.segs[first], s.segs[second])
	}
	shut(t, s)
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, opt)
	if _, err := s.Stat(ID("http://h/50", "g")); !errors.Is(err, iofs.ErrNotExist) || s.Count() != 100 {
		t.Errorf("got %v and %d objects, want the deleted one to stay away and 100", err, s.Count())
	}
	shut(t, s)
}

// TestSpace wants Compact to give space back, and small frames to be joined.
func TestSpace(t *testing.T) {
	s := opened(t, Options{NoSync: true, Segment: 200 << 10})
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		apply(t, s, update(fmt.Sprintf("http://h/%d", i%200), fmt.Sprintf("%x", r.Perm(500))))
	}
	segs := func() (n int64) {
		files, err := filepath.Glob(filepath.Join(s.dir, "*.seg"))
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			n += info.Size()
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, _ := s.Stats()
	size := segs()
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	after, err := s.Stats()
	if err != nil || before.Dead == 0 || after.Dead != 0 || after.Bytes != before.Bytes || segs()*10 > size*6 {
		t.Errorf("got %d bytes in segments of %d, %+v %v, want half and none dead", segs(), size, after, err)
	}
	sn, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(sn.frames)); sn.Size()/n < int64(s.opt.Frame/2) {
		t.Errorf("got %d frames of %d bytes", n, sn.Size()/n)
	}
	// A snapshot outlives the segments it is of.
	for i := range 200 {
		apply(t, s, Change{Op: soif.Delete, OID: ID(fmt.Sprintf("http://h/%d", i), "g")})
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	s.frames = frameCache{}
	var b bytes.Buffer
	if err := errors.Join(sn.Write(ctx, &b), sn.Close()); err != nil || int64(b.Len()) != before.Bytes {
		t.Errorf("snapshot after everything was deleted: got %d bytes %v, want %d", b.Len(), err, before.Bytes)
	}
	if after, err := s.Stats(); err != nil || after.Dead != 0 || after.Objects != 0 {
		t.Errorf("got %+v %v, want nothing left", after, err)
	}
}

func TestWait(t *testing.T) {
	s := opened(t, Options{NoSync: true})
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if seq, err := s.Wait(ctx, uint64(i)); err != nil || seq <= uint64(i) {
				t.Errorf("wait for more than %d: got %d %v", i, seq, err)
			}
		})
	}
	for i := range 5 {
		apply(t, s, update(fmt.Sprintf("http://h/%d", i), "x"))
	}
	wg.Wait()
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Wait(done, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v, want canceled", err)
	}
}

// TestTogether has callers, readers and Compact at work at once.
func TestTogether(t *testing.T) {
	s := opened(t, Options{NoSync: true, Frame: 1000, Segment: 50000, Pending: 40})
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := range 40 {
				url := fmt.Sprintf("http://w%d/%d", w, i%10)
				if _, err := s.Apply(ctx, []Change{update(url, fmt.Sprint(i)), update("http://shared/", fmt.Sprint(w, i))}); err != nil {
					t.Error(err)
				}
				if b, _, err := s.Get(ID(url, "g")); err != nil || !bytes.Equal(b, update(url, fmt.Sprint(i)).Body) {
					t.Errorf("%s: got %q %v, want what was just acknowledged", url, b, err)
				}
			}
		})
	}
	for _, f := range []func() error{
		func() error { return s.Compact(ctx) },
		func() error { return s.WriteSOIF(ctx, new(countWriter)) },
		func() error { _, err := s.Digest(""); return err },
		func() error {
			for _, err := range s.Names(ctx, "http", "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return s.WriteSince(ctx, new(countWriter), s.Cursor()) },
	} {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if s.Count() != 41 {
		t.Errorf("got %d objects, want 41", s.Count())
	}
	checkDigest(t, s)
}

// TestRefreshedMeanwhile refreshes objects that are new while the changes are
// read: from the cursor of the call they are told as refreshed, and so are to be
// told as new before.
func TestRefreshedMeanwhile(t *testing.T) {
	const n = 3000
	for _, flushes := range []bool{false, true} {
		s := opened(t, Options{})
		var (
			oids    []OID
			changes []Change
		)
		for i := range n {
			changes = append(changes, update(fmt.Sprintf("http://h/%d", i), "text"))
			oids = append(oids, changes[i].OID)
		}
		apply(t, s, changes...)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(s.flush())
		seen := make(map[OID]int)
		i, last, end := 0, uint64(0), s.Cursor()
		for rec, err := range s.Changes(context.Background(), Cursor{}) {
			must(err)
			if rec.Op != soif.Update || rec.Entry.Seq <= last || rec.Entry.Seq > end.Seq {
				t.Fatalf("got %v of change %d after %d, want an update up to %d", rec.Op, rec.Entry.Seq, last, end.Seq)
			}
			last = rec.Entry.Seq
			seen[rec.Entry.OID]++
			must(s.Contents(context.Background(), []Ref{rec.Entry.Ref()}, func(_ int, _ []byte, err error) bool {
				must(err)
				return true
			}))
			if i%100 == 0 {
				j := n - 1 - i/2
				apply(t, s, Change{Op: soif.Refresh, OID: oids[j], Updated: time.Unix(2e9, 0)})
				if flushes {
					must(s.flush())
				}
			}
			i++
		}
		for i, oid := range oids {
			if seen[oid] != 1 {
				t.Errorf("flushed %v: object %d: told %d times, want once", flushes, i, seen[oid])
			}
		}
		for rec, err := range s.Changes(context.Background(), end) {
			must(err)
			if rec.Op != soif.Refresh {
				t.Errorf("got %v after the call, want a refresh", rec.Op)
			}
		}
	}
}
