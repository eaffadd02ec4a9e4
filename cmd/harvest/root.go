package main

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/catalog"
)

// A tree is the root of everything that is served: see docs/harvest.4.md.
//
//	README     what is here and ten commands to try
//	status     a line a service
//	stats      counters of the process, Prometheus text
//	ctl err    loglevel LEVEL, stop
//	log        what the process says of itself
//	events     services and doors as they come and go
//	gather/    Gatherers
//	broker/    Brokers
//	cache/     object caches
//	replica/   Replicas of collections
//	registry/  the registry of servers
//	soif/      checks, cleans and converts what is written there
type tree struct {
	kinds    map[string]fs.Dir // of service: gather, broker, cache
	registry fs.Dir
	level    *slog.LevelVar
	log      *fs.Log
	events   *fs.Log
	stop     func()

	mu    sync.Mutex
	stats []func() string
}

// Bounds of what log and events keep, in bytes.
const (
	maxLog    = 4 << 20
	maxEvents = 1 << 20
)

func (t *tree) files() fs.Dir {
	id := ids("root")
	refused := fs.NewErr(id("err"))
	nodes := map[string]fs.Node{
		"README": fs.Text(id("README"), t.readme),
		"status": fs.Text(id("status"), t.status),
		"stats":  fs.Stream(id("stats"), 0, t.writeStats),
		"err":    refused,
		"ctl": fs.Ctl(id("ctl"), refused,
			fs.On("loglevel LEVEL", func(_ context.Context, arg []string) error {
				if err := t.level.UnmarshalText([]byte(arg[0])); err != nil {
					return fmt.Errorf("loglevel: %s is none of debug, info, warn and error", arg[0])
				}
				return nil
			}),
			fs.On("stop", func(context.Context, []string) error {
				t.events.Add(ndb.Format(ndb.Of("time", time.Now()), ndb.Of("event", "stop")))
				t.stop()
				return nil
			})),
	}
	t.log.Nodes(nodes, "log", id)
	t.events.Nodes(nodes, "events", id)
	for kind, d := range t.kinds {
		nodes[kind] = d
	}
	if t.registry != nil {
		nodes["registry"] = t.registry
	}
	nodes["soif"] = catalog.Files(ids("soif"))
	return fs.Static(fs.RootPath, nodes)
}

// count adds a source of counters to stats.
func (t *tree) count(f func() string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats = append(t.stats, f)
}

func (t *tree) event(pairs ...ndb.Pair) {
	t.events.Add(ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now())}, pairs...)...))
}

// services yields the path and the status of every service, by reading the
// tree as anybody would.
func (t *tree) services(yield func(kind, name string, status ndb.Entry) bool) {
	ctx := context.Background()
	for _, kind := range slices.Sorted(maps.Keys(t.kinds)) {
		for e, err := range t.kinds[kind].List(ctx, "") {
			d, ok := e.Node.(fs.Dir)
			if err != nil || !ok {
				continue
			}
			if !yield(kind, e.Name, readStatus(ctx, d)) {
				return
			}
		}
	}
}

// readStatus gathers the lines of a service's status into one entry.
func readStatus(ctx context.Context, d fs.Dir) ndb.Entry {
	var all ndb.Entry
	text, err := iofs.ReadFile(fs.IO(ctx, d), "status")
	if err != nil {
		return all
	}
	lines, err := ndb.Parse(string(text))
	if err != nil {
		return all
	}
	for _, l := range lines {
		all.Pairs = append(all.Pairs, l.Pairs...)
	}
	return all
}

func (t *tree) status() string {
	var b strings.Builder
	t.services(func(kind, name string, st ndb.Entry) bool {
		pairs := []ndb.Pair{ndb.Of("kind", kind), ndb.Of("name", name)}
		for _, k := range []string{"state", "objects", "last"} {
			v, _ := st.Get(k)
			pairs = append(pairs, ndb.Of(k, v))
		}
		b.WriteString(ndb.Format(append(pairs, ndb.Of("path", kind+"/"+name))...) + "\n")
		return true
	})
	return b.String()
}

func (t *tree) writeStats(_ context.Context, w io.Writer) error {
	t.mu.Lock()
	stats := slices.Clone(t.stats)
	t.mu.Unlock()
	for _, f := range stats {
		if _, err := io.WriteString(w, f()); err != nil {
			return err
		}
	}
	t.services(func(kind, name string, st ndb.Entry) bool {
		if n, ok := st.Get("objects"); ok {
			fmt.Fprintf(w, "harvest_objects{kind=%q,name=%q} %s\n", kind, name, n)
		}
		return true
	})
	return nil
}

func (t *tree) readme() string {
	first := map[string]string{"gather": "web", "broker": "papers"}
	have := map[string]string{}
	var lines strings.Builder
	t.services(func(kind, name string, st ndb.Entry) bool {
		if have[kind] == "" {
			have[kind], first[kind] = name, name
		}
		state, _ := st.Get("state")
		objects, _ := st.Get("objects")
		fmt.Fprintf(&lines, "\t%s/%s: %s, %s objects\n", kind, name, or(state, "unknown"), or(objects, "0"))
		return true
	})
	if lines.Len() == 0 {
		lines.WriteString("\tnone yet: mkdir makes one\n")
	}
	g, b := "gather/"+first["gather"], "broker/"+first["broker"]
	var try []string
	if have["gather"] == "" {
		try = append(try, "mkdir "+g, "echo 'root url=file:///usr/share/doc' >"+g+"/config", "echo run >"+g+"/ctl")
	}
	if have["broker"] == "" {
		try = append(try, "mkdir "+b, "echo 'source path="+g+" every=10m' >"+b+"/config")
	}
	try = append(try,
		"cat status",
		"cat "+g+"/status",
		"tail -f "+g+"/events",
		"ls "+g+"/url",
		"cat "+b+"/ctl",
		"cat "+b+"/q/'title : manual'/hits",
		"grep -l copyright "+b+"/q/license/*.soif",
		"mkdir "+b+"/query/x; echo 'query license and not gpl' >"+b+"/query/x/ctl; cat "+b+"/query/x/hits",
		"cat "+b+"/query/x/results/*.soif | harvest soif check",
		"cat "+b+"/attributes",
		"cp -r "+b+"/objects/3f /tmp",
		"cat err "+b+"/err",
	)
	return "Harvest: what was gathered, summarised and indexed, as files.\n\n" +
		"Services here:\n" + lines.String() +
		"\nA directory of a service has ctl (read it for its commands, write one a line), config (edit it\n" +
		"in place), status, events, log, err (what was refused last, and why), and its objects: by\n" +
		"identifier in objects/, by URL in url/, all in one stream in soif.\n\n" +
		"Ten commands to try, from this directory:\n\t" + strings.Join(try[:10], "\n\t") + "\n"
}
