package fuse

import (
	"context"
	"fmt"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	gofuse "github.com/hanwen/go-fuse/v2/fuse"
)

// bare is the tree that benchmarks compare with: the same names and contents
// in go-fuse's own tree of MemRegularFiles, as its examples are written, with
// its default options. Read-dir-plus can be turned off, as it was where
// design/tree.md measured.
type bare struct {
	fusefs.Inode
	files, flat int
}

func (b *bare) OnAdd(ctx context.Context) {
	add := func(up *fusefs.Inode, d many) {
		for i := range d.n {
			f := &fusefs.MemRegularFile{Data: d.file(i).(numbered).content(), Attr: gofuse.Attr{Mode: 0o444}}
			up.AddChild(d.name(i), up.NewPersistentInode(ctx, f, fusefs.StableAttr{}), false)
		}
	}
	dir := func(up *fusefs.Inode, name string) *fusefs.Inode {
		n := up.NewPersistentInode(ctx, &fusefs.Inode{}, fusefs.StableAttr{Mode: syscall.S_IFDIR})
		up.AddChild(name, n, false)
		return n
	}
	all := dir(&b.Inode, "folders")
	for i := range 256 {
		name := fmt.Sprintf("%02x", i)
		add(dir(all, name), many{key: name + "_", n: (b.files + 255) / 256, size: 2048})
	}
	add(dir(&b.Inode, "flat"), many{key: "flat_", n: b.flat, size: 16})
}

type bareServer struct{ *gofuse.Server }

func (s bareServer) Wait() error { s.Server.Wait(); return nil }

func bareMount(point string) (bareServer, func() string, error) {
	opt := &fusefs.Options{}
	opt.DirectMount = true
	opt.AllowOther = true
	opt.DisableReadDirPlus = envInt("HARVEST_FUSE_BARE", 1) == 2
	s, err := fusefs.Mount(point, &bare{files: envInt("HARVEST_FUSE_FILES", 10000), flat: envInt("HARVEST_FUSE_FLAT", 100000)}, opt)
	return bareServer{s}, func() string { return "" }, err
}
