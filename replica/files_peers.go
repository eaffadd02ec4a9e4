package replica

import (
	"context"
	"encoding/hex"
	"fmt"
	iofs "io/fs"
	"iter"
	"slices"
	"strings"

	"harvest/fs"
)

// may tells whether who asks may read what peers do.
func (r *Replica) may(ctx context.Context) error {
	r.mu.Lock()
	allow := r.config.allow
	r.mu.Unlock()
	u := fs.UserOf(ctx)
	if len(allow) == 0 || u.Owner {
		return nil
	}
	for _, g := range allow {
		if !u.ReadOnly && (g.user != "" && g.user == u.Name || g.group != "" && slices.Contains(u.Groups, g.group)) {
			return nil
		}
	}
	return fmt.Errorf("config does not allow it: %w", iofs.ErrPermission)
}

func nothing(context.Context, string) iter.Seq2[fs.Entry, error] {
	return func(func(fs.Entry, error) bool) {}
}

// peers makes the files that peers read of a mirror.
type peers struct {
	r    *Replica
	m    *mirror
	keys []string
}

func (p peers) id(parts ...string) uint64 {
	return p.r.id(append(slices.Clone(p.keys), parts...)...)
}

func (p peers) file(parts ...string) fs.Node {
	return answerFile{p.m, p.id(parts...), strings.Join(parts, "/")}
}

// writers has a directory for each writer of which all is here.
func (p peers) writers(name string, sub func(w Writer) fs.Dir) fs.Dir {
	return fs.Func{Path: p.id(name), Look: func(_ context.Context, text string) (fs.Node, error) {
		w, err := parseWriter(text)
		if v := p.m.of(w); err != nil || v.filling || v.head.Key == nil {
			return nil, notExist(text)
		}
		return sub(w), nil
	}, Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
		var all []fs.Entry
		heads, _ := p.m.heads()
		for i := range heads {
			w := heads[i].Writer()
			all = append(all, fs.Entry{Name: w.String(), Node: sub(w)})
		}
		return fs.Sorted(all, after)
	}}
}

// changes knows every version, and lists the one from which all is told.
func (p peers) changes(w Writer) fs.Dir {
	name := w.String()
	all := []fs.Entry{{Name: Version{}.String(), Node: p.file("changes", name, Version{}.String())}}
	return fs.Func{Path: p.id("changes", name), Look: func(_ context.Context, text string) (fs.Node, error) {
		if _, err := parseVersion(text); err != nil {
			return nil, notExist(text)
		}
		return p.file("changes", name, text), nil
	}, Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] { return fs.Sorted(all, after) }}
}

// sum has the root of a writer's digests, and a folder for each node below it.
func (p peers) sum(w Writer) fs.Dir {
	name := w.String()
	look := func(_ context.Context, text string) (fs.Node, error) {
		if text == "node" {
			return p.file("sum", name, text), nil
		}
		a, err := hex.DecodeString(text)
		if err != nil || len(a) != 1 || !isHex(text) || p.m.of(w).trie.subs[a[0]] == nil {
			return nil, notExist(text)
		}
		return p.folder(name, text), nil
	}
	return fs.Func{Path: p.id("sum", name), Look: look, Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
		all := []fs.Entry{{Name: "node", Node: p.file("sum", name, "node")}}
		for a, s := range p.m.of(w).trie.subs {
			if s != nil {
				text := fmt.Sprintf("%02x", a)
				all = append(all, fs.Entry{Name: text, Node: p.folder(name, text)})
			}
		}
		return fs.Sorted(all, after)
	}}
}

// folder has a node and the records below it; a leaf can be walked to.
func (p peers) folder(writer, prefix string) fs.Dir {
	all := []fs.Entry{
		{Name: "node", Node: p.file("sum", writer, prefix, "node")},
		{Name: "records", Node: p.file("sum", writer, prefix, "records")},
	}
	return fs.Func{Path: p.id("sum", writer, prefix), Look: func(_ context.Context, text string) (fs.Node, error) {
		if text != "node" && text != "records" && (len(text) != 2 || !isHex(text)) {
			return nil, notExist(text)
		}
		return p.file("sum", writer, prefix, text), nil
	}, Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] { return fs.Sorted(all, after) }}
}

// pack knows the objects of a writer by the first byte of their OIDs.
func (p peers) pack(w Writer) fs.Dir {
	return fs.Func{Path: p.id("pack", w.String()), Look: func(_ context.Context, text string) (fs.Node, error) {
		if len(text) != 2 || !isHex(text) {
			return nil, notExist(text)
		}
		return p.file("pack", w.String(), text), nil
	}, Each: nothing}
}

// headsLive gives the heads that there are, and then, a read at a time, those that are
// new, as soon as there are any.
type headsLive struct {
	m    *mirror
	path uint64
}

func (f headsLive) Stat() fs.Stat { return fs.Stat{Path: f.path, Kind: fs.Live, Mode: 0o444} }

func (f headsLive) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	return &headsHandle{Handle: fs.Snapshot(nil), m: f.m, turn: make(chan struct{}, 1), told: make(map[string]bool)}, nil
}

type headsHandle struct {
	fs.Handle
	m    *mirror
	turn chan struct{} // held by the read that is under way
	told map[string]bool
	root digest // when they were told
	rest []byte // what the last read had no room for
}

func (h *headsHandle) ReadAt(ctx context.Context, p []byte, _ int64) (int, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if len(p) == 0 {
		return 0, nil
	}
	for len(h.rest) == 0 {
		root, err := h.m.wait(ctx, h.root)
		if err != nil {
			return 0, err
		}
		h.root = root
		h.rest = h.news()
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// news gives the lines of heads that were not told yet.
func (h *headsHandle) news() (b []byte) {
	now := make(map[string]bool)
	heads, forks := h.m.heads()
	add := func(line string) {
		if now[line] = true; !h.told[line] {
			b = append(b, line+"\n"...)
		}
	}
	for i := range heads {
		add(heads[i].line())
	}
	for i := range forks {
		add(forks[i].line())
	}
	h.told = now
	return b
}
