package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index/query"
)

// Administration: what lines of ctl do that no other part of the Broker has. What
// they set goes into the config, where it can be seen, and so outlives a restart.

// tell logs a record of a type: which is said by whom goes without saying of the
// process itself.
func (b *Broker) tell(ctx context.Context, kind string, pairs ...ndb.Pair) {
	if !b.journal.wants(kind) {
		return
	}
	all := []ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", kind)}
	if user := userOf(ctx); user != "" {
		all = append(all, ndb.Of("user", user))
	}
	b.journal.add(kind, ndb.Format(append(all, pairs...)...))
}

// tellChanges logs objects that came, went or live longer.
func (b *Broker) tellChanges(source string, changes []store.Change) {
	for op, kind := range map[soif.Op]string{soif.Update: logUpdate, soif.Delete: logDelete, soif.Refresh: logRefresh} {
		if !b.journal.wants(kind) {
			continue
		}
		for i := range changes {
			if c := &changes[i]; c.Op == op {
				b.tell(context.Background(), kind, ndb.Of("source", source), ndb.Of("oid", c.OID), ndb.Of("url", c.URL))
			}
		}
	}
}

// edit changes the config's text and puts it in force.
func (b *Broker) edit(ctx context.Context, change func(text string) (string, error)) error {
	b.setting.Lock()
	defer b.setting.Unlock()
	text, err := change(b.configText())
	if err != nil {
		return err
	}
	return b.setText(ctx, text)
}

// set puts an entry into the config, in place of the one it is about.
func (b *Broker) set(ctx context.Context, text string) error {
	e, err := ndb.ParseLine(text, 1)
	if err == nil && len(e.Pairs) == 0 {
		err = fmt.Errorf("usage: set ENTRY, an entry of the config: %w", iofs.ErrInvalid)
	}
	if err != nil {
		return err
	}
	return b.edit(ctx, func(all string) (string, error) { return replaceEntry(all, e, strings.TrimSpace(text)), nil })
}

// unset takes an entry out of the config, so that what goes without counts again.
func (b *Broker) unset(ctx context.Context, arg []string) error {
	e := ndb.Entry{Pairs: []ndb.Pair{{Key: arg[0]}}}
	if key := entryName(arg[0]); key != "" && len(arg) > 1 {
		e.Pairs = append(e.Pairs, ndb.Pair{Key: key, Value: arg[1]})
	} else if len(arg) > 1 {
		return fmt.Errorf("unset %s: there is one; write it without %s: %w", arg[0], arg[1], iofs.ErrInvalid)
	}
	return b.edit(ctx, func(all string) (string, error) {
		left := replaceEntry(all, e, "")
		if left == all {
			return "", fmt.Errorf("unset: config has no such entry: %w", iofs.ErrNotExist)
		}
		return left, nil
	})
}

// entryName is the key that tells entries of a kind from one another, "" if there is
// one at most.
func entryName(kind string) string {
	switch kind {
	case "source", "backend":
		return "path"
	case "limits":
		return "user"
	}
	return ""
}

// replaceEntry puts a line in place of the entry that is about the same as e, at the
// end if there is none; the empty line only takes it out. Other lines, comments too,
// stay as they are.
func replaceEntry(text string, e ndb.Entry, line string) string {
	key := entryName(e.First().Key)
	name, _ := e.Get(key)
	var out strings.Builder
	done := line == ""
	for old := range strings.Lines(text) {
		o, err := ndb.ParseLine(old, 1)
		same := err == nil && len(o.Pairs) > 0 && o.First().Key == e.First().Key
		if other, _ := o.Get(key); same && other != name {
			same = false
		}
		if same && e.First().Key == "weight" && line != "" { // there may be many, each of some attributes
			same = slices.Equal(keysOf(o), keysOf(e))
		}
		switch {
		case !same:
			out.WriteString(strings.TrimSuffix(old, "\n") + "\n")
		case !done:
			out.WriteString(line + "\n")
			done = true
		}
	}
	if !done {
		out.WriteString(line + "\n")
	}
	return out.String()
}

func keysOf(e ndb.Entry) (keys []string) {
	for _, p := range e.Pairs {
		keys = append(keys, p.Key)
	}
	slices.Sort(keys)
	return keys
}

// setLog changes which types are logged, or whether anything is.
func (b *Broker) setLog(ctx context.Context, change func(c *logConfig)) error {
	b.mu.Lock()
	c := b.config.log
	b.mu.Unlock()
	c.types = maps.Clone(c.types)
	change(&c)
	line := ndb.Format(ndb.Of("log", ""), ndb.Of("types", strings.Join(slices.Sorted(maps.Keys(c.types)), " ")),
		ndb.Of("size", c.size), ndb.Of("keep", c.keep), ndb.Of("open", c.open))
	return b.set(ctx, line)
}

// logCtl is log open|close|flush|rotate and log add|remove TYPE….
func (b *Broker) logCtl(ctx context.Context, arg []string) error {
	types, err := parseTypes(arg[1:])
	takes := arg[0] == "add" || arg[0] == "remove"
	switch {
	case err != nil:
		return err
	case takes != (len(types) > 0):
		return fmt.Errorf("log %s: usage: log open|close|flush|rotate or log add|remove TYPE...: %w", arg[0], iofs.ErrInvalid)
	}
	switch arg[0] {
	case "open", "close":
		return b.setLog(ctx, func(c *logConfig) { c.open = arg[0] == "open" })
	case "add":
		return b.setLog(ctx, func(c *logConfig) { maps.Copy(c.types, types) })
	case "remove":
		return b.setLog(ctx, func(c *logConfig) { maps.DeleteFunc(c.types, func(t string, _ bool) bool { return types[t] }) })
	case "flush":
		return b.journal.flush()
	case "rotate":
		return b.journal.rotate()
	}
	return fmt.Errorf("log %s: unknown; there are open, close, flush, rotate, add and remove: %w", arg[0], iofs.ErrInvalid)
}

// handSource is what the registry calls who added an object by a line of ctl.
const handSource = "by hand"

// add stores the objects of SOIF files, named as sources are; all of a file or none.
func (b *Broker) add(ctx context.Context, files []string) error {
	for _, name := range files {
		n, err := b.addFile(ctx, name)
		if err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
		b.event("added", ndb.Of("file", name), ndb.Of("objects", n))
	}
	return b.catchUp(ctx)
}

func (b *Broker) addFile(ctx context.Context, name string) (int, error) {
	tree, closer, err := b.open(ctx, path.Dir(name))
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	f, err := tree.Open(path.Base(name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b.mu.Lock()
	ttl := b.config.ttl
	b.mu.Unlock()
	changes, err := additions(&atMost{f, maxFarObject, maxFarObject}, ttl)
	if err != nil {
		return 0, err
	}
	at, err := b.registry.places([]string{handSource})
	if err != nil {
		return 0, err
	}
	err = b.put(ctx, at[handSource].id, func() error {
		_, err := b.store.Apply(ctx, changes)
		return err
	}, changes)
	if err == nil {
		b.tellChanges(handSource, changes)
	}
	return len(changes), err
}

// additions reads the objects of a stream.
func additions(text io.Reader, ttl time.Duration) (changes []store.Change, err error) {
	d := soif.NewDecoder(text, soif.Limits{})
	for {
		var o soif.Object
		if err := d.Next(&o); err == io.EOF && len(changes) > 0 {
			return changes, nil
		} else if err == io.EOF {
			return nil, fmt.Errorf("no object: %w", iofs.ErrInvalid)
		} else if err != nil {
			return nil, err
		}
		oid, err := oidOf(&o)
		if err != nil {
			line, _ := d.Pos()
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		c := store.Change{Op: soif.Update, OID: oid, URL: o.URL, Body: o.Append(nil)}
		if _, ok := o.Get("Time-to-Live"); !ok {
			c.TTL = ttl
		}
		changes = append(changes, c)
	}
}

// clean deletes what has outlived its time to live, now.
func (b *Broker) clean(ctx context.Context) error {
	n, err := b.expire(ctx)
	if err != nil {
		return err
	}
	b.event("cleaned", ndb.Of("objects", n))
	return b.catchUp(ctx)
}

// removing is remove oid|url|query WHAT….
func (b *Broker) removing(ctx context.Context, arg []string) error {
	switch arg[0] {
	case "oid":
		return b.delete(ctx, arg[1:])
	case "url":
		return b.removeAll(ctx, func(yield func(store.OID) error) error { return b.byURL(ctx, arg[1:], yield) })
	case "query":
		q, err := query.Parse(strings.Join(arg[1:], " "))
		if err == nil {
			q, err = standing(q)
		}
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		return b.removeAll(ctx, func(yield func(store.OID) error) error { return b.byQuery(ctx, q, yield) })
	}
	return fmt.Errorf("remove %s: usage: remove oid|url|query WHAT...: %w", arg[0], iofs.ErrInvalid)
}

// byURL finds objects by whole URLs, or by what they begin with, which ends in *.
func (b *Broker) byURL(ctx context.Context, patterns []string, yield func(store.OID) error) error {
	for e, err := range b.store.Scan(ctx, "", "") {
		if err != nil {
			return err
		}
		for _, p := range patterns {
			if start, ok := strings.CutSuffix(p, "*"); e.URL == p || ok && strings.HasPrefix(e.URL, start) {
				if err := yield(e.OID); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func (b *Broker) byQuery(ctx context.Context, q query.Node, yield func(store.OID) error) error {
	hits, err := b.search(ctx, q)
	for i := range hits {
		if err == nil {
			err = yield(store.OID(hits[i].ID))
		}
	}
	return err
}

// removeAll deletes what find finds; none is an error.
func (b *Broker) removeAll(ctx context.Context, find func(yield func(store.OID) error) error) error {
	n := 0
	var batch []store.Change
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := b.store.Apply(ctx, batch)
		if err == nil {
			b.tellChanges("", batch)
		}
		batch = batch[:0]
		return err
	}
	err := find(func(oid store.OID) error {
		n++
		if batch = append(batch, store.Change{Op: soif.Delete, OID: oid}); len(batch) < batchObjects {
			return nil
		}
		return flush()
	})
	err = errors.Join(err, flush())
	if err == nil && n == 0 {
		return fmt.Errorf("remove: no object is like that: %w", iofs.ErrNotExist)
	}
	b.event("deleted", ndb.Of("objects", n))
	return errors.Join(err, b.catchUp(ctx))
}

// lifetime has an object live for so long from now on.
func (b *Broker) lifetime(ctx context.Context, arg []string) error {
	oid, err := store.ParseOID(arg[0])
	if err != nil {
		return err
	}
	ttl, err := time.ParseDuration(arg[1])
	if err != nil || ttl < time.Second {
		return fmt.Errorf("lifetime %s: not a duration of a second or more, such as 720h: %w", arg[1], iofs.ErrInvalid)
	}
	change := []store.Change{{Op: soif.Refresh, OID: oid, Updated: time.Now(), TTL: ttl}}
	if _, err := b.store.Apply(ctx, change); err != nil {
		return err
	}
	b.tellChanges("", change)
	return b.catchUp(ctx)
}

// indexing is index full|new.
func (b *Broker) indexAgain(ctx context.Context, arg []string) error {
	switch arg[0] {
	case "full":
		return b.askReindex()
	case "new":
		return b.catchUp(ctx)
	}
	return fmt.Errorf("index %s: usage: index full|new: %w", arg[0], iofs.ErrInvalid)
}

// Whether the Broker is to begin nothing by itself, and whether it answers, stands
// in the file stopped: stop or shutdown.
const (
	stoppedName = "stopped"
	stopWord    = "stop"
	shutWord    = "shutdown"
)

// keepStopped writes down that the Broker is stopped, or is not.
func (b *Broker) keepStopped(word string) error {
	name := filepath.Join(b.dir, stoppedName)
	if word != "" {
		return writeFile(name, []byte(word+"\n"))
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

// wasStopped reads it, at the start.
func (b *Broker) wasStopped() error {
	text, err := os.ReadFile(filepath.Join(b.dir, stoppedName))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	b.stopped, b.shut = true, strings.TrimSpace(string(text)) == shutWord
	return err
}

// halt stops the Broker, or starts it, for good.
func (b *Broker) halt(word string) error {
	if err := b.keepStopped(word); err != nil {
		return err
	}
	b.mu.Lock()
	b.shut = word == shutWord
	b.mu.Unlock()
	return b.stop(word != "")
}

// open says why nobody may ask.
func (b *Broker) answers() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		return fmt.Errorf("broker %s is shut down; write start to its ctl: %w", b.name, syscall.EAGAIN)
	}
	return nil
}

// renewAll begins anew what a restart of the process would: collections, the
// config as it is on disk, the index, what is kept of answers.
func (b *Broker) renewAll(ctx context.Context) error {
	b.mu.Lock()
	for _, s := range b.sources {
		if s.cancel != nil {
			s.cancel()
		}
		s.fails = 0
	}
	b.mu.Unlock()
	text, err := os.ReadFile(filepath.Join(b.dir, "config"))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	b.front.use(nil)
	if err := b.setConfig(ctx, string(text)); err != nil {
		return err
	}
	return b.reopen()
}

// tellStats logs the statistics of now.
func (b *Broker) tellStats(ctx context.Context) error {
	b.journal.add(logAdmin, ndb.Format(append([]ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("event", "stats")}, b.figures()...)...))
	return nil
}
