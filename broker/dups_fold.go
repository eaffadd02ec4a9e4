package broker

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"

	"harvest/broker/near"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// An answer shows one object of those that are copies of one another, and, if
// that is asked for, one of those that are near: it is folded. Of copies the one
// is shown that their URLs' scores put first, among those that the query finds,
// where the first of them stands; of near ones the first.

// A folding is what of an answer is not shown.
type folding struct {
	copies bool
	near   float64 // 0: none
}

const (
	dupsHide = "hide"
	dupsShow = "show"
	nearNo   = "no"
	nearMin  = 25
)

// parseNear reads a resemblance in percent, 0 for no.
func parseNear(text string) (float64, error) {
	if text == nearNo {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < nearMin || n > 100 || text != strconv.Itoa(n) {
		return 0, fmt.Errorf("near=%s: neither no nor a number from %d to 100", text, nearMin)
	}
	return float64(n) / 100, nil
}

// folds is how an answer in this manner is folded.
func (b *Broker) folds(m manner) (f folding) {
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	show, by := m.dups, m.near
	if show == "" {
		show = c.dups
	}
	if by == "" {
		by = c.near
	}
	f.copies = show != dupsShow && b.dups.any()
	f.near, _ = parseNear(by) // as it was checked
	return f
}

func (f folding) none() bool { return f == folding{} }

// A nearHit is a hit that is not shown for another that it resembles.
type nearHit struct {
	oid store.OID
	by  float64
}

// nearMost is how many hits are compared with one another: a second's work.
const nearMost = 100_000

// foldAll folds hits, which are all there are or, with a match to ask, the first
// of them.
func (a *answer) foldAll(f folding, hits []hit, match func(store.OID) (bool, error)) ([]hit, error) {
	var err error
	if f.copies {
		if hits, err = a.foldCopies(hits, match); err != nil {
			return nil, err
		}
	}
	if f.near > 0 {
		return a.foldNear(f.near, hits)
	}
	return hits, nil
}

// foldCopies leaves one hit of each group of copies.
func (a *answer) foldCopies(hits []hit, match func(store.OID) (bool, error)) ([]hit, error) {
	found := make(map[store.OID]hit) // of those that have copies
	for _, h := range hits {
		if a.b.dups.copiesOf(h.oid) != nil {
			found[h.oid] = h
		}
	}
	if len(found) == 0 {
		return hits, nil
	}
	kept := make([]hit, 0, len(hits))
	done := make(map[*copies]bool)
	for _, h := range hits {
		g := a.b.dups.copiesOf(h.oid)
		if g != nil && done[g] {
			a.hidden++
			continue
		}
		if g != nil {
			done[g] = true
			var err error
			if h, err = best(g, h, found, match); err != nil {
				return nil, err
			}
		}
		kept = append(kept, h)
	}
	return kept, nil
}

// best is the hit to show of a group of which h came first.
func best(g *copies, h hit, found map[store.OID]hit, match func(store.OID) (bool, error)) (hit, error) {
	for _, oid := range g.oids {
		if own, ok := found[oid]; ok {
			return own, nil
		}
		if match == nil {
			continue
		}
		yes, err := match(oid)
		if err != nil {
			return h, err
		}
		if yes {
			return hit{oid, h.score}, nil
		}
	}
	return h, nil
}

// foldNear leaves one hit of those that resemble each other.
func (a *answer) foldNear(t float64, hits []hit) ([]hit, error) {
	n := min(len(hits), nearMost)
	a.compared = n
	ids := make([]near.ID, n)
	for i := range ids {
		ids[i] = near.ID(hits[i].oid)
	}
	of, by, err := a.b.dups.now().Among(ids, t)
	if err != nil {
		return nil, err
	}
	a.near = make(map[store.OID][]nearHit)
	kept := make([]hit, 0, len(hits))
	for i, h := range hits {
		if i < n && of[i] != i {
			shown := hits[of[i]].oid
			a.near[shown] = append(a.near[shown], nearHit{h.oid, by[i]})
			a.hidden++
			continue
		}
		kept = append(kept, h)
	}
	return kept, nil
}

// countMost is how many hits are looked at only to count what is not shown.
const countMost = 100_000

// fold asks for hits until there are enough for the page, or all, and folds them.
func (a *answer) fold(ctx context.Context, opt index.Options, f folding) error {
	need := 0 // all
	if a.manner.limit > 0 && !a.manner.byStore() {
		need = a.first + a.manner.limit
		opt.Offset, opt.Limit = 0, need+need/4+16
	}
	for {
		a.hidden, a.near = 0, nil
		r, mark, err := a.search(ctx, opt)
		if err != nil {
			return err
		}
		a.take(r, mark)
		all := opt.Limit == 0 || len(a.hits) < opt.Limit
		match, err := a.decider(ctx, all)
		if err != nil {
			return err
		}
		fetched := a.hits
		if a.hits, err = a.foldAll(f, fetched, match); err != nil {
			return err
		}
		switch {
		case all:
			if a.whole = nil; a.hidden > 0 {
				a.whole = fetched
			}
			a.total, a.more = len(a.hits), a.more && opt.Limit == 0
		case len(a.hits) < need:
			opt.Limit *= 2
			continue
		case !opt.Count:
		default:
			a.total -= a.hidden
			if err := a.count(ctx, opt, f); err != nil {
				return err
			}
		}
		if need > 0 {
			from := min(a.first, len(a.hits))
			a.hits = a.hits[from:min(need, len(a.hits))]
		}
		return nil
	}
}

// count counts what is shown of all hits, where they are not too many and
// copies alone are not shown; else total stays what the index found less what is
// known not to be shown.
func (a *answer) count(ctx context.Context, opt index.Options, f folding) error {
	if f.near > 0 || a.more || a.total > countMost {
		a.about = true
		return nil
	}
	opt.Limit, opt.Rank, opt.Feedback, opt.External, opt.Plan = 0, index.RankNone, 0, nil, false
	r, _, err := a.search(ctx, opt)
	if err != nil {
		return err
	}
	done := make(map[*copies]bool)
	a.hidden = 0
	for _, h := range r.Hits {
		if g := a.b.dups.copiesOf(store.OID(h.ID)); g != nil {
			if done[g] {
				a.hidden++
			}
			done[g] = true
		}
	}
	a.total = len(r.Hits) - a.hidden
	return nil
}

// decider tells of objects that were not among the hits so far whether the query
// finds them; there are none if these are all.
func (a *answer) decider(ctx context.Context, all bool) (func(store.OID) (bool, error), error) {
	if all || a.q == nil {
		return nil, nil
	}
	m, err := a.matcher(ctx)
	if err != nil {
		return nil, err
	}
	return func(oid store.OID) (bool, error) {
		body, _, err := a.b.store.Get(oid)
		if errors.Is(err, iofs.ErrNotExist) || unreadable(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		o, _, err := soif.Parse(body, soif.Limits{})
		return err == nil && m.Match(document(oid, &o).Fields), nil
	}, nil
}

// foldAlike folds what is like an object, which stands for its own copies, and
// leaves that one out.
func (a *answer) foldAlike(f folding) (err error) {
	first := slices.IndexFunc(a.hits, func(h hit) bool { return h.oid == a.like })
	if first > 0 { // which is as like itself as its copies are
		h := a.hits[first]
		a.hits = slices.Insert(slices.Delete(a.hits, first, first+1), 0, h)
	}
	own := a.b.dups.copiesOf(a.like)
	a.hits = slices.DeleteFunc(a.hits, func(h hit) bool {
		return f.copies && own != nil && h.oid != a.like && a.b.dups.copiesOf(h.oid) == own
	})
	a.hits, err = a.foldAll(f, a.hits, nil)
	a.hits = slices.DeleteFunc(a.hits, func(h hit) bool { return h.oid == a.like })
	return err
}

// dupField is what doubles are called where hits have attributes.
const dupField = "dup"

// doublesNow are those of a hit by OID alone.
func (p page) doublesNow(of store.OID) (list []double) {
	if g := p.b.dups.copiesOf(of); g != nil {
		for _, oid := range g.oids {
			if oid != of {
				list = append(list, double{oid: oid, by: 1})
			}
		}
	}
	for _, h := range p.near[of] {
		list = append(list, double{oid: h.oid, by: h.by})
	}
	return list
}

// doubled names the doubles of a hit, as an attribute of it.
func (p page) doubled(of store.OID) string {
	var names []string
	for _, d := range p.doublesNow(of) {
		names = append(names, d.oid.String())
	}
	return strings.Join(names, "; ")
}

// A double is an object that is not shown for another.
type double struct {
	oid store.OID
	by  float64 // 1: the bytes are the same, or as good as
	url string
}

// doubles are those of a hit: its copies in the Broker, whether the query finds
// them or not, and what was found near it.
func (p page) doubles(ctx context.Context, of store.OID) ([]double, error) {
	list := p.doublesNow(of)
	if len(list) == 0 {
		return nil, nil
	}
	oids := make([]store.OID, len(list))
	for i := range list {
		oids[i] = list[i].oid
	}
	err := p.b.store.Entries(ctx, oids, func(i int, e *store.Entry) bool {
		list[i].url = e.URL
		return true
	})
	return slices.DeleteFunc(list, func(d double) bool { return d.url == "" }), err // gone since
}

// foldPairs are the lines of status about what is not shown.
func (a *answer) foldPairs() (pairs []ndb.Pair) {
	if a.hidden > 0 {
		pairs = append(pairs, ndb.Of("hidden", a.hidden))
	}
	if a.about {
		pairs = append(pairs, ndb.Of("about", "yes"))
	}
	if a.compared == nearMost {
		pairs = append(pairs, ndb.Of("compared", a.compared))
	}
	return pairs
}
