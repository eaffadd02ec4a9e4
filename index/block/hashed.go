package block

// Sums, addresses and constants written in digits are words like others, but
// nearly each is another, so they would be most of a dictionary of source text.
// Those of at least hashedFrom letters, all hexadecimal, and a digit stand in
// the dictionary as "#" and the class of 65,536 that they belong to. Who looks
// one up gets the documents of its class and reads them; who looks for words by
// a pattern takes all classes in whenever the pattern may stand for one.
const hashedFrom = 8

// hashed tells whether a term is in the dictionary by its class only.
func hashed(term []byte) bool {
	if len(term) < hashedFrom {
		return false
	}
	digit := false
	for i, c := range term {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'f', c == 'x' && i == 1 && term[0] == '0':
		default:
			return false
		}
	}
	return digit
}

// address is the term under which the dictionary has a term, in buf's memory
// if it is another.
func address(term []byte, buf *[]byte) []byte {
	if !hashed(term) {
		return term
	}
	h := uint32(2166136261)
	for _, c := range term {
		h = (h ^ uint32(c)) * 16777619
	}
	h ^= h >> 15
	*buf = append((*buf)[:0], hashedMark, byte(h>>8), byte(h))
	return *buf
}
