package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func watchCommand() command {
	var t target
	return command{"watch", "[-a ADDR] PATH…", "show how far Gatherers and Brokers are, until they have done", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("name a Gatherer or a Broker: gather/NAME, broker/NAME")
			}
			return t.with(ctx, std, args, func(root fs.Dir, path string) error {
				return (&trial{root: root, std: std}).watch(ctx, path)
			})
		}
	}}
}

// watch waits until a service has done what it is at, and tells what that was.
func (t *trial) watch(ctx context.Context, path string) error {
	if err := t.wait(ctx, path); err != nil {
		return err
	}
	st, err := t.status(ctx, path)
	if err != nil {
		return err
	}
	state, ok := st.Get("state")
	if !ok {
		return fmt.Errorf("%s: its status tells no state: it is no service", path)
	}
	fmt.Fprintf(t.std.out, "%s: %s\n", path, pick(st, "state", "found", "fetched", "unchanged", "gone", "failed", "excluded", "indexed", "objects"))
	if state == "failing" {
		why, _ := st.Get("err")
		return fmt.Errorf("%s: %s", path, why)
	}
	return nil
}
