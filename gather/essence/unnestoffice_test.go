package essence

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// withParts is a document of testdata with more parts in it.
func withParts(t *testing.T, name string, more ...member) []byte {
	b, err := os.ReadFile("testdata/in/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		if err := w.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range more {
		f, err := w.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(f, bytes.NewReader(m.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEmbeddedObjects sees what is embedded in documents of an office described in
// them, to any depth, and no other part of them.
func TestEmbeddedObjects(t *testing.T) {
	sheet, err := os.ReadFile("testdata/in/honey.xlsx")
	if err != nil {
		t.Fatal(err)
	}
	formula := []byte(`<?xml version="1.0"?><math xmlns="http://www.w3.org/1998/Math/MathML"><mi>honey</mi></math>`)
	inner := withParts(t, "hives.docx", member{"word/embeddings/Book1.xlsx", sheet})
	for _, c := range []struct {
		name, typ, lines string
		more             []member
		want             []string
	}{
		{"hives.docx", "Word", "", []member{{"word/embeddings/Book1.xlsx", sheet}, {"word/media/page.html", []byte("<title>No object</title>")}},
			[]string{"word/embeddings/Book1.xlsx Excel"}},
		{"hives.docx", "Word", "", []member{{"word/embeddings/deep.docx", inner}},
			[]string{"word/embeddings/deep.docx Word", "> word/embeddings/Book1.xlsx Excel"}},
		{"honey.xlsx", "Excel", "", []member{{"xl/embeddings/text.docx", withParts(t, "hives.docx")}}, []string{"xl/embeddings/text.docx Word"}},
		{"hives.odt", "ODText", "", []member{{"Object 1/content.xml", formula}, {"Object 1/styles.xml", []byte("<s/>")}, {"Pictures/a.html", []byte("<title>x")}},
			[]string{"Object 1/content.xml XML"}},
		{"hives.docx", "Word", "Word as=no", []member{{"word/embeddings/Book1.xlsx", sheet}}, nil},
	} {
		b := withParts(t, c.name, c.more...)
		o, tr := sum(t, Input{URL: "http://site/" + c.name, Rest: bytes.NewReader(b), Tables: setUnnest(t, c.lines)})
		var got []string
		for _, n := range o.Embeds() {
			m, _ := o.Embed(n)
			got = append(got, m.Text("Nested-Filename")+" "+m.Text("Type"))
			for _, n := range m.Embeds() {
				in, _ := m.Embed(n)
				got = append(got, "> "+in.Text("Nested-Filename")+" "+in.Text("Type"))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || o.Text("Type") != c.typ || o.Text("Title") == "" || o.Text("Summary-Limit") != "" {
			t.Errorf("%s %s: got %q of a %s, limit %q, want %q\n%s", c.name, c.lines, got, o.Text("Type"), o.Text("Summary-Limit"), c.want, tr)
		}
	}
}

// TestSpannedZip sees that of an archive in volumes the last, which has the index,
// gives what is in it and tells of what is in others; of the first it is told that it has none.
func TestSpannedZip(t *testing.T) {
	const split = "head -c 150000 /dev/urandom >a.bin && zip -q -s 64k s.zip a.bin page.html"
	o, tr := sum(t, Input{URL: "http://site/s.zip", Head: madeBy(t, split, "s.zip")})
	if o.Text("Embed2-Title") != "Innermost" || !strings.Contains(o.Text("Summary-Limit"), "a.bin: zip: on disk 1 of several") {
		t.Errorf("the last: got %q, limit %q\n%s", o.Text("Embed2-Title"), o.Text("Summary-Limit"), tr)
	}
	o, tr = sum(t, Input{URL: "http://site/s.z01", Head: madeBy(t, split, "s.z01")})
	if got, want := o.Text("Summary-Limit"), "zip: the first volume of an archive that has its directory in the last"; got != want {
		t.Errorf("the first: got limit %q, want %q\n%s", got, want, tr)
	}
}
