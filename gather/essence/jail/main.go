package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Inside is a function of this program that runs in a jail, in place of
// another program: it reads standard input and writes standard output.
type Inside struct {
	Name string
	Run  func(args []string) error
}

// init does the jailed half, in a process that Start has executed this program
// as to run another: it does not return there. It is an init, so that what the
// packages after this one make ready is not made ready for each run: with the
// tables of package essence that was 30 ms of processor time of 45.
func init() {
	if len(os.Args) == 2 && os.Args[1] == flag {
		jailed(nil)
	}
}

// Main runs one of the functions in a jail, and does not return, in a process
// that Start has executed this program as for that; in any other it returns at
// once. It comes first in main, and in TestMain.
func Main(inside ...Inside) {
	if len(os.Args) == 2 && os.Args[1] == flagInside {
		jailed(inside)
	}
}

// jailed is the jailed half. It does not return.
func jailed(inside []Inside) {
	runtime.LockOSThread() // what is given up here is given up by what this thread executes
	in, say := os.NewFile(3, "spec"), os.NewFile(4, "status")
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	var s spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		fmt.Fprintln(say, "jail:", err)
		os.Exit(2)
	}
	if s.Ground == warden {
		os.Exit(s.warden(in, say))
	}
	err := s.enter(say)
	if err == nil {
		err = s.become(say, inside)
	}
	fmt.Fprintln(say, err)
	os.Exit(2)
}

// enter makes the jail around this process.
func (s *spec) enter(say io.Writer) error {
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // rather this than the server; may fail
	unix.Setpriority(unix.PRIO_PROCESS, 0, 10)
	if s.Tmp == "" {
		s.Tmp = "/tmp"
		if err := s.room(); err != nil {
			return fmt.Errorf("namespaces: %w", err)
		}
	}
	if err := s.furnish(); err != nil {
		return err
	}
	if err := s.drop(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if err := os.Chdir(s.Cmd.Dir); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	// Who has died before the signal was asked for reads no longer.
	_, err := io.WriteString(say, "jailed\n")
	return err
}

// furnish puts into /tmp what is to be there, and says where things are.
func (s *spec) furnish() error {
	c := &s.Cmd
	for i, e := range c.Env {
		if name, v, _ := strings.Cut(e, "="); v == "/tmp" && (name == "HOME" || name == "TMPDIR") {
			c.Env[i] = name + "=" + s.Tmp
		}
	}
	if c.Dir == "" {
		c.Dir = s.Tmp
	}
	if !c.Inside && s.copied(c.Path) {
		to := filepath.Join(s.Tmp, ".program")
		if err := copyFile(to, c.Path, 0o755); err != nil {
			return err
		}
		c.Path = to
	}
	if c.Name == "" {
		return nil
	}
	name := filepath.Join(s.Tmp, c.Name)
	for i, a := range c.Args {
		if a == "{}" {
			c.Args[i] = name
		}
	}
	return s.place(name)
}

// place makes a file of what is at standard input, and that the standard input.
func (s *spec) place(name string) error {
	st, err := os.Stdin.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New("standard input is not a regular file")
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, io.NewSectionReader(os.Stdin, 0, st.Size())); err != nil {
		return err
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return unix.Dup3(int(in.Fd()), 0, 0)
}

func copyFile(to, from string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, os.Chmod(to, mode), out.Close())
}

// drop becomes the user of this jail.
func (s *spec) drop() error {
	if s.UID < 0 {
		return nil
	}
	id := s.UID
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if syscall.Setresgid(id, id, id) != nil { // where user ids are few: nobody's
		id = 65534
		if err := syscall.Setresgid(id, id, id); err != nil {
			return fmt.Errorf("setresgid: %w", err)
		}
	}
	if err := os.Chown(s.Tmp, id, id); err != nil {
		return err
	}
	if err := syscall.Setresuid(id, id, id); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

// become executes the program, or runs the function.
func (s *spec) become(say *os.File, inside []Inside) error {
	c := &s.Cmd
	unix.CloseRange(5, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC) // older kernels: Go's own files are so
	if !c.Inside {
		return s.execute(say)
	}
	inside = append(inside, Inside{Name: nothing, Run: func([]string) error { return nil }})
	for _, f := range inside {
		if f.Name != c.Path {
			continue
		}
		if err := s.bound(); err != nil {
			return err
		}
		say.Close()
		if err := f.Run(c.Args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	return errors.New("no jail: this program does not give it to jail.Main")
}

// execute becomes the program. Its bound on memory is past what Go has taken
// for itself, so that from there on nothing is left to Go: not even to tell of
// an error, which goes as "errno" and three digits.
func (s *spec) execute(say *os.File) error {
	c := &s.Cmd
	path, err := syscall.BytePtrFromString(c.Path)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(append([]string{c.Path}, c.Args...))
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(c.Env)
	if err != nil {
		return err
	}
	told, fd := []byte(errno+"000\n"), say.Fd()
	debug.SetGCPercent(-1)
	if err := s.bound(); err != nil {
		return err
	}
	as := &syscall.Rlimit{Cur: uint64(c.Memory), Max: uint64(c.Memory)}
	_, _, no := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_AS, uintptr(unsafe.Pointer(as)), 0, 0, 0)
	if no == 0 {
		_, _, no = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])))
	}
	for i := range 3 {
		told[len(told)-2-i] = byte('0' + no%10)
		no /= 10
	}
	syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&told[0])), uintptr(len(told)))
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 2, 0, 0)
	}
}

// errno begins what is told of an execution that failed.
const errno = "errno "

// execError is what was told, as an error.
func execError(text string) error {
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, errno)))
	no := syscall.Errno(n)
	switch {
	case err != nil:
		return errors.New(text)
	case no == syscall.ENOEXEC:
		return fmt.Errorf("exec: %w: a script begins with #! and its interpreter", no)
	}
	return fmt.Errorf("exec: %w", no)
}
