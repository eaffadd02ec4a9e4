package gather

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/essence"
	"harvest/gather/fetch"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A visit is the crawl.Handler of one visit: documents in, objects kept.
type visit struct {
	g      *Gatherer
	conf   *config
	tables *essence.Tables
	plan   crawl.Plan
	anew   []string // URLs to be fetched once more: see twins
	kept   bool     // the network is not asked: see Gatherer.summarize
	counts crawl.Counts

	members atomic.Int64 // objects stored of what is in documents

	// mu guards when it was.
	mu           sync.Mutex
	began, ended time.Time
	took         time.Duration // when it was before this process began
}

func (g *Gatherer) newVisit(c *config) *visit {
	v := &visit{g: g, conf: c}
	tables, print := g.types.now()
	v.tables = tables
	v.plan = crawl.Plan{
		Context: fetch.Within,
		Excluded: func(url, why string) {
			g.journal.event("excluded", ndb.Of("url", url), ndb.Of("reason", why))
		},
		Trapped: func(url, why string) {
			g.journal.event("trap", ndb.Of("url", url), ndb.Of("reason", why))
		},
		Unnamed: func(root, why string) {
			g.journal.event("failed", ndb.Of("url", root), ndb.Of("reason", "enumeration: "+why))
		},
		Left: func(origin, why string) {
			g.journal.event("left", ndb.Of("url", origin), ndb.Of("reason", why))
		},
		Agent: c.agent,
		Print: c.print(g.version, print) ^ g.bring.print(),
	}
	c.plan(&v.plan)
	v.plan.Exclude = v.rejects
	if g.reach != nil && c.reach.proxy == "" { // else there is no saying where names lead
		v.plan.Address = address
	}
	if v.plan.Agent == "" {
		v.plan.Agent = "harvest/" + g.version
	}
	return v
}

// address is the address of a host, "" when there is none, or none is needed:
// through a proxy servers are told apart by their names alone.
func address(ctx context.Context, host string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(all) == 0 {
		return "" // the request will say so
	}
	return all[0].Unmap().String()
}

// begin and finish note the times.
func (v *visit) begin(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.began = t
}

func (v *visit) finish(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = t
}

// Handle summarizes a document.
func (v *visit) Handle(ctx context.Context, p *crawl.Page) {
	if why := v.redundant(p.URL); why != "" {
		p.Outcome, p.Why = crawl.Excluded, why
		return
	}
	in := &members{v: v}
	o, steps, err := essence.Summarize(ctx, essence.Input{
		Member: in.take, Took: func(_ int, whole bool) { in.whole = whole },
		URL: p.URL, Type: p.Type, Size: p.Size, Modified: p.Modified,
		Head: p.Head, Rest: p.Rest, FullText: v.conf.fullText && !p.NoArchive, Tables: v.tables, Programs: v.g.bring.now(),
	})
	if errors.Is(err, essence.ErrDeleted) || errors.Is(err, essence.ErrRejected) {
		p.Outcome, p.Why = crawl.Excluded, err.Error()
		return
	}
	if err != nil {
		p.Outcome, p.Why = crawl.Failed, err.Error()
		return
	}
	read, err := strconv.ParseInt(o.Text("File-Size"), 10, 64)
	if err != nil {
		p.Outcome, p.Why = crawl.Failed, "size: "+err.Error()
		return
	}
	switch {
	case !p.Cut():
		p.Size = read
	case p.Size < read: // it is not as long as its server said
		p.Size = -1
	}
	if p.Cut() { // what was read is a part
		limits := strings.TrimPrefix(o.Text("Summary-Limit")+"\n", "\n")
		o.Set("Summary-Limit", fmt.Appendf(nil, "%sthe first %d bytes of the document", limits, read))
		o.Del("MD5")
		if p.Size >= 0 {
			o.Set("File-Size", strconv.AppendInt(nil, p.Size, 10))
		} else {
			o.Del("File-Size")
		}
	}
	p.Note = traceNote(o.Text("Type"), steps)
	hex.Decode(p.MD5[:], []byte(o.Text("MD5")))
	p.Life, p.Refresh = v.sign(&o)
	body := o.Append(nil)
	p.Result, p.Weight = &made{body, in}, len(body)+in.mem.Len()
}

// sign adds to a summary who made it, when, and how long it is good for, unless a
// rule has set that: then it returns it.
func (v *visit) sign(o *soif.Object) (life, refresh time.Duration) {
	seconds := func(name string, usual time.Duration) (own time.Duration) {
		text := o.Text(name)
		if text == "" {
			o.Add(name, strconv.AppendInt(nil, int64(usual/time.Second), 10))
			return 0
		}
		n, _ := strconv.ParseInt(text, 10, 32) // essence has looked at it
		return time.Duration(n) * time.Second
	}
	o.Add("Update-Time", []byte(essence.Time(time.Now())))
	life = seconds("Time-to-Live", v.conf.ttl)
	refresh = seconds("Refresh-Rate", v.conf.refresh)
	o.Add("Gatherer-Name", []byte(v.g.name))
	o.Add("Gatherer-Host", []byte(v.g.host))
	o.Add("Gatherer-Version", []byte(v.g.version))
	return life, refresh
}

// Commit makes the objects of a batch durable, or their deletion.
func (v *visit) Commit(ctx context.Context, pages []*crawl.Page) error {
	changes := make([]store.Change, 0, len(pages))
	for _, p := range pages {
		oid := v.g.oid(p.URL)
		switch {
		case p.Outcome == crawl.Fetched:
			var body []byte
			if m, ok := p.Result.(*made); ok {
				body = m.body
			}
			changes = append(changes, store.Change{Op: soif.Update, OID: oid, URL: p.URL, Body: body})
		case p.Outcome == crawl.Unchanged && p.Due:
			_, err := v.g.stat(oid)
			if errors.Is(err, iofs.ErrNotExist) {
				continue // removed by hand: it stays so until its source changes
			}
			if err != nil {
				return err
			}
			// It keeps the time to live that it has, which a rule may have set.
			changes = append(changes, store.Change{Op: soif.Refresh, OID: oid, URL: p.URL, Updated: time.Now()})
		case p.Stored && (p.Outcome == crawl.Gone || p.Outcome == crawl.Excluded || p.Outcome == crawl.Moved):
			changes = append(changes, store.Change{Op: soif.Delete, OID: oid, URL: p.URL})
		}
	}
	if len(changes) > 0 {
		if err := v.g.place(ctx, v.conf, pages, changes); err != nil {
			return err
		}
	}
	if err := v.keepMembers(ctx, pages); err != nil {
		return err
	}
	for _, p := range pages {
		v.twins(p)
		v.tell(p)
	}
	return nil
}

// tell writes an event about a page that has been dealt with.
func (v *visit) tell(p *crawl.Page) {
	u := ndb.Of("url", p.URL)
	switch p.Outcome {
	case crawl.Fetched:
		v.g.journal.event("done", u)
	case crawl.Gone:
		v.g.journal.event("gone", u)
	case crawl.Moved, crawl.Excluded, crawl.Failed:
		v.g.journal.event(p.Outcome.String(), u, ndb.Of("reason", p.Why))
	}
}

// expire drops the objects that nobody has confirmed for their time to live.
func (v *visit) expire(ctx context.Context) (int64, error) {
	n, err := v.g.store.Expire(ctx, time.Now())
	if pool, perr := v.g.pool(false); pool != nil && err == nil {
		_, err = pool.Expire(ctx, time.Now())
	} else {
		err = errors.Join(err, perr)
	}
	if n > 0 {
		v.g.lg.Info("expired", "objects", n)
	}
	return int64(n), err
}

// figures are what status shows of a visit.
func (v *visit) figures() []ndb.Pair {
	c := &v.counts
	v.mu.Lock()
	defer v.mu.Unlock()
	took := v.took
	switch {
	case v.began.IsZero():
	case v.ended.Before(v.began):
		took = time.Since(v.began)
	default:
		took = v.ended.Sub(v.began)
	}
	settled := c.Fetched.Load() + c.Unchanged.Load() + c.Failed.Load() + c.Gone.Load()
	rate, in := 0.0, 0.0
	if s := took.Seconds(); s > 0 {
		rate, in = float64(settled)/s, float64(c.In.Load())/s
	}
	return []ndb.Pair{
		ndb.Of("found", c.Found.Load()),
		ndb.Of("queued", c.Queued.Load()),
		ndb.Of("fetched", c.Fetched.Load()),
		ndb.Of("members", v.members.Load()),
		ndb.Of("unchanged", c.Unchanged.Load()),
		ndb.Of("gone", c.Gone.Load()),
		ndb.Of("spared", c.Spared.Load()),
		ndb.Of("failed", c.Failed.Load()),
		ndb.Of("excluded", c.Excluded.Load()),
		ndb.Of("requests", c.Requests.Load()),
		ndb.Of("bytes-in", c.In.Load()),
		ndb.Of("bytes-out", c.Out.Load()),
		ndb.Of("rate", strconv.FormatFloat(rate, 'f', 1, 64)),
		ndb.Of("bytes-in-rate", strconv.FormatFloat(in, 'f', 0, 64)),
	}
}

// times are when the visit began and ended; zero while that is to come.
func (v *visit) times() (began, ended time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.began, v.ended
}
