package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/store"
)

// The tree of a Broker:
//
//	config ctl status stats events log err
//	objects/ url/ soif soif.zst since/ digest    as gather/store has them
//	attributes
//	query/
//		clone
//		N/      ctl err status hits summary soif why plan suggest results/
//	q/
//		QUERY/  status hits summary soif why plan suggest 001.soif …
//	similar/
//		OID/    the same but suggest
//
// In q, a result is the object itself: 001.soif has the qid of
// objects/3f/3fa9….soif, and the folder belongs to one answer; after the index
// has moved, q/QUERY is another folder, so that what a client has seen of one
// never changes under it. query/N/results stays the same folder and shows the
// answer there is; see resultFile for what that means.

// Options are what a Broker is handed. The zero value collects nothing.
type Options struct {
	Open Opener
	Bus  *fs.Bus // hears what changes in the tree; may be nil
}

// How much of the growing files is kept.
const (
	keepEvents = 1 << 20
	keepLog    = 1 << 20
)

// shown is what a Broker keeps for its side of the tree.
type shown struct {
	b       *Broker
	bus     *fs.Bus
	err     *fs.Err
	events  *fs.Log
	log     *fs.Log
	objects fs.Dir
	dir     fs.Dir
}

func newShown(b *Broker, bus *fs.Bus) *shown {
	return &shown{b: b, bus: bus, err: fs.NewErr(b.id("err")), events: fs.NewLog(keepEvents), log: fs.NewLog(keepLog)}
}

// logger is lg with what it says also in the file log.
func (s *shown) logger(lg *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(lg.Handler(), slog.NewTextHandler(s.log, nil)))
}

// tell adds a record to events.
func (s *shown) tell(record string) { s.events.Add(record) }

// complain puts what went wrong into err; nil takes it out.
func (s *shown) complain(what, line string, err error) { s.err.Set(what, line, err) }

func (b *Broker) id(parts ...string) uint64 {
	return fs.ID(append([]string{"broker", b.name}, parts...)...)
}

// Files serves b as a directory; docs/broker.4.md is its manual.
func (b *Broker) Files() fs.Dir { return b.shown.dir }

// build makes the directory, once: a config being edited has state in it.
func (s *shown) build() {
	b := s.b
	nodes := b.store.Files(b.id, s.bus)
	s.objects = nodes["objects"].(fs.Dir)
	nodes["config"] = fs.Config(b.id("config"), s.err, b.configText, b.setConfig).Lines(checkLine)
	nodes["ctl"] = fs.Ctl(b.id("ctl"), s.err,
		fs.On("collect [SOURCE]", func(_ context.Context, arg []string) error { return b.ask(strings.Join(arg, "")) }),
		fs.On("gc", func(context.Context, []string) error { return b.askGC() }),
		fs.On("check", func(ctx context.Context, _ []string) error { return b.check(ctx) }),
		fs.On("reindex", func(context.Context, []string) error { return b.askReindex() }),
		fs.On("delete OID...", b.delete),
		fs.On("restart SOURCE", func(_ context.Context, arg []string) error { return b.restart(arg[0]) }),
		fs.On("stop", func(context.Context, []string) error { return b.stop(true) }),
		fs.On("start", func(context.Context, []string) error { return b.stop(false) }))
	nodes["err"] = s.err
	nodes["status"] = fs.Text(b.id("status"), b.status)
	nodes["stats"] = fs.Text(b.id("stats"), b.stats)
	nodes["attributes"] = fs.Stream(b.id("attributes"), 0, b.writeAttributes)
	nodes["query"] = queryDir{b}
	nodes["q"] = namedDir{b}
	nodes["similar"] = similarDir{b}
	s.events.Nodes(nodes, "events", b.id)
	s.log.Nodes(nodes, "log", b.id)
	s.dir = fs.Static(b.id("dir"), nodes)
}

// atOpen is a Made file of one page, which is fixed when it is opened.
type atOpen struct {
	path uint64
	vers uint32
	make func() fs.File
}

func (f atOpen) Stat() fs.Stat {
	return fs.Stat{Path: f.path, Vers: f.vers, Kind: fs.Made, Mode: 0o444}
}

func (f atOpen) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	return f.make().Open(ctx, m)
}

type produce func(ctx context.Context, w io.Writer) error

// queryFiles are the files a page that a query found is read as.
func (b *Broker) queryFiles(now func() page, vers uint32, id func(name string) uint64) map[string]fs.Node {
	nodes := b.pageFiles(now, vers, id)
	path := id("suggest")
	nodes["suggest"] = atOpen{path, vers, func() fs.File { return fs.Stream(path, vers, now().writeSuggest) }}
	return nodes
}

// pageFiles are the files a page is read as; now gives the page to show.
func (b *Broker) pageFiles(now func() page, vers uint32, id func(name string) uint64) map[string]fs.Node {
	stream := func(name string, write func(page) produce) fs.Node {
		path := id(name)
		return atOpen{path, vers, func() fs.File { return fs.Stream(path, vers, write(now())) }}
	}
	return map[string]fs.Node{
		"hits":    stream("hits", func(p page) produce { return p.writeHits }),
		"summary": stream("summary", func(p page) produce { return p.writeSummary }),
		"soif":    stream("soif", func(p page) produce { return p.writeSOIF }),
		"why":     stream("why", func(p page) produce { return p.writeWhy }),
		"plan":    fs.Text(id("plan"), func() string { return now().planText() }),
	}
}

// queryDir is query/: clone and the sessions.
type queryDir struct{ b *Broker }

func (d queryDir) Stat() fs.Stat {
	_, vers := d.b.queries.list()
	return fs.Stat{Path: d.b.id("query"), Vers: vers, Mode: 0o777}
}

func (d queryDir) clone() fs.File {
	return fs.Clone(d.b.id("query", "clone"), func(ctx context.Context) (fs.File, error) {
		s, err := d.b.queries.add("", userName(ctx))
		if err != nil {
			return nil, err
		}
		return s.ctl(), nil
	})
}

// userName is who a new session belongs to; the owner of the tree has no name.
func userName(ctx context.Context) string {
	if u := fs.UserOf(ctx); !u.Owner {
		return u.Name
	}
	return ""
}

func (d queryDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	if name == "clone" {
		return d.clone(), nil
	}
	if s, ok := d.b.queries.get(name); ok {
		return s.files(), nil
	}
	return nil, notExist(name)
}

func notExist(name string) error { return fmt.Errorf("%s: %w", name, iofs.ErrNotExist) }

func (d queryDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	list, _ := d.b.queries.list()
	out := []fs.Entry{{Name: "clone", Node: d.clone()}}
	for _, s := range list {
		out = append(out, fs.Entry{Name: s.name, Node: s.files()})
	}
	return fs.Sorted(out, after)
}

// Mkdir makes a session with a name, which stays until it is removed. Numbers
// are clone's to give.
func (d queryDir) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := mayWrite(ctx, d, name); err != nil {
		return nil, err
	}
	if name == "clone" {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if strings.Trim(name, "0123456789") == "" {
		return nil, fmt.Errorf("%s: numbers are given by clone: %w", name, iofs.ErrInvalid)
	}
	s, err := d.b.queries.add(name, userName(ctx))
	if err != nil {
		return nil, err
	}
	s.keep()
	d.b.shown.bus.Entry(d.b.id("query"), name)
	return s.files(), nil
}

// mayWrite refuses whoever may not change what is in a directory.
func mayWrite(ctx context.Context, d fs.Dir, name string) error {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkName refuses names that a shell or this tree would stumble over.
func checkName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f || r == 0xfffd })
	if name == "" || name[0] == '.' || name[0] == '-' || len(name) > 64 || bad {
		return fmt.Errorf("%q: not a name of 1 to 64 bytes without blanks, not beginning with a point or a dash: %w", name, iofs.ErrInvalid)
	}
	return nil
}

// Remove takes a session away; its open files stay readable.
func (d queryDir) Remove(ctx context.Context, name string) error {
	if name == "clone" {
		return fmt.Errorf("%s: %w", name, iofs.ErrPermission)
	}
	s, ok := d.b.queries.get(name)
	if !ok {
		return notExist(name)
	}
	if u := fs.UserOf(ctx); u.ReadOnly || !u.Owner && u.Name != s.owner {
		return fmt.Errorf("%s: %w", name, iofs.ErrPermission)
	}
	d.b.queries.remove(s)
	s.keep()
	d.b.shown.bus.Entry(d.b.id("query"), name)
	return nil
}

func (s *session) id(parts ...string) uint64 {
	return s.b.id(append([]string{"query", s.name, strconv.FormatUint(s.number, 10)}, parts...)...)
}

// refusals are what a session keeps for its file err: its own, so that users
// do not overwrite each other's.
type refusals struct{ *fs.Err }

func (s *session) newRefusals() *refusals { return &refusals{fs.NewErr(s.id("err"))} }

// files are those of query/N.
func (s *session) files() fs.Dir {
	nodes := s.b.queryFiles(s.shown, s.version(), func(name string) uint64 { return s.id(name) })
	nodes["ctl"] = s.ctl()
	nodes["err"] = s.err.Err
	nodes["status"] = fs.Text(s.id("status"), s.status)
	nodes["results"] = s.results()
	return fs.Static(s.id(), nodes)
}

// results is the folder of the page that is shown now.
func (s *session) results() fs.Dir {
	return results{b: s.b, path: s.id("results"), vers: s.version(), now: s.shown, file: func(oid string, f fs.File) fs.Node {
		return resultFile{f, s.id("result", oid)}
	}}
}

// resultFile is an object as a result of a session. It is a file of its own and
// not the one in objects/ because 001.soif is another object after the next
// query: a kernel that knows an object by a name believes the name for a while,
// as it must not here.
type resultFile struct {
	fs.File
	path uint64
}

func (f resultFile) Stat() fs.Stat {
	st := f.File.Stat()
	st.Path, st.Kind = f.path, fs.Made
	return st
}

// Attributes are those of the object.
func (f resultFile) Attributes(ctx context.Context) ([]fs.Attribute, error) {
	if a, ok := f.File.(fs.Attributer); ok {
		return a.Attributes(ctx)
	}
	return nil, nil
}

// ctl is the session's ctl, which holds it while it is open.
func (s *session) ctl() fs.File {
	return sessionCtl{s, fs.Ctl(s.id("ctl"), s.err.Err,
		fs.OnText("query TEXT", s.ask),
		fs.OnText(mannerUsage, s.set),
		fs.On("page K", s.turn)).Reads(func() string { return s.name + "\n" }).OwnedBy(s.owner)}
}

type sessionCtl struct {
	s *session
	*fs.CtlFile
}

func (c sessionCtl) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	h, err := c.CtlFile.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	c.s.opened()
	return &sessionHandle{h, c.s}, nil
}

type sessionHandle struct {
	fs.Handle
	s *session
}

func (h *sessionHandle) Close() error {
	h.s.closed()
	return h.Handle.Close()
}

// results is a folder of a page's objects: 001.soif and on.
type results struct {
	b     *Broker
	path  uint64
	vers  uint32
	now   func() page
	file  func(oid string, f fs.File) fs.Node // what an object is here
	nodes map[string]fs.Node                  // beside the objects; their names come after digits
}

func (d results) Stat() fs.Stat { return fs.Stat{Path: d.path, Vers: d.vers, Mode: 0o555} }

const objectSuffix = ".soif"

// name is that of hit i, counted from 0. All of an answer are equally long, so
// their order is that of the hits.
func (p page) name(i int) string { return fmt.Sprintf("%0*d%s", p.width(), i+1, objectSuffix) }

// object is the node of a hit.
func (d results) object(ctx context.Context, h hit) (fs.Node, error) {
	oid := h.oid.String()
	folder, err := d.b.shown.objects.Lookup(ctx, oid[:2])
	if err != nil {
		return nil, err
	}
	n, err := folder.(fs.Dir).Lookup(ctx, oid+objectSuffix)
	if err != nil {
		return nil, err
	}
	return d.file(oid, n.(fs.File)), nil
}

func (d results) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if n, ok := d.nodes[name]; ok {
		return n, nil
	}
	p := d.now()
	digits, ok := strings.CutSuffix(name, objectSuffix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n <= p.from || n > p.to || name != p.name(n-1) {
		return nil, notExist(name)
	}
	return d.object(ctx, p.hit(n-1))
}

func (d results) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	p := d.now()
	return func(yield func(fs.Entry, error) bool) {
		first := p.from + sort.Search(p.to-p.from, func(i int) bool { return p.name(p.from+i) > after })
		for i := first; i < p.to; i++ {
			n, err := d.object(ctx, p.hit(i))
			if errors.Is(err, iofs.ErrNotExist) {
				continue // deleted since the query
			}
			if !yield(fs.Entry{Name: p.name(i), Node: n}, err) || err != nil {
				return
			}
		}
		var rest []fs.Entry
		for name, n := range d.nodes {
			rest = append(rest, fs.Entry{Name: name, Node: n})
		}
		for e, err := range fs.Sorted(rest, after) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// namedDir is q/: directories named by queries.
type namedDir struct{ b *Broker }

func (d namedDir) Stat() fs.Stat {
	_, vers := d.b.queries.lately()
	return fs.Stat{Path: d.b.id("q"), Vers: vers, Mode: 0o555}
}

// maxName bounds a name in q, in bytes, as systems that mount the tree do.
const maxName = 255

// Lookup runs the query. Names that begin with a point are what desktops and
// tools look for everywhere, not queries.
func (d namedDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
		return nil, notExist(name)
	}
	if len(name) > maxName {
		err := fmt.Errorf("name of %d bytes, the limit is %d; ask in query: %w", len(name), maxName, syscall.ENAMETOOLONG)
		d.b.shown.complain("q", "", err)
		return nil, fmt.Errorf("q: %w", err)
	}
	text := strings.TrimSpace(unescape(name))
	a, err := d.b.queries.named(ctx, text, true)
	if ctx.Err() == nil { // else the walk was given up, and says nothing
		d.b.shown.complain("q", text, err)
	}
	if err != nil {
		return nil, fmt.Errorf("q: %w", err)
	}
	return a.files(), nil
}

// files are those of an answer that stays what it is.
func (a *answer) files() fs.Dir {
	asked := a.asked()
	id := func(name string) uint64 { return a.b.id("q", asked.Key, asked.Value, a.mark, name) }
	files := a.b.queryFiles
	if a.q == nil {
		files = a.b.pageFiles
	}
	nodes := files(a.all, 0, id)
	nodes["status"] = fs.Text(id("status"), func() string { return lines(a.all().pairs()) })
	return results{b: a.b, path: id(""), now: a.all, nodes: nodes, file: func(_ string, f fs.File) fs.Node { return f }}
}

func (d namedDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	recent, _ := d.b.queries.lately()
	names := make([]string, 0, len(recent))
	for _, text := range recent {
		if name := escape(text); len(name) <= maxName && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return func(yield func(fs.Entry, error) bool) {
		for _, name := range names {
			a, err := d.b.queries.named(ctx, unescape(name), false)
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			if !yield(fs.Entry{Name: name, Node: a.files()}, nil) {
				return
			}
		}
	}
}

// similarDir is similar/: directories named by objects, with those that are
// like them. None is listed: all objects could be.
type similarDir struct{ b *Broker }

func (d similarDir) Stat() fs.Stat { return fs.Stat{Path: d.b.id("similar"), Mode: 0o555} }

func (d similarDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	oid, err := store.ParseOID(name)
	if err != nil {
		return nil, notExist(name)
	}
	a, err := d.b.queries.alike(ctx, oid)
	if ctx.Err() == nil && !errors.Is(err, iofs.ErrNotExist) { // else it was given up, or asked of no object
		d.b.shown.complain("similar", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("similar: %w", err)
	}
	return a.files(), nil
}

func (d similarDir) List(context.Context, string) iter.Seq2[fs.Entry, error] {
	return func(func(fs.Entry, error) bool) {}
}

// escape writes a query as a name; unescape reads one, in which a '%' that no
// two hex digits follow stands for itself.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c == '/' || c == '%' || c < ' ' || c == 0x7f || i == 0 && c == '.' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if n, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// Brokers are those of one directory, a directory each.
type Brokers struct {
	dir string
	lg  *slog.Logger
	opt Options

	broken   map[string]fs.Dir // those that could not be opened, and what is shown of them
	removing sync.WaitGroup

	mu      sync.Mutex // guards what follows
	all     map[string]*member
	leaving map[string]struct{} // out of all, and their names not free yet
	changed chan struct{}       // closed and made anew when all changes
	vers    uint32
	closed  bool
}

// A member is a Broker and its Run.
type member struct {
	*Broker
	cancel context.CancelFunc // nil: not running
	done   chan struct{}
}

// OpenAll opens the Brokers in dir, which it makes if it is absent. One that
// cannot be opened says so in its err, is left as it is, and stops no other.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*Brokers, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	a := &Brokers{dir: dir, lg: lg, opt: opt, broken: make(map[string]fs.Dir), all: make(map[string]*member), leaving: make(map[string]struct{}), changed: make(chan struct{})}
	for _, e := range list {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if strings.HasPrefix(name, removed) { // its removal was interrupted
			if err := os.RemoveAll(path); err != nil {
				lg.Error("removal of a broker", "err", err)
			}
			continue
		}
		if !e.IsDir() || checkName(name) != nil {
			continue
		}
		b, err := Open(path, name, lg, opt)
		if err != nil {
			lg.Error("open", "err", err)
			a.broken[name] = brokenFiles(name, err)
			continue
		}
		a.all[name] = &member{Broker: b}
	}
	return a, nil
}

// brokenFiles is what is shown of a Broker that could not be opened.
func brokenFiles(name string, why error) fs.Dir {
	id := func(file string) uint64 { return fs.ID("broker", name, "broken", file) }
	err := fs.NewErr(id("err"))
	err.Set("open", "", why)
	return fs.Static(id("dir"), map[string]fs.Node{
		"err":    err,
		"status": fs.Text(id("status"), func() string { return lines([]ndb.Pair{ndb.Of("state", "failing")}) }),
	})
}

// removed begins the name of a directory that is being removed.
const removed = ".removed-"

// Close closes all Brokers; Run has returned. What is being removed is gone
// when Close returns.
func (a *Brokers) Close() (err error) {
	defer a.removing.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, m := range a.all {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Run runs all Brokers, those made meanwhile too, until ctx ends.
func (a *Brokers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		a.mu.Lock()
		for _, m := range a.all {
			if m.cancel != nil {
				continue
			}
			mctx, cancel := context.WithCancel(ctx)
			m.cancel, m.done = cancel, make(chan struct{})
			wg.Go(func() {
				defer close(m.done)
				m.Run(mctx)
			})
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change notes that all is another. Called with mu held.
func (a *Brokers) change(name string) {
	a.vers++
	close(a.changed)
	a.changed = make(chan struct{})
	a.opt.Bus.Entry(brokersPath(), name)
}

func brokersPath() uint64 { return fs.ID("broker") }

// Files is the directory of all Brokers: mkdir makes one, rmdir removes one.
func (a *Brokers) Files() fs.Dir { return brokersDir{a} }

type brokersDir struct{ *Brokers }

func (d brokersDir) Stat() fs.Stat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fs.Stat{Path: brokersPath(), Vers: d.vers, Mode: 0o755}
}

func (d brokersDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.all[name]; ok {
		return m.Files(), nil
	}
	if b, ok := d.broken[name]; ok {
		return b, nil
	}
	return nil, notExist(name)
}

func (d brokersDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	d.mu.Lock()
	var out []fs.Entry
	for name, m := range d.all {
		out = append(out, fs.Entry{Name: name, Node: m.Files()})
	}
	d.mu.Unlock()
	for name, b := range d.broken {
		out = append(out, fs.Entry{Name: name, Node: b})
	}
	return fs.Sorted(out, after)
}

// Mkdir makes a Broker, without sources.
func (d brokersDir) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := mayWrite(ctx, d, name); err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrClosed)
	}
	if d.all[name] != nil || d.broken[name] != nil {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	if _, ok := d.leaving[name]; ok {
		return nil, fmt.Errorf("%s: it is being removed: %w", name, syscall.EBUSY)
	}
	b, err := Open(filepath.Join(d.dir, name), name, d.lg, d.opt)
	if err != nil {
		return nil, err
	}
	d.all[name] = &member{Broker: b}
	d.change(name)
	return b.Files(), nil
}

// Remove removes a Broker that is stopped, or has neither objects nor sources.
// Its name is free again when nothing is left of it.
func (d brokersDir) Remove(ctx context.Context, name string) error {
	if err := mayWrite(ctx, d, name); err != nil {
		return err
	}
	m, err := d.leave(name)
	if err != nil {
		return err
	}
	defer d.left(name)
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
	if err := m.Close(); err != nil {
		d.lg.Error("broker", "name", name, "err", err) // it goes in any case
	}
	path, gone := filepath.Join(d.dir, name), filepath.Join(d.dir, removed+name)
	if err := os.Rename(path, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// leave takes a Broker out, if it may be removed, and keeps its name until
// left.
func (a *Brokers) leave(name string) (*member, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken[name] != nil {
		return nil, fmt.Errorf("%s: it could not be opened, see its err; what it has may be saved yet: %w", name, syscall.ENOTEMPTY)
	}
	m, ok := a.all[name]
	if !ok || a.closed {
		return nil, notExist(name)
	}
	if !m.removable() {
		return nil, fmt.Errorf("%s: write stop to its ctl first: %w", name, syscall.ENOTEMPTY)
	}
	a.removing.Add(1)
	a.leaving[name] = struct{}{}
	delete(a.all, name)
	a.change(name)
	return m, nil
}

func (a *Brokers) left(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.leaving, name)
	a.removing.Done()
}
