package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"harvest/fs"
	"harvest/fs/fuse"
	"harvest/fs/ndb"
)

// tryName is what try calls the Gatherer and the Broker it makes.
const tryName = "try"

func tryCommand() command {
	var dir, addr, mount string
	var once, noMount bool
	return command{"try", "[--once] [-d DIR] [-m MOUNTPOINT] [ROOT…]", "gather folders, files or URLs, and serve what came of it", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.StringVarP(&dir, "dir", "d", dataDir(), "state directory, made if it is absent")
		fl.StringVarP(&addr, "listen", "l", "", "listen here (default unix!DIR/socket)")
		fl.StringVarP(&mount, "mount", "m", "", "mount the tree here (default DIR/mnt)")
		fl.BoolVar(&noMount, "no-mount", false, "do not mount")
		fl.BoolVar(&once, "once", false, "end after the first query")
		return func(ctx context.Context, args []string, std std) error {
			roots, err := tryRoots(args)
			if err != nil {
				return err
			}
			if dir, err = filepath.Abs(dir); err != nil {
				return err
			}
			if addr == "" {
				addr = "unix!" + filepath.Join(dir, "socket")
			}
			d := reach{listen: []string{addr}}
			if !noMount {
				if d.mount, err = mountPoint(dir, mount); err != nil {
					if mount != "" {
						return err
					}
					fmt.Fprintf(std.err, "harvest: %v; going on over 9P\n", err)
				}
			}
			p, err := open(dir, std.err)
			if err != nil {
				return err
			}
			defer p.Close()
			return p.try(ctx, d, roots, once, std)
		}
	}}
}

// tryRoots makes URLs of what the user named, or of this machine's own
// documentation, or, if it has none, of the docs folder here.
func tryRoots(args []string) ([]string, error) {
	if len(args) == 0 {
		for _, d := range []string{"/usr/share/doc", "/usr/share/man", "/usr/share/info"} {
			if st, err := os.Stat(d); err == nil && st.IsDir() {
				args = append(args, d)
			}
		}
	}
	if len(args) == 0 {
		args = []string{"docs"}
	}
	var roots []string
	for _, a := range args {
		if u, err := url.Parse(a); err == nil && u.Scheme != "" && strings.Contains(a, "://") {
			roots = append(roots, a)
			continue
		}
		abs, err := filepath.Abs(a)
		if err != nil {
			return nil, err
		}
		st, err := os.Stat(abs)
		if err != nil {
			return nil, err
		}
		if st.IsDir() && abs != "/" {
			abs += "/"
		}
		roots = append(roots, (&url.URL{Scheme: "file", Path: abs}).String())
	}
	return roots, nil
}

// mountPoint makes the directory to mount on, if this machine can mount.
func mountPoint(dir, mount string) (string, error) {
	if err := fuse.Available(); err != nil {
		return "", fmt.Errorf("cannot mount: %w", err)
	}
	if mount != "" {
		return mount, nil
	}
	mount = filepath.Join(dir, "mnt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(mount, 0o755); err != nil && !errors.Is(err, iofs.ErrExist) && !fuse.Stale(err) {
		return "", err
	}
	return mount, nil
}

// try runs the services and, beside them, the main job from end to end.
func (p *process) try(ctx context.Context, d reach, roots []string, once bool, std std) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	up := make(chan []string, 1)
	g.Go(func() error {
		return p.run(ctx, d, func(addrs []string, _ string) { up <- addrs })
	})
	g.Go(func() error {
		var addrs []string
		select {
		case addrs = <-up:
		case <-ctx.Done():
			return nil
		}
		t := &trial{root: p.root, std: std}
		err := t.job(ctx, roots)
		if err == nil {
			t.tell(addrs, d.mount, p.dir, once)
		}
		if once || err != nil {
			cancel()
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return context.Canceled
		}
		return err
	})
	return g.Wait()
}

// trial does the main job with nothing but files of the tree.
type trial struct {
	root  fs.Dir
	std   std
	query string
}

func (t *trial) job(ctx context.Context, roots []string) error {
	var conf strings.Builder
	for _, r := range roots {
		conf.WriteString(ndb.Format(ndb.Of("root", ""), ndb.Of("url", r)) + "\n")
	}
	fmt.Fprintf(t.std.out, "gathering %s\n", strings.Join(roots, " "))
	g, b := "gather/"+tryName, "broker/"+tryName
	if err := t.service(ctx, g, conf.String()); err != nil {
		return err
	}
	if err := t.write(ctx, g+"/ctl", "run"); err != nil {
		return err
	}
	if err := t.wait(ctx, g); err != nil {
		return err
	}
	st, err := t.status(ctx, g)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.std.out, "gathered: %s\n", pick(st, "found", "fetched", "unchanged", "excluded", "failed", "objects"))
	if number(st, "objects") == 0 {
		return fmt.Errorf("%s: no object came of it%s", g, t.why(g))
	}
	if err := t.service(ctx, b, ndb.Format(ndb.Of("source", ""), ndb.Of("path", g), ndb.Of("every", "10m"))+"\n"); err != nil {
		return err
	}
	if err := t.write(ctx, b+"/ctl", "collect"); err != nil {
		return err
	}
	if err := t.wait(ctx, b); err != nil {
		return err
	}
	if st, err = t.status(ctx, b); err != nil {
		return err
	}
	fmt.Fprintf(t.std.out, "indexed: %s\n", pick(st, "objects", "indexed"))
	return t.first(ctx, b)
}

// why tells the last trouble that the events of a service tell.
func (t *trial) why(path string) string {
	text, err := iofs.ReadFile(fs.IO(context.Background(), t.root), path+"/events")
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		e, err := ndb.ParseLine(strings.TrimSpace(line), 1)
		if kind, _ := e.Get("event"); err == nil && (kind == "failed" || kind == "error" || kind == "excluded") {
			last = ": " + pick(e, "event", "url", "reason")
		}
	}
	return last
}

// pick shows some of a status.
func pick(st ndb.Entry, keys ...string) string {
	var pairs []ndb.Pair
	for _, k := range keys {
		if v, ok := st.Get(k); ok {
			pairs = append(pairs, ndb.Of(k, v))
		}
	}
	return ndb.Format(pairs...)
}

// service makes a service unless it is there, and configures it.
func (t *trial) service(ctx context.Context, path, conf string) error {
	d, name, err := parent(ctx, t.root, path)
	if err != nil {
		return err
	}
	if _, err := d.(fs.Maker).Mkdir(ctx, name, 0o755); err != nil && !errors.Is(err, iofs.ErrExist) {
		return err
	}
	return writeFile(ctx, t.root, path+"/config", strings.NewReader(conf), false)
}

func (t *trial) write(ctx context.Context, path, text string) error {
	return writeFile(ctx, t.root, path, strings.NewReader(text+"\n"), false)
}

func (t *trial) status(ctx context.Context, path string) (ndb.Entry, error) {
	d, err := walkDir(ctx, t.root, path)
	if err != nil {
		return ndb.Entry{}, err
	}
	return readStatus(ctx, d), nil
}

// wait shows progress until the service is at nothing any more.
func (t *trial) wait(ctx context.Context, path string) error {
	shown := newBar(t.std.err)
	defer shown.end()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := t.status(ctx, path)
		if err != nil {
			return err
		}
		state, _ := st.Get("state")
		if state == "running" || shown.shown { // what has long been done needs no bar
			shown.draw(pointOf(path, st))
		}
		if state != "running" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func number(st ndb.Entry, key string) int {
	p, ok := st.Pair(key)
	if !ok {
		return 0
	}
	n, err := st.Int(p)
	if err != nil {
		return 0
	}
	return n
}

// first asks the Broker something that its data answers, and shows the hits.
func (t *trial) first(ctx context.Context, b string) error {
	word, err := t.word(ctx, b)
	if err != nil {
		return err
	}
	if word == "" {
		return fmt.Errorf("%s: nothing in it to ask for: no object has a title", b)
	}
	t.query = "title : " + word
	var hits bytes.Buffer
	if err := ask(ctx, t.root, b, []string{"query " + t.query}, "hits", &hits); err != nil {
		return err
	}
	lines := strings.SplitAfter(hits.String(), "\n")
	fmt.Fprintf(t.std.out, "\nquery %s\n", t.query)
	for i, l := range lines {
		if i == 10 {
			fmt.Fprintf(t.std.out, "… and %d more\n", len(lines)-1-i)
			break
		}
		io.WriteString(t.std.out, l)
	}
	if hits.Len() == 0 {
		return fmt.Errorf("query %s: no hits, though a title has the word", t.query)
	}
	return nil
}
