package enginetest

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"harvest/index"
	"harvest/index/query"
)

// What a value or a literal can be compared as.
type literal struct {
	number float64
	date   time.Time
	text   string
	is     struct{ number, date bool }
}

var (
	numberForm = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	dateForms  = []string{time.RFC3339, "2006-01-02", "2006-01", "2006", "2006-01-02 15:04:05", time.RFC1123, time.RFC1123Z}
	units      = map[byte]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}
)

func read(text string) (c literal) {
	text = strings.TrimSpace(text)
	c.text = strings.Join(strings.Fields(fold(text)), " ")
	digits, unit := text, 1.0
	if n := len(text); n > 0 && units[text[n-1]] > 0 {
		digits, unit = text[:n-1], units[text[n-1]]
	}
	if numberForm.MatchString(digits) {
		f, err := strconv.ParseFloat(digits, 64)
		c.number, c.is.number = f*unit, err == nil
	}
	for _, form := range dateForms {
		if t, err := time.Parse(form, text); err == nil {
			c.date, c.is.date = t, true
		}
	}
	return c
}

// readValue is read of a value in a document, where a great number may also be a time.
func readValue(text string) literal {
	c := read(text)
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n >= 1e8 && !c.is.date {
		c.date, c.is.date = time.Unix(n, 0), true
	}
	return c
}

func fold(text string) string { return string(index.Fold(nil, text)) }

// satisfies tells whether a value is op to a literal, or between two, compared
// as what all literals are: numbers, dates, or else text.
func satisfies(value string, q query.Node) bool {
	if len(value) > index.MaxKey {
		return false
	}
	v := readValue(value)
	switch q := q.(type) {
	case query.Compare:
		l := read(q.Value)
		d, ok := difference(v, l, l.is.number, l.is.date)
		return ok && map[string]bool{"=": d == 0, "<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0}[q.Op]
	case query.Range:
		low, high := read(q.Low), read(q.High)
		number := (q.Low == "" || low.is.number) && (q.High == "" || high.is.number)
		date := (q.Low == "" || low.is.date) && (q.High == "" || high.is.date)
		from, ok := difference(v, low, number, date)
		to, ok2 := difference(v, high, number, date)
		return (q.Low == "" || ok && from >= 0) && (q.High == "" || ok2 && to <= 0)
	}
	return false
}

// difference compares as numbers or, if not, as dates or, if not, as text.
func difference(v, l literal, number, date bool) (d int, ok bool) {
	switch {
	case number:
		return cmp.Compare(v.number, l.number), v.is.number
	case date:
		return v.date.Compare(l.date), v.is.date
	}
	return strings.Compare(v.text, l.text), true
}
