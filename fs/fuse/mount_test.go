package fuse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
)

// A test never opens a file of its own process's mount: the server is a child,
// this same binary, that takes a line at a time on its standard input and
// answers with one.
const envChild = "HARVEST_FUSE_CHILD"

func TestMain(m *testing.M) {
	if point := os.Getenv(envChild); point != "" {
		serve(point)
		return
	}
	os.Exit(m.Run())
}

// world is what the child serves.
type world struct {
	bus  *fs.Bus
	disk *disk
	log  *fs.Log
	conf string
	mu   sync.Mutex
}

func (w *world) root() fs.Dir {
	w.log = fs.NewLog(1 << 20)
	for i := range 3 {
		w.log.Add(fmt.Sprintf("record %d", i))
	}
	w.disk = newDisk("disk", w.bus)
	sub := newDisk("nobody's", w.bus)
	sub.owner = "nobody"
	w.disk.nodes["nobody"] = sub
	err := fs.NewErr(fs.ID("err"))
	w.conf = "root url=http://a/\n"
	svc := map[string]fs.Node{
		"config": fs.Config(fs.ID("config"), err, w.config, w.setConfig),
		"ctl": fs.Ctl(fs.ID("ctl"), err,
			fs.On("say WORD...", func(_ context.Context, arg []string) error { w.log.Add(strings.Join(arg, " ")); return nil }),
			fs.On("busy", func(context.Context, []string) error { return fmt.Errorf("busy: %w", syscall.EBUSY) }),
		),
		"err":    err,
		"status": fs.Text(fs.ID("status"), func() string { return "state=ready\nobjects=3\n" }),
		"made": fs.Stream(fs.ID("made"), 1, func(_ context.Context, out io.Writer) error {
			for i := range 10000 {
				fmt.Fprintln(out, "line", i)
			}
			return nil
		}),
	}
	w.log.Nodes(svc, "events", func(p ...string) uint64 { return fs.ID(append(p, "events")...) })
	return fs.Static(fs.RootPath, map[string]fs.Node{
		"svc":     fs.Static(fs.ID("svc"), svc),
		"disk":    w.disk,
		"hard":    fs.Static(fs.ID("hard"), map[string]fs.Node{"reset": broken{}, "foreign": strange{}}),
		"objects": folders(512, 2048),
		"folders": folders(envInt("HARVEST_FUSE_FILES", 10000), 2048),
		"flat":    many{key: "flat_", n: envInt("HARVEST_FUSE_FLAT", 100000), size: 2048},
		"million": many{key: "million_", n: 1000000, size: 2048},
	})
}

func envInt(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

func (w *world) config() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conf
}

func (w *world) setConfig(_ context.Context, text string) error {
	if strings.Contains(text, "bad") {
		return errors.New("config: bad word")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conf = text
	return nil
}

// broken is a file of a remote tree whose connection is down.
type broken struct{}

func (broken) Stat() fs.Stat { return fs.Stat{Path: fs.ID("broken"), Mode: 0o644, Size: 10} }
func (broken) Open(context.Context, fs.Mode) (fs.Handle, error) {
	return nil, fmt.Errorf("dial: %w", syscall.ECONNRESET)
}

// strange belongs to somebody this machine does not know.
type strange struct{ broken }

func (strange) Stat() fs.Stat {
	return fs.Stat{Path: fs.ID("strange"), Mode: 0o640, Size: 10, Owner: "no such user", Group: "no such group"}
}

// serve is the child. It ends, unmounting, at the end of its input.
func serve(point string) {
	w := &world{}
	if os.Getenv("HARVEST_FUSE_NOBUS") == "" {
		w.bus = new(fs.Bus)
	}
	lg := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var srv interface {
		Unmount() error
		Wait() error
	}
	var stats func() string
	var err error
	if os.Getenv("HARVEST_FUSE_BARE") != "" {
		srv, stats, err = bareMount(point)
	} else {
		var s *Server
		s, err = Mount(context.Background(), point, w.root(), Options{Bus: w.bus, Log: lg, AllowOther: os.Geteuid() == 0,
			ReadOnly: os.Getenv("HARVEST_FUSE_RO") != ""})
		srv, stats = s, func() string { return s.Stats().String() }
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	sc := bufio.NewScanner(os.Stdin)
	for sc.Scan() {
		word := strings.SplitN(sc.Text(), " ", 3)
		switch word[0] {
		case "stats":
			fmt.Println(stats())
		case "rss":
			runtime.GC()
			fmt.Println(memory("VmRSS"), memory("VmHWM"))
		case "say":
			w.log.Add(sc.Text()[4:])
			fmt.Println("ok")
		case "put", "slip": // a change that is told on the bus, and one that is not
			w.disk.mu.Lock()
			f, ok := w.disk.nodes[word[1]].(*diskFile)
			if !ok {
				w.disk.made++
				f = &diskFile{d: w.disk, path: fs.ID(word[1], fmt.Sprint(w.disk.made)), mode: 0o644}
				w.disk.nodes[word[1]] = f
				w.disk.changed(word[1])
			}
			w.disk.mu.Unlock()
			f.put(word[2], word[0] == "put")
			fmt.Println("ok")
		case "swap": // one that neither length nor time betrays
			f := w.disk.nodes[word[1]].(*diskFile)
			f.mu.Lock()
			f.data = bytes.Repeat([]byte(word[2]), len(f.data)/len(word[2]))
			f.vers++
			f.mu.Unlock()
			fmt.Println("ok")
		case "entry":
			w.bus.Entry(w.disk.path, word[1])
			fmt.Println("ok")
		case "drop":
			w.disk.Remove(context.Background(), word[1])
			fmt.Println("ok")
		case "flood":
			for i := range 50000 {
				w.bus.Entry(w.disk.path, fmt.Sprint("nothing", i))
			}
			fmt.Println("ok")
		case "handles":
			w.disk.log.mu.Lock()
			fmt.Println(w.disk.log.opened, w.disk.log.closed, w.disk.log.flush)
			w.disk.log.mu.Unlock()
		case "threads":
			fmt.Println(runtime.NumGoroutine())
		}
	}
	if err := srv.Unmount(); err != nil {
		fmt.Fprintln(os.Stderr, "unmount:", err)
		os.Exit(1)
	}
	if err := srv.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "wait:", err)
		os.Exit(1)
	}
	if w.disk != nil && w.disk.log.opened != w.disk.log.closed {
		fmt.Fprintln(os.Stderr, "handles: opened", w.disk.log.opened, "closed", w.disk.log.closed)
		os.Exit(1)
	}
}

// memory is a line of /proc/self/status, in kilobytes.
func memory(name string) int {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// child is a mounted world, from the outside.
type child struct {
	tb   testing.TB
	dir  string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *output
	over bool
}

// output is what a child says, while it still may.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// mount starts a child; env are settings of it. It is unmounted, and must end
// well, with the test.
func mount(tb testing.TB, env ...string) *child {
	tb.Helper()
	needFuse(tb)
	c := startChild(tb, tb.TempDir(), env...)
	tb.Cleanup(c.close)
	return c
}

func startChild(tb testing.TB, dir string, env ...string) *child {
	tb.Helper()
	c := &child{tb: tb, dir: dir, cmd: exec.Command(os.Args[0]), errs: new(output)}
	c.cmd.Env = append(append(os.Environ(), envChild+"="+dir, "GORACE=atexit_sleep_ms=0"), env...)
	c.cmd.Stderr = c.errs
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if line := c.line(); line != "ready" {
		tb.Fatalf("child: %s\n%s", line, c.errs)
	}
	return c
}

func needFuse(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 { // then the helper opens it
		if _, err := exec.LookPath("fusermount3"); err != nil {
			tb.Skip("not root, and no fusermount3: ", err)
		}
		if _, err := os.Stat("/dev/fuse"); err != nil {
			tb.Skip("no FUSE here: ", err)
		}
		return
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		tb.Skip("no FUSE here: ", err)
	}
	f.Close()
}

func (c *child) line() string {
	c.tb.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		c.cmd.Wait()
		c.tb.Fatalf("child: %v\n%s", err, c.errs)
	}
	return strings.TrimSpace(s)
}

// ask gives the child a line and returns its answer.
func (c *child) ask(format string, arg ...any) string {
	c.tb.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", arg...); err != nil {
		c.tb.Fatal(err)
	}
	return c.line()
}

// stat is one of the child's counters.
func (c *child) stat(name string) int {
	c.tb.Helper()
	for _, f := range strings.Fields(c.ask("stats")) {
		if rest, ok := strings.CutPrefix(f, name+"="); ok {
			n, _ := strconv.Atoi(rest)
			return n
		}
	}
	return 0
}

func (c *child) close() {
	if c.over {
		return
	}
	c.over = true
	c.in.Close()
	late := time.AfterFunc(20*time.Second, func() { c.cmd.Process.Signal(syscall.SIGQUIT) })
	err := c.cmd.Wait()
	late.Stop()
	if err != nil {
		c.tb.Errorf("child: %v\n%s", err, c.errs)
	}
	if mounted(c.dir) {
		c.tb.Errorf("%s is still mounted", c.dir)
		detach(c.dir)
	}
	if s := c.errs.String(); s != "" {
		c.tb.Logf("child said: %s", s)
	}
}

func (c *child) path(name string) string { return filepath.Join(c.dir, name) }

// sh runs a shell in the mount and wants it to end with exit code 0; it gives
// what it printed. $T is an empty folder elsewhere.
func (c *child) sh(script string) string {
	c.tb.Helper()
	out, err := c.try(script)
	if err != nil {
		c.tb.Fatalf("%s: %v\n%s\nchild: %s", script, err, out, c.errs)
	}
	return out
}

func (c *child) try(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `cd "$M" && `+script)
	cmd.Env = append(os.Environ(), "M="+c.dir, "T="+c.tb.TempDir(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
