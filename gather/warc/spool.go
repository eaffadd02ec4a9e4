package warc

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// A spool keeps a body whose length is not known until it has ended: a little of
// it in memory, more in a file without a name.
type spool struct {
	size int64
	mem  []byte
	f    *os.File
	err  error // what could not be kept
}

const spoolMemory = 256 << 10

// write adds to the spool. After trouble nothing is kept any more.
func (s *spool) write(dir string, p []byte) {
	if s.err != nil {
		return
	}
	if s.f == nil && len(s.mem)+len(p) > spoolMemory {
		if s.f, s.err = os.CreateTemp(dir, ".body-"); s.err != nil {
			return
		}
		if s.err = os.Remove(s.f.Name()); s.err == nil {
			_, s.err = s.f.Write(s.mem)
		}
		s.mem = nil
	}
	switch {
	case s.err != nil:
		return
	case s.f == nil:
		s.mem = append(s.mem, p...)
	default:
		_, s.err = s.f.Write(p)
	}
	if s.size += int64(len(p)); s.err != nil {
		s.err = fmt.Errorf("body: %w", s.err)
	}
}

// reader reads all of it.
func (s *spool) reader() io.Reader {
	if s.f != nil {
		return io.NewSectionReader(s.f, 0, s.size)
	}
	return bytes.NewReader(s.mem)
}

func (s *spool) close() {
	if s.f != nil {
		s.f.Close() // nothing of it is to stay
	}
}
