package topology

import (
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

// How many measurements a Meter holds; what is older says little of the link now.
const (
	meterRTTs  = 16
	meterRates = 3
)

// A Meter makes a Link of what one member sees of another: times of empty
// requests, and the course of transfers that happen anyway or are made for it.
// The zero value is ready; it may be used by many at once.
type Meter struct {
	mu    sync.Mutex
	rtts  ring[time.Duration]
	rates ring[float64]
	down  bool
	last  time.Time
}

// A ring holds the last few values.
type ring[T any] struct {
	v  []T
	at int
}

func (r *ring[T]) add(v T, most int) {
	if len(r.v) < most {
		r.v = append(r.v, v)
		return
	}
	r.v[r.at%most] = v
	r.at++
}

// RTT takes the time of a request that has next to no content.
func (m *Meter) RTT(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rtts.add(d, meterRTTs)
	m.down, m.last = false, time.Now()
}

// Down takes note that the other could not be reached.
func (m *Meter) Down() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down, m.last = true, time.Now()
}

// Transfer takes a transfer that has ended, if it was long enough to tell.
func (m *Meter) Transfer(t *Transfer) bool {
	rate, ok := t.Rate()
	if ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rates.add(rate, meterRates)
		m.down, m.last = false, time.Now()
	}
	return ok
}

// Link is what the link is like: the least of the last round trips, as what is
// above it is the load of a moment, and the median of the last rates. ok is
// false if nothing was measured. at is when something last was.
func (m *Meter) Link() (l Link, at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.Down = m.down
	if len(m.rtts.v) > 0 {
		l.RTT = slices.Min(m.rtts.v)
	}
	l.Bandwidth = median(slices.Clone(m.rates.v), 0)
	return l, m.last, !m.last.IsZero()
}

// transferMarks is how many points of a transfer are held.
const transferMarks = 128

// A Transfer is the course of one transfer. It is for one goroutine.
type Transfer struct {
	n     int64
	marks []mark
	step  int64 // bytes between marks
}

// A mark is how many bytes had come when.
type mark struct {
	n  int64
	at time.Time
}

// Add takes note that n more bytes have come by at.
func (t *Transfer) Add(n int, at time.Time) {
	t.n += int64(n)
	if len(t.marks) > 0 && t.n-t.marks[len(t.marks)-1].n < t.step {
		return
	}
	t.marks = append(t.marks, mark{t.n, at})
	if len(t.marks) == transferMarks { // every other, and from here on twice as far apart
		for i := range transferMarks / 2 {
			t.marks[i] = t.marks[2*i+1]
		}
		t.marks = t.marks[:transferMarks/2]
		t.step = max(2*t.step, 2*t.n/transferMarks)
	}
}

// A transfer tells a rate if this much of it came, over this time, after its
// first half.
const (
	leastBytes = 32 << 10
	leastTime  = time.Millisecond
)

// Rate is the rate, in bytes a second, of the second half of the bytes: the
// first goes by while TCP finds out what the path bears, and while a shaper's
// bucket lasts. Both would count for most of a short transfer.
func (t *Transfer) Rate() (float64, bool) {
	if len(t.marks) < 3 {
		return 0, false
	}
	end := t.marks[len(t.marks)-1]
	i := slices.IndexFunc(t.marks, func(m mark) bool { return 2*m.n >= end.n })
	begin := t.marks[i]
	d := end.at.Sub(begin.at)
	if end.n-begin.n < leastBytes || d < leastTime {
		return 0, false
	}
	rate := float64(end.n-begin.n) / d.Seconds()
	return rate, !math.IsInf(rate, 0)
}

// Reader passes r on and follows it as a transfer.
func (t *Transfer) Reader(r io.Reader) io.Reader { return timed{t, r} }

type timed struct {
	t *Transfer
	r io.Reader
}

func (r timed) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.t.Add(n, time.Now())
	}
	return n, err
}
