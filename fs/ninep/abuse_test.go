package ninep

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

const (
	childEnv = "HARVEST_NINEP_SERVE" // where to listen
	childDir = "HARVEST_NINEP_DIR"   // what to serve as disk
)

// zeros is a file of 1 GB that takes no memory.
type zeros struct{}

const zerosSize = 1 << 30

func (zeros) Stat() fs.Stat {
	return fs.Stat{Path: fs.ID("zeros"), Vers: 1, Mode: 0o444, Size: zerosSize}
}
func (z zeros) Open(context.Context, fs.Mode) (fs.Handle, error) { return z, nil }
func (zeros) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	n := int(max(0, min(int64(len(p)), zerosSize-off)))
	clear(p[:n])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
func (zeros) WriteAt(context.Context, []byte, int64) (int, error) { return 0, iofs.ErrPermission }
func (zeros) Flush(context.Context) error                         { return nil }
func (zeros) Close() error                                        { return nil }

// TestServeChild is the server of the tests that measure or hurt one: with
// its variable set it serves until its standard input ends.
func TestServeChild(t *testing.T) {
	addr := os.Getenv(childEnv)
	if addr == "" {
		t.Skip("runs as a child of other tests")
	}
	root := theTree()
	root.names["big"] = zeros{}
	root.names["million"] = numbers(1e6)
	root.names["hundred"] = numbers(1e5)
	if dir := os.Getenv(childDir); dir != "" {
		n, err := realNode(dir)
		if err != nil {
			t.Fatal(err)
		}
		root.names["disk"] = n
	}
	l, err := Listen(t.Context(), addr, ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("at %s\n", l)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	v := NewServer(discard(), Limits{})
	if err := v.Serve(ctx, l, root); err != nil {
		t.Error(err)
	}
	if b := root.bus; b.opens != b.closes || b.closedTwice {
		t.Errorf("%d handles opened, %d closed, one of them twice: %v", b.opens, b.closes, b.closedTwice)
	}
	if n := v.stats.conns.Load() + v.stats.fids.Load(); n != 0 {
		t.Errorf("%d connections and fids left", n)
	}
	fmt.Print(v.Stats())
}

// child starts a server in a process of its own, and gives its address and
// process. At the end it has to shut down with nothing left open.
func child(tb testing.TB, addr string) (string, int) {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServeChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	r := bufio.NewScanner(out)
	at := ""
	for at == "" && r.Scan() {
		at, _ = strings.CutPrefix(r.Text(), "at ")
		if !strings.HasPrefix(r.Text(), "at ") {
			at = ""
		}
	}
	if at == "" {
		tb.Fatalf("the child did not begin: %v", cmd.Wait())
	}
	tb.Cleanup(func() {
		in.Close()
		var rest strings.Builder
		for r.Scan() {
			fmt.Fprintln(&rest, r.Text())
		}
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the child: %v\n%s", err, &rest)
		}
	})
	return at, cmd.Process.Pid
}

// peak is the most memory that the process ever held, in bytes.
func peak(tb testing.TB, pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	tb.Fatal("no VmHWM")
	return 0
}

// A rough client sends what it likes.
type rough struct {
	t  *testing.T
	nc net.Conn
	br *bufio.Reader
	b  bytes.Buffer
}

func roughly(t *testing.T, addr string) *rough {
	t.Helper()
	network, target, err := parseAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial(network, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(60 * time.Second))
	return &rough{t: t, nc: nc, br: bufio.NewReader(nc)}
}

// say queues lines of a transcript.
func (r *rough) say(lines ...string) *rough {
	r.t.Helper()
	for _, line := range lines {
		f, err := compose(line)
		if err != nil {
			r.t.Fatal(err)
		}
		r.b.Write(f)
	}
	return r
}

func (r *rough) sayf(format string, arg ...any) *rough { return r.say(fmt.Sprintf(format, arg...)) }

// send sends what was said, and does not care what becomes of it.
func (r *rough) send() *rough {
	r.nc.Write(r.b.Bytes())
	r.b.Reset()
	return r
}

// hear reads n replies and counts them by type.
func (r *rough) hear(n int) map[byte]int {
	r.t.Helper()
	got := make(map[byte]int)
	for range n {
		f, err := readFrame(r.br)
		if err != nil {
			r.t.Errorf("after %v of %d replies: %v", got, n, err)
			return got
		}
		got[f[4]]++
	}
	return got
}

func (r *rough) attach(msize int) *rough {
	r.t.Helper()
	r.sayf("Tversion ~ %d 9P2000", msize).say("Tattach 1 0 ~ x ''").send()
	r.hear(2)
	return r
}

// TestAbuse has clients do all the harm they can, and meanwhile another one
// wants to be served.
func TestAbuse(t *testing.T) {
	many := 10000
	if raceOn {
		many = 2000
		t.Log("the race detector is on: 2,000 requests at a time, not 10,000")
	}
	addr, pid := child(t, "tcp!127.0.0.1!0")
	ctx := t.Context()
	good, err := Dial(ctx, addr, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	var worst atomic.Int64
	var served atomic.Int64
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		fsys := iofs.FS(fs.IO(ctx, good.Root()))
		for {
			select {
			case <-ended:
				return
			default:
			}
			begun := time.Now()
			b, err := iofs.ReadFile(fsys, "a/b/c")
			if err != nil || string(b) != "text of c\n" {
				t.Errorf("the good client: %q, %v", b, err)
				return
			}
			// One that comes anew gets in as well.
			if served.Add(1)%20 == 0 {
				c, err := Dial(ctx, addr, DialOptions{})
				for tries := 1; err != nil && tries < 5; tries++ { // the door may be full of those of the abuse for a moment
					c, err = Dial(ctx, addr, DialOptions{})
				}
				if err != nil {
					t.Errorf("another good client: %v", err)
					return
				}
				c.Close()
			}
			worst.Store(max(worst.Load(), int64(time.Since(begun))))
		}
	})

	cases := []struct {
		name string
		do   func(t *testing.T)
	}{
		{"sizes", func(t *testing.T) {
			for _, size := range []uint32{0, 1, 3, 4, 6, 8193, 65536, 1 << 20, 1<<20 + 1, 0x7fffffff, 0x80000000, 0xffffffff} {
				for range 20 {
					r := roughly(t, addr)
					r.sayf("Tversion ~ 8192 9P2000")
					r.b.Write(le.AppendUint32(nil, size))
					r.b.Write(make([]byte, 100))
					r.send()
				}
			}
		}},
		{"cut", func(t *testing.T) {
			for kind := 98; kind < 130; kind++ {
				for n := range 40 {
					r := roughly(t, addr)
					r.say("Tversion ~ 8192 9P2000", "Tattach 1 0 ~ x ''")
					r.b.Write(appendHeader(nil, 7+n, byte(kind), 5))
					r.b.Write(bytes.Repeat([]byte{0xff}, n))
					r.send().nc.Close()
				}
			}
		}},
		{"pipelined stats", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			for i := range many {
				r.sayf("Tstat %d 0", i)
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many); got[proto.Rstat] != many {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"pipelined walks and clunks", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			for i := range many / 2 {
				r.sayf("Twalk %d 0 %d a b c", 2*i, i+1).sayf("Tclunk %d %d", 2*i+1, i+1)
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many); got[proto.Rwalk] != many/2 || got[proto.Rclunk] != many/2 {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"nobody reads the stats", func(t *testing.T) {
			for range 20 {
				r := roughly(t, addr).attach(8192)
				for i := range many {
					r.sayf("Tstat %d 0", i)
				}
				r.nc.SetWriteDeadline(time.Now().Add(time.Second))
				r.send()
			}
		}},
		{"nobody reads the data", func(t *testing.T) {
			for range 20 {
				r := roughly(t, addr).attach(1 << 20)
				r.say("Twalk 2 0 1 big", "Topen 3 1 0").send()
				r.hear(2)
				for i := range many {
					r.sayf("Tread %d 1 %d 0x100000", i, i<<10)
				}
				r.nc.SetWriteDeadline(time.Now().Add(time.Second))
				r.send()
			}
		}},
		{"data that is slow to come", func(t *testing.T) {
			for range 40 {
				r := roughly(t, addr).attach(1 << 20)
				r.say("Twalk 2 0 1 f", "Topen 3 1 1").send()
				r.hear(2)
				f := appendHeader(nil, 1<<20, proto.Twrite, 5)
				f = le.AppendUint32(f, 1)
				f = le.AppendUint64(f, 0)
				r.b.Write(le.AppendUint32(f, 1<<20-putHeader))
				r.send()
			}
		}},
		{"writes that wait", func(t *testing.T) {
			var wg sync.WaitGroup
			for range 10 {
				r := roughly(t, addr).attach(1 << 20)
				r.say("Twalk 2 0 1 events", "Topen 3 1 2").send().hear(2)
				// The second open waits for the read, which waits for ever,
				// and the writes for the open.
				r.say("Tread 4 1 0 100", "Topen 5 1 2").send()
				f := appendHeader(nil, 1<<20, proto.Twrite, 5)
				f = le.AppendUint32(f, 1)
				f = le.AppendUint64(f, 0)
				f = append(le.AppendUint32(f, 1<<20-putHeader), make([]byte, 1<<20-putHeader)...)
				wg.Go(func() {
					r.nc.SetWriteDeadline(time.Now().Add(time.Second))
					for i := range 100 {
						le.PutUint16(f[5:], uint16(10+i))
						if _, err := r.nc.Write(f); err != nil {
							return // it reads no more
						}
					}
					t.Error("the server has taken 100 MB")
				})
			}
			wg.Wait()
		}},
		{"blocked reads", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			for i := range 100 {
				r.sayf("Twalk 2 0 %d events", i+1).sayf("Topen 3 %d 0", i+1).send()
				if got := r.hear(1); got[proto.Rwalk] != 1 {
					t.Fatal(got)
				}
				if got := r.hear(1); got[proto.Ropen] != 1 {
					t.Fatal(got)
				}
			}
			for i := range many {
				r.sayf("Tread %d %d 0 0xffffffff", i, i%100+1)
			}
			for i := range many {
				r.sayf("Tflush %d %d", many+i, i)
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			// Above 256 they are refused; the rest is flushed.
			got := r.hear(many + many - 256)
			if got[proto.Rflush] != many || got[proto.Rerror] != many-256 {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"flush storm", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			r.say("Twalk 2 0 1 events", "Topen 3 1 0").send()
			r.hear(2)
			for range many {
				r.say("Tread 5 1 0 100", "Tflush 6 5")
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many); got[proto.Rflush]+got[proto.Rerror] != many {
				t.Errorf("replies: got %v", got)
			}
			r.nc.Close()
			<-wg
		}},
		{"flushes of flushes", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			r.say("Twalk 2 0 1 events", "Topen 3 1 0").send()
			r.hear(2)
			r.say("Tread 5 1 0 100")
			for i := range many {
				r.sayf("Tflush %d %d", 6+i, 5+i)
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many); got[proto.Rflush] != many {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"one tag", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			r.say("Twalk 2 0 1 events", "Topen 3 1 0").send()
			r.hear(2)
			for range many {
				r.say("Tread 5 1 0 100")
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many - 1); got[proto.Rerror] != many-1 {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"reused fids", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			for i := range many / 10 {
				r.sayf("Twalk %d 0 1 a b", 10*i).sayf("Twalk %d 0 1 f", 10*i+1).sayf("Topen %d 1 0", 10*i+2).
					sayf("Topen %d 1 2", 10*i+3).sayf("Twalk %d 1 0", 10*i+4).sayf("Tattach %d 1 ~ x ''", 10*i+5).
					sayf("Tclunk %d 1", 10*i+6).sayf("Tclunk %d 1", 10*i+7).sayf("Tread %d 1 0 10", 10*i+8).sayf("Tstat %d 1", 10*i+9)
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many); got[proto.Rwalk] != many/10 || got[proto.Rclunk] != many/10 || got[proto.Rerror] != many*7/10 {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"too many fids", func(t *testing.T) {
			r := roughly(t, addr).attach(8192)
			for i := range 20000 {
				r.sayf("Twalk %d 0 %d", i, i+1)
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(20000); got[proto.Rwalk] != 16383 {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"seventeen names", func(t *testing.T) {
			r := roughly(t, addr).attach(65536)
			for i := range many / 10 {
				r.sayf("Twalk %d 0 1%s", i, strings.Repeat(" ..", 17+i))
			}
			wg := make(chan struct{})
			go func() { r.send(); close(wg) }()
			if got := r.hear(many / 10); got[proto.Rerror] != many/10 {
				t.Errorf("replies: got %v", got)
			}
			<-wg
		}},
		{"half open", func(t *testing.T) {
			for i := range 200 {
				r := roughly(t, addr)
				switch i % 4 {
				case 1:
					r.b.Write([]byte{19})
				case 2:
					r.say("Tversion ~ 8192 9P2000")
				case 3:
					r.b.Write([]byte{19, 0, 0, 0, 100, 0xff, 0xff, 0, 0x20})
				}
				r.send()
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			was := served.Load()
			c.do(t)
			// The good client gets on, while those of the case still hang.
			for until := time.Now().Add(2 * time.Second); served.Load() < was+2; syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 1000}) {
				if time.Now().After(until) {
					t.Fatal("nobody else was served for 2 s")
				}
			}
		})
	}
	close(ended)
	wg.Wait()
	mem := peak(t, pid)
	w := time.Duration(worst.Load())
	t.Logf("the good client was served %d times, at worst in %v; the server's memory peaked at %d MB", served.Load(), w, mem>>20)
	if raceOn {
		t.Log("the race detector is on: time and memory are not judged")
		return
	}
	if w > 2*time.Second {
		t.Errorf("worst wait: %v, want at most 2s", w)
	}
	if mem > 200<<20 {
		t.Errorf("memory: %d MB, want at most 200", mem>>20)
	}
}
