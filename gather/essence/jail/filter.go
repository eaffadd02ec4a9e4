package jail

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the system calls that a jailed program does not get: those that
// reach the network or other processes, leave something in the kernel that
// outlives it, get at memory that no bound counts, or are doors to the kernel
// that no summarizer knocks at. socket is among them: socketpair remains.
var refused = []uint32{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_FANOTIFY_INIT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_ACCT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX,
}

// Where things are in what the filter is given, seccomp_data.
const (
	callAt = 0
	archAt = 4
	argAt  = 16 // the low half of the first argument, on the two machines there are
)

// filterArch is the machine that the filter is made for, 0 for another: there a
// namespace without a network does what it can.
var filterArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// filter refuses system calls of this process and those it begins, for good.
// What comes by another machine's calls, as of 32 bits, is killed.
func filter() error {
	if filterArch == 0 {
		return nil
	}
	code := program(filterArch)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if no != 0 {
		return no
	}
	return nil
}

// program is the filter's: a comparison a call, then what each verdict is.
func program(arch uint32) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	errno := func(no uint32) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | no) }

	code := []unix.SockFilter{
		load(archAt), jump(unix.BPF_JEQ, arch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(callAt), jump(unix.BPF_JGE, 1<<30, 0, 1), errno(uint32(unix.ENOSYS)), // x32
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), errno(uint32(unix.ENOSYS)), // its flags cannot be seen: clone it is
	}
	for _, call := range refused {
		code = append(code, jump(unix.BPF_JEQ, call, 0, 1), errno(uint32(unix.EPERM)))
	}
	const space = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	return append(code,
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3), load(argAt), jump(unix.BPF_JSET, space, 0, 1), errno(uint32(unix.EPERM)),
		ret(unix.SECCOMP_RET_ALLOW))
}
