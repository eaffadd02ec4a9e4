package enginetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"harvest/index"
)

// A Fault tests an engine where writing fails: the error says so and names
// what failed, what was there stays, and when there is room it goes on.
type Fault[E Keeper] struct {
	Open func(dir string, src index.Source) (E, error)
	Read func(t *testing.T, e E, h *History) // as for Kill
}

// faultGrow is how many documents a step adds that is to fill something.
const faultGrow = 10

// step applies a step.
func (f Fault[E]) step(e E, h *History, step int) error {
	puts, deletes := h.Changes(step)
	h.begin(step)
	err := e.Apply(ctx, index.Docs(puts), deletes, fmt.Sprint(step))
	if err != nil {
		h.begin(step - 1)
	}
	return err
}

// want wants the engine to hold the first steps.
func (f Fault[E]) want(t *testing.T, e E, h *History, step int, when string) {
	t.Helper()
	if Step(e.Mark()) != step {
		t.Fatalf("%s: got mark %q, want %d", when, e.Mark(), step)
	}
	if err := e.Check(ctx); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	f.Read(t, e, h)
}

// namesFile wants an error of a class that tells the file.
func namesFile(t *testing.T, err, class error, dir string) {
	t.Helper()
	if !errors.Is(err, class) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got error %v, want one of class %v that names a file of %s", err, class, dir)
	}
}

func (f Fault[E]) open(t *testing.T, dir string, h *History) E {
	t.Helper()
	e, err := f.Open(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// FullDisk fills a small file system. It needs to mount one.
func (f Fault[E]) FullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=400k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	h := Growing(1, faultGrow)
	e := f.open(t, dir, h)
	n := 0
	var err error
	for ; err == nil; n++ {
		err = f.step(e, h, n+1)
	}
	n-- // steps done
	namesFile(t, err, syscall.ENOSPC, dir)
	f.want(t, e, h, n, "full")
	if err := f.step(e, h, n+1); err == nil {
		t.Logf("one more step had room after all") // a merge has given some back
		n++
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	e = f.open(t, dir, h)
	f.want(t, e, h, n, "opened while full")
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=40m"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n++
		if err := f.step(e, h, n); err != nil {
			t.Fatalf("with room again: %v", err)
		}
	}
	f.want(t, e, h, n, "with room again")
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d steps", n)
}

// FailingWrite has no file grow beyond one size after another. A process of
// its own does it, as it cannot write any file.
func (f Fault[E]) FailingWrite(t *testing.T) {
	dir := os.Getenv("HARVEST_FAULT_DIR")
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run="+only(t), "-test.timeout=5m", "-test.v")
		cmd.Env = append(os.Environ(), "HARVEST_FAULT_DIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	h := Growing(1, faultGrow)
	e := f.open(t, dir, h)
	failed := 0
	n := 0
	for _, size := range []uint64{0, 15, 1000, 9000, 20_000, 100_000} {
		err := limited(t, size, func() error { return f.step(e, h, n+1) })
		if err == nil {
			n++
		} else {
			failed++
			namesFile(t, err, syscall.EFBIG, dir)
		}
		f.want(t, e, h, n, fmt.Sprintf("no file beyond %d bytes", size))
		if size%3 == 0 {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			e = f.open(t, dir, h)
			f.want(t, e, h, n, "opened again")
		}
		n++
		if err := f.step(e, h, n); err != nil {
			t.Fatalf("without a limit again, after one of %d bytes: %v", size, err)
		}
		f.want(t, e, h, n, "without a limit")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if failed < 3 {
		t.Errorf("got %d applies that failed, want more", failed)
	}
}

// limited runs what writes no file beyond size.
func limited(t *testing.T, size uint64, run func() error) error {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	}()
	return run()
}
