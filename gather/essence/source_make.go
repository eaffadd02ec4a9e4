package essence

import "bytes"

// scanMake finds the targets and the variables of a makefile.
func scanMake(_ *language, code []byte, s *symbols) {
	goesOn := false
	for line := range bytes.Lines(code) {
		line = bytes.TrimRight(line, "\r\n")
		was := goesOn
		goesOn = bytes.HasSuffix(line, []byte(`\`))
		if len(line) == 0 || was || line[0] == '\t' || s.cut {
			continue
		}
		makeLine(bytes.TrimLeft(line, " "), s)
	}
}

// makeLine takes `name = …` or `target …: …`, whichever mark comes first
// outside of a $(…).
func makeLine(line []byte, s *symbols) {
	for _, p := range []string{"export ", "override ", "define "} {
		if rest, ok := bytes.CutPrefix(line, []byte(p)); ok {
			line = bytes.TrimLeft(rest, " \t")
			if p == "define " {
				s.add(firstMake(line), true)
				return
			}
		}
	}
	depth := 0
	for i, c := range line[:min(len(line), 2000)] {
		switch {
		case c == '(' || c == '{':
			depth++
		case c == ')' || c == '}':
			depth--
		case depth > 0:
		case c == '=':
			s.add(firstMake(line[:i]), true)
			return
		case c == '#':
			return
		case c == ':' && i+1 < len(line) && line[i+1] == '=', c == ':' && bytes.HasPrefix(line[i:], []byte("::=")):
			s.add(firstMake(line[:i]), true)
			return
		case c == ':':
			for _, t := range bytes.Fields(line[:i]) {
				if t[0] != '.' {
					s.add(t, bytes.IndexByte(t, '$') >= 0 || bytes.IndexByte(t, '%') >= 0)
				}
			}
			return
		}
	}
}

// firstMake is the name of a variable before its = .
func firstMake(b []byte) []byte {
	b = bytes.TrimRight(bytes.TrimSpace(b), "?+!:")
	b = bytes.TrimSpace(b)
	if bytes.ContainsAny(b, " \t") {
		return nil
	}
	return b
}
