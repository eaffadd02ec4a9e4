package fetch

import (
	"sync"
	"time"
)

// A keeper keeps the control connections that no request uses, to spare the
// next one the connecting and the login: the newest first, as servers end those
// that idle. When there are too many, of all servers together, the one unused
// for longest is closed, and each when it was unused for too long.
type keeper struct {
	max  int
	life time.Duration

	// mu guards what follows.
	mu    sync.Mutex
	idle  []kept // in the order in which they were put
	timer *time.Timer
}

// A kept connection.
type kept struct {
	key   string // what it is good for
	conn  closer
	since time.Time
}

type closer interface{ Close() error }

// get returns a connection for a key, nil if there is none.
func (k *keeper) get(key string) closer {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.idle) - 1; i >= 0; i-- {
		if k.idle[i].key == key {
			c := k.idle[i].conn
			k.idle = append(k.idle[:i], k.idle[i+1:]...)
			return c
		}
	}
	return nil
}

// put keeps a connection.
func (k *keeper) put(key string, c closer) {
	k.mu.Lock()
	k.idle = append(k.idle, kept{key, c, time.Now()})
	var out closer
	if len(k.idle) > k.max {
		out = k.idle[0].conn
		k.idle = k.idle[1:]
	}
	if k.timer == nil {
		k.timer = time.AfterFunc(k.life, k.sweep) // close stops it
	}
	k.mu.Unlock()
	if out != nil {
		out.Close()
	}
}

// sweep closes those that were unused for too long, and comes again while there
// are others.
func (k *keeper) sweep() {
	now := time.Now()
	var old []kept
	k.mu.Lock()
	n := 0
	for n < len(k.idle) && now.Sub(k.idle[n].since) >= k.life {
		n++
	}
	old = append(old, k.idle[:n]...)
	k.idle = k.idle[n:]
	switch {
	case k.timer == nil: // closed meanwhile
	case len(k.idle) == 0:
		k.timer = nil
	default:
		k.timer.Reset(k.life - now.Sub(k.idle[0].since))
	}
	k.mu.Unlock()
	for _, x := range old {
		x.conn.Close()
	}
}

// close closes all that is kept.
func (k *keeper) close() {
	k.mu.Lock()
	idle := k.idle
	k.idle = nil
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	k.mu.Unlock()
	for _, x := range idle {
		x.conn.Close()
	}
}
