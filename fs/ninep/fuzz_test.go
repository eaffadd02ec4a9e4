package ninep

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harvest/fs"
)

// seeds are the T-messages of the transcripts, by transcript.
func seeds(f *testing.F) [][]byte {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	var all [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var b []byte
		for line := range strings.Lines(string(text)) {
			if line[0] == 'T' {
				m, err := compose(strings.TrimSuffix(line, "\n"))
				if err != nil {
					f.Fatal(err)
				}
				b = append(b, m...)
			}
		}
		all = append(all, b)
	}
	return all
}

// FuzzFrame: what the frame check lets pass, go9p's codec decodes, and
// encodes to the same bytes.
func FuzzFrame(f *testing.F) {
	for _, b := range seeds(f) {
		for len(b) >= 7 {
			n := le.Uint32(b)
			f.Add(b[:n])
			b = b[n:]
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > maxCodec {
			return
		}
		m, err := decode(b)
		if err != nil {
			if check(b) == nil {
				t.Errorf("passed the check and not the codec: %v", err)
			}
			if !errors.Is(err, errFrame) {
				t.Errorf("error: got %v", err)
			}
			return
		}
		if got := m.Compose(); !bytes.Equal(got, b) {
			t.Errorf("encoded again:\n%x\n%x", b, got)
		}
	})
}

// FuzzStat: a stat that can be read is written the same.
func FuzzStat(f *testing.F) {
	st := untouched()
	st.Name = "name"
	f.Add(appendStat(nil, &st))
	f.Fuzz(func(t *testing.T, b []byte) {
		st, rest, err := parseStat(b)
		if err != nil {
			return
		}
		if got := appendStat(nil, &st); !bytes.Equal(got, b[:len(b)-len(rest)]) {
			t.Errorf("written again:\n%x\n%x", b, got)
		}
	})
}

// FuzzConn: whatever a client says, the server answers with whole messages
// and, when the client leaves, with nothing left open.
func FuzzConn(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		root := theTree()
		close(root.bus.slow) // nothing waits
		v := NewServer(discard(), Limits{})
		a, nc := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- v.ServeConn(t.Context(), a, root, owner()) }()
		read := make(chan error, 1)
		go func() {
			for {
				if _, err := readFrame(nc); err != nil {
					read <- err
					return
				}
			}
		}()
		nc.SetWriteDeadline(time.Now().Add(5 * time.Second))
		if _, err := nc.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the server stands still")
		}
		nc.Close()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Fatal("the server does not end")
		}
		if err := <-read; err != io.EOF && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a reply: %v", err)
		}
		if s := root.bus; s.opens != s.closes || s.closedTwice {
			t.Errorf("%d handles opened, %d closed, one of them twice: %v", s.opens, s.closes, s.closedTwice)
		}
		if n := v.stats.fids.Load(); n != 0 {
			t.Errorf("%d fids left", n)
		}
	})
}

// FuzzClient: whatever a server answers, the client does not panic, and its
// calls end.
func FuzzClient(f *testing.F) {
	ok := frame(101, noTag, uint32(8192), "9P2000")
	ok = append(ok, frame(105, 1, byte(0x80), uint32(0), uint64(1))...)
	st := untouched()
	st.Mode, st.Type, st.Name = 1<<31|0o755, kindMark, "/"
	f.Add(append(ok, frame(125, 2, string(appendStat(nil, &st)))...))
	f.Add(append(ok, frame(107, 2, "no")...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 117, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, nc := net.Pipe()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			go io.Copy(io.Discard, a)
			a.Write(b)
			a.Close()
		}()
		c, err := NewClient(t.Context(), nc, "fuzz", DialOptions{})
		if err == nil {
			c.Root().Lookup(t.Context(), "x")
			for range c.Root().List(t.Context(), "") {
			}
			c.Root().(fs.Remover).Remove(t.Context(), "y")
			c.Close()
		}
		<-gone
	})
}
