package broker

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"harvest/broker/view"
	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// The tree of the views:
//
//	views/
//		NAME/
//			query  ctl  err  status  edits  diff
//			hits  summary  soif  events  since/
//			results/  OID-NAME.soif …
//			NAME/  …       a view inside of this one
//
// A result is a file of its own, since it can be removed from the view.

// shownView is what is kept of a view for its side of the tree.
type shownView struct {
	b      *Broker
	err    *fs.Err
	events *fs.Log
	dir    fs.Dir // what is in a view beside other views
	path   uint64
}

// keepViewEvents is how much of the events of a view is kept.
const keepViewEvents = 16 << 10

func (b *Broker) viewID(id uint32, parts ...string) uint64 {
	return b.id(append([]string{"views", fmt.Sprint(id)}, parts...)...)
}

func (b *Broker) newShownView(w view.View) shownView {
	id := func(parts ...string) uint64 { return b.viewID(w.ID, parts...) }
	s := shownView{b: b, err: fs.NewErr(id("err")), events: fs.NewLog(keepViewEvents), path: id("")}
	f := viewFiles{b: b, name: w.Name, id: w.ID}
	nodes := b.pageFiles(f.page, f.vers, func(name string) uint64 { return id(name) })
	delete(nodes, "why")
	delete(nodes, "plan")
	delete(nodes, "results.html")
	maps.Copy(nodes, map[string]fs.Node{
		"query": fs.Config(id("query"), s.err, f.query, f.setQuery).Named("query"),
		"ctl": fs.Ctl(id("ctl"), s.err,
			fs.On("add OID...", f.edit(view.Joined)),
			fs.On("remove OID...", f.edit(view.Left)),
			fs.On("leave OID...", f.edit(0))).OwnedBy(w.Owner),
		"err":     s.err,
		"status":  fs.Text(id("status"), f.status),
		"edits":   fs.Stream(id("edits"), 0, f.writeEdits),
		"diff":    fs.Stream(id("diff"), 0, f.writeDiff),
		"results": viewResults{f},
		"since":   fs.Func{Path: id("since"), Look: f.lookSince, Each: f.eachSince},
	})
	nodes["origins"] = fs.Hidden(fs.Text(id("origins"), b.origins)) // whoever collects a view collects from its Broker
	s.events.Nodes(nodes, "events", id)
	s.dir = fs.Static(id(""), nodes)
	return s
}

// tell adds a record to events; changed says that there is something new.
func (s *shownView) tell(record string) { s.events.Add(record) }

func (s *shownView) changed() { s.b.shown.bus.Changed(s.path) }

// viewsDir is views/, and what of a view is views.
type viewsDir struct {
	b    *Broker
	name string // of the view it is, "" for views/
}

func (d viewsDir) Stat() fs.Stat {
	return fs.Stat{Path: d.b.id("views"), Vers: d.b.views.vers(), Mode: 0o777}
}

func (d viewsDir) full(name string) string {
	if d.name == "" {
		return name
	}
	return d.name + "/" + name
}

func (d viewsDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	w, err := d.b.views.set.Get(d.full(name))
	if err != nil || strings.Contains(name, "/") {
		return nil, notExist(name)
	}
	return d.b.viewDir(w), nil
}

func (b *Broker) viewDir(w view.View) viewDir {
	return viewDir{b.views.stateOf(w.Name).dir, viewsDir{b, w.Name}, w}
}

func (d viewsDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return fs.Sorted(d.entries(), after)
}

func (d viewsDir) entries() (list []fs.Entry) {
	for _, w := range d.b.views.set.Inside(d.name) {
		list = append(list, fs.Entry{Name: path.Base(w.Name), Node: d.b.viewDir(w)})
	}
	return list
}

// Mkdir makes a view, of whoever asks.
func (d viewsDir) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := mayWrite(ctx, d, name); err != nil {
		return nil, err
	}
	return d.mkdir(ctx, name)
}

// maxViewName bounds the name of a view with those it is inside of.
const maxViewName = 1024

func (d viewsDir) mkdir(ctx context.Context, name string) (fs.Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	full := d.full(name)
	if len(full) > maxViewName {
		return nil, fmt.Errorf("%s: views inside of views, with names of %d bytes in all: %w", name, len(full), syscall.ENAMETOOLONG)
	}
	w, err := d.b.views.make(full, userName(ctx))
	if err != nil {
		return nil, err
	}
	d.b.shown.bus.Entry(d.path(), name)
	return d.b.viewDir(w), nil
}

// path is the identity of the directory that the views are seen in.
func (d viewsDir) path() uint64 {
	if w, err := d.b.views.set.Get(d.name); err == nil {
		return d.b.viewID(w.ID, "")
	}
	return d.b.id("views")
}

// Remove removes a view with what is known of it; the objects stay.
func (d viewsDir) Remove(ctx context.Context, name string) error {
	w, err := d.b.views.set.Get(d.full(name))
	if err != nil {
		return notExist(name)
	}
	if u := fs.UserOf(ctx); !u.Owner && u.Name != w.Owner {
		return fmt.Errorf("%s: %w", name, iofs.ErrPermission)
	}
	if err := d.b.views.remove(w.Name); err != nil {
		return err
	}
	d.b.shown.bus.Entry(d.path(), name)
	return nil
}

// A viewDir is a view: its files and the views inside of it.
type viewDir struct {
	fs.Dir // the files
	inside viewsDir
	w      view.View
}

func (d viewDir) Stat() fs.Stat {
	st := d.Dir.Stat()
	st.Vers ^= d.inside.b.views.vers() << 8
	st.Mode, st.Owner = 0o755, d.w.Owner
	return st
}

func (d viewDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	n, err := d.Dir.Lookup(ctx, name)
	if err == nil || !errors.Is(err, iofs.ErrNotExist) {
		return n, err
	}
	return d.inside.Lookup(ctx, name)
}

func (d viewDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	list := d.inside.entries()
	for e, err := range d.Dir.List(ctx, "") {
		if err != nil {
			return func(yield func(fs.Entry, error) bool) { yield(e, err) }
		}
		list = append(list, e)
	}
	return fs.Sorted(list, after)
}

func (d viewDir) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := mayWrite(ctx, d, name); err != nil {
		return nil, err
	}
	if _, err := d.Dir.Lookup(ctx, name); err == nil {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	return d.inside.mkdir(ctx, name)
}

// Create, Remove and Rename are for the files of editors; and Remove for the
// views inside.
func (d viewDir) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	return d.Dir.(fs.Creator).Create(ctx, name, perm, m)
}

func (d viewDir) Remove(ctx context.Context, name string) error {
	if _, err := d.inside.Lookup(ctx, name); err == nil {
		return d.inside.Remove(ctx, name)
	}
	return d.Dir.(fs.Remover).Remove(ctx, name)
}

func (d viewDir) Rename(ctx context.Context, old, new string, replace bool) error {
	return d.Dir.(fs.Renamer).Rename(ctx, old, new, replace)
}

// viewFiles are the files of a view.
type viewFiles struct {
	b    *Broker
	name string
	id   uint32
}

// now is the view, as far as it is still there.
func (f viewFiles) now() view.View {
	w, err := f.b.views.set.Get(f.name)
	if err != nil || w.ID != f.id {
		return view.View{ID: f.id, Name: f.name}
	}
	return w
}

func (f viewFiles) vers() uint32 { return uint32(f.now().Seq) }

func (f viewFiles) query() string {
	if q := f.now().Query; q != nil {
		return q.String() + "\n"
	}
	return ""
}

func (f viewFiles) setQuery(ctx context.Context, text string) error {
	return f.b.views.setQuery(ctx, f.name, text)
}

func (f viewFiles) edit(op view.Op) func(context.Context, []string) error {
	return func(_ context.Context, arg []string) error {
		oids := make([]store.OID, len(arg))
		for i, text := range arg {
			oid, err := store.ParseOID(text)
			if err == nil {
				_, err = f.b.store.Stat(oid)
			}
			if err != nil {
				return err
			}
			oids[i] = oid
		}
		for _, oid := range oids {
			if err := f.b.views.edit(f.name, op, oid); err != nil {
				return err
			}
		}
		return nil
	}
}

func (f viewFiles) status() string {
	w := f.now()
	query := ""
	if w.Query != nil {
		query = w.Query.String()
	}
	state := "idle"
	if !w.Filled {
		state = "filling"
	}
	return ndb.Format(ndb.Of("state", state)) + "\n" + lines([]ndb.Pair{ndb.Of("query", query), ndb.Of("objects", w.Members), ndb.Of("last", w.Seq)})
}

// page is all of the view, the newest first.
func (f viewFiles) page() page {
	a, err := f.b.views.answer(f.name)
	if err != nil {
		f.b.lg.Error("view", "name", f.name, "err", err)
		return page{}
	}
	return a.all()
}

// writeEdits writes what was done by hand, a line an object.
func (f viewFiles) writeEdits(_ context.Context, w io.Writer) error {
	edits, err := f.b.views.set.ByHand(f.name)
	if err != nil {
		return err
	}
	var list []string
	for oid, op := range edits {
		word := "add"
		if op == view.Left {
			word = "remove"
		}
		url := ""
		if e, err := f.b.store.Stat(store.OID(oid)); err == nil {
			url = e.URL
		}
		list = append(list, fmt.Sprintf("%s\t%s\t%s\n", word, store.OID(oid), oneLine(url, 500)))
	}
	slices.Sort(list)
	_, err = io.WriteString(w, strings.Join(list, ""))
	return err
}

// writeDiff writes what is in the view now and was not before its query changed
// last, and what was and is not.
func (f viewFiles) writeDiff(ctx context.Context, w io.Writer) error {
	buf := bufio.NewWriter(w)
	err := f.b.views.diff(f.name, func(op view.Op, oid store.OID) error {
		e, err := f.b.store.Stat(oid)
		if errors.Is(err, iofs.ErrNotExist) {
			err = nil
		}
		fmt.Fprintf(buf, "%c\t%s\t%s\n", op, oid, oneLine(e.URL, 500))
		return errors.Join(err, ctx.Err())
	})
	return errors.Join(err, buf.Flush())
}

// lookSince knows every cursor that can be gone on from.
func (f viewFiles) lookSince(_ context.Context, name string) (fs.Node, error) {
	after, err := f.b.views.parseCursor(f.name, name)
	if err != nil {
		return nil, err
	}
	return f.since(name, after), nil
}

func (f viewFiles) since(name string, after uint64) fs.Node {
	return fs.Stream(f.b.viewID(f.id, "since", name), f.vers(), func(ctx context.Context, w io.Writer) error {
		return f.b.views.writeSince(ctx, w, f.name, after)
	})
}

func (f viewFiles) eachSince(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return fs.Sorted([]fs.Entry{{Name: "0", Node: f.since("0", 0)}}, after)
}

// viewResults is results/ of a view: the objects, under names that say what they
// are, and are theirs whatever else is there: digits of the OID, and the last
// part of the URL.
type viewResults struct{ viewFiles }

func (d viewResults) Stat() fs.Stat {
	return fs.Stat{Path: d.b.viewID(d.id, "results"), Vers: d.vers(), Mode: 0o755, Owner: d.now().Owner}
}

// How many digits of an OID begin a name: among a million objects two have the
// same with a chance of 3 in 10^8.
const nameDigits = 16

func viewName(oid store.OID, url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	if i := strings.Index(url, "://"); i >= 0 {
		url = url[i+3:]
	}
	base := path.Base(url)
	if strings.HasSuffix(url, "/") || base == "." {
		base = "@"
	}
	if base = escape(strings.ToValidUTF8(base, "_")); len(base) > 100 {
		base = strings.ToValidUTF8(base[:100], "")
	}
	return oid.String()[:nameDigits] + "-" + base + objectSuffix
}

func (d viewResults) Lookup(ctx context.Context, name string) (fs.Node, error) {
	oid, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return d.object(ctx, oid)
}

// find gives the member of a name; that of the object in objects/ is known too.
func (d viewResults) find(name string) (oid store.OID, err error) {
	if oid, err := store.ParseOID(strings.TrimSuffix(name, objectSuffix)); err == nil && strings.HasSuffix(name, objectSuffix) {
		if yes, err := d.b.views.set.Has(d.name, index.ID(oid)); err != nil || yes {
			return oid, err
		}
		return oid, notExist(name)
	}
	var from index.ID
	if len(name) < nameDigits {
		return oid, notExist(name)
	}
	if _, err := hex.Decode(from[:], []byte(name[:nameDigits])); err != nil {
		return oid, notExist(name)
	}
	list, err := d.b.views.set.After(d.name, from, 1)
	if err != nil {
		return oid, err
	}
	if len(list) == 1 {
		if e, err := d.b.store.Stat(store.OID(list[0])); err == nil && viewName(e.OID, e.URL) == name {
			return e.OID, nil
		}
	}
	return oid, notExist(name)
}

func (d viewResults) object(ctx context.Context, oid store.OID) (fs.Node, error) {
	n, err := results{b: d.b, file: func(oid string, f fs.File) fs.Node {
		return resultFile{f, d.b.viewID(d.id, "result", oid)}
	}}.object(ctx, hit{oid: oid})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (d viewResults) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	const some = 1000
	return func(yield func(fs.Entry, error) bool) {
		var from index.ID
		if len(after) >= nameDigits {
			if _, err := hex.Decode(from[:], []byte(after[:nameDigits])); err != nil {
				from = index.ID{}
			}
		}
		for {
			list, err := d.b.views.set.After(d.name, from, some)
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			for _, id := range list {
				e, err := d.b.store.Stat(store.OID(id))
				if errors.Is(err, iofs.ErrNotExist) {
					continue // deleted since
				}
				name := viewName(e.OID, e.URL)
				if err == nil && name <= after {
					continue
				}
				var n fs.Node
				if err == nil {
					n, err = d.object(ctx, e.OID)
				}
				if errors.Is(err, iofs.ErrNotExist) {
					continue
				}
				if !yield(fs.Entry{Name: name, Node: n}, err) || err != nil {
					return
				}
			}
			if len(list) < some {
				return
			}
			from = next(list[len(list)-1])
		}
	}
}

// next is the ID after another.
func next(id index.ID) index.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Remove takes an object out of the view, whatever the query says.
func (d viewResults) Remove(ctx context.Context, name string) error {
	if err := mayWrite(ctx, d, name); err != nil {
		return err
	}
	oid, err := d.find(name)
	if err != nil {
		return err
	}
	return d.b.views.edit(d.name, view.Left, oid)
}

// Link puts an object of the Broker into the view, whatever the query says. It
// is linked as what it is called in objects/, and has a name of its own in the
// list.
func (d viewResults) Link(ctx context.Context, name string, target fs.Node) error {
	if err := mayWrite(ctx, d, "results"); err != nil {
		return err
	}
	a, ok := target.(fs.Attributer)
	if !ok {
		return fmt.Errorf("no object: %w", iofs.ErrInvalid)
	}
	all, err := a.Attributes(ctx)
	if err != nil {
		return err
	}
	for _, attr := range all {
		if attr.Name == "oid" {
			oid, err := store.ParseOID(attr.Value)
			if err != nil {
				return err
			}
			if e, err := d.b.store.Stat(oid); err != nil || name != oid.String()+objectSuffix && name != viewName(oid, e.URL) {
				return errors.Join(err, fmt.Errorf("%s: an object keeps its name, %s%s: %w", name, oid, objectSuffix, iofs.ErrInvalid))
			}
			return d.b.views.edit(d.name, view.Joined, oid)
		}
	}
	return fmt.Errorf("no object: %w", iofs.ErrInvalid)
}

// writeSince writes what has changed in a view since, as an update stream.
func (v *views) writeSince(ctx context.Context, w io.Writer, name string, after uint64) error {
	const some = 1000
	u := soif.NewUpdateWriter(w)
	for {
		list, err := v.set.Since(name, after, some)
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			after = r.Seq
			if err := v.writeRecord(u, r); err != nil {
				return err
			}
		}
		if len(list) < some {
			return u.Close(store.Cursor{Epoch: v.set.Epoch(), Seq: after}.String())
		}
	}
}

func (v *views) writeRecord(u *soif.UpdateWriter, r view.Record) error {
	if r.Op != view.Left {
		return v.b.writeUpdate(u, store.OID(r.ID))
	}
	return writeDelete(u, store.OID(r.ID), "")
}
