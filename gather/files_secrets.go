package gather

import (
	"context"
	"fmt"
	iofs "io/fs"

	"harvest/fs"
)

// A secretFile takes a new text as a config does, and is not read: what is
// written with > replaces all, with >> comes after what is there. What is refused
// is not kept, and err does not quote it. It is walked to by its name and not
// listed, so that cp -r and grep -r over the tree end without an error.
type secretFile struct {
	c   *fs.ConfigFile
	err *fs.Err
}

func (g *Gatherer) secretFile(err *fs.Err) fs.File {
	f := &secretFile{err: err}
	f.c = fs.Config(g.id("secrets"), nil, g.secrets.draft, func(_ context.Context, text string) error {
		no := g.secrets.set(text)
		f.err.Set("secrets", "", no)
		return no
	})
	return f
}

// Stat shows no length: even that would be telling.
func (f *secretFile) Stat() fs.Stat {
	st := f.c.Stat()
	st.Mode, st.Size = 0o200, 0
	return st
}

func (f *secretFile) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Read != 0 || m&fs.Write == 0 {
		return nil, fmt.Errorf("secrets: %w: %w", errSecret, iofs.ErrPermission)
	}
	if m&fs.Trunc == 0 { // there is no writing over what cannot be seen
		m |= fs.Append
	}
	h, err := f.c.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	return secretHandle{h}, nil
}

// Set truncates, as a shell's > may.
func (f *secretFile) Set(ctx context.Context, ch fs.Change) error {
	if ch.Mode != nil && ch.Mode.Perm() != 0o200 {
		return iofs.ErrPermission
	}
	if ch.Size != nil && *ch.Size != 0 {
		return fmt.Errorf("secrets: %w", iofs.ErrInvalid)
	}
	return f.c.Set(ctx, ch)
}

type secretHandle struct{ fs.Handle }

func (secretHandle) ReadAt(context.Context, []byte, int64) (int, error) {
	return 0, fmt.Errorf("secrets: %w: %w", errSecret, iofs.ErrPermission)
}

// Abort undoes what a writer who has vanished had begun.
func (h secretHandle) Abort() {
	if a, ok := h.Handle.(fs.Aborter); ok {
		a.Abort()
	}
}
