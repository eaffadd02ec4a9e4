package fs

import (
	"errors"
	"strings"
)

// Quote writes s as one field, the Plan 9 way: a field that is empty or holds
// white space, a control character, a quote or a '#' stands in single quotes,
// with each quote inside doubled.
func Quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '\'' || r == 0x7f || r == '#' }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// Pair writes an attr=value pair.
func Pair(attr, value string) string { return attr + "=" + Quote(value) }

// ErrQuote says that a quoted field does not end.
var ErrQuote = errors.New("quote is not closed")

// Field cuts the first field off s and undoes its quoting: quotes may open
// and close anywhere in it. Rest begins where the field ended. There is no
// field when s holds only white space; then ok is false.
func Field(s string) (field, rest string, ok bool, err error) {
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" {
		return "", "", false, nil
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\'' && quoted && i+1 < len(s) && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\'':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			return b.String(), s[i:], true, nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", false, ErrQuote
	}
	return b.String(), "", true, nil
}

// Fields splits s into fields and undoes their quoting.
func Fields(s string) ([]string, error) {
	var out []string
	for {
		f, rest, ok, err := Field(s)
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		out, s = append(out, f), rest
	}
}
