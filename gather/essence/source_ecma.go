package essence

var plusHeader = re(`(?m)^[ \t]*(?:class[ \t]+\w|namespace\b|template[ \t]*<|(?:public|private|protected):|using[ \t])`)

// scanHeader reads a header as C++ if there is something in it that C has not.
func scanHeader(_ *language, code []byte, s *symbols) {
	if plusHeader.Match(code) {
		runC(dialectCpp, code, s)
		return
	}
	runC(dialectC, code, s)
}

func scanJS(l *language, code []byte, s *symbols) {}
