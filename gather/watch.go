package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// A watch has folders of trees looked at when the kernel tells of a change in
// them. What it tells is a hint, never the truth: a folder is listed as in any
// visit, with all that is below, and what the kernel did not tell of (it has room
// for so many changes, and watches so many folders) is found by visits. When it
// has lost some, the whole tree is looked at.
//
// Its goroutines are loop and adder; run waits for both.
type watch struct {
	w     *fsnotify.Watcher
	roots []string                    // paths of folders
	keep  func(folder string) bool    // reports whether a folder may hold documents
	hand  func(folders []string) bool // has them looked at; false: not now
	tell  func(why string)
	quiet time.Duration // there is a look when nothing has changed for so long
	most  time.Duration // but no later than this

	fresh chan string // folders to be watched with those below, for adder
	mark  chan string // folders to be looked at, from adder
	full  atomic.Bool // the kernel watches no more
}

const (
	maxWatches = 65_536 // folders of one Gatherer
	maxDirty   = 1000   // folders that have changed; past it, their roots have
	retryWatch = time.Minute
)

// watchAll watches what the configuration says until ctx ends.
func (g *Gatherer) watchAll(ctx context.Context) {
	for ctx.Err() == nil {
		g.mu.Lock()
		c, anew := g.conf, g.anew
		g.mu.Unlock()
		err := g.watch(ctx, c, anew)
		wait := forever
		if err != nil {
			g.journal.event("watch", ndb.Of("reason", err))
			wait = retryWatch
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-anew:
		case <-t.C:
		}
		t.Stop()
	}
}

// watch watches for one configuration, until ctx ends or anew says that there is
// another. Without an error there is nothing to watch until then.
func (g *Gatherer) watch(ctx context.Context, c *config, anew <-chan struct{}) error {
	if len(c.watched) == 0 {
		return nil
	}
	n, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return err
	}
	w := newWatch(n, 200*time.Millisecond, 2*time.Second)
	w.keep = g.holds(c)
	w.hand = func(folders []string) bool { return g.changed(ctx, folders) }
	w.tell = func(why string) { g.journal.event("watch", ndb.Of("reason", why)) }
	for _, u := range c.watched {
		p, err := url.Parse(u)
		if err != nil {
			return errors.Join(err, n.Close())
		}
		w.roots = append(w.roots, filepath.Clean(p.Path))
	}
	g.watching.Store(w)
	defer g.watching.Store(nil)
	return w.run(ctx, anew)
}

func newWatch(n *fsnotify.Watcher, quiet, most time.Duration) *watch {
	return &watch{w: n, quiet: quiet, most: most, fresh: make(chan string, 1024), mark: make(chan string, 64)}
}

func (w *watch) run(ctx context.Context, anew <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	var adder sync.WaitGroup
	adder.Go(func() { w.adder(ctx) })
	w.loop(ctx, anew)
	cancel()
	err := w.w.Close()
	adder.Wait()
	return err
}

// adder has the roots watched, and then folders as they appear. A root that is
// not there is looked for again.
func (w *watch) adder(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	absent, told := w.roots, make(map[string]string)
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-w.fresh:
			w.add(ctx, f)
			continue
		case <-t.C:
		}
		var still []string
		for _, r := range absent {
			if err := w.add(ctx, r); err != nil {
				still = append(still, r)
				if why := err.Error(); told[r] != why {
					told[r] = why
					w.tell(why)
				}
			}
		}
		if absent = still; len(absent) > 0 {
			t.Reset(retryWatch)
		}
	}
}

// add watches a folder and those below, and then has it looked at: what changed
// before that is not told of. The error is about the folder itself.
func (w *watch) add(ctx context.Context, top string) error {
	n := 0
	err := filepath.WalkDir(top, func(path string, d iofs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil || w.full.Load():
			return filepath.SkipAll
		case path == top && err != nil:
			return err
		case path == top && !d.IsDir():
			return fmt.Errorf("%s: not a folder: %w", path, syscall.ENOTDIR)
		case err != nil || !d.IsDir():
			return nil
		case path != top && !w.keep(path):
			return filepath.SkipDir
		}
		if n++; n%1024 == 0 && len(w.w.WatchList()) >= maxWatches {
			w.filled(fmt.Sprintf("%d folders are watched, and no more of one Gatherer", maxWatches))
			return nil
		}
		return w.one(path)
	})
	if err != nil {
		return err
	}
	select {
	case w.mark <- top:
	case <-ctx.Done():
	}
	return nil
}

// one watches one folder.
func (w *watch) one(path string) error {
	err := w.w.Add(path)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		w.filled("the kernel watches no more folders: fs.inotify.max_user_watches")
	case errors.Is(err, iofs.ErrNotExist) || errors.Is(err, iofs.ErrPermission) || errors.Is(err, fsnotify.ErrClosed):
	case err != nil:
		return err
	}
	return nil
}

// filled tells, once, that not all is watched.
func (w *watch) filled(why string) {
	if !w.full.Swap(true) {
		w.tell(fmt.Sprintf("%s; %d are; visits find what changes in others", why, len(w.w.WatchList())))
	}
}

// A dirt is what is to be looked at.
type dirt struct {
	folders map[string]bool
	first   time.Time // when the first of them changed
}

// loop hears of changes until ctx ends or anew says so.
func (w *watch) loop(ctx context.Context, anew <-chan struct{}) {
	d := dirt{folders: make(map[string]bool)}
	t := time.NewTimer(forever)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-anew:
			return
		case ev, ok := <-w.w.Events:
			if !ok {
				return
			}
			w.event(&d, ev)
		case err, ok := <-w.w.Errors:
			if !ok {
				return
			}
			w.lost(&d, err)
		case f := <-w.mark:
			w.dirty(&d, f)
		case <-t.C:
			if len(d.folders) > 0 && w.hand(w.list(&d)) {
				d = dirt{folders: make(map[string]bool)}
			}
			d.first = time.Now() // if it is not now, then later
		}
		if len(d.folders) > 0 {
			t.Reset(max(min(w.quiet, time.Until(d.first.Add(w.most))), time.Millisecond))
		}
	}
}

// event notes a change: the folder in which it was is to be looked at, and one
// that is new to be watched.
func (w *watch) event(d *dirt, ev fsnotify.Event) {
	if ev.Op&^fsnotify.Chmod == 0 {
		return
	}
	if ev.Has(fsnotify.Create) && isFolder(ev.Name) && w.keep(ev.Name) {
		select {
		case w.fresh <- ev.Name:
		default: // so many that visits will have to find what changes in it
			w.dirty(d, w.rootOf(ev.Name))
		}
	}
	if ev.Has(fsnotify.Rename) { // it is watched under its new name, if that is here
		w.w.Remove(ev.Name)
	}
	w.dirty(d, filepath.Dir(ev.Name))
}

// lost has all looked at when the kernel has lost changes.
func (w *watch) lost(d *dirt, err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.tell(err.Error())
	}
	for _, r := range w.roots {
		w.dirty(d, r)
		select {
		case w.fresh <- r: // there may be folders it has not told of
		default:
		}
	}
}

// dirty notes a folder, or its root when there are too many.
func (w *watch) dirty(d *dirt, folder string) {
	root := w.rootOf(folder)
	switch {
	case root == "" || d.folders[root]:
		return
	case len(d.folders) == 0:
		d.first = time.Now()
	case len(d.folders) >= maxDirty:
		clear(d.folders)
		for _, r := range w.roots {
			d.folders[r] = true
		}
		return
	}
	d.folders[folder] = true
}

// list gives the folders to be looked at: those that are there, or else what
// they were in, and none that is in another.
func (w *watch) list(d *dirt) []string {
	there := make(map[string]bool)
	for f := range d.folders {
		for root := w.rootOf(f); f != root && !isFolder(f); {
			f = filepath.Dir(f)
		}
		there[f] = true
	}
	var out []string
	for f := range there {
		covered := false
		for up := f; !covered && up != w.rootOf(f); {
			up = filepath.Dir(up)
			covered = there[up]
		}
		if !covered {
			out = append(out, f)
		}
	}
	return out
}

func isFolder(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}

// rootOf is the root that a path lies in, "" for none.
func (w *watch) rootOf(path string) string {
	for _, r := range w.roots {
		if path == r || strings.HasPrefix(path, strings.TrimSuffix(r, "/")+"/") {
			return r
		}
	}
	return ""
}

// holds returns what reports whether documents may lie in a folder: not if the
// configuration leaves it out, nor in this Gatherer's state, where each look
// would be a change.
func (g *Gatherer) holds(c *config) func(folder string) bool {
	own, err := filepath.Abs(g.dir)
	if err != nil {
		own = g.dir
	}
	return func(folder string) bool {
		return folder != own && c.exclude(folderURL(folder), true) == ""
	}
}

// folderURL is the URL of a folder.
func folderURL(path string) string {
	u := url.URL{Scheme: "file", Path: strings.TrimSuffix(path, "/") + "/"}
	c, err := crawl.Canonical(u.String())
	if err != nil {
		return u.String()
	}
	return c
}

// changed has folders looked at, in a visit of nothing else or in the one that
// runs. It is false when it is not the time: the Gatherer is held, or it has
// just looked and has a right to rest, four times as long as that took.
func (g *Gatherer) changed(ctx context.Context, folders []string) bool {
	urls := make([]string, len(folders))
	for i, f := range folders {
		urls[i] = folderURL(f)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != "" || g.ended != nil && g.visit.plan.Queued {
		return false
	}
	if began, ended := g.visit.times(); g.ended == nil && time.Since(ended) < min(4*ended.Sub(began), time.Minute) {
		return false
	}
	if err := g.db.Add(ctx, urls...); err != nil {
		g.lg.Error("watch", "err", err)
		return false
	}
	g.want.queue = true
	g.poke()
	return true
}

// watchFigures are the line of status about what is watched.
func (g *Gatherer) watchFigures() []ndb.Pair {
	w := g.watching.Load()
	if w == nil {
		return nil
	}
	return []ndb.Pair{ndb.Of("watched", len(w.w.WatchList())), ndb.Of("full", w.full.Load())}
}
