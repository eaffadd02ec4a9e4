package essence

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"harvest/gather/soif"
)

// appendWords adds the words of text to dst, one blank between any two.
func appendWords(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	gap := len(dst) > 0 && dst[len(dst)-1] != ' ' && dst[len(dst)-1] != '\n' && blank(text[0])
	for i := 0; i < len(text); {
		if blank(text[i]) {
			i++
			gap = len(dst) > 0 && dst[len(dst)-1] != ' ' && dst[len(dst)-1] != '\n'
			continue
		}
		start := i
		for i < len(text) && !blank(text[i]) {
			i++
		}
		if gap {
			dst = append(dst, ' ')
			gap = false
		}
		dst = append(dst, text[start:i]...)
	}
	if gap {
		dst = append(dst, ' ')
	}
	return dst
}

func blank(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' || b == 0 }

// words is text on one line.
func words[T string | []byte](text T) string {
	return string(bytes.TrimRight(appendWords(nil, []byte(text)), " "))
}

// sumText summarizes plain text: the first line that says something is its
// title, the first paragraph its description.
func sumText(w *worker, o *soif.Object, c *content, text []byte) {
	text = plainText(text)
	title, rest := firstLine(pastNotices(text))
	w.set(o, "Title", title)
	w.set(o, "Description", firstParagraph(rest, 400))
	w.set(o, "Keywords", keywords(text, 30))
	w.fullText(o, c, text)
}

// plainText takes out what a terminal or a printer would act on: overstrikes,
// escape sequences, other control bytes.
func plainText(text []byte) []byte {
	if bytes.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) < 0 {
		return bytes.TrimSpace(text)
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\b' && len(out) > 0:
			_, n := utf8.DecodeLastRune(out)
			out = out[:len(out)-n]
		case b == 0x1b && i+1 < len(text) && text[i+1] == '[':
			for i += 2; i < len(text) && (text[i] < '@' || text[i] > '~'); i++ {
			}
		case b == '\f':
			out = append(out, '\n')
		case b < ' ' && b != '\n' && b != '\t', b == 0x7f:
		default:
			out = append(out, b)
		}
	}
	return bytes.TrimSpace(out)
}

// notice recognises paragraphs that tell who may copy a text, not what it is
// about.
var notice = regexp.MustCompile(`(?i)copyright|\(c\) [12]|licen[sc]e|permission|permitted|redistribut|all rights reserved|^-\*-`)

// pastNotices is the text after the notices it begins with, or all of it if
// there is nothing after them.
func pastNotices(text []byte) []byte {
	rest := text
	for range 8 {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		end := bytes.Index(rest[:min(len(rest), 4<<10)], []byte("\n\n"))
		if !notice.Match(rest[:min(len(rest), max(end, 200))]) {
			break
		}
		if end < 0 {
			return text
		}
		rest = rest[end:]
	}
	if !letters(rest, 20) {
		return text
	}
	return rest
}

// firstLine returns the first line with a letter, and the text after it.
func firstLine(text []byte) (line string, rest []byte) {
	for range 40 {
		l, rest, more := bytes.Cut(text, []byte("\n"))
		if bytes.ContainsFunc(l, unicode.IsLetter) {
			l = bytes.Trim(l, " \t\r*=-#/%;")
			return string(cutText([]byte(words(l)), 150)), rest
		}
		if !more {
			break
		}
		text = rest
	}
	return "", text
}

// firstParagraph returns the first paragraph that is more than a line of
// ornament, on one line, in at most n bytes.
func firstParagraph(text []byte, n int) string {
	for range 20 {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 {
			break
		}
		end := bytes.Index(text, []byte("\n\n"))
		if end < 0 {
			end = len(text)
		}
		para := text[:min(end, 4*n)]
		if letters(para, 20) {
			return string(cutText([]byte(words(para)), n))
		}
		text = text[end:]
	}
	return ""
}

// letters reports whether there are at least n letters in a text.
func letters(text []byte, n int) bool {
	for _, b := range text {
		if b|0x20 >= 'a' && b|0x20 <= 'z' || b >= utf8.RuneSelf {
			if n--; n <= 0 {
				return true
			}
		}
	}
	return false
}

// A term is a word of a text, in lower case, and how often and where it is.
type term struct {
	start, end int // in the bytes of terms
	n          int
}

// terms are the different words of a text, in the order they come.
type terms struct {
	bytes []byte
	all   []term
	slot  [1 << 13]uint16 // of all, by hash; 0 is free
}

const maxTerms = 4096

// keywords returns the n words that are most frequent in the first 64 KB of a
// text, those of the language itself left out, the most frequent first.
func keywords(text []byte, n int) string {
	text = text[:min(len(text), 64<<10)]
	t := terms{bytes: make([]byte, 0, 4<<10), all: make([]term, 0, 256)}
	for i := 0; i < len(text); {
		if !wordBytes[text[i]] {
			i++
			continue
		}
		start := i
		for i < len(text) && wordBytes[text[i]] {
			i++
		}
		if w := text[start:i]; len(w) >= 3 && len(w) <= 32 && w[0] > '9' {
			t.add(w)
		}
	}
	return t.top(n)
}

// add counts a word.
func (t *terms) add(w []byte) {
	start := len(t.bytes)
	h := uint32(2166136261) // FNV-1a
	for _, b := range w {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		t.bytes = append(t.bytes, b)
		h = (h ^ uint32(b)) * 16777619
	}
	low := t.bytes[start:]
	for i := (h ^ h>>15) % uint32(len(t.slot)); ; i = (i + 1) % uint32(len(t.slot)) {
		k := t.slot[i]
		if k == 0 {
			if len(t.all) == maxTerms {
				break
			}
			t.all = append(t.all, term{start, len(t.bytes), 1})
			t.slot[i] = uint16(len(t.all))
			return
		}
		if e := &t.all[k-1]; string(t.bytes[e.start:e.end]) == string(low) {
			e.n++
			break
		}
	}
	t.bytes = t.bytes[:start]
}

// top returns the n most frequent words, of equally frequent ones the first.
func (t *terms) top(n int) string {
	all := slices.DeleteFunc(t.all, func(e term) bool {
		w := t.bytes[e.start:e.end]
		return stop[string(w)] || !utf8.Valid(w) || !bytes.ContainsFunc(w, unicode.IsLetter)
	})
	if len(all) > n { // those that cannot be among them need not be sorted
		var with [64]int // words by how often they are, many together at the end
		for _, e := range all {
			with[min(e.n, 63)]++
		}
		least, sum := 63, with[63]
		for ; least > 1 && sum < n; sum += with[least] {
			least--
		}
		room := n - (sum - with[least]) // for words that are as rare as the last
		all = slices.DeleteFunc(all, func(e term) bool {
			if e.n < 63 && e.n == least {
				room--
				return room < 0
			}
			return min(e.n, 63) < least
		})
	}
	slices.SortStableFunc(all, func(a, b term) int { return cmp.Compare(b.n, a.n) })
	var out strings.Builder
	for i := range min(n, len(all)) {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.Write(t.bytes[all[i].start:all[i].end])
	}
	return out.String()
}

// wordBytes are the bytes that words are made of.
var wordBytes = func() (t [256]bool) {
	for i := range t {
		b := byte(i)
		t[i] = b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '_' || b >= utf8.RuneSelf
	}
	return t
}()

// stop are words too common to tell anything.
var stop = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`the and for that this with you not are from can have will all any may has was
		but which use used using when one its other than then also such only into more there these they been
		must should does each some what how about out who their your our his her him she were would could
		if of to in is it on as at by an or be we do no so up us he my me see new two per via`) {
		m[w] = true
	}
	return m
}()
