package essence

import "bytes"

// A cond is an #if: where the code stood before it.
type cond struct{ braces int }

// In masked code, directives become these, a byte each: which branch is read
// depends on what it interrupts.
const (
	ifMark    = 1
	elseMark  = 2
	endifMark = 3
)

// directives takes the preprocessor's lines out, the names they define kept.
func (z *cScan) directives() {
	dead := 0 // depth of #if in an #if 0
	for i := 0; i < len(z.t); {
		end := bytes.IndexByte(z.t[i:], '\n')
		if end < 0 {
			end = len(z.t)
		} else {
			end += i
		}
		j := i
		for j < end && (z.t[j] == ' ' || z.t[j] == '\t') {
			j++
		}
		if j == end || z.t[j] != '#' {
			if dead > 0 {
				fillBlank(z.t[i:end])
			}
			i = end + 1
			continue
		}
		for z.cpp && end < len(z.t) && end > j && (z.t[end-1] == '\\' || z.t[end-1] == '\r' && z.t[end-2] == '\\') {
			n := bytes.IndexByte(z.t[end+1:], '\n')
			if n < 0 {
				end = len(z.t)
			} else {
				end += 1 + n
			}
		}
		dead = z.directive(j, z.t[j+1:end], dead)
		i = end + 1
	}
}

func (z *cScan) directive(at int, line []byte, dead int) int {
	text := bytes.TrimLeft(line, " \t")
	word := firstWord(text)
	arg := bytes.TrimLeft(text[len(word):], " \t")
	var mark byte
	switch string(word) {
	case "define":
		if z.cpp {
			z.s.add(firstName(arg), !bytes.HasPrefix(arg[len(firstName(arg)):], []byte("(")))
		}
	case "if", "ifdef", "ifndef":
		if dead > 0 {
			dead++
		} else if string(word) == "if" && string(bytes.TrimSpace(arg)) == "0" {
			dead = 1
		} else {
			mark = ifMark
		}
	case "else", "elif":
		if dead == 1 {
			dead, mark = 0, ifMark
		} else if dead == 0 {
			mark = elseMark
		}
	case "endif":
		if dead > 0 {
			dead--
		} else {
			mark = endifMark
		}
	}
	fillBlank(line)
	z.t[at] = ' '
	if mark != 0 {
		z.t[at] = mark
	}
	return dead
}

func fillBlank(b []byte) {
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
}

// skipBranch passes to the #endif of the #if it is in.
func (z *cScan) skipBranch() {
	depth := 1
	for ; z.i < len(z.t); z.i++ {
		switch z.t[z.i] {
		case ifMark:
			depth++
		case endifMark:
			if depth--; depth == 0 {
				z.i++
				return
			}
		}
	}
}
