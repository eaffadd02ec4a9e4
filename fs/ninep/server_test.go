package ninep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
)

// TestTimes: who does not finish what was begun is hung up on.
func TestTimes(t *testing.T) {
	for name, c := range map[string]struct {
		lim  Limits
		said []string
		more []byte
	}{
		"nothing said":   {lim: Limits{Handshake: time.Millisecond}},
		"no attach":      {lim: Limits{Handshake: time.Millisecond}, said: []string{"Tversion ~ 8192 9P2000"}},
		"half a size":    {lim: Limits{Frame: time.Millisecond}, said: []string{"Tversion ~ 8192 9P2000", "Tattach 1 0 ~ x ''"}, more: []byte{7}},
		"half a message": {lim: Limits{Frame: time.Millisecond}, said: []string{"Tversion ~ 8192 9P2000", "Tattach 1 0 ~ x ''"}, more: []byte{19, 0, 0, 0, 110, 0, 0, 1}},
		"half the data":  {lim: Limits{Frame: time.Millisecond}, said: []string{"Tversion ~ 8192 9P2000", "Tattach 1 0 ~ x ''"}, more: []byte{30, 0, 0, 0, 118, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serving(t, NewServer(discard(), c.lim), "tcp!127.0.0.1!0", ListenOptions{}, newShelf())
			r := roughly(t, addr).say(c.said...)
			r.b.Write(c.more)
			r.send()
			if _, err := io.Copy(io.Discard, r.nc); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want the end", err)
			}
		})
	}
	// An idle client that has attached stays.
	addr := serving(t, NewServer(discard(), Limits{Handshake: 50 * time.Millisecond, Frame: time.Millisecond}), "tcp!127.0.0.1!0", ListenOptions{}, newShelf())
	r := roughly(t, addr).attach(8192)
	r.nc.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := r.nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("idle: got %v, want nothing to happen", err)
	}
}

// slowDir looks up at leisure.
type slowDir struct {
	*shelf
	begun chan string
	go_   chan struct{}
}

func (d slowDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if strings.HasPrefix(name, "slow") {
		d.begun <- name
		select {
		case <-d.go_:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		name = "f"
	}
	return d.shelf.Lookup(ctx, name)
}

// TestSlow: a look-up that takes long, and came alone, keeps no other request
// waiting, nor its own flush.
func TestSlow(t *testing.T) {
	root := slowDir{newShelf(), make(chan string, 10), make(chan struct{})}
	root.file("f", "text")
	r := &rough{t: t, nc: serve(t, NewServer(discard(), Limits{}), root, owner())}
	r.br = bufio.NewReader(r.nc)
	r.say("Tversion ~ 8192 9P2000").send().hear(1)
	r.say("Tattach 1 0 ~ x ''").send().hear(1)
	r.say("Twalk 5 0 1 slow1").send()
	<-root.begun
	r.say("Twalk 6 0 2 slow2").send()
	<-root.begun
	r.say("Twalk 7 0 3 f").send()
	for _, want := range []string{"Rwalk 7 *", "Rflush 8", "Rwalk 6 *"} {
		if want == "Rflush 8" {
			r.say("Tflush 8 5").send()
		}
		if want == "Rwalk 6 *" {
			close(root.go_)
		}
		f, err := readFrame(r.br)
		if err != nil {
			t.Fatal(err)
		}
		if got := render(f); !alike(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	// The flushed walk has made no fid.
	r.say("Tstat 9 1").send()
	if got := r.hear(1); got[107] != 1 {
		t.Errorf("fid of a flushed walk: got %v", got)
	}
}

// TestShutdown: when the server is told to end it lets a request finish, and
// has closed everything when it returns. Who waits for an event hears that
// the connection is lost, not that something interrupted the read.
func TestShutdown(t *testing.T) {
	root := theTree()
	slow := slowDir{root, make(chan string, 10), make(chan struct{})}
	v := NewServer(discard(), Limits{})
	l, err := Listen(t.Context(), "tcp!127.0.0.1!0", ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- v.Serve(ctx, l, slow) }()
	c := dial(t, l.String(), DialOptions{})
	h := open(t, c.Root(), "events", fs.Read)
	waits, walks := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := h.ReadAt(t.Context(), make([]byte, 10), 0)
		waits <- err
	}()
	go func() {
		_, err := c.Root().Lookup(t.Context(), "slow")
		walks <- err
	}()
	<-root.bus.entered
	<-slow.begun
	stop()
	close(slow.go_)
	if err := <-walks; err != nil {
		t.Errorf("look-up under way: got %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-waits; err == nil || !strings.Contains(err.Error(), "connection lost: ") || !errors.Is(err, syscall.EIO) {
		t.Errorf("read of events: got %v, want a lost connection, of class EIO", err)
	}
	if root.bus.opens != 1 || root.bus.closes != 1 {
		t.Errorf("%d handles opened, %d closed", root.bus.opens, root.bus.closes)
	}
	if n := v.stats.conns.Load() + v.stats.fids.Load(); n != 0 {
		t.Errorf("%d connections and fids left", n)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// TestListing reads a directory at every offset that may be asked for.
func TestListing(t *testing.T) {
	root := newShelf()
	for i := range 30 {
		root.file(fmt.Sprintf("%02d", i), "")
	}
	v := NewServer(discard(), Limits{})
	s := service{v, root, owner(), context.Background(), MaxMsize}.session()
	s.msize = 8192
	l := &listing{dir: root}
	ctx := t.Context()
	read := func(off uint64, count int) (string, uint64, error) {
		p := make([]byte, count)
		n, err := l.read(ctx, s, off, p)
		var names []string
		for b := p[:n]; len(b) > 0; {
			st, rest, err := parseStat(b)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, st.Name)
			b = rest
		}
		return strings.Join(names, " "), off + uint64(n), err
	}
	st := v.stat("00", root.names["00"])
	one := statLen(&st)
	want := func(off uint64, count int, names string) uint64 {
		t.Helper()
		got, next, err := read(off, count)
		if got != names || err != nil {
			t.Fatalf("at %d: got %q, %v, want %q", off, got, err, names)
		}
		return next
	}
	a := want(0, 2*one+5, "00 01")
	b := want(a, one, "02")
	// What another does not fit into gets nothing, and is no error.
	want(b, one-1, "")
	want(b, 0, "")
	c := want(b, 3*one, "03 04 05")
	// Back to where reads ended, though the directory has changed.
	delete(root.names, "02")
	root.file("025", "")
	want(a, 2*one+1, "025 03")
	want(a, one+1, "025")
	want(0, one, "00")
	if _, _, err := read(c+1, one); !errors.Is(err, syscall.ESPIPE) {
		t.Errorf("in the middle of an entry: got %v, want %v", err, syscall.ESPIPE)
	}
	// One that is pending and goes away is seen once more, and others once.
	off := want(0, 27*one, strings.Join(strings.Split("00 01 025 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25", " "), " "))
	delete(root.names, "27")
	off = want(off, 8000, "26 28 29")
	if got, _, err := read(off, 8000); got != "" || err != nil {
		t.Errorf("at the end: got %q, %v", got, err)
	}
}

// TestCheck: a frame that is a byte shorter or longer than its fields is none,
// nor one with a length in it that is another.
func TestCheck(t *testing.T) {
	for _, line := range []string{
		"Tversion 1 8192 9P2000", "Tauth 1 2 u a", "Tattach 1 0 ~ u a", "Tflush 1 2", "Twalk 1 0 1", "Twalk 1 0 1 a b",
		"Topen 1 0 0", "Tcreate 1 0 n 0644 0", "Tread 1 0 0 0", "Twrite 1 0 0 ''", "Twrite 1 0 0 data", "Tclunk 1 0",
		"Tremove 1 0", "Tstat 1 0", "Twstat 1 0", "Twstat 1 0 name=n uid=u", "Rerror 1 text",
	} {
		f, err := compose(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(f); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for n := range len(f) {
			cut := append([]byte{}, f[:n]...)
			if n >= 4 {
				le.PutUint32(cut, uint32(n))
			}
			if check(cut) == nil {
				t.Errorf("%s: %d of its %d bytes pass", line, n, len(f))
			}
		}
		long := append(append([]byte{}, f...), 0)
		if check(long) == nil {
			t.Errorf("%s: passes with a byte that is not of it", line)
		}
		le.PutUint32(long, uint32(len(long)))
		if check(long) == nil {
			t.Errorf("%s: passes with a byte more", line)
		}
	}
	for kind := range 256 {
		want := kind >= 100 && kind < 128 && kind != 106
		if got := shapeOf(byte(kind)) != ""; got != want {
			t.Errorf("type %d: got %v, want %v", kind, got, want)
		}
	}
	// Lengths within that claim more or less than there is.
	for line, at := range map[string]int{"Tversion 1 8192 9P2000": 11, "Twalk 1 0 1 a b": 15, "Twrite 1 0 0 data": 19, "Twstat 1 0 name=n": 11, "Tcreate 1 0 n 0644 0": 11} {
		for _, add := range []int{-1, 1, 100} {
			f, err := compose(line)
			if err != nil {
				t.Fatal(err)
			}
			le.PutUint16(f[at:], uint16(int(le.Uint16(f[at:]))+add))
			if check(f) == nil {
				t.Errorf("%s: passes with a length that is %+d", line, add)
			}
		}
	}
}

func shapeOf(kind byte) string {
	if kind < 100 || int(kind-100) >= len(shapes) {
		return ""
	}
	return shapes[kind-100]
}

// TestErrors: each class arrives as itself, in words that v9fs knows.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		text  string
		class error
	}{
		{iofs.ErrNotExist, "No such file or directory", iofs.ErrNotExist},
		{iofs.ErrPermission, "Permission denied", iofs.ErrPermission},
		{syscall.EPERM, "Operation not permitted", iofs.ErrPermission},
		{iofs.ErrExist, "File exists", iofs.ErrExist},
		{syscall.ENOTDIR, "Not a directory", syscall.ENOTDIR},
		{syscall.EISDIR, "Is a directory", syscall.EISDIR},
		{syscall.ENOTEMPTY, "Directory not empty", syscall.ENOTEMPTY},
		{iofs.ErrInvalid, "Invalid argument", iofs.ErrInvalid},
		{syscall.ENAMETOOLONG, "File name too long", syscall.ENAMETOOLONG},
		{syscall.EFBIG, "File too large", syscall.EFBIG},
		{syscall.ENOSPC, "No space left on device", syscall.ENOSPC},
		{syscall.EROFS, "Read-only file system", syscall.EROFS},
		{syscall.EBUSY, "Device or resource busy", syscall.EBUSY},
		{syscall.EAGAIN, "Resource temporarily unavailable", syscall.EAGAIN},
		{context.Canceled, "Interrupted system call", syscall.EINTR},
		{errors.New("whatever"), "Input/output error", syscall.EIO},
		{context.DeadlineExceeded, "Connection timed out", syscall.ETIMEDOUT},
		{errFid, "fid unknown or out of range", syscall.EBADF},
		{errFidUse, "fid already in use", syscall.EBADF},
		{errBadUse, "bad use of fid", syscall.EBADF},
		{syscall.ESPIPE, "bad offset in directory read", syscall.ESPIPE},
	} {
		for _, err := range []error{c.err, fmt.Errorf("thing 5: %w", c.err)} {
			got := ename(err)
			if got != c.text {
				t.Errorf("%v: got %q, want %q", err, got, c.text)
			}
			if back := fromText(got); !errors.Is(back, c.class) || back.Error() != c.text {
				t.Errorf("%q: got class %v, want %v", got, fs.Errno(back), c.class)
			}
		}
	}
	for text, class := range map[string]error{
		"file not found":                        iofs.ErrNotExist,
		"object 4f2a: file does not exist":      iofs.ErrNotExist,
		"x: permission denied":                  iofs.ErrPermission,
		"unknown control message: file":         iofs.ErrInvalid,
		"line 3: usage: fetch URL...":           iofs.ErrInvalid,
		"something: else: directory not empty":  syscall.ENOTEMPTY,
		"":                                      iofs.ErrInvalid,
		"unknown control message: No such file": iofs.ErrInvalid,
	} {
		if err := fromText(text); !errors.Is(err, class) || err.Error() != text {
			t.Errorf("%q: got class %v, want %v", text, fs.Errno(err), class)
		}
	}
}

// TestLimits: what is too much is refused, and counted.
func TestLimits(t *testing.T) {
	v := NewServer(discard(), Limits{Conns: 3, HalfOpen: 2, Fids: 2})
	addr := serving(t, v, "tcp!127.0.0.1!0", ListenOptions{}, theTree())
	silent := roughly(t, addr)
	first := roughly(t, addr).attach(8192)
	// Half of two are taken; the third makes the oldest go.
	roughly(t, addr)
	roughly(t, addr).attach(8192)
	silent.nc.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := silent.nc.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest without attach: got %v, want the end", err)
	}
	first.say("Twalk 2 0 1", "Twalk 3 0 2").send()
	f, err := readFrame(first.br)
	if err != nil || render(f) != "Rwalk 2" {
		t.Errorf("second fid: got %s, %v", render(f), err)
	}
	f, err = readFrame(first.br)
	if err != nil || render(f) != "Rerror 3 'Too many open files'" {
		t.Errorf("third fid: got %s, %v", render(f), err)
	}
	stats := v.Stats()
	for _, want := range []string{
		"harvest_9p_evicted_total 1\n", "harvest_9p_fids 3\n", "harvest_9p_errors_total 1\n",
		"harvest_9p_requests_total{type=\"walk\"} 2\n", "# TYPE harvest_9p_connections gauge\n",
	} {
		if !strings.Contains(stats, want) {
			t.Errorf("stats: no %q in\n%s", want, stats)
		}
	}
}

// TestVanished: what a client has open when its connection ends without a
// clunk is aborted and closed, and not flushed; so a config that it has
// truncated stays what it was.
func TestVanished(t *testing.T) {
	root := newShelf()
	root.file("f", "old")
	config := "limit=1\n"
	root.names["config"] = fs.Config(2, nil, func() string { return config },
		func(_ context.Context, text string) error { config = text; return nil })
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- NewServer(discard(), Limits{}).ServeConn(context.WithoutCancel(t.Context()), a, root, owner())
	}()
	c, err := NewClient(t.Context(), b, "pipe", DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stays, goes := open(t, c.Root(), "f", fs.Write), open(t, c.Root(), "f", fs.Write)
	open(t, c.Root(), "config", fs.Write|fs.Trunc)
	if _, err := stays.WriteAt(t.Context(), []byte("half"), 0); err != nil {
		t.Fatal(err)
	}
	if err := goes.Close(); err != nil {
		t.Fatal(err)
	}
	flushes := root.bus.flushes
	b.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if s := root.bus; s.aborts != 1 || s.closes != 2 || s.flushes != flushes || s.closedTwice {
		t.Errorf("%d aborted, %d closed, %d flushed by the loss; want 1, 2, 0", s.aborts, s.closes, s.flushes-flushes)
	}
	if config != "limit=1\n" {
		t.Errorf("config: got %q, want what it was", config)
	}
}
