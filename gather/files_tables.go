package gather

import (
	"bytes"
	"context"
	"fmt"
	iofs "io/fs"
	"strings"
	"sync"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// The tables of a Gatherer, and what is asked of it by URL:
//
//	hosts       a server a line
//	documents   a document a line
//	links       a link a line
//	queue       a URL that is to be fetched a line
//	top25       the servers that most others link to
//	selected    what is in the collection, and by which line of config
//	duplicates  what is not, being a copy, and of what
//	submit      takes URLs, a line each
//	explain     takes a URL; reads as what is known of the last one written

func (g *Gatherer) tableFiles(nodes map[string]fs.Node, err *fs.Err) {
	for name, write := range map[string]rowWriter{
		"hosts": g.writeHosts, "documents": g.writeDocuments, "links": g.writeLinks, "queue": g.writeQueue,
		"top25": g.writeTop25, "selected": g.writeSelected, "duplicates": g.writeDuplicates,
	} {
		nodes[name] = fs.Stream(g.id(name), 0, table(write))
	}
	nodes["submit"] = &submitFile{g.id("submit"), g, err}
	nodes["explain"] = &explainFile{path: g.id("explain"), g: g, err: err}
}

// collectionFigures are what status shows of the selection.
func (g *Gatherer) collectionFigures() []ndb.Pair {
	g.mu.Lock()
	h, progress := g.chosen, g.progress()
	g.mu.Unlock()
	pairs := []ndb.Pair{ndb.Of("unselected", g.hidden())}
	if h != nil {
		pairs = append(pairs, ndb.Of("copies", h.count[copied]))
	}
	if progress != "" {
		pairs = append(pairs, ndb.Of("selecting", progress))
	}
	return pairs
}

// A submitFile takes lines, also when a line spans writes: it is made for lists.
// The last one counts when the file is closed.
type submitFile struct {
	path uint64
	g    *Gatherer
	err  *fs.Err
}

// maxSubmitted is the longest line that is taken.
const maxSubmitted = 4096

// Stat says that everybody may write.
func (f *submitFile) Stat() fs.Stat {
	return fs.Stat{Path: f.path, Kind: fs.Control, Mode: 0o666, Size: int64(len(submitUsage))}
}

const submitUsage = "URL\n"

// Open never truncates.
func (f *submitFile) Open(context.Context, fs.Mode) (fs.Handle, error) {
	return &submitHandle{Handle: fs.Snapshot([]byte(submitUsage)), f: f}, nil
}

// Set takes any new size or time: truncation means nothing here.
func (f *submitFile) Set(_ context.Context, ch fs.Change) error { return noMode(ch, 0o666) }

func noMode(ch fs.Change, mode iofs.FileMode) error {
	if ch.Mode != nil && ch.Mode.Perm() != mode {
		return iofs.ErrPermission
	}
	return nil
}

type submitHandle struct {
	fs.Handle
	f *submitFile

	mu   sync.Mutex
	rest []byte // of a line that has not ended
}

func (h *submitHandle) WriteAt(ctx context.Context, p []byte, _ int64) (int, error) {
	h.mu.Lock()
	h.rest = append(h.rest, p...)
	end := bytes.LastIndexByte(h.rest, '\n') + 1
	whole := string(h.rest[:end])
	h.rest = append(h.rest[:0], h.rest[end:]...)
	long := len(h.rest) > maxSubmitted
	if long {
		h.rest = nil
	}
	h.mu.Unlock()
	err := h.f.take(ctx, whole)
	if err == nil && long {
		err = fmt.Errorf("a line of more than %d bytes: %w", maxSubmitted, iofs.ErrInvalid)
		h.f.err.Set("submit", "", err)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush takes a last line without a newline.
func (h *submitHandle) Flush(ctx context.Context) error {
	h.mu.Lock()
	rest := string(h.rest)
	h.rest = nil
	h.mu.Unlock()
	return h.f.take(ctx, rest)
}

// Abort forgets the line that was begun.
func (h *submitHandle) Abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rest = nil
}

// maxRefused bounds how many refused lines are told of.
const maxRefused = 100

// take submits lines. Those that are good count whatever others are.
func (f *submitFile) take(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		if len(l) > maxSubmitted {
			lines[i] = l[:maxSubmitted] // no URL is so long
		}
	}
	refused, err := f.g.submit(ctx, lines)
	if err != nil || len(refused) == 0 {
		f.err.Set("submit", "", err)
		return err
	}
	told := make([]string, 0, len(refused))
	for _, r := range refused[:min(len(refused), maxRefused)] {
		told = append(told, fmt.Sprintf("%.200s: %v", crawl.HideUser(r.line), r.err))
	}
	if n := len(refused) - maxRefused; n > 0 {
		told = append(told, fmt.Sprintf("and %d more", n))
	}
	err = fmt.Errorf("%d of %d refused: %w", len(refused), len(lines), refused[0].err)
	f.err.Set("submit", strings.Join(told, "\n\t"), err)
	return err
}

// An explainFile answers to the URL that was written last: who wrote through a
// handle reads the answer to that through it, all others the answer to the last.
type explainFile struct {
	path uint64
	g    *Gatherer
	err  *fs.Err

	mu   sync.Mutex
	last string
	vers uint32
}

const explainUsage = "URL\n"

// Stat gives the length of the last answer.
func (f *explainFile) Stat() fs.Stat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fs.Stat{Path: f.path, Vers: f.vers, Kind: fs.Control, Mode: 0o666, Size: int64(len(f.text()))}
}

// text is what the file reads as. mu is held.
func (f *explainFile) text() string {
	if f.last == "" {
		return explainUsage
	}
	return f.last
}

func (f *explainFile) Open(context.Context, fs.Mode) (fs.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &explainHandle{f: f, text: []byte(f.text())}, nil
}

func (f *explainFile) Set(_ context.Context, ch fs.Change) error { return noMode(ch, 0o666) }

type explainHandle struct {
	f *explainFile

	mu   sync.Mutex
	text []byte
}

func (h *explainHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	h.mu.Lock()
	text := h.text
	h.mu.Unlock()
	return fs.Snapshot(text).ReadAt(ctx, p, off)
}

func (h *explainHandle) WriteAt(ctx context.Context, p []byte, _ int64) (int, error) {
	url := strings.TrimSpace(string(p))
	text, err := "", fmt.Errorf("one URL at a time: %w", iofs.ErrInvalid)
	if !strings.Contains(url, "\n") {
		text, err = h.f.g.explain(ctx, url)
	}
	h.f.err.Set("explain", url, err)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	h.text = []byte(text)
	h.mu.Unlock()
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.f.last, h.f.vers = text, h.f.vers+1
	return len(p), nil
}

func (h *explainHandle) Flush(context.Context) error { return nil }
func (h *explainHandle) Close() error                { return nil }
