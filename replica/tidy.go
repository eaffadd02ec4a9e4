package replica

import (
	"context"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// tidyEvery is how often what has expired is looked for.
const tidyEvery = time.Minute

// tidy drops what has expired, and forgets old tombstones, until ctx ends.
func (r *Replica) tidy(ctx context.Context) {
	for {
		if err := r.expire(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.lg.Error("tidy", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tidyEvery):
			if err := r.sweepDue(ctx); err != nil && ctx.Err() == nil {
				r.lg.Error("sweep", "err", err)
			}
		}
	}
}

// expire drops objects whose time was over at the last full hour. A record goes when
// its writer takes it back, which this one does of its own.
func (r *Replica) expire(ctx context.Context, now time.Time) error {
	hour := now.Truncate(time.Hour)
	n, err := r.store.Expire(ctx, hour)
	if err != nil {
		return err
	}
	if n > 0 {
		r.told("expired", ndb.Of("objects", n))
	}
	r.mu.Lock()
	horizon := r.config.horizon
	r.mu.Unlock()
	for m, keep := range map[*mirror]time.Duration{r.mirror: horizon, r.flood: floodTTL} {
		over, err := m.expired(m.self, now)
		if err != nil {
			return err
		}
		if _, err := m.publish(ctx, over, now); err != nil {
			return err
		}
		if err := m.forget(now.Add(-keep)); err != nil {
			return err
		}
	}
	return nil
}

// expired gives what a writer has that is over. It goes through all its records once
// an hour.
func (m *mirror) expired(w Writer, now time.Time) (over []publication, err error) {
	hour := now.Truncate(time.Hour)
	m.mu.Lock()
	done := m.expiredAt.Equal(hour)
	m.expiredAt = hour
	m.mu.Unlock()
	if done {
		return nil, nil
	}
	err = m.db.View(func(tx *bbolt.Tx) error {
		return tableOf(tx, w).each(nil, func(r *Record) error {
			if r.expired(now) {
				over = append(over, publication{oid: r.OID})
			}
			return nil
		})
	})
	return over, err
}

// forget drops the tombstones of before a time.
func (m *mirror) forget(before time.Time) error {
	m.commits.Lock()
	defer m.commits.Unlock()
	m.mu.Lock()
	all := make(map[Writer]writer, len(m.writers))
	for w, x := range m.writers {
		all[w] = *x
	}
	m.mu.Unlock()
	floors := make(map[Writer]Version)
	err := m.db.Update(func(tx *bbolt.Tx) error {
		for w, x := range all {
			floor, n, err := tableOf(tx, w).forget(uint32(max(before.Unix(), 0)))
			if err != nil || n == 0 {
				if err != nil {
					return err
				}
				continue
			}
			if x.floor.less(floor) {
				x.floor = floor
				floors[w] = floor
			}
			if err := m.save(tx, w, &x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for w, floor := range floors {
		if x := m.writers[w]; x != nil {
			x.floor = floor
		}
	}
	return nil
}

// check looks whether each object that is to be here is what its record says, and
// none is here without one; what is wrong is mended by the next exchange.
func (r *Replica) check(ctx context.Context) (lacking, extra int, err error) {
	var want []*Record
	err = r.db.View(func(tx *bbolt.Tx) error {
		for _, w := range r.mirror.known() {
			err := tableOf(tx, w).each(nil, func(rec *Record) error {
				if r.mirror.shows(tx, w, rec) && !rec.expired(time.Now()) {
					if body, err := r.mirror.bodies.get(rec.OID); err != nil || !rec.describes(body) {
						want = append(want, &Record{OID: rec.OID})
					}
				}
				return ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	var broken []store.OID
	for _, rec := range want {
		broken = append(broken, rec.OID) // a store takes nothing that it believes to have
	}
	if err := r.mirror.bodies.remove(ctx, broken); err != nil {
		return 0, 0, err
	}
	extra, err = r.sweep(ctx)
	if err != nil {
		return 0, 0, err
	}
	return len(want), extra, r.mirror.want(want)
}

// known gives the writers.
func (m *mirror) known() (all []Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.writers {
		all = append(all, w)
	}
	return all
}

// sweep drops the objects that no record is of: those that had come when a crash was
// faster than their records, and that their writer has taken back since.
func (r *Replica) sweep(ctx context.Context) (int, error) {
	var over []store.OID
	for e, err := range r.store.Scan(ctx, "", "") {
		if err != nil {
			return 0, err
		}
		err := r.db.View(func(tx *bbolt.Tx) error {
			if _, _, ok := r.mirror.other(tx, Writer{}, e.OID); !ok {
				over = append(over, e.OID)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	r.mu.Lock()
	r.orphans = false
	r.mu.Unlock()
	if len(over) == 0 {
		return 0, nil
	}
	return len(over), r.mirror.bodies.remove(ctx, over)
}

// sweepDue sweeps if there may be objects without records, once no writer is being
// filled: till then they may be among those to come.
func (r *Replica) sweepDue(ctx context.Context) error {
	r.mu.Lock()
	due := r.orphans
	r.mu.Unlock()
	if !due || len(r.mirror.fillings()) > 0 {
		return nil
	}
	n, err := r.sweep(ctx)
	if n > 0 {
		r.told("swept", ndb.Of("objects", n))
	}
	return err
}

// mayHaveOrphans tells whether there are not as many objects as records.
func (r *Replica) mayHaveOrphans() bool {
	n := int64(0)
	for _, w := range r.mirror.known() {
		n += r.mirror.of(w).count
	}
	return r.store.Count() != n
}
