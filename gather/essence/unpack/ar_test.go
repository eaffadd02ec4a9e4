package unpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// arFile makes a member of an ar archive, or one of its tables.
func arFile(name string, body []byte) []byte {
	b := fmt.Appendf(nil, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "644", len(body))
	b = append(b, body...)
	if len(body)%2 == 1 {
		b = append(b, '\n')
	}
	return b
}

// symbolsOf reads an archive to its end, and returns the symbols of its table and the
// names of its members.
func symbolsOf(b []byte) (symbols, names []string, err error) {
	a, err := NewAr(bytes.NewReader(b))
	for err == nil {
		var h *Header
		if h, err = a.Next(); err == nil {
			names = append(names, h.Name)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a.Symbols, names, err
}

// TestArSymbols holds tables of symbols to what nm reads of them, in libraries of the
// machine.
func TestArSymbols(t *testing.T) {
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("nm is not installed")
	}
	libraries, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/*.a")
	checked := 0
	for _, file := range libraries {
		if st, err := os.Stat(file); err != nil || st.Size() > 1<<20 || checked == 5 {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(nm, "-s", file).Output()
		if err != nil || !bytes.HasPrefix(b, []byte("!<arch>\n")) {
			continue // a script of the linker
		}
		_, index, found := strings.Cut(string(out), "Archive index:\n")
		if !found {
			continue
		}
		index, _, _ = strings.Cut(index, "\n\n")
		var want []string
		for line := range strings.Lines(index) {
			name, _, _ := strings.Cut(line, " in ")
			want = append(want, name)
		}
		got, _, err := symbolsOf(b)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %d symbols %.80q, %v, want %d %.80q", file, len(got), got, err, len(want), want)
		}
		checked++
	}
	if checked == 0 {
		t.Skip("no library of libc6-dev is here")
	}
}

// TestArTables holds what tables of symbols of both widths say, that a number of more
// than there is room for is damage, and that a table cut short is told.
func TestArTables(t *testing.T) {
	const magic = "!<arch>\n"
	member := string(arFile("a.o/", []byte("xyz")))
	short := append(binary.BigEndian.AppendUint32(nil, 2), "\x00\x00\x00\x44\x00\x00\x00\x44first\x00second\x00"...)
	wide := append(binary.BigEndian.AppendUint64(nil, 1), "\x00\x00\x00\x00\x00\x00\x00\x44only\x00"...)
	lies := append(binary.BigEndian.AppendUint32(nil, 1<<30), "\x00\x00\x00\x44f\x00"...)
	unended := append(binary.BigEndian.AppendUint32(nil, 2), "\x00\x00\x00\x44\x00\x00\x00\x44first\x00sec"...)
	for _, c := range []struct {
		what, archive string
		symbols       string
		names         string
		class         error
	}{
		{"32 bits", magic + string(arFile("/", short)) + member, "[first second]", "[a.o]", nil},
		{"64 bits", magic + string(arFile("/SYM64/", wide)) + member, "[only]", "[a.o]", nil},
		{"too many", magic + string(arFile("/", lies)) + member, "[]", "[]", ErrDamaged},
		{"the last without its end", magic + string(arFile("/", unended)) + member, "[first]", "[a.o]", nil},
		{"of BSD, which is not read", magic + string(arFile("__.SYMDEF", short)) + member, "[]", "[a.o]", nil},
		{"none", magic + member, "[]", "[a.o]", nil},
		{"cut", (magic + string(arFile("/", short)))[:80], "[]", "[]", io.ErrUnexpectedEOF},
	} {
		symbols, names, err := symbolsOf([]byte(c.archive))
		if fmt.Sprint(symbols) != c.symbols || fmt.Sprint(names) != c.names || !errors.Is(err, c.class) {
			t.Errorf("%s: got symbols %v, members %v, %v; want %s, %s, %v", c.what, symbols, names, err, c.symbols, c.names, c.class)
		}
	}
}
