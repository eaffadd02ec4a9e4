package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// memTexts keeps texts whose names are letters and which do not say "bad".
type memTexts struct {
	mu   sync.Mutex
	text map[string]KeptText
}

func (m *memTexts) dir() Dir {
	letters := func(name string) bool { return strings.Trim(name, "abc") == "" }
	return Texts(1, TextsOptions{
		Name: "t", Err: NewErr(2), ID: func(name string) uint64 { return ID("t", name) }, Most: 4,
		Fixed: map[string]Node{"stats": Text(3, func() string { return "some\n" })},
		Is:    letters,
		Stray: func(name string) error {
			if strings.HasPrefix(name, "stray") {
				return fmt.Errorf("%s is no letter: %w", name, iofs.ErrInvalid)
			}
			return nil
		},
		May: func(_ context.Context, name string) error {
			if name == "c" {
				return fmt.Errorf("c is not yours: %w", iofs.ErrPermission)
			}
			return nil
		},
		Names: func() []string {
			m.mu.Lock()
			defer m.mu.Unlock()
			return slices.Collect(maps.Keys(m.text))
		},
		Get: func(name string) (KeptText, bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			t, ok := m.text[name]
			return t, ok
		},
		Set: func(_ context.Context, name, text string, mode iofs.FileMode) error {
			if strings.Contains(text, "bad") {
				return fmt.Errorf("line 1: bad: %w", iofs.ErrInvalid)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			m.text[name] = KeptText{Text: text, Mode: mode}
			return nil
		},
		Remove: func(_ context.Context, name string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if _, ok := m.text[name]; !ok {
				return iofs.ErrNotExist
			}
			delete(m.text, name)
			return nil
		},
		Chmod: func(name string, mode iofs.FileMode) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			t := m.text[name]
			t.Mode = mode
			m.text[name] = t
			return nil
		},
		NewMode: func(_ string, perm iofs.FileMode) iofs.FileMode { return perm&0o644 | 0o600 },
	})
}

// TestTexts does to a directory of texts what shells and editors do.
func TestTexts(t *testing.T) {
	ctx := WithUser(t.Context(), &User{Owner: true, Local: true})
	m := &memTexts{text: make(map[string]KeptText)}
	d := m.dir()
	create := func(name, text string) error {
		_, h, err := d.(Creator).Create(ctx, name, 0o666, Write)
		if err != nil {
			return err
		}
		_, err = h.WriteAt(ctx, []byte(text), 0)
		return errors.Join(err, h.Flush(ctx), h.Close())
	}
	names := func() string {
		var all []string
		for e, err := range d.List(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e.Name)
		}
		return strings.Join(all, " ")
	}
	for _, tt := range []struct {
		do   func() error
		what string
		err  error
		want string // the names after it
		text string // of a
	}{
		{func() error { return create("a", "one\n") }, "create", nil, "a stats", "one\n"},
		{func() error { return create("a", "two\n") }, "create again", iofs.ErrExist, "a stats", "one\n"},
		{func() error { return create("b", "bad\n") }, "create a bad one", iofs.ErrInvalid, "a b.rejected stats", "one\n"},
		{func() error { return d.(Remover).Remove(ctx, "b.rejected") }, "remove what was refused", nil, "a stats", "one\n"},
		{func() error { return create("c", "x\n") }, "create another's", iofs.ErrPermission, "a stats", "one\n"},
		{func() error { return create("stray1", "x\n") }, "create a stray", iofs.ErrInvalid, "a stats", "one\n"},
		{func() error { return create("4913", "three\n") }, "create an editor's file", nil, "4913 a stats", "one\n"},
		{func() error { return d.(Renamer).Rename(ctx, "4913", "a", false) }, "rename onto a", iofs.ErrExist, "4913 a stats", "one\n"},
		{func() error { return d.(Renamer).Rename(ctx, "4913", "a", true) }, "rename onto a, replacing", nil, "a stats", "three\n"},
		{func() error { return d.(Renamer).Rename(ctx, "a", "b", false) }, "rename a text", nil, "b stats", ""},
		{func() error { return d.(Renamer).Rename(ctx, "b", "a", false) }, "rename it back", nil, "a stats", "three\n"},
		{func() error { return d.(Remover).Remove(ctx, "b") }, "remove what is not there", iofs.ErrNotExist, "a stats", "three\n"},
		{func() error { return d.(Remover).Remove(ctx, "a") }, "remove", nil, "stats", ""},
	} {
		before := d.Stat().Vers
		if err := tt.do(); !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: got %v, want %v", tt.what, err, tt.err)
		}
		if got := names(); got != tt.want {
			t.Errorf("%s: got names %s, want %s", tt.what, got, tt.want)
		}
		if got := m.text["a"].Text; got != tt.text {
			t.Errorf("%s: got a %q, want %q", tt.what, got, tt.text)
		}
		if tt.err == nil && d.Stat().Vers == before {
			t.Errorf("%s: the directory's version stays", tt.what)
		}
	}
}
