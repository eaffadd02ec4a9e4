package jail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A spec is what the jailed half is told, through a pipe.
type spec struct {
	Cmd    command
	Ground int    // of the three below
	UID    int    // to become; < 0 stays
	Guards int    // Cmd.without
	Host   string // where a warden makes directories
	Tmp    string // below a warden: the directory to write
}

// A command is the part of a Cmd that the jailed half needs.
type command struct {
	Path        string
	Args, Env   []string
	Dir, Name   string
	Read, Write []string
	CPU         int64 // seconds
	Memory      int64
	Output      int64
	Procs       int
	Inside      bool
}

// The grounds a jail stands on.
const (
	spaces      = iota // namespaces, made by root
	userSpaces         // namespaces, made by a user in one of users
	warden             // no namespaces: a process that stays
	belowWarden        // what that begins
)

// The flags that this program is executed with. That for a function inside makes
// one that does not call Main fail instead of going on.
const (
	flag       = "-harvest-jail"
	flagInside = "-harvest-jail-inside"
)

// A box is what a Process runs in.
type box struct {
	cmd  *exec.Cmd
	line *os.File // what the jailed half is told through; its end ends a warden
	kind int
}

// kill ends all that is in the box: the first process of a namespace takes the
// others with it, a warden is told to, and killed if it does not.
func (b *box) kill() {
	if b.kind != warden {
		b.cmd.Process.Kill()
		return
	}
	b.line.Close()
}

// Start starts the program. Wait must be called.
func (c *Cmd) Start(ctx context.Context) (*Process, error) {
	k := *c
	k.defaults()
	err := k.check()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && !k.Inside {
		k.Path, err = filepath.EvalSymlinks(k.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	on := warden
	if k.without&noSpaces == 0 {
		if on, err = ground(); err != nil {
			return nil, fmt.Errorf("%s: no jail: %w", c.Path, err)
		}
	}
	p, err := k.start(ctx, on)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return p, nil
}

// ground is what jails of this process stand on: the first that one can be made
// on. It is found out once, by trying.
var ground = sync.OnceValues(func() (int, error) {
	first := userSpaces
	if os.Geteuid() == 0 {
		first = spaces // in a namespace of users root would stay root
	}
	var last error
	for _, on := range []int{first, warden} {
		if last = tryGround(on); last == nil {
			return on, nil
		}
	}
	return 0, last
})

func tryGround(on int) error {
	c := Cmd{Path: nothing, Inside: true}
	c.defaults()
	p, err := c.start(context.Background(), on)
	if err != nil {
		return err
	}
	return p.Wait()
}

// start starts the jailed half and returns once the program itself has begun.
func (c *Cmd) start(ctx context.Context, on int) (*Process, error) {
	in, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	said, say, err := os.Pipe()
	if err != nil {
		line.Close()
		return nil, err
	}
	defer said.Close()
	defer say.Close()

	how := flag
	if c.Inside && c.Path != nothing {
		how = flagInside
	}
	p := &Process{name: c.Path, done: make(chan struct{})}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"harvest", how}, Env: c.environ(), Dir: "/",
		ExtraFiles: []*os.File{in, say}, SysProcAttr: attr(on),
		WaitDelay: 5 * time.Second, // for its pipes, once it has ended
	}
	complaint := new(tail)
	cmd.Stderr = complaint
	if c.Stdin == Piped {
		if p.Stdin, err = cmd.StdinPipe(); err != nil {
			line.Close()
			return nil, err
		}
	} else {
		cmd.Stdin = c.Stdin
	}
	out, w, err := os.Pipe()
	if err != nil {
		line.Close()
		return nil, err
	}
	cmd.Stdout = w
	p.box = box{cmd: cmd, line: line, kind: on}
	p.out = out
	p.Stdout = &bounded{p: p, r: out, left: c.Output, max: c.Output}

	begun := make(chan error)
	go p.run(ctx, c.Wall, c.Memory, out, complaint, begun) // until done is closed
	err = <-begun
	w.Close()
	say.Close()
	if err == nil {
		err = c.handshake(p, said, on)
		if err != nil {
			p.Kill(err)
			out.Close()
			<-p.done
		}
	}
	return p, err
}

// run starts the jailed half and waits for its end, on one thread: the kernel
// takes the end of that for the end of the parent.
func (p *Process) run(ctx context.Context, wall time.Duration, memory int64, out *os.File, complaint *tail, begun chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer p.box.line.Close()
	if err := p.box.cmd.Start(); err != nil {
		out.Close()
		begun <- err
		return
	}
	stopWatch := context.AfterFunc(ctx, func() { p.Kill(context.Cause(ctx)) })
	clock := time.AfterFunc(wall, func() { p.Kill(Met("killed: it took longer than %v", wall)) })
	begun <- nil
	var watch sync.WaitGroup
	ended := make(chan struct{})
	watch.Go(func() { p.weigh(memory, ended) })
	err := p.box.cmd.Wait()
	close(ended)
	watch.Wait()
	stopWatch()
	clock.Stop()
	p.exit = exitOf(err, complaint.String(), p.box.kind)
	close(p.done)
}

// exitOf makes an Exit of how a process ended, nil if it did well.
func exitOf(err error, said string, ground int) error {
	var e *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case !errors.As(err, &e):
		return err
	}
	if strings.HasPrefix(said, "fatal error: ") && strings.Contains(said, "memory") { // of Go: of a function inside
		return Met("it ran out of the memory that it may have")
	}
	x := &Exit{Code: e.ExitCode(), Said: said}
	st := e.Sys().(syscall.WaitStatus)
	if st.Signaled() {
		x.Signal = st.Signal().String()
	} else if ground == warden && x.Code > 128 { // as a warden passes a signal on
		x.Code, x.Signal = -1, syscall.Signal(x.Code-128).String()
	}
	return x
}

// handshake tells the jailed half what to do and waits until it is done.
func (c *Cmd) handshake(p *Process, said *os.File, ground int) error {
	b, err := json.Marshal(&spec{Ground: ground, UID: newUID(), Guards: c.without, Host: os.TempDir(), Cmd: command{
		Path: c.Path, Args: c.Args, Env: c.environ(), Dir: c.Dir, Name: c.Name, Read: c.Read, Write: c.Write,
		CPU: int64((c.CPU + time.Second - 1) / time.Second), Memory: c.Memory, Output: c.Output, Procs: c.Procs, Inside: c.Inside,
	}})
	if err == nil {
		_, err = p.box.line.Write(append(b, '\n'))
	}
	answer, rerr := io.ReadAll(io.LimitReader(said, 4<<10))
	text, ok := strings.CutPrefix(string(answer), "jailed\n")
	switch {
	case ok && text == "":
		return nil
	case strings.HasPrefix(text, errno):
		return execError(text)
	case text != "":
		return errors.New(strings.TrimSpace(text))
	}
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	if killed != nil {
		return killed
	}
	return errors.Join(errors.New("no jail: this program does not call jail.Main first"), err, rerr)
}

// newUID is a user id for one jail: none of a machine's own, so that what is
// counted by user is counted by jail.
func newUID() int {
	if os.Geteuid() != 0 {
		return -1
	}
	return 0x60000000 + rand.IntN(1<<24)
}

func (c *Cmd) environ() []string {
	return append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8",
	}, c.Env...)
}

func attr(ground int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	withoutFilter := uintptr(unix.CLONE_NEWNET) // which costs much to end
	if filterArch != 0 {
		withoutFilter = 0
	}
	const all = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	switch ground {
	case spaces:
		a.Cloneflags = all | withoutFilter
	case userSpaces:
		a.Cloneflags = all | withoutFilter | unix.CLONE_NEWUSER
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount, in its own namespace; forsake gives it up
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	case warden:
		a.Pdeathsig = 0 // it notices by its pipe, and has work to do then
	}
	return a
}
