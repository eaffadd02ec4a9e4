package essence

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"harvest/gather/soif"
)

// goldens are the objects beside the files in testdata/in.
func goldens(t *testing.T) map[string]soif.Object {
	t.Helper()
	names, err := filepath.Glob("testdata/want/*.soif")
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata/want: %d files, %v", len(names), err)
	}
	objects := make(map[string]soif.Object)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var o soif.Object
		if err := soif.NewDecoder(bytes.NewReader(b), soif.Limits{}).Next(&o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects[filepath.Base(name)] = o
	}
	return objects
}

// noGolden are the types without a golden, by why they have none. Their languages
// are read by the rules of the table alone, which prepare compiles.
var noGolden = map[string]string{
	"Clojure Dart Elixir FSharp Groovy Haskell Julia Kotlin Scala Swift VHDL Verilog Zig Lex": "no file of a Debian package at hand that is small",
	"ODSpreadsheet ODPresentation ODDrawing ODFormula":                                        "as ODText, by the same reader; TestOfficeWords makes them",
	"WordOLE PowerPointOLE OutlookMessage OLE Visio VisioOLE":                                 "nothing under 30 KB; TestTruth and FuzzOLE read larger ones",
	"BerkeleyDB GDBM DBase Data":                                                              "only the words in them are told, as of Binary",
	"OtherCode":                                                                               "languages that have no rules of their own",
	"SymbolicLink FYI Internet-Draft DebianCopyright LDIF FormattedText Dockerfile":           "as RFC, DebianControl, Text; made in tests where they are special",
}

// TestEveryTypeHasAGolden holds that a type that is summarized has a golden, or a
// reason for none.
func TestEveryTypeHasAGolden(t *testing.T) {
	have := make(map[string]bool)
	for _, o := range goldens(t) {
		have[o.Text("Type")] = true
	}
	excused := make(map[string]bool)
	for types := range noGolden {
		for typ := range strings.FieldsSeq(types) {
			excused[typ] = true
		}
	}
	for typ := range summarizers() {
		switch {
		case !have[typ] && !excused[typ]:
			t.Errorf("%s: no golden, and no reason", typ)
		case have[typ] && excused[typ]:
			t.Errorf("%s: has a golden, and a reason for none", typ)
		}
		delete(excused, typ)
	}
	for typ := range excused {
		t.Errorf("%s: a reason for no golden, but no such type", typ)
	}
}

var inEmbeds = regexp.MustCompile(`^(Embed\d+-)+`)

// TestAttributesAreDocumented holds that what goldens say is told of in the manual,
// in quotes.
func TestAttributesAreDocumented(t *testing.T) {
	var told []string
	for _, page := range []string{"essence.6.md", "soif.6.md"} {
		b, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`([A-Z][A-Za-z0-9-]*)`").FindAllSubmatch(b, -1) {
			told = append(told, string(m[1]))
		}
	}
	for file, o := range goldens(t) {
		for _, a := range o.Attrs {
			a.Name = inEmbeds.ReplaceAllString(a.Name, "") // a member has what an object has
			if !slices.Contains(told, a.Name) && !strings.HasPrefix(a.Name, "Meta-") {
				t.Errorf("%s: %s is in no table of docs/essence.6.md", file, a.Name)
			}
		}
	}
}
