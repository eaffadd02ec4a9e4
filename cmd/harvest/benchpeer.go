package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"harvest/index/bench"
)

// A peer is a program that others search text with. It is measured as it is
// meant to be used: a process a query, which names all files that match.
type peer struct {
	name  string
	need  []string // programs
	build func(ix, dir string) []string
	add   func(ix, dir string) []string
	ask   func(ix, dir string, q bench.Query) []string // nil: it cannot
}

func peers() []peer {
	glimpse := func(flag ...string) func(ix, dir string) []string {
		return func(ix, dir string) []string {
			return append(append([]string{"glimpseindex", "-B", "-M", "64", "-n"}, flag...), "-H", ix, dir)
		}
	}
	cindex := func(ix, dir string) []string { return []string{"env", "CSEARCHINDEX=" + ix + "/index", "cindex", dir} }
	return []peer{
		{"glimpse", []string{"glimpse", "glimpseindex"}, glimpse(), glimpse("-a"), askGlimpse},
		{"codesearch", []string{"csearch", "cindex"}, cindex, cindex, askCodesearch},
		{"ripgrep", []string{"rg"}, nil, nil, askRipgrep},
	}
}

func askGlimpse(ix, _ string, q bench.Query) []string {
	argv := []string{"glimpse", "-y", "-l", "-i", "-H", ix}
	a := q.Args
	switch q.Class {
	case "common", "rare", "phrase":
		return append(argv, "-w", a[0])
	case "and2":
		return append(argv, "-w", "-W", a[0]+";"+a[1])
	case "not":
		return append(argv, "-w", "-W", a[0]+";~"+a[1])
	case "bool":
		return append(argv, "-w", "-W", "{"+a[0]+","+a[1]+"};"+a[2]+";~"+a[3])
	case "regex":
		return append(argv, a[len(a)-1]) // the form that agrep reads, if there is one
	case "fuzzy1", "fuzzy2":
		return append(argv, "-w", "-"+q.Class[5:], a[0])
	}
	return nil
}

func askCodesearch(ix, _ string, q bench.Query) []string {
	argv := []string{"env", "CSEARCHINDEX=" + ix + "/index", "csearch", "-l", "-i"}
	switch q.Class {
	case "common", "rare", "phrase", "regex":
		return append(argv, `\b(`+q.Args[0]+`)\b`)
	}
	return nil
}

func askRipgrep(_, dir string, q bench.Query) []string {
	argv := []string{"rg", "-l", "-i", "-w"}
	switch q.Class {
	case "common", "rare", "regex":
		return append(argv, q.Args[0], dir)
	case "phrase":
		return append(argv, "-U", strings.ReplaceAll(q.Args[0], " ", `\s+`), dir)
	}
	return nil
}

// installed tells whether all its programs are.
func (p peer) installed() bool {
	for _, n := range p.need {
		if _, err := exec.LookPath(n); err != nil {
			return false
		}
	}
	return true
}

// peerRepeats is how often each query counts; a process a query takes long.
const peerRepeats = 3

// measure does with a peer what indexBench.measure does with a kind.
func (p peer) measure(ctx context.Context, dir, ix string, runs int, cold bool, queries []bench.Query, std std) (r kindResult, err error) {
	r.kind, r.peer = p.name, true
	if dir, err = filepath.Abs(dir); err != nil {
		return r, err
	}
	for range runs {
		if p.build == nil {
			break
		}
		if err := errors.Join(os.RemoveAll(ix), os.MkdirAll(ix, 0o777)); err != nil {
			return r, err
		}
		b, _, err := runPeer(ctx, p.build(ix, dir))
		if err != nil {
			return r, err
		}
		if b.bytes, err = folderSize(ix); err != nil {
			return r, err
		}
		r.builds = append(r.builds, b)
	}
	shown := newProgress(std.err, p.name+" queries", len(queries))
	defer shown.end()
	for n, q := range queries {
		argv := p.ask(ix, dir, q)
		first, last := -1, peerRepeats
		if cold {
			first, last = 0, 1
		}
		for i := first; i < last && argv != nil; i++ {
			if cold {
				if err := forgetPages(ix, dir); err != nil {
					return r, err
				}
			}
			b, out, err := runPeer(ctx, argv)
			if err != nil {
				return r, err
			}
			if i >= 0 {
				r.samples = append(r.samples, sample{q, b.wall, bytes.Count(out, []byte("\n"))})
			}
		}
		shown.show(n + 1)
	}
	if _, err := os.Stat(dir + ".add"); err == nil && p.add != nil {
		b, _, err := runPeer(ctx, p.add(ix, dir+".add"))
		r.add = b.wall
		return r, err
	} else if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return r, err
	}
	return r, nil
}

// runPeer runs a program to its end. That it found nothing is no error.
func runPeer(ctx context.Context, argv []string) (b built, out []byte, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	begin := time.Now()
	out, err = cmd.Output()
	b.wall = time.Since(begin)
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 1 && len(status.Stderr) == 0 {
		err = nil
	}
	if ctx.Err() != nil {
		return b, nil, ctx.Err()
	}
	if err != nil {
		return b, nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	b.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.peak = int(u.Maxrss)
	}
	return b, out, nil
}
