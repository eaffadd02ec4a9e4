package fs

import "context"

// Clone is a file that makes something new each time it is opened: the open
// file is then the one that open gives, usually the new thing's ctl, and the
// thing lives at least as long as it stays open.
func Clone(path uint64, open func(ctx context.Context) (File, error)) File {
	return cloneFile{path, open}
}

type cloneFile struct {
	path uint64
	open func(ctx context.Context) (File, error)
}

// Stat lets all write: what a user makes is the user's.
func (f cloneFile) Stat() Stat { return Stat{Path: f.path, Kind: Control, Mode: 0o666} }

func (f cloneFile) Open(ctx context.Context, m Mode) (Handle, error) {
	file, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	h, err := file.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	return moved{h, file}, nil
}

// Set takes truncation for nothing: a shell's > sends it.
func (f cloneFile) Set(context.Context, Change) error { return nil }

type moved struct {
	Handle
	node Node
}

func (m moved) Node() Node { return m.node }
