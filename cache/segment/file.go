package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// A segment is a file of records. It is written by many at once, each into the
// stretch it was given, and sealed when it is full: it does not change any more.
type segment struct {
	id      uint32
	queue   int
	path    string
	f       *os.File
	refs    atomic.Int32 // those who read, and the store
	writers sync.WaitGroup
	size    int64      // given out; guarded by Store.mu while it is written
	files   int64      // bytes of bodies in files of their own; guarded by Store.mu
	mu      sync.Mutex // guards table
	table   []tabled   // its records, until they stand in the file beside it
	gone    bool       // it was taken back; guarded by mu
	sealed  bool       // guarded by Store.mu
}

// A tabled is what the table of a segment says of a record.
type tabled struct {
	record
	at int64
}

func (g *segment) release() {
	if g.refs.Add(-1) == 0 {
		g.f.Close()
	}
}

// hold keeps the file open; it fails once the segment was taken back.
func (g *segment) hold() bool {
	for {
		n := g.refs.Load()
		if n == 0 {
			return false
		}
		if g.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func segmentName(id uint32, queue int) string {
	return fmt.Sprintf("%08x.%s", id, [...]string{"small", "main"}[queue])
}

// write gives a record a place at the end of a queue and writes it there. The
// segment is not sealed before the caller has said Done.
func (s *Store) write(queue int, r *record, head, body []byte) (*segment, int64, error) {
	g, at, err := s.place(queue, r)
	if err != nil {
		return nil, 0, err
	}
	if _, err = g.f.WriteAt(head, at); err == nil && len(body) > 0 {
		_, err = g.f.WriteAt(body, at+int64(len(head)))
	}
	if err != nil { // what is there is torn, and known to be by its sum
		g.writers.Done()
		return nil, 0, err
	}
	g.mu.Lock()
	g.table = append(g.table, tabled{*r, at})
	g.mu.Unlock()
	return g, at, nil
}

// place finds the stretch for a record, in a new segment if the last one is full.
func (s *Store) place(queue int, r *record) (*segment, int64, error) {
	n := r.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, os.ErrClosed
	}
	q := s.queue[queue]
	var g *segment
	if len(q) > 0 && !q[len(q)-1].sealed {
		g = q[len(q)-1]
	}
	if g != nil && g.size+n > s.opt.Segment {
		full := g
		full.sealed = true // no more places; those that were given are still written
		s.sealing.Go(func() { s.finish(full) })
		g = nil
	}
	if g == nil {
		var err error
		if g, err = s.create(queue); err != nil {
			return nil, 0, err
		}
	}
	at := g.size
	g.size += n
	s.used[queue] += n
	if r.kind == kindFile {
		g.files += r.body
		s.used[queue] += r.body
	}
	g.writers.Add(1)
	return g, at, nil
}

// create makes a segment; mu is held.
func (s *Store) create(queue int) (*segment, error) {
	s.last++
	g := &segment{id: s.last, queue: queue, path: filepath.Join(s.dir, segmentName(s.last, queue))}
	if err := removeFile(g.path + ".table"); err != nil { // of one that had this number
		return nil, err
	}
	f, err := os.OpenFile(g.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	g.f = f
	g.refs.Store(1)
	s.queue[queue] = append(s.queue[queue], g)
	return g, nil
}

// finish writes the table of a segment that is full.
func (s *Store) finish(g *segment) {
	if !g.hold() {
		return
	}
	defer g.release()
	if err := s.seal(g); err != nil {
		s.opt.Log.Error("cache: a segment has no table, and is read whole at the next start", "segment", g.path, "err", err)
	}
}

// seal syncs a segment and writes the table of its records beside it.
func (s *Store) seal(g *segment) error {
	g.writers.Wait()
	if err := g.f.Sync(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return nil
	}
	if err := writeSynced(g.path+".table", appendTable(nil, g.table)); err != nil {
		return err
	}
	g.table = nil
	return nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(path + ".new")
		return err
	}
	return os.Rename(path+".new", path)
}

// The table of a segment is tableMagic, a line of tabledSize bytes a record (kind
// and three bytes of 0, meta, key, seq, came, at, body), and a CRC-32C of all that.
const (
	tableMagic = "HvCt"
	tabledSize = 56
)

func appendTable(b []byte, table []tabled) []byte {
	b = append(b, tableMagic...)
	for _, t := range table {
		b = append(b, t.kind, 0, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(t.meta))
		b = append(b, t.key[:]...)
		b = binary.LittleEndian.AppendUint64(b, t.seq)
		b = binary.LittleEndian.AppendUint64(b, uint64(t.came))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.at))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.body))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseTable reads a table, of a segment of size bytes.
func parseTable(b []byte, size int64) ([]tabled, error) {
	n := len(b) - len(tableMagic) - 4
	if n < 0 || n%tabledSize != 0 || string(b[:len(tableMagic)]) != tableMagic ||
		crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, errTorn
	}
	b = b[len(tableMagic) : len(b)-4]
	all := make([]tabled, 0, n/tabledSize)
	for ; len(b) > 0; b = b[tabledSize:] {
		t := tabled{at: int64(binary.LittleEndian.Uint64(b[40:]))}
		t.kind, t.meta = b[0], int(binary.LittleEndian.Uint32(b[4:]))
		copy(t.key[:], b[8:])
		t.seq = binary.LittleEndian.Uint64(b[24:])
		t.came = int64(binary.LittleEndian.Uint64(b[32:]))
		t.body = int64(binary.LittleEndian.Uint64(b[48:]))
		if t.kind < kindInline || t.kind > kindGone || t.meta > maxMeta || t.body < 0 || t.body > 1<<50 ||
			t.at < 0 || t.at%align != 0 || t.at+t.bodyAt() > size || t.kind == kindInline && t.at+t.size() > size+align {
			return nil, errTorn
		}
		all = append(all, t)
	}
	return all, nil
}

// errFull is a disk's share that is used up by what may not go.
var errFull = fmt.Errorf("the share of the disk is used up: %w", syscall.ENOSPC)
