package replica

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCosts counts files and bytes of taking ten changes, by log and by walk. By 9P a
// file is four messages and, since nothing waits for anything else of its level, a level
// is one round.
func TestCosts(t *testing.T) {
	n := uint64(20_000)
	if k, err := strconv.ParseUint(os.Getenv("HARVEST_OBJECTS"), 10, 64); err == nil {
		n = k
	}
	t.Logf("%d objects; HARVEST_OBJECTS=1000000 takes a million", n)
	dir := simDir(t)
	must(t, os.MkdirAll(dir+"/a", 0o777))
	must(t, os.MkdirAll(dir+"/b", 0o777))
	a, _ := newTestMirror(t, dir+"/a", 1)
	b, _ := newTestMirror(t, dir+"/b", 2)
	for i := uint64(0); i < n; i += maxPublish {
		var some []uint64
		for k := i; k < min(i+maxPublish, n); k++ {
			some = append(some, k)
		}
		put(t, a, t0, "first", some...)
	}
	p := exchange(t, b, a, nil)
	must(t, p.err)
	t.Logf("first: %d files, %d bytes, %d objects", p.requests, p.bytes, p.objects)
	text := strings.Repeat("x", 2040)
	for round, way := range []string{"log", "walk", "log", "walk"} {
		var some []uint64
		for i := range uint64(10) {
			some = append(some, (i*7919+uint64(round)*104729)%n)
		}
		put(t, a, t0.Add(time.Duration(round+1)*time.Second), fmt.Sprint(round, text), some...)
		levels := 0
		last := ""
		p := exchange(t, b, a, func(path string) ([]byte, error) {
			if way == "walk" && strings.HasPrefix(path, "changes/") {
				return nil, errFar
			}
			if level := levelOf(path); level != last {
				last = level
				levels++
			}
			return a.answer(path)
		})
		must(t, p.err)
		same := b.rootNow() == a.rootNow()
		files := p.requests
		if way == "walk" {
			files-- // the log that it asked for first
		}
		t.Logf("10 changed, by %s: %d files, %d messages of 9P, %d rounds, %d bytes", way, files, 4*files, levels, p.bytes)
		most := map[string][3]int{"log": {50, 3, 20*1024*105/100 + 1024}, "walk": {130, 5, 130_000}}[way]
		if !same || 4*files > most[0] || levels > most[1] || p.bytes > int64(most[2]) {
			t.Errorf("10 changed, by %s: got more than %v messages, rounds and bytes, or other heads", way, most)
		}
	}
}

// levelOf is what a file is of: files of one level are asked for together.
func levelOf(path string) string {
	f := strings.Split(path, "/")
	if f[0] != "sum" {
		return f[0]
	}
	return fmt.Sprint(len(f), f[len(f)-1] == "node")
}
