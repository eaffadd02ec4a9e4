package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A client asks one Transport, so that what is kept between requests is.
type client struct {
	t *testing.T
	*Transport
}

func newClient(t *testing.T, o Options) *client {
	c := &client{t, New(o)}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// get answers a request with its body.
func (c *client) get(url string, header ...string) (*http.Response, string) {
	c.t.Helper()
	resp, body, err := c.try(c.t.Context(), url, header...)
	if err != nil {
		c.t.Fatalf("%s: %v", url, err)
	}
	return resp, body
}

func (c *client) try(ctx context.Context, url string, header ...string) (*http.Response, string, error) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// lines gives a listing as kind and reference, a blank between.
func lines(t *testing.T, resp *http.Response, body string) (out []string) {
	t.Helper()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != ListingType {
		t.Fatalf("got %s, %s, want a listing", resp.Status, resp.Header.Get("Content-Type"))
	}
	for line := range strings.Lines(body) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 5 {
			t.Fatalf("listing: got %q", line)
		}
		out = append(out, f[0]+" "+f[4])
	}
	return out
}

// tagOf is the ETag that a listing tells of a reference.
func tagOf(t *testing.T, body, href string) string {
	t.Helper()
	for line := range strings.Lines(body) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) >= 5 && f[4] == href {
			return f[3]
		}
	}
	t.Fatalf("no %s in the listing:\n%s", href, body)
	return ""
}

// freePort is a port of loopback that nobody had a moment ago.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// run starts a server of Debian's on a port, and waits until it listens.
func run(t testing.TB, port string, name string, arg ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(name, arg...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("%v: see .ci/install", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	for began := time.Now(); ; {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: %v\n%s", name, err, &out)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s does not listen\n%s", name, &out)
		}
	}
}

// program is where one is, or the test is skipped.
func program(t testing.TB, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	t.Skipf("%s is not installed: see .ci/install", names[0])
	return ""
}

// vsftpd serves a folder to anybody, and returns its host and port.
func vsftpd(t testing.TB, dir string, more ...string) string {
	t.Helper()
	prog := program(t, "vsftpd", "/usr/sbin/vsftpd")
	port := freePort(t)
	empty := t.TempDir()
	conf := filepath.Join(t.TempDir(), "vsftpd.conf")
	text := fmt.Sprintf(`listen=YES
listen_address=127.0.0.1
listen_port=%s
background=NO
run_as_launching_user=YES
anonymous_enable=YES
no_anon_password=NO
anon_root=%s
secure_chroot_dir=%s
seccomp_sandbox=NO
use_localtime=NO
vsftpd_log_file=%s
xferlog_enable=YES
log_ftp_protocol=YES
hide_ids=YES
%s
`, port, dir, empty, filepath.Join(dir, "..", "vsftpd.log"), strings.Join(more, "\n"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, port, prog, conf)
	return "127.0.0.1:" + port
}

// socat serves with a program that is started for each connection.
func socat(t testing.TB, command string) string {
	t.Helper()
	port := freePort(t)
	run(t, port, program(t, "socat"), "TCP-LISTEN:"+port+",bind=127.0.0.1,reuseaddr,fork", "EXEC:"+command+",nofork")
	return "127.0.0.1:" + port
}
