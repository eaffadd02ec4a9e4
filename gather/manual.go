package gather

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/crawl"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A manual keeps what people have written about objects, and what the machine
// has found where they have: the store has the two merged, and neither ever
// overwrites the other.
//
// It is a bbolt file, manual.db, "harvest manual 1":
//
//	text   name → the text as it was written: OID.soif is about one object,
//	       url/PATH.soif about that of a URL, any other has objects of its own
//	made   OID name → one of those objects, encoded
//	auto   OID → what the machine has found, encoded
//	dirty  OID → nothing: the store may not have it merged yet
//	meta   version → the first line above
//
// A change is in manual.db, its objects marked dirty, before it is in the store;
// after a crash in between Open does what was left.
type manual struct {
	g  *Gatherer
	db *bbolt.DB
	n  atomic.Int64 // texts

	tell func(names ...string) // hears which files changed

	// mu makes one thing of a change to manual.db and to the store.
	mu sync.Mutex
}

const manualVersion = "harvest manual 1"

var manualBuckets = []string{"text", "made", "auto", "dirty", "meta"}

func openManual(g *Gatherer) (m *manual, err error) {
	m = &manual{g: g, tell: func(...string) {}}
	if m.db, err = bbolt.Open(g.path("manual.db"), 0o640, &bbolt.Options{Timeout: time.Second}); err != nil {
		return nil, fmt.Errorf("manual: %w", err)
	}
	err = m.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range manualBuckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte("meta"))
		switch v := meta.Get([]byte("version")); {
		case v == nil:
			return meta.Put([]byte("version"), []byte(manualVersion))
		case string(v) != manualVersion:
			return fmt.Errorf("manual.db is %.40q, this program reads %q", v, manualVersion)
		}
		m.n.Store(int64(tx.Bucket([]byte("text")).Stats().KeyN))
		return nil
	})
	if err == nil {
		err = m.mend(context.Background())
	}
	if err != nil {
		m.db.Close()
		return nil, fmt.Errorf("manual: %w", err)
	}
	return m, nil
}

func (m *manual) close() error { return m.db.Close() }

// mend merges what a crash has left unmerged.
func (m *manual) mend(ctx context.Context) error {
	var oids []store.OID
	err := m.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("dirty")).ForEach(func(k, _ []byte) error {
			oids = append(oids, store.OID(k))
			return nil
		})
	})
	if err != nil || len(oids) == 0 {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.merge(ctx, oids)
}

// text returns what was written under a name.
func (m *manual) text(name string) (text string, ok bool) {
	m.db.View(func(tx *bbolt.Tx) error { // it fails of nothing
		b := tx.Bucket([]byte("text")).Get([]byte(name))
		text, ok = string(b), b != nil
		return nil
	})
	return text, ok
}

// A hand is what people have written about one object.
type hand struct {
	made []soif.Object // whole objects, in the order of their files' names
	over []soif.Attr   // attributes, the later over the earlier
	any  bool
}

// hand returns what was written about an object.
func (m *manual) hand(tx *bbolt.Tx, oid store.OID, url string) (h hand, err error) {
	c := tx.Bucket([]byte("made")).Cursor()
	for k, v := c.Seek(oid[:]); bytes.HasPrefix(k, oid[:]); k, v = c.Next() {
		o, _, err := soif.Parse(bytes.Clone(v), soif.Limits{})
		if err != nil {
			return h, fmt.Errorf("made object %s: %w", oid, err)
		}
		h.made = append(h.made, o)
		o.Del("Update-Time") // it moves by itself
		h.over = append(h.over, o.Attrs...)
		h.any = true
	}
	for _, name := range []string{"url/" + store.Path(url), oid.String() + ".soif"} {
		text := tx.Bucket([]byte("text")).Get([]byte(name))
		if text == nil {
			continue
		}
		o, err := handAttributes(string(text), "")
		if err != nil {
			return h, fmt.Errorf("%s: %w", name, err)
		}
		h.over = append(h.over, o.Attrs...)
		h.any = true
	}
	return h, nil
}

// merged returns an object as the collection is to have it, nil if there is
// none. Auto is what the machine has found, nil if nothing.
func (h *hand) merged(auto []byte, updated time.Time) ([]byte, error) {
	var o soif.Object
	switch {
	case auto != nil:
		var err error
		if o, _, err = soif.Parse(auto, soif.Limits{}); err != nil {
			return nil, err
		}
		o = o.Clone()
	case len(h.made) > 0:
		o = soif.Object{Type: h.made[0].Type, URL: h.made[0].URL}
	default:
		return nil, nil
	}
	over(&o, h.over)
	if was, err := strconv.ParseInt(o.Text("Update-Time"), 10, 64); err != nil || was < updated.Unix() {
		o.Set("Update-Time", strconv.AppendInt(nil, updated.Unix(), 10))
	}
	return o.Append(nil), nil
}

// keep puts changes into the collection, what people have written merged in.
// Whatever gathers goes through it and never to the store itself.
func (g *Gatherer) keep(ctx context.Context, changes []store.Change) error {
	g.validate(changes)
	m := g.manual
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n.Load() == 0 {
		_, err := g.store.Apply(ctx, changes)
		return err
	}
	out := slices.Clone(changes)
	touched, err := m.takeIn(out)
	if err != nil {
		return err
	}
	if _, err := g.store.Apply(ctx, out); err != nil {
		return err
	}
	m.tell(autoNames(touched)...)
	return m.clean(touched)
}

// takeIn notes what the machine has found of objects that people have written
// about, and has the changes say what the collection is to have. mu is held.
func (m *manual) takeIn(changes []store.Change) (touched []store.OID, err error) {
	var notes []func(tx *bbolt.Tx) error
	err = m.db.View(func(tx *bbolt.Tx) error {
		for i := range changes {
			c := &changes[i]
			h, err := m.hand(tx, c.OID, c.URL)
			if err != nil || !h.any {
				if err != nil {
					return err
				}
				continue
			}
			note, err := m.takeOne(tx, c, &h)
			if err != nil {
				return fmt.Errorf("object %s: %w", c.OID, err)
			}
			touched = append(touched, c.OID)
			notes = append(notes, note)
		}
		return nil
	})
	if err != nil || len(touched) == 0 {
		return nil, err
	}
	return touched, m.db.Update(func(tx *bbolt.Tx) error {
		for i, note := range notes {
			if err := errors.Join(note(tx), tx.Bucket([]byte("dirty")).Put(touched[i][:], []byte{})); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeOne merges one change, and returns what is to be noted of it.
func (m *manual) takeOne(tx *bbolt.Tx, c *store.Change, h *hand) (note func(*bbolt.Tx) error, err error) {
	oid, auto := c.OID, bytes.Clone(tx.Bucket([]byte("auto")).Get(c.OID[:]))
	none := func(*bbolt.Tx) error { return nil }
	switch c.Op {
	case soif.Delete:
		if c.Body, err = h.merged(nil, time.Now()); err != nil || c.Body == nil {
			// What the machine had is kept: the object may only be on its
			// way to where it is no part of the collection.
			return none, err
		}
		c.Op = soif.Update // made ones stay
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("auto")).Delete(oid[:]) }, nil
	case soif.Refresh:
		o := soif.Object{Attrs: h.over}
		if ttl, err := strconv.ParseInt(o.Text("Time-to-Live"), 10, 32); err == nil && ttl > 0 {
			c.TTL = time.Duration(ttl) * time.Second
		}
		return none, nil
	}
	body := c.Body
	if c.Body, err = h.merged(body, time.Time{}); err != nil {
		return nil, err
	}
	if auto != nil {
		if was, err := h.merged(auto, time.Time{}); err == nil && sameBut(was, body) {
			return none, nil // it comes back as it was taken out, merged
		}
	}
	return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("auto")).Put(oid[:], body) }, nil
}

// clean says that the store has objects merged, and drops what the machine has
// found of those that nothing is written about: both at once, since without it
// an object that is not merged is taken for one that was made by hand. mu is held.
func (m *manual) clean(oids []store.OID, bare ...store.OID) error {
	if len(oids) == 0 {
		return nil
	}
	return m.db.Update(func(tx *bbolt.Tx) error {
		var errs []error
		for _, oid := range oids {
			errs = append(errs, tx.Bucket([]byte("dirty")).Delete(oid[:]))
		}
		for _, oid := range bare {
			errs = append(errs, tx.Bucket([]byte("auto")).Delete(oid[:]))
		}
		return errors.Join(errs...)
	})
}

// A written text is one that was checked: attributes for one object, or objects.
type written struct {
	name  string
	text  *string // nil: the file goes
	about []store.OID
	made  []soif.Object
}

// check reads a text and finds out what it is about.
func (m *manual) check(name string, text *string) (w written, err error) {
	w = written{name: name, text: text}
	if !handName(name) {
		return w, fmt.Errorf("manual/%.60s: a name ends in .soif: %w", name, iofs.ErrInvalid)
	}
	path, byURL := strings.CutPrefix(name, "url/")
	oid, noOID := store.ParseOID(strings.TrimSuffix(name, ".soif"))
	switch {
	case byURL:
		url := ""
		if n, err := m.g.store.Resolve(path); err == nil {
			w.about, url = append(w.about, n.Entry.OID), n.Entry.URL
		}
		if text != nil {
			_, err = handAttributes(*text, url)
		}
	case noOID == nil:
		url := ""
		if e, err := m.g.store.Stat(oid); err == nil {
			url = e.URL
		}
		w.about = append(w.about, oid)
		if text != nil {
			_, err = handAttributes(*text, url)
		}
	case strings.Contains(name, "/"):
		err = fmt.Errorf("manual/%.60s: there is no such folder: %w", name, iofs.ErrNotExist)
	case text != nil:
		w.made, err = m.objects(*text)
	}
	return w, err
}

// set puts a text in place of that of a name, nil for none.
func (m *manual) set(ctx context.Context, name string, text *string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, err := m.check(name, text)
	if err != nil {
		return err
	}
	oids, err := m.write(&w)
	if err != nil {
		return err
	}
	err = m.merge(ctx, oids)
	m.tell(append(autoNames(oids), name)...)
	return err
}

func autoNames(oids []store.OID) (names []string) {
	for _, oid := range oids[:min(len(oids), manyNames)] {
		names = append(names, oid.String()+".auto")
	}
	return names
}

// write puts a checked text into manual.db, and returns the objects that it, or
// the one before, is about. mu is held.
func (m *manual) write(w *written) (oids []store.OID, err error) {
	grown := int64(0)
	err = m.db.Update(func(tx *bbolt.Tx) error {
		texts, made := tx.Bucket([]byte("text")), tx.Bucket([]byte("made"))
		old, had := string(texts.Get([]byte(w.name))), texts.Get([]byte(w.name)) != nil
		oids = slices.Clone(w.about)
		var before []store.OID
		if len(w.about) == 0 && !strings.HasPrefix(w.name, "url/") {
			objects, err := m.objects(old)
			if err != nil {
				return err
			}
			before = m.oids(objects)
			oids = append(append(oids, before...), m.oids(w.made)...)
		}
		if err := m.remember(tx, oids); err != nil {
			return err
		}
		for _, oid := range before {
			if err := made.Delete(append(oid[:], w.name...)); err != nil {
				return err
			}
		}
		for i, oid := range m.oids(w.made) {
			if err := made.Put(append(oid[:], w.name...), w.made[i].Append(nil)); err != nil {
				return err
			}
		}
		switch {
		case w.text == nil && had:
			grown = -1
			return texts.Delete([]byte(w.name))
		case w.text == nil:
			return absentHand(w.name)
		case !had:
			grown = 1
		}
		return texts.Put([]byte(w.name), []byte(*w.text))
	})
	if err == nil {
		m.n.Add(grown)
	}
	return oids, err
}

// objects reads the text of a file with objects of its own.
func (m *manual) objects(text string) ([]soif.Object, error) {
	all, err := handObjects(text)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]int)
	for i := range all {
		o := &all[i]
		if o.URL == "" || o.URL == "-" {
			return nil, lineError(1, "object %d has no URL; a file that is not named by an OID has objects of its own", i+1)
		}
		if u, err := crawl.Canonical(o.URL); err == nil { // else it is no address: a name
			o.URL = u
		}
		if n := seen[o.URL]; n > 0 {
			return nil, lineError(1, "object %d has the URL of object %d", i+1, n)
		}
		seen[o.URL] = i + 1
	}
	return all, nil
}

func (m *manual) oids(objects []soif.Object) (oids []store.OID) {
	for _, o := range objects {
		oids = append(oids, m.g.oid(o.URL))
	}
	return oids
}

// remember notes what the machine has found of objects that nothing was written
// about until now, and marks all as not merged yet.
func (m *manual) remember(tx *bbolt.Tx, oids []store.OID) error {
	auto, dirty := tx.Bucket([]byte("auto")), tx.Bucket([]byte("dirty"))
	for _, oid := range oids {
		if err := dirty.Put(oid[:], []byte{}); err != nil {
			return err
		}
		body, e, err := m.g.store.Get(oid)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		h, err := m.hand(tx, oid, e.URL)
		if err == nil && !h.any {
			err = auto.Put(oid[:], body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge puts objects into the collection as they are to be now. mu is held.
func (m *manual) merge(ctx context.Context, oids []store.OID) error {
	slices.SortFunc(oids, func(a, b store.OID) int { return bytes.Compare(a[:], b[:]) })
	oids = slices.Compact(oids)
	for some := range slices.Chunk(oids, 256) {
		var changes []store.Change
		var drop []store.OID // of which nothing is written any more
		err := m.db.View(func(tx *bbolt.Tx) error {
			for _, oid := range some {
				c, bare, err := m.now(tx, oid)
				if err != nil {
					return err
				}
				if bare {
					drop = append(drop, oid)
				}
				if c != nil {
					changes = append(changes, *c)
				}
			}
			return nil
		})
		if err == nil && len(changes) > 0 {
			_, err = m.g.store.Apply(ctx, changes)
		}
		if err == nil {
			err = m.clean(some, drop...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// now returns the change that makes the collection have an object as it is to
// be, nil if it has, and whether nothing is written about it.
func (m *manual) now(tx *bbolt.Tx, oid store.OID) (c *store.Change, bare bool, err error) {
	auto := bytes.Clone(tx.Bucket([]byte("auto")).Get(oid[:]))
	body, e, err := m.g.store.Get(oid)
	there := err == nil
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, false, err
	}
	url := e.URL
	if !there {
		auto = nil // expired, say: what was found of it is no more
		if o, _, err := soif.Parse(firstMade(tx, oid), soif.Limits{}); err == nil {
			url = o.URL
		}
	}
	h, err := m.hand(tx, oid, url)
	if err != nil {
		return nil, false, err
	}
	want, err := h.merged(auto, time.Now())
	switch {
	case err != nil:
		return nil, false, err
	case want == nil && there:
		return &store.Change{Op: soif.Delete, OID: oid, URL: url}, !h.any, nil
	case want == nil || there && sameBut(want, body):
		return nil, !h.any, nil
	}
	return &store.Change{Op: soif.Update, OID: oid, URL: url, Body: want}, !h.any, nil
}

// firstMade returns the first object that was made with an OID.
func firstMade(tx *bbolt.Tx, oid store.OID) []byte {
	k, v := tx.Bucket([]byte("made")).Cursor().Seek(oid[:])
	if !bytes.HasPrefix(k, oid[:]) {
		return nil
	}
	return bytes.Clone(v)
}

// auto returns what the machine has found of an object that people have written
// about and that is in the collection.
func (m *manual) auto(oid store.OID) (body []byte, err error) {
	if _, err := m.g.store.Stat(oid); err != nil {
		return nil, err
	}
	err = m.db.View(func(tx *bbolt.Tx) error {
		body = bytes.Clone(tx.Bucket([]byte("auto")).Get(oid[:]))
		return nil
	})
	if err == nil && body == nil {
		err = absentHand(oid.String() + ".auto")
	}
	return body, err
}

// names returns some of the names that begin with a prefix and come after one,
// in order: those of texts, and when asked those of what the machine has found.
func (m *manual) names(prefix, after string, most int) (names []string, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("text")).Cursor()
		for k, _ := c.Seek([]byte(max(prefix, after))); k != nil && len(names) < most && bytes.HasPrefix(k, []byte(prefix)); k, _ = c.Next() {
			if name := string(k); name > after {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

// autos returns some of the names OID.auto that come after a name.
func (m *manual) autos(after string, most int) (names []string, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("auto")).Cursor()
		for k, _ := c.Seek(hexPrefix(after)); len(k) == len(store.OID{}) && len(names) < most; k, _ = c.Next() {
			if name := store.OID(k).String() + ".auto"; name > after {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

// hexPrefix returns the bytes of the hex digits that a name begins with.
func hexPrefix(name string) []byte {
	n := 0
	for n < len(name) && n < 32 && strings.IndexByte("0123456789abcdef", name[n]) >= 0 {
		n++
	}
	b, _ := hex.DecodeString(name[:n&^1]) // digits it is
	return b
}

// vers moves when manual.db does.
func (m *manual) vers() (vers uint32) {
	m.db.View(func(tx *bbolt.Tx) error { // it fails of nothing
		vers = uint32(tx.ID())
		return nil
	})
	return vers
}
