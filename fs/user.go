package fs

import (
	"context"
	iofs "io/fs"
	"slices"
)

// User is who asks. Doors find out who it is and say so in the context of
// each call.
type User struct {
	Name     string
	Groups   []string
	Owner    bool // owns the tree: nodes without an owner are this user's
	Local    bool // is on this machine: a door that knows says so
	ReadOnly bool // nobody in particular: may read what others may, change nothing
}

type userKey struct{}

// WithUser says that calls made with the context are u's.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserOf gives the user of a call. Calls that no door made are the process's
// own, whose user owns the tree and has no name: it may do anything that the
// node itself does not refuse, as a 9P client's tree is asked and the server
// decides.
func UserOf(ctx context.Context) *User {
	if u, ok := ctx.Value(userKey{}).(*User); ok {
		return u
	}
	return &User{Owner: true, Local: true}
}

// Permission bits as May takes them.
const (
	MayExec  = 1
	MayWrite = 2
	MayRead  = 4
)

// May tells whether u may do to the node what want says, by the node's mode
// alone; the answer is nil or iofs.ErrPermission.
func (u *User) May(st Stat, want iofs.FileMode) error {
	if u.Owner && u.Name == "" {
		return nil
	}
	perm := st.Mode.Perm()
	if u.ReadOnly {
		if want&MayWrite != 0 || perm&want != want {
			return iofs.ErrPermission
		}
		return nil
	}
	mine := st.Owner == u.Name && u.Name != "" || st.Owner == "" && u.Owner
	switch {
	case mine:
		perm >>= 6
	case st.Group != "" && slices.Contains(u.Groups, st.Group), st.Group == "" && u.Owner:
		perm >>= 3
	}
	if perm&want != want {
		return iofs.ErrPermission
	}
	return nil
}
