package broker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

// An answer is what a query found, once and for all: hits are in the order
// asked for, all of them or, with a limit, those of a page. Objects may leave
// the store while it is read.
type answer struct {
	b      *Broker
	q      query.Node // nil if like is asked for
	like   store.OID
	manner manner
	first  int // hits before the first of these
	hits   []hit
	total  int
	more   bool   // total is how many are known; there may be more
	cut    string // the limit of the index that left hits unfound
	plan   []string
	took   time.Duration
	time   time.Time
	mark   string // of the index

	// Of a front end: where each hit is, and which back ends are missing in it.
	far     []farHit
	missing []string
	routed  []string // see chosen
	back    int      // back ends that were asked

	whole    []hit                   // all hits, where some are not shown
	hidden   int                     // hits that are not shown, as far as they were looked at
	near     map[store.OID][]nearHit // those of them that are near one that is
	compared int                     // hits with one another
	about    bool                    // total may count some that are not shown
	rest     *rest                   // of an answer that has its first hits only, or nil
}

type hit struct {
	oid   store.OID
	score float32
}

// A liker is an index that finds documents like another, and that one too.
type liker interface {
	Similar(ctx context.Context, fields []index.Field, opt index.Options) (index.Results, error)
}

// errAlike says that an index is no liker.
var errAlike = fmt.Errorf("this index does not say what is alike: %w", iofs.ErrInvalid)

// search asks the index for what the answer is about; one that is opened anew
// meanwhile is asked again. For a page an index that reads text to count does
// not count the rest.
func (a *answer) search(ctx context.Context, opt index.Options) (r index.Results, mark string, err error) {
	count := opt.Count
	ask := func(h *held) (index.Results, error) {
		opt.Count = count && (opt.Limit == 0 || !h.files.reads())
		return h.Search(ctx, a.manner.ask(a.q), opt)
	}
	if a.q == nil {
		body, _, err := a.b.store.Get(a.like)
		if err != nil {
			return r, "", err
		}
		o, _, err := soif.Parse(body, soif.Limits{})
		if err != nil {
			return r, "", err
		}
		ask = func(h *held) (index.Results, error) {
			return h.Similar(ctx, document(a.like, &o).Fields, opt)
		}
	}
	l := a.b.limitsOf(ctx)
	cut := l.bound(&opt)
	a.b.settle(ctx)
	err = a.b.using(func(h *held) (err error) {
		mark = h.Mark()
		r, err = ask(h)
		return err
	})
	cut(&r)
	return r, mark, err
}

// answerPage is answer for a page that there may be no more: for the last one then.
func (b *Broker) answerPage(ctx context.Context, q query.Node, m manner, page int) (*answer, int, error) {
	all, mark := -1, ""
	for {
		a, err := b.answer(ctx, q, m, page)
		if err != nil {
			return nil, page, err
		}
		if all >= 0 && a.mark == mark { // who looked behind the last hit has counted them
			a.total, a.more = all, false
		}
		if page == 1 || page <= a.pages() && !a.past() {
			return a, page, nil
		}
		if !a.more && a.cut == "" {
			all, mark = a.total, a.mark
		}
		page = min(page-1, a.pages()) // the index may shrink again meanwhile
	}
}

// past tells that a page was asked for which begins after the last hit.
func (a *answer) past() bool { return a.first > 0 && len(a.hits) == 0 }

// answer runs a query for a page, counted from 1, of as many hits as the manner
// says.
func (b *Broker) answer(ctx context.Context, q query.Node, m manner, page int) (*answer, error) {
	return b.logged(ctx, askedFor(q), func() (*answer, error) {
		if b.front.has() {
			return b.frontAnswer(ctx, q, m, page)
		}
		return b.ownAnswer(ctx, q, m, page)
	})
}

// ownAnswer is answer from this Broker's own objects.
func (b *Broker) ownAnswer(ctx context.Context, q query.Node, m manner, page int) (*answer, error) {
	return b.find(ctx, q, m, page, true)
}

// find is ownAnswer, or, if it need not count what is on no page, sooner; nil
// then if what is on the page cannot be told without all the rest.
func (b *Broker) find(ctx context.Context, q query.Node, m manner, page int, count bool) (*answer, error) {
	begin := time.Now()
	opt, left, err := b.asking(ctx, q, m)
	if err != nil {
		return nil, err
	}
	if opt.Count = count; !count && opt.External != nil {
		return nil, nil
	}
	if m.limit > 0 && !m.byStore() {
		opt.Offset, opt.Limit = (page-1)*m.limit, m.limit
	}
	a := &answer{b: b, q: q, manner: m, first: opt.Offset, time: begin}
	b.settle(ctx)
	if f := b.folds(m); !f.none() {
		err = a.fold(ctx, opt, f)
	} else {
		var r index.Results
		var mark string
		if r, mark, err = a.search(ctx, opt); err == nil {
			a.take(r, mark)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, word := range left {
		a.plan = append(a.plan, word+": left out")
	}
	if m.byStore() {
		if err := a.order(ctx); err != nil {
			return nil, err
		}
	}
	a.done()
	return a, nil
}

// take takes what the index gave.
func (a *answer) take(r index.Results, mark string) {
	a.total, a.cut, a.plan, a.mark = r.Total, r.Cut, r.Plan, mark
	a.more = r.AtLeast && r.Cut == ""
	a.hits = make([]hit, len(r.Hits))
	for i, h := range r.Hits {
		a.hits[i] = hit{store.OID(h.ID), float32(h.Score)}
	}
}

func (a *answer) done() {
	a.took = time.Since(a.time)
}

// alike is how many objects like another are shown.
const alike = 100

// similar finds the objects that are most like another.
func (b *Broker) similar(ctx context.Context, oid store.OID) (*answer, error) {
	return b.logged(ctx, ndb.Of("similar", oid), func() (*answer, error) { return b.mostLike(ctx, oid) })
}

func (b *Broker) mostLike(ctx context.Context, oid store.OID) (*answer, error) {
	a := &answer{b: b, like: oid, manner: plain(), time: time.Now()}
	opt, err := b.options(ctx, nil, a.manner)
	if err != nil {
		return nil, err
	}
	opt.Limit = alike + 1
	b.settle(ctx)
	f := b.folds(a.manner)
	if !f.none() {
		opt.Limit += alike / 2
	}
	r, mark, err := a.search(ctx, opt)
	if err != nil {
		return nil, err
	}
	a.take(r, mark)
	if err := a.foldAlike(f); err != nil {
		return nil, err
	}
	a.hits = a.hits[:min(alike, len(a.hits))]
	a.total, a.more = len(a.hits), false
	a.done()
	return a, nil
}

// pages is how many there are; if there may be more hits than are known, the one
// behind this counts.
func (a *answer) pages() int {
	if a.manner.limit == 0 {
		return 1
	}
	n := max(1, (a.total+a.manner.limit-1)/a.manner.limit)
	if a.more {
		n = max(n, a.first/a.manner.limit+2)
	}
	return n
}

// has tells whether the hits of a page are there.
func (a *answer) has(page int) bool {
	from, to := a.span(page)
	if a.more && to-from < a.manner.limit { // others may be there
		return false
	}
	return a.first <= from && to <= a.first+len(a.hits)
}

// span is the hits of a page.
func (a *answer) span(page int) (from, to int) {
	if a.manner.limit == 0 {
		return 0, a.total
	}
	from = min((page-1)*a.manner.limit, a.total)
	return from, min(from+a.manner.limit, a.total)
}

// order puts hits that are not to be ranked by score in order, at the cost of
// a look at each in the store, all in one go.
func (a *answer) order(ctx context.Context) error {
	type key struct {
		hit
		url     string
		updated time.Time
	}
	keys, oids := make([]key, 0, len(a.hits)), make([]store.OID, len(a.hits))
	for i, h := range a.hits {
		oids[i] = h.oid
	}
	err := a.b.store.Entries(ctx, oids, func(i int, e *store.Entry) bool {
		keys = append(keys, key{a.hits[i], e.URL, e.Updated})
		return true
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(keys, func(x, y key) int {
		if a.manner.rank == rankUpdated {
			if c := y.updated.Compare(x.updated); c != 0 {
				return c
			}
		}
		return cmp.Compare(x.url, y.url)
	})
	a.hits = a.hits[:len(keys)]
	for i, k := range keys {
		a.hits[i] = k.hit
	}
	a.total = len(a.hits)
	return nil
}

// width is how many digits the numbers of the results have.
func (a *answer) width() int { return max(3, len(strconv.Itoa(a.total))) }

// A page is the part of an answer that is shown, and how.
type page struct {
	*answer           // nil before the first query
	from, to int      // all hits counted
	fields   []string // attributes that hits have after the title
}

// shown is a page of the answer, as far as its hits are there.
func (a *answer) shown(n int, fields []string) page {
	p := page{answer: a, fields: fields}
	p.from, p.to = a.span(n)
	p.from = min(max(p.from, a.first), a.first+len(a.hits))
	p.to = max(min(p.to, a.first+len(a.hits)), p.from)
	return p
}

func (a *answer) all() page { return a.shown(1, nil) }

// hit is hit i of the page, all hits counted from 0.
func (p page) hit(i int) hit { return p.hits[i-p.first] }

// each gives the objects of the page that are still there.
func (p page) each(ctx context.Context, yield func(i int, e store.Entry, o *soif.Object) error) error {
	for i := p.from; i < p.to; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, o, err := p.object(ctx, i)
		if errors.Is(err, iofs.ErrNotExist) {
			continue // deleted since the query
		}
		if err == nil {
			err = yield(i, e, &o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// object reads a hit, in the turn of who reads the page: that of one who reads
// very many shall not keep others from asking. Nothing is held while the reader
// is waited for.
func (p page) object(ctx context.Context, i int) (e store.Entry, o soif.Object, err error) {
	if h := p.farHit(i); h != nil && h.from != nil {
		return h.object(ctx)
	}
	err = p.b.inLane(ctx, func(context.Context) error {
		body, entry, err := p.b.store.Get(p.hit(i).oid)
		if err != nil {
			return err
		}
		if o, _, err = soif.Parse(body, soif.Limits{}); err != nil {
			return fmt.Errorf("object %s: %w", p.hit(i).oid, err)
		}
		e = entry
		return nil
	})
	return e, o, err
}

// write runs body with a buffer before w.
func (p page) write(w io.Writer, body func(w *bufio.Writer) error) error {
	if p.answer == nil {
		return nil
	}
	buf := bufio.NewWriterSize(w, 16<<10)
	if err := body(buf); err != nil {
		return err
	}
	return buf.Flush()
}

// line is the line of a hit: rank, score, OID, type, URL, title, fields.
func (p page) line(i int, e store.Entry, o *soif.Object) string {
	h := p.hit(i)
	cols := []string{strconv.Itoa(i + 1), fmt.Sprintf("%.3f", h.score), h.oid.String(), or(e.Type, o.Type), o.URL, o.Text("Title")}
	for _, name := range p.fields {
		if strings.EqualFold(name, dupField) {
			cols = append(cols, p.doubled(h.oid))
			continue
		}
		cols = append(cols, joined(o, name))
	}
	for i, c := range cols {
		cols[i] = oneLine(c, 500)
	}
	return strings.Join(cols, "\t") + "\n"
}

// joined are the values of an attribute.
func joined(o *soif.Object, name string) string {
	var values []string
	for v := range o.Values(name) {
		values = append(values, string(v))
	}
	return strings.Join(values, "; ")
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// oneLine is text as a field of a line, cut to about max bytes.
func oneLine(text string, max int) string {
	if len(text) > max {
		text = text[:max]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\ufffd")), " ")
}

func (p page) writeHits(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		if p.far != nil {
			return p.writeFar(ctx, w)
		}
		return p.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
			w.WriteString(p.line(i, e, o))
			if n := i + 1 - p.from; n&(n-1) == 0 { // who reads the first lines need not wait for those that fill a buffer
				return w.Flush()
			}
			return nil
		})
	})
}

// How much a summary shows of a hit.
const (
	summaryLines = 10
	summaryBytes = 200 // of a line
)

// lines gives the function that finds the lines that match; of objects that
// are like another, none does.
func (p page) lines(ctx context.Context) (func(fields []index.Field, yield func(index.Line) bool), error) {
	if p.q == nil {
		return func([]index.Field, func(index.Line) bool) {}, nil
	}
	m, err := p.matcher(ctx)
	if err != nil {
		return nil, err
	}
	return func(fields []index.Field, yield func(index.Line) bool) { m.Lines(fields, summaryBytes, yield) }, nil
}

// writeSummary writes each hit with its matching lines, indented.
func (p page) writeSummary(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		lines, err := p.lines(ctx)
		if err != nil {
			return err
		}
		p.tellMissing(w)
		return p.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
			w.WriteString(p.line(i, e, o))
			n := 0
			lines(document(p.hit(i).oid, o).Fields, func(l index.Line) bool {
				if n++; n <= summaryLines {
					fmt.Fprintf(w, "\t%s\t%s\n", l.Attr, oneLine(l.Text, summaryBytes))
				}
				return true
			})
			if n > summaryLines {
				fmt.Fprintf(w, "\t…\t%d more lines\n", n-summaryLines)
			}
			list, err := p.doubles(ctx, p.hit(i).oid)
			if err != nil {
				return err
			}
			for _, d := range list {
				fmt.Fprintf(w, "\t%s\t%s\n", dupField, oneLine(d.url, 500))
			}
			return w.Flush()
		})
	})
}

// writeSOIF writes the objects themselves.
func (p page) writeSOIF(ctx context.Context, w io.Writer) error {
	if p.answer == nil {
		return nil
	}
	for i, h := range p.hits[p.from-p.first : p.to-p.first] {
		if err := ctx.Err(); err != nil {
			return err
		}
		body, err := p.body(ctx, p.from+i, h.oid)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
	}
	return nil
}

// writeWhy asks again, this time for reasons, and writes them for the page's
// hits. What has left the index since has none.
func (p page) writeWhy(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		if p.far != nil {
			return p.writeFarWhy(ctx, w)
		}
		opt, err := p.b.options(ctx, p.q, p.manner)
		if err != nil {
			return err
		}
		opt.Why = true
		switch {
		case p.from == p.to:
			return nil
		case p.q == nil:
			opt.Limit = alike + 1
		case !p.manner.byStore():
			opt.Offset, opt.Limit = p.from, p.to-p.from
		}
		r, _, err := p.search(ctx, opt)
		if err != nil {
			return err
		}
		why := make(map[index.ID]index.Hit, p.to-p.from)
		for _, h := range r.Hits {
			why[h.ID] = h
		}
		for i := p.from; i < p.to; i++ {
			h, ok := why[index.ID(p.hit(i).oid)]
			if !ok {
				continue
			}
			fmt.Fprintf(w, "%d\t%.3f\t%s\n", i+1, h.Score, p.hit(i).oid)
			for _, part := range h.Why {
				pairs := []ndb.Pair{ndb.Of("query", part.Query), ndb.Of("count", part.Count)}
				if part.Attr != "" {
					pairs = append(pairs, ndb.Of("attribute", part.Attr), ndb.Of("weight", part.Weight))
				} else {
					pairs = append(pairs, ndb.Of("objects", part.Docs), ndb.Of("score", fmt.Sprintf("%.3f", part.Score)))
				}
				fmt.Fprintf(w, "\t%s\n", ndb.Format(pairs...))
			}
		}
		return nil
	})
}

// How many words are suggested for another.
const suggestions = 5

// writeSuggest writes words of the index that are near in spelling to those of
// the query that find nothing: asked again, as writeWhy does.
func (p page) writeSuggest(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		if p.far != nil {
			return p.writeFarSuggest(ctx, w)
		}
		seen := make(map[string]bool)
		for _, word := range plainWords(nil, p.q) {
			folded := string(index.Fold(nil, word.Text))
			if seen[folded] || len(folded) > index.MaxWord {
				continue
			}
			seen[folded] = true
			list, err := p.b.suggest(ctx, word, p.manner)
			if err != nil {
				return err
			}
			for _, s := range list {
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", word.Text, s.Word, s.Errors, s.Docs)
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

// plainWords appends the words that a query wants found.
func plainWords(list []query.Word, q query.Node) []query.Word {
	var parts []query.Node
	switch q := q.(type) {
	case query.Word:
		return append(list, q)
	case query.Attr:
		parts = []query.Node{q.Value}
	case query.And:
		parts = q
	case query.Or:
		parts = q
	case query.Bag:
		parts = q
	case query.Near:
		parts = q.Nodes
	}
	for _, n := range parts {
		list = plainWords(list, n)
	}
	return list
}

// suggest gives words like one that no object has, in whatever attribute and
// case: as many errors as the word has letters make any other of it.
func (b *Broker) suggest(ctx context.Context, word query.Word, m manner) (list []index.Suggestion, err error) {
	m.rank, m.feedback, m.cased = rankScore, 0, false
	opt, err := b.options(ctx, word, m)
	if err != nil {
		return nil, err
	}
	opt.Rank, opt.Limit, opt.Weight, opt.Plan = index.RankNone, 1, nil, false
	err = b.using(func(h *held) error {
		r, err := h.Search(ctx, m.ask(word), opt)
		if err == nil && len(r.Hits) == 0 {
			list, err = h.Suggest(ctx, word.Text, suggestions)
		}
		return err
	})
	letters := utf8.RuneCountInString(word.Text)
	return slices.DeleteFunc(list, func(s index.Suggestion) bool { return s.Errors >= letters }), err
}

// plan says what the query is and what the index did.
func (p page) planText() string {
	if p.answer == nil {
		return ""
	}
	return p.asked().Value + "\n" + strings.Join(p.plan, "\n") + "\n"
}

// asked is what the answer is about.
func (a *answer) asked() ndb.Pair {
	if a.q == nil {
		return ndb.Of("similar", a.like)
	}
	return ndb.Of("query", a.q)
}

// pairs are the lines of status about the answer.
func (p page) pairs() []ndb.Pair {
	if p.answer == nil {
		return []ndb.Pair{ndb.Of("query", ""), ndb.Of("hits", 0)}
	}
	pairs := []ndb.Pair{p.asked(), ndb.Of("hits", p.total)}
	if p.more {
		pairs = append(pairs, ndb.Of("more", "yes"))
	}
	pairs = append(pairs, p.foldPairs()...)
	pairs = append(pairs, ndb.Of("first", min(p.from+1, p.to)), ndb.Of("last", p.to))
	pairs = append(pairs, p.manner.pairs()...)
	pairs = append(pairs, ndb.Of("took", p.took.Round(time.Microsecond)), ndb.Of("time", p.time), ndb.Of("index", p.mark))
	if p.cut != "" {
		pairs = append(pairs, ndb.Of("cut", p.cut))
	}
	if p.back > 0 {
		pairs = append(pairs, ndb.Of("backends", fmt.Sprintf("%d/%d", p.back-len(p.missing), p.back)))
	}
	for _, who := range p.missing {
		pairs = append(pairs, ndb.Of("missing", who))
	}
	return pairs
}

// lines are the pairs of a status, a line each; what is not set has none.
func lines(pairs []ndb.Pair) string {
	var t strings.Builder
	for _, p := range pairs {
		if p.Value != "" {
			t.WriteString(ndb.Format(p) + "\n")
		}
	}
	return t.String()
}
