package unpack

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// most is what a fuzzed archive may yield before it is left.
const most = 4 << 20

// walk reads all of an archive, as far as most.
func walk(t *testing.T, a archive, err error) {
	n := int64(0)
	for members := 0; err == nil && n < most && members < 10000; members++ {
		var h *Header
		if h, err = a.Next(); err != nil {
			break
		}
		if h == nil {
			t.Fatal("got no member and no error")
		}
		m, rerr := io.CopyN(io.Discard, a, most)
		n += m
		if rerr == nil && m < most {
			t.Fatalf("%s: got %d bytes and no end", h.Name, m)
		}
	}
	known(t, err)
}

// known tells whether an error is one of those that damage leads to.
func known(t *testing.T, err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnread) || errors.Is(err, io.ErrUnexpectedEOF) {
		return
	}
	t.Fatalf("got %v, want damage told as such", err)
}

func drain(t *testing.T, r io.Reader, err error) {
	if err == nil {
		_, err = io.CopyN(io.Discard, r, most)
	}
	known(t, err)
}

// seed adds what a command writes of a small folder, if it is there.
func seed(f *testing.F, program, command string) {
	if _, err := exec.LookPath(program); err != nil {
		return
	}
	dir := f.TempDir()
	for name, text := range map[string]string{"a": "some text\n", "b b": strings.Repeat("again and ", 300), "c": ""} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	if out, err := cmd.Output(); err == nil {
		f.Add(out)
	}
}

func FuzzZ(f *testing.F) {
	seed(f, "compress", "compress -f -c 'b b'")
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewZ(bytes.NewReader(b))
		drain(t, r, err)
	})
}

func FuzzLZMA(f *testing.F) {
	seed(f, "xz", "xz --format=lzma -c 'b b'")
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewLZMA(bytes.NewReader(b), 1<<20)
		drain(t, r, err)
		two, err := newLZMA2(newSource(bytes.NewReader(b)), 1<<16, 1<<20)
		drain(t, two, err)
	})
}

func FuzzLzip(f *testing.F) {
	seed(f, "lzip", "lzip -c 'b b'; lzip -c a")
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewLzip(bytes.NewReader(b), 1<<20)
		drain(t, r, err)
	})
}

func FuzzAr(f *testing.F) {
	seed(f, "ar", "ar qc x.a a 'b b' c >/dev/null && cat x.a")
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewAr(bytes.NewReader(b))
		walk(t, a, err)
	})
}

func FuzzCpio(f *testing.F) {
	for _, form := range []string{"newc", "odc", "bin"} {
		seed(f, "cpio", "find . | cpio -o --quiet -H "+form)
	}
	f.Fuzz(func(t *testing.T, b []byte) { walk(t, NewCpio(bytes.NewReader(b)), nil) })
}

func FuzzRPM(f *testing.F) {
	f.Add([]byte("\xed\xab\xee\xdb" + strings.Repeat("\x00", 92) + "\x8e\xad\xe8\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x8e\xad\xe8\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x03\xe8\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x01name\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := NewRPM(bytes.NewReader(b))
		if err != nil {
			known(t, err)
			return
		}
		drain(t, p.Payload, nil)
	})
}

func FuzzZip(f *testing.F) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range []string{"a", "b/c", "b/"} {
		m, err := w.Create(name)
		if err != nil {
			f.Fatal(err)
		}
		m.Write([]byte(strings.Repeat(name, 100)))
	}
	w.Close()
	f.Add(out.Bytes())
	f.Add(out.Bytes()[:out.Len()-30])
	seed(f, "7z", "7z a -tzip -mm=LZMA x.zip . >/dev/null && cat x.zip")
	seed(f, "7z", "7z a -tzip -mm=Deflate64 x.zip . >/dev/null && cat x.zip")
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewZip(bytes.NewReader(b), int64(len(b)), 1<<20)
		members(t, a, err)
	})
}

func FuzzSeven(f *testing.F) {
	for _, m := range []string{"LZMA", "LZMA2", "BZip2", "Deflate", "Copy", "BCJ -m1=LZMA", "Delta:2 -m1=LZMA2", "Deflate64", "BCJ2 -m1=LZMA -m2=LZMA:d16 -m3=LZMA:d16 -mb0s0:1 -mb0s1:2 -mb0s2:3"} {
		seed(f, "7z", "7z a -mhc=off -m0="+m+" x.7z . >/dev/null && cat x.7z")
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewSeven(bytes.NewReader(b), int64(len(b)), 1<<20)
		members(t, a, err)
	})
}

// FuzzDeflate64 holds that what deflate packs is unpacked as it was, but for the last
// code of lengths, and that anything else ends.
func FuzzDeflate64(f *testing.F) {
	for _, s := range []string{"", "a", strings.Repeat("the quick brown fox ", 4000), strings.Repeat("ab", 40)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		drain(t, newDeflate64(bytes.NewReader(b)), nil)
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, 6)
		w.Write(b)
		w.Close()
		if got, err := io.ReadAll(newDeflate64(bytes.NewReader(packed.Bytes()))); (err != nil || !bytes.Equal(got, b)) && len(b) < 258 { // a copy of 258 has another code
			t.Errorf("got %q, %v, want %q", got, err, b)
		}
	})
}

// members is walk where a member's decoder may have errors of its own.
func members(t *testing.T, a archive, err error) {
	n := int64(0)
	for i := 0; err == nil && n < most && i < 10000; i++ {
		if _, err = a.Next(); err == nil {
			m, rerr := io.CopyN(io.Discard, a, most)
			if n += m; rerr == nil && m < most {
				t.Fatalf("got %d bytes and no end", m)
			}
		}
	}
}

func FuzzISO(f *testing.F) {
	seed(f, "genisoimage", "genisoimage -quiet -R . | head -c 90000")
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewISO(bytes.NewReader(b), int64(len(b)))
		members(t, a, err)
	})
}

func FuzzUU(f *testing.F) {
	f.Add([]byte("x\nbegin 644 a\n#0V%T\n`\nend\nbegin-base64 644 b\nQ2F0\n====\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := NewUU(bytes.NewReader(b))
		first, err := a.Next()
		if IsUU(b) != (err == nil) && len(b) < 4000 {
			t.Errorf("got %v and %v, want them to agree", first, err)
		}
		walk(t, NewUU(bytes.NewReader(b)), nil)
	})
}

func FuzzShar(f *testing.F) {
	f.Add([]byte("# This is a shell archive\nsed 's/^X//' >a <<'END'\nXline\nEND\ncat << \\EOF > 'b'\nx\nEOF\n"))
	seed(f, "shar", "shar -q . 2>/dev/null")
	f.Fuzz(func(t *testing.T, b []byte) {
		IsShar(b)
		walk(t, NewShar(bytes.NewReader(b)), nil)
	})
}

func FuzzMac(f *testing.F) {
	seed(f, "macstream", "macstream -d a")
	seed(f, "macstream", "macstream -d a | binhex | sed 's/^(This.*/(This file must be converted with BinHex 4.0)/'")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, open := range []func(io.Reader) (*MacFile, error){NewBinHex, NewMacBinary} {
			m, err := open(bytes.NewReader(b))
			if err != nil {
				known(t, err)
				continue
			}
			drain(t, m, nil)
		}
	})
}

func FuzzMbox(f *testing.F) {
	f.Add([]byte("From a@b Sat Nov 21 10:00:00 2026\nSubject: x\n\n>From here\n\nFrom c@d Sat Nov 21 10:00:01 2026\nSubject: y\n\nlast\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		IsMbox(b)
		walk(t, NewMbox(bytes.NewReader(b)), nil)
	})
}

func FuzzMail(f *testing.F) {
	f.Add([]byte("Content-Type: multipart/mixed; boundary=x\n\n--x\n\ntext\n--x\nContent-Type: image/png; name=a.png\nContent-Transfer-Encoding: base64\n\naGk=\n--x--\n"))
	f.Add([]byte("Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: multipart/alternative; boundary=xy\n\n--xy\n\n--xy--\n--x\nContent-Disposition: attachment\n\n--x\n"))
	f.Add([]byte("Subject: x\n\nbegin 644 a\n#0V%T\n`\nend\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		IsMultipart(b)
		walk(t, NewMail(bytes.NewReader(b)), nil)
	})
}
