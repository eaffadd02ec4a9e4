package crawl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpu is what the process has used.
func cpu() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// resident returns what is, and at most was, in memory of this process, in MB.
func resident(t testing.TB) (now, most int) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			now = kb >> 10
		case "VmHWM":
			most = kb >> 10
		}
	}
	return now, most
}

// scale is how many URLs the tests of size enter, of 1,000 a server.
func scale(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("HARVEST_CRAWL_URLS"))
	if err != nil {
		t.Log("HARVEST_CRAWL_URLS=10000000 is what a crawl may be of")
		return 200_000
	}
	return n
}

// scaleURL is the nth URL of a crawl that meets all its servers at once.
func scaleURL(n, servers int) string {
	return fmt.Sprintf("http://www.server%d.example.org/some/path/of/it/%d.html", n%servers, n/servers)
}

// TestScale: many URLs of many servers are entered, each with its links, and a
// process that opens the database after that is soon at work, in little memory.
func TestScale(t *testing.T) {
	if dir := os.Getenv("HARVEST_CRAWL_CHILD"); dir != "" {
		startOnMany(t, dir)
		return
	}
	urls := scale(t)
	servers := max(urls/1000, 1)
	dir := t.TempDir()
	f := openDB(t, filepath.Join(dir, "crawl.db"))
	const page = 30 // links
	root := RootID("http://www.server0.example.org/")
	began, used := time.Now(), cpu()
	for n := 0; n < urls; {
		err := f.update(func(b *batch) error {
			for range min(1000, (urls-n+page-1)/page) { // pages
				var to []DocID
				for range page {
					d := Doc{URL: scaleURL(n, servers), State: New, Root: root, Depth: 3, Parent: DocID(n / page)}
					if f.known.get(f.known.hash(d.URL)) != 0 {
						return errors.New("met already")
					}
					if err := b.enter(&d); err != nil {
						return err
					}
					to = append(to, d.ID)
					n++
				}
				from := Doc{ID: DocID(n/page + 1), Server: 1}
				if err := b.links(&from, to); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := forget(f.db); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	now, most := resident(t)
	st, err := os.Stat(filepath.Join(dir, "crawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d URLs of %d servers: %.0f a second, %.1f µs of CPU each, %d bytes of disk each; %d MB resident, %d at most",
		urls, servers, float64(urls)/took.Seconds(), float64((cpu()-used).Microseconds())/float64(urls), st.Size()/int64(urls), now, most)
	f.Close()

	cmd := exec.Command(os.Args[0], "-test.run", "^TestScale$", "-test.v")
	cmd.Env = append(os.Environ(), "HARVEST_CRAWL_CHILD="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// startOnMany opens a database, and visits until some pages were fetched.
func startOnMany(t *testing.T, dir string) {
	began, used := time.Now(), cpu()
	f, err := OpenDB(filepath.Join(dir, "crawl.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opened, openCPU := time.Since(began), cpu()-used
	var first time.Time
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	n, met := 0, make(map[string]bool)
	w := &web{}
	p := Plan{Agent: "harvest/test", Roots: []Root{{URL: "http://www.server0.example.org/", Depth: -1, Delay: time.Second, Hosts: 1 << 30}},
		Address: func(_ context.Context, host string) string { return host }}
	rt := roundTrip(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		if n++; n == 1 {
			first = time.Now()
		}
		met[r.URL.Host] = true
		if n == min(3*len(f.servers), 20_000) {
			cancel(enough)
		}
		w.mu.Unlock()
		return &http.Response{Status: "404 Not Found", StatusCode: 404, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	if err := f.Visit(ctx, p, rt, newKeeper(), new(Counts)); err != nil && !errors.Is(err, enough) {
		t.Fatal(err)
	}
	now, most := resident(t)
	t.Logf("opened in %v (%v of CPU), first request after %v; %d requests to %d servers in %v; %v of CPU; %d MB resident, %d at most",
		opened.Round(time.Millisecond), openCPU.Round(time.Millisecond), first.Sub(began).Round(time.Millisecond), n, len(met), time.Since(began).Round(time.Millisecond), cpu()-used, now, most)
	if f.last > 5_000_000 && (most > 400 || openCPU > 10*time.Second) {
		t.Errorf("got %d MB and %v, want at most 400 MB and 10 s", most, openCPU)
	}
}
