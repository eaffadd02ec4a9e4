package fuse

import (
	"context"
	"errors"
	iofs "io/fs"
	"strings"
	"syscall"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

func (t *tree) Mkdir(cancel <-chan struct{}, in *gofuse.MkdirIn, name string, out *gofuse.EntryOut) gofuse.Status {
	t.count.mkdir.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.mkdir(ctx, in, name, out))
}

func (t *tree) mkdir(ctx context.Context, in *gofuse.MkdirIn, name string, out *gofuse.EntryOut) error {
	up, d, err := t.dirOf(in.NodeId)
	if err != nil {
		return err
	}
	m, ok := d.(fs.Maker)
	if !ok {
		return iofs.ErrPermission
	}
	made, err := m.Mkdir(ctx, name, iofs.FileMode(in.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = t.enter(up, name, made, out, t.notes.Load())
	return err
}

func (t *tree) Unlink(cancel <-chan struct{}, in *gofuse.InHeader, name string) gofuse.Status {
	t.count.unlink.Add(1)
	return t.remove(cancel, in, name)
}

func (t *tree) Rmdir(cancel <-chan struct{}, in *gofuse.InHeader, name string) gofuse.Status {
	t.count.rmdir.Add(1)
	return t.remove(cancel, in, name)
}

func (t *tree) remove(cancel <-chan struct{}, in *gofuse.InHeader, name string) gofuse.Status {
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	_, d, err := t.dirOf(in.NodeId)
	if err != nil {
		return t.status(err)
	}
	r, ok := d.(fs.Remover)
	if !ok {
		return t.status(iofs.ErrPermission)
	}
	return t.status(r.Remove(ctx, name))
}

const noReplace = 1 // RENAME_NOREPLACE; the other flags need what no Dir offers

func (t *tree) Rename(cancel <-chan struct{}, in *gofuse.RenameIn, old, new string) gofuse.Status {
	t.count.rename.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.rename(ctx, in, old, new))
}

func (t *tree) rename(ctx context.Context, in *gofuse.RenameIn, old, new string) error {
	if in.Newdir != in.NodeId {
		return syscall.EXDEV // mv(1) then copies
	}
	if in.Flags&^noReplace != 0 {
		return syscall.EINVAL
	}
	up, d, err := t.dirOf(in.NodeId)
	if err != nil {
		return err
	}
	r, ok := d.(fs.Renamer)
	if !ok {
		return iofs.ErrPermission
	}
	if err := r.Rename(ctx, old, new, in.Flags&noReplace == 0); err != nil {
		return err
	}
	fn, err := d.Lookup(ctx, new)
	if err != nil {
		return nil // gone already, and the rename was done all the same
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[t.id(fn.Stat())]; n != nil && n.up != nil {
		n.up, n.name, n.node = up, new, fn
	}
	return nil
}

// Link asks a Linker. What stands under the new name may be another file, as the
// kernel allows.
func (t *tree) Link(cancel <-chan struct{}, in *gofuse.LinkIn, name string, out *gofuse.EntryOut) gofuse.Status {
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.link(ctx, in, name, out))
}

func (t *tree) link(ctx context.Context, in *gofuse.LinkIn, name string, out *gofuse.EntryOut) error {
	up, d, err := t.dirOf(in.NodeId)
	if err != nil {
		return err
	}
	l, ok := d.(fs.Linker)
	if !ok {
		return syscall.EPERM
	}
	n := t.node(in.Oldnodeid)
	if n == nil {
		return syscall.ESTALE
	}
	if err := l.Link(ctx, name, t.of(n)); err != nil {
		return err
	}
	fn, err := d.Lookup(ctx, name)
	if err != nil {
		return err
	}
	_, err = t.enter(up, name, fn, out, t.notes.Load())
	return err
}

// A tree has no symbolic links and no devices; programs know EPERM for that.

func (t *tree) Symlink(<-chan struct{}, *gofuse.InHeader, string, string, *gofuse.EntryOut) gofuse.Status {
	return gofuse.EPERM
}

func (t *tree) Mknod(<-chan struct{}, *gofuse.MknodIn, string, *gofuse.EntryOut) gofuse.Status {
	return gofuse.EPERM
}

// xattrs are the fs.Attributes of a node. No other can be set, and to ask for
// one of another name space is not supported rather than absent: cp -p and
// install need that to go on, and ls -l then does not ask for each file.
const xattrPrefix = "user.harvest."

func (t *tree) GetXAttr(cancel <-chan struct{}, in *gofuse.InHeader, name string, dest []byte) (uint32, gofuse.Status) {
	t.count.xattr.Add(1)
	if !strings.HasPrefix(name, "user.") {
		return 0, gofuse.Status(syscall.EOPNOTSUPP)
	}
	as, st := t.attributes(cancel, in)
	if st != gofuse.OK {
		return 0, st
	}
	for _, a := range as {
		if xattrPrefix+a.Name == name {
			return fill(dest, a.Value)
		}
	}
	return 0, gofuse.ENODATA
}

func (t *tree) ListXAttr(cancel <-chan struct{}, in *gofuse.InHeader, dest []byte) (uint32, gofuse.Status) {
	t.count.xattr.Add(1)
	as, st := t.attributes(cancel, in)
	if st != gofuse.OK {
		return 0, st
	}
	var b strings.Builder
	for _, a := range as {
		b.WriteString(xattrPrefix + a.Name + "\x00")
	}
	return fill(dest, b.String())
}

// fill gives a value if it fits, and its length in any case.
func fill(dest []byte, value string) (uint32, gofuse.Status) {
	if len(dest) < len(value) {
		return uint32(len(value)), gofuse.ERANGE
	}
	return uint32(copy(dest, value)), gofuse.OK
}

func (t *tree) attributes(cancel <-chan struct{}, in *gofuse.InHeader) ([]fs.Attribute, gofuse.Status) {
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return nil, gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	n := t.node(in.NodeId)
	if n == nil {
		return nil, gofuse.Status(syscall.ESTALE)
	}
	fn, err := t.again(ctx, n)
	if err != nil && !errors.Is(err, errGone) {
		return nil, t.status(err)
	}
	a, ok := fn.(fs.Attributer)
	if !ok {
		return nil, gofuse.OK
	}
	as, err := a.Attributes(ctx)
	return as, t.status(err)
}

func (t *tree) SetXAttr(<-chan struct{}, *gofuse.SetXAttrIn, string, []byte) gofuse.Status {
	t.count.xattr.Add(1)
	return gofuse.Status(syscall.EOPNOTSUPP)
}

func (t *tree) RemoveXAttr(<-chan struct{}, *gofuse.InHeader, string) gofuse.Status {
	t.count.xattr.Add(1)
	return gofuse.Status(syscall.EOPNOTSUPP)
}
