package essence

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"

	"harvest/gather/soif"
)

// memberSums are the members of an archive with their sizes and sums, as lines of
// testdata/rar/want have them.
func memberSums(o *soif.Object) map[string]bool {
	got := make(map[string]bool)
	for n := 1; ; n++ {
		prefix := "Embed" + strconv.Itoa(n) + "-"
		name := o.Text(prefix + "Nested-Filename")
		if name == "" {
			return got
		}
		if sum := o.Text(prefix + "MD5"); sum != "" {
			got[name+"\t"+o.Text(prefix+"File-Size")+"\t"+sum] = true
		}
	}
}

// TestRar takes archives of libarchive's own tests apart, of RAR 2.9 to 5, with PPMd,
// solid, with filters, with names in UTF-16, of Windows and of Unix. What is in them
// is what unrar takes out; what it refuses is not read here either.
func TestRar(t *testing.T) {
	list, err := os.ReadFile("testdata/rar/want")
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string][]string)
	for line := range strings.Lines(string(list)) {
		if archive, member, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok {
			want[archive] = append(want[archive], member)
		}
	}
	for archive, members := range want {
		b, err := os.ReadFile("testdata/rar/" + archive)
		if err != nil {
			t.Fatal(err)
		}
		o, _ := sum(t, Input{URL: "file:///" + archive, Head: b})
		got := memberSums(&o)
		for _, m := range members {
			if !got[m] {
				t.Errorf("%s: no member %q among %v", archive, m, got)
			}
			delete(got, m)
		}
		if len(got) > 0 {
			t.Errorf("%s: got members %v that unrar has not", archive, got)
		}
	}
}

// oldArchive makes an archive of one member of four bytes, by a method that is not
// read.
func oldArchive(method string) []byte {
	b := []byte{0, 0, '-', 'l', 'h', '1', '-', 4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 1, 'a', 0, 0}
	if method == "zoo" {
		b = make([]byte, 42+56+4)
		copy(b, "ZOO 2.10 Archive.\x1a\x00\x00\xdc\xa7\xc4\xfd\x2a\x00\x00\x00")
		d := b[42:]
		copy(d, "\xdc\xa7\xc4\xfd\x01\x01\x66\x00\x00\x00\x62\x00\x00\x00")
		binary.LittleEndian.PutUint32(d[20:], 4)
		binary.LittleEndian.PutUint32(d[24:], 4)
		copy(d[38:], "a.txt\x00")
		return append(b, make([]byte, 56)...)
	}
	b[0] = byte(len(b) - 2)
	for _, c := range b[2:] {
		b[1] += c
	}
	return append(b, "\x00\x00\x00\x00\x00"...)
}

// TestUnreadMethods holds that what is packed in a way that is not read is named: what
// it is, by which method, in Summary-Limit and in the trace.
func TestUnreadMethods(t *testing.T) {
	file := func(name string) []byte {
		b, err := os.ReadFile("testdata/rar/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	quantum := bytes.Replace(file("lzx.cab"), []byte("\x02\x00\x03\x12"), []byte("\x02\x00\x02\x12"), 1)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"ppmd.7z":           {file("ppmd.7z"), "ppmd_test.txt: 7z: PPMd, method 030401 of 7z"},
		"ppmd.zip":          {file("ppmd.zip"), "vimrc: zip: PPMd, method 98 of zip"},
		"lzx.cab":           {file("lzx.cab"), "cab: packed by LZX"},
		"quantum.cab":       {quantum, "cab: packed by Quantum"},
		"a.lzh":             {oldArchive("lh1"), "a: lha: of method -lh1-"},
		"a.zoo":             {oldArchive("zoo"), "a.txt: zoo: of method 1"},
		"a.z01":             {[]byte("PK\x07\x08PK\x03\x04\x14\x00\x00\x00\x08\x00" + strings.Repeat("x", 40)), "zip: the first volume of an archive that has its directory in the last"},
		"volume1.rar":       {file("volume1.rar"), "LibarchiveAddingTest.html: rar: it goes on in another volume"},
		"volume2.rar":       {file("volume2.rar"), "rar: a volume that is not the first of its archive"},
		"five-volume4.rar":  {file("five-volume4.rar"), "rar: a volume that is not the first of its archive"},
		"secret.rar":        {file("secret.rar"), "foo.txt: rar: encrypted"},
		"secret-names.rar":  {file("secret-names.rar"), "rar: encrypted"},
		"partly-secret.rar": {file("partly-secret.rar"), "foo.txt: rar: encrypted"},
		"cut.rar":           {file("cut.rar"), "test: rar: unexpected EOF"},
		"damaged.rar":       {file("damaged.rar"), "rar: rardecode: missing archive block"},
		"five-damaged.rar":  {file("five-damaged.rar"), "rar: rardecode: bad block header"},
	} {
		o, tr := sum(t, Input{URL: "file:///" + name, Head: c.content})
		if got := o.Text("Summary-Limit"); !strings.Contains(got, c.want) {
			t.Errorf("%s: got Summary-Limit %q, want %q", name, got, c.want)
		}
		if !strings.Contains(strings.ReplaceAll(tr.String(), "\t", " "), c.want[strings.LastIndex(c.want, ": ")+2:]) {
			t.Errorf("%s: got trace %q, want %q in it", name, tr, c.want)
		}
	}
}

// TestReadMethods holds that a program filtered by BCJ2 is what it was.
func TestReadMethods(t *testing.T) {
	b, err := os.ReadFile("testdata/rar/bcj2.7z")
	if err != nil {
		t.Fatal(err)
	}
	o, _ := sum(t, Input{URL: "file:///bcj2.7z", Head: b})
	if got, want := o.Text("Embed1-MD5"), "d079de044447fa24091fd9d4826a1451"; got != want { // of 7z x -so
		t.Errorf("got %q, want %q; %s", got, want, o.Text("Summary-Limit"))
	}
}
