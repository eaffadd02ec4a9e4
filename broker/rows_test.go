package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere are rows that no script of this package shows, and the test that
// does: a file, from here, and the name of a test or the row in its script.
var elsewhere = map[string]string{
	"B-6":   "../cmd/harvest/killbroker_test.go func TestKillBroker(",
	"B-7":   "broker_test.go func TestGC(",
	"B-15":  "admin_test.go func TestAdminObjects(",
	"B-16":  "admin_test.go func TestLogFollow(",
	"N-2":   "files_test.go func TestAttributes(",
	"N-7":   "views_test.go func Test",
	"HSR-1": "register_test.go func TestRegister(",
	"HSR-2": "../cmd/harvest/testdata/script/registry.txt HSR-2",
	"HSR-6": "../cmd/harvest/testdata/script/registry.txt HSR-6",
	"HSR-3": "register_test.go func TestRegistrationLapses(",
	"HSR-5": "route_test.go func TestRoute(",
	"D-1":   "../docs/examples_test.go \"discovery.sh\": \"D-1\"",
	"D-2":   "../docs/examples_test.go \"reports.sh\": \"D-2\"",
	"D-3":   "../docs/examples_test.go \"series.sh\": \"D-3\"",
	"D-4":   "../docs/examples_test.go \"software.sh\": \"D-4\"",
	"D-5":   "../docs/examples_test.go \"homepages.sh\": \"D-5\"",
	"W-30":  "../index/damage_test.go func Test",
	"W-33":  "external_test.go func TestExternalLinks(",
	"W-34":  "external_test.go func TestExternalYoung(",
}

// unshown are rows that nothing shows yet, and why.
var unshown = map[string]string{
	"HSR-4": "a registry that is replicated waits for replicas",
}

// TestRows finds for every row of a Broker a script that names it in its second
// line, '# rows B-N W-N …', or the test that shows it.
func TestRows(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`^# broker-[a-z]+: .*\n# rows((?: (?:B|N|W|X|HSR)-\d+)+)\n`)
	where := make(map[string]string)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if m := heads.FindSubmatch(text); m != nil {
			for r := range strings.FieldsSeq(string(m[1])) {
				where[r] = f
			}
		}
	}
	for row, at := range elsewhere {
		file, needle, _ := strings.Cut(at, " ")
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), needle) {
			t.Errorf("%s: got no %s in %s (%v), want it", row, needle, file, err)
		} else if where[row] == "" {
			where[row] = file
		}
	}
	for _, g := range []struct {
		group       string
		first, last int
	}{{"B", 1, 21}, {"N", 1, 7}, {"HSR", 1, 6}, {"D", 1, 5}, {"W", 20, 34}} {
		for i := g.first; i <= g.last; i++ {
			row := fmt.Sprintf("%s-%d", g.group, i)
			if (where[row] == "") != (unshown[row] != "") {
				t.Errorf("%s: got '%s' to show it and '%s' why nothing does, want one of these", row, where[row], unshown[row])
			}
		}
	}
}
