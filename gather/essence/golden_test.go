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

// TestEveryTypeHasAGolden holds that each type that is summarized has a golden.
func TestEveryTypeHasAGolden(t *testing.T) {
	have := make(map[string]bool)
	for _, o := range goldens(t) {
		have[o.Text("Type")] = true
	}
	for typ := range summarizers() {
		if !have[typ] {
			t.Errorf("%s: no golden", typ)
		}
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
