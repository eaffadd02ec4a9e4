package essence

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"debug/plan9obj"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"harvest/gather/soif"
)

// objectFamily are the types of code for machines.
func objectFamily() map[string]entry {
	return map[string]entry{
		"Object":         {sum: sumObject, bytes: true},
		"Binary":         {sum: sumObject, bytes: true},
		"JavaClass":      {sum: sumJavaClass, bytes: true},
		"WebAssembly":    {sum: sumWasm, bytes: true},
		"PythonBytecode": {sum: sumPyc, bytes: true},
		"Data":           {sum: sumData, bytes: true},
		"GDBM":           {sum: sumData, bytes: true},
		"BerkeleyDB":     {sum: sumData, bytes: true},
		"DBase":          {sum: sumDBase, bytes: true},
	}
}

// maxTable bounds the tables of symbols and strings that are read of an object,
// in bytes; what is larger is passed over, and said.
const maxTable = 32 << 20

// An objectFile is what is told of code for a machine.
type objectFile struct {
	what    string
	soname  string
	build   string
	needs   []string
	defines symbols
	text    []byte // read-only data, for its strings
}

// sumObject summarizes programs, libraries and object files by the names they
// define, the libraries they need, and what they say.
func sumObject(w *worker, o *soif.Object, c *content, text []byte) {
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, "object: "+err.Error())
		return
	}
	f := objectFile{defines: symbols{seen: make(map[string]bool), room: symbolRoom * w.lim.Attr}}
	if err := f.read(r, size); err != nil {
		w.limit(c, "object: "+err.Error())
	}
	if f.what == "" {
		f.text = text
	}
	said := strings.Join(printable(f.text, 6, w.lim.Attr), "\n")
	title := f.soname
	if title == "" {
		title = c.name
	}
	w.set(o, "Title", title)
	w.set(o, "Description", f.what)
	w.set(o, "Synopsis", usage().FindString(said))
	w.set(o, "Version", versionOf(said))
	w.set(o, "Libraries", strings.Join(f.needs, "\n"))
	w.set(o, "Build-Id", f.build)
	w.symbols(o, c, &f.defines)
	w.set(o, "Strings", said)
}

// usage is a program's own account of how it is called.
var usage = expression(`(?m)^[Uu]sage: \S[^\n]*`)

var version = expression(`(?i)\bversion[ :]{1,3}v?(\d+\.\d[\w.+~-]{0,30})`)

func versionOf(said string) string {
	if m := version().FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return ""
}

// read reads an object in whichever format it is.
func (f *objectFile) read(r io.ReaderAt, size int64) (err error) {
	defer func() {
		if p := recover(); p != nil { // the parsers are not ours
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	var magic [8]byte
	io.ReadFull(io.NewSectionReader(r, 0, size), magic[:])
	switch be := binary.BigEndian.Uint32(magic[:]); {
	case string(magic[:4]) == elf.ELFMAG:
		return f.elf(io.NewSectionReader(r, 0, size))
	case string(magic[:2]) == "MZ":
		return f.pe(io.NewSectionReader(r, 0, size), size)
	case be == macho.MagicFat || be == 0xcafed00d:
		return f.fat(io.NewSectionReader(r, 0, size), size)
	case be == macho.Magic32 || be == macho.Magic64 || be == 0xcefaedfe || be == 0xcffaedfe:
		return f.macho(io.NewSectionReader(r, 0, size), size)
	case binary.LittleEndian.Uint16(magic[:]) == 0x14c || binary.LittleEndian.Uint16(magic[:]) == 0x8664:
		return f.pe(io.NewSectionReader(r, 0, size), size)
	case string(magic[:4]) == "\x00asm":
		return errors.New("is WebAssembly")
	}
	if p, err := plan9obj.NewFile(io.NewSectionReader(r, 0, size)); err == nil && size < maxTable {
		f.what = "Plan 9 a.out"
		syms, err := p.Symbols()
		for _, s := range syms {
			if s.Type == 'T' || s.Type == 'D' || s.Type == 'B' {
				f.defines.add([]byte(s.Name), s.Type != 'T')
			}
		}
		return err
	}
	return errors.New("format unknown")
}

func (f *objectFile) elf(r io.ReaderAt) error {
	e, err := elf.NewFile(r)
	if err != nil {
		return err
	}
	f.what = fmt.Sprintf("ELF %s, %s", strings.TrimPrefix(strings.ToLower(e.Type.String()), "et_"), strings.ToLower(strings.TrimPrefix(e.Machine.String(), "EM_")))
	var tables uint64
	for _, s := range e.Sections {
		switch s.Type {
		case elf.SHT_SYMTAB, elf.SHT_DYNSYM, elf.SHT_STRTAB, elf.SHT_DYNAMIC, elf.SHT_GNU_VERSYM, elf.SHT_GNU_VERNEED, elf.SHT_GNU_VERDEF:
			if tables += s.FileSize; s.Flags&elf.SHF_COMPRESSED != 0 || s.Size != s.FileSize {
				return errors.New("damaged: tables that are compressed")
			}
		}
	}
	if tables > maxTable {
		return fmt.Errorf("tables of %d bytes not read", tables)
	}
	if n, err := e.DynString(elf.DT_SONAME); err == nil && len(n) > 0 {
		f.soname = n[0]
	}
	f.needs, _ = e.ImportedLibraries()
	f.elfNotes(e)
	syms, err := e.Symbols()
	if len(syms) == 0 {
		syms, err = e.DynamicSymbols()
	}
	for _, s := range syms {
		bind, kind := elf.ST_BIND(s.Info), elf.ST_TYPE(s.Info)
		if s.Section == elf.SHN_UNDEF || bind == elf.STB_LOCAL || kind == elf.STT_SECTION || kind == elf.STT_FILE || s.Section == elf.SHN_ABS {
			continue
		}
		f.defines.add(demangled(s.Name), kind != elf.STT_FUNC)
	}
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil
	}
	return err
}

// elfNotes reads the build id and the strings of read-only data.
func (f *objectFile) elfNotes(e *elf.File) {
	for _, s := range e.Sections {
		if s.Flags&elf.SHF_COMPRESSED != 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		switch s.Name {
		case ".note.gnu.build-id":
			b := make([]byte, 64)
			n, _ := s.ReadAt(b, 0)
			if b = b[:n]; n > 16 && string(b[12:15]) == "GNU" {
				f.build = hex.EncodeToString(b[16:min(n, 16+20)])
			}
		case ".rodata", ".rodata.str1.1", ".rodata.str1.8":
			b := make([]byte, min(s.FileSize, 1<<20))
			n, _ := s.ReadAt(b, 0)
			f.text = append(f.text, b[:n]...)
		case ".modinfo": // of a kernel module
			b := make([]byte, min(s.FileSize, 64<<10))
			n, _ := s.ReadAt(b, 0)
			f.text = append(b[:n:n], f.text...)
		}
	}
}

func (f *objectFile) pe(r io.ReaderAt, size int64) error {
	var h [24]byte
	var at [4]byte
	start := int64(0)
	if _, err := r.ReadAt(at[:2], 0); err == nil && string(at[:2]) == "MZ" {
		f.what = "DOS program"
		if _, err := r.ReadAt(at[:], 0x3c); err != nil {
			return nil
		}
		start = int64(binary.LittleEndian.Uint32(at[:]))
		if _, err := r.ReadAt(h[:], start); err != nil || string(h[:2]) != "PE" {
			return nil
		}
	} else if _, err := r.ReadAt(h[4:], 0); err != nil {
		return err
	}
	if n := int64(binary.LittleEndian.Uint32(h[16:])) * 18; n > maxTable || n > size {
		return fmt.Errorf("tables of %d bytes not read", n)
	}
	p, err := pe.NewFile(r)
	if err != nil {
		return err
	}
	f.what = fmt.Sprintf("PE, machine %#x", p.Machine)
	switch {
	case p.Characteristics&pe.IMAGE_FILE_DLL != 0:
		f.what = "PE library, machine " + fmt.Sprintf("%#x", p.Machine)
	case p.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE != 0:
		f.what = "PE program, machine " + fmt.Sprintf("%#x", p.Machine)
	}
	for _, s := range p.Sections {
		if s.Size > maxTable {
			return fmt.Errorf("section of %d bytes not read", s.Size)
		}
		if s.Name == ".rdata" || s.Name == ".rodata" {
			b := make([]byte, min(s.Size, 1<<20))
			n, _ := s.ReadAt(b, 0)
			f.text = b[:n]
		}
	}
	for _, s := range p.Symbols {
		if s.SectionNumber > 0 && s.StorageClass == 2 {
			f.defines.add(demangled(s.Name), s.Type>>4 != 2)
		}
	}
	f.peExports(p)
	imports, err := p.ImportedSymbols()
	seen := make(map[string]bool)
	for _, s := range imports {
		if _, lib, ok := strings.Cut(s, ":"); ok && !seen[lib] {
			seen[lib] = true
			f.needs = append(f.needs, lib)
		}
	}
	return err
}

// peExports reads the names a DLL exports.
func (f *objectFile) peExports(p *pe.File) {
	var dir pe.DataDirectory
	switch h := p.OptionalHeader.(type) {
	case *pe.OptionalHeader32:
		dir = h.DataDirectory[0]
	case *pe.OptionalHeader64:
		dir = h.DataDirectory[0]
	}
	at := func(rva uint32, n int) []byte {
		for _, s := range p.Sections {
			if rva >= s.VirtualAddress && rva-s.VirtualAddress < s.Size {
				b := make([]byte, min(n, int(s.Size-(rva-s.VirtualAddress))))
				n, _ := s.ReadAt(b, int64(rva-s.VirtualAddress))
				return b[:n]
			}
		}
		return nil
	}
	d := at(dir.VirtualAddress, 40)
	if dir.VirtualAddress == 0 || len(d) < 40 {
		return
	}
	if name, _, ok := bytes.Cut(at(binary.LittleEndian.Uint32(d[12:]), 100), []byte{0}); ok {
		f.soname = string(name)
	}
	names := at(binary.LittleEndian.Uint32(d[32:]), 4*int(min(binary.LittleEndian.Uint32(d[24:]), 10000)))
	for ; len(names) >= 4; names = names[4:] {
		if name, _, ok := bytes.Cut(at(binary.LittleEndian.Uint32(names), 200), []byte{0}); ok {
			f.defines.add(name, false)
		}
	}
}

func (f *objectFile) fat(r io.ReaderAt, size int64) error {
	if size > maxTable {
		return fmt.Errorf("object of %d bytes not read", size)
	}
	m, err := macho.NewFatFile(r)
	if err != nil {
		return err
	}
	for i, a := range m.Arches {
		if i == 0 {
			f.machoFile(a.File)
			f.what = "Mach-O for"
		}
		f.what += " " + strings.TrimPrefix(a.Cpu.String(), "Cpu")
	}
	return nil
}

func (f *objectFile) macho(r io.ReaderAt, size int64) error {
	if size > maxTable {
		return fmt.Errorf("object of %d bytes not read", size)
	}
	m, err := macho.NewFile(r)
	if err != nil {
		return err
	}
	f.machoFile(m)
	return nil
}

func (f *objectFile) machoFile(m *macho.File) {
	f.what = "Mach-O " + strings.ToLower(m.Type.String()) + ", " + strings.TrimPrefix(m.Cpu.String(), "Cpu")
	f.needs, _ = m.ImportedLibraries()
	for _, s := range m.Sections {
		if s.Name == "__cstring" {
			b := make([]byte, min(s.Size, 1<<20))
			n, _ := s.ReadAt(b, 0)
			f.text = b[:n]
		}
	}
	if m.Symtab == nil {
		return
	}
	for _, s := range m.Symtab.Syms {
		const external, section = 1, 0xe
		if s.Type&external != 0 && s.Type&0xe == section && s.Type&0xe0 == 0 {
			f.defines.add(demangled(strings.TrimPrefix(s.Name, "_")), false)
		}
	}
}

// demangled is the name in a symbol of C++ or Rust, without what it takes: of
// _ZN4name5innerEv name::inner. What has no such name stays as it is.
func demangled(name string) []byte {
	rest, ok := strings.CutPrefix(name, "_Z")
	if !ok {
		return []byte(name)
	}
	nested := strings.HasPrefix(rest, "N")
	rest = strings.TrimLeft(rest, "NKVLRO")
	var parts []string
	for len(rest) > 0 && (nested || len(parts) == 0) {
		if s, ok := strings.CutPrefix(rest, "St"); ok {
			parts, rest = append(parts, "std"), s
			nested = true
		}
		n, i := 0, 0
		for i < len(rest) && i < 4 && rest[i] >= '0' && rest[i] <= '9' {
			n = 10*n + int(rest[i]-'0')
			i++
		}
		if i == 0 || n == 0 || n > len(rest)-i {
			break
		}
		part := rest[i : i+n]
		rest = rest[i+n:]
		if n == 17 && part[0] == 'h' && len(parts) > 0 { // Rust's hash
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 || len(parts) == 1 && parts[0] == "std" {
		return []byte(name)
	}
	return []byte(strings.Join(parts, "::"))
}

// printable returns the strings of at least least bytes that say something: they
// have letters enough, and each is there once. They hold n bytes at most.
func printable(b []byte, least, n int) []string {
	var out []string
	seen := make(map[string]bool)
	start := 0
	for i := 0; i <= len(b) && n > 0; i++ {
		if i < len(b) && (b[i] >= ' ' && b[i] < 0x7f || b[i] == '\t') {
			continue
		}
		if s := b[start:i]; len(s) >= least && len(s) < 4096 && saying(s) && !seen[string(s)] {
			t := strings.TrimSpace(string(s))
			seen[string(s)] = true
			n -= len(t) + 1
			if n > 0 {
				out = append(out, t)
			}
		}
		start = i + 1
	}
	return out
}

// saying reports whether a string looks like words, not like bytes that happen
// to be printable.
func saying(s []byte) bool {
	letters, vowels, odd := 0, 0, 0
	for _, c := range s {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
			if strings.IndexByte("aeiouy", c|0x20) >= 0 {
				vowels++
			}
		case c == ' ' || c == '_' || c == '-' || c == '/' || c == '.' || c == ':' || c >= '0' && c <= '9':
		default:
			odd++
		}
	}
	return letters >= 4 && vowels*8 >= letters && odd*3 <= len(s) && letters*2 >= len(s)
}

// sumData summarizes bytes without a known structure by the words among them.
func sumData(w *worker, o *soif.Object, c *content, text []byte) {
	w.set(o, "Title", c.name)
	w.set(o, "Description", dataKind(text))
	w.set(o, "Keywords", keywords([]byte(strings.Join(printable(text[:min(len(text), 1<<20)], 5, 64<<10), " ")), 30))
}

// dataKind tells databases by their first bytes.
func dataKind(b []byte) string {
	if len(b) < 64 {
		return ""
	}
	le, be := binary.LittleEndian, binary.BigEndian
	for _, m := range []struct {
		magic uint32
		at    int
		what  string
	}{
		{0x13579ace, 0, "GDBM database"}, {0x13579acd, 0, "GDBM database"}, {0x13579acf, 0, "GDBM database, large"}, {0x13579ad0, 0, "GDBM database, synchronized"},
		{0x00061561, 0, "Berkeley DB 1.85 hash"}, {0x00053162, 0, "Berkeley DB 1.85 btree"},
		{0x00061561, 12, "Berkeley DB hash"}, {0x00053162, 12, "Berkeley DB btree"}, {0x00042253, 12, "Berkeley DB queue"},
	} {
		if le.Uint32(b[m.at:]) == m.magic || be.Uint32(b[m.at:]) == m.magic {
			return m.what
		}
	}
	return ""
}

// sumDBase summarizes a dBase table by its fields.
func sumDBase(w *worker, o *soif.Object, c *content, text []byte) {
	w.set(o, "Title", strings.TrimSuffix(c.name, path.Ext(c.name)))
	if len(text) < 33 {
		return
	}
	w.set(o, "Description", fmt.Sprintf("dBase table of %d records", binary.LittleEndian.Uint32(text[4:])))
	var names []string
	for f := text[32:]; len(f) >= 32 && f[0] != '\r' && len(names) < 256; f = f[32:] {
		name, _, _ := bytes.Cut(f[:11], []byte{0})
		names = append(names, clean(string(name)))
	}
	w.set(o, "Headings", strings.Join(names, "\n"))
	w.set(o, "Keywords", keywords([]byte(strings.Join(printable(text[:min(len(text), 1<<20)], 5, 64<<10), " ")), 30))
}
