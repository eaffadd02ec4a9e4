package replica

import (
	"context"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"strconv"

	"harvest/fs"
)

// measureNodes adds what members read of each other to measure, and the graph.
func (r *Replica) measureNodes(nodes map[string]fs.Node) {
	nodes["bandwidth"] = guardedFile{fs.Text(r.id("bandwidth"), r.links.text), r}
	nodes["topology"] = guardedFile{fs.Text(r.id("topology"), r.links.graphText), r}
	nodes["self"] = fs.Text(r.id("self"), r.self)
	nodes["probe"] = fs.Hidden(guardedDir{r.probeDir(), r})
}

// probeDir knows a file for each size up to mostProbe, and lists none.
func (r *Replica) probeDir() fs.Dir {
	block := make([]byte, 64<<10)
	rand.NewChaCha8([32]byte{}).Read(block) // the same for all; it is to be of no use to what compresses
	return fs.Func{Path: r.id("probe"), Look: func(_ context.Context, text string) (fs.Node, error) {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > mostProbe || strconv.Itoa(size) != text {
			return nil, notExist(text)
		}
		return probeFile{r.id("probe", text), int64(size), block}, nil
	}, Each: nothing}
}

// A probeFile has bytes that tell nothing, as many as its name says.
type probeFile struct {
	path  uint64
	size  int64
	block []byte
}

func (f probeFile) Stat() fs.Stat { return fs.Stat{Path: f.path, Size: f.size, Mode: 0o444} }

func (f probeFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	return probeHandle{fs.Snapshot(nil), f}, nil
}

type probeHandle struct {
	fs.Handle
	f probeFile
}

func (h probeHandle) ReadAt(_ context.Context, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	p = p[:max(0, min(int64(len(p)), h.f.size-off))]
	for n < len(p) {
		n += copy(p[n:], h.f.block[(off+int64(n))%int64(len(h.f.block)):])
	}
	if off+int64(n) >= h.f.size {
		err = io.EOF
	}
	return n, err
}
