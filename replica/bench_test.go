package replica

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// benchObjects is how many objects there are: HARVEST_OBJECTS, or 100,000.
func benchObjects(b *testing.B) int {
	if n, err := strconv.Atoi(os.Getenv("HARVEST_OBJECTS")); err == nil {
		return n
	}
	return 100_000
}

// BenchmarkUpkeep changes objects of a mirror, 1000 at a time and one at a time, and
// counts what it takes to keep records, log and digests: objects are stored elsewhere.
func BenchmarkUpkeep(b *testing.B) {
	n := benchObjects(b)
	m, _ := newTestMirror(b, b.TempDir(), 1)
	m.bodies = noBodies{}
	for i := 0; i < n; i += 10_000 {
		var list []publication
		for k := i; k < min(i+10_000, n); k++ {
			list = append(list, publication{oid: testOID(uint64(k)), body: []byte{1}, updated: t0})
		}
		_, err := m.publish(context.Background(), list, t0)
		must(b, err)
	}
	round := 0
	for _, some := range []int{1000, 1} {
		b.Run(fmt.Sprintf("objects=%d/at-once=%d", n, some), func(b *testing.B) {
			cpu := processorTime()
			for b.Loop() {
				round++
				var list []publication
				for k := range some {
					list = append(list, publication{oid: testOID(uint64((k*7919 + round*31) % n)), body: []byte(fmt.Sprint(round)), updated: t0.Add(time.Duration(round) * time.Second)})
				}
				_, err := m.publish(context.Background(), list, t0)
				must(b, err)
			}
			b.ReportMetric(float64((processorTime()-cpu).Microseconds())/float64(b.N*some), "cpu-µs/object")
		})
	}
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
