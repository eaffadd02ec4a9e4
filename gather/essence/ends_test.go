package essence

import (
	"regexp"
	"strings"
	"testing"
)

// TestEnds sees that no text which an expression matches is passed over, and that
// others are.
func TestEnds(t *testing.T) {
	for _, c := range []struct{ expr, yes, no string }{
		{`^abc`, "abcd", "bcd"},
		{`\Aa|b`, "xb", ""},
		{`^(?:a|b+)c?$`, "bb", "bd"},
		{`(?i)^K`, "\u212a", "x"},
		{`(?m)^a`, "x\na", ""},
		{`^\s*<(?:html|head)`, " <head", "head"},
		{`\.so(\.[0-9]+)*$`, "x.so.1", "x.son"},
		{`^a*$`, "", ""},
		{`^a*`, "b", ""},
		{`(?i)\Aé`, "É", "e"},
		{`^.x$`, "\xffx", "xy"},
		{`^[^a]b`, "\xffb", "ab"},
		{`^x{2,3}y{0,2}\z`, "xxx", "xxz"},
		{`(^a)|(^b)`, "b", "c"},
		{`^\bab`, "ab", "-ab"},
		{`a$|^b`, "ca", ""},
	} {
		e := endsOf(c.expr)
		if re := regexp.MustCompile(c.expr); !re.MatchString(c.yes) || !e.may(c.yes) {
			t.Errorf("/%s/ and %q: got none, want a match", c.expr, c.yes)
		}
		if c.no != "" && e.may(c.no) {
			t.Errorf("/%s/ and %q: may match, want not", c.expr, c.no)
		}
	}
	if e := endsOf(`(`); !e.may("x") {
		t.Error("an expression that cannot be read is taken to match nothing")
	}
}

// FuzzEnds holds what is passed over to what does not match.
func FuzzEnds(f *testing.F) {
	for _, own := range []string{"bycontent", "byname"} {
		for word := range strings.FieldsSeq(embedded(own)()) {
			if expr, ok := strings.CutPrefix(word, "re='"); ok {
				f.Add(strings.TrimSuffix(expr, "'"), "<?xml\nabc.so.1")
			}
		}
	}
	f.Add(`(?i)^[k-m]+?(x|)$`, "\u212a")
	f.Fuzz(func(t *testing.T, expr, text string) {
		re, err := regexp.Compile(expr)
		if err != nil || len(expr) > 200 || len(text) > 1000 {
			return
		}
		if e := endsOf(expr); re.MatchString(text) && !e.may(text) {
			t.Errorf("/%s/ matches %q, which is passed over", expr, text)
		}
	})
}
