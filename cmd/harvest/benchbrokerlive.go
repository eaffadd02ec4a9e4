package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/index/bench"
)

// live measures a Broker that is loaded while things happen to it: values are
// compared, objects change at the Gatherer, others are collected, and what it finds
// is searched with grep.
func (b *brokerBench) live(ctx context.Context, work string, queries []bench.Query, std std) (err error) {
	s, err := b.serve(ctx, work, b.noMount, std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	l := &liveBench{b: b, s: s, d: nineDoor{s.client.Root()}, broker: "broker/" + benchName, work: work, std: std}
	for _, q := range queries {
		node, err := q.Node()
		if err != nil {
			return err
		}
		l.texts = append(l.texts, node.String())
	}
	fmt.Fprintln(std.out)
	if len(l.texts) == 0 {
		fmt.Fprintln(std.out, "no queries, so nothing is asked while things happen")
		return nil
	}
	for _, step := range []func(context.Context) error{l.values, l.changes, l.collecting, l.grep} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type liveBench struct {
	b      *brokerBench
	s      *benchServer
	d      door
	broker string
	texts  []string // of queries
	work   string
	std    std
}

// ask asks a query of a session and reads ten lines: how long that took.
func (l *liveBench) ask(ctx context.Context, text string) (time.Duration, error) {
	session := l.broker + "/query/" + benchName
	if err := l.d.mkdir(ctx, session); err == nil {
		err = l.d.write(ctx, session+"/ctl", "set limit=10\n")
		if err != nil {
			return 0, err
		}
	} else if !errors.Is(err, iofs.ErrExist) {
		return 0, err
	}
	begin := time.Now()
	if err := l.d.write(ctx, session+"/ctl", "query "+text+"\n"); err != nil {
		return 0, fmt.Errorf("query %s: %w", text, err)
	}
	_, _, _, err := lines10(ctx, l.d, session+"/hits")
	return time.Since(begin), err
}

func spread(took []time.Duration) string {
	return fmt.Sprintf("median %s, p99 %s, at most %s", at(took, .5), at(took, .99), at(took, 1))
}

// at is a quantile of some times, shown.
func at(took []time.Duration, p float64) string {
	var list []float64
	for _, t := range took {
		list = append(list, float64(t.Nanoseconds())/1e3)
	}
	return micros(quantile(list, p))
}

// values asks for sizes and dates within bounds that are made up.
func (l *liveBench) values(ctx context.Context) error {
	const n = 300
	r := rand.New(rand.NewPCG(1, 2))
	var took []time.Duration
	for range n {
		text := fmt.Sprintf("file-size > %d and last-modification-time > %d", r.IntN(4000), 1995+r.IntN(25))
		t, err := l.ask(ctx, text)
		if err != nil {
			return err
		}
		took = append(took, t)
	}
	fmt.Fprintf(l.std.out, "values: %d queries for sizes and dates: %s\n", n, spread(took))
	return nil
}

// How many objects change at a time, and how often.
const (
	liveChanged = 10
	liveRounds  = 20
)

// changes has objects change at the Gatherer, and tells how long after collect was
// asked for all of them are found by what is new in them.
func (l *liveBench) changes(ctx context.Context) error {
	names, err := l.someObjects(ctx, liveChanged)
	if err != nil {
		return err
	}
	var took []time.Duration
	for round := range liveRounds {
		word := fmt.Sprintf("changed%dx%d", time.Now().UnixNano(), round)
		for _, name := range names {
			if err := l.d.write(ctx, "gather/"+benchName+"/manual/"+name, "Keywords: "+word+"\n"); err != nil {
				return err
			}
		}
		t, err := l.found(ctx, word, len(names))
		if err != nil {
			return err
		}
		took = append(took, t)
	}
	fmt.Fprintf(l.std.out, "changes: %d of them, collected and found %d times: %s\n", len(names), liveRounds, spread(took))
	return nil
}

func (l *liveBench) found(ctx context.Context, word string, n int) (time.Duration, error) {
	begin := time.Now()
	if err := l.d.write(ctx, l.broker+"/ctl", "collect gather/"+benchName+"\n"); err != nil {
		return 0, err
	}
	for {
		if _, err := l.ask(ctx, "keywords : "+word); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		hits, err := hitsOf(ctx, l.d, l.broker+"/query/"+benchName)
		switch {
		case err != nil:
			return 0, err
		case hits == n:
			return took, nil
		case took > time.Minute:
			return 0, fmt.Errorf("%d of %d changes are found after a minute", hits, n)
		}
	}
}

// someObjects are the names of some objects of the Gatherer.
func (l *liveBench) someObjects(ctx context.Context, n int) (names []string, err error) {
	root := l.s.client.Root()
	for folder := 0; folder < 256 && len(names) < n; folder++ {
		d, err := walkDir(ctx, root, fmt.Sprintf("gather/%s/objects/%02x", benchName, folder))
		if err != nil {
			return nil, err
		}
		for e, err := range d.List(ctx, "") {
			if err != nil {
				return nil, err
			}
			if strings.HasSuffix(e.Name, ".soif") {
				names = append(names, e.Name)
				break
			}
		}
	}
	return names, nil
}

// How much is collected while queries are asked: a tenth of the objects, as many at
// most; and for how long they are asked before.
const (
	liveMore = 100_000
	liveIdle = 5 * time.Second
)

// collecting asks the queries when nothing else is done and while a tenth more of
// objects is collected from a folder, which is taken out again.
func (l *liveBench) collecting(ctx context.Context) (err error) {
	dir := filepath.Join(l.work, fmt.Sprintf("more%d", time.Now().UnixNano())) // of another the Broker may know how far it read
	n, err := l.copies(ctx, dir, min(max(l.b.objects/10, 1), liveMore))
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	idle, err := l.askFor(ctx, func(since time.Time) (bool, error) { return time.Since(since) < liveIdle, nil })
	if err != nil {
		return err
	}
	if err := l.d.write(ctx, l.broker+"/ctl", "set source path="+fs.Quote(dir)+" every=720h\n"); err != nil {
		return err
	}
	looked := time.Now()
	begin := looked
	busy, err := l.askFor(ctx, func(time.Time) (bool, error) {
		if time.Since(looked) < 100*time.Millisecond {
			return true, nil
		}
		looked = time.Now()
		st, err := l.s.status(ctx, l.broker)
		state, _ := st.Get("state")
		return state == "running", err
	})
	took := time.Since(begin)
	if err == nil {
		fmt.Fprintf(l.std.out, "collecting: %d queries idle: %s; %d while %d objects are collected in %.1f s: %s; median %.2f times, p99 %.2f times\n",
			len(idle), spread(idle), len(busy), n, took.Seconds(), spread(busy), ratio(busy, idle, .5), ratio(busy, idle, .99))
	}
	return errors.Join(err, l.d.write(ctx, l.broker+"/ctl", "unset source "+fs.Quote(dir)+"\n"),
		l.d.write(ctx, l.broker+"/ctl", "remove query gatherer-name : "+benchMore+"\n"))
}

func ratio(a, b []time.Duration, p float64) float64 {
	value := func(took []time.Duration) float64 {
		took = slices.Sorted(slices.Values(took))
		return float64(took[int(p*float64(len(took)-1))])
	}
	return value(a) / value(b)
}

// askFor asks all queries again and again for as long as it should go on.
func (l *liveBench) askFor(ctx context.Context, on func(since time.Time) (bool, error)) (took []time.Duration, err error) {
	begin := time.Now()
	for {
		for _, text := range l.texts {
			t, err := l.ask(ctx, text)
			if err != nil {
				return nil, err
			}
			took = append(took, t)
			if more, err := on(begin); err != nil || !more {
				return took, err
			}
		}
	}
}

// benchMore is what the objects that are collected besides say they were gathered by.
const benchMore = "benchmore"

// copies makes a folder to collect from, of objects of the Gatherer with other URLs.
func (l *liveBench) copies(ctx context.Context, dir string, most int) (n int, err error) {
	r, err := l.d.open(ctx, "gather/"+benchName+"/soif")
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if err := os.MkdirAll(filepath.Join(dir, "since"), 0o755); err != nil {
		return 0, err
	}
	f, err := os.Create(filepath.Join(dir, "since", "0"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := bufio.NewWriterSize(f, 1<<20)
	u := soif.NewUpdateWriter(buf)
	dec := soif.NewDecoder(r, soif.Limits{})
	var o soif.Object
	for ; n < most; n++ {
		err := dec.Next(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		o.URL = strings.Replace(o.URL, "file:///", "file:///more/", 1)
		o.Set("Gatherer-Name", []byte(benchMore))
		if err := u.Write(soif.Update, o.Append(nil)); err != nil {
			return n, err
		}
	}
	return n, errors.Join(u.Close("1-1"), buf.Flush())
}

// grep searches the objects that a query finds, through the mount, and the same in
// files of a folder.
func (l *liveBench) grep(ctx context.Context) error {
	grep, err := exec.LookPath("grep")
	if l.s.point == "" || err != nil {
		fmt.Fprintln(l.std.err, "harvest: no mount, or no grep: results are not searched with it")
		return nil
	}
	text, err := l.thousand(ctx)
	if err != nil {
		return err
	}
	here, plain := filepath.Join(l.s.point, l.broker, "q", text), filepath.Join(l.work, "plain")
	defer os.RemoveAll(plain)
	n, err := copyObjects(here, plain)
	if err != nil {
		return err
	}
	search := func(dir string) (time.Duration, error) {
		begin := time.Now()
		out, err := exec.CommandContext(ctx, grep, "-r", "--include=*.soif", "-c", "-e", "zzz", dir).CombinedOutput()
		took := time.Since(begin)
		var status *exec.ExitError
		if err != nil && !(errors.As(err, &status) && status.ExitCode() == 1) { // 1: nothing is found, which is so
			return 0, fmt.Errorf("grep %s: %w: %s", dir, err, out)
		}
		return took, nil
	}
	var ours, theirs []time.Duration
	for range 11 {
		for dir, list := range map[string]*[]time.Duration{here: &ours, plain: &theirs} {
			took, err := search(dir)
			if err != nil {
				return err
			}
			*list = append(*list, took)
		}
	}
	fmt.Fprintf(l.std.out, "grep -r: %d results of q/: median %s, plain files %s, %.2f times; the first time %s and %s\n", n,
		at(ours, .5), at(theirs, .5), ratio(ours, theirs, .5), at(ours[:1], 1), at(theirs[:1], 1))
	return nil
}

// thousand is the query that finds what is nearest to a thousand objects.
func (l *liveBench) thousand(ctx context.Context) (best string, err error) {
	off := -1
	for _, text := range l.texts {
		if strings.Contains(text, "/") {
			continue
		}
		if _, err := l.ask(ctx, text); err != nil {
			return "", err
		}
		n, err := hitsOf(ctx, l.d, l.broker+"/query/"+benchName)
		if err != nil {
			return "", err
		}
		if d := max(n-1000, 1000-n); n > 0 && (off < 0 || d < off) {
			best, off = text, d
		}
	}
	if best == "" {
		return "", errors.New("no query finds anything")
	}
	return best, nil
}

// copyObjects copies the objects of an answer.
func copyObjects(from, to string) (n int, err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	list, err := os.ReadDir(from)
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".soif") && err == nil {
			var text []byte
			if text, err = os.ReadFile(filepath.Join(from, e.Name())); err == nil {
				err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o644)
				n++
			}
		}
	}
	return n, err
}
