package fetch

import (
	"sync"
	"sync/atomic"
)

// A Count is what became of connections.
type Count struct {
	Opened  int64 // connections made
	Reused  int64 // requests that found one
	Evicted int64 // connections closed while the server still held them: unused for too long, or for room
}

// Stats returns the counts by scheme since the Transport was made, of those
// schemes that keep connections and were used.
func (t *Transport) Stats() map[string]Count { return t.dev.stats.snapshot() }

// counters are the counts as they grow.
type counters struct {
	mu sync.Mutex // guards m, not what it points to
	m  map[string]*counter
}

type counter struct{ opened, used, evicted atomic.Int64 }

func newCounters() *counters { return &counters{m: make(map[string]*counter)} }

// of returns the counter of a scheme, one of few.
func (c *counters) of(scheme string) *counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.m[scheme]
	if n == nil {
		n = new(counter)
		c.m[scheme] = n
	}
	return n
}

func (c *counters) snapshot() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]Count, len(c.m))
	for scheme, n := range c.m {
		opened := n.opened.Load()
		out[scheme] = Count{Opened: opened, Reused: max(0, n.used.Load()-opened), Evicted: n.evicted.Load()}
	}
	return out
}
