package broker

import (
	"context"
	"io"

	"harvest/fs/ndb"
	"harvest/index/query"
)

// Who walks to q/QUERY mostly wants the first lines soon. So what is asked then is
// a page, which an index finds without ranking all that match; the rest is ranked
// when somebody reads on behind the page, or asks for what depends on it: status,
// the names of the results, why. What was read before stays the beginning of it.

// earlyHits is how many hits are ranked at once.
const earlyHits = 100

// A rest is what makes an answer of its first hits.
type rest struct {
	sem   chan struct{} // held by who asks
	whole *answer       // under sem; nil before
}

// earlyAnswer is the answer to a query in the plain manner, or the beginning of it.
func (b *Broker) earlyAnswer(ctx context.Context, q query.Node) (*answer, error) {
	if b.front.has() {
		return b.answer(ctx, q, plain(), 1)
	}
	return b.logged(ctx, askedFor(q), func() (*answer, error) {
		m := plain()
		m.limit = earlyHits
		a, err := b.find(ctx, q, m, 1, false)
		if err != nil {
			return nil, err
		}
		if a == nil || a.cut != "" {
			return b.ownAnswer(ctx, q, plain(), 1)
		}
		a.manner = plain()
		a.total, a.about = len(a.hits), false
		if a.more = len(a.hits) == earlyHits; a.more {
			a.rest = &rest{sem: make(chan struct{}, 1)}
		}
		return a, nil
	})
}

// full is the whole of an answer.
func (a *answer) full(ctx context.Context) (*answer, error) {
	if a.rest == nil {
		return a, nil
	}
	select {
	case a.rest.sem <- struct{}{}:
		defer func() { <-a.rest.sem }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.rest.whole != nil {
		return a.rest.whole, nil
	}
	w, err := a.b.ownAnswer(ctx, a.q, a.manner, 1)
	if err != nil {
		a.b.tell(ctx, logReturn, a.asked(), ndb.Of("err", err))
		return nil, err
	}
	w.begin(a.hits)
	w.took += a.took
	a.rest.whole = w
	a.b.queries.completed(a, w)
	return w, nil
}

// begin has an answer begin with hits that were shown already: the index may have
// moved since, and equals may stand otherwise.
func (a *answer) begin(first []hit) {
	shown := make(map[[16]byte]bool, len(first))
	for _, h := range first {
		shown[h.oid] = true
	}
	hits := append(make([]hit, 0, len(a.hits)+len(first)), first...)
	for _, h := range a.hits {
		if !shown[h.oid] {
			hits = append(hits, h)
		}
	}
	a.total += len(hits) - len(a.hits)
	a.hits = hits
}

// completed puts a whole answer in the place of its beginning.
func (s *queries) completed(a, w *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		if r.answer == a {
			r.answer = w
		}
	}
	s.tally.hits += int64(w.total - a.total)
	s.trim(w)
}

// reading is what reads an answer from its beginning on, by a file of a page.
func (a *answer) reading(write func(page) produce) func() produce {
	return func() produce {
		return func(ctx context.Context, w io.Writer) error {
			first := a.all()
			if err := write(first)(ctx, w); err != nil || a.rest == nil {
				return err
			}
			all, err := a.full(ctx)
			if err != nil {
				return err
			}
			next := all.all()
			next.from = first.to
			return write(next)(ctx, w)
		}
	}
}
