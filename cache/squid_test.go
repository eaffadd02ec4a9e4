package cache

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A squid is Debian's, on loopback, without a disk.
type squid struct {
	http, icp int
	dir       string
}

// startSquid runs squid with more lines of configuration until the test ends.
func startSquid(t *testing.T, lines ...string) *squid {
	t.Helper()
	program := "/usr/sbin/squid"
	if _, err := os.Stat(program); err != nil {
		t.Skip("squid is not installed: it is not spoken with")
	}
	s := &squid{dir: t.TempDir()}
	s.http, s.icp = freePortOf(t, "tcp"), freePortOf(t, "udp")
	conf := fmt.Sprintf(`http_port 127.0.0.1:%d
icp_port %d
udp_incoming_address 127.0.0.1
icp_access allow all
http_access allow all
visible_hostname squid.test
pid_filename DIR/pid
coredump_dir DIR
cache_log DIR/cache.log
access_log stdio:DIR/access.log
cache_mem 16 MB
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
dns_nameservers 127.0.0.1
minimum_direct_rtt 0
minimum_direct_hops 0
%s
`, s.http, s.icp, strings.Join(lines, "\n"))
	if err := os.WriteFile(s.dir+"/conf", []byte(strings.ReplaceAll(conf, "DIR", s.dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.own(t)
	cmd := exec.Command(program, "-N", "-f", s.dir+"/conf")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	soon(t, "squid to answer", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.http))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return s
}

// own lets squid write to its folder: started by root it becomes another user.
func (s *squid) own(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	u, err := user.Lookup("proxy")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(s.dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(s.dir), 0o755); err != nil {
		t.Fatal(err)
	}
}

// said waits for squid's log to tell how it got a URL: the code and whom from.
func (s *squid) said(t *testing.T, url string) (how string) {
	t.Helper()
	soon(t, "squid to log "+url, func() bool {
		b, _ := os.ReadFile(s.dir + "/access.log")
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 8 && f[6] == url {
				how = f[8]
			}
		}
		return how != ""
	})
	return how
}

func freePortOf(t *testing.T, network string) int {
	t.Helper()
	if network == "udp" {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		return pc.LocalAddr().(*net.UDPAddr).Port
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// soon waits until something is so.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s", what)
		}
	}
}

// by gets a URL by a proxy, and returns its body and Via.
func by(t *testing.T, proxy, u string) (body, via string) {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}), DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr, Timeout: 20 * time.Second}).Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%s: got %s, %v", u, res.Status, err)
	}
	return string(b), strings.Join(res.Header.Values("Via"), ", ")
}

// counted is a server that counts what is asked, and says so.
func counted(t *testing.T) (base string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=100")
		fmt.Fprintf(w, "%s %d", r.URL.Path, asked.Add(1))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// TestSquidAsked has squid be asked, as a sibling and as a parent.
func TestSquidAsked(t *testing.T) {
	base, asked := counted(t)
	s := startSquid(t)
	proxy := fmt.Sprintf("127.0.0.1:%d", s.http)
	c, _ := openAt(t, "127.0.0.3", fmt.Sprintf("sibling addr=%s icp=%d name=squid\n", proxy, s.icp))
	held, _ := by(t, proxy, base+"/held")
	if got, via := by(t, doorOf(c), base+"/held"); got != held || asked.Load() != 1 || !strings.Contains(via, "squid.test") {
		t.Errorf("held: got %q by %q, the server asked %d times, want %q from squid", got, via, asked.Load(), held)
	}
	if _, via := by(t, doorOf(c), base+"/missing"); asked.Load() != 2 || strings.Contains(via, "squid.test") {
		t.Errorf("missing: got it by %q, the server asked %d times, want it from the server", via, asked.Load())
	}
	if r := c.near.rows()[0]; r.Asked != 2 || r.Hits != 1 || r.Misses != 1 || r.State != "up" || r.RTT <= 0 {
		t.Errorf("got %+v, want a hit and a miss of squid's", r)
	}
	config := func(more string) {
		if err := c.setConfig(context.Background(), c.config()+more); err != nil {
			t.Fatal(err)
		}
	}
	config("direct never=yes\n")
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: doorOf(c)}), DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr}).Get(base + "/nobody")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode < 500 || asked.Load() != 2 {
		t.Errorf("never direct: got %s, the server asked %d times, want a failure", res.Status, asked.Load())
	}
	if err := c.setConfig(context.Background(), strings.Replace(c.config(), "sibling ", "parent ", 1)); err != nil {
		t.Fatal(err)
	}
	if _, via := by(t, doorOf(c), base+"/parent"); asked.Load() != 3 || !strings.Contains(via, "squid.test") {
		t.Errorf("parent: got it by %q, the server asked %d times, want it fetched by squid", via, asked.Load())
	}
	if how := s.said(t, base+"/parent"); !strings.HasPrefix(how, "HIER_DIRECT/") {
		t.Errorf("got squid to fetch by %s, want HIER_DIRECT", how)
	}
}

// TestSquidAsks has squid ask us, as its sibling and as its parent.
func TestSquidAsks(t *testing.T) {
	base, asked := counted(t)
	c, icp := openAt(t, "127.0.0.3", "")
	host, port, err := net.SplitHostPort(doorOf(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"sibling", "parent"} {
		s := startSquid(t, fmt.Sprintf("cache_peer %s %s %s %d no-digest name=ours", host, kind, port, icp.Port()), "prefer_direct off", "nonhierarchical_direct off")
		proxy := fmt.Sprintf("127.0.0.1:%d", s.http)
		before := asked.Load()
		held, _ := by(t, doorOf(c), base+"/held/"+kind)
		soon(t, "it to be kept", func() bool { return c.isHeld(keyOf(base + "/held/" + kind)) })
		got, _ := by(t, proxy, base+"/held/"+kind)
		if how := s.said(t, base+"/held/"+kind); got != held || asked.Load() != before+1 || !from(how, kind, host) {
			t.Errorf("%s: got %q by %s, the server asked %d times, want %q from us", kind, got, how, asked.Load()-before, held)
		}
		by(t, proxy, base+"/missing/"+kind)
		how := s.said(t, base+"/missing/"+kind)
		if from(how, kind, host) != (kind == "parent") || asked.Load() != before+2 || c.isHeld(keyOf(base+"/missing/"+kind)) != (kind == "parent") {
			t.Errorf("%s: got it by %s, the server asked %d times, held here %v, want it from the server, by us if we are a parent", kind, how, asked.Load()-before, c.isHeld(keyOf(base+"/missing/"+kind)))
		}
	}
	if n := c.count.queries.Load(); n != 4 || c.count.queryHits.Load() != 2 {
		t.Errorf("got %d questions, %d hits, want 4 and 2", n, c.count.queryHits.Load())
	}
}

// from tells whether squid had something from us. Of a parent it logs PARENT_HIT
// and FIRST_PARENT_MISS whatever the parent said.
func from(how, kind, host string) bool {
	code, at, _ := strings.Cut(how, "/")
	return at == host && strings.Contains(code, strings.ToUpper(kind))
}
