package fs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"syscall"
	"testing"

	"harvest/fs"
)

// text reads a file as a new reader would.
func text(t *testing.T, f fs.File) string {
	t.Helper()
	h, err := f.Open(t.Context(), fs.Read)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer h.Close()
	return rest(t, h)
}

// rest reads a handle from its start.
func rest(t *testing.T, h fs.Handle) string {
	t.Helper()
	var out []byte
	buf := make([]byte, 1000)
	for {
		n, err := h.ReadAt(t.Context(), buf, int64(len(out)))
		out = append(out, buf[:n]...)
		if err == io.EOF {
			return string(out)
		}
		if err != nil {
			t.Fatalf("read: %v", err)
		}
	}
}

// write does what a shell's > does, or >> with fs.Append.
func write(t *testing.T, f fs.File, how fs.Mode, lines string) error {
	t.Helper()
	h, err := f.Open(t.Context(), fs.Write|how)
	if err != nil {
		return err
	}
	defer h.Close()
	if lines != "" {
		if _, err := h.WriteAt(t.Context(), []byte(lines), 0); err != nil {
			return err
		}
	}
	return h.Flush(t.Context())
}

func TestCtl(t *testing.T) {
	var ran []string
	note := func(name string) func(context.Context, []string) error {
		return func(_ context.Context, arg []string) error {
			ran = append(ran, fmt.Sprintf("%s%q", name, arg))
			if len(arg) > 0 && arg[0] == "bad" {
				return errors.New("bad is bad")
			}
			if len(arg) > 0 && arg[0] == "full" {
				return syscall.ENOSPC
			}
			return nil
		}
	}
	refused := fs.NewErr(2)
	c := fs.Ctl(1, refused,
		fs.On("run", note("run")),
		fs.On("fetch URL...", note("fetch")),
		fs.On("collect [SOURCE]", note("collect")),
		fs.On("lifetime OID DURATION", note("lifetime")),
		fs.On("set NAME [VALUE...]", note("set")),
		fs.OnText("query TEXT", func(_ context.Context, text string) error {
			ran = append(ran, "query "+text)
			return nil
		}))
	if got, want := text(t, c), "run\nfetch URL...\ncollect [SOURCE]\nlifetime OID DURATION\nset NAME [VALUE...]\nquery TEXT\n"; got != want {
		t.Errorf("reads as %q, want the usages %q", got, want)
	}
	if got, want := c.Stat().Size, int64(len(text(t, c))); got != want {
		t.Errorf("got size %d, want %d", got, want)
	}
	tests := []struct {
		in   string
		ran  string
		err  string // "" is none
		told string // err after it, "" for the error and the line
	}{
		{"run\n", "run[]", "", ""},
		{"run", "run[]", "", ""},
		{"  run  \n\n# comment\n", "run[]", "", ""},
		{"", "", "", ""},
		{"run\nfetch a b\n", `run[] fetch["a" "b"]`, "", ""},
		{"fetch 'a b' 'it''s'", `fetch["a b" "it's"]`, "", ""},
		{"collect", "collect[]", "", ""},
		{"collect a", `collect["a"]`, "", ""},
		{"set a", `set["a"]`, "", ""},
		{"set a b c", `set["a" "b" "c"]`, "", ""},
		{"lifetime a 3h", `lifetime["a" "3h"]`, "", ""},
		{"query  title : 'a b' # c ", "query title : 'a b' # c", "", ""},
		{"query\tx", "query x", "", ""},
		{"runn", "", "unknown control message: runn", ""},
		{"Run", "", "unknown control message: Run", ""},
		{"run now", "", "usage: run", ""},
		{"fetch", "", "usage: fetch URL...", ""},
		{"collect a b", "", "usage: collect [SOURCE]", ""},
		{"lifetime a", "", "usage: lifetime OID DURATION", ""},
		{"set", "", "usage: set NAME [VALUE...]", ""},
		{"fetch 'a", "", "fetch: quote is not closed", ""},
		{"fetch bad", `fetch["bad"]`, "bad is bad", ""},
		{"run\nfetch bad\nrun\n", `run[] fetch["bad"]`, "bad is bad", "ctl: bad is bad\n\tfetch bad\n"},
		{"fetch full", `fetch["full"]`, "no space left on device", ""},
	}
	for _, tt := range tests {
		ran = nil
		err := write(t, c, fs.Trunc, tt.in)
		if got := strings.Join(ran, " "); got != tt.ran {
			t.Errorf("%q: ran %s, want %s", tt.in, got, tt.ran)
		}
		if tt.err == "" {
			if err != nil {
				t.Errorf("%q: got %v", tt.in, err)
			}
			continue
		}
		if err == nil || err.Error() != tt.err {
			t.Errorf("%q: got %v, want %s", tt.in, err, tt.err)
		}
		if want := syscall.EINVAL; tt.in == "fetch full" && fs.Errno(err) != syscall.ENOSPC || tt.in != "fetch full" && fs.Errno(err) != want {
			t.Errorf("%q: got errno %v", tt.in, fs.Errno(err))
		}
		if tt.told == "" {
			tt.told = fmt.Sprintf("ctl: %s\n\t%s\n", tt.err, tt.in)
		}
		if got := text(t, refused); got != tt.told {
			t.Errorf("%q: err is %q, want %q", tt.in, got, tt.told)
		}
		if got, want := refused.Stat().Size, int64(len(tt.told)); got != want {
			t.Errorf("%q: err has size %d, want %d", tt.in, got, want)
		}
	}
	if err := write(t, c, 0, "run"); err != nil || text(t, refused) != "" {
		t.Errorf("a good line: got %v and err is %q, want it cleared", err, text(t, refused))
	}
}

// TestCtlOffset holds that offsets, truncation and times mean nothing.
func TestCtlOffset(t *testing.T) {
	var ran int
	c := fs.Ctl(1, nil, fs.On("run", func(context.Context, []string) error { ran++; return nil }))
	h, err := c.Open(t.Context(), fs.Read|fs.Write|fs.Append)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, off := range []int64{0, 4, 0, 1 << 40} {
		if n, err := h.WriteAt(t.Context(), []byte("run\n"), off); n != 4 || err != nil {
			t.Errorf("at %d: got %d, %v", off, n, err)
		}
	}
	if ran != 4 {
		t.Errorf("ran %d times, want 4", ran)
	}
	size, mode := int64(0), iofs.FileMode(0o777)
	if err := c.Set(t.Context(), fs.Change{Size: &size}); err != nil {
		t.Errorf("truncate: %v", err)
	}
	if err := c.Set(t.Context(), fs.Change{Mode: &mode}); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("chmod: got %v, want ErrPermission", err)
	}
	if got := rest(t, h); got != "run\n" {
		t.Errorf("reads as %q while open, want its usages", got)
	}
	c.Reads(func() string { return "7\n" })
	if got := text(t, c); got != "7\n" {
		t.Errorf("got %q, want what Reads says", got)
	}
	if err := c.Do(t.Context(), "run\nrun\nno\n"); err == nil || ran != 6 {
		t.Errorf("Do: got %v after %d, want an error after 6", err, ran)
	}
}

// TestErr holds that each file has its own entry, the newest first.
func TestErr(t *testing.T) {
	e := fs.NewErr(1)
	bad := errors.New("bad")
	e.Set("ctl", "runn", bad)
	e.Set("config", "", errors.New("line 1, column 2: worse"))
	if got, want := text(t, e), "config: line 1, column 2: worse\nctl: bad\n\trunn\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Set("ctl", "ru", bad)
	if got, want := text(t, e), "ctl: bad\n\tru\nconfig: line 1, column 2: worse\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Set("config", "", nil)
	if got, want := text(t, e), "ctl: bad\n\tru\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h, err := e.Open(t.Context(), fs.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	e.Set("ctl", "", nil)
	if got, want := rest(t, h), "ctl: bad\n\tru\n"; got != want {
		t.Errorf("an open one reads %q, want what it was, %q", got, want)
	}
	if got := text(t, e); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	var none *fs.Err
	none.Set("ctl", "", bad)
}
