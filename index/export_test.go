package index

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/clipperhouse/uax29/v2/words"

	"harvest/index/segfile"
)

// An Unsearched is the ranked engine and what it holds.
type Unsearched struct{ *engine }

func OpenUnsearched(dir string, set Settings) (*Unsearched, error) {
	e, err := openEngine(dir, set)
	if err != nil {
		return nil, err
	}
	return &Unsearched{e}, nil
}

// Compare compares all that is in the current view with what the documents
// mean that there are at its mark.
func (u *Unsearched) Compare(t *testing.T, at func(mark string) map[ID]Doc) {
	t.Helper()
	v, err := u.view()
	must(t, err)
	defer runtime.KeepAlive(v)
	compare(t, found(t, v), wanted(at(v.mark), u.set))
}

// Files compares the files of the directory with those that the index has.
func (u *Unsearched) Files(t *testing.T) {
	t.Helper()
	list, err := os.ReadDir(u.dir)
	must(t, err)
	want := map[string]bool{segfile.ManifestName: true}
	for _, p := range u.cur.Load().parts {
		want[filepath.Base(p.Path)] = true
	}
	for _, f := range list {
		if !want[f.Name()] {
			t.Errorf("got file %s, want only %v", f.Name(), slices.Sorted(maps.Keys(want)))
		}
	}
}

// WordsPlain is Words without its short ways: all of the text is cut by uax29.
func WordsPlain(text string, yield func(w *Word) bool) {
	a := analyzer{yield: yield}
	for it := words.FromString(text); it.Next() && !a.stop; {
		a.segment(it.Value(), it.Start())
	}
	a.endRun()
}

// terms are the words of a text that have positions.
func terms(text string) (out []string) {
	Words(text, func(w *Word) bool {
		if !w.Whole {
			out = append(out, string(w.Text))
		}
		return true
	})
	return out
}
