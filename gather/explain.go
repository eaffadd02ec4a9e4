package gather

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// explain tells, of one URL, what is known and what decided: a line each.
func (g *Gatherer) explain(ctx context.Context, raw string) (string, error) {
	u, err := crawl.Canonical(raw)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	c := g.conf
	g.mu.Unlock()
	e := &explaining{g: g, c: c, url: u}
	e.line(ndb.Of("url", u))
	lines, err := g.db.Explain(g.newVisit(c).plan, u)
	if err != nil {
		return "", err
	}
	for _, l := range lines {
		e.line(l...)
	}
	d, err := g.db.Lookup(u)
	if errors.Is(err, iofs.ErrNotExist) {
		if err := e.member(); err != nil {
			return "", err
		}
		return e.b.String(), nil
	}
	if err != nil {
		return "", err
	}
	err = e.document(ctx, &d)
	return e.b.String(), err
}

type explaining struct {
	g   *Gatherer
	c   *config
	url string
	b   strings.Builder
}

func (e *explaining) line(pairs ...ndb.Pair) { e.b.WriteString(ndb.Format(pairs...) + "\n") }

// member tells of a URL that is of no document: it may be that of what is in one.
func (e *explaining) member() error {
	c, ok, err := e.g.containerOf(e.url)
	if err != nil || !ok {
		e.line(ndb.Of("state", "unknown"))
		return err
	}
	here, err := holds(e.g.store, e.g.oid(e.url))
	if err != nil {
		return err
	}
	pool, err := e.g.pool(false)
	if err != nil {
		return err
	}
	there, err := holds(pool, e.g.oid(e.url))
	state, place := "unknown", ""
	switch {
	case here:
		state, place = "stored", "selected"
	case there:
		state, place = "stored", "unselected"
	}
	about := []ndb.Pair{ndb.Of("state", state), ndb.Of("container", c.URL)}
	if place != "" {
		about = append(about, ndb.Of("place", place))
	}
	e.line(about...)
	return err
}

// document tells of one that is known.
func (e *explaining) document(ctx context.Context, d *crawl.Doc) error {
	about := []ndb.Pair{ndb.Of("state", d.State), ndb.Of("depth", d.Depth)}
	if d.Status != 0 {
		about = append(about, ndb.Of("status", d.Status))
	}
	if !d.Checked.IsZero() {
		about = append(about, ndb.Of("checked", d.Checked))
	}
	if d.Queued() {
		about = append(about, ndb.Of("queued", true))
	}
	if d.Why != "" {
		about = append(about, ndb.Of("reason", oneLine(d.Why)))
	}
	e.line(about...)
	if d.State != crawl.Stored {
		return nil
	}
	if err := e.trace(d); err != nil {
		return err
	}
	best, n, err := e.rivals(d)
	if err != nil {
		return err
	}
	mine := rivalOf(d)
	e.line(ndb.Of("score", mine.score.Sum()), ndb.Of("parts", mine.score), ndb.Of("inbound", d.Inbound), ndb.Of("inlinks", d.InLinks), ndb.Of("submissions", d.Submitted))
	if n > 1 {
		e.copies(&mine, best, n, d)
	}
	return e.selection(ctx, d, &mine)
}

// trace tells how its object came about, a line a step.
func (e *explaining) trace(d *crawl.Doc) error {
	note, err := e.g.db.Note(d.URL)
	for l := range strings.Lines(note) {
		f := strings.Split(strings.TrimSuffix(l, "\n"), "\t")
		if len(f) != 4 || f[0] == "type" {
			continue
		}
		about := []ndb.Pair{ndb.Of(f[0], f[1]), ndb.Of("by", f[2])}
		if f[3] != "" {
			about = append(about, ndb.Of("member", f[3]))
		}
		e.line(about...)
	}
	return err
}

// rivals finds the best of a document's group, and how many are in it.
func (e *explaining) rivals(d *crawl.Doc) (best *rival, n int, err error) {
	var ids []crawl.DocID
	if d.MD5 != [16]byte{} && e.c.drops(d.URL) {
		if ids, err = e.g.db.Same(d.MD5); err != nil {
			return nil, 0, err
		}
	}
	gr := group{e.g, e.c, ids}
	err = gr.each(func(r *rival) bool {
		if r.size == d.Size {
			if n++; best == nil || r.beats(best) {
				best = r
			}
		}
		return true
	})
	return best, n, err
}

func (e *explaining) copies(mine, best *rival, n int, d *crawl.Doc) {
	about := []ndb.Pair{ndb.Of("copies", n), ndb.Of("md5", hex.EncodeToString(d.MD5[:]))}
	if best.id == mine.id {
		e.line(append(about, ndb.Of("kept", "this"))...)
		return
	}
	e.line(append(about, ndb.Of("kept", best.url), ndb.Of("score", best.score.Sum()), ndb.Of("for", best.score.Over(mine.score)))...)
}

// selection tells which line decides.
func (e *explaining) selection(ctx context.Context, d *crawl.Doc, mine *rival) error {
	h, err := e.g.current(ctx)
	if err != nil {
		return err
	}
	place, err := e.g.placeOf(d)
	if err != nil {
		return err
	}
	if place == "" {
		place = "removed"
	}
	v, why := h.of(d), ""
	switch v {
	case copied:
		why = "a copy"
	case leftOut:
		why = e.leaves(h.sel, d)
	case beyond:
		why = fmt.Sprintf("past limit=%d, by %s", h.sel.limit, orders[h.sel.order])
	case untaken:
		why = e.misses(h.sel, d)
	default:
		why = h.sel.rule(v)
	}
	e.line(ndb.Of("place", place), ndb.Of("selected", v.in()), ndb.Of("by", why))
	return nil
}

// leaves is the line that leaves a document out.
func (e *explaining) leaves(s *selection, d *crawl.Doc) string {
	c := candidate{url: d.URL, inlinks: d.InLinks, submitted: d.Submitted}
	for _, r := range s.out {
		if r.meets(&c) {
			return r.text
		}
	}
	return "out"
}

// misses tells of what takes part in a pick and is not picked.
func (e *explaining) misses(s *selection, d *crawl.Doc) string {
	c := candidate{url: d.URL, inlinks: d.InLinks, submitted: d.Submitted}
	var near []string
	for _, r := range s.rules {
		if r.meets(&c) {
			near = append(near, r.text)
		}
	}
	if near == nil {
		return "no line takes it"
	}
	return "not picked by " + strings.Join(near, ", ")
}
