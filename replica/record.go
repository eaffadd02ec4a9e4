package replica

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"time"

	"harvest/gather/store"
)

// A Writer names who made a record: the first 8 bytes of the SHA-256 of the Ed25519
// key by which it signs.
type Writer [8]byte

// String is the 16 hex digits by which the writer is named.
func (w Writer) String() string { return hex.EncodeToString(w[:]) }

// parseWriter reads what String gives.
func parseWriter(text string) (w Writer, err error) {
	if len(text) != 2*len(w) || !isHex(text) {
		return w, fmt.Errorf("writer %.20q: not 16 hex digits: %w", text, iofs.ErrInvalid)
	}
	hex.Decode(w[:], []byte(text))
	return w, nil
}

// isHex reports whether text holds nothing but lower-case hex digits.
func isHex(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// A Version is a place in what a writer has written. A writer takes a higher epoch
// when it may not know all that it has written, as from an old disk.
type Version struct {
	Epoch uint32
	Seq   uint64
}

// String is the version as it stands in file names: 3.1726.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Epoch, v.Seq) }

func (v Version) less(o Version) bool {
	return v.Epoch < o.Epoch || v.Epoch == o.Epoch && v.Seq < o.Seq
}

// parseVersion reads what String gives, and nothing else that means the same.
func parseVersion(text string) (v Version, err error) {
	epoch, seq, _ := strings.Cut(text, ".")
	e, err1 := strconv.ParseUint(epoch, 10, 32)
	s, err2 := strconv.ParseUint(seq, 10, 64)
	if v = (Version{uint32(e), s}); err1 != nil || err2 != nil || v.String() != text {
		return Version{}, fmt.Errorf("version %.40q: not EPOCH.SEQ: %w", text, iofs.ErrInvalid)
	}
	return v, nil
}

// A Record says which object a writer has under an OID. One without a hash says in a
// log that the object is gone.
type Record struct {
	OID  store.OID
	Hash [32]byte // SHA-256 of the object
	Version
	Updated uint32 // when the object was updated, in seconds since 1970
	TTL     uint32 // how many seconds it lives from then; 0: for ever
	Size    uint32 // bytes of the object
}

// MaxObject is the size of the largest object that is replicated.
const MaxObject = 16 << 20

func (r *Record) gone() bool { return r.Hash == [32]byte{} }

// expired tells whether the object's time was over at the full hour before now: then
// no replica shows it any more, whichever it hears from.
func (r *Record) expired(now time.Time) bool {
	return r.TTL > 0 && uint64(r.Updated)+uint64(r.TTL) < uint64(max(now.Unix(), 0)/3600*3600)
}

// wins tells whether a record counts rather than that of another writer: the newer
// object does, and of equally new ones everywhere the same.
func (r *Record) wins(w Writer, o *Record, ow Writer) bool {
	if r.Updated != o.Updated {
		return r.Updated > o.Updated
	}
	if c := bytes.Compare(r.Hash[:], o.Hash[:]); c != 0 {
		return c > 0
	}
	return bytes.Compare(w[:], ow[:]) > 0
}

// describes tells whether an object is the one that the record is of.
func (r *Record) describes(body []byte) bool {
	return len(body) == int(r.Size) && sha256.Sum256(body) == r.Hash
}

// # Records on the wire and on disk
//
// A record is 72 bytes, numbers big-endian: OID[16] hash[32] epoch[4] seq[8] updated[4]
// ttl[4] size[4]. So it stands in the files sum/WRITER/aa/bb and sum/WRITER/aa/records,
// in the order of the OIDs, and without its OID in the database, under it.
const recordSize = 72

func (r *Record) append(dst []byte) []byte {
	return r.appendRest(append(dst, r.OID[:]...))
}

// appendRest appends what follows the OID.
func (r *Record) appendRest(dst []byte) []byte {
	dst = append(dst, r.Hash[:]...)
	dst = binary.BigEndian.AppendUint32(dst, r.Epoch)
	dst = binary.BigEndian.AppendUint64(dst, r.Seq)
	dst = binary.BigEndian.AppendUint32(dst, r.Updated)
	dst = binary.BigEndian.AppendUint32(dst, r.TTL)
	return binary.BigEndian.AppendUint32(dst, r.Size)
}

// parseRest reads what follows an OID.
func parseRest(oid store.OID, b []byte) (r Record, err error) {
	if len(b) != recordSize-len(oid) {
		return r, fmt.Errorf("record of %s: %d bytes: %w", oid, len(b), iofs.ErrInvalid)
	}
	r.OID = oid
	copy(r.Hash[:], b)
	b = b[32:]
	r.Epoch, r.Seq = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
	r.Updated, r.TTL, r.Size = binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if r.gone() || r.Size > MaxObject {
		return r, fmt.Errorf("record of %s: no object, or one of %d bytes: %w", oid, r.Size, iofs.ErrInvalid)
	}
	return r, nil
}

// parseRecords reads records whose OIDs begin with a prefix of 1 or 2 bytes and rise.
func parseRecords(prefix, b []byte) ([]Record, error) {
	if len(b)%recordSize != 0 {
		return nil, fmt.Errorf("records of %x: %d bytes: %w", prefix, len(b), iofs.ErrInvalid)
	}
	all := make([]Record, 0, len(b)/recordSize)
	for ; len(b) > 0; b = b[recordSize:] {
		r, err := parseRest(store.OID(b[:16]), b[16:recordSize])
		if err != nil {
			return nil, err
		}
		n := len(all)
		if !bytes.HasPrefix(r.OID[:], prefix) || n > 0 && bytes.Compare(all[n-1].OID[:], r.OID[:]) >= 0 {
			return nil, fmt.Errorf("records of %x: %s is out of order: %w", prefix, r.OID, iofs.ErrInvalid)
		}
		all = append(all, r)
	}
	return all, nil
}

// A log is text: a line with the head that it leads to, as in heads, then a line a
// record in the order of versions:
//
//	EPOCH.SEQ OID HASH UPDATED TTL SIZE    an object
//	EPOCH.SEQ OID                          one that is gone
//
// with a tab between fields. If the objects are few and small they follow after an empty
// line, so that who reads the log need not ask for them.
func (r *Record) appendLine(dst []byte) []byte {
	if r.gone() {
		return fmt.Appendf(dst, "%s\t%s\n", r.Version, r.OID)
	}
	return fmt.Appendf(dst, "%s\t%s\t%s\t%d\t%d\t%d\n", r.Version, r.OID, b64(r.Hash[:]), r.Updated, r.TTL, r.Size)
}

// parseLog reads a log. An OID is in it once. Objects may follow an empty line, as in a
// batch.
func parseLog(b []byte) (h Head, all []Record, objects []byte, err error) {
	b, objects, _ = cutLog(b)
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	heads, _, err := parseHeads(b[:min(len(first)+1, len(b))])
	if err != nil || len(heads) != 1 {
		return Head{}, nil, nil, errors.Join(err, fmt.Errorf("log: %d heads: %w", len(heads), iofs.ErrInvalid))
	}
	all, err = parseLines(rest)
	return heads[0], all, objects, err
}

// cutLog parts the lines of a log from the objects.
func cutLog(b []byte) (lines, objects []byte, ok bool) {
	i := bytes.Index(b, []byte("\n\n"))
	if i < 0 {
		return b, nil, false
	}
	return b[:i+1], b[i+2:], true
}

func parseLines(b []byte) ([]Record, error) {
	all := make([]Record, 0, min(bytes.Count(b, []byte("\n")), maxDelta))
	seen := make(map[store.OID]bool, cap(all))
	for line := range strings.Lines(string(b)) {
		r, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("log line %d: %w", len(all)+1, err)
		}
		if n := len(all); seen[r.OID] || n == maxDelta || n > 0 && r.less(all[n-1].Version) {
			return nil, fmt.Errorf("log line %d: %s is out of order: %w", n+1, r.OID, iofs.ErrInvalid)
		}
		seen[r.OID] = true
		all = append(all, r)
	}
	return all, nil
}

func parseLine(line string) (r Record, err error) {
	f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
	if len(f) != 2 && len(f) != 6 || !strings.HasSuffix(line, "\n") {
		return r, fmt.Errorf("%d fields: %w", len(f), iofs.ErrInvalid)
	}
	if r.Version, err = parseVersion(f[0]); err != nil {
		return r, err
	}
	if r.OID, err = store.ParseOID(f[1]); err != nil || len(f) == 2 {
		return r, err
	}
	hash, err := unb64(f[2])
	if err != nil || len(hash) != len(r.Hash) {
		return r, fmt.Errorf("hash %.70q: not one: %w", f[2], iofs.ErrInvalid)
	}
	copy(r.Hash[:], hash)
	for i, p := range []*uint32{&r.Updated, &r.TTL, &r.Size} {
		n, err := strconv.ParseUint(f[3+i], 10, 32)
		if err != nil {
			return r, fmt.Errorf("number %.20q: %w", f[3+i], iofs.ErrInvalid)
		}
		*p = uint32(n)
	}
	if r.gone() || r.Size > MaxObject {
		return r, fmt.Errorf("no object, or one of %d bytes: %w", r.Size, iofs.ErrInvalid)
	}
	return r, nil
}
