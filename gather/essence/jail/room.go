package jail

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// room makes a file system of our own in our own namespace: an empty one, with
// what may be read bound into it, in which /tmp is all that can be written. What
// there was is let go of, so that nothing of it, mounted trees included, is
// held or can be reached.
func (s *spec) room() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount /: %w", err)
	}
	size := s.Cmd.Memory
	if st, err := os.Stdin.Stat(); err == nil && s.Cmd.Name != "" {
		size += st.Size()
	}
	binds, err := s.binds()
	if err != nil {
		return err
	}
	const base = "/tmp" // what is below it has been opened
	err = unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,nr_inodes=4096,size=1m")
	if err != nil {
		return fmt.Errorf("mount %s: %w", base, err)
	}
	if err := os.Mkdir(base+"/tmp", 0o755); err != nil {
		return err
	}
	err = unix.Mount("tmpfs", base+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700,nr_inodes=16384,size="+strconv.FormatInt(size, 10))
	if err != nil {
		return fmt.Errorf("mount /tmp: %w", err)
	}
	for _, b := range binds {
		if err := b.mount(base); err != nil {
			return fmt.Errorf("bind %s: %w", b.path, err)
		}
	}
	if err := fittings(base); err != nil {
		return err
	}
	still := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, base, 0, &still); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("mount %s: %w", base, err)
	}
	if err := os.Chdir(base); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old one lies over the new one now
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount /: %w", err)
	}
	return os.Chdir("/")
}

// A bind is a path to be seen in the room, by what it is now.
type bind struct {
	path  string
	link  string // what it is a link to
	f     *os.File
	dir   bool
	write bool
}

// binds opens what is to be seen.
func (s *spec) binds() ([]bind, error) {
	var all []bind
	read := slices.Concat(system, settings, devices, s.Cmd.Read)
	if !s.Cmd.Inside {
		read = append(read, s.Cmd.Path)
	}
	seen := make(map[string]bool)
	for i, path := range append(read, s.Cmd.Write...) {
		path = filepath.Clean(path)
		if i >= len(system) && isSystem(path) || seen[path] {
			continue
		}
		seen[path] = true
		if to, err := os.Readlink(path); err == nil && i < len(system) {
			all = append(all, bind{path: path, link: to})
			continue
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, iofs.ErrNotExist) && path != s.Cmd.Path {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		f := os.NewFile(uintptr(fd), path)
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		all = append(all, bind{path: path, f: f, dir: st.IsDir(), write: i >= len(read)})
	}
	return all, nil
}

// mount makes the path below base and binds what it is to it.
func (b *bind) mount(base string) error {
	at := base + b.path
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case b.link != "":
		return os.Symlink(b.link, at)
	case b.dir:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
	default:
		f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o444)
		if err != nil {
			return err
		}
		f.Close()
	}
	defer b.f.Close()
	from := fmt.Sprintf("/proc/self/fd/%d", b.f.Fd())
	if err := unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !slices.Contains(devices, b.path) {
		set.Attr_set |= unix.MOUNT_ATTR_NODEV
		if !b.write {
			set.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
	}
	err := unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &set)
	if errors.Is(err, unix.ENOSYS) { // Linux before 5.12: modes and Landlock are what there is
		return nil
	}
	return err
}

// fittings are what else a program looks for.
func fittings(base string) error {
	for _, dir := range []string{"/proc", "/dev", "/etc"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil {
			return err
		}
	}
	unix.Mount("proc", base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") // may fail in a container; /dev/fd is what it is for
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(to, base+"/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}
