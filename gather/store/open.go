package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
)

// Options are how a store is kept. The zero value is right for nearly all.
type Options struct {
	NoSync  bool          // do not sync: only for what can be made again
	Frame   int           // bytes of SOIF in a full frame, 32 KiB
	Segment int64         // bytes after which a segment is full, 128 MiB
	Pending int           // changes held in memory before they are indexed, 512
	Mapped  int64         // bytes of files the process may have mapped before the index lets go of its pages, 64 MiB
	Horizon time.Duration // how long deletions are remembered, 720h
}

func (o Options) withDefaults() Options {
	o.Frame = cmp.Or(o.Frame, 32<<10)
	o.Segment = min(cmp.Or(o.Segment, 128<<20), 1<<30)
	o.Pending = cmp.Or(o.Pending, 512)
	o.Mapped = cmp.Or(o.Mapped, 64<<20)
	o.Horizon = cmp.Or(o.Horizon, 720*time.Hour)
	return o
}

// A Store is a collection of objects in a directory. All methods may be called
// concurrently.
//
// Locks are taken in this order: compactMu, the lead of queueMu, indexMu,
// digests.mu, mu. The leader and
// the holder of indexMu wait for the disk; mu is held for moments.
type Store struct {
	dir  string
	lg   *slog.Logger
	opt  Options
	lock *os.File
	db   *bbolt.DB
	enc  *zstd.Encoder
	dec  *zstd.Decoder

	digests *digests
	frames  frameCache
	checked checked
	gzip    gzipCopy
	packs   packCache
	looks   atomic.Int64 // read transactions; see forget

	queueMu sync.Mutex
	queue   []*request // who waits for Apply; the first has the lead, if leading
	leading bool

	compactMu sync.Mutex // held by Compact
	indexMu   sync.Mutex // held by the one who writes the index
	settled   bool       // the index is on disk; under indexMu

	dirty     chan struct{} // tells runIndex of changes; holds one
	closing   chan struct{}
	indexDone chan struct{} // closed when runIndex has returned

	log   *segment // written by the leader
	epoch uint32   // set by Open

	mu          sync.RWMutex
	active      *table // where changes go
	entering    *table // what is being entered into the index, or nil
	totals      totals
	refreshed   uint64  // the last refresh since Open
	filter      *filter // what the index has, or nil when that is not known
	end         place   // how far the tables go
	segs        map[uint32]*segment
	lastSegment uint32
	broken      error
	moved       chan struct{} // closed and made anew when there are changes
	tell        func([]told)  // tells the doors, or nil
}

// Open opens the store in dir and makes it if it is not there. Only one process
// can have it open; a second gets an error that wraps EBUSY. What a crash left
// unacknowledged is cut off; what was acknowledged and is damaged is reported to
// lg, and the rest is served.
func Open(dir string, lg *slog.Logger, opt Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, lg: lg, opt: opt.withDefaults(), lock: lock,
		digests: new(digests),
		dirty:   make(chan struct{}, 1), closing: make(chan struct{}), indexDone: make(chan struct{}),
		moved: make(chan struct{}), active: newTable(), segs: make(map[uint32]*segment),
	}
	if err := s.open(); err != nil {
		s.closeFiles()
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	go s.runIndex() // Close waits for it
	return s, nil
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	err = flock(f)
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("in use by another process: %w", syscall.EBUSY)
		}
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	return f, nil
}

// flock locks a file. A process that this one starts holds its locks too, from
// the fork to the exec: a store that was closed just then can be locked a moment
// later.
func flock(f *os.File) (err error) {
	for range 50 {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// packWindow is how far back a match may lie: all of a frame, and enough of an
// object that has a frame of its own.
const packWindow = 1 << 20

func (s *Store) open() (err error) {
	s.enc, err = zstd.NewWriter(nil, zstd.WithWindowSize(packWindow), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	s.dec, err = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(2*maxObject), zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		return err
	}
	segs, broken, err := segments(s.dir)
	for _, seg := range segs {
		s.segs[seg.id] = seg
		s.lastSegment = max(s.lastSegment, seg.id)
	}
	if err != nil {
		return err
	}
	r := recovery{s: s}
	if err := r.headers(broken); err != nil {
		return err
	}
	if err := r.index(); err != nil {
		return err
	}
	return r.replay()
}

// A recovery is the state of Open.
type recovery struct {
	s      *Store
	from   place // what the index has
	renew  bool  // cursors given out before may be wrong now
	remade bool  // the index is new
}

// headers judges segments whose header is damaged. One that was being made when
// the power went holds nothing; another is put aside, so that it is reported once.
func (r *recovery) headers(broken []brokenSegment) error {
	for _, b := range broken {
		var n uint32
		if _, err := fmt.Sscanf(filepath.Base(b.path), "%08x.seg", &n); err == nil {
			r.s.lastSegment = max(r.s.lastSegment, n)
		}
		info, err := os.Stat(b.path)
		if err != nil {
			return err
		}
		if info.Size() <= segHeader {
			if err := os.Remove(b.path); err != nil {
				return err
			}
			continue
		}
		r.damage(b.err)
		if err := os.Rename(b.path, b.path+".damaged"); err != nil {
			return err
		}
	}
	return nil
}

func (r *recovery) damage(err error) {
	r.renew = true
	r.s.lg.Error("store damage", "dir", r.s.dir, "err", err)
}

// index opens the index, or makes a new one if it is not there, does not go with
// the segments, or cannot be read.
func (r *recovery) index() error {
	s := r.s
	err := r.useIndex()
	if err == nil {
		return nil
	}
	if !rebuildable(err) {
		return err
	}
	if err != errNewIndex {
		s.lg.Warn("store index is made anew", "dir", s.dir, "err", err)
	}
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(s.dir, indexName)); err != nil {
		return err
	}
	if s.db, err = openIndex(s.dir); err != nil {
		return err
	}
	s.settled = true // so that the state is said to be unsettled
	if err := s.updateIndex(func(buckets, *bbolt.Tx) error { return nil }); err != nil {
		return err
	}
	s.totals, s.epoch = totals{}, 0
	r.remade, r.from = true, place{}
	var last uint32
	for _, seg := range s.segs {
		if seg.kind == kindCompacted {
			r.renew = true // and with it what it forgot
		} else if seg.id >= last {
			last, s.epoch = seg.id, seg.epoch
		}
	}
	return nil
}

// errNewIndex says that the index has never been written to the end.
var errNewIndex = errors.New("index is new")

// rebuildable reports whether an error is about what the index file holds, and
// not about opening it.
func rebuildable(err error) bool {
	var path *iofs.PathError
	return !errors.As(err, &path) && !errors.Is(err, syscall.ENOSPC)
}

// useIndex opens the index and compares it with the segments.
func (r *recovery) useIndex() (err error) {
	s := r.s
	if s.db, err = openIndex(s.dir); err != nil {
		return err
	}
	yes, err := begun(s.db)
	switch {
	case err == nil && !yes:
		err = errNewIndex
	case err == nil && !s.believe():
		err = fmt.Errorf("it was being written when the system went down: %w", ErrDamaged)
	}
	if err != nil {
		return err
	}
	known := make(map[uint32]bool)
	err = s.db.View(func(tx *bbolt.Tx) error {
		b := bucketsOf(tx)
		s.totals, r.from, s.epoch = b.totals()
		c := b.frame.Cursor()
		for k, _ := c.First(); len(k) == 8; {
			id := binary.BigEndian.Uint32(k)
			known[id] = true
			if id == 1<<32-1 {
				break
			}
			k, _ = c.Seek(binary.BigEndian.AppendUint32(nil, id+1))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id := range known {
		if s.segs[id] == nil {
			err := fmt.Errorf("segment %08x is gone: %w", id, ErrDamaged)
			r.damage(err)
			return err
		}
	}
	if seg := s.segs[r.from.seg]; seg != nil && seg.size < int64(r.from.off) {
		err := seg.at(seg.size, fmt.Errorf("it was %d bytes: %w", r.from.off, ErrDamaged))
		r.damage(err)
		return err
	}
	return r.dropOrphans(known)
}

// dropOrphans removes segments that an interrupted Compact left: those it wrote
// that the index does not know, and those it replaced.
func (r *recovery) dropOrphans(known map[uint32]bool) error {
	for id, seg := range r.s.segs {
		if known[id] || seg.kind == kindLog && id >= r.from.seg {
			continue
		}
		if err := os.Remove(seg.path); err != nil {
			return err
		}
		delete(r.s.segs, id)
		if err := seg.release(); err != nil {
			return err
		}
	}
	return nil
}

// replay enters what the index does not have yet, and cuts off what was never
// acknowledged.
func (r *recovery) replay() (err error) {
	s := r.s
	var todo []*segment
	var last *segment // where Apply goes on
	for _, seg := range s.segs {
		if seg.kind == kindLog && (last == nil || seg.id > last.id) {
			last = seg
		}
		if r.remade || seg.kind == kindLog && seg.id >= r.from.seg {
			todo = append(todo, seg)
		}
	}
	slices.SortFunc(todo, func(a, b *segment) int { return cmp.Compare(a.id, b.id) })
	replaced := make(map[uint32]bool)
	for _, seg := range slices.Backward(todo) {
		if replaced[seg.id] {
			continue // and what it replaced may be alive where that was not finished
		}
		for _, id := range seg.replaced {
			replaced[id] = true
		}
	}
	var build *rebuild
	visit := r.replayFrame
	if r.remade {
		build = newRebuild(r)
		defer func() { err = errors.Join(err, build.close()) }()
		visit = build.frame
		todo = slices.DeleteFunc(todo, func(seg *segment) bool {
			return replaced[seg.id] // its replacement is whole, or it would not have its name
		})
	}
	for _, seg := range todo {
		if err := r.replaySegment(seg, seg == last, visit); err != nil {
			return err
		}
	}
	if r.remade {
		if err := build.finish(); err != nil {
			return err
		}
		if err := r.dropOrphans(r.unreplaced(replaced)); err != nil {
			return err
		}
	}
	return r.finish(last)
}

func (r *recovery) unreplaced(replaced map[uint32]bool) map[uint32]bool {
	keep := make(map[uint32]bool)
	for id := range r.s.segs {
		keep[id] = !replaced[id]
	}
	r.from.seg = 1<<32 - 1 // log segments too
	return keep
}

// finish sets the place where Apply goes on. After a loss that is a new epoch in
// a new segment.
func (r *recovery) finish(last *segment) error {
	s := r.s
	if s.epoch == 0 || r.renew {
		var b [4]byte
		rand.Read(b[:])
		s.epoch = binary.LittleEndian.Uint32(b[:]) | 1
		last = nil
	}
	s.log = last
	if last == nil {
		if err := s.roll(); err != nil {
			return err
		}
	}
	s.end = place{s.log.id, uint32(s.log.size)}
	if last != nil && !r.remade {
		return nil
	}
	s.active.n++ // so that the index hears of the place
	return s.flush()
}

// replaySegment enters the frames of a segment from the place the index has. The
// end of the last segment is cut off after the last whole group.
func (r *recovery) replaySegment(seg *segment, last bool, visit func(seg *segment, off int64, f *frame) error) error {
	from := seg.start()
	if !r.remade && seg.id == r.from.seg {
		from = max(from, int64(r.from.off))
	}
	acked := from
	end, err := seg.walk(from, r.damage, func(off int64, f *frame) error {
		if f.last || seg.kind == kindCompacted {
			acked = off + int64(f.length)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if cut := seg.size - acked; cut > 0 {
		if !last {
			r.damage(seg.at(end, errShort))
		} else {
			r.s.lg.Warn("store cuts off what was not acknowledged", "dir", r.s.dir, "segment", segName(seg.id), "bytes", cut)
			if err := r.cut(seg, acked); err != nil {
				return err
			}
		}
	}
	_, err = seg.walk(from, func(error) {}, func(off int64, f *frame) error {
		if off >= acked {
			return errWalked
		}
		return visit(seg, off, f)
	})
	return err
}

func (r *recovery) cut(seg *segment, size int64) error {
	if err := seg.f.Truncate(size); err != nil {
		return err
	}
	seg.size = size
	return seg.f.Sync()
}

// errWalked ends a walk early, without an error.
var errWalked = errors.New("walked far enough")

// walk visits the frames of a segment from an offset on, and returns where they
// end. Frames that are damaged are reported and skipped; what follows the last
// good one is not visited and not reported.
func (s *segment) walk(off int64, damage func(error), visit func(off int64, f *frame) error) (end int64, err error) {
	for off < s.size {
		f, err := s.readFrame(off)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return off, s.at(off, err)
		}
		if err != nil {
			next, serr := s.seek(off + 1)
			if serr != nil {
				return off, s.at(off, serr)
			}
			if next < 0 {
				return off, nil
			}
			damage(s.at(off, err))
			off = next
			continue
		}
		if err := visit(off, f); err == errWalked {
			return off, nil
		} else if err != nil {
			return off, err
		}
		off += int64(f.length)
	}
	return off, nil
}

// replayFrame enters the changes of a frame, as publish does.
func (r *recovery) replayFrame(seg *segment, off int64, f *frame) error {
	s := r.s
	if err := f.unpack(s.dec); err != nil {
		r.damage(seg.at(off, err))
		return nil
	}
	info := f.info(seg, off)
	if seg.kind == kindLog {
		s.markTime(f.time, info.base-1)
	}
	s.active.frames = append(s.active.frames, info)
	for slot, m := range f.metas {
		it, err := r.item(m, f.object(slot), loc{seg.id, uint32(off), uint32(slot)})
		if err != nil {
			r.damage(seg.at(off, fmt.Errorf("object %s: %w: %w", m.oid, ErrDamaged, err)))
			continue
		}
		if it.hadOld && it.old.Seq >= m.seq {
			if !it.row.gone {
				s.active.dead = append(s.active.dead, corpse{it.row.at, it.row.Size})
				s.totals.dead += it.row.Size
			}
			continue
		}
		s.active.put(it.row)
		s.totals.count(it)
	}
	s.active.n++ // a frame of nothing but old changes has to be entered too
	s.end = place{seg.id, uint32(off) + uint32(f.length)}
	if s.active.n < s.opt.Pending {
		return nil
	}
	if err := s.flush(); err != nil {
		// On a full disk, say. What the index does not have is little, and
		// is held in memory as it was before the restart.
		s.lg.Warn("store index", "dir", s.dir, "err", err)
	}
	return nil
}

// item makes of a change in a frame what prepare and resolve made of it first.
func (r *recovery) item(m meta, body []byte, at loc) (*item, error) {
	it, err := itemOf(m, body, at)
	if err != nil {
		return nil, err
	}
	it.old, it.hadOld, err = r.s.state(m.oid)
	it.had = it.hadOld && !it.old.gone
	return it, err
}

// Close enters what is pending into the index and closes the files. No other
// method may be running; snapshots that are still open go on to work.
func (s *Store) Close() error {
	close(s.closing)
	<-s.indexDone
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	err := s.flushLocked()
	if err == nil {
		err = s.settle()
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) closeFiles() (err error) {
	if s.db != nil {
		err = s.db.Close()
	}
	for _, seg := range s.segs {
		err = errors.Join(err, seg.release())
	}
	s.gzip.close()
	if s.enc != nil {
		s.enc.Close()
	}
	return errors.Join(err, s.lock.Close())
}

// Wait returns the number of the last change as soon as it is more than after.
func (s *Store) Wait(ctx context.Context, after uint64) (uint64, error) {
	for {
		s.mu.RLock()
		seq, moved := s.totals.seq, s.moved
		s.mu.RUnlock()
		if seq > after {
			return seq, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return seq, ctx.Err()
		}
	}
}
