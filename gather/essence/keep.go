package essence

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

// idleFor is how long a kept process is kept without work.
const idleFor = 30 * time.Second

// A pool keeps processes of one file between objects.
type pool struct {
	cmd    jail.Cmd // without what is of one object
	bounds Bounds
	begin  func(k *kept) error // says what there is to say first; may be nil

	mu     sync.Mutex
	free   []*kept
	closed bool
}

// A kept is a process that sees object after object.
type kept struct {
	p    *jail.Process
	out  *bufio.Reader
	left int         // objects it may yet see
	idle *time.Timer // ends it
}

func newPool(cmd jail.Cmd, b Bounds, begin func(*kept) error) *pool {
	return &pool{cmd: cmd, bounds: b, begin: begin}
}

// get gives a free process, or a new one. Who gets it calls put or drop.
func (p *pool) get(ctx context.Context) (*kept, error) {
	p.mu.Lock()
	for len(p.free) > 0 {
		k := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		if k.idle.Stop() {
			p.mu.Unlock()
			return k, nil
		}
	}
	p.mu.Unlock()
	cmd := p.cmd
	cmd.Stdin = jail.Piped
	n := int64(p.bounds.Keep)
	cmd.Memory, cmd.Procs = p.bounds.Memory, p.bounds.Procs
	cmd.Output = p.bounds.Output * n
	cmd.Wall, cmd.CPU = time.Duration(n)*(p.bounds.Wall+idleFor), time.Duration(n)*p.bounds.Wall
	proc, err := cmd.Start(context.WithoutCancel(ctx)) // it may outlive who asked first
	if err != nil {
		return nil, unnamed(err)
	}
	k := &kept{p: proc, out: bufio.NewReaderSize(proc.Stdout, 64<<10), left: p.bounds.Keep}
	if p.begin != nil {
		err = p.within(ctx, k, func() error { return p.begin(k) })
	}
	if err != nil {
		return nil, p.drop(k, err)
	}
	return k, nil
}

// put takes a process back, that has seen an object.
func (p *pool) put(k *kept) {
	k.left--
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || k.left <= 0 {
		k.end()
		return
	}
	k.idle = time.AfterFunc(idleFor, func() { p.expire(k) })
	p.free = append(p.free, k)
}

// expire ends a process that nobody has wanted.
func (p *pool) expire(k *kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.free {
		if f == k {
			p.free = append(p.free[:i], p.free[i+1:]...)
			break
		}
	}
	k.end()
}

var errDone = errors.New("it is wanted no longer")

// end ends a process whose work is done.
func (k *kept) end() {
	k.p.Stdin.Close()
	k.p.Kill(errDone)
	k.p.Wait()
}

// soon is how long a process that says nothing more may take to end.
const soon = time.Second

// drop ends a process that has failed, and tells why: what the process itself
// came to when it did, else err.
func (p *pool) drop(k *kept, err error) error {
	k.p.Stdin.Close()
	defer k.killed(err)()
	if why := k.p.Wait(); why != nil {
		return unnamed(why)
	}
	return fmt.Errorf("it ended before it answered: %w", err)
}

// killed kills the process for an error, but lets one that is about to end do
// so; the func it gives is to be called when it has.
func (k *kept) killed(err error) func() {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) {
		clock := time.AfterFunc(soon, func() { k.p.Kill(err) })
		return func() { clock.Stop() }
	}
	k.p.Kill(err)
	return func() {}
}

// close ends all that are free; those in use end when they are put back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, k := range p.free {
		k.idle.Stop()
		k.end()
	}
	p.free = nil
}

// within runs f, which talks to a process, for the time that an object may take.
func (p *pool) within(ctx context.Context, k *kept, f func() error) error {
	stop := context.AfterFunc(ctx, func() { k.p.Kill(context.Cause(ctx)) })
	defer stop()
	clock := time.AfterFunc(p.bounds.Wall, func() {
		k.p.Kill(jail.Met("killed: it took longer than %v", p.bounds.Wall))
	})
	defer clock.Stop()
	return f()
}
