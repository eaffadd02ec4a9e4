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

	"harvest/fs/ndb"
	"harvest/gather/crawl"
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

// maxTrace bounds what is kept of how an object came about.
const maxTrace = 64 << 10

// traceNote is a trace as it is kept with a document: the type that came of it,
// and a line a step. The name of what was taken apart is the document's.
func traceNote(typ string, steps essence.Trace) string {
	text := "type\t" + typ + "\t\t\n" + steps.String()
	if len(text) <= maxTrace {
		return text
	}
	cut := strings.LastIndexByte(text[:maxTrace], '\n') + 1
	return text[:cut] + fmt.Sprintf("cut\t%d more steps\tonly %d bytes are kept\t\n", strings.Count(text[cut:], "\n"), maxTrace)
}

// traceOf is how the object of a URL came about.
func (g *Gatherer) traceOf(url string) (string, error) {
	note, err := g.db.Note(url)
	if errors.Is(err, iofs.ErrNotExist) || err == nil && note == "" {
		return "", fmt.Errorf("trace of %s: it was not summarized here, or by an older program: %w", url, iofs.ErrNotExist)
	}
	return note, err
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

// redundant reports whether a document is so beside another that is known, and
// why.
func (v *visit) redundant(url string) string {
	dir, name := splitName(url)
	for other, why := range v.tables.Redundant(name) {
		if !v.g.db.Knows(dir + other) {
			continue
		}
		if d, err := v.g.db.Lookup(dir + other); err == nil && present(d.State) {
			return why + ": " + other + " is there"
		}
	}
	return ""
}

// present reports whether there is a document, as far as is known.
func present(s crawl.State) bool { return s == crawl.Stored || s == crawl.New }

// splitName takes the last part off a URL that has no query.
func splitName(url string) (dir, name string) {
	if strings.ContainsAny(url, "?#") {
		return url, ""
	}
	i := strings.LastIndexByte(url, '/') + 1
	return url[:i], url[i:]
}

// twins has what is redundant beside a document that has come leave the
// collection, and what it had made redundant come back when it has gone.
func (v *visit) twins(p *crawl.Page) {
	dir, name := splitName(p.URL)
	for other, why := range v.tables.Dropped(name) {
		d, err := v.g.db.Lookup(dir + other)
		if err != nil {
			continue
		}
		came := p.Outcome == crawl.Fetched && d.State == crawl.Stored
		went := p.Outcome != crawl.Fetched && p.Outcome != crawl.Unchanged && d.State == crawl.Barred && strings.HasPrefix(d.Why, why)
		if (came || went) && len(v.anew) < maxListed {
			v.anew = append(v.anew, d.URL)
		}
	}
}

// again has the documents fetched anew that a visit has found out about too late.
func (v *visit) again(ctx context.Context) error {
	if err := v.g.db.Add(ctx, v.anew...); err != nil {
		return err
	}
	v.g.mu.Lock()
	defer v.g.mu.Unlock()
	v.g.want.queue = v.g.want.queue || v.g.held == ""
	v.g.poke()
	return nil
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

// maxTried bounds a document that somebody wants to see summarized.
const maxTried = 64 << 20

// tryUsage is what types/try reads as before anything was tried.
const tryUsage = "a document; or, before it, a line: try [name=NAME] [url=URL] [type=MEDIA-TYPE] [fulltext=yes|no]\n"

// try summarizes a document as a visit would, and returns its object and its
// trace. Before it may stand a line that says what it is called.
func (g *Gatherer) try(ctx context.Context, text []byte) (string, error) {
	g.mu.Lock()
	full := g.conf.fullText
	g.mu.Unlock()
	in := essence.Input{FullText: full, Programs: g.bring.now()}
	line, _, _ := strings.Cut(string(text[:min(len(text), 4096)]), "\n")
	if strings.HasPrefix(line, "try ") || line == "try" {
		if err := tryLine(&in, line); err != nil {
			return "", err
		}
		text = text[min(len(text), len(line)+1):]
	}
	in.Head, in.Size = text, int64(len(text))
	in.Tables, _ = g.types.now()
	if in.URL == "" {
		in.URL = "try:" + in.Name
	}
	o, steps, err := essence.Summarize(ctx, in)
	why := ""
	if errors.Is(err, essence.ErrRejected) || errors.Is(err, essence.ErrDeleted) {
		why, err = "rejected\t"+err.Error()+"\t\t\n", nil
	}
	if err != nil {
		return "", err
	}
	if why != "" {
		return steps.String() + why, nil
	}
	return string(o.Append(nil)) + steps.String(), nil
}

// tryLine reads what stands before a document.
func tryLine(in *essence.Input, line string) error {
	e, err := ndb.ParseLine(line, 1)
	if err != nil {
		return err
	}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "name":
			in.Name = p.Value
		case "url":
			in.URL = p.Value
		case "type":
			in.Type = p.Value
		case "fulltext":
			in.FullText, err = e.Bool(p)
		default:
			err = e.Errorf(p, "unknown key '%s'; there are name, url, type and fulltext", p.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
