package essence

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/gather/soif"
)

// setUnnest makes tables with lines before the program's own of unnest.
func setUnnest(t testing.TB, lines string) *Tables {
	t.Helper()
	tab, err := ParseTables(map[string]string{"unnest": lines + "\ninclude default\n"})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// made runs a shell command in a folder with a page in it, and returns a file
// that it made. It skips where a program is absent.
func madeBy(t testing.TB, command, file string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/page.html", []byte("<title>Innermost</title><p>"+strings.Repeat("Words of the page. ", 20)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.FieldsFunc(command, func(r rune) bool { return r == '&' || r == '|' || r == ';' || r == '(' }) {
		if f := strings.Fields(part); len(f) > 0 && f[0] != "printf" && f[0] != "cat" {
			if _, err := exec.LookPath(f[0]); err != nil {
				t.Skipf("%s is not here", f[0])
			}
		}
	}
	cmd := exec.Command("sh", "-ec", command)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const letter = `printf 'From: a@b\nTo: c@d\nSubject: One\nDate: Sat, 21 Nov 2026 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nSee there.\n\n--x\nContent-Type: text/html; name=page.html\nContent-Disposition: attachment; filename=page.html\nContent-Transfer-Encoding: base64\n\n' >m.eml; base64 page.html >>m.eml; printf '\n--x--\n' >>m.eml`

// TestFormats takes what real programs have made apart, and more than one layer.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ command, file, title, typ string }{
		{"gzip -k page.html", "page.html.gz", "Title", "HTML"},
		{"bzip2 -k page.html", "page.html.bz2", "Title", "HTML"},
		{"xz -k page.html", "page.html.xz", "Title", "HTML"},
		{"lzma -k page.html", "page.html.lzma", "Title", "HTML"},
		{"lzip -k page.html", "page.html.lz", "Title", "HTML"},
		{"zstd -q page.html", "page.html.zst", "Title", "HTML"},
		{"lz4 -q page.html page.html.lz4", "page.html.lz4", "Title", "HTML"},
		{"lz4 -q -l page.html page.html.lz4", "page.html.lz4", "Title", "HTML"},
		{"brotli page.html", "page.html.br", "Title", "HTML"},
		{"compress -f page.html", "page.html.Z", "Title", "HTML"},
		{"tar cf a.tar page.html", "a.tar", "Embed1-Title", "Tar"},
		{"tar --format=v7 -cf a.tar page.html", "a.tar", "Embed1-Title", "Tar"},
		{"tar --format=gnu -cf a.tar page.html", "a.tar", "Embed1-Title", "Tar"},
		{"tar --format=pax -cf a.tar page.html", "a.tar", "Embed1-Title", "Tar"},
		{"tar czf a.tgz page.html", "a.tgz", "Embed1-Title", "GNUCompressedTar"},
		{"tar cf a.tar page.html && xz a.tar", "a.tar.xz", "Embed1-Title", "CompressedTar"},
		{"tar cf a.tar page.html && zstd -q a.tar -o a.tzst", "a.tzst", "Embed1-Title", "CompressedTar"},
		{"tar cf a.tar page.html && bzip2 a.tar && cat a.tar.bz2 >noname", "noname", "Embed1-Title", "CompressedTar"},
		{"zip -q a.zip page.html", "a.zip", "Embed1-Title", "PCCompressed"},
		{"7z a a.7z page.html", "a.7z", "Embed1-Title", "SevenZip"},
		{"ar qc a.a page.html", "a.a", "Embed1-Title", "Archive"},
		{"ls page.html | cpio -o --quiet -H newc -O a.cpio", "a.cpio", "Embed1-Title", "Cpio"},
		{"genisoimage -quiet -R -o a.iso page.html", "a.iso", "Embed1-Title", "ISOImage"},
		{"uuencode page.html page.html >a.uu", "a.uu", "Embed1-Title", "Uuencoded"},
		{"printf 'Here it is:\n\n' >a.txt; uuencode page.html page.html >>a.txt", "a.txt", "Embed1-Title", "Text"},
		{"shar -q -T page.html >a.shar 2>/dev/null", "a.shar", "Embed1-Title", "ShellArchive"},
		{letter, "m.eml", "Embed1-Title", "Mail"},
		{letter + "; printf 'From a@b Sat Nov 21 10:00:00 2026\n' >a.mbox; cat m.eml >>a.mbox; printf '\nFrom c@d Sat Nov 21 11:00:00 2026\nFrom: c@d\nSubject: Two\n\nhi\n' >>a.mbox", "a.mbox", "Embed1-Embed1-Title", "Mail"},
		// a compressed tar in uuencode in mail, in a zip in a 7z in an ar, compressed
		{"tar cf p.tar page.html && compress -f p.tar && (printf 'From: a@b\nTo: c@d\nSubject: x\n\nhere\n\n'; uuencode p.tar.Z p.tar.Z) >m.eml && zip -q m.zip m.eml && 7z a m.7z m.zip && ar qc m.a m.7z && xz m.a",
			"m.a.xz", "Embed1-Embed1-Embed1-Embed1-Embed1-Title", "Archive"},
	} {
		t.Run(c.file+" of "+c.command[:min(len(c.command), 30)], func(t *testing.T) {
			b := madeBy(t, c.command, c.file)
			for _, n := range []int{len(b), 0} { // all at once, and as it comes
				in := Input{URL: "http://site/" + c.file, Head: b[:n], Rest: bytes.NewReader(b[n:])}
				if n == len(b) {
					in.Rest = nil
				}
				o, tr := sum(t, in)
				if got := o.Text(c.title); got != "Innermost" || o.Text("Type") != c.typ || o.Text("Summary-Limit") != "" {
					t.Fatalf("got %s %q of a %s, limit %q, want %s and a %s\n%s", c.title, got, o.Text("Type"), o.Text("Summary-Limit"), "Innermost", c.typ, tr)
				}
			}
		})
	}
}

// recursive is r.zip, which has itself inside, from the tests of archive/zip.
func recursive(t *testing.T) []byte {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("r.zip is not here: %v", err)
	}
	src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src/archive/zip/reader_test.go"))
	if err != nil {
		t.Skipf("r.zip is not here: %v", err)
	}
	_, text, _ := strings.Cut(string(src), "func rZipBytes() []byte")
	text, _, _ = strings.Cut(text, "`)\n")
	var b []byte
	for _, m := range regexp.MustCompile(`(?m)^[0-9a-f]{7} ((?:[0-9a-f]{2} ?)+)$`).FindAllStringSubmatch(text, -1) {
		line, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(m[1]), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, line...)
	}
	if len(b) < 400 {
		t.Skipf("r.zip is not where it was: %d bytes", len(b))
	}
	return b
}

// zipOf makes a zip archive.
func zipOf(t testing.TB, members ...member) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f, err := w.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(m.body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// overlapping is a zip archive all of whose members are the same bytes.
func overlapping(t testing.TB, n int) []byte {
	one := zipOf(t, member{"0", bytes.Repeat([]byte("zeros"), 1<<18)})
	end := len(one) - 22
	at := int(binary.LittleEndian.Uint32(one[end+16:]))
	entry := one[at:end]
	out := bytes.Clone(one[:at])
	for range n {
		out = append(out, entry...)
	}
	tail := bytes.Clone(one[end:])
	binary.LittleEndian.PutUint16(tail[8:], uint16(n))
	binary.LittleEndian.PutUint16(tail[10:], uint16(n))
	binary.LittleEndian.PutUint32(tail[12:], uint32(n*len(entry)))
	return append(out, tail...)
}

// bomb42 is an archive of archives that would be 16 GiB at the fourth level.
func bomb42(t testing.TB) []byte {
	b := zipOf(t, member{"zeros", make([]byte, 64<<20)})
	for level := range 4 {
		var all []member
		for i := range 16 {
			all = append(all, member{fmt.Sprintf("%d-%d.zip", level, i), b})
		}
		b = zipOf(t, all...)
	}
	return b
}

// sparse is a tar archive with a file of a terabyte that takes a block.
func sparse(t testing.TB) []byte {
	b := tarOf(t, member{"hole", nil}, member{"after.txt", []byte("What follows\n")})
	h := b[:512]
	h[156] = 'S'
	copy(h[124:], fmt.Sprintf("%011o\x00", 0))       // nothing is there
	copy(h[386:], fmt.Sprintf("%011o\x00", 1<<33-1)) // where nothing is
	copy(h[398:], fmt.Sprintf("%011o\x00", 0))
	copy(h[483:], fmt.Sprintf("%011o\x00", 1<<33-1)) // 8 GiB
	copy(h[257:], "ustar  \x00")
	copy(h[148:156], "        ")
	n := 0
	for _, c := range h {
		n += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", n))
	return b
}

// TestUnnestBounds sees that each trick is told of, and that what stands beside
// it is not lost.
func TestUnnestBounds(t *testing.T) {
	lied := bytes.Clone(zipOf(t, member{"a.txt", []byte("The text\n")}, member{"b.txt", []byte("Beside it\n")}))
	i := bytes.Index(lied, []byte("The text"))
	lied[max(i, 40)+2] ^= 0xff
	locked := bytes.Clone(zipOf(t, member{"a.txt", []byte("Secret\n")}, member{"b.txt", []byte("Beside it\n")}))
	locked[bytes.Index(locked, []byte("PK\x01\x02"))+8] |= 1
	cut := zipOf(t, member{"b.txt", []byte("Beside it\n")}, member{"a.bin", []byte(strings.Repeat("x", 500))})
	for _, c := range []struct {
		name, limit, beside string
		b                   []byte
		lim                 Limits
	}{
		{"r.zip", "it contains itself", "", recursive(t), Limits{}},
		{"42.zip", "unnesting stopped after 33554432 bytes", "", bomb42(t), Limits{Out: 32 << 20}},
		{"42b.zip", "unnesting stopped: more than 200 times the size", "", bomb42(t), Limits{Out: 64 << 20}},
		{"overlap.zip", "its bytes are those of another member too (and 2998 more)", "", overlapping(t, 3000), Limits{Members: 4000}},
		{"sparse.tar", "hole: unnesting stopped: more than 200 times the size", "What follows", sparse(t), Limits{}},
		{"lied.zip", "checksum", "Beside it", lied, Limits{}},
		{"locked.zip", "a.txt: zip: encrypted", "Beside it", locked, Limits{}},
		{"cut.zip", "unexpected EOF", "Beside it", cut[:len(cut)-180], Limits{}},
		{"zeros.tar", "big.gz: unnesting stopped: more than 200 times the size", "Beside it",
			tarOf(t, member{"big.gz", zipped(t, make([]byte, 40<<20))}, member{"b.txt", []byte("Beside it\n")}), Limits{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			tab := setUnnest(t, "* members=4000")
			o, tr := sum(t, Input{URL: "http://site/" + c.name, Head: c.b, Limits: c.lim, Tables: tab})
			if got := o.Text("Summary-Limit"); !strings.Contains(got, c.limit) {
				t.Errorf("Summary-Limit: got %q, want %q in it", got, c.limit)
			}
			if c.beside != "" && !bytes.Contains(o.Append(nil), []byte(c.beside)) {
				t.Errorf("got\n%s\nwant %q in it", o.Append(nil), c.beside)
			}
			if what, _, _ := strings.Cut(c.limit, " (and"); !strings.Contains(tr.String(), what[strings.LastIndex(what, ": ")+1:]) {
				t.Errorf("trace: got\n%s\nwant why", tr)
			}
			if d := time.Since(start); d > 25*time.Second {
				t.Errorf("took %v", d)
			}
			if _, n, err := soif.Parse(o.Append(nil), soif.Limits{}); err != nil || n == 0 {
				t.Errorf("the object does not parse: %v", err)
			}
		})
	}
}

// TestUnnestTime sees that a document is left when its time is over.
func TestUnnestTime(t *testing.T) {
	b := zipped(t, make([]byte, 64<<20))
	start := time.Now()
	o, _ := sum(t, Input{Name: "a.gz", Head: b, Limits: Limits{Ratio: 1 << 40}, Tables: setUnnest(t, "* time=1ms")})
	// Of a machine that unpacks a megabyte in that time the summary's own limit is told too.
	if got, want := o.Text("Summary-Limit"), "unnesting stopped after 1ms"; !strings.HasSuffix(got, want) {
		t.Errorf("Summary-Limit: got %q, want %q at its end", got, want)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestDeep nests archives as deep as an object may tell, and deeper.
func TestDeep(t *testing.T) {
	for _, c := range []struct {
		levels int
		limit  string
	}{{6, ""}, {31, ""}, {40, "nested more than 32 deep"}} {
		b := []byte("<title>Innermost</title>")
		name := "page.html"
		for i := range c.levels {
			b = tarOf(t, member{name, b})
			name = fmt.Sprintf("%d.tar", i)
		}
		b = zipped(t, b)
		o, _ := sum(t, Input{Name: "a.tgz", Head: b, Limits: Limits{Ratio: 1 << 20}})
		last := o.Attrs[len(o.Attrs)-1].Name
		if c.limit == "" {
			if got, want := o.Text(strings.Repeat("Embed1-", c.levels)+"Title"), "Innermost"; got != want {
				t.Errorf("%d levels: got %q as far as %s, limit %q, want %q", c.levels, got, last, o.Text("Summary-Limit"), want)
			}
		} else if got := o.Text("Summary-Limit"); !strings.Contains(got, c.limit) {
			t.Errorf("%d levels: got limit %q, want %q", c.levels, got, c.limit)
		}
		if _, _, err := soif.Parse(o.Append(nil), soif.Limits{}); err != nil {
			t.Errorf("%d levels: %v", c.levels, err)
		}
	}
}

// TestTricks sees what becomes of names that lead elsewhere.
func TestTricks(t *testing.T) {
	names := []string{"../../etc/passwd", "/etc/passwd", "a\x01b\x7f", strings.Repeat("long/", 900) + "x", "dup", "dup", ".", "..", "a//b/./c", "ü ?#%!.txt", "a!/b", "\xff\xfe", "con\\trol", "..."}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, n := range names {
		if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o644, Size: 3, Format: tar.FormatGNU}); err != nil {
			t.Fatalf("%q: %v", n, err)
		}
		w.Write([]byte("hi\n"))
	}
	for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeFifo, tar.TypeDir} {
		if err := w.WriteHeader(&tar.Header{Name: "odd" + string(kind), Linkname: "/etc/passwd", Typeflag: kind}); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	o, _ := sum(t, Input{URL: "http://site/a.tar", Head: out.Bytes()})
	if got := len(o.Embeds()); got != len(names) {
		t.Errorf("got %d members, want %d", got, len(names))
	}
	for _, a := range o.Attrs {
		if strings.HasSuffix(a.Name, "Nested-Filename") && (len(a.Value) > 512 || bytes.ContainsAny(a.Value, "\x00\x01\x7f\n")) {
			t.Errorf("%s: got %q", a.Name, a.Value)
		}
	}
	seen := make(map[string]bool)
	var urls []string
	in := Input{URL: "http://site/get?f=a.tar", Name: "a.tar", Head: out.Bytes(), Tables: setUnnest(t, "Tar as=objects"), Member: func(_ context.Context, m Member) error {
		if seen[m.Object.URL] {
			t.Errorf("two members are %s", m.Object.URL)
		}
		if m.Container != "http://site/get?f=a.tar" {
			t.Errorf("got container %s", m.Container)
		}
		seen[m.Object.URL] = true
		urls = append(urls, m.Object.URL)
		return nil
	}}
	o, _ = sum(t, in)
	for _, want := range []string{"etc/passwd", "etc/passwd~2", "dup", "dup~2", "unnamed", "unnamed~2", "a/b/c", "%C3%BC%20%3F%23%25!.txt", "a!/b", "%FF%FE", "%2E%2E%2E", "con%5Ctrol"} {
		if !seen["http://site/get%3Ff=a.tar!/"+want] {
			t.Errorf("got %q, want one that is %s", urls, want)
		}
	}
	if got, want := o.Text("Members"), strconv.Itoa(len(names)); got != want || len(o.Embeds()) != 0 {
		t.Errorf("got %s members told and %d embedded, want %s and none", got, len(o.Embeds()), want)
	}
	for _, u := range urls {
		if c := ContainerOf(u); len(c) != 2 || c[1] != in.URL {
			t.Errorf("%s: got containers %q, want %s", u, c, in.URL)
		}
	}
}

// TestMembers sees that objects are made of members at any depth, each once and
// complete, and that an error of their taker ends it.
func TestMembers(t *testing.T) {
	inner := zipOf(t, member{"x/deep.html", []byte("<title>Deep</title>")})
	b := zipped(t, tarOf(t, member{"in.zip", inner}, member{"one.txt", []byte("One\n\nThe first.\n")}))
	var all []soif.Object
	whole := false
	in := Input{URL: "http://site/a.tgz", Head: b, Tables: setUnnest(t, "Tar PCCompressed as=objects"), FullText: true,
		Member: func(_ context.Context, m Member) error { all = append(all, m.Object); return nil },
		Took:   func(_ int, w bool) { whole = w }}
	sum(t, in)
	var got []string
	for _, o := range all {
		got = append(got, o.URL+" "+o.Text("Type")+" "+o.Text("Title"))
		if len(o.Text("MD5")) != 32 || o.Text("File-Size") == "" {
			t.Errorf("%s: got\n%s\nwant MD5 and File-Size", o.URL, o.Append(nil))
		}
	}
	want := []string{"http://site/a.tgz!/in.zip!/x/deep.html HTML Deep", "http://site/a.tgz!/in.zip PCCompressed ", "http://site/a.tgz!/one.txt Text One"}
	if fmt.Sprint(got) != fmt.Sprint(want) || !whole {
		t.Errorf("got %q, whole %v, want %q", got, whole, want)
	}
	in.Head = b[:len(b)-30]
	sum(t, in)
	if whole {
		t.Error("of an archive that is cut: got that it is whole")
	}
	in.Head = b
	bad := fmt.Errorf("no room")
	in.Member = func(context.Context, Member) error { return bad }
	if _, _, err := Summarize(t.Context(), in); err != bad {
		t.Errorf("got %v, want %v", err, bad)
	}
}

// TestManyMembers streams an archive of many members, a million when
// HARVEST_MEMBERS says so, and holds none of them.
func TestManyMembers(t *testing.T) {
	n := 20_000
	if s := os.Getenv("HARVEST_MEMBERS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	t.Logf("%d members; HARVEST_MEMBERS sets it", n)
	got := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	_, _, err := Summarize(t.Context(), Input{URL: "http://site/a.tar", Rest: &manyTar{n: n}, Limits: Limits{Members: n + 1, Out: 1 << 40},
		Tables: setUnnest(t, fmt.Sprintf("Tar as=objects members=%d time=1h", n+1)), Member: func(_ context.Context, m Member) error {
			if got++; got%10_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&after)
				peak = max(peak, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
			}
			return nil
		}})
	if err != nil || got != n {
		t.Fatalf("got %d members, %v, want %d", got, err, n)
	}
	if most := uint64(16<<20 + 64*n); peak > most {
		t.Errorf("got %d bytes held, want at most %d", peak, most)
	}
}

// A manyTar is a tar archive of n small members, made as it is read.
type manyTar struct {
	n, i int
	left []byte
}

func (m *manyTar) Read(p []byte) (int, error) {
	if len(m.left) == 0 {
		switch {
		case m.i < m.n:
			m.i++
			var out bytes.Buffer
			w := tar.NewWriter(&out)
			text := fmt.Sprintf("Member %d\n", m.i)
			w.WriteHeader(&tar.Header{Name: fmt.Sprintf("dir%d/file%d.txt", m.i%1000, m.i), Mode: 0o644, Size: int64(len(text))})
			w.Write([]byte(text))
			w.Flush()
			m.left = out.Bytes()
		case m.i == m.n:
			m.i++
			m.left = make([]byte, 1024)
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, m.left)
	m.left = m.left[n:]
	return n, nil
}

func TestUnnestTable(t *testing.T) {
	for line, want := range map[string]string{
		"Tar":                  "unnest: line 1, column 1: nothing to be done",
		"as=embed":             "unnest: line 1, column 1: no type; for all write *",
		"Tar as=maybe":         "unnest: line 1, column 5: as: 'maybe' is not embed, objects or no",
		"Tar format=zop":       "unnest: line 1, column 5: format: 'zop' is none of ",
		"Nonsense as=no":       "unnest: line 1, column 1: 'Nonsense': there is no such type",
		"Tar members=0":        "unnest: line 1, column 5: members: 0 is less than 1",
		"Tar as=no PCompr":     "unnest: line 1, column 11: 'PCompr': types stand before",
		"Tar sizes=3":          "unnest: line 1, column 5: unknown key 'sizes'",
		"Tar as=no\nTar as=no": "",
	} {
		_, err := ParseTables(map[string]string{"unnest": line})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
	b := tarOf(t, member{"a.txt", []byte("One\n")}, member{"b/c.html", []byte("<title>Two")}, member{"b/d.txt", []byte("Three\n")})
	for lines, want := range map[string]string{
		"Tar as=no":               "",
		"Tar only='*.txt'":        "a.txt b/d.txt",
		"Tar only='b/*'":          "b/c.html b/d.txt",
		"Tar as=embed members=2":  "a.txt b/c.html",
		"PCCompressed as=no":      "a.txt b/c.html b/d.txt",
		"Tar as=embed format=zip": "",
	} {
		o, _ := sum(t, Input{Name: "a.tar", Head: b, Tables: setUnnest(t, lines)})
		var got []string
		for _, n := range o.Embeds() {
			m, _ := o.Embed(n)
			got = append(got, m.Text("Nested-Filename"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", lines, got, want)
		}
	}
}
