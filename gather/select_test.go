package gather

import (
	"errors"
	iofs "io/fs"
	"strings"
	"testing"

	"harvest/fs/ndb"
)

// TestSelectParse: what select lines say, and where those are wrong that say
// nothing.
func TestSelectParse(t *testing.T) {
	c, err := parseConfig(`select shortest=10
select inlinks=5 allow=/doc/ allow=/man/ deny=old
select url=HTTP://H/a/../b url=http://h/c
select out allow=/mirror/
select limit=1000 order=inlinks
select cover=10 radius=1
select limit=5 order=shortest allow=x
duplicates=drop
`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `shortest=10
inlinks=5 allow=/doc/ allow=/man/ deny=old
url=HTTP://H/a/../b url=http://h/c
cover=10 radius=1
limit=5 order=shortest allow=x
out allow=/mirror/
limit=1000 order=inlinks
`
	if got := c.selection.text(); got != want || c.duplicates != "drop" {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, u := range []string{"http://h/b", "http://h/c"} {
		if !c.selection.rules[2].meets(&candidate{url: u}) {
			t.Errorf("%s is not taken", u)
		}
	}
	if c.selection.plain() || c.selection.all() {
		t.Error("taken for a simple selection")
	}
	for _, bad := range []struct {
		line string
		col  int
		msg  string
	}{
		{"select", 1, "of what?"},
		{"select=all", 1, "takes no value"},
		{"select out", 1, "of what?"},
		{"select out=x", 8, "takes no value"},
		{"select shortest=0", 8, "out of range"},
		{"select shortest=many", 8, "not a number"},
		{"select shortest=1 shortest=2", 19, "twice"},
		{"select shortset=1", 8, "unknown key 'shortset'"},
		{"select shortest=1 cover=2", 19, "two lines"},
		{"select cover=2 limit=1", 16, "is the limit"},
		{"select cover=2 radius=4", 16, "more than 3"},
		{"select allow=x radius=1", 16, "for cover"},
		{"select allow=x order=score", 16, "for limit"},
		{"select limit=1 order=age", 16, "neither"},
		{"select allow=(", 8, "missing closing"},
		{"select deny=", 8, "empty"},
		{"select url=:", 8, "bad url"},
		{"select out limit=1", 8, "conditions only"},
		{"duplicates=maybe", 1, "neither drop nor keep"},
	} {
		_, err := parseConfig(bad.line)
		var e *ndb.Error
		if !errors.As(err, &e) || e.Col != bad.col || !strings.Contains(e.Msg, bad.msg) || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%s: got %v, want column %d, %s", bad.line, err, bad.col, bad.msg)
		}
	}
	if _, err := parseConfig("select limit=1\nselect limit=2\n"); err == nil || !strings.Contains(err.Error(), "line 1 already") {
		t.Errorf("two limits: got %v", err)
	}
	if _, err := parseConfig(strings.Repeat("select allow=x\n", maxRules+1)); err == nil {
		t.Error("want too many lines refused")
	}
	for text, want := range map[string][2]bool{ // all, plain
		"":                               {true, true},
		"select allow=x":                 {false, true},
		"select out deny=x":              {false, true},
		"select inlinks=1":               {false, false},
		"select out submitted=1":         {false, false},
		"select limit=1":                 {false, false},
		"select url=http://h/ limit=1":   {false, false},
		"select shortest=1 url=http://h": {false, false},
	} {
		c, err := parseConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		if c.selection.all() != want[0] || c.selection.plain() != want[1] {
			t.Errorf("%s: got %t, %t, want %v", text, c.selection.all(), c.selection.plain(), want)
		}
	}
}
