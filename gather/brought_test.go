package gather

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"harvest/fs"
)

// TestBroughtFrom: a program is written from this machine only, whoever writes;
// Starlark and patterns by all who may write config.
func TestBroughtFrom(t *testing.T) {
	g := run(t, t.TempDir(), "")
	for _, folder := range []string{"summarize", "explode"} {
		n, err := fs.Walk(t.Context(), g.Files(), "types/"+folder)
		if err != nil {
			t.Fatal(err)
		}
		d := n.(fs.Dir)
		const call = "def summarize(doc): return {}\ndef explode(doc): return []\n"
		for who, u := range map[string]*fs.User{
			"far owner":   {Name: "ann", Owner: true},
			"near owner":  {Name: "bob", Owner: true, Local: true},
			"near nobody": {Name: "eve", Local: true},
			"nobody":      {Name: "none", ReadOnly: true},
		} {
			ctx := fs.WithUser(context.Background(), u)
			write := func(name, text string) error {
				_, h, err := d.(fs.Creator).Create(ctx, name, 0o644, fs.Write)
				if err != nil {
					return err
				}
				if _, err = h.WriteAt(ctx, []byte(text), 0); err == nil {
					err = h.Flush(ctx)
				}
				return errors.Join(err, h.Close())
			}
			remove := func(name string) error { return d.(fs.Remover).Remove(ctx, name) }
			if err := write("Lua.sum", "#!/bin/sh\n"); (err == nil) != (u.Owner && u.Local) || err != nil && !errors.Is(err, iofs.ErrPermission) {
				t.Errorf("%s: %s: a program: got %v", folder, who, err)
			}
			if err := write("Lua.star", call); (err == nil) != u.Owner || err != nil && !errors.Is(err, iofs.ErrPermission) {
				t.Errorf("%s: %s: Starlark: got %v", folder, who, err)
			}
			if u.Owner && !u.Local { // nor by a detour
				if err := d.(fs.Renamer).Rename(ctx, "Lua.star", "Lua.sum", true); !errors.Is(err, iofs.ErrPermission) {
					t.Errorf("%s: %s: renamed: got %v", folder, who, err)
				}
				if err := write("scratch", "#!/bin/sh\n"); err != nil {
					t.Error(err)
				}
				if err := d.(fs.Renamer).Rename(ctx, "scratch", "Lua", true); !errors.Is(err, iofs.ErrPermission) {
					t.Errorf("%s: %s: landed: got %v", folder, who, err)
				}
			}
			if u.Owner && u.Local {
				far := fs.WithUser(context.Background(), &fs.User{Name: "ann", Owner: true})
				n, err := d.Lookup(far, "Lua.sum")
				if err != nil {
					t.Fatal(err)
				}
				if st := n.Stat(); st.Mode != 0o755 {
					t.Errorf("got mode %v, want 755", st.Mode)
				}
				mode := iofs.FileMode(0o644)
				if _, err := n.(fs.File).Open(far, fs.Write); !errors.Is(err, iofs.ErrPermission) {
					t.Errorf("opened from afar: got %v", err)
				}
				if err := n.(fs.Setter).Set(far, fs.Change{Mode: &mode}); !errors.Is(err, iofs.ErrPermission) {
					t.Errorf("set from afar: got %v", err)
				}
				if err := d.(fs.Remover).Remove(far, "Lua.sum"); !errors.Is(err, iofs.ErrPermission) {
					t.Errorf("removed from afar: got %v", err)
				}
				if err := n.(fs.Setter).Set(ctx, fs.Change{Mode: &mode}); err != nil {
					t.Error(err)
				}
				if stats := g.read("types/" + folder + "/stats"); !strings.Contains(stats, "Lua.sum\t0\t0\t0\t0\t0s\tnot executable") {
					t.Errorf("got\n%s", stats)
				}
				if err := remove("Lua.sum"); err != nil {
					t.Error(err)
				}
			}
			if u.Owner {
				if err := remove("Lua.star"); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// writeFrom has the owner of the tree, near or elsewhere, write a file of a directory.
func writeFrom(t *testing.T, d fs.Dir, near bool, name, text string) error {
	t.Helper()
	ctx := fs.WithUser(context.Background(), &fs.User{Name: "ann", Owner: true, Local: near})
	n, err := d.Lookup(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.(fs.File).Open(ctx, fs.Write|fs.Trunc)
	if err != nil {
		return err
	}
	if _, err = h.WriteAt(ctx, []byte(text), 0); err == nil {
		err = h.Flush(ctx)
	}
	return errors.Join(err, h.Close())
}

// typesDir is types/ of a Gatherer.
func typesDir(t *testing.T, g *runner) fs.Dir {
	t.Helper()
	n, err := g.Files().Lookup(context.Background(), "types")
	if err != nil {
		t.Fatal(err)
	}
	return n.(fs.Dir)
}

// TestStrayNames: what is meant for a summarizer and is none, or never runs, is told.
func TestStrayNames(t *testing.T) {
	g := run(t, t.TempDir(), "")
	types := typesDir(t, g)
	for name, want := range map[string]string{
		"summarize/lua.sum": "lua.sum: is not TYPE.sum", "summarize/A.b.star": "A.b.star: is not", "explode/Lua.quick": "Lua.quick: is not TYPE.sum or TYPE.star",
		"summarize/.Lua.sum": "", "summarize/Lua.sum~": "", "summarize/Lau.quick": "",
	} {
		folder, file, _ := strings.Cut(name, "/")
		n, err := types.Lookup(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		_, h, err := n.(fs.Creator).Create(t.Context(), file, 0o644, fs.Write)
		if err == nil {
			if _, err = h.WriteAt(t.Context(), []byte("Title .*\n"), 0); err == nil {
				err = h.Flush(t.Context())
			}
			err = errors.Join(err, h.Close())
		}
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || !strings.Contains(g.read("types/err"), want)) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if stats := g.read("types/summarize/stats"); !strings.Contains(stats, "\nLau.quick\t0\t0\t0\t0\t0s\tthere is no such type\n") {
		t.Errorf("got stats\n%s", stats)
	}
}

// TestAccessChecked: a method that cannot run is refused when it is written, at its
// place in the table.
func TestAccessChecked(t *testing.T) {
	types := typesDir(t, run(t, t.TempDir(), ""))
	const good = "up: Title ~ /./\n\tdef view(o):\n\t\treturn o['Title'].upper()\n"
	for text, want := range map[string]string{
		good: "",
		good + "\nlow: Title ~ /./\n\n    def view(o):\n        return o[\n": "line 8, column 5: low: ",
		good + "low: Title ~ /./\n\tdef view(o):\n\t\treturn lower(o)\n":     "line 6, column 10: low: undefined: lower",
	} {
		err := writeFrom(t, types, true, "access", text)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot %v\nwant %s", text, err, want)
		}
	}
}

// TestProgramsFrom: a program that config names is run as the server does, so
// that only somebody on this machine may add one; who is elsewhere may leave it.
func TestProgramsFrom(t *testing.T) {
	g := run(t, t.TempDir(), "")
	const one, other, list = "root url=http://x.test/ enumeration=/bin/one\n", "root url=http://x.test/ enumeration='/bin/one -v'\n", "leaf program=/bin/list\n"
	for _, c := range []struct {
		near bool
		text string
		ok   bool
	}{
		{false, one, false}, {false, list, false}, {true, one, true}, {false, "every=3h\n" + one, true},
		{false, other, false}, {false, one + list, false}, {true, one + list, true}, {false, list, true}, {false, one, false},
	} {
		if err := writeFrom(t, g.Files(), c.near, "config", c.text); (err == nil) != c.ok || err != nil && !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("near %t, %q: got %v", c.near, c.text, err)
		}
	}
}

// TestRulesFrom: rules that hand values to programs are written from this machine
// only; who is elsewhere may write others, write the same again, and take them away.
func TestRulesFrom(t *testing.T) {
	g := run(t, t.TempDir(), "")
	write := func(near bool, name, text string) error {
		ctx := fs.WithUser(context.Background(), &fs.User{Name: "ann", Owner: true, Local: near})
		n, err := fs.Walk(ctx, g.Files(), "types/"+name)
		if err != nil {
			t.Fatal(err)
		}
		h, err := n.(fs.File).Open(ctx, fs.Write|fs.Trunc)
		if err != nil {
			return err
		}
		if _, err = h.WriteAt(ctx, []byte(text), 0); err == nil {
			err = h.Flush(ctx)
		}
		return errors.Join(err, h.Close())
	}
	const plain, filter, other = "a == 'b'\n\tc = 'd'\n", "a == 'b'\n\tc | cat\n", "a == 'b'\n\tc | rev\n"
	for i, c := range []struct {
		near       bool
		name, text string
		ok         bool
	}{
		{false, "rules", filter, false}, {false, "rules", plain, true}, {true, "rules", filter, true}, {false, "rules", filter, true},
		{false, "rules", other, false}, {false, "select", "reject Tar\ninclude default\n", true}, {false, "rules", plain, true}, {false, "rules", filter, false},
	} {
		if err := write(c.near, c.name, c.text); (err == nil) != c.ok || err != nil && !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("%d: near %t, %s %q: got %v, want that it goes: %t", i, c.near, c.name, c.text, err, c.ok)
		}
		if got := g.read("types/rules"); !c.ok && got == c.text {
			t.Errorf("%d: got %q in force", i, got)
		}
	}
}

// TestBroughtAtStart: what is bad in the folder when the server starts is told of
// and passed over.
func TestBroughtAtStart(t *testing.T) {
	dir := t.TempDir()
	sum := filepath.Join(dir, "types", "summarize")
	if err := os.MkdirAll(sum, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Lua.sum": "#!/bin/sh\n", "Odd.quick": "Title x\n", "what ever": "x", "Bad.quick": "Title a(b\n", "limits": "limit file=x\n"} {
		if err := os.WriteFile(filepath.Join(sum, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g := run(t, dir, "")
	if log := g.read("log"); !strings.Contains(log, "what ever") || !strings.Contains(log, "summarize/limits") || !strings.Contains(log, "summarize/Bad.quick") {
		t.Errorf("got log\n%s", log)
	}
	if stats := g.read("types/summarize/stats"); !strings.Contains(stats, "\nLua.sum\t0") || !strings.Contains(stats, "\nOdd.quick\t0") {
		t.Errorf("got\n%s", stats)
	}
}

func FuzzParseBounds(f *testing.F) {
	f.Add("limit file=Lua.sum wall=5s memory=128M output=64K procs=16 keep=100\n# x\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseBounds(text, summarizeDir)
		if err != nil {
			return
		}
		for path, b := range all {
			if !strings.HasPrefix(path, summarizeDir+"/") || b.Memory < 0 || b.Keep < 0 || b.Procs < 0 || b.Wall < 0 || b.Output < 0 {
				t.Errorf("%s: got %+v", path, b)
			}
		}
	})
}
