package crawl

import "go.etcd.io/bbolt"

// # Strangers
//
// What only strangers asked for is never asked of a private address: not the
// document when it was submitted, not in any visit after that, and not the
// robots.txt of its server.

// strange reports whether a document is asked for on behalf of strangers. One
// that a root covers is not: it would be asked for anyway.
func (v *visit) strange(p *Page) bool {
	switch {
	case v.plan.Public == nil:
		return false
	case p.root != nil:
		return p.root.Outside
	}
	return p.flags&outside != 0 || p.flags&byHand == 0 && p.doc.Submitted > 0
}

// strangers reports whether nobody but strangers asked for anything of a server.
func (v *visit) strangers(s *host) (bool, error) {
	if v.plan.Public == nil {
		return false, nil
	}
	v.mu.Lock()
	own := s.own
	if !own {
		_, own = v.counted(s) // perhaps since
		s.own = own
	}
	v.mu.Unlock()
	if own {
		return false, nil
	}
	err := v.f.db.View(func(tx *bbolt.Tx) error {
		front(tx, s.id, func(_ string, flags byte, _ DocID) bool {
			own = flags&byHand != 0 && flags&outside == 0
			return !own
		})
		var ids []DocID
		for from := uint32(0); !own; from += uint32(len(ids)) {
			if ids = readOwn(tx, s.id, from, nil); len(ids) == 0 {
				break
			}
			for _, id := range ids {
				d, ok := v.f.read(tx, id)
				own = own || ok && d.Root == 0 && d.Submitted == 0 && d.State != Heard && d.State != Vanished
			}
		}
		return nil
	})
	return !own, err
}
