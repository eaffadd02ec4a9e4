package segfile

import (
	"context"
	"sync/atomic"
	"time"
)

// A Pace has merges give way to searches: while any run, a merge rests for as
// long as it works, so it takes one half of a processor rather than one. The zero
// Pace is ready.
type Pace struct{ searches atomic.Int32 }

// Begin and End say that a search does.
func (p *Pace) Begin() { p.searches.Add(1) }
func (p *Pace) End()   { p.searches.Add(-1) }

// A Turn is a merge at its Pace. Nil goes on without a rest.
type Turn struct {
	p     *Pace
	since time.Time // it works
}

// Merge begins one.
func (p *Pace) Merge() *Turn { return &Turn{p: p, since: time.Now()} }

// A merge works for at least the one before it rests, and never rests for longer
// than the other: what waits for it waits twice as long at the most.
const (
	leastWork = time.Millisecond
	longRest  = 20 * time.Millisecond
)

// Next is called every few thousand steps. The error is that of ctx.
func (t *Turn) Next(ctx context.Context) error {
	if t != nil {
		work := time.Since(t.since)
		switch {
		case t.p.searches.Load() == 0:
			t.since = t.since.Add(work)
		case work >= leastWork:
			rest(ctx, min(work, longRest))
			t.since = time.Now()
		}
	}
	return ctx.Err()
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
