package gather

import (
	"context"
	"fmt"
	iofs "io/fs"
	"iter"
	"slices"
	"strings"

	"harvest/fs"
	"harvest/gather/essence"
	"harvest/gather/store"
)

// The directory types/ of a Gatherer, which docs/gather.4.md describes, and
// trace/:
//
//	types/kinds …   a file for each table of Essence: checked when written, the
//	                program's own text where nothing is set
//	types/err       what was refused last
//	types/list      the types, with how many objects are of each
//	types/try       takes a document, reads as its object and its trace
//	trace/3f/3fa9…  how an object came about, a line a decision

// typesNodes adds them, and what files_summarize.go has in types/.
func (g *Gatherer) typesNodes(nodes map[string]fs.Node) {
	err := fs.NewErr(g.id("types", "err"))
	dir := map[string]fs.Node{"err": err}
	g.broughtNodes(dir, err)
	dir["list"] = fs.Stream(g.id("types", "list"), 0, table(g.writeTypes))
	dir["try"] = newTryFile(g, err)
	for _, name := range essence.TableNames() {
		dir[name] = g.tableText(name, err)
	}
	nodes["types"] = tablesDir{fs.Static(g.id("types"), dir), err}
	nodes["trace"] = fs.Hex(g.id("trace"), 2, func(prefix string) fs.Dir {
		return fs.Func{
			Path: g.id("trace", prefix),
			Look: func(_ context.Context, name string) (fs.Node, error) { return g.lookTrace(prefix, name) },
			Each: func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
				return g.eachTrace(ctx, prefix, after)
			},
		}
	})
}

// A tablesDir is types/: names that are no table's and no editor's are refused, since
// what stands under them would never be read.
type tablesDir struct {
	fs.Dir
	err *fs.Err
}

func (d tablesDir) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	if err := d.stray(name); err != nil {
		return nil, nil, err
	}
	return d.Dir.(fs.Creator).Create(ctx, name, perm, m)
}

func (d tablesDir) Remove(ctx context.Context, name string) error {
	return d.Dir.(fs.Remover).Remove(ctx, name)
}

func (d tablesDir) Rename(ctx context.Context, old, new string, replace bool) error {
	if err := d.stray(new); err != nil {
		return err
	}
	return d.Dir.(fs.Renamer).Rename(ctx, old, new, replace)
}

// stray refuses a name that somebody means for a table: letters only. Editors'
// have something else in them (4913, .rules.swp, rules~, sedAb3xYz beside a table).
func (d tablesDir) stray(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' }) || slices.Contains(essence.TableNames(), name) {
		return nil
	}
	err := fmt.Errorf("types/%.64s: there is no such table; there are %s: %w", name, strings.Join(essence.TableNames(), ", "), iofs.ErrInvalid)
	d.err.Set(name, "", err)
	return err
}

// tableText is the file of a table. One that is removed, or emptied, has the
// program's own text again.
func (g *Gatherer) tableText(name string, err *fs.Err) fs.Node {
	read := func() string { return g.types.get(name) }
	return fs.Config(g.id("types", name), err, read, func(ctx context.Context, text string) error {
		if name == "access" {
			if err := essence.CheckAccess(ctx, text); err != nil {
				return err
			}
		}
		return g.types.setFrom(name, text, fs.UserOf(ctx).Local)
	}).Removable()
}

// traceFile is the trace of an object, rendered once per open.
func (g *Gatherer) traceFile(e store.Entry) fs.Node {
	return fs.Text(g.id("trace", e.OID.String()), func() string {
		text, err := g.traceOf(e.URL)
		if err != nil && len(essence.ContainerOf(e.URL)) > 0 {
			text, err = g.memberTrace(e.URL)
		}
		if err != nil {
			return "" // the object says what it is, and nothing is known of how
		}
		return text
	})
}

func (g *Gatherer) lookTrace(prefix, name string) (fs.Node, error) {
	oid, err := store.ParseOID(name)
	if err != nil || !strings.HasPrefix(name, prefix) {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	e, err := g.store.Stat(oid)
	if err != nil {
		return nil, err
	}
	return g.traceFile(e), nil
}

func (g *Gatherer) eachTrace(ctx context.Context, prefix, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		for e, err := range g.store.Scan(ctx, prefix, hexStart(after)) {
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			if name := e.OID.String(); name > after && !yield(fs.Entry{Name: name, Node: g.traceFile(e)}, nil) {
				return
			}
		}
	}
}

// hexStart is the hex digits that any name begins with, 32 at most: what follows
// the name follows them.
func hexStart(name string) string {
	n := 0
	for n < len(name) && n < 32 && strings.IndexByte("0123456789abcdef", name[n]) >= 0 {
		n++
	}
	return name[:n]
}
