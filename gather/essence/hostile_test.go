package essence

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"harvest/gather/soif"
)

// A hostile file is one that was good once, or that was never meant well.
type hostile struct {
	name string
	b    []byte
}

// goodFiles are the goldens and what programs that are here make of one of them.
func goodFiles(t testing.TB) (all []hostile) {
	names, err := filepath.Glob("testdata/in/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata/in: %d files, %v", len(names), err)
	}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hostile{filepath.Base(n), b})
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"page.html": "<title>A page</title><p>" + strings.Repeat("Words in it. ", 300), "b.txt": strings.Repeat("More of them\n", 99)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ command, file string }{
		{"gzip -k b.txt", "b.txt.gz"}, {"bzip2 -k b.txt", "b.txt.bz2"}, {"xz -k b.txt", "b.txt.xz"}, {"lzma -k b.txt", "b.txt.lzma"},
		{"lzip -k b.txt", "b.txt.lz"}, {"zstd -q b.txt", "b.txt.zst"}, {"lz4 -q b.txt b.txt.lz4", "b.txt.lz4"}, {"brotli b.txt", "b.txt.br"},
		{"compress -c b.txt >b.txt.Z", "b.txt.Z"}, {"tar cf a.tar page.html b.txt", "a.tar"}, {"tar czf a.tgz page.html b.txt", "a.tgz"},
		{"zip -q a.zip page.html b.txt", "a.zip"}, {"7z a a.7z page.html b.txt", "a.7z"}, {"7z a -m0=LZMA -mhc=off l.7z page.html b.txt", "l.7z"},
		{"ar qc a.a page.html b.txt", "a.a"}, {"ls *.html *.txt | cpio -o --quiet -H newc -O a.cpio", "a.cpio"}, {"uuencode page.html page.html >a.uu", "a.uu"},
		{"shar -q page.html b.txt >a.shar 2>/dev/null", "a.shar"}, {"genisoimage -quiet -R -o a.iso page.html", "a.iso"}, {letter, "m.eml"},
		{"macstream -d page.html >a.bin", "a.bin"}, {"7z a -tzip -mm=LZMA z.zip a.7z a.tgz m.eml", "z.zip"},
	} {
		cmd := exec.Command("sh", "-ec", c.command)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("%s is not made: %v %.100s", c.file, err, out)
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hostile{c.file, b})
	}
	return all
}

// worst are files that were made to do harm.
func worst(t testing.TB) []hostile {
	loop := []hostile{{"42.zip", bomb42(t)}, {"overlap.zip", overlapping(t, 20000)}, {"sparse.tar", sparse(t)},
		{"zeros.gz", zipped(t, make([]byte, 300<<20))}, {"lzma4g.lzma", []byte("\x5d\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00")},
		{"dict.7z", []byte("7z\xbc\xaf\x27\x1c\x00\x04\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f")}}
	deep := []byte("end")
	for range 2000 {
		deep = zipped(t, deep)
	}
	loop = append(loop, hostile{"deep.gz", deep})
	var many []member
	for i := range 3000 {
		many = append(many, member{strconv.Itoa(i) + ".zip", zipOf(t, member{"x.html", []byte("<title>x")})})
	}
	return append(loop, hostile{"many.tar", tarOf(t, many...)})
}

// damaged makes of good files as many bad ones: bits turned, parts cut off, taken
// out, doubled, or replaced by those of another.
func damaged(good []hostile, r *rand.Rand) hostile {
	g := good[r.IntN(len(good))]
	b := bytes.Clone(g.b)
	if len(b) == 0 {
		return g
	}
	switch r.IntN(6) {
	case 0:
		b = b[:r.IntN(len(b))]
	case 1:
		at := r.IntN(len(b))
		b = slices.Delete(b, at, min(len(b), at+1+r.IntN(64)))
	case 2:
		at := r.IntN(len(b))
		b = slices.Insert(b, at, b[at:min(len(b), at+1+r.IntN(512))]...)
	case 3:
		other := good[r.IntN(len(good))].b
		if len(other) > 0 {
			copy(b[r.IntN(len(b)):], other[r.IntN(len(other)):])
		}
	case 4: // numbers that are far too large
		for range 1 + r.IntN(4) {
			at := r.IntN(len(b))
			copy(b[at:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}[:1+r.IntN(8)])
		}
	default:
		for range 1 + r.IntN(1+len(b)/200) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	}
	return hostile{g.name, b}
}

// TestHostileFiles summarizes damaged and hostile files in a process of its own:
// it may not crash, hang, leave a process behind or take more than 512 MB.
// HARVEST_HOSTILE sets how many; 2000 is what the figures of docs/ are of.
func TestHostileFiles(t *testing.T) {
	n := 60
	if s := os.Getenv("HARVEST_HOSTILE"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	t.Logf("%d files; HARVEST_HOSTILE sets it", n)
	good := goodFiles(t)
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("HARVEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("seed %d; HARVEST_SEED sets it", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var files []hostile
	if n >= 1000 {
		files = worst(t)
	}
	for len(files) < n {
		files = append(files, damaged(good, r))
	}
	for i, f := range files {
		if err := os.WriteFile(fmt.Sprintf("%s/%05d-%s", dir, i, f.name), f.b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := children(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostileChild$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "HARVEST_HOSTILE_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	last := out[max(len(out)-2000, 0):]
	if err != nil {
		t.Fatalf("%v\n%s", err, last)
	}
	_, text, ok := strings.Cut(string(out), "peak ")
	kb, _ := strconv.Atoi(strings.Fields(text + " -")[0])
	if !ok || kb == 0 || kb > 512<<10 {
		t.Errorf("got a peak of %d KiB, want at most %d\n%s", kb, 512<<10, last)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "slow") || strings.Contains(line, "peak") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if after := children(t); len(after) > len(before) {
		t.Errorf("got processes %v left, want %v", after, before)
	}
}

// children are the processes that nobody has but us, or nobody at all, and that
// run this program or one of a summarizer.
func children(t testing.TB) (all []string) {
	dirs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Base(os.Args[0])
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		name, rest, _ := strings.Cut(string(b[bytes.IndexByte(b, '(')+1:]), ") ")
		f := strings.Fields(rest)
		mine := strings.HasPrefix(self, name) || slices.Contains([]string{"pdftotext", "pdfinfo", "catdoc", "gs", "pdfdetach"}, name)
		if mine && len(f) > 1 && (f[1] == "1" || f[1] == strconv.Itoa(os.Getpid())) {
			all = append(all, name)
		}
	}
	return all
}

// TestHostileChild is the other half of TestHostileFiles.
func TestHostileChild(t *testing.T) {
	dir := os.Getenv("HARVEST_HOSTILE_DIR")
	if dir == "" {
		t.Skip("it is run by TestHostileFiles")
	}
	names, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		name := filepath.Base(n)
		o, _, err := Summarize(t.Context(), Input{URL: "file:///" + name[6:], Rest: f, FullText: true})
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Logf("slow: %s took %v: %q", name, d, o.Text("Summary-Limit"))
			if d > 60*time.Second {
				t.Errorf("%s took %v", name, d)
			}
		}
		if s := o.Text("Summary-Limit"); strings.Contains(s, "the summarizer failed") {
			t.Errorf("%s: %s", name, s)
		}
		if _, _, err := soif.Parse(o.Append(nil), soif.Limits{}); err != nil {
			t.Errorf("%s: it does not parse: %v", name, err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	t.Logf("peak %s KiB", strings.Fields(peak)[0])
}
