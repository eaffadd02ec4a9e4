package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"strings"
	"syscall"

	"harvest/fs"
	"harvest/fs/ndb"
)

// The tree of a Replica:
//
//	config ctl status events log err
//	members      how far each is, and what was taken from it
//	conflicts    what was told that cannot be, and forked writers
//	tree/        the mirror: objects/ url/ soif soif.zst since/ digest
//	             what peers read, see serve.go:
//	heads root   heads.live gives heads as they change, root.now what root is
//	bandwidth    what was measured, under the signatures of those who did; see sheet.go
//	topology     the graph in use, under that of the master; see graph.go
//	self         by which key this member signs
//	probe/SIZE   bytes to measure with
//	changes/WRITER/VERSION
//	sum/WRITER/  node aa/node aa/records aa/bb
//	batch/OID,OID… pack/WRITER/aa    known, not listed
//	send recv    messages to all members, and from all
//	flood/       what peers read of those: heads changes/ sum/

// Options are what a Replica is handed.
type Options struct {
	Open Opener
	Bus  *fs.Bus // hears what changes in the tree; may be nil
}

// OpenAll opens the Replicas in dir, a directory each: fs.Services.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*fs.Services[*Replica], error) {
	return fs.OpenServices(dir, fs.ServicesOptions[*Replica]{
		Name: "replica", Noun: "replica", Log: lg, Bus: opt.Bus,
		Open: func(path, name string) (*Replica, error) { return Open(path, name, lg, opt) },
	})
}

// How much of events and log is kept.
const (
	keepEvents = 1 << 20
	keepLog    = 1 << 20
)

// shown is what a Replica keeps for its side of the tree.
type shown struct {
	r      *Replica
	bus    *fs.Bus
	err    *fs.Err
	events *fs.Log
	log    *fs.Log
	recv   *fs.Log
	dir    fs.Dir
}

func newShown(r *Replica, bus *fs.Bus) *shown {
	return &shown{r: r, bus: bus, err: fs.NewErr(r.id("err")), events: fs.NewLog(keepEvents), log: fs.NewLog(keepLog), recv: fs.NewLog(keepEvents)}
}

// logger is lg with what it says also in the file log.
func (s *shown) logger(lg *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(lg.Handler(), slog.NewTextHandler(s.log, nil)))
}

func (s *shown) tell(record string) { s.events.Add(record) }

func (r *Replica) id(parts ...string) uint64 {
	return fs.ID(append([]string{"replica", r.name}, parts...)...)
}

// Files serves r as a directory; docs/replica.4.md is its manual.
func (r *Replica) Files() fs.Dir { return r.shown.dir }

// Removable refuses a Replica that has objects and goes on: who takes its sources and
// members out of the config first means it.
func (r *Replica) Removable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.store.Count(); n > 0 && len(r.members)+len(r.sources) > 0 {
		return fmt.Errorf("has %d objects; take its members and sources out of its config first: %w", n, syscall.ENOTEMPTY)
	}
	return nil
}

// build makes the directory, once: a config being edited has state in it.
func (s *shown) build() {
	r := s.r
	tree := r.store.Files(func(parts ...string) uint64 { return r.id(append([]string{"tree"}, parts...)...) }, s.bus, nil)
	nodes := map[string]fs.Node{
		"root":      guardedFile{fs.Text(r.id("root"), r.root), r},
		"root.now":  fs.Hidden(guardedFile{rootNow{r, r.id("root", "now")}, r}),
		"config":    fs.Config(r.id("config"), s.err, r.configText, r.setConfig).Lines(checkLine),
		"err":       s.err,
		"status":    fs.Text(r.id("status"), r.status),
		"members":   fs.Text(r.id("members"), r.table),
		"conflicts": fs.Text(r.id("conflicts"), r.conflicts),
		"tree":      guardedDir{fs.Static(r.id("tree"), tree), r},
		"ctl": fs.Ctl(r.id("ctl"), s.err,
			fs.On("sync [MEMBER]", r.sync),
			fs.On("adopt PATH", r.adopt),
			fs.On("join PATH", r.join),
			fs.On("leave PATH", r.leave),
			fs.On("measure", r.measureNow),
			fs.On("topology now", r.redesign),
			fs.On("check", r.audit)),
	}
	s.events.Nodes(nodes, "events", r.id)
	s.log.Nodes(nodes, "log", r.id)
	s.peerNodes(nodes, r.mirror)
	s.floodNodes(nodes)
	r.measureNodes(nodes)
	s.dir = fs.Static(r.id("dir"), nodes)
}

// sync reads the sources and exchanges with the members, now.
func (r *Replica) sync(ctx context.Context, arg []string) error {
	if len(arg) == 0 {
		r.mu.Lock()
		var sources []*source
		for _, s := range r.sources {
			sources = append(sources, s)
		}
		r.mu.Unlock()
		for _, s := range sources {
			if err := s.sync(ctx); err != nil {
				return fmt.Errorf("source %s: %w", s.path, err)
			}
		}
	}
	var errs []error
	found := false
	for _, m := range r.sorted() {
		if len(arg) == 0 || arg[0] == m.path {
			found = true
			if err := m.sync(ctx); err != nil {
				errs = append(errs, fmt.Errorf("member %s: %w", m.path, err))
			}
		}
	}
	if len(arg) > 0 && !found {
		return fmt.Errorf("sync %s: config has no such member: %w", arg[0], iofs.ErrNotExist)
	}
	return errors.Join(errs...)
}

// adopt takes the objects of a copy of a tree rather than fetch them, as far as they
// are what members say is signed.
func (r *Replica) adopt(ctx context.Context, arg []string) error {
	tree, closer, err := r.open(ctx, arg[0])
	if err != nil {
		return err
	}
	defer closer.Close()
	if _, err := iofs.Stat(tree, "objects"); err != nil {
		return fmt.Errorf("adopt %s: no copy of a tree: %w", arg[0], err)
	}
	r.mu.Lock()
	r.adopted = tree
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.adopted = nil
	}()
	return r.sync(ctx, nil)
}

// join adds a member to the config, and takes what it has.
func (r *Replica) join(ctx context.Context, arg []string) error {
	return r.edit(ctx, func(lines []string) ([]string, error) {
		return append(lines, ndb.Format(ndb.Of("member", ""), ndb.Of("path", arg[0]))), nil
	})
}

// leave takes a member out of the config. What came from it stays.
func (r *Replica) leave(ctx context.Context, arg []string) error {
	return r.edit(ctx, func(lines []string) (kept []string, err error) {
		for _, line := range lines {
			e, err := ndb.ParseLine(line, 1)
			if p, _ := e.Get("path"); err == nil && len(e.Pairs) > 0 && e.First().Key == "member" && p == arg[0] {
				continue
			}
			kept = append(kept, line)
		}
		if len(kept) == len(lines) {
			err = fmt.Errorf("leave %s: config has no such member: %w", arg[0], iofs.ErrNotExist)
		}
		return kept, err
	})
}

// edit changes the lines of the config.
func (r *Replica) edit(ctx context.Context, f func(lines []string) ([]string, error)) error {
	var lines []string
	for line := range strings.Lines(r.configText()) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	lines, err := f(lines)
	if err != nil {
		return err
	}
	return r.setConfig(ctx, strings.Join(append(lines, ""), "\n"))
}

// audit checks every object against its record.
func (r *Replica) audit(ctx context.Context, _ []string) error {
	lacking, extra, err := r.check(ctx)
	if err == nil {
		r.told("checked", ndb.Of("lacking", lacking), ndb.Of("extra", extra))
	}
	return err
}

// peerNodes adds what peers read of a mirror. The keys make its files' identities.
func (s *shown) peerNodes(nodes map[string]fs.Node, m *mirror, keys ...string) {
	r := s.r
	p := peers{r, m, keys}
	nodes["heads"] = guardedFile{p.file("heads").(fs.File), r}
	nodes["heads.live"] = fs.Hidden(guardedFile{headsLive{m, p.id("heads", "live")}, r})
	nodes["changes"] = guardedDir{p.writers("changes", p.changes), r}
	nodes["sum"] = guardedDir{p.writers("sum", p.sum), r}
	nodes["pack"] = fs.Hidden(guardedDir{p.writers("pack", p.pack), r})
	nodes["batch"] = fs.Hidden(guardedDir{fs.Func{Path: p.id("batch"), Look: func(_ context.Context, name string) (fs.Node, error) {
		return p.file("batch", name), nil
	}, Each: nothing}, r})
}

// guardedDir and guardedFile are for those alone whom the config allows, if it names
// any.
type guardedDir struct {
	fs.Dir
	r *Replica
}

func (d guardedDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if err := d.r.may(ctx); err != nil {
		return nil, err
	}
	return d.Dir.Lookup(ctx, name)
}

type guardedFile struct {
	fs.File
	r *Replica
}

func (f guardedFile) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	if err := f.r.may(ctx); err != nil {
		return nil, err
	}
	return f.File.Open(ctx, m)
}

// answerFile is a file that peers read.
type answerFile struct {
	m    *mirror
	path uint64
	name string
}

// Stat tells no length: what the file holds is made when it is opened.
func (f answerFile) Stat() fs.Stat { return fs.Stat{Path: f.path, Kind: fs.Made, Mode: 0o444} }

func (f answerFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	b, err := f.m.answer(f.name)
	if err != nil {
		return nil, err
	}
	return fs.Snapshot(b), nil
}

// rootNow gives what root is at each read, wherever the last one ended: who keeps it
// open asks in one message whether there is news.
type rootNow struct {
	r    *Replica
	path uint64
}

func (f rootNow) Stat() fs.Stat { return fs.Stat{Path: f.path, Kind: fs.Live, Mode: 0o444} }

func (f rootNow) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	return rootHandle{fs.Snapshot(nil), f.r}, nil
}

type rootHandle struct {
	fs.Handle
	r *Replica
}

func (h rootHandle) ReadAt(_ context.Context, p []byte, _ int64) (int, error) {
	n := copy(p, h.r.root())
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
