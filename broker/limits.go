package broker

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/index"
	"harvest/index/query"
)

// Limits are what the queries of a user may take. Those of the process itself,
// which collects and fills views, have none.
type limits struct {
	user     string
	time     time.Duration // of work; 0: any
	memory   int64         // for the hits of a query, and of all sessions together
	results  int           // hits of a query; 0: what memory has room for
	sessions int
	waiting  int           // queries that wait for their turn
	idle     time.Duration // after which a session ends that was opened by clone
	weight   float64       // of the user's turns
}

func defaultLimits() limits {
	return limits{time: 30 * time.Second, memory: 64 << 20, sessions: 100, waiting: 64, idle: 24 * time.Hour, weight: 1}
}

const limitsUsage = "limits user=NAME time=DURATION memory=SIZE results=N sessions=N waiting=N idle=DURATION weight=NUMBER"

// limiting reads limits …, which without user= is of all users.
func (c *config) limiting(e ndb.Entry) error {
	user, _ := e.Pair("user")
	if e.First().Value != "" || len(e.Pairs) < 2 {
		return e.Errorf(e.First(), "limits: written as %s", limitsUsage)
	}
	if _, ok := c.limits[user.Value]; ok {
		return e.Errorf(user, "limits: user=%s is there already", user.Value)
	}
	l := defaultLimits()
	if err := l.read(e); err != nil {
		return err
	}
	c.limits[user.Value] = e
	return nil
}

// read takes what an entry says.
func (l *limits) read(e ndb.Entry) (err error) {
	seen := make(map[string]bool)
	for _, p := range e.Pairs[1:] {
		if seen[p.Key] {
			return e.Errorf(p, "limits: repeated key '%s'", p.Key)
		}
		seen[p.Key] = true
		switch p.Key {
		case "user":
		case "time":
			l.time, err = e.Duration(p)
		case "idle":
			l.idle, err = interval(e, p)
		case "memory":
			if l.memory, err = e.Size(p); err == nil && l.memory < 64<<10 {
				err = e.Errorf(p, "limits: memory=%s is less than 64K", p.Value)
			}
		case "results":
			l.results, err = count(e, p, 0)
		case "sessions":
			l.sessions, err = count(e, p, 0)
		case "waiting":
			l.waiting, err = count(e, p, 1)
		case "weight":
			if l.weight, err = strconv.ParseFloat(p.Value, 64); err != nil || !(l.weight >= 0.01 && l.weight <= 1000) {
				err = e.Errorf(p, "limits: weight=%s is not a number from 0.01 to 1000", p.Value)
			}
		default:
			err = e.Errorf(p, "limits: unknown key '%s'; written as %s", p.Key, limitsUsage)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count reads a number that is not too small.
func count(e ndb.Entry, p ndb.Pair, least int) (int, error) {
	n, err := e.Int(p)
	if err == nil && (n < least || n > math.MaxInt32) {
		err = e.Errorf(p, "limits: %s=%s is not a number from %d", p.Key, p.Value, least)
	}
	return n, err
}

// limitsOf are those of a user: what is said of all, and then of this one.
func (c *config) limitsOf(user string) limits {
	if user == "" {
		return limits{weight: 1, sessions: math.MaxInt32, waiting: math.MaxInt32}
	}
	l := defaultLimits()
	for _, who := range []string{"", user} {
		if e, ok := c.limits[who]; ok {
			_ = l.read(e) // was read before
		}
	}
	l.user = user
	return l
}

// limitsOf are those of the user of ctx.
func (b *Broker) limitsOf(ctx context.Context) limits {
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	return c.limitsOf(userOf(ctx))
}

// reached is the error of a limit: it names the setting, and the entry of the
// config that would change it.
func (l *limits) reached(class error, key string, value any, why string) error {
	return &limitError{fmt.Errorf("limit %s=%v of user %s: %s (set by 'limits user=%s %s=…' in config): %w", key, value, l.user, why, l.user, key, class)}
}

// A limitError is of a query that a limit has stopped.
type limitError struct{ err error }

func (e *limitError) Error() string { return e.err.Error() }
func (e *limitError) Unwrap() error { return e.err }

// A hit takes so many bytes while it is looked for, and so many in an answer.
const (
	hitBytes    = 48
	answerBytes = 24
)

// most is how many hits an answer may have, and which limit says so; 0: any.
func (l *limits) most() (n int, key string, value any) {
	if l.memory > 0 {
		n, key, value = int(l.memory/hitBytes), "memory", l.memory
	}
	if l.results > 0 && (n == 0 || l.results < n) {
		n, key, value = l.results, "results", l.results
	}
	return n, key, value
}

// bound has a search find no more than an answer may have, and gives what to say
// if there are more.
func (l *limits) bound(opt *index.Options) (cut func(r *index.Results)) {
	n, key, value := l.most()
	if n == 0 || opt.Limit > 0 && opt.Limit <= n {
		return func(*index.Results) {}
	}
	opt.Limit = n
	return func(r *index.Results) {
		if r.Cut == "" && (r.Total > opt.Offset+n || r.AtLeast && len(r.Hits) == n) {
			r.Cut = fmt.Sprintf("limit %s=%v of user %s: %d hits", key, value, l.user, n)
		}
	}
}

// tooMany refuses hits beyond the limits, where a part of them would be no answer.
func (l *limits) tooMany(found int) error {
	if n, key, value := l.most(); n > 0 && found > n {
		return l.reached(syscall.E2BIG, key, value, "more objects match")
	}
	return nil
}

// inLane runs a search in its user's turn.
func (b *Broker) inLane(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, leave, err := b.lanes.enter(ctx, userOf(ctx), b.limitsOf(ctx))
	if err != nil {
		return err
	}
	defer leave()
	if err := do(ctx); err != nil {
		return err
	}
	return nil
}

// Search is that of the engine, in its user's turn and within the limits: one
// that asks for all hits and would get more than the user may have fails.
func (h *held) Search(ctx context.Context, q query.Node, opt index.Options) (r index.Results, err error) {
	return h.find(ctx, opt, func(ctx context.Context, opt index.Options) (index.Results, error) {
		return h.Engine.Search(ctx, q, opt)
	})
}

func (h *held) find(ctx context.Context, opt index.Options, ask func(context.Context, index.Options) (index.Results, error)) (r index.Results, err error) {
	err = h.b.inLane(ctx, func(ctx context.Context) (err error) {
		l := h.b.limitsOf(ctx)
		all := opt.Limit == 0
		if n, _, _ := l.most(); all && n > 0 {
			opt.Limit = n + 1
		}
		if r, err = ask(ctx, opt); err == nil && all {
			err = l.tooMany(len(r.Hits))
		}
		return err
	})
	return r, err
}

// Similar finds documents like another, if the engine can.
func (h *held) Similar(ctx context.Context, fields []index.Field, opt index.Options) (r index.Results, err error) {
	l, ok := h.Engine.(liker)
	if !ok {
		return r, errAlike
	}
	return h.find(ctx, opt, func(ctx context.Context, opt index.Options) (index.Results, error) {
		return l.Similar(ctx, fields, opt)
	})
}

// Values is that of the engine, in its user's turn.
func (h *held) Values(ctx context.Context, attribute, after string, yield func(index.Value) bool) error {
	return h.b.inLane(ctx, func(ctx context.Context) error { return h.Engine.Values(ctx, attribute, after, yield) })
}

// Attributes is that of the engine, in its user's turn.
func (h *held) Attributes(ctx context.Context) (list []index.Attribute, err error) {
	err = h.b.inLane(ctx, func(ctx context.Context) (err error) {
		list, err = h.Engine.Attributes(ctx)
		return err
	})
	return list, err
}

// Suggest is that of the engine, in its user's turn.
func (h *held) Suggest(ctx context.Context, word string, n int) (list []index.Suggestion, err error) {
	err = h.b.inLane(ctx, func(ctx context.Context) (err error) {
		list, err = h.Engine.Suggest(ctx, word, n)
		return err
	})
	return list, err
}

// room tells whether the sessions of a user may keep so many hits more.
func (s *queries) room(l *limits, owner string, but *session, hits int) error {
	if l.memory == 0 {
		return nil
	}
	list, _ := s.list()
	kept := int64(hits)
	for _, n := range slices.DeleteFunc(list, func(n *session) bool { return n == but || n.owner != owner }) {
		n.mu.Lock()
		if n.answer != nil {
			kept += int64(len(n.answer.hits))
		}
		n.mu.Unlock()
	}
	if kept*answerBytes > l.memory {
		return l.reached(syscall.ENOMEM, "memory", l.memory, "the answers of all sessions have "+strconv.FormatInt(kept, 10)+" hits")
	}
	return nil
}

// granting reads access owner=USER group=GROUP.
func (c *config) granting(e ndb.Entry) error {
	known := []ndb.Pair{e.First()}
	for key, to := range map[string]*string{"owner": &c.owner, "group": &c.group} {
		if p, ok := e.Pair(key); ok {
			*to = p.Value
			known = append(known, p)
		}
	}
	if e.First().Value != "" || len(e.Pairs) < 2 {
		return e.Errorf(e.First(), "access: written as access owner=USER group=GROUP")
	}
	return only(e, known...)
}
