package soif

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func object(attrs ...string) Object {
	o := Object{Type: "FILE", URL: "http://x/"}
	for i := 0; i < len(attrs); i += 2 {
		o.Add(attrs[i], []byte(attrs[i+1]))
	}
	return o
}

func TestAttrs(t *testing.T) {
	type edit func(o *Object)
	for _, tt := range []struct {
		name string
		do   edit
		want Object
	}{
		{"set replaces, keeps place and case", func(o *Object) { o.Set("TITLE", []byte("n")) }, object("Title", "n", "Author", "a", "Author-1", "b")},
		{"set drops the others", func(o *Object) { o.Add("author", nil); o.Set("Author", []byte("c")) }, object("Title", "t", "Author", "c", "Author-1", "b")},
		{"set appends", func(o *Object) { o.Set("MD5", []byte("0")) }, object("Title", "t", "Author", "a", "Author-1", "b", "MD5", "0")},
		{"add appends", func(o *Object) { o.Add("Title", []byte("u")) }, object("Title", "t", "Author", "a", "Author-1", "b", "Title", "u")},
		{"del", func(o *Object) { o.Add("AUTHOR", nil); o.Del("author") }, object("Title", "t", "Author-1", "b")},
		{"del what is not there", func(o *Object) { o.Del("x") }, object("Title", "t", "Author", "a", "Author-1", "b")},
	} {
		o := object("Title", "t", "Author", "a", "Author-1", "b")
		tt.do(&o)
		if got, want := string(o.Append(nil)), string(tt.want.Append(nil)); got != want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, want)
		}
	}
}

func TestGet(t *testing.T) {
	o := object("Title", "one", "tITLE", "two", "Empty", "")
	if got := o.Text("title"); got != "one" {
		t.Errorf("Text(title): got %q, want one", got)
	}
	if v, ok := o.Get("empty"); !ok || len(v) != 0 {
		t.Errorf("Get(empty): got %q, %v, want an empty value", v, ok)
	}
	if v, ok := o.Get("Titl"); ok {
		t.Errorf("Get(Titl): got %q, want none", v)
	}
}

func TestValues(t *testing.T) {
	o := object("Author-2", "c", "Author", "a", "AUTHOR", "a2", "author-1", "b", "Author-x", "-", "Author-", "-", "Authors", "-", "Author-1-1", "-")
	var got []string
	for v := range o.Values("Author") {
		got = append(got, string(v))
	}
	if want := []string{"c", "a", "a2", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for v := range o.Values("Author") { // stops when told
		if string(v) != "c" {
			t.Errorf("got %q after the loop ended", v)
		}
		break
	}
}

func TestCloneOwnsItsMemory(t *testing.T) {
	in := []byte("@FILE { http://x/\nA{1}:\ta\nB{2}:\tbb\n}\n")
	o, _, err := Parse(in, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c := o.Clone()
	if !c.Equal(&o) {
		t.Errorf("got %q, want %q", c.Append(nil), o.Append(nil))
	}
	clear(in)
	c.Attrs[0].Value = append(c.Attrs[0].Value, '+')
	if got := c.Text("B"); got != "bb" {
		t.Errorf("B after clearing the input and growing A: got %q, want bb", got)
	}
	if got := c.Text("A"); got != "a+" {
		t.Errorf("A: got %q, want a+", got)
	}
}

// A value of random bytes comes back as it was, without being copied.
func TestBinaryValue(t *testing.T) {
	value := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(value)
	o := object("Before", "x", "Data", string(value), "After", "y")
	in := o.Append(nil)

	p, n, err := Parse(in, Limits{})
	if err != nil || n != len(in) || !p.Equal(&o) {
		t.Fatalf("Parse: %d of %d bytes, %v, equal %v", n, len(in), err, p.Equal(&o))
	}
	v, _ := p.Get("Data")
	if got, want := unsafe.SliceData(v), &in[bytes.Index(in, value)]; got != want {
		t.Errorf("Parse copied the value")
	}

	d := NewDecoder(bytes.NewReader(in), Limits{})
	if err := d.Next(&p); err != nil || !p.Equal(&o) {
		t.Fatalf("Decoder: %v, equal %v", err, p.Equal(&o))
	}
	v, _ = p.Get("Data")
	if lo, hi, at := addr(d.buf), addr(d.buf)+uintptr(cap(d.buf)), addr(v); at < lo || at >= hi {
		t.Errorf("Decoder copied the value")
	}
}

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
