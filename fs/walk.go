package fs

import (
	"context"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"
)

// Walk finds the node of a slash-separated path below d, on behalf of the
// context's user, who must be allowed to search every directory on the way.
// Empty elements and "." are skipped; ".." is refused.
func Walk(ctx context.Context, d Dir, path string) (Node, error) {
	var n Node = d
	done := ""
	for elem := range strings.SplitSeq(path, "/") {
		if elem == "" || elem == "." {
			continue
		}
		if elem == ".." {
			return nil, fmt.Errorf("%s: %w", path, iofs.ErrInvalid)
		}
		dir, ok := n.(Dir)
		if !ok {
			return nil, fmt.Errorf("%s: %w", done, syscall.ENOTDIR)
		}
		done = strings.TrimPrefix(done+"/"+elem, "/")
		next, err := Step(ctx, dir, elem)
		if err != nil {
			return nil, at(done, elem, err)
		}
		n = next
	}
	return n, nil
}

// at makes err tell of a path, once, when it may tell of its last name already.
func at(path, name string, err error) error {
	switch text := err.Error(); {
	case strings.HasPrefix(text, path+": "):
		return err
	case strings.HasPrefix(text, name+": ") && strings.HasSuffix(path, "/"+name):
		return fmt.Errorf("%s%w", strings.TrimSuffix(path, name), err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Step is Walk of a single name.
func Step(ctx context.Context, d Dir, name string) (Node, error) {
	if err := UserOf(ctx).May(d.Stat(), MayExec); err != nil {
		return nil, err
	}
	return d.Lookup(ctx, name)
}

// OpenNode opens a file for the context's user, who must be allowed to.
func OpenNode(ctx context.Context, f File, m Mode) (Handle, error) {
	var want iofs.FileMode
	if m&Read != 0 {
		want |= MayRead
	}
	if m&(Write|Trunc) != 0 {
		want |= MayWrite
	}
	if err := UserOf(ctx).May(f.Stat(), want); err != nil {
		return nil, err
	}
	return f.Open(ctx, m)
}
