package essence

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// le reads little-endian numbers of a slice; past its end they are 0.
type le []byte

func (b le) u16(i int) int {
	if i < 0 || i+2 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(b[i:]))
}

func (b le) u32(i int) int {
	if i < 0 || i+4 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b[i:]))
}

// cut is the n bytes at i, as far as there are any.
func (b le) cut(i, n int) le {
	if i < 0 || i > len(b) || n < 0 {
		return nil
	}
	return b[i:min(len(b), i+n)]
}

// wideText is text in UTF-16, the low byte first.
func wideText(b []byte) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}

// narrowText is text in windows-1252.
func narrowText(b []byte) string {
	out, _ := charmap.Windows1252.NewDecoder().Bytes(b)
	return string(out)
}

// word reads the text of a Word document: its pieces, in the order of the text,
// which the table stream tells ([MS-DOC] 2.4.1). Files of Word 6 and 95 have
// their text in one piece.
func (f *compound) word(d *document) {
	doc := le(f.stream("WordDocument"))
	flags := doc.u16(0x0a)
	if flags&0x0100 != 0 {
		f.w.limit(f.c, "is encrypted")
		return
	}
	t := wordText{d: d}
	if doc.u16(2) < 0x6a { // nFib of Word 97 is 0xC1
		if at, end := doc.u32(0x18), doc.u32(0x1c); at < end && flags&4 == 0 {
			t.add(narrowText(doc.cut(at, end-at)))
		} else if doc.u16(0) == 0xa5dc {
			text, err := f.w.run(f.c, "catdoc", "-d", "utf-8", "{}")
			if err != nil {
				f.w.limit(f.c, err.Error())
			}
			d.add(text)
		}
		return
	}
	table := le(f.stream("0Table"))
	if flags&0x0200 != 0 {
		table = f.stream("1Table")
	}
	clx := table.cut(doc.u32(0x1a2), doc.u32(0x1a6))
	for len(clx) > 3 && clx[0] == 1 {
		clx = clx.cut(3+clx.u16(1), len(clx))
	}
	if len(clx) < 5 || clx[0] != 2 {
		return
	}
	pieces := clx.cut(5, clx.u32(1))
	n := (len(pieces) - 4) / 12
	for i := 0; i < n && !d.cut; i++ {
		chars := pieces.u32(4*i+4) - pieces.u32(4*i)
		at := pieces.u32(4*(n+1) + 8*i + 2)
		if at&(1<<30) != 0 {
			t.add(narrowText(doc.cut(at&^(1<<30)/2, chars)))
		} else {
			t.add(wideText(doc.cut(at, 2*chars)))
		}
	}
}

// wordText makes text of Word's characters, some of which are marks.
type wordText struct {
	d     *document
	instr []byte // of the field that is open
	depth int    // of fields whose instruction is not at its end
}

func (t *wordText) add(s string) {
	start := 0
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= ' ' {
			continue
		}
		t.put(s[start:i])
		start = i + 1
		switch b {
		case '\r', '\v', '\f', 0x0e:
			t.d.gap(1)
		case 7, '\t':
			t.d.space('\t')
		case 0x1e:
			t.put("-")
		case 0x13:
			t.depth++
			t.instr = t.instr[:0]
		case 0x14, 0x15:
			if t.depth > 0 && (b == 0x14 || len(t.instr) > 0) {
				t.depth--
			}
			t.d.link(fieldLink(string(t.instr)))
			t.instr = t.instr[:0]
		}
	}
	t.put(s[start:])
}

func (t *wordText) put(s string) {
	switch {
	case s == "":
	case t.depth == 0:
		t.d.add([]byte(s))
	case len(t.instr)+len(s) < 4<<10:
		t.instr = append(t.instr, s...)
	}
}

// slides reads the records of a PowerPoint document ([MS-PPT] 2.3): the texts of
// slides and notes, not of masters, whose text says how to write some.
func slides(d *document, doc []byte) {
	b := le(doc)
	kind := 0
	for i := 0; i+8 <= len(b) && !d.cut; {
		head, typ, n := b.u16(i), b.u16(i+2), b.u32(i+4)
		body := b.cut(i+8, n)
		container := head&0xf == 0xf
		switch typ {
		case 0x03f8, 0x0fc9, 0x0fd9: // a master, a handout's, headers and footers
			container = false
		case 0x0f9f: // what the text that follows is
			kind = body.u32(0)
		case 0x0fa0:
			d.slideText(wideText(body), kind)
		case 0x0fa8:
			d.slideText(narrowText(body), kind)
		case 0x0fba: // a name; of a link: where it leads
			if head>>4 == 1 {
				if url := wideText(body); strings.Contains(url, "://") {
					d.link(url)
				}
			}
		}
		if i += 8; !container {
			i += n
		}
	}
}

func (d *document) slideText(s string, kind int) {
	if s == "*" || strings.TrimSpace(s) == "" { // the place of a date, of a number
		return
	}
	if kind == 0 || kind == 6 {
		d.gap(2)
		d.heading(s)
	}
	d.add([]byte(strings.Map(func(r rune) rune {
		if r == '\r' || r == '\v' {
			return '\n'
		}
		return r
	}, s)))
	d.gap(1)
}

// A book reads the records of an Excel workbook ([MS-XLS] 2.1, BIFF5 and 8).
type book struct {
	d      *document
	shared []string
	sheets []string
	row    int
	wide   bool // BIFF8, in which text is told to be of bytes or of UTF-16
}

func biff(d *document, stream []byte) {
	b := &book{d: d, row: -1}
	in := le(stream)
	for i := 0; i+4 <= len(in) && !d.cut; {
		typ, n := in.u16(i), in.u16(i+2)
		body := in.cut(i+4, n)
		i += 4 + n
		if typ == 0x00fc { // shared texts, which go on in the records that follow
			parts := []le{body}
			for in.u16(i) == 0x003c && i+4 <= len(in) {
				parts = append(parts, in.cut(i+4, in.u16(i+2)))
				i += 4 + in.u16(i+2)
			}
			b.texts(parts)
			continue
		}
		if typ == 0x002f {
			return // encrypted
		}
		b.record(typ, body)
	}
}

func (b *book) record(typ int, r le) {
	switch typ {
	case 0x0809: // the beginning of a sheet
		b.wide = r.u16(0) >= 0x0600
		if r.u16(2) == 0x0010 && len(b.sheets) > 0 {
			b.d.gap(2)
			b.d.add([]byte(b.sheets[0] + "\n"))
			b.sheets, b.row = b.sheets[1:], -1
		}
	case 0x0085: // a sheet's name
		if len(r) > 7 && len(b.sheets) < 1000 {
			name := b.text(r[7:], int(r[6]))
			b.sheets = append(b.sheets, name)
			b.d.heading(name)
		}
	case 0x00fd:
		if k := r.u32(6); k < len(b.shared) {
			b.cell(r, b.shared[k])
		}
	case 0x0204, 0x00d6:
		b.cell(r, b.text(r.cut(8, len(r)), r.u16(6)))
	case 0x0207:
		b.d.add([]byte(b.text(r.cut(2, len(r)), r.u16(0))))
	case 0x0203, 0x0006:
		if len(r) >= 14 {
			v := math.Float64frombits(binary.LittleEndian.Uint64(r[6:]))
			if typ == 6 && r.u16(12) == 0xffff {
				b.cell(r, "") // a text, which follows, or none
			} else {
				b.cell(r, number(v))
			}
		}
	case 0x027e:
		b.cell(r, number(rk(r.u32(6))))
	case 0x00bd:
		for i := 4; i+6 < len(r); i += 6 {
			b.cell(r, number(rk(r.u32(i+2))))
		}
	}
}

// cell adds what a cell shows; its record begins with the row.
func (b *book) cell(r le, s string) {
	if row := r.u16(0); row != b.row {
		b.d.gap(1)
		b.row = row
	} else {
		b.d.space('\t')
	}
	b.d.add([]byte(s))
}

// text is that of n characters.
func (b *book) text(r le, n int) string {
	switch {
	case !b.wide:
		return narrowText(r.cut(0, n))
	case len(r) == 0:
		return ""
	case r[0]&1 != 0:
		return wideText(r.cut(1, 2*n))
	}
	return latin1(r.cut(1, n))
}

// latin1 is text whose characters are the low bytes of UTF-16.
func latin1(b []byte) string {
	out := make([]rune, len(b))
	for i, c := range b {
		out[i] = rune(c)
	}
	return string(out)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 15, 64) }

// rk is a number in four bytes ([MS-XLS] 2.5.122).
func rk(v int) float64 {
	var f float64
	if v&2 != 0 {
		f = float64(int32(uint32(v)) >> 2)
	} else {
		f = math.Float64frombits(uint64(v&^3) << 32)
	}
	if v&1 != 0 {
		f /= 100
	}
	return f
}

// texts reads the table of shared texts. A text that goes on in the next record
// says there anew how wide its characters are.
func (b *book) texts(parts []le) {
	s := spread{parts: parts}
	s.take(4)
	n := s.take(4).u32(0)
	room := maxShared
	for range n {
		if s.end() || room < 0 {
			return
		}
		chars := s.take(2).u16(0)
		flags := s.byte()
		runs, ext := 0, 0
		if flags&8 != 0 {
			runs = s.take(2).u16(0)
		}
		if flags&4 != 0 {
			ext = s.take(4).u32(0)
		}
		var text strings.Builder
		for chars > 0 && !s.end() {
			wide := int(flags & 1)
			got := s.some(chars << wide)
			if wide == 1 {
				text.WriteString(wideText(got))
			} else {
				text.WriteString(latin1(got))
			}
			chars -= max(len(got)>>wide, 1)
			if chars > 0 {
				flags = flags&^1 | s.byte()&1
			}
		}
		s.skip(4*runs + ext)
		b.shared = append(b.shared, text.String())
		room -= text.Len() + 16
	}
}

// spread are bytes that are spread over records.
type spread struct{ parts []le }

func (s *spread) end() bool {
	for len(s.parts) > 0 && len(s.parts[0]) == 0 {
		s.parts = s.parts[1:]
	}
	return len(s.parts) == 0
}

// some takes n bytes, or those that are left of the record.
func (s *spread) some(n int) le {
	if s.end() {
		return nil
	}
	out := s.parts[0].cut(0, n)
	s.parts[0] = s.parts[0][len(out):]
	return out
}

// take takes n bytes across records.
func (s *spread) take(n int) le {
	out := s.some(n)
	for len(out) < n && !s.end() {
		out = append(out[:len(out):len(out)], s.some(n-len(out))...)
	}
	return out
}

func (s *spread) byte() byte {
	if b := s.some(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (s *spread) skip(n int) {
	for n > 0 && !s.end() {
		n -= len(s.some(n))
	}
}

// message reads a mail that Outlook has kept ([MS-OXMSG]): a stream a property.
func (f *compound) message(d *document) {
	d.title = f.property("0037")
	if d.title == "" {
		d.title = f.property("0070")
	}
	d.subject = f.property("0037")
	d.author = strings.TrimSpace(f.property("0C1A"))
	for _, p := range [][2]string{{"From", "5D01"}, {"To", "0E04"}, {"Cc", "0E03"}, {"Message-ID", "1035"}, {"In-Reply-To", "1042"}} {
		d.extra(p[0], f.property(p[1]))
	}
	headers := f.property("007D")
	for line := range strings.SplitSeq(headers, "\n") {
		if v, ok := strings.CutPrefix(line, "Date:"); ok {
			d.date = isoTime(v)
		}
	}
	if d.date == "" {
		d.date = f.sent()
	}
	body := f.property("1000")
	d.add([]byte(strings.ReplaceAll(body, "\r\n", "\n")))
	if body == "" {
		chapter(d, &xmlScanner{b: decodeHTML(f.stream("__substg1.0_10130102"), "")})
	}
	for _, name := range f.names {
		if strings.HasPrefix(name, "__attach") && strings.Contains(name, "_3707001") {
			d.extra("Attachment", f.text(name))
		}
	}
}

// property is the text of a property of a message, in whichever form it is kept.
func (f *compound) property(id string) string {
	if s := f.text("__substg1.0_" + id + "001F"); s != "" {
		return s
	}
	return f.text("__substg1.0_" + id + "001E")
}

func (f *compound) text(name string) string {
	b := f.stream(name)
	if strings.HasSuffix(name, "001F") {
		return strings.TrimRight(wideText(b), "\x00")
	}
	return strings.TrimRight(string(decode(b, "")), "\x00")
}

// sent is when a message was submitted, by the table of properties of fixed
// size: tag, flags, value, 16 bytes each.
func (f *compound) sent() string {
	b := le(f.stream("__properties_version1.0"))
	for i := 32; i+16 <= len(b); i += 16 {
		if tag := b.u32(i); tag == 0x00390040 || tag == 0x0e060040 {
			ticks := int64(binary.LittleEndian.Uint64(b[i+8:])) // of 100 ns since 1601
			if ticks < 11644473600e7 {
				return ""
			}
			return iso(time.Unix(ticks/1e7-11644473600, 0), true)
		}
	}
	return ""
}
