package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// bar shows how far a long job is: on a terminal a bar that is drawn over,
// elsewhere a line every lineEvery.
type bar struct {
	w     io.Writer
	width int // of the terminal; 0: it is none
	start time.Time
	last  time.Time
	shown bool
}

const lineEvery = 5 * time.Second

func newBar(w io.Writer) *bar {
	b := &bar{w: w, start: time.Now(), last: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.width = 80
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			b.width = n
		}
	}
	return b
}

func (b *bar) show(what string, done, all int) {
	rate := float64(done) / max(time.Since(b.start).Seconds(), 0.001)
	if b.width == 0 {
		if time.Since(b.last) >= lineEvery {
			b.last = time.Now()
			fmt.Fprintf(b.w, "%s: %d of %d, %.0f/s\n", what, done, all, rate)
		}
		return
	}
	tail := fmt.Sprintf(" %d of %d, %.0f/s", done, all, rate)
	room := max(b.width-len(what)-len(tail)-4, 0)
	full := 0
	if all > 0 {
		full = min(room*done/all, room)
	}
	fmt.Fprintf(b.w, "\r%s [%s%s]%s\x1b[K", what, strings.Repeat("#", full), strings.Repeat(" ", room-full), tail)
	b.shown = true
}

// end leaves the line of the bar to what comes next.
func (b *bar) end() {
	if b.shown {
		fmt.Fprintln(b.w)
	}
}
