package essence

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"harvest/gather/essence/unpack"
)

// slack is what unnesting may yield before its ratio to what it was made from
// is looked at: short files of blanks are no bombs.
const slack = 10 << 20

// buffered is what a decoder may have read before its output is asked for.
const buffered = 64 << 10

// A bomb is the error of unnesting that yields too much.
type bomb struct {
	what string
	all  bool // there is no room for anything else either
}

func (b bomb) Error() string { return b.what }

// A meter counts what unnesting yields, at whatever level, as it comes out: no
// header is believed. in counts what it is made from.
type meter struct {
	w     *worker
	r     io.Reader
	in    *counter // nil when it is not known
	n     int64
	began int64 // what in had counted
	begun bool
	most  int64 // bytes that are read of it, 0: no bound of its own
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.w.over(); err != nil {
		return 0, err
	}
	if !m.begun && m.in != nil {
		m.begun, m.began = true, m.in.n
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	m.w.out += int64(n)
	lim := &m.w.lim
	switch {
	case m.w.out > lim.Out:
		return n, bomb{fmt.Sprintf("unnesting stopped after %d bytes", lim.Out), true}
	case m.in != nil && m.n > slack && m.n > lim.Ratio*(m.in.n-m.began+buffered):
		return n, bomb{fmt.Sprintf("unnesting stopped: more than %d times the size", lim.Ratio), false}
	case m.most > 0 && m.n > m.most:
		return n, bomb{fmt.Sprintf("only its first %d bytes", m.most), false}
	}
	return n, err
}

// A counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// A timed reader ends when there is no time left: decoders that turn little into
// much come back to it before long.
type timed struct {
	w *worker
	r io.Reader
}

func (t *timed) Read(p []byte) (int, error) {
	if err := t.w.over(); err != nil {
		return 0, err
	}
	return t.r.Read(p)
}

// A timedAt is a timed reader of something that is there in whole. It counts what
// is read, as far as it is read once.
type timedAt struct {
	w    *worker
	r    io.ReaderAt
	in   *counter
	size int64
}

func (t *timedAt) ReadAt(p []byte, off int64) (int, error) {
	if err := t.w.over(); err != nil {
		return 0, err
	}
	n, err := t.r.ReadAt(p, off)
	t.in.n = min(t.in.n+int64(n), t.size)
	return n, err
}

// clock begins to count the time of a document's unnesting, or gives it as much
// as a container in it may take.
func (w *worker) clock(d time.Duration) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	w.time = max(w.time, d)
}

// over is why unnesting is to end, nil if it is not.
func (w *worker) over() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.out > w.lim.Out {
		return bomb{fmt.Sprintf("unnesting stopped after %d bytes", w.lim.Out), true}
	}
	if w.failed != nil {
		return w.failed
	}
	if w.time > 0 && time.Since(w.began)-w.base.waited > w.time {
		return bomb{fmt.Sprintf("unnesting stopped after %v", w.time), true}
	}
	return nil
}

// A tail is what follows the head that has been read of a stream.
type tail struct {
	r    io.Reader
	end  bool
	left bool // there was more, and nobody wanted it
	err  error
}

func (t *tail) Read(p []byte) (int, error) {
	if t.end {
		if t.err != nil {
			return 0, t.err
		}
		return 0, io.EOF
	}
	n, err := t.r.Read(p)
	if err != nil {
		t.end = true
		if err != io.EOF {
			t.err = err
		}
	}
	return n, err
}

// short is limit where members may be missing for it.
func (w *worker) short(c *content, what string) {
	w.partial = true
	w.limit(c, what)
}

// damage tells why a container, or a member of one, was not read to its end.
func (w *worker) damage(c *content, what string, err error) {
	var b bomb
	w.partial = true
	switch {
	case w.ctx.Err() != nil: // the caller knows
	case errors.As(err, &b):
		if b.all {
			if w.told(b.what) {
				return
			}
		} else if w.toldOf(c, b.what) {
			return
		}
		w.limit(c, b.what)
	case errors.Is(err, unpack.ErrUnread):
		w.limit(c, what+": "+strings.TrimSuffix(err.Error(), ": "+unpack.ErrUnread.Error()))
	case w.failed != nil:
	default:
		w.limit(c, what+": "+err.Error())
	}
}

// told reports whether a limit has been noted, for whatever member.
func (w *worker) told(what string) bool {
	for _, l := range w.cuts {
		if strings.HasSuffix(l.what, what) {
			return true
		}
	}
	return false
}

// toldOf reports whether a limit has been noted of something inside a content,
// whose trouble is this one's.
func (w *worker) toldOf(c *content, what string) bool {
	for _, l := range w.cuts {
		if l.what == what && strings.HasPrefix(l.path, c.path) {
			return true
		}
	}
	return false
}

// A cutNote is a bound that was met.
type cutNote struct {
	path, what string
	more       int // other members of which the same is to be told
}

// maxNotes bounds the notes of an object.
const maxNotes = 20

// note adds a note, or counts it with one that says the same.
func (w *worker) note(path, what string) {
	for i := range w.cuts {
		if w.cuts[i].what == what {
			w.cuts[i].more++
			return
		}
	}
	if len(w.cuts) == maxNotes {
		w.cuts[maxNotes-1].more++
		return
	}
	w.cuts = append(w.cuts, cutNote{path: path, what: what})
}

// limitText is the value of Summary-Limit.
func (w *worker) limitText() string { return strings.Join(w.cutLines(), "\n") }

// cutLines are its lines.
func (w *worker) cutLines() (lines []string) {
	for _, l := range w.cuts {
		line := l.what
		if l.path != "" {
			line = l.path + ": " + line
		}
		if l.more > 0 {
			line += fmt.Sprintf(" (and %d more)", l.more)
		}
		lines = append(lines, line)
	}
	return lines
}

// memory is how much all decoders of a document may hold together.
const memory = 256 << 20

// reserve takes memory for a decoder, to be given back by what it returns.
func (w *worker) reserve(n int64) (func(), error) {
	if n > memory-w.reserved {
		return nil, bomb{fmt.Sprintf("a decoder that wants %d bytes of memory", n), false}
	}
	w.reserved += n
	return func() { w.reserved -= n }, nil
}

// share takes memory for an archive: what is usual, or half of what is left.
func (w *worker) share() (int64, func()) {
	n := min(64<<20, (memory-w.reserved)/2)
	w.reserved += n
	return n, func() { w.reserved -= n }
}

// release gives back what was opened for a member.
func (w *worker) release(c *content) {
	for _, f := range w.opened[c.mark:] {
		f.Close()
	}
	w.opened = w.opened[:c.mark]
	w.held -= c.held
	c.held = 0
}
