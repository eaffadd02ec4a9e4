package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// What is done to a collection when a visit has ended, a stage each, in the
// order of the first Harvest's programs. None of them takes the collection away
// from readers: each is a change like any other, or a file put in place of one.
var stageNames = [...]string{"merge", "validate", "expire", "select", "index", "compress", "statistics"}

// stages are what status tells of them.
type stages struct {
	mu      sync.Mutex
	now     string // the stage that runs
	done    [len(stageNames)]stageResult
	looked  int64 // objects that came since the last visit, and of them
	bad     int64 // those that readers would refuse
	invalid int64 // the same until then
	sum     store.Stats
}

type stageResult struct {
	count int64
	took  time.Duration
	at    time.Time
}

// make makes the visit, and then the collection what readers are to have.
func (v *visit) make(ctx context.Context) error {
	g := v.g
	roots, err := v.conf.sources(ctx, v.unlisted)
	if err != nil {
		return err
	}
	v.plan.Roots = roots
	if err := v.archive(ctx); err != nil {
		return err
	}
	if v.kept {
		defer g.archive.end()
	}
	if g.reach != nil {
		if err := g.reach.begin(v.conf); err != nil {
			return err
		}
	}
	err = g.db.Visit(ctx, v.plan, g.rt, v, &v.counts)
	if g.reach != nil {
		g.reach.end()
	}
	if ferr := g.archive.finish(); ferr != nil {
		g.lg.Error("archive", "err", ferr)
	}
	if err == nil && len(v.anew) > 0 {
		err = v.again(ctx)
	}
	if err == nil && !v.kept { // what is not kept is not gone
		err = v.orphans(ctx)
	}
	if err != nil {
		return err
	}
	return v.stages(ctx)
}

// archive has the visit made from WARC files, if it is to be. Those of the Gatherer
// itself need not be there: then only files are read.
func (v *visit) archive(ctx context.Context) error {
	a, path := v.g.archive, v.conf.export.replay
	if !v.kept {
		return a.begin(ctx, path)
	}
	for i := range v.plan.Roots {
		v.plan.Roots[i].Delay = 0 // nobody is asked
	}
	if path != "" {
		return a.begin(ctx, path)
	}
	if err := a.begin(ctx, a.folder()); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

// stages runs them.
func (v *visit) stages(ctx context.Context) error {
	g := v.g
	for i, run := range [...]func(context.Context) (int64, error){
		g.mergeStage, g.validateStage, v.expire, g.selectStage, g.indexStage, g.compressStage, g.statisticsStage,
	} {
		g.stage.begin(stageNames[i])
		began := time.Now()
		n, err := run(ctx)
		g.stage.end(i, stageResult{n, time.Since(began), time.Now()}, err == nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stages) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = name
}

func (s *stages) end(i int, r stageResult, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = ""
	if ok {
		s.done[i] = r
	}
}

// mergeStage merges what people have written where that has not been done.
func (g *Gatherer) mergeStage(ctx context.Context) (int64, error) {
	return g.manual.n.Load(), g.manual.mend(ctx)
}

// validate looks at what is put into the collection: that it is SOIF the store
// sees to; an object that readers would refuse all the same is told of. It is
// looked at here, where it is in memory, and not read again when the visit ends.
func (g *Gatherer) validate(changes []store.Change) {
	n, bad := int64(0), int64(0)
	for i := range changes {
		if changes[i].Op != soif.Update {
			continue
		}
		n++
		if !bytes.Contains(changes[i].Body, updateTime) {
			bad++
			g.journal.event("invalid", ndb.Of("url", changes[i].URL), ndb.Of("reason", "it has no Update-Time"))
		}
	}
	g.stage.mu.Lock()
	defer g.stage.mu.Unlock()
	g.stage.looked += n
	g.stage.bad += bad
}

// updateTime begins the attribute that every object has to have.
var updateTime = []byte("\nUpdate-Time{")

// validateStage sums up what validate has seen since the last visit.
func (g *Gatherer) validateStage(context.Context) (n int64, err error) {
	s := &g.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	n, s.invalid = s.looked, s.bad
	s.looked, s.bad = 0, 0
	return n, nil
}

// selectStage makes the collection what the configuration says; see reselect.go.
func (g *Gatherer) selectStage(ctx context.Context) (int64, error) {
	err := g.reselect(ctx)
	return g.store.Count(), err
}

// indexStage waits until all that was changed is in the index.
func (g *Gatherer) indexStage(context.Context) (int64, error) {
	if err := g.store.Sync(); err != nil {
		return 0, err
	}
	st, err := g.store.Stats()
	return st.Objects, err
}

// compressStage packs what is left small or half dead, when there is enough of it
// to be worth the writing, and brings the copies that readers are sent up to
// date. Damage that is in the way is told, and everything else goes on.
func (g *Gatherer) compressStage(ctx context.Context) (int64, error) {
	st, err := g.store.Stats()
	if err != nil {
		return 0, err
	}
	if full := st.Bytes / (32 << 10); st.Dead > st.Bytes/16 || st.Frames > 2*full+64 {
		if err := g.store.Compact(ctx); err != nil && ctx.Err() == nil {
			g.lg.Error("compact", "err", err)
		}
	}
	return g.store.Prepare(ctx)
}

func (g *Gatherer) statisticsStage(context.Context) (int64, error) {
	st, err := g.store.Stats()
	g.stage.mu.Lock()
	defer g.stage.mu.Unlock()
	g.stage.sum = st
	return st.Objects, err
}

// figures are what status tells of the stages.
func (s *stages) figures() (all []ndb.Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != "" {
		all = append(all, ndb.Of("stage", s.now))
	}
	for i, r := range s.done {
		if r.at.IsZero() {
			continue
		}
		all = append(all, ndb.Of("stage-"+stageNames[i], fmt.Sprintf("%d in %s", r.count, r.took.Round(time.Millisecond))))
	}
	if s.done[1].at.IsZero() {
		return all
	}
	return append(all, ndb.Of("invalid", s.invalid), ndb.Of("bytes", s.sum.Bytes), ndb.Of("disk", s.sum.Disk))
}
