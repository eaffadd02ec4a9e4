package gather

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"
	"time"

	"harvest/gather/crawl"
)

// Tables are written as they are read off the database, a part at a time: none is
// ever held whole.

// A rowWriter writes the rows of a table.
type rowWriter = func(ctx context.Context, w *bufio.Writer) error

// table makes of what writes rows something that writes them some at a time.
func table(write rowWriter) func(context.Context, io.Writer) error {
	return func(ctx context.Context, w io.Writer) error {
		b := bufio.NewWriterSize(w, 32<<10)
		return errors.Join(write(ctx, b), b.Flush())
	}
}

// row writes one line of a table; a field that is empty is a dash.
func row(w *bufio.Writer, fields ...string) error {
	for i, f := range fields {
		if i > 0 {
			w.WriteByte('\t')
		}
		if f == "" {
			f = "-"
		}
		w.WriteString(f)
	}
	return w.WriteByte('\n')
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// oneLine makes a field of a text from outside.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// some is a number of which zero is nothing to tell.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// writeHosts is the table of servers.
func (g *Gatherer) writeHosts(ctx context.Context, w *bufio.Writer) error {
	for h, err := range g.db.Servers(ctx) {
		if err != nil {
			return err
		}
		robots := strconv.Itoa(h.Robots)
		switch {
		case h.Robots == 0 && h.Until.IsZero():
			robots = "" // nobody has asked
		case h.Robots == 0:
			robots = "unreachable"
		}
		if err := row(w, h.Origin, robots, when(h.Until), h.Delay.String(), when(h.Next),
			h.Address, strconv.Itoa(h.Documents), strconv.Itoa(h.Failures), oneLine(h.Why)); err != nil {
			return err
		}
	}
	return nil
}

// writeDocuments is the table of documents.
func (g *Gatherer) writeDocuments(ctx context.Context, w *bufio.Writer) error {
	for d, err := range g.db.Documents(ctx, "") {
		if err != nil {
			return err
		}
		oid, place := "", ""
		if d.State == crawl.Stored {
			oid = g.oid(d.URL).String()
			if place, err = g.placeOf(&d); err != nil {
				return err
			}
		}
		status, size, md5 := some(d.Status), "", ""
		if !d.Handed.IsZero() && d.Size >= 0 {
			size = strconv.FormatInt(d.Size, 10)
		}
		if d.MD5 != [16]byte{} {
			md5 = hex.EncodeToString(d.MD5[:])
		}
		modified := d.Modified
		if t, err := time.Parse(time.RFC1123, modified); err == nil {
			modified = when(t)
		}
		if err := row(w, d.URL, d.State.String(), status, size, when(d.Checked),
			strconv.Itoa(d.Depth), strconv.Itoa(d.Fails), oid, oneLine(d.Why),
			oneLine(modified), md5, strconv.Itoa(d.InLinks), strconv.Itoa(d.Submitted), place); err != nil {
			return err
		}
	}
	return nil
}

// placeOf tells in which store a document's object is.
func (g *Gatherer) placeOf(d *crawl.Doc) (string, error) {
	oid := g.oid(d.URL)
	if here, err := holds(g.store, oid); here || err != nil {
		return "selected", err
	}
	pool, err := g.pool(false)
	if err != nil {
		return "", err
	}
	if there, err := holds(pool, oid); there || err != nil {
		return "unselected", err
	}
	return "", nil // removed by hand
}

// writeQueue is the table of what is to be fetched.
func (g *Gatherer) writeQueue(ctx context.Context, w *bufio.Writer) error {
	for u, err := range g.db.Queue(ctx) {
		if err == nil {
			err = row(w, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A naming finds the URLs of documents, and remembers the last it found: the
// pages of a site link to the same few again and again.
type naming struct {
	db    *crawl.DB
	known map[crawl.DocID]string
}

// maxNamed bounds what a naming remembers.
const maxNamed = 1 << 16

func (n *naming) of(id crawl.DocID) (string, error) {
	if u, ok := n.known[id]; ok {
		return u, nil
	}
	d, err := n.db.Doc(id)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", nil // forgotten
	}
	if err != nil {
		return "", err
	}
	if len(n.known) >= maxNamed {
		clear(n.known)
	}
	n.known[id] = d.URL
	return d.URL, nil
}

// writeLinks is the table of links.
func (g *Gatherer) writeLinks(ctx context.Context, w *bufio.Writer) error {
	n := &naming{g.db, make(map[crawl.DocID]string)}
	for l, err := range g.db.Links(ctx) {
		if err != nil {
			return err
		}
		from, err := n.of(l.From)
		if err != nil {
			return err
		}
		for _, id := range l.To {
			to, err := n.of(id)
			if err != nil {
				return err
			}
			if from == "" || to == "" {
				continue
			}
			if err := row(w, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeDuplicates is the table of copies: each with the one that is kept.
func (g *Gatherer) writeDuplicates(ctx context.Context, w *bufio.Writer) error {
	g.mu.Lock()
	c := g.conf
	g.mu.Unlock()
	same, err := g.copies(ctx, c)
	if err != nil {
		return err
	}
	in, err := g.links(ctx, c, same)
	if err != nil {
		return err
	}
	for _, ids := range same {
		gr := group{g, c, in, ids}
		best, err := gr.winners()
		if err != nil {
			return err
		}
		var bad error
		err = gr.each(func(r *rival) bool {
			if b := best[r.size]; b != nil && b.id != r.id {
				bad = row(w, r.url, b.url, strconv.Itoa(r.score.sum()), strconv.Itoa(b.score.sum()), b.score.over(r.score))
			}
			return bad == nil && ctx.Err() == nil
		})
		if err = errors.Join(err, bad, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// current is what the last selection said; if there was none since the start,
// one is made.
func (g *Gatherer) current(ctx context.Context) (*choice, error) {
	g.mu.Lock()
	c, h := g.conf, g.chosen
	g.mu.Unlock()
	if h != nil {
		return h, nil
	}
	if err := lock(ctx, g.sel.selects); err != nil {
		return nil, err
	}
	defer func() { <-g.sel.selects }()
	h, err := g.choose(ctx, c)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.chosen == nil && g.conf == c {
		g.chosen = h
	}
	return h, nil
}

// writeSelected is the table of what is selected, each with the line of the
// configuration that takes it first.
func (g *Gatherer) writeSelected(ctx context.Context, w *bufio.Writer) error {
	h, err := g.current(ctx)
	if err != nil {
		return err
	}
	for d, err := range g.db.Documents(ctx, "") {
		if err != nil {
			return err
		}
		if v := h.of(&d); v.in() {
			if err := row(w, d.URL, h.sel.rule(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTop25 is the table of the servers that most others link to.
func (g *Gatherer) writeTop25(ctx context.Context, w *bufio.Writer) error {
	top, err := g.mostLinked(ctx, 25)
	if err != nil {
		return err
	}
	want := make(map[uint32]string, len(top))
	for _, l := range top {
		want[l.server] = ""
	}
	for h, err := range g.db.Servers(ctx) {
		if err != nil {
			return err
		}
		if _, ok := want[uint32(h.ID)]; ok {
			want[uint32(h.ID)] = h.Origin
		}
	}
	for _, l := range top {
		if want[l.server] == "" {
			return fmt.Errorf("server %d: %w", l.server, iofs.ErrNotExist)
		}
		if err := row(w, want[l.server], strconv.Itoa(l.from), strconv.Itoa(l.links)); err != nil {
			return err
		}
	}
	return nil
}
