package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"harvest/fs/ndb"
	"harvest/gather"
)

// gatherBench is harvest bench gather: one Gatherer and what it gathers from,
// each visit made by a process of its own.
type gatherBench struct {
	work    string
	profile string
	config  string
	peers   bool
	also    []string // peers given as NAME=COMMAND

	gzip     bool          // site
	generate int           // local
	hosts    int           // hosts, known
	pages    int           // hosts
	delay    time.Duration // hosts
	most     time.Duration // traps
	urls     int           // known
	files    int           // ftp
}

// A gatherKind is one thing that harvest bench gather measures.
type gatherKind struct {
	name, args, about string
	run               func(b *gatherBench, ctx context.Context, args []string, std std) error
}

func gatherKinds() []gatherKind {
	return []gatherKind{
		{"site", "", "a real documentation site on nginx: all of it, and again unchanged", (*gatherBench).site},
		{"local", "[DIR…]", "trees of files: all of them, unchanged, and with one file changed", (*gatherBench).local},
		{"hosts", "", "many small hosts, politely: what the hosts saw", (*gatherBench).world},
		{"traps", "", "a site that never ends: how many requests until the Gatherer does", (*gatherBench).traps},
		{"export", "[DIR…]", "what a stream of all summaries costs, beside a request for each object", (*gatherBench).export},
		{"ftp", "", "small files of an FTP server, with connections that are kept and without", (*gatherBench).ftp},
		{"known", "", "a Gatherer that knows very many URLs: its memory, and its start", (*gatherBench).known},
		{"fake", "DIR", "a process of known's", (*gatherBench).fake},
		{"visit", "DIR", "one visit of the Gatherer whose state is in DIR; the others call it", (*gatherBench).visit},
	}
}

func benchGatherCommand() command {
	var b gatherBench
	names := make([]string, 0, len(gatherKinds()))
	for _, k := range gatherKinds() {
		names = append(names, k.name)
	}
	return command{"bench gather", strings.Join(names, "|") + " …", "gather a site, trees of files and more, and measure it", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		b.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("say what:%s", listKinds())
			}
			for _, k := range gatherKinds() {
				if k.name == args[0] {
					return k.run(&b, ctx, args[1:], std)
				}
			}
			return usagef("%s: not one of these:%s", args[0], listKinds())
		}
	}}
}

func listKinds() string {
	var b strings.Builder
	for _, k := range gatherKinds() {
		fmt.Fprintf(&b, "\n  %-8s %-8s %s", k.name, k.args, k.about)
	}
	return b.String()
}

func (b *gatherBench) flags(fl *pflag.FlagSet) {
	fl.StringVar(&b.work, "work", "", "keep what is made in this folder (default: a temporary one)")
	fl.StringVar(&b.config, "config", "", "more lines of the Gatherer's config, with ; between them")
	fl.StringVar(&b.profile, "profile", "", "write profiles of the visits for go tool pprof to FILE.first, FILE.again …")
	fl.BoolVar(&b.peers, "peers", false, "measure wget2, httrack, wget (site) and recollindex (local) too, those that are installed")
	fl.StringArrayVar(&b.also, "peer", nil, "measure another crawler or tool: NAME=COMMAND, in which $URL, $DIR and $OUT are replaced")
	fl.BoolVar(&b.gzip, "gzip", false, "site: have the server compress")
	fl.IntVar(&b.generate, "generate", 0, "local: make so many small files and gather those")
	fl.IntVar(&b.hosts, "hosts", 10_000, "hosts, known: so many servers")
	fl.IntVar(&b.pages, "pages", 6, "hosts: pages of each")
	fl.DurationVar(&b.delay, "delay", time.Second, "hosts: between two requests to one of them")
	fl.IntVar(&b.urls, "urls", 1_000_000, "known: so many URLs")
	fl.IntVar(&b.files, "files", 0, "ftp, export: so many files (default: 1000, 2300)")
	fl.DurationVar(&b.most, "most", 2*time.Minute, "traps: stop a Gatherer that does not end by itself after this long")
}

// A gathering is what one visit did and took, as a process of its own.
type gathering struct {
	name         string
	wall         time.Duration
	open         time.Duration // until the Gatherer could be asked
	user, system time.Duration // of processor time, from then on
	peak         int           // kB
	count        ndb.Entry     // of status, when it had ended
	bytes        int64         // on disk
}

// done are the documents that were dealt with.
func (r *gathering) done() int {
	return number(r.count, "fetched") + number(r.count, "unchanged")
}

// per is a time for each document.
func (r *gathering) per(d time.Duration, n int) string {
	return fmt.Sprintf("%.3f", d.Seconds()*1e3/float64(max(n, 1)))
}

// begin makes the folder of a Gatherer with a config.
func (b *gatherBench) begin(dir, conf string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	if b.config != "" {
		conf += strings.ReplaceAll(b.config, ";", "\n") + "\n"
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte(conf), 0o644)
}

// child makes a visit in a process of its own.
func (b *gatherBench) child(ctx context.Context, name, dir string, std std) (gathering, error) {
	return b.process(ctx, name, dir, []string{"bench", "gather", "visit"}, std)
}

// process runs a command of this program on the folder of a Gatherer; what it
// did and took is the line that it prints.
func (b *gatherBench) process(ctx context.Context, name, dir string, args []string, std std) (r gathering, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	if b.profile != "" {
		args = append(args, "--profile", b.profile+"."+name)
	}
	var out bytes.Buffer
	cmd := interruptible(ctx, self, append(args, dir)...)
	cmd.Stdout, cmd.Stderr = &out, std.err
	err = cmd.Run()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	if r.count, err = ndb.ParseLine(strings.TrimSpace(out.String()), 1); err != nil {
		return r, err
	}
	r.name, r.peak = name, number(r.count, "peak")
	r.wall, r.open = micro(r.count, "wall"), micro(r.count, "open")
	r.user, r.system = micro(r.count, "user"), micro(r.count, "system")
	r.bytes, err = folderSize(dir)
	return r, err
}

func micro(e ndb.Entry, key string) time.Duration {
	return time.Duration(number(e, key)) * time.Microsecond
}

// interruptible is a process that is told to end when ctx does.
func interruptible(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// visit is the process: it opens a Gatherer, has it run, and tells in a line
// what that took.
func (b *gatherBench) visit(ctx context.Context, args []string, std std) (err error) {
	if len(args) != 1 {
		return usagef("name the folder of one Gatherer")
	}
	begin := time.Now()
	lg := slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g, err := gather.Open(args[0], benchName, lg, gather.Options{Version: version})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	open := time.Since(begin)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended) // waited for below
		g.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	t := &trial{root: g.Files(), std: std}
	from, begin := processorTime(), time.Now()
	err = profiled(b.profile, func() error {
		if err := t.write(ctx, "ctl", "run"); err != nil {
			return err
		}
		return t.finish(ctx)
	})
	if err != nil {
		return err
	}
	wall, used := time.Since(begin), processorTime().sub(from)
	st := readStatus(ctx, g.Files())
	if state, _ := st.Get("state"); state != "idle" {
		return fmt.Errorf("the Gatherer ended %s", state)
	}
	line := []ndb.Pair{ndb.Of("wall", wall.Microseconds()), ndb.Of("open", open.Microseconds()), ndb.Of("user", used.user.Microseconds()),
		ndb.Of("system", used.system.Microseconds()), ndb.Of("peak", processMemory("self", "VmHWM"))}
	fmt.Fprintln(std.out, ndb.Format(append(line, st.Pairs...)...))
	return nil
}

// finish waits until the Gatherer has nothing more to do. It looks often at
// first, for some visits take a tenth of a second, and then each time once a
// hundredth of what it took so far has passed: looking costs a quarter of a
// millisecond, which is not the visit's.
func (t *trial) finish(ctx context.Context) error {
	shown := newBar(t.std.err)
	defer shown.end()
	began, drawn := time.Now(), time.Time{}
	for {
		st := readStatus(ctx, t.root)
		if now := time.Now(); now.Sub(drawn) >= 100*time.Millisecond {
			shown.draw(pointOf("visit", st))
			drawn = now
		}
		if state, _ := st.Get("state"); state != "running" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(max(5*time.Millisecond, time.Since(began)/100), 100*time.Millisecond)):
		}
	}
}

type usage struct{ user, system time.Duration }

func (u usage) sub(v usage) usage { return usage{u.user - v.user, u.system - v.system} }

// processorTime is what this process has used; zero if it cannot be told.
func processorTime() usage {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return usage{}
	}
	return usage{time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())}
}

// row shows a gathering, per documents of what n says.
func (r *gathering) row(n int) []string {
	return []string{
		r.name, strconv.Itoa(n), fmt.Sprintf("%.2f", r.wall.Seconds()), fmt.Sprintf("%.0f", float64(n)/r.wall.Seconds()),
		r.per(r.user+r.system, n), r.per(r.user, n), strconv.Itoa(r.peak >> 10),
	}
}

// gatherHead are the columns of row.
func gatherHead(of string, more ...string) []string {
	return append([]string{"run", of, "s", of + "/s", "cpu ms", "user ms", "peak MB"}, more...)
}

// counts shows the rest of what the Gatherer counted.
func (r *gathering) counts(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", r.name, pick(r.count, "found", "fetched", "unchanged", "gone", "failed", "excluded", "requests", "bytes-in", "bytes-out", "objects"))
}
