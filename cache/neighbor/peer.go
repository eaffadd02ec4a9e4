package neighbor

import (
	"strings"
	"time"

	"harvest/cache/icp"
)

const (
	maxUnanswered = 20
	maxDenied     = 100
	maxFailures   = 10
	tryEvery      = 10 * time.Second

	minWait = 5 * time.Millisecond
	maxWait = 500 * time.Millisecond
)

// peer is a neighbour and what is known of it. The table's mu guards it.
type peer struct {
	Row // but for its State, which is told by what follows

	unanswered int       // asked since the last answer,
	since      time.Time // the first of them
	denied     int       // refusals in a row
	failures   int       // fetches that failed in a row
	tried      time.Time // when it was last tried though it was down
}

// state is up, or why it is not.
func (p *peer) state(now time.Time) string {
	switch {
	case p.failures >= maxFailures:
		return "failing"
	case p.unanswered >= maxUnanswered && now.Sub(p.since) >= maxWait: // not those that are only on their way
		return "dead"
	case p.denied >= maxDenied:
		return "denied"
	case p.ICP.IsValid() && p.Heard.IsZero() && p.Fetched == 0:
		return "new"
	}
	return "up"
}

// use tells whether it may be chosen now, and whether it is to be asked though it
// may not. One that fails can only show that it does better by being chosen.
func (p *peer) use(now time.Time) (choose, probe bool) {
	switch s := p.state(now); {
	case s == "up" || s == "new":
		return true, false
	case now.Sub(p.tried) < tryEvery:
		return false, false
	case s == "failing":
		p.tried = now
		return true, false
	}
	p.tried = now
	return false, true
}

// asks notes a question.
func (p *peer) asks(now time.Time) {
	p.Asked++
	if p.unanswered++; p.unanswered == 1 {
		p.since = now
	}
	if p.unanswered == maxUnanswered {
		p.tried = now
	}
}

// hears notes an answer.
func (p *peer) hears(r icp.Reply, now time.Time) {
	p.unanswered, p.Heard = 0, now
	if p.RTT == 0 {
		p.RTT = r.RTT
	} else {
		p.RTT += (r.RTT - p.RTT) / 8
	}
	if r.Op == icp.Denied {
		p.Denied++
		if p.denied++; p.denied == maxDenied {
			p.tried = now
		}
		return
	}
	p.denied = 0
	if r.Op == icp.Hit {
		p.Hits++
	} else {
		p.Misses++
	}
}

// wait is how long an answer is waited for, if it is worth at least so much.
func (p *peer) wait(least time.Duration) time.Duration { return max(least, min(2*p.RTT, maxWait)) }

// serves tells whether hosts are in a list of domains: the first of those that
// match decides, and a list of nothing but exceptions means all others.
func serves(domains []string, host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	open := true
	for _, d := range domains {
		d, not := strings.CutPrefix(strings.ToLower(d), "!")
		if d = strings.Trim(d, "."); host == d || strings.HasSuffix(host, "."+d) {
			return !not
		}
		open = open && not
	}
	return open
}
