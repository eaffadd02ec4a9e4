package replica

import (
	"context"
	"strings"

	"harvest/fs"
)

// sendFile floods each line that is written to it.
type sendFile struct {
	r *Replica
}

func (f sendFile) Stat() fs.Stat {
	return fs.Stat{Path: f.r.id("send"), Kind: fs.Control, Mode: 0o644}
}

// Set takes any new size or time: a shell's > truncates.
func (f sendFile) Set(context.Context, fs.Change) error { return nil }

func (f sendFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	return sendHandle{fs.Snapshot(nil), f.r}, nil
}

type sendHandle struct {
	fs.Handle
	r *Replica
}

func (h sendHandle) WriteAt(ctx context.Context, p []byte, _ int64) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			continue
		}
		if err := h.r.send(ctx, line); err != nil {
			h.r.shown.err.Set("send", line, err)
			return 0, err
		}
	}
	return len(p), nil
}

// floodNodes adds send and recv, and what members read of the flood.
func (s *shown) floodNodes(nodes map[string]fs.Node) {
	r := s.r
	nodes["send"] = sendFile{r}
	recv := make(map[string]fs.Node)
	s.recv.Nodes(recv, "recv", r.id)
	for name, n := range recv {
		nodes[name] = n
	}
	flood := make(map[string]fs.Node)
	s.peerNodes(flood, r.flood, "flood")
	nodes["flood"] = guardedDir{fs.Static(r.id("flood"), flood), r}
}
