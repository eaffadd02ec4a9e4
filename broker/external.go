package broker

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	iofs "io/fs"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// Weights from outside are tables, one for each name that external= may have:
// an object's weight is from 0 to 1, and 0 of one that the table has not. A
// table is made from all objects when it is first asked for, and again when it is
// older than the config says and objects have changed since.
const (
	externalLinks   = "links"   // sites that link to it
	externalRecency = "recency" // half as much after recencyHalf
	externalSize    = "size"    // bytes of the object
	// All others are names of attributes with numbers.

	recencyHalf   = 90 * 24 * time.Hour
	externalEvery = 7 * 24 * time.Hour
	maxExternals  = 16 // tables that are kept
)

// An external is how the config has answers weighed.
type external struct {
	use   string // a table; "": none
	every time.Duration
	young time.Duration // after which what is new to the Broker has half as many links too many; 0: it has none
}

// youngLinks is how many sites an object that was just seen first counts as having
// more: there was no time yet for others to refer to it.
const youngLinks = 2

// A weights is a table: an index.External.
type weights struct {
	of   map[index.ID]float32
	at   time.Time
	seq  uint64        // of the store when it was begun
	made chan struct{} // closed when of is there, or err
	err  error
}

func (w *weights) Weight(id index.ID) float64 { return float64(w.of[id]) }

// externals are the tables of a Broker.
type externals struct {
	mu  sync.Mutex
	all map[string]*weights
}

// weightsOf gives a table, which is made if there is none; many who ask at once
// have it made once. The one who makes it may give up, and then so do they.
func (b *Broker) weightsOf(ctx context.Context, name string) (*weights, error) {
	x := &b.externals
	x.mu.Lock()
	w, mine := x.all[name], false
	if w == nil {
		x.makeRoom()
		w, mine = &weights{at: time.Now(), seq: b.store.Cursor().Seq, made: make(chan struct{})}, true
		if x.all == nil {
			x.all = make(map[string]*weights)
		}
		x.all[name] = w
	}
	x.mu.Unlock()
	if mine {
		if w.err = b.weigh(ctx, name, w); w.err != nil {
			x.mu.Lock()
			if x.all[name] == w {
				delete(x.all, name)
			}
			x.mu.Unlock()
		}
		close(w.made)
	}
	select {
	case <-w.made:
		return w, w.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// makeRoom drops the oldest table if there are many. Called with mu held.
func (x *externals) makeRoom() {
	if len(x.all) < maxExternals {
		return
	}
	oldest := ""
	for name, w := range x.all {
		if oldest == "" || w.at.Before(x.all[oldest].at) {
			oldest = name
		}
	}
	delete(x.all, oldest)
}

// reweigh makes those tables anew that are old.
func (b *Broker) reweigh(ctx context.Context, now time.Time) error {
	b.mu.Lock()
	every, ages := b.config.external.every, b.config.external.young > 0
	b.mu.Unlock()
	seq := b.store.Cursor().Seq
	x := &b.externals
	x.mu.Lock()
	var old []string
	for name, w := range x.all {
		select {
		case <-w.made:
			if (w.seq != seq || ages && name == externalLinks) && now.Sub(w.at) >= every {
				old = append(old, name)
			}
		default:
		}
	}
	x.mu.Unlock()
	for _, name := range old {
		w := &weights{at: now, seq: seq, made: make(chan struct{})}
		if err := b.weigh(ctx, name, w); err != nil {
			return err
		}
		close(w.made)
		x.mu.Lock()
		x.all[name] = w
		x.mu.Unlock()
	}
	if len(old) > 0 {
		b.queries.forget()
	}
	return nil
}

// weigh makes a table.
func (b *Broker) weigh(ctx context.Context, name string, w *weights) (err error) {
	switch name {
	case externalRecency:
		w.of, err = b.byEntry(ctx, func(e *store.Entry) float64 {
			return math.Exp2(-max(float64(w.at.Sub(e.Updated)), 0) / float64(recencyHalf))
		})
		return err
	case externalSize:
		w.of, err = b.byEntry(ctx, func(e *store.Entry) float64 { return math.Log1p(float64(e.Size)) })
	case externalLinks:
		if w.of, err = b.byLinks(ctx); err == nil {
			err = b.boostYoung(w)
		}
		for id, n := range w.of {
			w.of[id] = float32(math.Log1p(float64(n)))
		}
	default:
		w.of, err = b.byValue(ctx, name)
	}
	spread(w.of)
	return err
}

// spread puts values between 0, of the least, and 1.
func spread(of map[index.ID]float32) {
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range of {
		low, high = min(low, v), max(high, v)
	}
	for id, v := range of {
		if of[id] = 1; high > low {
			of[id] = (v - low) / (high - low)
		}
	}
}

func (b *Broker) byEntry(ctx context.Context, weight func(e *store.Entry) float64) (map[index.ID]float32, error) {
	of := make(map[index.ID]float32)
	for e, err := range b.store.Scan(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		of[index.ID(e.OID)] = float32(weight(&e))
	}
	return of, nil
}

// byValue takes the first number that an attribute has in an object.
func (b *Broker) byValue(ctx context.Context, name string) (map[index.ID]float32, error) {
	of := make(map[index.ID]float32)
	err := b.eachObject(ctx, func(oid store.OID, o *soif.Object) {
		for _, a := range o.Attrs {
			if index.Attr(baseName(a.Name)) != name {
				continue
			}
			if v, err := strconv.ParseFloat(strings.TrimSpace(string(a.Value)), 32); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				of[index.ID(oid)] = float32(v)
				return
			}
		}
	})
	return of, err
}

// boostYoung adds links to what is new to the Broker, as the config says.
func (b *Broker) boostYoung(w *weights) error {
	b.mu.Lock()
	half := b.config.external.young
	b.mu.Unlock()
	if half == 0 {
		return nil
	}
	return b.registry.each(func(e entry) error {
		if n, ok := w.of[index.ID(e.oid)]; ok && e.seen > 0 {
			age := max(w.at.Sub(time.Unix(int64(e.seen), 0)), 0)
			w.of[index.ID(e.oid)] = n + youngLinks*float32(math.Exp2(-float64(age)/float64(half)))
		}
		return nil
	})
}

// byLinks counts the sites, not the pages, that refer to each object. What weighs is
// the logarithm of that, as a second one says more than a hundredth.
func (b *Broker) byLinks(ctx context.Context) (map[index.ID]float32, error) {
	objects := make(map[uint64][]store.OID) // by hash of the URL
	for e, err := range b.store.Scan(ctx, "", "") {
		if err != nil {
			return nil, err
		}
		h := hashed(e.URL)
		objects[h] = append(objects[h], e.OID)
	}
	type link struct{ to, site uint64 }
	var links []link
	tidy := func() {
		slices.SortFunc(links, func(a, b link) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.site, b.site)) })
		links = slices.Compact(links)
	}
	untidy := 0
	err := b.eachObject(ctx, func(_ store.OID, o *soif.Object) {
		u, err := url.Parse(o.URL)
		if err != nil {
			return
		}
		site := hashed(u.Scheme + "://" + u.Host)
		for line := range strings.Lines(o.Text("URL-References")) {
			to, _, _ := strings.Cut(strings.TrimSpace(line), "#")
			if full, err := u.Parse(to); err == nil { // it stands there as it was written
				to = full.String()
			}
			if h := hashed(to); objects[h] != nil {
				links = append(links, link{h, site})
				untidy++
			}
		}
		if untidy > 1<<20 && untidy > len(links)/2 {
			tidy()
			untidy = 0
		}
	})
	tidy()
	of := make(map[index.ID]float32)
	for _, oids := range objects {
		for _, oid := range oids {
			of[index.ID(oid)] = 0
		}
	}
	for len(links) > 0 {
		n := 1
		for n < len(links) && links[n].to == links[0].to {
			n++
		}
		for _, oid := range objects[links[0].to] {
			of[index.ID(oid)] = float32(n)
		}
		links = links[n:]
	}
	return of, err
}

func hashed(text string) uint64 {
	h := fnv.New128a()
	h.Write([]byte(text))
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// eachObject gives all objects that can be read, in any order.
func (b *Broker) eachObject(ctx context.Context, yield func(oid store.OID, o *soif.Object)) error {
	var some []store.OID
	read := func() error {
		var bad error
		err := b.store.Bodies(ctx, some, func(i int, body []byte, err error) bool {
			var o soif.Object
			if err == nil {
				o, _, err = soif.Parse(body, soif.Limits{})
			}
			switch {
			case err == nil:
				yield(some[i], &o)
			case !unreadable(err) && !errors.Is(err, iofs.ErrNotExist):
				bad = err
			}
			return bad == nil
		})
		some = some[:0]
		return errors.Join(bad, err)
	}
	for e, err := range b.store.Scan(ctx, "", "") {
		if err != nil {
			return err
		}
		if some = append(some, e.OID); len(some) == 512 {
			if err := read(); err != nil {
				return err
			}
		}
	}
	return read()
}

// weighing reads external use=links|recency|size|ATTRIBUTE every=DURATION young=DURATION.
func (c *config) weighing(e ndb.Entry) (err error) {
	known := []ndb.Pair{e.First()}
	if e.First().Value != "" || len(e.Pairs) < 2 {
		return e.Errorf(e.First(), "external: written as external use=links|recency|size|ATTRIBUTE every=DURATION young=DURATION")
	}
	if p, ok := e.Pair("use"); ok {
		known = append(known, p)
		if c.external.use = index.Attr(p.Value); p.Value == "" || p.Value == "no" {
			c.external.use = ""
		}
	}
	if p, ok := e.Pair("every"); ok {
		known = append(known, p)
		if c.external.every, err = interval(e, p); err != nil {
			return err
		}
	}
	if p, ok := e.Pair("young"); ok {
		known = append(known, p)
		if c.external.young, err = interval(e, p); err != nil {
			return err
		}
		if c.external.use != externalLinks {
			return e.Errorf(p, "external: young= is of use=links")
		}
	}
	return only(e, known...)
}
