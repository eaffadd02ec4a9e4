package essence

import (
	"bytes"
	"compress/gzip"
	"context"
	"strings"
	"testing"
)

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestMemberTwins leaves out of an archive what stands there twice.
func TestMemberTwins(t *testing.T) {
	b := tarOf(t, member{"d/a.o", []byte("\x7fELF and so on")}, member{"d/a.c", []byte("int one(void) { return 1; }\n")}, member{"e/a.o", []byte("\x7fELF")})
	o, _ := sum(t, Input{Name: "x.tar", Head: b})
	if got := o.Text("Embed1-Rejected"); !strings.HasSuffix(got, ": d/a.c is there") {
		t.Errorf("got Rejected %q of d/a.o, want that d/a.c is there", got)
	}
	if o.Text("Embed2-Symbols") != "one" || o.Text("Embed2-Rejected") != "" || o.Text("Embed3-Rejected") != "" {
		t.Errorf("got\n%s want a.c, and the a.o of another folder", o.Append(nil))
	}
	var names []string
	tables, err := ParseTables(map[string]string{"unnest": "* as=objects members=100 depth=9 size=1M time=9s"})
	if err != nil {
		t.Fatal(err)
	}
	b = tarOf(t, member{"d/a.c", []byte("int one(void);\n")}, member{"d/a.o", []byte("\x7fELF")}, member{"e/a.o", []byte("\x7fELF")})
	take := func(_ context.Context, m Member) error { names = append(names, m.Object.URL); return nil }
	o, _ = sum(t, Input{Name: "x.tar", URL: "http://h/x.tar", Head: b, Tables: tables, Member: take})
	if got := strings.Join(names, " "); got != "http://h/x.tar!/d/a.c http://h/x.tar!/e/a.o" || o.Text("Members") != "2" {
		t.Errorf("got %s, %s members, want a.c, and the a.o of another folder", got, o.Text("Members"))
	}
}

// TestDistribution has sources told by their README and their manual pages.
func TestDistribution(t *testing.T) {
	b := gzipped(t, tarOf(t, member{"bee-1.2/doc/README", []byte("Of the folder\n\nNothing.\n")},
		member{"bee-1.2/README", []byte("The bee\n\nA program that hums quietly.\n")},
		member{"bee-1.2/bee.1", []byte(".TH BEE 1\n.SH NAME\nbee \\- hum\n")}))
	o, _ := sum(t, Input{Name: "bee-1.2.tar.gz", Head: b})
	if o.Text("Type") != "SourceDistribution" || o.Text("Title") != "The bee" || o.Text("Headings") != "bee(1) - hum" {
		t.Errorf("got\n%s want a SourceDistribution with the title of its README and its manual page", o.Append(nil))
	}
}

// TestOldArchiveTypes recognizes and takes apart the archives of PCs.
func TestOldArchiveTypes(t *testing.T) {
	lha := "\x19\x00-lh0-\x05\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x20\x00\x03a.t\x00\x00hello\x00"
	var sum0 byte
	for _, c := range []byte(lha[2:27]) {
		sum0 += c
	}
	b := []byte(lha)
	b[1] = sum0
	o, _ := sum(t, Input{Name: "x.lzh", Head: b})
	if o.Text("Type") != "PCCompressed" || o.Text("Embed1-Nested-Filename") != "a.t" || o.Text("Embed1-File-Size") != "5" {
		t.Errorf("got\n%s want PCCompressed with a.t of 5 bytes", o.Append(nil))
	}
}
