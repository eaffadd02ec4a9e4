package essence

func (z *cScan) number() {
	for z.i < len(z.t) && (nameBytes[z.t[z.i]] || z.t[z.i] == '.') {
		z.i++
	}
}

// peek is the next byte that is no blank.
func (z *cScan) peek() byte {
	for i := z.i; i < len(z.t); i++ {
		if !blank(z.t[i]) && z.t[i] > endifMark {
			return z.t[i]
		}
	}
	return 0
}

// skipGroup passes a group in brackets of any kind, the first of which may
// stand after blanks.
func (z *cScan) skipGroup() {
	depth := 0
	for ; z.i < len(z.t); z.i++ {
		switch z.t[z.i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth <= 0 {
				if depth == 0 {
					z.i++
				}
				return
			}
		case elseMark:
			z.skipBranch()
			z.i--
		case ';':
			if depth == 0 {
				return
			}
		default:
			if depth == 0 && !blank(z.t[z.i]) && z.t[z.i] > endifMark {
				return
			}
		}
	}
}

// skipBraces passes to the } that ends the block it is in.
func (z *cScan) skipBraces() {
	depth := 1
	base := len(z.conds)
	for ; z.i < len(z.t); z.i++ {
		switch z.t[z.i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				z.conds = z.conds[:base]
				return
			}
		case ifMark:
			if len(z.conds) < 1000 {
				z.conds = append(z.conds, cond{depth})
			}
		case elseMark:
			if n := len(z.conds); n > base {
				depth = z.conds[n-1].braces
			} else { // the block began in the branch before
				z.i++
				z.skipBranch()
				z.i--
			}
		case endifMark:
			if n := len(z.conds); n > base {
				z.conds = z.conds[:n-1]
			}
		}
	}
	z.conds = z.conds[:base]
}

// angles passes over <…> if that is what follows, and no comparison.
func (z *cScan) angles() {
	depth, parens := 0, 0
	for i := z.i; i < min(len(z.t), z.i+2000); i++ {
		switch z.t[i] {
		case '<':
			if parens == 0 {
				depth++
			}
		case '>':
			if parens > 0 || i > 0 && z.t[i-1] == '-' {
				continue
			}
			if depth--; depth == 0 {
				z.i = i + 1
				return
			}
		case '(':
			parens++
		case ')':
			parens--
		case ';', '{', '}':
			if parens <= 0 {
				z.i = max(z.i, min(z.i+1, len(z.t)))
				return
			}
		}
	}
	z.i = min(z.i+1, len(z.t))
}
