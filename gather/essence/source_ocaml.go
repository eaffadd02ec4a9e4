package essence

import "bytes"

var (
	ocamlField       = expression(`[{;][ \t\r\n]*(?:mutable[ \t\r\n]+)?([a-z_][\w']*)[ \t\r\n]*:[^:=]`)
	ocamlConstructor = expression(`(?:=|\||\[|\bprivate)[ \t\r\n]*\x60?([A-Z][\w']*)`)
	ocamlWithType    = expression(`\b(?:with|and)[ \t]+type[ \t]+(?:\([^)]*\)[ \t]*|[+-]?'\w+[ \t]+)?(\w+)`)
)

// ocamlTop are the words that begin a definition, besides type and and.
var ocamlTop = wordSet("let val module external exception open include end class method inherit object sig struct")

// scanOCaml finds names by the rules, and the fields and constructors of types,
// however many stand in a line.
func scanOCaml(l *language, code []byte, s *symbols) {
	l.lines(code, s)
	start, at := -1, 0 // of the types that are being defined
	for line := range bytes.Lines(code) {
		word := string(firstWord(bytes.TrimLeft(line, " \t")))
		if start >= 0 && ocamlTop[word] {
			ocamlTypes(code[start:at], s)
			start = -1
		}
		if word == "type" && start < 0 {
			start = at
		}
		if bytes.Contains(line, []byte(" type ")) {
			for _, m := range ocamlWithType().FindAllSubmatch(line, 20) {
				s.add(m[1], true)
			}
		}
		at += len(line)
	}
	if start >= 0 {
		ocamlTypes(code[start:], s)
	}
}

// ocamlTypes takes the fields and constructors of types that follow one another.
func ocamlTypes(code []byte, s *symbols) {
	for _, m := range ocamlField().FindAllSubmatch(code, 2000) {
		s.add(m[1], true)
	}
	for _, m := range ocamlConstructor().FindAllSubmatchIndex(code, 2000) {
		if m[3] < len(code) && code[m[3]] != '.' { // no path
			s.add(code[m[2]:m[3]], true)
		}
	}
}
