package broker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"harvest/broker/route"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/index/query"
)

// A front end with a route in its config asks only those of its back ends that are
// likely to have the best hits. It carries their digests, and learns from a
// registry, if the config names one, which Brokers there are.

// routeConfig is route share=PERCENT every=DURATION registry=PATH of the config.
type routeConfig struct {
	share    float64 // of the back ends; 0: no routing
	every    time.Duration
	registry string
}

const (
	routeShare = 20 // percent
	routeEvery = time.Minute

	// digestMax is how long a digest may be, and digestTime how long reading one
	// may take; so many are read at a time.
	digestMax    = 64 << 20
	digestTime   = time.Minute
	digestReader = 4
)

func (c *config) routing(e ndb.Entry) (err error) {
	r := routeConfig{share: routeShare / 100., every: routeEvery}
	known := []ndb.Pair{e.First()}
	if p, ok := e.Pair("share"); ok {
		n, err := e.Int(p)
		if err != nil || n < 1 || n > 100 {
			return e.Errorf(p, "route: share=%s is not a number from 1 to 100", p.Value)
		}
		r.share = float64(n) / 100
		known = append(known, p)
	}
	if p, ok := e.Pair("every"); ok {
		if r.every, err = interval(e, p); err != nil {
			return err
		}
		known = append(known, p)
	}
	if p, ok := e.Pair("registry"); ok {
		if r.registry = p.Value; p.Value == "" {
			return e.Errorf(p, "route: registry= names no path")
		}
		known = append(known, p)
	}
	c.route = r
	return only(e, known...)
}

// A router carries the digests of back ends.
type router struct {
	b    *Broker
	wake chan struct{}

	mu      sync.Mutex // guards what follows, and nothing that waits
	conf    routeConfig
	fixed   []backendConfig // of the config
	found   []backendConfig // of the registry
	err     error           // of the registry
	carried map[string]carried
}

// carried is what is known of one back end's digest.
type carried struct {
	digest *route.Digest // nil: none yet
	read   time.Time     // when it was there last
	err    error
}

func newRouter(b *Broker) *router {
	return &router{b: b, wake: make(chan struct{}, 1), carried: make(map[string]carried)}
}

// use takes a config.
func (r *router) use(c *config) {
	r.mu.Lock()
	r.fixed = c.backends
	if r.conf.registry != c.route.registry {
		r.found, r.err = nil, nil
	}
	r.conf = c.route
	all := r.backends()
	r.mu.Unlock()
	r.b.front.use(all)
	select {
	case r.wake <- struct{}{}:
	default: // told already
	}
}

// backends are those of the config and of the registry. Called with mu held.
func (r *router) backends() []backendConfig {
	all := slices.Clone(r.fixed)
	for _, k := range r.found {
		if !slices.ContainsFunc(r.fixed, func(o backendConfig) bool { return o.path == k.path }) {
			all = append(all, k)
		}
	}
	return all
}

// run reads registry and digests, again and again, until ctx ends.
func (r *router) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		conf := r.conf
		r.mu.Unlock()
		var again <-chan time.Time
		if conf.share > 0 {
			r.look(ctx, conf)
			r.readDigests(ctx)
			again = time.After(conf.every)
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-again:
		}
	}
}

// look asks the registry which Brokers there are.
func (r *router) look(ctx context.Context, conf routeConfig) {
	if conf.registry == "" {
		return
	}
	found, err := r.registered(ctx, conf.registry)
	r.b.shown.complain("route", "", err)
	r.mu.Lock()
	r.err = err
	if err != nil || r.conf != conf {
		r.mu.Unlock()
		return
	}
	r.found = found
	all := r.backends()
	r.mu.Unlock()
	r.b.front.use(all)
}

// registered reads the Brokers of a registry, but those that ask others
// themselves, as this one does.
func (r *router) registered(ctx context.Context, path string) (list []backendConfig, err error) {
	ctx, cancel := context.WithTimeout(ctx, digestTime)
	defer cancel()
	tree, c, err := r.b.open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", path, err)
	}
	defer closing(c)
	f, err := tree.Open("by/type/broker/soif")
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil // no Broker
	}
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", path, err)
	}
	defer f.Close()
	d := soif.NewDecoder(io.LimitReader(f, digestMax), soif.Limits{})
	for {
		var o soif.Object
		if err := d.Next(&o); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("registry %s: %w", path, err)
		}
		if at := serviceAt(&o); at != "" && o.Text("Backends") == "" {
			list = append(list, backendConfig{path: at, timeout: backendTimeout, most: backendMost, weight: 1})
		}
	}
}

// serviceAt is the path by which a service that is registered is opened, "" if
// it does not say where it is.
func serviceAt(o *soif.Object) string {
	path := o.Text("Service-Path")
	addr, _, _ := strings.Cut(o.Text("Address"), "\n")
	if path == "" || addr == "" {
		return ""
	}
	return strings.TrimSpace(addr) + "/" + path
}

// readDigests brings the digests of all back ends up to date.
func (r *router) readDigests(ctx context.Context) {
	r.mu.Lock()
	all := r.backends()
	keep := make(map[string]carried, len(all))
	for _, k := range all {
		keep[k.path] = r.carried[k.path]
	}
	r.carried = keep
	r.mu.Unlock()
	var wg sync.WaitGroup
	slots := make(chan struct{}, digestReader)
	for _, k := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.readDigest(ctx, k.path)
		})
	}
	wg.Wait()
}

// readDigest reads that of one, unless it is the one there is.
func (r *router) readDigest(ctx context.Context, path string) {
	ctx, cancel := context.WithTimeout(ctx, digestTime)
	defer cancel()
	r.mu.Lock()
	old := r.carried[path]
	r.mu.Unlock()
	d, err := r.fetch(ctx, path, old.digest)
	if ctx.Err() != nil && err == nil {
		err = ctx.Err()
	}
	now := carried{digest: d, read: time.Now()}
	if err != nil { // an old one will do
		now = carried{digest: old.digest, read: old.read, err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.carried[path]; ok {
		r.carried[path] = now
	}
}

func (r *router) fetch(ctx context.Context, path string, old *route.Digest) (*route.Digest, error) {
	tree, c, err := r.b.open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer closing(c)
	f, err := tree.Open("words")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	first, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if old != nil && route.Mark(first) == old.Mark {
		return old, nil
	}
	return route.Read(io.MultiReader(strings.NewReader(first), in), digestMax)
}

// choose is front.choose: whom to ask, in which words' rarity, and why.
func (r *router) choose(q query.Node, m manner, all []string) (c chosen) {
	r.mu.Lock()
	share := r.conf.share
	brokers := make([]route.Broker, len(all))
	for i, path := range all {
		brokers[i] = route.Broker{Path: path, Digest: r.carried[path].digest}
	}
	r.mu.Unlock()
	if share == 0 {
		return c
	}
	if among := route.Census(q, brokers); among.Docs > 0 && m.rank == rankScore && m.among == "" {
		if words := route.Words(q); len(words) > 0 && len(words) <= amongMax {
			c.among = formatAmong(among, words)
		}
	}
	if why := m.untold(); why != "" {
		for _, path := range all {
			c.routed = append(c.routed, route.Choice{Path: path, Ask: true, Why: why}.String())
		}
		return c
	}
	c.ask = []string{}
	for _, k := range route.Choose(m.ask(q), brokers, share) {
		if k.Ask {
			c.ask = append(c.ask, k.Path)
		}
		c.routed = append(c.routed, k.String())
	}
	return c
}

// untold is what of a manner makes words match that digests do not tell.
func (m manner) untold() string {
	switch {
	case m.errors > 0:
		return "errors in spelling"
	case m.feedback > 0:
		return "feedback"
	case m.stem != "" && m.stem != "no":
		return "stems"
	}
	return ""
}

// figures are the lines of status, one a back end whose digest is carried.
func (r *router) figures() (out [][]ndb.Pair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conf.share == 0 {
		return nil
	}
	line := []ndb.Pair{ndb.Of("route", ""), ndb.Of("share", int(r.conf.share*100+0.5)), ndb.Of("every", r.conf.every), ndb.Of("backends", len(r.carried))}
	if r.conf.registry != "" {
		line = append(line, ndb.Of("registry", r.conf.registry))
	}
	if r.err != nil {
		line = append(line, ndb.Of("err", r.err))
	}
	out = append(out, line)
	for _, path := range slices.SortedFunc(maps.Keys(r.carried), cmp.Compare[string]) {
		k := r.carried[path]
		line := []ndb.Pair{ndb.Of("digest", ""), ndb.Of("path", path)}
		if d := k.digest; d != nil {
			line = append(line, ndb.Of("objects", d.Objects), ndb.Of("terms", d.Terms), ndb.Of("mark", d.Mark), ndb.Of("read", k.read))
		}
		if k.err != nil {
			line = append(line, ndb.Of("err", k.err))
		}
		out = append(out, line)
	}
	return out
}

// routedText is a line a back end: asked or skipped, its path, why; of those that
// were asked, what came of it.
func (p page) routedText() string {
	if p.answer == nil {
		return ""
	}
	var t strings.Builder
	for _, line := range p.routed {
		t.WriteString(line + "\n")
	}
	return t.String()
}
