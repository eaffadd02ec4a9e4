package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/gatherd"
	"harvest/gather/store"
	"harvest/gather/warc"
)

// exportConfig is what a configuration says of export: who may ask by the old
// protocol, and whether what is fetched is kept.
type exportConfig struct {
	doors  []door
	warc   bool
	size   int64  // of a WARC file
	replay string // an archive in place of the web
}

// A door is one address where gatherd listens.
type door struct {
	addr  string
	rules []gatherd.Rule
}

// gatherd reads an entry such as
//
//	gatherd listen=tcp!*!8500 allow=.example.org deny=all
func (x *exportConfig) gatherd(e ndb.Entry) (err error) {
	var d door
	for i, p := range e.Pairs {
		switch {
		case i == 0 && p.Value != "":
			err = e.Errorf(p, "gatherd: takes no value; write listen=%s", p.Value)
		case i == 0:
		case p.Key == "listen" && d.addr != "":
			err = e.Errorf(p, "gatherd: listen is there twice; write a line for each address")
		case p.Key == "listen":
			if d.addr, err = listenAddr(p.Value); err != nil {
				err = e.Errorf(p, "gatherd: %w", err)
			}
		case p.Key == "allow" || p.Key == "deny":
			var r gatherd.Rule
			if r, err = gatherd.ParseRule(p.Key == "allow", p.Value); err != nil {
				err = e.Errorf(p, "gatherd: %w", err)
			}
			d.rules = append(d.rules, r)
		default:
			err = e.Errorf(p, "gatherd: unknown key '%s'; there are listen, allow and deny", p.Key)
		}
		if err != nil {
			return err
		}
	}
	if d.addr == "" {
		return e.Errorf(e.First(), "gatherd: listen=ADDRESS is missing")
	}
	for _, other := range x.doors {
		if other.addr == d.addr {
			return e.Errorf(e.First(), "gatherd: %s is there twice", d.addr)
		}
	}
	x.doors = append(x.doors, d)
	return nil
}

// listenAddr reads PORT, which is of loopback only, HOST:PORT or
// tcp!HOST!PORT; the host * is all.
func listenAddr(text string) (string, error) {
	host, port := "127.0.0.1", text
	if f := strings.Split(text, "!"); len(f) == 3 && f[0] == "tcp" {
		host, port = f[1], f[2]
	} else if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil || host == "" {
			return "", fmt.Errorf("'%.60s' is not HOST:PORT: %w", text, iofs.ErrInvalid)
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" {
		return "", fmt.Errorf("'%.60s' is neither a port nor HOST:PORT nor tcp!HOST!PORT: %w", text, iofs.ErrInvalid)
	}
	if host == "*" {
		host = ""
	}
	return net.JoinHostPort(host, port), nil
}

// setting reads what stands on lines with others.
func (x *exportConfig) setting(e ndb.Entry, p ndb.Pair) (err error) {
	switch {
	case p.Key == "replay" && !filepath.IsAbs(p.Value):
		return e.Errorf(p, "replay: '%s' is no absolute path of a WARC file or a folder of them", p.Value)
	case p.Key == "replay":
		x.replay = filepath.Clean(p.Value)
	case p.Value == "yes" || p.Value == "no":
		x.warc = p.Value == "yes"
	default:
		x.warc = true
		if x.size, err = e.Size(p); err != nil || x.size < 1<<20 {
			return e.Errorf(p, "warc: '%s' is neither yes nor no nor a size of 1M or more, after which a file is full", p.Value)
		}
	}
	return nil
}

// putInForce has a configuration followed, or changes nothing. mu is held.
func (g *Gatherer) putInForce(c *config) (err error) {
	if err = g.export.set(c.export.doors); err != nil {
		return err
	}
	if err = g.archive.set(&c.export); err == nil {
		err = writeFile(g.path("config"), c.text)
	}
	if err != nil {
		was := &g.conf.export
		err = errors.Join(err, g.export.set(was.doors), g.archive.set(was))
	}
	return err
}

// The exporter is what a Gatherer has beside its tree: doors for the old
// protocol.
type exporter struct {
	lg    *slog.Logger
	store *store.Store
	opt   gatherd.Options

	// mu guards what follows.
	mu   sync.Mutex
	want []door
	open map[string]*opened
	run  func(*opened) // serves one while Run runs, else nil
	err  error         // of a door that could not be opened
	wake chan struct{}
}

// An opened door has a listener, and while the Gatherer runs a server.
type opened struct {
	l   net.Listener
	srv *gatherd.Server
}

func newExporter(g *Gatherer) *exporter {
	return &exporter{
		lg: g.lg, store: g.store, open: make(map[string]*opened), wake: make(chan struct{}, 1),
		opt: gatherd.Options{Name: g.name, Host: g.host, Version: g.version, Log: g.lg},
	}
}

// set has exactly these doors open. When one cannot be opened those before stay
// as they were.
func (x *exporter) set(want []door) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	fresh := make(map[string]*opened)
	for _, d := range want {
		if x.open[d.addr] != nil {
			continue
		}
		l, err := net.Listen("tcp", d.addr)
		if err != nil {
			for _, o := range fresh {
				o.l.Close() // nobody has come yet
			}
			return fmt.Errorf("gatherd: %w", err)
		}
		fresh[d.addr] = &opened{l: l}
	}
	keep := make(map[string]bool)
	for _, d := range want {
		keep[d.addr] = true
		if o := fresh[d.addr]; o != nil {
			opt := x.opt
			opt.Rules = d.rules
			o.srv = gatherd.New(x.store, opt)
			x.open[d.addr] = o
			if x.run != nil {
				x.run(o)
			}
		} else {
			x.open[d.addr].srv.Admit(d.rules)
		}
	}
	for addr, o := range x.open {
		if !keep[addr] {
			o.l.Close() // and its server ends
			delete(x.open, addr)
		}
	}
	x.want, x.err = want, nil
	return nil
}

// begin opens the doors of a Gatherer that starts. What cannot be opened now is
// told, and tried again: a Gatherer does not fail of it.
func (x *exporter) begin(want []door) {
	if err := x.set(want); err != nil {
		x.lg.Error("listen", "err", err)
		x.mu.Lock()
		x.want, x.err = want, err
		x.mu.Unlock()
	}
}

// reopening is how long a door that could not be opened is left.
const reopening = 10 * time.Second

// serve serves who comes until ctx ends.
func (x *exporter) serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	x.mu.Lock()
	x.run = func(o *opened) {
		wg.Go(func() {
			if err := o.srv.Serve(ctx, o.l); err != nil {
				x.lg.Error("gatherd", "err", err)
			}
		})
	}
	for _, o := range x.open {
		x.run(o)
	}
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		x.run = nil
		x.mu.Unlock()
	}()
	tick := time.NewTicker(reopening)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		x.mu.Lock()
		want, failed := x.want, x.err != nil
		x.mu.Unlock()
		if failed {
			x.begin(want)
		}
	}
}

// close closes what was opened and is served no more.
func (x *exporter) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range x.open {
		o.l.Close() // perhaps again
	}
}

// figures are what status tells of the doors.
func (x *exporter) figures() (all []ndb.Pair) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		all = append(all, ndb.Of("gatherd-err", x.err))
	}
	var sum gatherd.Counts
	for _, d := range x.want {
		o := x.open[d.addr]
		if o == nil {
			continue
		}
		all = append(all, ndb.Of("gatherd", o.l.Addr().String()))
		c := o.srv.Counts()
		sum.Clients += c.Clients
		sum.Served += c.Served
		sum.Refused += c.Refused
		sum.Bytes += c.Bytes
	}
	if len(x.open) > 0 {
		all = append(all, ndb.Of("gatherd-clients", sum.Clients), ndb.Of("gatherd-served", sum.Served),
			ndb.Of("gatherd-refused", sum.Refused), ndb.Of("gatherd-bytes", sum.Bytes))
	}
	return all
}

// An archive stands between a Gatherer and the web: it keeps what comes, or
// gives what was kept.
type archive struct {
	g   *Gatherer
	rec *warc.Recorder

	mu     sync.Mutex
	replay *warc.Replay
	path   string // of replay
	size   int64  // of the files that are written; 0: none are

	reading chan struct{} // holds a token while index and shape are looked at
	index   *warc.Replay  // of what kept was asked for last
	shape   string        // of its files
}

func newArchive(g *Gatherer) *archive {
	return &archive{g: g, reading: make(chan struct{}, 1), rec: warc.NewRecorder(func(err error) { g.lg.Error("archive", "err", err) })}
}

// folder is where WARC files are.
func (a *archive) folder() string { return a.g.path("warc") }

// defaultWARC is the size after which a file is full.
const defaultWARC = 1 << 30

// set has exchanges kept, or not.
func (a *archive) set(c *exportConfig) error {
	size := int64(0)
	if c.warc {
		if size = c.size; size == 0 {
			size = defaultWARC
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if size == a.size {
		return nil
	}
	var w *warc.Writer
	if size > 0 {
		var err error
		info := warc.Header{{Name: "software", Value: "harvest/" + a.g.version}, {Name: "isPartOf", Value: a.g.name}, {Name: "hostname", Value: a.g.host}}
		if w, err = warc.Open(a.folder(), warc.Options{Prefix: a.g.name, Size: size, Info: info}); err != nil {
			return err
		}
	}
	a.size = size
	if old := a.rec.To(w); old != nil {
		return old.Close()
	}
	return nil
}

// finish closes the file of a visit that has ended: it is on disk, and has its
// name.
func (a *archive) finish() error {
	if w := a.rec.Writer(); w != nil {
		return w.Finish()
	}
	return nil
}

func (a *archive) close() error {
	if old := a.rec.To(nil); old != nil {
		return old.Close()
	}
	return nil
}

// begin reads the archive that a visit is to be made from, if any is.
func (a *archive) begin(ctx context.Context, path string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replay, a.path = nil, path
	if path == "" {
		return nil
	}
	r, err := warc.OpenReplay(ctx, path, func(err error) { a.g.lg.Warn("replay", "err", err) })
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	a.replay = r
	return nil
}

// kept is an index of what WARC files have: those of the Gatherer, or those that it
// replays. They are read through when they are not as they were when it was asked last.
// It is nil if there are none.
func (a *archive) kept(ctx context.Context, path string) (*warc.Replay, error) {
	if path == "" {
		path = a.folder()
	}
	select {
	case a.reading <- struct{}{}:
		defer func() { <-a.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	shape := shapeOf(path)
	if shape == a.shape {
		return a.index, nil
	}
	r, err := warc.OpenReplay(ctx, path, func(err error) { a.g.lg.Warn("as", "err", err) })
	if errors.Is(err, iofs.ErrNotExist) {
		r, err = nil, nil
	}
	if err == nil {
		a.index, a.shape = r, shape
	}
	return r, err
}

// shapeOf tells files below a folder from what they were: names, sizes and times.
func shapeOf(path string) string {
	var b strings.Builder
	_ = filepath.WalkDir(path, func(name string, d iofs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if st, err := d.Info(); err == nil {
				fmt.Fprintf(&b, "%s %d %d\n", name, st.Size(), st.ModTime().UnixNano())
			}
		}
		return nil // what cannot be read has no shape
	})
	return path + "\n" + b.String()
}

// end has the web asked again.
func (a *archive) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replay, a.path = nil, ""
}

// wrap returns a transport of http and https that keeps, or replays.
func (a *archive) wrap(next http.RoundTripper) http.RoundTripper {
	return throughArchive{a, next, a.rec.Wrap(next)}
}

type throughArchive struct {
	a     *archive
	under http.RoundTripper
	next  http.RoundTripper
}

func (w throughArchive) RoundTrip(req *http.Request) (*http.Response, error) {
	w.a.mu.Lock()
	r, path := w.a.replay, w.a.path
	w.a.mu.Unlock()
	switch {
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return w.under.RoundTrip(req)
	case r != nil:
		return r.RoundTrip(req)
	case path != "":
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errors.New("the archive is not open")
	}
	return w.next.RoundTrip(req)
}

// CloseIdleConnections does so of the transport below.
func (w throughArchive) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
