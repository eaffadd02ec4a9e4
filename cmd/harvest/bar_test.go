package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLine holds the bar to the width it has: what matters least goes first.
func TestLine(t *testing.T) {
	p := point{what: "gather/web", done: 250, all: 1000, bytes: 12_300_000, counts: "240 fetched, 10 failed"}
	for width, tail := range map[int]string{
		120: "] 250 of 1000, 100/s, about 8s left, 12.3 MB, 240 fetched, 10 failed",
		80:  "] 250 of 1000, 100/s, about 8s left, 12.3 MB",
		62:  "] 250 of 1000, 100/s, about 8s left",
		40:  "] 250 of 1000",
		16:  "250 of 1000",
		8:   "250 of ",
		1:   "",
		0:   "",
	} {
		got := p.line(100, width)
		if !strings.HasSuffix(got, tail) {
			t.Errorf("width %d: got %q, want it to end in %q", width, got, tail)
		}
		if len(got) != max(width-1, 0) && (width >= 40 || len(got) >= max(width, 1)) {
			t.Errorf("width %d: got %d columns in %q", width, len(got), got)
		}
		_, bar, _ := strings.Cut(got, "[")
		if full := strings.Count(bar, "#"); width >= 40 && full != strings.Index(bar, "]")/4 {
			t.Errorf("width %d: got %d of %q, want a quarter", width, full, bar)
		}
	}
}

// TestReckon has a job slow down: the rate follows, and so does the time left.
func TestReckon(t *testing.T) {
	b := newBar(new(bytes.Buffer))
	at, done := b.start, 0
	for range 50 {
		at, done = at.Add(100*time.Millisecond), done+100
		b.reckon(done, at)
	}
	if b.rate < 950 || b.rate > 1050 {
		t.Errorf("steady: got %.0f a second, want 1000", b.rate)
	}
	for range 100 {
		at, done = at.Add(100*time.Millisecond), done+1
		b.reckon(done, at)
	}
	if b.rate < 10 || b.rate > 60 {
		t.Errorf("slow for ten seconds: got %.0f a second, want little more than 10", b.rate)
	}
	b.reckon(done, at) // no time has passed
	b.reckon(0, at.Add(time.Second))
	if b.rate < 0 {
		t.Errorf("backwards: got %.0f a second, want none below 0", b.rate)
	}
}

// TestReckonSteps has a job do much at once, each time after as long: the rate does
// not fall between, unless a step takes longer than they do.
func TestReckonSteps(t *testing.T) {
	b := newBar(new(bytes.Buffer))
	at, done := b.start, 0
	for i := range 400 {
		at = at.Add(100 * time.Millisecond)
		if i%40 == 39 { // 4,000 in 4 s
			done += 4000
		}
		b.reckon(done, at)
		if i > 80 && (b.rate < 900 || b.rate > 1100) {
			t.Fatalf("after %s: got %.0f a second, want 1000", at.Sub(b.start), b.rate)
		}
	}
	b.reckon(done, at.Add(40*time.Second))
	if b.rate > 110 {
		t.Errorf("no step for 40 s: got %.0f a second, want 100 at most", b.rate)
	}
}

// TestMoreThanAll has a job do more than was to be done.
func TestMoreThanAll(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out)
	b.last = time.Time{}
	b.show("gather/web", 7, 3)
	if got := out.String(); !strings.HasPrefix(got, "gather/web: 7 of 7, ") {
		t.Errorf("got %q, want 7 of 7", got)
	}
}

// terminal opens a pair: what is written to tty is read from pty.
func terminal(t *testing.T) (pty, tty *os.File) {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	t.Cleanup(func() { pty.Close() })
	if err := unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60}); err != nil {
		t.Fatal(err)
	}
	return pty, tty
}

// TestWatchTerminal watches a Gatherer on a terminal, and interrupts that: a
// bar was drawn over and over, and the line after it begins a new one.
func TestWatchTerminal(t *testing.T) {
	pty, tty := terminal(t)
	p := startServer(t, t.TempDir())
	p.put(t, "gather", "")
	let := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		<-let // the Gatherer is at work for as long as the test
	}))
	defer site.Close()
	defer close(let)
	p.put(t, "gather/g/config", "root url="+site.URL+"/ delay=0s")
	p.put(t, "gather/g/ctl", "run")
	exe, err := exec.LookPath("harvest")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "watch", "-a", p.addr, "gather/g")
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.Stdout, cmd.Stderr = tty, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := ""
	for strings.Count(text, "\r") < 3 {
		b := make([]byte, 1024)
		n, err := pty.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b[:n])
	}
	cmd.Process.Signal(os.Interrupt)
	err = cmd.Wait()
	tty.WriteString("$ ")
	for !strings.HasSuffix(text, "$ ") {
		b := make([]byte, 1024)
		n, err := pty.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b[:n])
	}
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("interrupted: got %v, want exit 1", err)
	}
	lines := strings.Split(text, "\r\n")
	if !strings.Contains(lines[0], "\rgather/g [") || !strings.HasSuffix(text, "\r\nharvest: interrupted\r\n$ ") {
		t.Errorf("got %q, want a bar, then harvest: interrupted on a line of its own", text)
	}
	for part := range strings.SplitSeq(lines[0], "\r") {
		if len(strings.TrimSuffix(part, "\x1b[K")) >= 60 {
			t.Errorf("got %q, want less than 60 columns", part)
		}
	}
}
