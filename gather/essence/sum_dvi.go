package essence

import (
	"bytes"
	"io"
	"strings"

	"harvest/gather/soif"
)

// A dviReader reads the output of TeX: characters by fonts, and how far apart
// they are set. How wide characters are it does not know, but words are apart
// by a move that is written.
type dviReader struct {
	d      *document
	b      []byte
	i      int
	fonts  map[int]dviFont
	font   dviFont
	v      int // how far down
	w, x   int // of the moves that are named
	y, z   int
	stack  [][5]int
	lineV  int  // where the line was begun
	moved  bool // a gap has been seen since the last character
	accent rune
	pages  int
}

// A dviFont is a font of the document.
type dviFont struct {
	name string
	size int // in the units of moves
}

// sumDvi summarizes DVI.
func sumDvi(w *worker, o *soif.Object, c *content, _ []byte) {
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, err.Error())
		return
	}
	p := make([]byte, min(size, maxPart))
	n, _ := io.ReadFull(io.NewSectionReader(r, 0, int64(len(p))), p)
	t := &dviReader{d: w.document(), b: p[:n], fonts: make(map[int]dviFont), lineV: -1 << 40}
	if n > 15 && p[0] == 247 {
		comment := le(p).cut(15, int(p[14]))
		t.d.generator = strings.TrimSpace(string(decode(comment, "")))
		t.i = 15 + len(comment)
	}
	t.fontsFirst()
	for t.i < len(t.b) && !t.d.cut && t.op() {
	}
	t.d.pages = t.pages
	t.d.paper(c)
	t.d.put(w, o, c)
}

// num reads a number of n bytes, with its sign.
func (t *dviReader) num(n int, signed bool) int {
	v := 0
	for k := range n {
		if t.i+k < len(t.b) {
			v = v<<8 | int(t.b[t.i+k])
		} else {
			v <<= 8
		}
	}
	t.i += n
	if signed && v >= 1<<(8*n-1) {
		v -= 1 << (8 * n)
	}
	return v
}

// fontsFirst reads the definitions in the postamble, for those of a page may be
// past a cut.
func (t *dviReader) fontsFirst() {
	start := t.i
	if i := bytes.LastIndexByte(t.b, 248); i >= 0 {
		t.i = i + 29
		for t.i < len(t.b) && t.b[t.i] >= 243 && t.b[t.i] <= 246 {
			op := int(t.b[t.i])
			t.i++
			t.define(op - 242)
		}
	}
	t.i = start
}

func (t *dviReader) define(n int) {
	k := t.num(n, false)
	t.i += 4
	size := t.num(4, false)
	t.i += 4
	a, l := t.num(1, false), t.num(1, false)
	name := le(t.b).cut(t.i+a, l)
	t.i += a + l
	if len(t.fonts) < 10000 {
		t.fonts[k] = dviFont{strings.ToLower(string(name)), size}
	}
}

// op reads one operation; false ends the document.
func (t *dviReader) op() bool {
	c := int(t.b[t.i])
	t.i++
	switch {
	case c < 128:
		t.char(c)
	case c <= 131:
		t.char(t.num(c-127, false))
	case c == 132, c == 137: // a rule
		t.i += 8
	case c >= 133 && c <= 136:
		t.char(t.num(c-132, false))
	case c == 139:
		t.page()
	case c == 141:
		if len(t.stack) < 1000 {
			t.stack = append(t.stack, [5]int{t.v, t.w, t.x, t.y, t.z})
		}
	case c == 142:
		if n := len(t.stack); n > 0 {
			s := t.stack[n-1]
			t.v, t.w, t.x, t.y, t.z = s[0], s[1], s[2], s[3], s[4]
			t.stack = t.stack[:n-1]
		}
		t.moved = true
	case c >= 143 && c <= 170:
		t.move(c)
	case c >= 171 && c <= 234:
		t.font = t.fonts[c-171]
	case c >= 235 && c <= 238:
		t.font = t.fonts[t.num(c-234, false)]
	case c >= 239 && c <= 242:
		n := t.num(c-238, false)
		s := le(t.b).cut(t.i, n)
		t.i += max(n, 0)
		t.special(s)
	case c >= 243 && c <= 246:
		t.define(c - 242)
	case c >= 248:
		return false
	}
	return true
}

// page begins a page.
func (t *dviReader) page() {
	t.i += 44
	t.pages++
	t.stack, t.v, t.w, t.x, t.y, t.z = t.stack[:0], 0, 0, 0, 0, 0
	t.d.gap(2)
	t.lineV = -1 << 40
}

// move moves right by a number, by w or x, down by a number, by y or z: of these
// the first command of each five takes the last that was told.
func (t *dviReader) move(c int) {
	again := func(by *int, first int) int {
		if c > first {
			*by = t.num(c-first, true)
		}
		return *by
	}
	switch {
	case c <= 146:
		t.right(t.num(c-142, true))
	case c <= 151:
		t.right(again(&t.w, 147))
	case c <= 156:
		t.right(again(&t.x, 152))
	case c <= 160:
		t.v += t.num(c-156, true)
	case c <= 165:
		t.v += again(&t.y, 161)
	default:
		t.v += again(&t.z, 166)
	}
}

// right notes a move that sets words apart: more than a sixth of the font's size
// is no kern.
func (t *dviReader) right(n int) {
	if t.accent != 0 { // back over the letter
		return
	}
	if size := t.font.size; n*6 > size || n*3 < -size {
		t.moved = true
	}
}

var (
	dviLink  = expression(`(?i)html:\s*<a\s+href\s*=\s*"?([^">]+)|/URI\s*\(([^)]+)\)`)
	dviTitle = expression(`/(Title|Author|Subject|Keywords)\s*\(((?:[^()\\]|\\.)*)\)`)
)

// special reads what was written for the program that prints.
func (t *dviReader) special(s []byte) {
	s = s[:min(len(s), 8<<10)]
	for _, m := range dviLink().FindAllSubmatch(s, 10) {
		t.d.link(string(m[1]) + string(m[2]))
	}
	if !bytes.Contains(s, []byte("docinfo")) && !bytes.Contains(s, []byte("DOCINFO")) {
		return
	}
	for _, m := range dviTitle().FindAllSubmatch(s, 10) {
		v := string(decode(m[2], ""))
		switch string(m[1]) {
		case "Title":
			t.d.title = v
		case "Author":
			t.d.author = v
		case "Subject":
			t.d.subject = v
		case "Keywords":
			t.d.keywords = strings.Split(v, ",")
		}
	}
}

// char adds a character, and before it a blank or a new line if it is apart from
// the last.
func (t *dviReader) char(c int) {
	size := max(t.font.size, 1)
	switch down := t.v - t.lineV; {
	case down > 3*size || down < -3*size:
		t.d.gap(2)
		t.lineV = t.v
	case down*5 > 4*size || down*5 < -4*size:
		t.hyphen()
		t.lineV = t.v
	case t.moved:
		t.d.space(' ')
	}
	t.moved = false
	s := texChar(t.font.name, c)
	if accent, ok := texAccentChar(t.font.name, c); ok {
		t.accent = accent
		return
	}
	t.d.add([]byte(accented(s, t.accent)))
	t.accent = 0
}

// hyphen ends a line, and joins a word that was parted at its end.
func (t *dviReader) hyphen() {
	d := t.d
	if n := len(d.text); n > 1 && d.text[n-1] == '-' && d.text[n-2]|0x20 >= 'a' && d.text[n-2]|0x20 <= 'z' {
		d.text = d.text[:n-1]
		return
	}
	d.gap(1)
}

// texChar is what a character of a font of TeX's shows.
func texChar(font string, c int) string {
	switch {
	case strings.HasPrefix(font, "cmex"), strings.HasPrefix(font, "msam"), strings.HasPrefix(font, "line"), strings.HasPrefix(font, "lcircle"):
		return ""
	case strings.HasPrefix(font, "cmsy"), strings.HasPrefix(font, "msbm"):
		if c >= 'A' && c <= 'Z' {
			return string(rune(c))
		}
		return texSymbols[c]
	case strings.HasPrefix(font, "cmmi"):
		if c < 0x28 {
			return string([]rune("ΓΔΘΛΞΠΣΥΦΨΩαβγδεζηθικλμνξπρστυφχψωεϑϖϱςϕ")[c])
		}
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return string(rune(c))
		}
		return map[int]string{0x3a: ".", 0x3b: ",", 0x3c: "<", 0x3d: "/", 0x3e: ">"}[c]
	}
	cork := strings.HasPrefix(font, "ec") || strings.HasSuffix(font, "8t") || strings.HasPrefix(font, "tc") || strings.HasPrefix(font, "lm")
	switch {
	case cork && c >= 0x80 && c < 0x100:
		return string(corkHigh[c-0x80])
	case cork && c < 0x20:
		return []string{"`", "´", "^", "~", "¨", "˝", "°", "ˇ", "˘", "¯", "˙", "¸", "˛", "‚", "‹", "›", "“", "”", "„", "«", "»", "–", "—", "", "₀", "ı", "ȷ", "ff", "fi", "fl", "ffi", "ffl"}[c]
	case c < 0x20:
		typewriter := strings.HasPrefix(font, "cmtt")
		if typewriter && c >= 11 && c <= 15 {
			return []string{"↑", "↓", "'", "¡", "¿"}[c-11]
		}
		return []string{"Γ", "Δ", "Θ", "Λ", "Ξ", "Π", "Σ", "Υ", "Φ", "Ψ", "Ω", "ff", "fi", "fl", "ffi", "ffl", "ı", "ȷ", "`", "´", "ˇ", "˘", "¯", "°", "¸", "ß", "æ", "œ", "ø", "Æ", "Œ", "Ø"}[c]
	case strings.HasPrefix(font, "cmtt") || cork:
	case c == 0x22:
		return "”"
	case c == 0x3c:
		return "¡"
	case c == 0x3e:
		return "¿"
	case c == 0x5c:
		return "“"
	case c == 0x7b:
		return "–"
	case c == 0x7c:
		return "—"
	}
	if c < 0x7f {
		return string(rune(c))
	}
	if c >= 0xa0 && c < 0x100 {
		return string(rune(c))
	}
	return ""
}

// texSymbols are those of the symbol fonts that text has.
var texSymbols = map[int]string{0: "−", 1: "·", 2: "×", 3: "∗", 6: "±", 15: "•", 20: "≤", 21: "≥", 32: "←", 33: "→", 49: "∞", 50: "∈", 102: "{", 103: "}", 106: "|", 110: "\\", 120: "§", 123: "¶"}

// texAccentChar tells of the characters that accents are made of, as they stand
// before their letter.
func texAccentChar(font string, c int) (rune, bool) {
	if strings.HasPrefix(font, "cmr") || strings.HasPrefix(font, "cmb") || strings.HasPrefix(font, "cmti") || strings.HasPrefix(font, "cmsl") || strings.HasPrefix(font, "cmss") || strings.HasPrefix(font, "cmcsc") {
		a, ok := map[int]rune{0x12: 0x300, 0x13: 0x301, 0x14: 0x30c, 0x15: 0x306, 0x16: 0x304, 0x17: 0x30a, 0x5e: 0x302, 0x5f: 0x307, 0x7e: 0x303, 0x7f: 0x308}[c]
		return a, ok
	}
	return 0, false
}

// corkHigh is the upper half of the encoding that fonts for European languages
// have in TeX.
var corkHigh = []rune("ĂĄĆČĎĚĘĞĹĽŁŃŇŊŐŔŘŚŠŞŤŢŰŮŸŹŽŻĲİđ§ăąćčďěęğĺľłńňŋőŕřśšşťţűůÿźžżĳ¡¿£ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖŒØÙÚÛÜÝÞẞàáâãäåæçèéêëìíîïðñòóôõöœøùúûüýþß")
