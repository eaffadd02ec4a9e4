package fs_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"harvest/fs"
)

func TestQuote(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "''"},
		{"a", "a"},
		{"a=b", "a=b"},
		{"a b", "'a b'"},
		{"it's", "'it''s'"},
		{"'", "''''"},
		{"a\tb", "'a\tb'"},
		{"a\nb", "'a\nb'"},
		{"#1", "'#1'"},
		{"a#1", "'a#1'"},
		{"\x7f", "'\x7f'"},
		{"Zoë", "Zoë"},
		{"\xff", "\xff"},
	}
	for _, tt := range tests {
		if got := fs.Quote(tt.in); got != tt.want {
			t.Errorf("Quote(%q): got %s, want %s", tt.in, got, tt.want)
		}
	}
	if got, want := fs.Pair("title", "it's"), "title='it''s'"; got != want {
		t.Errorf("Pair: got %s, want %s", got, want)
	}
}

func TestFields(t *testing.T) {
	tests := []struct {
		in   string
		want []string
		err  error
	}{
		{"", nil, nil},
		{" \t\r\n", nil, nil},
		{"a", []string{"a"}, nil},
		{" a  b\tc\n", []string{"a", "b", "c"}, nil},
		{"''", []string{""}, nil},
		{"'a b' c", []string{"a b", "c"}, nil},
		{"a'b c'd", []string{"ab cd"}, nil},
		{"'it''s'", []string{"it's"}, nil},
		{"''''", []string{"'"}, nil},
		{"a=''", []string{"a="}, nil},
		{"#a", []string{"#a"}, nil},
		{"'a", nil, fs.ErrQuote},
		{"a '", nil, fs.ErrQuote},
		{"'a'' b", nil, fs.ErrQuote},
	}
	for _, tt := range tests {
		got, err := fs.Fields(tt.in)
		if !errors.Is(err, tt.err) || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Fields(%q): got %q, %v, want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
	f, rest, ok, err := fs.Field(" 'a b'c d")
	if f != "a bc" || rest != " d" || !ok || err != nil {
		t.Errorf("Field: got %q, %q, %t, %v", f, rest, ok, err)
	}
}

// FuzzFields holds that what was quoted comes back, alone or among others.
func FuzzFields(f *testing.F) {
	f.Add("", "a b")
	f.Add("it's", "'")
	f.Add("\x00\xff", "#\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := fs.Fields(fs.Quote(a) + " " + fs.Quote(b))
		if err != nil || !reflect.DeepEqual(got, []string{a, b}) {
			t.Fatalf("%q and %q: got %q, %v", a, b, got, err)
		}
		fields, err := fs.Fields(a) // any text: no panic
		if err != nil {
			return
		}
		var quoted []string
		for _, s := range fields {
			quoted = append(quoted, fs.Quote(s))
		}
		again, err := fs.Fields(strings.Join(quoted, " "))
		if err != nil || !reflect.DeepEqual(again, fields) {
			t.Fatalf("%q: got %q, %v, want %q", a, again, err, fields)
		}
	})
}

func BenchmarkFields(b *testing.B) {
	const line = "root url=https://go.dev/doc/ depth=4 urls=2000 title='The Go ''docs'''"
	b.Run("plain=4/quoted=1", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			if _, err := fs.Fields(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}
