package essence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"harvest/gather/soif"
)

// sumJavaClass summarizes a class file: its name, what it extends, its fields and
// methods.
func sumJavaClass(w *worker, o *soif.Object, c *content, text []byte) {
	j := javaClass{b: text, utf8: make(map[uint16][]byte), class: make(map[uint16]uint16)}
	if !j.pool() {
		w.limit(c, "class: damaged")
		return
	}
	j.uint16() // access
	this, super := j.className(), j.className()
	s := &symbols{seen: make(map[string]bool), room: symbolRoom * w.lim.Attr}
	s.add([]byte(this), false)
	var parents []string
	if super != "" && super != "java.lang.Object" {
		parents = append(parents, super)
	}
	for range j.uint16() {
		if n := j.className(); n != "" {
			parents = append(parents, n)
		}
	}
	j.members(s, true)
	j.members(s, false)
	w.set(o, "Title", this)
	w.set(o, "Description", fmt.Sprintf("Java class, version %d", binary.BigEndian.Uint16(text[6:])))
	w.set(o, "Includes", strings.Join(parents, "\n"))
	w.symbols(o, c, s)
	if j.bad {
		w.limit(c, "class: unexpected end")
	}
}

// A javaClass reads a class file from its start.
type javaClass struct {
	b     []byte
	i     int
	bad   bool
	utf8  map[uint16][]byte
	class map[uint16]uint16
}

func (j *javaClass) bytes(n int) []byte {
	if n < 0 || n > len(j.b)-j.i {
		j.bad = true
		return nil
	}
	j.i += n
	return j.b[j.i-n : j.i]
}

func (j *javaClass) uint16() uint16 {
	if b := j.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (j *javaClass) uint32() uint32 {
	if b := j.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// pool reads the constants.
func (j *javaClass) pool() bool {
	if j.uint32() != 0xcafebabe {
		return false
	}
	j.uint32()
	n := j.uint16()
	for i := uint16(1); i < n && !j.bad; i++ {
		tag := j.bytes(1)
		if tag == nil {
			return false
		}
		switch tag[0] {
		case 1:
			j.utf8[i] = j.bytes(int(j.uint16()))
		case 7, 19, 20:
			j.class[i] = j.uint16()
		case 8, 16:
			j.uint16()
		case 15:
			j.bytes(3)
		case 3, 4, 9, 10, 11, 12, 17, 18:
			j.bytes(4)
		case 5, 6:
			j.bytes(8)
			i++
		default:
			return false
		}
	}
	return !j.bad
}

func (j *javaClass) className() string {
	return clean(strings.ReplaceAll(string(j.utf8[j.class[j.uint16()]]), "/", "."))
}

// members reads fields or methods.
func (j *javaClass) members(s *symbols, minor bool) {
	for range j.uint16() {
		access := j.uint16()
		name := j.utf8[j.uint16()]
		j.uint16()
		for range j.uint16() {
			j.uint16()
			j.bytes(int(j.uint32() & 0x7fffffff))
			if j.bad {
				return
			}
		}
		const synthetic = 0x1000
		if j.bad {
			return
		}
		if access&synthetic == 0 && len(name) > 0 && name[0] != '<' {
			s.add([]byte(clean(string(name))), minor)
		}
	}
}

// sumWasm summarizes a WebAssembly module by what it exports and imports.
func sumWasm(w *worker, o *soif.Object, c *content, text []byte) {
	if len(text) < 8 || string(text[:4]) != "\x00asm" {
		return
	}
	m := wasm{s: symbols{seen: make(map[string]bool), room: symbolRoom * w.lim.Attr}}
	for b := text[8:]; len(b) > 1; {
		id := b[0]
		n, k := binary.Uvarint(b[1:])
		if k <= 0 || n > uint64(len(b)-1-k) {
			w.limit(c, "wasm: unexpected end")
			break
		}
		m.section(id, b[1+k:1+k+int(n)])
		b = b[1+k+int(n):]
	}
	title := m.name
	if title == "" {
		title = c.name
	}
	w.set(o, "Title", title)
	w.set(o, "Description", "WebAssembly module")
	w.set(o, "Libraries", strings.Join(m.needs, "\n"))
	w.symbols(o, c, &m.s)
	w.set(o, "Generator", m.producer)
	w.set(o, "Strings", strings.Join(printable(m.data, 6, w.lim.Attr), "\n"))
}

type wasm struct {
	name, producer string
	needs          []string
	s              symbols
	data           []byte
}

// text takes a string off b.
func (m *wasm) text(b *[]byte) []byte {
	n, k := binary.Uvarint(*b)
	if k <= 0 || n > uint64(len(*b)-k) {
		*b = nil
		return nil
	}
	s := (*b)[k : k+int(n)]
	*b = (*b)[k+int(n):]
	return s
}

func (m *wasm) number(b *[]byte) uint64 {
	n, k := binary.Uvarint(*b)
	if k <= 0 {
		*b = nil
		return 0
	}
	*b = (*b)[k:]
	return n
}

func (m *wasm) section(id byte, b []byte) {
	switch id {
	case 0:
		m.custom(string(m.text(&b)), b)
	case 2:
		seen := make(map[string]bool)
		for range min(m.number(&b), 100000) {
			mod := clean(string(m.text(&b)))
			m.text(&b)
			if len(b) == 0 || len(m.needs) > 1000 {
				return
			}
			if !seen[mod] {
				seen[mod] = true
				m.needs = append(m.needs, mod)
			}
			if !m.skipImport(&b) {
				return
			}
		}
	case 7:
		for range min(m.number(&b), 100000) {
			name := m.text(&b)
			if len(b) == 0 {
				return
			}
			kind := b[0]
			b = b[1:]
			m.number(&b)
			m.s.add([]byte(clean(string(name))), kind != 0)
		}
	case 11:
		m.data = b[:min(len(b), 1<<20)]
	}
}

// skipImport passes over what an import is.
func (m *wasm) skipImport(b *[]byte) bool {
	kind := (*b)[0]
	*b = (*b)[1:]
	limits := func() {
		if m.number(b)&1 != 0 {
			m.number(b)
		}
		m.number(b)
	}
	switch kind {
	case 0:
		m.number(b)
	case 1:
		m.number(b)
		limits()
	case 2:
		limits()
	case 3, 4:
		m.number(b)
		m.number(b)
	default:
		return false
	}
	return len(*b) > 0
}

func (m *wasm) custom(name string, b []byte) {
	switch name {
	case "name":
		if len(b) > 1 && b[0] == 0 {
			b = b[1:]
			m.number(&b)
			m.name = clean(string(m.text(&b)))
		}
	case "producers":
		for range min(m.number(&b), 10) {
			field := string(m.text(&b))
			for range min(m.number(&b), 10) {
				v := string(m.text(&b)) + " " + string(m.text(&b))
				if field == "processed-by" || field == "language" {
					m.producer = strings.TrimSpace(m.producer + "\n" + clean(v))
				}
			}
		}
	}
}

// sumPyc summarizes compiled Python by the names in it: those of the strings that
// marshal writes which could be names.
func sumPyc(w *worker, o *soif.Object, c *content, text []byte) {
	s := &symbols{seen: make(map[string]bool), room: symbolRoom * w.lim.Attr}
	var doc string
	for i := 16; i+2 < len(text) && !s.cut; i++ {
		kind, n, at := text[i]&0x7f, int(text[i+1]), i+2
		switch kind {
		case 'z', 'Z':
		case 'u', 'a', 'A', 't':
			if i+5 >= len(text) {
				continue
			}
			n, at = int(min(binary.LittleEndian.Uint32(text[i+1:]), 1<<20)), i+5
		default:
			continue
		}
		if n < 2 || n > len(text)-at {
			continue
		}
		str := text[at : at+n]
		if len(firstName(str)) == n {
			s.add(str, false)
			i = at + n - 1
		} else if doc == "" && n > 20 && saying(str[:min(n, 200)]) && bytes.IndexByte(str, ' ') > 0 {
			doc = string(str)
			i = at + n - 1
		}
	}
	w.set(o, "Title", c.name)
	w.set(o, "Description", string(cutText([]byte(words(doc)), 400)))
	w.symbols(o, c, s)
}
