package fetch

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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

// lsLR is what a site's nightly job writes.
func lsLR(t *testing.T, dir string) []byte {
	t.Helper()
	cmd := exec.Command("ls", "-lR")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReady: a site with an ls-lR is enumerated by reading that, and its files
// have the ETags that they have one by one.
func TestReady(t *testing.T) {
	dir := site(t)
	var want []string
	for _, name := range []string{"pub/a.txt", "pub/b c.txt", "pub/deep/er/c.txt", "other/d.txt", "top.txt"} {
		write(t, filepath.Join(dir, name), name+"\n")
		want = append(want, "f ./"+Escape(name))
	}
	old := time.Now().Add(-400 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "pub/a.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	ready := lsLR(t, dir)
	for name, text := range map[string][]byte{"ls-lR": ready, "ls-lR.gz": pack(t, "gzip", string(ready))} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(dir, name), string(text))
			t.Cleanup(func() { os.Remove(filepath.Join(dir, name)) })
			url := "ftp://" + vsftpd(t, dir) + "/"
			logFile := filepath.Join(dir, "..", "vsftpd.log")
			os.Truncate(logFile, 0)
			c := newClient(t, Options{})
			resp, body := c.get(url)
			got := lines(t, resp, body)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			log, err := os.ReadFile(logFile)
			if err != nil {
				t.Fatal(err)
			}
			if lists, retrs := bytes.Count(log, []byte(`"LIST"`)), bytes.Count(log, []byte(`"RETR `)); lists != 1 || retrs != 1 {
				t.Errorf("got %d LIST and %d RETR, want 1 and 1:\n%s", lists, retrs, log)
			}
			for _, ref := range []string{"./pub/a.txt", "./pub/b%20c.txt", "./top.txt"} {
				tag := tagOf(t, body, ref)
				if resp, _ := newClient(t, Options{}).get(url+ref[2:], "If-None-Match", tag); resp.StatusCode != 304 {
					t.Errorf("%s: got %s for the ETag of the list, want 304", ref, resp.Status)
				}
				if resp, text := c.get(url + ref[2:]); resp.Header.Get("ETag") != tag || text == "" {
					t.Errorf("%s: got %s, want %s", ref, resp.Header.Get("ETag"), tag)
				}
			}
			if s := c.Stats()["ftp"]; s.Opened != 1 {
				t.Errorf("got %d connections, want 1", s.Opened)
			}
		})
	}
	t.Run("of another folder", func(t *testing.T) {
		write(t, filepath.Join(dir, "ls-lR"), string(lsLR(t, filepath.Join(dir, "pub"))))
		c := newClient(t, Options{})
		resp, body := c.get("ftp://" + vsftpd(t, dir) + "/")
		if got, want := lines(t, resp, body), []string{"f ls-lR", "d other/", "d pub/", "f top.txt"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("not kept any more", func(t *testing.T) {
		write(t, filepath.Join(dir, "ls-lR"), string(ready))
		if err := os.Chtimes(filepath.Join(dir, "ls-lR"), old, old); err != nil {
			t.Fatal(err)
		}
		resp, body := newClient(t, Options{}).get("ftp://" + vsftpd(t, dir) + "/")
		if got := lines(t, resp, body); !slices.Contains(got, "d pub/") {
			t.Errorf("got %q, want the folders as they are", got)
		}
	})
}

// TestFTPS: TLS from the first byte, or asked for before a password is told; a
// server that insists takes up the session of the control connection.
func TestFTPS(t *testing.T) {
	dir := site(t)
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "sub", "b.txt"), "two\n")
	s := httptest.NewTLSServer(nil) // for its certificate
	defer s.Close()
	pem := certificate(t, s.TLS.Certificates[0])
	conf := s.Client().Transport.(*http.Transport).TLSClientConfig
	tls := []string{"ssl_enable=YES", "allow_anon_ssl=YES", "force_anon_logins_ssl=YES", "force_anon_data_ssl=YES", "require_ssl_reuse=YES", "rsa_cert_file=" + pem}

	t.Run("implicit", func(t *testing.T) {
		addr := vsftpd(t, dir, append(tls, "implicit_ssl=YES")...)
		c := newClient(t, Options{TLS: conf})
		resp, body := c.get("ftps://" + addr + "/")
		if got, want := lines(t, resp, body), []string{"f a.txt", "d sub/"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, body := c.get("ftps://" + addr + "/sub/b.txt"); body != "two\n" {
			t.Errorf("got %q", body)
		}
		if _, _, err := newClient(t, Options{}).try(t.Context(), "ftps://"+addr+"/"); err == nil {
			t.Error("a certificate of nobody's was taken")
		}
	})
	t.Run("explicit", func(t *testing.T) {
		addr := vsftpd(t, dir, tls...)
		secrets, err := ParseSecrets("ftp host=" + addr + " user=anonymous password=x\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, body := newClient(t, Options{TLS: conf, Secrets: secrets}).get("ftp://" + addr + "/a.txt"); body != "one\n" {
			t.Errorf("got %q", body)
		}
		if resp, _ := newClient(t, Options{}).get("ftp://" + addr + "/a.txt"); resp.StatusCode != 401 {
			t.Errorf("without TLS: got %s, want 401, as the server wants it", resp.Status)
		}
	})
	t.Run("refused", func(t *testing.T) {
		addr := vsftpd(t, dir)
		secrets, err := ParseSecrets("ftp host=" + addr + " user=anonymous password=x\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, body := newClient(t, Options{Secrets: secrets}).get("ftp://" + addr + "/a.txt"); body != "one\n" {
			t.Errorf("a server without TLS: got %q", body)
		}
	})
}

// certificate writes one, with its key, as servers want it.
func certificate(t *testing.T, c tls.Certificate) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	b = append(b, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	name := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestKept: 1,000 files come by few connections, and a connection that the
// server has closed is replaced without a word.
func TestKept(t *testing.T) {
	dir := site(t)
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	addr := vsftpd(t, dir, "idle_session_timeout=1")
	c := newClient(t, Options{})
	c.get("ftp://" + addr + "/a.txt")
	ctl := c.keep.idle[0].conn.(*ftpConn).ctl
	if _, err := ctl.Conn.Read(make([]byte, 100)); err != nil { // 421, and the server is gone
		t.Fatal(err)
	}
	if _, body := c.get("ftp://" + addr + "/a.txt"); body != "one\n" {
		t.Errorf("got %q", body)
	}
	if s := c.Stats()["ftp"]; s.Opened != 2 {
		t.Errorf("got %d connections, want 2", s.Opened)
	}

	// Room for one: the other is let go, and an idle one in time.
	addr, other := vsftpd(t, dir), vsftpd(t, dir)
	d := newClient(t, Options{Kept: 1, Idle: 50 * time.Millisecond})
	for range 3 {
		d.get("ftp://" + addr + "/a.txt")
		d.get("ftp://" + other + "/a.txt")
	}
	if s := d.Stats()["ftp"]; s.Opened != 6 || s.Evicted < 5 {
		t.Errorf("got %+v, want 6 opened and 5 of them evicted", s)
	}
	for began := time.Now(); d.Stats()["ftp"].Evicted < 6; {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("got %+v, want the idle one evicted too", d.Stats()["ftp"])
		}
		time.Sleep(time.Millisecond)
	}
}
