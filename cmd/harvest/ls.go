package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"time"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func lsCommand() command {
	var t target
	var long, dirOnly bool
	return command{"ls", "[-a ADDR] [-l] [-d] [PATH…]", "list directories of the tree", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		fl.BoolVarP(&long, "long", "l", false, "mode, owner, size and time before each name")
		fl.BoolVarP(&dirOnly, "directory", "d", false, "the path itself, not what is in it")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				args = []string{""}
			}
			w := bufio.NewWriter(std.out)
			defer w.Flush()
			return t.with(ctx, std, args, func(root fs.Dir, path string) error {
				n, err := fs.Walk(ctx, root, path)
				if err != nil {
					return err
				}
				d, ok := n.(fs.Dir)
				if !ok || dirOnly {
					show(w, fs.Entry{Name: path, Node: n}, long)
					return w.Flush()
				}
				for e, err := range d.List(ctx, "") {
					if err != nil {
						return err
					}
					if err := show(w, e, long); err != nil {
						return err
					}
				}
				return w.Flush()
			})
		}
	}}
}

// mode is what ls -l shows first: the type of a node and its permissions.
func mode(n fs.Node) iofs.FileMode {
	m := n.Stat().Mode
	if _, ok := n.(fs.Dir); ok {
		m |= iofs.ModeDir
	}
	return m
}

func show(w io.Writer, e fs.Entry, long bool) error {
	if !long {
		suffix := ""
		if _, ok := e.Node.(fs.Dir); ok {
			suffix = "/"
		}
		_, err := fmt.Fprintf(w, "%s%s\n", e.Name, suffix)
		return err
	}
	st := e.Node.Stat()
	_, err := fmt.Fprintf(w, "%v %-8s %-8s %9d %s %s\n", mode(e.Node), or(st.Owner, "-"), or(st.Group, "-"), st.Size,
		st.Mtime.UTC().Format(time.RFC3339), e.Name)
	return err
}

func or(s, t string) string {
	if s == "" {
		return t
	}
	return s
}
