package broker

import (
	"math/bits"
	"time"
)

// A latency counts durations in classes an eighth apart, from a microsecond on:
// what it says is less than an eighth too much, in 2 KB however many there were.
type latency struct {
	count [256]int64
	n     int64
	sum   time.Duration
	most  time.Duration
}

// latencyClass is that of a duration.
func latencyClass(d time.Duration) int {
	us := uint64(max(d/time.Microsecond, 0))
	if us < 8 {
		return int(us)
	}
	octave := bits.Len64(us) - 4 // 8…15: 0
	return min(8+octave*8+int(us>>octave)-8, 255)
}

// latencyEnd is the longest duration of a class.
func latencyEnd(class int) time.Duration {
	if class < 8 {
		return time.Duration(class+1) * time.Microsecond
	}
	octave := (class - 8) / 8
	return time.Duration(uint64((class-8)%8+9)<<octave) * time.Microsecond
}

func (l *latency) add(d time.Duration) {
	l.count[latencyClass(d)]++
	l.n++
	l.sum += d
	l.most = max(l.most, d)
}

// at is the duration that a share of all are within, 0 without any.
func (l *latency) at(share float64) time.Duration {
	need := int64(share*float64(l.n) + 0.9999)
	for i, n := range l.count {
		if need -= n; need <= 0 && l.n > 0 {
			return min(latencyEnd(i), l.most)
		}
	}
	return l.most
}
