package topology

import (
	"math"
	"time"
)

// hopCPU is what a member itself takes to pass an update on, in seconds.
const hopCPU = 1e-3

// A spread tells how long updates take to be everywhere, in seconds.
type spread struct {
	mean, worst float64
	t           []float64 // when each member has the update
	queue       []int     // members whose neighbours may have it sooner than was thought
	queued      []bool
}

func newSpread(n int) *spread { return &spread{t: make([]float64, n), queued: make([]bool, n)} }

// from fills t with the time at which each member has an update of size bytes
// that begins at one of them, and returns the last. A hop is news of it (half a
// round trip), the request for it and the answer (one), and the bytes over a
// link that half of the sender's neighbours use at once. Labels are corrected
// in the order of a queue (Bellman, Ford, Moore), which in graphs of so few
// edges takes less than a search of the next member by time.
func (s *spread) from(source int, w *Net, a *adjacency, size float64) (last float64) {
	n := len(s.t)
	for i := range s.t {
		s.t[i] = math.Inf(1)
	}
	s.t[source] = 0
	s.queue = append(s.queue[:0], source)
	for at := 0; at < len(s.queue); at++ {
		v := s.queue[at]
		s.queued[v] = false
		share := max(1, float64(len(a.near[v]))/2)
		for _, u := range a.near[v] {
			t := s.t[v] + 1.5*w.rtt[v*n+u] + size/w.rate[v*n+u]*share + hopCPU
			if t >= s.t[u] {
				continue
			}
			if s.t[u] = t; !s.queued[u] {
				s.queued[u] = true
				s.queue = append(s.queue, u)
			}
		}
	}
	for _, t := range s.t {
		last = max(last, t)
	}
	return last
}

// of looks at an update from each member: mean and worst of when the last has
// it. It gives up, with false, when their sum is beyond most.
func (s *spread) of(w *Net, a *adjacency, size, most float64) bool {
	s.mean, s.worst = 0, 0
	for source := range s.t {
		last := s.from(source, w, a, size)
		s.mean += last / float64(len(s.t))
		if s.worst = max(s.worst, last); s.mean+s.worst > most {
			return false
		}
	}
	return true
}

// Spread is how long an update of size bytes takes until the last member has
// it, over a graph of the same members: the mean over all members that it may
// begin at, and the worst of them. Members that it does not reach make both
// infinite: math.MaxInt64.
func (w *Net) Spread(g *Graph, size int) (mean, worst time.Duration) {
	s := newSpread(len(w.members))
	s.of(w, g.adjacency(), float64(size), math.Inf(1))
	return seconds(s.mean), seconds(s.worst)
}

func seconds(s float64) time.Duration {
	if s *= float64(time.Second); s < math.MaxInt64 {
		return time.Duration(s)
	}
	return math.MaxInt64
}
