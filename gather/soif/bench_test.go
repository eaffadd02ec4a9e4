package soif

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// sample is an object as a Gatherer makes them: standard attributes, one of its
// own and one member, with keywords to fill it up to about size bytes.
func sample(r *rand.Rand, i, size int) Object {
	o := Object{Type: "FILE", URL: fmt.Sprintf("https://docs.example.org/manual/chapter%d/page%d.html", i%17, i)}
	for _, a := range [][2]string{
		{"Title", fmt.Sprintf("Page %d of the manual", i)},
		{"Author", "A. N. Author"}, {"Author-1", "Another One"},
		{"Type", "HTML"}, {"File-Size", fmt.Sprint(1000 + i)},
		{"MD5", fmt.Sprintf("%032x", i)},
		{"Update-Time", "1795267800"}, {"Last-Modification-Time", "1795260000"},
		{"Time-to-Live", "15552000"}, {"Refresh-Rate", "2592000"},
		{"Gatherer-Name", "docs"}, {"Gatherer-Host", "localhost"}, {"Gatherer-Version", "1"},
		{"Language", "en"}, {"Embed1-Nested-Filename", "figure.png"}, {"Embed1-Type", "Image"},
	} {
		o.Add(a[0], []byte(a[1]))
	}
	var words []byte
	for n := len(o.Append(nil)); n+len(words) < size; {
		words = fmt.Appendf(words, "word%d\n", r.IntN(5000))
	}
	o.Add("Keywords", words)
	return o
}

func stream(objects, size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for i := range objects {
		o := sample(r, i, size)
		b = o.Append(b)
	}
	return b
}

var sizes = []struct {
	name          string
	objects, size int
}{
	{"attrs=17/object=700B", 12000, 700},
	{"attrs=17/object=2KB", 4000, 2 << 10},
	{"attrs=17/object=64KB", 128, 64 << 10},
}

func BenchmarkDecoder(b *testing.B) {
	for _, s := range sizes {
		in := stream(s.objects, s.size)
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				d := NewDecoder(bytes.NewReader(in), Limits{})
				var o Object
				n := 0
				for d.Next(&o) == nil {
					n++
				}
				if n != s.objects {
					b.Fatal(n, d.err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, s := range sizes {
		in := stream(s.objects, s.size)
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := in; len(rest) > 0; {
					_, n, err := Parse(rest, Limits{})
					if err != nil {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
			}
		})
	}
}

func BenchmarkEncoder(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range sizes {
		o := sample(r, 1, s.size)
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(o.Append(nil))))
			b.ReportAllocs()
			e := NewEncoder(io.Discard)
			for b.Loop() {
				if err := e.Encode(&o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	o := sample(rand.New(rand.NewPCG(1, 2)), 1, 2<<10)
	b.ReportAllocs()
	for b.Loop() {
		if err := o.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateReader(b *testing.B) {
	in := updates(4000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		u := NewUpdateReader(bytes.NewReader(in), Limits{})
		var c Change
		n := 0
		for u.Next(&c) == nil {
			n++
		}
		if n != 4000 || u.Cursor() != "e.4000" {
			b.Fatal(n, u.Cursor())
		}
	}
}

func updates(objects int) []byte {
	var buf bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	u := NewUpdateWriter(&buf)
	for i := range objects {
		o := sample(r, i, 2<<10)
		if err := u.Write(Update, o.Append(nil)); err != nil {
			panic(err)
		}
	}
	if err := u.Close(fmt.Sprint("e.", objects)); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// BenchmarkHostile reads streams made to cost the most: every line begins an
// object whose value swallows the rest, up to where it turns out to be wrong, so
// that all of them overlap. MB/s must not fall with the size.
func BenchmarkHostile(b *testing.B) {
	for _, size := range []int{256 << 10, 1 << 20} {
		for _, kind := range []struct{ name, end string }{
			{"size", "x"}, {"blanks", string(bytes.Repeat([]byte("\n"), size/2)) + "x"}, {"name", "\n" + string(bytes.Repeat([]byte("x"), size/2))},
		} {
			in := hostile(size-len(kind.end), kind.end)
			b.Run(fmt.Sprintf("%s/bytes=%dk", kind.name, len(in)>>10), func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					d := NewDecoder(bytes.NewReader(in), Limits{})
					var o Object
					n := 0
					for err := d.Next(&o); err != io.EOF; err = d.Next(&o) {
						if err := d.Resync(); err != nil {
							break
						}
						n++
					}
					if n < (size-len(kind.end))/40 {
						b.Fatal(n)
					}
				}
			})
		}
	}
}

// hostile is size bytes of objects that all have their value end where end begins.
func hostile(size int, end string) []byte {
	const head = "\n@A { x\nB{%010d}:\t"
	line := len(fmt.Sprintf(head, 0))
	n := size / line
	var b []byte
	for i := range n {
		b = fmt.Appendf(b, head, (n-i-1)*line)
	}
	return append(b, end...)
}
