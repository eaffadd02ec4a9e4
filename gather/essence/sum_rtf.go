package essence

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"harvest/gather/soif"
)

// A rtf is RTF being read: groups that nest, control words, text.
type rtf struct {
	d       *document
	b       []byte
	i       int
	groups  []rtfGroup
	g       rtfGroup // the open one
	dec     encoding.Encoding
	fonts   map[int]encoding.Encoding
	styles  map[int]string // that make headings
	field   []byte         // an instruction
	value   []byte         // of what \info tells
	para    int            // where the paragraph begins
	skipped int            // characters that stand for a \u before them, left to skip
	high    rune           // the first half of a pair
	date    []int
}

// A rtfGroup is what ends with a group.
type rtfGroup struct {
	dest          string // where its text goes: "" the document
	font, style   int
	uc            int // characters that follow a \u
	hidden, level bool
	cells         bool // in a table
}

// maxGroups bounds how deep groups nest; what is deeper is read in the last.
const maxGroups = 1000

// sumRTF summarizes Rich Text Format.
func sumRTF(w *worker, o *soif.Object, c *content, text []byte) {
	r := &rtf{d: w.document(), b: text, fonts: make(map[int]encoding.Encoding), styles: make(map[int]string)}
	r.g.uc = 1
	r.dec, _ = charset.Lookup("windows-1252")
	for r.i < len(r.b) && !r.d.cut {
		r.step()
	}
	r.end()
	r.d.put(w, o, c)
}

// step reads a token.
func (r *rtf) step() {
	switch c := r.b[r.i]; c {
	case '{':
		if len(r.groups) < maxGroups {
			r.groups = append(r.groups, r.g)
		}
		r.i++
	case '}':
		r.closed()
		if n := len(r.groups); n > 0 {
			r.g, r.groups = r.groups[n-1], r.groups[:n-1]
		}
		r.i++
	case '\\':
		r.control()
	case '\r', '\n':
		r.i++
	default:
		end := bytes.IndexAny(r.b[r.i:], "{}\\\r\n")
		if end < 0 {
			end = len(r.b) - r.i
		}
		r.bytes(r.b[r.i : r.i+end])
		r.i += end
	}
}

// closed ends what the group was of.
func (r *rtf) closed() {
	if n := len(r.groups); n > 0 && r.groups[n-1].dest == r.g.dest {
		return
	}
	d := r.d
	v := words(r.value)
	switch r.g.dest {
	case "doccomm":
		d.description = v
	case "generator":
		d.generator = strings.TrimRight(v, "; ")
	case "annotation":
		d.comment(v)
	case "fldinst":
		d.link(fieldLink(string(r.field)))
		r.field = r.field[:0]
	case "creatim":
		d.created = rtfTime(r.date)
	case "revtim":
		d.modified = rtfTime(r.date)
	default:
		d.property(r.g.dest, v)
	}
	r.value = r.value[:0]
}

// rtfTime writes a time told as year, month, day, hour, minute.
func rtfTime(n []int) string {
	if len(n) < 5 || n[0] == 0 {
		return ""
	}
	return isoTime(strconv.Itoa(n[0]) + "-" + two(n[1]) + "-" + two(n[2]) + "T" + two(n[3]) + ":" + two(n[4]))
}

// control reads a control word or symbol.
func (r *rtf) control() {
	r.i++
	if r.i >= len(r.b) {
		return
	}
	c := r.b[r.i]
	if c|0x20 < 'a' || c|0x20 > 'z' {
		r.i++
		r.symbol(c)
		return
	}
	start := r.i
	for r.i < len(r.b) && r.b[r.i]|0x20 >= 'a' && r.b[r.i]|0x20 <= 'z' {
		r.i++
	}
	word := string(r.b[start:min(r.i, start+32)])
	start = r.i
	if r.i < len(r.b) && r.b[r.i] == '-' {
		r.i++
	}
	for r.i < len(r.b) && r.i < start+11 && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		r.i++
	}
	n, err := strconv.Atoi(string(r.b[start:r.i]))
	if r.i < len(r.b) && r.b[r.i] == ' ' {
		r.i++
	}
	r.word(word, n, err == nil)
}

func (r *rtf) symbol(c byte) {
	switch c {
	case '\'':
		if r.i+2 <= len(r.b) {
			hi, lo := hexDigit(r.b[r.i]), hexDigit(r.b[r.i+1])
			r.i += 2
			if hi >= 0 && lo >= 0 {
				r.coded(byte(hi<<4 | lo))
			}
		}
	case '*':
		if r.g.dest == "" {
			r.g.dest = "*" // unless what follows is known
		}
	case '~':
		r.put(" ")
	case '_':
		r.put("-")
	case '\\', '{', '}':
		r.put(string(c))
	case '\n', '\r':
		r.par()
	}
}

// rtfInfo are the destinations whose text is kept.
var rtfInfo = map[string]bool{"title": true, "author": true, "subject": true, "keywords": true, "doccomm": true, "company": true,
	"category": true, "generator": true, "annotation": true, "fldinst": true, "creatim": true, "revtim": true}

// rtfSkip are destinations whose text is of no use.
var rtfSkip = map[string]bool{"fonttbl": true, "colortbl": true, "stylesheet": true, "pict": true, "object": true, "info": true, "listtable": true,
	"listoverridetable": true, "revtbl": true, "rsidtbl": true, "themedata": true, "datastore": true, "latentstyles": true, "xmlnstbl": true,
	"operator": true, "template": true, "bkmkstart": true, "bkmkend": true, "atnid": true, "atnauthor": true, "nonshppict": true, "falt": true,
	"listtext": false, "filetbl": true, "private": true, "tc": true, "xe": true, "printim": true, "buptim": true, "comment": true}

func (r *rtf) word(w string, n int, has bool) {
	switch {
	case rtfInfo[w]:
		r.g.dest, r.value, r.date = w, r.value[:0], nil
		return
	case rtfSkip[w]:
		r.g.dest = w
		return
	}
	if r.form(w, n, has) || r.set(w, n) {
		return
	}
	switch w {
	case "footnote", "shptxt":
		r.g.dest = ""
		r.d.space(' ')
	case "par", "sect", "page":
		r.par()
	case "line":
		r.put("\n")
	case "tab":
		r.put("\t")
	case "cell", "nestcell":
		r.d.text = append(bytes.TrimRight(r.d.text, " \n"), '\t')
	case "row", "nestrow":
		r.d.gap(1)
	case "u":
		r.unicode(n)
	case "bin": // bytes that are no RTF
		r.i = min(r.i+max(n, 0), len(r.b))
	case "yr", "mo", "dy", "hr", "min":
		if len(r.date) < 5 {
			r.date = append(r.date, n)
		}
	case "nofpages":
		r.d.pages = n
	default:
		if s := rtfChars[w]; s != "" {
			r.put(s)
		}
	}
}

// form takes a word about the form of what follows in the group.
func (r *rtf) form(w string, n int, has bool) bool {
	switch w {
	case "intbl":
		r.g.cells = true
	case "pard":
		r.g.style, r.g.level, r.g.cells = 0, false, false
	case "s":
		r.g.style = n
	case "outlinelevel":
		r.g.level = n < 9
	case "v", "deleted":
		r.g.hidden = !has || n != 0
	case "plain":
		r.g.hidden = false
	default:
		return false
	}
	return true
}

// set takes a word about the set of characters that bytes are of.
func (r *rtf) set(w string, n int) bool {
	switch w {
	case "f":
		r.g.font = n
	case "fcharset", "cpg":
		if r.g.dest == "fonttbl" {
			r.fonts[r.g.font] = rtfCharset(w, n)
		}
	case "ansicpg":
		if e := rtfCharset("cpg", n); e != nil {
			r.dec = e
		}
	case "mac":
		r.dec, _ = charset.Lookup("macintosh")
	case "uc":
		r.g.uc = min(max(n, 0), 8)
	default:
		return false
	}
	return true
}

// rtfChars are the control words that stand for a character.
var rtfChars = map[string]string{"emdash": "\u2014", "endash": "\u2013", "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c",
	"rdblquote": "\u201d", "bullet": "\u2022", "emspace": " ", "enspace": " "}

// rtfCharset is the encoding of a font, nil for one that is not known.
func rtfCharset(word string, n int) encoding.Encoding {
	label := "windows-" + strconv.Itoa(n)
	if word == "fcharset" {
		label = map[int]string{0: "windows-1252", 77: "macintosh", 128: "shift_jis", 129: "euc-kr", 134: "gbk", 136: "big5", 161: "windows-1253",
			162: "windows-1254", 163: "windows-1258", 177: "windows-1255", 178: "windows-1256", 186: "windows-1257", 204: "windows-1251",
			222: "windows-874", 238: "windows-1250"}[n]
	} else if l := map[int]string{932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 10000: "macintosh", 10001: "shift_jis", 10002: "big5", 10003: "euc-kr",
		10007: "x-mac-cyrillic", 10008: "gbk", 65001: "utf-8", 866: "ibm866", 874: "windows-874"}[n]; l != "" {
		label = l
	}
	e, _ := charset.Lookup(label)
	return e
}

// coded reads a byte in the code page of the font, and those that follow it: of
// some a character is two.
func (r *rtf) coded(c byte) {
	run := []byte{c}
	for r.i+4 <= len(r.b) && r.b[r.i] == '\\' && r.b[r.i+1] == '\'' {
		hi, lo := hexDigit(r.b[r.i+2]), hexDigit(r.b[r.i+3])
		if hi < 0 || lo < 0 {
			break
		}
		run = append(run, byte(hi<<4|lo))
		r.i += 4
	}
	n := min(r.skipped, len(run))
	r.skipped -= n
	r.decoded(run[n:])
}

func (r *rtf) bytes(b []byte) {
	n := min(r.skipped, len(b))
	r.skipped -= n
	if b = b[n:]; len(b) == 0 {
		return
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			r.decoded(b)
			return
		}
	}
	r.put(string(b))
}

func (r *rtf) decoded(b []byte) {
	e := r.fonts[r.g.font]
	if e == nil {
		e = r.dec
	}
	if e == nil || len(b) == 0 {
		return
	}
	if out, err := e.NewDecoder().Bytes(b); err == nil {
		r.put(string(out))
	}
}

// unicode reads a \u: a unit of UTF-16, with a sign.
func (r *rtf) unicode(n int) {
	c := rune(uint16(n))
	r.skipped = 0
	switch {
	case c >= 0xd800 && c < 0xdc00:
		r.high = c
	case c >= 0xdc00 && c < 0xe000 && r.high != 0:
		r.put(string((r.high-0xd800)<<10 | (c - 0xdc00) + 0x10000))
		r.high = 0
	case c >= ' ':
		r.put(string(c))
	}
	r.skipped = r.g.uc
}

// put sends text where the group's goes.
func (r *rtf) put(s string) {
	r.skipped = 0
	switch {
	case r.g.dest == "stylesheet":
		if low := strings.ToLower(strings.TrimRight(s, "; ")); strings.HasPrefix(low, "heading ") || low == "title" {
			if len(r.styles) < 1000 {
				r.styles[r.g.style] = low
			}
		}
	case r.g.dest == "fldinst":
		if len(r.field) < 4<<10 {
			r.field = append(r.field, s...)
		}
	case r.g.dest == "" && !r.g.hidden:
		r.d.add([]byte(s))
	case rtfInfo[r.g.dest]:
		if len(r.value) < 64<<10 {
			r.value = append(r.value, s...)
		}
	}
}

// par ends a paragraph.
func (r *rtf) par() {
	if r.g.dest == "" && !r.g.cells {
		r.end()
	} else {
		r.put(" ")
	}
}

func (r *rtf) end() {
	text := string(r.d.text[min(r.para, len(r.d.text)):])
	if style := r.styles[r.g.style]; style == "title" && r.d.title == "" {
		r.d.title = words(text)
	} else if style != "" && r.g.style != 0 || r.g.level {
		r.d.heading(text)
	}
	r.d.gap(2)
	r.para = len(r.d.text)
}
