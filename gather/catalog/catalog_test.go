package catalog

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harvest/gather/soif"
)

var update = flag.Bool("update", false, "write the goldens anew")

func read(format, text, base string) (all []soif.Object, err error) {
	r, err := NewReader(format, strings.NewReader(text), Options{Base: base})
	if err != nil {
		return nil, err
	}
	for {
		o, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, o)
	}
}

func write(tb testing.TB, format string, all []soif.Object) string {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(format, &b)
	if err != nil {
		tb.Fatal(err)
	}
	for _, o := range all {
		if err := w.Write(&o); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// TestGolden reads testdata/NAME.FORMAT as testdata/NAME.FORMAT.soif, writes that in
// its format, and reads it as the same again.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	done := make(map[string]bool)
	for _, name := range files {
		format := strings.TrimPrefix(filepath.Ext(name), ".")
		if format == "soif" || filepath.Base(name) == "README" {
			continue
		}
		done[format] = true
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := read(format, string(text), "http://h/catalogue")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := write(t, "soif", all)
		if *update {
			if err := os.WriteFile(name+".soif", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name + ".soif")
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		again, err := read(format, write(t, format, all), "http://h/catalogue")
		if err != nil {
			t.Errorf("%s, written anew: %v", name, err)
		}
		if a, b := forms(all), forms(again); !slices.Equal(a, b) {
			t.Errorf("%s, written anew: got\n%s\nwant\n%s", name, strings.Join(b, "\n"), strings.Join(a, "\n"))
		}
	}
	for _, f := range Formats() {
		if f != "soif" && !done[f] {
			t.Errorf("%s: got no golden, want one", f)
		}
	}
}

// form is an object without what formats may change: the case and the numbers of
// names, and the order of attributes of different names.
func form(o soif.Object) string {
	var all []string
	for _, a := range o.Attrs {
		all = append(all, strings.ToLower(unnumbered(a.Name)))
	}
	slices.Sort(all)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", o.Type, o.URL)
	for _, name := range slices.Compact(all) {
		for _, a := range o.Attrs {
			if strings.ToLower(unnumbered(a.Name)) == name {
				fmt.Fprintf(&b, " %s=%q", name, a.Value)
			}
		}
	}
	return b.String()
}

func forms(all []soif.Object) (out []string) {
	for _, o := range all {
		out = append(out, form(o))
	}
	return out
}

// TestRound writes random objects in each format and reads them again.
func TestRound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{"a", "Thing", "x<y", "R&D", `"quoted"`, "it's", "50%", "{braced}", `back\slash`, "ü", "Ωmega", "end,", "a=b", "#1", "$5", "a_b", "~", "^", "and", "@home", "naïve", "co:lon", ".", "..."}
	value := func(lines bool) string {
		var b strings.Builder
		for i := range 1 + r.IntN(6) {
			switch {
			case i > 0 && lines && r.IntN(4) == 0:
				b.WriteByte('\n')
			case i > 0:
				b.WriteByte(' ')
			}
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	names := []string{"Title", "Description", "Keywords", "Author", "Author", "Editor", "Abstract", "File-Size", "X-1", "Primary-site", "Identifier", "Full-Text", "Url", "Doi", "Handle", "Type"}
	for _, format := range Formats() {
		for n := range 300 {
			var all []soif.Object
			for i := range 1 + r.IntN(3) {
				o := soif.Object{Type: "FILE", URL: fmt.Sprintf("http://h/%d?a=b&c=%%20#%d", n, i)}
				if format == "bibtex" {
					o.Type = "DOCUMENT"
					o.Add(entryType, []byte("book"))
					o.Add(citationKey, []byte("key"))
				}
				if format == "lsm" {
					o.URL = fmt.Sprintf("ftp://h.org/pub/%d/%d", n, i)
				}
				for range r.IntN(8) {
					name := names[r.IntN(len(names))]
					if _, twice := o.Get(name); twice && name != "Author" || name == "Url" && format != "soif" && format != "jsonl" {
						continue
					}
					o.Add(name, []byte(value(format != "bibtex")))
				}
				if format == "lsm" {
					o.Del("Primary-site")
				}
				all = append(all, o)
			}
			text := write(t, format, all)
			got, err := read(format, text, "")
			if err != nil {
				t.Fatalf("%s: %v\n%s", format, err, text)
			}
			want := forms(all)
			for i := range got {
				got[i].URL = strings.TrimSpace(got[i].URL)
			}
			if g := forms(got); !slices.Equal(g, want) {
				t.Fatalf("%s: got\n%s\nwant\n%s\nas\n%s", format, strings.Join(g, "\n"), strings.Join(want, "\n"), text)
			}
		}
	}
}

// TestBytes keeps any bytes where a format can.
func TestBytes(t *testing.T) {
	for _, format := range []string{"csv", "jsonl", "soif"} {
		o := soif.Object{Type: "FILE", URL: "http://h/"}
		var all [256]byte
		for i := range all {
			all[i] = byte(i)
		}
		o.Add("Data", all[:])
		o.Add("Data", []byte("\r\n\"\r"))
		got, err := read(format, write(t, format, []soif.Object{o, o}), "")
		if err != nil || len(got) != 2 || form(got[1]) != form(o) {
			t.Errorf("%s: got %q, %v, want %q", format, got, err, o)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ format, text, want string }{
		{"iafa", "Title: a\nno colon\n", "line 2, column 1: 'no colon' is not of the form"},
		{"iafa", " Title: a\n", "line 1, column 1: 'Title: a' goes on with nothing"},
		{"lsm", "x\nBegin3\nTitle: a\n", "line 2, column 1: an entry without its End"},
		{"lsm", "Begin4\nTitle\nEnd\n", "line 2, column 1: 'Title' is not"},
		{"bibtex", "@book{a, title = }", "line 1, column 17: '}' where a value should be"},
		{"bibtex", "@book{a, title = {x},\n year}", "line 2, column 6: \"year}\" where"},
		{"bibtex", "@book{a,\ntitle = {x", "line 2, column 10: the text ends inside of an entry"},
		{"bibtex", "@book a", "line 1, column 7: 'a' where the { of @book should be"},
		{"bibtex", "@string{a = {b}, c = {d}}", "line 1, column 16: ',' where the } of @string"},
		{"bibtex", "@book{a = {b}}", "line 1, column 9: '=' where the , after the key"},
		{"csv", "URL,Title\nhttp://h/,\"a\n", "line 2, column 11: a quote that is not closed"},
		{"csv", "URL,Title\nhttp://h/,\"a\"b\n", "line 2, column 14: 'b' after the quote"},
		{"csv", "URL,Title\n1,2,3\n", "line 2, column 1: 3 fields, and 2 columns"},
		{"csv", "URL,,Title\n", "line 1, column 1: column 2 has no name"},
		{"jsonl", "{}\n{\"a\":1", "line 2, column"},
		{"jsonl", "{}\n[]", "line 2, column 2: [ where an object should be"},
		{"jsonl", "{\"a\":[[1]]}", "line 1, column 11: a: an array in an array"},
		{"jsonl", "{} {}", "line 1, column 5: more after the object"},
		{"rss", "<rss><item><title>a</item></rss", "line 1, column"},
		{"rss", "hello", "line 1, column 6: no feed"},
		{"atom", "<html>\n<p>", "line 1, column 7: no feed: <html> is none of"},
		{"rss", "<rss><item>", "line 1, column 12: "},
		{"soif", "@FILE { http://h/\nTitle{100}:\ta\n}\n", "line 2, column 1: http://h/: Title: value of 100 bytes runs past"},
		{"jsonl", strings.Repeat("x", MaxRecord+1), "line 1, column 1: a line of over"},
		{"csv", "a\n" + strings.Repeat("x", MaxRecord+1), "line 2, column 1: a record of over"},
		{"bibtex", "@a{b, c = {" + strings.Repeat("x", MaxRecord+1), "line 1, column 4194305: an entry of over"},
		{"rss", "<rss><item><title>" + strings.Repeat("x", 2*MaxRecord), "line 1, column 41"},
	}
	for _, tt := range tests {
		_, err := read(tt.format, tt.text, "")
		var at *Error
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || !errors.As(err, &at) || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%s %.60q:\ngot %v\nwant %s", tt.format, tt.text, err, tt.want)
		}
	}
	if _, err := NewReader("marc", nil, Options{}); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want that there is no such format", err)
	}
}

// TestConvert takes a catalogue through all formats.
func TestConvert(t *testing.T) {
	text := write(t, "soif", []soif.Object{{Type: "FILE", URL: "http://h/a", Attrs: []soif.Attr{
		{Name: "Title", Value: []byte("A <title> & more")}, {Name: "Author", Value: []byte("Ann")}, {Name: "Author", Value: []byte("Bob")}}}})
	from := "soif"
	for _, to := range append(Formats(), "soif") {
		var b bytes.Buffer
		if err := Convert(&b, to, strings.NewReader(text), from, Options{}, nil); err != nil {
			t.Fatalf("%s to %s: %v", from, to, err)
		}
		text, from = b.String(), to
	}
	for _, want := range []string{"\nTitle{16}:\tA <title> & more\n", "{3}:\tAnn\n", "{3}:\tBob\n", " { http://h/a\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q", text, want)
		}
	}
}

// TestNameOfBytes writes an attribute whose name is not UTF-8 so that it can be read.
func TestNameOfBytes(t *testing.T) {
	in := []soif.Object{{Type: "FILE", URL: "http://h/a", Attrs: []soif.Attr{{Name: "na\xe9ve", Value: []byte("\xe9")}}}}
	for _, to := range Formats() {
		all, err := read(to, write(t, to, in), "")
		if err != nil || len(all) != 1 {
			t.Errorf("%s: got %d objects, %v", to, len(all), err)
		}
	}
}

func FuzzRead(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.*")
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil {
			i := slices.Index(Formats(), strings.TrimPrefix(filepath.Ext(name), "."))
			f.Add(uint8(max(i, 0)), string(text))
		}
	}
	f.Add(uint8(1), "@string{a = {x}}@book{k, title = a # {\\'e} # \"{\\c{c}}\", author = {A and {B and C}}}")
	f.Add(uint8(slices.Index(Formats(), "lsm")), "Begin4\nTitle: t\nna\xe9ve: v\nEnd\n")
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		format := Formats()[int(n)%len(Formats())]
		all, err := read(format, text, "http://h/c")
		var at *Error
		if err != nil && (!errors.As(err, &at) || at.Line < 1 || at.Col < 1) {
			t.Fatalf("%s: got %v, want a place", format, err)
		}
		for _, o := range all {
			// What was read can be kept, and written in any format so that it can be read.
			o, _, err := soif.Parse(o.Append(nil), soif.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			for _, to := range Formats() {
				if _, err := read(to, write(t, to, []soif.Object{o}), ""); err != nil {
					t.Fatalf("%s to %s: %v", format, to, err)
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	o := soif.Object{Type: "FILE", URL: "http://h/a", Attrs: []soif.Attr{{Name: "Title", Value: []byte("A title of some words")},
		{Name: "Author", Value: []byte("Ann Other")}, {Name: "Description", Value: bytes.Repeat([]byte("words of a description "), 20)}}}
	for _, format := range Formats() {
		all := make([]soif.Object, 1000)
		for i := range all {
			all[i] = o
		}
		text := write(b, format, all)
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if got, err := read(format, text, ""); err != nil || len(got) != 1000 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
