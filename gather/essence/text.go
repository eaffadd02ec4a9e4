package essence

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"harvest/gather/soif"
)

// appendWords adds the words of text to dst, one blank between any two. Words that
// stand so already are added at once.
func appendWords(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	gap := false
	for i := 0; i < len(text); {
		if blank(text[i]) {
			for i++; i < len(text) && blank(text[i]); i++ {
			}
			gap = len(dst) > 0 && dst[len(dst)-1] > ' '
			continue
		}
		start := i
		for i < len(text) && (text[i] > ' ' || !blank(text[i]) || text[i] == ' ' && text[i-1] > ' ' && i+1 < len(text) && text[i+1] > ' ') {
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
	w.tell(o, c, text, "")
	w.fullText(o, c, text)
}

// plainText takes out what a terminal or a printer would act on: overstrikes,
// escape sequences, other control bytes.
func plainText(text []byte) []byte {
	if !hasControl(text) {
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

// hasControl reports whether a text has control bytes other than those that end
// lines and words.
func hasControl(text []byte) bool {
	for _, b := range text {
		if b < ' ' && b != '\n' && b != '\t' || b == 0x7f {
			return true
		}
	}
	return false
}

// notice recognises paragraphs that tell who may copy a text, not what it is
// about.
var notice = expression(`(?i)copyright|\(c\) [12]|licen[sc]e|permission|permitted|redistribut|all rights reserved|^-\*-`)

// nameLine recognises a line that is what a text is called, though it be a licence:
// short, and without the marks of a sentence.
var nameLine = expression(`^[\p{L}\p{N}][\p{L}\p{N} ,."'-]{2,59}[\p{L}\p{N}"]$`)

// pastNotices is the text after the notices it begins with, or all of it if
// there is nothing after them, or notices go on: it is a licence then.
func pastNotices(text []byte) []byte {
	rest := text
	for range 8 {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		end := bytes.Index(rest[:min(len(rest), 4<<10)], []byte("\n\n"))
		part := rest[:min(len(rest), max(end, 200))]
		if !notice().Match(part) {
			if !letters(rest, 20) {
				return text
			}
			return rest
		}
		line, _, _ := bytes.Cut(part, []byte("\n"))
		line = bytes.TrimSpace(line)
		switch {
		case end < 0:
			return text
		case end < 160 && nameLine().Match(line) && !bytes.Contains(bytes.ToLower(line), []byte("copyright")):
			return rest
		}
		rest = rest[end:]
	}
	return text
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
