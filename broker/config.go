package broker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/index"
	"harvest/index/block"
	"harvest/index/query"
)

// A config is what the text of the config file says.
type config struct {
	sources  []sourceConfig
	ttl      time.Duration // of objects that do not say
	gc       time.Duration
	weights  map[string]float64
	other    float64 // the weight of attributes not in weights
	index    indexConfig
	stop     map[string]bool // words that a query without operators goes without
	external external
	limits   map[string]ndb.Entry // of users; "" is all
	backends []backendConfig
	route    routeConfig
	log      logConfig
	owner    string   // of ctl, config and log; "": who owns the tree
	group    string   // that may write to them too
	common   int      // and words in more than so many of a hundred objects; 0: none
	dups     string   // show or hide copies
	near     string   // how much hits resemble each other that are not shown, in percent, or no
	imported imported // what was made of a Collection.conf
}

// An indexConfig is how the index is made and asked.
type indexConfig struct {
	files  indexFiles
	memory int64  // for building and merging; 0: the engine's own
	stem   string // language; "": words are found as they are
}

type sourceConfig struct {
	path  string
	every time.Duration

	filter query.Node // objects to take of what the source gives; nil: all
	query  query.Node // to have the source give only those; nil: all
	full   bool       // read from the start each time
	packed bool       // have the stream compressed
	most   int64      // bytes of a stream
}

// What counts without a config: the lifetime of the seeds' six months, a
// collection a day, and words of titles before words of texts. Attributes that
// describe the object's handling are found only by name.
const (
	defaultTTL   = 4320 * time.Hour
	defaultEvery = 24 * time.Hour
	defaultMost  = 64 << 30
	defaultGC    = time.Hour

	// A word says nothing that nearly all objects have; of few objects, that
	// says nothing.
	defaultCommon = 80
	fewObjects    = 256
)

func defaultConfig() *config {
	c := &config{log: defaultLog(), limits: make(map[string]ndb.Entry), ttl: defaultTTL, gc: defaultGC, dups: dupsHide, near: nearNo, other: 1, external: external{every: externalEvery}, weights: map[string]float64{
		"title": 6, "keywords": 2, "author": 2, "abstract": 2, "description": 2, "headings": 2,
	}}
	for _, name := range []string{
		"update-time", "last-modification-time", "time-to-live", "refresh-rate", "md5", "file-size", "type",
		"gatherer-name", "gatherer-host", "gatherer-port", "gatherer-version", "object-id",
		"url", "uri", "url-references", "images", "language",
		"unnested-size", "presentation", "summary-limit", "nested-filename",
	} {
		c.weights[name] = 0
	}
	c.index.files = indexFiles{engine: engineRanked, positions: true, numbers: true}
	c.common = defaultCommon
	c.setStop(index.StopWords())
	return c
}

func (c *config) setStop(words []string) {
	c.stop = make(map[string]bool, len(words))
	for _, text := range words {
		c.stop[string(index.Fold(nil, text))] = true
	}
}

// weight is index.Options.Weight. What a page's META tags say readers do not
// see, so it is found only by name.
func (c *config) weight(attribute string) float64 {
	if w, ok := c.weights[attribute]; ok {
		return w
	}
	if strings.HasPrefix(attribute, "meta-") {
		return 0
	}
	return c.other
}

// weighed names the attributes that count, and those that do not, in words.
func (c *config) weighed() string {
	var names []string
	for name, w := range c.weights {
		if w > 0 != (c.other > 0) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(c.other > 0, names)
}

// parseConfig reads the text of a config; an error is an *ndb.Error.
func parseConfig(text string) (*config, error) {
	m, err := importSources(text)
	if err != nil {
		return nil, err
	}
	entries, err := ndb.Parse(m.text)
	if err != nil {
		return nil, err
	}
	c := defaultConfig()
	c.imported = m
	seen := make(map[string]int)
	for _, e := range entries {
		key := e.First().Key
		if key != "source" && key != "weight" && key != "limits" && key != "backend" {
			if line := seen[key]; line != 0 {
				return nil, e.Errorf(e.First(), "%s: already in line %d", key, line)
			}
			seen[key] = e.Line
		}
		if err := c.entry(e); err != nil {
			return nil, m.original(err)
		}
	}
	return c, nil
}

func (c *config) entry(e ndb.Entry) (err error) {
	first := e.First()
	switch first.Key {
	case "source":
		return c.source(e)
	case "weight":
		return c.weigh(e)
	case "ttl":
		if c.ttl, err = e.Duration(first); err == nil && c.ttl == 0 {
			err = e.Errorf(first, "ttl: 0 would keep nothing")
		}
		if err != nil {
			return err
		}
		return only(e, first)
	case "index":
		return c.indexing(e)
	case "external":
		return c.weighing(e)
	case "stopwords":
		return c.stopping(e)
	case "duplicates":
		return c.folding(e)
	case "limits":
		return c.limiting(e)
	case "backend":
		return c.backing(e)
	case "route":
		return c.routing(e)
	case "log":
		return c.logging(e)
	case "access":
		return c.granting(e)
	case "gc":
		p, ok := e.Pair("every")
		if !ok {
			return e.Errorf(first, "gc: every=DURATION is missing")
		}
		if c.gc, err = interval(e, p); err != nil {
			return err
		}
		return only(e, first, p)
	}
	return e.Errorf(first, "unknown key '%s'; there are source, ttl, gc, weight, index, external, stopwords, limits, backend, route, log, access and duplicates", first.Key)
}

// only refuses pairs other than those.
func only(e ndb.Entry, known ...ndb.Pair) error {
next:
	for _, p := range e.Pairs {
		for _, k := range known {
			if p == k {
				continue next
			}
		}
		return e.Errorf(p, "%s: unknown or repeated key '%s'", e.First().Key, p.Key)
	}
	return nil
}

func interval(e ndb.Entry, p ndb.Pair) (time.Duration, error) {
	d, err := e.Duration(p)
	if err == nil && d < time.Second {
		err = e.Errorf(p, "%s: %s is less than a second", p.Key, d)
	}
	return d, err
}

func (c *config) source(e ndb.Entry) (err error) {
	s := sourceConfig{every: defaultEvery, most: defaultMost}
	path, ok := e.Pair("path")
	if !ok || path.Value == "" {
		return e.Errorf(e.First(), "source: path=PATH is missing")
	}
	s.path = path.Value
	known := []ndb.Pair{e.First(), path}
	if e.First().Value != "" {
		return e.Errorf(e.First(), "source: takes no value; write path=%s", e.First().Value)
	}
	if p, ok := e.Pair("every"); ok {
		if s.every, err = interval(e, p); err != nil {
			return err
		}
		known = append(known, p)
	}
	s.packed = strings.ContainsRune(s.path, '!')
	for key, into := range map[string]*bool{"full": &s.full, "compressed": &s.packed} {
		if p, ok := e.Pair(key); ok {
			if *into, err = e.Bool(p); err != nil {
				return err
			}
			known = append(known, p)
		}
	}
	if p, ok := e.Pair("limit"); ok {
		if s.most, err = e.Size(p); err != nil {
			return err
		}
		known = append(known, p)
	}
	for key, into := range map[string]*query.Node{"filter": &s.filter, "query": &s.query} {
		if p, ok := e.Pair(key); ok {
			if *into, err = sourceQuery(e, p); err != nil {
				return err
			}
			known = append(known, p)
		}
	}
	for _, other := range c.sources {
		if other.path == s.path {
			return e.Errorf(path, "source: %s is there already", s.path)
		}
	}
	c.sources = append(c.sources, s)
	return only(e, known...)
}

// sourceQuery reads filter= or query=.
func sourceQuery(e ndb.Entry, p ndb.Pair) (query.Node, error) {
	q, err := query.Parse(p.Value)
	if err == nil {
		q, err = standing(q)
	}
	if err == nil {
		_, err = index.Compile(q, index.Options{})
	}
	if err == nil && p.Key == "query" && len(escape(q.String())) > maxName {
		err = fmt.Errorf("of more than %d bytes; it could be a filter", maxName)
	}
	if err != nil {
		return nil, e.Errorf(p, "source: %s: %v", p.Key, err)
	}
	return q, nil
}

// print stands for what a source is asked for: of one that is asked for
// something else than before, all is read again.
func (s *sourceConfig) print() string {
	text := func(q query.Node) string {
		if q == nil {
			return ""
		}
		return q.String()
	}
	if s.filter == nil && s.query == nil {
		return ""
	}
	return ndb.Format(ndb.Of("filter", text(s.filter)), ndb.Of("query", text(s.query)))
}

func (c *config) weigh(e ndb.Entry) error {
	if e.First().Value != "" || len(e.Pairs) < 2 {
		return e.Errorf(e.First(), "weight: written as weight ATTRIBUTE=NUMBER …")
	}
	for _, p := range e.Pairs[1:] {
		w, err := strconv.ParseFloat(p.Value, 64)
		if err != nil || !(w >= 0 && w <= 1000) {
			return e.Errorf(p, "weight: %s=%s is not a number from 0 to 1000", p.Key, p.Value)
		}
		if p.Key == "other" {
			c.other = w
		} else {
			c.weights[index.Attr(p.Key)] = w
		}
	}
	return nil
}

// indexing reads index engine=ranked|block grain=… positions=… numbers=…
// memory=… stem=….
func (c *config) indexing(e ndb.Entry) (err error) {
	if e.First().Value != "" || len(e.Pairs) < 2 {
		return e.Errorf(e.First(), "index: written as index engine=ranked|block …")
	}
	x := &c.index
	for i, p := range e.Pairs[1:] {
		for _, q := range e.Pairs[1 : i+1] {
			if q.Key == p.Key {
				return e.Errorf(p, "index: repeated key '%s'", p.Key)
			}
		}
		switch p.Key {
		case "engine":
			if x.files.engine = p.Value; !slices.Contains([]string{engineRanked, engineBlock, engineScan}, p.Value) {
				err = e.Errorf(p, "index: engine=%s is not one of %s, %s, %s", p.Value, engineRanked, engineBlock, engineScan)
			}
		case "grain":
			var ok bool
			if x.files.grain, ok = block.ParseGrain(p.Value); !ok {
				err = e.Errorf(p, "index: grain=%s is not one of tiny, small, medium", p.Value)
			}
		case "positions":
			x.files.positions, err = e.Bool(p)
		case "numbers":
			x.files.numbers, err = e.Bool(p)
		case "memory":
			x.memory, err = memory(e, p)
		case "stem":
			if x.stem = p.Value; checkStem(p.Value) != nil {
				err = e.Errorf(p, "index: %s", checkStem(p.Value))
			}
		default:
			err = e.Errorf(p, "index: unknown key '%s'", p.Key)
		}
		if err != nil {
			return err
		}
	}
	grain, named := e.Pair("grain")
	positions, said := e.Pair("positions")
	switch {
	case named && x.files.engine != engineBlock:
		return e.Errorf(grain, "index: grain is the block engine's; write engine=block")
	case said && x.files.engine != engineRanked:
		return e.Errorf(positions, "index: positions are the ranked engine's")
	}
	return nil
}

// memory reads bytes; much less than a segment takes helps nobody.
func memory(e ndb.Entry, p ndb.Pair) (int64, error) {
	const least = 8 << 20
	n, err := e.Size(p)
	if err == nil && n < least {
		err = e.Errorf(p, "index: memory=%s is less than 8M", p.Value)
	}
	return n, err
}

// checkStem takes a language, or no.
func checkStem(name string) error {
	if name == "no" {
		return nil
	}
	if _, err := index.Stemmer(name); err != nil {
		return fmt.Errorf("stem=%s: neither no nor one of %s", name, strings.Join(index.Languages(), " "))
	}
	return nil
}

// stopping reads stopwords='WORD …' common=PERCENT.
func (c *config) stopping(e ndb.Entry) error {
	c.setStop(strings.Fields(e.First().Value))
	p, ok := e.Pair("common")
	if !ok {
		return only(e, e.First())
	}
	n, err := strconv.Atoi(p.Value)
	if err != nil || n < 0 || n > 100 {
		return e.Errorf(p, "stopwords: common=%s is not a number from 0 (none) to 100", p.Value)
	}
	c.common = n
	return only(e, e.First(), p)
}

// folding reads duplicates=show|hide near=N|no.
func (c *config) folding(e ndb.Entry) error {
	first := e.First()
	if c.dups = first.Value; c.dups != dupsShow && c.dups != dupsHide {
		return e.Errorf(first, "duplicates: '%s' is neither show nor hide", first.Value)
	}
	p, ok := e.Pair("near")
	if !ok {
		return only(e, first)
	}
	c.near = p.Value
	if _, err := parseNear(p.Value); err != nil {
		return e.Errorf(p, "duplicates: %v", err)
	}
	return only(e, first, p)
}

// checkLine refuses at the write what no other line could make good.
func checkLine(line string, n int) error {
	if isOldSource(line) {
		m, err := importSources(strings.Repeat("\n", n-1) + line)
		if err != nil {
			return err
		}
		line = strings.TrimSpace(m.text)
	}
	e, err := ndb.ParseLine(line, n)
	if err != nil || len(e.Pairs) == 0 {
		return err
	}
	return defaultConfig().entry(e)
}

// sourceError names a source once.
func sourceError(path string, err error) error { return fmt.Errorf("source %s: %w", path, err) }
