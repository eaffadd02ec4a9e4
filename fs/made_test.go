package fs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"harvest/fs"
)

// counting writes n lines of a kilobyte, and notes how far it came.
func counting(n int, wrote *atomic.Int64) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		for i := range n {
			k, err := fmt.Fprintf(w, "%01023d\n", i)
			wrote.Add(int64(k))
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func TestStream(t *testing.T) {
	for _, lines := range []int{0, 1, 256, 257, 3000} { // 256 fill the memory kept
		var wrote atomic.Int64
		f := fs.Stream(1, 7, counting(lines, &wrote))
		if st := f.Stat(); st.Kind != fs.Made || st.Vers != 7 || st.Size != 0 {
			t.Errorf("got %+v", st)
		}
		h := open(t, f)
		if wrote.Load() != 0 {
			t.Error("produced before it was read")
		}
		var want bytes.Buffer
		counting(lines, new(atomic.Int64))(t.Context(), &want)
		for range 2 {
			if got := rest(t, h); got != want.String() {
				t.Fatalf("%d lines: got %d bytes, want %d", lines, len(got), want.Len())
			}
		}
		for range 20 {
			if want.Len() == 0 {
				break
			}
			off := rand.IntN(want.Len())
			buf := make([]byte, 1+rand.IntN(5000))
			n, err := h.ReadAt(t.Context(), buf, int64(off))
			if err != nil && err != io.EOF || n == 0 || !bytes.Equal(buf[:n], want.Bytes()[off:off+n]) {
				t.Fatalf("%d lines: %d bytes at %d: got %d, %v", lines, len(buf), off, n, err)
			}
		}
	}
	if _, err := fs.Stream(1, 0, nil).Open(t.Context(), fs.Write); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("open for writing: got %v", err)
	}
}

// TestStreamAhead has the producer run no further than its bound.
func TestStreamAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrote atomic.Int64
		h, err := fs.Stream(1, 0, counting(100_000, &wrote)).Open(t.Context(), fs.Read)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1000)
		for _, off := range []int64{0, 5 << 20} {
			if _, err := h.ReadAt(t.Context(), buf, off); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got, most := wrote.Load(), off+1000+1<<20+2048; got > most || got < off {
				t.Errorf("after a read at %d: %d bytes produced, want at most %d", off, got, most)
			}
		}
		if err := h.Close(); err != nil { // and the producer ends, or the bubble complains
			t.Errorf("close: %v", err)
		}
		if _, err := h.ReadAt(t.Context(), buf, 0); !errors.Is(err, iofs.ErrClosed) {
			t.Errorf("read after close: got %v", err)
		}
	})
}

// TestStreamEnds has reads called off, and the producer told when the file
// is closed.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fs.Stream(1, 0, func(ctx context.Context, w io.Writer) error {
			io.WriteString(w, "some")
			<-ctx.Done()
			return ctx.Err()
		})
		h, err := f.Open(t.Context(), fs.Read)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error)
		go func() {
			_, err := h.ReadAt(ctx, make([]byte, 10), 4)
			called <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-called; !errors.Is(err, context.Canceled) {
			t.Errorf("called off: got %v", err)
		}
		if got := one(t, t.Context(), h, 4); got != "some" {
			t.Errorf("then: got %q, want what was there", got)
		}
		var readers sync.WaitGroup
		readers.Go(func() {
			if _, err := h.ReadAt(t.Context(), make([]byte, 10), 4); err == nil {
				t.Error("read of what will not come, at close: got no error")
			}
		})
		synctest.Wait()
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		readers.Wait()
	})
}

// TestStreamError has the producer fail: what came before can be read.
func TestStreamError(t *testing.T) {
	f := fs.Stream(1, 0, func(_ context.Context, w io.Writer) error {
		io.WriteString(w, "some")
		return iofs.ErrPermission
	})
	h := open(t, f)
	buf := make([]byte, 10)
	n, err := h.ReadAt(t.Context(), buf, 0)
	if string(buf[:n]) != "some" || err != nil {
		t.Errorf("got %q, %v, want some", buf[:n], err)
	}
	if n, err := h.ReadAt(t.Context(), buf, 4); n != 0 || !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("at its end: got %d, %v, want the producer's error", n, err)
	}
}

func TestBytes(t *testing.T) {
	loads := 0
	fail := errors.New("disk")
	f := fs.Bytes(fs.Stat{Path: 5, Size: 5, Mode: 0o444}, func(ctx context.Context) ([]byte, error) {
		loads++
		if loads == 1 {
			return nil, fail
		}
		return []byte("12345"), ctx.Err()
	})
	h := open(t, f)
	if loads != 0 {
		t.Error("loaded before it was read")
	}
	if _, err := h.ReadAt(t.Context(), make([]byte, 3), 0); err != fail {
		t.Errorf("got %v, want what load said", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.ReadAt(ctx, make([]byte, 3), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	loads = 1 // it may have been called off before it was asked
	for range 3 {
		if got := rest(t, h); got != "12345" {
			t.Errorf("got %q", got)
		}
	}
	if loads != 2 {
		t.Errorf("loaded %d times, want once for an open file", loads-1)
	}
	if got := text(t, f); got != "12345" || loads != 3 {
		t.Errorf("opened again: got %q after %d loads", got, loads-1)
	}
}

// TestSnapshot holds that an open Text is what it was at open.
func TestSnapshot(t *testing.T) {
	now := "one"
	f := fs.Text(5, func() string { return now })
	h := open(t, f)
	vers := f.Stat().Vers
	now = "three"
	if got := rest(t, h); got != "one" {
		t.Errorf("got %q, want one", got)
	}
	if got := text(t, f); got != "three" {
		t.Errorf("got %q, want three", got)
	}
	if st := f.Stat(); st.Vers == vers || st.Size != 5 {
		t.Errorf("got %+v, want another version, of 5 bytes", st)
	}
	if _, err := h.WriteAt(t.Context(), nil, 0); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("write: got %v", err)
	}
}

func BenchmarkStream(b *testing.B) {
	const size = 8 << 20
	chunk := make([]byte, 64<<10)
	f := fs.Stream(1, 0, func(_ context.Context, w io.Writer) error {
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return err
			}
		}
		return nil
	})
	b.Run("bytes=8M/read=64K", func(b *testing.B) {
		b.SetBytes(size)
		buf := make([]byte, 64<<10)
		for b.Loop() {
			h, err := f.Open(b.Context(), fs.Read)
			if err != nil {
				b.Fatal(err)
			}
			for off := int64(0); off < size; off += int64(len(buf)) {
				if n, err := h.ReadAt(b.Context(), buf, off); n != len(buf) || err != nil {
					b.Fatal(n, err)
				}
			}
			h.Close()
		}
	})
}

// A read of what comes slowly is answered with what has come.
func TestStreamSlow(t *testing.T) {
	more := make(chan struct{})
	f := fs.Stream(fs.ID("slow"), 0, func(ctx context.Context, w io.Writer) error {
		for range 2 {
			if _, err := io.WriteString(w, "line\n"); err != nil {
				return err
			}
			select {
			case <-more:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	h, err := f.Open(context.Background(), fs.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	buf := make([]byte, 100)
	for i, want := range []string{"line\n", "line\n", ""} {
		n, err := h.ReadAt(context.Background(), buf, int64(5*i))
		if got := string(buf[:n]); got != want || (err == io.EOF) != (i == 2) {
			t.Errorf("read %d: got %q %v, want %q", i, got, err, want)
		}
		if i < 2 {
			more <- struct{}{}
		}
	}
}
