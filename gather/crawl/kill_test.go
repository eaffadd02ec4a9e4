package crawl

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A journal is a Handler that keeps the URLs of pages in a file, as durably as a
// store would.
type journal struct {
	*keeper
	file *os.File
}

func (j *journal) Commit(_ context.Context, pages []*Page) error {
	for _, p := range pages {
		if p.Outcome == Fetched {
			fmt.Fprintln(j.file, p.URL)
		}
	}
	return j.file.Sync()
}

// killed runs the visit of a child of TestKill.
func killed(t *testing.T, dir, url string) {
	file, err := os.OpenFile(filepath.Join(dir, "kept"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenDB(filepath.Join(dir, "crawl.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Println("open")
	p := Plan{Agent: "harvest/test", Roots: []Root{{URL: url, Depth: -1}}, Limits: Limits{Pages: killWorkers, Servers: killWorkers}}
	if err := f.Visit(t.Context(), p, http.DefaultTransport, &journal{newKeeper(), file}, new(Counts)); err != nil {
		t.Fatal(err)
	}
}

const (
	killPages   = 1500
	killWorkers = 8
	killPace    = 10 * time.Millisecond // that an answer takes: so there is something to kill
)

// TestKill kills the process of a visit at random moments: no URL is lost, none
// is made twice of one, what was being written for a second is all that is
// fetched again, and what is known agrees with itself.
func TestKill(t *testing.T) {
	if dir := os.Getenv("HARVEST_CRAWL_KILL"); dir != "" {
		killed(t, dir, os.Getenv("HARVEST_CRAWL_URL"))
		return
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("HARVEST_CRAWL_KILLS")); err == nil {
		kills = n
	} else {
		t.Log("HARVEST_CRAWL_KILLS=200 goes on for longer")
	}
	dir := t.TempDir()
	var mu sync.Mutex
	asked := make(map[string][]time.Time) // for pages
	var kill []time.Time
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil && r.URL.Path != "/" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		mu.Lock()
		asked[r.URL.Path] = append(asked[r.URL.Path], time.Now())
		mu.Unlock()
		<-time.After(killPace)
		w.Header().Set("Content-Type", "text/html")
		for i := range 20 {
			fmt.Fprintf(w, "<a href=/%d>", (n*7+i*i*31+1)%killPages)
		}
		fmt.Fprintf(w, "page %d %s", n, lorem(uint64(n), 40)) // no two say the same, else it is a trap
	}))
	defer s.Close()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	n := 0
	for ; ; n++ {
		wait := time.Duration(20+r.IntN(4800/max(kills, 1))) * time.Millisecond
		if n == kills {
			wait = time.Minute
		}
		if runKilled(t, dir, s.URL, wait) {
			break
		}
		kill = append(kill, time.Now())
	}
	kept, twice := readKept(t, filepath.Join(dir, "kept"))
	if len(kept) != killPages && len(kept) != killPages+1 {
		t.Errorf("got %d pages kept, want %d", len(kept), killPages)
	}
	if twice > 0 {
		t.Logf("%d pages were kept, and then kept again", twice) // killed between Handler and database
	}
	requests, longest := 0, time.Duration(0)
	for url, times := range asked {
		requests += len(times)
		for _, at := range times[:len(times)-1] {
			i := slices.IndexFunc(kill, at.Before)
			if i < 0 {
				t.Fatalf("%s was asked for twice, without a kill", url)
			}
			longest = max(longest, kill[i].Sub(at))
		}
	}
	t.Logf("%d kills: %d requests for %d pages; none that was made %v before a kill had to be made again", n, requests, len(kept), longest)
	if longest > 2*time.Second { // one, and what a machine with other things to do adds
		t.Errorf("a page was fetched %v before a kill, and fetched again", longest)
	}
	f := openDB(t, filepath.Join(dir, "crawl.db"))
	verify(t, f)
	stored := 0
	for d, err := range f.Documents(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if d.State == Stored {
			stored++
		}
	}
	if stored != len(kept) {
		t.Errorf("got %d documents stored, want %d", stored, len(kept))
	}
}

// runKilled starts a visit and kills it after a while, and reports whether it
// came to its end before.
func runKilled(t *testing.T, dir, url string, wait time.Duration) bool {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKill$")
	cmd.Env = append(os.Environ(), "HARVEST_CRAWL_KILL="+dir, "HARVEST_CRAWL_URL="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	in := bufio.NewScanner(out)
	if !in.Scan() || in.Text() != "open" {
		t.Errorf("the child says %q", in.Text())
	}
	go func() {
		defer close(ended)
		for in.Scan() {
		}
	}()
	select {
	case <-ended:
	case <-time.After(wait):
		cmd.Process.Kill()
		<-ended
	}
	return cmd.Wait() == nil
}

func readKept(t *testing.T, path string) (kept map[string]bool, twice int) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept = make(map[string]bool)
	for u := range strings.Lines(string(b)) {
		if u = strings.TrimSuffix(u, "\n"); kept[u] {
			twice++
		}
		kept[u] = true
	}
	return kept, twice
}

// verify compares the tables of a database with one another.
func verify(t testing.TB, f *DB) {
	t.Helper()
	urls, own := make(map[string]DocID), make(map[ServerID]int)
	docs := make(map[DocID]Doc)
	for d, err := range f.Documents(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if was, dup := urls[d.URL]; dup {
			t.Errorf("%s is %d and %d", d.URL, was, d.ID)
		}
		if got := f.known.get(f.known.hash(d.URL)); got != d.ID {
			t.Errorf("%s: is %d, but known as %d", d.URL, d.ID, got)
		}
		urls[d.URL], docs[d.ID] = d.ID, d
		own[d.Server]++
		if d.State == Stored && d.MD5 != [16]byte{} {
			same, err := f.Same(d.MD5)
			if err != nil || !slices.Contains(same, d.ID) {
				t.Errorf("%s is not among those of its MD5: %v, %v", d.URL, same, err)
			}
		}
	}
	known := 0
	for i := range f.known.part {
		for _, id := range f.known.part[i].vals {
			if id != 0 {
				known++
			}
		}
	}
	if known != len(docs) {
		t.Errorf("got %d URLs known, want %d", known, len(docs))
	}
	verifyLinks(t, f, docs)
	for s, err := range f.Servers(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Documents != own[s.ID] {
			t.Errorf("%s: got %d documents, want %d", s.Origin, s.Documents, own[s.ID])
		}
		if polite(s.Origin) {
			verifyList(t, f, &s, docs)
		}
	}
	if err := f.load(); err != nil { // memory is what the disk is
		t.Error(err)
	}
}

// verifyList sees to it that each document of a server is once in its list.
func verifyList(t testing.TB, f *DB, s *Server, docs map[DocID]Doc) {
	tx, err := f.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	met := make(map[DocID]bool)
	for n := uint32(0); n < s.own; {
		ids := readOwn(tx, s.ID, n, nil)
		if len(ids) == 0 {
			t.Fatalf("%s: its list ends at %d of %d", s.Origin, n, s.own)
		}
		for _, id := range ids {
			if met[id] {
				t.Errorf("%s: %d is twice in its list", s.Origin, id)
			}
			met[id] = true
		}
		n += uint32(len(ids))
	}
	for id, d := range docs {
		if d.Server == s.ID && !met[id] && d.State != Heard && !d.Queued() && isWeb(d.URL) {
			t.Errorf("%s is not in the list of its server", d.URL)
		}
	}
}
