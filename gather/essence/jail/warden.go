package jail

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// warden begins the jailed half as a child and stays until nothing is left of
// it: what loses its parent below a subreaper becomes its child, whatever group
// or session it is in. It gives the exit status, 128 more than a signal. When in
// ends, the server wants the end, or has had its own.
func (s *spec) warden(in, say *os.File) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(say, "subreaper:", err)
		return 2
	}
	tmp, err := os.MkdirTemp(s.Host, "harvest-jail-")
	if err != nil {
		fmt.Fprintln(say, err)
		return 2
	}
	defer os.RemoveAll(tmp)
	pid, err := s.beget(tmp, say)
	if err != nil {
		fmt.Fprintln(say, err)
		return 2
	}
	say.Close()
	for fd := range 3 { // so that their other ends see the end of the program
		unix.Close(fd)
	}
	go func() { // ends with the process
		io.Copy(io.Discard, in)
		syscall.Kill(pid, syscall.SIGKILL)
	}()
	code := 0
	for {
		var st syscall.WaitStatus
		got, err := syscall.Wait4(-1, &st, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || got == pid {
			if code = st.ExitStatus(); st.Signaled() {
				code = 128 + int(st.Signal())
			}
			break
		}
	}
	endAll()
	return code
}

// beget starts the jailed half below a warden.
func (s *spec) beget(tmp string, say *os.File) (pid int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	defer w.Close()
	below := *s
	below.Ground, below.Tmp = belowWarden, tmp
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: os.Args, Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{r, say}, SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if err := json.NewEncoder(w).Encode(&below); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// endAll kills all that is below this process until there is nothing. What is
// found is stopped first, a few times over, so that a bomb does not outrun us.
// What escapes a look becomes our child before the one that begot it is waited
// for, and so is found by the look after that.
func endAll() {
	for range 3 {
		for _, pid := range descendants(os.Getpid()) {
			syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	for {
		for _, pid := range descendants(os.Getpid()) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return
		}
	}
}

// descendants are the processes below one, children before their own.
func descendants(pid int) []int {
	all := children(pid)
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// children are those of all threads of a process.
func children(pid int) (all []int) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, name := range lists {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}
