package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"harvest/fs/fuse"
)

// mountReady is what the background process writes once the mount is there.
const mountReady = "mounted"

func mountCommand() command {
	var t target
	var opts []string
	var foreground, detached bool
	return command{"mount", "[-f] [-o OPTION,…] ADDR MOUNTPOINT", "mount a tree that is served over 9P", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		t.tlsFlags(fl)
		fl.StringSliceVarP(&opts, "option", "o", nil, "allow_other: let other users in as well; ro: change nothing")
		fl.BoolVarP(&foreground, "foreground", "f", false, "stay until interrupted instead of going to the background, and log there")
		fl.BoolVar(&detached, "detached", false, "be the process in the background")
		if err := fl.MarkHidden("detached"); err != nil {
			panic(err) // there is no such flag
		}
		return func(ctx context.Context, args []string, std std) error {
			if len(args) != 2 {
				return usagef("name an address and a directory")
			}
			opt := fuse.Options{AllowOther: os.Geteuid() == 0, Name: args[0]}
			for _, o := range opts {
				switch o {
				case "allow_other":
					opt.AllowOther = true
				case "ro":
					opt.ReadOnly = true
				default:
					return usagef("unknown option %s", o)
				}
			}
			t.addr = args[0]
			if !foreground && !detached {
				return background(std)
			}
			c, err := t.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			opt.Log = slog.New(slog.NewTextHandler(std.err, nil))
			m, err := fuse.Mount(ctx, args[1], c.Root(), opt)
			if err != nil {
				return err
			}
			fmt.Fprintln(std.out, mountReady, args[1])
			if detached {
				if err := letGo(); err != nil {
					return errors.Join(err, m.Unmount())
				}
			}
			return m.Wait()
		}
	}}
}

// letGo drops the pipes to the process that started this one, which is about
// to end: a word into them would kill. Who wants the log says --foreground.
func letGo() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// background runs this same command line in a process of its own session
// that stays in the foreground there, and returns when it has mounted.
func background(std std) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, append(append([]string{}, os.Args[1:]...), "--detached")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	complaints, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if strings.HasPrefix(line, mountReady) {
		return cmd.Process.Release()
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("mount: %w", err)
	}
	if _, err := io.Copy(std.err, complaints); err != nil {
		return err
	}
	if err := cmd.Wait(); err == nil {
		return errors.New("mount: ended before it had mounted")
	}
	return errSilent
}

func unmountCommand() command {
	return command{"unmount", "MOUNTPOINT", "take a mount away", func(*pflag.FlagSet) func(context.Context, []string, std) error {
		return func(_ context.Context, args []string, std std) error {
			if len(args) != 1 {
				return usagef("name a mount point")
			}
			if err := fuse.Unmount(args[0]); err != nil {
				return named(args[0], err)
			}
			return nil
		}
	}}
}
