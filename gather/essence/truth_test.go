package essence

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestTruth recognises real files of Debian packages and of Go modules, as far as
// they are here. What each is was set by file(1) where that knows the format, else
// by hand; testdata/truth has the list: path, type, and the package it is of. At
// least 98 of 100 are to be told right.
func TestTruth(t *testing.T) {
	list, err := os.ReadFile("testdata/truth")
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	known := make(map[string]bool)
	for _, k := range ownTables().Types() {
		known[k.Name] = true
	}
	all, right := 0, 0
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		path, want := strings.Replace(f[0], "~", home, 1), f[1]
		if !known[want] {
			t.Errorf("%s: there is no type %s", f[0], want)
		}
		got, rule, ok := recognizeFile(t, path)
		if !ok {
			continue
		}
		if all++; got == want {
			right++
		} else {
			t.Logf("%s: got %s by %s, want %s", f[0], got, rule, want)
		}
	}
	if all < 200 {
		t.Skipf("%d files of testdata/truth are here: too few to say", all)
	}
	t.Logf("%d of %d right: %.2f %%", right, all, 100*float64(right)/float64(all))
	if right*100 < all*98 {
		t.Errorf("got %d of %d right, want 98 of 100", right, all)
	}
}

// recognizeFile recognises a file as Summarize does; ok is false if it is not here.
func recognizeFile(t *testing.T, path string) (typ, rule string, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", "", false
	}
	defer f.Close()
	w := &worker{ctx: t.Context(), tab: ownTables()}
	w.lim.defaults()
	defer w.close()
	head, err := io.ReadAll(io.LimitReader(f, int64(w.lim.Head)))
	if err != nil {
		return "", "", false
	}
	k, rule := w.recognize(&content{name: path[strings.LastIndexByte(path, '/')+1:], head: head, rest: f})
	return k.name, rule, true
}
