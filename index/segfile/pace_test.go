package segfile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A merge rests as long as it works while there are searches, and no more.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		turn := p.Merge()
		ctx := t.Context()
		step := func(work time.Duration) time.Duration {
			t.Helper()
			time.Sleep(work) // on the clock of the bubble
			begin := time.Now()
			if err := turn.Next(ctx); err != nil {
				t.Fatal(err)
			}
			return time.Since(begin)
		}
		for _, tt := range []struct {
			searches   int
			work, rest time.Duration
		}{
			{0, 50 * time.Millisecond, 0},
			{1, 5 * time.Millisecond, 5 * time.Millisecond},
			{1, leastWork / 2, 0},
			{1, leastWork / 2, leastWork},
			{2, time.Second, longRest},
			{0, time.Second, 0},
			{1, 2 * time.Millisecond, 2 * time.Millisecond},
		} {
			for range tt.searches {
				p.Begin()
			}
			if got := step(tt.work); got != tt.rest {
				t.Errorf("%d searches, %v of work: got a rest of %v, want %v", tt.searches, tt.work, got, tt.rest)
			}
			for range tt.searches {
				p.End()
			}
		}
		p.Begin()
		gone, cancel := context.WithCancel(ctx)
		cancel()
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := turn.Next(gone); !errors.Is(err, context.Canceled) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v, want %v at once", err, time.Since(begin), context.Canceled)
		}
		var none *Turn
		if err := none.Next(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("no turn: got %v, want %v", err, context.Canceled)
		}
	})
}
