// Package replica keeps the same objects in many places.
//
// A Replica is a member of a group. What it has from its own sources it signs and
// shows; what others have signed it takes from its members, by reading their trees:
// changes by log, and where that does not do by walking digests down to what differs
// (pull.go, walk.go). Nothing that a member tells is believed: an object counts when
// its hash is in a record, a record when it is under a head, a head when its writer
// signed it (head.go, trie.go). So it makes no difference from whom something comes,
// and a file system of any kind can be a member: a service here, another process, a
// copy on a disk.
//
// What it does not do: gather, index, or agree on anything. docs/replica.4.md is its
// manual.
package replica

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// An Opener opens the tree of a source or a member by its path: broker/papers here,
// tcp!host!port/replica/papers there, a directory. Reading from it must end when ctx
// does.
type Opener func(ctx context.Context, path string) (iofs.FS, io.Closer, error)

// A Replica is a member of a replication group. Its methods may be called
// concurrently.
type Replica struct {
	dir, name string
	lg        *slog.Logger
	open      Opener
	store     *store.Store
	db        *bbolt.DB
	mirror    *mirror
	floods    *bbolt.DB
	flood     *mirror
	links     *links
	shown     *shown // its side of the tree, in files.go

	setting sync.Mutex // held while a config is set

	mu      sync.Mutex // guards what follows, and nothing that waits
	text    string     // of the config
	config  *config
	members map[string]*member
	sources map[string]*source
	renewed chan struct{} // closed and made anew when config is another
	trouble []string      // what conflicts tells, newest last
	orphans bool          // there may be objects without a record
	adopted iofs.FS       // a copy of a tree, whose objects need not be fetched
}

// Open opens the Replica in dir, which it makes if it is absent.
func Open(dir, name string, lg *slog.Logger, opt Options) (_ *Replica, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	r := &Replica{dir: dir, name: name, open: opt.Open, members: make(map[string]*member), sources: make(map[string]*source), renewed: make(chan struct{}), links: newLinks()}
	r.shown = newShown(r, opt.Bus)
	r.lg = r.shown.logger(lg).With("replica", name)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("replica %s: %w", name, err), r.Close())
		}
	}()
	if r.store, err = store.Open(filepath.Join(dir, "store"), r.lg, store.Options{}); err != nil {
		return nil, err
	}
	if r.db, err = openTable(filepath.Join(dir, "replica.db"), true); err != nil {
		return nil, err
	}
	key, err := loadKey(filepath.Join(dir, "key"))
	if err != nil {
		return nil, err
	}
	if r.mirror, err = newMirror(mirrorConfig{kind: "mirror", db: r.db, bodies: storeBodies{r.store}, key: key, told: r.told}); err != nil {
		return nil, err
	}
	if r.floods, err = openTable(filepath.Join(dir, "flood.db"), true); err != nil {
		return nil, err
	}
	if r.flood, err = newMirror(mirrorConfig{kind: "flood", db: r.floods, bodies: tableBodies{r.floods}, key: key, told: r.told, taken: r.received}); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, err
	}
	c, err := parseConfig(string(text))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	r.use(string(text), c)
	if err := r.loadGraph(); err != nil {
		return nil, err
	}
	r.orphans = r.mayHaveOrphans()
	r.shown.build()
	return r, nil
}

// loadKey reads the key by which a writer signs, and makes it first if there is none.
func loadKey(path string) (ed25519.PrivateKey, error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, iofs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		return key, writeFile(path, key.Seed(), 0o600)
	}
	if err != nil {
		return nil, err
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s: %d bytes, not a key: %w", path, len(seed), iofs.ErrInvalid)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// writeFile replaces a file and has it on disk, or leaves the old one.
func writeFile(path string, text []byte, perm iofs.FileMode) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the Replica; Run has returned.
func (r *Replica) Close() (err error) {
	for _, db := range []*bbolt.DB{r.db, r.floods} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}

// setConfig checks a config, keeps it and puts it in force.
func (r *Replica) setConfig(_ context.Context, text string) error {
	r.setting.Lock()
	defer r.setting.Unlock()
	c, err := parseConfig(text)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(r.dir, "config"), []byte(text), 0o644); err != nil {
		return err
	}
	r.use(text, c)
	r.told("config")
	return nil
}

// use puts a config in force.
func (r *Replica) use(text string, c *config) {
	r.mirror.setMasters(c.masters)
	r.flood.setMasters(c.masters)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text, r.config = text, c
	oldMembers, oldSources := r.members, r.sources
	r.members, r.sources = make(map[string]*member), make(map[string]*source)
	for _, conf := range c.members {
		m := oldMembers[conf.path]
		if m == nil {
			m = newMember(r, conf.path)
		}
		r.members[conf.path] = m
	}
	for _, conf := range c.sources {
		s := oldSources[conf.path]
		if s == nil {
			s = &source{r: r, path: conf.path, turn: make(chan struct{}, 1)}
		}
		s.every = conf.every
		r.sources[conf.path] = s
	}
	close(r.renewed)
	r.renewed = make(chan struct{})
}

func (r *Replica) configText() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}

// Run follows sources and members, as the config says, until ctx ends.
func (r *Replica) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { r.tidy(ctx) })
	wg.Go(func() { r.measuring(ctx) })
	running := make(map[any]context.CancelFunc)
	for ctx.Err() == nil {
		r.mu.Lock()
		renewed := r.renewed
		all := make(map[any]func(context.Context))
		for _, m := range r.members {
			all[m] = m.follow
		}
		for _, s := range r.sources {
			all[s] = s.follow
		}
		r.mu.Unlock()
		for x, cancel := range running {
			if all[x] == nil {
				cancel()
				delete(running, x)
			}
		}
		for x, follow := range all {
			if running[x] == nil {
				ctx, cancel := context.WithCancel(ctx)
				running[x] = cancel
				wg.Go(func() { follow(ctx) })
			}
		}
		select {
		case <-renewed:
		case <-ctx.Done():
		}
	}
	for _, cancel := range running {
		cancel()
	}
	return ctx.Err()
}

// root is the text of the file root: 32 digits that are equal where all that is mirrored
// is equal, and 32 of what is flooded.
func (r *Replica) root() string {
	a, b := r.mirror.rootNow(), r.flood.rootNow()
	return fmt.Sprintf("%x %x\n", a[:rootSize/2], b[:rootSize/2])
}

// told adds a record to events, and to conflicts if it is about what cannot be.
func (r *Replica) told(event string, pairs ...ndb.Pair) {
	record := ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", event)}, pairs...)...)
	r.shown.tell(record)
	switch event {
	case "lie", "replay", "rewritten", "contended", "damaged", "fork":
		r.lg.Warn(event, "record", record)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.trouble = append(r.trouble, record); len(r.trouble) > maxTrouble {
			r.trouble = append([]string(nil), r.trouble[maxTrouble/2:]...)
		}
	}
}

// maxTrouble is how many lines conflicts keeps, besides the proofs of forks.
const maxTrouble = 1000
