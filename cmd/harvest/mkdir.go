package main

import (
	"context"
	iofs "io/fs"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func mkdirCommand() command {
	var t target
	return command{"mkdir", "[-a ADDR] PATH…", "make directories: new services, sessions and views", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
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
				m, ok := d.(fs.Maker)
				if !ok {
					return iofs.ErrPermission
				}
				_, err = m.Mkdir(ctx, name, 0o755)
				return err
			})
		}
	}}
}
