package cache

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// counters are what a cache counts since it was opened.
type counters struct {
	hits, hitBytes         atomic.Int64 // of the shortest way
	asked, stored          atomic.Int64
	failures, refused      atomic.Int64
	malformed, invalidated atomic.Int64
	tunnels                atomic.Int64
	queries, queryHits     atomic.Int64 // of neighbours
	mu                     sync.Mutex
	how                    map[string]*tally
}

// A tally is of requests with one outcome.
type tally struct {
	n     int64
	bytes int64
	took  time.Duration
}

// hit counts an answer of the shortest way.
func (c *counters) hit(bytes int64) {
	c.hits.Add(1)
	c.hitBytes.Add(bytes)
}

// add counts an answer.
func (c *counters) add(how string, bytes int64, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how == nil {
		c.how = make(map[string]*tally)
	}
	t := c.how[how]
	if t == nil {
		t = new(tally)
		c.how[how] = t
	}
	t.n++
	t.bytes += bytes
	t.took += took
}

// outcomes are those that are counted, in the order of stats.
var outcomes = [...]string{"hit", "stale", "validated", "expired", "reload", "vary", "collapsed", "miss", "method", "pass", "tunnel", "local", "failed", "refused"}

func (c *counters) tallies() map[string]tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]tally, len(c.how)+1)
	for how, t := range c.how {
		all[how] = *t
	}
	h := all["hit"]
	h.n += c.hits.Load()
	h.bytes += c.hitBytes.Load()
	all["hit"] = h
	return all
}

// stats is what is counted, as Prometheus reads it.
func (c *Cache) stats() string {
	var b strings.Builder
	line := func(name, labels string, v any) {
		if labels != "" {
			labels = "," + labels
		}
		fmt.Fprintf(&b, "harvest_cache_%s{cache=%q%s} %v\n", name, c.name, labels, v)
	}
	all := c.count.tallies()
	for _, how := range outcomes {
		t := all[how]
		l := fmt.Sprintf("outcome=%q", how)
		line("requests_total", l, t.n)
		line("bytes_total", l, t.bytes)
		line("seconds_total", l, t.took.Seconds())
	}
	st := c.store.Stats()
	urls, bytes := c.mem.stat()
	line("objects", "", st.Objects)
	line("disk_bytes", "", st.Disk)
	line("index_bytes", "", st.Index)
	line("segments", `queue="small"`, st.Small)
	line("segments", `queue="main"`, st.Main)
	line("memory_urls", "", urls)
	line("memory_bytes", "", bytes)
	line("fetches_total", "", c.count.asked.Load())
	line("stored_total", "", c.count.stored.Load())
	line("failures_total", "", c.count.failures.Load())
	line("refused_connections_total", "", c.count.refused.Load())
	line("malformed_total", "", c.count.malformed.Load())
	line("invalidated_total", "", c.count.invalidated.Load())
	line("server_connections_opened_total", "", c.up.opened.Load())
	line("server_connections_reused_total", "", c.up.reused.Load())
	line("icp_queries_total", "", c.count.queries.Load())
	line("icp_hits_total", "", c.count.queryHits.Load())
	c.doors.mu.Lock()
	conns := c.doors.conns
	c.doors.mu.Unlock()
	line("clients", "", conns)
	c.mu.Lock()
	flights := len(c.flights)
	c.mu.Unlock()
	line("flights", "", flights)
	return b.String()
}
