// Harvest is a search system that you mount: Gatherers boil documents down to
// SOIF summaries, Brokers index them and answer queries, and all of it is one
// file tree, served over 9P and mounted with FUSE.
//
// This package puts the parts together; a file here holds one subcommand.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"harvest/fs"
	"harvest/gather/essence"
	"harvest/gather/essence/jail"
)

func main() {
	jail.Main(essence.Inside()...) // in a process that is to be jailed: does not return
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], std{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// std is where a command reads and writes.
type std struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// A command is a subcommand. Setup names its flags and gives what runs once
// they are parsed; args are what the flags left.
type command struct {
	name  string
	args  string // as the usage line shows them
	about string // one line
	setup func(fl *pflag.FlagSet) func(ctx context.Context, args []string, std std) error
}

// commands in the order the help shows them.
func commands() []command {
	return []command{
		tryCommand(),
		serveCommand(),
		mountCommand(),
		unmountCommand(),
		queryCommand(),
		lsCommand(),
		catCommand(),
		statCommand(),
		writeCommand(),
		mkdirCommand(),
		rmCommand(),
		watchCommand(),
		summarizeCommand(),
		identityCommand(),
		{name: "soif", args: "check|fmt|split|wrap|schema …", about: "check, print, split or make SOIF"},
		{name: "bench", args: "index|build|relevance|broker|gather …", about: "measure what docs/performance.md tells"},
		completionCommand(),
		versionCommand(),
	}
}

// usageError is a command line that cannot be meant: exit 2.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

func usagef(format string, arg ...any) error { return usageError{fmt.Sprintf(format, arg...)} }

// silent ends a command with a failure that it has told of itself.
var errSilent = errors.New("")

func run(ctx context.Context, args []string, std std) int {
	if len(args) == 0 {
		help(std.err)
		return 2
	}
	switch args[0] {
	case "-h", "--help", "help":
		if len(args) > 1 {
			return run(ctx, []string{args[1], "--help"}, std)
		}
		help(std.out)
		return 0
	case "--version":
		args[0] = "version"
	case "soif":
		return soifCommand(args[1:], std.in, std.out, std.err)
	case "bench":
		return measure(ctx, args[1:], std)
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], std)
		}
	}
	fmt.Fprintf(std.err, "harvest: %s: unknown command; see harvest --help\n", args[0])
	return 2
}

func (c command) run(ctx context.Context, args []string, std std) int {
	fl, run := c.flags()
	if err := fl.Parse(args); errors.Is(err, pflag.ErrHelp) {
		c.help(std.out, fl)
		return 0
	} else if err != nil {
		return c.fail(std, usageError{err.Error()})
	}
	return c.fail(std, run(ctx, fl.Args(), std))
}

func (c command) flags() (*pflag.FlagSet, func(context.Context, []string, std) error) {
	fl := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	fl.SortFlags = false
	fl.SetOutput(io.Discard)
	fl.Usage = func() {}
	run := c.setup(fl)
	return fl, run
}

// fail prints err and gives the exit code for it.
func (c command) fail(std std, err error) int {
	var u usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &u):
		fmt.Fprintf(std.err, "harvest %s: %v\nusage: harvest %s %s\n", c.name, err, c.name, c.args)
		return 2
	case err == errSilent:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(std.err, "harvest: interrupted")
	default:
		fmt.Fprintf(std.err, "harvest: %v\n", err)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) && isDial(err) {
			fmt.Fprintln(std.err, "harvest: nobody serves there; start it with: harvest serve")
		}
	}
	return 1
}

func (c command) help(w io.Writer, fl *pflag.FlagSet) {
	fmt.Fprintf(w, "harvest %s: %s\n\nusage: harvest %s %s\n\n%s", c.name, c.about, c.name, c.args, fl.FlagUsages())
}

func help(w io.Writer) {
	fmt.Fprint(w, "Harvest is a search system that you mount.\n\nusage: harvest COMMAND [FLAG…] [ARGUMENT…]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, "\nharvest COMMAND --help tells more. The tree is described in docs/harvest.4.md.\n")
}

// ids makes the function that names nodes below a service.
func ids(service ...string) func(parts ...string) uint64 {
	return func(parts ...string) uint64 { return fs.ID(append(append([]string(nil), service...), parts...)...) }
}
