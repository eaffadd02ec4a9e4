package ninep

import (
	"context"
	"crypto/tls"
	"errors"
	iofs "io/fs"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"harvest/fs"
)

// serving serves root at the address and gives the one that was found.
func serving(t *testing.T, v *Server, addr string, opt ListenOptions, root fs.Dir) string {
	t.Helper()
	l, err := Listen(t.Context(), addr, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := v.Serve(ctx, l, root); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	return l.String()
}

func dial(t *testing.T, addr string, opt DialOptions) *Client {
	t.Helper()
	c, err := Dial(t.Context(), addr, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// mayWrite tells whether who dialed may change the tree.
func mayWrite(c *Client) error {
	_, h, err := c.Root().(fs.Creator).Create(context.Background(), "made", 0o644, fs.Write)
	if err != nil {
		return err
	}
	h.Close()
	return c.Root().(fs.Remover).Remove(context.Background(), "made")
}

func TestAddr(t *testing.T) {
	for _, c := range []struct{ addr, network, target, err string }{
		{"tcp!h!5640", "tcp", "h:5640", ""},
		{"tcp!h", "tcp", "h:5640", ""},
		{"tcp!*!9", "tcp", ":9", ""},
		{"tls!::1!9", "tls", "[::1]:9", ""},
		{"unix!/tmp/a!b", "unix", "/tmp/a!b", ""},
		{"h:5640", "", "", "not an address"},
		{"tcp!", "", "", "not an address"},
		{"il!h!1", "", "", "unknown network il"},
		{"unix!" + strings.Repeat("s", 107), "unix", strings.Repeat("s", 107), ""},
		{"unix!" + strings.Repeat("s", 108), "", "", "sss: path of 108 bytes is too long for a socket, at most 107: file name too long"},
	} {
		network, target, err := parseAddr(c.addr)
		if network != c.network && c.err == "" || target != c.target || (err != nil) != (c.err != "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %s %s %v", c.addr, network, target, err)
		}
	}
}

func TestPeers(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"tcp!127.0.0.1!0", "tcp!::1!0", "unix!" + filepath.Join(t.TempDir(), "s")} {
		l, err := Listen(t.Context(), addr, ListenOptions{})
		if err != nil {
			if strings.Contains(addr, "::1") {
				t.Logf("skipped: no IPv6: %v", err)
				continue
			}
			t.Fatal(err)
		}
		network, target, _ := parseAddr(l.String())
		nc, err := net.Dial(network, target)
		if err != nil {
			t.Fatal(err)
		}
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		u, err := l.user(t.Context(), in, 0)
		if err != nil || u.Name != me.Username || !u.Owner || u.ReadOnly {
			t.Errorf("%s: got %+v, %v", l, u, err)
		}
		if c, ok := in.(*net.TCPConn); ok {
			local, _ := addrPort(c.LocalAddr())
			remote, _ := addrPort(c.RemoteAddr())
			// Both ways of asking say the same.
			if uid, ok, err := diagOwner(remote, local); err != nil || !ok || uid != os.Getuid() {
				t.Errorf("netlink: got %d %v %v", uid, ok, err)
			}
			b, err := os.ReadFile("/proc/net/" + map[bool]string{true: "tcp", false: "tcp6"}[local.Addr().Is4()])
			if err != nil {
				t.Fatal(err)
			}
			if uid, ok := tcpOwner(strings.NewReader(string(b)), remote, local); !ok || uid != os.Getuid() {
				t.Errorf("/proc: got %d %v", uid, ok)
			}
			// One that has left is nobody, and not root.
			nc.(*net.TCPConn).SetLinger(-1)
			nc.Close()
			in.Read(make([]byte, 1))
			if uid, ok, err := diagOwner(remote, local); err != nil || ok {
				t.Errorf("netlink, after it left: got %d %v %v", uid, ok, err)
			}
			if u, err := l.user(t.Context(), in, 0); err != nil || !u.ReadOnly || u.Owner {
				t.Errorf("after it left: got %+v, %v", u, err)
			}
		}
		nc.Close()
		in.Close()
		l.Close()
	}
}

// TestProcTable reads the kernel's table as it is printed.
func TestProcTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1608 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 11 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1608 06 00000000:00000000 03:00000F00 00000000     0        0 0 3 0
   2: 0100007F:C351 0100007F:1608 04 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   3: 0100007F:C352 0100007F:1608 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 30 10 -1
   4: 0000000000000000FFFF00000100007F:C353 0000000000000000FFFF00000100007F:1608 01 00000000:00000000 00:00000000 00000000  1001        0 13 1 0
   5: 00000000000000000000000001000000:C354 00000000000000000000000001000000:1608 01 00000000:00000000 00:00000000 00000000  1002        0 14 1 0
garbage
`
	for _, c := range []struct {
		addr string
		port uint16
		uid  int
		ok   bool
	}{
		{"127.0.0.1", 0xc350, 0, false}, // TIME_WAIT
		{"127.0.0.1", 0xc351, 0, false}, // FIN_WAIT1: its process has left
		{"127.0.0.1", 0xc352, 1000, true},
		{"127.0.0.1", 0xc353, 1001, true},
		{"::1", 0xc354, 1002, true},
		{"127.0.0.1", 0xc355, 0, false},
	} {
		a := netip.MustParseAddr(c.addr)
		uid, ok := tcpOwner(strings.NewReader(table), netip.AddrPortFrom(a, c.port), netip.AddrPortFrom(a, 0x1608))
		if uid != c.uid || ok != c.ok {
			t.Errorf("%s port %x: got %d %v, want %d %v", c.addr, c.port, uid, ok, c.uid, c.ok)
		}
	}
}

func TestListen(t *testing.T) {
	ctx := t.Context()
	for _, addr := range []string{"tcp!*!0", "tcp!0.0.0.0!0", "tls!127.0.0.1!0", "tcp!nosuchport!x", "what"} {
		if l, err := Listen(ctx, addr, ListenOptions{}); err == nil {
			t.Errorf("%s: listens", addr)
			l.Close()
		}
	}
	l, err := Listen(ctx, "tcp!0.0.0.0!0", ListenOptions{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	// A socket is taken over once nobody listens there.
	sock := filepath.Join(t.TempDir(), "s")
	first, err := Listen(ctx, "unix!"+sock, ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(ctx, "unix!"+sock, ListenOptions{}); err == nil {
		t.Error("two listen at one socket")
	}
	first.Listener.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	second, err := Listen(ctx, "unix!"+sock, ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	if err := os.WriteFile(sock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(ctx, "unix!"+sock, ListenOptions{}); err == nil {
		t.Error("listens where a file is")
	}
}

func TestTLS(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var certs []*tls.Certificate
	for _, d := range dirs {
		c, err := Certificate(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Certificate(d)
		if err != nil || Fingerprint(again.Certificate[0]) != Fingerprint(c.Certificate[0]) {
			t.Errorf("certificate read again: %v", err)
		}
		if st, err := os.Stat(filepath.Join(d, "tls.pem")); err != nil || st.Mode() != 0o600 {
			t.Errorf("tls.pem: %v, %v", st.Mode(), err)
		}
		certs = append(certs, c)
	}
	server, alice, rob := certs[0], certs[1], certs[2]
	file := filepath.Join(dirs[0], "users")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# who comes in\nuser=alice fingerprint=" + strings.ToUpper(Fingerprint(alice.Certificate[0])) + " group=staff owner=yes\nuser=rob group=staff\n")
	root := newShelf()
	addr := serving(t, NewServer(discard(), Limits{}), "tls!127.0.0.1!0", ListenOptions{Certificate: server, Users: file}, root)
	good := Fingerprint(server.Certificate[0])

	if err := mayWrite(dial(t, addr, DialOptions{Certificate: alice, Fingerprint: good})); err != nil {
		t.Errorf("alice: %v", err)
	}
	for who, cert := range map[string]*tls.Certificate{"rob": rob, "no certificate": nil} {
		if err := mayWrite(dial(t, addr, DialOptions{Certificate: cert, Fingerprint: good, User: "alice"})); !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("%s: got %v, want %v", who, err, iofs.ErrPermission)
		}
	}
	if c, err := Dial(t.Context(), addr, DialOptions{Certificate: alice, Fingerprint: Fingerprint(rob.Certificate[0])}); err == nil {
		t.Error("a server with another fingerprint is taken")
		c.Close()
	}
	if c, err := Dial(t.Context(), addr, DialOptions{Certificate: alice}); err == nil {
		t.Error("a server that nobody vouches for is taken")
		c.Close()
	}

	// The file is read each time.
	write("user=rob group=staff owner=yes fingerprint=" + Fingerprint(rob.Certificate[0]) + "\n")
	if err := mayWrite(dial(t, addr, DialOptions{Certificate: rob, Fingerprint: good})); err != nil {
		t.Errorf("rob: %v", err)
	}
	if err := mayWrite(dial(t, addr, DialOptions{Certificate: alice, Fingerprint: good})); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("alice, no longer known: got %v", err)
	}
	// One that cannot be read lets nobody in.
	write("user=rob fingerprint=12\n")
	if c, err := Dial(t.Context(), addr, DialOptions{Certificate: rob, Fingerprint: good}); err == nil {
		t.Error("let in by a users file with an error")
		c.Close()
	}
}

func TestUsers(t *testing.T) {
	print := strings.Repeat("ab", 32)
	us, err := parseUsers("user=a fingerprint=" + print + " fingerprint=" + strings.Repeat("cd", 32) + " group=x group=y owner\nuser=b owner=no")
	if err != nil || len(us) != 2 || len(us[0].prints) != 2 || strings.Join(us[0].Groups, " ") != "x y" || !us[0].Owner || us[1].Owner {
		t.Errorf("got %+v, %v", us, err)
	}
	for text, want := range map[string]string{
		"name=a":                       "line 1, column 1: want user=NAME first",
		"user=":                        "want user=NAME first",
		"user=a\nuser=b owner=perhaps": "line 2, column 8: ",
		"user=a fingerprint=xyz":       "fingerprint: want 64 hex digits",
		"user=a user=b":                "two users in one line",
		"user=a colour=red":            "unknown attribute colour",
	} {
		if _, err := parseUsers(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	// A line gives a user of this machine more groups, or the tree.
	if u := local(12345, us); u.Name != "12345" || u.Owner {
		t.Errorf("stranger: got %+v", u)
	}
	if u := local(12345, users{{User: fs.User{Name: "12345", Owner: true, Groups: []string{"z"}}}}); !u.Owner || strings.Join(u.Groups, "") != "z" {
		t.Errorf("known: got %+v", u)
	}
}
