package essence

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// decode makes UTF-8 of a text. What it is written in is told, in this order, by
// its mark, by its being UTF-8, which nothing else is by chance, by what its
// server declares, by what it says itself, and by the statistics of its bytes.
// Text that is UTF-8 already is returned as it is.
func decode(text []byte, declared string) []byte {
	return decodeAs(text, declared, saysText)
}

// decodeHTML is decode for a document that may say in a META tag what it is
// written in.
func decodeHTML(text []byte, declared string) []byte {
	return decodeAs(text, declared, saysHTML)
}

func decodeAs(text []byte, declared string, says func([]byte) string) []byte {
	if order := wide(text); order != 0 {
		return fromUTF16(text, order)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	valid := utf8.Valid(text)
	if valid && bytes.IndexByte(text, 0x1b) < 0 { // which begins the shifts of ISO-2022
		return text
	}
	if !valid && validBut(text) { // cut in the middle of a character
		return bytes.ToValidUTF8(text, nil)
	}
	label := declaredCharset(declared)
	enc, name := charset.Lookup(label)
	if enc == nil {
		enc, name = charset.Lookup(says(text[:min(len(text), maxSays)]))
	}
	if enc == nil || name == "utf-8" {
		if enc = nil; valid || !mostlyUTF8(text) {
			enc, name = guess(text)
		}
	}
	if enc == nil || name == "utf-8" {
		return bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	out, err := enc.NewDecoder().Bytes(text)
	if err != nil {
		out = text
	}
	return bytes.TrimPrefix(bytes.ToValidUTF8(out, []byte("\uFFFD")), []byte("\uFEFF"))
}

// validBut reports whether a text is UTF-8 but for its last character, and has
// others that are not ASCII to tell it by.
func validBut(text []byte) bool {
	n := len(text)
	for i := n - 1; i >= 0 && i >= n-3; i-- {
		if utf8.RuneStart(text[i]) {
			return utf8.Valid(text[:i]) && !utf8.FullRune(text[i:]) && utf8.RuneCount(text[:i]) < i
		}
	}
	return false
}

// mostlyUTF8 reports whether more characters of a text are UTF-8 than bytes are
// not, ASCII aside: somebody has pasted something into it.
func mostlyUTF8(text []byte) bool {
	good, bad := 0, 0
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			text = text[1:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		text = text[n:]
	}
	return good > bad
}

// The order of bytes in UTF-16.
const (
	littleEndian = 1 + iota
	bigEndian
)

// wide reports in which order of bytes a text is UTF-16, 0 if it is not: by its
// mark, or because nearly every other byte is a NUL, as is so of text in Latin
// letters.
func wide(text []byte) int {
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		return littleEndian
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		return bigEndian
	}
	text = text[:min(len(text), 1<<10)]
	if len(text) < 16 {
		return 0
	}
	var nul [2]int
	for i, b := range text {
		if b == 0 {
			nul[i&1]++
		}
	}
	half := len(text) / 2
	switch {
	case nul[1]*10 >= half*7 && nul[0] == 0:
		return littleEndian
	case nul[0]*10 >= half*7 && nul[1] == 0:
		return bigEndian
	}
	return 0
}

func fromUTF16(text []byte, order int) []byte {
	units := make([]uint16, 0, len(text)/2)
	for i := 0; i+1 < len(text); i += 2 {
		u := uint16(text[i]) | uint16(text[i+1])<<8
		if order == bigEndian {
			u = u<<8 | u>>8
		}
		units = append(units, u)
	}
	return bytes.TrimPrefix([]byte(string(utf16.Decode(units))), []byte("\uFEFF"))
}

// declaredCharset is the parameter of a Content-Type.
func declaredCharset(contentType string) string {
	for p := range strings.SplitSeq(contentType, ";") {
		key, val, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(key), "charset") {
			return strings.Trim(strings.TrimSpace(val), `"'`)
		}
	}
	return ""
}

// maxSays is how far into a text it may say what it is written in. Browsers look
// at 1,024 bytes, which pages are known to exceed.
const maxSays = 4 << 10

// Where a text says what it is written in: META tags, XML, and the lines that
// editors and Python look for.
var (
	metaSays = expression(`(?i)<meta\s[^>]{0,300}?\bcharset\s*=\s*["']?\s*([-\w.:]{2,40})`)
	comment  = expression(`(?s)<!--.*?(?:-->|$)`)
	xmlSays  = expression(`^\s*<\?xml[^>]{0,100}\bencoding\s*=\s*["']([-\w.:]{2,40})["']`)
	codeSays = expression(`\b(?:file)?(?:en)?coding[:=]\s*([-\w.]{2,40})`)
)

// saysHTML is the charset that a META tag names, or an XML declaration.
func saysHTML(start []byte) string {
	if m := xmlSays().FindSubmatch(start); m != nil {
		return string(m[1])
	}
	m := metaSays().FindSubmatch(comment().ReplaceAll(start, nil))
	switch {
	case m == nil:
		return ""
	case bytes.HasPrefix(bytes.ToLower(m[1]), []byte("utf-16")): // it could not have been read then
		return "utf-8"
	}
	return string(m[1])
}

func saysText(start []byte) string {
	if m := xmlSays().FindSubmatch(start); m != nil {
		return string(m[1])
	}
	for range 2 { // lines
		line, rest, _ := bytes.Cut(start, []byte("\n"))
		if m := codeSays().FindSubmatch(line); m != nil {
			return string(m[1])
		}
		start = rest
	}
	return ""
}

// maxGuess is how much of a text is looked at to guess.
const maxGuess = 4 << 10

// guess finds what a text that says nothing is written in. With few letters that
// are not ASCII there is little to go by, and it is taken for windows-1252, as
// browsers do.
func guess(text []byte) (encoding.Encoding, string) {
	sample := foreign(text)
	high, letters := 0, 0
	shift := false
	for _, b := range sample {
		switch {
		case b >= 0x80:
			high++
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			letters++
		case b == 0x1b:
			shift = true
		}
	}
	if high*50 < letters+high && !shift {
		return charset.Lookup("windows-1252")
	}
	switch label := likeliest(sample); {
	case shift && high == 0 && !strings.HasPrefix(label, "iso-2022"):
		return nil, "utf-8" // ASCII with the escapes of a terminal
	case strings.HasPrefix(label, "utf-"): // which it is not
	default:
		if enc, name := charset.Lookup(label); enc != nil && name != "replacement" {
			return enc, name
		}
	}
	if high == 0 {
		return nil, "utf-8"
	}
	return charset.Lookup("windows-1252")
}

// likeliest is the charset that statistics favour, "" if they have nothing to
// say. Of two that they favour alike the first by name is taken: which of them is
// reported first is chance.
func likeliest(sample []byte) string {
	all, err := chardet.NewTextDetector().DetectAll(sample)
	if err != nil {
		return ""
	}
	best := slices.MinFunc(all, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.Charset, b.Charset))
	})
	return strings.Replace(strings.ToLower(best.Charset), "gb-18030", "gb18030", 1)
}

// foreign is the part of a text that tells most of its language: lines with
// letters that are not ASCII, from the first on.
func foreign(text []byte) []byte {
	if len(text) <= maxGuess {
		return text
	}
	sample := make([]byte, 0, maxGuess)
	for line := range bytes.Lines(text) {
		if bytes.IndexFunc(line, func(r rune) bool { return r >= 0x80 || r == 0x1b }) < 0 {
			continue
		}
		sample = append(sample, line[:min(len(line), maxGuess-len(sample))]...)
		if len(sample) == maxGuess {
			break
		}
	}
	return sample
}
