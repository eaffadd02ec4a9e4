package gather

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"harvest/gather/essence"
)

// types are the tables of Essence that hold for a Gatherer: texts in a folder of
// its own, a file each, where its users have set any.
type types struct {
	dir string

	mu     sync.Mutex
	text   map[string]string // what is set
	tables *essence.Tables
	print  uint64 // stands for all that is set
}

// load reads them. One that is bad is an error: to summarize by others, and drop
// what they do not want, would be worse.
func (t *types) load(dir string) error {
	t.dir = dir
	text := make(map[string]string)
	for _, name := range essence.TableNames() {
		b, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, iofs.ErrNotExist):
		case err != nil:
			return err
		default:
			text[name] = string(b)
		}
	}
	tables, err := essence.ParseTables(text)
	if err != nil {
		return fmt.Errorf("types: %w", err)
	}
	t.text, t.tables, t.print = text, tables, printOf(text)
	return nil
}

// printOf stands for texts; those of a program are changed with its version.
func printOf(text map[string]string) uint64 {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(text)) {
		fmt.Fprintf(h, "%s %d %s", name, len(text[name]), text[name])
	}
	return h.Sum64()
}

// get is a text that is set, or the program's own.
func (t *types) get(name string) string {
	t.mu.Lock()
	own, ok := t.text[name]
	t.mu.Unlock()
	if !ok {
		own, _ = essence.DefaultTable(name) // there is such a table
	}
	return own
}

// rulesTable is the only table that may name programs.
const rulesTable = "rules"

// setFrom checks a text, keeps it and puts it in force. An empty one brings back
// the program's own. An error is about this text, or says which other it breaks.
// Somebody who is not near, on this machine, may not give one that has programs
// run, unless it is what holds already.
func (t *types) setFrom(name, text string, near bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := maps.Clone(t.text)
	if own, err := essence.DefaultTable(name); err != nil {
		return err
	} else if all[name] = text; strings.TrimSpace(text) == "" || text == own {
		delete(all, name)
	}
	tables, err := essence.ParseTables(all)
	if at := new(essence.TableError); errors.As(err, &at) && at.Name == name {
		return at.Err
	}
	if err != nil {
		return fmt.Errorf("with this, %w", err)
	}
	if !near && name == rulesTable && text != t.text[name] && tables.RunsPrograms() {
		return fmt.Errorf("%s: %w: %w", name, errFar, iofs.ErrPermission)
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(t.dir, name)
	if own, ok := all[name]; ok {
		err = writeFile(path, own)
	} else if err = os.Remove(path); errors.Is(err, iofs.ErrNotExist) {
		err = nil
	} else if err == nil {
		err = syncDir(t.dir)
	}
	if err != nil {
		return err
	}
	t.text, t.tables, t.print = all, tables, printOf(all)
	return nil
}

// now are the tables in force, and what stands for them.
func (t *types) now() (*essence.Tables, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tables, t.print
}

// rejects is what keeps a URL out before it is fetched: config, and a type that
// is not wanted.
func (v *visit) rejects(url string, folder bool) string {
	why := v.conf.exclude(url, folder)
	if why == "" && !folder {
		why, _ = v.tables.Rejects(url)
	}
	return why
}

// writeTypes writes a line for each type: its name, the objects that are of it,
// what is done with it, its media types, and what it is.
func (g *Gatherer) writeTypes(ctx context.Context, w *bufio.Writer) error {
	tables, _ := g.types.now()
	count := make(map[string]int)
	err := g.db.Notes(ctx, func(note string, n int) {
		if rest, ok := strings.CutPrefix(note, "type\t"); ok {
			typ, _, _ := strings.Cut(rest, "\t")
			count[typ] += n
		}
	})
	if err != nil {
		return err
	}
	for _, t := range tables.Types() {
		does := t.Does
		if does == "" {
			does = "describe"
		}
		if err := row(w, t.Name, strconv.Itoa(count[t.Name]), does, strings.Join(t.Media, ","), t.About); err != nil {
			return err
		}
	}
	return nil
}
