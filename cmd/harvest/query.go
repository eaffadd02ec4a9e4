package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func queryCommand() command {
	var t target
	var whole, summary bool
	var set []string
	var page int
	return command{"query", "[-a ADDR] [--soif] BROKER TEXT…", "ask a Broker", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		fl.BoolVar(&whole, "soif", false, "print the matching objects instead of a line for each")
		fl.BoolVar(&summary, "summary", false, "print the hits with their matching lines")
		fl.StringArrayVar(&set, "set", nil, "set a flag of the query, as limit=100; may be repeated")
		fl.IntVar(&page, "page", 1, "which page of the hits to print")
		fl.SetInterspersed(false)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) < 2 {
				return usagef("name a Broker and what to ask it")
			}
			if whole && summary {
				return usagef("--soif and --summary exclude each other")
			}
			c, err := t.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			lines := []string{}
			for _, s := range set {
				lines = append(lines, "set "+s)
			}
			text := strings.ReplaceAll(strings.Join(args[1:], " "), "\n", " ") // a line of ctl is a command
			lines = append(lines, "query "+text)
			if page != 1 {
				lines = append(lines, fmt.Sprintf("page %d", page))
			}
			what := "hits"
			switch {
			case whole:
				what = "results"
			case summary:
				what = "summary"
			}
			w := bufio.NewWriter(std.out)
			if err := ask(ctx, c.Root(), "broker/"+args[0], lines, what, w); err != nil {
				return err
			}
			return w.Flush()
		}
	}}
}

// ask opens a query session at a Broker, writes the lines to its ctl and
// copies one of its files, or all files of one of its directories, to w.
func ask(ctx context.Context, root fs.Dir, broker string, lines []string, what string, w io.Writer) error {
	clone, err := walkFile(ctx, root, broker+"/query/clone")
	if err != nil {
		return err
	}
	h, err := fs.OpenNode(ctx, clone, fs.Read|fs.Write)
	if err != nil {
		return fmt.Errorf("%s: %w", broker, err)
	}
	defer h.Close()
	var b [32]byte
	n, err := h.ReadAt(ctx, b[:], 0)
	if err != nil && n == 0 {
		return fmt.Errorf("%s: query/clone: %w", broker, err)
	}
	for _, line := range lines {
		if _, err := h.WriteAt(ctx, []byte(line+"\n"), 0); err != nil {
			return err
		}
	}
	session, err := walkDir(ctx, root, broker+"/query/"+strings.TrimSpace(string(b[:n])))
	if err != nil {
		return err
	}
	node, err := fs.Step(ctx, session, what)
	if err != nil {
		return err
	}
	if f, ok := node.(fs.File); ok {
		return copyFile(ctx, w, f)
	}
	for e, err := range node.(fs.Dir).List(ctx, "") {
		if err != nil {
			return err
		}
		if f, ok := e.Node.(fs.File); ok {
			if err := copyFile(ctx, w, f); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
		}
	}
	return nil
}
