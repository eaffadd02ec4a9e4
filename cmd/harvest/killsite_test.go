package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// killWorkers is the most pages that a Gatherer has in hand at once.
const killWorkers = 16

// killSeconds of work are lost at most: what has come since the last batch was
// begun, and while it was written.
const killSeconds = 1

// TestKillSite kills the server at random moments of the crawl of a real
// documentation site, up to four times a crawl. Each crawl ends with the
// collection of one that was not disturbed, however often it was cut off; by
// the web server's own log no kill costs more than what was in hand and one
// second's work; and the store it leaves agrees with an index made anew of it.
func TestKillSite(t *testing.T) {
	const manual = "/usr/share/doc/python3.11/html"
	if _, err := nginxProgram(); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat(manual); err != nil {
		t.Skipf("python3-doc is not installed: %v", err)
	}
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("HARVEST_KILLS")); err == nil {
		kills = n
	}
	t.Logf("%d kills; HARVEST_KILLS=200 makes 200", kills)
	site, err := emptySite(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(manual, filepath.Join(site.dir, "www", "python")); err != nil {
		t.Fatal(err)
	}
	site.conf += "\nlimit_rate 8m;" // so that there are moments to choose from
	c := killSite{t: t, site: site}
	want, took, log := c.crawl(nil)
	if len(want) < 500 || log.again != 0 {
		t.Fatalf("undisturbed: got %d objects, %d fetched twice, want 500 and none", len(want), log.again)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("undisturbed: %d objects in %v; seed %d", len(want), took.Round(time.Millisecond), seed)
	r := rand.New(rand.NewPCG(seed, 0))
	again, most := 0, 0
	for left := kills; left > 0; {
		var at []time.Duration
		for range min(left, 1+r.IntN(4)) {
			at = append(at, time.Duration(r.Int64N(int64(took))))
		}
		left -= len(at)
		got, _, log := c.crawl(at)
		c.compare(want, got, at)
		if allowed := len(at) * (killWorkers + log.busiest(killSeconds)); log.again > allowed {
			t.Errorf("killed after %v: got %d pages sent twice, want %d at most", at, log.again, allowed)
		}
		again += log.again
		most = max(most, log.again)
	}
	t.Logf("%d pages were sent twice in all, %.1f a kill, %d at most in one crawl", again, float64(again)/float64(kills), most)
}

type killSite struct {
	t    *testing.T
	site *nginx
}

// crawl gathers the site in a new state directory. The server is killed when it
// has run for each of the times, and started again; then it may finish.
func (c killSite) crawl(at []time.Duration) (objects map[string]soif.Object, took time.Duration, log accessLog) {
	t := c.t
	t.Helper()
	dir := t.TempDir()
	if err := c.site.start(t.Context(), std{err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, dir)
	p.put(t, "gather", "")
	p.put(t, "gather/g/config", "root url=http://"+c.site.addr+"/python/index.html delay=0s urls=unlimited\nfulltext=no")
	begin := time.Now()
	p.put(t, "gather/g/ctl", "run")
	for _, d := range at {
		<-time.After(d) // the moment was drawn by lot: there is nothing to wait for
		p.kill(t)
		p = startServer(t, dir)
	}
	p.idle(t, "gather/g")
	took = time.Since(begin)
	objects = p.collection(t)
	p.end(t)
	log, err := c.site.stop()
	if err != nil {
		t.Fatal(err)
	}
	c.verify(filepath.Join(dir, "gather", "g", "store"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return objects, took, log
}

// compare wants the same objects but for when they were made.
func (c killSite) compare(want, got map[string]soif.Object, at []time.Duration) {
	c.t.Helper()
	for u, w := range want {
		g, ok := got[u]
		switch {
		case !ok:
			c.t.Errorf("killed after %v: %s is missing", at, u)
		case !g.Equal(&w):
			c.t.Errorf("killed after %v: %s: got %s, want %s", at, u, g.Append(nil), w.Append(nil))
		}
	}
	for u := range got {
		if _, ok := want[u]; !ok {
			c.t.Errorf("killed after %v: %s is one too many", at, u)
		}
	}
}

// verify reads every object of a store, and compares what its index says with
// one that is made of the objects alone.
func (c killSite) verify(dir string) {
	t := c.t
	t.Helper()
	var before store.Digest
	for _, anew := range []bool{false, true} {
		if anew {
			if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
				t.Fatal(err)
			}
		}
		s, err := store.Open(dir, slog.New(slog.DiscardHandler), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for e, err := range s.Scan(t.Context(), "", "") {
			if err == nil {
				_, err = s.Read(e)
			}
			if err != nil {
				t.Errorf("the store, index made anew %v: %v", anew, err)
			}
			n++
		}
		d, err := s.Digest("")
		if err != nil {
			t.Fatal(err)
		}
		if n != s.Count() || anew && d != before {
			t.Errorf("the store, index made anew %v: got %d objects, digest %v, want %d and %v", anew, n, d, s.Count(), before)
		}
		before = d
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// collection reads all objects of the Gatherer g, without when they were made.
func (p *server) collection(t *testing.T) map[string]soif.Object {
	t.Helper()
	f, err := fs.IO(t.Context(), p.c.Root()).Open("gather/g/soif")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make(map[string]soif.Object)
	d := soif.NewDecoder(f, soif.Limits{})
	for {
		var o soif.Object
		if err := d.Next(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		o = o.Clone()
		o.Del("Update-Time")
		if _, twice := all[o.URL]; twice {
			t.Error(fmt.Errorf("%s: twice in the stream", o.URL))
		}
		all[o.URL] = o
	}
}
