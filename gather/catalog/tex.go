package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// accents are TeX's, as combining characters.
var accents = map[byte]rune{
	'`': 0x300, '\'': 0x301, '^': 0x302, '~': 0x303, '=': 0x304, 'u': 0x306, '.': 0x307, '"': 0x308, 'r': 0x30a, 'H': 0x30b, 'v': 0x30c, 'd': 0x323, 'c': 0x327, 'k': 0x328, 'b': 0x331,
}

// letters are commands that stand for a character.
var letters = map[string]string{
	"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å", "i": "ı", "j": "ȷ",
	"textbackslash": `\`, "textasciitilde": "~", "textasciicircum": "^", "textendash": "–", "textemdash": "—", "dots": "…", "ldots": "…", "S": "§", "P": "¶", "copyright": "©",
	"TeX": "TeX", "LaTeX": "LaTeX", "BibTeX": "BibTeX", "textquotesingle": "'", "textquotedbl": `"`, "textbraceleft": "{", "textbraceright": "}",
}

// texText gives a text of TeX without its commands, as far as titles and names
// have such: accents and letters become characters, other commands go and what
// they are about stays, as do braces that were escaped.
func texText(s string) string {
	if !strings.ContainsAny(s, `\{}~`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '{', '}':
			i++
		case '~':
			b.WriteByte(' ')
			i++
		case '\\':
			i += texCommand(&b, s[i:])
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// texCommand writes what the command at the start of s stands for and gives its
// length.
func texCommand(b *strings.Builder, s string) int {
	if len(s) == 1 {
		return 1
	}
	n := 1
	for n < len(s) && isLetter(s[n]) {
		n++
	}
	name := s[1:n]
	if name == "" { // one character, a letter or not
		_, size := utf8.DecodeRuneInString(s[1:])
		name, n = s[1:1+size], 1+size
	}
	if mark, ok := accents[name[0]]; ok && len(name) == 1 {
		if rest, used := accented(s[n:], name[0]); used > 0 {
			b.WriteString(norm.NFC.String(rest[:runeLen(rest)] + string(mark) + rest[runeLen(rest):]))
			return n + used
		}
	}
	if isLetter(name[0]) {
		if text, ok := letters[name]; ok {
			b.WriteString(text)
		}
		if strings.HasPrefix(s[n:], "{}") {
			return n + 2
		}
		return n + len(s[n:]) - len(strings.TrimLeft(s[n:], " \t\n"))
	}
	if name != "\\" && name != "/" && name != "-" && name != "," {
		b.WriteString(name) // \& \% \{ …
	}
	return n
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// accented is the letter that an accent is put on: x, {x}, \i or {\i}. It is "" when
// there is none.
func accented(s string, accent byte) (letter string, used int) {
	t := s
	if isLetter(accent) {
		t = strings.TrimLeft(t, " ")
		if t == s && !strings.HasPrefix(t, "{") && !strings.HasPrefix(t, `\`) {
			return "", 0 // as \copyright, which was read whole, or \c at the end
		}
	}
	braced := strings.HasPrefix(t, "{")
	t = strings.TrimPrefix(t, "{")
	switch {
	case strings.HasPrefix(t, `\i`), strings.HasPrefix(t, `\j`):
		letter = t[1:2]
		t = t[2:]
	default:
		r, n := utf8.DecodeRuneInString(t)
		if !unicode.IsLetter(r) {
			return "", 0
		}
		letter = t[:n]
		t = t[n:]
	}
	if braced {
		if !strings.HasPrefix(t, "}") {
			return "", 0
		}
		t = t[1:]
	}
	return letter, len(s) - len(t)
}

// texEscape writes a text so that texText gives it back.
func texEscape(s string) string {
	if !strings.ContainsAny(s, `\{}~^%&$#_"`) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		switch c {
		case '\\':
			b.WriteString(`\textbackslash{}`)
		case '{', '}':
			// BibTeX counts braces though they are escaped, so these cannot
			// stand alone.
			b.WriteString(map[byte]string{'{': `\textbraceleft{}`, '}': `\textbraceright{}`}[c])
		case '~':
			b.WriteString(`\textasciitilde{}`)
		case '^':
			b.WriteString(`\textasciicircum{}`)
		case '"':
			b.WriteString(`\textquotedbl{}`)
		case '%', '&', '$', '#', '_':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
