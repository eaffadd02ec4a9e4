// Package ninep serves a tree of files over 9P2000 and dials the trees that
// others serve. docs/9p.8.md is its manual.
//
// The message structs and their codec are go9p's; no frame reaches them
// before check has measured every length in it, and messages that carry data
// do not go through them at all. The server's tree semantics (srv.go) stand
// behind go9p's Srv interface; the loop that reads, orders, runs, flushes and
// answers requests (conn.go) is our own, as is the client (client.go).
//
// 9P has no word for fs.Kind. Between our own server and client it travels in
// the two stat fields that 9P keeps for kernels and that other programs
// ignore: type is 'Hv' and dev the Kind. Of other servers' files the client
// assumes: append-only means Growing; a length and a qid version that is not
// 0 mean Plain; the rest is Made.
package ninep

import (
	"fmt"
	"net"
	"strings"
	"syscall"
)

// Limits of the protocol as spoken here.
const (
	MaxMsize = 1 << 20 // largest message, both ways
	minMsize = 256     // a client that asks for less is refused
	maxWalk  = 16      // names in a Twalk
	maxName  = 255     // bytes in the name of a file to be made
	ioHeader = 24      // what Rread and Twrite have around their data, and one byte
	port     = "5640"
)

// maxSocket is how long a socket's path may be: the kernel adds a NUL.
const maxSocket = len(syscall.RawSockaddrUnix{}.Path) - 1

const noTag, noFid = 0xffff, 0xffffffff

// kindMark in a stat's type field says that its dev field is an fs.Kind.
const kindMark = 'H'<<8 | 'v'

// parseAddr takes a dial string apart: tcp!host!port, tls!host!port (the port
// may be left out) or unix!path. A host of * is every address of this one.
func parseAddr(addr string) (network, target string, err error) {
	network, rest, ok := strings.Cut(addr, "!")
	if !ok || rest == "" {
		return "", "", fmt.Errorf("%s: not an address: want tcp!host!port, tls!host!port or unix!path", addr)
	}
	switch network {
	case "unix":
		if len(rest) > maxSocket {
			return "", "", fmt.Errorf("%s: path of %d bytes is too long for a socket, at most %d: %w", addr, len(rest), maxSocket, syscall.ENAMETOOLONG)
		}
		return network, rest, nil
	case "tcp", "tls":
		host, p := rest, port
		if i := strings.LastIndexByte(rest, '!'); i >= 0 {
			host, p = rest[:i], rest[i+1:]
		}
		if host == "*" {
			host = ""
		}
		return network, net.JoinHostPort(host, p), nil
	}
	return "", "", fmt.Errorf("%s: unknown network %s: want tcp, tls or unix", addr, network)
}
