package store

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// A packCache keeps the packed forms of frames with dead objects, so that each is
// packed once and not for every reader. Compact is what makes them few.
type packCache struct {
	mu   sync.Mutex
	at   map[place]packed
	size int
}

// packed is a frame's body without its dead. A frame only loses objects, so that
// the bytes that are alive tell whether it is still the same.
type packed struct {
	live int64
	b    []byte
}

// maxPacked bounds what is kept, and how much a snapshot packs when it is opened.
const maxPacked = 4 << 20

func (c *packCache) get(p place, live int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.at[p]; have.live == live {
		return have.b
	}
	return nil
}

func (c *packCache) put(p place, live int64, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || c.size+len(b) > maxPacked {
		c.at, c.size = make(map[place]packed), 0
	}
	c.size += len(b) - len(c.at[p].b)
	c.at[p] = packed{live, b}
}

// settle packs the frames of the snapshot that have dead objects, so that all of
// its compressed form has its place. If they are many it leaves them, and the
// snapshot is not Ready.
func (sn *Snapshot) settle() error {
	total := int64(0)
	for i := range sn.frames {
		if sn.frames[i].dead != nil {
			total += sn.frames[i].live
		}
	}
	if !sn.dirty || total > maxPacked {
		return nil
	}
	sn.packs = make(map[int][]byte)
	at := int64(0)
	for i := range sn.frames {
		f := &sn.frames[i]
		n := int64(f.length - frameHeader - f.meta)
		if f.dead != nil {
			b, err := sn.repack(f)
			if err != nil {
				return err
			}
			sn.packs[i], n = b, int64(len(b))
		}
		at += n
		sn.packedAt[i+1] = at
	}
	sn.dirty = false
	return nil
}

func (sn *Snapshot) repack(info *frameInfo) ([]byte, error) {
	key := place{info.seg, info.off}
	if b := sn.s.packs.get(key, info.live); b != nil {
		return b, nil
	}
	live, err := sn.live(info)
	if err != nil {
		return nil, err
	}
	b := sn.s.enc.EncodeAll(live, nil)
	sn.s.packs.put(key, info.live, b)
	return b, nil
}

// readPacked reads a part of a frame's packed form.
func (sn *Snapshot) readPacked(i int, p []byte, off int64) error {
	info := &sn.frames[i]
	if b := sn.packs[i]; b != nil {
		copy(p, b[off:])
		return nil
	}
	seg, key := sn.segs[info.seg], place{info.seg, info.off}
	if sn.s.checked.has(key) {
		_, err := seg.f.ReadAt(p, int64(info.off)+int64(frameHeader+info.meta)+off)
		return err
	}
	f, err := seg.read(int64(info.off))
	if err != nil {
		return err
	}
	copy(p, f.packed[off:])
	sn.s.checked.add(key)
	return nil
}

// storedZstd is a zstd frame that has bytes as they are: for the few around the
// objects, an encoder's tables cost more than all else.
func storedZstd(b []byte) []byte {
	if len(b) == 0 || len(b) >= 1<<16 {
		panic("store: a frame that is stored has up to 64 KB") // and these are ours
	}
	f := binary.LittleEndian.AppendUint32(nil, 0xfd2fb528)
	if len(b) < 256 {
		f = append(f, 0x20, byte(len(b)))
	} else {
		f = binary.LittleEndian.AppendUint16(append(f, 0x60), uint16(len(b)-256))
	}
	h := len(b)<<3 | 1 // the last block, raw
	return append(append(f, byte(h), byte(h>>8), byte(h>>16)), b...)
}

// storedGzip is a gzip member of few bytes.
func storedGzip(b []byte) ([]byte, error) { return gzippedAt(gzip.StatelessCompression, b) }
