package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tryAll is run in a jail, told of things to try, and tells what it got away with.
func tryAll(args []string) error {
	for _, a := range args {
		what, arg, _ := strings.Cut(a, "=")
		if err := tries[what](arg); err == nil {
			fmt.Printf("%s %s\n", what, arg)
		}
	}
	fmt.Println("tried")
	return nil
}

var tries = map[string]func(arg string) error{
	"tcp":  dial("tcp"),
	"udp":  dial("udp"),
	"unix": dial("unix"),
	"listen": func(string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			l.Close()
		}
		return err
	},
	"netlink": func(string) error { return second(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)) },
	"packet":  func(string) error { return second(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
	"io_uring": func(string) error {
		_, _, no := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
		if no == unix.EFAULT { // it would have been done
			return nil
		}
		return no
	},
	"shm": func(string) error { return second(unix.SysvShmGet(0, 4096, 0o600|unix.IPC_CREAT)) },
	"read": func(name string) error {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Read(make([]byte, 1))
		if st, _ := f.Stat(); st.IsDir() {
			_, err = f.Readdirnames(1)
		}
		return err
	},
	"write":  func(name string) error { return os.WriteFile(name, []byte("x"), 0o644) },
	"mkdir":  func(name string) error { return os.Mkdir(name, 0o755) },
	"remove": func(name string) error { return os.Remove(name) },
	"chmod":  func(name string) error { return os.Chmod(name, 0o777) },
	"signal": func(pid string) error {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		return syscall.Kill(n, 0)
	},
	"ptrace": func(pid string) error {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		return unix.PtraceAttach(n)
	},
	"setuid":  func(string) error { return syscall.Setresuid(0, 0, 0) },
	"userns":  func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"chroot":  func(string) error { return unix.Chroot("/tmp") },
	"mount":   func(string) error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	"nproc":   func(string) error { return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}) },
	"memfd":   func(string) error { return second(unix.MemfdCreate("x", 0)) },
	"handles": func(string) error { return second(os.ReadDir("/proc/self/fd/5")) },
}

func second[T any](_ T, err error) error { return err }

func dial(network string) func(string) error {
	return func(addr string) error {
		c, err := net.Dial(network, addr)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("here I am"))
		return err
	}
}

// outside makes all that the jailed are to try to get at, each of which anyone
// on the machine may have.
func outside(t *testing.T) (args []string) {
	dir, err := os.MkdirTemp("/var/tmp", "jail-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	os.Chmod(secret, 0o666)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	sock := filepath.Join(dir, "socket")
	ux, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ux.Close() })
	os.Chmod(sock, 0o777)
	abstract := fmt.Sprintf("@harvest-jail-test-%d", os.Getpid())
	ab, err := net.Listen("unix", abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ab.Close() })
	pid := strconv.Itoa(os.Getpid())
	return []string{
		"tcp=" + tcp.Addr().String(), "udp=" + udp.LocalAddr().String(), "unix=" + sock, "unix=" + abstract, "listen",
		"netlink", "packet", "io_uring", "shm", "read=" + secret, "read=" + dir, "read=/root", "read=/etc/passwd", "read=/etc/shadow",
		"read=/proc/" + pid + "/environ", "read=/var", "write=" + secret, "write=" + dir + "/new", "write=/usr/x", "write=/etc/x", "write=/dev/shm/x",
		"write=/var/tmp/x", "mkdir=" + dir + "/d", "remove=" + secret, "signal=" + pid, "ptrace=" + pid,
		"setuid", "userns", "chroot", "mount", "nproc", "memfd", "handles",
	}
}

// TestEscape: nothing that is tried from inside works, on either ground, and
// what anyone may do on the machine is no exception.
func TestEscape(t *testing.T) {
	args := outside(t)
	everywhere(t, func(t *testing.T, without int) {
		got, err := output(t, &Cmd{Path: "try", Args: args, Inside: true, without: without})
		if err != nil || got != "tried\n" {
			t.Errorf("got away with %q, %v", got, err)
		}
	})
}

// TestEscapeGuards: each guard alone keeps what it is there for, so that where
// one is lacking the other still does.
func TestEscapeGuards(t *testing.T) {
	args := outside(t)
	for _, c := range []struct {
		name    string
		without int
		want    []string // that it gets away with, by how they begin
	}{
		{"namespaces and filter", noLandlock, nil},
		{"warden and filter", noSpaces | noLandlock, []string{"read ", "write ", "mkdir ", "remove ", "signal "}},
		// Landlock knows no UDP, and of TCP not the multipath kind.
		{"warden and Landlock", noSpaces | noFilter, []string{"udp ", "listen ", "unix /", "netlink ", "io_uring ", "shm ", "userns ", "memfd "}},
	} {
		got, err := output(t, &Cmd{Path: "try", Args: args, Inside: true, without: c.without})
		if err != nil || !strings.HasSuffix(got, "tried\n") {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
		for line := range strings.Lines(strings.TrimSuffix(got, "tried\n")) {
			ok := false
			for _, w := range c.want {
				ok = ok || strings.HasPrefix(line, w)
			}
			if !ok {
				t.Errorf("%s: got away with %s", c.name, line)
			}
		}
	}
}

// linger begins processes in sessions and groups of their own, which keep file
// 0 open, and ends with what is in the argument.
const linger = `exec 3<&0
(setsid sleep 1000 <&3 &)
setsid sh -c 'setsid sleep 1000 <&3 & trap "" TERM INT HUP; sleep 1000 <&3' <&3 &
(trap '' HUP TERM; sleep 1000 <&3) &
`

// held gives a file for a program to hold, and a func that tells whether anyone
// does still, waiting for d.
func held(t *testing.T) (w *os.File, gone func() error) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return w, func() error {
		w.Close()
		r.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err := r.Read(make([]byte, 1))
		if err == io.EOF {
			return nil
		}
		return fmt.Errorf("somebody is left: %w", err)
	}
}

func TestNobodyLeft(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		for name, c := range map[string]Cmd{
			"ended":  {Path: script(t, linger+"exit 0")},
			"failed": {Path: script(t, linger+"exit 1")},
			"killed": {Path: script(t, linger+"while :; do sleep 1; done"), Wall: 300 * time.Millisecond},
			"output": {Path: script(t, linger+"yes"), Output: 1 << 20},
			"bomb":   {Path: script(t, "exec 3<&0; f() { f <&3 | f <&3 & }; f; sleep 100"), Wall: time.Second, Procs: 40},
		} {
			w, gone := held(t)
			c.Stdin, c.without = w, without
			_, err := output(t, &c)
			if (err == nil) != (name == "ended") {
				t.Errorf("%s: got %v", name, err)
			}
			w.Close()
			if err := gone(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestServerKilled: a server that is killed by what cannot be caught takes its
// jails along, what they have begun included.
func TestServerKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		w, gone := held(t)
		begun, tell, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer begun.Close()
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestServerKilled$")
		cmd.Env = append(os.Environ(), "HARVEST_TEST_JAIL="+script(t, linger+"echo begun; while :; do sleep 1; done"), "HARVEST_TEST_WITHOUT="+strconv.Itoa(without))
		cmd.ExtraFiles = []*os.File{w, tell}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tell.Close()
		w.Close()
		if _, err := begun.Read(make([]byte, 100)); err != nil {
			t.Errorf("begun: %v", err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if err := gone(); err != nil {
			t.Error(err)
		}
	})
}

// server is the server that TestServerKilled kills.
func server(path string) {
	without, _ := strconv.Atoi(os.Getenv("HARVEST_TEST_WITHOUT"))
	c := Cmd{Path: path, Stdin: os.NewFile(3, "held"), Wall: time.Minute, without: without}
	err := c.Run(context.Background(), os.NewFile(4, "begun"))
	fmt.Fprintln(os.Stderr, "not killed:", err)
	os.Exit(1)
}

// TestTogether: what many processes hold is bounded as what one does.
func TestTogether(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		const each = `my $x = "x" x 40e6; sleep 100`
		_, err := output(t, &Cmd{Path: script(t, strings.Repeat("perl -e '"+each+"' &\n", 8)+"wait"), Memory: 128 << 20, without: without})
		if !errors.As(err, new(*Bound)) || !strings.Contains(err.Error(), "killed: it held more than 134217728 bytes of memory") {
			t.Errorf("got %v", err)
		}
	})
}

// TestCancel: the end of its context is that of a program.
func TestCancel(t *testing.T) {
	everywhere(t, func(t *testing.T, without int) {
		ctx, cancel := context.WithCancelCause(context.Background())
		p, err := (&Cmd{Path: script(t, "echo begun; sleep 100"), without: without}).Start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Stdout.Read(make([]byte, 100)); err != nil {
			t.Error(err)
		}
		why := errors.New("enough")
		cancel(why)
		if err := p.Wait(); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		if _, err := (&Cmd{Path: "/bin/true", without: without}).Start(ctx); !errors.Is(err, why) {
			t.Errorf("after: got %v, want %v", err, why)
		}
	})
}

// TestNotRoot runs the other tests as a user without rights, when root runs this.
func TestNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is no root: the other tests are that")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^(TestRun|TestExit|TestEscape|TestEscapeGuards|TestNobodyLeft|TestServerKilled|TestCancel|TestGround)$", "-test.v=true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	tmp, err := os.MkdirTemp("", "jail-test-") // not below what is root's alone
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chown(tmp, 54321, 54321); err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestGround(t *testing.T) {
	if got := Ground(); !strings.Contains(got, "namespaces") || !strings.Contains(got, "filter") {
		t.Errorf("got %q", got)
	} else {
		t.Log(got)
	}
}
