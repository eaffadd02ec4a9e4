package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"harvest/fs"
	"harvest/fs/ninep"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/replica"
)

func benchReplicaCommand() command {
	var n, size, changed int
	var delay time.Duration
	var work string
	return command{"bench replica", "[-n OBJECTS] [--size BYTES] [--changed N] [--delay TIME] [--work DIR]", "measure what it costs to keep a Replica: unchanged, changed, new", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.IntVarP(&n, "objects", "n", 100_000, "objects of the collection")
		fl.IntVar(&size, "size", 2048, "bytes of an object, about")
		fl.IntVar(&changed, "changed", 10, "objects that change between two exchanges")
		fl.DurationVar(&delay, "delay", 0, "a message's way to the other takes this long")
		fl.StringVar(&work, "work", "", "folder to work in (default a temporary one)")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) > 0 || n < 1 || size < 100 || changed < 1 || changed > n {
				return usagef("takes no arguments, at least one object of at least 100 bytes, and no more changes than objects")
			}
			dir, err := os.MkdirTemp(work, "harvest-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			b := &benchReplica{n: n, size: size, changed: changed, delay: delay, out: std.out}
			return b.run(ctx, dir)
		}
	}}
}

// A benchReplica is two Replicas in this process, connected by 9P over loopback. What
// goes over the connection is counted, and delayed.
type benchReplica struct {
	n, size, changed int
	delay            time.Duration
	out              io.Writer

	source      *store.Store
	from, to    *replica.Replica
	server      *ninep.Server
	listener    *ninep.Listener
	hideChanges atomic.Bool
	in, sent    atomic.Int64
	conn        *ninep.Client
	round       int
}

func (b *benchReplica) run(ctx context.Context, dir string) (err error) {
	lg := slog.New(slog.DiscardHandler)
	if b.source, err = store.Open(filepath.Join(dir, "source"), lg, store.Options{NoSync: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.source.Close()) }()
	open := func(ctx context.Context, path string) (iofs.FS, io.Closer, error) { return b.open(ctx, path) }
	if b.from, err = replica.Open(filepath.Join(dir, "from"), "from", lg, replica.Options{Open: open}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.from.Close()) }()
	if b.to, err = replica.Open(filepath.Join(dir, "to"), "to", lg, replica.Options{Open: open}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.to.Close()) }()
	b.server = ninep.NewServer(lg, ninep.Limits{})
	if b.listener, err = ninep.Listen(ctx, "tcp!127.0.0.1!0", ninep.ListenOptions{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { b.server.Serve(ctx, b.listener, b.from.Files()) })
	if err := errors.Join(writeTree(ctx, b.from.Files(), "config", "source path=source every=24h\n"), writeTree(ctx, b.to.Files(), "config", "member path=from\nfull every=24h\n")); err != nil {
		return err
	}
	if err := b.dial(ctx); err != nil {
		return err
	}
	defer b.conn.Close()
	return b.measure(ctx)
}

// dial connects the two, with a delay.
func (b *benchReplica) dial(ctx context.Context) error {
	addr := strings.Split(b.listener.String(), "!")
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(addr[1], addr[2]))
	if err != nil {
		return err
	}
	b.conn, err = ninep.NewClient(ctx, newSlow(nc, b.delay, &b.in, &b.sent), b.listener.String(), ninep.DialOptions{})
	return err
}

// open gives the source, or the tree of the other over the connection that there is.
func (b *benchReplica) open(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
	if path == "source" {
		id := func(parts ...string) uint64 { return fs.ID(append([]string{"source"}, parts...)...) }
		return fs.IO(ctx, fs.Static(fs.RootPath, b.source.Files(id, nil, nil))), nopCloser{}, nil
	}
	return benchTree{fs.IO(ctx, b.conn.Root()), b}, nopCloser{}, nil
}

// benchTree is the other's tree, which does not tell by itself what is new, and has no
// logs when what differs is to be walked to.
type benchTree struct {
	iofs.FS
	b *benchReplica
}

func (t benchTree) Open(name string) (iofs.File, error) {
	if strings.HasSuffix(name, "heads.live") {
		return nil, iofs.ErrNotExist
	}
	return t.FS.Open(name)
}

func (t benchTree) ReadMost(name string, most int) ([]byte, error) {
	if strings.HasPrefix(name, "changes/") && t.b.hideChanges.Load() {
		return nil, iofs.ErrNotExist
	}
	return t.FS.(interface {
		ReadMost(name string, most int) ([]byte, error)
	}).ReadMost(name, most)
}

func (b *benchReplica) measure(ctx context.Context) error {
	fmt.Fprintf(b.out, "objects=%d size=%d changed=%d delay=%s\n", b.n, b.size, b.changed, b.delay)
	if err := b.change(ctx, b.n); err != nil {
		return err
	}
	if err := b.phase("publish", b.n, func() error { return writeTree(ctx, b.from.Files(), "ctl", "sync\n") }); err != nil {
		return err
	}
	sync := func() error { return writeTree(ctx, b.to.Files(), "ctl", "sync\n") }
	if err := b.phase("first", b.n, sync); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- b.to.Run(ctx) }() // ends with ctx
	defer func() { cancel(); <-done }()
	for begun := time.Now(); !strings.Contains(b.members(ctx), "connected=yes"); {
		if time.Sleep(time.Millisecond); time.Since(begun) > time.Minute {
			return errors.New("the member is not followed after a minute")
		}
	}
	for range 2 {
		if err := b.phase("unchanged", 0, sync); err != nil {
			return err
		}
	}
	for _, what := range []string{"log", "log", "walk", "walk"} {
		if err := b.change(ctx, b.changed); err != nil {
			return err
		}
		if err := b.phase("publish", b.changed, func() error { return writeTree(ctx, b.from.Files(), "ctl", "sync\n") }); err != nil {
			return err
		}
		b.hideChanges.Store(what == "walk")
		if err := b.phase(what, b.changed, sync); err != nil {
			return err
		}
	}
	return b.equal(ctx)
}

// change makes the first so many objects anew, in an order that has nothing to do with
// their names.
func (b *benchReplica) change(ctx context.Context, n int) error {
	b.round++
	filler := strings.Repeat("threshing and winnowing ", b.size/24+1)
	changes := make([]store.Change, 0, 5000)
	for i := range n {
		o := soif.Object{Type: "FILE", URL: fmt.Sprintf("http://site/%07d", (i*7919+b.round)%b.n)}
		o.Add("Title", fmt.Appendf(nil, "%d %d", b.round, i))
		o.Add("Update-Time", fmt.Append(nil, 1_790_000_000+b.round))
		o.Add("Body", []byte(filler[:max(b.size-110, 0)]))
		changes = append(changes, store.Change{Op: soif.Update, OID: store.ID(o.URL, "@"), Body: o.Append(nil)})
		if len(changes) == cap(changes) || i == n-1 {
			if _, err := b.source.Apply(ctx, changes); err != nil {
				return err
			}
			changes = changes[:0]
		}
	}
	return nil
}

// phase does something and tells what it cost.
func (b *benchReplica) phase(name string, objects int, f func() error) error {
	in, sent, messages, cpu, begun := b.in.Load(), b.sent.Load(), b.messages(), spentTime(), time.Now()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	took, cpu := time.Since(begun), spentTime()-cpu
	fmt.Fprintf(b.out, "%s: took=%s cpu=%s messages=%d received=%d sent=%d", name, took.Round(10*time.Microsecond), cpu.Round(10*time.Microsecond), b.messages()-messages, b.in.Load()-in, b.sent.Load()-sent)
	if objects > 0 {
		fmt.Fprintf(b.out, " cpu-each=%s", (cpu / time.Duration(objects)).Round(100*time.Nanosecond))
	}
	if b.delay > 0 {
		fmt.Fprintf(b.out, " rounds=%.1f", float64(took)/float64(2*b.delay))
	}
	fmt.Fprintln(b.out)
	return nil
}

// members is the file members.
func (b *benchReplica) members(ctx context.Context) string {
	text, err := iofs.ReadFile(fs.IO(ctx, b.to.Files()), "members")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// spentTime is the processor time of this process.
func spentTime() time.Duration { u := processorTime(); return u.user + u.system }

// messages counts what the server was asked.
func (b *benchReplica) messages() (n int) {
	for line := range strings.Lines(b.server.Stats()) {
		var k int
		if strings.HasPrefix(line, "harvest_9p_requests_total") {
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &k); err == nil {
				n += k
			}
		}
	}
	return n
}

// equal fails unless both have the same.
func (b *benchReplica) equal(ctx context.Context) error {
	one, err1 := iofs.ReadFile(fs.IO(ctx, b.from.Files()), "tree/digest")
	two, err2 := iofs.ReadFile(fs.IO(ctx, b.to.Files()), "tree/digest")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if string(one) != string(two) {
		return fmt.Errorf("the two have digests %s and %s", strings.TrimSpace(string(one)), strings.TrimSpace(string(two)))
	}
	return nil
}

func writeTree(ctx context.Context, d fs.Dir, name, text string) error {
	f, err := fs.IO(ctx, d).(interface {
		OpenFile(name string, flag int, perm iofs.FileMode) (iofs.File, error)
	}).OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f.(io.Writer), text)
	return errors.Join(err, f.Close())
}

// A slow is a connection that counts bytes, and on which each write takes a while to
// arrive, though no longer for one that follows another.
type slow struct {
	net.Conn
	in, sent *atomic.Int64
	delay    time.Duration
	out, got chan late
	rest     []byte
	done     sync.WaitGroup
}

type late struct {
	at  time.Time
	b   []byte
	err error
}

func newSlow(nc net.Conn, delay time.Duration, in, sent *atomic.Int64) net.Conn {
	s := &slow{Conn: nc, in: in, sent: sent, delay: delay, out: make(chan late, 1<<12), got: make(chan late, 1<<12)}
	s.done.Go(func() { // ends with Close
		for l := range s.out {
			time.Sleep(time.Until(l.at))
			nc.Write(l.b) // what is lost shows when nothing comes back
		}
	})
	s.done.Go(func() { // ends with the connection
		defer close(s.got)
		for {
			b := make([]byte, 64<<10)
			n, err := nc.Read(b)
			s.got <- late{time.Now().Add(delay), b[:n], err}
			if err != nil {
				return
			}
		}
	})
	return s
}

func (s *slow) Write(p []byte) (int, error) {
	s.sent.Add(int64(len(p)))
	s.out <- late{time.Now().Add(s.delay), append([]byte(nil), p...), nil}
	return len(p), nil
}

func (s *slow) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		l, ok := <-s.got
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(l.at))
		if s.rest = l.b; l.err != nil && len(l.b) == 0 {
			return 0, l.err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	s.in.Add(int64(n))
	return n, nil
}

func (s *slow) Close() error {
	err := s.Conn.Close()
	close(s.out)
	s.done.Wait()
	return err
}
