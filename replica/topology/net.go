// Package topology computes over which of its links a group floods its
// updates: a graph that stays connected when members fail, in which no member
// serves more than a few others, and along which an update is everywhere soon.
//
// Each member measures the others with a Meter; the master makes a Net of what
// they measured and Design a Graph of it, which goes to all as text. The
// problem is that of floodd (Danzig, Obraczka, Lowekamp: A tool for massively
// replicating Internet archives, 1994): of all k-connected graphs with bounded
// degrees the one of least diameter and cost, found by simulated annealing.
package topology

import (
	"fmt"
	"slices"
	"time"
)

// A Link is what was measured between two members.
type Link struct {
	RTT       time.Duration // there and back
	Bandwidth float64       // bytes a second
	Down      bool          // it could not be reached
}

// What a link is taken for if nothing at all was measured in its group.
var unmeasured = Link{RTT: 100 * time.Millisecond, Bandwidth: 1 << 20}

// downRTT stands for a link that is down: an edge over it is worse than any
// number of others, so that there is one only where a graph cannot do without.
const downRTT = time.Hour

// A Net is the members of a group and the links of all pairs.
type Net struct {
	members []string
	rtt     []float64 // seconds, of each pair both ways
	rate    []float64 // bytes a second
	down    []bool
}

// NewNet asks for each pair, both ways, what was measured; names must differ.
// A link has the greater round trip and the lesser bandwidth of its two
// directions. One that nobody measured is taken for half as good as the median
// of those that are known, so that it is used where nothing else will do.
func NewNet(members []string, measured func(from, to string) (Link, bool)) (*Net, error) {
	w := &Net{members: slices.Sorted(slices.Values(members))}
	n := len(w.members)
	for i := 1; i < n; i++ {
		if w.members[i] == w.members[i-1] {
			return nil, fmt.Errorf("topology: member %s: named twice", w.members[i])
		}
	}
	w.rtt, w.rate, w.down = make([]float64, n*n), make([]float64, n*n), make([]bool, n*n)
	var rtts, rates []float64
	for i := range n {
		for j := range i {
			rtt, rate, down := both(w.members[i], w.members[j], measured)
			if rtt > 0 {
				rtts = append(rtts, rtt)
			}
			if rate > 0 {
				rates = append(rates, rate)
			}
			w.set(i, j, rtt, rate, down)
		}
	}
	w.guess(2*median(rtts, unmeasured.RTT.Seconds()/2), median(rates, 2*unmeasured.Bandwidth)/2)
	return w, nil
}

// both is a link as its two ends see it; what neither measured is 0.
func both(a, b string, measured func(from, to string) (Link, bool)) (rtt, rate float64, down bool) {
	for _, way := range [][2]string{{a, b}, {b, a}} {
		l, ok := measured(way[0], way[1])
		if !ok {
			continue
		}
		down = down || l.Down
		rtt = max(rtt, l.RTT.Seconds())
		if l.Bandwidth > 0 && (rate == 0 || l.Bandwidth < rate) {
			rate = l.Bandwidth
		}
	}
	return rtt, rate, down
}

func (w *Net) set(i, j int, rtt, rate float64, down bool) {
	n := len(w.members)
	w.rtt[i*n+j], w.rtt[j*n+i] = rtt, rtt
	w.rate[i*n+j], w.rate[j*n+i] = rate, rate
	w.down[i*n+j], w.down[j*n+i] = down, down
}

// guess fills in what was not measured, and prices what is down.
func (w *Net) guess(rtt, rate float64) {
	for i := range w.rtt {
		if w.rtt[i] == 0 {
			w.rtt[i] = rtt
		}
		if w.rate[i] == 0 {
			w.rate[i] = rate
		}
		if w.down[i] {
			w.rtt[i] = downRTT.Seconds()
		}
	}
}

func median(x []float64, none float64) float64 {
	if len(x) == 0 {
		return none
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// What a link's delay must change by for a graph to be thought over.
const (
	differsBy = 1.5
	noise     = 5e-3 // seconds
)

// Joins tells whether o has the same members as w, and the same links that are down.
func (w *Net) Joins(o *Net) bool {
	return slices.Equal(w.members, o.members) && slices.Equal(w.down, o.down)
}

// Differs tells whether a graph that was made of o, which w joins, may be a bad one
// for w: a link takes half as long again as before, or so much less.
func (w *Net) Differs(o *Net) bool {
	n := len(w.members)
	for i := range w.rtt {
		if i%n >= i/n {
			continue // itself, or the other way
		}
		a, b := w.delay(i), o.delay(i)
		if lo, hi := min(a, b), max(a, b); hi > lo*differsBy && hi-lo > noise {
			return true
		}
	}
	return false
}

// delay is what a hop takes for an update of usual size, in seconds.
func (w *Net) delay(at int) float64 { return 1.5*w.rtt[at] + usual/w.rate[at] }

// Members are the names, sorted.
func (w *Net) Members() []string { return slices.Clone(w.members) }

func (w *Net) link(i, j int) Link {
	at := i*len(w.members) + j
	return Link{time.Duration(w.rtt[at] * float64(time.Second)), w.rate[at], w.down[at]}
}
