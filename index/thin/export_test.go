package thin

import (
	"encoding/binary"
	"hash/crc32"
)

// DecodeManifest decodes b with the checksum it should have, so that the
// fuzzer gets past it.
func DecodeManifest(b []byte) (any, error) {
	return decodeManifest(binary.LittleEndian.AppendUint32(b[:len(b):len(b)], crc32.Checksum(b, castagnoli())))
}

// ManifestNumbers counts what was decoded.
func ManifestNumbers(m any) int {
	n := 0
	for _, s := range m.(manifest).segs {
		n += 1 + len(s.gone)
	}
	return n
}
