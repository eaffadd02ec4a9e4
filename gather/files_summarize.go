package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"harvest/fs"
	"harvest/gather/essence"
	"harvest/gather/essence/jail"
)

// What users bring, below types/:
//
//	summarize/TYPE.sum    a program; only somebody on this machine may write it
//	summarize/TYPE.star   Starlark
//	summarize/TYPE.quick  regular expressions
//	summarize/limits      what a run may take, a line a file
//	summarize/stats       what became of the runs, a line a file
//	explode/              the same for exploders
//
// Files are checked as a config is; other names are editors', as beside one.

// A bringDir is one of the two directories.
type bringDir struct {
	b      *bring
	folder string
	err    *fs.Err
	still  fs.Dir // limits, stats and what editors leave

	mu      sync.Mutex
	configs map[string]*fs.ConfigFile
	perms   map[string]iofs.FileMode // of files that are being made
	made    uint32                   // moves with every change
}

// broughtNodes adds the two directories to types/.
func (g *Gatherer) broughtNodes(nodes map[string]fs.Node, err *fs.Err) {
	for _, folder := range []string{summarizeDir, explodeDir} {
		d := &bringDir{b: g.bring, folder: folder, err: err, configs: make(map[string]*fs.ConfigFile), perms: make(map[string]iofs.FileMode)}
		limits := fs.Config(d.id("limits"), err, func() string { return g.bring.limitsText(folder) },
			func(_ context.Context, text string) error { return g.bring.setLimits(folder, text) }).Named(folder + "/limits")
		d.still = fs.Static(g.id("types", folder), map[string]fs.Node{"limits": limits, "stats": fs.Text(d.id("stats"), d.stats)})
		nodes[folder] = d
	}
}

func (d *bringDir) id(name string) uint64 { return d.b.g.id("types", d.folder, name) }

// taken tells whether a name is that of a summarizer or exploder.
func (d *bringDir) taken(name string) bool {
	return essence.CheckName(name, d.folder == explodeDir) == nil
}

func (d *bringDir) path(name string) string { return d.folder + "/" + name }

func (d *bringDir) absent(name string) error {
	return fmt.Errorf("types/%s/%.100s: %w", d.folder, name, iofs.ErrNotExist)
}

// Stat moves with what is in the directory.
func (d *bringDir) Stat() fs.Stat {
	st := d.still.Stat()
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Vers += d.made
	return st
}

// Lookup finds what is there, what is being written, and what was refused.
func (d *bringDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if d.taken(name) {
		if _, ok := d.b.get(d.path(name)); !ok && !d.begun(name) {
			return nil, d.absent(name)
		}
		return d.file(name), nil
	}
	if of, ok := strings.CutSuffix(name, ".rejected"); ok && d.taken(of) {
		if f := d.config(of).Rejected(); f != nil {
			return f, nil
		}
		return nil, d.absent(name)
	}
	return d.still.Lookup(ctx, name)
}

func (d *bringDir) begun(name string) bool {
	d.mu.Lock()
	c := d.configs[name]
	d.mu.Unlock()
	return c != nil && c.Busy()
}

// List gives all of it: there are few.
func (d *bringDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	var all []fs.Entry
	for e, err := range d.still.List(ctx, "") {
		if err == nil {
			all = append(all, e)
		}
	}
	names := d.b.names(d.folder)
	for _, name := range names {
		all = append(all, fs.Entry{Name: name, Node: d.file(name)})
	}
	d.mu.Lock()
	for name, c := range d.configs {
		if f := c.Rejected(); f != nil {
			all = append(all, fs.Entry{Name: name + ".rejected", Node: f})
		}
	}
	d.mu.Unlock()
	return fs.Sorted(all, after)
}

// config returns what checks a file; all who write it share its draft.
func (d *bringDir) config(name string) *fs.ConfigFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.configs[name]; c != nil {
		return c
	}
	for other, c := range d.configs { // of files that are no more, few are kept
		if len(d.configs) < maxBrought {
			break
		}
		if _, ok := d.b.get(d.path(other)); !ok && !c.Busy() {
			delete(d.configs, other)
		}
	}
	c := fs.Config(d.id(name), d.err, func() string { f, _ := d.b.get(d.path(name)); return f.text },
		func(ctx context.Context, text string) error { return d.set(ctx, name, text) }).Named(d.path(name))
	d.configs[name] = c
	return c
}

// set puts a text in force that is complete.
func (d *bringDir) set(ctx context.Context, name, text string) error {
	d.mu.Lock()
	mode, ok := d.perms[name]
	d.mu.Unlock()
	if !ok {
		mode = d.mode(name)
	}
	if err := d.b.set(ctx, d.path(name), text, mode); err != nil {
		return err
	}
	d.changed(name)
	return nil
}

// changed notes that a file is as it is now.
func (d *bringDir) changed(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.perms, name)
	d.made++
}

// newMode is that of a file which is made: a program is there to be run, also
// where a shell's > has made it. To have it and not run it, take its x away.
func newMode(name string, perm iofs.FileMode) iofs.FileMode {
	if essence.IsProgram(name) {
		return 0o755
	}
	return perm.Perm()&0o644 | 0o600
}

// mode is that of a file.
func (d *bringDir) mode(name string) iofs.FileMode {
	if f, ok := d.b.get(d.path(name)); ok {
		return f.mode
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.perms[name]; ok {
		return m
	}
	return newMode(name, 0o644)
}

// errFar is the error of somebody who is not on this machine.
var errFar = errors.New("a program is written on the machine that runs it")

// may tells whether the caller may change a file: as any config, and a program
// from this machine only.
func (d *bringDir) may(ctx context.Context, name string) error {
	u := fs.UserOf(ctx)
	err := u.May(d.Stat(), fs.MayWrite)
	if err == nil && d.taken(name) && essence.IsProgram(name) && !u.Local {
		err = fmt.Errorf("%s: %w: %w", d.path(name), errFar, iofs.ErrPermission)
		d.err.Set(d.path(name), "", err)
	}
	return err
}

// stray refuses a name that is meant for a summarizer and is none: it would stand
// there as editors' files do, and never be run.
func (d *bringDir) stray(name string) error {
	switch path.Ext(name) {
	case ".sum", ".star", ".quick":
		if name[0] == '.' || name[0] == '#' {
			return nil
		}
		err := essence.CheckName(name, d.folder == explodeDir)
		d.err.Set(d.path(name), "", err)
		return err
	}
	return nil
}

// Create makes a file, which is there when it has been checked.
func (d *bringDir) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	if err := d.may(ctx, name); err != nil {
		return nil, nil, err
	}
	if !d.taken(name) {
		if err := d.stray(name); err != nil {
			return nil, nil, err
		}
		return d.still.(fs.Creator).Create(ctx, name, perm, m)
	}
	if _, ok := d.b.get(d.path(name)); ok {
		return nil, nil, fmt.Errorf("%s: %w", d.path(name), iofs.ErrExist)
	}
	d.mu.Lock()
	d.perms[name] = newMode(name, perm)
	d.made++
	d.mu.Unlock()
	f := d.file(name)
	h, err := f.Open(ctx, m|fs.Trunc)
	return f, h, err
}

// Remove takes a file away, or what was refused of one.
func (d *bringDir) Remove(ctx context.Context, name string) error {
	if err := d.may(ctx, name); err != nil {
		return err
	}
	of, rejected := strings.CutSuffix(name, ".rejected")
	switch {
	case d.taken(name):
		if err := d.b.remove(d.path(name)); err != nil {
			return err
		}
		d.forget(name)
		return nil
	case rejected && d.taken(of):
		if d.config(of).Rejected() == nil {
			return d.absent(name)
		}
		d.forget(of)
		return nil
	}
	return d.still.(fs.Remover).Remove(ctx, name)
}

// forget lets go of what is known of a file's writers.
func (d *bringDir) forget(name string) {
	d.mu.Lock()
	delete(d.configs, name)
	d.mu.Unlock()
	d.changed(name)
}

// Rename is what editors do at the end; a file may be renamed as well.
func (d *bringDir) Rename(ctx context.Context, old, new string, replace bool) error {
	for _, name := range []string{old, new} {
		if err := d.may(ctx, name); err != nil {
			return err
		}
	}
	if !d.taken(old) && !d.taken(new) {
		return d.still.(fs.Renamer).Rename(ctx, old, new, replace)
	}
	n, err := d.Lookup(ctx, old)
	if err != nil {
		return err
	}
	if _, err := d.Lookup(ctx, new); err == nil && !replace {
		return fmt.Errorf("types/%s/%.100s: %w", d.folder, new, iofs.ErrExist)
	}
	text, err := readNode(ctx, n)
	if err != nil {
		return err
	}
	if err := d.land(ctx, new, text, n.Stat().Mode.Perm()); err != nil {
		return err
	}
	return d.Remove(ctx, old)
}

// land makes a file of a text; one that is there keeps its mode.
func (d *bringDir) land(ctx context.Context, name string, text []byte, mode iofs.FileMode) error {
	if !d.taken(name) {
		if err := d.stray(name); err != nil {
			return err
		}
		_, h, err := d.still.(fs.Creator).Create(ctx, name, 0o644, fs.Write)
		if err != nil {
			return err
		}
		if _, err = h.WriteAt(ctx, text, 0); err == nil {
			err = h.Flush(ctx)
		}
		return errors.Join(err, h.Close())
	}
	d.mu.Lock()
	if _, ok := d.b.get(d.path(name)); !ok {
		d.perms[name] = newMode(name, mode)
	}
	d.mu.Unlock()
	return d.config(name).Replace(ctx, text)
}

// readNode is the content of a file of this directory.
func readNode(ctx context.Context, n fs.Node) ([]byte, error) {
	f, ok := n.(fs.File)
	if !ok {
		return nil, iofs.ErrInvalid
	}
	h, err := f.Open(ctx, fs.Read)
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

// A bringFile is a file that is there, or being written.
type bringFile struct {
	*fs.ConfigFile
	d    *bringDir
	name string
}

func (d *bringDir) file(name string) *bringFile { return &bringFile{d.config(name), d, name} }

// Stat has the mode that the file has: x says that a program is run.
func (f *bringFile) Stat() fs.Stat {
	st := f.ConfigFile.Stat()
	st.Mode = f.d.mode(f.name)
	if is, ok := f.d.b.get(f.d.path(f.name)); ok && st.Mtime.IsZero() {
		st.Mtime = is.time
	}
	return st
}

// Open lets only those write who may.
func (f *bringFile) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		if err := f.d.may(ctx, f.name); err != nil {
			return nil, err
		}
	}
	return f.ConfigFile.Open(ctx, m)
}

// Set changes the mode, and the length.
func (f *bringFile) Set(ctx context.Context, ch fs.Change) error {
	if err := f.d.may(ctx, f.name); err != nil {
		return err
	}
	if ch.Mode != nil {
		mode := ch.Mode.Perm()&0o755 | 0o400
		if _, ok := f.d.b.get(f.d.path(f.name)); !ok { // it is being written
			f.d.mu.Lock()
			f.d.perms[f.name] = mode
			f.d.mu.Unlock()
		} else if err := f.d.b.chmod(f.d.path(f.name), mode); err != nil {
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

// stats are what became of the runs, a line a file: its name, runs, those that
// were done, that said "not mine" and that failed, the mean time of one, a word
// of its state, and the last failure.
func (d *bringDir) stats() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# jail: %s\n# file\truns\tdone\tnone\tfailed\ttime\tstate\tlast failure\n", jail.Ground())
	all := d.b.now().Tallies()
	types, _ := d.b.g.types.now()
	for _, name := range d.b.names(d.folder) {
		key := name
		if d.folder == explodeDir {
			key = d.path(name)
		}
		t, ok := all[key]
		state, mean := "runs", time.Duration(0)
		switch {
		case !ok:
			state = "not executable"
		case !types.Has(essence.TypeOf(name)):
			state = "there is no such type"
		case time.Now().Before(t.Rests):
			state = "rests until " + t.Rests.UTC().Format(time.RFC3339)
		}
		if t.Runs > 0 {
			mean = (t.Took / time.Duration(t.Runs)).Round(10 * time.Microsecond)
		}
		n := func(i int64) string { return strconv.FormatInt(i, 10) }
		cells := []string{name, n(t.Runs), n(t.Done), n(t.None), n(t.Failed), mean.String(), state, ""}
		if t.Err != "" {
			cells[7] = t.At.UTC().Format(time.RFC3339) + " " + strings.Map(func(r rune) rune {
				if r < ' ' {
					return ' '
				}
				return r
			}, t.Err)
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "\t"), "\t") + "\n")
	}
	return b.String()
}
