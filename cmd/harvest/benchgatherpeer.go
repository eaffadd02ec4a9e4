package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A gatherPeer is another program for the same work.
type gatherPeer struct {
	name string
	argv []string // with $URL, $DIR and $OUT, the last a folder of its own
}

// sitePeerPrograms crawl the site as they are meant to, over eight connections
// and without the limits they have for other people's servers.
func sitePeerPrograms() []gatherPeer {
	return []gatherPeer{
		{"wget2", strings.Fields("wget2 --mirror -q --max-threads=8 -nH -P $OUT $URL")},
		{"httrack", strings.Fields("httrack $URL -O $OUT -q --disable-security-limits --max-rate=0 --connection-per-second=0 --sockets=8 --robots=2")},
		{"wget", strings.Fields("wget --mirror -q -nH -P $OUT $URL")},
	}
}

// peerLimit ends a peer that would not.
const peerLimit = 280 * time.Second

// chosen are the peers to be measured: those asked for that are installed.
func (b *gatherBench) chosen(all []gatherPeer, std std) (list []gatherPeer, err error) {
	if b.peers {
		for _, p := range all {
			if _, err := exec.LookPath(p.argv[0]); err != nil {
				fmt.Fprintf(std.err, "harvest: %s is not installed\n", p.name)
				continue
			}
			list = append(list, p)
		}
	}
	for _, a := range b.also {
		name, command, ok := strings.Cut(a, "=")
		if !ok || strings.TrimSpace(command) == "" {
			return nil, usagef("--peer %s: write NAME=COMMAND", a)
		}
		list = append(list, gatherPeer{name, strings.Fields(command)})
	}
	return list, nil
}

// run runs a peer, in a folder of its own, to its end or the limit.
func (p gatherPeer) run(ctx context.Context, out string, replace *strings.Replacer) (r gathering, err error) {
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	argv := make([]string, len(p.argv))
	for i, a := range p.argv {
		argv[i] = replace.Replace(a)
	}
	limited, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	cmd := interruptible(limited, argv[0], argv[1:]...)
	cmd.Dir = out
	cmd.Env = append(os.Environ(), "HOME="+out)
	begin := time.Now()
	text, err := cmd.CombinedOutput()
	r.name, r.wall = p.name, time.Since(begin)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	var status *exec.ExitError
	switch {
	case limited.Err() != nil:
		r.name += ", cut off"
	case err != nil && !errors.As(err, &status): // crawlers fail for one page that is not there
		return r, fmt.Errorf("%s: %w: %.200s", p.name, err, text)
	}
	if cmd.ProcessState != nil {
		r.user, r.system = cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.peak = int(u.Maxrss)
		}
	}
	return r, nil
}

// sitePeers has the peers crawl the site, one after another.
func (b *gatherBench) sitePeers(ctx context.Context, n *nginx, work string, std std) (rows [][]string, err error) {
	list, err := b.chosen(sitePeerPrograms(), std)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(work, "peer")
	for _, p := range list {
		if err := n.start(ctx, std); err != nil {
			return rows, err
		}
		r, err := p.run(ctx, out, strings.NewReplacer("$URL", "http://"+n.addr+"/", "$OUT", out))
		log, stopped := n.stop()
		if err = errors.Join(err, stopped); err != nil {
			return rows, err
		}
		rows = append(rows, append(r.row(log.pages), log.row()...))
	}
	return rows, nil
}
