package cache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
)

// TestArena gives no two pieces the same bytes, and all back in the end.
func TestArena(t *testing.T) {
	a := new(arena)
	r := rand.New(rand.NewPCG(1, 2))
	type held struct {
		b []byte
		p piece
		x byte
	}
	var all []held
	check := func(h held) {
		for _, c := range h.b {
			if c != h.x {
				t.Fatalf("got %d in a piece of %d bytes, want %d", c, len(h.b), h.x)
			}
		}
	}
	for i := range 20_000 {
		if len(all) > 0 && r.IntN(5) < 2 {
			j := r.IntN(len(all))
			check(all[j])
			all[j].p.release()
			all[j] = all[len(all)-1]
			all = all[:len(all)-1]
			continue
		}
		n := 1 + r.IntN(3000)
		if r.IntN(50) == 0 {
			n = r.IntN(100_000)
		}
		b, p, err := a.get(n)
		if err != nil || len(b) != n || cap(b) != n {
			t.Fatalf("got %d bytes, cap %d, %v, want %d", len(b), cap(b), err, n)
		}
		h := held{b, p, byte(i)}
		for k := range b {
			b[k] = h.x
		}
		all = append(all, h)
	}
	for _, h := range all {
		check(h)
		h.p.release()
	}
	if n := a.total(); n != 0 {
		t.Errorf("got %d bytes that nobody has, want none", n)
	}
	for n := 1; n <= maxPiece; n++ {
		c, size := classOf(n)
		if size < n || c < 0 || c >= arenaClasses || n > minPiece && size > n+n/8+1 {
			t.Fatalf("%d bytes: got class %d of %d bytes", n, c, size)
		}
	}
}

func putMany(tb testing.TB, c *Cache, n int) {
	tb.Helper()
	h := http1.Header{{Name: "Server", Value: "nginx/1.22.1"}, {Name: "Date", Value: httpDate(time.Now())}, {Name: "Content-Type", Value: "text/html"}, {Name: "Last-Modified", Value: httpDate(time.Now())}, {Name: "ETag", Value: `"6b027236-54a"`}, {Name: "Cache-Control", Value: "max-age=86400"}, {Name: "Accept-Ranges", Value: "bytes"}}
	for i := range n {
		url := fmt.Sprintf("http://127.0.0.1:18480/u/%d", i)
		p := &policy.Response{URL: url, Status: 200, Header: h, Asked: time.Now(), Came: time.Now()}
		if _, err := c.keep(keyOf(url), nil, p, "OK", content{mem: make([]byte, 1024)}); err != nil {
			tb.Fatal(err)
		}
	}
}

// pss is the memory of this process, in bytes.
func pss(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	t.Skip("no Pss")
	return 0
}

// TestMemoryEach bounds what an object of 1 KB takes, in memory and on disk only.
func TestMemoryEach(t *testing.T) {
	if raceEnabled {
		t.Skip("memory is not measured under the race detector")
	}
	const n = 100_000
	w := newWorld(t, "memory=256M\naccess=none\n", fresh(60))
	debug.FreeOSMemory()
	before := pss(t)
	putMany(t, w.c, n)
	runtime.GC()
	debug.FreeOSMemory()
	each := (pss(t) - before) / n
	t.Logf("%d bytes each in memory, arena %d", each, w.c.mem.off.total()/n)
	if each > 2200 {
		t.Errorf("got %d bytes each, want at most 2200", each)
	}
	if err := w.c.setConfig(t.Context(), localConfig+"memory=0\n"); err != nil {
		t.Fatal(err)
	}
	if urls, _ := w.c.mem.stat(); urls != 0 {
		t.Errorf("got %d URLs in no memory", urls)
	}
	for range 3 {
		runtime.GC()
	}
	w.wait(func() bool { runtime.GC(); return w.c.mem.off.total() == 0 })
	debug.FreeOSMemory()
	each = (pss(t) - before) / n
	t.Logf("%d bytes each on disk only, index %d", each, w.c.store.Stats().Index/n)
	if each > 200 {
		t.Errorf("got %d bytes each, want at most 200", each)
	}
}

// TestMemoryTier lets what is asked for again stay, within its bytes.
func TestMemoryTier(t *testing.T) {
	m := newMemory(memShards * 200 << 10)
	body := make([]byte, 1000)
	key := func(i int) (k segment.Key) { return keyOf(fmt.Sprint(i)) }
	put := func(i int) {
		p := &policy.Response{URL: "http://h/", Status: 200, Header: http1.Header{{Name: "Date", Value: httpDate(time.Now())}}, Came: time.Now()}
		v, err := newVariant(segment.Ref{}, appendMeta(nil, p, "OK"), 1000, body, true, &policy.Rules{}, m.arena())
		if err != nil {
			t.Fatal(err)
		}
		m.put(key(i), []*variant{v})
	}
	for i := range 200 {
		put(i)
		for range 3 {
			m.get(key(i))
		}
	}
	for i := 1000; i < 20_000; i++ {
		put(i)
		if _, bytes := m.stat(); bytes > memShards*200<<10 {
			t.Fatalf("got %d bytes, want at most %d", bytes, memShards*200<<10)
		}
	}
	stay := 0
	for i := range 200 {
		if _, ok := m.get(key(i)); ok {
			stay++
		}
	}
	if stay < 190 {
		t.Errorf("got %d of 200 that were asked for again, want nearly all", stay)
	}
	m.resize(0)
	if urls, bytes := m.stat(); urls != 0 || bytes != 0 {
		t.Errorf("got %d URLs and %d bytes, want none", urls, bytes)
	}
}
