package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"harvest/fs"
	"harvest/gather/store"
)

// results is a folder of a page's objects: 001.soif and on.
type results struct {
	b     *Broker
	path  uint64
	vers  uint32
	now   func() page
	file  func(oid string, f fs.File) fs.Node // what an object is here
	nodes map[string]fs.Node                  // beside the objects; their names come after digits
}

func (d results) Stat() fs.Stat { return fs.Stat{Path: d.path, Vers: d.vers, Mode: 0o555} }

const objectSuffix = ".soif"

// name is that of hit i, counted from 0. All of an answer are equally long, so
// their order is that of the hits.
func (p page) name(i int) string { return fmt.Sprintf("%0*d%s", p.width(), i+1, objectSuffix) }

// object is the node of a hit.
func (d results) object(ctx context.Context, h hit) (fs.Node, error) {
	oid := h.oid.String()
	folder, err := d.b.shown.objects.Lookup(ctx, oid[:2])
	if err != nil {
		return nil, err
	}
	n, err := folder.(fs.Dir).Lookup(ctx, oid+objectSuffix)
	if err != nil {
		return nil, err
	}
	return d.file(oid, n.(fs.File)), nil
}

// at is the node of hit i.
func (d results) at(ctx context.Context, p page, i int) (fs.Node, error) {
	if h := p.farHit(i); h != nil && h.from != nil {
		return d.file(h.oid.String(), p.farFile(i)), nil
	}
	return d.object(ctx, p.hit(i))
}

func (d results) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if n, ok := d.nodes[name]; ok {
		return n, nil
	}
	p := d.now()
	digits, ok := strings.CutSuffix(name, objectSuffix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n <= p.from || n > p.to || name != p.name(n-1) {
		return nil, notExist(name)
	}
	return d.at(ctx, p, n-1)
}

func (d results) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	p := d.now()
	return func(yield func(fs.Entry, error) bool) {
		first := p.from + sort.Search(p.to-p.from, func(i int) bool { return p.name(p.from+i) > after })
		for i := first; i < p.to; i++ {
			n, err := d.at(ctx, p, i)
			if errors.Is(err, iofs.ErrNotExist) {
				continue // deleted since the query
			}
			if !yield(fs.Entry{Name: p.name(i), Node: n}, err) || err != nil {
				return
			}
		}
		var rest []fs.Entry
		for name, n := range d.nodes {
			rest = append(rest, fs.Entry{Name: name, Node: n})
		}
		for e, err := range fs.Sorted(rest, after) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// namedDir is q/: directories named by queries.
type namedDir struct{ b *Broker }

func (d namedDir) Stat() fs.Stat {
	_, vers := d.b.queries.lately("", true)
	return fs.Stat{Path: d.b.id("q"), Vers: vers, Mode: 0o555}
}

// maxName bounds a name in q, in bytes, as systems that mount the tree do.
const maxName = 255

// Lookup runs the query. Names that begin with a point are what desktops and
// tools look for everywhere, not queries.
func (d namedDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
		return nil, notExist(name)
	}
	if len(name) > maxName {
		err := fmt.Errorf("name of %d bytes, the limit is %d; ask in query: %w", len(name), maxName, syscall.ENAMETOOLONG)
		d.b.shown.complain("q", "", err)
		return nil, fmt.Errorf("q: %w", err)
	}
	text := strings.TrimSpace(unescape(name))
	a, err := d.b.queries.named(ctx, text, true)
	d.b.complainOf(ctx, text, err)
	if err != nil {
		return nil, fmt.Errorf("q: %w", err)
	}
	return a.files(text), nil
}

// complainOf tells what was wrong with a query in q, or that nothing was.
func (b *Broker) complainOf(ctx context.Context, text string, err error) {
	if ctx.Err() != nil {
		return // the walk was given up, and says nothing
	}
	line := ""
	if fs.UserOf(ctx).Owner {
		line = text // what others ask is not for all to read
	}
	b.shown.complain("q", line, err)
}

// files are those of an answer that stays what it is, to a query that was written
// as text.
func (a *answer) files(text string) fs.Dir {
	if a.rest != nil {
		return a.earlyFiles(text)
	}
	id := a.id
	files := a.b.queryFiles
	if a.q == nil {
		files = a.b.pageFiles
	}
	nodes := files(a.all, unchanging, id)
	nodes["status"] = fs.Text(id("status"), func() string { return lines(a.all().pairs()) })
	if a.q != nil && a.far == nil { // of what back ends have, nobody knows what changed
		nodes["since"] = a.sinceDir(id)
		nodes["shortcuts"] = a.b.shortcutFiles(func() string { return text }, id)
	}
	return results{b: a.b, path: id(""), now: a.all, nodes: nodes, file: func(_ string, f fs.File) fs.Node { return f }}
}

func (a *answer) id(name string) uint64 {
	asked := a.asked()
	return a.b.namedID(asked.Key, asked.Value, a.mark, name)
}

// earlyFiles are those of an answer that is not whole yet: what is read from the
// beginning on can be read, for all else the whole is asked.
func (a *answer) earlyFiles(text string) fs.Dir {
	nodes := make(map[string]fs.Node)
	for name, write := range map[string]func(page) produce{
		"hits":    func(p page) produce { return p.writeHits },
		"summary": func(p page) produce { return p.writeSummary },
		"soif":    func(p page) produce { return p.writeSOIF },
	} {
		nodes[name] = pageFile(a.id(name), unchanging, a.reading(write))
	}
	return earlyDir{a, text, nodes}
}

type earlyDir struct {
	a     *answer
	text  string
	nodes map[string]fs.Node
}

func (d earlyDir) Stat() fs.Stat { return fs.Stat{Path: d.a.id(""), Mode: 0o555} }

// whole is the directory of the whole answer.
func (d earlyDir) whole(ctx context.Context) (fs.Dir, error) {
	w, err := d.a.full(ctx)
	if err != nil {
		d.a.b.complainOf(ctx, d.text, err)
		return nil, fmt.Errorf("q: %w", err)
	}
	return w.files(d.text), nil
}

func (d earlyDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if n, ok := d.nodes[name]; ok {
		return n, nil
	}
	w, err := d.whole(ctx)
	if err != nil {
		return nil, err
	}
	return w.Lookup(ctx, name)
}

func (d earlyDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	w, err := d.whole(ctx)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, err) }
	}
	return w.List(ctx, after)
}

// sinceDir is since/ of an answer.
func (a *answer) sinceDir(id func(name string) uint64) fs.Dir {
	file := func(name string, after store.Cursor) fs.Node {
		write := a.since
		if strings.HasSuffix(name, ".zst") {
			write = a.sinceZstd
		}
		return pageFile(id("since/"+name), unchanging, func() produce {
			return func(ctx context.Context, w io.Writer) error { return write(ctx, w, after) }
		})
	}
	return fs.Func{
		Path: id("since"),
		Look: func(_ context.Context, name string) (fs.Node, error) {
			after, err := a.b.store.ParseCursor(strings.TrimSuffix(name, ".zst"))
			if errors.Is(err, iofs.ErrInvalid) {
				err = notExist(name)
			}
			if err != nil {
				return nil, err
			}
			return file(name, after), nil
		},
		Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
			return fs.Sorted([]fs.Entry{{Name: "0", Node: file("0", store.Cursor{})}}, after)
		},
	}
}

// unchanging is the version of what stays as it is.
func unchanging() uint32 { return 0 }

func (d namedDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	recent, _ := d.b.queries.lately(userOf(ctx), fs.UserOf(ctx).Owner) // and so in canonical form
	names := make([]string, 0, len(recent))
	for _, text := range recent {
		if name := escape(text); len(name) <= maxName && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return func(yield func(fs.Entry, error) bool) {
		for _, name := range names {
			if !yield(fs.Entry{Name: name, Node: listed{d.b, unescape(name)}}, nil) {
				return
			}
		}
	}
}

// listed is a directory of q that was listed, which asks nothing: its query is
// asked, if the index has moved, by who looks into it.
type listed struct {
	b    *Broker
	text string
}

func (d listed) Stat() fs.Stat {
	return fs.Stat{Path: d.b.namedID("query", d.text, d.b.answerMark(), ""), Mode: 0o555}
}

func (d listed) Lookup(ctx context.Context, name string) (fs.Node, error) {
	a, err := d.b.queries.named(ctx, d.text, false)
	if err != nil {
		return nil, fmt.Errorf("q: %w", err)
	}
	return a.files(d.text).Lookup(ctx, name)
}

func (d listed) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	a, err := d.b.queries.named(ctx, d.text, false)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, fmt.Errorf("q: %w", err)) }
	}
	return a.files(d.text).List(ctx, after)
}

// namedID is that of a file of an answer.
func (b *Broker) namedID(key, value, mark, name string) uint64 {
	return b.id("q", key, value, mark, name)
}

// similarDir is similar/: directories named by objects, with those that are
// like them. None is listed: all objects could be.
type similarDir struct{ b *Broker }

func (d similarDir) Stat() fs.Stat { return fs.Stat{Path: d.b.id("similar"), Mode: 0o555} }

func (d similarDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	oid, err := store.ParseOID(name)
	if err != nil {
		return nil, notExist(name)
	}
	a, err := d.b.queries.alike(ctx, oid)
	if ctx.Err() == nil && !errors.Is(err, iofs.ErrNotExist) { // else it was given up, or asked of no object
		d.b.shown.complain("similar", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("similar: %w", err)
	}
	return a.files(""), nil
}

func (d similarDir) List(context.Context, string) iter.Seq2[fs.Entry, error] {
	return func(func(fs.Entry, error) bool) {}
}

// escape writes a query as a name; unescape reads one, in which a '%' that no
// two hex digits follow stands for itself.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c == '/' || c == '%' || c < ' ' || c == 0x7f || i == 0 && c == '.' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if n, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
