package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"syscall"

	"harvest/fs"
	"harvest/gather/store"
)

// The tree of what people write:
//
//	manual/OID.soif        attributes for one object
//	manual/OID.auto        what the machine has found of it
//	manual/url/PATH.soif   attributes for the object of a URL
//	manual/NAME.soif       objects of their own
//
// Each is checked as a config is. Other names are editors', as beside a config.

// manualTree holds what the files of manual/ need while somebody has them.
type manualTree struct {
	m   *manual
	err *fs.Err

	mu      sync.Mutex
	configs map[string]*fs.ConfigFile // of texts that were looked at, by name
	editors map[string]fs.Dir         // scratch files of folders in which there were any
	order   []string                  // of editors, the oldest first
	made    map[string]bool           // folders made by mkdir that have nothing yet
}

// Bounds of what is held for people's editors and mkdirs.
const (
	maxEditors = 64
	maxMade    = 1024
	maxConfigs = 4096
)

func (g *Gatherer) manualDir(err *fs.Err, bus *fs.Bus) fs.Dir {
	t := &manualTree{m: g.manual, err: err, configs: make(map[string]*fs.ConfigFile),
		editors: make(map[string]fs.Dir), made: make(map[string]bool)}
	g.manual.tell = func(names ...string) {
		for _, name := range names {
			i := strings.LastIndexByte(name, '/') + 1
			bus.Changed(t.id(name))
			bus.Entry(t.id("dir/"+name[:i]), name[i:])
			bus.Changed(t.id("dir/" + name[:i]))
		}
	}
	return manualDir{t, ""}
}

func (t *manualTree) id(name string) uint64 { return t.m.g.id("manual", name) }

// A manualDir is manual/ or a folder below manual/url. Its path is that below
// manual/, with a slash at the end.
type manualDir struct {
	t    *manualTree
	path string
}

func (d manualDir) Stat() fs.Stat {
	return fs.Stat{Path: d.t.id("dir/" + d.path), Vers: d.t.m.vers(), Mode: 0o755}
}

// byURL reports whether the folder is manual/url or below it.
func (d manualDir) byURL() bool { return strings.HasPrefix(d.path, "url/") }

func (d manualDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	path := d.path + name
	if stem, ok := strings.CutSuffix(name, ".auto"); ok && d.path == "" {
		return d.t.auto(stem)
	}
	if handName(path) {
		if _, ok := d.t.m.text(path); ok {
			return d.t.config(path), nil
		}
		if c := d.t.begun(path); c != nil {
			return c, nil
		}
		return nil, absentHand(path)
	}
	if path == "url" || d.isFolder(name) {
		return manualDir{d.t, path + "/"}, nil
	}
	if stem, ok := strings.CutSuffix(name, ".rejected"); ok && handName(d.path+stem) {
		return d.t.rejected(d.path + stem)
	}
	if e := d.t.editor(d.path, false); e != nil {
		return e.Lookup(ctx, name)
	}
	return nil, absentHand(path)
}

// isFolder knows the folders that have texts, were made, or are folders of the
// objects' URLs.
func (d manualDir) isFolder(name string) bool {
	path := d.path + name
	if !d.byURL() {
		return false
	}
	d.t.mu.Lock()
	made := d.t.made[path+"/"]
	d.t.mu.Unlock()
	if made {
		return true
	}
	if some, _ := d.t.m.names(path+"/", "", 1); len(some) > 0 {
		return true
	}
	n, err := d.t.m.g.store.Resolve(strings.TrimPrefix(path, "url/"))
	return err == nil && n.Dir
}

// config returns the file of a text; all who look at it share its drafts.
func (t *manualTree) config(path string) *fs.ConfigFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.configs[path]; c != nil {
		return c
	}
	if len(t.configs) >= maxConfigs {
		clear(t.configs) // drafts live on in the hands of their writers
	}
	c := fs.Config(t.id(path), t.err,
		func() string { text, _ := t.m.text(path); return text },
		func(ctx context.Context, text string) error {
			if len(text) > maxByHand {
				return fmt.Errorf("manual/%.60s: longer than %d bytes: %w", path, maxByHand, syscall.EFBIG)
			}
			return t.m.set(ctx, path, &text)
		}).Named("manual/" + path)
	t.configs[path] = c
	return c
}

// begun returns the file of a text that somebody is writing and that is not
// there yet, nil if nobody is.
func (t *manualTree) begun(path string) *fs.ConfigFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.configs[path]; c != nil && c.Busy() {
		return c
	}
	return nil
}

// rejected is a text that was refused.
func (t *manualTree) rejected(path string) (fs.Node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.configs[path]; c != nil {
		if f := c.Rejected(); f != nil {
			return f, nil
		}
	}
	return nil, absentHand(path + ".rejected")
}

func (t *manualTree) auto(stem string) (fs.Node, error) {
	oid, err := store.ParseOID(stem)
	if err != nil {
		return nil, absentHand(stem + ".auto")
	}
	body, err := t.m.auto(oid)
	if err != nil {
		return nil, err
	}
	return fs.Bytes(fs.Stat{Path: t.id(stem + ".auto"), Vers: t.m.vers(), Mode: 0o444, Size: int64(len(body))},
		func(context.Context) ([]byte, error) { return t.m.auto(oid) }), nil
}

// editor returns where the scratch files of a folder are, made when asked.
func (t *manualTree) editor(path string, create bool) fs.Dir {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.editors[path]
	if e != nil || !create {
		return e
	}
	if len(t.order) >= maxEditors {
		delete(t.editors, t.order[0])
		t.order = t.order[1:]
	}
	none := fs.Config(t.id("editor/"+path), t.err, func() string { return "" }, func(context.Context, string) error { return iofs.ErrPermission })
	e = fs.Static(t.id("editors/"+path), map[string]fs.Node{nobody: none}) // what has a config has scratch files
	t.editors[path] = e
	t.order = append(t.order, path)
	return e
}

// nobody is a name that no editor uses.
const nobody = "\x00"

// List lists texts, what the machine has found, folders and scratch files.
func (d manualDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		for err := ctx.Err(); ; err = ctx.Err() {
			var names []string
			more := false
			if err == nil {
				names, more, err = d.some(ctx, after)
			}
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			for _, name := range names {
				after = name
				n, err := d.Lookup(ctx, name)
				if errors.Is(err, iofs.ErrNotExist) {
					continue // gone meanwhile
				}
				if !yield(fs.Entry{Name: name, Node: n}, err) || err != nil {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// manyNames is how many names a list reads at once.
const manyNames = 512

// some returns the names of the folder after one, as many as can be told to be
// the next, and whether there may be more.
func (d manualDir) some(ctx context.Context, after string) (names []string, more bool, err error) {
	last := "" // no name after it is known to be complete
	until := func(name string) {
		more = true
		if last == "" || name < last {
			last = name
		}
	}
	texts, err := d.texts(after, until)
	if err != nil {
		return nil, false, err
	}
	names = append(names, texts...)
	if d.path == "" {
		autos, err := d.t.m.autos(after, manyNames)
		if err != nil {
			return nil, false, err
		}
		if names = append(names, autos...); len(autos) == manyNames {
			until(autos[manyNames-1])
		}
		names = append(names, "url")
	}
	names = append(names, d.others(ctx)...)
	names = slices.DeleteFunc(names, func(n string) bool { return n <= after || last != "" && n > last })
	slices.Sort(names)
	return slices.Compact(names), more, nil
}

// texts returns the next names of texts and of folders with texts. Below a
// folder it looks no further than its first text.
func (d manualDir) texts(after string, until func(string)) (names []string, err error) {
	at := ""
	if after != "" {
		at = d.path + after
	}
	for len(names) < manyNames {
		some, err := d.t.m.names(d.path, at, manyNames)
		if err != nil {
			return nil, err
		}
		for _, path := range some {
			name, _, deep := strings.Cut(path[len(d.path):], "/")
			at = path
			if deep {
				at = d.path + name + "/\xff" // past all that is in it
			}
			if len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
			if deep {
				break
			}
		}
		if len(some) == 0 {
			return names, nil
		}
	}
	until(names[len(names)-1])
	return names, nil
}

// others returns the names of folders without texts, of what was refused, and of
// scratch files.
func (d manualDir) others(ctx context.Context) (names []string) {
	if e := d.t.editor(d.path, false); e != nil {
		for entry, err := range e.List(ctx, "") {
			if err == nil && entry.Name != nobody && !strings.HasPrefix(entry.Name, nobody) {
				names = append(names, entry.Name)
			}
		}
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	for path, c := range d.t.configs {
		if dir := path[:strings.LastIndexByte(path, '/')+1]; dir == d.path && c.Rejected() != nil {
			names = append(names, path[len(dir):]+".rejected")
		}
	}
	for path := range d.t.made {
		rest, ok := strings.CutPrefix(path, d.path)
		if name, below, _ := strings.Cut(rest, "/"); ok && name != "" && below == "" {
			names = append(names, name)
		}
	}
	return names
}

// Create makes a text, which is there when it has been checked, or a scratch
// file.
func (d manualDir) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return nil, nil, err
	}
	path := d.path + name
	if !handName(path) {
		return d.t.editor(d.path, true).(fs.Creator).Create(ctx, name, perm, m)
	}
	if _, ok := d.t.m.text(path); ok {
		return nil, nil, fmt.Errorf("manual/%s: %w", path, iofs.ErrExist)
	}
	c := d.t.config(path)
	h, err := c.Open(ctx, m|fs.Trunc)
	return c, h, err
}

// Remove takes back what was written: the object is as the machine has it, and
// objects that were made by hand go.
func (d manualDir) Remove(ctx context.Context, name string) error {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return err
	}
	path := d.path + name
	if handName(path) {
		return d.remove(ctx, path)
	}
	if d.byURL() && d.isFolder(name) {
		return d.rmdir(path)
	}
	if e := d.t.editor(d.path, false); e != nil {
		return e.(fs.Remover).Remove(ctx, name)
	}
	return absentHand(path)
}

func (d manualDir) remove(ctx context.Context, path string) error {
	if err := d.t.m.set(ctx, path, nil); err != nil {
		return err
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	delete(d.t.configs, path)
	return nil
}

func (d manualDir) rmdir(path string) error {
	if some, err := d.t.m.names(path+"/", "", 1); err != nil || len(some) > 0 {
		return errors.Join(err, fmt.Errorf("manual/%s: %w", path, syscall.ENOTEMPTY))
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	delete(d.t.made, path+"/")
	return nil
}

// Mkdir makes a folder of manual/url, so that there is one to write in. It lasts
// as long as the server, or a text in it does.
func (d manualDir) Mkdir(ctx context.Context, name string, _ iofs.FileMode) (fs.Dir, error) {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return nil, err
	}
	path := d.path + name
	switch {
	case !d.byURL():
		return nil, fmt.Errorf("manual/%s: folders are below manual/url: %w", path, iofs.ErrPermission)
	case d.isFolder(name):
		return nil, fmt.Errorf("manual/%s: %w", path, iofs.ErrExist)
	case strings.HasSuffix(name, ".soif") || len(path) > 4096:
		return nil, fmt.Errorf("manual/%.60s: no name of a folder: %w", path, iofs.ErrInvalid)
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	if len(d.t.made) >= maxMade {
		return nil, fmt.Errorf("manual/url: too many empty folders: %w", syscall.ENOSPC)
	}
	d.t.made[path+"/"] = true
	return manualDir{d.t, path + "/"}, nil
}

// Rename is what editors do at the end: a scratch file becomes the text. It is
// checked before anything moves.
func (d manualDir) Rename(ctx context.Context, old, new string, replace bool) error {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return err
	}
	from, to := d.path+old, d.path+new
	if !handName(from) && !handName(to) {
		return d.t.editor(d.path, true).(fs.Renamer).Rename(ctx, old, new, replace)
	}
	text, err := d.read(ctx, old)
	if err != nil {
		return err
	}
	if _, err := d.Lookup(ctx, new); err == nil && !replace {
		return fmt.Errorf("manual/%s: %w", to, iofs.ErrExist)
	}
	if handName(to) {
		err = d.t.config(to).Replace(ctx, text)
	} else {
		err = d.scratch(ctx, new, text)
	}
	if err != nil {
		return err
	}
	return d.Remove(ctx, old)
}

// read returns the content of a text or a scratch file.
func (d manualDir) read(ctx context.Context, name string) ([]byte, error) {
	n, err := d.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := fs.ReadAll(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("manual/%s%s: %w", d.path, name, err)
	}
	return b, nil
}

// scratch makes a scratch file with a content.
func (d manualDir) scratch(ctx context.Context, name string, text []byte) error {
	_, h, err := d.t.editor(d.path, true).(fs.Creator).Create(ctx, name, 0o644, fs.Write)
	if err != nil {
		return err
	}
	if _, err = h.WriteAt(ctx, text, 0); err == nil {
		err = h.Flush(ctx)
	}
	return errors.Join(err, h.Close())
}
