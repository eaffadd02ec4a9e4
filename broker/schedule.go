package broker

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"sync"
	"syscall"
	"time"

	"harvest/fs/ndb"
)

// poke has the scheduler look again.
func (b *Broker) poke() {
	select {
	case b.wake <- struct{}{}:
	default: // told already
	}
}

// Run collects, indexes and drops what has expired, as the config says, until
// ctx ends.
func (b *Broker) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { b.keepIndexed(ctx) })
	wg.Go(func() { b.views.run(ctx) })
	wg.Go(func() { b.router.run(ctx) })
	b.schedule(ctx, &wg)
	wg.Wait()
	return ctx.Err()
}

// retry is how long to wait after a failure: longer each time, up to a bound.
func retry(fails int, bound time.Duration) time.Duration {
	const first = 5 * time.Second
	return min(first<<min(fails-1, 20), bound)
}

// keepIndexed follows the store.
func (b *Broker) keepIndexed(ctx context.Context) {
	b.follows.Store(true)
	defer b.follows.Store(false)
	for fails := 0; ctx.Err() == nil; {
		seq := b.store.Cursor().Seq
		err := b.bring(ctx, true)
		if err != nil && ctx.Err() == nil {
			fails++
			b.lg.Error("index", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(retry(fails, 5*time.Minute)):
			}
			continue
		}
		fails = 0
		b.queries.askAgain(ctx)
		b.await(ctx, seq)
	}
}

// await returns when the store has changed, or the index is to be made anew.
func (b *Broker) await(ctx context.Context, seq uint64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	again, now := b.again, b.reindex
	b.mu.Unlock()
	if now {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		select {
		case <-again:
			cancel()
		case <-ctx.Done():
		}
	})
	b.store.Wait(ctx, seq)
	cancel()
}

// catchUp brings the index to where the store is. While Run is running it is Run's
// to make it anew: an rm that waits for the index waits for no more than the old one.
func (b *Broker) catchUp(ctx context.Context) error { return b.bring(ctx, !b.follows.Load()) }

// bring is follow with its outcome noted. If anew is true the index is made anew
// before, if that was asked for.
func (b *Broker) bring(ctx context.Context, anew bool) error {
	b.mu.Lock()
	anew = anew && b.reindex && !b.rebuilding
	if anew {
		b.reindex, b.rebuilding = false, true
	}
	b.mu.Unlock()
	var err error
	if anew {
		err = b.rebuild(ctx)
	}
	made := err == nil
	if made {
		err = b.follow(ctx)
	}
	if ctx.Err() != nil {
		return err
	}
	b.mu.Lock()
	b.trouble = err
	b.mu.Unlock()
	b.shown.complain("index", "", err)
	if err != nil && made { // else the old one is as good as it was
		return errors.Join(err, b.reopen())
	}
	return err
}

// collectors bounds how many sources are read at a time.
const collectors = 4

// schedule starts what is due, in goroutines of wg.
func (b *Broker) schedule(ctx context.Context, wg *sync.WaitGroup) {
	slots := make(chan struct{}, collectors)
	for {
		due, gc, wait := b.due(time.Now())
		for _, path := range due {
			wg.Go(func() {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
					b.collect(ctx, path)
				case <-ctx.Done():
				}
			})
		}
		if gc {
			wg.Go(func() { b.runGC(ctx) })
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-b.wake:
			t.Stop()
		case <-t.C:
		}
	}
}

// due gives the sources to collect from now, which count as asked for from
// then on until they are read, whether to collect garbage, and how long there
// is nothing more to do.
func (b *Broker) due(now time.Time) (paths []string, gc bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = time.Hour
	if !b.sweepAt.After(now) {
		b.sweepAt = b.queries.sweep(now)
	}
	at := func(t time.Time) { wait = min(wait, max(t.Sub(now), 0)) }
	for path, s := range b.sources {
		if s.cancel != nil || b.stopped && !s.asked {
			continue
		}
		if s.asked || !s.next.After(now) {
			paths = append(paths, path)
			s.asked = true
			s.next = now.Add(s.every)
			s.cancel = func() {} // until collect has a better one
		}
		at(s.next)
	}
	if !b.gcRuns && (b.gcAsked || !b.stopped && !b.gcAt.After(now)) {
		b.gcRuns, b.gcAsked, gc = true, false, true
		b.gcAt = now.Add(b.config.gc)
	}
	if !b.stopped {
		at(b.gcAt)
	}
	at(b.sweepAt)
	return paths, gc, wait
}

func (b *Broker) runGC(ctx context.Context) {
	err := b.gc(ctx)
	if err == nil {
		err = b.reweigh(ctx, time.Now())
	}
	next := b.nextLapse()
	b.mu.Lock()
	b.gcRuns = false
	if !next.IsZero() && next.Before(b.gcAt) {
		b.gcAt = next
	}
	b.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		b.lg.Error("gc", "err", err)
	}
	b.shown.complain("gc", "", err)
	b.poke()
}

// Collect reads what is new at a source of the config, and returns when it can
// be found. A source that is being read already is an error that wraps EBUSY.
func (b *Broker) Collect(ctx context.Context, path string) error {
	b.mu.Lock()
	s, err := b.idleSource(path)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	s.cancel = func() {}
	b.mu.Unlock()
	if err := b.collect(ctx, path); err != nil {
		return sourceError(path, err)
	}
	return b.catchUp(ctx)
}

func noSource(path string) error { return sourceError(path, iofs.ErrNotExist) }

// collect reads one source, whose cancel is set already.
func (b *Broker) collect(ctx context.Context, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	s := b.sources[path]
	if s == nil { // the config has changed meanwhile
		b.mu.Unlock()
		return noSource(path)
	}
	s.cancel, s.asked = cancel, false
	c := collection{b: b, path: path, conf: s.sourceConfig, at: s.at, ttl: b.config.ttl}
	b.mu.Unlock()

	begin := time.Now()
	err := c.read(ctx)

	b.mu.Lock()
	s.cancel, s.err = nil, err
	s.total.add(c.counts)
	b.total.add(c.counts)
	now := time.Now()
	if err == nil {
		s.at, s.fails, s.origins, b.lastDone = c.at, 0, c.from, now
		s.next = now.Add(s.every)
	} else if ctx.Err() == nil {
		s.fails++
		s.next = now.Add(retry(s.fails, s.every))
	} else { // stopped: due as soon as it may
		s.next, s.err = now, nil
	}
	b.mu.Unlock()
	b.poke()

	took := now.Sub(begin).Round(time.Millisecond)
	switch {
	case err == nil:
		b.event("collected", append(append([]ndb.Pair{ndb.Of("source", path)}, c.counts.pairs()...), ndb.Of("took", took))...)
		if c.counts.bad == 0 {
			b.shown.complain("source "+path, "", nil)
		}
	case ctx.Err() == nil:
		b.lg.Warn("collect", "source", path, "err", err)
		b.event("failed", ndb.Of("source", path), ndb.Of("err", err))
		b.shown.complain("source "+path, "", err)
	}
	return err
}

// bad tells of an object that a source has wrong.
func (b *Broker) bad(path string, line int64, err error) {
	b.lg.Warn("bad object", "source", path, "line", line, "err", err)
	b.event("bad", ndb.Of("source", path), ndb.Of("line", line), ndb.Of("err", err))
	b.shown.complain("source "+path, "", err)
}

// ask has sources collected soon: all, or one.
func (b *Broker) ask(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if path != "" && b.sources[path] == nil {
		return noSource(path)
	}
	if len(b.sources) == 0 {
		return fmt.Errorf("no source in config: %w", iofs.ErrInvalid)
	}
	for p, s := range b.sources {
		if path == "" || p == path {
			s.asked = true
		}
	}
	b.poke()
	return nil
}

// idleSource is a source of the config that is not being read; mu is held.
func (b *Broker) idleSource(path string) (*source, error) {
	s := b.sources[path]
	if s == nil {
		return nil, noSource(path)
	}
	if s.cancel != nil {
		return nil, sourceError(path, syscall.EBUSY)
	}
	return s, nil
}

// restart has a source read from the start.
func (b *Broker) restart(path string) error {
	b.mu.Lock()
	s, err := b.idleSource(path)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	s.at.cursor = "0"
	s.asked = true
	at := s.at
	b.mu.Unlock()
	b.poke()
	return b.registry.advance(path, at)
}

func (b *Broker) askGC() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gcAsked = true
	b.poke()
	return nil
}

// askReindex has the index made anew from the store.
func (b *Broker) askReindex() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew()
	return nil
}

// renew has the index made anew. Called with mu held.
func (b *Broker) renew() {
	b.reindex = true
	close(b.again)
	b.again = make(chan struct{})
}

// stop ends what runs and begins nothing by itself until start; what is asked
// for is still done.
func (b *Broker) stop(yes bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = yes
	for _, s := range b.sources {
		if yes && s.cancel != nil {
			s.cancel()
		}
	}
	b.poke()
	return nil
}

// busy tells whether there is work under way or asked for. Called with mu held.
func (b *Broker) busy() bool {
	for _, s := range b.sources {
		if s.cancel != nil || s.asked {
			return true
		}
	}
	return b.gcRuns || b.gcAsked || b.reindex || b.rebuilding
}
