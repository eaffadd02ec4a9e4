package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"harvest/fs/fuse"
	"harvest/fs/ndb"
	"harvest/fs/ninep"
	"harvest/index/bench"
)

// brokerBench is harvest bench broker: a Broker of many real objects, served by
// a process of its own and asked through both doors.
type brokerBench struct {
	objects int
	queries string
	classes []string
	config  string
	work    string
	noMount bool
}

// benchName is what the Gatherer and the Broker are called.
const benchName = "bench"

func benchBrokerCommand() command {
	var b brokerBench
	return command{"bench broker", "[--objects N] [--queries FILE] DIR…", "load a Broker with pieces of text files, and ask it through 9P and a mount", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.IntVar(&b.objects, "objects", 50_000, "cut the texts into so many objects")
		fl.StringVar(&b.queries, "queries", "", "ask the queries of this file (default: some chosen from the texts)")
		fl.StringSliceVar(&b.classes, "class", slices.DeleteFunc(bench.Classes(), func(c string) bool { return c == "ranked" }), "classes of queries to ask")
		fl.StringVar(&b.config, "config", "", "more lines of the Broker's config, with ; between them")
		fl.StringVar(&b.work, "work", "", "state directory, left there; one that is loaded is asked again (default: a temporary one)")
		fl.BoolVar(&b.noMount, "no-mount", false, "ask through 9P only")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("name folders of text files")
			}
			if b.objects < 1 {
				return usagef("--objects is 1 or more")
			}
			return b.run(ctx, args, std)
		}
	}}
}

func (b *brokerBench) run(ctx context.Context, dirs []string, std std) (err error) {
	var all []*bench.Corpus
	for _, dir := range dirs {
		c, err := bench.OpenCorpus(dir)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	queries, err := (&indexBench{classes: b.classes, queries: b.queries}).read(ctx, all[0])
	if err != nil {
		return err
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := b.gather(ctx, all, work, std); err != nil {
		return err
	}
	if err := b.load(ctx, work, std); err != nil {
		return err
	}
	if err := b.ask(ctx, work, queries, std); err != nil {
		return err
	}
	return b.live(ctx, work, queries, std)
}

// gather fills the store of the Gatherer, unless it is there. It gets its name
// when it is whole.
func (b *brokerBench) gather(ctx context.Context, all []*bench.Corpus, work string, std std) error {
	dir, part := filepath.Join(work, "gather", benchName), filepath.Join(work, "filling")
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755), os.MkdirAll(filepath.Dir(dir), 0o755)); err != nil {
		return err
	}
	shown := newProgress(std.err, "gather/"+benchName, b.objects)
	defer shown.end()
	if err := fillPieces(ctx, all, b.objects, filepath.Join(part, "store"), shown.show); err != nil {
		return err
	}
	return os.Rename(part, dir)
}

// load has the Broker collect and index everything, unless it has.
func (b *brokerBench) load(ctx context.Context, work string, std std) (err error) {
	s, err := b.serve(ctx, work, true, std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	broker := "broker/" + benchName
	if st, err := s.status(ctx, broker); err == nil && number(st, "objects") > 0 && number(st, "objects") == number(st, "indexed") {
		return nil
	}
	t := &trial{root: s.client.Root(), std: std}
	conf := ndb.Format(ndb.Of("source", ""), ndb.Of("path", "gather/"+benchName), ndb.Of("every", "720h")) + "\n"
	conf += strings.ReplaceAll(b.config, ";", "\n") + "\n"
	begin := time.Now()
	if err := t.service(ctx, broker, conf); err != nil {
		return err
	}
	if err := t.write(ctx, broker+"/ctl", "collect"); err != nil {
		return err
	}
	if err := t.wait(ctx, broker); err != nil {
		return err
	}
	took := time.Since(begin)
	st, err := s.status(ctx, broker)
	if err != nil {
		return err
	}
	n := number(st, "objects")
	if n == 0 || number(st, "indexed") != n {
		return fmt.Errorf("%s: %d of %d objects are indexed%s", broker, number(st, "indexed"), n, t.why(broker))
	}
	fmt.Fprintf(std.out, "load: %d objects in %.1f s, %.0f a second; memory at most %d MB\n", n, took.Seconds(), float64(n)/took.Seconds(), s.memory("VmHWM")>>10)
	return nil
}

// ask measures a process that has just begun.
func (b *brokerBench) ask(ctx context.Context, work string, queries []bench.Query, std std) (err error) {
	begin := time.Now()
	s, err := b.serve(ctx, work, b.noMount, std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	ready := time.Since(begin)
	broker := "broker/" + benchName
	st, err := s.status(ctx, broker)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "start: %.2f s until it can be asked; memory %d MB\n", ready.Seconds(), s.memory("VmRSS")>>10)
	text, err := folderSize(filepath.Join(work, "broker", benchName, "store"))
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "size: %d objects, %.1f MB; on disk, store %.1f MB, index %.1f MB in %d segments\n", number(st, "objects"),
		float64(number(st, "bytes"))/1e6, float64(text)/1e6, float64(number(st, "index-bytes"))/1e6, number(st, "index-segments"))
	doors := []door{nineDoor{s.client.Root()}}
	if s.point != "" {
		doors = append(doors, mountDoor(s.point))
	}
	rows, n, err := b.askAll(ctx, doors, broker, queries, std)
	if err != nil {
		return err
	}
	fmt.Fprintln(std.out)
	table(std.out, rows)
	fmt.Fprintf(std.out, "\nafter %d queries, each asked three times: memory %d MB, at most %d MB\n", n, s.memory("VmRSS")>>10, s.memory("VmHWM")>>10)
	return nil
}

// askAll asks everything once without counting it, then through each door. A
// Broker keeps the answers of the last few queries, so the doors are not taken
// in turns.
func (b *brokerBench) askAll(ctx context.Context, doors []door, broker string, queries []bench.Query, std std) (rows [][]string, n int, err error) {
	rows = [][]string{{"class", "door", "matches", "q/: first byte", "10 lines", "p99", "lines a second", "query/: ctl + 10 lines", "p99"}}
	shown := newProgress(std.err, "queries", len(queries)*(1+len(doors)))
	defer shown.end()
	for i, d := range append([]door{doors[0]}, doors...) {
		asked := make(map[string][]asking)
		for _, q := range queries {
			a, err := askThrough(ctx, d, broker, q)
			if err != nil {
				return nil, n, fmt.Errorf("query %s: %s: %w", q.ID, d.name(), err)
			}
			asked[q.Class] = append(asked[q.Class], a)
			n++
			shown.show(n)
		}
		for _, class := range b.classes {
			if i > 0 && len(asked[class]) > 0 {
				rows = append(rows, askingRow(class, d, asked[class]))
			}
		}
	}
	return rows, n, nil
}

// An asking is one query through one door.
type asking struct {
	hits             int
	first, head, ctl time.Duration
	rate             float64 // lines a second
}

func askingRow(class string, d door, asked []asking) []string {
	at := func(p float64, f func(asking) time.Duration) string {
		var list []float64
		for _, a := range asked {
			list = append(list, float64(f(a).Nanoseconds())/1e3)
		}
		return micros(quantile(list, p))
	}
	sum := 0
	for _, a := range asked {
		sum += a.hits
	}
	head := func(a asking) time.Duration { return a.head }
	ctl := func(a asking) time.Duration { return a.ctl }
	if asked[0].first == 0 { // no name of a file
		return []string{class, d.name(), fmt.Sprint(sum / len(asked)), "–", "–", "–", "–", at(0.5, ctl), at(0.99, ctl)}
	}
	rate := medianOf(asked, func(a asking) float64 { return a.rate })
	return []string{class, d.name(), fmt.Sprint(sum / len(asked)), at(0.5, func(a asking) time.Duration { return a.first }), at(0.5, head), at(0.99, head),
		fmt.Sprintf("%.0f", rate), at(0.5, ctl), at(0.99, ctl)}
}

// askThrough asks by walking to q/QUERY/hits, of which it reads ten lines and
// then, opened again, more; and by a session's ctl.
func askThrough(ctx context.Context, d door, broker string, q bench.Query) (a asking, err error) {
	node, err := q.Node()
	if err != nil {
		return a, err
	}
	text := node.String()
	if !strings.Contains(text, "/") { // no name of a file
		path := broker + "/q/" + text + "/hits"
		if _, a.first, a.head, err = lines10(ctx, d, path); err != nil {
			return a, err
		}
		if a.rate, err = lineRate(ctx, d, path); err != nil {
			return a, err
		}
	}
	session := broker + "/query/" + benchName
	if err := d.mkdir(ctx, session); err != nil && !errors.Is(err, iofs.ErrExist) {
		return a, err
	}
	if err := d.write(ctx, session+"/ctl", "set limit=10\n"); err != nil {
		return a, err
	}
	begin := time.Now()
	if err := d.write(ctx, session+"/ctl", "query "+text+"\n"); err != nil {
		return a, err
	}
	lines, _, _, err := lines10(ctx, d, session+"/hits")
	a.ctl = time.Since(begin)
	if err != nil {
		return a, err
	}
	if a.hits, err = hitsOf(ctx, d, session); err == nil && lines != min(a.hits, 10) {
		err = fmt.Errorf("%s: %d lines of %d: %w", session, lines, a.hits, io.ErrUnexpectedEOF)
	}
	return a, err
}

// hitsOf is how many hits the status of a session tells.
func hitsOf(ctx context.Context, d door, session string) (int, error) {
	r, err := d.open(ctx, session+"/status")
	if err != nil {
		return 0, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	entries, err := ndb.Parse(string(text))
	for _, e := range entries {
		if _, ok := e.Get("hits"); ok {
			return number(e, "hits"), nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("%s/status: no hits in it: %w", session, iofs.ErrInvalid))
}

// lines10 reads until ten lines or all are there: how many, and how long it
// took until the first byte and until the last.
func lines10(ctx context.Context, d door, path string) (lines int, first, head time.Duration, err error) {
	begin := time.Now()
	r, err := d.open(ctx, path)
	if err != nil {
		return 0, 0, 0, err
	}
	defer r.Close()
	buf := make([]byte, 64<<10)
	for lines < 10 {
		n, err := r.Read(buf)
		if first == 0 {
			first = time.Since(begin)
		}
		lines += bytes.Count(buf[:n], []byte("\n"))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, 0, err
		}
	}
	return min(lines, 10), first, time.Since(begin), nil
}

// lineRate reads lines to the end, or for a second.
func lineRate(ctx context.Context, d door, path string) (rate float64, err error) {
	r, err := d.open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	buf := make([]byte, 64<<10)
	lines, begin := 0, time.Now()
	for time.Since(begin) < time.Second {
		n, err := r.Read(buf)
		lines += bytes.Count(buf[:n], []byte("\n"))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	return float64(lines) / time.Since(begin).Seconds(), nil
}

// A benchServer is a process that serves a state directory.
type benchServer struct {
	cmd    *exec.Cmd
	client *ninep.Client
	point  string // where it is mounted, or ""
	socket string
}

// serve starts one and returns once it can be asked.
func (b *brokerBench) serve(ctx context.Context, work string, noMount bool, std std) (*benchServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(work, "socket")
	args := []string{"serve", "-d", work, "-l", "unix!" + socket}
	s := &benchServer{socket: socket}
	if err := fuse.Available(); !noMount && err != nil {
		fmt.Fprintf(std.err, "harvest: cannot mount: %v; going on over 9P\n", err)
	} else if !noMount {
		s.point = filepath.Join(work, "mnt")
		if err := os.MkdirAll(s.point, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "-m", s.point)
	}
	s.cmd = exec.Command(self, args...)
	s.cmd.Stderr = std.err
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := bufio.NewScanner(out)
	for i := 0; i < 1 || i < 2 && s.point != ""; i++ {
		if !ready.Scan() {
			return nil, errors.Join(errors.New("the server did not start"), s.stop())
		}
	}
	t := target{addr: "unix!" + socket}
	if s.client, err = t.dial(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *benchServer) stop() error {
	if s.client != nil {
		s.client.Close()
	}
	s.cmd.Process.Signal(os.Interrupt) // if it has ended, Wait says so
	timer := time.AfterFunc(time.Minute, func() { s.cmd.Process.Kill() })
	defer timer.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (s *benchServer) status(ctx context.Context, path string) (ndb.Entry, error) {
	d, err := walkDir(ctx, s.client.Root(), path)
	if err != nil {
		return ndb.Entry{}, err
	}
	return readStatus(ctx, d), nil
}

// memory is a figure of the process, in kB, 0 where that is not known.
func (s *benchServer) memory(key string) int {
	return processMemory(strconv.Itoa(s.cmd.Process.Pid), key)
}
