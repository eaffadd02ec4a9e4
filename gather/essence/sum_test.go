package essence

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"harvest/gather/soif"
)

// sumAs summarizes bytes as a type, whatever they are recognised for.
func sumAs(t testing.TB, typ, name string, b []byte) soif.Object {
	t.Helper()
	w := &worker{ctx: t.Context(), full: true, tab: new(Tables)}
	w.lim.Text = 64 << 20
	w.lim.defaults()
	w.text = w.lim.Text
	defer w.close()
	c := &content{name: name, typ: typ, head: b, rest: bytes.NewReader(nil)}
	e, ok := summarizers()[typ]
	if !ok {
		t.Fatalf("no summarizer for %s", typ)
	}
	if !e.bytes {
		b = decode(b, "")
	}
	var o soif.Object
	e.sum(w, &o, c, b)
	return o
}

// bag counts the words of a text: runs of letters and digits, in lower case.
func bag(text string) map[string]int {
	m := make(map[string]int)
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		m[w]++
	}
	return m
}

// recall is how many of the words of want are among those of got, as often.
func recall(got, want map[string]int) float64 {
	found, all := 0, 0
	for w, n := range want {
		found += min(n, got[w])
		all += n
	}
	return float64(found) / float64(max(all, 1))
}

// tool is a program of the machine that a test compares with.
func tool(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("%s is not installed", n)
		}
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}

// manuals makes documents of the project's manual pages in a format: of one, or
// of several with HARVEST_ALL.
func manuals(t *testing.T, ext string, args ...string) []string {
	t.Helper()
	tool(t, "pandoc")
	dir := t.TempDir()
	var files []string
	names := []string{"soif.6"}
	if os.Getenv("HARVEST_ALL") != "" {
		names = append(names, "essence.6", "gather.4", "query.6")
	}
	for _, name := range names {
		file := filepath.Join(dir, name+"."+ext)
		output(t, "pandoc", append([]string{"-s", "-f", "markdown", "../../docs/" + name + ".md", "-o", file}, args...)...)
		files = append(files, file)
	}
	return files
}

// TestOfficeWords compares the words found in documents with those that
// docx2txt and odt2txt find, and with the words they were made of.
func TestOfficeWords(t *testing.T) {
	for _, c := range []struct {
		typ, ext, peer string
		args           []string
	}{
		{"Word", "docx", "docx2txt", []string{"-"}},
		{"ODText", "odt", "odt2txt", nil},
		{"EPUB", "epub", "", nil},
		{"RTF", "rtf", "", nil},
		{"FictionBook", "fb2", "", nil},
		{"LaTeX", "tex", "", nil},
		{"Texinfo", "texi", "", nil},
		{"Troff", "ms", "", nil},
		{"PowerPoint", "pptx", "", nil},
	} {
		t.Run(c.ext, func(t *testing.T) {
			var more []string
			if c.ext == "ms" {
				more = []string{"-t", "ms"}
			}
			for _, file := range manuals(t, c.ext, more...) {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				o := sumAs(t, c.typ, filepath.Base(file), b)
				got := bag(o.Text("Full-Text"))
				source := "../../docs/" + strings.TrimSuffix(filepath.Base(file), "."+c.ext) + ".md"
				plain := recall(got, bag(output(t, "pandoc", "-f", "markdown", "-t", "plain", source)))
				t.Logf("%s: %.3f of the words it was made of", filepath.Base(file), plain)
				if plain < 0.96 {
					t.Errorf("%s: got %.3f of the words, want 0.96", filepath.Base(file), plain)
				}
				if _, err := exec.LookPath(c.peer); c.peer == "" || err != nil {
					continue
				}
				r := recall(got, bag(output(t, c.peer, append([]string{file}, c.args...)...)))
				t.Logf("%s: %.3f of the words of %s", filepath.Base(file), r, c.peer)
				if r < 0.96 {
					t.Errorf("%s: got %.3f of the words of %s, want 0.96", filepath.Base(file), r, c.peer)
				}
			}
		})
	}
}

// module is where the files of a module are.
func module(t *testing.T, path string) string {
	t.Helper()
	dir := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", path))
	if dir == "" {
		t.Skipf("%s is not in the module cache", path)
	}
	return dir
}

// TestOLEWords compares the text of a Word document with catdoc's.
func TestOLEWords(t *testing.T) {
	tool(t, "catdoc")
	file := filepath.Join(module(t, "github.com/richardlehane/mscfb"), "test", "novpapplan.doc")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	o := sumAs(t, "WordOLE", "novpapplan.doc", b)
	r := recall(bag(o.Text("Full-Text")), bag(output(t, "catdoc", "-w", "-d", "utf-8", file)))
	t.Logf("%.3f of the words of catdoc", r)
	if r < 0.97 {
		t.Errorf("got %.3f of the words of catdoc, want 0.97", r)
	}
	if got := o.Text("Author"); got != "Richard Lehane" {
		t.Errorf("Author: got %q, want Richard Lehane", got)
	}
}

// TestPDFWords compares the text of documents with what pdftotext writes of
// them, and what is said about them with pdfinfo.
func TestPDFWords(t *testing.T) {
	tool(t, "pdftotext", "pdfinfo")
	files, _ := filepath.Glob("testdata/in/*.pdf")
	if len(files) == 0 {
		t.Fatal("no PDF files in testdata/in")
	}
	more, _ := filepath.Glob("/usr/share/doc/*/*.pdf")
	for i, file := range append(files, more[:min(len(more), 10)]...) {
		b, err := os.ReadFile(file)
		if err != nil || len(b) > 4<<20 {
			continue
		}
		o := sumAs(t, "Pdf", filepath.Base(file), b)
		r := recall(bag(o.Text("Full-Text")), bag(output(t, "pdftotext", "-q", file, "-")))
		if t.Logf("%s: %.3f of the words of pdftotext", file, r); r < 0.97 {
			t.Errorf("%s: got %.3f of the words of pdftotext, want 0.97", file, r)
		}
		info := output(t, "pdfinfo", file)
		if pages := o.Text("Pages"); i < len(files) && !strings.Contains(info, fmt.Sprintf("Pages:           %s\n", pages)) {
			t.Errorf("%s: got %s pages, want those of\n%s", file, pages, info)
		}
	}
}

// TestExif compares make, model and date of the pictures of imagemeta with what
// exiftool reads of them.
func TestExif(t *testing.T) {
	tool(t, "exiftool")
	dir := filepath.Join(module(t, "github.com/bep/imagemeta"), "testdata", "images")
	var files []string
	for _, p := range []string{"*.jpg", "*.heic", "bep/*.jpg", "bep/*.heic", "bep/*.webp", "bep/*.tif", "bep/*.png", "goexif/*.jpg"} {
		m, _ := filepath.Glob(filepath.Join(dir, p))
		files = append(files, m...)
	}
	right, all := 0, 0
	for i, file := range files {
		if i%4 != 0 && os.Getenv("HARVEST_ALL") == "" {
			continue // exiftool takes its time to start
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := sumAs(t, "Image", filepath.Base(file), b)
		cmd := exec.CommandContext(t.Context(), "exiftool", "-m", "-q", "-f", "-EXIF:Make", "-EXIF:Model", "-EXIF:DateTimeOriginal", "-T", file)
		out, _ := cmd.Output() // it fails for pictures without pixels, having told what there is
		want := strings.Split(strings.TrimSpace(string(out)), "\t")
		if len(want) != 3 {
			continue
		}
		for i, attr := range []string{"Camera-Make", "Camera-Model", "Creation-Date"} {
			w := words(want[i])
			if w == "-" || w == "" || i == 2 && (strings.HasPrefix(w, "0000") || strings.Trim(w, ": ") == "") {
				continue
			}
			if i == 2 {
				w = exifTime(w)
			}
			if all++; o.Text(attr) == w {
				right++
			} else {
				t.Logf("%s: %s: got %q, want %q", filepath.Base(file), attr, o.Text(attr), w)
			}
		}
	}
	t.Logf("%d of %d fields as exiftool has them (HARVEST_ALL=1 compares all pictures)", right, all)
	if all == 0 || right != all {
		t.Errorf("got %d fields as exiftool has them, want %d", right, all)
	}
}

// TestBombInDocument sees that a part that swells is cut, and told.
func TestBombInDocument(t *testing.T) {
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for _, p := range [][2]string{
		{"_rels/.rels", `<Relationships><Relationship Id="1" Type="x/officeDocument" Target="word/document.xml"/></Relationships>`},
		{"word/document.xml", "<w:document><w:p><w:t>before</w:t></w:p><w:p><w:t>" + strings.Repeat(" ", 40<<20) + "</w:t></w:p></w:document>"},
	} {
		f, err := z.Create(p[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(p[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	o, _ := sum(t, Input{Name: "a.docx", Head: file.Bytes(), FullText: true})
	if got := o.Text("Summary-Limit"); !strings.Contains(got, "times the size") {
		t.Errorf("Summary-Limit: got %q, want one that tells of a bomb", got)
	}
	if got := o.Text("Full-Text"); !strings.Contains(got, "before") {
		t.Errorf("Full-Text: got %.80q, want what stands before the bomb", got)
	}
}

// documentTypes are the types of these families, by the suffix of their files in testdata.
var documentTypes = map[string]string{".docx": "Word", ".xlsx": "Excel", ".odt": "ODText", ".epub": "EPUB", ".fb2": "FictionBook", ".xls": "ExcelOLE", ".rtf": "RTF",
	".dvi": "Dvi", ".tex": "LaTeX", ".texi": "Texinfo", ".info": "Info", ".ms": "Troff", ".jpg": "Image", ".heic": "Image", ".gif": "Image", ".png": "Image",
	".tiff": "Image", ".bmp": "Image", ".xbm": "Image", ".xpm": "Image", ".svg": "SVG", ".mp3": "Audio", ".ogg": "Audio", ".flac": "Audio", ".m4a": "Audio", ".wav": "Audio",
	".vsdx": "Visio", ".odf": "ODFormula", ".msi": "OLE", ".ppt": "PowerPointOLE", ".doc": "WordOLE", ".msg": "OutlookMessage", ".vsd": "VisioOLE", ".ods": "ODSpreadsheet",
	".odp": "ODPresentation", ".mid": "Audio", ".webm": "Video", ".pfb": "Font", ".afm": "Font"}

// TestDamagedDocuments cuts and spoils documents, and holds each summarizer to giving
// something in little time.
func TestDamagedDocuments(t *testing.T) {
	files, _ := filepath.Glob("testdata/in/*")
	n := 0
	for _, file := range files {
		typ, ok := documentTypes[filepath.Ext(file)]
		if !ok {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(len(b))))
		for range 20 {
			bad := bytes.Clone(b[:rng.IntN(len(b)+1)])
			if rng.IntN(2) == 0 {
				bad = bytes.Clone(b)
			}
			for range rng.IntN(8) {
				if len(bad) > 0 {
					bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				}
			}
			start := time.Now()
			sumAs(t, typ, filepath.Base(file), bad) // a panic fails the test
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("%s: got a summary after %v, want one within 10 s", file, d)
			}
			n++
		}
	}
	t.Logf("%d damaged files", n)
}

// fuzzAs fuzzes the summarizer of a type, with the files of testdata that are of
// it.
func fuzzAs(f *testing.F, typ string, seeds ...string) {
	files, _ := filepath.Glob("testdata/in/*")
	for _, file := range files {
		if documentTypes[filepath.Ext(file)] != typ {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o := sumAs(t, typ, "x", b)
		for _, a := range o.Attrs {
			if len(a.Value) > 64<<20 {
				t.Errorf("%s: got %d bytes of %d", a.Name, len(a.Value), len(b))
			}
		}
	})
}

func FuzzOOXML(f *testing.F)   { fuzzAs(f, "Word") }
func FuzzVisio(f *testing.F)   { fuzzAs(f, "Visio") }
func FuzzSheet(f *testing.F)   { fuzzAs(f, "Excel") }
func FuzzFormula(f *testing.F) { fuzzAs(f, "ODFormula") }
func FuzzODF(f *testing.F) {
	fuzzAs(f, "ODText", "<office:document><office:body><text:h>x</text:h><text:p>y")
}
func FuzzEPUB(f *testing.F)          { fuzzAs(f, "EPUB") }
func FuzzFictionBook(f *testing.F)   { fuzzAs(f, "FictionBook") }
func FuzzOLE(f *testing.F)           { fuzzAs(f, "ExcelOLE") }
func FuzzOLEProperties(f *testing.F) { fuzzAs(f, "OLE") }
func FuzzRTF(f *testing.F) {
	fuzzAs(f, "RTF", `{\rtf1\ansi{\info{\title x}}\u8364?\'e9 {\field{\*\fldinst HYPERLINK "http://x"}}}`)
}
func FuzzDvi(f *testing.F)     { fuzzAs(f, "Dvi") }
func FuzzTeX(f *testing.F)     { fuzzAs(f, "LaTeX") }
func FuzzTexinfo(f *testing.F) { fuzzAs(f, "Texinfo") }
func FuzzInfo(f *testing.F)    { fuzzAs(f, "Info") }
func FuzzTroff(f *testing.F)   { fuzzAs(f, "Troff") }
func FuzzImage(f *testing.F)   { fuzzAs(f, "Image") }
func FuzzSVG(f *testing.F)     { fuzzAs(f, "SVG") }
func FuzzAudio(f *testing.F)   { fuzzAs(f, "Audio") }
func FuzzVideo(f *testing.F)   { fuzzAs(f, "Video") }
func FuzzFont(f *testing.F)    { fuzzAs(f, "Font") }

// fuzzRead fuzzes a reader that a program works beside.
func fuzzRead(f *testing.F, pattern string, read func(w *worker, d *document, b []byte)) {
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &worker{ctx: t.Context(), full: true, tab: new(Tables)}
		w.lim.defaults()
		defer w.close()
		read(w, w.document(), b)
	})
}

func FuzzPDF(f *testing.F) {
	fuzzRead(f, "testdata/in/*.pdf", func(w *worker, d *document, b []byte) {
		if p, err := w.pdf(&content{head: b}); err == nil {
			p.about(d)
		}
	})
}

func FuzzPostScript(f *testing.F) {
	fuzzRead(f, "testdata/in/*.ps", func(w *worker, d *document, b []byte) {
		d.comments2ps(b)
		for _, read := range []func(*psReader){(*psReader).groff, (*psReader).dvips, (*psReader).shown} {
			read(&psReader{d: d, b: epsText(b)})
		}
	})
}

// FuzzWord fuzzes the readers of the streams of OLE2 files.
func FuzzWord(f *testing.F) {
	fuzzRead(f, "", func(w *worker, d *document, b []byte) {
		slides(d, b)
		biff(d, b)
		(&wordText{d: d}).add(narrowText(b))
		midiTrack(d, &bin{r: bytes.NewReader(b), size: int64(len(b))})
		fontNames(d, b)
		vorbisComments(d, b)
	})
}

// TestVisioText holds that the text of a drawing is read, in shapes and in the
// masters that they are made of, and not of pages that are backgrounds.
func TestVisioText(t *testing.T) {
	in, err := zip.OpenReader("testdata/in/dwg.vsdx")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	parts := map[string]string{
		"visio/_rels/document.xml.rels":        relationships("masters masters/masters.xml", "pages pages/pages.xml"),
		"visio/masters/_rels/masters.xml.rels": relationships("master master1.xml"),
		"visio/masters/masters.xml":            `<Masters><Master ID="2" NameU="Box"><PageSheet/><Rel r:id="rId1"/></Master></Masters>`,
		"visio/masters/master1.xml":            `<MasterContents><Shapes><Shape ID="5"><Text>lent by the master</Text></Shape></Shapes></MasterContents>`,
		"visio/pages/_rels/pages.xml.rels":     relationships("page page1.xml", "page page2.xml"),
		"visio/pages/pages.xml": `<Pages><Page ID="0" NameU="Page-1" Name="Page-1"><Rel r:id="rId1"/></Page>
			<Page ID="4" NameU="Hive plan" Name="Hive plan"><Rel r:id="rId1"/></Page><Page ID="5" Background="1" NameU="Back" Name="Back"><Rel r:id="rId2"/></Page></Pages>`,
		"visio/pages/page1.xml": `<PageContents><Shapes><Shape ID="1" Master="2"><Cell N="PinX"/></Shape>
			<Shape ID="2" Master="2"><Text><cp IX="0"/>its own &amp; no other
			</Text></Shape><Shape ID="3" Type="Group"><Shapes><Shape ID="4"><Text>in a group</Text></Shape></Shapes></Shape></Shapes></PageContents>`,
		"visio/pages/page2.xml": `<PageContents><Shapes><Shape><Text>behind all</Text></Shape></Shapes></PageContents>`,
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range in.File {
		if parts[f.Name] == "" && !strings.HasPrefix(f.Name, "visio/pages") && !strings.HasPrefix(f.Name, "visio/masters") {
			if err := out.Copy(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range parts {
		w, _ := out.Create(name)
		_, _ = w.Write([]byte(text))
	}
	out.Close()
	o := sumAs(t, "Visio", "plan.vsdx", b.Bytes())
	const page = "lent by the master\nits own & no other\nin a group"
	if got, want := strings.Join(strings.Fields(o.Text("Full-Text")), " "), strings.Join(strings.Fields(page+" "+page), " "); got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
	if got, want := o.Text("Headings"), "Hive plan"; got != want {
		t.Errorf("headings: got %q, want %q", got, want)
	}
}

// relationships is a part of OOXML that says where relations lead, each of a kind
// and a target.
func relationships(all ...string) string {
	s := "<Relationships>"
	for i, r := range all {
		kind, target, _ := strings.Cut(r, " ")
		s += fmt.Sprintf(`<Relationship Id="rId%d" Type="http://schemas.microsoft.com/visio/2010/relationships/%s" Target="%s"/>`, i+1, kind, target)
	}
	return s + "</Relationships>"
}

// TestOLECodePage holds that text in property sets is read in the code page that they
// name, unless it is UTF-8.
func TestOLECodePage(t *testing.T) {
	b, err := os.ReadFile("testdata/in/bees.msi")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"UTF-8": b, "windows-1252": bytes.ReplaceAll(b, []byte("Fl\u00fcgel"), []byte("Fl\xfcgel\x00"))} {
		if o := sumAs(t, "OLE", "bees.msi", b); o.Text("Author") != "Ada Fl\u00fcgel" || o.Text("Title") != "Tools for keeping bees" {
			t.Errorf("%s: got author %q, title %q, want %q, %q", name, o.Text("Author"), o.Text("Title"), "Ada Fl\u00fcgel", "Tools for keeping bees")
		}
	}
}
