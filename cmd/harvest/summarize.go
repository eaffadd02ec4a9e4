package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"harvest/gather/essence"
	"harvest/gather/soif"
)

func summarizeCommand() command {
	var trace, text bool
	var types string
	return command{"summarize", "[--trace] [--fulltext] [--types DIR] FILE|DIR|-…", "print the SOIF summary of files, of all in a folder, or of what is piped in", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.BoolVar(&trace, "trace", false, "tell on standard error which rule decided what")
		fl.BoolVar(&text, "fulltext", false, "keep the text as Full-Text")
		fl.StringVar(&types, "types", "", "go by the tables in this folder, such as a Gatherer's types/")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("no file")
			}
			tables, err := readTables(types)
			if err != nil {
				return err
			}
			failed := false
			enc := soif.NewEncoder(std.out)
			for name, err := range filesOf(args) {
				var o soif.Object
				var steps essence.Trace
				switch {
				case err != nil:
				case name == "-":
					o, steps, err = summarizeFrom(ctx, os.Stdin, essence.Input{URL: "file:///dev/stdin", Name: "-", FullText: text, Tables: tables})
				default:
					o, steps, err = summarize(ctx, name, text, tables)
				}
				if trace {
					io.WriteString(std.err, steps.String())
				}
				if err == nil {
					err = enc.Encode(&o)
				}
				if err != nil {
					fmt.Fprintf(std.err, "harvest: %v\n", named(name, err))
					failed = true
				}
			}
			if failed {
				return errSilent
			}
			return nil
		}
	}}
}

// readTables reads the tables of Essence that are in a folder; those that are not
// there, and all of them without a folder, are the program's own.
func readTables(dir string) (*essence.Tables, error) {
	if dir == "" {
		return nil, nil
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, name := range essence.TableNames() {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		texts[name] = string(b)
	}
	t, err := essence.ParseTables(texts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return t, nil
}

// summarize makes the summary of a local file, complete as an object.
func summarize(ctx context.Context, name string, text bool, tables *essence.Tables) (soif.Object, essence.Trace, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return soif.Object{}, nil, err
	}
	f, err := os.Open(abs)
	if err != nil {
		return soif.Object{}, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return soif.Object{}, nil, err
	}
	if !st.Mode().IsRegular() {
		return soif.Object{}, nil, fmt.Errorf("%s: not a regular file", name)
	}
	return summarizeFrom(ctx, f, essence.Input{
		URL:      (&url.URL{Scheme: "file", Path: abs}).String(),
		Size:     st.Size(),
		Modified: st.ModTime(),
		FullText: text,
		Tables:   tables,
	})
}

// filesOf yields what is named, and for a folder the files in it.
func filesOf(args []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			if st, err := os.Stat(arg); arg == "-" || err != nil || !st.IsDir() {
				if !yield(arg, nil) {
					return
				}
				continue
			}
			err := filepath.WalkDir(arg, func(name string, e iofs.DirEntry, err error) error {
				if (err != nil || e.Type().IsRegular()) && !yield(name, err) {
					return errSilent // it has been told of
				}
				return nil
			})
			if err != nil {
				return
			}
		}
	}
}

// summarizeFrom makes the summary of what is read.
func summarizeFrom(ctx context.Context, r io.Reader, in essence.Input) (soif.Object, essence.Trace, error) {
	in.Rest = r
	o, steps, err := essence.Summarize(ctx, in)
	if in.Name == "-" && o.Text("Title") == "-" { // it has no name to be called by
		o.Del("Title")
	}
	o.Set("Update-Time", []byte(strconv.FormatInt(time.Now().Unix(), 10)))
	return o, steps, err
}
