package cache

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
)

// The tree of one cache:
//
//	config             sizes, doors, rules, neighbours; checked when written
//	ctl                purge, refresh, prefetch
//	err                what config or ctl refused last
//	status             what it is doing
//	stats              counters, Prometheus text
//	log                requests, a line each; access has them in the common format
//	hierarchy          who was asked for what is not here
//	events             what changed
//	http/ https/ ftp/ gopher/
//	                   HOST/PATH fetches; listing shows what is kept
//	objects            what is kept, a line each
//	neighbors dns      tables

// Options are what a cache is handed. The zero value is good.
type Options struct {
	Other http.RoundTripper // fetches ftp and gopher; nil: they are refused
	Roots *x509.CertPool    // for https; nil is what the system trusts
	Bus   *fs.Bus           // hears what changes in the tree; may be nil
}

// Bounds of what logs and events keep, in bytes.
const (
	maxEvents = 1 << 20
	maxLog    = 4 << 20
)

// A journal is what a cache tells of its work.
type journal struct {
	events, log, common, hierarchy *fs.Log
	access                         *accessLog
}

func newJournal() *journal {
	j := &journal{events: fs.NewLog(maxEvents), log: fs.NewLog(maxLog), common: fs.NewLog(maxLog), hierarchy: fs.NewLog(maxEvents)}
	j.access = &accessLog{write: func(own, common string) {
		io.WriteString(j.log, own)
		io.WriteString(j.common, common)
	}}
	j.access.set("all")
	return j
}

// event adds a record: when, what, and about what.
func (j *journal) event(what string, about ...ndb.Pair) {
	j.events.Add(ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", what)}, about...)...))
}

// logger returns a logger that writes to the journal's log as well.
func (j *journal) logger(lg *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(lg.Handler(), slog.NewTextHandler(j.log, nil)))
}

// A tree is a cache's directory, made once: its config and err have state.
type tree struct{ dir fs.Dir }

// Files serves c as a directory; docs/cache.4.md is its manual.
func (c *Cache) Files() fs.Dir { return c.tree.dir }

func (c *Cache) id(part ...string) uint64 {
	return fs.ID(append([]string{"cache", c.name}, part...)...)
}

func (c *Cache) newTree() *tree {
	err := fs.NewErr(c.id("err"))
	nodes := map[string]fs.Node{
		"config": fs.Config(c.id("config"), err, c.config, c.setConfig).Lines(checkLine),
		"ctl": fs.Ctl(c.id("ctl"), err,
			fs.On("purge URL...", c.onEach(func(_ context.Context, url string) error { return c.purgeURL(url) })),
			fs.On("refresh URL...", c.onEach(c.refreshURL)),
			fs.On("prefetch URL...", c.onEach(c.prefetchURL))),
		"err":     err,
		"status":  fs.Text(c.id("status"), c.status),
		"stats":   fs.Stream(c.id("stats"), 0, func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, c.stats()); return err }),
		"objects": fs.Stream(c.id("objects"), 0, c.writeObjects),
	}
	for _, scheme := range []string{"http", "https", "ftp", "gopher"} {
		nodes[scheme] = &hostsDir{c, scheme}
	}
	c.events.Nodes(nodes, "events", c.id)
	logs := make(map[string]fs.Node)
	c.log.Nodes(logs, "log", c.id)
	c.common.Nodes(logs, "access", c.id)
	c.hierarchy.Nodes(logs, "hierarchy", c.id)
	for name, n := range logs {
		nodes[name] = n
	}
	for _, name := range []string{"log", "access"} { // a reader sees all that was answered before
		nodes[name] = flushed{nodes[name].(fs.File), c.access}
	}
	maps.Copy(nodes, c.tableNodes())
	return &tree{fs.Static(c.id("dir"), nodes)}
}

// flushed is a log that is up to date when it is looked at.
type flushed struct {
	fs.File
	l *accessLog
}

func (f flushed) Stat() fs.Stat {
	f.l.flush()
	return f.File.Stat()
}

func (f flushed) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	f.l.flush()
	return f.File.Open(ctx, m)
}

// onEach makes a command of what is done with each URL.
func (c *Cache) onEach(f func(ctx context.Context, url string) error) func(context.Context, []string) error {
	return func(ctx context.Context, arg []string) error {
		for _, url := range arg {
			if err := f(ctx, url); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *Cache) status() string {
	var b strings.Builder
	line := func(pairs ...ndb.Pair) { b.WriteString(ndb.Format(pairs...) + "\n") }
	state, trouble := "serving", c.doors.troubles()
	if trouble != nil {
		state = "failing"
	} else if len(c.conf.Load().doors) == 0 {
		state = "idle"
	}
	line(ndb.Of("state", state))
	if trouble != nil {
		line(ndb.Of("err", trouble))
	}
	st := c.store.Stats()
	line(ndb.Of("objects", st.Objects))
	line(ndb.Of("disk", st.Disk), ndb.Of("of", c.conf.Load().disk))
	urls, bytes := c.mem.stat()
	line(ndb.Of("memory", bytes), ndb.Of("of", c.conf.Load().memory), ndb.Of("urls", urls))
	line(ndb.Of("index", st.Index), ndb.Of("each", perObject(st.Index, st.Objects)))
	all := c.count.tallies()
	var asked, hits int64
	for how, t := range all {
		asked += t.n
		if how == "hit" || how == "stale" || how == "validated" {
			hits += t.n
		}
	}
	line(ndb.Of("requests", asked), ndb.Of("hits", hits), ndb.Of("ratio", ratio(hits, asked)))
	addrs := c.doors.addrs()
	for _, addr := range slices.Sorted(maps.Keys(addrs)) {
		line(ndb.Of("door", addrs[addr]))
	}
	line(ndb.Of("name", c.via()))
	line(ndb.Of("started", c.begun))
	return b.String()
}

func perObject(bytes int64, n int) int64 {
	if n == 0 {
		return 0
	}
	return bytes / int64(n)
}

func ratio(part, all int64) string {
	if all == 0 {
		return "0"
	}
	return fmt.Sprintf("%.3f", float64(part)/float64(all))
}

// OpenAll opens the caches in dir, a directory each: fs.Services.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*fs.Services[*Cache], error) {
	return fs.OpenServices(dir, fs.ServicesOptions[*Cache]{
		Name: "cache", Noun: "cache", Log: lg, Bus: opt.Bus,
		Open: func(path, name string) (*Cache, error) { return Open(path, name, lg, opt) },
	})
}
