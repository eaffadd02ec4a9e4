package broker

import (
	"encoding/binary"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// A place is how far a source was read.
type place struct {
	id     uint64
	cursor string // "0": from the start
	last   time.Time
	print  string // of what was asked for
}

func (p place) String() string {
	return ndb.Format(ndb.Of("id", p.id), ndb.Of("cursor", p.cursor), ndb.Of("last", p.last), ndb.Of("asked", p.print))
}

func parsePlace(text string) (p place, err error) {
	e, err := ndb.ParseLine(text, 1)
	if err != nil {
		return p, err
	}
	id, _ := e.Pair("id")
	n, err := e.Int(id)
	if err != nil {
		return p, err
	}
	p.id = uint64(n)
	p.cursor, _ = e.Get("cursor")
	last, _ := e.Get("last")
	p.last, _ = time.Parse(time.RFC3339, last)
	p.print, _ = e.Get("asked")
	return p, nil
}

// An entry of the registry: an object and who gave it.
type entry struct {
	oid store.OID
	given
}

// A given is by which source an object was given, 0 is none, and when it was seen
// first, 0 if that is not known.
type given struct {
	id   uint64
	seen uint32
}

func (g given) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, g.id), g.seen)
}

func parseGiven(v []byte) (g given, ok bool) {
	switch len(v) {
	case 12:
		g.seen = binary.BigEndian.Uint32(v[8:])
		fallthrough
	case 8: // of version 2
		g.id, ok = binary.BigEndian.Uint64(v), true
	}
	return g, ok
}

// since is g seen first when what was entered before was, if there was anything.
func (g given) since(before []byte) given {
	if old, ok := parseGiven(before); ok {
		g.seen = old.seen
	}
	return g
}
