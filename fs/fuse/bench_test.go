package fuse

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The benchmarks measure peers in the same run: tmpfs, and the same names and
// contents in go-fuse's own tree with its default options ("bare", which
// lists with attributes always) and without read-dir-plus ("bare-noplus").
//
//	go test -bench . -benchtime 3x -run ^$ harvest/fs/fuse
var bareKinds = []struct{ name, env string }{
	{"bare", "HARVEST_FUSE_BARE=1"},
	{"bare-noplus", "HARVEST_FUSE_BARE=2"},
}

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
			for range b.N {
				b.StopTimer()
				c := startChild(b, b.TempDir(), env...)
				b.StartTimer()
				grep(b, c.path("folders"))
				b.StopTimer()
				c.report(b, files)
				c.close()
			}
		})
		b.Run("files=10k/warm/"+name, func(b *testing.B) {
			c := mount(b, env...)
			grep(b, c.path("folders"))
			grep(b, c.path("folders"))
			c.ask("stats")
			before := c.requests()
			b.ResetTimer()
			for range b.N {
				grep(b, c.path("folders"))
			}
			b.StopTimer()
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
		b.ResetTimer()
		for range b.N {
			grep(b, dir)
		}
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
	for _, name := range strings.Fields("lookup getattr open read flush release") {
		b.ReportMetric(float64(c.stat(name))/float64(files), name+"/file")
	}
}

// BenchmarkList lists a directory of 100,000 entries by their names alone,
// and BenchmarkListLong with ls -l, cold (first after the mount) and again.
func BenchmarkList(b *testing.B) {
	names := func(b *testing.B, dir string) {
		f, err := os.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		list, err := f.Readdirnames(-1)
		if err != nil || len(list) != 100000 {
			b.Fatal(len(list), err)
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
			for range b.N {
				b.StopTimer()
				c := startChild(b, b.TempDir(), env...)
				b.StartTimer()
				f(b, c.path("flat"))
				b.StopTimer()
				c.close()
			}
		})
		b.Run("entries=100k/"+what+"/again/"+name, func(b *testing.B) {
			c := mount(b, env...)
			f(b, c.path("flat"))
			b.ResetTimer()
			for range b.N {
				f(b, c.path("flat"))
			}
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
		b.ResetTimer()
		for range b.N {
			f(b, dir)
		}
	})
}
