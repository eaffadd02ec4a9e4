package broker

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"harvest/gather/store"
)

// benchObjects is how many objects the figures below are of: BENCH_OBJECTS, or so
// few that a test is soon over.
func benchObjects(t *testing.T, few int) int {
	if n, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS")); err == nil {
		return n
	}
	t.Logf("%d objects; BENCH_OBJECTS=200000 is more", few)
	return few
}

// asks asks a query again and again and gives how long each took, in order.
func asks(t *testing.T, b *Broker, c context.Context, n int) (took []time.Duration) {
	q := parsed(t, "title : title5 and other3")
	m := plain()
	m.limit = 20
	for range n {
		begin := time.Now()
		if _, err := b.answer(c, q, m, 1); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// TestFlood measures one user's queries alone, and while another floods the Broker
// with all that is costly.
func TestFlood(t *testing.T) {
	b := filled(t, benchObjects(t, 5000), "limits user=hostile time=5s\n")
	good, hostile := asUserOf("good"), asUserOf("hostile")
	asks(t, b, good, 20)
	alone := asks(t, b, good, 300)
	flood, stop := context.WithCancel(hostile)
	var wg sync.WaitGroup
	for _, text := range []string{"*", "*o*", "wordd~3 or othre~3", "/.*[0-9]+.*/", "not (not (not (common or *1*)))", "common", "*a* and *e* and *i*", "stands~4"} {
		q := parsed(t, text)
		for range 2 {
			wg.Go(func() {
				for flood.Err() == nil {
					b.answer(flood, q, plain(), 1) // limits and the end of the flood stop some
				}
			})
		}
	}
	flooded := asks(t, b, good, 300)
	stop()
	wg.Wait()
	at := func(l []time.Duration, share float64) time.Duration { return l[int(share*float64(len(l)-1))] }
	t.Logf("alone: p50 %s p99 %s max %s; flooded: p50 %s p99 %s max %s", at(alone, .5), at(alone, .99), at(alone, 1), at(flooded, .5), at(flooded, .99), at(flooded, 1))
	if at(flooded, .5) > 100*time.Millisecond {
		t.Errorf("got a median of %s in a flood of 16 costly queries, want it soon", at(flooded, .5))
	}
}

// TestGCPause measures queries while garbage is collected, with expired objects,
// orphans, and much to give back.
func TestGCPause(t *testing.T) {
	n := benchObjects(t, 5000)
	b := filled(t, n, "")
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { b.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	good := asUserOf("good")
	alone := asks(t, b, good, 300)
	id := 0
	for e, err := range b.store.Scan(ctx, "", "") {
		must(t, err)
		if id++; id%3 == 0 {
			must(t, b.registry.drop([]store.OID{e.OID}))
		}
		if id > 3*min(n/3, 3000) {
			break
		}
	}
	before := b.disk()
	done := make(chan error, 1)
	b.mu.Lock()
	b.gcRuns = true
	b.mu.Unlock()
	begin := time.Now()
	wg.Go(func() { done <- b.gc(ctx) })
	var during []time.Duration
	for len(done) == 0 {
		during = append(during, asks(t, b, good, 1)...)
	}
	took := time.Since(begin)
	must(t, <-done)
	slices.Sort(during)
	at := func(l []time.Duration, share float64) time.Duration { return l[int(share*float64(len(l)-1))] }
	t.Logf("%d objects, gc took %s, disk %d before, %d after; alone p99 %s max %s; %d queries during gc p50 %s p99 %s max %s",
		n, took, before, b.disk(), at(alone, .99), at(alone, 1), len(during), at(during, .5), at(during, .99), at(during, 1))
	if at(during, .99) > 200*time.Millisecond {
		t.Errorf("got a p99 of %s while garbage is collected, want it below 50ms on a machine at rest", at(during, .99))
	}
}
