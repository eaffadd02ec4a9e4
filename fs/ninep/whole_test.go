package ninep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"harvest/fs"
)

// TestReadMost reads files of all lengths around those of a message and of what a
// server tries first, whole and in part.
func TestReadMost(t *testing.T) {
	nodes := make(map[string]fs.Node)
	sizes := []int{0, 1, firstRead - 1, firstRead, firstRead + 1, oneRead - 1, oneRead, oneRead + 1, 3 << 20}
	content := func(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }
	for _, n := range sizes {
		nodes[fmt.Sprint(n)] = fs.Text(fs.ID("most", fmt.Sprint(n)), func() string { return string(content(n)) })
	}
	root := fs.Static(fs.RootPath, map[string]fs.Node{"a": fs.Static(fs.ID("a"), map[string]fs.Node{"b": fs.Static(fs.ID("b"), nodes)})})
	here, there := net.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	v := NewServer(discard(), Limits{})
	go func() { done <- v.ServeConn(ctx, there, root, &fs.User{Name: "b"}) }()
	c, err := NewClient(ctx, here, "pipe", DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tree := fs.IO(ctx, c.Root()).(interface {
		ReadMost(name string, most int) ([]byte, error)
	})
	for _, n := range sizes {
		for _, most := range []int{n, n + 1, n + 100, 4 << 20, n/2 + 1} {
			b, err := tree.ReadMost(fmt.Sprintf("a/b/%d", n), most)
			if want := content(n)[:min(n, most)]; err != nil || !bytes.Equal(b, want) {
				t.Errorf("%d bytes of %d: got %d, %v, want %d", most, n, len(b), err, len(want))
			}
		}
	}
	before := requests(v)
	if _, err := tree.ReadMost("a/b/1", 100); err != nil {
		t.Error(err)
	}
	if got := requests(v) - before; got > 4 {
		t.Errorf("got %d messages for a small file, want 4 at most", got)
	}
	if _, err := tree.ReadMost("a/x/1", 100); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v of a file that is not there", err)
	}
	if _, err := tree.ReadMost("a/b", 100); err == nil {
		t.Error("got a directory's bytes, want an error")
	}
	c.Close()
	<-done
}

// requests counts what a server was asked.
func requests(v *Server) (n int) {
	for line := range strings.Lines(v.Stats()) {
		var k int
		if strings.HasPrefix(line, "harvest_9p_requests_total") {
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &k); err == nil {
				n += k
			}
		}
	}
	return n
}
