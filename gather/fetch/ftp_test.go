package fetch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// site makes a folder to serve, in one of its own.
func site(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "site")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVsftpd(t *testing.T) {
	dir := site(t)
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "b c?*.txt"), "two\n")
	write(t, filepath.Join(dir, "häus:1"), "three\n")
	write(t, filepath.Join(dir, "sub[1]", "deep", "d.txt"), "four\n")
	write(t, filepath.Join(dir, "raw\xff"), "five\n")
	old := time.Now().Add(-300 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "a.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "etc")); err != nil {
		t.Fatal(err)
	}
	url := "ftp://" + vsftpd(t, dir) + "/"
	c := newClient(t, Options{})

	resp, body := c.get(url)
	want := []string{"d sub%5B1%5D/", "f ./h%C3%A4us:1", "f a.txt", "f b%20c%3F*.txt", "f raw%FF", "l etc"}
	got := lines(t, resp, body)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("listing: got %q, want %q", got, want)
	}
	for name, want := range map[string]string{"a.txt": "one\n", "b%20c%3F*.txt": "two\n", "h%C3%A4us:1": "three\n", "raw%FF": "five\n", "sub%5B1%5D/deep/d.txt": "four\n"} {
		if resp, body := c.get(url + name); resp.StatusCode != 200 || body != want || resp.Header.Get(Via) != "net" {
			t.Errorf("%s: got %s, %q, %s", name, resp.Status, body, resp.Header.Get(Via))
		}
	}
	if resp, body := c.get(url + "sub%5B1%5D/"); !slices.Equal(lines(t, resp, body), []string{"d deep/"}) {
		t.Errorf("a folder with a pattern for a name: got %q", body)
	}
	if resp, _ := c.get(url + "sub%5B1%5D"); resp.StatusCode != 301 || !strings.HasSuffix(resp.Header.Get("Location"), "/sub[1]/") && !strings.HasSuffix(resp.Header.Get("Location"), "/sub%5B1%5D/") {
		t.Errorf("a folder without slash: got %s to %s", resp.Status, resp.Header.Get("Location"))
	}
	for _, name := range []string{"none", "none/", "sub%5B1%5D/none"} {
		if resp, _ := c.get(url + name); resp.StatusCode != 404 {
			t.Errorf("%s: got %s, want 404", name, resp.Status)
		}
	}
	if s := c.Stats()["ftp"]; s.Opened != 1 || s.Reused < 10 {
		t.Errorf("got %d connections opened, %d reused, want 1 for all", s.Opened, s.Reused)
	}

	// The listing's ETag is the file's, from one who has not seen the listing too.
	tag := tagOf(t, body, "a.txt")
	for _, c := range []*client{c, newClient(t, Options{})} {
		if resp, _ := c.get(url+"a.txt", "If-None-Match", tag); resp.StatusCode != 304 {
			t.Errorf("If-None-Match: got %s, want 304", resp.Status)
		}
	}
	if resp, body := newClient(t, Options{}).get(url + "a.txt"); resp.Header.Get("ETag") != tag || body != "one\n" {
		t.Errorf("ETag without listing: got %s, want %s", resp.Header.Get("ETag"), tag)
	}
}
