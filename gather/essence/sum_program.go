package essence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// run has a program of the machine read a content, in a jail, and returns what
// it writes, in bounds: what it wrote before an error as well. An argument "{}" is the name
// of the file.
func (w *worker) run(c *content, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed", name)
	}
	f, err := w.file(c)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	for i := range args {
		if args[i] == "{}" {
			args[i] = "/dev/stdin"
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout = f, &out
	err = cmd.Run()
	return out.Bytes(), err
}

// file gives all of a content as a file, which has no name.
func (w *worker) file(c *content) (*os.File, error) {
	r, size, err := w.whole(c)
	if err != nil {
		return nil, err
	}
	f, ok := r.(*os.File)
	if !ok {
		if f, err = os.CreateTemp("", "harvest-"); err != nil {
			return nil, err
		}
		w.opened = append(w.opened, f)
		if err := os.Remove(f.Name()); err != nil {
			return nil, err
		}
		if _, err := io.Copy(f, io.NewSectionReader(r, 0, size)); err != nil {
			return nil, err
		}
		c.full = f
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, errors.Join(err)
}
