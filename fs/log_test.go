package fs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"harvest/fs"
)

func TestLog(t *testing.T) {
	l := fs.NewLog(100)
	f := l.File(1)
	if got := f.Stat(); got.Size != 0 || got.Kind != fs.Growing {
		t.Errorf("empty: got %+v", got)
	}
	l.Add("one")
	l.Add("two\nlines\n")
	fmt.Fprintf(l, "three\nfour\n")
	if got, want := text(t, f), "one\ntwo lines\nthree\nfour\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.Stat().Size, int64(len("one\ntwo lines\nthree\nfour\n")); got != want {
		t.Errorf("got size %d, want %d", got, want)
	}
	h, err := f.Open(t.Context(), fs.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	at := int64(len(rest(t, h)))
	l.Add("five")
	buf := make([]byte, 100)
	if n, _ := h.ReadAt(t.Context(), buf, at); string(buf[:n]) != "five\n" {
		t.Errorf("what grew since: got %q, want five", buf[:n])
	}
	vers := f.Stat().Vers
	l.Add("six")
	if f.Stat().Vers == vers {
		t.Error("the version stays with a record more")
	}
	if _, err := f.Open(t.Context(), fs.Write); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("open for writing: got %v", err)
	}
}

// TestLogBound adds records of many lengths and wants the newest, whole, and
// within the bound.
func TestLogBound(t *testing.T) {
	for _, max := range []int{0, 1, 10, 64, 1000} {
		l := fs.NewLog(max)
		var all []string
		for i := range 300 {
			rec := fmt.Sprintf("%d %s", i, strings.Repeat("x", i*7%40))
			all = append(all, rec+"\n")
			l.Add(rec)
			got := text(t, l.File(1))
			if len(got) > max && got != rec+"\n" {
				t.Fatalf("max %d: got %d bytes, want the bound kept, or one record", max, len(got))
			}
			if !strings.HasSuffix(strings.Join(all, ""), "\n"+got) && got != strings.Join(all, "") {
				t.Fatalf("max %d: got %q, want whole records from the end", max, got)
			}
			if len(strings.Join(all, "")) > max && max > 200 && len(got) < max/2-50 {
				t.Fatalf("max %d: got %d bytes only", max, len(got))
			}
		}
	}
}

// one reads once from a live handle.
func one(t *testing.T, ctx context.Context, h fs.Handle, size int) string {
	t.Helper()
	buf := make([]byte, size)
	n, err := h.ReadAt(ctx, buf, 0)
	if err != nil {
		t.Errorf("read: %v", err)
	}
	return string(buf[:n])
}

func open(t *testing.T, f fs.File) fs.Handle {
	t.Helper()
	h, err := f.Open(t.Context(), fs.Read)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestLive(t *testing.T) {
	l := fs.NewLog(1000)
	l.Add("before")
	h, h2 := open(t, l.Live(2)), open(t, l.Live(2))
	l.Add("one")
	l.Add("two")
	for _, want := range []string{"one\n", "two\n"} {
		if got := one(t, t.Context(), h, 100); got != want {
			t.Errorf("got %q, want %q, a record a read", got, want)
		}
	}
	if got := one(t, t.Context(), h2, 2) + "|" + one(t, t.Context(), h2, 100) + "|" + one(t, t.Context(), h2, 100); got != "on|e\n|two\n" {
		t.Errorf("by two bytes: got %q, want the rest kept for the next read", got)
	}
}

// TestLiveBlocks has a reader wait for a record, be called off, and lose
// nothing by that.
func TestLiveBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fs.NewLog(1000)
		h := open(t, l.Live(2))
		ctx, cancel := context.WithCancel(t.Context())
		var errs [2]error
		var readers sync.WaitGroup
		for i := range errs {
			readers.Go(func() { _, errs[i] = h.ReadAt(ctx, make([]byte, 10), 0) })
		}
		synctest.Wait() // one waits for a record, the other for its turn
		cancel()
		readers.Wait()
		for _, err := range errs {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("called off: got %v, want context.Canceled", err)
			}
		}
		got := make(chan string)
		go func() { got <- one(t, t.Context(), h, 100) }()
		synctest.Wait()
		select {
		case s := <-got:
			t.Errorf("got %q before there was a record", s)
		default:
		}
		l.Add("next")
		if s := <-got; s != "next\n" {
			t.Errorf("got %q, want next", s)
		}
		if n, err := h.ReadAt(t.Context(), nil, 0); n != 0 || err != nil {
			t.Errorf("read of nothing: got %d, %v, want it not to wait", n, err)
		}
	})
}

// TestLiveLost has a reader fall behind what is kept.
func TestLiveLost(t *testing.T) {
	l := fs.NewLog(60)
	h := open(t, l.Live(2))
	for i := range 100 {
		l.Add(fmt.Sprintf("record %02d", i)) // ten bytes each
	}
	kept := strings.Count(text(t, l.File(1)), "\n")
	if got, want := one(t, t.Context(), h, 100), fmt.Sprintf("lost %d\n", 100-kept); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := 100 - kept; i < 100; i++ {
		if got, want := one(t, t.Context(), h, 100), fmt.Sprintf("record %02d\n", i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	l.Add("after")
	if got := one(t, t.Context(), h, 100); got != "after\n" {
		t.Errorf("got %q, want after", got)
	}
}

// TestWait holds the form for shells: blocks for the first record, gives
// what there is, ends.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fs.NewLog(1000)
		l.Add("before")
		h, off := open(t, l.Wait(3)), open(t, l.Wait(3))
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error)
		go func() {
			_, err := off.ReadAt(ctx, make([]byte, 10), 0)
			called <- err
		}()
		got := make(chan string)
		go func() { got <- rest(t, h) }()
		synctest.Wait()
		cancel()
		if err := <-called; !errors.Is(err, context.Canceled) {
			t.Errorf("called off: got %v, want context.Canceled", err)
		}
		l.Add("one")
		if s := <-got; s != "one\n" {
			t.Errorf("got %q, want one", s)
		}
		l.Add("two")
		if s := rest(t, h); s != "one\n" {
			t.Errorf("the same again: got %q, want what it gave before", s)
		}
		if s := rest(t, off); s != "one\ntwo\n" {
			t.Errorf("after being called off: got %q, want all since it was opened", s)
		}
		if n, err := h.ReadAt(t.Context(), make([]byte, 1), 4); n != 0 || err != io.EOF {
			t.Errorf("at its end: got %d, %v, want EOF", n, err)
		}
	})
}

// TestLogTogether has writers and readers at once, for the race detector.
func TestLogTogether(t *testing.T) {
	l := fs.NewLog(500)
	var all sync.WaitGroup
	h := open(t, l.Live(2))
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		all.Go(func() {
			for i := range 200 {
				l.Add(fmt.Sprintf("record %d", i))
				l.File(1).Stat()
			}
		})
	}
	lines, lost := 0, 0
	all.Go(func() {
		for lines+lost < 600 {
			var n int
			buf := make([]byte, 100)
			k, err := h.ReadAt(ctx, buf, 0)
			if err != nil {
				t.Errorf("read: %v", err)
				return
			}
			if _, err := fmt.Sscanf(string(buf[:k]), "lost %d", &n); err == nil {
				lost += n
			} else {
				lines++
			}
		}
	})
	all.Wait()
	cancel()
	if lines+lost != 600 {
		t.Errorf("got %d records and %d lost, want 600 in all", lines, lost)
	}
}

func TestLogTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fs.NewLog(100)
		f := l.File(1)
		if got := f.Stat().Mtime; !got.IsZero() {
			t.Errorf("empty: got %v, want no time", got)
		}
		l.Add("one")
		want := time.Now()
		time.Sleep(time.Minute)
		if got := f.Stat().Mtime; !got.Equal(want) {
			t.Errorf("got %v, want that of the newest record, %v", got, want)
		}
	})
}
