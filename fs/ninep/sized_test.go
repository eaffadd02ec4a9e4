package ninep

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
)

// page is a Made file; its handles know how long they are, if it has Sized.
type page struct {
	text  []byte
	sized bool
	asked atomic.Int32  // ReadAts
	past  atomic.Int32  // of them at or after the end
	wait  chan struct{} // an Open waits for it, if there is one
}

func (p *page) Stat() fs.Stat { return fs.Stat{Path: 77, Vers: 1, Kind: fs.Made, Mode: 0o444} }

func (p *page) Open(ctx context.Context, _ fs.Mode) (fs.Handle, error) {
	if p.wait != nil {
		select {
		case <-p.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	h := pageHandle{fs.Snapshot(p.text), p}
	if p.sized {
		return sizedHandle{h}, nil
	}
	return h, nil
}

type pageHandle struct {
	h fs.Handle
	p *page
}

func (h pageHandle) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	h.p.asked.Add(1)
	if off >= int64(len(h.p.text)) {
		h.p.past.Add(1)
	}
	return h.h.ReadAt(ctx, b, off)
}

func (h pageHandle) WriteAt(ctx context.Context, b []byte, off int64) (int, error) {
	return h.h.WriteAt(ctx, b, off)
}
func (h pageHandle) Flush(ctx context.Context) error { return h.h.Flush(ctx) }
func (h pageHandle) Close() error                    { return h.h.Close() }

type sizedHandle struct{ pageHandle }

func (h sizedHandle) Size() int64 { return int64(len(h.p.text)) }

// TestSized: what knows how long it is, is read by one ReadAt a message, and
// nobody asks for what is past its end. Of what does not know, somebody must.
func TestSized(t *testing.T) {
	text := bytes.Repeat([]byte("a summary "), 300_000)
	for _, sized := range []bool{true, false} {
		p := &page{text: text, sized: sized}
		root := newShelf()
		root.names["page"] = p
		c := dialed(t, root, owner())
		h := open(t, c.Root(), "page", fs.Read)
		st, err := h.(*handle).Restat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := fs.Stat{Kind: fs.Made}
		if sized {
			want = fs.Stat{Kind: fs.Plain, Size: int64(len(text))}
		}
		if st.Kind != want.Kind || st.Size != want.Size {
			t.Errorf("sized %v: stat of the open file: got kind %d, size %d, want %d, %d", sized, st.Kind, st.Size, want.Kind, want.Size)
		}
		got, err := io.ReadAll(io.NewSectionReader(readerAt{h}, 0, 1<<40))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("sized %v: got %d bytes, want %d, %v", sized, len(got), len(text), err)
		}
		if past := p.past.Load(); sized == (past > 0) {
			t.Errorf("sized %v: %d reads past the end", sized, past)
		}
		p.asked.Store(0)
		buf := make([]byte, 4<<20)
		if n, err := h.ReadAt(t.Context(), buf, 0); n != len(text) || err != nil && err != io.EOF {
			t.Errorf("sized %v: got %d, %v, want %d", sized, n, err, len(text))
		}
		if asked := p.asked.Load(); sized && asked != 3 {
			t.Errorf("3 MB in messages of 1 MiB: %d ReadAts, want 3", asked)
		}
		h.Close()
	}
}

type readerAt struct{ h fs.Handle }

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.h.ReadAt(context.Background(), p, off)
	if err == nil && n < len(p) {
		m, err := r.ReadAt(p[n:], off+int64(n))
		return n + m, err
	}
	return n, err
}

// TestHandOver: while a request takes its time others on the connection are
// read and answered, whether it came alone or with more behind it, and time
// after time.
func TestHandOver(t *testing.T) {
	root := newShelf()
	slow := &page{text: []byte("x"), wait: make(chan struct{})}
	root.names["slow"] = slow
	root.file("quick", "y")
	c := dialed(t, root, owner())
	done := make(chan error)
	const times = 5
	for range times {
		go func() { // its Twalk and Topen go out together
			h, err := (&file{node{c, []string{"slow"}, slow.Stat()}}).Open(t.Context(), fs.Read)
			if err == nil {
				err = h.Close()
			}
			done <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		for range 20 {
			if b, err := readWhole(ctx, c, "quick"); b != "y" || err != nil {
				t.Fatalf("beside an Open that waits: got %q, %v", b, err)
			}
		}
		cancel()
	}
	close(slow.wait)
	for range times {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func readWhole(ctx context.Context, c *Client, path string) (string, error) {
	n, err := fs.Walk(ctx, c.Root(), path)
	if err != nil {
		return "", err
	}
	h, err := n.(fs.File).Open(ctx, fs.Read)
	if err != nil {
		return "", err
	}
	defer h.Close()
	b := make([]byte, 100)
	k, err := h.ReadAt(ctx, b, 0)
	if err == io.EOF {
		err = nil
	}
	return string(b[:k]), err
}

// TestWiden: only a unix socket with a long reply is made wide, once.
func TestWiden(t *testing.T) {
	long, short := []segment{{b: []byte("x")}, {b: make([]byte, wideFrom)}}, []segment{{b: []byte("x")}}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	o := &outbox{nc: a}
	if o.widen(long); o.wide {
		t.Error("a pipe was made wide")
	}
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	before := sendBuffer(t, u.(*net.UnixConn))
	o = &outbox{nc: u}
	if o.widen(short); o.wide || sendBuffer(t, u.(*net.UnixConn)) != before {
		t.Error("made wide for a short reply")
	}
	if o.widen(long); !o.wide || sendBuffer(t, u.(*net.UnixConn)) <= before {
		t.Errorf("send buffer: got %d, was %d", sendBuffer(t, u.(*net.UnixConn)), before)
	}
}

func sendBuffer(t *testing.T, u *net.UnixConn) (size int) {
	t.Helper()
	raw, err := u.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { size, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return size
}

// TestLate: a timer that ran out while nothing ran can be set again, and one
// that ran out too early for the request that runs is.
func TestLate(t *testing.T) {
	rd := &reader{c: &conn{srv: NewServer(discard(), Limits{})}}
	rd.timer = time.AfterFunc(time.Hour, rd.late)
	defer rd.timer.Stop()
	rd.state.Store(reading)
	rd.arm(time.Hour)
	if rd.late(); rd.armed.Load() {
		t.Error("after it ran out with nothing running: it counts as set")
	}
	rd.began.Store(int64(time.Since(rd.c.srv.started) + time.Hour)) // it has not run for long
	rd.state.Store(busy)
	if rd.late(); !rd.armed.Load() || rd.state.Load() != busy {
		t.Errorf("too early: set %v, state %d", rd.armed.Load(), rd.state.Load())
	}
	rd.state.Store(reading)
	if rd.idle(); rd.armed.Load() {
		t.Error("idle: it counts as set")
	}
}
