package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"harvest/broker"
	"harvest/broker/provider"
	"harvest/cache"
	"harvest/fs"
	"harvest/fs/fuse"
	"harvest/fs/ndb"
	"harvest/fs/ninep"
	"harvest/gather"
	"harvest/gather/fetch"
	"harvest/replica"
)

// process is everything that runs for one state directory.
type process struct {
	dir      string
	lg       *slog.Logger
	bus      *fs.Bus
	tree     *tree
	root     fs.Dir
	cache    *fs.Services[*cache.Cache]
	gather   *fs.Services[*gather.Gatherer]
	broker   *fs.Services[*broker.Broker]
	replica  *fs.Services[*replica.Replica]
	registry *broker.Broker
	lock     *os.File
	stopped  context.Context // ends when the tree's ctl is told stop
}

// reach says how the tree is to be reached.
type reach struct {
	listen   []string
	insecure bool
	mount    string
}

// open takes the state directory, made if it is absent, and opens the
// services in it. Only one process can have it.
func open(dir string, complaints io.Writer) (*process, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, bus: new(fs.Bus), lock: lock}
	stopped, stop := context.WithCancel(context.Background())
	p.stopped = stopped
	p.tree = &tree{level: new(slog.LevelVar), log: fs.NewLog(maxLog), events: fs.NewLog(maxEvents), stop: stop}
	p.lg = slog.New(slog.NewTextHandler(io.MultiWriter(complaints, p.tree.log), &slog.HandlerOptions{Level: p.tree.level}))
	log.SetFlags(0)
	log.SetOutput(muted{p.lg})
	if p.cache, err = cache.OpenAll(filepath.Join(dir, "cache"), p.lg, cache.Options{Other: fetch.New(fetch.Options{Proxy: "none"}), Bus: p.bus}); err != nil {
		lock.Close()
		return nil, err
	}
	if p.gather, err = gather.OpenAll(filepath.Join(dir, "gather"), p.lg, gather.Options{Version: version, Bus: p.bus, Covered: p.covered, Proxy: p.proxy}); err != nil {
		return nil, errors.Join(err, p.cache.Close(), lock.Close())
	}
	if p.broker, err = broker.OpenAll(filepath.Join(dir, "broker"), p.lg, broker.Options{Open: p.openPath, Bus: p.bus}); err != nil {
		return nil, errors.Join(err, p.gather.Close(), p.cache.Close(), lock.Close())
	}
	if p.registry, err = broker.Open(filepath.Join(dir, "registry"), "registry", p.lg, broker.Options{Open: p.openPath, Bus: p.bus, Registry: true}); err != nil {
		return nil, errors.Join(err, p.broker.Close(), p.gather.Close(), p.cache.Close(), lock.Close())
	}
	if p.replica, err = replica.OpenAll(filepath.Join(dir, "replica"), p.lg, replica.Options{Open: p.openPath, Bus: p.bus}); err != nil {
		return nil, errors.Join(err, p.registry.Close(), p.broker.Close(), p.gather.Close(), p.cache.Close(), lock.Close())
	}
	p.tree.registry = p.registry.Files()
	p.tree.kinds = map[string]fs.Dir{"gather": p.gather.Files(), "broker": p.broker.Files(), "cache": p.cache.Files(), "replica": p.replica.Files()}
	p.tree.count(processStats(time.Now()))
	p.root = p.tree.files()
	return p, nil
}

// proxy finds a cache that a Gatherer reaches its sources through.
func (p *process) proxy(name string) (http.RoundTripper, error) {
	c, err := p.cache.Get(name)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// muted takes what the standard library has to say, which has no other way to
// say it: net/http tells there of servers that send what nobody asked for, at any
// length they like.
type muted struct{ lg *slog.Logger }

func (m muted) Write(p []byte) (int, error) {
	m.lg.Debug("library", "text", string(p[:min(len(p), 120)]))
	return len(p), nil
}

// lockDir makes the state directory this process's own.
func lockDir(dir string) (*os.File, error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(f)
		f.Close()
		return nil, fmt.Errorf("%s: process %s serves it already: %w", dir, strings.TrimSpace(string(pid)), err)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return f, nil
}

// Close closes the services and gives the state directory back.
func (p *process) Close() error {
	return errors.Join(p.replica.Close(), p.registry.Close(), p.broker.Close(), p.gather.Close(), p.cache.Close(), p.lock.Close())
}

// run serves until ctx ends or the tree's ctl is told to stop. Ready is
// called once everything can be reached, with the addresses and, if the tree
// was to be mounted, the absolute path of the mount point.
func (p *process) run(ctx context.Context, d reach, ready func(addrs []string, point string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.stopped, cancel)()
	g, ctx := errgroup.WithContext(ctx)
	opt := ninep.ListenOptions{Users: filepath.Join(p.dir, "users"), Insecure: d.insecure}
	if slices.ContainsFunc(d.listen, func(a string) bool { return strings.HasPrefix(a, "tls!") }) {
		cert, err := ninep.Certificate(p.dir)
		if err != nil {
			return err
		}
		opt.Certificate = cert
		p.tree.event(ndb.Of("event", "identity"), ndb.Of("fingerprint", ninep.Fingerprint(cert.Leaf.Raw)))
	}
	srv := ninep.NewServer(p.lg, ninep.Limits{})
	p.tree.count(srv.Stats)
	var addrs []string
	for _, addr := range d.listen {
		l, err := ninep.Listen(ctx, addr, opt)
		if err != nil {
			cancel()
			return errors.Join(named(addr, err), g.Wait())
		}
		addrs = append(addrs, l.String())
		p.tree.event(ndb.Of("event", "listen"), ndb.Of("addr", l.String()))
		g.Go(func() error { return srv.Serve(ctx, l, p.root) })
	}
	point := ""
	if d.mount != "" {
		m, err := fuse.Mount(ctx, d.mount, p.root, fuse.Options{Bus: p.bus, Log: p.lg, AllowOther: os.Geteuid() == 0, Disk: p.dir})
		if err != nil {
			cancel()
			return errors.Join(err, g.Wait())
		}
		p.tree.count(func() string { return fuseStats(m.Stats()) })
		point = m.Point()
		p.tree.event(ndb.Of("event", "mount"), ndb.Of("point", point))
		g.Go(m.Wait)
	}
	g.Go(func() error { return p.cache.Run(ctx) })
	g.Go(func() error { return p.gather.Run(ctx) })
	g.Go(func() error { return p.broker.Run(ctx) })
	g.Go(func() error { return p.replica.Run(ctx) })
	g.Go(func() error { return p.registry.Run(ctx) })
	g.Go(func() error { return p.announce(ctx, addrs) })
	ready(addrs, point)
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// openPath opens what a Broker's source names: a service of this tree, an
// absolute path of this machine, or an address with a path of the tree there.
func (p *process) openPath(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
	switch {
	case strings.HasPrefix(path, "/"):
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, nil, err
		}
		return root.FS(), root, nil
	case strings.HasPrefix(path, provider.Scheme):
		addr, err := provider.ParsePath(path)
		if err != nil {
			return nil, nil, err
		}
		return provider.New(ctx, addr), nopCloser{}, nil
	case strings.Contains(path, "!"):
		addr, rest := cutAddr(path)
		c, err := ninep.Dial(ctx, addr, ninep.DialOptions{})
		if err != nil {
			return nil, nil, err
		}
		d, err := walkDir(ctx, c.Root(), rest)
		if err == nil && strings.Trim(rest, "/") == "broker" {
			d, err = onlyBroker(ctx, d)
		}
		if err != nil {
			c.Close()
			return nil, nil, err
		}
		return fs.IO(ctx, d), c, nil
	}
	d, err := walkDir(ctx, p.root, path)
	if err != nil {
		return nil, nil, err
	}
	return fs.IO(ctx, d), nopCloser{}, nil
}

// onlyBroker is the Broker in a directory of Brokers. Who collected from a
// Broker of the first Harvest knew its host and port, where there was no other.
func onlyBroker(ctx context.Context, brokers fs.Dir) (only fs.Dir, err error) {
	var names []string
	for e, err := range brokers.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if d, ok := e.Node.(fs.Dir); ok {
			only, names = d, append(names, e.Name)
		}
		if len(names) > 8 {
			break
		}
	}
	if len(names) != 1 {
		return nil, fmt.Errorf("broker: there is not one Broker but %d: name it, as in broker/NAME; there are %s: %w", len(names), strings.Join(names, " "), iofs.ErrInvalid)
	}
	return only, nil
}

// cutAddr parts the address of a server from a path of its tree: unix!SOCKET/a/b
// or tcp!HOST!PORT/a/b. The path of a socket ends where a socket is.
func cutAddr(s string) (addr, path string) {
	if strings.HasPrefix(s, "unix!") {
		for i := range s {
			if st, err := os.Stat(s[len("unix!"):max(i, len("unix!"))]); s[i] == '/' && err == nil && st.Mode().Type() == os.ModeSocket {
				return s[:i], s[i:]
			}
		}
		return s, ""
	}
	if i := strings.IndexByte(s, '/'); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

// processStats counts the process itself.
func processStats(start time.Time) func() string {
	return func() string {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return fmt.Sprintf("harvest_uptime_seconds %.0f\nharvest_goroutines %d\nharvest_heap_bytes %d\nharvest_memory_bytes %d\nharvest_gc_total %d\n",
			time.Since(start).Seconds(), runtime.NumGoroutine(), m.HeapAlloc, m.Sys-m.HeapReleased, m.NumGC)
	}
}

// fuseStats writes what a mount counts as Prometheus text.
func fuseStats(s fuse.Stats) string {
	var b strings.Builder
	for _, f := range strings.Fields(s.String()) {
		name, n, _ := strings.Cut(f, "=")
		fmt.Fprintf(&b, "harvest_fuse_requests_total{type=%q} %s\n", name, n)
	}
	return b.String()
}
