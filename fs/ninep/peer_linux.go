package ninep

import (
	"bufio"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unixPeer asks the kernel who is at the other end of a unix socket.
func unixPeer(c *net.UnixConn) (uid int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *syscall.Ucred
	err2 := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || err2 != nil {
		return 0, false
	}
	return int(cred.Uid), true
}

// tcpPeer looks the other end of a loopback connection up in the kernel's
// table of sockets.
func tcpPeer(c *net.TCPConn) (uid int, ok bool) {
	local, ok1 := addrPort(c.LocalAddr())
	remote, ok2 := addrPort(c.RemoteAddr())
	if !ok1 || !ok2 || !local.Addr().IsLoopback() || !remote.Addr().IsLoopback() {
		return 0, false
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		uid, ok = tcpOwner(f, remote, local)
		f.Close()
		if ok {
			return uid, true
		}
	}
	return 0, false
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), true
}

const established = "01"

// tcpOwner finds the owner of the socket at local that is connected to
// remote. A socket that its process has left is in another state, and the
// kernel shows it as root's: only established ones count.
func tcpOwner(r io.Reader, local, remote netip.AddrPort) (uid int, ok bool) {
	for s := bufio.NewScanner(r); s.Scan(); {
		// sl local remote st tx:rx tr:when retrnsmt uid timeout inode ...
		f := strings.Fields(s.Text())
		if len(f) < 10 || f[3] != established || f[9] == "0" {
			continue
		}
		if a, ok := procAddr(f[1]); !ok || a != local {
			continue
		}
		if a, ok := procAddr(f[2]); !ok || a != remote {
			continue
		}
		n, err := strconv.ParseUint(f[7], 10, 32)
		return int(n), err == nil
	}
	return 0, false
}

// procAddr reads 0100007F:1608, or the like with 32 digits: words of 4 bytes
// in the machine's order, which is little-endian wherever this is built to run.
func procAddr(s string) (netip.AddrPort, bool) {
	h, p, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(h)
	if !ok || err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		le.PutUint32(b[i:], uint32(b[i])<<24|uint32(b[i+1])<<16|uint32(b[i+2])<<8|uint32(b[i+3]))
	}
	a, ok := netip.AddrFromSlice(b)
	port, err := strconv.ParseUint(p, 16, 16)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), ok && err == nil
}
