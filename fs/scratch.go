package fs

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of what editors may leave beside a config: files, bytes in each
// (MaxConfig), and how long a config may be away, renamed or removed by an
// editor that is about to write it anew, before it is there again as it was.
const (
	maxScratch = 32
	maxAway    = 2 * time.Second
)

// editable is a Static that holds ConfigFiles, together with the scratch
// files (swap, backup, temporary) of whoever edits them: these live in memory,
// belong to who made them, are bounded in number and size, and never survive
// a restart. When there are too many the oldest that nobody has open goes.
//
// What editors do, and what it comes to here: a rename of a scratch file onto
// a config is a Replace, checked before anything moves; a rename of a config
// to a scratch name copies its text there and takes the config's name away,
// as does its removal, until it is created again or maxAway has passed. The
// running configuration is in force all the while.
type editable struct {
	*static
	configs map[string]*ConfigFile

	mu    sync.Mutex
	vers  uint32
	made  int // scratch files ever made
	files map[string]*scratch
	order []string
	away  map[string]time.Time
}

func newEditable(s *static) *editable {
	e := &editable{static: s, configs: make(map[string]*ConfigFile), files: make(map[string]*scratch), away: make(map[string]time.Time)}
	for name, n := range s.nodes {
		if c, ok := n.(*ConfigFile); ok {
			c.name = name
			e.configs[name] = c
		}
	}
	return e
}

func (e *editable) Stat() Stat {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Stat{Path: e.path, Vers: e.vers, Mode: 0o755}
}

// gone tells whether a config's name is away. Called with mu held.
func (e *editable) gone(name string) bool {
	t, ok := e.away[name]
	if ok && time.Since(t) > maxAway {
		delete(e.away, name)
		return false
	}
	return ok
}

func (e *editable) Lookup(ctx context.Context, name string) (Node, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.files[name]; ok {
		return f, nil
	}
	if c := e.rejected(name); c != nil {
		return rejectedFile{c}, nil
	}
	if e.gone(name) {
		return nil, notExist(name)
	}
	return e.static.Lookup(ctx, name)
}

// rejected is the config whose refused text stands under that name.
func (e *editable) rejected(name string) *ConfigFile {
	base, ok := strings.CutSuffix(name, ".rejected")
	if c := e.configs[base]; ok && c != nil && c.hasRejected() {
		return c
	}
	return nil
}

func (e *editable) List(ctx context.Context, after string) iter.Seq2[Entry, error] {
	var all []Entry
	for ent, err := range e.static.List(ctx, "") {
		if err != nil {
			continue
		}
		e.mu.Lock()
		if !e.gone(ent.Name) {
			all = append(all, ent)
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	for name, c := range e.configs {
		name += ".rejected"
		if c.hasRejected() && e.files[name] == nil {
			all = append(all, Entry{name, rejectedFile{c}})
		}
	}
	for name, f := range e.files {
		all = append(all, Entry{name, f})
	}
	e.mu.Unlock()
	return Sorted(all, after)
}

func badName(name string) bool {
	return name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00")
}

func (e *editable) Create(ctx context.Context, name string, perm iofs.FileMode, m Mode) (File, Handle, error) {
	if err := owned(ctx, e.Stat()); err != nil {
		return nil, nil, err
	}
	if badName(name) {
		return nil, nil, fmt.Errorf("%s: %w", name, iofs.ErrInvalid)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.configs[name]; c != nil && e.gone(name) {
		delete(e.away, name)
		e.vers++
		h, err := c.Open(ctx, m|Trunc)
		return c, h, err
	}
	if e.files[name] != nil || e.static.nodes[name] != nil || e.rejected(name) != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	f, err := e.add(ctx, name, perm)
	if err != nil {
		return nil, nil, err
	}
	h, err := f.Open(ctx, m)
	return f, h, err
}

// add makes a scratch file, at the cost of the oldest. Called with mu held.
func (e *editable) add(ctx context.Context, name string, perm iofs.FileMode) (*scratch, error) {
	for len(e.files) >= maxScratch {
		victim := ""
		for _, n := range e.order {
			if e.files[n].idle() {
				victim = n
				break
			}
		}
		if victim == "" {
			return nil, fmt.Errorf("%s: %d scratch files are open: %w", name, maxScratch, syscall.ENOSPC)
		}
		e.drop(victim)
	}
	u := UserOf(ctx)
	owner := u.Name
	if u.Owner {
		owner = ""
	}
	e.made++
	f := &scratch{path: ID("scratch", fmt.Sprint(e.path), fmt.Sprint(e.made)), mode: perm.Perm(), owner: owner, mtime: time.Now()}
	e.files[name] = f
	e.order = append(e.order, name)
	e.vers++
	return f, nil
}

// drop forgets a scratch file. Called with mu held.
func (e *editable) drop(name string) {
	delete(e.files, name)
	for i, n := range e.order {
		if n == name {
			e.order = append(e.order[:i], e.order[i+1:]...)
			break
		}
	}
	e.vers++
}

func (e *editable) Remove(ctx context.Context, name string) error {
	if err := owned(ctx, e.Stat()); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.files[name] != nil:
		e.drop(name)
	case e.rejected(name) != nil:
		e.rejected(name).dropRejected()
		e.vers++
	case e.configs[name] != nil && !e.gone(name):
		if c := e.configs[name]; c.rest {
			if err := c.Replace(ctx, nil); err != nil {
				return err
			}
		}
		e.away[name] = time.Now()
		e.vers++
	case e.static.nodes[name] != nil && e.configs[name] == nil:
		return denied(name)
	default:
		return notExist(name)
	}
	return nil
}

func (e *editable) Rename(ctx context.Context, old, new string, replace bool) error {
	if err := owned(ctx, e.Stat()); err != nil {
		return err
	}
	if badName(new) {
		return fmt.Errorf("%s: %w", new, iofs.ErrInvalid)
	}
	if old == new {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	from, conf := e.files[old], e.configs[old]
	switch {
	case from == nil && conf == nil && e.static.nodes[old] == nil && e.rejected(old) == nil, from == nil && e.gone(old):
		return notExist(old)
	case from == nil && conf == nil, e.static.nodes[new] != nil && e.configs[new] == nil, e.rejected(new) != nil:
		return denied(old + " to " + new)
	}
	there := e.files[new] != nil || e.configs[new] != nil && !e.gone(new)
	if there && !replace {
		return fmt.Errorf("%s: %w", new, iofs.ErrExist)
	}
	if to := e.configs[new]; to != nil {
		return e.land(ctx, old, from, conf, new, to)
	}
	if e.files[new] != nil {
		e.drop(new)
	}
	if from != nil {
		e.drop(old)
		e.files[new] = from
		e.order = append(e.order, new)
		return nil
	}
	f, err := e.add(ctx, new, 0o644)
	if err != nil {
		return err
	}
	f.data = []byte(conf.read())
	e.away[old] = time.Now()
	return nil
}

// land puts the text of a scratch file, or of another config, in force. Mu is
// held, but not while the config decides.
func (e *editable) land(ctx context.Context, old string, from *scratch, conf *ConfigFile, new string, to *ConfigFile) error {
	var text []byte
	if from != nil {
		text = from.bytes()
	} else {
		text = []byte(conf.read())
	}
	e.mu.Unlock()
	err := to.Replace(ctx, text)
	e.mu.Lock()
	if err != nil {
		return err
	}
	delete(e.away, new)
	if from != nil && e.files[old] == from {
		e.drop(old)
	} else if conf != nil {
		e.away[old] = time.Now()
	}
	e.vers++
	return nil
}

// scratch is a plain file in memory.
type scratch struct {
	path  uint64
	owner string

	mu    sync.Mutex
	mode  iofs.FileMode
	mtime time.Time
	vers  uint32
	data  []byte
	open  int
}

func (s *scratch) Stat() Stat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stat{Path: s.path, Vers: s.vers, Kind: Made, Mode: s.mode, Size: int64(len(s.data)), Mtime: s.mtime, Owner: s.owner}
}

func (s *scratch) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open == 0
}

func (s *scratch) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]byte(nil), s.data...)
}

func (s *scratch) Open(_ context.Context, m Mode) (Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	if m&Trunc != 0 {
		s.data = nil
		s.vers++
	}
	return scratchHandle{s, m}, nil
}

func (s *scratch) Set(_ context.Context, c Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Size != nil {
		if *c.Size < 0 || *c.Size > MaxConfig {
			return syscall.EFBIG
		}
		for int64(len(s.data)) < *c.Size {
			s.data = append(s.data, 0)
		}
		s.data = s.data[:*c.Size]
		s.vers++
	}
	if c.Mode != nil {
		s.mode = c.Mode.Perm()
	}
	if c.Mtime != nil {
		s.mtime = *c.Mtime
	}
	return nil
}

type scratchHandle struct {
	s *scratch
	m Mode
}

func (h scratchHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if off >= int64(len(h.s.data)) {
		return 0, io.EOF
	}
	return copy(p, h.s.data[off:]), nil
}

func (h scratchHandle) WriteAt(_ context.Context, p []byte, off int64) (int, error) {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.m&Write == 0 {
		return 0, iofs.ErrPermission
	}
	if h.m&Append != 0 {
		off = int64(len(s.data))
	}
	if off < 0 || off > MaxConfig-int64(len(p)) {
		return 0, fmt.Errorf("scratch file: longer than %d bytes: %w", MaxConfig, syscall.EFBIG)
	}
	for int64(len(s.data)) < off {
		s.data = append(s.data, 0)
	}
	n := copy(s.data[off:], p)
	s.data = append(s.data, p[n:]...)
	s.mtime = time.Now()
	s.vers++
	return len(p), nil
}

func (scratchHandle) Flush(context.Context) error { return nil }

func (h scratchHandle) Close() error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.open--
	return nil
}
