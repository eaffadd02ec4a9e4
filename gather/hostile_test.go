package gather

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/gathertest"
)

// hostileLimits are small, that a test of what is slow or long be short.
var hostileLimits = crawl.Limits{Body: 8 << 20, Time: 2 * time.Second, Wait: 3 * time.Second}

// hostileRequests is what one trick may have of a Gatherer. The most are some 300.
const hostileRequests = 500

// A hostileReport is what the process tells that visited the hostile web.
type hostileReport struct {
	Seconds float64
	Peak    int // MB resident at most
	Status  string
	Events  string
}

// envHostile has the config of the process that visits; it is this test, again.
const envHostile = "HARVEST_TEST_HOSTILE"

// TestHostileWeb gathers from servers that mean harm, in a process of its own: it
// ends, with bounded memory, having read no more than so much, and its events
// name what was done by every trick; honest pages are gathered.
func TestHostileWeb(t *testing.T) {
	if conf := os.Getenv(envHostile); conf != "" {
		visitHostile(t, conf)
		return
	}
	h := gathertest.NewHostile(strings.Fields(os.Getenv("HARVEST_TRICKS"))...) // all, unless some are named
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var conf strings.Builder
	for _, u := range h.Roots() {
		fmt.Fprintf(&conf, "root url=%s delay=0s urls=unlimited\n", u)
	}
	r := hostileChild(t, conf.String())
	t.Logf("%.1f s, %d MB at most, %d MB sent\n%s", r.Seconds, r.Peak, h.Sent()>>20, r.Status)
	if r.Peak > 400 {
		t.Errorf("memory: got %d MB at most, want 400", r.Peak)
	}
	if r.Seconds > 90 {
		t.Errorf("time: got %.1f s, want 90 at most", r.Seconds)
	}
	events := eventsByURL(t, r.Events)
	for _, trick := range h.Tricks {
		n := h.Requests(trick.Name)
		if n == 0 {
			t.Errorf("%s: was not asked for", trick.Name)
		}
		if n > hostileRequests {
			t.Errorf("%s (%s): got %d requests, want %d at most", trick.Name, trick.About, n, hostileRequests)
		}
		told := ""
		for url, what := range events {
			if strings.HasPrefix(url+"/", h.URL(trick.Name)) { // of servers that were left alone the origin is told
				told += " " + what
			}
		}
		if told == "" {
			t.Errorf("%s (%s): no event names %s", trick.Name, trick.About, h.URL(trick.Name))
		}
	}
	home := strings.TrimSuffix(h.Roots()[0], "/")
	switch honest := events[home+"/honest.html"]; {
	case strings.Contains(honest, "done"):
	case strings.Contains(events[home], "it cannot be reached"): // this machine is so busy that too many answers in a row came too late
		t.Logf("the honest page is left to a later visit: %s", events[home])
	default:
		t.Errorf("the honest page: got events %q, of its server %q; want done", honest, events[home])
	}
}

func eventsByURL(t *testing.T, text string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		e, err := ndb.ParseLine(strings.TrimSuffix(line, "\n"), 1)
		if err != nil {
			t.Fatalf("events: %v in %q", err, line)
		}
		u, _ := e.Get("url")
		what, _ := e.Get("event")
		why, _ := e.Get("reason")
		all[u] += what + ":" + why + ";"
	}
	return all
}

// hostileChild runs the visit in a process of its own, whose memory can be told.
func hostileChild(t *testing.T, conf string) (r hostileReport) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestHostileWeb$")
	cmd.Env = append(os.Environ(), envHostile+"="+conf)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the visit: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if err := json.Unmarshal([]byte(line), &r); err == nil {
			return r
		}
	}
	t.Fatalf("the visit: no report in %s", out)
	return r
}

func visitHostile(t *testing.T, conf string) {
	g, err := Open(t.TempDir(), "hostile", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.setConfig(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
	if err := g.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := g.next(time.Now())
	if err != nil || v == nil {
		t.Fatalf("no visit is to be made: %v", err)
	}
	v.plan.Limits = hostileLimits
	g.journal.events = fs.NewLog(64 << 20) // all of them, for once
	begin := time.Now()
	g.gather(t.Context(), v)
	if g.last != nil {
		t.Fatal(g.last)
	}
	r := hostileReport{Seconds: time.Since(begin).Seconds(), Peak: peakMemory(t), Status: g.status()}
	r.Events = readLog(t, g.journal.events)
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		t.Fatal(err)
	}
}

func readLog(t *testing.T, l *fs.Log) string {
	t.Helper()
	h, err := l.File(1).Open(t.Context(), fs.Read)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for b := make([]byte, 64<<10); ; {
		n, err := h.ReadAt(t.Context(), b, int64(len(text)))
		text = append(text, b[:n]...)
		if errors.Is(err, io.EOF) {
			return string(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func peakMemory(t *testing.T) int {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Logf("memory is not checked: %v", err)
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb >> 10
		}
	}
	return 0
}
