package gather

import (
	"archive/tar"
	"bytes"
	"errors"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemberTrace holds that the object of a member has as its trace those lines of
// its container's that are about it, and about what is in it, and no others.
func TestMemberTrace(t *testing.T) {
	dir := t.TempDir()
	g, err := Open(t.TempDir(), "t", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	pack := func(members ...string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := 0; i < len(members); i += 2 {
			if err := w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
			w.Write([]byte(members[i+1]))
		}
		w.Close()
		return b.Bytes()
	}
	inner := pack("deep.html", "<title>deep</title>")
	whole := pack("one.html", "<title>one</title>", "one.html.bak", "the one before", "a b%.txt", "a name to be escaped", "in.tar", string(inner))
	if err := os.WriteFile(filepath.Join(dir, "all.tar"), whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.types.setFrom("unnest", "Tar as=objects\ninclude default\n", true); err != nil {
		t.Fatal(err)
	}
	if err := g.setConfig(t.Context(), "root url=file://"+dir+"/\n"); err != nil {
		t.Fatal(err)
	}
	once(t, g)
	url := "file://" + dir + "/all.tar!/"
	for member, want := range map[string]string{
		"one.html":          "recognize\tHTML\tbyname: *.html\tone.html",
		"a%20b%25.txt":      "recognize\tText\tbyname: *.txt\ta b%.txt",
		"in.tar":            "recognize\tTar\tbyname: *.tar\tin.tar",
		"in.tar!/deep.html": "recognize\tHTML\tbyname: *.html\tin.tar/deep.html",
	} {
		got, err := g.memberTrace(url + member)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, %v, want %q in it", member, got, err, want)
		}
		if strings.Contains(got, ".bak") || member != "in.tar" && strings.Count(got, "recognize") != 1 {
			t.Errorf("%s: got lines of others in %q", member, got)
		}
	}
	if got, err := g.memberTrace(url + "none.html"); err != nil || !strings.HasPrefix(got, "cut\tnothing\t") {
		t.Errorf("a member that there is not: got %q, %v", got, err)
	}
	if _, err := g.memberTrace("http://elsewhere/x.tar!/a"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("a member of nothing: got %v, want %v", err, iofs.ErrNotExist)
	}
}
