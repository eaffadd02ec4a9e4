package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"harvest/fs"
	"harvest/fs/ninep"
)

// dialError says that no server was reached, as opposed to one that refused.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func isDial(err error) bool {
	var d dialError
	return errors.As(err, &d)
}

// dataDir is where state is kept unless -d says otherwise: $HARVEST_DIR, or
// harvest in the user's data directory.
func dataDir() string {
	if d := os.Getenv("HARVEST_DIR"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "harvest")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "share", "harvest")
}

// target is the server that a client command talks to.
type target struct {
	addr        string
	identity    string
	fingerprint string
}

func (t *target) flags(fl *pflag.FlagSet) {
	addr := os.Getenv("HARVEST_ADDR")
	if addr == "" {
		addr = "unix!" + filepath.Join(dataDir(), "socket")
	}
	fl.StringVarP(&t.addr, "addr", "a", addr, "the server: unix!PATH, tcp!HOST!PORT or tls!HOST!PORT")
	t.tlsFlags(fl)
}

func (t *target) tlsFlags(fl *pflag.FlagSet) {
	fl.StringVar(&t.identity, "identity", dataDir(), "for tls: directory of the client's tls.pem, made if it is absent")
	fl.StringVar(&t.fingerprint, "fingerprint", "", "for tls: of the server's certificate; without it the system's authorities vouch for it")
}

func (t *target) options() (ninep.DialOptions, error) {
	opt := ninep.DialOptions{Fingerprint: t.fingerprint}
	if !strings.HasPrefix(t.addr, "tls!") {
		return opt, nil
	}
	err := os.MkdirAll(t.identity, 0o755)
	if err == nil {
		opt.Certificate, err = ninep.Certificate(t.identity)
	}
	return opt, err
}

// dial connects and attaches.
func (t *target) dial(ctx context.Context) (*ninep.Client, error) {
	opt, err := t.options()
	if err != nil {
		return nil, err
	}
	c, err := ninep.Dial(ctx, t.addr, opt)
	if err != nil {
		return nil, dialError{fmt.Errorf("%s: %w", t.addr, err)}
	}
	return c, nil
}

// with runs f on each path of the tree at the server, and goes on after a
// path that fails; the failure is told as soon as it is known.
func (t *target) with(ctx context.Context, std std, paths []string, f func(root fs.Dir, path string) error) error {
	c, err := t.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	failed := false
	for _, p := range paths {
		if err := f(c.Root(), p); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(std.err, "harvest: %v\n", named(p, err))
			failed = true
		}
	}
	if failed {
		return errSilent
	}
	return nil
}

// named puts the path before an error that does not begin with it.
func named(path string, err error) error {
	if strings.HasPrefix(err.Error(), path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// parent finds the directory that the last name of a path is, or would be, in.
func parent(ctx context.Context, root fs.Dir, path string) (d fs.Dir, name string, err error) {
	path = strings.TrimRight(path, "/")
	dir := ""
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, path = path[:i], path[i+1:]
	}
	d, err = walkDir(ctx, root, dir)
	return d, path, err
}

// walkDir finds a directory.
func walkDir(ctx context.Context, root fs.Dir, path string) (fs.Dir, error) {
	n, err := fs.Walk(ctx, root, path)
	if err != nil {
		return nil, err
	}
	d, ok := n.(fs.Dir)
	if !ok {
		return nil, fmt.Errorf("%s: not a directory", path)
	}
	return d, nil
}

// walkFile finds a file.
func walkFile(ctx context.Context, root fs.Dir, path string) (fs.File, error) {
	n, err := fs.Walk(ctx, root, path)
	if err != nil {
		return nil, err
	}
	f, ok := n.(fs.File)
	if !ok {
		return nil, fmt.Errorf("%s: is a directory", path)
	}
	return f, nil
}
