package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"harvest/fs/ninep"
)

func identityCommand() command {
	return command{"identity", "[DIR]", "print the fingerprint that this user, or the server of a state directory, has in TLS", func(*pflag.FlagSet) func(context.Context, []string, std) error {
		return func(_ context.Context, args []string, std std) error {
			dir := dataDir()
			switch len(args) {
			case 0:
			case 1:
				dir = args[0]
			default:
				return usagef("name one state directory")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			cert, err := ninep.Certificate(dir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(std.out, ninep.Fingerprint(cert.Leaf.Raw))
			return err
		}
	}}
}
