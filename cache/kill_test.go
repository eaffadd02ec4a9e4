package cache

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// envKill has the state directory of the process that TestKill kills.
const envKill = "HARVEST_CACHE_KILL"

// bodyFor is the body of a URL: its size and each byte follow from the path.
func bodyFor(path string) []byte {
	sum := sha256.Sum256([]byte(path))
	r := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), 1))
	size := r.IntN(20_000)
	if sum[9]%16 == 0 {
		size = 1 << 20 * (1 + r.IntN(3)) // a file of its own
	}
	b := make([]byte, size)
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	return b
}

// TestKill kills a cache under load, again and again: what it answers from what it
// kept is whole, and what it should be. HARVEST_KILLS is how often; 50 is what is
// promised, a few what a test can take.
func TestKill(t *testing.T) {
	if dir := os.Getenv(envKill); dir != "" {
		killed(t, dir)
		return
	}
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("HARVEST_KILLS")); err == nil {
		kills = n
	} else {
		t.Logf("%d kills; HARVEST_KILLS=50 takes more time", kills)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b := bodyFor(req.URL.Path)
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.Write(b)
	}))
	defer server.Close()
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	held, wrong := 0, 0
	for range kills {
		p := startKilled(t, dir)
		n, bad := p.check(t, server.URL)
		held, wrong = held+n, wrong+bad
		p.load(t, server.URL, r.Uint64(), time.Duration(50+r.IntN(200))*time.Millisecond)
	}
	p := startKilled(t, dir)
	n, bad := p.check(t, server.URL)
	p.kill()
	t.Logf("%d objects were found after %d kills, %d at the end", held, kills, n)
	if wrong+bad > 0 || n == 0 {
		t.Errorf("got %d wrong of %d, want none of some", wrong+bad, held+n)
	}
}

const killPaths = 300

// A killable is a process with a cache.
type killable struct {
	cmd    *exec.Cmd
	client *http.Client
}

func startKilled(t *testing.T, dir string) *killable {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.v")
	cmd.Env = append(os.Environ(), envKill+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if addr, ok := strings.CutPrefix(sc.Text(), "door "); ok {
			proxy, _ := url.Parse("http://" + addr)
			go io.Copy(io.Discard, out) // ends with the process
			return &killable{cmd, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 8}}}
		}
	}
	t.Fatalf("the cache does not start: %v", cmd.Wait())
	return nil
}

func (p *killable) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.client.CloseIdleConnections()
}

// load asks for many URLs at once until the cache is killed.
func (p *killable) load(t *testing.T, server string, seed uint64, life time.Duration) {
	var all sync.WaitGroup
	for i := range 8 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for {
				path := fmt.Sprintf("/o/%d", r.IntN(killPaths))
				resp, err := p.client.Get(server + path)
				if err != nil {
					return
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil {
					return
				}
				if resp.StatusCode == 200 && string(b) != string(bodyFor(path)) {
					t.Errorf("%s: got another body of %d bytes", path, len(b))
				}
			}
		})
	}
	time.AfterFunc(life, func() { p.cmd.Process.Kill() })
	all.Wait()
	p.kill()
}

// check asks for what is kept.
func (p *killable) check(t *testing.T, server string) (held, wrong int) {
	t.Helper()
	for i := range killPaths {
		path := fmt.Sprintf("/o/%d", i)
		req, _ := http.NewRequest("GET", server+path, nil)
		req.Header.Set("Cache-Control", "only-if-cached")
		resp, err := p.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			continue
		}
		held++
		if err != nil || string(b) != string(bodyFor(path)) {
			wrong++
			t.Errorf("%s: got %d bytes and %v, want %d", path, len(b), err, len(bodyFor(path)))
		}
	}
	return held, wrong
}

// killed is the process that is killed.
func killed(t *testing.T, dir string) {
	c, err := Open(dir, "main", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.setConfig(context.Background(), localConfig+"memory=1M\ndisk=48M\n"); err != nil {
		t.Fatal(err)
	}
	go func() {
		for len(c.doors.addrs()) == 0 {
			time.Sleep(time.Millisecond)
		}
		for _, a := range c.doors.addrs() {
			fmt.Println("door", a)
		}
	}()
	c.Run(context.Background()) // until it is killed
}
