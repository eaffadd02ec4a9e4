package essence

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// aPDF makes a PDF file of objects, from 1 on, the first of which is the catalog.
func aPDF(objects ...string) []byte {
	b := []byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, o := range objects {
		b = fmt.Appendf(b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	return fmt.Appendf(b, "trailer\n<< /Root 1 0 R /Size %d >>\n%%%%EOF\n", len(objects)+1)
}

func pdfStream(dict, body string) string {
	return fmt.Sprintf("<< /Type /EmbeddedFile /Length %d %s >>\nstream\n%s\nendstream", len(body), dict, body)
}

const pdfPage = "<title>Hive</title><p>Bees live there."

// TestPDFAttachments takes out what stands in the tree of names, deep in it, on a
// page and beside, each once, however it is written.
func TestPDFAttachments(t *testing.T) {
	flate := string(zlibbed(t, pdfPage))
	b := aPDF(
		"<< /Type /Catalog /Names << /EmbeddedFiles << /Kids [2 0 R 2 0 R] >> >> >>",
		"<< /Kids [3 0 R 1 0 R 2 0 R] >>",
		`<< /Names [ (one) << /F (one.html) /UF (\376\377\000\374\000.\000h\000t\000m\000l) /EF << /F 4 0 R >> >> (two) 5 0 R (three.html) << /EF << /F 6 0 R >> >> (gone) << /F (gone.txt) /EF << /F 99 0 R >> >> ] >>`,
		pdfStream("/Params << /ModDate (D:20200102030405Z) /Size 38 >>", pdfPage),
		"<< /Type /Filespec /F (two.html) /EF << /F 7 0 R >> >>",
		pdfStream("/Filter [/ASCII85Decode]", "<~"+ascii85ed(pdfPage)+"~>"),
		pdfStream("/Filter /FlateDecode", flate),
		"<< /Subtype /FileAttachment /FS << /F (pin.html) /EF << /UF 9 0 R >> >> >>",
		pdfStream("/Filter [/FlateDecode]", flate),
		"<< /Type /Filespec /F (odd.bin) /EF << /F 11 0 R >> >>",
		pdfStream("/Filter /JBIG2Decode", "x"),
	)
	o, tr := sum(t, Input{URL: "http://site/a.pdf", Head: b})
	var got []string
	for _, n := range o.Embeds() {
		m, _ := o.Embed(n)
		got = append(got, m.Text("Nested-Filename")+" "+m.Text("Title")+" "+m.Text("Last-Modification-Time"))
	}
	want := []string{"ü.html Hive 1577934245", "two.html Hive ", "three.html Hive ", "gone.txt  ", "pin.html Hive ", "odd.bin  "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q\n%s", got, want, tr)
	}
	for _, why := range []string{"gone.txt: pdf: an attachment that is not there: damaged", "odd.bin: pdf: filter JBIG2Decode"} {
		if limit := o.Text("Summary-Limit"); !strings.Contains(limit, why) {
			t.Errorf("Summary-Limit: got %q, want %q in it", limit, why)
		}
	}
	if o, _ = sum(t, Input{URL: "http://site/a.pdf", Head: b, Tables: setUnnest(t, "Pdf as=no")}); len(o.Embeds()) != 0 {
		t.Errorf("as=no: got %d attachments, want none", len(o.Embeds()))
	}
	if o, _ = sum(t, Input{URL: "http://site/a.pdf", Head: b, Tables: setUnnest(t, "Pdf only='t*.html'")}); len(o.Embeds()) != 2 {
		t.Errorf("only: got %d attachments, want 2", len(o.Embeds()))
	}
}

// TestPDFBomb sees that an attachment that yields too much is left, with what comes
// after it taken.
func TestPDFBomb(t *testing.T) {
	b := aPDF("<< /AF [2 0 R 4 0 R] >>",
		"<< /F (zeros) /EF << /F 3 0 R >> >>", pdfStream("/Filter /FlateDecode", string(zlibbed(t, string(make([]byte, 40<<20))))),
		"<< /F (b.html) /EF << /F 5 0 R >> >>", pdfStream("", pdfPage))
	o, _ := sum(t, Input{URL: "http://site/a.pdf", Head: b})
	if got, want := o.Text("Summary-Limit"), "zeros: unnesting stopped: more than 200 times the size"; !strings.Contains(got, want) {
		t.Errorf("Summary-Limit: got %q, want %q in it", got, want)
	}
	if got := o.Text("Embed2-Title"); got != "Hive" {
		t.Errorf("after it: got %q, want Hive", got)
	}
}

// TestPDFPrograms takes out what a program has attached, to any depth, also of a
// file that is encrypted for nobody.
func TestPDFPrograms(t *testing.T) {
	clover, err := os.ReadFile("testdata/in/clover.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for command, title := range map[string]string{
		"pdfattach clover.pdf page.html out.pdf": "Embed1-Title",
		"tar cf a.tar page.html && pdfattach clover.pdf a.tar in.pdf && pdfattach clover.pdf in.pdf out.pdf":                   "Embed1-Embed1-Embed1-Title",
		"pdfattach clover.pdf page.html in.pdf && gs -q -sDEVICE=pdfwrite -sOwnerPassword=x -sUserPassword= -o out.pdf in.pdf": "Embed1-Title",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/clover.pdf", clover, 0o644); err != nil {
			t.Fatal(err)
		}
		b := madeBy(t, "cp "+dir+"/clover.pdf . && "+command, "out.pdf")
		o, tr := sum(t, Input{URL: "http://site/out.pdf", Rest: bytes.NewReader(b)})
		if got := o.Text(title); got != "Innermost" || o.Text("Type") != "Pdf" || o.Text("Title") == "" {
			t.Errorf("%s: got %s %q, want Innermost, limit %q\n%s", command, title, got, o.Text("Summary-Limit"), tr)
		}
	}
}

func zlibbed(t testing.TB, text string) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func ascii85ed(text string) string {
	b := make([]byte, ascii85.MaxEncodedLen(len(text)))
	return string(b[:ascii85.Encode(b, []byte(text))])
}

func FuzzPDFAttachments(f *testing.F) {
	f.Add(aPDF("<< /AF [2 0 R] >>", "<< /F (b.html) /EF << /F 3 0 R >> >>", pdfStream("/Filter /FlateDecode", string(zlibbed(f, pdfPage)))))
	f.Add(aPDF("<< /Names << /EmbeddedFiles << /Kids [2 0 R] /Names [(x) 2 0 R] >> >> >>", "<< /F (x) /EF << /F 3 0 R >> >>", pdfStream("/Filter [/A85 /Fl]", "<~~>")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, []byte("/Encrypt")) {
			return // it asks a program
		}
		w := &worker{ctx: t.Context(), lim: Limits{Out: 16 << 20, Ratio: 200, Attr: 8 << 10}}
		a, done, err := openPDF(w, &content{typ: "Pdf", head: b}, &counter{})
		if err != nil {
			return
		}
		defer done()
		for n := 0; ; n++ {
			if _, err := a.Next(); err != nil {
				return
			}
			if n > len(b) {
				t.Fatalf("got more than %d attachments of %d bytes", n, len(b))
			}
			if _, err := io.Copy(io.Discard, io.LimitReader(a, 1<<20)); err != nil {
				continue
			}
		}
	})
}
