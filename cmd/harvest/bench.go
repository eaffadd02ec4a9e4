package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
)

// benchCommands are the measurements, in the order the help shows them.
func benchCommands() []command {
	return []command{benchIndexCommand(), benchBuildCommand(), benchRelevanceCommand(), benchBrokerCommand(), benchRouteCommand(), benchSoakCommand(), benchReplicaCommand(), benchCacheCommand(), benchGatherCommand(), benchEssenceCommand(), benchSummariesCommand()}
}

// measure runs harvest bench WHAT.
func measure(ctx context.Context, args []string, std std) int {
	if len(args) == 0 {
		benchHelp(std.err)
		return 2
	}
	if args[0] == "-h" || args[0] == "--help" {
		benchHelp(std.out)
		return 0
	}
	for _, c := range benchCommands() {
		if c.name == "bench "+args[0] {
			return c.run(ctx, args[1:], std)
		}
	}
	fmt.Fprintf(std.err, "harvest: bench %s: unknown measurement; see harvest bench --help\n", args[0])
	return 2
}

func benchHelp(w io.Writer) {
	fmt.Fprint(w, "harvest bench: measure what docs/performance.md tells\n\nusage: harvest bench WHAT [FLAG…] [ARGUMENT…]\n\n")
	for _, c := range benchCommands() {
		fmt.Fprintf(w, "  %-10s %s\n", strings.TrimPrefix(c.name, "bench "), c.about)
	}
	fmt.Fprint(w, "\nharvest bench WHAT --help tells more; docs/bench.1.md is the manual.\n")
}

// profiled runs f and writes a profile of it for go tool pprof, if it is to
// have a file.
func profiled(file string, f func() error) error {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	err = f()
	pprof.StopCPUProfile()
	if err == nil {
		err = out.Close()
	}
	return err
}

// table prints rows in columns, the first row as their heads, as Markdown has
// them.
func table(w io.Writer, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for i, r := range rows {
		for j, cell := range r {
			fmt.Fprintf(w, "| %s%s ", cell, strings.Repeat(" ", widths[j]-len([]rune(cell))))
		}
		fmt.Fprintln(w, "|")
		if i == 0 {
			for _, n := range widths {
				fmt.Fprint(w, "|", strings.Repeat("-", n+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}
