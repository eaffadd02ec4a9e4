package crawl

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// bytes is what the tables take.
func (k *known) bytes() (n int) {
	for i := range k.part {
		n += 10 * len(k.part[i].vals)
	}
	return n
}

// TestKnown sets, asks for and forgets at random, beside a map, in parts that
// grow many times.
func TestKnown(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var k known
	defer k.free()
	model := make(map[uint64]DocID)
	var all []uint64
	for i := range 200_000 {
		// Few parts, so that they grow; and keys that are all zeros, or half.
		hash := r.Uint64() &^ (0xf8 << 56)
		switch r.IntN(20) {
		case 0:
			hash &^= 1<<32 - 1
		case 1:
			hash &^= 0xffff << 32
		case 2:
			hash &^= 1<<48 - 1
			hash |= 2 // 1 stands for 0 too
		case 3:
			if len(all) > 0 {
				hash = all[r.IntN(len(all))]
			}
		}
		id := DocID(i + 1)
		if r.IntN(10) == 0 {
			id = 0
		}
		hash &^= 0xff << 48 // which a part does not keep
		k.set(hash, id)
		model[hash] = id
		all = append(all, hash)
	}
	for hash, want := range model {
		if got := k.get(hash); got != want {
			t.Fatalf("%016x: got %d, want %d", hash, got, want)
		}
	}
	k.set(0, 5)
	if got := k.get(0); got != 5 {
		t.Errorf("a hash of zeros: got %d, want 5", got)
	}
	if got := k.get(3 << 56); got != 0 {
		t.Errorf("one that was never set: got %d, want 0", got)
	}
}

// TestKnownSize: a URL costs at most 13 bytes, and so it does once all are read
// in again.
func TestKnownSize(t *testing.T) {
	n := 500_000
	if s := os.Getenv("HARVEST_CRAWL_URLS"); s != "" {
		n, _ = strconv.Atoi(s)
	} else {
		t.Log("HARVEST_CRAWL_URLS=50000000 is what a crawl may be of")
	}
	for _, reserve := range []bool{false, true} {
		var k known
		r := rand.New(rand.NewPCG(1, 2))
		if reserve {
			k.reserve(n)
		}
		begun := cpu()
		most := 0.0
		for i := range n {
			k.set(max(r.Uint64(), 1), DocID(i+1))
			if !reserve && i > n/2 && i%(n/100) == 0 {
				most = max(most, float64(k.bytes())/float64(i))
			}
		}
		took := (cpu() - begun) / time.Duration(n)
		if most > 13.1 {
			t.Errorf("%d URLs: %.2f bytes each at most, want 13", n, most)
		}
		last := float64(k.bytes()) / float64(n)
		if last > 13.1 {
			t.Errorf("%d URLs, reserved %t: %.2f bytes each, want 13", n, reserve, last)
		}
		t.Logf("%d URLs, reserved %t: %.2f bytes each at most, %.2f at last, %v to enter one", n, reserve, max(most, last), last, took)
		k.free()
	}
}
