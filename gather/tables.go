package gather

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/gather/crawl"
	"harvest/gather/store"
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

// documentStep is how many documents are looked up at once for their places.
const documentStep = 2048

// writeDocuments is the table of documents.
func (g *Gatherer) writeDocuments(ctx context.Context, w *bufio.Writer) error {
	part := make([]crawl.Doc, 0, documentStep)
	for d, err := range g.db.Documents(ctx, "") {
		if err != nil {
			return err
		}
		if part = append(part, d); len(part) < documentStep {
			continue
		}
		if err := g.writeSome(ctx, w, part); err != nil {
			return err
		}
		part = part[:0]
	}
	return g.writeSome(ctx, w, part)
}

// writeSome writes rows of documents.
func (g *Gatherer) writeSome(ctx context.Context, w *bufio.Writer, part []crawl.Doc) error {
	oids := make([]store.OID, len(part))
	for i := range part {
		if part[i].State == crawl.Stored {
			oids[i] = g.oid(part[i].URL)
		}
	}
	places, err := g.places(ctx, part, oids)
	if err != nil {
		return err
	}
	for i := range part {
		oid := ""
		if part[i].State == crawl.Stored {
			oid = oids[i].String()
		}
		if err := writeDocument(w, &part[i], oid, places[i]); err != nil {
			return err
		}
	}
	return nil
}

// places are the stores in which the objects of documents are: "" for what is
// not stored, or was removed by hand.
func (g *Gatherer) places(ctx context.Context, part []crawl.Doc, oids []store.OID) ([]string, error) {
	places := make([]string, len(part))
	left := make([]int, 0, len(part))
	for i := range part {
		if part[i].State == crawl.Stored {
			left = append(left, i)
		}
	}
	pool, err := g.pool(false)
	if err != nil {
		return nil, err
	}
	for _, in := range []struct {
		name string
		*store.Store
	}{{"selected", g.store}, {"unselected", pool}} {
		if in.Store == nil {
			continue
		}
		some := make([]store.OID, len(left))
		for n, i := range left {
			some[n] = oids[i]
		}
		err := in.Entries(ctx, some, func(n int, _ *store.Entry) bool {
			places[left[n]] = in.name
			return true
		})
		if err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(i int) bool { return places[i] != "" })
	}
	return places, nil
}

func writeDocument(w *bufio.Writer, d *crawl.Doc, oid, place string) error {
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
	return row(w, d.URL, d.State.String(), status, size, when(d.Checked),
		strconv.Itoa(d.Depth), strconv.Itoa(d.Fails), oid, oneLine(d.Why),
		oneLine(modified), md5, strconv.Itoa(d.InLinks), strconv.Itoa(d.Submitted), place)
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

// writeLinks is the table of links.
func (g *Gatherer) writeLinks(ctx context.Context, w *bufio.Writer) error {
	for l, err := range g.db.References(ctx) {
		if err == nil {
			err = row(w, l.From, l.To)
		}
		if err != nil {
			return err
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
	for _, ids := range same {
		gr := group{g, c, ids}
		best, err := gr.winners()
		if err != nil {
			return err
		}
		var bad error
		err = gr.each(func(r *rival) bool {
			if b := best[r.size]; b != nil && b.id != r.id {
				bad = row(w, r.url, b.url, strconv.Itoa(r.score.Sum()), strconv.Itoa(b.score.Sum()), b.score.Over(r.score))
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
	for _, l := range top {
		if err := row(w, g.db.Server(l.Server).Origin, strconv.Itoa(l.From), strconv.Itoa(l.Links)); err != nil {
			return err
		}
	}
	return nil
}
