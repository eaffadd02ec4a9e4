package soif

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.soif")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("@A{b C{1}:\td}"))
	f.Add([]byte("@A { -\nEmbed1-Embed2-x{99999999}:\t\n}"))
}

// fuzzLimits are small enough for a fuzzer to meet them.
var fuzzLimits = Limits{Object: 1 << 10, Value: 512, Attrs: 8, Name: 40, URL: 64, Depth: 3}

// What parses encodes to a text that parses to the same and encodes to itself;
// values lie inside the input.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		o, n, err := Parse(in, Limits{})
		if err != nil {
			checkPlace(t, in, err)
			return
		}
		if n <= 0 || n > len(in) {
			t.Fatalf("took %d of %d bytes", n, len(in))
		}
		for _, a := range o.Attrs {
			if addr(a.Value) < addr(in) || addr(a.Value)+uintptr(len(a.Value)) > addr(in)+uintptr(len(in)) || cap(a.Value) != len(a.Value) {
				t.Fatalf("%s: value is not inside the input, or may grow over it", a.Name)
			}
		}
		checkStable(t, &o)
		_ = o.Check()
		for _, n := range o.Embeds() {
			if m, ok := o.Embed(n); !ok || len(m.Attrs) == 0 {
				t.Fatalf("member %d is listed but empty", n)
			}
		}
	})
}

func checkStable(t *testing.T, o *Object) {
	t.Helper()
	e := o.Append(nil)
	p, n, err := Parse(e, Limits{})
	if err != nil || n != len(e) || !p.Equal(o) {
		t.Fatalf("%q: parsed %d of %d bytes, %v, equal %v", e, n, len(e), err, p.Equal(o))
	}
	if again := p.Append(nil); !bytes.Equal(again, e) {
		t.Fatalf("encoded as %q, then as %q", e, again)
	}
	if err := NewEncoder(io.Discard).Encode(o); err != nil {
		t.Fatalf("decoded, but refused by the Encoder: %v", err)
	}
}

// checkPlace counts the line of an error anew.
func checkPlace(t *testing.T, in []byte, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		if err != io.EOF {
			t.Fatalf("got %v, want an *Error", err)
		}
		return
	}
	if e.Offset < 0 || e.Offset > int64(len(in)) || e.Line != int64(bytes.Count(in[:e.Offset], newline))+1 {
		t.Fatalf("%v: the place is wrong", e)
	}
}

// A stream reads the same whether it comes whole or byte by byte; going on after
// errors ends, and the buffer stays within what was read.
func FuzzDecoder(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, lim := range []Limits{{}, fuzzLimits} {
			whole := trace(t, in, bytes.NewReader(in), lim)
			if bytewise := trace(t, in, iotest.OneByteReader(bytes.NewReader(in)), lim); bytewise != whole {
				t.Fatalf("whole:\n%s\nbyte by byte:\n%s", whole, bytewise)
			}
		}
	})
}

func trace(t *testing.T, in []byte, r io.Reader, lim Limits) string {
	d := NewDecoder(r, lim)
	var b strings.Builder
	var o Object
	for steps := 0; ; steps++ {
		if steps > 2*len(in)+2 {
			t.Fatal("no end")
		}
		switch err := d.Next(&o); {
		case err == nil:
			line, off := d.Pos()
			if want := int64(bytes.Count(in[:off], newline)) + 1; in[off] != '@' || line != want {
				t.Fatalf("object at byte %d, line %d, want line %d", off, line, want)
			}
			b.Write(o.Append(nil))
			if lim == (Limits{}) {
				checkStable(t, &o)
			}
			if err := d.Check(&o); err != nil {
				b.WriteString(err.Error())
			}
		case err == io.EOF:
			if got, want := cap(d.buf), max(firstBuffer, 3*len(in)); got > want {
				t.Fatalf("buffer of %d bytes, want at most %d", got, want)
			}
			return b.String()
		default:
			checkPlace(t, in, err)
			b.WriteString(unquoted(err) + "\n")
			if err := d.Resync(); err == nil {
				if d.buf[d.pos] != '@' || d.pos > 0 && d.buf[d.pos-1] != '\n' {
					t.Fatalf("after Resync: %q", d.buf[d.pos:])
				}
			}
		}
	}
}

// As FuzzDecoder, for updates; and what was read and written again reads the same.
func FuzzUpdateReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, again := retrace(t, in, bytes.NewReader(in))
		if bytewise, _ := retrace(t, in, iotest.OneByteReader(bytes.NewReader(in))); bytewise != whole {
			t.Fatalf("whole:\n%s\nbyte by byte:\n%s", whole, bytewise)
		}
		if again != nil {
			second, third := retrace(t, again, bytes.NewReader(again))
			if second != whole || !bytes.Equal(third, again) {
				t.Fatalf("read:\n%s\nwritten again:\n%s\nread again:\n%s", whole, again, second)
			}
		}
	})
}

// retrace reads a stream and, if it is whole, writes it again.
func retrace(t *testing.T, in []byte, r io.Reader) (string, []byte) {
	var b strings.Builder
	var out bytes.Buffer
	u, w := NewUpdateReader(r, Limits{}), NewUpdateWriter(&out)
	whole := true
	var c Change
	for steps := 0; ; steps++ {
		if steps > 2*len(in)+2 {
			t.Fatal("no end")
		}
		switch err := u.Next(&c); {
		case err == nil:
			e := c.Object.Append(nil)
			b.WriteString(c.Op.String() + " " + string(e))
			if err := w.Write(c.Op, e); err != nil {
				t.Fatal(err)
			}
		case err == io.EOF:
			if err := w.Close(u.Cursor()); err != nil {
				t.Fatal(err)
			}
			b.WriteString("cursor " + u.Cursor())
			if !whole {
				return b.String(), nil
			}
			return b.String(), out.Bytes()
		default:
			whole = false
			checkPlace(t, in, err)
			b.WriteString(unquoted(err) + "\n")
			if err := u.Resync(); err != nil {
				return b.String(), nil
			}
		}
	}
}

// Append makes of anything what parses, with the values as they were.
func FuzzAppend(f *testing.F) {
	f.Add("FILE", "http://x/", "Title", []byte("t"), "Data", []byte("}\n@FILE { x"))
	f.Add("", "", "", []byte(nil), "a b{}\n", []byte{0, 255})
	f.Add("UPDATE", "}", "@", []byte("\n"), "é", []byte(" "))
	f.Fuzz(func(t *testing.T, typ, url, name1 string, value1 []byte, name2 string, value2 []byte) {
		o := Object{typ, url, []Attr{{name1, value1}, {name2, value2}}}
		big := Limits{Name: 1 << 30, URL: 1 << 30, Depth: 1 << 30}
		p, _, err := Parse(o.Append(nil), big)
		if err != nil {
			t.Fatalf("%q: %v", o.Append(nil), err)
		}
		if len(p.Attrs) != 2 || !bytes.Equal(p.Attrs[0].Value, value1) || !bytes.Equal(p.Attrs[1].Value, value2) {
			t.Fatalf("%q: got %q", o, p)
		}
		if err := NewEncoder(io.Discard).Encode(&o); err == nil && url != "-" && !p.Equal(&o) {
			t.Fatalf("%q: the Encoder took it, but it reads as %q", o, p)
		}
	})
}
