package broker

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Lanes have the users' searches take turns, so that no user waits for all that
// another asks: as many searches work as there are processors, and when one ends
// the user goes on who has had least of them, by weight. A search that works
// longer than a slice gives its place to a user who waits and has had less. It
// does so where it asks whether its context has ended, as every search keeps
// asking: nothing in an index knows of lanes.
type lanes struct {
	waiting atomic.Int64 // turns that wait for a place
	began   time.Time

	mu    sync.Mutex
	free  int // places
	users map[string]*lane
}

// A lane is one user's, while the user has turns. Guarded by the mu of lanes.
type lane struct {
	user  string
	spent float64 // seconds of work, by weight, and what it began with
	turns int     // that work or wait
	queue []*turn // that wait
}

// A turn is one search.
type turn struct {
	l      *lanes
	lane   *lane
	limits limits

	// What follows is guarded by the mu of lanes, but for slice and done, which
	// the search itself reads all the time.
	ready   chan struct{} // closed when it has a place; made anew for each wait
	placed  bool
	yielded bool         // waits in the middle
	slice   atomic.Int64 // when it began to work, in nanoseconds since began
	done    atomic.Int64 // work before that
}

const (
	// A search works at least so long before it gives way, so that passing the
	// place costs little beside the work.
	laneSlice = time.Millisecond

	// One that gave way goes on after so long without a place: it may hold what
	// another needs, and the system's own turns are fair enough.
	lanePatience = 250 * time.Millisecond
)

func newLanes() *lanes {
	return &lanes{free: max(runtime.GOMAXPROCS(0), 1), users: make(map[string]*lane), began: time.Now()}
}

type turnKey struct{}

// enter waits for a turn of the user in ctx, whose context a search is to have,
// and which leave ends. A search within a search has the turn already.
func (l *lanes) enter(ctx context.Context, user string, lim limits) (context.Context, func(), error) {
	if ctx.Value(turnKey{}) != nil {
		return ctx, func() {}, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	t := &turn{l: l, limits: lim}
	wait, err := l.join(t, user)
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-wait:
	case <-ctx.Done():
		l.leave(t)
		return nil, nil, ctx.Err()
	}
	return &turnContext{ctx, t}, func() { l.leave(t) }, nil
}

// join puts a turn at the end of its user's queue.
func (l *lanes) join(t *turn, user string) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[user]
	if u == nil {
		u = &lane{user: user, spent: l.least()}
		l.users[user] = u
	}
	if user != "" && len(u.queue) >= t.limits.waiting {
		return nil, t.limits.reached(syscall.EAGAIN, "waiting", t.limits.waiting, fmt.Sprintf("%d queries wait already", len(u.queue)))
	}
	t.lane, t.ready = u, make(chan struct{})
	u.turns++
	u.queue = append(u.queue, t)
	l.waiting.Add(1)
	l.place()
	return t.ready, nil
}

// least is what the user has had who has had least: who comes now begins there,
// with neither credit nor debt. Called with mu held.
func (l *lanes) least() (least float64) {
	first := true
	for _, u := range l.users {
		if first || u.spent < least {
			least, first = u.spent, false
		}
	}
	return least
}

// next is the user whose turn it is, nil if nobody waits. Called with mu held.
func (l *lanes) next() (best *lane) {
	for _, u := range l.users {
		if len(u.queue) > 0 && (best == nil || u.spent < best.spent) {
			best = u
		}
	}
	return best
}

// place gives the places that are free. Called with mu held.
func (l *lanes) place() {
	for l.free > 0 {
		u := l.next()
		if u == nil {
			return
		}
		t := u.queue[0]
		u.queue = u.queue[1:]
		l.waiting.Add(-1)
		l.free--
		t.placed = true
		t.slice.Store(int64(time.Since(l.began)))
		close(t.ready)
	}
}

// charge notes the work since the slice began. Called with mu held.
func (t *turn) charge() {
	now := int64(time.Since(t.l.began))
	worked := now - t.slice.Load()
	t.done.Add(worked)
	t.slice.Store(now)
	t.lane.spent += time.Duration(worked).Seconds() / max(t.limits.weight, 0.001)
}

// leave ends a turn, wherever it is.
func (l *lanes) leave(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withdraw(t)
	if t.placed {
		t.placed = false
		t.charge()
		l.free++
	}
	if t.lane.turns--; t.lane.turns == 0 {
		delete(l.users, t.lane.user)
	}
	l.place()
}

// withdraw takes a turn out of its queue, if it waits. Called with mu held.
func (l *lanes) withdraw(t *turn) {
	for i, o := range t.lane.queue {
		if o == t {
			t.lane.queue = append(t.lane.queue[:i:i], t.lane.queue[i+1:]...)
			l.waiting.Add(-1)
			return
		}
	}
}

// work is how long the search has worked.
func (t *turn) work() time.Duration {
	return time.Duration(t.done.Load() + int64(time.Since(t.l.began)) - t.slice.Load())
}

// yield gives the place to a user who has had less, if one waits, and comes back
// when it is this one's turn again.
func (t *turn) yield(ctx context.Context) {
	l := t.l
	l.mu.Lock()
	if !t.placed || t.yielded { // another part of the search has
		l.mu.Unlock()
		return
	}
	t.charge()
	u := l.next()
	if u == nil || u == t.lane || u.spent >= t.lane.spent {
		l.mu.Unlock()
		return
	}
	t.placed, t.yielded = false, true
	t.ready = make(chan struct{})
	t.lane.queue = append([]*turn{t}, t.lane.queue...)
	l.waiting.Add(1)
	l.free++
	l.place()
	wait := t.ready
	l.mu.Unlock()

	patience := time.NewTimer(lanePatience)
	defer patience.Stop()
	select {
	case <-wait:
	case <-patience.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.yielded = false
	if l.withdraw(t); !t.placed {
		t.slice.Store(int64(time.Since(l.began)))
	}
}

// turnContext is the context of a search in a lane. Its Err is where the search
// gives way, and what tells it that its time is over.
type turnContext struct {
	context.Context
	t *turn
}

func (c *turnContext) Value(key any) any {
	if key == (turnKey{}) {
		return c.t
	}
	return c.Context.Value(key)
}

func (c *turnContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.t.l.waiting.Load() > 0 && int64(time.Since(c.t.l.began))-c.t.slice.Load() > int64(laneSlice) {
		c.t.yield(c.Context)
	}
	return c.t.over()
}

// over says that the time is over, if it is.
func (t *turn) over() error {
	if most := t.limits.time; most > 0 && t.work() > most {
		return t.limits.reached(syscall.ETIMEDOUT, "time", most, "the query takes longer")
	}
	return nil
}

// patiently is the context of a search for what holds something while it asks:
// it ends in time, and does not give way.
func patiently(ctx context.Context) context.Context {
	if c, ok := ctx.(*turnContext); ok {
		return timed{c}
	}
	return ctx
}

type timed struct{ *turnContext }

func (c timed) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	return c.t.over()
}
