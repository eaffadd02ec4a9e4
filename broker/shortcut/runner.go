package shortcut

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"harvest/gather/essence/jail"
)

// Bounds of a program.
const (
	runMemory = 256 << 20        // bytes
	runOutput = 64 << 20         // bytes, of one life
	runWall   = time.Hour        // of one life
	restFirst = time.Second      // how long one that failed rests
	restMost  = 10 * time.Minute // and at most, when it fails again and again
)

// A runner is a program that is kept. It answers one query after the other.
type runner struct {
	path string
	turn chan struct{} // holds one while nobody talks to it

	mu     sync.Mutex
	p      *jail.Process
	out    *bufio.Reader
	begun  chan struct{} // closed when it has started, or failed to
	rests  time.Time     // until then it is not started
	fails  int           // one after the other
	why    error         // of the last one
	closed bool
}

func newRunner(path string) *runner {
	r := &runner{path: path, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// errSlow is the error of a module that was cut off; Ask's context has it as cause.
var errSlow = errors.New("no answer")

// ask sends a query and reads the answer's lines.
func (r *runner) ask(ctx context.Context, q string) ([][]byte, error) {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("it is busy: %w", context.Cause(ctx))
	}
	defer func() { r.turn <- struct{}{} }()
	p, out, err := r.ready(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { p.Kill(context.Cause(ctx)) })
	lines, err := exchange(p, out, q)
	if stop() && err == nil {
		r.mu.Lock()
		r.fails = 0
		r.mu.Unlock()
		return lines, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, r.failed(p, err, ctx.Err() == nil || errors.Is(err, errSlow))
}

// warm starts a program before it is asked.
func (r *runner) warm() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
}

// begin starts the program, if it is not there and may be; mu is held.
func (r *runner) begin() {
	if !r.closed && r.p == nil && r.begun == nil && !time.Now().Before(r.rests) {
		r.begun = make(chan struct{})
		go r.start(r.begun) // ends with the start; close waits for it
	}
}

// ready gives the process, which is started if there is none. The first query may
// be over before it is: it is there for the next then.
func (r *runner) ready(ctx context.Context) (*jail.Process, *bufio.Reader, error) {
	r.mu.Lock()
	r.begin()
	begun := r.begun
	r.mu.Unlock()
	if begun != nil {
		select {
		case <-begun:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("it is being started: %w", context.Cause(ctx))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, nil, errClosed
	case r.p == nil:
		return nil, nil, fmt.Errorf("it rests until %s: %w", r.rests.UTC().Format(time.TimeOnly), r.why)
	}
	return r.p, r.out, nil
}

var (
	errClosed = errors.New("the module was removed")
	errEnded  = errors.New("it ended before it answered")
)

// start starts the program in a jail.
func (r *runner) start(begun chan struct{}) {
	cmd := jail.Cmd{Path: r.path, Stdin: jail.Piped, Read: []string{r.path}, Wall: runWall, CPU: runWall, Memory: runMemory, Output: runOutput, Procs: 16}
	p, err := cmd.Start(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(begun)
	r.begun = nil
	if err != nil {
		r.rest(err)
		return
	}
	r.p, r.out = p, bufio.NewReaderSize(p.Stdout, 4<<10)
}

// rest puts off the next start; mu is held.
func (r *runner) rest(err error) {
	r.why = err
	r.rests = time.Now().Add(min(restFirst<<min(r.fails, 16), restMost))
	r.fails++
}

// failed ends a process that did not answer as it should, by its own fault or
// because who asked went away.
func (r *runner) failed(p *jail.Process, err error, fault bool) error {
	p.Stdin.Close()
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		clock := time.AfterFunc(Limit, func() { p.Kill(errEnded) })
		defer clock.Stop()
	} else {
		p.Kill(err)
	}
	if err = errors.Unwrap(p.Wait()); err == nil { // without the name, which is known
		err = errEnded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p == p {
		r.p, r.out = nil, nil
	}
	if fault {
		r.rest(err)
	}
	return err
}

// close ends the program.
func (r *runner) close() {
	r.mu.Lock()
	r.closed = true
	begun := r.begun
	r.mu.Unlock()
	if begun != nil {
		<-begun
	}
	r.mu.Lock()
	p := r.p
	r.p, r.out = nil, nil
	r.mu.Unlock()
	if p != nil {
		p.Stdin.Close()
		p.Kill(errClosed)
		p.Wait()
	}
}

// exchange sends a query and reads lines up to an empty one.
func exchange(p *jail.Process, out *bufio.Reader, q string) (lines [][]byte, err error) {
	if _, err := io.WriteString(p.Stdin, q+"\n"); err != nil {
		return nil, err
	}
	for n := 0; ; {
		line, err := out.ReadBytes('\n')
		if n += len(line); n > MaxAnswer {
			return nil, jail.Met("killed: its answer has over %d bytes", MaxAnswer)
		}
		if err != nil {
			return nil, err
		}
		line = line[:len(line)-1]
		if len(line) == 0 {
			return lines, nil
		}
		lines = append(lines, line)
	}
}
