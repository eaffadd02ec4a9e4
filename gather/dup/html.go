package dup

import "bytes"

// html takes the words between tags. It knows what a tag is, a comment, and
// that what is in script and style is not text; a document that is not well
// formed costs nothing but a few words.
func (s *signer) html(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			s.text(b)
			return
		}
		s.text(b[:i])
		b = b[i:]
		s.end()
		b = b[max(1, tagLength(b)):]
	}
}

// tagLength is how long what begins with a '<' is: a tag, a comment, a whole
// script or style. It is 0 when that is none of these.
func tagLength(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch c := b[1]; {
	case c == '!' && bytes.HasPrefix(b, []byte("<!--")):
		return commentEnd(b)
	case c == '!' || c == '?' || c == '/':
		return tagEnd(b, 2)
	case c|0x20 < 'a' || c|0x20 > 'z':
		return 0
	}
	n := tagEnd(b, 1)
	if b[1]|0x20 == 's' {
		for _, raw := range [...]string{"script", "style"} {
			if len(b) > len(raw)+1 && bytes.EqualFold(b[1:len(raw)+1], []byte(raw)) && wordBytes[b[len(raw)+1]] == 0 {
				return rawEnd(b, n, raw)
			}
		}
	}
	return n
}

// tagEnd is where the tag ends that is open at from.
func tagEnd(b []byte, from int) int {
	if i := bytes.IndexByte(b[from:], '>'); i >= 0 {
		return from + i + 1
	}
	return len(b)
}

// commentEnd is where a comment ends.
func commentEnd(b []byte) int {
	if i := bytes.Index(b[4:], []byte("-->")); i >= 0 {
		return 4 + i + 3
	}
	return len(b)
}

// rawEnd finds the end tag of a script or style, in any case.
func rawEnd(b []byte, from int, name string) int {
	for i := from; ; {
		j := bytes.Index(b[i:], []byte("</"))
		if j < 0 {
			return len(b)
		}
		i += j + 2
		if len(b)-i >= len(name) && bytes.EqualFold(b[i:i+len(name)], []byte(name)) {
			return tagEnd(b, i)
		}
	}
}
