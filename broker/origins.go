package broker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"syscall"
)

// A Broker may collect from Brokers, and those from others. Objects that come back
// to where they came from never lapse: each keeps the other's alive. So each Broker
// tells in the file origins who it is and from which Brokers it has its objects, by
// way of however many, and none collects from one that has its own.

// identity is what a Broker is called in origins, and in via=: no two have the same.
func (b *Broker) identity() string {
	return fmt.Sprintf("%s-%08x", b.name, b.store.Cursor().Epoch)
}

// Bounds of a file origins.
const (
	maxOrigins     = 10_000
	maxOriginsSize = 1 << 20
)

// origins are the lines of the file: this Broker, and those of its sources.
func (b *Broker) origins() string {
	b.mu.Lock()
	var all []string
	for _, s := range b.sources {
		all = append(all, s.origins...)
	}
	b.mu.Unlock()
	slices.Sort(all)
	own := b.identity()
	return strings.Join(append([]string{own}, slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == own })...), "\n") + "\n"
}

// errCircle is the error of a source that has this Broker's objects.
var errCircle = fmt.Errorf("it collects from this Broker itself: %w", syscall.ELOOP)

// origins reads who the source is. A source that has no such file is no Broker, and
// the first one itself.
func (c *collection) origins() (all []string, err error) {
	f, err := c.tree.Open("origins")
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	own := c.b.identity()
	limited := &io.LimitedReader{R: f, N: maxOriginsSize + 1}
	in := bufio.NewScanner(limited)
	for in.Scan() {
		name := in.Text()
		if name == own {
			return nil, errCircle
		}
		if all = append(all, name); len(all) > maxOrigins {
			return nil, fmt.Errorf("origins: over %d Brokers: %w", maxOrigins, syscall.E2BIG)
		}
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("origins: over %d bytes: %w", maxOriginsSize, syscall.E2BIG)
	}
	return all, in.Err()
}
