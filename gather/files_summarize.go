package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"harvest/fs"
	"harvest/gather/essence"
	"harvest/gather/essence/jail"
)

// What users bring, below types/:
//
//	summarize/TYPE.sum    a program; only somebody on this machine may write it
//	summarize/TYPE.star   Starlark
//	summarize/TYPE.quick  regular expressions
//	summarize/limits      what a run may take, a line a file
//	summarize/stats       what became of the runs, a line a file
//	explode/              the same for exploders
//
// Files are checked as a config is; other names are editors', as beside one.

// A bringDir is one of the two directories.
type bringDir struct {
	b      *bring
	folder string
}

// broughtNodes adds the two directories to types/.
func (g *Gatherer) broughtNodes(nodes map[string]fs.Node, err *fs.Err) {
	for _, folder := range []string{summarizeDir, explodeDir} {
		nodes[folder] = (&bringDir{g.bring, folder}).files(err)
	}
}

func (d *bringDir) files(err *fs.Err) fs.Dir {
	limits := fs.Config(d.id("limits"), err, func() string { return d.b.limitsText(d.folder) },
		func(_ context.Context, text string) error { return d.b.setLimits(d.folder, text) }).Named(d.path("limits"))
	return fs.Texts(d.b.g.id("types", d.folder), fs.TextsOptions{
		Name: d.folder, Err: err, ID: d.id, Most: maxBrought,
		Fixed: map[string]fs.Node{"limits": limits, "stats": fs.Text(d.id("stats"), d.stats)},
		Is:    d.taken, Stray: d.stray, May: d.may, NewMode: newMode,
		Names: func() []string { return d.b.names(d.folder) },
		Get: func(name string) (fs.KeptText, bool) {
			f, ok := d.b.get(d.path(name))
			return fs.KeptText{Text: f.text, Mode: f.mode, Time: f.time}, ok
		},
		Set: func(ctx context.Context, name, text string, mode iofs.FileMode) error {
			return d.b.set(ctx, d.path(name), text, mode)
		},
		Remove: func(_ context.Context, name string) error { return d.b.remove(d.path(name)) },
		Chmod:  func(name string, mode iofs.FileMode) error { return d.b.chmod(d.path(name), mode) },
	})
}

func (d *bringDir) id(name string) uint64 { return d.b.g.id("types", d.folder, name) }

// taken tells whether a name is that of a summarizer or exploder.
func (d *bringDir) taken(name string) bool {
	return essence.CheckName(name, d.folder == explodeDir) == nil
}

func (d *bringDir) path(name string) string { return d.folder + "/" + name }

// newMode is that of a file which is made: a program is there to be run, also
// where a shell's > has made it. To have it and not run it, take its x away.
func newMode(name string, perm iofs.FileMode) iofs.FileMode {
	if essence.IsProgram(name) {
		return 0o755
	}
	return perm.Perm()&0o644 | 0o600
}

// errFar is the error of somebody who is not on this machine.
var errFar = errors.New("a program is written on the machine that runs it")

// may lets programs be written from this machine only.
func (d *bringDir) may(ctx context.Context, name string) error {
	if essence.IsProgram(name) && !fs.UserOf(ctx).Local {
		return fmt.Errorf("%s: %w: %w", d.path(name), errFar, iofs.ErrPermission)
	}
	return nil
}

// stray refuses a name that is meant for a summarizer and is none: it would stand
// there as editors' files do, and never be run.
func (d *bringDir) stray(name string) error {
	switch path.Ext(name) {
	case ".sum", ".star", ".quick":
		if name[0] == '.' || name[0] == '#' {
			return nil
		}
		return essence.CheckName(name, d.folder == explodeDir)
	}
	return nil
}

// stats are what became of the runs, a line a file: its name, runs, those that
// were done, that said "not mine" and that failed, the mean time of one, a word
// of its state, and the last failure.
func (d *bringDir) stats() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# jail: %s\n# file\truns\tdone\tnone\tfailed\ttime\tstate\tlast failure\n", jail.Ground())
	all := d.b.now().Tallies()
	types, _ := d.b.g.types.now()
	for _, name := range d.b.names(d.folder) {
		key := name
		if d.folder == explodeDir {
			key = d.path(name)
		}
		t, ok := all[key]
		state, mean := "runs", time.Duration(0)
		switch {
		case !ok:
			state = "not executable"
		case !types.Has(essence.TypeOf(name)):
			state = "there is no such type"
		case time.Now().Before(t.Rests):
			state = "rests until " + t.Rests.UTC().Format(time.RFC3339)
		}
		if t.Runs > 0 {
			mean = (t.Took / time.Duration(t.Runs)).Round(10 * time.Microsecond)
		}
		n := func(i int64) string { return strconv.FormatInt(i, 10) }
		cells := []string{name, n(t.Runs), n(t.Done), n(t.None), n(t.Failed), mean.String(), state, ""}
		if t.Err != "" {
			cells[7] = t.At.UTC().Format(time.RFC3339) + " " + strings.Map(func(r rune) rune {
				if r < ' ' {
					return ' '
				}
				return r
			}, t.Err)
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "\t"), "\t") + "\n")
	}
	return b.String()
}
