package crawl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An Enumerated is a root that an enumeration program has written. The program
// reads URLs, one a line, and writes lines of nine fields separated by blanks,
// as the original has them:
//
//	URL URL-Max URL-filter Host-Max Host-filter Access Delay Depth program
//	http://site/a/ 250 /dev/null 1 /dev/null HTTP|FTP 1 0 /bin/false
//
// The filters are names of files (ParseFilter), /dev/null is none; Delay is in
// seconds; a Depth of 0 is without limit; the program enumerates the URL in
// turn, /bin/false is none. A line that is a URL alone is a document and
// nothing behind it.
type Enumerated struct {
	Line       int    // of what it wrote, from 1; set with the error of a bad line too
	URL        string // canonical
	Leaf       bool   // the URL alone
	URLs       int    // documents at most
	URLFilter  *Filter
	Hosts      int
	HostFilter *Filter
	Access     []string      // schemes, in lower case
	Delay      time.Duration // < 0 when the line does not say
	Depth      int           // links from URL at most; < 0 is no limit
	Program    []string      // nil for none
}

// Bounds of a run of an enumeration program.
const (
	maxEnumerate = 10 * time.Minute
	maxEnumLine  = 3 * maxURL
	maxEnumBytes = 256 << 20
	maxComplaint = 512 // of what it writes to standard error
)

// Enumerate runs a program with URLs to read and yields what it writes, each as
// it comes. A bad line yields an error, and so does at last a program that
// failed or was killed for its time or for the length of what it wrote; what was
// yielded before stands. The program is a process group of its own, and none of
// that is left when Enumerate is done, also when ctx ends or the loop is left.
func Enumerate(ctx context.Context, program []string, urls []string) iter.Seq2[Enumerated, error] {
	return func(yield func(Enumerated, error) bool) {
		if len(program) == 0 {
			yield(Enumerated{}, fmt.Errorf("no enumeration program: %w", iofs.ErrInvalid))
			return
		}
		ctx, cancel := context.WithTimeoutCause(ctx, maxEnumerate, fmt.Errorf("it took longer than %v", maxEnumerate))
		defer cancel()
		e := &enumeration{filters: make(map[string]*Filter)}
		more, err := e.run(ctx, program, urls, yield)
		if err != nil && more {
			yield(Enumerated{}, fmt.Errorf("%s: %w", program[0], err))
		}
	}
}

// An enumeration is one run of a program.
type enumeration struct {
	filters map[string]*Filter // by the name of their file
}

// run is false when yield has had enough.
func (e *enumeration) run(ctx context.Context, program, urls []string, yield func(Enumerated, error) bool) (more bool, err error) {
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(strings.Join(append(slices.Clone(urls), ""), "\n"))
	var complaint tail
	cmd.Stderr = &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	cmd.WaitDelay = time.Second // for what it left behind with our pipes in hand
	out, err := cmd.StdoutPipe()
	if err != nil {
		return true, err
	}
	if err := cmd.Start(); err != nil {
		return true, err
	}
	stop := context.AfterFunc(ctx, func() { out.Close() })
	more, err = e.read(out, yield)
	stop()
	if err != nil || !more {
		kill()
	}
	awaitExit(cmd.Process.Pid) // it stays a zombie: its group is still its own
	kill()
	exit := cmd.Wait()
	switch {
	case !more:
		return false, nil
	case ctx.Err() != nil:
		return true, context.Cause(ctx)
	case err != nil:
		return true, err
	case exit != nil && !errors.Is(exit, exec.ErrWaitDelay):
		return true, complaint.about(exit)
	}
	return true, nil
}

func (e *enumeration) read(r io.Reader, yield func(Enumerated, error) bool) (more bool, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, maxEnumBytes), maxEnumLine)
	total := 0
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if total += len(line); errors.Is(err, bufio.ErrBufferFull) {
			return true, fmt.Errorf("line %d is longer than %d: %w", n, maxEnumLine, iofs.ErrInvalid)
		}
		if fields := strings.Fields(string(line)); len(fields) > 0 && fields[0][0] != '#' {
			root, bad := e.parse(fields)
			if root.Line = n; bad != nil {
				bad = fmt.Errorf("line %d: %w", n, bad)
			}
			if !yield(root, bad) {
				return false, nil
			}
		}
		switch {
		case total >= maxEnumBytes:
			return true, fmt.Errorf("it wrote more than %d bytes: %w", maxEnumBytes, iofs.ErrInvalid)
		case err == io.EOF || errors.Is(err, os.ErrClosed):
			return true, nil
		case err != nil:
			return true, err
		}
	}
}

func (e *enumeration) parse(f []string) (r Enumerated, err error) {
	r = Enumerated{URLs: 1, Hosts: 1, Delay: -1, Leaf: true}
	if len(f) != 1 && len(f) != 9 {
		return r, fmt.Errorf("%d fields; a line has nine, or is a URL: %w", len(f), iofs.ErrInvalid)
	}
	if r.URL, err = Canonical(f[0]); err != nil || len(f) == 1 {
		return r, err
	}
	r.Leaf = false
	number := func(what, s string) (n int) {
		if n, bad := strconv.Atoi(s); bad == nil && n >= 0 && n <= 1<<30 {
			return n
		}
		err = errors.Join(err, fmt.Errorf("%s: '%s' is not a number: %w", what, clip(s), iofs.ErrInvalid))
		return 0
	}
	filter := func(name string) *Filter {
		g, bad := e.filter(name)
		err = errors.Join(err, bad)
		return g
	}
	r.URLs, r.URLFilter = number("URL-Max", f[1]), filter(f[2])
	r.Hosts, r.HostFilter = number("Host-Max", f[3]), filter(f[4])
	access, bad := ParseAccess(f[5])
	if err = errors.Join(err, bad); err != nil {
		return r, err
	}
	r.Access = access
	delay, bad := strconv.ParseFloat(f[6], 64)
	if bad != nil || !(delay >= 0 && delay <= maxDelay.Seconds()) {
		return r, fmt.Errorf("delay: '%s' is not seconds: %w", clip(f[6]), iofs.ErrInvalid)
	}
	r.Delay = time.Duration(delay * float64(time.Second))
	if r.Depth = number("Depth", f[7]); r.Depth == 0 {
		r.Depth = -1
	}
	if f[8] != "/bin/false" {
		r.Program = []string{f[8]}
	}
	return r, err
}

// filter reads a filter file, once a run.
func (e *enumeration) filter(name string) (*Filter, error) {
	if name == "/dev/null" {
		return nil, nil
	}
	if f, ok := e.filters[name]; ok {
		return f, nil
	}
	if len(e.filters) >= 1000 {
		return nil, fmt.Errorf("more than %d filter files: %w", len(e.filters), iofs.ErrInvalid)
	}
	f, err := ReadFilter(name)
	if err == nil {
		e.filters[name] = f
	}
	return f, err
}

// maxFilterFile is the longest filter file that is read.
const maxFilterFile = 1 << 20

// ReadFilter reads a filter file.
func ReadFilter(name string) (*Filter, error) {
	in, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: not a regular file: %w", name, iofs.ErrInvalid))
	}
	b, err := io.ReadAll(io.LimitReader(in, maxFilterFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxFilterFile:
		return nil, fmt.Errorf("%s: longer than %d: %w", name, maxFilterFile, iofs.ErrInvalid)
	}
	f, err := ParseFilter(name, string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// A tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-maxComplaint):]...)
	t.b = t.b[max(0, len(t.b)-maxComplaint):]
	return len(p), nil
}

// about adds the last line that a program complained with to how it ended.
func (t *tail) about(exit error) error {
	lines := bytes.Split(bytes.TrimSpace(t.b), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		return fmt.Errorf("%w: %s", exit, strings.ToValidUTF8(string(last), "?"))
	}
	return exit
}
