package segment

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func keyOf(i int) Key { return KeyOf(fmt.Sprint(i)) }

// KeyOf is for tests what the cache does with URLs.
func KeyOf(s string) (k Key) {
	sum := sha256.Sum256([]byte(s))
	copy(k[:], sum[:])
	return k
}

// crash leaves a store as the end of its process would: what is written is not sealed.
func crash(s *Store) {
	s.sealing.Wait()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.lock.Close()
}

// bodyOf is a body that is told from its number: n bytes.
func bodyOf(i, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(i), 1))
	for j := 0; j+8 <= n; j += 8 {
		binary.LittleEndian.PutUint64(b[j:], r.Uint64())
	}
	return b
}

func open(t *testing.T, dir string, opt Options) *Store {
	t.Helper()
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t *testing.T, s *Store, i, n int) Ref {
	t.Helper()
	ref, err := s.Put(keyOf(i), fmt.Appendf(nil, "meta of %d", i), bodyOf(i, n), time.Unix(int64(i), 0))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func putLarge(t *testing.T, s *Store, i, n int) {
	t.Helper()
	b, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(b, bytes.NewReader(bodyOf(i, n))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutBody(keyOf(i), fmt.Appendf(nil, "meta of %d", i), b, time.Unix(int64(i), 0)); err != nil {
		t.Fatal(err)
	}
}

// check reads object i; a body that is not whole and right is a failure, one that
// is not there is told.
func check(t *testing.T, s *Store, i, n int) bool {
	t.Helper()
	refs := s.Find(keyOf(i))
	if len(refs) == 0 {
		return false
	}
	o, err := s.Open(refs[0])
	if errors.Is(err, iofs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size))
	if err != nil || !bytes.Equal(got, bodyOf(i, n)) || string(o.Meta) != fmt.Sprintf("meta of %d", i) || o.Came.Unix() != int64(i) {
		t.Fatalf("object %d: got %d bytes, meta %q, %v", i, len(got), o.Meta, err)
	}
	return true
}

func TestEntry(t *testing.T) {
	if got := unsafe.Sizeof(entry{}); got != 40 {
		t.Errorf("an entry is %d bytes, want 40", got)
	}
}

// TestStore takes objects of all sizes through restarts, orderly and not.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Disk: 64 << 20, Segment: 1 << 20}
	sizes := []int{0, 1, 1000, blockSize - 1, blockSize, blockSize + 1, 200 << 10}
	s := open(t, dir, opt)
	for i, n := range sizes {
		put(t, s, i, n)
	}
	putLarge(t, s, 100, 3*blockSize+5)
	putLarge(t, s, 101, 0)
	all := func(s *Store) {
		t.Helper()
		for i, n := range sizes {
			if !check(t, s, i, n) {
				t.Errorf("object %d is not there", i)
			}
		}
		if !check(t, s, 100, 3*blockSize+5) || !check(t, s, 101, 0) {
			t.Error("an object with a file of its own is not there")
		}
	}
	all(s)
	if _, err := Open(dir, opt); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("opened twice: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, opt)
	all(s)
	before := s.Stats()
	crash(s)
	s = open(t, dir, opt)
	all(s)
	if got := s.Stats(); got.Objects != before.Objects || got.Objects != len(sizes)+2 {
		t.Errorf("got %+v, want %+v", got, before)
	}
}

// TestRemove keeps what was removed removed, over restarts and the end of the
// segment that says so.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Disk: 4 << 20, Segment: 128 << 10}
	s := open(t, dir, opt)
	first := put(t, s, 1, 10)
	put(t, s, 1, 10)
	putLarge(t, s, 2, 500)
	put(t, s, 3, 10)
	if err := s.Remove(first); err != nil {
		t.Fatal(err)
	}
	if got := s.Find(keyOf(1)); len(got) != 1 || got[0] == first {
		t.Errorf("got %v, want the second", got)
	}
	for _, i := range []int{1, 2} {
		if err := s.Remove(Ref{key: keyOf(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := os.ReadDir(filepath.Join(dir, "body")); len(files) != 0 {
		t.Errorf("the file of a removed object stays: %v", files)
	}
	for round := range 3 {
		if check(t, s, 1, 10) || check(t, s, 2, 500) || !check(t, s, 3, 10) {
			t.Fatalf("round %d: the wrong objects are there", round)
		}
		crash(s)
		s = open(t, dir, opt)
	}
	// The word of it goes from segment to segment while what it is about may be there.
	for i := 10; i < 10000; i++ {
		put(t, s, i, 1000)
		if i%100 == 0 {
			s.Use(s.Find(keyOf(i))[0])
		}
	}
	crash(s)
	s = open(t, dir, opt)
	if check(t, s, 1, 10) || check(t, s, 2, 500) {
		t.Error("what was removed is there again")
	}
}

// TestTorn damages each kind of place and finds the object gone, never wrong.
func TestTorn(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		for at := int64(0); at < 3000; at += 37 {
			dir := t.TempDir()
			s := open(t, dir, Options{})
			for i := range 3 {
				put(t, s, i, 700)
			}
			if sealed {
				s.Close()
			} else {
				crash(s)
			}
			name := filepath.Join(dir, segmentName(1, small))
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if at >= int64(len(b)) {
				break
			}
			b[at] ^= 0x10
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, Options{})
			there := 0
			for i := range 3 {
				if check(t, s, i, 700) {
					there++
				}
			}
			if there < 2 {
				t.Errorf("byte %d (sealed %v): %d objects are there, want at least 2", at, sealed, there)
			}
			s.Close()
		}
	}
}

// TestShort cuts a segment that was being written anywhere.
func TestShort(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i := range 20 {
		put(t, s, i, 100*i)
	}
	crash(s)
	name := filepath.Join(dir, segmentName(1, small))
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut >= 0; cut -= 501 {
		again := t.TempDir()
		salt, _ := os.ReadFile(filepath.Join(dir, "lock"))
		if err := errors.Join(os.WriteFile(filepath.Join(again, "lock"), salt, 0o600),
			os.WriteFile(filepath.Join(again, segmentName(1, small)), whole[:cut], 0o600)); err != nil {
			t.Fatal(err)
		}
		s := open(t, again, Options{})
		want := true
		for i := range 20 {
			got := check(t, s, i, 100*i)
			if got && !want {
				t.Errorf("cut at %d: object %d is there, one before it is not", cut, i)
			}
			want = got
		}
		s.Close()
	}
}

// TestForged has a record in a body; it is not taken for one when the record around
// it is torn.
func TestForged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	r := record{kind: kindInline, key: keyOf(66), seq: 1, meta: 1, body: 3}
	forged := append(r.appendHead(nil, 0, []byte("m"), appendSums(nil, []byte("bad"))), "bad"...)
	body := append(bytes.Repeat([]byte{0}, 128-headSize-4-4), forged...)
	if _, err := s.Put(keyOf(1), []byte("meta"), body, time.Now()); err != nil {
		t.Fatal(err)
	}
	crash(s)
	f, err := os.OpenFile(filepath.Join(dir, segmentName(1, small)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var at [4]byte
	if f.ReadAt(at[:], 128); string(at[:]) != magic {
		t.Fatalf("got %q where the forged record should be", at)
	}
	f.WriteAt([]byte{0xff}, headSize)
	f.Close()
	s = open(t, dir, Options{})
	if got := s.Find(keyOf(66)); len(got) > 0 {
		t.Error("the forged record is there")
	}
}

// TestBounded fills a store many times over: its files keep to their share, what is
// asked for stays, and readers of what leaves read on.
func TestBounded(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Disk: 8 << 20, Segment: 256 << 10}
	s := open(t, dir, opt)
	const n = 2000
	put(t, s, 0, n)
	held, err := s.Open(s.Find(keyOf(0))[0])
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for i := 1; i < 20_000; i++ {
		put(t, s, i, n)
		if i%50 == 0 {
			putLarge(t, s, 1_000_000+i, 20_000)
		}
		if i > 10 && i%20 == 0 {
			for hot := 1; hot <= 10; hot++ {
				for _, ref := range s.Find(keyOf(hot)) {
					s.Use(ref)
				}
			}
		}
		if i%1000 == 0 {
			if got := onDisk(t, dir); got > opt.Disk+2*opt.Segment {
				t.Fatalf("after %d objects %d bytes are on disk, want at most %d and two segments", i, got, opt.Disk)
			}
		}
	}
	for hot := 1; hot <= 10; hot++ {
		if !check(t, s, hot, n) {
			t.Errorf("object %d, which was asked for all the time, has left", hot)
		}
	}
	if got, err := io.ReadAll(io.NewSectionReader(held, 0, held.Size)); err != nil || !bytes.Equal(got, bodyOf(0, n)) {
		t.Errorf("what was held: got %d bytes, %v", len(got), err)
	}
	st := s.Stats()
	if onDisk(t, dir) > st.Disk+opt.Segment || st.Objects > int(opt.Disk)/n {
		t.Errorf("got %+v, %d on disk", st, onDisk(t, dir))
	}
	s.Close()
	s = open(t, dir, opt)
	for hot := 1; hot <= 10; hot++ {
		if !check(t, s, hot, n) {
			t.Errorf("object %d has left with the restart", hot)
		}
	}
	if again := s.Stats(); again.Objects != st.Objects {
		t.Errorf("got %d objects, want %d", again.Objects, st.Objects)
	}
}

func onDisk(t *testing.T, dir string) (n int64) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && !strings.HasSuffix(path, ".table") {
			n += info.Size()
		}
		return nil
	})
	return n
}

// TestMany writes, reads and removes from many goroutines, in little room.
func TestMany(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: 2 << 20, Segment: 64 << 10})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 2))
			for range 2000 {
				i := r.IntN(500)
				switch r.IntN(10) {
				case 0:
					if err := s.Remove(Ref{key: keyOf(i)}); err != nil {
						t.Error(err)
					}
				case 1, 2, 3:
					if _, err := s.Put(keyOf(i), fmt.Appendf(nil, "meta of %d", i), bodyOf(i, 2000), time.Unix(int64(i), 0)); err != nil {
						t.Error(err)
					}
				default:
					for _, ref := range s.Find(keyOf(i)) {
						o, err := s.Open(ref)
						if errors.Is(err, iofs.ErrNotExist) {
							continue
						} else if err != nil {
							t.Error(err)
							continue
						}
						s.Use(ref)
						got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size))
						if err != nil || !bytes.Equal(got, bodyOf(i, 2000)) {
							t.Errorf("object %d: got %d bytes, %v", i, len(got), err)
						}
						o.Close()
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestDamagedFile finds a body in a file of its own that is not what it was.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	putLarge(t, s, 1, 3*blockSize)
	ref := s.Find(keyOf(1))[0]
	f, err := os.OpenFile(s.bodyPath(ref.seq), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("x"), 2*blockSize+7)
	f.Close()
	o, err := s.Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size))
	if !errors.Is(err, errTorn) || !bytes.Equal(got, bodyOf(1, 3*blockSize)[:len(got)]) {
		t.Errorf("got %d bytes, %v, want %v", len(got), err, errTorn)
	}
	if len(s.Find(keyOf(1))) != 0 {
		t.Error("the damaged object is there still")
	}
}

// TestCheckedFile checks a body in a file of its own once, and not before all of it
// was read in order.
func TestCheckedFile(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	const size = 3*blockSize + 5
	putLarge(t, s, 1, size)
	ref := s.Find(keyOf(1))[0]
	read := func(from, piece int64) (ok bool) {
		o, err := s.Open(ref)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		b := make([]byte, piece)
		for off := from; off < size; {
			n, err := o.ReadAt(b, off)
			if err != nil && err != io.EOF || !bytes.Equal(b[:n], bodyOf(1, size)[off:off+int64(n)]) {
				t.Fatalf("at %d: got %d bytes, %v", off, n, err)
			}
			off += int64(n)
		}
		_, _, ok = o.File()
		return ok
	}
	for _, from := range []int64{blockSize, size - 1, 0} {
		if read(from, 1000) {
			t.Errorf("from %d: got it taken as checked before, want not", from)
		}
	}
	if !read(0, blockSize) {
		t.Error("got it checked again, want once")
	}
}

// FuzzScan finds no record that was not written, in any bytes.
func FuzzScan(f *testing.F) {
	r := record{kind: kindInline, key: keyOf(1), seq: 7, meta: 4, body: 3}
	b := append(r.appendHead(nil, 5, []byte("meta"), appendSums(nil, []byte("abc"))), "abc"...)
	f.Add(b)
	f.Add(appendTable(nil, []tabled{{r, 64}}))
	g := record{kind: kindGone, seq: 9}
	f.Add(g.appendHead(nil, 5, nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := scan(bytes.NewReader(b), int64(len(b)), 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range table {
			if x.at+x.bodyAt()+x.inline() > int64(len(b)) {
				t.Fatalf("a record of %d bytes at %d of %d", x.size(), x.at, len(b))
			}
		}
		if _, err := parseTable(b, 1<<20); err != nil && !errors.Is(err, errTorn) {
			t.Fatal(err)
		}
	})
}
