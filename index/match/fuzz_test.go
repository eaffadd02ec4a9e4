package match

import (
	"testing"
	"unicode/utf8"
)

// FuzzFind compares literals and wildcards with the model and sees to it that
// nothing panics whatever the pattern and the text are.
func FuzzFind(f *testing.F) {
	f.Add("color", "the colour", uint8(0), uint8(1), uint16(0))
	f.Add("a*<b>c?", "axxbcc\nabc", uint8(1), uint8(2), uint16(0x1231))
	f.Add("(a|b)*c$", "ababc", uint8(2), uint8(0), uint16(0))
	f.Add("é\xff", "É\xffe\xcc\x81", uint8(0), uint8(1), uint16(0xff))
	f.Fuzz(func(t *testing.T, expr, text string, syntax, errors uint8, costs uint16) {
		if len(expr) > 200 || len(text) > 400 {
			return
		}
		opt := Options{Syntax: Syntax(syntax % 3), Errors: int(errors % 9), Parts: syntax&4 != 0, Word: syntax&8 != 0,
			Lines: syntax&16 != 0, Case: syntax&32 != 0, Best: syntax&64 != 0,
			Costs: Costs{int(costs & 3), int(costs >> 2 & 3), int(costs >> 4 & 3), int(costs >> 6 & 3)}}
		p, err := Compile(expr, opt)
		if err != nil {
			return
		}
		p.limitTables(1 << 16)
		start, end, cost, ok := p.FindString(text, 0)
		if ok && (start < 0 || end < start || end > len(text) || cost < 0 || cost > p.Errors()) {
			t.Fatalf("%q %+v on %q: got %d-%d at %d", expr, opt, text, start, end, cost)
		}
		if has := p.Has([]byte(text)); has != ok {
			t.Fatalf("%q %+v on %q: got found %v, has %v", expr, opt, text, ok, has)
		}
		whole, matches := p.MatchString(text)
		if accepts(p.Automaton(), text) != matches {
			t.Fatalf("%q %+v on %q: got match %v, the automaton does not agree", expr, opt, text, matches)
		}
		if opt.Syntax == Regexp || opt.Best || len(expr) > 8 || len(text) > 24 ||
			!utf8.ValidString(expr) || !utf8.ValidString(text) {
			return
		}
		m := newModel(expr, p.opt, len(text)+opt.Errors)
		if len(m.strings) > 100 {
			return
		}
		if want, wantOK := m.match(text); want != whole || wantOK != matches {
			t.Fatalf("%q %+v on %q: got %d %v, want %d %v", expr, opt, text, whole, matches, want, wantOK)
		}
		if want, wantOK := m.find(text, 0); ok != wantOK || ok && want != (span{start, end, cost}) {
			t.Fatalf("%q %+v on %q: got %d-%d at %d %v, want %v %v", expr, opt, text, start, end, cost, ok, want, wantOK)
		}
	})
}
