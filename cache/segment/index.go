package segment

import (
	"encoding/binary"
	"sync"
)

// An entry is what the index knows of a record: 40 bytes.
type entry struct {
	key     Key
	seq     uint64 // 0: the slot is free
	seg     uint32
	at      uint32 // in its segment, in units of align
	came    uint32 // seconds since 1970
	uses    uint8  // up to maxUses
	checked bool   // its body was read whole and is right
	file    bool   // its body is in a file of its own
}

// maxUses is as far as uses are counted (S3-FIFO's two bits).
const maxUses = 3

const shards = 64

// An index finds the records of a key. Tables with linear probing keep it flat: the
// keys are hashes already, and the entries of one key stand near each other.
type index struct{ shard [shards]shard }

type shard struct {
	mu   sync.Mutex
	slot []entry
	n    int
}

func (x *index) of(k Key) *shard { return &x.shard[k[0]%shards] }

func home(k Key, slots int) int {
	return int(binary.LittleEndian.Uint64(k[1:9]) & uint64(slots-1))
}

// add adds an entry.
func (x *index) add(e entry) {
	s := x.of(e.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(e)
}

func (s *shard) add(e entry) {
	if 8*(s.n+1) > 7*len(s.slot) {
		s.grow()
	}
	i := home(e.key, len(s.slot))
	for s.slot[i].seq != 0 {
		i = (i + 1) & (len(s.slot) - 1)
	}
	s.slot[i] = e
	s.n++
}

func (s *shard) grow() {
	old := s.slot
	s.slot = make([]entry, max(64, 2*len(old)))
	s.n = 0
	for _, e := range old {
		if e.seq != 0 {
			s.add(e)
		}
	}
}

// each calls f with a key's entries until it returns false. f may change all but
// the key and the seq. The shard is locked meanwhile.
func (s *shard) each(k Key, f func(i int, e *entry) bool) {
	if s.n == 0 {
		return
	}
	for i := home(k, len(s.slot)); s.slot[i].seq != 0; i = (i + 1) & (len(s.slot) - 1) {
		if s.slot[i].key == k && !f(i, &s.slot[i]) {
			return
		}
	}
}

// remove takes out slot i and moves what was behind it up.
func (s *shard) remove(i int) {
	mask := len(s.slot) - 1
	s.n--
	for j := i; ; {
		j = (j + 1) & mask
		if s.slot[j].seq == 0 {
			break
		}
		// An entry may stand at i if its home is not between i and where it is.
		if h := home(s.slot[j].key, len(s.slot)); (j-h)&mask >= (j-i)&mask {
			s.slot[i] = s.slot[j]
			i = j
		}
	}
	s.slot[i] = entry{}
}

// change calls f with the entry of a record if it is still the one in the index,
// and takes it out when f returns false. It reports whether it was there.
func (x *index) change(k Key, seq uint64, f func(e *entry) bool) bool {
	s := x.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	found, out := false, -1
	s.each(k, func(i int, e *entry) bool {
		if e.seq != seq {
			return true
		}
		found = true
		if !f(e) {
			out = i
		}
		return false
	})
	if out >= 0 {
		s.remove(out)
	}
	return found
}

// has reports whether a key has an entry.
func (x *index) has(k Key) (found bool) {
	s := x.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(k, func(int, *entry) bool {
		found = true
		return false
	})
	return found
}

// find appends a key's entries to dst.
func (x *index) find(dst []entry, k Key) []entry {
	s := x.of(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(k, func(_ int, e *entry) bool {
		dst = append(dst, *e)
		return true
	})
	return dst
}

// stat is how many entries there are, and the bytes of all slots.
func (x *index) stat() (n int, bytes int64) {
	for i := range x.shard {
		s := &x.shard[i]
		s.mu.Lock()
		n += s.n
		bytes += 40 * int64(len(s.slot))
		s.mu.Unlock()
	}
	return n, bytes
}
