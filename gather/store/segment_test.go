package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
)

func testFrame(tb testing.TB) []byte {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer enc.Close()
	a, b := object("http://h/a", "1", 5), object("http://h/b", "2", 6)
	metas := []meta{
		{op: soif.Update, oid: ID("a", ""), seq: 9, body: 9, updated: 5, ttl: 60, size: len(a)},
		{op: soif.Delete, oid: ID("x", ""), seq: 7, body: 7, updated: 6, url: "http://h/x"},
		{op: soif.Refresh, oid: ID("b", ""), seq: 10, body: 2, updated: -1, size: len(b)},
	}
	raw := append(bytes.Clone(a), b...)
	return appendFrame(nil, metas, len(raw), enc.EncodeAll(raw, nil), 7, 1234, true)
}

// FuzzFrame gives parseFrame bytes with a right checksum, which the disk cannot
// be counted on to refuse. What parses has to encode to what parses alike.
func FuzzFrame(f *testing.F) {
	f.Add(testFrame(f))
	f.Add(testFrame(f)[:80])
	f.Add([]byte{})
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(2*maxObject))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= frameHeader {
			b = bytes.Clone(b)
			fixSum(b)
		}
		fr, err := parseFrame(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("got %v, want a class", err)
			}
			return
		}
		if err := fr.unpack(dec); err == nil && fr.rawLen > 0 {
			for slot := range fr.metas {
				fr.object(slot)
			}
		}
		again, err := parseFrame(appendFrame(nil, fr.metas, fr.rawLen, fr.packed, fr.group, fr.time, fr.last))
		if err != nil {
			t.Fatalf("encoded again: %v", err)
		}
		for i, m := range again.metas {
			if m != fr.metas[i] {
				t.Fatalf("change %d: got %+v, want %+v", i, m, fr.metas[i])
			}
		}
	})
}

// FuzzRow does the same for what the index holds.
func FuzzRow(f *testing.F) {
	r := row{op: soif.Update}
	r.Seq, r.Body, r.Size, r.Type, r.URL = 5, 4, 100, "HTML", "http://h/"
	f.Add(r.append(nil))
	f.Add(appendTomb(nil, &r))
	fi := frameInfo{length: 100, meta: 20, raw: 300, live: 200, count: 9, base: 7}
	fi.kill(3, 100)
	f.Add(fi.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRow(OID{1}, b); err == nil && r.Size >= 0 && r.Seq >= r.Body {
			if again, err := parseRow(OID{1}, r.append(nil)); err != nil || again != r {
				t.Fatalf("row: got %+v %v, want %+v", again, err, r)
			}
		}
		if r, err := parseTomb(OID{1}, b); err == nil {
			if again, err := parseTomb(OID{1}, appendTomb(nil, &r)); err != nil || again != r {
				t.Fatalf("tombstone: got %+v %v, want %+v", again, err, r)
			}
		}
		if fi, err := parseFrameInfo(make([]byte, 8), b); err == nil {
			for slot := range 100 {
				fi.isDead(slot)
			}
		}
	})
}

func TestFrame(t *testing.T) {
	b := testFrame(t)
	for n := range len(b) {
		if _, err := parseFrame(b[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("first %d bytes: got %v, want damaged", n, err)
		}
		c := bytes.Clone(b)
		c[n] ^= 0x10
		if _, err := parseFrame(c); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d changed: got %v, want damaged", n, err)
		}
	}
	f, err := parseFrame(append(b, "more"...))
	if err != nil || f.length != len(b) || len(f.metas) != 3 || f.metas[1].url != "http://h/x" || !f.last || f.group != 7 {
		t.Errorf("got %+v %v", f, err)
	}
}

// fixSum gives a frame the checksum of what it holds.
func fixSum(b []byte) {
	n := min(len(b), int(binary.LittleEndian.Uint32(b[8:])))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:max(n, 8)], castagnoli))
}
