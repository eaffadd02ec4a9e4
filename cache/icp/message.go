// Package icp speaks the Internet Cache Protocol, version 2 (RFC 2186): one
// datagram asks a neighbour whether it holds a URL, one answers. It reads and
// writes the messages, matches answers with questions, and answers others.
// Who the neighbours are and which one is chosen is not its affair, and it
// neither sends nor wants objects inside datagrams (HIT_OBJ): they amplify, and
// they fragment.
//
// # The format
//
// All numbers are in network order.
//
//	octet  0     opcode
//	octet  1     version, 2
//	octet  2-3   length of the whole message, 20 to 16,384
//	octet  4-7   request number, the same in the answer
//	octet  8-11  options: 80000000 an object is welcome in the answer,
//	             40000000 the round trip to the origin is wanted, or is given
//	octet 12-15  option data: that round trip in ms, in the low 16 bits
//	octet 16-19  sender's IPv4 address; not to be believed, zero is usual
//	then         a QUERY has the requester's IPv4 address, 4 octets, zero is usual
//	then         the URL and a NUL
//	then         a HIT_OBJ has the length of the object in 2 octets, and the object
//
// A QUERY for http://a/ is 34 octets, its answer 30:
//
//	01 02 0022 00000001 00000000 00000000 00000000 00000000 "http://a/" 00
//	02 02 001e 00000001 00000000 00000000 00000000 "http://a/" 00
package icp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	iofs "io/fs"
	"strconv"
	"time"
)

// An Op is the opcode of a message.
type Op uint8

// The opcodes of RFC 2186, and none of those it leaves unassigned.
const (
	Query       Op = 1
	Hit         Op = 2
	Miss        Op = 3 // not here, and we would fetch it for you
	Err         Op = 4
	SourceEcho  Op = 10 // sent to an origin's echo port, comes back as it is
	DumbEcho    Op = 11 // the same by way of a cache that speaks no ICP
	MissNoFetch Op = 21 // not here, and do not ask us to fetch it now
	Denied      Op = 22
	HitObject   Op = 23
)

// names are the opcodes as the RFC and the logs of caches write them.
func (o Op) name() string {
	switch o {
	case Query:
		return "QUERY"
	case Hit:
		return "HIT"
	case Miss:
		return "MISS"
	case Err:
		return "ERR"
	case SourceEcho:
		return "SECHO"
	case DumbEcho:
		return "DECHO"
	case MissNoFetch:
		return "MISS_NOFETCH"
	case Denied:
		return "DENIED"
	case HitObject:
		return "HIT_OBJ"
	}
	return ""
}

// String is the opcode's name, or its number when it has none.
func (o Op) String() string {
	if s := o.name(); s != "" {
		return s
	}
	return "OP_" + strconv.Itoa(int(o))
}

const (
	version = 2
	header  = 20

	// MaxMessage is the largest message of the protocol, and MaxURL the
	// longest URL that a QUERY can carry.
	MaxMessage = 16384
	MaxURL     = MaxMessage - header - 4 - 1

	optObject = 0x80000000
	optSource = 0x40000000
)

// A Message is one datagram. Sender and requester addresses are written as
// zeros and ignored when read: the datagram's own source address is the one
// that counts.
type Message struct {
	Op     Op
	Number uint32
	URL    string

	// WantSource asks, in a QUERY, for the round trip to the origin. In an
	// answer HasSource tells that Source holds it, in whole milliseconds.
	WantSource bool
	HasSource  bool
	Source     time.Duration

	Object []byte // of a HIT_OBJ; it aliases what was parsed
}

// Parse reads one datagram. It refuses, as iofs.ErrInvalid, what is cut short
// or has something after its end, another version, an opcode that is not one
// of those above, and a URL that is empty or could not stand in a request line.
func Parse(b []byte) (Message, error) {
	m, rest, err := parseHeader(b)
	if err != nil {
		return Message{}, err
	}
	if m.Op == Query {
		if len(rest) < 4 {
			return Message{}, bad("%v without a requester", m.Op)
		}
		rest = rest[4:]
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return Message{}, bad("%v: url without its end", m.Op)
	}
	url, rest := rest[:end], rest[end+1:]
	if !sound(url) {
		return Message{}, bad("%v: bad url %q", m.Op, url[:min(len(url), 40)])
	}
	m.URL = string(url)
	if m.Op == HitObject {
		if len(rest) < 2 || len(rest)-2 != int(binary.BigEndian.Uint16(rest)) {
			return Message{}, bad("%v: object of another length", m.Op)
		}
		m.Object, rest = rest[2:], nil
	}
	if len(rest) > 0 {
		return Message{}, bad("%v: %d octets after the end", m.Op, len(rest))
	}
	return m, nil
}

// parseHeader reads the first 20 octets, and returns the rest.
func parseHeader(b []byte) (Message, []byte, error) {
	var m Message
	switch {
	case len(b) < header:
		return m, nil, bad("%d octets, short of a header", len(b))
	case len(b) > MaxMessage:
		return m, nil, bad("%d octets, too many", len(b))
	case b[1] != version:
		return m, nil, bad("version %d", b[1])
	case int(binary.BigEndian.Uint16(b[2:])) != len(b):
		return m, nil, bad("length %d in %d octets", binary.BigEndian.Uint16(b[2:]), len(b))
	}
	m.Op, m.Number = Op(b[0]), binary.BigEndian.Uint32(b[4:])
	if m.Op.name() == "" {
		return m, nil, bad("opcode %d", b[0])
	}
	if binary.BigEndian.Uint32(b[8:])&optSource != 0 {
		if m.Op == Query {
			m.WantSource = true
		} else {
			m.HasSource = true
			m.Source = time.Duration(binary.BigEndian.Uint16(b[14:])) * time.Millisecond
		}
	}
	return m, b[header:], nil
}

// Append writes the message after b. What the wire cannot carry must have been
// refused before: it panics on a URL that Parse would refuse and on a message
// past MaxMessage.
func (m Message) Append(b []byte) []byte {
	at := len(b)
	b = append(b, byte(m.Op), version, 0, 0)
	b = binary.BigEndian.AppendUint32(b, m.Number)
	var opt, data uint32
	switch {
	case m.Op == Query && m.WantSource:
		opt = optSource
	case m.Op != Query && m.HasSource:
		opt, data = optSource, uint32(min(max(m.Source.Milliseconds(), 0), 1<<16-1))
	}
	b = binary.BigEndian.AppendUint32(b, opt)
	b = binary.BigEndian.AppendUint32(b, data)
	b = append(b, 0, 0, 0, 0)
	if m.Op == Query {
		b = append(b, 0, 0, 0, 0)
	}
	b = append(append(b, m.URL...), 0)
	if m.Op == HitObject {
		b = binary.BigEndian.AppendUint16(b, uint16(len(m.Object)))
		b = append(b, m.Object...)
	}
	if n := len(b) - at; n > MaxMessage || !sound(m.URL) {
		panic(fmt.Sprintf("icp: %v of %d octets for a url of %d cannot be written", m.Op, n, len(m.URL)))
	}
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// sound tells whether a URL could stand in a request line: not empty, and no
// blank or control character.
func sound[T string | []byte](url T) bool {
	for i := range len(url) {
		if url[i] <= ' ' || url[i] == 0x7f {
			return false
		}
	}
	return len(url) > 0
}

func bad(format string, arg ...any) error {
	return fmt.Errorf("icp: "+format+": %w", append(arg, iofs.ErrInvalid)...)
}
