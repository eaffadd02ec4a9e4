package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"harvest/fs/ndb"
	"harvest/index"
	"harvest/index/bench"
	"harvest/index/block"
)

// A benchKind is a kind of index that is measured.
type benchKind struct {
	name, about string
	all         bool // gives every match, as scanners do, instead of the best ten
	open        func(dir string, set index.Settings) (index.Engine, error)
}

// options are those that a kind is asked with.
func (k benchKind) options() index.Options {
	opt := index.Options{Weight: bench.Weight, Limit: 10}
	if k.all {
		opt.Limit, opt.Rank = 0, index.RankNone
	}
	return opt
}

func benchKinds() []benchKind {
	grain := func(g block.Grain, about string) benchKind {
		return benchKind{g.String(), about, true, func(dir string, set index.Settings) (index.Engine, error) {
			return block.Open(dir, set, g)
		}}
	}
	return []benchKind{
		{"full", "words with their positions", false, index.Open},
		{"nopositions", "without positions", false, func(dir string, set index.Settings) (index.Engine, error) {
			set.NoPositions = true
			return index.Open(dir, set)
		}},
		grain(block.Tiny, "Glimpse's: rare words by document, common ones by group of documents"),
		grain(block.Small, "all words by document"),
		grain(block.Medium, "by document and stretch of it"),
	}
}

func kindNames() (names []string) {
	for _, k := range benchKinds() {
		names = append(names, k.name)
	}
	return names
}

func benchKindOf(name string) (benchKind, error) {
	kinds := benchKinds()
	i := slices.IndexFunc(kinds, func(k benchKind) bool { return k.name == name })
	if i < 0 {
		return benchKind{}, usagef("%s: not one of %s", name, strings.Join(kindNames(), ", "))
	}
	return kinds[i], nil
}

// A build makes one index in a folder: the engine's files in index, and the
// names of the documents, so that an answer can be told, in names.gz.
type build struct {
	kind    string
	cores   int
	memory  int // MB
	store   string
	profile string
}

func (b *build) flags(fl *pflag.FlagSet) {
	fl.IntVar(&b.cores, "cores", 0, "processors that building may use; 0: all")
	fl.IntVar(&b.memory, "memory", 0, "MB that building may take beside the documents in hand; 0: the engine's own")
	fl.StringVar(&b.profile, "profile", "", "write a profile for go tool pprof to this file")
}

func benchBuildCommand() command {
	var b build
	return command{"bench build", "[--kind KIND] [--cores N] [--memory MB] DIR INDEX", "build one index over the text files of a folder", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.StringVar(&b.kind, "kind", "full", "of index: "+strings.Join(kindNames(), ", "))
		fl.StringVar(&b.store, "store", "", "take the documents from the object store in this folder, which harvest bench index --store made")
		b.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) != 2 {
				return usagef("name the folder and where the index goes")
			}
			kind, err := benchKindOf(b.kind)
			if err != nil {
				return err
			}
			return profiled(b.profile, func() error { return b.run(ctx, kind, args[0], args[1], std) })
		}
	}}
}

func (b *build) run(ctx context.Context, kind benchKind, dir, to string, std std) error {
	begin := time.Now()
	if b.cores > 0 {
		runtime.GOMAXPROCS(b.cores)
	}
	docs, err := openDocuments(dir, b.store)
	if err != nil {
		return err
	}
	defer docs.Close()
	if err := os.Mkdir(to, 0o777); err != nil {
		return err
	}
	e, err := kind.open(filepath.Join(to, "index"), index.Settings{Memory: int64(b.memory) << 20, Workers: b.cores, Source: docs})
	if err != nil {
		return err
	}
	shown := newProgress(std.err, kind.name, len(docs.Names))
	err = e.Apply(ctx, docs.Docs(ctx, shown.show), nil, "all")
	shown.end()
	if s, ok := e.(interface{ Settle(context.Context) error }); ok && err == nil {
		err = s.Settle(ctx) // what is merged in the background is part of it
	}
	if err == nil {
		err = writeNames(filepath.Join(to, "names.gz"), docs.Names)
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	size, err := folderSize(to)
	if err != nil {
		return err
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	fmt.Fprintln(std.out, ndb.Format(ndb.Of("kind", kind.name), ndb.Of("documents", len(docs.Names)), ndb.Of("text", docs.Bytes), ndb.Of("bytes", size),
		ndb.Of("seconds", fmt.Sprintf("%.3f", time.Since(begin).Seconds())), ndb.Of("cpu", fmt.Sprintf("%.3f", cpu.Seconds())), ndb.Of("peak", processMemory("self", "VmHWM"))))
	return nil
}

// writeNames keeps what documents are called.
func writeNames(path string, names []string) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, strings.Join(names, "\n"))
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e iofs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var st iofs.FileInfo
			if st, err = e.Info(); err == nil {
				n += st.Size()
			}
		}
		return err
	})
	return n, err
}

// processMemory is a figure of a process's status in /proc, in kB, 0 where
// that is not known. VmHWM is the most it has had resident; Rusage would count
// what its parent had before it.
func processMemory(pid, key string) int {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// A built is what one build took, as peers.sh has it: the whole process.
type built struct {
	wall, cpu time.Duration
	peak      int   // kB
	bytes     int64 // on disk
}

// child builds an index in a process of its own.
func (b *build) child(ctx context.Context, dir, to string, std std) (r built, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := []string{"bench", "build", "--kind", b.kind, "--cores", strconv.Itoa(b.cores), "--memory", strconv.Itoa(b.memory)}
	if b.store != "" {
		args = append(args, "--store", b.store)
	}
	if b.profile != "" {
		args = append(args, "--profile", b.profile+"."+b.kind)
	}
	cmd := exec.CommandContext(ctx, self, append(args, dir, to)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = std.err
	var out bytes.Buffer
	cmd.Stdout = &out
	begin := time.Now()
	err = cmd.Run()
	r.wall = time.Since(begin)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		return r, fmt.Errorf("build of %s: %w", b.kind, err)
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	e, err := ndb.ParseLine(strings.TrimSpace(out.String()), 1)
	r.peak, r.bytes = number(e, "peak"), int64(number(e, "bytes"))
	return r, err
}

// progress shows how many of some things are done, now and then.
type progress struct {
	*bar
	what string
	all  int
	next time.Time
}

func newProgress(w io.Writer, what string, all int) *progress {
	return &progress{bar: newBar(w), what: what, all: all, next: time.Now()}
}

func (p *progress) show(n int) {
	if now := time.Now(); n == p.all || now.After(p.next) {
		p.next = now.Add(100 * time.Millisecond)
		p.bar.show(p.what, n, p.all)
	}
}
