package crawl

import (
	"testing"
	"time"
)

// TestWaitAfter: what comes while a batch is written, in the wait for the next,
// and while that is written, is a second's at most, unless writing alone takes it.
func TestWaitAfter(t *testing.T) {
	const ms = time.Millisecond
	for took, want := range map[time.Duration]time.Duration{
		ms: 20 * ms, 50 * ms: 200 * ms, 200 * ms: 500 * ms, 300 * ms: 400 * ms, 490 * ms: 20 * ms, 2 * time.Second: 20 * ms,
	} {
		got := waitAfter(took)
		if got != want {
			t.Errorf("after %v: got %v, want %v", took, got, want)
		}
		if took < 490*ms && 2*took+got > maxWait {
			t.Errorf("after %v: a kill costs %v, want %v at most", took, 2*took+got, maxWait)
		}
	}
}
