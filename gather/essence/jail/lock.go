package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// system are the paths that every jailed program may read and execute.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// settings are those of /etc that programs are lost without; none tells of the
// users of the machine, or what it is for.
var settings = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/timezone",
	"/etc/fonts", "/etc/magic", "/etc/magic.mime", "/etc/mime.types", "/etc/papersize", "/etc/perl", "/etc/python3",
	"/etc/ImageMagick-6", "/etc/ImageMagick-7", "/etc/xpdf", "/etc/ghostscript", "/etc/catdocrc",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// isSystem tells whether a path is below one of system.
func isSystem(path string) bool {
	return slices.ContainsFunc(system, func(d string) bool { return path == d || strings.HasPrefix(path, d+"/") })
}

// copied tells whether a program has to be copied into the jail, as who it runs
// for may not come to where it is, or not read it.
func (s *spec) copied(path string) bool {
	if s.UID < 0 || isSystem(path) {
		return false
	}
	if s.Ground == spaces { // it is bound to its path, which all may follow
		st, err := os.Stat(path)
		return err == nil && st.Mode()&0o5 != 0o5
	}
	return true
}

// lock gives up what Landlock and the system call filter can take.
func (s *spec) lock() error {
	if err := forsake(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if s.Guards&noLandlock == 0 {
		if err := s.landlock(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	return nil
}

// forsake gives up all capabilities, on all threads.
func forsake() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, no := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	runtime.KeepAlive(&head)
	runtime.KeepAlive(&none)
	if no != 0 {
		return no
	}
	return nil
}

func (s *spec) landlock() error {
	c := &s.Cmd
	var dirs, files []string
	add := func(path string) {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			dirs = append(dirs, path)
		} else if err == nil {
			files = append(files, path)
		}
	}
	for _, path := range slices.Concat(system, settings, c.Read) {
		add(path)
	}
	if !c.Inside {
		add(c.Path)
	}
	write := append([]string{s.Tmp}, c.Write...)
	return landlock.V9.BestEffort().Restrict(
		landlock.RODirs(dirs...), landlock.ROFiles(files...).IgnoreIfMissing(),
		landlock.RWDirs(write...).WithRefer(), landlock.RWFiles(devices...).IgnoreIfMissing(),
	)
}

// bound installs the filter, and sets the bounds of this process and those it
// begins but for that on what a program addresses.
func (s *spec) bound() error {
	c := &s.Cmd
	type limit struct {
		what int
		n    int64
	}
	limits := []limit{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 256}, {unix.RLIMIT_FSIZE, c.Output}, {unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0}, {unix.RLIMIT_CPU, c.CPU}, {unix.RLIMIT_NPROC, s.procs()}}
	if s.Guards&noFilter == 0 {
		if err := filter(); err != nil {
			return fmt.Errorf("filter: %w", err)
		}
	}
	if c.Inside { // what Go reserves and does not use is not data
		debug.SetMemoryLimit(c.Memory * 3 / 4)
		limits = append(limits, limit{unix.RLIMIT_DATA, c.Memory})
	}
	for _, l := range limits {
		if l.n < 0 || c.Inside && (raced && l.what == unix.RLIMIT_DATA || l.what == unix.RLIMIT_NPROC) {
			continue
		}
		if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: uint64(l.n), Max: uint64(l.n)}); err != nil {
			return fmt.Errorf("rlimit %d: %w", l.what, err)
		}
	}
	return nil
}

// procs is the bound on processes. They are counted by user: where the user is
// not of this jail alone, those that there are already come on top.
func (s *spec) procs() int64 {
	n := int64(s.Cmd.Procs)
	if s.UID >= 0 || s.Ground == userSpaces {
		return n
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return -1
	}
	for _, dir := range all {
		st, err := os.Stat(dir)
		if err != nil || int(st.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
			continue
		}
		b, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), "\nThreads:\t")
		threads, _, _ := strings.Cut(rest, "\n")
		if k, err := strconv.Atoi(threads); err == nil {
			n += int64(k)
		}
	}
	return n
}

// landlockABI is the version of Landlock that the kernel has, 0 for none.
func landlockABI() int {
	n, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if no != 0 {
		return 0
	}
	return int(n)
}
