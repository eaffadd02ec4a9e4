package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/dup"
)

// Submissions are bounded: so many at once, and then so many a second.
const (
	submitBurst = 1000
	submitRate  = 10
)

// A bucket holds what may still be submitted.
type bucket struct {
	mu   sync.Mutex
	left float64
	at   time.Time // when left was so
}

// take takes n, or nothing.
func (b *bucket) take(n int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.left = submitBurst
	} else if d := now.Sub(b.at); d > 0 {
		b.left = min(submitBurst, b.left+d.Seconds()*submitRate)
	}
	b.at = now
	if float64(n) > b.left {
		return false
	}
	b.left -= float64(n)
	return true
}

// A refusal is a line that was not taken.
type refusal struct {
	line string
	err  error
}

// submit queues URLs that somebody from outside wants to have gathered, and
// counts that they do. Each line is taken or refused by itself.
func (g *Gatherer) submit(ctx context.Context, lines []string) (refused []refusal, err error) {
	g.mu.Lock()
	c := g.conf
	g.mu.Unlock()
	var urls []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		u, err := submittable(c, line)
		if err == nil && !g.submits.take(1, time.Now()) {
			err = fmt.Errorf("more than %d at once and %d a second: %w", submitBurst, submitRate, syscall.EBUSY)
		}
		if err != nil {
			refused = append(refused, refusal{line, err})
			continue
		}
		urls = append(urls, u)
	}
	if len(urls) == 0 {
		return refused, nil
	}
	if err := g.db.Submit(ctx, urls...); err != nil {
		return refused, err
	}
	if err := g.scored(ctx, urls); err != nil {
		return refused, err
	}
	for _, u := range urls {
		g.journal.event("submitted", ndb.Of("url", u))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != "stopped" { // else whoever lets it go has it run
		g.want.queue = true
		g.poke()
	}
	return refused, nil
}

// scored sees to it that the collection is chosen anew, after the visit that is to
// come, when a submission has raised the score of what is stored.
func (g *Gatherer) scored(ctx context.Context, urls []string) error {
	for _, u := range urls {
		d, err := g.db.Lookup(u)
		if err == nil && d.State != crawl.Stored || errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = lock(ctx, g.sel.placed)
		}
		if err != nil {
			return err
		}
		defer func() { <-g.sel.placed }()
		return g.unsettle()
	}
	return nil
}

// submittable checks what a stranger asks for. A document of this machine is
// nothing for strangers; an address of its network is refused when it is looked
// up.
func submittable(c *config, line string) (string, error) {
	u, err := crawl.Canonical(line)
	if err != nil {
		return "", err
	}
	if host, _ := dup.SplitHost(u); host == "" {
		return "", fmt.Errorf("not of a server: %w", iofs.ErrInvalid)
	}
	if why := c.exclude(u, false); why != "" {
		return "", fmt.Errorf("%s: %w", why, iofs.ErrInvalid)
	}
	return u, nil
}
