package broker

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"harvest/fs/ndb"
	"harvest/index"
	"harvest/index/block"
	scanner "harvest/index/scan"
)

// The folder index has the file current, a line that names the index in use and
// says how it was made, and that index in a folder named by a number. While one
// is made anew, because the config says something else or the files are to be
// read afresh, it is in a folder of the next number, and the old one answers
// and follows the store; then current is replaced. A folder that current does
// not name is what an interruption left.

// indexFiles is what the files of an index depend on.
type indexFiles struct {
	engine             string
	grain              block.Grain // of the block engine
	positions, numbers bool
}

const (
	engineRanked = "ranked"
	engineBlock  = "block"
	engineScan   = "scan"
)

func (f indexFiles) pairs() []ndb.Pair {
	pairs := []ndb.Pair{ndb.Of("engine", f.engine)}
	switch f.engine {
	case engineBlock:
		pairs = append(pairs, ndb.Of("grain", f.grain))
	case engineRanked:
		pairs = append(pairs, ndb.Of("positions", yesOrNo(f.positions)))
	}
	return append(pairs, ndb.Of("numbers", yesOrNo(f.numbers)))
}

// reads tells that the engine reads text to count what it finds.
func (f indexFiles) reads() bool { return f.engine != engineRanked }

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// A held index is one that is open. It is closed when nobody uses it and it is
// replaced, so no search fails because of that.
type held struct {
	index.Engine
	b      *Broker
	files  indexFiles
	number int
	users  atomic.Int64 // and one while it is the Broker's
	once   sync.Once
	closed chan struct{}
	err    error  // of closing, when closed is
	whole  uint64 // what has changed up to here it was given, by a feed to the end; see feed
}

// release gives up what hold gave. Who holds an index of a Broker that is
// closed holds a closed one.
func (h *held) release() {
	if h.users.Add(-1) == 0 {
		h.once.Do(func() {
			h.err = h.Engine.Close()
			close(h.closed)
		})
	}
}

// hold gives the index as it is now, to be released.
func (b *Broker) hold() *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index.users.Add(1)
	return b.index
}

func (b *Broker) indexDir(n int) string { return filepath.Join(b.dir, "index", strconv.Itoa(n)) }

// openFiles opens an index, or begins one where there is none.
func (b *Broker) openFiles(n int, files indexFiles, memory int64) (h *held, err error) {
	h = &held{b: b, files: files, number: n, closed: make(chan struct{})}
	h.users.Store(1)
	set := index.Settings{NoPositions: !files.positions, NoNumbers: !files.numbers, Memory: memory, Source: texts{b}, Log: b.lg}
	set.Merged = func(err error) { b.merged(h, err) }
	switch files.engine {
	case engineBlock:
		h.Engine, err = block.Open(b.indexDir(n), set, files.grain)
	case engineScan:
		h.Engine, err = scanner.Open(b.indexDir(n), set)
	default:
		h.Engine, err = index.Open(b.indexDir(n), set)
	}
	return h, err
}

// openIndex opens the index that current names. One that cannot be used, or
// none, is an empty one, to be made from the store.
func (b *Broker) openIndex(c indexConfig) error {
	n, files, err := b.readCurrent()
	if err == nil {
		b.index, err = b.openFiles(n, files, c.memory)
	}
	switch {
	case err == nil:
		b.clearIndexes(n)
		return nil
	case errors.Is(err, iofs.ErrNotExist), errors.Is(err, index.ErrCorrupt), errors.Is(err, index.ErrSettings):
		if !errors.Is(err, iofs.ErrNotExist) {
			b.lg.Warn("index is made anew", "err", err)
		}
		b.index = nil
		return b.emptyIndex()
	}
	b.index = nil
	return err
}

func (b *Broker) currentPath() string { return filepath.Join(b.dir, "index", "current") }

func (b *Broker) readCurrent() (n int, files indexFiles, err error) {
	text, err := os.ReadFile(b.currentPath())
	if err != nil {
		return 0, files, err
	}
	bad := fmt.Errorf("%s: %w", b.currentPath(), index.ErrCorrupt)
	e, err := ndb.ParseLine(string(text), 1)
	if err != nil || len(e.Pairs) == 0 {
		return 0, files, bad
	}
	if n, err = e.Int(e.First()); err != nil || n < 1 || e.First().Key != "index" {
		return 0, files, bad
	}
	for _, p := range e.Pairs[1:] {
		ok := true
		switch p.Key {
		case "engine":
			files.engine = p.Value
		case "grain":
			files.grain, ok = block.ParseGrain(p.Value)
		case "positions":
			files.positions, err = e.Bool(p)
		case "numbers":
			files.numbers, err = e.Bool(p)
		}
		if err != nil || !ok {
			return 0, files, bad
		}
	}
	if files.engine != engineRanked {
		files.positions = true // it has no such choice, and the config's is yes
	}
	return n, files, nil
}

// clearIndexes removes the indexes but one.
func (b *Broker) clearIndexes(but int) {
	dir := filepath.Join(b.dir, "index")
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if e.Name() != "current" && e.Name() != strconv.Itoa(but) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		b.lg.Error("old index", "err", err)
	}
}

// replace makes h the index in use.
func (b *Broker) replace(h *held) error {
	line := ndb.Format(append([]ndb.Pair{ndb.Of("index", h.number)}, h.files.pairs()...)...)
	if err := writeFile(b.currentPath(), []byte(line+"\n")); err != nil {
		return err
	}
	b.mu.Lock()
	old := b.index
	b.index = h
	b.mu.Unlock()
	if old == nil {
		b.clearIndexes(h.number)
		return nil
	}
	old.release()
	<-old.closed
	if old.err != nil {
		b.lg.Error("old index", "err", old.err)
	}
	return os.RemoveAll(b.indexDir(old.number))
}

// emptyIndex begins a new index, which is in use at once: there is none that
// could answer better. Called with following held, or before there is anybody.
func (b *Broker) emptyIndex() error {
	h, err := b.beginIndex()
	if err == nil {
		err = b.replace(h)
	}
	return err
}

// beginIndex makes an empty index as the config wants it, in the next folder.
func (b *Broker) beginIndex() (*held, error) {
	b.mu.Lock()
	c, n := b.config.index, 1
	if b.index != nil {
		n = b.index.number + 1
	}
	b.mu.Unlock()
	if err := os.RemoveAll(b.indexDir(n)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.indexDir(n), 0o777); err != nil {
		return nil, err
	}
	return b.openFiles(n, c.files, c.memory)
}

// reopen opens the index anew after it has failed: whatever it holds on disk,
// following goes on from there.
func (b *Broker) reopen() error {
	b.following.Lock()
	defer b.following.Unlock()
	b.mu.Lock()
	old, memory := b.index, b.config.index.memory
	b.mu.Unlock()
	if err := old.Close(); err != nil { // searches that use it fail, and ask again
		return err
	}
	h, err := b.openFiles(old.number, old.files, memory)
	if errors.Is(err, index.ErrCorrupt) || errors.Is(err, index.ErrSettings) {
		b.lg.Warn("index is made anew", "err", err)
		return b.emptyIndex()
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.index = h
	b.mu.Unlock()
	old.release()
	return nil
}

// doubt has the index made anew if err says that it is damaged: parts of it are
// verified only when something is looked for in them. Until then what needs
// those parts fails.
func (b *Broker) doubt(h *held, err error) {
	if !errors.Is(err, index.ErrCorrupt) {
		return
	}
	b.mu.Lock()
	first := b.index == h && !b.reindex && !b.rebuilding
	if first {
		b.renew()
	}
	b.mu.Unlock()
	if first {
		b.lg.Warn("index is made anew", "err", err)
		b.event("damaged", ndb.Of("err", err))
	}
}

// using has ask look something up in the index, in another that is opened anew
// meanwhile too; one that proves damaged is doubted.
func (b *Broker) using(ask func(h *held) error) (err error) {
	for range 3 {
		h := b.hold()
		err = ask(h)
		b.doubt(h, err)
		h.release()
		if !errors.Is(err, iofs.ErrClosed) {
			break
		}
	}
	return err
}

// merged hears how the merging of an index ended: a segment that proves damaged
// then is as bad as one that a search finds.
func (b *Broker) merged(h *held, err error) {
	b.mu.Lock()
	was := b.mergeTrouble
	b.mergeTrouble = err
	b.mu.Unlock()
	if err != nil || was != nil {
		b.shown.complain("merge", "", err)
	}
	b.doubt(h, err)
}

// check reads all of the index, also what queries seldom need. What it finds
// damaged is doubted as if a query had.
func (b *Broker) check(ctx context.Context) error {
	begin := time.Now()
	var docs int
	err := b.using(func(h *held) error {
		docs = h.Stats().Docs
		return h.Check(ctx)
	})
	if ctx.Err() != nil { // it says nothing about the index
		return ctx.Err()
	}
	result := ndb.Of("objects", docs)
	if err != nil {
		result = ndb.Of("err", err)
		err = fmt.Errorf("check: %w", err)
	}
	b.event("check", result, ndb.Of("took", time.Since(begin).Round(time.Millisecond)))
	return err
}

// merge makes one segment of all that the index has, while queries are answered.
func (b *Broker) merge(ctx context.Context) error {
	begin := time.Now()
	var before, after int
	err := b.using(func(h *held) error {
		m, ok := h.Engine.(index.Merger)
		if !ok {
			return fmt.Errorf("engine=%s has nothing to merge: %w", h.files.engine, iofs.ErrInvalid)
		}
		before = h.Stats().Segments
		err := m.MergeAll(ctx)
		after = h.Stats().Segments
		return err
	})
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	b.event("merged", ndb.Of("segments", before), ndb.Of("left", after), ndb.Of("took", time.Since(begin).Round(time.Millisecond)))
	return nil
}

// rebuildStep is how many changes a new index takes before the one in use is
// brought up to date again, so that what is new is found meanwhile too.
const rebuildStep = 8 << 10

// rebuild makes the index anew, while the old one answers. The caller has set
// rebuilding: two at once would make the same folder.
func (b *Broker) rebuild(ctx context.Context) (err error) {
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.rebuilding = false
		b.reindex = b.reindex || err != nil || b.index.files != b.config.index.files
	}()
	h, err := b.beginIndex()
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.next = h
	b.mu.Unlock()
	for more := true; more && err == nil; {
		if more, err = b.feed(ctx, h, rebuildStep); err == nil && more {
			if err = b.follow(ctx); errors.Is(err, index.ErrCorrupt) {
				err = nil // a reason to make it anew
			}
		}
	}
	if err == nil {
		err = b.finish(ctx, h)
	}
	b.mu.Lock()
	b.next = nil
	b.mu.Unlock()
	if err != nil {
		h.release()
		err = errors.Join(err, os.RemoveAll(b.indexDir(h.number)))
	}
	return err
}

// finish brings a new index up to date with nothing in between, and puts it
// in place of the old one.
func (b *Broker) finish(ctx context.Context, h *held) error {
	b.following.Lock()
	defer b.following.Unlock()
	for more := true; more; {
		var err error
		if more, err = b.feed(ctx, h, followFirst); err != nil {
			return err
		}
	}
	if err := b.replace(h); err != nil {
		return err
	}
	b.event("reindexed", h.files.pairs()...)
	return nil
}
