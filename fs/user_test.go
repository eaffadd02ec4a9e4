package fs_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"syscall"
	"testing"

	"harvest/fs"
)

func TestMay(t *testing.T) {
	var (
		owner    = &fs.User{Name: "root", Owner: true}
		ann      = &fs.User{Name: "ann", Groups: []string{"staff"}}
		bob      = &fs.User{Name: "bob"}
		nobody   = &fs.User{ReadOnly: true}
		process  = fs.UserOf(context.Background())
		mine     = fs.Stat{Mode: 0o640} // of whoever owns the tree
		anns     = fs.Stat{Mode: 0o644, Owner: "ann"}
		staffs   = fs.Stat{Mode: 0o060, Owner: "root", Group: "staff"}
		all      = fs.Stat{Mode: 0o666}
		closed   = fs.Stat{Mode: 0}
		ownerOut = fs.Stat{Mode: 0o077}
	)
	const r, w, x = fs.MayRead, fs.MayWrite, fs.MayExec
	tests := []struct {
		name string
		u    *fs.User
		st   fs.Stat
		want iofs.FileMode
		ok   bool
	}{
		{"process reads its own", process, mine, r, true},
		{"process writes its own", process, mine, w, true},
		{"owner writes", owner, mine, r | w, true},
		{"ann reads what is none of hers", ann, mine, r, false},
		{"owner reads what is ann's, as the others", owner, anns, r, true},
		{"owner writes what is ann's", owner, anns, w, false},
		{"ann writes hers", ann, anns, r | w, true},
		{"bob reads ann's, as the others", bob, anns, r, true},
		{"bob writes ann's", bob, anns, w, false},
		{"ann writes her group's", ann, staffs, r | w, true},
		{"bob is not in the group", bob, staffs, r, false},
		{"root is the node's owner, who may nothing", owner, staffs, r, false},
		{"owner has owner's bits only", owner, ownerOut, r, false},
		{"nobody reads what others may", nobody, all, r, true},
		{"nobody writes what others may", nobody, all, w, false},
		{"nobody reads what they may not", nobody, mine, r, false},
		{"nobody asks for both", nobody, all, r | w, false},
		{"the process is not asked for bits", process, closed, r, true},
		{"nothing is asked", nobody, closed, 0, true},
		{"search", bob, fs.Stat{Mode: 0o711}, x, true},
		{"list what may be searched", bob, fs.Stat{Mode: 0o711}, r, false},
	}
	for _, tt := range tests {
		err := tt.u.May(tt.st, tt.want)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("%s: got %v, want allowed to be %t", tt.name, err, tt.ok)
		}
	}
}

func TestWalk(t *testing.T) {
	secret := fs.Func{Path: 9, Look: func(context.Context, string) (fs.Node, error) {
		return fs.Text(10, func() string { return "found" }), nil
	}}
	private := searchable{secret, 0o700}
	root := fs.Static(fs.RootPath, map[string]fs.Node{
		"a": fs.Static(3, map[string]fs.Node{"b": fs.Text(4, func() string { return "text" })}),
		"p": private,
	})
	ctx := context.Background()
	for _, p := range []string{"", ".", "/", "a", "a/b", "/a//b/", "./a/./b", "p/x"} {
		if _, err := fs.Walk(ctx, root, p); err != nil {
			t.Errorf("Walk(%q): got %v", p, err)
		}
	}
	bad := []struct {
		path string
		want error
	}{
		{"a/..", iofs.ErrInvalid},
		{"..", iofs.ErrInvalid},
		{"c", iofs.ErrNotExist},
		{"a/c", iofs.ErrNotExist},
		{"a/b/c", syscall.ENOTDIR},
	}
	for _, tt := range bad {
		if n, err := fs.Walk(ctx, root, tt.path); !errors.Is(err, tt.want) {
			t.Errorf("Walk(%q): got %v, %v, want %v", tt.path, n, err, tt.want)
		}
	}
	bob := fs.WithUser(ctx, &fs.User{Name: "bob"})
	if _, err := fs.Walk(bob, root, "p/x"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("Walk through what may not be searched: got %v, want ErrPermission", err)
	}
	if _, err := fs.Walk(bob, root, "p"); err != nil {
		t.Errorf("Walk to what may not be searched: got %v", err)
	}
}

// searchable is a Dir with another mode.
type searchable struct {
	fs.Dir
	mode iofs.FileMode
}

func (s searchable) Stat() fs.Stat {
	st := s.Dir.Stat()
	st.Mode = s.mode
	return st
}

func TestOpenNode(t *testing.T) {
	f := fs.Ctl(5, nil).OwnedBy("ann")
	for _, tt := range []struct {
		user string
		mode fs.Mode
		ok   bool
	}{
		{"ann", fs.Read | fs.Write, true},
		{"bob", fs.Read, true},
		{"bob", fs.Write, false},
		{"bob", fs.Read | fs.Trunc, false},
	} {
		h, err := fs.OpenNode(fs.WithUser(context.Background(), &fs.User{Name: tt.user}), f, tt.mode)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("%s opens for %04b: got %v", tt.user, tt.mode, err)
		}
		if err == nil {
			h.Close()
		}
	}
}

// TestID keeps identities what they were: clients remember them, and peers
// compare them.
func TestID(t *testing.T) {
	tests := []struct {
		parts []string
		want  uint64
	}{
		{nil, 0xf52a15e9a9b5e89b},
		{[]string{"gather", "web", "ctl"}, 0xbc353f4ea09dec3c},
		{[]string{"objects", "3fa9"}, 0x29286202db49e526},
	}
	for _, tt := range tests {
		if got := fs.ID(tt.parts...); got != tt.want {
			t.Errorf("ID(%q): got %#x, want %#x", tt.parts, got, tt.want)
		}
	}
	if fs.ID("a", "bc") == fs.ID("ab", "c") || fs.ID("a") == fs.ID("a", "") {
		t.Error("ID: parts run into each other")
	}
	seen := make(map[uint64]string)
	for i := range 200_000 {
		s := fmt.Sprint(i)
		id := fs.ID("object", s)
		if was, ok := seen[id]; ok || id <= fs.RootPath || id == ^uint64(0) {
			t.Fatalf("ID of %s: got %#x, reserved or that of %q", s, id, was)
		}
		seen[id] = s
	}
}
