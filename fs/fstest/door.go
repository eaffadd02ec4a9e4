package fstest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/fuse"
	"harvest/fs/ninep"
)

var doors = [...]door{
	{"direct", false, func() string { return "" }, openDirect},
	{"9p", true, func() string { return "" }, open9P},
	{"mounted", true, noFuse, openMount},
}

func openDirect(tb testing.TB, _, work string, build Build) (fs.Dir, map[string]string, func(), error) {
	root, cleanup := build(tb, work)
	return root, nil, func() {
		if cleanup != nil {
			cleanup()
		}
	}, nil
}

// open9P serves the tree on a unix socket, and dials it.
func open9P(tb testing.TB, _, work string, build Build) (fs.Dir, map[string]string, func(), error) {
	dir, err := os.MkdirTemp("", "fst9p") // the path of a socket has to be short
	if err != nil {
		return nil, nil, nil, err
	}
	root, cleanup := build(tb, work)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	closeAll := func() {
		cancel()
		<-served
		if cleanup != nil {
			cleanup()
		}
		os.RemoveAll(dir)
	}
	addr := "unix!" + dir + "/s"
	l, err := ninep.Listen(ctx, addr, ninep.ListenOptions{})
	if err != nil {
		close(served)
		closeAll()
		return nil, nil, nil, err
	}
	go func() {
		defer close(served)
		if err := ninep.NewServer(slog.New(slog.DiscardHandler), ninep.Limits{}).Serve(ctx, l, root); err != nil {
			tb.Errorf("serve: %v", err)
		}
	}()
	c, err := ninep.Dial(ctx, addr, ninep.DialOptions{})
	if err != nil {
		closeAll()
		return nil, nil, nil, err
	}
	return c.Root(), map[string]string{"ADDR": addr}, func() {
		if err := c.Close(); err != nil {
			tb.Errorf("close the connection: %v", err)
		}
		closeAll()
	}, nil
}

// The child that serves a mount is told where, and where its tree is built.
const (
	envPoint = "HARVEST_FSTEST_POINT"
	envWork  = "HARVEST_FSTEST_WORK"
)

// noFuse tells why nothing can be mounted here.
func noFuse() string {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err.Error()
	}
	f.Close()
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("fusermount3"); err != nil {
			return err.Error()
		}
	}
	return ""
}

// openMount starts a child that mounts the tree, and is told to end by the
// end of its standard input. It reports on its descriptor 3.
func openMount(tb testing.TB, test, work string, build Build) (fs.Dir, map[string]string, func(), error) {
	point, err := os.MkdirTemp("", "fstmnt")
	if err != nil {
		return nil, nil, nil, err
	}
	var names []string
	for name := range strings.SplitSeq(test, "/") {
		names = append(names, "^"+regexp.QuoteMeta(name)+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(names, "/"), "-test.count=1", "-test.v")
	// Built with -race, a process lingers for a second when it exits.
	cmd.Env = append(os.Environ(), envPoint+"="+point, envWork+"="+work, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	ready, report, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer ready.Close()
	cmd.ExtraFiles = []*os.File{report}
	err = cmd.Start()
	report.Close()
	if err != nil {
		return nil, nil, nil, err
	}
	closeMount := func() {
		in.Close()
		kill := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		if err != nil {
			tb.Errorf("the child that serves the mount: %v\n%s", err, &out)
		}
		if err := os.Remove(point); err != nil {
			tb.Errorf("the mount point after the child ended: %v", err)
		}
	}
	line, err := bufio.NewReader(ready).ReadString('\n')
	if err != nil {
		closeMount()
		return nil, nil, nil, fmt.Errorf("the child that serves the mount: %w\n%s", err, &out)
	}
	if line != "ready\n" {
		closeMount()
		return nil, nil, nil, errors.New(line)
	}
	return Disk(point), map[string]string{"MNT": point}, closeMount, nil
}

// serveMount is the child's side of openMount.
func serveMount(t *testing.T, build Build) {
	report := os.NewFile(3, "report")
	root, cleanup := build(t, os.Getenv(envWork))
	if cleanup != nil {
		defer cleanup()
	}
	srv, err := fuse.Mount(t.Context(), os.Getenv(envPoint), root, fuse.Options{})
	if err != nil {
		fmt.Fprintf(report, "%v\n", err)
		report.Close()
		return
	}
	fmt.Fprintln(report, "ready")
	report.Close()
	io.Copy(io.Discard, os.Stdin)
	if err := srv.Unmount(); err != nil {
		t.Errorf("unmount: %v", err)
	}
	if err := srv.Wait(); err != nil {
		t.Errorf("mount: %v", err)
	}
}
