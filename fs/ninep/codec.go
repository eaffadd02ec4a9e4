package ninep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/knusbaum/go9p/proto"
)

var le = binary.LittleEndian

// shapes gives each message's fields after size, type and tag, by type-100:
// a digit is so many bytes, s a string, q a qid, n a list of strings, Q a
// list of qids, d data after its 4-byte count, S a stat after its length.
// An empty shape is a type that may not be sent; "-" has no fields.
var shapes = [28]string{
	proto.Tversion - 100: "4s", proto.Rversion - 100: "4s",
	proto.Tauth - 100: "4ss", proto.Rauth - 100: "q",
	proto.Tattach - 100: "44ss", proto.Rattach - 100: "q",
	proto.Rerror - 100: "s",
	proto.Tflush - 100: "2", proto.Rflush - 100: "-",
	proto.Twalk - 100: "44n", proto.Rwalk - 100: "Q",
	proto.Topen - 100: "41", proto.Ropen - 100: "q4",
	proto.Tcreate - 100: "4s41", proto.Rcreate - 100: "q4",
	proto.Tread - 100: "484", proto.Rread - 100: "d",
	proto.Twrite - 100: "48d", proto.Rwrite - 100: "4",
	proto.Tclunk - 100: "4", proto.Rclunk - 100: "-",
	proto.Tremove - 100: "4", proto.Rremove - 100: "-",
	proto.Tstat - 100: "4", proto.Rstat - 100: "S",
	proto.Twstat - 100: "4S", proto.Rwstat - 100: "-",
}

var errFrame = errors.New("malformed message")

// frameError says what is wrong with a message of the type.
func frameError(kind byte, what string) error {
	return fmt.Errorf("%w: type %d: %s", errFrame, kind, what)
}

// check measures a whole frame, size field included: its fields must fill it
// exactly. What passes can be decoded without reading past the end.
func check(f []byte) error {
	if len(f) < 7 || int64(le.Uint32(f)) != int64(len(f)) {
		return fmt.Errorf("%w: size", errFrame)
	}
	kind := f[4]
	if kind < 100 || int(kind-100) >= len(shapes) || shapes[kind-100] == "" {
		return frameError(kind, "no such type")
	}
	b := f[7:]
	// take drops n bytes off b, or empties it and says that they are missing.
	short := false
	take := func(n int) {
		if n > len(b) {
			b, short = nil, true
			return
		}
		b = b[n:]
	}
	str := func() {
		if len(b) < 2 {
			short = true
			return
		}
		take(2 + int(le.Uint16(b)))
	}
	for _, c := range shapes[kind-100] {
		switch c {
		case '-':
		case 's':
			str()
		case 'q':
			take(13)
		case 'n', 'Q':
			if len(b) < 2 {
				short = true
				break
			}
			n := int(le.Uint16(b))
			take(2)
			if c == 'Q' {
				take(13 * n)
				break
			}
			for ; n > 0 && !short; n-- {
				str()
			}
		case 'd':
			if len(b) < 4 {
				short = true
				break
			}
			n := le.Uint32(b)
			if int64(n) > int64(len(b)-4) {
				short = true
				break
			}
			take(4 + int(n))
		case 'S':
			if len(b) < 2 {
				short = true
				break
			}
			n := int(le.Uint16(b))
			take(2)
			if short || n > len(b) {
				short = true
				break
			}
			_, rest, err := parseStat(b[:n])
			if err != nil || len(rest) > 0 {
				return frameError(kind, "stat")
			}
			take(n)
		default:
			take(int(c - '0'))
		}
		if short {
			return frameError(kind, "cut short")
		}
	}
	if len(b) > 0 {
		return frameError(kind, "bytes after its end")
	}
	return nil
}

// decode checks a frame and gives its message. Frames that hold more than
// go9p's codec takes are refused; none of ours that go through it are.
func decode(f []byte) (m proto.FCall, err error) {
	if err := check(f); err != nil {
		return nil, err
	}
	// check leaves the codec nothing to panic about; if it finds something
	// after all, that is the end of one connection and not of the process.
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, frameError(f[4], fmt.Sprint(p))
		}
	}()
	if m, err = proto.ParseCall(bytes.NewReader(f)); err != nil {
		return nil, frameError(f[4], err.Error())
	}
	return m, nil
}

const statFixed = 2 + 4 + 13 + 4 + 4 + 4 + 8 // of a stat, between its size and its strings

func statLen(st *proto.Stat) int {
	return 2 + statFixed + 8 + len(st.Name) + len(st.Uid) + len(st.Gid) + len(st.Muid)
}

// appendStat is st.Compose without the garbage. The caller has seen to it
// that statLen fits 16 bits.
func appendStat(b []byte, st *proto.Stat) []byte {
	b = le.AppendUint16(b, uint16(statLen(st)-2))
	b = le.AppendUint16(b, st.Type)
	b = le.AppendUint32(b, st.Dev)
	b = append(b, st.Qid.Qtype)
	b = le.AppendUint32(b, st.Qid.Vers)
	b = le.AppendUint64(b, st.Qid.Uid)
	b = le.AppendUint32(b, st.Mode)
	b = le.AppendUint32(b, st.Atime)
	b = le.AppendUint32(b, st.Mtime)
	b = le.AppendUint64(b, st.Length)
	for _, s := range [...]string{st.Name, st.Uid, st.Gid, st.Muid} {
		b = le.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

// parseStat decodes the stat at the start of b.
func parseStat(b []byte) (st proto.Stat, rest []byte, err error) {
	if len(b) < 2 {
		return st, nil, errFrame
	}
	n := 2 + int(le.Uint16(b))
	if n > len(b) || n < 2+statFixed+8 {
		return st, nil, errFrame
	}
	rest, b = b[n:], b[2:n]
	st.Type = le.Uint16(b)
	st.Dev = le.Uint32(b[2:])
	st.Qid = proto.Qid{Qtype: b[6], Vers: le.Uint32(b[7:]), Uid: le.Uint64(b[11:])}
	st.Mode = le.Uint32(b[19:])
	st.Atime = le.Uint32(b[23:])
	st.Mtime = le.Uint32(b[27:])
	st.Length = le.Uint64(b[31:])
	b = b[statFixed:]
	for _, s := range [...]*string{&st.Name, &st.Uid, &st.Gid, &st.Muid} {
		if len(b) < 2 || len(b)-2 < int(le.Uint16(b)) {
			return st, nil, errFrame
		}
		n := 2 + int(le.Uint16(b))
		*s, b = string(b[2:n]), b[n:]
	}
	if len(b) > 0 {
		return st, nil, errFrame
	}
	return st, rest, nil
}

// appendHeader begins a message of n bytes in all.
func appendHeader(b []byte, n int, kind byte, tag uint16) []byte {
	b = le.AppendUint32(b, uint32(n))
	return le.AppendUint16(append(b, kind), tag)
}
