package fs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"sync"
	"time"
)

// Log is a growing text, one record a line, of which the newest part is kept.
// When it is longer than its bound the older half goes, at a line: to a
// reader by offset that is a truncation, as of any log that is rotated.
type Log struct {
	max int

	mu      sync.Mutex
	buf     []byte
	base    int64         // offset in all that was ever written where buf begins
	records int64         // ever written
	dropped int64         // records before buf
	mtime   time.Time     // of the newest record
	changed chan struct{} // closed at the next record
}

// NewLog makes a Log that keeps at most max bytes, and at least one record.
func NewLog(max int) *Log { return &Log{max: max, changed: make(chan struct{})} }

// Add appends a record. It never waits for a reader.
func (l *Log) Add(record string) {
	record = strings.ReplaceAll(strings.TrimRight(record, "\n"), "\n", " ") + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, record...)
	l.records++
	l.mtime = time.Now()
	if len(l.buf) > l.max {
		cut := len(l.buf) - l.max/2
		last := len(l.buf) - len(record)
		if i := bytes.IndexByte(l.buf[cut:], '\n'); i < 0 || cut+i+1 > last {
			cut = last
		} else {
			cut += i + 1
		}
		l.dropped += int64(bytes.Count(l.buf[:cut], []byte("\n")))
		l.base += int64(cut)
		l.buf = append(make([]byte, 0, l.max/2+len(record)), l.buf[cut:]...)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Write adds the lines of p, so that a Log can stand behind a log handler.
func (l *Log) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		l.Add(line)
	}
	return len(p), nil
}

// File is the log as a Growing file.
func (l *Log) File(path uint64) File { return logFile{l, path} }

// Live is the log as a Live file: it begins with the next record, gives one
// a read, and tells a reader that fell behind how many it lost.
func (l *Log) Live(path uint64) File { return liveFile{l, path} }

// Wait is the log as a file that, when read, waits for a record newer than
// its opening, gives those there are, and ends.
func (l *Log) Wait(path uint64) File { return waitFile{l, path} }

// Nodes puts the log into a directory under a name: the file itself and,
// unlisted, name.live and name.wait.
func (l *Log) Nodes(dir map[string]Node, name string, id func(parts ...string) uint64) {
	dir[name] = l.File(id(name))
	dir[name+".live"] = Hidden(l.Live(id(name, "live")))
	dir[name+".wait"] = Hidden(l.Wait(id(name, "wait")))
}

func (l *Log) end() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base + int64(len(l.buf))
}

type readOnly struct{}

func (readOnly) WriteAt(context.Context, []byte, int64) (int, error) { return 0, iofs.ErrPermission }
func (readOnly) Flush(context.Context) error                         { return nil }
func (readOnly) Close() error                                        { return nil }

type logFile struct {
	l    *Log
	path uint64
}

func (f logFile) Stat() Stat {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	return Stat{Path: f.path, Vers: uint32(f.l.records), Kind: Growing, Mode: 0o444, Size: int64(len(f.l.buf)), Mtime: f.l.mtime}
}

func (f logFile) Open(_ context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		return nil, iofs.ErrPermission
	}
	return logHandle{l: f.l}, nil
}

// logHandle reads by offset in what is kept now, as Stat's size counts.
type logHandle struct {
	readOnly
	l *Log
}

func (h logHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if off >= int64(len(h.l.buf)) {
		return 0, io.EOF
	}
	return copy(p, h.l.buf[off:]), nil
}

type liveFile logFile

func (f liveFile) Stat() Stat { return Stat{Path: f.path, Kind: Live, Mode: 0o444} }

func (f liveFile) Open(_ context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		return nil, iofs.ErrPermission
	}
	return f.l.follow(), nil
}

// follower is a position in a Log. Reads of one handle take turns; whose
// turn it is holds sem, not mu, so that waiting ends with its context.
type follower struct {
	readOnly
	l    *Log
	sem  chan struct{}
	off  int64  // of the next record, in all that was ever written
	seen int64  // its number
	rest []byte // of a record that the last read had no room for
}

func (l *Log) follow() *follower {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &follower{l: l, sem: make(chan struct{}, 1), off: l.base + int64(len(l.buf)), seen: l.records}
}

func (f *follower) ReadAt(ctx context.Context, p []byte, _ int64) (int, error) {
	select {
	case f.sem <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-f.sem }()
	if len(p) == 0 {
		return 0, nil
	}
	for len(f.rest) == 0 {
		wait := f.next()
		if wait == nil {
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next takes the next record into rest; if there is none yet it gives the
// channel that tells when there is.
func (f *follower) next() <-chan struct{} {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.off < l.base {
		f.rest = fmt.Appendf(nil, "lost %d\n", l.dropped-f.seen)
		f.off, f.seen = l.base, l.dropped
		return nil
	}
	b := l.buf[f.off-l.base:]
	if len(b) == 0 {
		return l.changed
	}
	n := bytes.IndexByte(b, '\n') + 1
	f.rest = bytes.Clone(b[:n])
	f.off += int64(n)
	f.seen++
	return nil
}

type waitFile logFile

func (f waitFile) Stat() Stat { return Stat{Path: f.path, Kind: Live, Mode: 0o444} }

func (f waitFile) Open(_ context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		return nil, iofs.ErrPermission
	}
	return &waiter{l: f.l, from: f.l.end()}, nil
}

// waiter is fixed by the first read that finds a record.
type waiter struct {
	readOnly
	l *Log

	mu   sync.Mutex
	from int64
	text []byte
}

func (w *waiter) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	for {
		wait := w.fix()
		if wait == nil {
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if off >= int64(len(w.text)) {
		return 0, io.EOF
	}
	return copy(p, w.text[off:]), nil
}

func (w *waiter) fix() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text != nil {
		return nil
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	b := w.l.buf[max(w.from-w.l.base, 0):]
	if len(b) == 0 {
		return w.l.changed
	}
	w.text = bytes.Clone(b)
	return nil
}
