package fuse

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"
)

// The benchmarks measure peers in the same run: tmpfs, and the same names and
// contents in go-fuse's own tree with its default options ("bare", which
// lists with attributes always) and without read-dir-plus ("bare-noplus").
//
//	go test -bench . -benchtime 3x -run ^$ harvest/fs/fuse
//
// best-ms is the shortest of the runs: on a machine that does other things
// meanwhile it is the one to compare.
var bareKinds = []struct{ name, env string }{
	{"bare", "HARVEST_FUSE_BARE=1"},
	{"bare-noplus", "HARVEST_FUSE_BARE=2"},
}

// best reports the shortest of b.N runs of f, and what they took on average
// of this process, its children that ended, and the server.
func best(b *testing.B, c **child, before, f, after func()) {
	var cpu time.Duration
	least := time.Duration(1<<63 - 1)
	for range b.N {
		b.StopTimer()
		before()
		b.StartTimer()
		start, used := time.Now(), ticks(*c)
		f()
		least = min(least, time.Since(start))
		b.StopTimer()
		cpu += ticks(*c) - used
		after()
	}
	b.ReportMetric(float64(least.Microseconds())/1000, "best-ms")
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms")
}

// ticks is the processor time used so far by this process, its children that
// have ended, and a server.
func ticks(c *child) time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var ru syscall.Rusage
		syscall.Getrusage(who, &ru)
		sum += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	if c == nil {
		return sum
	}
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(line), ") ")
	if f := strings.Fields(rest); len(f) > 12 {
		u, _ := strconv.Atoi(f[11])
		s, _ := strconv.Atoi(f[12])
		sum += time.Duration(u+s) * 10 * time.Millisecond
	}
	return sum
}

func nothing() {}

// tool runs a program and wants it to succeed.
func tool(b *testing.B, name string, arg ...string) {
	b.Helper()
	cmd := exec.Command(name, arg...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v\n%.500s", name, arg, err, out)
	}
}

// grep looks for what is in no file.
func grep(b *testing.B, dir string) {
	b.Helper()
	cmd := exec.Command("grep", "-r", "no such words here", dir)
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 {
		b.Fatalf("grep: %s %.500s", cmd.ProcessState, out)
	}
}

// tmpfs is a folder in memory, as on most machines /dev/shm is.
func tmpfs(b *testing.B) string {
	b.Helper()
	var st syscall.Statfs_t
	if syscall.Statfs("/dev/shm", &st) != nil || st.Type != 0x01021994 {
		b.Skip("no tmpfs at /dev/shm")
	}
	dir, err := os.MkdirTemp("/dev/shm", "harvest")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkGrep reads 10,000 files of 2 KB in 256 folders: cold is the first
// run after the mount, warm a later one.
func BenchmarkGrep(b *testing.B) {
	const files = 10240
	run := func(name string, env ...string) {
		b.Run("files=10k/cold/"+name, func(b *testing.B) {
			needFuse(b)
			var c *child
			best(b, &c, func() { c = startChild(b, b.TempDir(), env...) }, func() { grep(b, c.path("folders")) }, func() {
				c.report(b, files)
				c.close()
			})
		})
		b.Run("files=10k/warm/"+name, func(b *testing.B) {
			c := mount(b, env...)
			grep(b, c.path("folders"))
			grep(b, c.path("folders"))
			before := c.requests()
			best(b, &c, nothing, func() { grep(b, c.path("folders")) }, nothing)
			if n := c.requests(); n > 0 {
				b.ReportMetric(float64(n-before)/files/float64(b.N), "requests/file")
			}
		})
	}
	run("harvest")
	for _, k := range bareKinds {
		run(k.name, k.env)
	}
	b.Run("files=10k/warm/tmpfs", func(b *testing.B) {
		dir := tmpfs(b)
		for i := range 256 {
			os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755)
			d := many{key: fmt.Sprint(i, "_"), n: 40, size: 2048}
			for k := range d.n {
				os.WriteFile(filepath.Join(dir, fmt.Sprint(i), d.name(k)), d.file(k).(numbered).content(), 0o644)
			}
		}
		best(b, new(*child), nothing, func() { grep(b, dir) }, nothing)
	})
}

func (c *child) requests() int {
	n := 0
	for _, name := range strings.Fields("lookup getattr open read flush release opendir readdir readdirplus releasedir") {
		n += c.stat(name)
	}
	return n
}

// report says how many requests a file took.
func (c *child) report(b *testing.B, files int) {
	if c.ask("stats") == "" {
		return // the bare tree does not count
	}
	for _, name := range strings.Fields("lookup getattr open read flush release") {
		b.ReportMetric(float64(c.stat(name))/float64(files), name+"/file")
	}
}

// BenchmarkList lists a directory of 100,000 entries by their names alone,
// and BenchmarkListLong with ls -l, cold (first after the mount) and again.
func BenchmarkList(b *testing.B) {
	names := func(b *testing.B, dir string) {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer unix.Close(fd)
		buf, entries := make([]byte, 32<<10), 0 // as the C library reads
		for {
			n, err := unix.Getdents(fd, buf)
			if err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				break
			}
			for at := 0; at < n; at += int(buf[at+16]) | int(buf[at+17])<<8 {
				entries++
			}
		}
		if entries < 100000 {
			b.Fatal(entries)
		}
	}
	each(b, "names", names)
}

func BenchmarkListLong(b *testing.B) {
	each(b, "ls-l", func(b *testing.B, dir string) { tool(b, "ls", "-l", dir) })
}

func each(b *testing.B, what string, f func(b *testing.B, dir string)) {
	run := func(name string, env ...string) {
		b.Run("entries=100k/"+what+"/cold/"+name, func(b *testing.B) {
			needFuse(b)
			var c *child
			best(b, &c, func() { c = startChild(b, b.TempDir(), env...) }, func() { f(b, c.path("flat")) }, func() { c.close() })
		})
		b.Run("entries=100k/"+what+"/again/"+name, func(b *testing.B) {
			c := mount(b, env...)
			f(b, c.path("flat"))
			best(b, &c, nothing, func() { f(b, c.path("flat")) }, nothing)
		})
	}
	run("harvest")
	for _, k := range bareKinds {
		run(k.name, k.env)
	}
	b.Run("entries=100k/"+what+"/again/tmpfs", func(b *testing.B) {
		dir := tmpfs(b)
		d := many{key: "flat_", n: 100000, size: 16}
		for i := range d.n {
			os.WriteFile(filepath.Join(dir, d.name(i)), nil, 0o644)
		}
		best(b, new(*child), nothing, func() { f(b, dir) }, nothing)
	})
}

// BenchmarkReaddir is this side's part of listing 100,000 names.
func BenchmarkReaddir(b *testing.B) {
	d := many{key: "flat_", n: 100000, size: 16}
	t := newTree(d, Options{Log: slog.New(slog.DiscardHandler)})
	buf := make([]byte, 32<<10)
	for b.Loop() {
		var o gofuse.OpenOut
		t.OpenDir(nil, &gofuse.OpenIn{InHeader: gofuse.InHeader{NodeId: 1}}, &o)
		n := 0
		for {
			in := &gofuse.ReadIn{Fh: o.Fh, Offset: uint64(n)}
			out := gofuse.NewDirEntryList(buf, uint64(n))
			if t.ReadDir(nil, in, out) != gofuse.OK {
				b.Fatal("readdir")
			}
			if len(out.Bytes()) == 0 {
				break
			}
			n = int(out.Offset)
		}
		if n != 100002 {
			b.Fatal(n)
		}
		t.ReleaseDir(&gofuse.ReleaseIn{Fh: o.Fh})
	}
}
