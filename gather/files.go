package gather

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
)

// The tree of one Gatherer:
//
//	config             what to gather; checked when written
//	ctl                run, stop, pause, resume, fetch, forget, refresh, compact
//	err                what config or ctl refused last
//	secrets            passwords: written, not read, and not listed
//	status             counts of the visit that runs, or of the last
//	events  log        with .live and .wait
//	objects/ url/      the objects, by OID and by URL
//	as/                what methods say of an object, by OID
//	soif  soif.zst     all of them as a stream
//	since/  digest     changes after a cursor, what is here in short
//	hosts  documents  links  queue  top25
//	selected  duplicates
//	                   the tables of files_tables.go
//	types/             the tables of Essence, and a try of them
//	trace/             how each object came about
//	submit             URLs from outside, to be fetched
//	explain            why a URL is, or is not, in the collection

// Options are what a Gatherer is handed. The zero value is good.
type Options struct {
	Version   string            // of the program, as objects and servers are told
	Transport http.RoundTripper // reaches sources; nil is a fetch.Transport of its own
	Bus       *fs.Bus           // hears what changes in the tree; may be nil

	// Covered names a Gatherer elsewhere that gathers a URL already, "" if none is
	// known; own is the name of the one that asks. May be nil.
	Covered func(ctx context.Context, own, url string) (string, error)

	// Proxy finds a cache of this process by its name, for proxy=cache/NAME. May
	// be nil.
	Proxy func(name string) (http.RoundTripper, error)
}

// Bounds of what events and log keep, in bytes.
const (
	maxEvents = 1 << 20
	maxLog    = 256 << 10
)

// A journal is what a Gatherer tells of its work.
type journal struct{ events, log *fs.Log }

func newJournal() *journal { return &journal{fs.NewLog(maxEvents), fs.NewLog(maxLog)} }

// event adds a record: when, what, and about what.
func (j *journal) event(what string, about ...ndb.Pair) {
	j.events.Add(ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", what)}, about...)...))
}

// logger returns a logger that writes to the journal's log as well.
func (j *journal) logger(lg *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(lg.Handler(), slog.NewTextHandler(j.log, nil)))
}

// A tree is a Gatherer's directory, made once: its config and err have state.
type tree struct{ dir fs.Dir }

// Files serves g as a directory; docs/gather.4.md is its manual.
func (g *Gatherer) Files() fs.Dir { return g.tree.dir }

func (g *Gatherer) id(part ...string) uint64 {
	return fs.ID(append([]string{"gather", g.name}, part...)...)
}

func (g *Gatherer) newTree(opt Options) *tree {
	err := fs.NewErr(g.id("err")).Hide(hidePasswords)
	nodes := map[string]fs.Node{
		"config": fs.Config(g.id("config"), err, g.config, func(ctx context.Context, text string) error {
			return g.setConfigFrom(ctx, text, fs.UserOf(ctx).Local)
		}).Lines(checkLine).Hide(hidePasswords),
		"ctl": fs.Ctl(g.id("ctl"), err,
			fs.On("run", g.run),
			fs.On("stop", g.stop),
			fs.On("pause", g.pause),
			fs.On("resume", g.resume),
			fs.On("fetch URL...", g.fetch),
			fs.On("forget URL...", g.forget),
			fs.On("refresh", g.refresh),
			fs.On("summarize", g.summarize),
			fs.On("delete", g.delete),
			fs.On("compact", g.compact)),
		"err":        err,
		"translated": fs.Text(g.id("translated"), g.translated),
		"secrets":    fs.Hidden(g.secretFile(err)),
		"status":     fs.Text(g.id("status"), g.status),
	}
	nodes["as"] = g.asFiles(err)
	g.tableFiles(nodes, err)
	g.typesNodes(nodes)
	g.exportNodes(nodes, err, opt.Bus)
	g.journal.events.Nodes(nodes, "events", g.id)
	g.journal.log.Nodes(nodes, "log", g.id)
	maps.Copy(nodes, g.store.Files(g.id, opt.Bus, g.remove))
	return &tree{fs.Static(g.id("dir"), nodes)}
}

func (g *Gatherer) status() string {
	g.mu.Lock()
	v, c, state, last := g.visit, g.conf, g.state(), g.last
	g.mu.Unlock()
	was, err := g.db.Visited()
	if err != nil {
		return failing(err)
	}
	var b strings.Builder
	line := func(pairs ...ndb.Pair) { b.WriteString(ndb.Format(pairs...) + "\n") }
	line(ndb.Of("state", state))
	if last != nil {
		line(ndb.Of("err", last))
	}
	line(ndb.Of("objects", g.store.Count()))
	for _, p := range g.collectionFigures() {
		line(p)
	}
	line(ndb.Of("visit", was.Number))
	for _, p := range v.figures() {
		line(p)
	}
	began, ended := v.times()
	if began.IsZero() {
		began, ended = was.Started, was.Ended
	}
	for _, p := range g.exportFigures() {
		line(p)
	}
	line(ndb.Of("started", began))
	line(ndb.Of("ended", ended))
	activity := ended
	if state == "running" {
		activity = time.Now()
	}
	line(ndb.Of("last", activity))
	for _, pairs := range g.connections() {
		line(pairs...)
	}
	if due := c.schedule.next(was.Whole, c.since); !due.IsZero() && state == "idle" {
		line(ndb.Of("next", due))
	}
	if watched := g.watchFigures(); watched != nil && len(c.watched) > 0 {
		line(watched...)
	}
	for _, i := range c.ignored() {
		line(i...)
	}
	return b.String()
}

// OpenAll opens the Gatherers in dir, a directory each: fs.Services.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*fs.Services[*Gatherer], error) {
	return fs.OpenServices(dir, fs.ServicesOptions[*Gatherer]{
		Name: "gather", Noun: "gatherer", Log: lg, Bus: opt.Bus,
		Open: func(path, name string) (*Gatherer, error) { return Open(path, name, lg, opt) },
	})
}

// failing is the status of a Gatherer that has no other.
func failing(why error) string {
	return ndb.Format(ndb.Of("state", "failing")) + "\n" + ndb.Format(ndb.Of("err", why)) + "\n"
}
