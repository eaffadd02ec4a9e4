package essence

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"harvest/gather/soif"
)

// sumFont summarizes a font by its names, what it says of itself, and comments.
func sumFont(w *worker, o *soif.Object, c *content, _ []byte) {
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, err.Error())
		return
	}
	d := w.document()
	d.name = c.name
	b := &bin{r: r, size: size}
	if b.has(0, "\x1f\x8b") { // as the fonts of consoles and of X are kept
		b = w.unzipped(b)
	}
	switch start := string(b.at(0, 4)); start {
	case "\x00\x01\x00\x00", "OTTO", "true":
		sfnt(d, b, 0)
	case "ttcf":
		for i := range min(b.be32(8), 100) {
			sfnt(d, b, b.be32(12+4*i))
		}
	case "wOFF":
		woff(d, b)
	case "wOF2":
		w.woff2(d, b)
	case "\x01fcp":
		pcf(d, b)
	case "\x72\xb5\x4a\x86":
		d.extra("Font-Format", "PSF")
		d.extra("Glyphs", strconv.FormatInt(b.le32(16), 10))
		d.extra("Dimensions", strconv.FormatInt(b.le32(28), 10)+"x"+strconv.FormatInt(b.le32(24), 10))
	default:
		if b.has(0, "\x36\x04") {
			d.extra("Font-Format", "PSF")
			d.extra("Glyphs", strconv.Itoa(256<<(b.u8(2)&1)))
			d.extra("Dimensions", "8x"+strconv.Itoa(b.u8(3)))
			break
		}
		textFont(d, b)
	}
	d.put(w, o, c)
}

// unzipped is a font out of gzip, in bounds.
func (w *worker) unzipped(b *bin) *bin {
	in := &counter{r: io.NewSectionReader(b.r, 0, b.size)}
	z, err := gzip.NewReader(in)
	if err != nil {
		return b
	}
	defer z.Close()
	var out bytes.Buffer
	io.Copy(&out, io.LimitReader(&meter{w: w, r: z, in: in}, maxPart/4)) // the beginning of what is damaged
	return &bin{r: bytes.NewReader(out.Bytes()), size: int64(out.Len())}
}

// sfnt reads the tables of TrueType and OpenType.
func sfnt(d *document, b *bin, at int64) {
	format := "TrueType"
	if b.has(at, "OTTO") {
		format = "OpenType"
	}
	d.extra("Font-Format", format)
	for i := range int64(min(b.be16(at+4), 500)) {
		e := at + 12 + 16*i
		off, n := b.be32(e+8), b.be32(e+12)
		switch string(b.at(e, 4)) {
		case "name":
			fontNames(d, b.at(off, int(min(n, maxField))))
		case "maxp":
			d.extra("Glyphs", strconv.Itoa(b.be16(off+4)))
		}
	}
}

// woff reads WOFF, whose tables are compressed each.
func woff(d *document, b *bin) {
	d.extra("Font-Format", "WOFF")
	for i := range int64(min(b.be16(12), 500)) {
		e := 44 + 20*i
		if !b.has(e, "name") {
			continue
		}
		off, packed, n := b.be32(e+4), b.be32(e+8), b.be32(e+12)
		table := b.at(off, int(min(packed, maxField)))
		if packed < n {
			z, err := zlib.NewReader(bytes.NewReader(table))
			if err != nil {
				return
			}
			defer z.Close()
			table, _ = io.ReadAll(io.LimitReader(z, maxField)) // of what is damaged the beginning
		}
		fontNames(d, table)
	}
}

// woff2 reads WOFF 2, whose tables are one stream of Brotli: sizes in the
// directory tell where the names begin in it.
func (w *worker) woff2(d *document, b *bin) {
	d.extra("Font-Format", "WOFF2")
	dir := b.at(48, 4<<10)
	i, off, nameAt, nameSize := 0, 0, -1, 0
	for range min(b.be16(12), 500) {
		if i >= len(dir) {
			return
		}
		flags := dir[i]
		i++
		tag := ""
		if flags&0x3f == 0x3f {
			tag = string(le(dir).cut(i, 4))
			i += 4
		}
		var n, packed int
		n, i = base128(dir, i)
		size := n
		glyphs := flags&0x3f == 10 || flags&0x3f == 11 // glyf and loca, which null means are transformed
		if version := flags >> 6; glyphs != (version == 3) && (glyphs || version != 0) {
			packed, i = base128(dir, i)
			size = packed
		}
		if flags&0x3f == 5 || tag == "name" {
			nameAt, nameSize = off, n
		}
		off += size
	}
	if nameAt < 0 || nameAt > maxPart {
		return
	}
	in := &counter{r: io.NewSectionReader(b.r, 48+int64(i), b.size)}
	m := &meter{w: w, r: brotli.NewReader(in), in: in}
	if _, err := io.CopyN(io.Discard, m, int64(nameAt)); err != nil {
		return
	}
	table, _ := io.ReadAll(io.LimitReader(m, int64(min(nameSize, maxField)))) // of what is damaged the beginning
	fontNames(d, table)
}

// base128 reads a number as WOFF 2 has them, and where it ends.
func base128(p []byte, i int) (n, end int) {
	for k := 0; k < 5 && i < len(p); k++ {
		c := p[i]
		i++
		n = n<<7 | int(c&0x7f)
		if c < 0x80 {
			break
		}
	}
	return n, i
}

// fontNames reads a name table. Of several languages English is taken, in
// UTF-16 if there is that.
func fontNames(d *document, p []byte) {
	b := &bin{r: bytes.NewReader(p), size: int64(len(p))}
	names, rank := make(map[int]string), make(map[int]int)
	strs := int64(b.be16(4))
	for i := range int64(min(b.be16(2), 2000)) {
		e := 6 + 12*i
		platform, lang, id := b.be16(e), b.be16(e+4), b.be16(e+6)
		text := b.at(strs+int64(b.be16(e+10)), b.be16(e+8))
		s, r := "", 1
		if platform == 1 {
			s = latin1(text)
		} else {
			s = string(fromUTF16(text, bigEndian))
			if r = 2; lang == 0x409 || platform == 0 {
				r = 3
			}
		}
		if s = strings.TrimSpace(s); s != "" && r > rank[id] {
			names[id], rank[id] = s, r
		}
	}
	if d.title != "" { // another font of the same file
		d.heading(names[4])
		return
	}
	d.title = names[4]
	if d.title == "" {
		d.title = strings.TrimSpace(names[1] + " " + names[2])
	}
	d.author, d.publisher, d.description = names[9], names[8], names[10]
	d.link(names[11])
	d.link(names[12])
	d.link(names[14])
	for _, a := range []struct {
		name string
		id   int
	}{{"Font-Family", 1}, {"Font-Style", 2}, {"Version", 5}, {"PostScript-Name", 6}, {"Rights", 0}, {"License", 13}} {
		d.extra(a.name, names[a.id])
	}
}

// pcf reads the properties of X's compiled fonts.
func pcf(d *document, b *bin) {
	d.extra("Font-Format", "PCF")
	for i := range min(b.le32(4), 100) {
		e := 8 + 16*i
		if b.le32(e) != 1 {
			continue
		}
		at := b.le32(e + 12)
		u32 := b.be32
		if b.le32(at)&4 == 0 {
			u32 = b.le32
		}
		n := min(u32(at+4), 1000)
		strs := at + 8 + (9*n+3)/4*4 + 4 // padded, then their size
		for k := range n {
			p := at + 8 + 9*k
			if b.u8(p+4) == 0 {
				continue
			}
			text := func(off int64) string {
				s, _, _ := bytes.Cut(b.at(strs+off, 1<<10), []byte{0})
				return string(decode(s, ""))
			}
			d.fontProperty(text(u32(p)), text(u32(p+5)))
		}
	}
}

// fontProperty keeps a property of a font of X, or of a metrics file.
func (d *document) fontProperty(key, val string) {
	val = strings.Trim(strings.TrimSpace(val), `"`)
	switch key {
	case "FONT", "FontName":
		if d.title == "" {
			d.title = val
		}
		d.extra("PostScript-Name", val)
	case "FullName", "FULL_NAME":
		d.title = val
	case "FAMILY_NAME", "FamilyName":
		d.extra("Font-Family", val)
	case "WEIGHT_NAME", "Weight":
		d.extra("Font-Style", val)
	case "COPYRIGHT", "Notice", "NOTICE":
		d.extra("Rights", val)
	case "COMMENT", "Comment":
		d.comment(val)
	case "FOUNDRY":
		d.publisher = val
	case "CHARS", "Characters", "StartCharMetrics":
		d.extra("Glyphs", val)
	case "Version", "version", "FONT_VERSION":
		d.extra("Version", val)
	}
}

// textFont reads fonts that are text, or begin so: Type 1, AFM, BDF.
func textFont(d *document, b *bin) {
	text := b.at(0, maxField)
	if len(text) > 6 && text[0] == 0x80 { // PFB: a segment's head
		text = text[6:]
	}
	if i := bytes.Index(text, []byte("eexec")); i >= 0 {
		text = text[:i]
	}
	switch {
	case bytes.HasPrefix(text, []byte("StartFontMetrics")):
		d.extra("Font-Format", "AFM")
	case bytes.HasPrefix(text, []byte("STARTFONT")):
		d.extra("Font-Format", "BDF")
	case bytes.HasPrefix(text, []byte("%!")):
		d.extra("Font-Format", "Type 1")
	}
	for line := range bytes.Lines(text) {
		l := strings.TrimSpace(string(bytes.ToValidUTF8(line, []byte("?"))))
		if rest, ok := strings.CutPrefix(l, "%"); ok {
			if !strings.HasPrefix(rest, "!") && !strings.HasPrefix(rest, "%") {
				d.comment(rest)
			}
			continue
		}
		if strings.HasPrefix(l, "/") {
			key, val, _ := strings.Cut(l[1:], " ")
			if i, j := strings.IndexByte(val, '('), strings.LastIndexByte(val, ')'); i >= 0 && j > i {
				d.fontProperty(key, val[i+1:j])
			}
			continue
		}
		key, val, _ := strings.Cut(l, " ")
		if key == "STARTCHAR" || key == "StartCharMetrics" || key == "C" {
			break
		}
		d.fontProperty(key, val)
	}
}
