package essence

import "bytes"

// Words of D that something in brackets may follow, and whether they make a type.
var dGroups = map[string]bool{"const": true, "immutable": true, "inout": true, "shared": true, "typeof": true, "function": true, "delegate": true, "__vector": true,
	"extern": false, "align": false, "package": false, "deprecated": false, "pragma": false, "version": false, "debug": false, "if": false, "in": false, "out": false, "mixin": false, "scope": false}

// dPlain are words that say nothing of whether a name follows.
var dPlain = wordSet("private public protected export static final override abstract nothrow pure lazy ref synchronized else super")

// dWord takes a word that only D has, or has so.
func (z *cScan) dWord(d *decl, w string) bool {
	isType, group := dGroups[w]
	switch {
	case dPlain[w]:
	case w == "alias":
		d.typedef = true
	case w == "module":
		if i := bytes.IndexByte(z.t[z.i:], ';'); i >= 0 && i < 1000 {
			z.s.add(bytes.TrimSpace(z.t[z.i:z.i+i]), false)
			z.i += i
		}
	case w == "unittest" || w == "invariant":
		if z.peek() == '(' {
			z.skipGroup()
		}
		if z.peek() == '{' {
			z.skipGroup()
		}
		*d = decl{}
	case (w == "in" || w == "out" || w == "do" || w == "body") && d.parens:
		if w == "in" || w == "out" { // contracts stand before the body
			z.skipGroup()
		}
	case w == "mixin" && z.peek() != '(':
		return true // of a template: `mixin template` defines one, others have no ( or =
	case group:
		if z.peek() == '(' {
			z.skipGroup()
		}
		if isType {
			d.words++
		}
	default:
		return false
	}
	return true
}

// dMark takes a mark that only D has, or has so.
func (z *cScan) dMark(d *decl, c byte) bool {
	switch {
	case c == '!': // arguments of a template
		if z.i++; z.peek() == '(' {
			z.skipGroup()
		} else if z.i < len(z.t) { // a blank is a string
			z.i += len(firstName(z.t[z.i:]))
		}
	case c == '=' && d.typedef && !d.value: // alias name = …
		z.i++
		z.s.add(d.last, false)
		d.typedef, d.words, d.value = false, 0, true
	case c == '=' && d.enum && !d.body && !d.value: // enum name = …
		z.i++
		z.s.add(d.last, true)
		d.words, d.value, d.record = 0, true, false
	case c == ':' && (d.words == 0 && !d.record): // extern (C):
		z.i++
		*d = decl{}
	default:
		return false
	}
	return true
}
