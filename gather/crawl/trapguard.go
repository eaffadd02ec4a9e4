package crawl

import (
	"sync"

	"harvest/gather/dup"
)

// A trapGuard is the Trap of one server, for several goroutines.
type trapGuard struct {
	mu   sync.Mutex
	trap *Trap
}

func (g *trapGuard) refuses(u string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trap.Refuses(u)
}

func (g *trapGuard) seen(u string, depth int, says *dup.Signature) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trap.Seen(u, depth, says)
}
