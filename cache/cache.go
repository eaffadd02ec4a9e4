// Package cache is a shared cache of objects between those who ask for them and the
// servers that have them: an http.RoundTripper for callers in the process, a proxy
// and an accelerator of HTTP/1.1 for others, and a tree of files, all over one store
// and by the same rules (RFC 9110, 9111, 9211, 9213).
//
// It reads and writes HTTP itself (cache/http1), decides what may be kept and used
// by cache/policy, and keeps objects in cache/segment, with a tier in memory before
// it. It does not fetch ftp and gopher itself: it is handed what does.
package cache

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"harvest/cache/dns"
	"harvest/cache/policy"
	"harvest/cache/segment"
	"harvest/fs/ndb"
)

// A Cache is one object cache. Its methods may be called concurrently.
type Cache struct {
	name    string
	dir     string
	ownName string // in Via, unless the configuration has another
	opt     Options
	lg      *slog.Logger
	*journal

	conf  atomic.Pointer[config]
	store *segment.Store
	mem   *memory
	names *names
	up    *upstream
	dns   *dns.Resolver
	near  hierarchy
	doors doors
	tree  *tree
	count counters
	begun time.Time

	// changing is held, by a key's share of it, while what is kept of a URL changes.
	changing [256]sync.Mutex

	// setting is held while a configuration is put in force.
	setting sync.Mutex

	// work are fetches, which end with life.
	work sync.WaitGroup
	life context.Context
	end  context.CancelFunc

	// mu guards what follows.
	mu      sync.Mutex
	flights map[segment.Key]*flight
	alone   map[segment.Key]time.Time // URLs whose answers are not for all, and until when that is believed
	closed  bool
}

// Open opens the cache whose state is in dir, which is made if it is absent.
func Open(dir, name string, lg *slog.Logger, opt Options) (c *Cache, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c = &Cache{name: name, dir: dir, opt: opt, journal: newJournal(), flights: make(map[segment.Key]*flight), alone: make(map[segment.Key]time.Time), begun: time.Now()}
	c.lg = c.journal.logger(lg).With("cache", name)
	c.life, c.end = context.WithCancel(context.Background())
	c.dns = dns.New(dns.Config{})
	c.up = &upstream{c: c, pools: make(map[string]*pool), failed: make(map[string]failure)}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("cache %s: %w", name, err)
		}
	}()
	if c.ownName, err = c.readName(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.path("config"))
	if errors.Is(err, iofs.ErrNotExist) {
		text, err = []byte(newConfig), nil
	}
	if err != nil {
		return nil, err
	}
	conf, err := parseConfig(string(text))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.conf.Store(conf)
	if c.store, err = segment.Open(c.path("store"), segment.Options{Disk: conf.disk, Log: c.lg}); err != nil {
		return nil, err
	}
	c.access.set(conf.access)
	c.mem = newMemory(conf.memory)
	if c.names, err = openNames(c.path("names"), c.isHeld); err != nil {
		return nil, err
	}
	c.tree = c.newTree()
	return c, nil
}

// newConfig is the configuration of a cache that has none yet.
const newConfig = `# Where it listens, and for whom: nobody but this machine until client allow=NET says so.
# listen addr=127.0.0.1:3128
# accel addr=127.0.0.1:8081 url=http://127.0.0.1:8080
# memory=64M disk=1G object=512M
`

func (c *Cache) path(part ...string) string {
	return filepath.Join(append([]string{c.dir}, part...)...)
}

// readName is the name in Via that this cache has from others, made at first: it has
// to be told from all others on the way.
func (c *Cache) readName() (string, error) {
	b, err := os.ReadFile(c.path("name"))
	if s := strings.TrimSpace(string(b)); err == nil && isPseudonym(s) {
		return s, nil
	}
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return "", err
	}
	var x [6]byte
	rand.Read(x[:])
	s := c.name[:min(len(c.name), 32)] + "-" + hex.EncodeToString(x[:])
	return s, writeFile(c.path("name"), []byte(s+"\n"))
}

// writeFile puts a file in place whole.
func writeFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Run serves the doors, and does what has to be done from time to time, until ctx
// ends.
func (c *Cache) Run(ctx context.Context) error {
	c.event("start", ndb.Of("objects", c.store.Stats().Objects))
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if err := c.names.load(ctx); err != nil {
			c.lg.Error("names", "err", err)
		}
	})
	c.near.start(c)
	defer c.near.stop()
	c.doors.start(c)
	defer c.doors.stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		c.access.flush()
		if err := c.names.flush(); err != nil {
			c.lg.Error("names", "err", err)
		}
		if n%5 == 0 {
			c.doors.retry()
		}
		if n%60 == 59 {
			if err := c.names.compact(c.store.Stats().Objects); err != nil {
				c.lg.Error("names", "err", err)
			}
		}
		if n%30 == 0 {
			c.up.sweep(c.conf.Load().limits.idle)
			c.forgetAlone()
		}
	}
}

// Removable says that a cache may always be removed: what it has can be had again.
func (c *Cache) Removable() error { return nil }

// Close ends what is under way and lets go of the store.
func (c *Cache) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.doors.stop()
	c.work.Wait()
	c.up.close()
	c.dns.Close()
	var errs []error
	if c.names != nil {
		errs = append(errs, c.names.close())
	}
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	return errors.Join(errs...)
}

// begin counts work that Close waits for; it fails when the cache is closed.
func (c *Cache) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Add(1)
	}
	return !c.closed
}

// config is the text that is in force.
func (c *Cache) config() string { return c.conf.Load().text }

// setConfig checks a text, puts it in force and keeps it, or changes nothing.
func (c *Cache) setConfig(_ context.Context, text string) error {
	conf, err := parseConfig(text)
	if err != nil {
		return err
	}
	c.setting.Lock()
	defer c.setting.Unlock()
	undo, err := c.doors.open(conf)
	if err != nil {
		return err
	}
	if err := writeFile(c.path("config"), []byte(text)); err != nil {
		undo()
		return err
	}
	c.conf.Store(conf)
	c.doors.change(conf)
	if err := c.near.change(conf); err != nil {
		c.lg.Error("neighbours", "err", err)
	}
	c.access.set(conf.access)
	c.mem.resize(conf.memory)
	c.store.Resize(conf.disk)
	c.event("config")
	return nil
}

// lookupHost finds the addresses of a name.
func (c *Cache) lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	return c.dns.Lookup(ctx, host)
}

// forgetAlone forgets what is no longer believed.
func (c *Cache) forgetAlone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for k, until := range c.alone {
		if now.After(until) {
			delete(c.alone, k)
		}
	}
}

func statusText(status int) string {
	if s := http.StatusText(status); s != "" {
		return s
	}
	return "Status"
}

func httpDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// madeAt is when a response says it was made, or came.
func madeAt(p *policy.Response) time.Time {
	if t, err := http.ParseTime(p.Header.Text("Date")); err == nil {
		return t
	}
	return p.Came
}
