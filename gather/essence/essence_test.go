package essence

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"harvest/gather/soif"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sum(t testing.TB, in Input) (soif.Object, Trace) {
	t.Helper()
	o, tr, err := Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return o, tr
}

// TestGolden summarizes the files in testdata; each has its object and trace
// beside it.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/in/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata/in: %d files, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if filepath.Ext(name) == ".pdf" {
				tool(t, "pdftotext")
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			o, tr := sum(t, Input{URL: "file:///in/" + filepath.Base(name), Head: b, FullText: true, Modified: time.Unix(1e9, 0)})
			got := append(o.Append(nil), tr.String()...)
			file := "testdata/want/" + filepath.Base(name) + ".soif"
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestRecognize(t *testing.T) {
	gz := string(zipped(t, []byte("hello, world\n")))
	for _, c := range []struct{ name, declared, content, want, rule string }{ // rule "" may be any
		{"a.html", "", "<p>x", "HTML", "byname: *.html"},
		{"index.html.ru", "", "<!DOCTYPE html><p>x", "HTML", "bycontent: <!doctype html (byname: *.ru, belied by content)"},
		{"config.ru", "", "run App\n", "Ruby", "byname: *.ru"},
		{"App.config", "", "\ufeff<?xml version='1.0'?><a/>", "XML", "bycontent: <?xml (byname: *.config, belied by content)"},
		{"pic.dvi", "", "\xf7\x02\x00\x03\xe0\x30\x00\x00\xe1\xd8\x00\x00\x03\xe8\x00\x8b\x00\x00", "Dvi", "byname: *.dvi"},
		{"makefile.rb", "", "task :all\n", "Ruby", ""},
		{"dockerfile.vim", "", "\" Vim\n", "Vim", ""},
		{"Makefile.PL", "", "use strict;\n", "Perl", ""},
		{"license-check.sh", "", "#!/bin/sh\n", "ShellScript", ""},
		{"README.CS", "", "Toto je\n", "README", "byname: readme.*"},
		{"l3str-enc-x.def", "", "%%\n%% This is file `l3str-enc-x.def',\n%% generated with the docstrip utility.\n", "LaTeX", "bycontent: docstrip (byname: *.def, belied by content)"},
		{"iota.hpp", "", "#pragma once\n", "CPlusPlus", "byname: *.hpp"},
		{"counter.vhd", "", "entity counter is\n", "VHDL", "byname: *.vhd"},
		{"disk.vhd", "", "\x00\x01\x02\x03\x00", "DiskImage", "bycontent: *.vhd, not text (byname: *.vhd, belied by content)"},
		{"map.mm", "", "<map version=\"1.0\"><node/></map>", "XML", "bycontent: <map version= (byname: *.mm, belied by content)"},
		{"Doc.sc", "", "Document {\n\tvar <title;\n}\n", "OtherCode", "bycontent: SuperCollider (byname: *.sc, belied by content)"},
		{"A.sc", "", "object A { val x = 1 }\n", "Scala", "byname: *.sc"},
		{"notes", "", "[0]Processor rank is\n", "Text", "content: text"},
		{"make_all", "", "# -*- Makefile -*-\nall:\n", "Makefile", "bycontent: -*- makefile -*-"},
		{"A.HTM", "", "<p>x", "HTML", "byname: *.htm"},
		{"", "text/html; charset=utf-8", "plain enough", "HTML", "server: text/html; charset=utf-8"},
		{"x.php", "text/html", "<p>x", "HTML", "server: text/html (byname: *.php)"},
		{"x.php", "", "<?php function f() {}", "PHP", "byname: *.php"},
		{"noname", "", " <!DOCTYPE html><title>x</title>", "HTML", "bycontent: <!doctype html or <html"},
		{"ls.1", "", ".TH LS 1\n.SH NAME\n", "ManPage", "bycontent: .TH or .Dt"},
		{"log.1", "", "not a manual page\n", "Text", "content: text"},
		{"libz.so.1", "", "\x7fELF\x02", "Object", "byname: re=\\.so(\\.[0-9]+)*$"},
		{"x.txt", "", gz, "GNUCompressed", "bycontent: bytes='\\x1f\\x8b\\x08' (byname: *.txt, belied by content)"},
		{"x.gz", "", "hello\n", "Text", "content: text (byname: *.gz, belied by content)"},
		{"README", "", "Read this\n", "README", "byname: readme"},
		{"README.md", "", "# Read this\n", "Markdown", "byname: *.md"},
		{"readme.txt", "", "Read this\n", "README", "byname: readme.*"},
		{"x.c", "", "int\x00\x01\x02main", "Data", "content: not text (byname: *.c, belied by content)"},
		{"x.C", "", "class x {};", "CPlusPlus", "byname: *.C"},
		{"x.pdf", "", "%PDF-1.4\n", "Pdf", "byname: *.pdf"},
		{"x", "", "\x89PNG\r\n\x1a\n\x00", "Image", "bycontent: bytes='\\x89PNG\\r\\n\\x1a\\n'"},
		{"run", "", "#!/bin/sh\necho\n", "ShellScript", "bycontent: #! sh"},
		{"run", "", "#!/usr/bin/env python3\n", "Python", "bycontent: #! python"},
		{"Makefile.am", "", "all:\n", "Makefile", "byname: makefile.*"},
		{"x.go", "", "package x\n", "Go", "byname: *.go"},
		{"empty.txt", "", "", "Empty", "content: empty"},
		{"wide.txt", "", "\xff\xfeh\x00i\x00", "Text", "byname: *.txt"},
		{"page%2Ehtml", "", "<p>x", "Text", "content: text"},
	} {
		w := &worker{ctx: t.Context(), tab: ownTables()}
		k, rule := w.recognize(&content{name: c.name, declared: c.declared, head: []byte(c.content)})
		if k.name != c.want || c.rule != "" && rule != c.rule {
			t.Errorf("%q %q: got %s by %q, want %s by %q", c.name, c.declared, k.name, rule, c.want, c.rule)
		}
	}
}

func TestNameOf(t *testing.T) {
	for url, want := range map[string]string{
		"file:///a/b%20c.txt":       "b c.txt",
		"http://site":               "",
		"http://site/":              "",
		"http://site/x.html?y=/z.c": "x.html",
		"file:///100%":              "100%",
		"plain.md":                  "plain.md",
	} {
		if got := nameOf(url); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}

func TestCharset(t *testing.T) {
	for _, c := range []struct{ name, declared, content, want string }{
		{"a.html", "", "<meta charset=iso-8859-1><title>M\xfcnchen</title>", "München"},
		{"a.html", "text/html; charset=windows-1251", "<title>\xcf\xf0\xe8\xe2\xe5\xf2</title>", "Привет"},
		{"a.html", "", "<title>na\xefve</title>", "naïve"},
		{"a.html", "text/html; charset=iso-8859-1", "<title>na\u00efve</title>", "naïve"},
		{"a.txt", "", "\xff\xfeh\x00i\x00 \x00m\x00e\x00n\x00", "hi men"},
		{"a.txt", "", "\xef\xbb\xbfmarked\n", "marked"},
	} {
		o, _ := sum(t, Input{Name: c.name, Type: c.declared, Head: []byte(c.content)})
		if got := o.Text("Title"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.content, got, c.want)
		}
	}
}

// TestWhole sees that the sum, the size and the text do not depend on how much
// of the object came as Head.
func TestWhole(t *testing.T) {
	text := []byte(strings.Repeat("Some words of a text that is not short.\n", 5000))
	want := md5.Sum(text)
	for _, n := range []int{0, 1, 1000, len(text)} {
		in := Input{Name: "a.txt", Head: text[:n], Rest: iotest.OneByteReader(bytes.NewReader(text[n:]))}
		if n == len(text) {
			in.Rest = nil
		}
		o, _ := sum(t, in)
		if got := o.Text("MD5"); got != hex.EncodeToString(want[:]) {
			t.Errorf("head of %d: MD5: got %s, want %x", n, got, want)
		}
		if got := o.Text("File-Size"); got != fmt.Sprint(len(text)) {
			t.Errorf("head of %d: File-Size: got %s, want %d", n, got, len(text))
		}
		limit := o.Text("Summary-Limit")
		if cut := n == 1 || n == 1000; cut != (limit != "") {
			t.Errorf("head of %d: Summary-Limit: got %q", n, limit)
		}
	}
}

func TestReadError(t *testing.T) {
	want := errors.New("bad disk")
	_, _, err := Summarize(t.Context(), Input{Name: "a.txt", Head: []byte("x"), Rest: iotest.ErrReader(want)})
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Summarize(ctx, Input{Name: "a.txt", Head: []byte("x"), Rest: endless{}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestFullTextLimit(t *testing.T) {
	text := strings.Repeat("word ", 1000)
	o, _ := sum(t, Input{Name: "a.txt", Head: []byte(text), FullText: true, Limits: Limits{Text: 100}})
	if n := len(o.Text("Full-Text")); n > 100 || n < 90 {
		t.Errorf("Full-Text: got %d bytes, want just under 100", n)
	}
	if want := "Full-Text cut at 100 of 4999 bytes"; o.Text("Summary-Limit") != want {
		t.Errorf("Summary-Limit: got %q, want %q", o.Text("Summary-Limit"), want)
	}
	o, _ = sum(t, Input{Name: "a.txt", Head: []byte(text)})
	if _, ok := o.Get("Full-Text"); ok {
		t.Error("Full-Text without being asked for")
	}
}

func zipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type member struct {
	name string
	body []byte
}

func tarOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.body)), ModTime: time.Unix(1e9, 0)}); err != nil {
			t.Fatal(err)
		}
		w.Write(m.body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnnest(t *testing.T) {
	page := []byte("<title>Innermost</title><p>Text in a page in an archive, compressed twice over.")
	inner := zipped(t, tarOf(t, member{"doc/page.html", page}, member{"empty", nil}))
	b := zipped(t, tarOf(t, member{"a/one.txt", []byte("One\n\nThe first of them.\n")}, member{"b/two.tgz", inner}))
	o, tr := sum(t, Input{URL: "http://site/all.tar.gz", Head: b, FullText: true})
	for name, want := range map[string]string{
		"Type":                          "GNUCompressedTar",
		"Embed1-Nested-Filename":        "a/one.txt",
		"Embed1-Title":                  "One",
		"Embed1-Type":                   "Text",
		"Embed2-Type":                   "GNUCompressedTar",
		"Embed2-Embed1-Title":           "Innermost",
		"Embed2-Embed1-File-Size":       fmt.Sprint(len(page)),
		"Embed2-Embed1-MD5":             fmt.Sprintf("%x", md5.Sum(page)),
		"Embed2-Embed1-Full-Text":       "Text in a page in an archive, compressed twice over.",
		"Embed2-Embed2-Type":            "Empty",
		"Embed1-Last-Modification-Time": "1000000000",
		"Summary-Limit":                 "",
	} {
		if got := o.Text(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if want := "b/two.tgz/doc/page.html"; !strings.Contains(tr.String(), want) {
		t.Errorf("trace: got\n%swant %s in it", tr, want)
	}
	if _, n, err := soif.Parse(o.Append(nil), soif.Limits{}); err != nil || n == 0 {
		t.Errorf("the object does not parse: %v", err)
	}
}

func TestBombs(t *testing.T) {
	zeros := zipped(t, make([]byte, 32<<20))
	deep := []byte("the end of it\n")
	for range 40 {
		deep = zipped(t, deep)
	}
	var many []member
	for i := range 50 {
		many = append(many, member{fmt.Sprint(i), []byte("x")})
	}
	for _, c := range []struct {
		name string
		b    []byte
		lim  Limits
		want string
	}{
		{"ratio.gz", zeros, Limits{}, "unnesting stopped: more than 200 times the size"},
		{"bytes.gz", zeros, Limits{Out: 1 << 20, Ratio: 1 << 40}, "unnesting stopped after 1048576 bytes"},
		{"in.tar", tarOf(t, member{"z.gz", zeros}), Limits{}, "unnesting stopped: more than 200 times the size"},
		{"deep.gz", deep, Limits{}, "nested more than 32 deep"},
		{"many.tar", tarOf(t, many...), Limits{Members: 10}, "only the first 10 members"},
		{"broken.gz", zeros[:len(zeros)/2], Limits{Ratio: 1 << 40}, "gzip: unexpected EOF"},
		{"broken.tar", tarOf(t, member{"a", make([]byte, 4000)})[:2000], Limits{}, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			o, _ := sum(t, Input{Name: c.name, Head: c.b, Limits: c.lim})
			if got := o.Text("Summary-Limit"); !strings.Contains(got, c.want) {
				t.Errorf("Summary-Limit: got %q, want %q in it", got, c.want)
			}
			if got, want := o.Text("MD5"), fmt.Sprintf("%x", md5.Sum(c.b)); got != want {
				t.Errorf("MD5: got %s, want %s", got, want)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestPanic sees that a summarizer that fails costs its attributes and no more.
func TestPanic(t *testing.T) {
	w := &worker{ctx: t.Context(), tab: ownTables()}
	w.lim.defaults()
	var o soif.Object
	w.safely(&o, &content{name: "x.html", head: []byte("<p>"), rest: nil, declared: ""}, 0)
	if len(w.cuts) != 0 {
		t.Fatalf("got %q, want nothing cut", w.cutLines())
	}
	w.lim.Head = 0
	w.safely(&o, &content{name: "x.gz", head: []byte("\x1f\x8b\x08")}, 0) // rest is nil, which no caller leaves it
	if len(w.cuts) != 1 || !strings.Contains(w.cuts[0].what, "failed") {
		t.Errorf("got %q, want that the summarizer failed", w.cutLines())
	}
}

// TestKeywords compares with a count that takes its time.
func TestKeywords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var text []string
		for range r.IntN(2000) {
			text = append(text, fmt.Sprintf("w%c%c", 'A'+rune(r.IntN(1+r.IntN(26))), 'a'+rune(r.IntN(26))))
		}
		got := keywords([]byte(strings.Join(text, " ")), 30)
		if want := slowKeywords(text, 30); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if got, want := keywords([]byte("The cat and THE dog; a Cat, 12 34x is_it"), 5), "cat dog is_it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func slowKeywords(text []string, n int) string {
	count, first := map[string]int{}, map[string]int{}
	for i, w := range text {
		w = strings.ToLower(w)
		if count[w]++; count[w] == 1 {
			first[w] = i
		}
	}
	var all []string
	for w := range count {
		if k := lexical().find(hashWord(w), []byte(w)); k == nil || k.of&tongueOf("en") == 0 {
			all = append(all, w)
		}
	}
	worth := func(w string) int {
		if k := lexical().find(hashWord(w), []byte(w)); k != nil && k.common > 0 {
			return count[w] * int(k.common)
		}
		return count[w] * rare
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(worth(b), worth(a)), cmp.Compare(first[a], first[b]))
	})
	return strings.Join(all[:min(n, len(all))], " ")
}

// TestHostile holds each summarizer to time in proportion to its input.
func TestHostile(t *testing.T) {
	big := func(s string) []byte { return []byte(strings.Repeat(s, (256<<10)/len(s))) }
	for name, b := range map[string][]byte{
		"a.html": big("<div><p><h1>"), "b.html": big("<"), "c.html": big("<a href=x y=z "), "d.html": big("&#x"),
		"e.html": big("<!--"), "f.html": big("<title>"), "g.html": append([]byte("<script>"), big("x</scrip")...),
		"a.md": big("[a]("), "b.md": big("# x\n"), "c.md": big("```\n"), "d.md": big("*_`"), "e.md": big("<a <![ ```` /* ("),
		"a.1": append([]byte(".TH A 1\n"), big(`\[\(\f`)...), "b.1": append([]byte(".TH A 1\n"), big(".SH \"a \\\"\n")...),
		"a.c": big("int x("), "b.c": big("/*"), "c.c": big("#define a a("), "a.py": big(`"""`), "a.java": big("public static "),
		"a.js": big("export default async "), "a.txt": big("\b\x1b["), "b.txt": big("\n\n"), "a.sh": big("a-"),
	} {
		start := time.Now()
		o, _ := sum(t, Input{Name: name, Head: b, FullText: true})
		d := time.Since(start)
		if t.Logf("%s: %v", name, d); d > 10*time.Second {
			t.Errorf("%s: %s took %v", name, o.Text("Type"), d)
		}
	}
}

func FuzzHTML(f *testing.F) { fuzz(f, "a.html") }
func FuzzMan(f *testing.F)  { fuzz(f, "a.1") }
func FuzzTar(f *testing.F)  { fuzz(f, "a.tar") }
func FuzzGzip(f *testing.F) { fuzz(f, "a.gz") }
func FuzzAny(f *testing.F)  { fuzz(f, "") }

// fuzz sees that anything becomes an object that reads back the same.
func fuzz(f *testing.F, name string) {
	names, _ := filepath.Glob("testdata/in/*")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(n), b)
	}
	f.Add("a.tar", tarOf(f, member{"x.html", []byte("<title>x")}, member{"y.1", []byte(".TH Y 1")}))
	f.Add("a.tgz", zipped(f, tarOf(f, member{"x.html", []byte("<title>x")})))
	f.Fuzz(func(t *testing.T, n string, b []byte) {
		if name != "" {
			n = name
		}
		in := Input{URL: "file:///x", Name: n, Head: b, FullText: true, Limits: Limits{Out: 1 << 20}}
		if len(b) > 0 && b[0]&1 == 0 {
			in.Head, in.Rest = b[:len(b)/2], bytes.NewReader(b[len(b)/2:])
		}
		o, _, err := Summarize(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := o.Text("MD5"), fmt.Sprintf("%x", md5.Sum(b)); got != want {
			t.Errorf("MD5: got %s, want %s", got, want)
		}
		if strings.Contains(o.Text("Summary-Limit"), "the summarizer failed") {
			t.Errorf("a summarizer failed: %s", o.Text("Summary-Limit"))
		}
		enc := o.Append(nil)
		back, n2, err := soif.Parse(enc, soif.Limits{})
		if err != nil || n2 != len(enc) {
			t.Fatalf("reads back %d of %d bytes: %v", n2, len(enc), err)
		}
		if again := back.Append(nil); !bytes.Equal(again, enc) {
			t.Errorf("reads back as\n%q\nwant\n%q", again, enc)
		}
	})
}

// BenchmarkSummarize takes real pages, if they are installed.
func BenchmarkSummarize(b *testing.B) {
	for name, glob := range map[string]string{
		"javadoc":   "/usr/share/doc/openjdk-17-jre-headless/api/java.base/java/util/*.html",
		"python":    "/usr/share/doc/python3.11/html/library/*.html",
		"man":       "/usr/share/man/man1/*.1.gz",
		"copyright": "/usr/share/doc/*/copyright",
	} {
		b.Run(name, func(b *testing.B) {
			names, _ := filepath.Glob(glob)
			var pages [][]byte
			var size int64
			for _, n := range names[:min(len(names), 200)] {
				p, err := os.ReadFile(n)
				if err != nil {
					b.Fatal(err)
				}
				pages, size = append(pages, p), size+int64(len(p))
			}
			if len(pages) == 0 {
				b.Skip("not installed")
			}
			b.SetBytes(size / int64(len(pages)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, _, err := Summarize(b.Context(), Input{Name: filepath.Base(names[i%len(pages)]), Head: pages[i%len(pages)], FullText: true}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
