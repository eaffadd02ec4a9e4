package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MaxConfig bounds the text of a ConfigFile and of an editor's scratch file.
const MaxConfig = 1 << 20

// A ConfigFile is a text that is checked before it counts.
//
// Writers share one draft, made of the running text (or of nothing, when
// opened with Trunc) by the first of them and gone with the last. The draft is
// checked as a whole, and if good put in force, when a writer that changed it
// flushes; when an editor renames a finished file onto the name; and at the
// close of a writer that truncated and wrote nothing; that of one that vanished
// is undone. A draft that is refused fails the flush or the rename, leaves the
// running text in force, and can be read as NAME.rejected beside the file until
// a good one comes.
type ConfigFile struct {
	path uint64
	err  *Err
	read func() string
	set  func(ctx context.Context, text string) error
	line func(line string, n int) error
	hide func(text string) string
	rest bool // removing it empties it
	who  func() (owner, group string)

	mu       sync.Mutex
	name     string // its own, told by the directory that holds it
	vers     uint32
	mtime    time.Time // of the running text; zero: as old as the server
	writers  int
	draft    []byte
	checked  int // bytes of the draft known to be whole, good lines
	lines    int // how many lines that is
	inOrder  bool
	dirty    bool   // written since the last flush
	emptied  bool   // truncated, and not written since
	emptier  Handle // the writer whose open did that; nil: a Set
	bad      error  // a line of the draft was refused: it will never count
	rejected []byte
}

// Config makes a ConfigFile. Read gives the running text; set checks a whole
// new text, puts it in force and makes it durable, or changes nothing and
// says what is wrong with it. Both may be called concurrently.
func Config(path uint64, err *Err, read func() string, set func(ctx context.Context, text string) error) *ConfigFile {
	return &ConfigFile{path: path, err: err, read: read, set: set, name: "config"}
}

// Lines adds a check of single lines, numbered from 1, that refuses at the
// write what no text could make good.
func (c *ConfigFile) Lines(check func(line string, n int) error) *ConfigFile {
	c.line = check
	return c
}

// Hide has what must not be shown taken out of a text that is refused, before
// it can be read in NAME.rejected and in err. The lines stay what they are.
func (c *ConfigFile) Hide(hide func(text string) string) *ConfigFile {
	c.hide = hide
	return c
}

// Removable has the removal of the file put an empty text in force; without it
// what is in force stays so. Soon the file is there again, as editors expect.
func (c *ConfigFile) Removable() *ConfigFile {
	c.rest = true
	return c
}

// Whose has f say whose the file is, as CtlFile.Whose does.
func (c *ConfigFile) Whose(f func() (owner, group string)) *ConfigFile {
	c.who = f
	return c
}

// Named gives the file the name that errors are told under; a Static gives those
// in it theirs.
func (c *ConfigFile) Named(name string) *ConfigFile {
	c.name = name
	return c
}

// Busy reports whether anybody has the file open for writing.
func (c *ConfigFile) Busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writers > 0
}

// Rejected returns the text that was refused last, as NAME.rejected shows it, or
// nil.
func (c *ConfigFile) Rejected() File {
	if !c.hasRejected() {
		return nil
	}
	return rejectedFile{c}
}

// Stat gives the length of the draft while there is one.
func (c *ConfigFile) Stat() Stat {
	size := int64(len(c.read()))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writers > 0 {
		size = int64(len(c.draft))
	}
	return whose(Stat{Path: c.path, Vers: c.vers, Kind: Made, Mode: 0o644, Size: size, Mtime: c.mtime}, c.who)
}

// Open gives a reader a snapshot of the running text, a writer the draft.
func (c *ConfigFile) Open(ctx context.Context, m Mode) (Handle, error) {
	if m&Write == 0 {
		return Snapshot([]byte(c.read())), nil
	}
	text := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writers == 0 {
		c.draft = []byte(text)
		c.checked, c.lines, c.inOrder = 0, 0, false
		c.dirty, c.emptied, c.bad = false, false, nil
	}
	c.writers++
	h := &configHandle{c: c, app: m&Append != 0}
	if m&Trunc != 0 {
		c.truncate(0, h)
	}
	return h, nil
}

// truncate changes the draft's length; who has the open that does, nil if it
// is a Set. Called with mu held.
func (c *ConfigFile) truncate(n int64, who Handle) {
	if n == 0 {
		c.emptier = who
		c.draft, c.checked, c.lines = c.draft[:0], 0, 0
		c.inOrder, c.emptied, c.dirty, c.bad = true, true, false, nil
		return
	}
	for int64(len(c.draft)) < n {
		c.draft = append(c.draft, 0)
	}
	c.draft = c.draft[:n]
	c.inOrder, c.dirty = false, true
}

// Set truncates: the draft if somebody is writing, else the running text.
func (c *ConfigFile) Set(ctx context.Context, ch Change) error {
	if ch.Size == nil {
		return nil // editors give a file the mode and times it had
	}
	if *ch.Size < 0 || *ch.Size > MaxConfig {
		return syscall.EFBIG
	}
	c.mu.Lock()
	if c.writers > 0 {
		c.truncate(*ch.Size, nil)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	text := []byte(c.read())
	if n := int(*ch.Size); n < len(text) {
		text = text[:n]
	}
	return c.Replace(ctx, text)
}

// Replace puts a whole new text in force, or refuses it.
func (c *ConfigFile) Replace(ctx context.Context, text []byte) error {
	err := Class(c.set(ctx, string(text)), iofs.ErrInvalid)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result(text, err)
	return err
}

// result notes how the set of a text ended. Called with mu held.
func (c *ConfigFile) result(text []byte, err error) {
	c.vers++
	if err != nil && c.hide != nil {
		text = []byte(c.hide(string(text)))
	}
	c.err.Set(c.name, lineOf(text, err), err)
	if err != nil {
		c.rejected = bytes.Clone(text)
		return
	}
	c.rejected, c.mtime = nil, time.Now()
}

// lineOf is the line of text that err points at, if it does.
func lineOf(text []byte, err error) string {
	var at interface{ Position() (line, col int) }
	if !errors.As(err, &at) {
		return ""
	}
	n, _ := at.Position()
	for line := range strings.Lines(string(text)) {
		if n--; n == 0 {
			return strings.TrimRight(line, "\n")
		}
	}
	return ""
}

type configHandle struct {
	c   *ConfigFile
	app bool
}

func (h *configHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if off >= int64(len(h.c.draft)) {
		return 0, io.EOF
	}
	return copy(p, h.c.draft[off:]), nil
}

func (h *configHandle) WriteAt(_ context.Context, p []byte, off int64) (int, error) {
	c := h.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad != nil {
		return 0, c.bad
	}
	if h.app {
		off = int64(len(c.draft))
	}
	if off < 0 || off > MaxConfig-int64(len(p)) {
		return 0, fmt.Errorf("%s: longer than %d bytes: %w", c.name, MaxConfig, syscall.EFBIG)
	}
	if off != int64(len(c.draft)) {
		c.inOrder = false
	}
	for int64(len(c.draft)) < off {
		c.draft = append(c.draft, 0)
	}
	n := copy(c.draft[off:], p)
	c.draft = append(c.draft, p[n:]...)
	c.dirty, c.emptied = true, false
	if c.bad = c.checkLines(); c.bad != nil {
		c.result(c.draft, c.bad)
		return 0, c.bad
	}
	return len(p), nil
}

// checkLines checks the lines completed since the last call, as long as the
// draft was written from front to back. Called with mu held.
func (c *ConfigFile) checkLines() error {
	if c.line == nil || !c.inOrder {
		return nil
	}
	for {
		n := bytes.IndexByte(c.draft[c.checked:], '\n')
		if n < 0 {
			return nil
		}
		line := string(c.draft[c.checked : c.checked+n])
		if err := c.line(line, c.lines+1); err != nil {
			return Class(err, iofs.ErrInvalid)
		}
		c.checked += n + 1
		c.lines++
	}
}

// Flush puts the draft in force if it changed. What set does is not bound by
// mu; a write meanwhile leaves the draft dirty, for its own writer's flush.
func (h *configHandle) Flush(ctx context.Context) error {
	c := h.c
	c.mu.Lock()
	if c.bad != nil {
		defer c.mu.Unlock()
		return c.bad
	}
	if !c.dirty {
		c.mu.Unlock()
		return nil
	}
	c.dirty = false
	text := bytes.Clone(c.draft)
	c.mu.Unlock()
	return c.Replace(ctx, text)
}

// Abort undoes what h truncated, unless something was written since. Which
// writer a Set was for is not known: it is undone with the last of them.
func (h *configHandle) Abort() {
	c := h.c
	text := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.emptied && (c.emptier == Handle(h) || c.emptier == nil && c.writers == 1) {
		c.draft, c.emptied, c.inOrder = []byte(text), false, false
	}
}

func (h *configHandle) Close() error {
	c := h.c
	c.mu.Lock()
	c.writers--
	empty := c.writers == 0 && c.emptied
	if c.writers == 0 {
		c.draft, c.emptier, c.dirty, c.bad = nil, nil, false, nil
	}
	c.mu.Unlock()
	if empty {
		return c.Replace(context.Background(), nil)
	}
	return nil
}

// rejectedFile shows what was refused; it is there only while something is.
type rejectedFile struct{ c *ConfigFile }

func (f rejectedFile) text() string {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return string(f.c.rejected)
}

func (f rejectedFile) Stat() Stat { return f.file().Stat() }

func (f rejectedFile) file() File { return Text(ID("rejected", fmt.Sprint(f.c.path)), f.text) }

func (f rejectedFile) Open(ctx context.Context, m Mode) (Handle, error) {
	return f.file().Open(ctx, m)
}

func (c *ConfigFile) hasRejected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rejected != nil
}

func (c *ConfigFile) dropRejected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejected = nil
}
