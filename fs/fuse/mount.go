// Package fuse mounts a tree of package fs through the kernel's FUSE, and is
// the only importer of go-fuse. It holds no product logic: what a file says
// of itself (fs.Kind, Vers, Size) decides what the kernel may keep.
//
// It stands on go-fuse's wire level (RawFileSystem), not on its node tree: a
// tree of fs.Nodes has its own identities, so the kernel's node ids are the
// Paths themselves, and all this side keeps of a node the kernel knows is one
// small record (node.go). Everything that waits can be interrupted; nothing
// here waits for the kernel while it holds a lock.
//
// What the kernel may keep:
//
//	kind          name and attributes     content
//	Plain         5 min with a Bus, 1 s   page cache, as long as Vers stays
//	directory     1 s                     listings of Plain names, while Vers stays
//	Growing       name as Plain, 0        none: reads see the growth at once
//	Made, Control 0                       none: each open is its own snapshot
//	Live          0                       none: reads wait, an interrupt ends them
//
// With a Bus, a change is told to the kernel when it happens, from one
// goroutine that is never inside a request. Whatever was missed, opening a
// file asks the tree again, so that what is read is never older than the open.
//
// Never open a file of the mount in the process that serves it: the Go
// scheduler can then wait for itself.
package fuse

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

// fsType is what /proc/mounts calls our mounts: fuse.harvest.
const fsType = "harvest"

// Options say how to mount. The zero value mounts for the caller alone,
// without word of changes.
type Options struct {
	Name       string       // what df and mount show as the source; default "harvest"
	Bus        *fs.Bus      // word of changes in the tree; nil: nothing is kept longer than a second
	Log        *slog.Logger // default: none
	AllowOther bool         // let other users in, each as the modes allow
	ReadOnly   bool
	Disk       string // a path whose file system's space statfs shows; "": a plausible constant
}

// A Server is a mounted tree.
type Server struct {
	point string
	raw   *gofuse.Server
	tree  *tree
	lg    *slog.Logger
	opt   Options

	served chan struct{} // closed when the kernel is done with us
	gone   chan struct{} // closed when the mount is, and no request runs
	leave  sync.Once
	last   sync.Once
	err    error // of Unmount; read after gone
}

// Mount mounts root at the directory point, for everyone who may read it
// there if AllowOther. As root it needs no helper, else fusermount3. A mount
// left there by a server that died is replaced; a live one is EBUSY. When ctx
// ends the tree is unmounted.
func Mount(ctx context.Context, point string, root fs.Dir, opt Options) (*Server, error) {
	if opt.Name == "" {
		opt.Name = fsType
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	point, err := filepath.Abs(point)
	if err != nil {
		return nil, err
	}
	if err := vacate(point, opt.Log); err != nil {
		return nil, fmt.Errorf("mount %s: %w", point, err)
	}
	s := &Server{point: point, lg: opt.Log, opt: opt, served: make(chan struct{}), gone: make(chan struct{})}
	s.tree = newTree(root, opt)
	s.raw, err = gofuse.NewServer(s.tree, point, options(opt))
	if err != nil {
		if s.tree.events != nil {
			s.tree.events.Close()
		}
		return nil, fmt.Errorf("mount %s: %w", point, err)
	}
	go func() { // waited for by Wait, through served
		defer close(s.served)
		s.raw.Serve()
	}()
	go s.tree.follow(s.served) // waited for by Wait, through tree.done
	go func() {                // waited for by Wait, through gone
		select {
		case <-ctx.Done():
			s.Unmount()
		case <-s.served:
			s.finish(nil)
		case <-s.gone:
		}
	}()
	s.lg.Info("mounted", "point", point, "readonly", opt.ReadOnly)
	return s, nil
}

// options are the settings design/tree.md measured, and these: O_TRUNC comes
// with the open, so that a file is not emptied by somebody who then may not
// open it; killpriv, or each write asks for security.capability first.
func options(opt Options) *gofuse.MountOptions {
	o := &gofuse.MountOptions{
		AllowOther:        opt.AllowOther,
		Options:           []string{"default_permissions"},
		FsName:            opt.Name,
		Name:              fsType,
		MaxBackground:     64,
		MaxWrite:          1 << 20,
		MaxReadAhead:      1 << 20,
		DisableSplice:     true,
		DirectMountStrict: os.Geteuid() == 0,
		Logger:            log.New(logWriter{opt.Log}, "", 0),
		ExtraCapabilities: gofuse.CAP_READDIRPLUS_AUTO | gofuse.CAP_ATOMIC_O_TRUNC | gofuse.CAP_HANDLE_KILLPRIV_V2,
	}
	if !opt.ReadOnly {
		return o
	}
	if o.DirectMountStrict {
		o.DirectMountFlags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_RDONLY
	} else {
		o.Options = append(o.Options, "ro")
	}
	return o
}

// logWriter gives what go-fuse has to say to our log.
type logWriter struct{ lg *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.lg.Warn("fuse", "text", strings.TrimSpace(string(p)))
	return len(p), nil
}

// vacate makes sure that nothing is mounted on point: not a server that still
// runs, and no longer one that died.
func vacate(point string, lg *slog.Logger) error {
	if dead(point) {
		lg.Warn("mount was left by a server that died; replacing it", "point", point)
		if err := detach(point); err != nil {
			return fmt.Errorf("stale mount: %w", err)
		}
	}
	fi, err := os.Stat(point)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return syscall.ENOTDIR
	}
	if mounted(point) {
		return fmt.Errorf("a tree is mounted there already: %w", syscall.EBUSY)
	}
	return nil
}

// mounted tells whether the topmost mount on point is one of ours.
func mounted(point string) bool {
	real, err := filepath.EvalSymlinks(point)
	if err != nil {
		real = point
	}
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return false
	}
	defer f.Close()
	ours := false
	for sc := bufio.NewScanner(f); sc.Scan(); {
		w := strings.Fields(sc.Text())
		if len(w) > 2 && unescape.Replace(w[1]) == real {
			ours = w[2] == "fuse."+fsType
		}
	}
	return ours
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// detach takes the mount out of the tree of names, in use or not.
func detach(point string) error {
	if os.Geteuid() == 0 {
		return syscall.Unmount(point, syscall.MNT_DETACH)
	}
	out, err := exec.Command("fusermount3", "-u", "-z", point).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Unmount ends every request that waits, and unmounts. If somebody still
// stands in the tree or has a file of it open, the mount is taken out of the
// tree of names and what they do there gives ENOTCONN. It returns when no
// request runs any more, and may be called more than once.
func (s *Server) Unmount() error {
	s.leave.Do(func() {
		s.tree.stop()
		s.finish(s.unmount())
	})
	<-s.gone
	return s.err
}

// unmount tries a few times, for those whose reads just ended need a moment
// to close their files.
func (s *Server) unmount() error {
	for pause := time.Millisecond; pause < 100*time.Millisecond; pause *= 3 {
		select {
		case <-s.served: // somebody else unmounted it; what is on point now is not ours
			return nil
		default:
		}
		if s.tryUnmount() == nil {
			<-s.served
			return nil
		}
		time.Sleep(pause)
	}
	s.lg.Warn("mount is in use; detaching it", "point", s.point)
	return detach(s.point)
}

func (s *Server) tryUnmount() error {
	if os.Geteuid() == 0 {
		return syscall.Unmount(s.point, 0)
	}
	return exec.Command("fusermount3", "-u", "-q", s.point).Run()
}

// finish waits for what still runs and closes what is still open. The mount
// may have gone without us (umount(8)), and then it comes here from Mount.
func (s *Server) finish(err error) {
	s.last.Do(func() {
		s.tree.stop()
		s.tree.end()
		s.err = err
		s.lg.Info("unmounted", "point", s.point)
		close(s.gone)
	})
}

// Wait returns when the tree is no longer mounted and no request runs.
func (s *Server) Wait() error {
	<-s.gone
	return s.err
}

// Stats counts what the kernel asked since the mount.
func (s *Server) Stats() Stats { return s.tree.stats() }

// Point is the mount point, absolute.
func (s *Server) Point() string { return s.point }
