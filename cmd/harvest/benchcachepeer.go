package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cachePeer is a cache that is measured: ours, or one that others use, each
// as it is meant to be run for speed, without an access log.
type cachePeer struct {
	name    string
	program string // "" is this one
	forward bool   // a proxy; otherwise it stands before the origin
	disk    bool   // what it serves comes from files: it has no memory of its own
	conf    string // with DIR, PORT and ORIGIN to be replaced
	argv    []string

	dir, addr string
	cmd       *exec.Cmd
}

func cachePeers() []*cachePeer {
	return []*cachePeer{
		{name: "harvest", forward: true, conf: oursConf + "memory=1G disk=8G\n"},
		{name: "harvest, disk", forward: true, disk: true, conf: oursConf + "memory=0 disk=8G\n"},
		{name: "harvest, accel", conf: "accel addr=127.0.0.1:PORT url=http://ORIGIN\naccess=none\nmemory=1G disk=8G\n"},
		{name: "squid", program: "squid", forward: true, conf: squidConf + "cache_mem 1024 MB\nmaximum_object_size_in_memory 32 MB\nmemory_replacement_policy heap GDSF\n", argv: []string{"-N", "-f", "DIR/conf"}},
		{name: "squid, disk", program: "squid", forward: true, disk: true, conf: squidConf + "cache_mem 0 MB\nmaximum_object_size_in_memory 0 KB\ncache_dir aufs DIR/store 8000 16 64\n", argv: []string{"-N", "-f", "DIR/conf"}},
		{name: "varnish", program: "varnishd", conf: "vcl 4.1;\nbackend default { .host = \"ORIGINHOST\"; .port = \"ORIGINPORT\"; }\n",
			argv: []string{"-F", "-j", "none", "-n", "DIR/work", "-f", "DIR/conf", "-a", "127.0.0.1:PORT", "-s", "malloc,2G", "-p", "thread_pool_min=100", "-p", "thread_pools=2"}},
		{name: "nginx", program: "nginx", disk: true, conf: nginxCacheConf, argv: []string{"-p", "DIR", "-c", "DIR/conf"}},
	}
}

const oursConf = "listen addr=127.0.0.1:PORT\negress allow=127.0.0.0/8\naccess=none\n"

const squidConf = `http_port 127.0.0.1:PORT
http_access allow all
visible_hostname bench.test
pid_filename DIR/pid
coredump_dir DIR
cache_log DIR/cache.log
access_log none
cache_store_log none
shutdown_lifetime 0 seconds
max_filedescriptors 16384
pinger_enable off
netdb_filename none
icp_port 0
maximum_object_size 64 MB
collapsed_forwarding on
`

// tcp_nopush is off, as it made bodies of 100 KB wait 40 ms.
const nginxCacheConf = `user root; daemon off; worker_processes 2; pid DIR/pid; error_log DIR/error.log;
events { worker_connections 4096; }
http {
	access_log off; sendfile on; tcp_nopush off; keepalive_requests 100000000; open_file_cache max=4000;
	client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3; uwsgi_temp_path DIR/t4; scgi_temp_path DIR/t5;
	proxy_cache_path DIR/cache levels=1:2 keys_zone=c:128m max_size=8g inactive=600m;
	upstream o { server ORIGIN; keepalive 64; }
	server { listen 127.0.0.1:PORT backlog=4096;
		location / { proxy_pass http://o; proxy_set_header Connection ""; proxy_set_header Host ORIGIN; proxy_http_version 1.1;
			proxy_cache c; proxy_cache_lock on; proxy_cache_lock_timeout 30s; } }
}
`

// installed finds the program of a peer, also where only root has it in the path.
func (p *cachePeer) installed() (string, error) {
	if p.program == "" {
		return os.Executable()
	}
	if path, err := exec.LookPath(p.program); err == nil {
		return path, nil
	}
	path := "/usr/sbin/" + p.program
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not installed", p.program)
	}
	return path, nil
}

// start runs a peer in a folder of its own, and returns when it answers.
func (p *cachePeer) start(ctx context.Context, work, origin string, std std) error {
	program, err := p.installed()
	if err != nil {
		return err
	}
	if p.addr == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		p.dir, p.addr = filepath.Join(work, strings.ReplaceAll(p.name, ", ", "-")), "127.0.0.1:"+port
	}
	fill, err := p.replacer(origin)
	if err != nil {
		return err
	}
	argv := []string{"serve", "-d", p.dir}
	file := filepath.Join(p.dir, "conf")
	if p.program == "" {
		file = filepath.Join(p.dir, "cache", "main", "config")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(fill.Replace(p.conf)), 0o644); err != nil {
		return err
	}
	if p.program != "" {
		argv = nil
		for _, a := range p.argv {
			argv = append(argv, fill.Replace(a))
		}
	}
	if p.program == "squid" {
		if err := p.prepareSquid(ctx, program, argv); err != nil {
			return err
		}
	}
	p.cmd = exec.Command(program, argv...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.program == "" {
		p.cmd.Stderr = std.err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	if err := p.ready(ctx); err != nil {
		p.stop(os.Kill)
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

func (p *cachePeer) replacer(origin string) (*strings.Replacer, error) {
	host, oport, err := net.SplitHostPort(origin)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(p.addr)
	return strings.NewReplacer("DIR", p.dir, "ORIGINHOST", host, "ORIGINPORT", oport, "ORIGIN", origin, "PORT", port), err
}

// prepareSquid makes the folders that squid wants, which it uses as another user
// if root starts it.
func (p *cachePeer) prepareSquid(ctx context.Context, program string, argv []string) error {
	if os.Geteuid() == 0 {
		u, err := user.Lookup("proxy")
		if err != nil {
			return err
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2, os.Chown(p.dir, uid, gid), os.Chmod(filepath.Dir(p.dir), 0o755)); err != nil {
			return err
		}
	}
	if !p.disk {
		return nil
	}
	out, err := exec.CommandContext(ctx, program, append([]string{"-z"}, argv...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("squid -z: %w: %s", err, out)
	}
	return err
}

// ready waits until the peer takes connections.
func (p *cachePeer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", p.addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// stop ends the peer by a signal.
func (p *cachePeer) stop(sig os.Signal) {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(sig)
	t := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
	p.cmd.Wait()
	t.Stop()
	p.cmd = nil
}

// processes are the peer's own and those it started.
func (p *cachePeer) processes() []int {
	all := []int{p.cmd.Process.Pid}
	for i := 0; i < len(all); i++ {
		for _, task := range glob(fmt.Sprintf("/proc/%d/task/*/children", all[i])) {
			b, err := os.ReadFile(task)
			if err != nil {
				continue
			}
			for f := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

func glob(pattern string) []string {
	all, err := filepath.Glob(pattern)
	if err != nil {
		panic(err) // of a pattern of ours
	}
	return all
}

// cpu is the processor time that the peer has used, to the hundredth of a second
// that Linux tells it.
func (p *cachePeer) cpu() time.Duration {
	var ticks int64
	for _, pid := range p.processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) > 12 {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			ticks += user + system
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory is what the peer has resident, of shared pages its share.
func (p *cachePeer) memory() int64 {
	var kb int64
	for _, pid := range p.processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "Pss:"); ok {
				n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
				kb += n
			}
		}
	}
	return kb << 10
}
