package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func catCommand() command {
	var t target
	return command{"cat", "[-a ADDR] PATH…", "print files of the tree", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("no path")
			}
			return t.with(ctx, std, args, func(root fs.Dir, path string) error {
				f, err := walkFile(ctx, root, path)
				if err != nil {
					return err
				}
				return copyFile(ctx, std.out, f)
			})
		}
	}}
}

// copyFile writes what the file holds, as it comes.
func copyFile(ctx context.Context, w io.Writer, f fs.File) error {
	h, err := fs.OpenNode(ctx, f, fs.Read)
	if err != nil {
		return err
	}
	defer h.Close()
	buf := make([]byte, 1<<20)
	for off := int64(0); ; {
		n, err := h.ReadAt(ctx, buf, off)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		off += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
