package store

import (
	"context"
	"fmt"
	iofs "io/fs"
	"syscall"

	"harvest/fs"
)

// removable is a folder of objects, from which its owner may take one.
type removable struct {
	fs.Func
	remove func(context.Context, Entry) error
}

// Stat gives a directory that its owner may write.
func (d removable) Stat() fs.Stat {
	st := d.Func.Stat()
	if d.remove != nil {
		st.Mode = 0o755
	}
	return st
}

// Remove deletes an object. A folder goes with the last object in it, and digest
// is made; neither can be removed.
func (d removable) Remove(ctx context.Context, name string) error {
	if d.remove == nil {
		return iofs.ErrPermission
	}
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return err
	}
	n, err := d.Lookup(ctx, name)
	if err != nil {
		return err
	}
	switch n := n.(type) {
	case objectFile:
		return d.remove(ctx, n.e)
	case fs.Dir:
		return fmt.Errorf("%s: %w", name, syscall.ENOTEMPTY)
	}
	return fmt.Errorf("%s: %w", name, iofs.ErrPermission)
}
