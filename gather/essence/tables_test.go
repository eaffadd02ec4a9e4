package essence

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	iofs "io/fs"
	"strings"
	"testing"

	"harvest/fs/ndb"
)

// parsed makes Tables of texts, in pairs of a name and a text.
func parsed(t testing.TB, text ...string) *Tables {
	t.Helper()
	m := make(map[string]string)
	for i := 0; i < len(text); i += 2 {
		m[text[i]] = text[i+1]
	}
	tab, err := ParseTables(m)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// TestDefaultTables sees that every table is good as it stands, is what 'include
// default' stands for, and names no type that kinds does not have.
func TestDefaultTables(t *testing.T) {
	own := ownTables()
	for _, k := range own.Types() {
		if k.About == "" {
			t.Errorf("%s: a table names it and kinds has no line about it", k.Name)
		}
	}
	tab := parsed(t, "kinds", "include default\n", "byname", "include default\n", "bycontent", "include default\n", "select", "include default\n")
	if got, want := len(tab.byname.all), len(own.byname.all); got != want {
		t.Errorf("include default: got %d patterns, want %d", got, want)
	}
	if got, want := len(tab.bycontent), len(own.bycontent); got != want {
		t.Errorf("include default: got %d lines, want %d", got, want)
	}
	if _, err := DefaultTable("bynane"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("bynane: got %v, want that it does not exist", err)
	}
}

// TestSeedTypes sees that all types of SOIF's page and of the original are told,
// by a name or by content.
func TestSeedTypes(t *testing.T) {
	told := make(map[string]bool)
	own := ownTables()
	for _, p := range append(own.byurl.all, own.byname.all...) {
		told[p.kind.name] = true
	}
	for _, r := range own.bycontent {
		if r.kind != nil {
			told[r.kind.name] = true
		}
	}
	for _, k := range own.media {
		told[k.name] = true // a server may say so
	}
	for typ := range strings.FieldsSeq(`Archive Audio Awk Backup Binary C CHeader Command Compressed CompressedTar
		Configuration Data Directory DotFile Dvi FAQ FYI Font FormattedText GDBM GNUCompressed GNUCompressedTar HTML
		Image Internet-Draft MacCompressed Mail Makefile ManPage Object OtherCode PCCompressed Patch Pdf Perl
		PostScript RCS README RFC RTF SCCS ShellArchive Tar Tcl Tex Text Troff Uuencoded WaisSource Bibliographic
		FrameMaker LaTeX News ShellScript SourceDistribution SymbolicLink SOIFStream SGML
		XML JSON YAML TOML CSV CSS Markdown ReST AsciiDoc Org Go Python Rust Java JavaScript TypeScript Ruby PHP SQL EPUB Word
		Excel PowerPoint ODText ODSpreadsheet ODPresentation WordOLE ExcelOLE SevenZip RAR XZCompressed ZstdCompressed
		LZ4Compressed BrotliCompressed LzipCompressed Video SQLite ICalendar VCard BibTeX Jupyter WebAssembly`) {
		if !told[typ] {
			t.Errorf("%s: nothing tells it", typ)
		}
	}
}

func TestTableErrors(t *testing.T) {
	for _, c := range []struct{ table, text, want string }{
		{"byname", "HTML *.html\nHTML", "line 2, column 1: HTML: no pattern"},
		{"byname", "HTML *.x=y", "line 1, column 6: unknown key '*.x'; there are patterns and re=, and a pattern with '=' stands between quotes"},
		{"byname", "9to5 *.x", "line 1, column 1: '9to5' is no type: one is up to 64 letters, digits, '-', '+' and '_', and begins with a capital letter"},
		{"byname", "X re='('", "line 1, column 3: re: '(' is no regular expression: error parsing regexp: missing closing ): `(`"},
		{"byurl", "X *.[", "line 1, column 3: '*.[' is no pattern: syntax error in pattern"},
		{"byname", "include default\n\ninclude default", "line 3, column 1: include default: already in line 1"},
		{"byname", "include defaults", "line 1, column 1: include: there is 'include default'"},
		{"kinds", "X text binary", "line 1, column 1: X: it cannot be text and binary"},
		{"kinds", "X on=X", "line 1, column 3: on: X stands on X itself"},
		{"kinds", "A on=B\nB on=A", "line 2, column 3: on: A stands on B itself"},
		{"kinds", "X media=pdf", "line 1, column 3: media: 'pdf' is not a media type such as text/plain"},
		{"bycontent", "X", "line 1, column 1: X: no condition"},
		{"bycontent", "X at=9-1 bytes=a", "line 1, column 3: at: '9-1' is not an offset up to 65536, nor two with '-' between them"},
		{"bycontent", `X bytes='\q'`, `line 1, column 3: bytes: '\q' is not written as in Go`},
		{"bycontent", "X byte=a", "line 1, column 3: unknown key 'byte'; there are bytes, at, tar, zip, ole, re, name, text, binary, sure, media and say"},
		{"select", "reject", "line 1, column 1: reject: no type"},
		{"select", "refuse X", "line 1, column 1: 'refuse': a line begins with accept, reject or drop, or is include default"},
		{"select", "drop %.o", "line 1, column 1: drop: write drop %.o with %.c"},
		{"select", "drop %.o when %.c", "line 1, column 10: drop: 'with' is wanted, not 'when'"},
		{"options", "HTML", "line 1, column 1: no option"},
		{"options", "HTML keywords=-1", "line 1, column 6: keywords: no, a number up to 1000, or with a part of the text as in 60+5%"},
		{"options", "HTML md5=maybe", "line 1, column 6: md5: 'maybe' is neither yes, no nor fake"},
		{"options", "HTML terse Text", "line 1, column 12: 'Text': types stand before options, and no option is called so"},
	} {
		_, err := ParseTables(map[string]string{c.table: c.text})
		var at *TableError
		if !errors.As(err, &at) || at.Name != c.table || at.Err.Error() != c.want {
			t.Errorf("%s %q: got %v, want %s", c.table, c.text, err, c.want)
		}
		var place *ndb.Error
		if err != nil && !errors.As(err, &place) {
			t.Errorf("%s %q: got %T, want an error with a place", c.table, c.text, err)
		}
	}
}

// TestOwnLines sees that lines before 'include default' go first, and that a text
// without it stands alone.
func TestOwnLines(t *testing.T) {
	html := func(tab *Tables) string {
		k, _ := tab.named("", "x.html")
		if k == nil {
			return ""
		}
		return k.name
	}
	for text, want := range map[string]string{
		"Recipe *.html\ninclude default": "Recipe",
		"include default\nRecipe *.html": "HTML",
		"Recipe *.rcp":                   "",
	} {
		if got := html(parsed(t, "byname", text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestInside sees that containers are told by what is in them, wherever that
// stands, without unpacking.
func TestInside(t *testing.T) {
	zipped := func(names ...string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, n := range names {
			w, _ := z.Create(n)
			io.WriteString(w, strings.Repeat("some text ", 100))
		}
		z.Close()
		return b.String()
	}
	var old bytes.Buffer
	w := tar.NewWriter(&old)
	w.WriteHeader(&tar.Header{Name: "a", Mode: 0o644, Format: tar.FormatUSTAR})
	w.Close()
	v7 := bytes.Clone(old.Bytes())
	clear(v7[257:265]) // the mark, which is newer than the sum
	for i, sum := 0, 0; i < 512; i++ {
		if i >= 148 && i < 156 {
			sum += ' '
		} else {
			sum += int(v7[i])
		}
		if i == 511 {
			copy(v7[148:], []byte("00"+itoa8(sum)+"\x00 "))
		}
	}
	for _, c := range []struct{ name, content, want string }{
		{"x", zipped("[Content_Types].xml", "word/document.xml"), "Word"},
		{"x.zip", zipped("[Content_Types].xml", "xl/workbook.xml"), "Excel"},
		{"x.pptx", zipped("ppt/slides/slide1.xml"), "PowerPoint"},
		{"x.docx", zipped("a.txt"), "Word"}, // what makes it one may stand past the head
		{"x", zipped("META-INF/MANIFEST.MF", "A.class"), "Jar"},
		{"x.apk", zipped("META-INF/MANIFEST.MF", "AndroidManifest.xml"), "AndroidPackage"},
		{"x.epub", zipped("mimetype", "META-INF/container.xml"), "EPUB"},
		{"x", old.String(), "Tar"},
		{"x", string(v7), "Tar"},
		{"x.tar", strings.Repeat("no header at all\n", 64), "Text"},
	} {
		w := &worker{ctx: t.Context(), tab: ownTables()}
		if k, rule := w.recognize(&content{name: c.name, head: []byte(c.content)}); k.name != c.want {
			t.Errorf("%s: got %s by %q, want %s", c.name, k.name, rule, c.want)
		}
	}
}

func itoa8(n int) string {
	var b []byte
	for shift := 15; shift >= 0; shift -= 3 {
		b = append(b, '0'+byte(n>>shift&7))
	}
	return string(b[2:])
}

func TestRejects(t *testing.T) {
	tab := parsed(t, "select", "accept Pdf HTML C\nreject *")
	for url, want := range map[string]string{
		"http://h/a.pdf":       "",
		"http://h/a.h":         "", // it stands on C
		"http://h/a.png?x=y.c": "select: reject * (Image, byname: *.png)",
		"http://h/a.html":      "",
		"http://h/what":        "", // nothing tells
		"news:x@y":             "select: reject * (News, byurl: news:*)",
	} {
		got, ok := tab.Rejects(url)
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t, want %q", url, got, ok, want)
		}
	}
	if _, ok := (*Tables)(nil).Rejects("http://h/a.png"); ok {
		t.Error("without tables: got a rejection")
	}
	o, trace, err := Summarize(t.Context(), Input{URL: "http://h/x", Head: []byte("\x89PNG\r\n\x1a\n"), Tables: tab})
	if !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "select: reject *: Image") {
		t.Errorf("got %v, %v, want that it is rejected", o, err)
	}
	if s := trace.String(); !strings.Contains(s, "select\trejected\tselect: reject *\t") {
		t.Errorf("trace: got %q, want the rule in it", s)
	}
}

func TestTwins(t *testing.T) {
	got := ownTables().twins([]string{"d/main.o", "d/main.c", "main.o", "d/a.txt", "d/a.txt.gz", "d/.gz"})
	want := map[int]string{
		0: "select: drop %.o with %.c %.cc %.cpp %.cxx %.f %.f90 %.s %.S %.m %.go %.rs %.y %.l: d/main.c is there",
		3: "select: drop % with %.gz %.Z %.bz2 %.xz %.zst %.lz %.lzma %.br: d/a.txt.gz is there",
	}
	if len(got) != len(want) || got[0] != want[0] || got[3] != want[3] {
		t.Errorf("got %v, want %v", got, want)
	}
	if m := ownTables().Dropped("main.c"); m["main.o"] == "" || m["main.lo"] == "" {
		t.Errorf("Dropped: got %q, want main.o and main.lo in it", m)
	}
}

// FuzzTables sees that no text makes a parser panic, and that what is refused is
// told with its place.
func FuzzTables(f *testing.F) {
	for i, name := range TableNames() {
		text, _ := DefaultTable(name)
		f.Add(i, text[:min(len(text), 2000)])
	}
	f.Add(3, "X at=1-2 bytes='\\x00' zip=* ole re=a name=*.x")
	f.Fuzz(func(t *testing.T, i int, text string) {
		names := TableNames()
		name := names[(i%len(names)+len(names))%len(names)]
		tab, err := ParseTables(map[string]string{name: text})
		if err != nil {
			var at *TableError
			if !errors.As(err, &at) {
				t.Errorf("got %v, want which table it is of", err)
			}
			return
		}
		w := &worker{ctx: t.Context(), tab: tab}
		w.recognize(&content{name: "a.b", head: []byte("PK\x03\x04 some text")})
		tab.Rejects("http://h/" + text)
		tab.option(text)
	})
}

// FuzzRecognize sees that no content makes recognition panic.
func FuzzRecognize(f *testing.F) {
	f.Add("a.zip", "PK\x03\x04\x00\x00")
	f.Add("a.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"+strings.Repeat("\x00", 22)+"\x09\x00"+strings.Repeat("\x00", 600))
	f.Add("a.c", "int main;")
	f.Add("", "\xff\xfea\x00")
	f.Fuzz(func(t *testing.T, name, text string) {
		w := &worker{ctx: t.Context(), tab: ownTables()}
		w.lim.defaults()
		defer w.close()
		if k, rule := w.recognize(&content{name: name, head: []byte(text), rest: bytes.NewReader(nil)}); k == nil || rule == "" {
			t.Errorf("got %v by %q, want a type and a rule", k, rule)
		}
	})
}

func BenchmarkRecognize(b *testing.B) {
	page := []byte("<!doctype html><title>x</title>" + strings.Repeat("<p>Some words of a page. ", 4000))
	for b.Loop() {
		w := &worker{ctx: b.Context(), tab: ownTables()}
		w.recognize(&content{name: "page", head: page})
	}
}

func BenchmarkParseTables(b *testing.B) {
	for b.Loop() {
		if _, err := ParseTables(nil); err != nil {
			b.Fatal(err)
		}
	}
}
