package essence

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkBrought tells what a summary costs by each form, in time and in
// processor time of this process and of those that it began.
func BenchmarkBrought(b *testing.B) {
	const kept = "#!/usr/bin/perl\n$| = 1; while (<STDIN>) { my ($u, $n) = split; read(STDIN, my $b, $n); my $o = \"Title: x\\n\"; print length($o), \"\\n\", $o }\n"
	for _, c := range []struct {
		name   string
		bounds Bounds
		files  map[string]string
	}{
		{"none", Bounds{}, nil},
		{"quick", Bounds{}, map[string]string{"Lua.quick": "Title ^-- (.*)\nKeywords function M\\.(\\w+)\n"}},
		{"star", Bounds{}, map[string]string{"Lua.star": luaStar}},
		{"program", Bounds{}, map[string]string{"Lua.sum": fiveLines}},
		{"true", Bounds{}, map[string]string{"Lua.sum": "#!/bin/true\n"}},
		{"kept", Bounds{Keep: 1000}, map[string]string{"Lua.sum": kept}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, failed := bring(b, c.bounds, c.files)
			sum(b, luaInput(p))
			before := used(b)
			for b.Loop() {
				sum(b, luaInput(p))
			}
			p.Close() // what is kept is counted when it has ended
			b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
			if f := failed(); len(f) > 0 {
				b.Error(f[0])
			}
		})
	}
}

// used is the processor time of this process and of those that have ended.
func used(tb testing.TB) (t time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			tb.Fatal(err)
		}
		t += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return t
}
