package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An nginx is a real web server on loopback for one run: what it logged counts
// once it has ended, so that no crawler can count in its own favour.
type nginx struct {
	dir  string // of its files
	addr string // host:port
	conf string // of its server block
	gzip bool

	cmd *exec.Cmd
}

// nginxProgram finds it, also where only root has it in the path.
func nginxProgram() (string, error) {
	if p, err := exec.LookPath("nginx"); err == nil {
		return p, nil
	}
	if _, err := os.Stat("/usr/sbin/nginx"); err == nil {
		return "/usr/sbin/nginx", nil
	}
	return "", errors.New("nginx is not installed")
}

// freePort is a port of this machine that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// nginxConf is one process that serves dir/www and logs every request with the
// connection it came by.
const nginxConf = `daemon off; master_process off; pid DIR/nginx.pid; error_log DIR/error.log warn;
events { worker_connections 4096; }
http {
	include /etc/nginx/mime.types; default_type application/octet-stream;
	client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3; uwsgi_temp_path DIR/t4; scgi_temp_path DIR/t5;
	log_format m '$msec $connection $status $body_bytes_sent $request_uri';
	access_log DIR/access.log m buffer=64k flush=1s;
	sendfile on; tcp_nopush on; keepalive_requests 100000; keepalive_timeout 60s;
	open_file_cache max=20000 inactive=600s;
	GZIP
	server { listen ADDR; root DIR/www; index index.html; autoindex off; SERVER }
}
`

// start begins to serve and returns when it answers.
func (n *nginx) start(ctx context.Context, std std) error {
	program, err := nginxProgram()
	if err != nil {
		return err
	}
	gzip := ""
	if n.gzip {
		gzip = "gzip on; gzip_comp_level 1; gzip_types text/css text/javascript application/xml text/plain;"
	}
	conf := strings.NewReplacer("DIR", n.dir, "ADDR", n.addr, "GZIP", gzip, "SERVER", n.conf).Replace(nginxConf)
	file := filepath.Join(n.dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(n.dir, "access.log")); err != nil {
		return err
	}
	n.cmd = exec.Command(program, "-p", n.dir, "-c", file)
	n.cmd.Stderr = std.err
	if err := n.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", n.addr)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			_, stopped := n.stop()
			return errors.Join(fmt.Errorf("nginx: %w", err), stopped)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// stop ends the server and reads its log.
func (n *nginx) stop() (log accessLog, err error) {
	n.cmd.Process.Signal(syscall.SIGQUIT) // if it has ended, Wait says so
	kill := time.AfterFunc(10*time.Second, func() { n.cmd.Process.Kill() })
	defer kill.Stop()
	if err := n.cmd.Wait(); err != nil {
		return log, fmt.Errorf("nginx: %w", err)
	}
	log.cpu = n.cmd.ProcessState.UserTime() + n.cmd.ProcessState.SystemTime()
	f, err := os.Open(filepath.Join(n.dir, "access.log"))
	if err != nil {
		return log, err
	}
	defer f.Close()
	return log, log.read(f)
}

// An accessLog is what a server saw of a run.
type accessLog struct {
	cpu         time.Duration // of the server
	requests    int
	pages       int                  // different HTML pages sent
	again       int                  // requests for what was sent before
	unchanged   int                  // answered by 304
	forbidden   int                  // that robots.txt forbids
	conns       int                  // connections
	bytes       int64                // of bodies
	sent        map[string]int       // how often each page was sent
	times       map[string][]float64 // when something was asked for, in seconds
	connections map[string]bool
}

// read takes the lines of a log.
func (l *accessLog) read(r io.Reader) error {
	l.sent, l.times, l.connections = make(map[string]int), make(map[string][]float64), make(map[string]bool)
	for lines := bufio.NewScanner(r); ; {
		if !lines.Scan() {
			l.conns = len(l.connections)
			return lines.Err()
		}
		f := strings.SplitN(lines.Text(), " ", 5)
		if len(f) == 5 {
			l.add(f[0], f[1], f[2], f[3], f[4])
		}
	}
}

func (l *accessLog) add(at, conn, status, bytes, uri string) {
	l.requests++
	l.connections[conn] = true
	if n, err := strconv.ParseInt(bytes, 10, 64); err == nil {
		l.bytes += n
	}
	if t, err := strconv.ParseFloat(at, 64); err == nil {
		l.times[uri] = append(l.times[uri], t)
	}
	if strings.HasPrefix(uri, "/python/whatsnew/") && !strings.HasPrefix(uri, "/python/whatsnew/3.11.html") {
		l.forbidden++
	}
	switch status {
	case "304":
		l.unchanged++
	case "200":
		path, _, _ := strings.Cut(uri, "?")
		if l.sent[uri]++; l.sent[uri] > 1 {
			l.again++
		} else if strings.HasSuffix(path, ".html") || strings.HasSuffix(path, "/") {
			l.pages++
		}
	}
}

// count is how many requests there were below a path.
func (l *accessLog) count(below string) (n int) {
	for uri, times := range l.times {
		if strings.HasPrefix(uri, below) {
			n += len(times)
		}
	}
	return n
}

// rest tells how long a path was left alone between two requests.
func (l *accessLog) rest(uri string) string {
	times := l.times[uri]
	least := 0.0
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; i == 1 || gap < least {
			least = gap
		}
	}
	if len(times) < 2 {
		return "never asked for again"
	}
	return fmt.Sprintf("asked for again after %.1f s at the soonest", least)
}

// busiest is the most requests there were in so many seconds.
func (l *accessLog) busiest(seconds float64) (most int) {
	var all []float64
	for _, times := range l.times {
		all = append(all, times...)
	}
	slices.Sort(all)
	for first, last := 0, 0; last < len(all); last++ {
		for all[last]-all[first] > seconds {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
