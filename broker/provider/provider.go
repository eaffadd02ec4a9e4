// Package provider reads a Gatherer of the first Harvest by its export
// protocol, lines of text over TCP, as a tree: the collector is handed an
// io/fs.FS as for any other source. docs/gatherd.8.md describes the protocol
// and the server of it.
//
//	since/CURSOR     the answer to SEND-UPDATE CURSOR: a time in seconds, 0, or
//	                 the cursor that a stream has ended with
//	since/CURSOR.gz  the same, packed
//	objects/3f/OID.soif  the answer to SEND-OBJECT OID
//
// Each Open is a connection. What codes the replies of the original had is not
// known: the first digit decides, 4 and 5 being refusals, and a reply may have
// any text and any number of lines.
package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"os"
	"strings"
	"time"
)

// Port is that of the original's Gatherers.
const Port = "8500"

// Scheme begins the path of a source: gatherd!HOST!PORT.
const Scheme = "gatherd!"

// ParsePath gives HOST:PORT of gatherd!HOST or gatherd!HOST!PORT.
func ParsePath(path string) (addr string, err error) {
	host, port, ok := strings.Cut(strings.TrimPrefix(path, Scheme), "!")
	if !ok {
		port = Port
	}
	if !strings.HasPrefix(path, Scheme) || host == "" || port == "" || strings.ContainsAny(host+port, "!/ \t\n") {
		return "", fmt.Errorf("%.80q: not %sHOST!PORT: %w", path, Scheme, iofs.ErrInvalid)
	}
	return net.JoinHostPort(host, port), nil
}

// How long a Gatherer may be silent, and how long a line of its replies and how
// many of them may be.
const (
	patience   = 2 * time.Minute
	maxLine    = 4 << 10
	maxReplies = 64
)

// A Tree is what a Gatherer exports.
type Tree struct {
	ctx  context.Context // a reading ends with it: that of the collection it was opened for
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// New gives the tree of the Gatherer at HOST:PORT. Nothing is asked before
// something in it is opened. Reading ends when ctx does.
func New(ctx context.Context, addr string) *Tree {
	return &Tree{ctx: ctx, addr: addr, dial: new(net.Dialer).DialContext}
}

// Open asks for a file.
func (t *Tree) Open(name string) (iofs.File, error) {
	f, err := t.open(name)
	if err != nil {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

func (t *Tree) open(name string) (*file, error) {
	dir, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i], name[i+1:]
	}
	switch {
	case !iofs.ValidPath(name):
		return nil, iofs.ErrInvalid
	case dir == "since":
		cursor, packed := strings.CutSuffix(base, ".gz")
		if !isWord(cursor) || strings.HasSuffix(cursor, ".zst") {
			return nil, iofs.ErrNotExist
		}
		if packed {
			return t.ask(base, packed, "SET compression", "SEND-UPDATE "+cursor)
		}
		return t.ask(base, packed, "SEND-UPDATE "+cursor)
	case strings.HasPrefix(dir, "objects/"):
		oid, ok := strings.CutSuffix(base, ".soif")
		if !ok || !isWord(oid) {
			return nil, iofs.ErrNotExist
		}
		return t.ask(base, false, "SEND-OBJECT "+oid)
	}
	return nil, iofs.ErrNotExist
}

// isWord reports whether an argument is one word of a command.
func isWord(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ask says commands, the last of which has data for an answer.
func (t *Tree) ask(name string, packed bool, commands ...string) (_ *file, err error) {
	conn, err := t.dial(t.ctx, "tcp", t.addr)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, conn: conn, ctx: t.ctx, stop: context.AfterFunc(t.ctx, func() { conn.Close() })}
	f.in = bufio.NewReaderSize(patient{conn}, maxLine)
	defer func() {
		if err != nil {
			err = errors.Join(t.ctx.Err(), err)
			f.Close()
		}
	}()
	if err := f.replies(); err != nil { // its greeting
		return nil, err
	}
	me, err := os.Hostname()
	if err != nil || !isWord(me) {
		me = "harvest"
	}
	for _, c := range append([]string{"HELLO " + me}, commands...) {
		conn.SetWriteDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, c+"\n"); err != nil {
			return nil, err
		}
		if c == commands[len(commands)-1] {
			break
		}
		if err := f.replies(); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
	}
	// Without a next command it ends the connection after the answer, which so
	// has an end that can be seen.
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		if err := c.CloseWrite(); err != nil {
			return nil, err
		}
	}
	if err := f.data(packed); err != nil {
		return nil, fmt.Errorf("%s: %w", commands[len(commands)-1], err)
	}
	return f, nil
}

// patient bounds how long each read waits.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// A file is an answer that is read from its connection.
type file struct {
	name string
	conn net.Conn
	in   *bufio.Reader
	ctx  context.Context
	stop func() bool
}

// reply reads a line of a reply: NNN, and text. More tells that others of the
// same reply follow, which a dash right behind the number says in relatives of
// this protocol.
func (f *file) reply() (more bool, err error) {
	line, err := f.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return false, fmt.Errorf("a reply of more than %d bytes: %w", maxLine, iofs.ErrInvalid)
	}
	if err != nil {
		return false, cut(err)
	}
	line = bytes.TrimRight(line, "\r\n")
	if !isReply(line) {
		return false, fmt.Errorf("%.60q is no reply: %w", line, iofs.ErrInvalid)
	}
	if line[0] == '4' || line[0] == '5' {
		return false, refusal(string(line))
	}
	return len(line) > 3 && line[3] == '-', nil
}

func (f *file) replies() error {
	for range maxReplies {
		more, err := f.reply()
		if err != nil || !more {
			return err
		}
	}
	return fmt.Errorf("a reply of more than %d lines: %w", maxReplies, iofs.ErrInvalid)
}

// data skips the replies before the data.
func (f *file) data(packed bool) error {
	for range maxReplies {
		head, err := f.in.Peek(4)
		switch {
		case packed && len(head) > 1 && head[0] == 0x1f && head[1] == 0x8b:
			return nil
		case !isReply(head):
			if packed && len(head) > 0 {
				return fmt.Errorf("%.20q is not packed as was asked: %w", head, iofs.ErrInvalid)
			}
			if len(head) == 0 && err != nil {
				return cut(err)
			}
			return nil
		}
		if _, err := f.reply(); err != nil {
			return err
		}
		if _, err := f.in.Peek(1); err == io.EOF && !packed {
			return nil // nothing follows: an answer without a record
		}
	}
	return fmt.Errorf("more than %d replies: %w", maxReplies, iofs.ErrInvalid)
}

// isReply reports whether a line begins as replies do.
func isReply(line []byte) bool {
	if len(line) < 3 {
		return false
	}
	for _, c := range line[:3] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '-' || line[3] == '\n' || line[3] == '\r'
}

// cut is an end where none should be.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A refusal is what the Gatherer said.
type refusal string

func (r refusal) Error() string { return fmt.Sprintf("it says %.200q", string(r)) }

// Unwrap gives the class: 403 is access denied and 404 an object that is not there.
func (r refusal) Unwrap() error {
	switch string(r[:min(3, len(r))]) {
	case "403":
		return iofs.ErrPermission
	case "404":
		return iofs.ErrNotExist
	}
	return nil
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if err != nil && f.ctx.Err() != nil {
		err = f.ctx.Err()
	}
	return n, err
}

func (f *file) Close() error {
	f.stop()
	return f.conn.Close()
}

func (f *file) Stat() (iofs.FileInfo, error) { return info{f.name}, nil }

// An info is what is known of a file: its name.
type info struct{ name string }

func (i info) Name() string      { return i.name }
func (info) Size() int64         { return 0 } // it shows when it was read
func (info) Mode() iofs.FileMode { return 0o444 }
func (info) ModTime() time.Time  { return time.Time{} }
func (info) IsDir() bool         { return false }
func (info) Sys() any            { return nil }
