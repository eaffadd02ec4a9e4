package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"strings"

	"github.com/spf13/pflag"

	"harvest/fs"
)

func writeCommand() command {
	var t target
	var add bool
	return command{"write", "[-a ADDR] [--append] PATH [TEXT…]", "write a line, or standard input, to a file of the tree", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.flags(fl)
		fl.BoolVar(&add, "append", false, "add to the file instead of replacing what it holds")
		fl.SetInterspersed(false)
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("no path")
			}
			var text io.Reader = untilDone{ctx, std.in}
			if len(args) > 1 {
				text = strings.NewReader(strings.Join(args[1:], " ") + "\n")
			}
			return t.with(ctx, std, args[:1], func(root fs.Dir, path string) error {
				return writeFile(ctx, root, path, text, add)
			})
		}
	}}
}

// writeFile puts text into a file, made if it is not there. It is opened when
// there is something to write, so that a text that never comes empties
// nothing. Standard input is sent as it comes, but never cut inside a line
// that fits a message.
func writeFile(ctx context.Context, root fs.Dir, path string, text io.Reader, add bool) error {
	in := bufio.NewReaderSize(text, maxLine)
	if _, err := in.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return inputError{err}
	}
	h, kind, err := openWrite(ctx, root, path, add)
	if err != nil {
		return err
	}
	err = copyLines(ctx, h, in)
	var cut inputError
	if kind != fs.Control && (errors.As(err, &cut) || err != nil && ctx.Err() != nil) {
		// To close the file is to say that its text is complete. It is not:
		// the handle ends with the connection, which says nothing.
		return err
	}
	if kind == fs.Control {
		// It has answered each message, and one may have been stop.
		h.Close()
		return err
	}
	if ferr := h.Flush(ctx); err == nil {
		err = ferr
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

// inputError says that the text to write could not be read to its end.
type inputError struct{ error }

func (e inputError) Error() string { return "standard input: " + e.error.Error() }
func (e inputError) Unwrap() error { return e.error }

// untilDone is a reader whose reads end with ctx. A read of a terminal or a
// pipe cannot be called off, so the one that waits is left to the process's end.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	type result struct {
		b   []byte
		err error
	}
	c := make(chan result, 1)
	go func() {
		b := make([]byte, len(p))
		n, err := u.r.Read(b)
		c <- result{b[:n], err}
	}()
	select {
	case r := <-c:
		return copy(p, r.b), r.err
	case <-u.ctx.Done():
		return 0, u.ctx.Err()
	}
}

func openWrite(ctx context.Context, root fs.Dir, path string, add bool) (fs.Handle, fs.Kind, error) {
	m := fs.Write | fs.Trunc
	if add {
		m = fs.Write | fs.Append
	}
	f, err := walkFile(ctx, root, path)
	if err == nil {
		h, err := fs.OpenNode(ctx, f, m)
		return h, f.Stat().Kind, err
	}
	if !errors.Is(err, iofs.ErrNotExist) {
		return nil, 0, err
	}
	d, name, derr := parent(ctx, root, path)
	if derr != nil {
		return nil, 0, err
	}
	c, ok := d.(fs.Creator)
	if !ok {
		return nil, 0, err
	}
	_, h, err := c.Create(ctx, name, 0o644, m)
	return h, fs.Plain, err
}

// maxLine is the longest line that is kept whole in one write.
const maxLine = 32 << 10

func copyLines(ctx context.Context, h fs.Handle, r io.Reader) error {
	buf := make([]byte, 0, maxLine)
	for off := int64(0); ; {
		n, rerr := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		end := strings.LastIndexByte(string(buf), '\n') + 1
		if rerr != nil || end == 0 && len(buf) == cap(buf) {
			end = len(buf)
		}
		if end > 0 {
			if _, err := h.WriteAt(ctx, buf[:end], off); err != nil {
				return err
			}
			off += int64(end)
			buf = append(buf[:0], buf[end:]...)
		}
		if errors.Is(rerr, io.EOF) {
			return nil
		}
		if rerr != nil {
			return inputError{rerr}
		}
	}
}
