package neighbor

import (
	"context"
	"time"

	"harvest/cache/icp"
)

// A Request is what a choice is made for.
type Request struct {
	URL  string
	Host string // of the URL, without its port

	// Ask has neighbours asked. It is not to be set for what no neighbour
	// could hold or should be bothered with: other methods than GET,
	// Authorization, reloads, and what came by way of us already.
	Ask bool
}

// A Plan is whom to fetch from, and how that was found.
type Plan struct {
	// Choices are to be tried one after the other, as long as they fail.
	// There are none if only neighbours may be fetched from and none is up.
	Choices []Choice
	Asked   int           // neighbours that were asked and waited for
	Answers []Answer      // in the order they came
	Origin  time.Duration // what connecting to the origin takes; zero: it is not connected to
	Took    time.Duration
}

// A Choice is one to fetch from: a neighbour, or the origin if it has no name.
type Choice struct {
	Config
	Code string // as squid writes it in its log

	// OnlyIfCached says that the request is to carry that directive: the
	// neighbour would not fetch the URL for us.
	OnlyIfCached bool
}

// An Answer is what one neighbour said.
type Answer struct {
	Name string
	icp.Reply
}

// A Dial makes a connection to the origin ready and tells how long connecting
// takes, which for a kept connection is what it took then.
type Dial func(context.Context) (time.Duration, error)

// query is one choice in the making.
type query struct {
	eligible
	table *Table
	begun time.Time
	waits map[*peer]time.Duration // of those that have not answered
	said  []said                  // in the order they came
	over  bool                    // answers are late from now on; the table's mu guards it

	late     bool // those that have not answered have had their time
	dialling bool
	origin   time.Duration // what connecting took, once it was done
	broken   bool          // the origin could not be connected to
}

// said is an answer of a neighbour.
type said struct {
	p *peer
	icp.Reply
}

// dialled is how connecting to the origin went.
type dialled struct {
	took time.Duration
	err  error
}

// Choose says whom to fetch from. It waits as long as the package comment says,
// for dial if there is nobody else, and not when ctx has ended. Dial may be
// nil; its context ends when a neighbour is the first choice, and it has
// returned when the origin is.
func (t *Table) Choose(ctx context.Context, r Request, dial Dial) Plan {
	q := &query{table: t, begun: time.Now(), eligible: t.eligible(r)}
	for _, p := range q.probes {
		q.ask(p, r.URL, nil)
	}
	if q.only == nil && len(q.asked) > 0 {
		q.askAll(ctx, r.URL, dial)
	}
	p := q.plan(r)
	p.Took = time.Since(q.begun)
	return p
}

// eligible is who may serve a request, and how.
type eligible struct {
	direct  bool    // the origin may be fetched from
	forced  bool    // and nobody else
	only    *peer   // is not asked but used
	asked   []*peer // are asked and waited for
	probes  []*peer // are asked to see whether they are back
	parents []*peer // could be used unasked, in the order they were given
	pool    []*peer // are never asked, the first choice for the URL first
}

func (t *Table) eligible(r Request) (e eligible) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	e.direct = !t.rules.NeverDirect || len(t.rules.Inside) > 0 && serves(t.rules.Inside, r.Host)
	if len(t.rules.Direct) > 0 && serves(t.rules.Direct, r.Host) {
		e.direct, e.forced = true, true
		return e
	}
	for _, p := range t.peers {
		if serves(p.Domains, r.Host) {
			e.add(p, now, r.Ask && t.conn != nil)
		}
	}
	rendezvous(e.pool, r.URL)
	if len(e.asked) == 1 && len(e.parents) == 1 && len(e.pool) == 0 && (t.rules.SingleParent || !e.direct) {
		e.only = e.parents[0]
	}
	return e
}

// add adds a neighbour where it belongs.
func (e *eligible) add(p *peer, now time.Time, ask bool) {
	choose, probe := p.use(now)
	switch {
	case probe && ask && p.ICP.IsValid():
		e.probes = append(e.probes, p)
	case !choose:
	case !p.ICP.IsValid():
		e.pool = append(e.pool, p)
	default:
		if p.Kind == Parent {
			e.parents = append(e.parents, p)
		}
		if ask {
			e.asked = append(e.asked, p)
		}
	}
}

// ask sends a question. The answer counts for the neighbour whenever it comes.
func (q *query) ask(p *peer, url string, answers chan<- said) {
	t := q.table
	t.mu.Lock()
	p.asks(t.now())
	if answers != nil {
		q.waits[p] = p.wait(t.least)
	}
	to := p.ICP
	t.mu.Unlock()
	err := t.conn.Ask(to, url, func(r icp.Reply) {
		t.mu.Lock()
		p.hears(r, t.now())
		if q.over {
			p.Late++
		}
		t.mu.Unlock()
		if answers != nil {
			answers <- said{p, r} // there is room for one of each
		}
	})
	if err != nil { // a URL that cannot be asked for, or no way to the neighbour
		delete(q.waits, p)
	}
}

// askAll asks those who may hold the URL, and begins to connect to the origin.
func (q *query) askAll(ctx context.Context, url string, dial Dial) {
	q.waits = make(map[*peer]time.Duration, len(q.asked))
	answers := make(chan said, len(q.asked))
	for _, p := range q.asked {
		q.ask(p, url, answers)
	}
	joined := make(chan dialled, 1)
	if dial != nil && q.direct && len(q.pool) == 0 {
		within, cancel := context.WithCancel(ctx)
		defer cancel()
		q.dialling = true
		q.table.dials.Go(func() {
			took, err := dial(within)
			joined <- dialled{took, err}
		})
	}
	q.listen(ctx, answers, joined)
	q.table.mu.Lock()
	q.over = true
	q.table.mu.Unlock()
}

// listen takes what comes in until it is known whom to choose.
func (q *query) listen(ctx context.Context, answers <-chan said, joined <-chan dialled) {
	t := time.NewTimer(q.left())
	defer t.Stop()
	for !q.known() {
		select {
		case s := <-answers:
			delete(q.waits, s.p)
			q.said = append(q.said, s)
			t.Reset(q.left())
		case d := <-joined:
			q.dialling, q.origin, q.broken = false, max(d.took, 1), d.err != nil
		case <-t.C:
			q.late = len(q.waits) > 0
		case <-ctx.Done():
			return
		}
	}
}

// left is for how long those that have not answered are still waited for.
func (q *query) left() time.Duration {
	var longest time.Duration
	for _, w := range q.waits {
		longest = max(longest, w)
	}
	return longest - time.Since(q.begun)
}

// known tells whether nothing more need be waited for: somebody holds the
// URL, or all had their say and there is somebody to fetch it from.
func (q *query) known() bool {
	parent := false
	for _, s := range q.said {
		if s.Op == icp.Hit {
			return true
		}
		parent = parent || s.Op == icp.Miss && s.p.Kind == Parent
	}
	return (len(q.waits) == 0 || q.late) && (parent || !q.dialling)
}
