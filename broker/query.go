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
	"sync"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

// An answer is what a query found, once and for all: hits are in the order
// asked for. Objects may leave the store while it is read.
type answer struct {
	b    *Broker
	q    query.Node
	rank string
	hits []hit
	plan []string
	took time.Duration
	time time.Time
	mark string // of the index
}

type hit struct {
	oid   store.OID
	score float32
}

// What rank may be.
const (
	rankScore   = "score"
	rankURL     = "url"
	rankUpdated = "updated"
)

func ranks() []string { return []string{rankScore, rankURL, rankUpdated} }

func (b *Broker) options() index.Options {
	b.mu.Lock()
	defer b.mu.Unlock()
	return index.Options{Weight: b.config.weight}
}

// search asks the index; one that is being made anew meanwhile is asked again.
func (b *Broker) search(ctx context.Context, q query.Node, opt index.Options) (r index.Results, mark string, err error) {
	b.settle(ctx)
	for range 3 {
		e := b.engine()
		mark = e.Mark()
		if r, err = e.Search(ctx, q, opt); !errors.Is(err, iofs.ErrClosed) {
			break
		}
	}
	return r, mark, err
}

// answer runs a query.
func (b *Broker) answer(ctx context.Context, q query.Node, rank string) (*answer, error) {
	begin := time.Now()
	r, mark, err := b.search(ctx, q, b.options())
	if err != nil {
		return nil, err
	}
	a := &answer{b: b, q: q, rank: rank, plan: r.Plan, time: begin, mark: mark, hits: make([]hit, len(r.Hits))}
	for i, h := range r.Hits {
		a.hits[i] = hit{store.OID(h.ID), float32(h.Score)}
	}
	if err := a.order(ctx); err != nil {
		return nil, err
	}
	a.took = time.Since(begin)
	b.queries.count(a)
	return a, nil
}

// order puts hits that are not to be ranked by score in order, at the cost of
// a look at each in the store.
func (a *answer) order(ctx context.Context) error {
	if a.rank == rankScore {
		return nil
	}
	type key struct {
		hit
		url     string
		updated time.Time
	}
	keys := make([]key, 0, len(a.hits))
	for _, h := range a.hits {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := a.b.store.Stat(h.oid)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		keys = append(keys, key{h, e.URL, e.Updated})
	}
	slices.SortStableFunc(keys, func(x, y key) int {
		if a.rank == rankUpdated {
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
	return nil
}

// width is how many digits the numbers of the results have.
func (a *answer) width() int { return max(3, len(strconv.Itoa(len(a.hits)))) }

// A page is the part of an answer that is shown, and how.
type page struct {
	*answer  // nil before the first query
	from, to int
	fields   []string // attributes that hits have after the title
}

func (a *answer) all() page { return page{answer: a, to: len(a.hits)} }

// each gives the objects of the page that are still there.
func (p page) each(ctx context.Context, yield func(i int, e store.Entry, o *soif.Object) error) error {
	for i := p.from; i < p.to; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		body, e, err := p.b.store.Get(p.hits[i].oid)
		if errors.Is(err, iofs.ErrNotExist) {
			continue // deleted since the query
		}
		if err != nil {
			return err
		}
		o, _, err := soif.Parse(body, soif.Limits{})
		if err != nil {
			return fmt.Errorf("object %s: %w", p.hits[i].oid, err)
		}
		if err := yield(i, e, &o); err != nil {
			return err
		}
	}
	return nil
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
	h := p.hits[i]
	cols := []string{strconv.Itoa(i + 1), fmt.Sprintf("%.3f", h.score), h.oid.String(), or(e.Type, o.Type), o.URL, o.Text("Title")}
	for _, name := range p.fields {
		var values []string
		for v := range o.Values(name) {
			values = append(values, string(v))
		}
		cols = append(cols, strings.Join(values, "; "))
	}
	for i, c := range cols {
		cols[i] = oneLine(c, 500)
	}
	return strings.Join(cols, "\t") + "\n"
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
		return p.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
			_, err := w.WriteString(p.line(i, e, o))
			return err
		})
	})
}

// How much a summary shows of a hit.
const (
	summaryLines = 10
	summaryBytes = 200 // of a line
)

// writeSummary writes each hit with its matching lines, indented.
func (p page) writeSummary(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		opt := p.b.options()
		return p.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
			w.WriteString(p.line(i, e, o))
			n := 0
			index.Lines(p.q, opt, document(p.hits[i].oid, o).Fields, summaryBytes, func(l index.Line) bool {
				if n++; n <= summaryLines {
					fmt.Fprintf(w, "\t%s\t%s\n", l.Attr, oneLine(l.Text, summaryBytes))
				}
				return true
			})
			if n > summaryLines {
				fmt.Fprintf(w, "\t…\t%d more lines\n", n-summaryLines)
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
	for _, h := range p.hits[p.from:p.to] {
		if err := ctx.Err(); err != nil {
			return err
		}
		body, _, err := p.b.store.Get(h.oid)
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
		opt := p.b.options()
		opt.Why = true
		r, _, err := p.b.search(ctx, p.q, opt)
		if err != nil {
			return err
		}
		why := make(map[index.ID]index.Hit, p.to-p.from)
		for _, h := range r.Hits {
			why[h.ID] = h
		}
		for i := p.from; i < p.to; i++ {
			h, ok := why[index.ID(p.hits[i].oid)]
			if !ok {
				continue
			}
			fmt.Fprintf(w, "%d\t%.3f\t%s\n", i+1, h.Score, p.hits[i].oid)
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

// plan says what the query is and what the index did.
func (p page) planText() string {
	if p.answer == nil {
		return ""
	}
	return p.q.String() + "\n" + strings.Join(p.plan, "\n") + "\n"
}

// pairs are the lines of status about the answer.
func (p page) pairs() []ndb.Pair {
	if p.answer == nil {
		return []ndb.Pair{ndb.Of("query", ""), ndb.Of("hits", 0)}
	}
	return []ndb.Pair{
		ndb.Of("query", p.q), ndb.Of("hits", len(p.hits)), ndb.Of("first", min(p.from+1, len(p.hits))), ndb.Of("last", p.to),
		ndb.Of("rank", p.rank), ndb.Of("took", p.took.Round(time.Microsecond)), ndb.Of("time", p.time), ndb.Of("index", p.mark),
	}
}

func lines(pairs []ndb.Pair) string {
	var t strings.Builder
	for _, p := range pairs {
		t.WriteString(ndb.Format(p) + "\n")
	}
	return t.String()
}

// A session is query/N: a query, how its hits are shown, and its last answer.
type session struct {
	b      *Broker
	name   string
	owner  string
	number uint64 // no two sessions have the same, nor a number that was had
	kept   bool   // made by mkdir: lives until rmdir

	mu     sync.Mutex
	opens  int // of its ctl; the last close ends one that is not kept
	rank   string
	limit  int
	page   int // from 1
	fields []string
	answer *answer
	vers   uint32 // moves with each change
}

func (s *session) shown() page {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := page{answer: s.answer, fields: s.fields}
	if s.answer == nil {
		return p
	}
	p.to = len(s.answer.hits)
	if s.limit > 0 {
		p.from = min((s.page-1)*s.limit, p.to)
		p.to = min(p.from+s.limit, p.to)
	}
	return p
}

func (s *session) version() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vers
}

func (s *session) status() string {
	p := s.shown()
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := append(p.pairs(), ndb.Of("limit", s.limit), ndb.Of("page", s.page), ndb.Of("pages", s.pages()), ndb.Of("fields", strings.Join(s.fields, ",")))
	if p.answer == nil || p.rank != s.rank {
		pairs = append(pairs, ndb.Of("next-rank", s.rank))
	}
	return lines(pairs)
}

// pages is how many there are. Called with mu held.
func (s *session) pages() int {
	if s.answer == nil || s.limit == 0 {
		return 1
	}
	return max(1, (len(s.answer.hits)+s.limit-1)/s.limit)
}

// ask runs a query; the write returns when its answer can be read.
func (s *session) ask(ctx context.Context, text string) error {
	q, err := query.Parse(text)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	return s.run(ctx, q)
}

func (s *session) run(ctx context.Context, q query.Node) error {
	s.mu.Lock()
	rank := s.rank
	s.mu.Unlock()
	a, err := s.b.answer(ctx, q, rank)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.page = a, 1
	s.vers++
	return nil
}

// turn shows another page.
func (s *session) turn(_ context.Context, arg []string) error {
	n, err := strconv.Atoi(arg[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || n < 1 || n > s.pages() {
		return fmt.Errorf("page %s: there are %d", arg[0], s.pages())
	}
	s.page = n
	s.vers++
	return nil
}

// set takes key=value words; all or none.
func (s *session) set(ctx context.Context, text string) error {
	e, err := ndb.ParseLine(text, 1)
	if err != nil {
		return fmt.Errorf("set: %w", err)
	}
	if len(e.Pairs) == 0 {
		return errors.New("usage: set rank=score|url|updated limit=N fields=NAME,NAME")
	}
	s.mu.Lock()
	rank, limit, fields := s.rank, s.limit, s.fields
	s.mu.Unlock()
	for _, p := range e.Pairs {
		switch p.Key {
		case "rank":
			if !slices.Contains(ranks(), p.Value) {
				return fmt.Errorf("set rank=%s: not one of %s", p.Value, strings.Join(ranks(), ", "))
			}
			rank = p.Value
		case "limit":
			if limit, err = strconv.Atoi(p.Value); err != nil || limit < 0 {
				return fmt.Errorf("set limit=%s: not a number from 0 (all)", p.Value)
			}
		case "fields":
			fields = strings.FieldsFunc(p.Value, func(r rune) bool { return r == ',' })
		case "case":
			if p.Value != "no" {
				return fmt.Errorf("set case=%s: this index knows words without their case", p.Value)
			}
		default:
			return fmt.Errorf("set %s: unknown; there are rank, limit, fields and case", p.Key)
		}
	}
	return s.change(ctx, rank, limit, fields)
}

// change takes new settings; another rank asks again.
func (s *session) change(ctx context.Context, rank string, limit int, fields []string) error {
	s.mu.Lock()
	a := s.answer
	again := a != nil && rank != a.rank
	if limit != s.limit {
		s.page = 1
	}
	old := s.rank
	s.rank, s.limit, s.fields = rank, limit, fields
	s.vers++
	s.mu.Unlock()
	if !again {
		return nil
	}
	err := s.run(ctx, a.q)
	if err != nil {
		s.mu.Lock()
		s.rank = old
		s.mu.Unlock()
	}
	return err
}

// queries are a Broker's sessions, and the queries that were asked by walking
// to q/QUERY.
type queries struct {
	b *Broker

	mu       sync.Mutex
	sessions map[string]*session
	numbers  uint64 // the last given; none is given twice
	vers     uint32
	recent   []*recent // newest first
	figures  figures
}

type figures struct {
	asked, hits int64
	took        time.Duration
}

// A recent query is listed in q until others push it out. Its answer is kept
// for as long as the index stays what it was, so that the files of one
// directory agree and cost one search.
type recent struct {
	text   string // canonical
	answer *answer
}

// How many recent queries are listed, and how many hits of theirs are kept.
const (
	recentQueries = 32
	recentHits    = 1 << 20
)

func newQueries(b *Broker) *queries {
	return &queries{b: b, sessions: make(map[string]*session)}
}

func (s *queries) stats() figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures
}

func (s *queries) count(a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.asked++
	s.figures.hits += int64(len(a.hits))
	s.figures.took += a.took
}

// add makes a session: named, or, without a name, numbered.
func (s *queries) add(name, owner string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &session{b: s.b, name: name, owner: owner, number: s.numbers + 1, kept: name != "", rank: rankScore, page: 1}
	if name == "" {
		n.name = strconv.FormatUint(n.number, 10)
	}
	if s.sessions[n.name] != nil {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	if len(s.sessions) >= maxSessions {
		return nil, fmt.Errorf("%d query sessions are open: %w", maxSessions, syscall.EMFILE)
	}
	s.numbers = n.number
	s.sessions[n.name] = n
	s.vers++
	return n, nil
}

// maxSessions bounds what clients that never close can cost.
const maxSessions = 10_000

func (s *queries) remove(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[n.name] == n {
		delete(s.sessions, n.name)
		s.vers++
	}
}

func (s *queries) get(name string) (*session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.sessions[name]
	return n, ok
}

func (s *queries) list() (out []*session, vers uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.sessions {
		out = append(out, n)
	}
	return out, s.vers
}

// opened and closed count who has a session's ctl open.
func (n *session) opened() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opens++
}

func (n *session) closed() {
	n.mu.Lock()
	n.opens--
	end := n.opens == 0 && !n.kept
	n.mu.Unlock()
	if end {
		n.b.queries.remove(n)
	}
}

// named gives the answer of the query that is the name of a directory. Walking
// to it makes it the most recent one; listing it does not.
func (s *queries) named(ctx context.Context, text string, walk bool) (*answer, error) {
	q, err := query.Parse(text)
	if err != nil {
		return nil, err
	}
	canonical := q.String()
	s.b.settle(ctx)
	a := s.kept(canonical, s.b.engine().Mark())
	if a == nil {
		if a, err = s.b.answer(ctx, q, rankScore); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.recent, func(r *recent) bool { return r.text == canonical })
	switch {
	case i >= 0 && (i == 0 || !walk):
		s.recent[i].answer = a
	case walk:
		if i >= 0 {
			s.recent = slices.Delete(s.recent, i, i+1)
		}
		s.recent = slices.Insert(s.recent, 0, &recent{canonical, a})
		s.recent = s.recent[:min(len(s.recent), recentQueries)]
		s.vers++
	}
	hits := 0
	for _, r := range s.recent {
		if r.answer == nil {
			continue
		}
		if hits += len(r.answer.hits); hits > recentHits && r.answer != a {
			r.answer = nil
		}
	}
	return a, nil
}

// forget drops the answers of recent queries: they would be ranked otherwise.
func (s *queries) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		r.answer = nil
	}
}

// kept is the answer of a recent query, if the index is still what it was.
func (s *queries) kept(canonical, mark string) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		if r.text == canonical && r.answer != nil && r.answer.mark == mark {
			return r.answer
		}
	}
	return nil
}

// lately are the recent queries.
func (s *queries) lately() (out []string, vers uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		out = append(out, r.text)
	}
	return out, s.vers
}
