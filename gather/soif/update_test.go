package soif

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestUpdateWriter(t *testing.T) {
	var buf bytes.Buffer
	u := NewUpdateWriter(&buf)
	for _, c := range []struct {
		op  Op
		url string
	}{{Delete, "a"}, {Delete, "b"}, {Refresh, "c"}, {Update, "d"}, {Delete, "e"}} {
		o := Object{Type: "FILE", URL: c.url}
		if err := u.Write(c.op, o.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Close("e.7"); err != nil {
		t.Fatal(err)
	}
	want := "@DELETE {\n@FILE { a\n}\n@FILE { b\n}\n}\n@REFRESH {\n@FILE { c\n}\n}\n" +
		"@UPDATE {\n@FILE { d\n}\n}\n@DELETE {\n@FILE { e\n}\n}\n@CURSOR { -\nCursor{3}:\te.7\n}\n"
	if got := buf.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := u.Write(Update, []byte("@A { b\n}\n")); !errors.Is(err, iofs.ErrClosed) {
		t.Errorf("write after close: got %v, want %v", err, iofs.ErrClosed)
	}
	if err := u.Close("e.8"); !errors.Is(err, iofs.ErrClosed) {
		t.Errorf("second close: got %v, want %v", err, iofs.ErrClosed)
	}
}

func TestUpdateWriterRefuses(t *testing.T) {
	var buf bytes.Buffer
	u := NewUpdateWriter(&buf)
	for _, tt := range []struct {
		op      Op
		encoded string
	}{{0, "@A { b\n}\n"}, {4, "@A { b\n}\n"}, {Update, ""}, {Update, "A { b\n}\n"}, {Update, "@A { b\n"}} {
		if err := u.Write(tt.op, []byte(tt.encoded)); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%v %q: got %v, want %v", tt.op, tt.encoded, err, iofs.ErrInvalid)
		}
	}
	if err := u.Close(""); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("empty cursor: got %v, want %v", err, iofs.ErrInvalid)
	}
	if err := u.Close("1"); err != nil {
		t.Errorf("a refused write is in the way: %v", err)
	}
	if got, want := buf.String(), "@CURSOR { -\nCursor{1}:\t1\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUpdateWriterKeepsError(t *testing.T) {
	u := NewUpdateWriter(iotest.TruncateWriter(nil, 0))
	u.w = failing{}
	big := []byte("@A { " + strings.Repeat("x", writeAt) + "\n}\n")
	for range 2 {
		if err := u.Write(Update, big); err != io.ErrShortWrite {
			t.Errorf("got %v, want %v", err, io.ErrShortWrite)
		}
	}
	if err := u.Close("1"); err != io.ErrShortWrite {
		t.Errorf("close: got %v, want %v", err, io.ErrShortWrite)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestUpdateReader(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		err            error
		cursor         string
	}{
		{"all", "@DELETE { }\n@REFRESH { @A { b\n}\n}\n@update {\n@A { c\n}\n@A { d\n}\n}\n@CURSOR { -\ncursor{1}:\t1\n}\n", "REFRESH b UPDATE c UPDATE d", io.EOF, "1"},
		{"only a cursor", "@CURSOR { -\nCursor{1}:\t1\n}\n", "", io.EOF, "1"},
		{"nothing behind the cursor is looked at", "@CURSOR { -\nCursor{1}:\t1\n}\nHTTP/1.1", "", io.EOF, "1"},
		{"a gathered CURSOR is an object", "@UPDATE {\n@CURSOR { a\nCursor{1}:\t1\n}\n}\n", "UPDATE a", ErrNoCursor, ""},
		{"old stream", "@DELETE {\n}\n@REFRESH {\n}\n@UPDATE {\n@A { b\n}\n}\n", "UPDATE b", ErrNoCursor, ""},
		{"empty", "", "", ErrNoCursor, ""},
		{"cut in a frame", "@UPDATE {\n@A { b\n}\n", "UPDATE b", io.ErrUnexpectedEOF, ""},
		{"cut in an object", "@UPDATE {\n@A { b\n", "", io.ErrUnexpectedEOF, ""},
		{"cut in the cursor", "@CURSOR { -\nCursor{1}:\t1\n", "", io.ErrUnexpectedEOF, ""},
		{"object outside of a frame", "@A { b\n}\n", "", iofs.ErrInvalid, ""},
		{"frame in a frame", "@UPDATE {\n@DELETE {\n}\n@CURSOR { -\nCursor{1}:\t1\n}\n", "", iofs.ErrInvalid, ""},
		{"empty cursor", "@CURSOR { -\n}\n", "", iofs.ErrInvalid, ""},
		{"too many }", "@UPDATE {\n}\n}\n", "", iofs.ErrInvalid, ""},
	} {
		for _, one := range []bool{false, true} {
			r := io.Reader(strings.NewReader(tt.in))
			if one {
				r = iotest.OneByteReader(r)
			}
			u := NewUpdateReader(r, Limits{})
			var c Change
			var got []string
			err := u.Next(&c)
			for ; err == nil; err = u.Next(&c) {
				got = append(got, c.Op.String()+" "+c.Object.URL)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
			if !errors.Is(err, tt.err) || tt.err == io.ErrUnexpectedEOF && errors.Is(err, ErrNoCursor) {
				t.Errorf("%s: got error %v, want %v", tt.name, err, tt.err)
			}
			if u.Cursor() != tt.cursor {
				t.Errorf("%s: got cursor %q, want %q", tt.name, u.Cursor(), tt.cursor)
			}
			if again := u.Next(&c); again != err {
				t.Errorf("%s: got %v, then %v", tt.name, err, again)
			}
		}
	}
}

// A stream cut at any byte is never taken for a whole one.
func TestUpdateStreamCut(t *testing.T) {
	in := updates(3)
	whole := len(in) - 1 // the last newline is not needed
	for n := range whole {
		u := NewUpdateReader(bytes.NewReader(in[:n]), Limits{})
		var c Change
		var err error
		for err == nil {
			err = u.Next(&c)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || u.Cursor() != "" {
			t.Fatalf("cut at %d of %d: got %v, cursor %q", n, len(in), err, u.Cursor())
		}
	}
}

func TestUpdateResync(t *testing.T) {
	in := "@UPDATE {\n@A { a\n}\n@A { bad\nx\n}\n@A { b\n}\n@A { bad\nT{3000}:\t\n}\n}\n" +
		"@DELETE {\n@A { c\n}\nstray\n}\n@CURSOR { -\nCursor{1}:\t1\n}\n"
	u := NewUpdateReader(strings.NewReader(in), Limits{})
	var c Change
	var got []string
	for {
		err := u.Next(&c)
		if err == io.EOF {
			break
		}
		if err == nil {
			got = append(got, c.Op.String()+" "+c.Object.URL)
			continue
		}
		got = append(got, fmt.Sprint("!", err.(*Error).Line))
		if err := u.Resync(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"UPDATE a", "!5", "UPDATE b", "!10", "DELETE c", "!16"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if u.Cursor() != "1" {
		t.Errorf("got cursor %q, want 1", u.Cursor())
	}
}

func TestUpdateWriterFlush(t *testing.T) {
	var buf bytes.Buffer
	u := NewUpdateWriter(&buf)
	for range 2 {
		if err := u.Write(Update, []byte("@A { b\n}")); err != nil {
			t.Fatal(err)
		}
		if err := u.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	want := "@UPDATE {\n@A { b\n}\n}\n@UPDATE {\n@A { b\n}\n}\n"
	if got := buf.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIsUpdate(t *testing.T) {
	for in, want := range map[string]bool{
		"@UPDATE {": true, "\n @delete{": true, "@REFRESH\n{\n": true, "@CURSOR { -": true,
		"": false, " ": false, "@": false, "@UPDATE": false, "@UPDATE x": false, "@UPDATES {": false, "@FILE {": false, "UPDATE {": false,
	} {
		if got := IsUpdate([]byte(in)); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}
