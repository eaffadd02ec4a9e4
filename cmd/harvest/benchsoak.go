package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"harvest/fs"
	"harvest/fs/ninep"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// soakBench is harvest bench soak: a Broker that is worked with for long, in all
// ways at once, by 9P and through a mount, and what of the process grows.
type soakBench struct {
	operations int
	objects    int
	workers    int
	seed       uint64
	work       string
	noMount    bool
}

func benchSoakCommand() command {
	b := soakBench{seed: 1}
	return command{"bench soak", "[--operations N] [--objects N]", "work with a Broker in all ways at once, and tell what grows", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.IntVar(&b.operations, "operations", 100_000, "do so many")
		fl.IntVar(&b.objects, "objects", 2000, "of so many objects")
		fl.IntVar(&b.workers, "workers", 4, "this many at once")
		fl.Uint64Var(&b.seed, "seed", 1, "which operations")
		fl.StringVar(&b.work, "work", "", "state directory, left there (default: a temporary one)")
		fl.BoolVar(&b.noMount, "no-mount", false, "work over 9P only")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) > 0 || b.operations < 1 || b.objects < 10 || b.workers < 1 {
				return usagef("takes no arguments; ten objects, an operation and a worker at least")
			}
			return b.run(ctx, std)
		}
	}}
}

// A soak is one run.
type soak struct {
	*soakBench
	s      *benchServer
	source *store.Store
	doors  []door
	std    std

	mu     sync.Mutex
	counts map[string]int // operations, by kind
	failed map[string]int // that were refused, as when another was faster
}

// soakBroker is where the Broker is, soakWords how many words its texts are of.
const (
	soakBroker = "broker/soak"
	soakWords  = 200
)

func (b *soakBench) run(ctx context.Context, std std) (err error) {
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	k := &soak{soakBench: b, std: std, counts: map[string]int{}, failed: map[string]int{}}
	addr, end, err := k.serveSource(ctx, filepath.Join(work, "source"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if k.s, err = (&brokerBench{}).serve(ctx, work, b.noMount, std); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.s.stop()) }()
	k.doors = []door{nineDoor{k.s.client.Root()}}
	if k.s.point != "" {
		k.doors = append(k.doors, mountDoor(k.s.point))
	}
	if err := k.doors[0].mkdir(ctx, soakBroker); err != nil && !errors.Is(err, iofs.ErrExist) {
		return err
	}
	if err := k.doors[0].write(ctx, soakBroker+"/config", "source path="+addr+" every=720h\n"); err != nil {
		return err
	}
	return k.work(ctx)
}

// serveSource makes a store and serves it for the Broker to collect from.
func (k *soak) serveSource(ctx context.Context, dir string) (addr string, end func() error, err error) {
	lg := slog.New(slog.DiscardHandler)
	if k.source, err = store.Open(dir, lg, store.Options{NoSync: true}); err != nil {
		return "", nil, err
	}
	socket := dir + ".socket"
	l, err := ninep.Listen(ctx, "unix!"+socket, ninep.ListenOptions{})
	if err != nil {
		return "", nil, errors.Join(err, k.source.Close())
	}
	files := k.source.Files(func(parts ...string) uint64 { return fs.ID(append([]string{"soak"}, parts...)...) }, nil, nil)
	root := fs.Static(fs.RootPath, map[string]fs.Node{"s": fs.Static(fs.ID("soak"), files)})
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { ninep.NewServer(lg, ninep.Limits{}).Serve(ctx, l, root) })
	r := rand.New(rand.NewPCG(k.seed, 0))
	return "unix!" + socket + "/s", func() error { cancel(); wg.Wait(); return k.source.Close() }, k.change(ctx, r, k.objects)
}

// change makes new versions of objects, or deletes some.
func (k *soak) change(ctx context.Context, r *rand.Rand, n int) error {
	var batch []store.Change
	for range n {
		at := fmt.Sprintf("http://soak/%d", r.IntN(k.objects))
		if r.IntN(10) == 0 {
			batch = append(batch, store.Change{Op: soif.Delete, OID: store.ID(at, benchName+"@here")})
			continue
		}
		var text strings.Builder
		for range 20 + r.IntN(200) {
			fmt.Fprintf(&text, "w%d ", int(float64(soakWords)*r.Float64()*r.Float64()))
		}
		o := soif.Object{Type: "FILE", URL: at}
		for _, a := range [][2]string{{"Type", fmt.Sprintf("t%d", r.IntN(5))}, {"Update-Time", strconv.Itoa(1e9 + r.IntN(1e6))},
			{"Time-to-Live", "2000000000"}, {"Gatherer-Name", benchName}, {"Gatherer-Host", "here"}, {"Full-Text", text.String()}} {
			o.Add(a[0], []byte(a[1]))
		}
		batch = append(batch, store.Change{Op: soif.Update, OID: store.ID(at, benchName+"@here"), Body: o.Append(nil)})
	}
	_, err := k.source.Apply(ctx, batch)
	return err
}

// soakSteps is how often it is told how the process fares.
const soakSteps = 10

// work does all operations. What the process has is compared after the first step,
// when everything has been used, and at the end.
func (k *soak) work(ctx context.Context) error {
	rows := [][]string{{"operations", "a second", "resident MB", "heap MB", "descriptors", "goroutines", "fids", "connections", "FUSE handles"}}
	var first, last soakFigures
	for step := range soakSteps {
		begin := time.Now()
		if err := k.step(ctx, uint64(step)); err != nil {
			return err
		}
		took := time.Since(begin)
		if err := k.rest(ctx); err != nil {
			return err
		}
		f, err := k.figures(ctx)
		if err != nil {
			return err
		}
		if last = f; step == 0 {
			first = f
		}
		rows = append(rows, append([]string{fmt.Sprint((step + 1) * k.operations / soakSteps), fmt.Sprintf("%.0f", float64(k.operations/soakSteps)/took.Seconds())}, f.cells()...))
		fmt.Fprintf(k.std.err, "harvest: soak: %s\n", strings.Join(rows[len(rows)-1], " "))
	}
	table(k.std.out, rows)
	fmt.Fprintf(k.std.out, "\ndone: %v\nrefused: %v\n", k.counts, k.failed)
	return last.grown(first)
}

// step does a tenth of the operations, by all workers at once.
func (k *soak) step(ctx context.Context, step uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for w := range k.workers {
		r := rand.New(rand.NewPCG(k.seed, step<<16+uint64(w)+1))
		wg.Go(func() {
			for i := 0; i < k.operations/soakSteps/k.workers && ctx.Err() == nil; i++ {
				kind, err := k.operation(ctx, r)
				k.mu.Lock()
				k.counts[kind]++
				if err != nil {
					k.failed[kind]++
				}
				k.mu.Unlock()
				if err != nil && !passing(err) {
					cancel(fmt.Errorf("%s: %w", kind, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// passing tells that an error is one of those that come of others being at work
// too: what was there a moment ago is not, or is there already, or is busy.
func passing(err error) bool {
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, iofs.ErrExist) {
		return true
	}
	for _, text := range []string{"not exist", "No such file", "xists", "busy", "not empty", "stale", "no longer"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// rest waits until the Broker is idle.
func (k *soak) rest(ctx context.Context) error {
	for {
		st, err := k.s.status(ctx, soakBroker)
		if err != nil {
			return err
		}
		if state, _ := st.Get("state"); state == "idle" {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// soakFigures are what a process has.
type soakFigures struct {
	resident, heap                                     int // kB
	descriptors, goroutines, fids, connections, opened int
}

func (f soakFigures) cells() []string {
	mb := func(kb int) string { return fmt.Sprintf("%.1f", float64(kb)/1024) }
	return []string{mb(f.resident), mb(f.heap), fmt.Sprint(f.descriptors), fmt.Sprint(f.goroutines), fmt.Sprint(f.fids), fmt.Sprint(f.connections), fmt.Sprint(f.opened)}
}

// grown says what there is more of than work that has ended can explain. A few
// goroutines and files come and go with merges and idle connections; memory is
// half as much again before it is told.
func (f soakFigures) grown(first soakFigures) (err error) {
	for _, what := range []struct {
		name       string
		now, limit int
	}{
		{"goroutines", f.goroutines, first.goroutines + 10},
		{"descriptors", f.descriptors, first.descriptors + 20},
		{"fids", f.fids, first.fids},
		{"connections", f.connections, first.connections},
		{"FUSE handles", f.opened, first.opened},
		{"resident kB", f.resident, first.resident*3/2 + 64<<10},
	} {
		if what.now > what.limit {
			err = errors.Join(err, fmt.Errorf("%s: %d at the end, more than %d", what.name, what.now, what.limit))
		}
	}
	return err
}

// figures reads them, when what was closed has had the time to be.
func (k *soak) figures(ctx context.Context) (f soakFigures, err error) {
	r, err := k.doors[0].open(ctx, "stats")
	if err != nil {
		return f, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return f, err
	}
	value := func(name string) int {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				n, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				return int(n)
			}
		}
		return 0
	}
	f = soakFigures{resident: k.s.memory("VmRSS"), heap: value("harvest_heap_bytes") >> 10, goroutines: value("harvest_goroutines"),
		fids: value("harvest_9p_fids"), connections: value("harvest_9p_connections"), opened: value(`harvest_fuse_requests_total{type="handles"}`)}
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.s.cmd.Process.Pid))
	f.descriptors = len(list)
	return f, err
}
