package essence

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// sumPostScript summarizes PostScript: what its structuring comments say, and
// its words. Those are read from the strings it shows in the way of the program
// that wrote it; what others wrote is set by ghostscript, in a jail.
func sumPostScript(w *worker, o *soif.Object, c *content, head []byte) {
	if bytes.HasPrefix(head, []byte("%!PS-AdobeFont")) || bytes.HasPrefix(head, []byte("%!FontType")) {
		sumFont(w, o, c, head)
		return
	}
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, err.Error())
		return
	}
	p := make([]byte, min(size, maxPart))
	n, _ := io.ReadFull(io.NewSectionReader(r, 0, int64(len(p))), p)
	text := epsText(p[:n])
	d := w.document()
	d.comments2ps(text)
	ps := &psReader{d: d, b: text, dpi: 72}
	switch producer := psProducer(text); producer {
	case "dvips":
		w.step(c, "select", producer, "producer")
		ps.dvips()
	case "groff":
		w.step(c, "select", producer, "producer")
		ps.groff()
	default:
		out, err := w.run(c, "gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=txtwrite", "-sOutputFile=-", "{}")
		if err == nil && letters(out, 1) {
			d.blanksLines(out)
			break
		}
		if err != nil && n > 0 {
			w.step(c, "summarize", "cut", err.Error())
		}
		ps.shown()
	}
	d.paper(c)
	d.put(w, o, c)
}

// epsText is the PostScript of a file that has a picture of itself with it.
func epsText(b []byte) []byte {
	if bytes.HasPrefix(b, []byte("\xc5\xd0\xd3\xc6")) {
		return le(b).cut(le(b).u32(4), le(b).u32(8))
	}
	return b
}

// blanksLines adds text whose lines are filled up with blanks.
func (d *document) blanksLines(text []byte) {
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("\f"), []byte("\n"))) {
		if l := words(line); l == "" {
			d.gap(2)
		} else {
			d.add([]byte(l + "\n"))
		}
	}
}

// comments2ps reads the structuring comments.
func (d *document) comments2ps(text []byte) {
	fonts := ""
	for line := range bytes.Lines(text[:min(len(text), 64<<10)]) {
		rest, ok := bytes.CutPrefix(line, []byte("%%"))
		if !ok {
			continue
		}
		key, val, _ := strings.Cut(string(decode(bytes.TrimRight(rest, "\r\n"), "")), ":")
		val = strings.TrimSpace(val)
		if strings.HasPrefix(val, "(") && !strings.HasPrefix(val, "(atend") {
			p := pdfParser{b: []byte(val)}
			val = pdfText(p.literal())
		}
		switch {
		case val == "" || val == "(atend)":
		case key == "Title" && d.title == "":
			d.title = val
		case key == "Creator" && d.generator == "":
			d.generator = val
		case key == "For" && d.author == "" && tellsAuthor(val):
			d.author = val
		case key == "CreationDate" && d.created == "":
			d.created = psTime(val)
		case key == "Pages":
			d.pages, _ = strconv.Atoi(strings.Fields(val)[0])
		case key == "Copyright":
			d.extra("Rights", val)
		case key == "DocumentFonts" && fonts == "":
			fonts = val
			d.extra("Fonts", val)
		}
	}
	if i := bytes.LastIndex(text, []byte("%%Pages:")); i >= 0 && d.pages == 0 {
		f := bytes.Fields(text[i+8 : min(len(text), i+40)])
		if len(f) > 0 {
			d.pages = atoi(f[0])
		}
	}
}

// psTime is a date of a comment, in any of many forms.
func psTime(s string) string {
	if strings.HasPrefix(s, "D:") {
		return pdfTime(s)
	}
	return isoTime(s)
}

// tellsAuthor reports whether a file is said to be for a person.
func tellsAuthor(s string) bool {
	low := strings.ToLower(s)
	return !strings.HasPrefix(low, "root") && low != "nobody" && low != "unknown" && low != "user"
}

// psProducer is the program that wrote a file, if its way of showing text is
// known.
func psProducer(text []byte) string {
	head := text[:min(len(text), 16<<10)]
	switch {
	case bytes.Contains(head, []byte("%%Creator: groff")):
		return "groff"
	case bytes.Contains(head, []byte("%%Creator: dvips")), bytes.Contains(head, []byte("TeXDict begin")):
		return "dvips"
	}
	return ""
}

// A psReader reads the strings that PostScript shows.
type psReader struct {
	d    *document
	b    []byte
	i    int
	dpi  float64
	nums []float64 // before an operator
	strs [][]byte
	op   string

	accent rune // that the next letter has
}

// next reads up to an operator; false at the end.
func (p *psReader) next() bool {
	p.nums, p.strs = p.nums[:0], p.strs[:0]
	for p.i < len(p.b) && !p.d.cut {
		switch c := p.b[p.i]; {
		case blank(c):
			p.i++
		case c == '%':
			for p.i < len(p.b) && p.b[p.i] != '\n' && p.b[p.i] != '\r' {
				p.i++
			}
		case c == '(':
			q := pdfParser{b: p.b, i: p.i}
			if s := q.literal(); len(p.strs) < 100 {
				p.strs = append(p.strs, s)
			}
			p.i = max(q.i, p.i+1)
		case regular(c):
			start := p.i
			for p.i < len(p.b) && regular(p.b[p.i]) {
				p.i++
			}
			word := p.b[start:p.i]
			if c >= '0' && c <= '9' || c == '-' || c == '.' {
				if n, err := strconv.ParseFloat(string(word[:min(len(word), 32)]), 64); err == nil {
					if len(p.nums) < 100 {
						p.nums = append(p.nums, n)
					}
					continue
				}
			}
			p.op = string(word[:min(len(word), 64)])
			return true
		case c == '/':
			for p.i++; p.i < len(p.b) && regular(p.b[p.i]); p.i++ {
			}
		default:
			p.i++
		}
	}
	return false
}

// groff reads what grops writes: a string, where it stands, and a letter. The
// letters differ in what is told: the place, how far from the last string, how
// wide blanks are.
func (p *psReader) groff() {
	if i := bytes.Index(p.b, []byte("%%EndSetup")); i >= 0 {
		p.i = i
	}
	d := p.d
	y, size, apart := 0.0, 10.0, 0.0
	for p.next() {
		if p.op == "SF" && len(p.nums) > 0 {
			size = p.nums[len(p.nums)-1]
			continue
		}
		if p.op == "BP" {
			d.gap(2)
			continue
		}
		if len(p.op) != 1 || p.op[0] < 'A' || p.op[0] > 'T' || len(p.strs) == 0 {
			continue
		}
		k, s := (p.op[0]-'A')/4, groffText(p.strs[len(p.strs)-1])
		var arg [2]float64 // the last two numbers
		for i, n := 0, len(p.nums); i < 2 && i < n; i++ {
			arg[1-i] = p.nums[n-1-i]
		}
		down, gap := 0.0, apart
		apart = 0
		if wide := (p.op[0]-'A')%4 >= 2; wide && len(p.nums) > 0 { // letters are set apart, the last one too
			apart = p.nums[0]
		}
		switch k { // A: where the last ended; E: apart along the line; I: down; M: both; Q: at a place
		case 1:
			gap += arg[1]
		case 2:
			down = -arg[1]
		case 3:
			down = -arg[1]
			gap += arg[0]
		case 4:
			down = arg[1] - y
			gap = size
		}
		if gap > size/8 && down == 0 {
			d.space(' ')
		}
		y += down
		switch {
		case down > 2*size || down < -2*size:
			d.gap(2)
		case down > size/2 || down < -size/2:
			d.gap(1)
		}
		if apart > size/8 {
			s = strings.Join(strings.Split(s, ""), " ")
		}
		d.add([]byte(s))
	}
}

// groffText is a string in the encoding that groff's fonts have: ligatures and
// quotes stand where ASCII has control characters and elsewhere.
func groffText(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		switch {
		case c == 0x8c:
			out.WriteString("fi")
		case c == 0x8d:
			out.WriteString("fl")
		case c == 0x8e:
			out.WriteString("ff")
		case c == 0x8f:
			out.WriteString("ffi")
		case c == 0x90:
			out.WriteString("ffl")
		case c == 0xad:
			out.WriteByte('-')
		case c == 0x89:
			out.WriteString("“")
		case c == 0x8a:
			out.WriteString("”")
		case c < ' ':
		case c < 0x7f:
			out.WriteByte(c)
		case c >= 0xa0:
			out.WriteRune(rune(c))
		}
	}
	return out.String()
}

// dvips reads what dvips writes: strings with an operator of a letter that also
// moves. A move that is wide sets words apart; y and a begin elsewhere.
func (p *psReader) dvips() {
	p.dpi = 300
	if m := dvipsStart().FindSubmatch(p.b[:min(len(p.b), 256<<10)]); m != nil {
		p.dpi = float64(max(atoi(m[1]), 72))
	}
	start := bytes.Index(p.b, []byte("%%Page:"))
	if start < 0 {
		start = 0
	}
	p.i = start
	d := p.d
	space := p.dpi * 1.5 / 72
	delta, y := 0.0, 0.0
	for p.next() {
		if p.op == "bop" {
			d.gap(2)
			continue
		}
		if len(p.op) != 1 {
			continue
		}
		arg := 0.0
		if n := len(p.nums); n > 0 {
			arg = p.nums[n-1]
		}
		for _, s := range p.strs {
			d.add([]byte(p.texString(s)))
		}
		move := 0.0
		switch c := p.op[0]; {
		case c == 'a' || c == 'y':
			if arg != y {
				p.newLine(arg - y)
				y = arg
			} else {
				d.space(' ')
			}
		case c == 'b':
			delta, move = arg, arg
		case c >= 'c' && c <= 'k':
			delta += float64(int(c) - 'g')
			move = delta
		case c == 'w' || c == 'x':
			move = arg
		}
		if move > space && p.accent == 0 {
			d.space(' ')
		}
	}
}

var dvipsStart = expression(`(\d{2,5}) \([^()]{0,200}\)\s*@start`)

// newLine begins a line, or goes on in one that is a little higher or lower.
func (p *psReader) newLine(down float64) {
	d := p.d
	if n := len(d.text); n > 1 && d.text[n-1] == '-' && d.text[n-2]|0x20 >= 'a' && d.text[n-2]|0x20 <= 'z' && down > 0 {
		d.text = d.text[:n-1]
		return
	}
	switch lines := down / p.dpi * 72; {
	case lines > 20 || lines < -20:
		d.gap(2)
	case lines > 7 || lines < -7:
		d.gap(1)
	default:
		d.space(' ')
	}
}

// texString is a string in the encoding of TeX's text fonts.
func (p *psReader) texString(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		if a, ok := texAccentChar("cmr", int(c)); ok {
			p.accent = a
			continue
		}
		out.WriteString(accented(texChar("cmr10", int(c)), p.accent))
		p.accent = 0
	}
	return out.String()
}

// accented is a letter with an accent, if it has one.
func accented(s string, accent rune) string {
	if s == "ı" {
		s = "i"
	}
	if accent == 0 || len(s) != 1 || s[0]|0x20 < 'a' || s[0]|0x20 > 'z' {
		return s
	}
	return composed(rune(s[0]), accent)
}

// shown reads the strings of whatever program: what is shown near to one
// another is taken for words of a line, what stands after a move for a line.
func (p *psReader) shown() {
	if i := bytes.Index(p.b, []byte("%%EndProlog")); i >= 0 {
		p.i = i
	}
	d := p.d
	for p.next() {
		switch p.op {
		case "moveto", "showpage", "m", "M", "MT", "lineto":
			d.gap(1)
		case "rmoveto":
			d.space(' ')
		}
		for _, s := range p.strs {
			if text := pdfText(s); letters([]byte(text), 1) && psPrintable(text) {
				d.add([]byte(text))
				d.space(' ')
			}
		}
	}
}

// psPrintable reports whether a string is text, and not the numbers of glyphs.
func psPrintable(s string) bool {
	odd := 0
	for _, r := range s {
		if r < ' ' || r == '\uFFFD' {
			odd++
		}
	}
	return odd*10 <= len(s)
}
