package broker

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/store"
	"harvest/index/query"
)

// A session is query/N: a query, how its hits are shown, and its last answer.
type session struct {
	b      *Broker
	name   string
	owner  string
	number uint64        // no two sessions have the same, nor a number that was had
	kept   bool          // made by mkdir: lives until rmdir
	mode   iofs.FileMode // of its directory
	user   string        // who made it, and how long it may lie idle, if it is not kept
	idle   time.Duration
	err    *refusals

	mu     sync.Mutex
	opens  int // of its ctl; the last close ends one that is not kept
	manner manner
	page   int // from 1
	fields []string
	answer *answer
	text   string    // of the query, as it was asked
	vers   uint32    // moves with each change
	used   time.Time // last
	ended  error     // why it is no more
}

func (s *session) shown() page {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	if s.answer == nil {
		return page{}
	}
	return s.answer.shown(s.page, s.fields)
}

// use notes that the session is used; one that has ended cannot be.
func (s *session) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	return s.ended
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
	pairs := p.pairs()
	if s.answer == nil {
		pairs = append(pairs, s.manner.pairs()...)
	}
	pairs = append(pairs, ndb.Of("limit", s.manner.limit), ndb.Of("page", s.page), ndb.Of("pages", s.pages()), ndb.Of("fields", strings.Join(s.fields, ",")))
	return lines(pairs)
}

// pages is how many there are. Called with mu held.
func (s *session) pages() int {
	if s.answer == nil {
		return 1
	}
	return s.answer.pages()
}

// ask runs a query; the write returns when its answer can be read.
func (s *session) ask(ctx context.Context, text string) error {
	q, err := query.Parse(text)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	s.mu.Lock()
	m := s.manner
	s.mu.Unlock()
	if err := s.run(ctx, q, m, 1); err != nil {
		return err
	}
	s.mu.Lock()
	s.text = text
	s.mu.Unlock()
	return nil
}

// asked is the query as its asker wrote it.
func (s *session) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" && s.answer != nil && s.answer.q != nil { // it was asked before a restart
		return s.answer.q.String()
	}
	return s.text
}

// run asks and shows a page of the answer.
func (s *session) run(ctx context.Context, q query.Node, m manner, page int) error {
	if err := s.use(); err != nil {
		return err
	}
	a, page, err := s.b.answerPage(ctx, q, m, page)
	if err != nil {
		return err
	}
	l := s.b.limitsOf(ctx)
	if err := s.b.queries.room(&l, s.owner, s, len(a.hits)); err != nil {
		return err
	}
	s.mu.Lock()
	s.answer, s.manner, s.page = a, m, page
	s.vers++
	s.mu.Unlock()
	s.keep()
	return nil
}

// reset makes a session what it was when it was made.
func (s *session) reset() error {
	if err := s.use(); err != nil {
		return err
	}
	s.mu.Lock()
	s.answer, s.manner, s.page, s.fields = nil, plain(), 1, nil
	s.vers++
	s.mu.Unlock()
	s.keep()
	return nil
}

// turn shows another page; one that the answer has not is asked for.
func (s *session) turn(ctx context.Context, arg []string) error {
	if err := s.use(); err != nil {
		return err
	}
	n, err := strconv.Atoi(arg[0])
	s.mu.Lock()
	a, pages := s.answer, s.pages()
	ok := err == nil && n >= 1 && n <= pages
	there := a == nil || ok && a.has(n)
	if ok && there {
		s.page = n
		s.vers++
	}
	s.mu.Unlock()
	switch {
	case !ok:
		return fmt.Errorf("page %s: there are %d", arg[0], pages)
	case !there:
		return s.run(ctx, a.q, a.manner, n)
	}
	s.keep()
	return nil
}

// set takes key=value words; all or none.
func (s *session) set(ctx context.Context, text string) error {
	if err := s.use(); err != nil {
		return err
	}
	e, err := ndb.ParseLine(text, 1)
	if err != nil {
		return fmt.Errorf("set: %w", err)
	}
	if len(e.Pairs) == 0 {
		return errors.New("usage: " + mannerUsage)
	}
	s.mu.Lock()
	m, fields := s.manner, s.fields
	s.mu.Unlock()
	for _, p := range e.Pairs {
		known, err := m.set(e, p)
		switch {
		case err != nil:
			return err
		case p.Key == "fields":
			fields = fieldNames(p.Value)
		case !known:
			return fmt.Errorf("set %s: unknown; there are rank, limit, errors, costs, feedback, case, word, stem, dups, near, external and fields", p.Key)
		}
	}
	return s.change(ctx, m, fields)
}

// change takes new settings; those that make another answer ask again, and if
// that fails stay as they were. An answer that has all hits is only parted
// otherwise by another limit.
func (s *session) change(ctx context.Context, m manner, fields []string) error {
	s.mu.Lock()
	a := s.answer
	if a != nil && len(a.hits) == a.total && !a.more && m != a.manner {
		parted := *a
		if parted.manner.limit = m.limit; parted.manner == m {
			s.page, s.answer, a = 1, &parted, &parted
		}
	}
	again := a != nil && m != a.manner
	s.fields = fields
	if !again {
		s.manner = m
	}
	s.vers++
	s.mu.Unlock()
	if again {
		return s.run(ctx, a.q, m, 1)
	}
	s.keep()
	return nil
}

// queries are a Broker's sessions, and the queries that were asked by walking
// to q/QUERY.
type queries struct {
	b *Broker

	saving sync.Mutex // held while the file queries is written

	mu       sync.Mutex
	sessions map[string]*session
	numbers  uint64 // the last given; none is given twice
	vers     uint32
	recent   []*recent // newest first
	tally    tally

	restored []*session // by load, for askAgain; nobody else looks
}

// A recent query is listed in q until others push it out. Its answer is kept
// for as long as the index stays what it was, so that the files of one
// directory agree and cost one search.
type recent struct {
	text   string   // canonical
	users  []string // who walked to it
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

// add makes a session: named, or, without a name, numbered.
func (s *queries) add(name, owner string, l limits, mode iofs.FileMode) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &session{b: s.b, mode: mode, used: time.Now(), idle: l.idle, user: l.user, name: name, owner: owner, number: s.numbers + 1, kept: name != "", manner: plain(), page: 1}
	if name == "" {
		n.name = strconv.FormatUint(n.number, 10)
	}
	n.err = n.newRefusals()
	if s.sessions[n.name] != nil {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	if len(s.sessions) >= maxSessions {
		return nil, fmt.Errorf("%d query sessions are open: %w", maxSessions, syscall.EMFILE)
	}
	have := 0
	for _, o := range s.sessions {
		if o.owner == owner {
			have++
		}
	}
	if l.user != "" && have >= l.sessions {
		return nil, l.reached(syscall.EMFILE, "sessions", l.sessions, "so many are open")
	}
	s.numbers = n.number
	s.sessions[n.name] = n
	s.vers++
	return n, nil
}

// keep writes the sessions down that outlive the process, if s is one. What
// cannot be written down works nevertheless.
func (s *session) keep() {
	if !s.kept {
		return
	}
	if err := s.b.queries.save(); err != nil {
		s.b.lg.Error("query sessions are not saved", "err", err)
	}
}

// The sessions that mkdir made stand in the file queries, a line each: name=,
// owner=, mode=, query=, page=, fields=, and what set sets.
const queriesName = "queries"

func (s *queries) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	list, _ := s.list()
	var kept []string
	for _, n := range list {
		if n.kept {
			kept = append(kept, n.line()+"\n")
		}
	}
	slices.Sort(kept)
	return writeFile(filepath.Join(s.b.dir, queriesName), []byte(strings.Join(kept, "")))
}

func (s *session) line() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if s.answer != nil {
		text = s.answer.q.String()
	}
	pairs := []ndb.Pair{ndb.Of("name", s.name), ndb.Of("owner", s.owner), ndb.Of("mode", strconv.FormatUint(uint64(s.mode), 8)), ndb.Of("query", text)}
	pairs = append(pairs, s.manner.pairs()...)
	return ndb.Format(append(pairs, ndb.Of("limit", s.manner.limit), ndb.Of("page", s.page), ndb.Of("fields", strings.Join(s.fields, ",")))...)
}

// load makes the sessions that were saved and asks their queries again. One
// that cannot be is named in the log and left out.
func (s *queries) load(ctx context.Context) {
	text, err := os.ReadFile(filepath.Join(s.b.dir, queriesName))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		s.b.lg.Error("query sessions", "err", err)
		return
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		e, err := ndb.ParseLine(line, n)
		if err == nil {
			err = s.restore(ctx, e)
		}
		if err != nil {
			s.b.lg.Error("query session", "line", n, "err", err)
		}
	}
}

// askAgain asks those anew that load asked of an index that was behind, or
// damaged, and that nobody has changed since.
func (s *queries) askAgain(ctx context.Context) {
	h := s.b.hold()
	mark := h.Mark()
	h.release()
	for _, n := range s.restored {
		n.mu.Lock()
		a, page, same := n.answer, n.page, n.vers == 0
		n.mu.Unlock()
		if a == nil || !same || a.mark == mark {
			continue
		}
		if err := n.run(ctx, a.q, a.manner, page); err != nil {
			s.b.lg.Error("query session", "name", n.name, "err", err)
		}
	}
	s.restored = nil
}

func (s *queries) restore(ctx context.Context, e ndb.Entry) error {
	value := func(key string) string {
		v, _ := e.Get(key)
		return v
	}
	m := plain()
	for _, p := range e.Pairs {
		if _, err := m.set(e, p); err != nil {
			return err
		}
	}
	page, _ := strconv.Atoi(value("page"))
	page = max(page, 1)
	var a *answer
	if text := value("query"); text != "" {
		q, err := query.Parse(text)
		if err != nil {
			return err
		}
		if a, page, err = s.b.answerPage(ctx, q, m, page); err != nil { // an index that is being made anew, say
			s.b.lg.Error("query session", "name", value("name"), "err", err)
			a = &answer{b: s.b, q: q, manner: m, time: time.Now(), cut: err.Error()}
		}
	}
	if err := checkName(value("name")); err != nil {
		return err
	}
	mode, merr := strconv.ParseUint(value("mode"), 8, 9)
	if merr != nil { // of before modes were kept
		mode = 0o555
	}
	n, err := s.add(value("name"), value("owner"), limits{}, iofs.FileMode(mode))
	if err != nil {
		return err
	}
	n.answer, n.manner, n.fields = a, m, fieldNames(value("fields"))
	n.page = min(page, n.pages())
	s.restored = append(s.restored, n)
	return nil
}

func fieldNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
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

// sweep ends the sessions that were left lying, and says when to look again.
func (s *queries) sweep(now time.Time) time.Time {
	list, _ := s.list()
	next := now.Add(time.Hour)
	for _, n := range list {
		n.mu.Lock()
		left := !n.kept && n.idle > 0
		end := n.used.Add(n.idle)
		if left && !now.Before(end) {
			n.answer = nil
			n.ended = fmt.Errorf("query %s has ended: it was idle for %s (set by 'limits user=%s idle=…' in config): %w", n.name, n.idle, n.user, iofs.ErrClosed)
		}
		ended := n.ended != nil
		n.mu.Unlock()
		switch {
		case ended:
			s.remove(n)
			s.b.event("expired", ndb.Of("session", n.name))
		case left && end.Before(next):
			next = end
		}
	}
	return next
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
	return s.again(ctx, q.String(), walk, func() (*answer, error) { return s.b.earlyAnswer(ctx, q) })
}

// alike gives the answer to similar/OID, in the same way.
func (s *queries) alike(ctx context.Context, oid store.OID) (*answer, error) {
	return s.again(ctx, unlisted+oid.String(), true, func() (*answer, error) { return s.b.similar(ctx, oid) })
}

// unlisted begins the text of what q does not list.
const unlisted = "\x00"

// again gives the answer of a recent query, if the index is still what it was,
// or asks.
func (s *queries) again(ctx context.Context, canonical string, walk bool, ask func() (*answer, error)) (a *answer, err error) {
	s.b.settle(ctx)
	mark := s.b.answerMark()
	if a = s.kept(canonical, mark); a == nil {
		if a, err = ask(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.recent, func(r *recent) bool { return r.text == canonical })
	switch {
	case i >= 0 && (!walk || i == 0 && slices.Contains(s.recent[0].users, userOf(ctx))):
		s.recent[i].answer = a
	case walk:
		users := []string{userOf(ctx)}
		if i >= 0 {
			if users = s.recent[i].users; !slices.Contains(users, userOf(ctx)) && len(users) < maxTallies {
				users = append(users, userOf(ctx))
			}
			s.recent = slices.Delete(s.recent, i, i+1)
		}
		s.recent = slices.Insert(s.recent, 0, &recent{canonical, users, a})
		s.recent = s.recent[:min(len(s.recent), recentQueries)]
		s.vers++
	}
	s.trim(a)
	return a, nil
}

// trim drops answers of recent queries, but one, until they have not too many
// hits. Called with mu held.
func (s *queries) trim(but *answer) {
	hits := 0
	for _, r := range s.recent {
		if r.answer == nil {
			continue
		}
		if hits += len(r.answer.hits); hits > recentHits && r.answer != but {
			r.answer = nil
		}
	}
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

// lately are the recent queries of a user, or of all.
func (s *queries) lately(user string, all bool) (out []string, vers uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recent {
		if !strings.HasPrefix(r.text, unlisted) && (all || slices.Contains(r.users, user)) {
			out = append(out, r.text)
		}
	}
	return out, s.vers
}
