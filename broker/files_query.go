package broker

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"strconv"
	"strings"

	"harvest/fs"
)

// atOpen is a Made file of one page, which is fixed when it is opened.
type atOpen struct {
	path uint64
	vers func() uint32
	make func(ctx context.Context) fs.File
}

func (f atOpen) Stat() fs.Stat {
	return fs.Stat{Path: f.path, Vers: f.vers(), Kind: fs.Made, Mode: 0o444}
}

func (f atOpen) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	return f.make(ctx).Open(ctx, m)
}

type produce func(ctx context.Context, w io.Writer) error

// queryFiles are the files a page that a query found is read as.
func (b *Broker) queryFiles(now func() page, vers func() uint32, id func(name string) uint64) map[string]fs.Node {
	nodes := b.pageFiles(now, vers, id)
	for name, write := range map[string]func(page) produce{
		"suggest": func(p page) produce { return p.writeSuggest },
		"refine":  func(p page) produce { return p.writeRefine },
	} {
		nodes[name] = pageFile(id(name), vers, func() produce { return write(now()) })
	}
	return nodes
}

// pageFile is a file of the page that there is when it is opened, produced for
// whoever opens it.
func pageFile(path uint64, vers func() uint32, write func() produce) fs.Node {
	return atOpen{path, vers, func(ctx context.Context) fs.File { return fs.Stream(path, vers(), asUser(ctx, write())) }}
}

// pageFiles are the files a page is read as; now gives the page to show.
func (b *Broker) pageFiles(now func() page, vers func() uint32, id func(name string) uint64) map[string]fs.Node {
	stream := func(name string, write func(page) produce) fs.Node {
		return pageFile(id(name), vers, func() produce { return write(now()) })
	}
	return map[string]fs.Node{
		"hits":    stream("hits", func(p page) produce { return p.writeHits }),
		"summary": stream("summary", func(p page) produce { return p.writeSummary }),
		"soif":    stream("soif", func(p page) produce { return p.writeSOIF }),
		"why":     stream("why", func(p page) produce { return p.writeWhy }),
		"dups":    stream("dups", func(p page) produce { return p.writeDups }),
		"results.html": pageFile(id("results.html"), func() uint32 { return vers() + b.template.version() }, func() produce {
			p := now()
			return func(ctx context.Context, w io.Writer) error { return b.writeHTML(ctx, w, p, "") }
		}),
		"plan":   fs.Text(id("plan"), func() string { return now().planText() }),
		"routed": fs.Text(id("routed"), func() string { return now().routedText() }),
	}
}

// queryDir is query/: clone and the sessions.
type queryDir struct{ b *Broker }

func (d queryDir) Stat() fs.Stat {
	_, vers := d.b.queries.list()
	return fs.Stat{Path: d.b.id("query"), Vers: vers, Mode: 0o777}
}

func (d queryDir) clone() fs.File {
	return fs.Clone(d.b.id("query", "clone"), func(ctx context.Context) (fs.File, error) {
		s, err := d.b.queries.add("", userName(ctx), d.b.limitsOf(ctx), sessionMode)
		if err != nil {
			return nil, err
		}
		return s.ctl(), nil
	})
}

// userName is who a new session belongs to; the owner of the tree has no name.
func userName(ctx context.Context) string {
	if u := fs.UserOf(ctx); !u.Owner {
		return u.Name
	}
	return ""
}

func (d queryDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	if name == "clone" {
		return d.clone(), nil
	}
	if s, ok := d.b.queries.get(name); ok {
		return s.files(), nil
	}
	return nil, notExist(name)
}

func notExist(name string) error { return fmt.Errorf("%s: %w", name, iofs.ErrNotExist) }

func (d queryDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	list, _ := d.b.queries.list()
	out := []fs.Entry{{Name: "clone", Node: d.clone()}}
	for _, s := range list {
		out = append(out, fs.Entry{Name: s.name, Node: s.files()})
	}
	return fs.Sorted(out, after)
}

// Mkdir makes a session with a name, which stays until it is removed. Numbers
// are clone's to give.
func (d queryDir) Mkdir(ctx context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
	if err := mayWrite(ctx, d, name); err != nil {
		return nil, err
	}
	if name == "clone" {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if strings.Trim(name, "0123456789") == "" {
		return nil, fmt.Errorf("%s: numbers are given by clone: %w", name, iofs.ErrInvalid)
	}
	s, err := d.b.queries.add(name, userName(ctx), d.b.limitsOf(ctx), modeOf(perm))
	if err != nil {
		return nil, err
	}
	s.keep()
	d.b.shown.bus.Entry(d.b.id("query"), name)
	return s.files(), nil
}

// mayWrite refuses whoever may not change what is in a directory.
func mayWrite(ctx context.Context, d fs.Dir, name string) error {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkName refuses names that a shell or this tree would stumble over.
func checkName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f || r == 0xfffd })
	if name == "" || name[0] == '.' || name[0] == '-' || len(name) > 64 || bad {
		return fmt.Errorf("%q: not a name of 1 to 64 bytes without blanks, not beginning with a point or a dash: %w", name, iofs.ErrInvalid)
	}
	return nil
}

// Remove takes a session away; its open files stay readable.
func (d queryDir) Remove(ctx context.Context, name string) error {
	if name == "clone" {
		return fmt.Errorf("%s: %w", name, iofs.ErrPermission)
	}
	s, ok := d.b.queries.get(name)
	if !ok {
		return notExist(name)
	}
	if u := fs.UserOf(ctx); u.ReadOnly || !u.Owner && u.Name != s.owner {
		return fmt.Errorf("%s: %w", name, iofs.ErrPermission)
	}
	d.b.queries.remove(s)
	s.keep()
	d.b.shown.bus.Entry(d.b.id("query"), name)
	return nil
}

func (s *session) id(parts ...string) uint64 {
	return s.b.id(append([]string{"query", s.name, strconv.FormatUint(s.number, 10)}, parts...)...)
}

// refusals are what a session keeps for its file err: its own, so that users
// do not overwrite each other's.
type refusals struct{ *fs.Err }

func (s *session) newRefusals() *refusals { return &refusals{fs.NewErr(s.id("err"))} }

// files are those of query/N.
func (s *session) files() fs.Dir {
	nodes := s.b.queryFiles(s.shown, s.version, func(name string) uint64 { return s.id(name) })
	nodes["ctl"] = s.ctl()
	nodes["err"] = s.err.Err
	nodes["status"] = fs.Text(s.id("status"), s.status)
	nodes["results"] = s.results()
	nodes["results.html"] = pageFile(s.id("results.html"), func() uint32 { return s.version() + s.b.template.version() }, func() produce {
		p := s.shown()
		return func(ctx context.Context, w io.Writer) error { return s.b.writeHTML(ctx, w, p, "results/") }
	})
	nodes["shortcuts"] = s.b.shortcutFiles(s.asked, func(name string) uint64 { return s.id(name) })
	return sessionDir{fs.Static(s.id(), nodes), s}
}

// sessionDir is query/N: what somebody asks is not for everybody to see, unless a
// session was made so, as mkdir makes any directory.
type sessionDir struct {
	fs.Dir
	s *session
}

func (d sessionDir) Stat() fs.Stat {
	st := d.Dir.Stat()
	st.Mode, st.Owner = d.s.mode, d.s.owner
	return st
}

// How open a session is that clone makes; of a named one its owner may do as much.
const sessionMode = 0o500

// modeOf is that of a session made by mkdir: what is in it is never made by others.
func modeOf(perm iofs.FileMode) iofs.FileMode { return perm.Perm()&0o555 | sessionMode }

// results is the folder of the page that is shown now.
func (s *session) results() fs.Dir {
	return results{b: s.b, path: s.id("results"), vers: s.version(), now: s.shown, file: func(oid string, f fs.File) fs.Node {
		return resultFile{f, s.id("result", oid)}
	}}
}

// resultFile is an object as a result of a session. It is a file of its own and
// not the one in objects/ because 001.soif is another object after the next
// query: a kernel that knows an object by a name believes the name for a while,
// as it must not here.
type resultFile struct {
	fs.File
	path uint64
}

func (f resultFile) Stat() fs.Stat {
	st := f.File.Stat()
	st.Path, st.Kind = f.path, fs.Made
	return st
}

// Attributes are those of the object.
func (f resultFile) Attributes(ctx context.Context) ([]fs.Attribute, error) {
	if a, ok := f.File.(fs.Attributer); ok {
		return a.Attributes(ctx)
	}
	return nil, nil
}

// ctl is the session's ctl, which holds it while it is open.
func (s *session) ctl() fs.File {
	return sessionCtl{s, fs.Ctl(s.id("ctl"), s.err.Err,
		fs.OnText("query TEXT", s.ask),
		fs.OnText(mannerUsage, s.set),
		fs.On("dups show|hide", func(ctx context.Context, arg []string) error { return s.set(ctx, "dups="+fs.Quote(arg[0])) }),
		fs.On("page K", s.turn),
		fs.On("reset", func(context.Context, []string) error { return s.reset() })).Reads(func() string { return s.name + "\n" }).OwnedBy(s.owner)}
}

type sessionCtl struct {
	s *session
	*fs.CtlFile
}

func (c sessionCtl) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	h, err := c.CtlFile.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	c.s.opened()
	return &sessionHandle{h, c.s}, nil
}

type sessionHandle struct {
	fs.Handle
	s *session
}

func (h *sessionHandle) Close() error {
	h.s.closed()
	return h.Handle.Close()
}
