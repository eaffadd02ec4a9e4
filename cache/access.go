package cache

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"harvest/fs/ndb"
)

// A record is a request that was answered, as the logs have it.
type record struct {
	when   time.Time // it was answered
	took   time.Duration
	client netip.Addr
	door   string
	method string
	url    string
	status int
	bytes  int64
	minor  int
	how    string
	why    string
	server int
	asked  string
	cut    error
}

// maxPending is how many records wait for the logs; more than that between two
// looks are counted, and told as a number.
const maxPending = 1 << 13

// An accessLog writes records to the logs behind the requests: rendering one costs as
// much as answering from memory.
type accessLog struct {
	all, misses atomic.Bool
	write       func(own, common string) // to the logs, many lines each

	// mu guards what follows.
	mu   sync.Mutex
	wait []record
	lost int

	flushing sync.Mutex
}

// wants reports whether the logs have requests of a kind.
func (l *accessLog) wants(hit bool) bool { return l.all.Load() || !hit && l.misses.Load() }

func (l *accessLog) set(which string) {
	l.all.Store(which == "all")
	l.misses.Store(which == "misses")
}

func (l *accessLog) add(r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wait) >= maxPending {
		l.lost++
		return
	}
	l.wait = append(l.wait, r)
}

// flush writes what waits. The logs are flushed before they are read, too.
func (l *accessLog) flush() {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	all, lost := l.wait, l.lost
	l.wait, l.lost = make([]record, 0, min(cap(all), maxPending/8)), 0
	l.mu.Unlock()
	if len(all) == 0 && lost == 0 {
		return
	}
	var own, common strings.Builder
	for i := range all {
		own.WriteString(all[i].own() + "\n")
		common.WriteString(all[i].common() + "\n")
	}
	if lost > 0 {
		own.WriteString(ndb.Format(ndb.Of("time", time.Now()), ndb.Of("skipped", lost)) + "\n")
	}
	l.write(own.String(), common.String())
}

// own is a record in this program's own form.
func (r *record) own() string {
	pairs := []ndb.Pair{
		ndb.Of("time", r.when), ndb.Of("ms", fmt.Sprintf("%.3f", float64(r.took)/float64(time.Millisecond))), ndb.Of("client", r.from()), ndb.Of("door", r.door),
		ndb.Of("method", r.method), ndb.Of("url", r.url), ndb.Of("status", r.status), ndb.Of("bytes", r.bytes), ndb.Of("result", r.how),
	}
	if r.server != 0 {
		pairs = append(pairs, ndb.Of("server", r.server))
	}
	if r.asked != "" {
		pairs = append(pairs, ndb.Of("from", r.asked))
	}
	if r.why != "" {
		pairs = append(pairs, ndb.Of("why", r.why))
	}
	if r.cut != nil {
		pairs = append(pairs, ndb.Of("cut", r.cut))
	}
	return ndb.Format(pairs...)
}

func (r *record) from() string {
	if !r.client.IsValid() {
		return "here"
	}
	return r.client.String()
}

// common is a record in the Common Log Format.
func (r *record) common() string {
	client := "-"
	if r.client.IsValid() {
		client = r.client.String()
	}
	return fmt.Sprintf("%s - - [%s] \"%s %s HTTP/1.%d\" %d %d", client, r.when.Format("02/Jan/2006:15:04:05 -0700"), r.method, quotedURL(r.url), r.minor, r.status, r.bytes)
}

// quotedURL is a URL that cannot end a field before its time.
func quotedURL(s string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c == '"' || c == 0x7f {
			return '_'
		}
		return c
	}, s[:min(len(s), 4096)])
}

// done notes a request that was answered, with bytes of body.
func (c *Cache) done(q *request, a *answer, bytes int64, err error) {
	took := time.Since(q.began)
	c.count.add(a.outcome.how, bytes, took)
	if !c.access.wants(a.outcome.how == "hit") {
		return
	}
	c.access.add(record{
		when: time.Now(), took: took, client: q.client, door: q.door, method: q.method, url: q.url, status: a.status, bytes: bytes, minor: q.minor,
		how: a.outcome.how, why: a.outcome.why, server: a.outcome.server, asked: a.outcome.asked, cut: err,
	})
}
