package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/gather/fetch"
)

// export compares what it costs a provider to hand out its objects one by one,
// by FTP and by HTTP, with one stream of all summaries; and how many bytes that
// saves for folders of real documents.
func (b *gatherBench) export(ctx context.Context, args []string, std std) (err error) {
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if len(args) > 0 {
		return b.bytes(ctx, args, work, std)
	}
	www := filepath.Join(work, "www")
	if b.files == 0 {
		b.files = 2300
	}
	names, err := smallFiles(www, b.files)
	if err != nil {
		return err
	}
	ftp, err := ftpCost(ctx, www, names, work, std)
	if err != nil {
		return err
	}
	web, err := webCost(ctx, work, names, std)
	if err != nil {
		return err
	}
	streams, err := b.streams(ctx, []string{www}, "fulltext=yes\n", work, std)
	if err != nil {
		return err
	}
	rows := [][]string{{"what", "provider cpu ms", "bytes", "times less than FTP", "than HTTP", "than one FTP retrieval"}}
	row := func(what string, cost time.Duration, bytes int64) {
		less := func(than time.Duration) string { return fmt.Sprintf("%.1f", than.Seconds()/cost.Seconds()) }
		rows = append(rows, []string{what, fmt.Sprintf("%.3f", cost.Seconds()*1e3), strconv.FormatInt(bytes, 10), less(ftp), less(web), less(ftp / time.Duration(len(names)))})
	}
	row(fmt.Sprintf("%d sessions of vsftpd", len(names)), ftp, 0)
	row(fmt.Sprintf("%d requests to nginx", len(names)), web, 0)
	for _, s := range streams {
		row(s.name, s.cpu, s.bytes)
	}
	table(std.out, rows)
	return nil
}

// ftpCost is what a session for each file costs the server.
func ftpCost(ctx context.Context, root string, names []string, work string, std std) (time.Duration, error) {
	v, err := startVsftpd(ctx, root, work, std)
	if err != nil {
		return 0, err
	}
	err = fetchEach(ctx, fetch.Options{}, "ftp://"+v.addr+"/", names, true)
	cpu, stopped := v.stop()
	return cpu, errors.Join(err, stopped)
}

// webCost is what a request for each file costs nginx, over a connection for
// each, as robots of the time had.
func webCost(ctx context.Context, work string, names []string, std std) (time.Duration, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	n := &nginx{dir: work, addr: "127.0.0.1:" + port}
	if err := n.start(ctx, std); err != nil {
		return 0, err
	}
	err = fetchEach(ctx, fetch.Options{}, "http://"+n.addr+"/", names, true)
	log, stopped := n.stop()
	return log.cpu, errors.Join(err, stopped)
}

// A streamCost is what one reading of a stream takes of the server.
type streamCost struct {
	name  string
	cpu   time.Duration
	bytes int64
}

// streamReads is how often each stream is read, if it is short: the clocks of
// processes are coarse.
const streamReads = 200

// streams gathers folders, serves that from a process of its own, and reads its
// streams over 9P.
func (b *gatherBench) streams(ctx context.Context, dirs []string, conf, work string, std std) (all []streamCost, err error) {
	state := filepath.Join(work, "state")
	conf += gatherdLine
	for _, d := range dirs {
		conf += "root url=" + (&url.URL{Scheme: "file", Path: d + "/"}).String() + "\n"
	}
	dir := filepath.Join(state, "gather", benchName)
	if err := b.begin(dir, conf); err != nil {
		return nil, err
	}
	r, err := b.child(ctx, "gather", dir, std)
	if err != nil {
		return nil, err
	}
	r.counts(std.out)
	s, err := new(brokerBench).serve(ctx, state, true, std)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, name := range []string{"since/0", "since/0.zst", "soif.zst"} {
		c, err := s.cost(ctx, "gather/"+benchName+"/"+name)
		if err != nil {
			return nil, err
		}
		c.name = name
		all = append(all, c)
	}
	old, err := s.gatherdCosts(ctx, "gather/"+benchName+"/status")
	return append(all, old...), err
}

// cost is what it takes the server to have a file opened and read to its end by
// one who stays connected, as Brokers do.
func (s *benchServer) cost(ctx context.Context, path string) (c streamCost, err error) {
	f, err := walkFile(ctx, s.client.Root(), path)
	if err != nil {
		return c, err
	}
	count := writerFunc(func(p []byte) { c.bytes += int64(len(p)) })
	if err := copyFile(ctx, count, f); err != nil { // what is kept ready is so now
		return c, err
	}
	c.cpu, err = s.median(readsOf(c.bytes), func() error {
		c.bytes = 0
		return copyFile(ctx, count, f)
	})
	return c, err
}

// costRounds are the parts that readings are measured in.
const costRounds = 10

// median is what one of so many readings takes the server: that of the middle
// one of ten rounds, so that what others do to the machine's caches meanwhile
// counts less.
func (s *benchServer) median(reads int, read func() error) (time.Duration, error) {
	rounds := min(costRounds, reads)
	all := make([]time.Duration, rounds)
	for i := range all {
		before, err := processCPU(s.cmd)
		if err != nil {
			return 0, err
		}
		for range reads / rounds {
			if err := read(); err != nil {
				return 0, err
			}
		}
		after, err := processCPU(s.cmd)
		if err != nil {
			return 0, err
		}
		all[i] = (after - before) / time.Duration(reads/rounds)
	}
	slices.Sort(all)
	return all[rounds/2], nil
}

// readsOf is how often a stream of so many bytes is read: often enough for the
// clock, and no more than some gigabytes in all.
func readsOf(bytes int64) int { return max(1, min(streamReads, int(1<<29/max(bytes, 1)))) }

// processCPU is what a process that runs has used.
func processCPU(cmd *exec.Cmd) (time.Duration, error) {
	dir := fmt.Sprintf("/proc/%d/task", cmd.Process.Pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, t := range tasks { // schedstat counts nanoseconds, of a thread
		text, err := os.ReadFile(filepath.Join(dir, t.Name(), "schedstat"))
		if err != nil {
			continue // it has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += ns
	}
	return time.Duration(sum), nil
}

// bytes tells how many bytes of documents become how many of summaries, and of
// a stream.
func (b *gatherBench) bytes(ctx context.Context, dirs []string, work string, std std) error {
	for i, d := range dirs {
		var err error
		if dirs[i], err = filepath.Abs(d); err != nil {
			return err
		}
	}
	streams, err := b.streams(ctx, dirs, "fulltext=no\n", work, std)
	if err != nil {
		return err
	}
	var raw int64
	for _, d := range dirs {
		n, err := folderSize(d)
		if err != nil {
			return err
		}
		raw += n
	}
	rows := [][]string{{"what", "bytes", "times fewer", "provider cpu ms"}, {"documents", strconv.FormatInt(raw, 10), "1.0", ""}}
	for _, s := range streams {
		rows = append(rows, []string{s.name, strconv.FormatInt(s.bytes, 10), fmt.Sprintf("%.1f", float64(raw)/float64(max(s.bytes, 1))),
			fmt.Sprintf("%.1f", s.cpu.Seconds()*1e3)})
	}
	table(std.out, rows)
	return nil
}
