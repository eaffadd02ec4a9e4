package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"harvest/gather/soif"
)

// A row is the state of one object, or that it was deleted.
type row struct {
	Entry
	gone bool
	op   soif.Op // of the last change
}

func (r *row) append(dst []byte) []byte {
	for _, v := range []uint64{r.Seq, r.Seq - r.Body, uint64(r.at.seg), uint64(r.at.off), uint64(r.at.slot), uint64(r.Size)} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendVarint(dst, r.Updated.Unix())
	dst = binary.AppendUvarint(dst, uint64(seconds(r.TTL)))
	dst = append(dst, r.Hash[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Type)))
	dst = append(dst, r.Type...)
	return append(dst, r.URL...)
}

func parseRow(oid OID, b []byte) (row, error) {
	p := parser{b: b}
	var r row
	r.OID = oid
	r.Seq = p.uvarint()
	r.Body = r.Seq - p.uvarint()
	r.at.seg, r.at.off, r.at.slot = uint32(p.uvarint()), uint32(p.uvarint()), uint32(p.uvarint())
	r.Size = int64(p.uvarint())
	r.Updated = time.Unix(p.varint(), 0).UTC()
	r.TTL = duration(p.uvarint())
	copy(r.Hash[:], p.bytes(16))
	r.Type = string(p.bytes(p.uvarint()))
	r.URL = string(p.b)
	r.op = soif.Update
	if r.Body < r.Seq {
		r.op = soif.Refresh
	}
	if p.bad {
		return row{}, fmt.Errorf("index of object %s: %w", oid, ErrDamaged)
	}
	return r, nil
}

func appendTomb(dst []byte, r *row) []byte {
	dst = binary.AppendUvarint(dst, r.Seq)
	dst = binary.AppendVarint(dst, r.Updated.Unix())
	return append(dst, r.URL...)
}

func parseTomb(oid OID, b []byte) (row, error) {
	p := parser{b: b}
	r := row{gone: true, op: soif.Delete}
	r.OID = oid
	r.Seq = p.uvarint()
	r.Updated = time.Unix(p.varint(), 0).UTC()
	r.URL = string(p.b)
	if p.bad {
		return row{}, fmt.Errorf("index of deleted object %s: %w", oid, ErrDamaged)
	}
	return r, nil
}

// A frameInfo is a frame as the index knows it.
type frameInfo struct {
	seg, off uint32
	length   int
	meta     int
	raw      int64 // bytes of the objects
	live     int64 // of those that are not dead
	count    int
	base     uint64
	dead     []byte // a bit a change, lowest first; nil when all live
}

func (f *frameInfo) key() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, f.seg), f.off)
}

func (f *frameInfo) append(dst []byte) []byte {
	for _, v := range []uint64{uint64(f.length), uint64(f.meta), uint64(f.raw), uint64(f.live), uint64(f.count), f.base} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, f.dead...)
}

func parseFrameInfo(k, b []byte) (frameInfo, error) {
	if len(k) != 8 {
		return frameInfo{}, fmt.Errorf("index of frames: %w", ErrDamaged)
	}
	f := frameInfo{seg: binary.BigEndian.Uint32(k), off: binary.BigEndian.Uint32(k[4:])}
	p := parser{b: b}
	f.length, f.meta = int(p.uvarint()), int(p.uvarint())
	f.raw, f.live = int64(p.uvarint()), int64(p.uvarint())
	f.count, f.base = int(p.uvarint()), p.uvarint()
	if len(p.b) > 0 {
		f.dead = bytes.Clone(p.b)
	}
	if p.bad {
		return f, fmt.Errorf("index of frame %08x %d: %w", f.seg, f.off, ErrDamaged)
	}
	return f, nil
}

// isDead reports whether the object of a change is no longer the latest.
func (f *frameInfo) isDead(slot int) bool {
	return slot/8 < len(f.dead) && f.dead[slot/8]&(1<<(slot%8)) != 0
}

func (f *frameInfo) kill(slot uint32, size int64) {
	if f.isDead(int(slot)) {
		return
	}
	if f.dead == nil {
		f.dead = make([]byte, (f.count+7)/8)
	}
	f.dead[slot/8] |= 1 << (slot % 8)
	f.live -= size
}

// killAll marks all objects dead, as they are in a frame whose objects are still
// elsewhere.
func (f *frameInfo) killAll() {
	f.dead, f.live = make([]byte, (f.count+7)/8), 0
	for i := range f.dead {
		f.dead[i] = 0xff
	}
}

func (f *frameInfo) revive(slot uint32, size int64) {
	if !f.isDead(int(slot)) {
		return
	}
	f.dead[slot/8] &^= 1 << (slot % 8)
	f.live += size
	if f.live == f.raw {
		f.dead = nil
	}
}
