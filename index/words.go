package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// MaxWord is the length in bytes from which on a word takes no more, in
// documents and queries alike: longer runs of letters are data, not language.
const MaxWord = 64

// A Word is one that Words found.
type Word struct {
	Text  []byte // folded, at most MaxWord bytes; valid until the next
	Pos   int    // words before it
	Start int    // its bytes in the text
	End   int
	Whole bool // a compound: its parts came before it, at positions from Pos on
	CJK   bool // of a run of Chinese or Japanese: two characters, or the last of the run
}

// Words gives the words of text, which every engine and every query agrees
// on. Text is cut at the word boundaries of Unicode (UAX 29), and there where
// these leave a joiner between letters or digits:
//
//	The X86_64 don't.   the x86 64 x86_64 don t don't
//
// So a word, folded as Fold does, is made of letters, digits and marks only.
// A compound (Whole) comes after its parts; it holds joiners and takes no
// position. Chinese and Japanese are not parted by words: of a run of their
// characters, each is a word together with the one that follows, and the last
// alone.
func Words(text string, yield func(w *Word) bool) {
	var a analyzer
	a.words(text, yield)
}

// Attr is the name under which an attribute is indexed and asked for.
func Attr(name string) string {
	if strings.IndexByte(name, 0) >= 0 {
		name = strings.ReplaceAll(name, "\x00", "\x01") // 0 ends names in keys
	}
	return strings.ToLower(name)
}

// What class says of a byte that is no ASCII letter or digit.
const (
	other     = iota
	under     // joins anything
	midAny    // joins letters or digits, if one stands at either side
	midLetter // joins letters
	midDigit  // joins digits
	wide      // begins or is part of a character that is not ASCII
)

// class has the folded form of ASCII letters and digits, which is '0' or
// more, or one of the above.
var class = func() (t [256]byte) {
	for c := range t {
		switch c := byte(c); {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			t[c] = c
		case 'A' <= c && c <= 'Z':
			t[c] = c + 'a' - 'A'
		case c == '_':
			t[c] = under
		case c == '.', c == '\'':
			t[c] = midAny
		case c == ':':
			t[c] = midLetter
		case c == ',', c == ';':
			t[c] = midDigit
		case c >= utf8.RuneSelf:
			t[c] = wide
		}
	}
	return t
}()

// An analyzer finds words. It may be used again, which saves its memory.
type analyzer struct {
	w     Word
	pos   int // of the next
	yield func(*Word) bool
	stop  bool

	part  limited // the word at hand
	start int     // where it begins

	whole limited // the word of UAX 29 at hand, with its joiners
	keep  int     // of its bytes, up to the last part
	join  int     // where in it the first joiner is, or -1
	first Word    // the compound it is, if it is one

	run   limited // the character of a run of CJK that waits for the next
	runAt int     // where it begins
	runTo int     // where it ends

	cutter *words.Iterator[string]
}

// A limited takes what fits in a word.
type limited struct {
	n    int
	full bool
	b    [MaxWord]byte
}

func (l *limited) clear()        { l.n, l.full = 0, false }
func (l *limited) bytes() []byte { return l.b[:l.n] }

func (l *limited) add(s []byte) {
	if l.full {
		return
	}
	if n := MaxWord - l.n; n < len(s) {
		for l.full = true; n > 0 && !utf8.RuneStart(s[n]); n-- {
		}
		s = s[:n]
	}
	l.n += copy(l.b[l.n:], s)
}

// words is Words from position a.pos on. It tells whether yield had enough.
func (a *analyzer) words(text string, yield func(*Word) bool) bool {
	a.yield, a.stop = yield, false
	for i := 0; i < len(text) && !a.stop; {
		c := class[text[i]]
		if c < '0' {
			switch c {
			case wide:
				if n := apart(text[i:]); n > 0 {
					i += n
				} else {
					i = a.cut(text, i)
				}
			case under:
				i = a.joined(text, i)
			default:
				i++
			}
			continue
		}
		start, n := i, 0
		for ; i < len(text); i++ {
			if c = class[text[i]]; c < '0' {
				break
			}
			if n < MaxWord {
				a.part.b[n] = c
				n++
			}
		}
		if c != other && i < len(text) && joins(text, i) {
			i = a.joined(text, start)
			continue
		}
		a.plain(n, start, i)
	}
	return a.stop
}

// plain gives the n bytes at the beginning of a.part as a word.
func (a *analyzer) plain(n, start, end int) {
	w := &a.w
	w.Text, w.Pos, w.Start, w.End, w.Whole, w.CJK = a.part.b[:n], a.pos, start, end, false, false
	a.pos++
	a.stop = !a.yield(w)
}

// joins tells whether a word goes on with text[i], which is no ASCII letter or
// digit, or may do so for all that can be said without looking at characters
// that are not ASCII.
func joins(text string, i int) bool {
	c := class[text[i]]
	if c == under {
		return true
	}
	if c == wide {
		return apart(text[i:]) == 0
	}
	if c == other || i == 0 || i+1 == len(text) {
		return false
	}
	before, after := class[text[i-1]], class[text[i+1]]
	if after == wide {
		return apart(text[i+1:]) == 0
	}
	if before < '0' || after < '0' {
		return false
	}
	digits := before <= '9'
	return digits == (after <= '9') && (c == midAny || digits == (c == midDigit))
}

// apart is the length of the character that text begins with, if it is one of
// the common signs that are by themselves no part of any word: no-break space,
// dashes, quotes, bullets, arrows, lines. Else it is 0.
func apart(text string) int {
	switch {
	case len(text) < 2:
	case text[0] == 0xc2:
		switch c := text[1]; c {
		case 0xa0, 0xa9, 0xab, 0xae, 0xb0, 0xbb:
			return 2
		}
	case len(text) < 3:
	case text[0] == 0xe2 && text[1] == 0x80:
		switch c := text[2]; {
		case 0x90 <= c && c <= 0x97, 0x9c <= c && c <= 0xa3, c == 0xa5, c == 0xa6:
			return 3
		}
	case text[0] == 0xe2 && (text[1] == 0x86 && text[2] >= 0x90 || text[1] == 0x87 || text[1] >= 0x94 && text[1] <= 0x97):
		if text[2] >= 0x80 && text[2] < 0xc0 {
			return 3
		}
	}
	return 0
}

// joined gives the words of that of UAX 29 that begins at start, and returns
// where it ends.
func (a *analyzer) joined(text string, start int) int {
	end := start
	for end < len(text) && (class[text[end]] >= '0' || joins(text, end)) {
		if class[text[end]] == wide || class[text[end]] < '0' && class[text[end]] != under && class[text[end+1]] == wide {
			return a.cut(text, start)
		}
		end++
	}
	a.compound(text[start:end], start)
	return end
}

// compound is segment for ASCII.
func (a *analyzer) compound(s string, at int) {
	from, to, parts, pos := 0, 0, 0, a.pos
	for i := 0; i < len(s) && !a.stop; {
		start, n := i, 0
		for ; i < len(s) && class[s[i]] >= '0'; i++ {
			if n < MaxWord {
				a.part.b[n] = class[s[i]]
				n++
			}
		}
		if n == 0 {
			i++
			continue
		}
		if parts++; parts == 1 {
			from = start
		}
		to = i
		a.plain(n, at+start, at+i)
	}
	whole := s[from:to]
	if len(whole) > MaxWord {
		whole = whole[:MaxWord]
	}
	joiner := false
	for i := range whole {
		c := class[whole[i]]
		if c < '0' {
			joiner, c = true, whole[i]
		}
		a.whole.b[i] = c
	}
	if joiner && parts > 1 {
		a.emit(Word{Text: a.whole.b[:len(whole)], Pos: pos, Start: at + from, End: at + to, Whole: true})
	}
}

// cut goes on to the next ASCII white space by the rules for all characters.
func (a *analyzer) cut(text string, start int) int {
	end := start
	for end < len(text) && text[end] > ' ' {
		end++
	}
	if a.cutter == nil {
		a.cutter = words.FromString("")
	}
	a.cutter.SetText(text[start:end])
	for !a.stop && a.cutter.Next() {
		a.segment(a.cutter.Value(), start+a.cutter.Start())
	}
	a.endRun()
	a.cutter.SetText("")
	return end
}

// segment gives the words in s, a word of UAX 29 or what is between two; at is
// where it begins.
func (a *analyzer) segment(s string, at int) {
	a.begin()
	for i := 0; i < len(s) && !a.stop; {
		if c := class[s[i]]; c >= '0' {
			a.letter([]byte{c}, at+i, at+i+1)
			i++
			continue
		} else if c != wide {
			a.joiner(s[i], at+i)
			i++
			continue
		}
		r, _ := utf8.DecodeRuneInString(s[i:])
		n := cluster(s[i:])
		var buf [4 * utf8.UTFMax]byte
		switch folded := Fold(buf[:0], s[i:i+n]); {
		case r == utf8.RuneError: // parts words
			a.endPart(at + i)
			a.endWhole()
			a.begin()
		case ideograph(r):
			a.endPart(at + i)
			a.character(folded, at+i, at+i+n)
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r) && a.part.n > 0:
			a.letter(folded, at+i, at+i+n)
		case len(folded) == 0: // a soft hyphen, a sign of direction
		case len(folded) == 1 && class[folded[0]] < '0' && class[folded[0]] != other && class[folded[0]] != wide:
			a.joiner(folded[0], at+i)
		default:
			a.joiner('.', at+i)
		}
		i += n
	}
	a.endPart(at + len(s))
	a.endWhole()
}

func (a *analyzer) begin() {
	a.whole.clear()
	a.keep, a.join, a.first = 0, -1, Word{Pos: -1}
}

// letter adds what is between from and to in the text to the word at hand.
func (a *analyzer) letter(folded []byte, from, to int) {
	if a.part.n == 0 {
		a.endRun()
		a.start = from
	}
	a.part.add(folded)
	a.extend(folded, from, to, a.pos)
}

// extend adds to the whole.
func (a *analyzer) extend(folded []byte, from, to, pos int) {
	if a.first.Pos < 0 {
		a.first = Word{Pos: pos, Start: from, Whole: true}
	} else if a.join < 0 && a.whole.n > a.keep {
		a.join = a.keep
	}
	a.first.End = to
	a.whole.add(folded)
	a.keep = a.whole.n
}

func (a *analyzer) joiner(c byte, at int) {
	a.endPart(at)
	if a.first.Pos >= 0 {
		a.whole.add([]byte{c})
	}
}

func (a *analyzer) endPart(at int) {
	if a.part.n > 0 {
		a.emit(Word{Text: a.part.bytes(), Pos: a.pos, Start: a.start, End: at})
		a.pos++
		a.part.clear()
	}
}

func (a *analyzer) endWhole() {
	if a.join >= 0 {
		a.endRun()
		a.first.Text = a.whole.b[:a.keep]
		a.emit(a.first)
	}
}

// character takes one of Chinese or Japanese.
func (a *analyzer) character(folded []byte, from, to int) {
	if a.run.n > 0 && a.runTo == from {
		a.run.add(folded)
		a.emit(Word{Text: a.run.bytes(), Pos: a.pos, Start: a.runAt, End: to, CJK: true})
		a.pos++
	} else {
		a.endRun()
	}
	a.run.clear()
	a.run.add(folded)
	a.runAt, a.runTo = from, to
	a.extend(folded, from, to, a.pos)
}

// endRun gives the last character of a run.
func (a *analyzer) endRun() {
	if a.run.n > 0 {
		a.emit(Word{Text: a.run.bytes(), Pos: a.pos, Start: a.runAt, End: a.runTo, CJK: true})
		a.pos++
		a.run.clear()
	}
}

func (a *analyzer) emit(w Word) {
	if !a.stop {
		a.w = w
		a.stop = !a.yield(&a.w)
	}
}

// ideograph tells the characters that words are not parted between: Han, and
// the two kana with their length marks.
func ideograph(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 0x30fc || r == 0xff70)
}

// isNumber tells a term that is digits, or digits with joiners between.
func isNumber(term []byte) bool {
	for _, c := range term {
		if k := class[c]; k > '9' || k == wide {
			return false
		}
	}
	return len(term) > 0
}
