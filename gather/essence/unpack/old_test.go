package unpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openARJ(b []byte) (archive, error) { return NewARJ(bytes.NewReader(b)) }
func openLHA(b []byte) (archive, error) { return NewLHA(bytes.NewReader(b)), nil }
func openZoo(b []byte) (archive, error) { return NewZoo(bytes.NewReader(b), int64(len(b)), memory) }
func openCab(b []byte) (archive, error) { return NewCab(bytes.NewReader(b), int64(len(b)), memory) }

// TestOldArchives reads what packers of PCs write.
func TestOldArchives(t *testing.T) {
	for _, c := range []struct {
		name, program, command string
		open                   func([]byte) (archive, error)
	}{
		{"arj stored", "arj", "arj a -i -r -m0 ../x.arj >/dev/null && cat ../x.arj", openARJ},
		{"arj", "arj", "arj a -i -r -m1 ../x.arj >/dev/null && cat ../x.arj", openARJ},
		{"arj quicker", "arj", "arj a -i -r -m3 ../x.arj >/dev/null && cat ../x.arj", openARJ},
		{"arj fastest", "arj", "arj a -i -r -m4 ../x.arj >/dev/null && cat ../x.arj", openARJ},
		{"lha", "jlha", "jlha a ../x.lzh * >/dev/null && cat ../x.lzh", openLHA},
		{"cab stored", "gcab", "gcab -cn ../x.cab $(ls -d *) && cat ../x.cab", openCab},
		{"cab", "gcab", "gcab -czn ../x.cab $(ls -d *) && cat ../x.cab", openCab},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, files := plainCorpus(t)
			a, err := c.open(run(t, dir, c.program, c.command))
			if err != nil {
				t.Fatal(err)
			}
			same(t, list(t, a), files)
		})
	}
}

// plainCorpus is what a packer of PCs takes of the corpus: names of eight letters,
// no folders.
func plainCorpus(t *testing.T) (string, map[string]string) {
	_, files := corpus(t)
	dir := filepath.Join(t.TempDir(), "pc")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for as, name := range map[string]string{"a.txt": "a.txt", "noise.bin": "noise", "words.txt": "sub/words and more.txt", "program.exe": "program"} {
		want[as] = files[name]
		if err := os.WriteFile(filepath.Join(dir, as), []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, want
}

// zooOf is an archive of zoo, for which Debian has no packer: of the content and
// the method that a member of lha has, which are the same.
func zooOf(t testing.TB, members map[string]string, method byte, packed func(string) []byte) []byte {
	t.Helper()
	b := append(make([]byte, 0, 1<<10), "ZOO 2.10 Archive.\x1a\x00\x00"...)
	b = binary.LittleEndian.AppendUint32(b, zooTag)
	b = binary.LittleEndian.AppendUint32(b, 42)
	b = append(b, make([]byte, 42-len(b))...)
	for name, text := range members {
		content := packed(text)
		var sum arcSum
		sum.write([]byte(text))
		e := make([]byte, zooMore)
		binary.LittleEndian.PutUint32(e, zooTag)
		e[4], e[5] = 2, method
		start := len(b) + len(e) + len(name) + 1
		binary.LittleEndian.PutUint32(e[6:], uint32(start+len(content)))
		binary.LittleEndian.PutUint32(e[10:], uint32(start))
		binary.LittleEndian.PutUint16(e[14:], 30<<9|5<<5|6)
		binary.LittleEndian.PutUint16(e[18:], uint16(sum))
		binary.LittleEndian.PutUint32(e[20:], uint32(len(text)))
		binary.LittleEndian.PutUint32(e[24:], uint32(len(content)))
		copy(e[38:50], "SHORT.TXT")
		e[56] = byte(len(name) + 1)
		b = append(append(append(b, e...), name...), 0)
		b = append(b, content...)
	}
	end := make([]byte, zooMore)
	binary.LittleEndian.PutUint32(end, zooTag)
	return append(b, end...)
}

func TestZoo(t *testing.T) {
	want := map[string]string{"long name.txt": "some text\n", "empty": ""}
	a, err := openZoo(zooOf(t, want, 0, func(s string) []byte { return []byte(s) }))
	if err != nil {
		t.Fatal(err)
	}
	same(t, list(t, a), want)

	dir, files := plainCorpus(t) // -lh5- of lha is method 2
	pack := func(text string) []byte {
		for name := range files {
			if files[name] == text {
				b := run(t, dir, "jlha", "rm -f ../y.lzh; jlha a ../y.lzh "+name+" >/dev/null && cat ../y.lzh")
				l := NewLHA(bytes.NewReader(b))
				if _, err := l.Next(); err != nil {
					t.Fatal(err)
				}
				raw, err := io.ReadAll(&l.data)
				if err != nil {
					t.Fatal(err)
				}
				return raw
			}
		}
		return nil
	}
	words := map[string]string{"words.txt": files["words.txt"]}
	if a, err = openZoo(zooOf(t, words, 2, pack)); err != nil {
		t.Fatal(err)
	}
	same(t, list(t, a), words)

	a, err = openZoo(zooOf(t, want, 1, func(s string) []byte { return []byte(s) }))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := a.Next(); err != nil || !errors.Is(h.Err, ErrUnread) {
		t.Errorf("got %v, %v of method 1, want that it is not read", h, err)
	}
}

// TestOldDamage has sums and lengths tell what is not as it was.
func TestOldDamage(t *testing.T) {
	good := zooOf(t, map[string]string{"a": strings.Repeat("some text\n", 9)}, 0, func(s string) []byte { return []byte(s) })
	for at := 120; at < 140; at++ {
		b := bytes.Clone(good)
		b[at] ^= 4
		a, err := openZoo(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(a); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: got %v, want that it is damaged", at, err)
		}
	}
	if _, err := NewARJ(strings.NewReader("\x60\xea\xff\xff" + strings.Repeat("x", 70000))); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want that the header is damaged", err)
	}
}

func FuzzLHA(f *testing.F) {
	seed(f, "jlha", "jlha a x.lzh 'b b' a >/dev/null && cat x.lzh")
	f.Add([]byte("\x19\x00-lh0-\x05\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x20\x00\x03a.b\x00\x00hello\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		walk(t, NewLHA(bytes.NewReader(b)), nil)
		for _, form := range []lzhForm{lzh4, lzh5, lzh6, lzh7, lzhA} {
			io.Copy(io.Discard, newLZH(bytes.NewReader(b), form, 1<<16))
		}
	})
}

func FuzzARJ(f *testing.F) {
	for _, m := range []string{"0", "1", "4"} {
		seed(f, "arj", "arj a -i -m"+m+" x.arj a 'b b' >/dev/null && cat x.arj")
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewARJ(bytes.NewReader(b))
		walk(t, a, err)
		io.Copy(io.Discard, newARJFast(bytes.NewReader(b), 1<<16))
	})
}

func FuzzZoo(f *testing.F) {
	f.Add(zooOf(f, map[string]string{"a": "some text\n", "b": ""}, 0, func(s string) []byte { return []byte(s) }))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := openZoo(b)
		walk(t, a, err)
	})
}

func FuzzCab(f *testing.F) {
	for _, z := range []string{"", "z"} {
		seed(f, "gcab", "gcab -c"+z+"n x.cab a 'b b' c && cat x.cab")
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := openCab(b)
		members(t, a, err)
	})
}
