package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"harvest/fs"
)

// TestWriteCut has the text end before its end: nothing of it may count, as
// half a config can be a good one.
func TestWriteCut(t *testing.T) {
	broken := errors.New("broken pipe")
	for name, in := range map[string]func(ctx context.Context, cancel func()) io.Reader{
		"unreadable": func(context.Context, func()) io.Reader { return iotest.ErrReader(broken) },
		"half": func(context.Context, func()) io.Reader {
			return io.MultiReader(strings.NewReader("limit=2\n"), iotest.ErrReader(broken))
		},
		"interrupted": func(ctx context.Context, cancel func()) io.Reader {
			r, _ := io.Pipe()
			cancel()
			return untilDone{ctx, r}
		},
		"half, interrupted": func(ctx context.Context, cancel func()) io.Reader {
			r, w := io.Pipe()
			go func() {
				io.WriteString(w, "limit=2\n")
				cancel()
			}()
			return untilDone{ctx, r}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var set []string
			conf := fs.Config(2, nil, func() string { return "limit=1\n" }, func(_ context.Context, text string) error {
				set = append(set, text)
				return nil
			})
			root := fs.Static(fs.RootPath, map[string]fs.Node{"config": conf})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := writeFile(ctx, root, "config", in(ctx, cancel), false)
			if !errors.Is(err, broken) && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want what ended the text", err)
			}
			if len(set) > 0 {
				t.Errorf("put in force: got %q, want nothing", set)
			}
		})
	}
}
