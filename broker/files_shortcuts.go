package broker

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"

	"harvest/broker/shortcut"
	"harvest/fs"
)

// shortcutsDir is shortcuts/, the modules, and stats of them.
func (b *Broker) shortcutsDir() fs.Dir {
	id := func(name string) uint64 { return b.id("shortcuts", name) }
	return fs.Texts(b.id("shortcuts"), fs.TextsOptions{
		Name: "shortcuts", Err: b.shown.err, ID: id, Most: shortcut.MaxModules,
		Fixed: map[string]fs.Node{"stats": fs.Text(id("stats"), b.shortcuts.tallies)},
		Is:    func(name string) bool { return name != "stats" && shortcut.CheckName(name) == nil },
		Names: b.shortcuts.set.Names,
		Get: func(name string) (t fs.KeptText, ok bool) {
			t.Text, t.Time, ok = b.shortcuts.set.Text(name)
			t.Mode = shortcutMode(t.Text)
			return t, ok
		},
		Set: func(ctx context.Context, name, text string, _ iofs.FileMode) error {
			if shortcut.IsProgram(text) && !fs.UserOf(ctx).Local {
				return errFar
			}
			return b.shortcuts.put(name, text)
		},
		Remove:  func(_ context.Context, name string) error { return b.shortcuts.remove(name) },
		Chmod:   func(string, iofs.FileMode) error { return nil }, // it follows from the text
		NewMode: func(string, iofs.FileMode) iofs.FileMode { return shortcutMode("") },
	})
}

// errFar is the error of somebody who is not on this machine.
var errFar = fmt.Errorf("a program is written on the machine that runs it: %w", iofs.ErrPermission)

// shortcutMode tells programs from templates.
func shortcutMode(text string) iofs.FileMode {
	if shortcut.IsProgram(text) {
		return 0o755
	}
	return 0o644
}

// shortcutFiles is the folder shortcuts of a query: what modules say to it, a file
// each, and status, which has those as well that failed. They are asked when it is
// read.
func (b *Broker) shortcutFiles(text func() string, id func(name string) uint64) fs.Dir {
	file := func(a shortcut.Answer) fs.Node {
		return fs.Text(id("shortcuts/"+a.Name), func() string { return a.Text() })
	}
	status := fs.Stream(id("shortcuts/status"), 0, func(ctx context.Context, w io.Writer) error {
		_, err := io.WriteString(w, told(b.shortcuts.ask(ctx, text())))
		return err
	})
	return fs.Func{
		Path: id("shortcuts"),
		Look: func(ctx context.Context, name string) (fs.Node, error) {
			if name == "status" {
				return status, nil
			}
			for _, a := range b.shortcuts.ask(ctx, text()) {
				if a.Name == name && a.Err == nil {
					return file(a), nil
				}
			}
			return nil, notExist(name)
		},
		Each: func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
			all := []fs.Entry{{Name: "status", Node: status}}
			for _, a := range b.shortcuts.ask(ctx, text()) {
				if a.Err == nil {
					all = append(all, fs.Entry{Name: a.Name, Node: file(a)})
				}
			}
			return fs.Sorted(all, after)
		},
	}
}
