package soif

import (
	"bytes"
	"errors"
	"io"
	iofs "io/fs"
	"testing"
)

func TestEncoderRefuses(t *testing.T) {
	for _, tt := range []struct{ typ, url, name string }{
		{"", "x", "A"}, {"A B", "x", "A"}, {"A{", "x", "A"}, {"UPDATE", "x", "A"}, {"delete", "x", "A"}, {"@A", "x", "A"},
		{"FILE", "a b", "A"}, {"FILE", "a\nb", "A"}, {"FILE", "a\x00", "A"}, {"FILE", "}", "A"},
		{"FILE", "x", ""}, {"FILE", "x", "A B"}, {"FILE", "x", "A{1}:\t"}, {"FILE", "x", "}"}, {"FILE", "x", "A\n"},
	} {
		var buf bytes.Buffer
		o := Object{Type: tt.typ, URL: tt.url, Attrs: []Attr{{tt.name, nil}}}
		if err := NewEncoder(&buf).Encode(&o); !errors.Is(err, iofs.ErrInvalid) || buf.Len() > 0 {
			t.Errorf("%q: got %v and %q, want %v and nothing", tt, err, buf.Bytes(), iofs.ErrInvalid)
		}
		// Append makes the best of it.
		p, _, err := Parse(o.Append(nil), Limits{})
		if err != nil || len(p.Attrs) != 1 {
			t.Errorf("%q: Append gave %q: %v", tt, o.Append(nil), err)
		}
	}
}

func TestAppendCleans(t *testing.T) {
	o := Object{Type: "Update", URL: "file:///a b\n%20", Attrs: []Attr{{"dc title{}", []byte("x")}, {"", nil}, {"og:a/b", nil}}}
	want := "@Update- { file:///a%20b%0A%20\ndc-title--{1}:\tx\n-{0}:\t\nog:a/b{0}:\t\n}\n"
	if got := string(o.Append(nil)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := string(o.Append([]byte("before "))); got != "before "+want {
		t.Errorf("got %q, want it after what was there", got)
	}
}

func TestEncoderGivesWritersError(t *testing.T) {
	o := object()
	if err := NewEncoder(failing{}).Encode(&o); err != io.ErrShortWrite {
		t.Errorf("got %v, want %v", err, io.ErrShortWrite)
	}
}
