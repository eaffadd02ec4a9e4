package essence

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harvest/gather/soif"
)

// as summarizes bytes as a type, whatever they are.
func as(t testing.TB, typ string, b []byte) (o soif.Object) {
	t.Helper()
	e, ok := summarizers()[typ]
	if !ok {
		t.Fatalf("no summarizer for %s", typ)
	}
	w := &worker{ctx: t.Context(), full: true, tab: ownTables()}
	w.lim.defaults()
	w.text = w.lim.Text
	defer w.close()
	c := &content{name: "x", typ: typ, head: b}
	text := b
	if !e.bytes {
		text = decode(b, "")
	}
	func() {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s of %.200q: %v", typ, b, r)
				panic(r)
			}
		}()
		e.sum(w, &o, c, text)
	}()
	return o
}

// fuzzTypes sees that summarizers of some types take anything, and that what
// they make is an object in bounds.
func fuzzTypes(f *testing.F, types ...string) {
	names, _ := filepath.Glob("testdata/in/*")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		for i := range types {
			f.Add(uint8(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		checkObject(t, types[int(i)%len(types)], b)
	})
}

func checkObject(t testing.TB, typ string, b []byte) {
	o := as(t, typ, b)
	o.Type, o.URL = "FILE", "x:"
	for _, a := range o.Attrs {
		if n := len(a.Value); n > symbolRoom*8<<10 && a.Name != "Full-Text" || n > 1<<20 {
			t.Errorf("%s: %s has %d bytes", typ, a.Name, n)
		}
	}
	enc := o.Append(nil)
	if _, n, err := soif.Parse(enc, soif.Limits{}); err != nil || n != len(enc) {
		t.Errorf("%s: reads back %d of %d bytes: %v", typ, n, len(enc), err)
	}
}

func FuzzObjectFile(f *testing.F) { fuzzTypes(f, "Object", "Binary") }
func FuzzBytecode(f *testing.F)   { fuzzTypes(f, "JavaClass", "WebAssembly", "PythonBytecode") }
func FuzzDatabase(f *testing.F) {
	fuzzTypes(f, "SQLite", "DBase", "Data", "GDBM", "GettextCatalog", "Certificate")
}
func FuzzChanges(f *testing.F) {
	fuzzTypes(f, "Patch", "RCS", "SCCS", "ChangeLog", "DebianChangelog", "Log")
}
func FuzzMail(f *testing.F) { fuzzTypes(f, "Mail", "News") }
func FuzzXML(f *testing.F)  { fuzzTypes(f, "XML", "DocBook", "SGML", "Feed") }
func FuzzJSON(f *testing.F) { fuzzTypes(f, "JSON", "Jupyter") }
func FuzzTable(f *testing.F) {
	fuzzTypes(f, "YAML", "TOML", "Configuration", "DotFile", "CSV", "LDIF", "Gettext")
}
func FuzzPeople(f *testing.F) {
	fuzzTypes(f, "BibTeX", "Bibliographic", "ICalendar", "VCard", "RFC", "FYI", "Internet-Draft")
}
func FuzzPackage(f *testing.F) {
	fuzzTypes(f, "DebianControl", "DebianCopyright", "DesktopEntry", "LSM")
}
func FuzzLight(f *testing.F) { fuzzTypes(f, "ReST", "AsciiDoc", "Org", "POD") }
func FuzzForm(f *testing.F) {
	fuzzTypes(f, "WaisSource", "FrameMaker", "SOIFStream", "SymbolicLink", "Command", "PGP")
}
func FuzzSource(f *testing.F) {
	var types []string
	for typ := range languages() {
		types = append(types, typ)
	}
	fuzzTypes(f, types...)
}

// TestDamaged cuts and flips each golden file, a few times, and gives it to each
// summarizer of ours.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 11))
	names, _ := filepath.Glob("testdata/in/*")
	if len(names) == 0 {
		t.Fatal("no files")
	}
	n := 0
	for _, name := range names {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) == 0 || len(whole) > 32<<10 {
			continue
		}
		typ := typeOf(t, filepath.Base(name), whole)
		for range 20 {
			b := bytes.Clone(whole)
			for range r.IntN(8) {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
			b = b[:len(b)-r.IntN(len(b))]
			if _, ok := summarizers()[typ]; ok {
				checkObject(t, typ, b)
				n++
			}
		}
	}
	t.Logf("%d damaged files", n)
}

func typeOf(t testing.TB, name string, b []byte) string {
	o, _ := sum(t, Input{Name: name, Head: b})
	return o.Text("Type")
}

// TestLinear holds summarizers to time in proportion to what they read, where
// input repeats what each looks for.
func TestLinear(t *testing.T) {
	pieces := []string{"a", " ", "\n", "(", "{", "[", "<", "<!", "<!--", "<![CDATA[", "<a b=", "\"", "'", "`", "/", "//", "/*", "(*", "#", "#if\n", "#else\n", "#define a \\\n",
		"@", "@a{b,", "@a{b,c={", "%A ", "=head ", "<<A\n", "${", "$(", "a:\n", "a: b\n", " b\n", "\n\n", "[a]\n", "a=", "a = {", "-- ", "--- a\n", "+++ b\n", "@@ -1 +1 @@\n", "BEGIN:VEVENT\n",
		"msgid \"\n", "\"a\":", "{\"a\":[", "a,\"", "* a\n", "From a\n\nSubject: ", "class a", "template<", "a<b", "def ", "func(", "<Para ", "=a\n===\n", "\x01", "\x00", "r#\"", "R\"(", "head ", "1.1\n", "@x@", ";", "~", ":", "//a::"}
	size := 2 << 10
	if os.Getenv("HARVEST_LONG") != "" {
		size = 256 << 10
	} else {
		t.Log("2 KiB of each; HARVEST_LONG=1 takes 256 KiB")
	}
	slowest, what := time.Duration(0), ""
	for typ := range summarizers() {
		if !oursToTest[typ] && languages()[typ] == nil {
			continue
		}
		for _, p := range pieces {
			b := bytes.Repeat([]byte(p), size/len(p))
			start := time.Now()
			as(t, typ, b)
			d := time.Since(start)
			if d > 3*time.Second {
				t.Errorf("%s of %q: %v for %d bytes", typ, p, d, len(b))
			}
			if d > slowest {
				slowest, what = d, fmt.Sprintf("%s of %q", typ, p)
			}
		}
	}
	t.Logf("slowest: %s, %v for %d bytes", what, slowest, size)
}

// oursToTest are the types of these files' summarizers.
var oursToTest = wordSet(strings.Join(strings.Fields(`Patch RCS SCCS ChangeLog DebianChangelog Log Mail News XML DocBook SGML Feed JSON Jupyter YAML TOML Configuration
	DotFile CSV LDIF Gettext BibTeX Bibliographic ICalendar VCard RFC DebianControl DebianCopyright DesktopEntry LSM ReST AsciiDoc Org POD WaisSource FrameMaker
	SOIFStream Command PGP Object JavaClass WebAssembly PythonBytecode SQLite Data GettextCatalog Certificate`), " "))

// TestDemangled sees names out of symbols.
func TestDemangled(t *testing.T) {
	for in, want := range map[string]string{
		"main":                             "main",
		"_Z14TIFFStreamOpenPKcPSo":         "TIFFStreamOpen",
		"_ZN4name5innerEv":                 "name::inner",
		"_ZNK3foo3barEi":                   "foo::bar",
		"_ZN4core3fmt17h0123456789abcdefE": "core::fmt",
		"_ZNSt6vectorIiE4sizeEv":           "std::vector",
		"_Z":                               "_Z",
		"_ZN99999999999999999999foo":       "_ZN99999999999999999999foo",
		fmt.Sprintf("_Z%dx", 1<<30):        fmt.Sprintf("_Z%dx", 1<<30),
		"_ZTV6Widget":                      "_ZTV6Widget",
	} {
		if got := string(demangled(in)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
