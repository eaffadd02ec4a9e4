package essence

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"harvest/gather/essence/jail"
)

// run has a program of the machine read a content, in a jail, and returns what
// it writes; with an error, what it wrote before. An argument "{}" stands for
// the name of the file.
func (w *worker) run(c *content, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("no text: %s is not installed", name)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	f, err := w.file(c)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd := &jail.Cmd{Path: path, Args: args, Stdin: f, Name: "document"}
	err = cmd.Run(w.ctx, &out)
	w.step(c, "summarize", name, "program, in a jail")
	return out.Bytes(), err
}

// file gives all of a content as a file, which has no name, at its beginning.
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
	return f, err
}
