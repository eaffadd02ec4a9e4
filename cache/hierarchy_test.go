package cache

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// openAt opens one more cache, with a door and an ICP socket of its own address.
func openAt(t *testing.T, ip string, conf string) (c *Cache, icp netip.AddrPort) {
	t.Helper()
	c, err := Open(t.TempDir(), "at", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.setConfig(context.Background(), "listen addr="+ip+":0\negress allow=127.0.0.0/8\nicp addr="+ip+":0 allow=127.0.0.0/8\n"+conf); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		c.Close()
	})
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		c.near.mu.Lock()
		conn := c.near.conn
		c.near.mu.Unlock()
		if conn != nil && len(c.doors.addrs()) == 1 {
			return c, conn.Addr()
		}
		if time.Now().After(end) {
			t.Fatal("it does not listen")
		}
	}
}

func doorOf(c *Cache) string {
	for _, a := range c.doors.addrs() {
		return a
	}
	return ""
}

// TestHierarchy fetches from a sibling what it has, and from a parent what it is
// fast for, and from the server the rest.
func TestHierarchy(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	sib, sicp := openAt(t, "127.0.0.3", "")
	if err := w.c.setConfig(context.Background(), localConfig+fmt.Sprintf("sibling addr=%s icp=%d name=sib\n", doorOf(sib), sicp.Port())); err != nil {
		t.Fatal(err)
	}
	through := func(c *Cache, path string) (string, string) {
		t.Helper()
		req, _ := http.NewRequest("GET", w.server.URL+path, nil)
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b), strings.Join(resp.Header.Values("Cache-Status"), ", ")
	}
	through(sib, "/held")
	b, cs := through(w.c, "/held")
	if b != "/held 1" || w.asked.Load() != 1 || !strings.Contains(cs, "SIBLING_HIT") {
		t.Errorf("got %q %q, %d fetches", b, cs, w.asked.Load())
	}
	b, cs = through(w.c, "/absent")
	if b != "/absent 2" || strings.Contains(cs, "SIBLING") {
		t.Errorf("got %q %q", b, cs)
	}
	rows := w.c.near.rows()
	if len(rows) != 1 || rows[0].Hits != 1 || rows[0].Asked != 2 || rows[0].Fetched != 1 || rows[0].Bytes != 7 {
		t.Errorf("got %+v", rows)
	}
	if n := w.c.neighborLines(); !strings.Contains(n, "name=sib kind=sibling") {
		t.Errorf("got %q", n)
	}
	// A silent one costs little, and is not asked any more in the end.
	silent, err := net.ListenPacket("udp", "127.0.0.4:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, sport, _ := net.SplitHostPort(silent.LocalAddr().String())
	if err := w.c.setConfig(context.Background(), localConfig+fmt.Sprintf("parent addr=127.0.0.4:9 icp=%s name=dumb\n", sport)); err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		if b, _ := through(w.c, fmt.Sprintf("/s%d", i)); !strings.HasPrefix(b, "/s") {
			t.Errorf("got %q", b)
		}
	}
	w.wait(func() bool { return w.c.near.rows()[0].State == "dead" })
	// A parent fetches where servers are never asked.
	if err := w.c.setConfig(context.Background(), localConfig+fmt.Sprintf("parent addr=%s name=up\ndirect never=yes\n", doorOf(sib))); err != nil {
		t.Fatal(err)
	}
	if b, cs := through(w.c, "/parent"); !strings.HasPrefix(b, "/parent ") || !strings.Contains(strings.Join(w.last().Header.Values("Via"), ", "), sib.via()) {
		t.Errorf("got %q %q; Via %q", b, cs, w.last().Header.Get("Via"))
	}
}

// TestHierarchyTells answers neighbours only, of what is here.
func TestHierarchyTells(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	w.get("/a")
	c, _ := openAt(t, "127.0.0.3", "")
	if op := c.tell(c.near.table, netip.MustParseAddrPort("127.0.0.9:1"), w.server.URL+"/a").String(); op != "MISS" {
		t.Errorf("got %s, want MISS", op)
	}
	if op := c.tell(c.near.table, netip.MustParseAddrPort("192.0.2.1:1"), w.server.URL+"/a").String(); op != "DENIED" {
		t.Errorf("got %s, want DENIED", op)
	}
	req, _ := http.NewRequest("GET", w.server.URL+"/a", nil)
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if op := c.tell(c.near.table, netip.MustParseAddrPort("127.0.0.9:1"), w.server.URL+"/a").String(); op != "HIT" {
		t.Errorf("got %s, want HIT", op)
	}
}
