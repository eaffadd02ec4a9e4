package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A KeptText is a text of a directory of them.
type KeptText struct {
	Text string
	Mode iofs.FileMode
	Time time.Time // when it was put in force
}

// TextsOptions say what a directory of texts has, and where they are kept. All
// functions may be called at once.
type TextsOptions struct {
	Name  string                                       // of the directory in errors, such as types/summarize
	Err   *Err                                         // keeps what was refused
	ID    func(name string) uint64                     // of each file
	Most  int                                          // texts there may be, roughly; drafts of more that were removed are forgotten
	Fixed map[string]Node                              // what stands beside the texts
	Is    func(name string) bool                       // whether a name is that of a text; others are editors'
	Stray func(name string) error                      // refuses names that are neither; may be nil
	May   func(ctx context.Context, name string) error // refuses who may not write it, besides those the directory refuses; may be nil

	Names func() []string
	Get   func(name string) (KeptText, bool)
	// Set puts a text in force, if it is one.
	Set    func(ctx context.Context, name, text string, mode iofs.FileMode) error
	Remove func(ctx context.Context, name string) error
	Chmod  func(name string, mode iofs.FileMode) error
	// NewMode is that of a text which is made with perm.
	NewMode func(name string, perm iofs.FileMode) iofs.FileMode
}

// Texts is a directory whose users make, edit and remove texts. Each is checked as
// a config is, when it is written whole, and kept by its owner; other names are
// those that editors leave beside a config.
func Texts(path uint64, opt TextsOptions) Dir {
	d := &texts{TextsOptions: opt, configs: make(map[string]*ConfigFile), perms: make(map[string]iofs.FileMode)}
	d.still = newEditable(&static{path: path, nodes: opt.Fixed, names: slices.Sorted(maps.Keys(opt.Fixed))})
	return d
}

type texts struct {
	TextsOptions
	still *editable // Fixed, and what editors leave

	mu      sync.Mutex
	configs map[string]*ConfigFile
	perms   map[string]iofs.FileMode // of texts that are being made
	made    uint32                   // moves with every change
}

func (d *texts) path(name string) string { return d.Name + "/" + name }

func (d *texts) absent(name string) error {
	return fmt.Errorf("%s/%.100s: %w", d.Name, name, iofs.ErrNotExist)
}

// Stat moves with what is in the directory.
func (d *texts) Stat() Stat {
	st := d.still.Stat()
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Vers += d.made
	return st
}

// Lookup finds what is there, what is being written, and what was refused.
func (d *texts) Lookup(ctx context.Context, name string) (Node, error) {
	if d.Is(name) {
		if _, ok := d.Get(name); !ok && !d.begun(name) {
			return nil, d.absent(name)
		}
		return d.file(name), nil
	}
	if of, ok := strings.CutSuffix(name, ".rejected"); ok && d.Is(of) {
		if f := d.config(of).Rejected(); f != nil {
			return f, nil
		}
		return nil, d.absent(name)
	}
	return d.still.Lookup(ctx, name)
}

// begun reports whether a text that is not there yet is being written.
func (d *texts) begun(name string) bool {
	d.mu.Lock()
	c := d.configs[name]
	d.mu.Unlock()
	return c != nil && c.Busy()
}

// List gives all of it: there are few.
func (d *texts) List(ctx context.Context, after string) iter.Seq2[Entry, error] {
	var all []Entry
	for e, err := range d.still.List(ctx, "") {
		if err == nil {
			all = append(all, e)
		}
	}
	for _, name := range d.Names() {
		all = append(all, Entry{Name: name, Node: d.file(name)})
	}
	d.mu.Lock()
	for name, c := range d.configs {
		if f := c.Rejected(); f != nil {
			all = append(all, Entry{Name: name + ".rejected", Node: f})
		}
	}
	d.mu.Unlock()
	return Sorted(all, after)
}

// config returns what checks a text; all who write it share its draft.
func (d *texts) config(name string) *ConfigFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.configs[name]; c != nil {
		return c
	}
	for other, c := range d.configs { // of texts that are no more, few are kept
		if len(d.configs) < d.Most {
			break
		}
		if _, ok := d.Get(other); !ok && !c.Busy() {
			delete(d.configs, other)
		}
	}
	c := Config(d.ID(name), d.Err, func() string { t, _ := d.Get(name); return t.Text },
		func(ctx context.Context, text string) error { return d.set(ctx, name, text) }).Named(d.path(name))
	d.configs[name] = c
	return c
}

// set puts a text in force that is complete.
func (d *texts) set(ctx context.Context, name, text string) error {
	if err := d.Set(ctx, name, text, d.mode(name)); err != nil {
		return err
	}
	d.changed(name)
	return nil
}

// changed notes that a text is as it is now.
func (d *texts) changed(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.perms, name)
	d.made++
}

// mode is that of a text: what it was given since it began to be made, or has.
func (d *texts) mode(name string) iofs.FileMode {
	d.mu.Lock()
	m, ok := d.perms[name]
	d.mu.Unlock()
	if ok {
		return m
	}
	if t, ok := d.Get(name); ok {
		return t.Mode
	}
	return d.NewMode(name, 0o644)
}

// may tells whether the caller may change a text.
func (d *texts) may(ctx context.Context, name string) error {
	err := UserOf(ctx).May(d.Stat(), MayWrite)
	if err == nil && d.May != nil && d.Is(name) {
		err = d.May(ctx, name)
	}
	if err != nil {
		d.Err.Set(d.path(name), "", err)
	}
	return err
}

// stray refuses a name that is meant for a text and is none: it would stand there
// as editors' files do, and mean nothing.
func (d *texts) stray(name string) error {
	if d.Stray == nil {
		return nil
	}
	err := d.Stray(name)
	if err != nil {
		d.Err.Set(d.path(name), "", err)
	}
	return err
}

// Create makes a text, which is there when it has been checked.
func (d *texts) Create(ctx context.Context, name string, perm iofs.FileMode, m Mode) (File, Handle, error) {
	if err := d.may(ctx, name); err != nil {
		return nil, nil, err
	}
	if !d.Is(name) {
		if err := d.stray(name); err != nil {
			return nil, nil, err
		}
		return d.still.Create(ctx, name, perm, m)
	}
	if _, ok := d.Get(name); ok {
		return nil, nil, fmt.Errorf("%s: %w", d.path(name), iofs.ErrExist)
	}
	d.mu.Lock()
	d.perms[name] = d.NewMode(name, perm)
	d.made++
	d.mu.Unlock()
	f := d.file(name)
	h, err := f.Open(ctx, m|Trunc)
	return f, h, err
}

// Remove takes a text away, or what was refused of one.
func (d *texts) Remove(ctx context.Context, name string) error {
	if err := d.may(ctx, name); err != nil {
		return err
	}
	of, rejected := strings.CutSuffix(name, ".rejected")
	switch {
	case d.Is(name):
		if err := d.TextsOptions.Remove(ctx, name); err != nil {
			return err
		}
		d.forget(name)
		return nil
	case rejected && d.Is(of):
		if d.config(of).Rejected() == nil {
			return d.absent(name)
		}
		d.forget(of)
		return nil
	}
	return d.still.Remove(ctx, name)
}

// forget lets go of what is known of a text's writers.
func (d *texts) forget(name string) {
	d.mu.Lock()
	delete(d.configs, name)
	d.mu.Unlock()
	d.changed(name)
}

// Rename is what editors do at the end; a text may be renamed as well.
func (d *texts) Rename(ctx context.Context, old, new string, replace bool) error {
	for _, name := range []string{old, new} {
		if err := d.may(ctx, name); err != nil {
			return err
		}
	}
	if !d.Is(old) && !d.Is(new) {
		return d.still.Rename(ctx, old, new, replace)
	}
	n, err := d.Lookup(ctx, old)
	if err != nil {
		return err
	}
	if _, err := d.Lookup(ctx, new); err == nil && !replace {
		return fmt.Errorf("%s/%.100s: %w", d.Name, new, iofs.ErrExist)
	}
	text, err := ReadAll(ctx, n)
	if err != nil {
		return err
	}
	if err := d.land(ctx, new, text, n.Stat().Mode.Perm()); err != nil {
		return err
	}
	return d.Remove(ctx, old)
}

// land makes a file of a text; one that is there keeps its mode.
func (d *texts) land(ctx context.Context, name string, text []byte, mode iofs.FileMode) error {
	if !d.Is(name) {
		if err := d.stray(name); err != nil {
			return err
		}
		_, h, err := d.still.Create(ctx, name, 0o644, Write)
		if err != nil {
			return err
		}
		if _, err = h.WriteAt(ctx, text, 0); err == nil {
			err = h.Flush(ctx)
		}
		return errors.Join(err, h.Close())
	}
	if _, ok := d.Get(name); !ok {
		d.mu.Lock()
		d.perms[name] = d.NewMode(name, mode)
		d.mu.Unlock()
	}
	return d.config(name).Replace(ctx, text)
}

// ReadAll is the content of a file; of a directory the error is EISDIR.
func ReadAll(ctx context.Context, n Node) ([]byte, error) {
	f, ok := n.(File)
	if !ok {
		return nil, syscall.EISDIR
	}
	h, err := f.Open(ctx, Read)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	b := make([]byte, 0, 4096)
	for {
		n, err := h.ReadAt(ctx, b[len(b):cap(b)], int64(len(b)))
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		b = slices.Grow(b, 4096)
	}
}

// A textsFile is a text that is there, or being written.
type textsFile struct {
	*ConfigFile
	d    *texts
	name string
}

func (d *texts) file(name string) *textsFile { return &textsFile{d.config(name), d, name} }

// Stat has the mode that the text has.
func (f *textsFile) Stat() Stat {
	st := f.ConfigFile.Stat()
	st.Mode = f.d.mode(f.name)
	if is, ok := f.d.Get(f.name); ok && st.Mtime.IsZero() {
		st.Mtime = is.Time
	}
	return st
}

// Open lets only those write who may.
func (f *textsFile) Open(ctx context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		if err := f.d.may(ctx, f.name); err != nil {
			return nil, err
		}
	}
	return f.ConfigFile.Open(ctx, m)
}

// Set changes the mode, and the length.
func (f *textsFile) Set(ctx context.Context, ch Change) error {
	if err := f.d.may(ctx, f.name); err != nil {
		return err
	}
	if ch.Mode != nil {
		mode := ch.Mode.Perm()&0o755 | 0o400
		if _, ok := f.d.Get(f.name); !ok { // it is being written
			f.d.mu.Lock()
			f.d.perms[f.name] = mode
			f.d.mu.Unlock()
		} else if err := f.d.Chmod(f.name, mode); err != nil {
			return err
		}
		f.d.mu.Lock()
		f.d.made++
		f.d.mu.Unlock()
	}
	if ch.Size == nil {
		return nil
	}
	ch.Mode = nil
	return f.ConfigFile.Set(ctx, ch)
}
