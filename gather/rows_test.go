package gather

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere are the rows of what a Gatherer does that no script of this package
// can show, and where they are.
var elsewhere = map[string]string{
	"G-23": "cmd/harvest/testdata/script/brokers.txt: it takes two Brokers",
}

// ofEssence are the rows of Essence that show in a Gatherer's tree.
var ofEssence = []string{"E-1", "E-2", "E-3", "E-5", "E-7", "E-9", "E-10", "E-11"}

// TestRows finds for every row from G-1 to G-24 and from W-1 to W-14 a script
// that names it in its second line, '# rows G-N W-N …', or where else it is.
func TestRows(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`^# gather-[a-z]+: .*\n# rows((?: [GWE]-\d+)+)\n`)
	where := make(map[string][]string)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m := heads.FindSubmatch(text)
		if m == nil { // of no row, but of something else
			continue
		}
		for r := range strings.FieldsSeq(string(m[1])) {
			where[r] = append(where[r], f)
		}
	}
	for group, last := range map[string]int{"G": 24, "W": 14} {
		for i := 1; i <= last; i++ {
			row := fmt.Sprintf("%s-%d", group, i)
			if (len(where[row]) == 0) == (elsewhere[row] == "") {
				t.Errorf("%s: got scripts %v and elsewhere %q, want one of them", row, where[row], elsewhere[row])
			}
			delete(where, row)
		}
	}
	for _, row := range ofEssence {
		if len(where[row]) == 0 {
			t.Errorf("%s: got no script, want one", row)
		}
	}
	for row, files := range where {
		if strings.HasPrefix(row, "E-") {
			continue // there are more of them than are told of here
		}
		t.Errorf("%s, of %v: there is no such row here", row, files)
	}
}
