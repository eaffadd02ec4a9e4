package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"harvest/fs/ndb"
)

// bar shows how far a long job is: on a terminal a bar that is drawn over,
// elsewhere a line every lineEvery. It keeps no state in the terminal, so that
// an interrupt leaves nothing to put right.
type bar struct {
	w     io.Writer
	term  *os.File  // w, when it is a terminal that can be drawn on
	start time.Time // of all
	last  time.Time // a line was printed
	shown bool

	rate float64 // done a second, of late
	done int     // when that was reckoned
	at   time.Time
	step int // how much was done then at once
}

const (
	lineEvery = 5 * time.Second
	rateOver  = 3 * time.Second // the rate is mostly that of the last so long
)

func newBar(w io.Writer) *bar {
	now := time.Now()
	b := &bar{w: w, start: now, last: now, at: now}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		b.term = f
	}
	return b
}

// A progress point is how far a job is.
type point struct {
	what      string
	done, all int
	bytes     int64  // 0 is not told
	counts    string // what else there is to know, or ""
}

// pointOf makes one of the status of a Gatherer or a Broker.
func pointOf(what string, st ndb.Entry) point {
	if _, ok := st.Get("indexed"); ok {
		return point{what: what, done: number(st, "indexed"), all: number(st, "objects")}
	}
	p := point{what: what, all: number(st, "found"), bytes: int64(number(st, "bytes-in"))}
	var counts []string
	for _, k := range []string{"fetched", "unchanged", "gone", "failed", "excluded"} {
		n := number(st, k)
		p.done += n
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, k))
		}
	}
	p.counts = strings.Join(counts, ", ")
	return p
}

func (b *bar) show(what string, done, all int) { b.draw(point{what: what, done: done, all: all}) }

func (b *bar) draw(p point) {
	now := time.Now()
	p.all = max(p.all, p.done) // what a visit puts out was not among what it found
	b.reckon(p.done, now)
	if b.term == nil {
		if now.Sub(b.last) >= lineEvery {
			b.last = now
			fmt.Fprintf(b.w, "%s: %s\n", p.what, strings.Join(p.parts(b.rate), ", "))
		}
		return
	}
	width := 80 // asked for each time: windows change
	if n, _, err := term.GetSize(int(b.term.Fd())); err == nil && n > 0 {
		width = n
	}
	fmt.Fprintf(b.w, "\r%s\x1b[K", p.line(b.rate, width))
	b.shown = true
}

// reckon brings the rate up to date: what came first counts whole, then each
// moment less the longer it is gone. What is done in steps, as an index is made,
// tells nothing between them, but that this one is slower than the rate.
func (b *bar) reckon(done int, now time.Time) {
	dt := now.Sub(b.at).Seconds()
	if dt <= 0 {
		return
	}
	if done == b.done && done > 0 {
		b.rate = min(b.rate, float64(b.step)/dt)
		return
	}
	recent := math.Max(float64(done-b.done), 0) / dt
	if life := now.Sub(b.start); life < rateOver {
		b.rate = float64(done) / life.Seconds()
	} else {
		b.rate += (recent - b.rate) * (1 - math.Exp(-dt/rateOver.Seconds()))
	}
	b.step = max(done-b.done, 1)
	b.done, b.at = done, now
}

// parts tell the point in words, what matters most first.
func (p point) parts(rate float64) []string {
	parts := []string{fmt.Sprintf("%d of %d", p.done, p.all), fmt.Sprintf("%.0f/s", rate)}
	if left := float64(p.all-p.done) / rate; rate > 0 && left > 0 && left < 1e6 {
		parts = append(parts, "about "+(time.Duration(math.Ceil(left))*time.Second).String()+" left")
	}
	if p.bytes > 0 {
		parts = append(parts, size(p.bytes))
	}
	if p.counts != "" {
		parts = append(parts, p.counts)
	}
	return parts
}

// line is the point in less than so many columns: as much as there is room for
// beside a bar that can be seen. A terminal that has no room has the numbers.
func (p point) line(rate float64, width int) string {
	const least = 10 // columns of the bar
	parts := p.parts(rate)
	tail := strings.Join(parts, ", ")
	for len(parts) > 1 && len(p.what)+len(tail)+least+5 > width {
		parts = parts[:len(parts)-1]
		tail = strings.Join(parts, ", ")
	}
	room := width - len(p.what) - len(tail) - 5
	if room < 1 {
		return tail[:max(0, min(len(tail), width-1))]
	}
	full := 0
	if p.all > 0 {
		full = min(max(room*p.done/p.all, 0), room)
	}
	return fmt.Sprintf("%s [%s%s] %s", p.what, strings.Repeat("#", full), strings.Repeat(" ", room-full), tail)
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d kB", (n+999)/1000)
}

// end leaves the line of the bar to what comes next.
func (b *bar) end() {
	if b.shown {
		fmt.Fprintln(b.w)
	}
}
