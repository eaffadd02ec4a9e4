package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/essence"
)

// # What users bring
//
// The summarizers and exploders of a Gatherer's users are files below types/ of
// its folder, summarize/TYPE.sum and the like, and limits beside them. They are
// read at start; after that the tree is the way in.

// Where they are.
const (
	summarizeDir = "summarize"
	explodeDir   = "explode"
)

// maxBrought bounds the files of a folder.
const maxBrought = 500

// A bring is all of them.
type bring struct {
	g   *Gatherer
	dir string

	mu       sync.Mutex
	files    map[string]broughtFile    // by path: summarize/Lua.sum
	limits   map[string]string         // texts, by folder
	bounds   map[string]essence.Bounds // of files, by path
	programs *essence.Programs         // made of all that
	closed   bool
}

// A broughtFile is a file as it is kept.
type broughtFile struct {
	text string
	mode iofs.FileMode
	time time.Time
}

// openBring reads what was brought. What is bad is told of and passed over: the
// objects get the summaries that they would have without.
func openBring(g *Gatherer, dir string) (*bring, error) {
	b := &bring{g: g, dir: dir, files: make(map[string]broughtFile), limits: make(map[string]string), bounds: make(map[string]essence.Bounds)}
	for _, folder := range []string{summarizeDir, explodeDir} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if err := b.read(folder, e.Name()); err != nil {
				g.lg.Error("types", "file", folder+"/"+e.Name(), "err", err)
			}
		}
	}
	return b, b.remake()
}

func (b *bring) read(folder, name string) error {
	path := folder + "/" + name
	file := filepath.Join(b.dir, folder, name)
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if name == "limits" {
		bounds, err := parseBounds(string(text), folder)
		if err != nil {
			return err
		}
		b.limits[folder] = string(text)
		maps.Copy(b.bounds, bounds)
		return nil
	}
	if err := essence.CheckName(name, folder == explodeDir); err != nil {
		return err
	}
	if !strings.HasSuffix(name, ".star") { // which takes a process to read, and tells when it is run
		if err := essence.CheckBrought(context.Background(), name, folder == explodeDir, string(text)); err != nil {
			return err
		}
	}
	b.files[path] = broughtFile{string(text), st.Mode().Perm(), st.ModTime()}
	return nil
}

// remake makes the programs anew. mu is held, or nobody else is there yet.
func (b *bring) remake() error {
	var all []essence.Brought
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		f := b.files[path]
		folder, name, _ := strings.Cut(path, "/")
		if essence.IsProgram(name) && f.mode&0o100 == 0 {
			continue
		}
		all = append(all, essence.Brought{File: name, Explode: folder == explodeDir, Path: filepath.Join(b.dir, path), Text: f.text, Bounds: b.bounds[path]})
	}
	programs, err := essence.NewPrograms(all, b.failed)
	if err != nil {
		return err
	}
	if b.programs != nil {
		programs.Inherit(b.programs)
		b.programs.Close()
	}
	b.programs = programs
	return nil
}

// failed tells of a run that failed.
func (b *bring) failed(f essence.Failure) {
	name := summarizeDir + "/" + f.File
	if f.Explode {
		name = explodeDir + "/" + f.File
	}
	b.g.lg.Warn("summarizer", "file", name, "url", f.URL, "err", f.Why)
	b.g.journal.event("summarizer", ndb.Of("url", f.URL), ndb.Of("file", name), ndb.Of("reason", f.Why))
}

// now are the programs in force.
func (b *bring) now() *essence.Programs {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.programs
}

// close ends the processes that are kept.
func (b *bring) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.programs.Close()
}

// get is a file, as it is.
func (b *bring) get(path string) (broughtFile, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.files[path]
	return f, ok
}

// names are those of a folder, in order.
func (b *bring) names(folder string) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for path := range b.files {
		if name, ok := strings.CutPrefix(path, folder+"/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// set checks a text and puts it in force.
func (b *bring) set(ctx context.Context, path, text string, mode iofs.FileMode) error {
	folder, name, _ := strings.Cut(path, "/")
	if err := essence.CheckBrought(ctx, name, folder == explodeDir, text); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.files[path]
	if !ok && len(b.files) >= maxBrought {
		return fmt.Errorf("more than %d files: %w", maxBrought, syscall.ENOSPC)
	}
	return b.keep(path, was, ok, func() error {
		b.files[path] = broughtFile{text, mode, time.Now()}
		return b.write(path, text, mode)
	})
}

// chmod sets the mode of a file: a program without x is not run.
func (b *bring) chmod(path string, mode iofs.FileMode) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.files[path]
	if !ok {
		return fmt.Errorf("%s: %w", path, iofs.ErrNotExist)
	}
	return b.keep(path, was, ok, func() error {
		f := was
		f.mode = mode.Perm()
		b.files[path] = f
		return os.Chmod(filepath.Join(b.dir, path), f.mode)
	})
}

// remove takes a file away: its type is summarized as it would be without.
func (b *bring) remove(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.files[path]
	if !ok {
		return fmt.Errorf("%s: %w", path, iofs.ErrNotExist)
	}
	return b.keep(path, was, ok, func() error {
		delete(b.files, path)
		if err := os.Remove(filepath.Join(b.dir, path)); err != nil {
			return err
		}
		return syncDir(filepath.Dir(filepath.Join(b.dir, path)))
	})
}

// keep changes a file, and undoes that in memory when it cannot be. mu is held.
func (b *bring) keep(path string, was broughtFile, had bool, change func() error) error {
	err := change()
	if err == nil {
		err = b.remake()
	}
	if err == nil {
		return nil
	}
	delete(b.files, path)
	if had {
		b.files[path] = was
	}
	return errors.Join(err, b.remake())
}

func (b *bring) write(path, text string, mode iofs.FileMode) error {
	file := filepath.Join(b.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := writeFileAs(file, text, mode); err != nil {
		return err
	}
	return os.Chmod(file, mode) // whatever the umask
}

// limitsText is what limits of a folder reads as.
func (b *bring) limitsText(folder string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, ok := b.limits[folder]; ok {
		return text
	}
	return newLimits
}

// newLimits is what limits reads as before it was written.
const newLimits = "# limit file=TYPE.sum wall=20s memory=512M output=64K procs=64 keep=0\n"

// setLimits checks and keeps limits of a folder.
func (b *bring) setLimits(folder, text string) error {
	bounds, err := parseBounds(text, folder)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.write(folder+"/limits", text, 0o644); err != nil {
		return err
	}
	b.limits[folder] = text
	for path := range b.bounds {
		if strings.HasPrefix(path, folder+"/") {
			delete(b.bounds, path)
		}
	}
	maps.Copy(b.bounds, bounds)
	return b.remake()
}

// parseBounds reads limits: what one run over one object may take, a line a file.
//
//	limit file=Lua.sum wall=5s memory=128M output=64K procs=16 keep=100
func parseBounds(text, folder string) (map[string]essence.Bounds, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	all := make(map[string]essence.Bounds)
	for _, e := range entries {
		if p := e.First(); p.Key != "limit" || p.Value != "" {
			return nil, e.Errorf(p, "'%s' is not limit, which a line begins with", p.Key)
		}
		name, _ := e.Get("file")
		if err := essence.CheckName(name, folder == explodeDir); err != nil {
			return nil, e.Errorf(e.First(), "file: %v", err)
		}
		path := folder + "/" + name
		if _, twice := all[path]; twice {
			return nil, e.Errorf(e.First(), "%s is there twice", name)
		}
		var b essence.Bounds
		for _, p := range e.Pairs[1:] {
			if err := bound(&b, e, p); err != nil {
				return nil, err
			}
		}
		all[path] = b
	}
	return all, nil
}

// bound reads one of the bounds.
func bound(b *essence.Bounds, e ndb.Entry, p ndb.Pair) (err error) {
	size := func(to *int64, least, most int64) {
		if *to, err = e.Size(p); err == nil && (*to < least || *to > most) {
			err = e.Errorf(p, "%s: is from %d to %d bytes", p.Key, least, most)
		}
	}
	count := func(to *int, least, most int) {
		if *to, err = e.Int(p); err == nil && (*to < least || *to > most) {
			err = e.Errorf(p, "%s: is from %d to %d", p.Key, least, most)
		}
	}
	switch p.Key {
	case "file":
	case "wall":
		if b.Wall, err = atLeast(e, p, 10*time.Millisecond); err == nil && b.Wall > 10*time.Minute {
			err = e.Errorf(p, "wall: is at most 10m")
		}
	case "memory":
		size(&b.Memory, 16<<20, 16<<30)
	case "output":
		size(&b.Output, 1, 256<<20)
	case "procs":
		count(&b.Procs, 1, 10_000)
	case "keep":
		count(&b.Keep, 0, 1_000_000)
	default:
		err = e.Errorf(p, "unknown key '%s'; there are file, wall, memory, output, procs and keep", p.Key)
	}
	return err
}

// print moves when summaries may, by what was brought.
func (b *bring) print() uint64 { return b.now().Print() }
