package block

import "harvest/index"

// parts gives the words of text that are in the dictionary, with their
// positions, and the number of positions they take. The term of a word is good
// until the next.
func parts(text string, yield func(term []byte, pos int)) (n int) {
	index.Words(text, func(w *index.Word) bool {
		if w.End-w.Start > index.MaxWord-4 {
			yield(cutTerm[:], w.Pos)
		}
		if !w.Whole {
			yield(w.Text, w.Pos)
			n = w.Pos + 1
		}
		return true
	})
	return n
}

// cutTerm stands in the dictionary for words and compounds of so many bytes
// that some may have been cut off.
var cutTerm = [...]byte{'!'}

// isNumber tells whether a term is a word that Settings.NoNumbers leaves out.
func isNumber(term []byte) bool {
	for _, c := range term {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
