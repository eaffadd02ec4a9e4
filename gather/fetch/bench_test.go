package fetch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// read asks for a URL and reads the answer to its end.
func read(b *testing.B, rt http.RoundTripper, url string) int64 {
	req, err := http.NewRequestWithContext(b.Context(), "GET", url, nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("%s: got %s, %v", url, resp.Status, err)
	}
	return n
}

// files makes 1,000 small ones.
func files(b *testing.B) string {
	dir := filepath.Join(b.TempDir(), "site")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d.txt", i)), []byte(strings.Repeat("some text\n", 100)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// BenchmarkFTP fetches 1,000 files of 1,000 bytes from vsftpd, with the control
// connection kept, and with one for each; as Debian runs the server, which needs
// root, and in its simplest form.
func BenchmarkFTP(b *testing.B) {
	for _, how := range []string{"simple", "debian"} {
		dir := files(b)
		more := []string{"xferlog_enable=NO", "log_ftp_protocol=NO"}
		if how == "debian" {
			if os.Getuid() != 0 {
				b.Skip("only root may run it so")
			}
			for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
				if err := os.Chmod(d, 0o755); err != nil {
					b.Fatal(err)
				}
			}
			empty := b.TempDir()
			if err := os.Chmod(empty, 0o555); err != nil {
				b.Fatal(err)
			}
			more = append(more, "run_as_launching_user=NO", "nopriv_user=nobody", "secure_chroot_dir="+empty)
		}
		addr := vsftpd(b, dir, more...)
		for _, kept := range []bool{true, false} {
			b.Run(fmt.Sprintf("files=1000/server=%s/kept=%t", how, kept), func(b *testing.B) {
				for b.Loop() {
					t := New(Options{})
					read(b, t, "ftp://"+addr+"/") // as a Gatherer does
					for i := range 1000 {
						read(b, t, fmt.Sprintf("ftp://%s/f%03d.txt", addr, i))
						if !kept {
							t.CloseIdleConnections()
						}
					}
					t.CloseIdleConnections()
				}
			})
		}
	}
}

// nginx serves a folder.
func nginx(b *testing.B, dir string) string {
	prog := program(b, "nginx", "/usr/sbin/nginx")
	port := freePort(b)
	at := b.TempDir()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	conf := filepath.Join(at, "nginx.conf")
	text := fmt.Sprintf(`daemon off; worker_processes 1; pid %s/pid; error_log %s/error; %s
events { worker_connections 512; }
http { access_log off; client_body_temp_path AT/b; proxy_temp_path AT/p; fastcgi_temp_path AT/f; uwsgi_temp_path AT/u; scgi_temp_path AT/s;
keepalive_requests 100000; sendfile on; open_file_cache off; server { listen 127.0.0.1:%s; root %s; } }
`, at, at, user, port, dir)
	text = strings.ReplaceAll(text, "AT", at)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	run(b, port, prog, "-p", at, "-c", conf)
	return "127.0.0.1:" + port
}

// BenchmarkLocal reads 1,000 files of 1,000 bytes as they are mapped, and from
// nginx beside it, over a connection that is kept and over one for each.
func BenchmarkLocal(b *testing.B) {
	dir := files(b)
	url := "http://" + nginx(b, dir)
	for _, c := range []struct {
		name string
		o    Options
		drop bool
	}{
		{"local", Options{Local: []Local{{url + "/", dir}}}, false},
		{"net", Options{}, false},
		{"net-unkept", Options{}, true},
	} {
		b.Run("files=1000/"+c.name, func(b *testing.B) {
			t := New(c.o)
			defer t.CloseIdleConnections()
			for b.Loop() {
				for i := range 1000 {
					read(b, t, fmt.Sprintf("%s/f%03d.txt", url, i))
					if c.drop {
						t.CloseIdleConnections()
					}
				}
			}
		})
	}
}

// BenchmarkDecode undoes the codings of a page.
func BenchmarkDecode(b *testing.B) {
	page, err := exec.Command("sh", "-c", "ls -lR /usr/share/doc | head -c 50000").Output()
	if err != nil {
		b.Fatal(err)
	}
	d := newDecoders(200)
	for _, code := range []string{"gzip", "br", "zstd"} {
		packed := pack(b, code, string(page))
		b.Run(code, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Encoding": {code}}, Body: io.NopCloser(strings.NewReader(string(packed)))}
				d.decode(resp)
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}
