package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"harvest/gather/fetch"
)

// A vsftpd is a real FTP server on loopback, which anybody may read.
type vsftpd struct {
	addr string
	cmd  *exec.Cmd
}

const vsftpdConf = `listen=YES
listen_address=127.0.0.1
listen_port=PORT
background=NO
run_as_launching_user=YES
anonymous_enable=YES
no_anon_password=NO
anon_root=ROOT
secure_chroot_dir=EMPTY
seccomp_sandbox=NO
use_localtime=NO
xferlog_enable=NO
hide_ids=YES
`

// startVsftpd serves the folder root; dir is for its own files.
func startVsftpd(ctx context.Context, root, dir string, std std) (v *vsftpd, err error) {
	program, err := exec.LookPath("vsftpd")
	if err != nil {
		program = "/usr/sbin/vsftpd"
		if _, err := os.Stat(program); err != nil {
			return nil, errors.New("vsftpd is not installed")
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	empty, conf := filepath.Join(dir, "empty"), filepath.Join(dir, "vsftpd.conf")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return nil, err
	}
	text := replace(vsftpdConf, "PORT", port, "ROOT", root, "EMPTY", empty)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	v = &vsftpd{addr: "127.0.0.1:" + port, cmd: exec.Command(program, conf)}
	v.cmd.Stderr = std.err
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	if err := answers(ctx, v.addr); err != nil {
		_, stopped := v.stop()
		return nil, errors.Join(fmt.Errorf("vsftpd: %w", err), stopped)
	}
	return v, nil
}

// answers waits until someone listens at an address.
func answers(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// stop ends the server, and tells the processor time of it and its sessions.
func (v *vsftpd) stop() (cpu time.Duration, err error) {
	v.cmd.Process.Signal(os.Interrupt)
	err = v.cmd.Wait()
	var status *exec.ExitError
	if errors.As(err, &status) {
		err = nil // it was interrupted
	}
	return v.cmd.ProcessState.UserTime() + v.cmd.ProcessState.SystemTime(), err
}

// ftp fetches small files from a real FTP server: with a control connection
// that is kept, with one for each file, and as the files that they are.
func (b *gatherBench) ftp(ctx context.Context, args []string, std std) (err error) {
	if len(args) > 0 {
		return usagef("ftp takes no arguments")
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	root := filepath.Join(work, "ftp")
	if b.files == 0 {
		b.files = 1000
	}
	names, err := smallFiles(root, b.files)
	if err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil { // the server's user must get in
		return err
	}
	rows := [][]string{{"how", "files", "s", "files/s", "cpu ms", "server cpu ms", "times as fast"}}
	var slow float64
	for _, how := range []string{"a connection for each", "kept connection", "local file"} {
		v, err := startVsftpd(ctx, root, work, std)
		if err != nil {
			return err
		}
		base := "ftp://" + v.addr + "/"
		var o fetch.Options
		if how == "local file" {
			o.Local = []fetch.Local{{URL: base, Path: root}}
		}
		before, begin := processorTime(), time.Now()
		err = fetchEach(ctx, o, base, names, how == "a connection for each")
		wall, used := time.Since(begin), processorTime().sub(before)
		server, stopped := v.stop()
		if err = errors.Join(err, stopped); err != nil {
			return fmt.Errorf("%s: %w", how, err)
		}
		if slow == 0 {
			slow = wall.Seconds()
		}
		n := float64(len(names))
		rows = append(rows, []string{how, fmt.Sprint(len(names)), fmt.Sprintf("%.2f", wall.Seconds()), fmt.Sprintf("%.0f", n/wall.Seconds()),
			fmt.Sprintf("%.3f", (used.user+used.system).Seconds()*1e3/n), fmt.Sprintf("%.3f", server.Seconds()*1e3/n), fmt.Sprintf("%.1f", slow/wall.Seconds())})
	}
	table(std.out, rows)
	return nil
}

// smallFiles makes n of them.
func smallFiles(dir string, n int) (names []string, err error) {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprintf("f%05d.txt", i)
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "The small file %d.\n", i), 0o644); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// fetchEach reads all files, one after another, once their folder has been
// listed as a Gatherer does; alone closes the connection after each.
func fetchEach(ctx context.Context, o fetch.Options, base string, names []string, alone bool) error {
	t := fetch.New(o)
	defer t.CloseIdleConnections()
	if strings.HasPrefix(base, "ftp:") {
		if err := fetchOne(ctx, t, base); err != nil {
			return err
		}
	}
	for _, n := range names {
		if alone {
			t.CloseIdleConnections()
		}
		if err := fetchOne(ctx, t, base+n); err != nil {
			return err
		}
	}
	return nil
}

func fetchOne(ctx context.Context, rt http.RoundTripper, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || n == 0 {
		return fmt.Errorf("%s: %s, %d bytes", url, resp.Status, n)
	}
	return nil
}
