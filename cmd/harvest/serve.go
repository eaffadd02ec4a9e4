package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
)

func serveCommand() command {
	var dir string
	var d reach
	return command{"serve", "[-d DIR] [-l ADDR]… [-m MOUNTPOINT]", "run the services of a state directory", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.StringVarP(&dir, "dir", "d", dataDir(), "state directory, made if it is absent")
		reachFlags(fl, &d)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) > 0 {
				return usagef("takes no arguments")
			}
			if len(d.listen) == 0 {
				d.listen = []string{"unix!" + filepath.Join(dir, "socket")}
			}
			p, err := open(dir, std.err)
			if err != nil {
				return err
			}
			defer p.Close()
			return p.run(ctx, d, func(addrs []string, point string) {
				for _, a := range addrs {
					fmt.Fprintln(std.out, a)
				}
				if point != "" {
					fmt.Fprintln(std.out, point)
				}
			})
		}
	}}
}

func reachFlags(fl *pflag.FlagSet, d *reach) {
	fl.StringArrayVarP(&d.listen, "listen", "l", nil, "listen on unix!PATH, tcp!HOST!PORT or tls!HOST!PORT; may be repeated (default unix!DIR/socket)")
	fl.BoolVar(&d.insecure, "insecure", false, "let tcp listen beyond this machine, where nobody can be told from anybody: all may read")
	fl.StringVarP(&d.mount, "mount", "m", "", "mount the tree here")
}
