package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"harvest/fs"
	"harvest/fs/ndb"
)

func statCommand() command {
	var t target
	return command{"stat", "[-a ADDR] PATH…", "print what a file is, as attr=value pairs", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("no path")
			}
			return t.with(ctx, std, args, func(root fs.Dir, path string) error {
				n, err := fs.Walk(ctx, root, path)
				if err != nil {
					return err
				}
				st := n.Stat()
				_, err = fmt.Fprintln(std.out, ndb.Format(
					ndb.Of("name", path),
					ndb.Of("mode", mode(n)),
					ndb.Of("size", st.Size),
					ndb.Of("mtime", st.Mtime),
					ndb.Of("owner", st.Owner),
					ndb.Of("group", st.Group),
					ndb.Of("qid", fmt.Sprintf("%016x", st.Path)),
					ndb.Of("vers", st.Vers)))
				return err
			})
		}
	}}
}
