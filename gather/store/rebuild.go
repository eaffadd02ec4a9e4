package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/soif"
)

// A rebuild fills a new index from the segments. It reads them once, sorts what
// goes into each bucket, and so writes each page once, nearly full; to enter the
// changes as they come, of random OIDs, writes a page or two a change.
type rebuild struct {
	r      *recovery
	frames []rebuiltFrame // read, and not yet decoded
	size   int            // bytes of their objects
	rows   sorter         // OID[16] ^seq[8] → whether it is gone[1], row or tombstone
	urls   sorter         // path → OID
	log    sorter         // seq[8] → OID
	expiry sorter         // as the bucket
	dead   sorter         // segment[4] offset[4] → slot, size
	tx     *bbolt.Tx
	b      buckets
	n      int // changes in tx
	totals totals
}

// A rebuiltFrame is a frame with what it says of its objects. A nil row is one
// that cannot be read.
type rebuiltFrame struct {
	seg  *segment
	off  int64
	f    *frame
	rows []*row
	errs []error
}

// rebuildBatch is how many changes of the index are in one transaction.
const rebuildBatch = 4096

// sortedChange is how many bytes each sorter may hold in memory for one change
// that may be held there otherwise: 8 MB by default.
const sortedChange = 16 << 10

func newRebuild(r *recovery) *rebuild {
	b := &rebuild{r: r}
	for _, s := range b.sorters() {
		s.dir, s.limit = r.s.dir, r.s.opt.Pending*sortedChange
	}
	return b
}

func (b *rebuild) sorters() []*sorter {
	return []*sorter{&b.rows, &b.urls, &b.log, &b.expiry, &b.dead}
}

// close ends a rebuild, whole or not.
func (b *rebuild) close() error {
	var err error
	if b.tx != nil {
		err = b.tx.Rollback()
	}
	return errors.Join(err, closeAll(b.sorters()...))
}

// put changes the index, in a transaction with others.
func (b *rebuild) put(do func(b *buckets) error) (err error) {
	if b.tx == nil {
		if b.tx, err = b.r.s.db.Begin(true); err != nil {
			return err
		}
		if b.b, err = makeBuckets(b.tx); err != nil {
			return err
		}
		b.b.obj.FillPercent, b.b.tomb.FillPercent, b.b.url.FillPercent = 0.9, 0.9, 0.9
	}
	if err := do(&b.b); err != nil {
		return err
	}
	if b.n++; b.n < rebuildBatch {
		return nil
	}
	return b.commit()
}

func (b *rebuild) commit() error {
	if b.tx == nil {
		return nil
	}
	tx := b.tx
	b.tx, b.n = nil, 0
	err := tx.Commit()
	if err == nil {
		err = b.r.s.db.View(func(tx *bbolt.Tx) error { b.r.s.forget(tx); return nil })
	}
	return err
}

// frame takes the next frame of the segments.
func (b *rebuild) frame(seg *segment, off int64, f *frame) error {
	b.frames = append(b.frames, rebuiltFrame{seg: seg, off: off, f: f})
	if b.size += f.rawLen; b.size < groupBytes && len(b.frames) < window {
		return nil
	}
	return b.decode()
}

// decode decodes the frames that were read, on all processors, and takes what is
// in them in their order.
func (b *rebuild) decode() error {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(b.frames); i += workers {
				b.frames[i].decode(b.r.s)
			}
		})
	}
	wg.Wait()
	for i := range b.frames {
		if err := b.take(&b.frames[i]); err != nil {
			return err
		}
	}
	clear(b.frames)
	b.frames, b.size = b.frames[:0], 0
	return nil
}

func (d *rebuiltFrame) decode(s *Store) {
	if err := d.f.unpack(s.dec); err != nil {
		d.errs = append(d.errs, err)
		return
	}
	for slot, m := range d.f.metas {
		it, err := itemOf(m, d.f.object(slot), loc{d.seg.id, uint32(d.off), uint32(slot)})
		if err != nil {
			d.errs = append(d.errs, fmt.Errorf("object %s: %w: %w", m.oid, ErrDamaged, err))
			d.rows = append(d.rows, nil)
			continue
		}
		d.rows = append(d.rows, it.row)
	}
	d.f.raw = nil
}

func (b *rebuild) take(d *rebuiltFrame) error {
	for _, err := range d.errs {
		b.r.damage(d.seg.at(d.off, err))
	}
	if d.rows == nil {
		return nil
	}
	info := d.f.info(d.seg, d.off)
	if d.seg.kind == kindLog && d.f.time > b.totals.second {
		b.totals.second = d.f.time
		if err := b.put(func(b *buckets) error { return b.time.Put(number(uint64(d.f.time)), number(info.base-1)) }); err != nil {
			return err
		}
	}
	if err := b.put(func(b *buckets) error { return b.frame.Put(info.key(), info.append(nil)) }); err != nil {
		return err
	}
	for _, r := range d.rows {
		if r == nil {
			continue
		}
		var value []byte
		if r.gone {
			value = appendTomb([]byte{1}, r)
		} else {
			value = r.append([]byte{0})
		}
		if err := b.rows.add(binary.BigEndian.AppendUint64(r.OID[:], ^r.Seq), value); err != nil {
			return err
		}
	}
	return nil
}

// finish enters what was taken, a bucket after the other, and leaves the totals
// to the store.
func (b *rebuild) finish() error {
	if err := b.decode(); err != nil {
		return err
	}
	var last OID
	first := true
	err := b.rows.each(func(key, value []byte) error {
		oid := OID(key[:16])
		latest := first || oid != last
		first, last = false, oid
		parse := parseRow
		if value[0] == 1 {
			parse = parseTomb
		}
		r, err := parse(oid, value[1:])
		if err != nil {
			return err
		}
		if latest {
			return b.latest(&r, bytes.Clone(value[1:])) // bbolt keeps values until it commits
		}
		return b.old(&r)
	})
	for _, step := range []func() error{b.enterLog, b.enterURLs, b.enterExpiries, b.bury, b.commit} {
		if err != nil {
			return err
		}
		err = step()
	}
	b.totals.tree = b.totals.seq // it may have been that late
	b.r.s.totals = b.totals
	return err
}

// latest enters the latest state of an object.
func (b *rebuild) latest(r *row, value []byte) error {
	t := &b.totals
	t.seq = max(t.seq, r.Seq)
	t.vers[r.OID[0]] = max(t.vers[r.OID[0]], r.Seq)
	err := b.log.add(number(r.Seq), r.OID[:])
	if r.gone {
		t.tombs++
		return errors.Join(err, b.put(func(b *buckets) error { return b.tomb.Put(r.OID[:], value) }))
	}
	t.objects++
	t.bytes += r.Size
	err = errors.Join(err, b.urls.add([]byte(urlKey(r.URL)), r.OID[:]))
	if !r.Expires().IsZero() {
		err = errors.Join(err, b.expiry.add(expiryKey(r), nil))
	}
	return errors.Join(err, b.put(func(b *buckets) error { return b.obj.Put(r.OID[:], value) }))
}

// old enters a state that was replaced.
func (b *rebuild) old(r *row) error {
	if r.gone {
		return nil
	}
	b.totals.dead += r.Size
	f := frameInfo{seg: r.at.seg, off: r.at.off}
	return b.dead.add(f.key(), binary.AppendUvarint(binary.AppendUvarint(nil, uint64(r.at.slot)), uint64(r.Size)))
}

func (b *rebuild) enterLog() error {
	return b.log.each(func(k, v []byte) error {
		oid := OID(v)
		return b.put(func(b *buckets) error { return b.log.Put(k, oid[:]) })
	})
}

func (b *rebuild) enterURLs() error {
	return b.urls.each(func(k, v []byte) error {
		return b.put(func(b *buckets) error { return putName(b.url, string(k), OID(v)) })
	})
}

func (b *rebuild) enterExpiries() error {
	return b.expiry.each(func(k, _ []byte) error {
		return b.put(func(b *buckets) error { return b.expiry.Put(k, nil) })
	})
}

// bury marks what was replaced, those of a frame together.
func (b *rebuild) bury() error {
	var some []corpse
	enter := func() error {
		dead := some
		some = nil
		return b.put(func(b *buckets) error { return b.bury(dead) })
	}
	err := b.dead.each(func(k, v []byte) error {
		p := parser{b: v}
		some = append(some, corpse{loc{binary.BigEndian.Uint32(k), binary.BigEndian.Uint32(k[4:]), uint32(p.uvarint())}, int64(p.uvarint())})
		if len(some) < 256 {
			return nil
		}
		return enter()
	})
	if err == nil {
		err = enter()
	}
	return err
}

// itemOf makes of a change in a frame what prepare and resolve made of it first,
// but for the object's state before it.
func itemOf(m meta, body []byte, at loc) (*item, error) {
	it := &item{op: m.op, row: &row{op: m.op, gone: m.op == soif.Delete}}
	if !it.row.gone {
		o, _, err := soif.Parse(body, soif.Limits{})
		if err != nil {
			return nil, err
		}
		it.setBody(body, &o)
		it.body = nil
	} else {
		it.row.URL = m.url
	}
	it.row.at = at
	it.row.OID, it.row.Seq, it.row.Body = m.oid, m.seq, m.body
	it.row.Updated = time.Unix(m.updated, 0).UTC()
	it.row.TTL = duration(uint64(m.ttl))
	return it, nil
}

// info returns what the index has of a frame, all of whose objects are alive.
func (f *frame) info(seg *segment, off int64) frameInfo {
	base := f.metas[0].seq
	for _, m := range f.metas {
		base = min(base, m.seq)
	}
	return frameInfo{seg: seg.id, off: uint32(off), length: f.length, meta: f.meta,
		raw: int64(f.rawLen), live: int64(f.rawLen), count: len(f.metas), base: base}
}
