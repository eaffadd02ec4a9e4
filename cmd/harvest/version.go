package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"
)

// version is the release that the next tag will name.
const version = "0.1"

func versionCommand() command {
	return command{"version", "", "print the version", func(*pflag.FlagSet) func(context.Context, []string, std) error {
		return func(_ context.Context, args []string, std std) error {
			if len(args) > 0 {
				return usagef("takes no arguments")
			}
			_, err := fmt.Fprintf(std.out, "harvest %s%s %s %s/%s\n", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}
	}}
}

// revision is the commit that the binary was built from, where it is known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "-" + s.Value[:12]
		}
	}
	return ""
}
