package fs_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
)

// service has a config: lines of limit=N.
type service struct {
	mu   sync.Mutex
	text string
	sets int

	conf    *fs.ConfigFile
	refused *fs.Err
	dir     fs.Dir
}

func newService(text string) *service {
	s := &service{text: text, refused: fs.NewErr(3)}
	s.conf = fs.Config(2, s.refused, s.read, s.set)
	s.dir = fs.Static(fs.RootPath, map[string]fs.Node{"config": s.conf, "err": s.refused})
	return s
}

func (s *service) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

func (s *service) set(_ context.Context, text string) error {
	entries, err := ndb.Parse(text)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := e.Int(e.First()); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
	s.sets++
	return nil
}

// rejected reads config.rejected; ok tells whether it is there.
func (s *service) rejected(t *testing.T) (string, bool) {
	t.Helper()
	n, err := s.dir.Lookup(t.Context(), "config.rejected")
	if errors.Is(err, iofs.ErrNotExist) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return text(t, n.(fs.File)), true
}

// is checks the running text, and that an open of the file reads it.
func (s *service) is(t *testing.T, want string) {
	t.Helper()
	if got := s.read(); got != want {
		t.Errorf("in force: got %q, want %q", got, want)
	}
	if got := text(t, s.conf); got != want {
		t.Errorf("reads as %q, want %q", got, want)
	}
	if got := s.conf.Stat().Size; got != int64(len(want)) {
		t.Errorf("got size %d, want %d", got, len(want))
	}
}

func TestConfigWrite(t *testing.T) {
	s := newService("limit=1\n")
	vers := s.conf.Stat().Vers
	if err := write(t, s.conf, fs.Trunc, "limit=2\n"); err != nil {
		t.Fatal(err)
	}
	s.is(t, "limit=2\n")
	if s.conf.Stat().Vers == vers {
		t.Error("the version stays with another text")
	}
	if err := write(t, s.conf, fs.Append, "more=3\n"); err != nil {
		t.Fatal(err)
	}
	s.is(t, "limit=2\nmore=3\n")
	if err := write(t, s.conf, 0, "LIMIT"); err != nil { // as dd conv=notrunc
		t.Fatal(err)
	}
	s.is(t, "LIMIT=2\nmore=3\n")
	sets := s.sets
	if err := write(t, s.conf, 0, ""); err != nil || s.sets != sets {
		t.Errorf("opened for writing and closed: got %v and %d texts put in force, want none", err, s.sets-sets)
	}
	if err := write(t, s.conf, fs.Trunc, ""); err != nil {
		t.Fatal(err)
	}
	s.is(t, "") // at the close of :>config
}

func TestConfigRefused(t *testing.T) {
	s := newService("limit=1\n")
	err := write(t, s.conf, fs.Trunc, "limit=2\nlimit=lots # of them\nlimit=3\n")
	if want := "line 2, column 1: limit: lots is not a number"; err == nil || err.Error() != want || !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("got %v, want %s", err, want)
	}
	s.is(t, "limit=1\n")
	if got, want := text(t, s.refused), "config: line 2, column 1: limit: lots is not a number\n\tlimit=lots # of them\n"; got != want {
		t.Errorf("err: got %q, want %q", got, want)
	}
	if got, ok := s.rejected(t); !ok || got != "limit=2\nlimit=lots # of them\nlimit=3\n" {
		t.Errorf("config.rejected: got %q, %t, want the text that was refused", got, ok)
	}
	if got := names(t, s.dir, ""); strings.Join(got, " ") != "config config.rejected err" {
		t.Errorf("got %q", got)
	}
	if err := write(t, s.conf, fs.Trunc, "limit=4\n"); err != nil {
		t.Fatal(err)
	}
	s.is(t, "limit=4\n")
	if got, ok := s.rejected(t); ok {
		t.Errorf("config.rejected: still %q after a good text", got)
	}
	if got := text(t, s.refused); got != "" {
		t.Errorf("err: still %q after a good text", got)
	}
}

// TestConfigLines has a whole line refused at the write that completes it.
func TestConfigLines(t *testing.T) {
	s := newService("limit=1\n")
	s.conf.Lines(func(line string, n int) error {
		e, err := ndb.ParseLine(line, n)
		if err == nil && len(e.Pairs) > 0 {
			_, err = e.Int(e.First())
		}
		return err
	})
	h, err := s.conf.Open(t.Context(), fs.Write|fs.Trunc)
	if err != nil {
		t.Fatal(err)
	}
	off := int64(0)
	put := func(text string) error {
		n, err := h.WriteAt(t.Context(), []byte(text), off)
		off += int64(n)
		return err
	}
	for _, part := range []string{"# first\nlim", "it=", "2\n", "limit=lo"} {
		if err := put(part); err != nil {
			t.Fatalf("%q: got %v, want lines that are not whole to pass", part, err)
		}
	}
	want := "line 3, column 1: limit: lots is not a number"
	if err := put("ts\nlimit=5\n"); err == nil || err.Error() != want {
		t.Errorf("the line made whole: got %v, want %s", err, want)
	}
	if err := put("limit=6\n"); err == nil {
		t.Error("a line after the bad one: got no error")
	}
	if err := h.Flush(t.Context()); err == nil {
		t.Error("flush: got no error")
	}
	h.Close()
	s.is(t, "limit=1\n")
	if got := text(t, s.refused); !strings.Contains(got, want) {
		t.Errorf("err: got %q, want %q", got, want)
	}
	if err := write(t, s.conf, fs.Trunc, "limit=7\n"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	s.is(t, "limit=7\n")
}

// TestConfigShared has two writers on one draft, as when a shell's > is
// inherited: each flush that follows a change puts the whole in force.
func TestConfigShared(t *testing.T) {
	s := newService("limit=1\n")
	a, err := s.conf.Open(t.Context(), fs.Write|fs.Trunc)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.conf.Open(t.Context(), fs.Read|fs.Write|fs.Append)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = a.WriteAt(t.Context(), []byte("limit=2\n"), 0)
	must(err)
	_, err = b.WriteAt(t.Context(), []byte("limit=3\n"), 0)
	must(err)
	if got, want := rest(t, b), "limit=2\nlimit=3\n"; got != want {
		t.Errorf("a writer reads %q, want the draft %q", got, want)
	}
	if got := s.conf.Stat().Size; got != 16 {
		t.Errorf("got size %d, want the draft's, 16", got)
	}
	if got := text(t, s.conf); got != "limit=1\n" {
		t.Errorf("a reader reads %q, want what is in force", got)
	}
	must(a.Flush(t.Context()))
	must(b.Flush(t.Context()))
	if s.sets != 1 {
		t.Errorf("put in force %d times, want 1", s.sets)
	}
	must(a.Close())
	_, err = b.WriteAt(t.Context(), []byte("limit=4\n"), 0)
	must(err)
	must(b.Flush(t.Context()))
	must(b.Close())
	s.is(t, "limit=2\nlimit=3\nlimit=4\n")
}

func TestConfigTruncate(t *testing.T) {
	s := newService("limit=12\n")
	set := func(n int64) error { return s.conf.Set(t.Context(), fs.Change{Size: &n}) }
	if err := set(7); err != nil {
		t.Fatal(err)
	}
	s.is(t, "limit=1")
	if err := set(6); err == nil {
		t.Error("to a text that is bad: got no error")
	}
	s.is(t, "limit=1")
	for _, n := range []int64{-1, fs.MaxConfig + 1} {
		if err := set(n); fs.Errno(err) != syscall.EFBIG {
			t.Errorf("to %d: got %v, want EFBIG", n, err)
		}
	}
	// ftruncate(2) while open, as vim and v9fs do it
	h, err := s.conf.Open(t.Context(), fs.Write)
	if err != nil {
		t.Fatal(err)
	}
	if err := set(0); err != nil {
		t.Fatal(err)
	}
	if got := s.read(); got != "limit=1" {
		t.Errorf("in force before the write is complete: %q", got)
	}
	if _, err := h.WriteAt(t.Context(), []byte("limit=9\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Close()
	s.is(t, "limit=9\n")
	mode := iofs.FileMode(0o600)
	if err := s.conf.Set(t.Context(), fs.Change{Mode: &mode}); err != nil {
		t.Errorf("chmod, which editors do: %v", err)
	}
}

// TestConfigGrow has truncation to more bytes than there are: no NULs come
// into a text by that.
func TestConfigGrow(t *testing.T) {
	s := newService("limit=1\n")
	n := int64(20)
	if err := s.conf.Set(t.Context(), fs.Change{Size: &n}); err != nil {
		t.Errorf("got %v", err)
	}
	s.is(t, "limit=1\n")
}

func TestConfigBound(t *testing.T) {
	s := newService("limit=1\n")
	h, err := s.conf.Open(t.Context(), fs.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, off := range []int64{fs.MaxConfig, 1 << 40, 1<<63 - 1, -1} {
		if n, err := h.WriteAt(t.Context(), []byte("x"), off); n != 0 || fs.Errno(err) != syscall.EFBIG {
			t.Errorf("write at %d: got %d, %v, want EFBIG", off, n, err)
		}
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Errorf("flush after them: %v", err)
	}
	s.is(t, "limit=1\n")
}

// TestConfigTogether has writers, readers and checks at once: whatever is
// read is a whole text that was written.
func TestConfigTogether(t *testing.T) {
	s := newService("limit=0\n")
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 50 {
				line := fmt.Sprintf("limit=%d%03d\n", w+1, i)
				h, err := s.conf.Open(t.Context(), fs.Write)
				if err != nil {
					t.Error(err)
					return
				}
				h.WriteAt(t.Context(), []byte(line), 0)
				h.Flush(t.Context())
				h.Close()
				s.conf.Stat()
			}
		})
		all.Go(func() {
			for range 50 {
				h, err := s.conf.Open(t.Context(), fs.Read)
				if err != nil {
					t.Error(err)
					return
				}
				buf := make([]byte, 100)
				n, _ := h.ReadAt(t.Context(), buf, 0)
				h.Close()
				if got := string(buf[:n]); got != "limit=0\n" && (len(got) != 11 || !strings.HasPrefix(got, "limit=") || got[10] != '\n') {
					t.Errorf("got %q, want a text that was written", got)
				}
			}
		})
	}
	all.Wait()
}

// TestConfigTime sees what rsync and make go by: a text of the same length
// as the last is as new as its write, and one that is refused changes nothing.
func TestConfigTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService("limit=1\n")
		if got := s.conf.Stat().Mtime; !got.IsZero() {
			t.Errorf("before any write: got %v, want no time", got)
		}
		time.Sleep(time.Minute)
		if err := s.conf.Replace(t.Context(), []byte("limit=2\n")); err != nil {
			t.Fatal(err)
		}
		want := time.Now()
		time.Sleep(time.Minute)
		if err := s.conf.Replace(t.Context(), []byte("limit=x\n")); err == nil {
			t.Error("limit=x: got no error")
		}
		if got := s.conf.Stat().Mtime; !got.Equal(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestConfigAborted has writers that truncate and vanish: an emptied text is
// in force only if who emptied it closes.
func TestConfigAborted(t *testing.T) {
	type step struct {
		who int
		do  string // open, trunc, ftruncate, write, abort, close
	}
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"closed":              {[]step{{0, "trunc"}, {0, "close"}}, ""},
		"aborted":             {[]step{{0, "trunc"}, {0, "abort"}}, "limit=1\n"},
		"aborted, wrote":      {[]step{{0, "trunc"}, {0, "write"}, {0, "abort"}}, "limit=1\n"},
		"aborted, ftruncate":  {[]step{{0, "open"}, {0, "ftruncate"}, {0, "abort"}}, "limit=1\n"},
		"closed, ftruncate":   {[]step{{0, "open"}, {0, "ftruncate"}, {0, "close"}}, ""},
		"another one aborts":  {[]step{{0, "trunc"}, {1, "open"}, {1, "abort"}, {0, "close"}}, ""},
		"and after it":        {[]step{{0, "trunc"}, {1, "open"}, {0, "close"}, {1, "abort"}}, ""},
		"another one closes":  {[]step{{0, "trunc"}, {1, "open"}, {0, "abort"}, {1, "close"}}, "limit=1\n"},
		"another one appends": {[]step{{0, "trunc"}, {1, "open"}, {0, "abort"}, {1, "write"}, {1, "close"}}, "limit=1\nlimit=2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService("limit=1\n")
			var h [2]fs.Handle
			for _, st := range c.steps {
				var err error
				switch st.do {
				case "open":
					h[st.who], err = s.conf.Open(t.Context(), fs.Write|fs.Append)
				case "trunc":
					h[st.who], err = s.conf.Open(t.Context(), fs.Write|fs.Trunc)
				case "ftruncate":
					err = s.conf.Set(t.Context(), fs.Change{Size: new(int64)})
				case "write":
					_, err = h[st.who].WriteAt(t.Context(), []byte("limit=2\n"), 0)
				case "abort":
					if a, ok := h[st.who].(fs.Aborter); ok {
						a.Abort()
					}
					err = h[st.who].Close()
				case "close":
					err = errors.Join(h[st.who].Flush(t.Context()), h[st.who].Close())
				}
				if err != nil {
					t.Fatalf("%d %s: %v", st.who, st.do, err)
				}
			}
			s.is(t, c.want)
		})
	}
}
