package gather

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/gather/crawl"
)

// TestFiles holds the tree to the promises of package fs.
func TestFiles(t *testing.T) {
	src := t.TempDir()
	write(t, src+"/a.txt", "a text\n")
	write(t, src+"/d/b.html", "<title>B</title>")
	a, err := OpenAll(t.TempDir(), slog.New(slog.DiscardHandler), Options{Bus: new(fs.Bus)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d := a.Files()
	if _, err := d.(fs.Maker).Mkdir(t.Context(), "docs", 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := a.Get("docs")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.setConfig(t.Context(), "root url=file://"+src+"\n"); err != nil {
		t.Fatal(err)
	}
	if c := once(t, g); c.Fetched.Load() != 2 {
		t.Fatalf("got %d fetched, want 2", c.Fetched.Load())
	}
	var hidden []string
	for _, name := range []string{"events", "log"} {
		hidden = append(hidden, "docs/"+name+".live", "docs/"+name+".wait")
	}
	fstest.Dir(t, d, fstest.Options{Hidden: hidden, Create: []string{"docs"}, Mkdir: []string{"."}})
}

// once makes one visit of a Gatherer that does not run.
func once(t *testing.T, g *Gatherer) *crawl.Counts {
	t.Helper()
	if err := g.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := g.next(time.Now())
	if err != nil || v == nil {
		t.Fatalf("no visit is to be made: %v", err)
	}
	g.gather(t.Context(), v)
	if g.last != nil {
		t.Fatal(g.last)
	}
	return &v.counts
}

// TestNginx gathers from a real server, twice: the second time nothing has a
// body, and robots.txt was obeyed in the server's own log.
func TestNginx(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
		if _, err := os.Stat(nginx); err != nil {
			t.Skip("nginx is not installed")
		}
	}
	dir := t.TempDir()
	www := filepath.Join(dir, "www")
	write(t, www+"/index.html", "<title>Home</title><a href=a.html>a</a> <a href=private/x.html>no</a> <a href=private/open.html>yes</a> <a href=sub>sub</a>")
	write(t, www+"/a.html", "<title>A</title><a href=gone.html>gone</a>")
	write(t, www+"/sub/index.html", "<title>Sub</title><a href=../big.txt>big</a>")
	write(t, www+"/big.txt", strings.Repeat("A line of a long text.\n", 10000))
	write(t, www+"/private/x.html", "<title>No</title>")
	write(t, www+"/private/open.html", "<title>Yes</title>")
	write(t, www+"/robots.txt", "User-agent: *\nDisallow: /private/\nAllow: /private/open.html\n")
	write(t, dir+"/nginx.conf", strings.ReplaceAll(`daemon off; pid DIR/pid; error_log DIR/error.log; worker_processes 1; user root;
events { }
http {
	types { text/html html; text/plain txt; }
	gzip on; gzip_types text/plain;
	client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3; uwsgi_temp_path DIR/t4; scgi_temp_path DIR/t5;
	log_format short '$request_uri $status $http_user_agent';
	access_log DIR/access.log short;
	server { listen unix:DIR/socket; root DIR/www; absolute_redirect off; }
}
`, "DIR", dir))
	if os.Getuid() != 0 {
		conf, err := os.ReadFile(dir + "/nginx.conf")
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/nginx.conf", strings.Replace(string(conf), " user root;", "", 1))
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", dir+"/nginx.conf")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGQUIT)
		cmd.Wait()
	}()
	// It is reached by a socket, under a name: no port to guess.
	rt := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		for {
			if c, err = new(net.Dialer).DialContext(ctx, "unix", dir+"/socket"); err == nil || ctx.Err() != nil {
				return c, err
			}
			select { // it has not begun to listen
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}}
	defer rt.CloseIdleConnections()
	g, err := Open(filepath.Join(dir, "g"), "test", slog.New(slog.DiscardHandler), Options{Transport: rt})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.setConfig(t.Context(), "root url=http://site.test/ delay=0s sitemaps=no\n"); err != nil {
		t.Fatal(err)
	}
	if c := once(t, g); c.Fetched.Load() != 5 || c.Failed.Load() != 1 || c.Excluded.Load() != 1 {
		t.Errorf("got fetched %d, failed %d, excluded %d, want 5, 1, 1", c.Fetched.Load(), c.Failed.Load(), c.Excluded.Load())
	}
	if c := once(t, g); c.Fetched.Load() != 0 || c.Unchanged.Load() != 5 || c.In.Load() != 0 {
		t.Errorf("again: got fetched %d, unchanged %d, %d bytes, want 0, 5, 0", c.Fetched.Load(), c.Unchanged.Load(), c.In.Load())
	}
	log, err := os.ReadFile(dir + "/access.log")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	slices.Sort(lines)
	want := []string{"/ 200", "/ 304", "/a.html 200", "/a.html 304", "/big.txt 200", "/big.txt 304", "/gone.html 404",
		"/private/open.html 200", "/private/open.html 304", "/robots.txt 200", "/sub 301", "/sub 301", "/sub/ 200", "/sub/ 304"}
	for i := range want {
		want[i] += " harvest/0"
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the server saw\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
