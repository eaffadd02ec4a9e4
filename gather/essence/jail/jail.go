// Package jail runs a program where it can do no harm: one that reads what a
// stranger wrote, or that a user has brought along.
//
// A jailed program has a file system of its own, in which there are /usr and
// what goes with it to read, the program, and an empty /tmp to write; no
// network, not even that of the machine; no process to see or to signal but its
// own; bounds on its time, memory, files, processes and what it writes; a clean
// environment; and, where root runs the server, a user id that nobody else has.
// When it ends, is to end, or its server is killed, all processes that it began
// end too, whatever they did to get away.
//
// The program that calls Run does the jailed half itself, executed once more; so
// that functions of its own can run there, its main calls Main first. Namespaces do most of it; where there are none to
// be had, a process stays as a warden that outlives what it began. Landlock and
// a system call filter hold in both cases, as far as the kernel has them:
// Ground tells what there is.
//
// The jail is no virtual machine: a hole in the kernel is a hole in it.
package jail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"sync"
	"time"
)

// A Cmd is a program to run in a jail. A number of zero means its default.
type Cmd struct {
	Path  string    // absolute, followed if it is a link; or, when Inside, a name given to Main
	Args  []string  // without the program's name; "{}" is what Name makes
	Env   []string  // besides PATH, HOME, TMPDIR and LANG
	Dir   string    // where it begins; /tmp when ""
	Stdin io.Reader // nil is an empty one; an *os.File is handed over as it is
	Name  string    // when not "": what Stdin has also stands in /tmp by this name, which "{}" is the path of; then Stdin must be an *os.File
	Read  []string  // absolute paths that it may read and execute, besides /usr and the like; what is missing is passed over
	Write []string  // absolute paths of directories that it may write, besides its /tmp

	Wall   time.Duration // 20 s
	CPU    time.Duration // of each process; Wall, in whole seconds
	Memory int64         // of a process to address, of all to hold, and of /tmp to hold; 512 MiB
	Output int64         // to standard output; 16 MiB. Files are no longer either
	Procs  int           // processes and threads at a time; 64
	Inside bool          // Path names a function that Main was given, not a program

	without int // tests only: grounds and guards not to use
}

// What Cmd.without takes away.
const (
	noSpaces = 1 << iota
	noLandlock
	noFilter
)

// maxComplaint is how much is kept of what a program writes to standard error:
// its end.
const maxComplaint = 2 << 10

func (c *Cmd) defaults() {
	if c.Wall <= 0 {
		c.Wall = 20 * time.Second
	}
	if c.CPU <= 0 {
		c.CPU = c.Wall
	}
	if c.Memory <= 0 {
		c.Memory = 512 << 20
	}
	if c.Output <= 0 {
		c.Output = 16 << 20
	}
	if c.Procs <= 0 {
		c.Procs = 64
	}
}

// A Bound is the error of a program that was killed for meeting one.
type Bound struct{ what string }

func (b *Bound) Error() string { return b.what }

// Met makes a Bound of what a caller bounds itself, for Kill.
func Met(format string, arg ...any) *Bound { return &Bound{fmt.Sprintf(format, arg...)} }

// An Exit is the error of a program that ended in failure by itself.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // which
	Said   string // the end of what it wrote to standard error
}

func (e *Exit) Error() string {
	s := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != "" {
		s = "signal: " + e.Signal
	}
	if line := e.line(); line != "" {
		s += ": " + line
	}
	return s
}

// line is the last line of what it said.
func (e *Exit) line() string {
	all := strings.TrimSpace(e.Said)
	line := all[strings.LastIndexByte(all, '\n')+1:]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
}

// Run runs the program to its end and copies what it writes to stdout, at most
// Output bytes. When it returns there is no process left of it. The error names
// the program, and is a *Bound when it met one, an *Exit when it failed, the
// cause of ctx when that ended.
func (c *Cmd) Run(ctx context.Context, stdout io.Writer) error {
	p, err := c.Start(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(stdout, p.Stdout)
	if err != nil && !errors.Is(err, errEnded) {
		p.Kill(err)
	}
	return p.Wait()
}

// errEnded ends the reading of a program's output, whose end Wait tells of.
var errEnded = errors.New("the program has ended")

// A Process is a program in a jail.
type Process struct {
	Stdout io.Reader      // fails past Output bytes, and kills the program
	Stdin  io.WriteCloser // nil unless Start was called with Stdin being Piped

	name string
	box  box
	out  io.Closer // what Stdout reads

	mu     sync.Mutex
	killed error // why it was, first reason

	done chan struct{} // closed when it has ended
	exit error         // once done
}

// Piped as Stdin gives Process.Stdin.
var Piped io.Reader = strings.NewReader("")

// Kill ends the program for a reason, which Wait then gives.
func (p *Process) Kill(why error) {
	p.mu.Lock()
	if p.killed == nil {
		p.killed = why
	}
	p.mu.Unlock()
	p.box.kill()
}

// Wait waits until nothing is left of the program and tells how it ended. What it
// writes must be read meanwhile, or Kill called.
func (p *Process) Wait() error {
	<-p.done
	p.out.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed != nil {
		return fmt.Errorf("%s: %w", p.name, p.killed)
	}
	if p.exit != nil {
		return fmt.Errorf("%s: %w", p.name, p.exit)
	}
	return nil
}

// A bounded reads the output of a process.
type bounded struct {
	p    *Process
	r    io.Reader
	left int64
	max  int64
}

func (b *bounded) Read(q []byte) (int, error) {
	if int64(len(q)) > b.left+1 {
		q = q[:b.left+1]
	}
	n, err := b.r.Read(q)
	if b.left -= int64(n); b.left < 0 {
		what := Met("killed: it wrote more than %d bytes", b.max)
		b.p.Kill(what)
		return n - 1, what
	}
	if err != nil && err != io.EOF {
		err = errEnded
	}
	return n, err
}

// A tail keeps the end of what is written to it, and the beginning.
type tail struct {
	mu   sync.Mutex
	head []byte
	b    []byte
}

const maxHead = 256 // of a complaint

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := min(maxHead-len(t.head), len(p)); n > 0 {
		t.head = append(t.head, p[:n]...)
	}
	t.b = append(t.b, p[max(0, len(p)-maxComplaint):]...)
	t.b = t.b[max(0, len(t.b)-maxComplaint):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.b
	if i := bytes.Index(t.head, []byte("fatal error: ")); i >= 0 { // of Go: many lines follow
		b, _, _ = bytes.Cut(t.head[i:], []byte("\n"))
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

// check finds what cannot be run.
func (c *Cmd) check() error {
	if !c.Inside && !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("'%s' is not a path that begins with a slash: %w", c.Path, iofs.ErrInvalid)
	}
	if strings.ContainsAny(c.Name, "/\x00") || c.Name == "." || c.Name == ".." || len(c.Name) > 255 {
		return fmt.Errorf("'%.100s' is not a file's name: %w", c.Name, iofs.ErrInvalid)
	}
	for _, s := range append(append([]string{c.Path}, c.Args...), c.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("a NUL in '%.100s': %w", s, iofs.ErrInvalid)
		}
	}
	return nil
}
