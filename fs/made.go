package fs

import (
	"context"
	"io"
	iofs "io/fs"
	"os"
	"sync"
	"time"
)

// spoolMemory is how much of a Made file an open handle keeps in memory; what
// is longer goes to a temporary file without a name.
const spoolMemory = 256 << 10

// Stream is a Made file of any length: each open runs produce from the start,
// once it is first read, and reads are served as the bytes come. What was
// produced can be read again at any offset until the handle is closed, which
// also ends the context that produce got. A read waits for all that it asks for,
// but not long: of what comes slowly it gives what has come. Produce runs no further ahead of
// its reader than the reader's next call asks, rounded up to spoolAhead.
func Stream(path uint64, vers uint32, produce func(ctx context.Context, w io.Writer) error) File {
	return stream{path, vers, produce}
}

// spoolAhead is how far produce may run ahead of what was asked for; readPatience
// how long a read that could be answered in part waits for the rest.
const (
	spoolAhead   = 1 << 20
	readPatience = 3 * time.Millisecond
)

type stream struct {
	path    uint64
	vers    uint32
	produce func(ctx context.Context, w io.Writer) error
}

func (s stream) Stat() Stat { return Stat{Path: s.path, Vers: s.vers, Kind: Made, Mode: 0o444} }

func (s stream) Open(_ context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		return nil, iofs.ErrPermission
	}
	sp := &spool{produce: s.produce, done: make(chan struct{}), moved: make(chan struct{}), room: make(chan struct{})}
	return sp, nil
}

// spool holds what a producer wrote so far. Its channels are closed and made
// anew to wake all who wait: moved when there is more or the end, room when
// more is wanted.
type spool struct {
	readOnly
	produce func(ctx context.Context, w io.Writer) error
	done    chan struct{} // closed when the producer has returned
	cancel  context.CancelFunc

	mu     sync.Mutex
	begun  bool
	closed bool
	mem    []byte
	file   *os.File // all of it, once there is more than spoolMemory
	size   int64
	want   int64 // end of the furthest read
	ended  bool
	err    error
	moved  chan struct{}
	room   chan struct{}
}

func (s *spool) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	n, wait, err := s.take(p, off, true)
	if wait == nil {
		return n, err
	}
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	for patient := true; wait != nil; n, wait, err = s.take(p, off, patient) {
		select {
		case <-wait:
		case <-patience.C:
			patient = false
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return n, err
}

// take reads what there is; while there is nothing, or not all and the reader is
// patient, it gives the channel that tells when to look again.
func (s *spool) take(p []byte, off int64, patient bool) (n int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun && !s.closed {
		// The producer belongs to the open file, not to the call that
		// happened to be the first to read it; Close ends it and waits.
		ctx, cancel := context.WithCancel(context.Background())
		s.begun, s.cancel = true, cancel
		go s.run(ctx)
	}
	if end := off + int64(len(p)); end > s.want {
		s.want = end
		close(s.room)
		s.room = make(chan struct{})
	}
	switch {
	case s.closed:
		return 0, nil, iofs.ErrClosed
	case off < s.size && (s.ended || !patient || s.size-off >= int64(len(p))):
		p = p[:min(int64(len(p)), s.size-off)]
		if s.file == nil {
			return copy(p, s.mem[off:]), nil, nil
		}
		n, err = s.file.ReadAt(p, off)
		return n, nil, err
	case s.ended && s.err != nil:
		return 0, nil, s.err
	case s.ended:
		return 0, nil, io.EOF
	}
	return 0, s.moved, nil
}

func (s *spool) run(ctx context.Context) {
	defer close(s.done)
	err := s.produce(ctx, spoolWriter{ctx, s})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.err = true, err
	close(s.moved)
	s.moved = make(chan struct{})
}

type spoolWriter struct {
	ctx context.Context
	s   *spool
}

func (w spoolWriter) Write(p []byte) (int, error) {
	s := w.s
	for {
		s.mu.Lock()
		room := s.room
		ok := s.size < s.want+spoolAhead
		s.mu.Unlock()
		if ok {
			break
		}
		select {
		case <-room:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.store(p); err != nil {
		return 0, err
	}
	s.size += int64(len(p))
	close(s.moved)
	s.moved = make(chan struct{})
	return len(p), nil
}

// store appends p to what is held. Called with mu held; the file is a local
// temporary one.
func (s *spool) store(p []byte) error {
	if s.file == nil && s.size+int64(len(p)) <= spoolMemory {
		s.mem = append(s.mem, p...)
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "harvest-spool-")
		if err != nil {
			return err
		}
		os.Remove(f.Name())
		if _, err := f.WriteAt(s.mem, 0); err != nil {
			f.Close()
			return err
		}
		s.file, s.mem = f, nil
	}
	_, err := s.file.WriteAt(p, s.size)
	return err
}

func (s *spool) Close() error {
	s.mu.Lock()
	s.closed = true
	begun := s.begun
	s.mu.Unlock()
	if begun {
		s.cancel()
		<-s.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mem = nil
	if s.file != nil {
		return s.file.Close()
	}
	return nil
}
