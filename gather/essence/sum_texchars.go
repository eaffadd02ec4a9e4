package essence

var texQuotes = map[byte][]string{'`': {"\u2018", "\u201c", "\u201c\u2018"}, '\'': {"\u2019", "\u201d", "\u201d\u2019"}, '-': {"-", "\u2013", "\u2014"}}

// texSymbol reads a command whose name is no letter: accents, and characters
// that are otherwise commands.
func (t *texReader) texSymbol(i int) int {
	if i >= len(t.b) {
		return i
	}
	c := t.b[i]
	i++
	switch c {
	case '\\':
		t.d.gap(1)
		_, i = t.optional(i)
	case '&', '%', '$', '#', '_', '{', '}':
		t.d.add([]byte{c})
	case ' ', '\n', '\t', ',', ';', ':':
		t.d.space(' ')
	case '\'', '`', '^', '"', '~', '=', '.':
		return t.accent(c, i)
	case '(', ')', '[', ']':
		t.math = c == '(' || c == '['
	}
	return i
}

// accent puts an accent over the letter that follows.
func (t *texReader) accent(c byte, i int) int {
	braces := 0
	for i < len(t.b) && (t.b[i] == '{' || t.b[i] == '\\' || t.b[i] == ' ' && braces == 0) && braces < 4 {
		braces++
		i++
	}
	if i >= len(t.b) || t.b[i]|0x20 < 'a' || t.b[i]|0x20 > 'z' {
		return i
	}
	t.d.add([]byte(composed(rune(t.b[i]), texAccents[c])))
	i++
	if i < len(t.b) && t.b[i] == '}' && braces > 0 {
		i++
	}
	return i
}

var texAccents = map[byte]rune{'\'': 0x301, '`': 0x300, '^': 0x302, '"': 0x308, '~': 0x303, '=': 0x304, '.': 0x307}
