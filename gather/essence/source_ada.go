package essence

var adaLiterals = expression(`(?i)\btype\s+\w+\s+is\s*\(([^()]*)\)`)

// scanAda finds names by the rules, and the literals of enumerations, which stand
// in as many lines as there is room for.
func scanAda(l *language, code []byte, s *symbols) {
	l.lines(code, s)
	for _, m := range adaLiterals().FindAllSubmatch(code, 2000) {
		s.addList(m[1], true)
	}
}
