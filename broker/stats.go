package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/index/query"
)

// A tally is what is counted since the start. Guarded by the mu of queries.
type tally struct {
	asked, hits, cut, failed int64
	refused                  int64 // by a limit
	took                     latency
	users                    map[string]*userTally
	events                   map[string]int64
}

type userTally struct {
	asked, failed int64
	took          latency
}

// maxTallies bounds how many users are counted one by one; the rest are others.
const maxTallies = 1000

const (
	otherUsers = "(others)"
	nobodyElse = "(self)" // the process, and what it asks for itself
)

// logged is ask with what is asked, and what came of it, counted and logged.
func (b *Broker) logged(ctx context.Context, what ndb.Pair, ask func() (*answer, error)) (*answer, error) {
	if err := b.answers(); err != nil && userOf(ctx) != "" {
		return nil, err
	}
	begin := time.Now()
	b.tell(ctx, logQuery, what)
	a, err := ask()
	took := time.Since(begin)
	b.queries.count(userOf(ctx), a, err, took)
	pairs := []ndb.Pair{what, ndb.Of("took", took.Round(time.Microsecond))}
	if err != nil {
		pairs = append(pairs, ndb.Of("err", err))
	} else {
		pairs = append(pairs, ndb.Of("hits", a.total))
		if a.rest != nil {
			pairs = append(pairs, ndb.Of("more", "yes"))
		}
		if a.cut != "" {
			pairs = append(pairs, ndb.Of("cut", a.cut))
		}
		if len(a.missing) > 0 {
			pairs = append(pairs, ndb.Of("missing", len(a.missing)))
		}
	}
	b.tell(ctx, logReturn, pairs...)
	return a, err
}

// what is asked, for a log.
func askedFor(q query.Node) ndb.Pair { return ndb.Of("query", q) }

// count counts a query.
func (s *queries) count(user string, a *answer, err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tally
	if user == "" {
		user = nobodyElse
	}
	if t.users == nil {
		t.users = make(map[string]*userTally)
	}
	u := t.users[user]
	if u == nil {
		if len(t.users) >= maxTallies {
			user = otherUsers
		}
		if u = t.users[user]; u == nil {
			u = new(userTally)
			t.users[user] = u
		}
	}
	t.asked++
	u.asked++
	t.took.add(took)
	u.took.add(took)
	var limit *limitError
	switch {
	case err != nil:
		t.failed++
		u.failed++
		if errors.As(err, &limit) {
			t.refused++
		}
		return
	case a.cut != "":
		t.cut++
	}
	t.hits += int64(a.total)
}

// happened counts an event.
func (s *queries) happened(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tally.events == nil {
		s.tally.events = make(map[string]int64)
	}
	s.tally.events[event]++
}

// figures are the statistics in one line.
func (b *Broker) figures() []ndb.Pair {
	st, _ := b.store.Stats()
	b.queries.mu.Lock()
	defer b.queries.mu.Unlock()
	t := &b.queries.tally
	return []ndb.Pair{ndb.Of("since", b.started), ndb.Of("objects", st.Objects), ndb.Of("bytes", st.Bytes), ndb.Of("queries", t.asked),
		ndb.Of("failed", t.failed), ndb.Of("hits", t.hits), ndb.Of("p50", t.took.at(0.5)), ndb.Of("p99", t.took.at(0.99)),
		ndb.Of("users", len(t.users)), ndb.Of("sessions", len(b.queries.sessions))}
}

// stats are counters since the start, as Prometheus reads them.
func (b *Broker) stats() string {
	st, _ := b.store.Stats()
	h := b.hold()
	defer h.release()
	ix := h.Stats()
	b.mu.Lock()
	c := b.total
	b.mu.Unlock()
	var t strings.Builder
	name := func(metric string, labels ...string) {
		fmt.Fprintf(&t, "harvest_broker_%s{broker=%q", metric, b.name)
		for i := 0; i < len(labels); i += 2 {
			fmt.Fprintf(&t, ",%s=%q", labels[i], labels[i+1])
		}
		t.WriteString("} ")
	}
	metric := func(what string, value any, labels ...string) {
		name(what, labels...)
		fmt.Fprintf(&t, "%v\n", value)
	}
	metric("start_time_seconds", b.started.Unix())
	metric("uptime_seconds", int(time.Since(b.started).Seconds()))
	metric("updates_total", c.updates)
	metric("deletes_total", c.deletes)
	metric("refreshes_total", c.refreshes)
	metric("bad_total", c.bad)
	b.queryStats(metric)
	metric("queries_waiting", b.lanes.waiting.Load())
	metric("objects", st.Objects)
	metric("store_bytes", st.Disk)
	metric("index_documents", ix.Docs)
	metric("index_bytes", ix.Bytes)
	metric("index_segments", ix.Segments)
	metric("index_deleted", ix.Deleted)
	metric("index_words", ix.Text)
	return t.String()
}

// queryStats are those of queries, events and users.
func (b *Broker) queryStats(metric func(what string, value any, labels ...string)) {
	s := b.queries
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tally
	metric("queries_total", t.asked)
	metric("queries_failed_total", t.failed)
	metric("queries_limited_total", t.refused)
	metric("queries_cut_total", t.cut)
	metric("hits_total", t.hits)
	metric("query_seconds_total", t.took.sum.Seconds())
	metric("query_seconds", t.took.at(0.5).Seconds(), "quantile", "0.5")
	metric("query_seconds", t.took.at(0.99).Seconds(), "quantile", "0.99")
	metric("query_seconds", t.took.most.Seconds(), "quantile", "1")
	metric("sessions", len(s.sessions))
	for _, event := range slices.Sorted(maps.Keys(t.events)) {
		metric("events_total", t.events[event], "event", event)
	}
	for _, user := range slices.Sorted(maps.Keys(t.users)) {
		u := t.users[user]
		metric("user_queries_total", u.asked, "user", user)
		metric("user_queries_failed_total", u.failed, "user", user)
		metric("user_query_seconds", u.took.at(0.5).Seconds(), "user", user, "quantile", "0.5")
		metric("user_query_seconds", u.took.at(0.99).Seconds(), "user", user, "quantile", "0.99")
	}
}
