package unpack

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An archive is what the readers of archives have in common.
type archive interface {
	Next() (*Header, error)
	io.Reader
}

// corpus makes a folder with files of several kinds.
func corpus(t testing.TB) (string, map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "in")
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 70001)
	for i := range noise {
		noise[i] = byte(r.IntN(256))
	}
	words := new(strings.Builder)
	for range 30000 {
		fmt.Fprintf(words, "w%d ", r.IntN(2000))
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program = program[:min(len(program), 400<<10)]
	files := map[string]string{
		"a.txt": "a text\nFrom here on\n", "empty": "", "noise": string(noise), "sub/words and more.txt": words.String(),
		"sub/deep/é.txt": "é\n", "sub/" + strings.Repeat("long", 40) + ".txt": "long\n", "program": string(program),
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir, files
}

// run runs a shell command in a folder; it skips where the program is absent.
func run(t testing.TB, dir, program, command string) []byte {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not here", program)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, &stderr)
	}
	return out
}

// list reads all members of an archive.
func list(t testing.TB, a archive) map[string]string {
	t.Helper()
	got := make(map[string]string)
	for {
		h, err := a.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.Regular {
			continue
		}
		if h.Err != nil {
			t.Errorf("%s: %v", h.Name, h.Err)
		}
		b, err := io.ReadAll(a)
		if err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
		if h.Size >= 0 && h.Size != int64(len(b)) {
			t.Errorf("%s: got %d bytes, want %d", h.Name, len(b), h.Size)
		}
		got[strings.TrimPrefix(h.Name, "./")] = string(b)
	}
}

func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(want))
	if have := slices.Sorted(maps.Keys(got)); !slices.Equal(have, names) {
		t.Errorf("got members %q, want %q", have, names)
	}
	for _, n := range names {
		if got[n] != want[n] {
			t.Errorf("%s: got %d bytes that are others than the %d there were", n, len(got[n]), len(want[n]))
		}
	}
}

const memory = 64 << 20

// TestArchives reads what real programs write.
func TestArchives(t *testing.T) {
	zip := func(b []byte) (archive, error) { return NewZip(bytes.NewReader(b), int64(len(b)), memory) }
	seven := func(b []byte) (archive, error) { return NewSeven(bytes.NewReader(b), int64(len(b)), memory) }
	cpio := func(b []byte) (archive, error) { return NewCpio(bytes.NewReader(b)), nil }
	ar := func(b []byte) (archive, error) { return NewAr(bytes.NewReader(b)) }
	shar := func(b []byte) (archive, error) { return NewShar(bytes.NewReader(b)), nil }
	iso := func(b []byte) (archive, error) { return NewISO(bytes.NewReader(b), int64(len(b))) }
	for _, c := range []struct {
		name, program, command string
		open                   func([]byte) (archive, error)
		only                   string // members, "" for all
	}{
		{"zip", "zip", "zip -qry ../x.zip . && cat ../x.zip", zip, ""},
		{"zip stored", "zip", "zip -q0ry ../x.zip . && cat ../x.zip", zip, ""},
		{"zip bzip2", "zip", "zip -qry -Z bzip2 ../x.zip . && cat ../x.zip", zip, ""},
		{"zip from a stream", "zip", "rm link; zip -qr - . | cat", zip, ""},
		{"zip64", "zip", "zip -qry -fz ../x.zip . && cat ../x.zip", zip, ""},
		{"zip of 7z", "7z", "7z a -snl -tzip ../x.zip . >/dev/null && cat ../x.zip", zip, ""},
		{"zip lzma", "7z", "7z a -snl -tzip -mm=LZMA ../x.zip . >/dev/null && cat ../x.zip", zip, ""},
		{"zip behind a program", "zip", "zip -qry ../x.zip . && cat program ../x.zip", zip, ""},
		{"7z", "7z", "7z a -snl ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z lzma", "7z", "7z a -snl -m0=LZMA -mhc=off ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z not solid", "7z", "7z a -snl -ms=off ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z bzip2", "7z", "7z a -snl -m0=BZip2 ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z deflate", "7z", "7z a -snl -m0=Deflate ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z deflate64", "7z", "7z a -snl -m0=Deflate64 ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z bcj2", "7z", "7z a -snl -mf=BCJ2 -m0=BCJ2 -m1=LZMA -m2=LZMA:d16 -m3=LZMA:d16 -mb0s0:1 -mb0s1:2 -mb0s2:3 ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"zip deflate64", "7z", "7z a -snl -tzip -mm=Deflate64 ../x.zip . >/dev/null && cat ../x.zip", zip, ""},
		{"7z copy", "7z", "7z a -snl -mx=0 ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z bcj", "7z", "7z a -snl -m0=BCJ -m1=LZMA2 ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z delta", "7z", "7z a -snl -m0=Delta:4 -m1=LZMA2 ../x.7z . >/dev/null && cat ../x.7z", seven, ""},
		{"7z of bsdtar", "bsdtar", "bsdtar -cf - --format=7zip .", seven, ""},
		{"cpio newc", "cpio", "find . | cpio -o --quiet -H newc", cpio, ""},
		{"cpio crc", "cpio", "find . | cpio -o --quiet -H crc", cpio, ""},
		{"cpio odc", "cpio", "find . | cpio -o --quiet -H odc", cpio, ""},
		{"cpio binary", "cpio", "find . | cpio -o --quiet -H bin", cpio, ""},
		{"cpio swapped", "cpio", "find . | cpio -o --quiet -H bin | cat", cpio, ""},
		{"ar", "ar", "ar qc ../x.a a.txt empty noise program sub/long* >/dev/null && cat ../x.a", ar, "flat"},
		{"ar of bsd", "bsdtar", "bsdtar -cf - --format=arbsd a.txt empty noise program sub/long*", ar, "flat"},
		{"shar", "shar", "shar -q a.txt empty noise sub/words* sub/long* 2>/dev/null", shar, "shar"},
		{"iso of rock ridge", "genisoimage", "genisoimage -quiet -R .", iso, ""},
		{"iso of joliet", "genisoimage", "genisoimage -quiet -J -joliet-long -m link -m long* .", iso, "short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, want := corpus(t)
			b := run(t, dir, c.program, c.command)
			a, err := c.open(b)
			if err != nil {
				t.Fatal(err)
			}
			got := list(t, a)
			switch c.only {
			case "flat":
				for n, text := range want {
					delete(want, n)
					if strings.HasPrefix(n, "sub/long") || !strings.Contains(n, "/") {
						want[filepath.Base(n)] = text
					}
				}
			case "shar":
				undo(t, got)
				for _, n := range []string{"program", "sub/deep/é.txt", "empty"} { // touch makes what is empty
					delete(want, n)
				}
			case "short":
				maps.DeleteFunc(want, func(n, _ string) bool { return strings.Contains(n, "longlong") })
			}
			same(t, got, want)
		})
	}
}

// undo replaces what a shell archive has in uuencoded form.
func undo(t testing.TB, got map[string]string) {
	for n, text := range got {
		if strings.HasSuffix(n, ".uu") {
			delete(got, n)
			maps.Copy(got, list(t, NewUU(strings.NewReader(text))))
		}
	}
}

// TestEncodings reads what real programs write.
func TestEncodings(t *testing.T) {
	z := func(b []byte) (io.Reader, error) { return NewZ(bytes.NewReader(b)) }
	lzma := func(b []byte) (io.Reader, error) { return NewLZMA(bytes.NewReader(b), memory) }
	lzip := func(b []byte) (io.Reader, error) { return NewLzip(bytes.NewReader(b), memory) }
	for _, c := range []struct {
		program, command string
		open             func([]byte) (io.Reader, error)
	}{
		{"compress", "compress -f -c FILE", z},
		{"compress", "compress -f -b 12 -c FILE", z},
		{"xz", "xz --format=lzma -c FILE", lzma},
		{"xz", "xz --format=lzma --lzma1=lc=0,lp=2,pb=0,dict=4KiB -c FILE", lzma},
		{"7z", "7z a -tlzma -so x FILE 2>/dev/null || xz --format=lzma -c FILE", lzma},
		{"lzip", "lzip -c FILE", lzip},
		{"lzip", "lzip -0 -b 100KiB -c FILE", lzip},
	} {
		dir, files := corpus(t)
		for _, name := range []string{"noise", "sub/words and more.txt", "program", "a.txt", "empty"} {
			t.Run(c.command+" "+name, func(t *testing.T) {
				b := run(t, dir, c.program, strings.ReplaceAll(c.command, "FILE", "<'"+name+"'"))
				r, err := c.open(b)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err != nil || string(got) != files[name] {
					t.Fatalf("got %d bytes, %v, want the %d there were", len(got), err, len(files[name]))
				}
				for _, at := range []int{len(b) / 2, len(b) - 1, 12} { // cut
					if at >= len(b) || at < 0 || c.program == "compress" && at > 3 {
						continue
					}
					r, err := c.open(b[:at])
					if err == nil {
						_, err = io.ReadAll(r)
					}
					if err == nil {
						t.Errorf("cut at %d of %d: got no error", at, len(b))
					}
				}
			})
		}
	}
}

// TestUU reads what uuencode writes, between other lines.
func TestUU(t *testing.T) {
	dir, files := corpus(t)
	b := run(t, dir, "uuencode", "echo a letter; echo; uuencode noise noise; echo begin at once; uuencode -m program program; uuencode empty empty; echo end")
	if !IsUU(b) {
		t.Error("it is not told to be uuencoded")
	}
	got := list(t, NewUU(bytes.NewReader(b)))
	same(t, got, map[string]string{"noise": files["noise"], "program": files["program"], "empty": ""})
	blank := bytes.ReplaceAll(b, []byte("`"), []byte(" "))
	if got := list(t, NewUU(bytes.NewReader(bytes.ReplaceAll(blank, []byte(" \n"), []byte("\n"))))); got["noise"] != files["noise"] {
		t.Error("blanks lost at the ends of lines: the file is another")
	}
	for _, text := range []string{"begin here", "we begin 644 x\n", "beginning 644 x", "begin 999 x\n", ""} {
		if IsUU([]byte(text)) {
			t.Errorf("%q: got that it is uuencoded", text)
		}
	}
}

// TestRPM reads a package that rpmbuild makes.
func TestRPM(t *testing.T) {
	for payload, want := range map[string]string{"w9.gzdio": "gzip", "w6.xzdio": "xz", "w3.zstdio": "zstd"} {
		dir := t.TempDir()
		spec := "Name: thing\nVersion: 1.2\nRelease: 3\nSummary: A thing to read\nLicense: MIT\nGroup: Tests\nURL: http://site/thing\n" +
			"BuildArch: noarch\n%description\nIt is for reading.\n%install\nmkdir -p %{buildroot}/usr/share\necho hello >%{buildroot}/usr/share/hello.txt\n%files\n/usr/share/hello.txt\n"
		if err := os.WriteFile(filepath.Join(dir, "x.spec"), []byte(spec), 0o644); err != nil {
			t.Fatal(err)
		}
		b := run(t, dir, "rpmbuild", fmt.Sprintf("HOME=%s rpmbuild --quiet -bb --define '_topdir %s' --define '_binary_payload %s' x.spec >&2 && cat RPMS/noarch/*.rpm", dir, dir, payload))
		p, err := NewRPM(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s %s|%s|%s|%s|%s|%s", p.Name, p.Version, p.Release, p.Summary, p.Description, p.License, p.URL, p.Compressor)
		if want := "thing 1.2 3|A thing to read|It is for reading.|MIT|http://site/thing|" + want; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		head := make([]byte, 2)
		if _, err := io.ReadFull(p.Payload, head); err != nil {
			t.Error(err)
		}
	}
}

// TestMac reads what binhex and macbinary write.
func TestMac(t *testing.T) {
	dir, files := corpus(t)
	for _, c := range []struct {
		program, command string
		is               func([]byte) bool
		open             func(io.Reader) (*MacFile, error)
	}{
		{"binhex", "macstream -d NAME | binhex", IsBinHex, NewBinHex},
	} {
		for _, name := range []string{"noise", "a.txt", "program"} {
			b := run(t, dir, c.program, strings.ReplaceAll(c.command, "NAME", name))
			if c.program == "binhex" { // macutils say something else there
				b = bytes.Replace(b, []byte("(This file must be converted; you knew that already.)"), []byte(binhexMark+" 4.0)"), 1)
			}
			if !c.is(b) {
				t.Fatalf("%s: not told to be", c.program)
			}
			m, err := c.open(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(m)
			if err != nil || string(got) != files[name] || m.Name != name {
				t.Errorf("%s: got %q with %d bytes, %v, want the %d of %s", c.program, m.Name, len(got), err, len(files[name]), name)
			}
		}
	}
}

func write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
