package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	iofs "io/fs"
)

// An OID names an object: the same URL from the same gatherer has the same OID
// wherever and whenever it is stored.
type OID [16]byte

// ID returns the OID of the object that a gatherer keeps for a URL: the first
// 16 bytes of the SHA-256 of the URL, a zero byte and the gatherer's identity.
func ID(url, gatherer string) OID {
	b := make([]byte, 0, len(url)+1+len(gatherer))
	b = append(append(append(b, url...), 0), gatherer...)
	sum := sha256.Sum256(b)
	return OID(sum[:16])
}

// String returns the 32 hex digits by which the object is named.
func (o OID) String() string { return hex.EncodeToString(o[:]) }

// ParseOID reads the 32 lower-case hex digits of an OID. Anything else wraps
// fs.ErrInvalid.
func ParseOID(text string) (OID, error) {
	var o OID
	if len(text) != 2*len(o) || !isHex(text) {
		return OID{}, fmt.Errorf("object name %.40q: not 32 hex digits: %w", text, iofs.ErrInvalid)
	}
	hex.Decode(o[:], []byte(text))
	return o, nil
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
