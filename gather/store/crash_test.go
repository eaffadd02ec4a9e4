package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/gather/soif"
)

func TestMain(m *testing.M) {
	switch dir := os.Getenv("HARVEST_STORE_DIR"); os.Getenv("HARVEST_STORE_CHILD") {
	case "crash":
		crashChild(dir)
	case "limit":
		limitChild(dir)
	default:
		os.Exit(m.Run())
	}
}

const (
	workers = 4
	keys    = 25 // objects of a worker
)

// A history is what a worker did up to a step. Each step is one call of Apply
// that can be told from its number alone, and one of its changes is to the
// worker's progress object, so that after a crash both can be compared.
type history struct {
	worker int
	step   int
	bodies map[OID][]byte
}

func newHistory(worker int) *history { return &history{worker: worker, bodies: make(map[OID][]byte)} }

func progressURL(worker int) string { return fmt.Sprintf("http://progress/%d", worker) }

// next returns the changes of the next step.
func (h *history) next() (changes []Change) {
	h.step++
	r := rand.New(rand.NewPCG(uint64(h.worker), uint64(h.step)))
	put := func(url, text string) {
		c := Change{Op: soif.Update, OID: ID(url, "g"), Body: object(url, text, int64(h.step))}
		changes = append(changes, c)
		h.bodies[c.OID] = c.Body
	}
	for range 1 + r.IntN(8) {
		url := fmt.Sprintf("http://w%d/%d", h.worker, r.IntN(keys))
		oid := ID(url, "g")
		switch n := r.IntN(8); {
		case n < 5:
			put(url, fmt.Sprintf("step %d %s", h.step, strings.Repeat("padding ", r.IntN(300))))
		case n < 7:
			changes = append(changes, Change{Op: soif.Delete, OID: oid})
			delete(h.bodies, oid)
		case h.bodies[oid] != nil:
			changes = append(changes, Change{Op: soif.Refresh, OID: oid, Updated: time.Unix(int64(h.step), 0)})
			o, _, _ := soif.Parse(h.bodies[oid], soif.Limits{})
			o.Set("Update-Time", fmt.Append(nil, h.step))
			h.bodies[oid] = o.Append(nil)
		}
	}
	put(progressURL(h.worker), fmt.Sprintf("step=%d", h.step))
	return changes
}

// progress returns the last step of a worker that is in the store.
func progress(s *Store, worker int) (step int, err error) {
	b, _, err := s.Get(ID(progressURL(worker), "g"))
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, text, _ := strings.Cut(string(b), "step=")
	text, _, _ = strings.Cut(text, "\n")
	return strconv.Atoi(text)
}

// verify compares a store with what its workers were told is done: acked[w] steps,
// or one more, which was on its way.
func verify(s *Store, acked [workers]int) (hs [workers]*history, err error) {
	want := make(map[OID][]byte)
	for w := range workers {
		p, err := progress(s, w)
		if err != nil {
			return hs, err
		}
		if p != acked[w] && p != acked[w]+1 {
			return hs, fmt.Errorf("worker %d: step %d is there, %d was acknowledged", w, p, acked[w])
		}
		h := newHistory(w)
		for h.step < p {
			h.next()
		}
		hs[w] = h
		maps.Copy(want, h.bodies)
	}
	for oid, body := range want {
		if b, _, err := s.Get(oid); err != nil || !bytes.Equal(b, body) {
			return hs, fmt.Errorf("object %s: got %.80q %w, want %.80q", oid, b, err, body)
		}
	}
	if int(s.Count()) != len(want) {
		return hs, fmt.Errorf("%d objects, want %d", s.Count(), len(want))
	}
	return hs, errors.Join(verifyLog(s, want), verifyDigest(s), verifyStream(s, want))
}

// verifyLog checks that the change log has each object once, at its number.
func verifyLog(s *Store, want map[OID][]byte) error {
	n := 0
	for rec, err := range s.Changes(ctx, Cursor{}) {
		if err != nil {
			return err
		}
		e, err := s.Stat(rec.Entry.OID)
		if err != nil || e.Seq != rec.Entry.Seq || want[e.OID] == nil {
			return fmt.Errorf("log has change %d of %s, object %d %w", rec.Entry.Seq, rec.Entry.OID, e.Seq, err)
		}
		if r, err := s.StatURL(e.URL); err != nil || r.OID != e.OID {
			return fmt.Errorf("url %s: got %s %w, want %s", e.URL, r.OID, err, e.OID)
		}
		n++
	}
	if n != len(want) {
		return fmt.Errorf("log has %d objects, want %d", n, len(want))
	}
	return nil
}

// verifyDigest makes the digest from its definition.
func verifyDigest(s *Store) error {
	leaves := make(map[[2]byte]*bytes.Buffer)
	for e, err := range s.Scan(ctx, "", "") {
		if err != nil {
			return err
		}
		k := [2]byte(e.OID[:2])
		if leaves[k] == nil {
			leaves[k] = bytes.NewBufferString("harvest digest 1 leaf\n")
		}
		leaves[k].Write(e.OID[:])
		leaves[k].Write(e.Hash[:])
	}
	node := func(child func(i byte) (sum [32]byte)) (sum [32]byte) {
		b := []byte("harvest digest 1 node\n")
		some := false
		for i := range 256 {
			c := child(byte(i))
			some = some || c != sum
			b = append(b, c[:]...)
		}
		if some {
			return sha256.Sum256(b)
		}
		return sum
	}
	want := node(func(i byte) [32]byte {
		return node(func(j byte) (sum [32]byte) {
			if l := leaves[[2]byte{i, j}]; l != nil {
				sum = sha256.Sum256(l.Bytes())
			}
			return sum
		})
	})
	if got, err := s.Digest(""); err != nil || got.Sum != want {
		return fmt.Errorf("digest: got %x %w, want %x", got.Sum, err, want)
	}
	return nil
}

func verifyStream(s *Store, want map[OID][]byte) error {
	var b bytes.Buffer
	if err := s.WriteSOIF(ctx, &b); err != nil {
		return err
	}
	d := soif.NewDecoder(&b, soif.Limits{})
	var o soif.Object
	n := 0
	for ; d.Next(&o) == nil; n++ {
		if body := want[ID(o.URL, "g")]; !bytes.Equal(o.Append(nil), body) {
			return fmt.Errorf("soif: %s is %.80q, want %.80q", o.URL, o.Append(nil), body)
		}
	}
	if err := d.Next(&o); err != io.EOF || n != len(want) {
		return fmt.Errorf("soif: %d objects and %w, want %d", n, err, len(want))
	}
	return nil
}

var crashOptions = Options{Frame: 3000, Segment: 200 << 10, Pending: 60, Horizon: time.Millisecond}

// crashChild opens a store, compares it with what was acknowledged in its earlier
// lives, and works on it until it is killed.
func crashChild(dir string) {
	fail := func(err error) {
		fmt.Println("bad", err)
		os.Exit(3)
	}
	s, err := Open(dir, quiet(), crashOptions)
	if err != nil {
		fail(err)
	}
	var acked [workers]int
	fmt.Sscan(os.Getenv("HARVEST_STORE_ACKED"), &acked[0], &acked[1], &acked[2], &acked[3])
	hs, err := verify(s, acked)
	if err != nil {
		fail(err)
	}
	for w, h := range hs {
		fmt.Println("ack", w, h.step)
	}
	fmt.Println("verified")
	var wg sync.WaitGroup
	for _, h := range hs {
		wg.Go(func() {
			for {
				if _, err := s.Apply(ctx, h.next()); err != nil {
					fail(err)
				}
				fmt.Println("ack", h.worker, h.step)
			}
		})
	}
	wg.Go(func() {
		for {
			if err := s.Compact(ctx); err != nil {
				fail(err)
			}
			if err := s.WriteSOIF(ctx, io.Discard); err != nil {
				fail(err)
			}
		}
	})
	wg.Wait()
}

// kills returns how many times TestKill kills, and how long it may take.
func kills(t *testing.T) (n int, limit time.Duration) {
	if v, err := strconv.Atoi(os.Getenv("HARVEST_KILLS")); err == nil {
		return v, time.Hour
	}
	switch {
	case testing.Short():
		n, limit = 4, 10*time.Second
	case os.Getenv("CI") == "true" && !raceEnabled:
		n, limit = 1000, 100*time.Second
	default:
		n, limit = 15, 8*time.Second
	}
	t.Logf("up to %d kills in %v; HARVEST_KILLS=1000 for all of them", n, limit)
	return n, limit
}

// TestKill kills a process that works on a store with SIGKILL, at random moments,
// and looks in its next life whether all it had acknowledged is there.
func TestKill(t *testing.T) {
	n, limit := kills(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var acked [workers]int
	killed, early := 0, 0
	working := func() bool { return slices.Max(acked[:]) > 0 } // it is late on a busy machine
	for start := time.Now(); killed < n && time.Since(start) < limit || killed < 10*n && !working(); killed++ {
		if !life(t, r, dir, &acked) {
			early++
		}
		if t.Failed() {
			t.Fatalf("after %d kills", killed+1)
		}
	}
	s, err := Open(dir, quiet(), crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify(s, acked); err != nil {
		t.Errorf("at the end: %v", err)
	}
	shut(t, s)
	total := 0
	for _, a := range acked {
		total += a
	}
	t.Logf("%d kills, %d before the store was verified, %d calls acknowledged, none lost", killed, early, total)
	if killed == 0 || total == 0 {
		t.Error("nothing was tested")
	}
}

// life runs a child and kills it, and reports whether it came to work. A fifth of
// the children are killed while they open the store.
func life(t *testing.T, r *rand.Rand, dir string, acked *[workers]int) (verified bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HARVEST_STORE_CHILD=crash", "HARVEST_STORE_DIR="+dir,
		fmt.Sprintf("HARVEST_STORE_ACKED=%d %d %d %d", acked[0], acked[1], acked[2], acked[3]))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill := func(within time.Duration) *time.Timer {
		return time.AfterFunc(time.Duration(r.Int64N(int64(within))), func() { cmd.Process.Kill() })
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer func() { timer.Stop() }()
	if r.IntN(5) == 0 {
		timer.Stop()
		timer = kill(60 * time.Millisecond)
	}
	for sc := bufio.NewScanner(out); sc.Scan(); {
		var w, step int
		switch line := sc.Text(); {
		case line == "verified":
			verified = true
			timer.Stop()
			timer = kill(60 * time.Millisecond)
		case strings.HasPrefix(line, "bad "):
			t.Error(line)
		default:
			if n, _ := fmt.Sscanf(line, "ack %d %d", &w, &step); n == 2 && w < workers {
				acked[w] = max(acked[w], step)
			}
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("child: got %v, want killed\n%s", err, stderr.Bytes())
	}
	return verified
}

// TestCut cuts the only segment, whose index is lost, at many lengths, and wants the state after some call of Apply: the last whole one.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{Frame: 300})
	var states []string // after each call
	var sizes []int64
	state := func(s *Store) string {
		var b bytes.Buffer
		for e, err := range s.Scan(ctx, "", "") {
			body, _, gerr := s.Get(e.OID)
			if err := errors.Join(err, gerr); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %d %s", e.OID, e.Seq, body)
		}
		return b.String()
	}
	note := func() {
		states, sizes = append(states, state(s)), append(sizes, s.log.size)
	}
	note()
	apply(t, s, update("http://h/a", "1"), update("http://h/b", "1"), update("http://h/c", "1"))
	note()
	apply(t, s, update("http://h/a", "2"), Change{Op: soif.Delete, OID: ID("http://h/b", "g")})
	note()
	apply(t, s, Change{Op: soif.Refresh, OID: ID("http://h/c", "g"), Updated: time.Unix(5, 0)}, update("http://h/d", "1"))
	note()
	name := filepath.Base(s.log.path)
	shut(t, s)
	whole, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for size := int64(len(whole)); size > sizes[0]; size-- {
		near := slices.ContainsFunc(sizes, func(n int64) bool { return size-n < 3 && n-size < 3 })
		if !near && size%23 != 0 {
			continue
		}
		cut := t.TempDir()
		if err := os.WriteFile(filepath.Join(cut, name), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		i := 0
		for i+1 < len(sizes) && sizes[i+1] <= size {
			i++
		}
		s, err := Open(cut, quiet(), Options{NoSync: true})
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		if got := state(s); got != states[i] {
			t.Fatalf("cut at %d: got %q, want that after call %d %q", size, got, i, states[i])
		}
		apply(t, s, update("http://h/z", "goes on"))
		shut(t, s)
		if err := os.RemoveAll(cut); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamage changes one byte of a frame that was acknowledged. It has to be
// named when it is read, and when the index is made anew the rest has to be
// there, with other cursors.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i := range 5 {
		apply(t, s, update(fmt.Sprintf("http://h/%d", i), "text"))
	}
	oid := ID("http://h/2", "g")
	e, err := s.Stat(oid)
	if err != nil {
		t.Fatal(err)
	}
	path, cursor := s.log.path, s.Cursor()
	shut(t, s)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[e.at.off+frameHeader+30] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}

	s = open(t, dir, Options{})
	_, _, err = s.Get(oid)
	if want := fmt.Sprintf("object %s: segment %08x: offset %d: checksum: damaged", oid, e.at.seg, e.at.off); !errors.Is(err, ErrDamaged) || err.Error() != want {
		t.Errorf("get: got %v, want %s", err, want)
	}
	if _, err := s.ParseCursor(cursor.String()); err != nil {
		t.Errorf("cursor: %v", err)
	}
	if err := s.WriteSOIF(ctx, io.Discard); !errors.Is(err, ErrDamaged) {
		t.Errorf("soif: got %v, want damaged", err)
	}
	var stream bytes.Buffer
	if err := s.WriteSince(ctx, &stream, Cursor{}); !errors.Is(err, ErrDamaged) || bytes.Contains(stream.Bytes(), []byte("@CURSOR")) {
		t.Errorf("since/0: got %v, want damaged and no cursor at the end", err)
	}
	apply(t, s, Change{Op: soif.Delete, OID: ID("http://h/0", "g")}, update("http://h/1", "new"))
	if err := s.Compact(ctx); !errors.Is(err, ErrDamaged) {
		t.Errorf("compact: got %v, want damaged", err)
	}
	for i := range 5 {
		_, _, err := s.Get(ID(fmt.Sprintf("http://h/%d", i), "g"))
		if ok := i != 0 && i != 2; (err == nil) != ok {
			t.Errorf("object %d beside it: got %v", i, err)
		}
	}
	shut(t, s)

	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err = Open(dir, textLog(&log), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("segment %08x: offset %d: checksum: damaged", e.at.seg, e.at.off); !strings.Contains(log.String(), want) {
		t.Errorf("log: got %s, want %s", log.String(), want)
	}
	if s.Count() != 3 {
		t.Errorf("new index: got %d objects, want 3", s.Count())
	}
	if _, err := s.ParseCursor(cursor.String()); !errors.Is(err, ErrCursor) {
		t.Errorf("old cursor: got %v, want ErrCursor", err)
	}
	shut(t, s)
}

// TestStateFile checks which indexes are believed after which end.
func TestStateFile(t *testing.T) {
	here := system(t.TempDir())
	for state, anew := range map[string]bool{
		"clean\n":             false,
		here + "\n":           here == "",
		"clean":               true, // cut short
		"":                    true,
		"another-boot 1234\n": true,
	} {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		apply(t, s, update("http://h/a", "1"))
		shut(t, s)
		if err := os.WriteFile(filepath.Join(dir, stateName), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s, err := Open(dir, textLog(&log), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "made anew"); got != anew {
			t.Errorf("%q: made anew: got %v, want %v", state, got, anew)
		}
		apply(t, s, update("http://h/b", "1"))
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, stateName)); err != nil || string(b) != here+"\n" {
			t.Errorf("%q: while it is written: got %q %v, want %q", state, b, err, here+"\n")
		}
		if s.Count() != 2 {
			t.Errorf("%q: got %d objects, want 2", state, s.Count())
		}
		shut(t, s)
	}
}

// fill applies changes of 5 objects each until one fails, and returns how many
// calls were acknowledged, and the error.
func fill(s *Store) (calls int, err error) {
	for ; calls < 10000; calls++ {
		var batch []Change
		for i := range 5 {
			batch = append(batch, update(fmt.Sprintf("http://h/%d/%d", calls, i), fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, calls, i)))))
		}
		if _, err := s.Apply(ctx, batch); err != nil {
			return calls, err
		}
	}
	return calls, errors.New("it never fails")
}

// filledTo checks that a store holds what fill was told is there, and nothing of
// the call that failed.
func filledTo(s *Store, calls int) error {
	if got := s.Count(); got != int64(5*calls) {
		return fmt.Errorf("%d objects, want %d", got, 5*calls)
	}
	for c := range calls {
		for i := range 5 {
			if _, _, err := s.Get(ID(fmt.Sprintf("http://h/%d/%d", c, i), "g")); err != nil {
				return err
			}
		}
	}
	return verifyDigest(s)
}

// limitChild fills a store whose files may not grow past a limit.
func limitChild(dir string) {
	limit, _ := strconv.ParseUint(os.Getenv("HARVEST_STORE_LIMIT"), 10, 64)
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		fmt.Println("bad", err)
		os.Exit(3)
	}
	opt := limitOptions
	if limit%2 == 1 {
		opt.Pending = 1 << 20 // the index waits, and so it is a segment that fails
	}
	s, err := Open(dir, quiet(), opt)
	if err != nil {
		fmt.Println("calls 0 0", err)
		return
	}
	calls, err := fill(s)
	if !errors.Is(err, syscall.EFBIG) {
		fmt.Println("bad", err)
		return
	}
	// Reading goes on, as long as it needs nothing written.
	for c := range calls {
		if _, _, err := s.Get(ID(fmt.Sprintf("http://h/%d/0", c), "g")); err != nil {
			fmt.Println("bad", err)
		}
	}
	// A smaller change has room where the one that failed was. Nothing of that
	// one may follow it.
	small := 0
	if _, err := s.Apply(ctx, []Change{update("http://s/0", "")}); err == nil {
		small = 1
	}
	fmt.Println("calls", calls, small, err)
}

// limitOptions give each object a frame of its own, so that a write that fails
// half-way leaves whole ones.
var limitOptions = Options{Pending: 50, Frame: 10}

// TestFailingWrite has writes fail at one size of the files after another: of the
// index, of a segment, in the middle of a frame.
func TestFailingWrite(t *testing.T) {
	tried, after := 0, 0
	for _, limit := range []int{100, 5000, 40000, 140000, 40001, 70001, 70101, 70201, 100003} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "HARVEST_STORE_CHILD=limit", "HARVEST_STORE_DIR="+dir, fmt.Sprint("HARVEST_STORE_LIMIT=", limit))
		out, err := cmd.CombinedOutput()
		var calls, small int
		if _, serr := fmt.Sscanf(string(out), "calls %d %d", &calls, &small); err != nil || serr != nil {
			t.Fatalf("limit %d: got %v and %s", limit, err, out)
		}
		var log bytes.Buffer
		s, err := Open(dir, textLog(&log), limitOptions)
		if err != nil {
			t.Fatal(err)
		}
		for i := range small {
			apply(t, s, Change{Op: soif.Delete, OID: ID(fmt.Sprintf("http://s/%d", i), "g")})
		}
		if err := filledTo(s, calls); err != nil {
			t.Errorf("limit %d: opened again: %v", limit, err)
		}
		if strings.Contains(log.String(), "store damage") {
			t.Errorf("limit %d: got %s, want no damage", limit, log.String())
		}
		apply(t, s, update("http://h/more", "1"))
		shut(t, s)
		tried, after = tried+calls, after+small
	}
	if tried < 100 || after == 0 {
		t.Errorf("only %d calls came before the failing ones, %d after", tried, after)
	}
}

// TestFullDisk fills a small file system, opens the store there again while it is
// full, and when there is room goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1500k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	opt := Options{Pending: 200, Segment: 100 << 10}
	s, err := Open(dir, quiet(), opt)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := fill(s)
	if !errors.Is(err, syscall.ENOSPC) || calls == 0 {
		t.Fatalf("got %d calls and %v, want some and no space", calls, err)
	}
	// What is in memory only may not get onto the disk now.
	if err := s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	s, err = Open(dir, quiet(), opt)
	if err != nil {
		t.Fatalf("open on the full disk: %v", err)
	}
	for c := range calls {
		if _, _, err := s.Get(ID(fmt.Sprintf("http://h/%d/4", c), "g")); err != nil {
			t.Fatalf("on the full disk: %v", err)
		}
	}
	if _, err := fill(s); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more on the full disk: got %v, want no space", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=20m"); err != nil {
		t.Fatal(err)
	}
	if err := filledTo(s, calls); err != nil {
		t.Errorf("with room again: %v", err)
	}
	apply(t, s, update("http://h/more", "1"))
	shut(t, s)
	s = open(t, dir, opt)
	if s.Count() != int64(5*calls+1) {
		t.Errorf("opened again: got %d objects, want %d", s.Count(), 5*calls+1)
	}
	shut(t, s)
}
