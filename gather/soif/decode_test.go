package soif

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"canonical", "@FILE { http://x/\nTitle{3}:\tabc\n}\n", "@FILE { http://x/\nTitle{3}:\tabc\n}\n"},
		{"no attributes", "@FILE { http://x/\n}\n", "@FILE { http://x/\n}\n"},
		{"no attributes, one line", "@FILE { http://x/ }", "@FILE { http://x/\n}\n"},
		{"no URL", "@FILE { -\n}\n", "@FILE { -\n}\n"},
		{"tight", "@FILE{http://x/ A{1}:\tb B{0}:\t C{1}:\tc}", "@FILE { http://x/\nA{1}:\tb\nB{0}:\t\nC{1}:\tc\n}\n"},
		{"CRLF and blank lines", "\r\n\r\n@FILE { http://x/\r\n\r\nA{1}:\tb\r\n \t\r\n}\r\n", "@FILE { http://x/\nA{1}:\tb\n}\n"},
		{"brace on the next line", "@FILE\n{ http://x/\n}\n", "@FILE { http://x/\n}\n"},
		{"value of braces and newlines", "@FILE { http://x/\nA{12}:\t}\n@FILE { y\n\nB{1}:\tx\n}\n", "@FILE { http://x/\nA{12}:\t}\n@FILE { y\n\nB{1}:\tx\n}\n"},
		{"leading zeros", "@FILE { http://x/\nA{003}:\tabc\n}\n", "@FILE { http://x/\nA{3}:\tabc\n}\n"},
		{"odd names", "@X-1 { http://x/\nog:title{1}:\ta\nAccess-Protocol-v*{1}:\tb\nGröße{1}:\tc\n<1>{1}:\td\n}\n", "@X-1 { http://x/\nog:title{1}:\ta\nAccess-Protocol-v*{1}:\tb\nGröße{1}:\tc\n<1>{1}:\td\n}\n"},
		{"brace in the URL", "@FILE { http://x/{a}\n}\n", "@FILE { http://x/{a}\n}\n"},
	} {
		o, n, err := Parse([]byte(tt.in), Limits{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if n != len(tt.in) {
			t.Errorf("%s: took %d bytes, want %d", tt.name, n, len(tt.in))
		}
		if got := string(o.Append(nil)); got != tt.want {
			t.Errorf("%s: got\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}

func TestParseTakesOneObject(t *testing.T) {
	in := "\n@A { x\n}\n\n@B { y\n}\n"
	o, n, err := Parse([]byte(in), Limits{})
	if err != nil || o.Type != "A" || in[n:] != "\n@B { y\n}\n" {
		t.Errorf("got type %s, rest %q, %v", o.Type, in[n:], err)
	}
	if _, n, err := Parse([]byte(" \n\t"), Limits{}); err != io.EOF || n != 0 {
		t.Errorf("white space: got %d, %v, want 0, EOF", n, err)
	}
}

var small = Limits{Object: 200, Value: 50, Attrs: 3, Name: 20, URL: 30, Depth: 2}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		in    string
		class error
		want  string
	}{
		{"x", iofs.ErrInvalid, `line 1, byte 0: text outside of an object: "x"`},
		{"\n\n  hello\nworld", iofs.ErrInvalid, `line 3, byte 4: text outside of an object: "hello"`},
		{"@ { x", iofs.ErrInvalid, `line 1, byte 1: no template type after @`},
		{"@FI", io.ErrUnexpectedEOF, `line 1, byte 3: input ends before the closing }`},
		{"@FILE", io.ErrUnexpectedEOF, `line 1, byte 5: input ends before the closing }`},
		{"@FILE x", iofs.ErrInvalid, `line 1, byte 6: @FILE: no { after the template type`},
		{"@FILE { ", io.ErrUnexpectedEOF, `line 1, byte 8: @FILE: input ends before the closing }`},
		{"@FILE {\nhttp://x\n}", iofs.ErrInvalid, `line 1, byte 7: @FILE: no URL on the line of the {`},
		{"@FILE { }\n", iofs.ErrInvalid, `line 1, byte 8: @FILE: no URL on the line of the {`},
		{"@FILE { http://\x00\n}", iofs.ErrInvalid, `line 1, byte 15: @FILE: control character in the URL`},
		{"@FILE { http://x/yyyyyyyyyyyyyyyyyyyyyyyyyyy\n}", syscall.EFBIG, `line 1, byte 8: @FILE: URL is over the limit of 30 bytes`},
		{"@ABCDEFGHIJKLMNOPQRSTUVWXYZ { x", syscall.EFBIG, `line 1, byte 1: template type is over the limit of 20 bytes`},
		{"@UPDATE {\n", iofs.ErrInvalid, `line 1, byte 0: @UPDATE: opens a frame: this is an update stream`},
		{"@FILE { x\nTitle\n}", iofs.ErrInvalid, `line 2, byte 10: x: attribute Name{size} expected, not "Title"`},
		{"@FILE { x\n{3}:\tabc\n}", iofs.ErrInvalid, `line 2, byte 10: x: attribute Name{size} expected, not "{3}:\tabc"`},
		{"@FILE { x\nTitle{}:\tabc\n}", iofs.ErrInvalid, `line 2, byte 10: x: Title: size is not a number`},
		{"@FILE { x\nTitle{-3}:\tabc\n}", iofs.ErrInvalid, `line 2, byte 10: x: Title: size is not a number`},
		{"@FILE { x\nTitle{3x}:\tabc\n}", iofs.ErrInvalid, `line 2, byte 10: x: Title: size is not a number`},
		{"@FILE { x\nTitle{99999999999999999999}:\tabc\n}", syscall.EFBIG, `line 2, byte 10: x: Title: size is over the limit`},
		{"@FILE { x\nTitle{9223372036854775808}:\tabc\n}", syscall.EFBIG, `line 2, byte 10: x: Title: size is over the limit`},
		{"@FILE { x\nTitle{3}: abc\n}", iofs.ErrInvalid, `line 2, byte 10: x: Title: no colon and tab after the size`},
		{"@FILE { x\nTitle{2}:\tabc\n}", iofs.ErrInvalid, `line 2, byte 10: x: Title: size is wrong: after 2 bytes stands 'c', not white space`},
		{"@FILE { x\nTitle{5}:\tabc\n}\n@FILE { y\n}\n", iofs.ErrInvalid, `line 4, byte 26: x: attribute Name{size} expected, not "@FILE { y"`},
		{"@FILE { x\nA{1}:\tb\nTitle{30}:\tabc\n}", io.ErrUnexpectedEOF, `line 3, byte 18: x: Title: value of 30 bytes runs past the end of the input`},
		{"@FILE { x\nTitle{3}:\tabc", io.ErrUnexpectedEOF, `line 2, byte 10: x: Title: value of 3 bytes runs past the end of the input`},
		{"@FILE { x\nTitle{3}:\tabc\n", io.ErrUnexpectedEOF, `line 3, byte 24: x: input ends before the closing }`},
		{"@FILE { -\nTitle{51}:\tabc\n}", syscall.EFBIG, `line 2, byte 10: @FILE: Title: value of 51 bytes is over the limit of 50`},
		{"@FILE { x\nA{50}:\t" + strings.Repeat("a", 50) + "\nB{50}:\t" + strings.Repeat("b", 50) + "\nC{50}:\t" + strings.Repeat("b", 50) + "\nD{50}:\t", syscall.EFBIG, `line 5, byte 184: x: D: with its 50 bytes the object is over the limit of 200`},
		{"@FILE { x\nA{0}:\t\nB{0}:\t\nC{0}:\t\nD{0}:\t\n}", syscall.EFBIG, `line 5, byte 31: x: D: over the limit of 3 attributes`},
		{"@FILE { x\nABCDEFGHIJKLMNOPQRST{0}:\t\nABCDEFGHIJKLMNOPQRSTU{0}:\t\n}", syscall.EFBIG, `line 3, byte 36: x: attribute name is over the limit of 20 bytes`},
		{"@FILE { x\nEmbed1-Embed2-A{0}:\t\nEmbed1-Embed2-Embed1-A{0}:\t\n}", syscall.EFBIG, `line 3, byte 31: x: attribute name is over the limit of 20 bytes`},
		{"@FILE { x\nembed1-embed2-E{0}:\t\nembed1-embed2-EMBED3{0}:\t\n}", nil, ``},
		{"@FILE { x" + strings.Repeat("\n", 5000), syscall.EFBIG, `line 1, byte 9: x: over 4096 bytes of white space`},
	} {
		_, _, err := Parse([]byte(tt.in), small)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%.60q: %v", tt.in, err)
			}
			continue
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%.60q:\n got %v\nwant %s", tt.in, err, tt.want)
			continue
		}
		if !errors.Is(err, tt.class) {
			t.Errorf("%.60q: class: got %v, want %v", tt.in, errors.Unwrap(err), tt.class)
		}
		// A reader that gives a byte at a time finds the same.
		var o Object
		d := NewDecoder(iotest.OneByteReader(strings.NewReader(tt.in)), small)
		if derr := d.Next(&o); derr == nil || unquoted(derr) != unquoted(err) {
			t.Errorf("%.60q: Decoder:\n got %v\nwant %v", tt.in, derr, err)
		}
	}
	deep := Limits{Depth: 2}
	_, _, err := Parse([]byte("@FILE { x\nEmbed1-Embed2-embed3-A{0}:\t\n}"), deep)
	if want := "line 2, byte 10: x: Embed1-Embed2-embed3-A: over the limit of 2 levels of Embed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// unquoted is the text of an error without what it quotes of the input, which is
// as much as has been read.
func unquoted(err error) string {
	s, _, _ := strings.Cut(err.Error(), `"`)
	return s
}

// decodeAll decodes a stream to its end, going on after each error, and returns
// what a reader of the golden files should see.
func decodeAll(r io.Reader, lim Limits) string {
	var b strings.Builder
	d := NewDecoder(r, lim)
	var o Object
	for {
		switch err := d.Next(&o); {
		case err == nil:
			line, off := d.Pos()
			fmt.Fprintf(&b, "# line %d, byte %d\n%s", line, off, o.Append(nil))
			if err := d.Check(&o); err != nil {
				fmt.Fprintf(&b, "! %s\n", strings.ReplaceAll(err.Error(), "\n", "\n! "))
			}
		case err == io.EOF:
			return b.String()
		default:
			fmt.Fprintf(&b, "! %v\n", err)
			if err := d.Resync(); err != nil {
				fmt.Fprintf(&b, "! resync: %v\n", err)
				return b.String()
			}
		}
	}
}

// The stream is read the same however it comes, and in a buffer that has to be
// moved and grown.
func TestDecoderReads(t *testing.T) {
	in := stream(200, 2<<10)
	in = append(in, stream(3, 200<<10)...)
	in = append(in, "@FILE junk\n"...)
	in = append(in, stream(50, 2<<10)...)
	want := decodeAll(bytes.NewReader(in), Limits{})
	if n := strings.Count(want, "\n@FILE {"); n != 253 {
		t.Fatalf("got %d objects, want 253", n)
	}
	for name, r := range map[string]io.Reader{
		"one byte":   iotest.OneByteReader(bytes.NewReader(in)),
		"half":       iotest.HalfReader(bytes.NewReader(in)),
		"data error": iotest.DataErrReader(bytes.NewReader(in)),
	} {
		if got := decodeAll(r, Limits{}); got != want {
			t.Errorf("%s: differs from a plain reader", name)
		}
	}
}

func TestDecoderKeepsReadersError(t *testing.T) {
	in := stream(3, 700)
	r := io.MultiReader(bytes.NewReader(in[:len(in)-10]), iotest.ErrReader(os.ErrDeadlineExceeded))
	d := NewDecoder(r, Limits{})
	var o Object
	for i := range 2 {
		if err := d.Next(&o); err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
	}
	for range 2 {
		if err := d.Next(&o); err != os.ErrDeadlineExceeded {
			t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
		}
	}
	if err := d.Resync(); err != os.ErrDeadlineExceeded {
		t.Errorf("Resync: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

// An object that has come whole is returned though the sender says no more.
func TestDecoderDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte("@A { x\nB{1}:\tc\n}"))
	d := NewDecoder(r, Limits{})
	var o Object
	if err := d.Next(&o); err != nil || o.Text("B") != "c" {
		t.Errorf("got %q, %v", o.Text("B"), err)
	}
}

func TestReaderWithoutProgress(t *testing.T) {
	d := NewDecoder(lazy{}, Limits{})
	var o Object
	if err := d.Next(&o); err != io.ErrNoProgress {
		t.Errorf("got %v, want %v", err, io.ErrNoProgress)
	}
}

type lazy struct{}

func (lazy) Read([]byte) (int, error) { return 0, nil }

// Limits as high as they go do not overflow, negative ones are the default.
func TestLimitsAtTheEdge(t *testing.T) {
	in := "@FILE { a\nB{9223372036854775800}:\t\n}\n@FILE { b\nC{1}:\t1\nEmbed1-D{1}:\t\n \n}\n"
	for _, n := range []int64{math.MaxInt64, -1} {
		lim := Limits{n, n, n, n, n, n}
		if got := urls(t, NewDecoder(strings.NewReader(in), lim)); got != "! b" {
			t.Errorf("limits of %d: got %q, want ! b", n, got)
		}
	}
}

// Names are kept for the next object only while that costs little.
func TestNamesKept(t *testing.T) {
	var in []byte
	for i := range 3 * maxNames {
		o := object(fmt.Sprint("Name-", i), "", fmt.Sprint(strings.Repeat("n", maxKept), i), "")
		in = o.Append(in)
	}
	d := NewDecoder(bytes.NewReader(in), Limits{})
	var o Object
	for d.Next(&o) == nil {
	}
	if len(d.names) != maxNames {
		t.Errorf("got %d names kept, want %d", len(d.names), maxNames)
	}
	for name := range d.names {
		if len(name) > maxKept {
			t.Fatalf("a name of %d bytes is kept", len(name))
		}
	}
}

// A count that claims 60 MB of a short stream costs no memory.
func TestClaimsAllocateNothing(t *testing.T) {
	in := []byte("@FILE { http://x/\nFull-Text{60000000}:\tshort\n}\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var o Object
	err := NewDecoder(bytes.NewReader(in), Limits{}).Next(&o)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected EOF", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 200<<10 {
		t.Errorf("allocated %d bytes, want less than 200 KiB", got)
	}
}

// The buffer stays within three times the largest object.
func TestBufferIsBounded(t *testing.T) {
	big := object("Full-Text", strings.Repeat("x", 5<<20))
	in := append(stream(100, 2<<10), big.Append(nil)...)
	in = append(in, stream(1000, 2<<10)...)
	d := NewDecoder(bytes.NewReader(in), Limits{Object: 6 << 20})
	var o Object
	n := 0
	for d.Next(&o) == nil {
		n++
	}
	if d.err != io.EOF || n != 1101 {
		t.Fatalf("%d objects, %v", n, d.err)
	}
	if got, want := cap(d.buf), 15<<20; got > want {
		t.Errorf("buffer: got %d bytes, want at most %d", got, want)
	}
	d = NewDecoder(bytes.NewReader(stream(2000, 2<<10)), Limits{})
	for d.Next(&o) == nil {
	}
	if len(d.marks) > 4 || cap(d.buf) > firstBuffer {
		t.Errorf("after 4 MB of 2 KB objects: got %d marks, buffer of %d bytes", len(d.marks), cap(d.buf))
	}
}

func TestResync(t *testing.T) {
	good := func(url string) string { return "@FILE { " + url + "\nUpdate-Time{1}:\t1\n}\n" }
	for _, tt := range []struct{ name, in, want string }{
		{"junk between objects", good("a") + "junk @FILE { no\n" + good("b"), "a ! b"},
		{"junk to the end", good("a") + "junk", "a !"},
		{"size too long swallows nothing", "@FILE { a\nT{60}:\tabc\n}\n" + good("b") + good("c") + good("d"), "! b c d"},
		{"size past the end swallows nothing", "@FILE { a\nT{6000}:\tabc\n}\n" + good("b") + good("c"), "! b c"},
		{"size too short", "@FILE { a\nT{1}:\tabc\n}\n" + good("b"), "! b"},
		{"size too long to the end of a line", "@FILE { a\nT{35}:\tabc\n}\n" + good("b") + "junk\n" + good("c"), "! b ! c"},
		{"object in a good value is not an object", "@FILE { a\nT{32}:\t\n" + good("no") + "\nU{60000}:\tx\n}\n" + good("b"), "! b"},
		{"line that begins where the buffer ends", strings.Repeat("x", firstBuffer-1) + "\n" + good("b"), "! b"},
		{"over a limit", "@FILE { a\nT{99999999999}:\tabc\n}\n" + good("b"), "! b"},
		{"object in a value before the trouble is not an object", "@FILE { a\nT{32}:\t\n" + good("no") + "\nU{1}:\tx\nV\n}\n" + good("b"), "! b"},
		{"@ that begins no object", "@\n@{\n@ {\n@x y {\n@é{ b\n}\n", "! b"},
		{"head cut at the end", "junk\n@FILE ", "!"},
		{"frame", "@UPDATE {\n" + good("a") + "}\n" + good("b"), "! a ! b"},
	} {
		for name, r := range map[string]io.Reader{
			"whole":        strings.NewReader(tt.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
		} {
			if got := urls(t, NewDecoder(r, Limits{})); got != tt.want {
				t.Errorf("%s, %s: got %q, want %q", tt.name, name, got, tt.want)
			}
		}
	}
	d := NewDecoder(strings.NewReader(good("a")), Limits{})
	if err := d.Resync(); err != nil {
		t.Errorf("without an error before: %v", err)
	}
	var o Object
	if err := d.Next(&o); err != nil || o.URL != "a" {
		t.Errorf("got %s, %v, want a", o.URL, err)
	}
}

// urls reads a stream to its end and gives the URLs of its objects, with a ! for
// each error.
func urls(t *testing.T, d *Decoder) string {
	t.Helper()
	var got []string
	var o Object
	for {
		switch err := d.Next(&o); {
		case err == nil:
			got = append(got, o.URL)
			continue
		case err == io.EOF:
			return strings.Join(got, " ")
		}
		got = append(got, "!")
		if err := d.Resync(); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
}
