package index

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Keys of values. A key is the byte of its kind and bytes that sort as what
// they stand for, so comparisons and ranges are ranges of keys. Every value
// of at most MaxKey bytes has a text key; one that is a number has a number
// key too, one that is a date a date key.
const (
	KeyNumber = 1 // 8 bytes: the float's bits, all flipped below zero, else the sign
	KeyDate   = 2 // 12 bytes: seconds since 1970 with the sign flipped, nanoseconds
	KeyText   = 3 // the folded text, white space trimmed and collapsed to one blank
)

// Keys calls yield for the keys of a value, the one it is sorted by first: the
// number's, the date's, the text's. A key is valid until the next. The memory
// in buf is used for them and given back, for the next value.
func Keys(buf []byte, text string, yield func(key []byte) bool) []byte {
	if len(text) > MaxKey {
		return buf
	}
	trimmed := strings.TrimSpace(text)
	if f, ok := number(trimmed); ok {
		if buf = appendNumber(buf[:0], f); !yield(buf) {
			return buf
		}
	}
	if t, ok := dateValue(trimmed); ok {
		if buf = appendDate(buf[:0], t); !yield(buf) {
			return buf
		}
	}
	buf = appendText(buf[:0], trimmed)
	yield(buf)
	return buf
}

func appendNumber(dst []byte, f float64) []byte {
	bits := math.Float64bits(f + 0) // -0 is 0
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(dst, KeyNumber), bits)
}

// keyNumber is the number of a number key.
func keyNumber(key []byte) float64 {
	bits := binary.BigEndian.Uint64(key[1:])
	if bits>>63 != 0 {
		return math.Float64frombits(bits &^ (1 << 63))
	}
	return math.Float64frombits(^bits)
}

func appendDate(dst []byte, t time.Time) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, KeyDate), uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(dst, uint32(t.Nanosecond()))
}

func appendText(dst []byte, text string) []byte {
	dst = append(dst, KeyText)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf || c < ' ' || c == ' ' && i+1 < len(text) && text[i+1] <= ' ' {
			return Fold(dst[:len(dst)-i], strings.Join(strings.Fields(text), " "))
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// number reads a decimal number, or one of thousands (10K), millions or
// thousand millions, which are powers of 1024 here.
func number(s string) (float64, bool) {
	if s == "" || len(s) > 40 || !digitAhead(s) {
		return 0, false
	}
	unit := 1.0
	switch s[len(s)-1] {
	case 'k', 'K':
		unit = 1 << 10
	case 'm', 'M':
		unit = 1 << 20
	case 'g', 'G':
		unit = 1 << 30
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	if strings.ContainsAny(s, "xX_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f * unit, err == nil
}

// digitAhead tells whether s begins as a number does: no Inf, no NaN.
func digitAhead(s string) bool {
	s = strings.TrimLeft(s[:1], "+-") + s[1:]
	s = strings.TrimPrefix(s, ".")
	return s != "" && '0' <= s[0] && s[0] <= '9'
}

// The forms of dates, all taken for UTC where they name no zone.
var dateForms = [...]string{time.RFC3339, "2006-01-02", "2006-01", "2006", "2006-01-02 15:04:05", time.RFC1123, time.RFC1123Z}

// date reads one of dateForms.
func date(s string) (time.Time, bool) {
	if len(s) < len("2006") || len(s) > len("2006-01-02T15:04:05.123456789+00:00") {
		return time.Time{}, false
	}
	if c := s[0]; (c < '0' || c > '9') && (len(s) < len("Mon, 2") || s[3] != ',') {
		return time.Time{}, false
	}
	for _, form := range dateForms {
		if t, err := time.Parse(form, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// Values of so many and more can be times in seconds since 1970, as SOIF has
// them; smaller ones are other numbers.
const firstUnix = 1e8

// dateValue reads a date, or a time in seconds since 1970.
func dateValue(s string) (time.Time, bool) {
	if t, ok := date(s); ok {
		return t, true
	}
	if len(s) < len("100000000") || len(s) > len("253402300799") || s[0] < '0' || s[0] > '9' {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return time.Unix(n, 0), err == nil && n >= firstUnix
}

// A keyRange is the keys that a comparison asks for: from low to high, both of
// one kind; no high is open. Without equals, low and high themselves are left out.
type keyRange struct {
	kind         byte
	low, high    []byte
	above, below bool // low, high itself is left out
}

// newRange is the range between two literals, "" for an open end. What kind of
// key is compared is decided by the literals: numbers, dates, or else text. A
// bare year is a number beside a number and a date beside a date.
func newRange(low, high string) keyRange {
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	is := func(read func(string) bool) bool {
		return (low == "" || read(low)) && (high == "" || read(high)) && low+high != ""
	}
	r := keyRange{kind: KeyText}
	write := appendText
	switch {
	case is(func(s string) bool { _, ok := number(s); return ok }):
		r.kind = KeyNumber
		write = func(dst []byte, s string) []byte { f, _ := number(s); return appendNumber(dst, f) }
	case is(func(s string) bool { _, ok := date(s); return ok }):
		r.kind = KeyDate
		write = func(dst []byte, s string) []byte { t, _ := date(s); return appendDate(dst, t) }
	}
	if r.low = []byte{r.kind}; low != "" {
		r.low = write(nil, low)
	}
	if high != "" {
		r.high = write(nil, high)
	}
	return r
}

// newCompare is the range of keys that are op (= < <= > >=) a literal. One
// with the empty text is a comparison of texts.
func newCompare(op, value string) keyRange {
	r := newRange(value, value)
	if strings.TrimSpace(value) == "" {
		r.high = []byte{KeyText}
	}
	switch op[0] {
	case '<':
		r.low, r.below = []byte{r.kind}, op == "<"
	case '>':
		r.high, r.above = nil, op == ">"
	}
	return r
}

// has tells whether a key is in the range.
func (r *keyRange) has(key []byte) bool {
	if len(key) == 0 || key[0] != r.kind {
		return false
	}
	if c := bytes.Compare(key, r.low); c < 0 || c == 0 && r.above {
		return false
	}
	if r.high == nil {
		return true
	}
	c := bytes.Compare(key, r.high)
	return c < 0 || c == 0 && !r.below
}

// behind tells whether a key sorts after the range.
func (r *keyRange) behind(key []byte) bool {
	if r.high == nil {
		return len(key) > 0 && key[0] > r.kind
	}
	return bytes.Compare(key, r.high) > 0
}

// match tells whether one of a value's keys is in the range.
func (r *keyRange) match(buf []byte, text string) (bool, []byte) {
	found := false
	buf = Keys(buf, text, func(key []byte) bool {
		found = r.has(key)
		return !found
	})
	return found, buf
}
