package ninep

import (
	"bufio"
	"encoding/binary"
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

// tcpPeer asks the kernel whose the other end of a loopback connection is:
// by netlink, at the same cost however many sockets there are, or, where
// that is not to be had, from its table of sockets.
func tcpPeer(c *net.TCPConn) (uid int, ok bool) {
	local, ok1 := addrPort(c.LocalAddr())
	remote, ok2 := addrPort(c.RemoteAddr())
	if !ok1 || !ok2 || !local.Addr().IsLoopback() || !remote.Addr().IsLoopback() {
		return 0, false
	}
	uid, ok, err := diagOwner(remote, local)
	if err == nil {
		return uid, ok
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

const (
	netlinkSockDiag  = 4  // a netlink family: sock_diag(7)
	sockDiagByFamily = 20 // its request
	diagRequest      = 16 + 8 + 48
	diagReply        = 16 + 4 + 48 + 20
)

// diagOwner is tcpOwner by netlink. The error says that it is not to be had.
func diagOwner(local, remote netip.AddrPort) (uid int, ok bool, err error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return 0, false, err
	}
	defer syscall.Close(fd)
	// The kernel answers while it takes the request; should it not, this is
	// not for ever.
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 1}); err != nil {
		return 0, false, err
	}
	family := byte(syscall.AF_INET6)
	if local.Addr().Is4() {
		family = syscall.AF_INET
	}
	m := le.AppendUint32(nil, diagRequest)
	m = le.AppendUint16(m, sockDiagByFamily)
	m = le.AppendUint16(m, syscall.NLM_F_REQUEST)
	m = append(m, make([]byte, 8)...)                   // sequence, port
	m = append(m, family, syscall.IPPROTO_TCP, 0, 0)    // nothing beside the socket
	m = le.AppendUint32(m, ^uint32(0))                  // in any state
	m = binary.BigEndian.AppendUint16(m, local.Port())  // its own address
	m = binary.BigEndian.AppendUint16(m, remote.Port()) // and the one it is connected to
	for _, a := range []netip.Addr{local.Addr(), remote.Addr()} {
		b := a.AsSlice()
		m = append(append(m, b...), make([]byte, 16-len(b))...)
	}
	m = append(m, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // any interface, no cookie
	if err := syscall.Sendto(fd, m, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return 0, false, err
	}
	r := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, r, 0)
	if err != nil {
		return 0, false, err
	}
	switch kind := le.Uint16(r[4:]); {
	case n >= 20 && kind == syscall.NLMSG_ERROR:
		if e := syscall.Errno(-int32(le.Uint32(r[16:]))); e != syscall.ENOENT {
			return 0, false, e
		}
		return 0, false, nil
	case n < diagReply || kind != sockDiagByFamily:
		return 0, false, syscall.EPROTO
	}
	state, uid32, inode := r[17], le.Uint32(r[16+64:]), le.Uint32(r[16+68:])
	return int(uid32), state == 1 && inode != 0, nil
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
