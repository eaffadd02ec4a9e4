package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
)

// Cursor returns the cursor of this moment: after it there are no changes yet.
func (s *Store) Cursor() Cursor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Cursor{s.epoch, s.totals.seq}
}

// ParseCursor reads a cursor: `0`, what Cursor.String gave, or an RFC 3339 time,
// which stands for the last change before its second. One of another epoch, of
// the future, or from before a deletion that was forgotten wraps ErrCursor; what
// is neither cursor nor time wraps fs.ErrInvalid.
func (s *Store) ParseCursor(text string) (Cursor, error) {
	c, t, err := splitCursor(text)
	if err != nil {
		return Cursor{}, err
	}
	if !t.IsZero() {
		if c, err = s.cursorAt(t); err != nil {
			return Cursor{}, err
		}
	}
	if err := s.checkCursor(c); err != nil {
		return Cursor{}, fmt.Errorf("cursor %s: %w", text, err)
	}
	return c, nil
}

// cursorAt returns the cursor of the last change before the second of t.
func (s *Store) cursorAt(t time.Time) (c Cursor, err error) {
	now := s.Cursor()
	if t.Unix() < 0 {
		return Cursor{}, nil
	}
	err = s.view(func(v view) error {
		k, before := v.time.Cursor().Seek(number(uint64(t.Unix())))
		if k != nil && len(before) == 8 {
			c.Seq = binary.BigEndian.Uint64(before)
			return nil
		}
		v.s.mu.RLock()
		defer v.s.mu.RUnlock()
		for _, t2 := range []*table{v.tables[1], v.tables[0]} {
			if t2 == nil {
				continue
			}
			for _, m := range t2.times {
				if m.second >= t.Unix() {
					c.Seq = m.before
					return nil
				}
			}
		}
		c.Seq = now.Seq
		return nil
	})
	if c.Seq > 0 {
		c.Epoch = now.Epoch
	}
	return c, err
}

func (s *Store) checkCursor(c Cursor) error {
	if c.Seq == 0 {
		return nil // as before everything as 0
	}
	now := s.Cursor()
	switch {
	case c.Epoch != now.Epoch:
		return fmt.Errorf("of another epoch: %w", ErrCursor)
	case c.Seq > now.Seq:
		return fmt.Errorf("ahead of the store: %w", ErrCursor)
	}
	floor := uint64(0)
	err := s.view(func(v view) error {
		if v.meta != nil {
			floor = getNumber(v.meta, "floor")
		}
		return nil
	})
	if err == nil && c.Seq < floor {
		err = fmt.Errorf("older than the deletions that are remembered: %w", ErrCursor)
	}
	return err
}

// Changes yields the latest change of each object that changed after the cursor,
// in the order of their numbers, as far as there were any at the call. Objects
// that change meanwhile may be left out: their new change is after the cursor of
// the call, and Changes from there has it. One that is only refreshed meanwhile
// is not left out, since from there it would be told as no more than that; it has
// the number of the change it had. A cursor without changes before it yields no
// deletions. Cursors that ParseCursor refuses are refused here too.
func (s *Store) Changes(ctx context.Context, after Cursor) iter.Seq2[Record, error] {
	return s.changes(ctx, after, s.Cursor().Seq, 0)
}

// changes is Changes up to a number, and if op is not 0 of those changes alone.
func (s *Store) changes(ctx context.Context, after Cursor, until uint64, op soif.Op) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		err := s.checkCursor(after)
		w := changeWalk{s: s, at: after.Seq, until: until, seen: until, late: make(map[OID]row)}
		for err == nil && w.at < until {
			var rows []row
			if rows, err = w.next(); err != nil {
				break
			}
			for i := range rows {
				rec, ok := rows[i].record(after.Seq)
				if ok && (op == 0 || op == rec.Op) && !yield(rec, nil) {
					return
				}
			}
			err = ctx.Err()
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// record returns what a reader at a cursor has to be told of an object.
func (r *row) record(after uint64) (Record, bool) {
	switch {
	case r.gone:
		return Record{soif.Delete, r.Entry}, after > 0
	case r.Body <= after && after > 0:
		return Record{soif.Refresh, r.Entry}, true
	}
	return Record{soif.Update, r.Entry}, true
}

// A changeWalk goes through the changes up to a number.
type changeWalk struct {
	s         *Store
	at, until uint64
	seen      uint64      // the changes after until that the index had are noted up to here
	late      map[OID]row // what was refreshed after until and changed before
}

// next returns rows whose last change is after w.at, and moves that to the number
// up to which these are all. The tables are looked at before the index: a row that
// moves from one to the other meanwhile is found twice, not never.
func (w *changeWalk) next() (rows []row, err error) {
	recent := w.s.recent(w.at, w.until)
	for _, r := range w.s.recent(w.until, math.MaxUint64) {
		w.note(r)
	}
	var upTo uint64
	err = w.s.view(func(v view) (err error) {
		if rows, upTo, err = w.scan(v); err != nil {
			return err
		}
		return w.refreshes(v)
	})
	if err != nil {
		return nil, err
	}
	last := w.at
	if n := len(rows); n > 0 {
		last = rows[n-1].Seq
	}
	for _, r := range recent {
		if r.Seq > last && r.Seq <= upTo {
			rows = append(rows, r)
		}
	}
	n := len(rows)
	for _, r := range w.late {
		if r.Body > w.at && r.Body <= upTo {
			r.Seq, r.atSeq = r.Body, r.Seq
			rows = append(rows, r)
		}
	}
	if n < len(rows) {
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	w.at = upTo
	return rows, nil
}

// scan reads rows in the order of the log, and the number up to which they are all
// that the index has.
func (w *changeWalk) scan(v view) (rows []row, upTo uint64, err error) {
	const some = 4 * chunk
	c := v.log.Cursor()
	for k, oid := c.Seek(number(w.at + 1)); len(k) == 8 && len(oid) == 16; k, oid = c.Next() {
		seq := binary.BigEndian.Uint64(k)
		if seq > w.until {
			break
		}
		if len(rows) == some {
			return rows, rows[len(rows)-1].Seq, nil
		}
		if len(rows)%forgetEvery == forgetEvery-1 {
			w.s.forget(v.log.Tx())
		}
		r, ok, err := v.buckets.state(OID(oid))
		if err != nil {
			return nil, 0, err
		}
		if !ok || r.Seq != seq {
			return nil, 0, fmt.Errorf("index of change %d: %w", seq, ErrDamaged)
		}
		w.s.mu.RLock()
		now := v.recent(r.OID)
		w.s.mu.RUnlock()
		if now == nil || now.Seq == seq {
			rows = append(rows, r)
		} else { // it changed again, and is among the recent or late
			w.note(*now)
		}
	}
	return rows, w.until, nil
}

// note takes a row for late, if it is one.
func (w *changeWalk) note(r row) {
	if !r.gone && r.Seq > w.until && r.Body > w.at && r.Body <= w.until {
		w.late[r.OID] = r
	}
}

// refreshes notes what the index has of after until, if there was a refresh.
func (w *changeWalk) refreshes(v view) error {
	w.s.mu.RLock()
	last := w.s.refreshed
	w.s.mu.RUnlock()
	if last <= w.seen {
		return nil
	}
	c := v.log.Cursor()
	for k, oid := c.Seek(number(w.seen + 1)); len(k) == 8 && len(oid) == 16; k, oid = c.Next() {
		r, _, err := v.buckets.state(OID(oid))
		if err != nil {
			return err
		}
		w.note(r)
		w.seen = binary.BigEndian.Uint64(k)
	}
	return nil
}

// recent returns the rows of the tables with numbers in a range, in order, the
// latest of each object.
func (s *Store) recent(at, until uint64) (rows []row) {
	in := func(r *row) bool { return r.Seq > at && r.Seq <= until }
	s.mu.RLock()
	for _, r := range s.active.rows {
		if in(r) {
			rows = append(rows, *r)
		}
	}
	if s.entering != nil {
		for _, r := range s.entering.rows {
			if in(r) && s.active.rows[r.OID] == nil {
				rows = append(rows, *r)
			}
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows
}

// WriteSince writes the changes after a cursor as an update stream: deletions,
// refreshes, updates, and the cursor to go on from. From 0 it is the collection
// of one moment, and no deletions.
func (s *Store) WriteSince(ctx context.Context, w io.Writer, after Cursor) error {
	if after.Seq == 0 {
		return s.withSnapshot(func(sn *Snapshot) error {
			head, tail, err := sn.framing()
			if err != nil {
				return err
			}
			if err := write(w, head); err != nil {
				return err
			}
			if err := sn.Write(ctx, w); err != nil {
				return err
			}
			return write(w, tail)
		})
	}
	now := s.Cursor()
	u := soif.NewUpdateWriter(w)
	for _, op := range []soif.Op{soif.Delete, soif.Refresh, soif.Update} {
		for rec, err := range s.changes(ctx, after, now.Seq, op) {
			if err != nil {
				return err
			}
			if err := s.writeRecord(u, rec); err != nil {
				return err
			}
		}
	}
	return u.Close(now.String())
}

// WriteSinceZstd is WriteSince in zstd frames; from 0 they are those on disk.
func (s *Store) WriteSinceZstd(ctx context.Context, w io.Writer, after Cursor) error {
	if after.Seq == 0 {
		return s.withSnapshot(func(sn *Snapshot) error {
			head, tail, err := sn.framing()
			if err != nil {
				return err
			}
			if len(head) > 0 {
				head = storedZstd(head)
			}
			if err := write(w, head); err != nil {
				return err
			}
			if err := sn.WriteZstd(ctx, w); err != nil {
				return err
			}
			return write(w, storedZstd(tail))
		})
	}
	zw, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow))
	if err != nil {
		return err
	}
	if err := s.WriteSince(ctx, zw, after); err != nil {
		// Not closed: the stream shall not look whole.
		return err
	}
	return zw.Close()
}

func write(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// framing returns what stands before and after the objects of the snapshot in an
// update stream.
func (sn *Snapshot) framing() (head, tail []byte, err error) {
	var buf bytes.Buffer
	mark := []byte("@MARK { -\n}\n")
	u := soif.NewUpdateWriter(&buf)
	if sn.Size() > 0 {
		err = u.Write(soif.Update, mark)
	}
	if err = cmp.Or(err, u.Close(sn.cursor.String())); err != nil {
		return nil, nil, err
	}
	head, tail, ok := bytes.Cut(buf.Bytes(), mark)
	if !ok {
		return nil, head, nil
	}
	return head, tail, nil
}

func (s *Store) writeRecord(u *soif.UpdateWriter, rec Record) error {
	if rec.Op == soif.Update {
		_, b, err := s.read(rec.Entry.OID)
		if errors.Is(err, iofs.ErrNotExist) {
			return nil // deleted since, as the next stream will tell
		}
		if err != nil {
			return fmt.Errorf("object %s: %w", rec.Entry.OID, err)
		}
		return u.Write(soif.Update, b)
	}
	o := soif.Object{Type: "FILE", URL: rec.Entry.URL}
	o.Add("Object-ID", []byte(rec.Entry.OID.String()))
	if rec.Op == soif.Refresh {
		r := soif.Object{Type: o.Type, URL: o.URL}
		refreshed(&r, rec.Entry.Updated, rec.Entry.TTL)
		o.Attrs = append(o.Attrs, r.Attrs...)
	}
	return u.Write(rec.Op, o.Append(nil))
}

// Expire deletes the objects whose time to live ended before now, and returns
// how many. What it looks at is only those.
func (s *Store) Expire(ctx context.Context, now time.Time) (n int, err error) {
	for {
		if err := s.flush(); err != nil {
			return n, err
		}
		over, err := s.someExpired(now)
		if err != nil || len(over) == 0 {
			return n, err
		}
		if _, err := s.Apply(ctx, over); err != nil {
			return n, err
		}
		n += len(over)
	}
}

func (s *Store) someExpired(now time.Time) (over []Change, err error) {
	end := number(uint64(max(now.Unix(), 0)))
	err = s.view(func(v view) error {
		c := v.expiry.Cursor()
		for k, _ := c.First(); len(k) == 16 && bytes.Compare(k[:8], end) < 0 && len(over) < 16*chunk; k, _ = c.Next() {
			oid := v.log.Get(k[8:])
			if len(oid) != 16 {
				return fmt.Errorf("index of expiry of change %d: %w", binary.BigEndian.Uint64(k[8:]), ErrDamaged)
			}
			over = append(over, Change{Op: soif.Delete, OID: OID(oid)})
		}
		return nil
	})
	return over, err
}
