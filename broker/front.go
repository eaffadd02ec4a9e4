package broker

import (
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
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/index/query"
)

// A front end is a Broker whose config names back ends: its queries are asked of
// them too, all at once, and the hits put in one order. A back end that is slow or
// away is left out, named, and not waited for again until it has been heard of.

// backendConfig is one backend path=… of the config.
type backendConfig struct {
	path    string
	timeout time.Duration
	most    int     // hits that are read of an answer
	weight  float64 // of its scores
}

const (
	backendTimeout = 5 * time.Second
	backendMost    = 10_000

	// A back end that failed so often in a row is not asked until it answers a
	// probe: first after a second, then twice as long each time, up to a minute.
	backendFails = 3
	probeFirst   = time.Second
	probeMost    = time.Minute
)

// backing reads backend path=… timeout=… limit=… weight=….
func (c *config) backing(e ndb.Entry) (err error) {
	k := backendConfig{timeout: backendTimeout, most: backendMost, weight: 1}
	path, ok := e.Pair("path")
	if !ok || path.Value == "" {
		return e.Errorf(e.First(), "backend: path=PATH is missing")
	}
	k.path = path.Value
	known := []ndb.Pair{e.First(), path}
	if p, ok := e.Pair("timeout"); ok {
		if k.timeout, err = e.Duration(p); err == nil && k.timeout < time.Millisecond {
			err = e.Errorf(p, "backend: timeout=%s is less than a millisecond", p.Value)
		}
		known = append(known, p)
	}
	if p, ok := e.Pair("limit"); ok && err == nil {
		if k.most, err = e.Int(p); err == nil && (k.most < 1 || k.most > 1<<20) {
			err = e.Errorf(p, "backend: limit=%s is not a number from 1 to %d", p.Value, 1<<20)
		}
		known = append(known, p)
	}
	if p, ok := e.Pair("weight"); ok && err == nil {
		if _, err = fmt.Sscan(p.Value, &k.weight); err != nil || !(k.weight > 0 && k.weight <= 1000) {
			err = e.Errorf(p, "backend: weight=%s is not a number above 0, up to 1000", p.Value)
		}
		known = append(known, p)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(c.backends, func(o backendConfig) bool { return o.path == k.path }) {
		return e.Errorf(path, "backend: %s is there already", k.path)
	}
	c.backends = append(c.backends, k)
	return only(e, known...)
}

// An asker answers queries from afar. It returns when all hits that are wanted
// are there, or ctx has ended.
type asker interface {
	ask(ctx context.Context, q query.Node, opt askOptions) (reply, error)
}

// askOptions say how a query is asked elsewhere.
type askOptions struct {
	manner manner
	fields []string // attributes that hits are to have
	most   int      // hits wanted, the best
	among  string   // see chosen
}

// A reply is what a back end found, best first.
type reply struct {
	hits    []farHit
	total   int
	more    bool
	cut     string
	missing []string // of its own back ends
	mark    string
}

// A farHit is a hit of a back end.
type farHit struct {
	hit
	from   *backend // nil: an object of this Broker
	kind   string
	url    string
	title  string
	fields []string
	key    string // what hits are ordered by that are not by score
}

// chosen is which back ends a query is asked of; the zero value is all.
type chosen struct {
	ask    []string // paths
	among  string   // counts of the whole collection, which each back end is told
	routed []string // a line a back end, why it is asked or is not
}

// A front is what a Broker keeps of its back ends.
type front struct {
	b      *Broker
	choose func(q query.Node, m manner, all []string) chosen // nil: all
	ctx    context.Context                                   // of connections, which outlive a query
	end    context.CancelFunc
	asking sync.WaitGroup

	mu  sync.Mutex
	all map[string]*backend
}

func newFront(b *Broker) *front {
	f := &front{b: b, all: make(map[string]*backend)}
	f.ctx, f.end = context.WithCancel(context.Background())
	return f
}

// close ends all connections, and waits for who still asks.
func (f *front) close() {
	f.end()
	f.use(nil)
	f.asking.Wait()
}

// use takes the back ends of a new config.
func (f *front) use(confs []backendConfig) {
	f.mu.Lock()
	old := f.all
	f.all = make(map[string]*backend, len(confs))
	for _, c := range confs {
		k := old[c.path]
		if k == nil || k.conf != c {
			k = &backend{front: f, conf: c, since: time.Now()}
		} else {
			delete(old, c.path)
		}
		f.all[c.path] = k
	}
	f.mu.Unlock()
	for _, k := range old {
		k.hangUp()
	}
}

// maxVia bounds how many front ends may stand before one another.
const maxVia = 8

// errLoop is of a front end that asks itself, by way of others.
var errLoop = fmt.Errorf("a loop of front ends: %w", syscall.ELOOP)

// pass is the manner in which a query is asked on.
func (f *front) pass(m manner) (manner, error) {
	via := strings.FieldsFunc(m.via, func(r rune) bool { return r == ',' })
	if slices.Contains(via, f.b.identity()) || len(via) >= maxVia {
		return m, fmt.Errorf("%s asks itself by way of %s: %w", f.b.name, m.via, errLoop)
	}
	m.via = strings.Join(append(via, f.b.identity()), ",")
	return m, nil
}

// pick gives the back ends to ask.
func (f *front) pick(q query.Node, m manner) (list []*backend, c chosen) {
	f.mu.Lock()
	all := maps.Clone(f.all)
	f.mu.Unlock()
	paths := slices.Sorted(maps.Keys(all))
	if f.choose != nil && len(paths) > 0 {
		if c = f.choose(q, m, paths); c.ask != nil {
			paths = c.ask
		}
	}
	for _, path := range paths {
		if k := all[path]; k != nil {
			list = append(list, k)
		}
	}
	return list, c
}

// has tells whether the config names back ends.
func (f *front) has() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

// An outcome is what came of asking one back end.
type outcome struct {
	k     *backend
	reply reply
	err   error
}

// ask asks the back ends at once and waits for each no longer than its timeout.
func (f *front) ask(ctx context.Context, q query.Node, opt askOptions) ([]outcome, chosen, error) {
	m, err := f.pass(opt.manner)
	if err != nil {
		return nil, chosen{}, err
	}
	list, c := f.pick(q, opt.manner)
	opt.manner, opt.among = m, c.among
	out := make(chan outcome, len(list))
	for _, k := range list {
		f.asking.Go(func() { // waited for below, unless it hangs in a mount, and then by close
			r, err := k.asked(ctx, q, opt)
			out <- outcome{k, r, err}
		})
	}
	return f.gather(ctx, list, out), c, nil
}

// gather takes the outcomes as they come, and gives up on what is not there when
// its time is over, whether it hears of that or not.
func (f *front) gather(ctx context.Context, list []*backend, out <-chan outcome) []outcome {
	left := make(map[*backend]bool, len(list))
	most := time.Duration(0)
	for _, k := range list {
		left[k] = true
		most = max(most, k.conf.timeout)
	}
	const grace = 100 * time.Millisecond
	late := time.NewTimer(most + grace)
	defer late.Stop()
	var got []outcome
	for len(left) > 0 {
		select {
		case o := <-out:
			delete(left, o.k)
			got = append(got, o)
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		for k := range left {
			got = append(got, outcome{k: k, err: k.late()})
		}
		break
	}
	slices.SortFunc(got, func(x, y outcome) int { return cmp.Compare(x.k.conf.path, y.k.conf.path) })
	return got
}

// A backend is one that is asked.
type backend struct {
	front *front
	conf  backendConfig

	mu      sync.Mutex
	idle    []*line
	fails   int // in a row
	err     error
	since   time.Time // it is up, or down
	probing bool
	probe   time.Time // when it is tried next, if it is down
	wait    time.Duration
	count   struct{ asked, failed int }
	took    latency
}

func (k *backend) late() error {
	return fmt.Errorf("late after %s (timeout= of the backend): %w", k.conf.timeout, syscall.ETIMEDOUT)
}

// down tells that the back end is not to be asked now; it has it tried, if it is
// time for that.
func (k *backend) down() (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails < backendFails {
		return nil
	}
	if now := time.Now(); !k.probing && !now.Before(k.probe) {
		k.probing = true
		k.front.asking.Go(k.try) // waited for by close
	}
	return fmt.Errorf("down since %s: %w", k.since.UTC().Format(time.RFC3339), k.err)
}

// try finds out whether a back end that is down can be reached.
func (k *backend) try() {
	ctx, cancel := context.WithTimeout(k.front.ctx, k.conf.timeout)
	defer cancel()
	l, err := k.dial(ctx)
	if err == nil {
		_, err = iofs.ReadFile(l.tree, "status")
		l.hangUp()
	}
	k.mu.Lock()
	k.probing = false
	if k.wait = min(max(2*k.wait, probeFirst), probeMost); err != nil {
		k.err, k.probe = err, time.Now().Add(k.wait)
	} else {
		k.fails, k.err, k.since, k.wait = 0, nil, time.Now(), 0
	}
	k.mu.Unlock()
}

// asked is ask, within the back end's time, with its outcome noted.
func (k *backend) asked(ctx context.Context, q query.Node, opt askOptions) (reply, error) {
	if err := k.down(); err != nil {
		return reply{}, err
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, k.conf.timeout)
	defer cancel()
	opt.most = min(opt.most, k.conf.most)
	begin := time.Now()
	r, err := asker(k).ask(ctx, q, opt)
	if ctx.Err() != nil && parent.Err() == nil && err != nil {
		err = k.late()
	}
	if parent.Err() == nil {
		k.note(err, time.Since(begin))
	}
	return r, err
}

// note counts how asking went. What a back end refuses it has answered.
func (k *backend) note(err error, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count.asked++
	k.took.add(took)
	if err == nil || isLoop(err) || errors.Is(err, iofs.ErrInvalid) {
		k.fails, k.err = 0, nil
		return
	}
	k.count.failed++
	k.err = err
	if k.fails++; k.fails == backendFails {
		k.since, k.wait = time.Now(), probeFirst
		k.probe = k.since.Add(k.wait)
	}
}

// isLoop knows a loop by its words too, since 9P has no other class.
func isLoop(err error) bool {
	return errors.Is(err, syscall.ELOOP) || err != nil && strings.Contains(err.Error(), errLoop.Error())
}

// hangUp closes the connections that nobody uses.
func (k *backend) hangUp() {
	k.mu.Lock()
	idle := k.idle
	k.idle = nil
	k.mu.Unlock()
	for _, l := range idle {
		l.hangUp()
	}
}

// pairs is the back end's line of status.
func (k *backend) pairs() []ndb.Pair {
	k.mu.Lock()
	defer k.mu.Unlock()
	is := "up"
	switch {
	case k.fails >= backendFails:
		is = "down"
	case k.fails > 0:
		is = "failing"
	}
	out := []ndb.Pair{ndb.Of("backend", ""), ndb.Of("path", k.conf.path), ndb.Of("is", is), ndb.Of("since", k.since),
		ndb.Of("asked", k.count.asked), ndb.Of("failed", k.count.failed), ndb.Of("p50", k.took.at(0.5)), ndb.Of("p99", k.took.at(0.99))}
	if k.err != nil {
		out = append(out, ndb.Of("err", k.err))
	}
	return out
}

// figures are the lines of status, one a back end.
func (f *front) figures() (out [][]ndb.Pair) {
	f.mu.Lock()
	all := maps.Clone(f.all)
	f.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[path].pairs())
	}
	return out
}

// closer closes what an Opener gave.
func closing(c io.Closer) {
	if c != nil {
		c.Close()
	}
}
