package fuse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// within waits for something that takes the kernel or another process a
// moment, looking often.
func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, d)
		}
	}
}

// age lets what the kernel was told just now grow old enough to be told again;
// see stale.
func age(t *testing.T) {
	old := time.Now()
	within(t, 5*time.Second, "age", func() bool { return time.Since(old) > 25*time.Millisecond })
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestInterrupt(t *testing.T) {
	c := mount(t)
	start := time.Now()
	out, err := c.try(`timeout 0.5 cat svc/events.live; echo $?`)
	if d := time.Since(start); err != nil || out != "124\n" || d > 5*time.Second {
		t.Errorf("timeout cat: got %q %v after %v, want 124 after half a second", out, err, d)
	}
	within(t, 5*time.Second, "interrupt", func() bool { return c.stat("interrupted") == 1 })

	// A signal that comes while a read waits loses nothing: the next read
	// has the record.
	f, err := os.Open(c.path("svc/events.live"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make(chan string)
	go func() {
		var b [100]byte
		n, _ := f.Read(b[:]) // os.File goes on after EINTR
		got <- string(b[:n])
	}()
	within(t, 5*time.Second, "blocked read", func() bool { return c.stat("handles") == 1 })
	syscall.Kill(os.Getpid(), syscall.SIGURG)
	c.ask("say after the signal")
	if s := <-got; s != "after the signal\n" {
		t.Errorf("read: got %q, want the record", s)
	}
	if s := c.sh(`ls svc | wc -l`); s != "6\n" {
		t.Errorf("ls beside the reader: got %q", s)
	}
}

func TestTail(t *testing.T) {
	c := mount(t)
	cmd := exec.Command("tail", "-n", "1", "-s", "0.05", "-f", c.path("svc/events"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	want := func(text string) {
		t.Helper()
		b := make([]byte, len(text))
		if _, err := io.ReadFull(out, b); err != nil || string(b) != text {
			t.Fatalf("tail -f: got %q %v, want %q", b, err, text)
		}
	}
	want("record 2\n")
	c.ask("say record 3")
	want("record 3\n")
	c.ask("say record 4")
	want("record 4\n")
	if s := c.sh(`stat -c %s svc/events`); s != "45\n" {
		t.Errorf("size: got %s, want 45", s)
	}
}

// TestBlockedReaders leaves with 300 reads waiting.
func TestBlockedReaders(t *testing.T) {
	c := mount(t)
	const n = 300
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		f, err := os.Open(c.path("svc/events.live"))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			b := make([]byte, 4096)
			_, err := syscall.Read(int(f.Fd()), b)
			for tries := 0; err == syscall.EINTR && tries < 3; tries++ { // a signal of Go's own scheduler
				_, err = syscall.Read(int(f.Fd()), b)
			}
			f.Close()
			errs <- err
		})
	}
	within(t, 10*time.Second, "blocked reads", func() bool { return c.stat("read") >= n })
	if rss := strings.Fields(c.ask("rss"))[0]; len(rss) > 5 && rss > "100000" {
		t.Errorf("resident size with %d readers: %s kB", n, rss)
	}
	start := time.Now()
	if s := c.sh(`cat svc/status | wc -l`); s != "2\n" {
		t.Errorf("cat beside them: got %q", s)
	}
	t.Logf("cat beside %d blocked readers: %v", n, time.Since(start))
	c.close()
	wg.Wait()
	for range n {
		if err := <-errs; err == nil || errors.Is(err, syscall.EINTR) {
			t.Fatalf("read at unmount: got %v, want an error that says that the tree is gone", err)
		}
	}
}

// TestInUse leaves while somebody stands in the tree with a file open.
func TestInUse(t *testing.T) {
	c := mount(t)
	f, err := os.Open(c.path("svc/made"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	start := time.Now()
	c.close()
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("unmount took %v", d)
	}
	if n, err := f.Read(make([]byte, 10)); err == nil {
		t.Errorf("read after the unmount: got %d bytes, want an error", n)
	}
}

// TestUmount is umount(8), without a word to the server.
func TestUmount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	c := mount(t)
	c.sh(`cat svc/status`)
	if err := syscall.Unmount(c.dir, 0); err != nil {
		t.Fatal(err)
	}
	c.close()
}

func TestStale(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	c := startChild(t, dir)
	c.cmd.Process.Kill()
	c.cmd.Wait()
	if _, err := os.Stat(dir); !errors.Is(err, syscall.ENOTCONN) {
		t.Fatalf("after kill -9: got %v, want %v", err, syscall.ENOTCONN)
	}
	c = startChild(t, dir)
	if s := c.sh(`cat svc/status | head -1`); s != "state=ready\n" {
		t.Errorf("got %q", s)
	}

	// A live one is not.
	second := exec.Command(os.Args[0])
	second.Env = append(os.Environ(), envChild+"="+dir)
	out, err := second.Output()
	if want := "device or resource busy"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("second mount: got %q %v, want %s", out, err, want)
	}
	if s := c.sh(`cat svc/status | head -1`); s != "state=ready\n" {
		t.Errorf("the first, after that: got %q", s)
	}
	c.close()
}

func TestPoint(t *testing.T) {
	needFuse(t)
	file := t.TempDir() + "/file"
	os.WriteFile(file, nil, 0o644)
	for _, tt := range []struct{ point, want string }{
		{file, "not a directory"},
		{file + "/none", "not a directory"},
		{t.TempDir() + "/none", "no such file or directory"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envChild+"="+tt.point)
		out, err := cmd.Output()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("mount %s: got %q %v, want %s", tt.point, out, err, tt.want)
		}
	}
}

// TestUsers tries as nobody what the modes allow, and what they do not.
func TestUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	c := mount(t)
	os.Chmod(c.dir+"/..", 0o755)
	os.Chmod(c.dir+"/../..", 0o755)
	c.sh(`echo secret >disk/s; chmod 600 disk/s; echo open >disk/o; chmod 644 disk/o`)
	as := `setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c `
	for _, tt := range []struct{ script, want string }{
		{`cat disk/o`, "open\n"},
		{`cat disk/s`, "cat: disk/s: Permission denied\n"},
		{`echo x >disk/o`, "sh: 1: cannot create disk/o: Permission denied\n"},
		{`echo x >svc/config`, "sh: 1: cannot create svc/config: Permission denied\n"},
		{`rm -f disk/o`, "rm: cannot remove 'disk/o': Permission denied\n"},
		{`touch disk/new`, "touch: cannot touch 'disk/new': Permission denied\n"},
		{`chmod 666 disk/o`, "chmod: changing permissions of 'disk/o': Operation not permitted\n"},
		{`cat hard/foreign`, "cat: hard/foreign: Permission denied\n"},
		{`echo mine >disk/nobody/f; cat disk/nobody/f; stat -c %U disk/nobody/f; rm disk/nobody/f`, "mine\nnobody\n"},
		{`stat -c "%U %G %a" disk/nobody hard/foreign disk/o`, "nobody nogroup 755\nUNKNOWN UNKNOWN 640\nroot root 644\n"},
	} {
		out, _ := c.try(as + "'" + tt.script + "'")
		if out != tt.want {
			t.Errorf("%s: got %q, want %q", tt.script, out, tt.want)
		}
	}
	if s := c.sh(`cat disk/o disk/s`); s != "open\nsecret\n" {
		t.Errorf("after that: got %q", s)
	}
}

func TestErrno(t *testing.T) {
	c := mount(t)
	write := func(text string) error {
		f, err := os.OpenFile(c.path("svc/ctl"), os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = f.WriteString(text)
		return err
	}
	c.sh(`touch disk/a disk/b`)
	open := func(path string, flag int) error {
		f, err := os.OpenFile(c.path(path), flag, 0o644)
		if err == nil {
			f.Close()
		}
		return err
	}
	for _, tt := range []struct {
		what string
		err  error
		want syscall.Errno
	}{
		{"good line", write("say hello\n"), 0},
		{"unknown command", write("sya hello\n"), syscall.EINVAL},
		{"busy", write("busy\n"), syscall.EBUSY},
		{"no connection", open("hard/reset", os.O_RDONLY), syscall.EIO},
		{"absent", open("svc/none", os.O_RDONLY), syscall.ENOENT},
		{"write to a status", open("svc/status", os.O_WRONLY), syscall.EACCES},
		{"create where none may", open("svc/../objects/new", os.O_RDWR|os.O_CREATE), syscall.EACCES},
		{"mkdir where none may", os.Mkdir(c.path("objects/new"), 0o755), syscall.EACCES},
		{"remove where none may", os.Remove(c.path("objects/00/00_0000000.soif")), syscall.EACCES},
		{"rename to elsewhere", os.Rename(c.path("svc/config"), c.path("disk/config")), syscall.EXDEV},
		{"exchange", unix.Renameat2(unix.AT_FDCWD, c.path("disk/a"), unix.AT_FDCWD, c.path("disk/b"), unix.RENAME_EXCHANGE), syscall.EINVAL},
		{"symlink", os.Symlink("a", c.path("disk/link")), syscall.EPERM},
		{"mknod", syscall.Mkfifo(c.path("disk/fifo"), 0o644), syscall.EPERM},
		{"remove a directory as a file", syscall.Unlink(c.path("disk/nobody")), syscall.EISDIR},
		{"set an attribute", unix.Setxattr(c.path("disk"), "user.harvest.x", []byte("y"), 0), syscall.EOPNOTSUPP},
		{"remove an attribute", unix.Removexattr(c.path("disk"), "user.harvest.x"), syscall.EOPNOTSUPP},
	} {
		if got := errnoOf(tt.err); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.what, tt.err, tt.want)
		}
	}
	if s := readFile(t, c.path("svc/err")); !strings.Contains(s, "busy") {
		t.Errorf("err: got %q, want the last refusal", s)
	}
}

func errnoOf(err error) syscall.Errno {
	var no syscall.Errno
	errors.As(err, &no)
	return no
}

func TestXattr(t *testing.T) {
	c := mount(t)
	file := c.path("objects/00/00_0000000.soif")
	b := make([]byte, 1000)
	n, err := unix.Listxattr(file, b)
	if want := "user.harvest.type\x00user.harvest.title\x00"; err != nil || string(b[:max(n, 0)]) != want {
		t.Errorf("list: got %q %v, want %q", b[:max(n, 0)], err, want)
	}
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"user.harvest.type", "FILE", nil},
		{"user.harvest.title", "number 0", nil},
		{"user.harvest.none", "", unix.ENODATA},
		{"user.other", "", unix.ENODATA},
		{"security.capability", "", unix.EOPNOTSUPP},
		{"system.posix_acl_access", "", unix.EOPNOTSUPP},
	} {
		n, err := unix.Getxattr(file, tt.name, b)
		if err != tt.err || string(b[:max(n, 0)]) != tt.want {
			t.Errorf("%s: got %q %v, want %q %v", tt.name, b[:max(n, 0)], err, tt.want, tt.err)
		}
	}
	if n, err := unix.Getxattr(file, "user.harvest.title", nil); n != 8 || err != nil {
		t.Errorf("size alone: got %d %v, want 8", n, err)
	}
	if _, err := unix.Getxattr(file, "user.harvest.title", make([]byte, 3)); err != unix.ERANGE {
		t.Errorf("too small: got %v, want %v", err, unix.ERANGE)
	}
	if n, err := unix.Listxattr(c.path("svc/status"), b); n != 0 || err != nil {
		t.Errorf("list of none: got %d %v", n, err)
	}
}

// TestRequests holds what a file costs.
func TestRequests(t *testing.T) {
	c := mount(t)
	count := func() map[string]int {
		m := map[string]int{}
		for _, name := range strings.Fields("lookup getattr open read flush release store kept readdir readdirplus opendir") {
			m[name] = c.stat(name)
		}
		return m
	}
	run := func(what string, want map[string]int) {
		t.Helper()
		before := count()
		c.sh(`! grep -r 'no such words' objects`)
		within(t, 5*time.Second, "releases", func() bool { return c.stat("release")-before["release"] == 512 })
		after := count()
		for name, n := range want {
			if got := after[name] - before[name]; got > n {
				t.Errorf("%s: %d %s requests for 512 files, want %d at most", what, got, name, n)
			}
		}
	}
	// Names of directories are kept for a second: on a slow machine some are
	// looked up again. Files are not, and there are twice as many.
	run("cold", map[string]int{"lookup": 300, "getattr": 10, "open": 512, "read": 20, "flush": 0, "store": 512, "kept": 0})
	// A listing is kept for a second: on a slow machine some are read again.
	// A page stored at open is now and then not there when it is read (seen
	// twice in 30 runs under load); one a file would be 512.
	run("warm", map[string]int{"lookup": 300, "getattr": 300, "open": 512, "read": 20, "flush": 0, "store": 0, "readdirplus": 100, "readdir": 100})
}

// TestFresh changes a file that the kernel has cached.
func TestFresh(t *testing.T) {
	t.Run("told", func(t *testing.T) {
		c := mount(t)
		c.ask("put f one")
		read := func(want string) {
			t.Helper()
			if got := readFile(t, c.path("disk/f")); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		within(t, 5*time.Second, "read from the page cache", func() bool {
			before := c.stat("kept")
			read("one")
			return c.stat("kept") == before+1
		})
		c.ask("put f one-and-two")
		within(t, 5*time.Second, "new size", func() bool {
			fi, err := os.Stat(c.path("disk/f"))
			return err == nil && fi.Size() == 11
		})
		read("one-and-two")
		if n := c.stat("invalinode"); n == 0 {
			t.Error("the kernel was not told")
		}
		c.ask("drop f")
		within(t, 5*time.Second, "removal", func() bool {
			_, err := os.Stat(c.path("disk/f"))
			return errors.Is(err, os.ErrNotExist)
		})
	})
	t.Run("not told", func(t *testing.T) {
		c := mount(t)
		c.ask("put f one")
		readFile(t, c.path("disk/f"))
		for i := range 5 {
			text := strings.Repeat("x", i+1)
			age(t)
			c.ask("slip f %s", text)
			if got := readFile(t, c.path("disk/f")); got != text {
				t.Fatalf("open after an untold change: got %q, want %q", got, text)
			}
			c.ask("slip f %s", text+"y")
			if got := readFile(t, c.path("disk/f")); got != text+"y" {
				t.Fatalf("open at once after an untold change: got %q, want %q", got, text+"y")
			}
		}
	})
	t.Run("size at open", func(t *testing.T) {
		c := mount(t)
		c.ask("put f one")
		readFile(t, c.path("disk/f"))
		age(t)
		c.ask("slip f longer")
		f, err := os.Open(c.path("disk/f"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if fi, err := f.Stat(); err != nil || fi.Size() != 6 {
			t.Errorf("size of the open file: got %v %v, want 6", fi.Size(), err)
		}
	})
	t.Run("same size and time", func(t *testing.T) {
		c := mount(t)
		os.WriteFile(c.path("disk/f"), []byte(strings.Repeat("old\n", 30000)), 0o644)
		for range 2 {
			within(t, 5*time.Second, "the writer's release", func() bool { return c.stat("handles") == 0 })
			readFile(t, c.path("disk/f"))
		}
		age(t)
		c.ask("swap f one\\")
		if got := readFile(t, c.path("disk/f")); got != strings.Repeat("one\\", 30000) {
			t.Errorf("got %.8q…, want the new text", got)
		}
	})
	t.Run("while open", func(t *testing.T) {
		c := mount(t)
		old := strings.Repeat("old\n", 300000)
		os.WriteFile(c.path("disk/f"), []byte(old), 0o644)
		within(t, 5*time.Second, "the writer's release", func() bool { return c.stat("handles") == 0 })
		age(t)
		f, err := os.Open(c.path("disk/f"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		head := make([]byte, 5000)
		io.ReadFull(f, head)
		for _, text := range []string{"new+", "two+"} {
			age(t)
			c.ask("swap f %s", text)
			if got := readFile(t, c.path("disk/f")); got != strings.Repeat(text, 300000) {
				t.Errorf("beside an open one: got %.8q…, want %s", got, text)
			}
		}
		rest, err := io.ReadAll(f)
		if err != nil || string(head)+string(rest) != old {
			t.Errorf("the open one: got other than what it opened (%v)", err)
		}
		if got := readFile(t, c.path("disk/f")); got != strings.Repeat("two+", 300000) {
			t.Errorf("after it: got %.8q…, want two+", got)
		}
	})
	t.Run("directory in use", func(t *testing.T) {
		c := mount(t)
		if err := os.Mkdir(c.path("disk/d"), 0o755); err != nil {
			t.Fatal(err)
		}
		c.ask("put mark x")
		within(t, 5*time.Second, "mark", func() bool {
			os.Stat(c.path("disk/mark"))
			return c.stat("invalinode") > 0 || c.ask("put mark x") == ""
		})
		f, err := os.Open(c.path("disk/d"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c.ask("entry d")
		before := c.stat("invalinode")
		// The kernel may have forgotten mark, and then is told nothing of it.
		within(t, 5*time.Second, "mark after the event", func() bool {
			os.Stat(c.path("disk/mark"))
			c.ask("put mark y")
			return c.stat("invalinode") > before
		})
		if name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); name != c.path("disk/d") {
			t.Errorf("name of a directory that stayed: got %s, want %s", name, c.path("disk/d"))
		}
	})
	t.Run("flood", func(t *testing.T) {
		c := mount(t)
		c.ask("put f one")
		readFile(t, c.path("disk/f"))
		os.Stat(c.path("disk/f"))
		c.ask("slip f longer")
		c.ask("flood")
		within(t, 5*time.Second, "distrust", func() bool { return c.stat("lostbus") > 0 })
		within(t, 5*time.Second, "new size", func() bool {
			fi, err := os.Stat(c.path("disk/f"))
			return err == nil && fi.Size() == 6
		})
	})
	t.Run("no bus", func(t *testing.T) {
		c := mount(t, "HARVEST_FUSE_NOBUS=1")
		c.ask("put f one")
		readFile(t, c.path("disk/f"))
		c.ask("put f four")
		within(t, 3*time.Second, "new text", func() bool { return readFile(t, c.path("disk/f")) == "four" })
		c.ask("drop f")
		within(t, 3*time.Second, "removal", func() bool {
			_, err := os.Stat(c.path("disk/f"))
			return errors.Is(err, os.ErrNotExist)
		})
	})
}

// TestHandles counts: each open is closed once, each writer's close flushes,
// fsync does.
func TestHandles(t *testing.T) {
	c := mount(t)
	f, err := os.Create(c.path("disk/f"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "text")
	f.Sync()
	f.Close()
	if got := c.ask("handles"); !strings.HasSuffix(got, " 2") {
		t.Errorf("opened, closed, flushed: got %s, want 2 flushes", got)
	}
	readFile(t, c.path("disk/f"))
	within(t, 5*time.Second, "closes", func() bool { return strings.HasPrefix(c.ask("handles"), "2 2 ") })
}

func TestExclusive(t *testing.T) {
	c := mount(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 50 {
		wg.Go(func() {
			f, err := os.OpenFile(c.path("disk/lock"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if err == nil {
				f.Close()
				mu.Lock()
				won++
				mu.Unlock()
			} else if !errors.Is(err, os.ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d made the file, want 1", won)
	}
}

// TestSeek goes back to each offset of a listing, on one open directory.
func TestSeek(t *testing.T) {
	c := mount(t)
	fd, err := unix.Open(c.path("flat"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	type at struct {
		name string
		next int64
	}
	read := func(size int) (out []at) {
		b := make([]byte, size)
		n, err := unix.Getdents(fd, b)
		if err != nil {
			t.Fatal(err)
		}
		for b = b[:n]; len(b) > 0; {
			length := int(b[16]) | int(b[17])<<8
			name := b[19:length]
			out = append(out, at{string(name[:bytes.IndexByte(name, 0)]), int64(uint64le(b[8:]))})
			b = b[length:]
		}
		return out
	}
	var all []at
	for len(all) < 5000 {
		all = append(all, read(4096)...)
	}
	for _, i := range []int{0, 1, 2, 3, 10, 999, 1023, 1024, 1025, 1026, 1027, 4000, 2500, 4999, 1} {
		if _, err := unix.Seek(fd, all[i].next, 0); err != nil {
			t.Fatal(err)
		}
		if got := read(4096); got[0] != all[i+1] {
			t.Errorf("after entry %d: got %v, want %v", i, got[0], all[i+1])
		}
	}
	unix.Seek(fd, 0, 0)
	if got := read(4096); got[0].name != "." || got[1].name != ".." {
		t.Errorf("from the beginning: got %v", got[:2])
	}
}

func uint64le(b []byte) (n uint64) {
	for i := range 8 {
		n |= uint64(b[i]) << (8 * i)
	}
	return n
}

// TestMillion lists a directory of 1,000,000 entries by name, and the first
// 200,000 with their attributes, which is more than the kernel is let know.
func TestMillion(t *testing.T) {
	if testing.Short() || raceOn {
		t.Skip("short, or under the race detector: a million takes its time")
	}
	c := mount(t, "HARVEST_FUSE_FLAT=200000")
	if s := c.sh(`ls -U million | wc -l`); s != "1000000\n" {
		t.Errorf("got %s names, want 1000000", s)
	}
	hwm := strings.Fields(c.ask("rss"))[1]
	if n, _ := strconv.Atoi(hwm); n > 100<<10 {
		t.Errorf("resident size: %d kB at most, want under 100 MB", n)
	}
	if s := c.sh(`ls -lU flat | wc -l`); s != "200001\n" {
		t.Errorf("got %s lines, want 200001", s)
	}
	after := strings.Fields(c.ask("rss"))[1]
	t.Logf("resident kB at most: %s after the names of 1,000,000, %s after ls -l of 200,000; %d nodes pruned", hwm, after, c.stat("prune"))
	within(t, 10*time.Second, "nodes", func() bool { return c.stat("nodes") <= maxNodes+1000 })
	if n, _ := strconv.Atoi(after); n > 150<<10 {
		t.Errorf("resident size after ls -l: %d kB", n)
	}
}

func TestReadOnly(t *testing.T) {
	c := mount(t, "HARVEST_FUSE_RO=1")
	if err := os.WriteFile(c.path("disk/x"), nil, 0o644); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write: got %v, want %v", err, syscall.EROFS)
	}
	if s := c.sh(`cat svc/status | head -1`); s != "state=ready\n" {
		t.Errorf("got %q", s)
	}
}

// TestTogether does everything at once; under -race the child is the one
// that is watched.
func TestTogether(t *testing.T) {
	c := mount(t)
	var wg sync.WaitGroup
	for i := range 3 {
		for _, script := range []string{
			`for k in 1 2; do grep -rl Keyword objects >/dev/null; done`,
			`for k in $(seq 8); do echo $k >disk/w%d; cat disk/w%d >/dev/null; mv disk/w%d disk/v%d; rm disk/v%d; done`,
			`for k in $(seq 8); do ls -l disk svc >/dev/null 2>&1; cat svc/status svc/events >/dev/null; done`,
			`for k in $(seq 8); do /bin/echo "depth=$k" >svc/config; echo say $k >svc/ctl; done`,
			`for k in $(seq 5); do timeout 0.05 cat svc/events.live >/dev/null; done; true`,
			`ls -U flat | head -2000 >/dev/null`,
		} {
			script = strings.ReplaceAll(script, "%d", fmt.Sprint(i))
			wg.Go(func() {
				if out, err := c.try(script); err != nil {
					t.Errorf("%s: %v\n%.500s", script, err, out)
				}
			})
		}
	}
	for k := range 50 {
		c.ask("put shared %d", k)
	}
	wg.Wait()
	if got := readFile(t, c.path("disk/shared")); got != "49" {
		t.Errorf("shared: got %q, want 49", got)
	}
}
