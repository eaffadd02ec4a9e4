package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// gophernicus serves a folder and returns its host and port.
func gophernicus(t testing.TB, dir string) string {
	t.Helper()
	prog := program(t, "gophernicus", "/usr/sbin/gophernicus")
	if os.Getuid() == 0 { // it refuses to run as root
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	port := freePort(t)
	su := ""
	if os.Getuid() == 0 {
		su = ",su=nobody"
	}
	run(t, port, program(t, "socat"), "TCP-LISTEN:"+port+",bind=127.0.0.1,reuseaddr,fork",
		fmt.Sprintf("EXEC:%s -h localhost -p %s -r %s -nv -nx -nd%s", prog, port, dir, su))
	return "localhost:" + port
}

func TestGophernicus(t *testing.T) {
	dir := site(t)
	write(t, filepath.Join(dir, "a.txt"), "one\n.two\n..three\n")
	write(t, filepath.Join(dir, "sub", "b.html"), "<title>b</title>")
	write(t, filepath.Join(dir, "sub", "gophermap"), "Welcome\n0A text\t/a.txt\n1Elsewhere\t/x\tgopher.example.org\t7070\nhThe web\tURL:https://example.org/x\n7Search\t/find\n")
	write(t, filepath.Join(dir, "pic.gif"), "GIF89a.")
	url := "gopher://" + gophernicus(t, dir) + "/"
	c := newClient(t, Options{})

	resp, body := c.get(url)
	got := lines(t, resp, body)
	for _, want := range []string{"f /0/a.txt", "d /1/sub", "f /g/pic.gif"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.TrimSuffix(s, "/") == want }) {
			t.Errorf("no %s in the listing: %q", want, got)
		}
	}
	if resp, body := c.get(url + "0/a.txt"); body != "one\r\n.two\r\n..three\r\n" || resp.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("a text: got %q, %s", body, resp.Header.Get("Content-Type"))
	}
	if _, body := c.get(url + "g/pic.gif"); body != "GIF89a." {
		t.Errorf("a picture: got %q", body)
	}
	resp, body = c.get(url + "1/sub")
	got = lines(t, resp, body)
	want := []string{"f /0/a.txt", "s /7/find", "d gopher://gopher.example.org:7070/1/x", "f https://example.org/x"}
	if !slices.Equal(got, want) {
		t.Errorf("a map: got %q, want %q", got, want)
	}
	if !strings.Contains(body, "\tA text\n") {
		t.Errorf("no title in %q", body)
	}
	if resp, _ := c.get(url + "0/none.txt"); resp.StatusCode != 404 {
		t.Errorf("what is not there: got %s, want 404", resp.Status)
	}
	if resp, _ := c.get(url + "7/find"); resp.StatusCode != 403 {
		t.Errorf("a question: got %s, want 403", resp.Status)
	}
}

// pygopherd serves a folder with Gopher+.
func pygopherd(t testing.TB, dir string) string {
	t.Helper()
	prog := program(t, "pygopherd", "/usr/sbin/pygopherd")
	text, err := os.ReadFile("/etc/pygopherd/pygopherd.conf")
	if err != nil {
		t.Skipf("%v: see .ci/install", err)
	}
	port := freePort(t)
	var conf []string
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(line, " ")
		switch key {
		case "port", "root", "usechroot", "pidfile", "logmethod", "setuid", "setgid", "mimetypes", "interface", "servername", "cachetime":
		case "[logger]\n":
			conf = append(conf, line, "logmethod = none\n")
		default:
			conf = append(conf, line)
		}
		if line == "[pygopherd]\n" {
			conf = append(conf, "port = "+port+"\nroot = "+dir+"\nusechroot = no\ninterface = 127.0.0.1\nservername = localhost\n"+
				"mimetypes = /etc/pygopherd/mime.types:/etc/mime.types\n")
		}
		if line == "[handlers.dir.DirHandler]\n" {
			conf = append(conf, "cachetime = 0\n")
		}
	}
	name := filepath.Join(t.TempDir(), "pygopherd.conf")
	write(t.(*testing.T), name, strings.Join(conf, ""))
	run(t, port, prog, name)
	return "localhost:" + port
}

func TestGopherPlus(t *testing.T) {
	dir := site(t)
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "a.txt.abstract"), "What it is about.\n")
	write(t, filepath.Join(dir, "sub", "b.txt"), "two\n")
	changed := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "a.txt"), changed, changed); err != nil {
		t.Fatal(err)
	}
	url := "gopher://" + pygopherd(t, dir) + "/"
	c := newClient(t, Options{})

	resp, body := c.get(url)
	got := lines(t, resp, body)
	if want := []string{"f /0/a.txt", "d /1/sub"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	tag := tagOf(t, body, "/0/a.txt")
	if tag == "-" {
		t.Fatalf("no ETag in %q", body)
	}
	before := c.Stats()["gopher"].Opened
	if resp, _ := c.get(url+"0/a.txt", "If-None-Match", tag); resp.StatusCode != 304 {
		t.Errorf("If-None-Match: got %s, want 304", resp.Status)
	}
	if n := c.Stats()["gopher"].Opened - before; n != 0 {
		t.Errorf("what the menu told was asked again: %d connections", n)
	}
	resp, body = c.get(url + "0/a.txt")
	if body != "one\n" || resp.Header.Get("ETag") != tag {
		t.Errorf("got %q, ETag %s, want %s", body, resp.Header.Get("ETag"), tag)
	}
	if got := resp.Header.Get(Abstract); got != "What%20it%20is%20about." {
		t.Errorf("abstract: got %q", got)
	}

	// One that has seen no menu but of elsewhere asks about the object itself.
	d := newClient(t, Options{})
	d.get(url + "1/sub")
	if resp, _ := d.get(url+"0/a.txt", "If-None-Match", tag); resp.StatusCode != 304 {
		t.Errorf("without the menu: got %s, want 304", resp.Status)
	}
	write(t, filepath.Join(dir, "a.txt"), "uno\n")
	e := newClient(t, Options{})
	e.get(url)
	if resp, body := e.get(url+"0/a.txt", "If-None-Match", tag); resp.StatusCode != 200 || body != "uno\n" {
		t.Errorf("changed: got %s, %q", resp.Status, body)
	}
	if resp, _ := e.get(url + "0/none"); resp.StatusCode != 404 {
		t.Errorf("what is not there: got %s, want 404", resp.Status)
	}
}
