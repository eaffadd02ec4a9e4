// Package segment keeps the objects of a cache on disk: a log of segments to which
// whole records are appended, an index of them in memory that is 40 bytes an object
// and holds no pointer, and S3-FIFO as the rule of what goes when the disk's share is
// used up (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023),
// which works on the log as it is: the oldest segment is read, what was asked for
// since goes behind the newest, the rest is gone with the file.
//
// Nothing is synced for an object. A record carries sums of all it has, so that what
// a crash has torn is known and dropped; the newest objects may be lost, none is
// served damaged. A segment is synced when it is full, and a table of its records is
// written beside it, which is all that a start has to read.
package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A record, at a multiple of align in its segment:
//
//	magic     4  "HvCo"
//	kind      1
//	-         3  0
//	key      16
//	seq       8  moves with each record of the store
//	came      8  seconds since 1970
//	meta      4  bytes
//	-         4  0
//	body      8  bytes; of kindGone, the last segment that may hold what is gone
//	head sum  4  CRC-32C of the store's salt, the 56 bytes before, the meta, and
//	             the table of sums
//	-         4  0
//	meta
//	a CRC-32C for each blockSize of the body
//	body, unless it is in a file of its own
//
// all numbers little-endian. The salt, a random number of the store, is why nothing
// in a body can be taken for a record when one is looked for behind a torn one.
const (
	magic      = "HvCo"
	headSize   = 64
	align      = 64
	blockSize  = 64 << 10
	maxMeta    = 1 << 20
	kindInline = 1 // the body is in the record
	kindFile   = 2 // the body is the file of the record's number
	kindGone   = 3 // what is older under this key is gone; no body
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn is a record that is not whole.
var errTorn = errors.New("the record is damaged")

// A Key names what a record is about; several records may have one.
type Key [16]byte

type record struct {
	kind byte
	key  Key
	seq  uint64
	came int64
	meta int // bytes
	body int64
}

// sums is how many bytes the table of a body has.
func (r *record) sums() int64 {
	if r.kind == kindGone {
		return 0 // and body is no length
	}
	return 4 * ((r.body + blockSize - 1) / blockSize)
}

// bodyAt is where the body begins in the record.
func (r *record) bodyAt() int64 { return headSize + int64(r.meta) + r.sums() }

// size is how much of a segment the record takes.
func (r *record) size() int64 {
	n := r.bodyAt()
	if r.kind == kindInline {
		n += r.body
	}
	return (n + align - 1) &^ (align - 1)
}

// appendHead appends all of a record but its body, with the table of the body's sums.
func (r *record) appendHead(dst []byte, salt uint32, meta, sums []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, r.kind, 0, 0, 0)
	dst = append(dst, r.key[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, r.seq)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.came))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(meta)))
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.body))
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = append(dst, meta...)
	dst = append(dst, sums...)
	sum := crc32.Update(salt, castagnoli, dst[start:at])
	sum = crc32.Update(sum, castagnoli, dst[at+8:])
	binary.LittleEndian.PutUint32(dst[at:], sum)
	return dst
}

// appendSums appends the sums of a body's blocks. All but its last piece have to be
// whole blocks.
func appendSums(dst, body []byte) []byte {
	for len(body) > 0 {
		n := min(len(body), blockSize)
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(body[:n], castagnoli))
		body = body[n:]
	}
	return dst
}

// parseFixed reads the fixed part of a head. Its sum is not checked yet.
func parseFixed(b []byte) (record, error) {
	var r record
	if len(b) < headSize || string(b[:4]) != magic {
		return r, errTorn
	}
	r.kind = b[4]
	copy(r.key[:], b[8:])
	r.seq = binary.LittleEndian.Uint64(b[24:])
	r.came = int64(binary.LittleEndian.Uint64(b[32:]))
	meta := binary.LittleEndian.Uint32(b[40:])
	body := binary.LittleEndian.Uint64(b[48:])
	if r.kind < kindInline || r.kind > kindGone || meta > maxMeta || body > 1<<50 {
		return r, errTorn
	}
	r.meta, r.body = int(meta), int64(body)
	return r, nil
}

// checkHead checks b, all before the body, against the sum in it.
func (r *record) checkHead(b []byte, salt uint32) error {
	sum := crc32.Update(salt, castagnoli, b[:headSize-8])
	if crc32.Update(sum, castagnoli, b[headSize:]) != binary.LittleEndian.Uint32(b[headSize-8:]) {
		return errTorn
	}
	return nil
}

// checkBlock checks a block of the body against the table.
func checkBlock(sums []byte, i int, block []byte) error {
	if crc32.Checksum(block, castagnoli) != binary.LittleEndian.Uint32(sums[4*i:]) {
		return fmt.Errorf("block %d of the body: %w", i, errTorn)
	}
	return nil
}
