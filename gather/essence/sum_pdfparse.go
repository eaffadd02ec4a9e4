package essence

import (
	"bytes"
	"strconv"
)

// A pdfParser reads values of PDF syntax. What is no value is nil.
type pdfParser struct {
	b []byte
	i int
	n int // values read: what is nested and long ends
}

const maxPDFValues = 100000

func (p *pdfParser) blanks() {
	for p.i < len(p.b) {
		switch c := p.b[p.i]; {
		case blank(c):
			p.i++
		case c == '%':
			for p.i < len(p.b) && p.b[p.i] != '\n' && p.b[p.i] != '\r' {
				p.i++
			}
		default:
			return
		}
	}
}

func (p *pdfParser) value(depth int) any {
	p.blanks()
	if p.n++; p.i >= len(p.b) || depth > 32 || p.n > maxPDFValues {
		return nil
	}
	switch c := p.b[p.i]; {
	case c == '/':
		return p.name()
	case c == '(':
		return p.literal()
	case c == '<' && p.i+1 < len(p.b) && p.b[p.i+1] == '<':
		p.i += 2
		return p.dict(depth)
	case c == '<':
		return p.hex()
	case c == '[':
		p.i++
		return p.array(depth)
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return p.number()
	}
	start := p.i
	for p.i < len(p.b) && regular(p.b[p.i]) {
		p.i++
	}
	switch string(p.b[start:p.i]) {
	case "true":
		return true
	case "false":
		return false
	}
	return nil
}

// regular tells of a byte that is part of a name or a number.
func regular(c byte) bool { return !blank(c) && bytes.IndexByte([]byte("()<>[]{}/%"), c) < 0 }

func (p *pdfParser) name() pdfName {
	p.i++
	start := p.i
	for p.i < len(p.b) && regular(p.b[p.i]) {
		p.i++
	}
	return pdfName(p.b[start:p.i])
}

// number is one, or a reference: 12 0 R.
func (p *pdfParser) number() any {
	start := p.i
	for p.i < len(p.b) && regular(p.b[p.i]) {
		p.i++
	}
	n, err := strconv.ParseFloat(string(p.b[start:p.i]), 64)
	if err != nil {
		return nil
	}
	if n < 0 || n > 1<<30 || n != float64(int(n)) {
		return n
	}
	q := pdfParser{b: p.b[:min(len(p.b), p.i+16)], i: p.i}
	q.blanks()
	digits := q.i
	for q.i < len(q.b) && q.b[q.i] >= '0' && q.b[q.i] <= '9' {
		q.i++
	}
	if q.i == digits {
		return n
	}
	q.blanks()
	if q.i < len(q.b) && q.b[q.i] == 'R' && (q.i+1 == len(q.b) || !regular(q.b[q.i+1])) {
		p.i = q.i + 1
		return pdfRef(int(n))
	}
	return n
}

func (p *pdfParser) literal() []byte {
	out := []byte{}
	depth := 0
	for ; p.i < len(p.b) && len(out) < 64<<10; p.i++ {
		c := p.b[p.i]
		switch c {
		case '(':
			if depth++; depth == 1 {
				continue
			}
		case ')':
			if depth--; depth == 0 {
				p.i++
				return out
			}
		case '\\':
			out = p.escape(out)
			continue
		}
		out = append(out, c)
	}
	return out
}

// escape reads what follows a backslash; p.i is left on its last byte.
func (p *pdfParser) escape(out []byte) []byte {
	if p.i++; p.i >= len(p.b) {
		return out
	}
	switch c := p.b[p.i]; c {
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'b', 'f':
		return append(out, ' ')
	case '\n':
		return out
	case '\r':
		if p.i+1 < len(p.b) && p.b[p.i+1] == '\n' {
			p.i++
		}
		return out
	default:
		if c < '0' || c > '7' {
			return append(out, c)
		}
	}
	n := 0
	for k := 0; k < 3 && p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '7'; k++ {
		n = n<<3 | int(p.b[p.i]-'0')
		p.i++
	}
	p.i--
	return append(out, byte(n))
}

func (p *pdfParser) hex() []byte {
	out := []byte{}
	half := -1
	for p.i++; p.i < len(p.b) && p.b[p.i] != '>' && len(out) < 64<<10; p.i++ {
		v := hexDigit(p.b[p.i])
		switch {
		case v < 0:
		case half < 0:
			half = v
		default:
			out, half = append(out, byte(half<<4|v)), -1
		}
	}
	p.i = min(p.i+1, len(p.b))
	if half >= 0 {
		out = append(out, byte(half<<4))
	}
	return out
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func (p *pdfParser) array(depth int) any {
	var out []any
	for {
		p.blanks()
		if p.i >= len(p.b) || p.n > maxPDFValues {
			return out
		}
		if p.b[p.i] == ']' {
			p.i++
			return out
		}
		at := p.i
		out = append(out, p.value(depth+1))
		if p.i == at {
			return out
		}
	}
}

func (p *pdfParser) dict(depth int) any {
	d := make(pdfDict)
	for {
		p.blanks()
		if p.i >= len(p.b) || p.n > maxPDFValues {
			return d
		}
		if p.b[p.i] == '>' {
			p.i = min(p.i+2, len(p.b))
			return d
		}
		if p.b[p.i] != '/' {
			return d
		}
		key := p.name()
		d[string(key)] = p.value(depth + 1)
	}
}
