package icp

import (
	"net/netip"
	"time"
)

// limit bounds how much each address is answered. It belongs to one goroutine.
type limit struct {
	rate int
	by   map[netip.Addr]*bucket
}

// bucket is what an address has left, as of a time.
type bucket struct {
	left float64
	at   time.Time
}

const (
	defaultRate = 30_000
	maxPeers    = 1024 // addresses held; source addresses can be made up
)

// take takes n from an address's allowance, or tells that there is not enough.
func (l *limit) take(a netip.Addr, now time.Time, n float64) bool {
	rate := float64(l.rate)
	if rate <= 0 {
		rate = defaultRate
	}
	burst := max(rate/10, 100)
	b := l.by[a]
	if b == nil {
		if len(l.by) >= maxPeers && !l.shed(now, rate, burst) {
			return false
		}
		if l.by == nil {
			l.by = make(map[netip.Addr]*bucket)
		}
		b = &bucket{burst, now}
		l.by[a] = b
	}
	b.left, b.at = min(burst, b.left+rate*max(0, now.Sub(b.at).Seconds())), now
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

// shed forgets the addresses that have all of their allowance again, for whom
// forgetting changes nothing, and tells whether there were any.
func (l *limit) shed(now time.Time, rate, burst float64) bool {
	n := len(l.by)
	for a, b := range l.by {
		if b.left+rate*now.Sub(b.at).Seconds() >= burst {
			delete(l.by, a)
		}
	}
	return len(l.by) < n
}
