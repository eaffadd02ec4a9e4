package main

import (
	"context"
	"fmt"
	"io"
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
	return command{"summarize", "[--trace] [--fulltext] FILE…", "print the SOIF summary of files", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.BoolVar(&trace, "trace", false, "tell on standard error which rule decided what")
		fl.BoolVar(&text, "fulltext", false, "keep the text as Full-Text")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("no file")
			}
			failed := false
			enc := soif.NewEncoder(std.out)
			for _, name := range args {
				o, steps, err := summarize(ctx, name, text)
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

// summarize makes the summary of a local file, complete as an object.
func summarize(ctx context.Context, name string, text bool) (soif.Object, essence.Trace, error) {
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
	o, steps, err := essence.Summarize(ctx, essence.Input{
		URL:      (&url.URL{Scheme: "file", Path: abs}).String(),
		Size:     st.Size(),
		Modified: st.ModTime(),
		Rest:     f,
		FullText: text,
	})
	o.Set("Update-Time", []byte(strconv.FormatInt(time.Now().Unix(), 10)))
	return o, steps, err
}
