package main

import (
	"context"
	iofs "io/fs"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func rmCommand() command {
	var t target
	return command{"rm", "[-a ADDR] PATH…", "remove files and empty directories of the tree", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("no path")
			}
			return t.with(ctx, std, args, func(root fs.Dir, path string) error {
				d, name, err := parent(ctx, root, path)
				if err != nil {
					return err
				}
				r, ok := d.(fs.Remover)
				if !ok {
					return iofs.ErrPermission
				}
				return r.Remove(ctx, name)
			})
		}
	}}
}
