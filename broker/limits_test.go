package broker

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"harvest/fs"
	"harvest/fs/ninep"
	"harvest/gather/store"
	"harvest/index/query"
)

// asUserOf is a context of somebody.
func asUserOf(name string) context.Context {
	return fs.WithUser(ctx, &fs.User{Name: name, Local: true})
}

// filled is a Broker with n objects that all have the word common, and one each
// of a number of other words.
func filled(t testing.TB, n int, config string) *Broker {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	var changes []store.Change
	for i := range n {
		o := object(fmt.Sprintf("http://a/%06d", i), fmt.Sprintf("title%d of %d", i%97, i), fmt.Sprintf("common word%d and other%d, as it stands in %d", i%997, i%13, i))
		if changes = append(changes, update(o)); len(changes) == 2000 {
			apply(t, g, changes...)
			changes = nil
		}
	}
	apply(t, g, changes...)
	b := w.broker(t.TempDir(), "source path=gather/web\n"+config)
	must(t, b.Collect(ctx, "gather/web"))
	return b
}

// TestLimits has each limit be reached, with the error that names it and its
// setting, by a user who has it and by no other.
func TestLimits(t *testing.T) {
	b := filled(t, 3000, "limits sessions=3 memory=64K\nlimits user=bob results=10 time=1ns\nlimits user=carol memory=100M\n")
	dir := queryDir{b}
	alice, bob, carol := asUserOf("alice"), asUserOf("bob"), asUserOf("carol")
	want := func(err error, class error, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("got %v, want it to have %q", err, p)
			}
		}
		if !errors.Is(err, class) {
			t.Errorf("got %v, want the class %v", err, class)
		}
	}
	for _, name := range []string{"a1", "a2", "a3"} {
		_, err := dir.Mkdir(alice, name, 0o755)
		must(t, err)
	}
	_, err := dir.Mkdir(alice, "a4", 0o755)
	want(err, syscall.EMFILE, "limit sessions=3 of user alice", "limits user=alice sessions=…")
	_, err = dir.clone().Open(alice, fs.Read|fs.Write)
	want(err, syscall.EMFILE, "sessions=3")
	_, err = dir.Mkdir(bob, "b1", 0o755)
	must(t, err) // another's are others

	s, _ := b.queries.get("a1")
	must(t, s.ask(alice, "common"))
	if a := s.shown().answer; a.total != 3000 || len(a.hits) != 64<<10/hitBytes || !strings.Contains(a.cut, "memory=65536 of user alice") {
		t.Errorf("got %d of %d hits, cut %q, want as many as memory has room for, and why", len(a.hits), a.total, a.cut)
	}
	s2, _ := b.queries.get("a2")
	must(t, s2.ask(alice, "common"))
	s3, _ := b.queries.get("a3")
	want(s3.ask(alice, "common"), syscall.ENOMEM, "limit memory=65536 of user alice: the answers of all sessions have 4095 hits")

	t1, _ := b.queries.get("b1")
	want(t1.ask(bob, "common"), syscall.ETIMEDOUT, "limit time=1ns of user bob", "limits user=bob time=…")
	must(t, t1.ask(carol, "common"))

	// The same in every other way of asking.
	_, err = namedDir{b}.Lookup(bob, "title : title5")
	want(err, syscall.ETIMEDOUT, "limit time=1ns of user bob")
	_, err = byDir{b: b}.Lookup(bob, "title")
	want(err, syscall.ETIMEDOUT, "limit time=1ns of user bob")
	_, err = similarDir{b}.Lookup(bob, oid("http://a/000001").String())
	want(err, syscall.ETIMEDOUT, "limit time=1ns of user bob")
	a, err := b.answer(alice, parsed(t, "common"), plain(), 1)
	must(t, err)
	for name, write := range map[string]produce{"why": a.all().writeWhy, "refine": a.all().writeRefine, "attributes": b.writeAttributes} {
		want(write(bob, new(strings.Builder)), syscall.ETIMEDOUT, "limit time=1ns of user bob")
		_ = name
	}
	want(a.all().writeRefine(alice, new(strings.Builder)), syscall.E2BIG, "limit memory=65536 of user alice: more objects match")
	want(a.since(alice, new(strings.Builder), store.Cursor{}), syscall.E2BIG, "limit memory=65536")
	all, err := b.answer(ctx, parsed(t, "common"), plain(), 1) // the process itself
	must(t, err)
	if len(all.hits) != 3000 || all.cut != "" {
		t.Errorf("got %d hits, cut %q, want all", len(all.hits), all.cut)
	}
}

// TestLimitsConfig refuses what is no limit.
func TestLimitsConfig(t *testing.T) {
	for text, want := range map[string]string{
		"limits":                         "written as limits user=NAME",
		"limits time=soon":               "a duration such as",
		"limits memory=1K":               "less than 64K",
		"limits weight=0":                "not a number from 0.01 to 1000",
		"limits waiting=0":               "not a number from 1",
		"limits time=1s time=2s":         "repeated key 'time'",
		"limits speed=1":                 "unknown key 'speed'",
		"limits idle=0s":                 "less than a second",
		"limits time=1s\nlimits time=2s": "is there already",
	} {
		if _, err := parseConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	c, err := parseConfig("limits user=a time=1s\nlimits sessions=7 time=3s\n")
	must(t, err)
	if l := c.limitsOf("a"); l.time != time.Second || l.sessions != 7 || l.memory != defaultLimits().memory {
		t.Errorf("got %+v, want a's time, all users' sessions and the memory there is without", l)
	}
}

// TestLanesFair has a user with endless work, and another who asks now and then:
// who has had less goes first, and soon.
func TestLanesFair(t *testing.T) { synctest.Test(t, lanesFair) }

func lanesFair(t *testing.T) {
	l := newLanes()
	l.free = 1
	lim := limits{user: "x", waiting: 1000, weight: 1}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, leave, err := l.enter(ctx, "flood", lim)
				if err != nil {
					t.Error(err)
					return
				}
				spin(c, 20*time.Millisecond)
				leave()
			}
		})
	}
	var waits []time.Duration
	for range 50 {
		begin := time.Now()
		c, leave, err := l.enter(ctx, "other", lim)
		must(t, err)
		waits = append(waits, time.Since(begin))
		spin(c, 100*time.Microsecond)
		leave()
	}
	close(stop)
	wg.Wait()
	slices.Sort(waits)
	t.Logf("waited %s in the middle, %s at most", waits[25], waits[49])
	if waits[49] > 2*laneSlice {
		t.Errorf("waited %s of a flood of searches of 20ms, want a slice of one of them", waits[49])
	}
	if len(l.users) != 0 || l.waiting.Load() != 0 || l.free != 1 {
		t.Errorf("got %d users, %d waiting, %d free, want nothing left", len(l.users), l.waiting.Load(), l.free)
	}
}

// spin works as a search does, which asks all the time whether it is to go on;
// in a bubble, where time goes by only while all sleep.
func spin(c context.Context, d time.Duration) {
	for t := c.(*turnContext).t; t.work() < d && c.Err() == nil; {
		time.Sleep(50 * time.Microsecond)
	}
}

// TestLanesWeight has work shared by weight.
func TestLanesWeight(t *testing.T) { synctest.Test(t, lanesWeight) }

func lanesWeight(t *testing.T) {
	l := newLanes()
	l.free = 1
	worked := make(map[string]time.Duration)
	var mu sync.Mutex
	var wg sync.WaitGroup
	until := time.Now().Add(300 * time.Millisecond)
	for user, weight := range map[string]float64{"light": 1, "heavy": 3} {
		for range 2 {
			wg.Go(func() {
				for time.Now().Before(until) {
					c, leave, err := l.enter(ctx, user, limits{user: user, waiting: 10, weight: weight})
					if err != nil {
						t.Error(err)
						return
					}
					spin(c, 2*time.Millisecond)
					mu.Lock()
					worked[user] += c.(*turnContext).t.work()
					mu.Unlock()
					leave()
				}
			})
		}
	}
	wg.Wait()
	if r := worked["heavy"].Seconds() / worked["light"].Seconds(); r < 2.5 || r > 3.5 {
		t.Errorf("got %v, a ratio of %.1f, want about 3", worked, r)
	}
}

// TestLanesQueue bounds how many searches of a user wait, and lets those go that
// are given up.
func TestLanesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes()
		l.free = 1
		lim := limits{user: "a", waiting: 2, weight: 1}
		_, leave, err := l.enter(ctx, "a", lim)
		must(t, err)
		given, giveUp := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, _, err := l.enter(given, "a", lim); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want canceled", err)
				}
			})
		}
		synctest.Wait()
		if _, _, err := l.enter(ctx, "a", lim); !errors.Is(err, syscall.EAGAIN) || !strings.Contains(err.Error(), "limit waiting=2 of user a") {
			t.Errorf("got %v, want the limit of waiting", err)
		}
		giveUp()
		wg.Wait()
		leave()
		if len(l.users) != 0 || l.free != 1 || l.waiting.Load() != 0 {
			t.Errorf("got %d users, %d free, want nothing left", len(l.users), l.free)
		}
	})
}

// TestSessionsIdle ends a session that was opened and left lying, and none that
// was made to stay.
func TestSessionsIdle(t *testing.T) {
	b := filled(t, 10, "limits idle=1m\n")
	alice := asUserOf("alice")
	h, err := queryDir{b}.clone().Open(alice, fs.Read|fs.Write)
	must(t, err)
	defer h.Close()
	_, err = queryDir{b}.Mkdir(alice, "stays", 0o755)
	must(t, err)
	_, err = h.WriteAt(alice, []byte("query common\n"), 0)
	must(t, err)
	now := time.Now()
	if next := b.queries.sweep(now); next.Before(now.Add(50*time.Second)) || next.After(now.Add(time.Minute)) {
		t.Errorf("got the next look in %s, want it when the session has been idle for 1m", next.Sub(now))
	}
	b.queries.sweep(now.Add(61 * time.Second))
	_, err = h.WriteAt(alice, []byte("query common\n"), 0)
	if !errors.Is(err, iofs.ErrClosed) || !strings.Contains(err.Error(), "idle for 1m0s (set by 'limits user=alice idle=…'") {
		t.Errorf("got %v, want that it was idle", err)
	}
	if list, _ := b.queries.list(); len(list) != 1 || list[0].name != "stays" {
		t.Errorf("got %d sessions, want the one that stays", len(list))
	}
}

// dial9P serves a tree to a user over a connection, as a door does that has found
// out who it is.
func dial9P(t testing.TB, root fs.Dir, u *fs.User) (*ninep.Client, func()) {
	t.Helper()
	here, there := net.Pipe()
	done := make(chan error, 1)
	go func() { // the function returned waits for it
		done <- ninep.NewServer(testLog(t), ninep.Limits{}).ServeConn(ctx, there, root, u)
	}()
	c, err := ninep.NewClient(ctx, here, "pipe", ninep.DialOptions{})
	must(t, err)
	var once sync.Once
	end := func() { once.Do(func() { here.Close(); c.Close(); <-done }) }
	t.Cleanup(end)
	return c, end
}

// TestSessionsDead frees the sessions of a connection that breaks.
func TestSessionsDead(t *testing.T) {
	b := filled(t, 10, "")
	c, end := dial9P(t, b.Files(), &fs.User{Name: "alice", Local: true})
	for range 5 {
		n, err := fs.Walk(ctx, c.Root(), "query/clone")
		must(t, err)
		h, err := fs.OpenNode(ctx, n.(fs.File), fs.Read|fs.Write)
		must(t, err)
		_, err = h.WriteAt(ctx, []byte("query common\n"), 0)
		must(t, err)
	}
	if list, _ := b.queries.list(); len(list) != 5 {
		t.Fatalf("got %d sessions, want 5", len(list))
	}
	end()
	if list, _ := b.queries.list(); len(list) != 0 {
		t.Errorf("got %d sessions after the connection broke, want none", len(list))
	}
}

func parsed(t testing.TB, text string) query.Node {
	t.Helper()
	q, err := query.Parse(text)
	must(t, err)
	return q
}
