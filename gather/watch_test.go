package gather

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"harvest/fs"
)

// until waits for what is to become true, looking anew after each event.
func (r *runner) until(what string, is func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	n, err := r.Files().Lookup(ctx, "events.live")
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := n.(fs.File).Open(ctx, fs.Read)
	if err != nil {
		r.t.Fatal(err)
	}
	defer h.Close()
	for !is() {
		wait, cancel := context.WithTimeout(ctx, time.Second) // some of it has no event
		_, err := h.ReadAt(wait, make([]byte, 4096), 0)
		cancel()
		if ctx.Err() != nil {
			r.t.Fatalf("%s: not in 20 s: %v\n%s\n%s", what, err, r.read("status"), r.read("events"))
		}
	}
}

// titles are those of the objects, in order.
func (r *runner) titles() string {
	var all []string
	for _, o := range r.objects("") {
		all = append(all, o.Text("Title"))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func put(t *testing.T, name, title string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("<title>"+title+"</title>"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWatch: what changes in a watched tree is found without a word.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	put(t, src+"/a.html", "a")
	put(t, src+"/sub/b.html", "b")
	put(t, src+"/old/o.html", "o")
	r := run(t, filepath.Join(dir, "state"), "root url=file://"+src+" watch=yes deny=\\.bak$\ndeny=/no/\nleaf url=http://127.0.0.1:1/none delay=0s\n")
	has := func(want string) func() bool { return func() bool { return r.titles() == want } }
	r.until("what was there", has("a b o")) // without a run
	r.until("folders are watched", func() bool { return r.get("watched") == "3" })
	asked := r.get("requests")

	put(t, src+"/a.html", "a2")
	r.until("a change", has("a2 b o"))
	put(t, src+"/sub/deep/er/c.html", "c")
	r.until("new folders", has("a2 b c o"))
	put(t, src+"/sub/deep/er/c.html", "c2")
	r.until("a change in a new folder", has("a2 b c2 o"))
	if err := os.Remove(src + "/sub/b.html"); err != nil {
		t.Fatal(err)
	}
	r.until("a file that goes", has("a2 c2 o"))
	if err := os.Rename(src+"/old", src+"/new"); err != nil {
		t.Fatal(err)
	}
	r.until("a folder that moves", func() bool { _, ok := r.objects("")["file://"+src+"/new/o.html"]; return ok && r.titles() == "a2 c2 o" })
	put(t, src+"/new/p.html", "p")
	r.until("a change in it", has("a2 c2 o p"))
	if err := os.RemoveAll(src + "/sub"); err != nil {
		t.Fatal(err)
	}
	r.until("folders that go", has("a2 o p"))

	// Held, it waits.
	r.must("pause")
	put(t, src+"/q.html", "q")
	put(t, src+"/no/n.html", "n")
	if got := r.titles(); got != "a2 o p" {
		t.Errorf("paused: got %s", got)
	}
	r.must("resume")
	r.until("after a pause", has("a2 o p q"))
	r.settle()
	if strings.Contains(r.read("events"), "127.0.0.1") || asked == "" {
		t.Errorf("a change in the tree has servers asked:\n%s", r.read("events"))
	}
	// Another configuration watches something else.
	if err := r.setConfig(t.Context(), "root url=file://"+src+"\n"); err != nil {
		t.Fatal(err)
	}
	r.until("no more watching", func() bool { return r.get("watched") == "" })
}

// TestWatchAbsent: a root that is not there is told of, once, and watched as
// soon as it is.
func TestWatchAbsent(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file", "x")
	r := run(t, filepath.Join(dir, "state"), "root url=file://"+dir+"/none watch=yes\nroot url=file://"+dir+"/file watch=yes\n")
	r.until("it is told of", func() bool {
		e := r.read("events")
		return strings.Contains(e, "event=watch reason='lstat "+dir+"/none: no such file or directory'") && strings.Contains(e, "/file: not a folder")
	})
}

// newTestWatch watches folders and has what is to be looked at told.
func newTestWatch(t *testing.T, roots ...string) (*watch, chan []string) {
	n, err := fsnotify.NewBufferedWatcher(16)
	if err != nil {
		t.Fatal(err)
	}
	w := newWatch(n, time.Millisecond, 5*time.Millisecond)
	w.roots = roots
	looks := make(chan []string, 100)
	w.keep = func(string) bool { return true }
	w.hand = func(f []string) bool {
		select {
		case looks <- f:
			return true
		default:
			return false
		}
	}
	w.tell = func(why string) { t.Log(why) }
	return w, looks
}

// TestWatchLost: when the kernel has lost changes, or there are too many, whole
// roots are looked at.
func TestWatchLost(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	w, _ := newTestWatch(t, root, other)
	defer w.w.Close()
	d := dirt{folders: make(map[string]bool)}
	w.lost(&d, fsnotify.ErrEventOverflow)
	list := w.list(&d)
	slices.Sort(list)
	if !slices.Equal(list, []string{root, other}) {
		t.Errorf("lost: got %q", list)
	}
	d = dirt{folders: make(map[string]bool)}
	for i := range maxDirty + 10 {
		w.dirty(&d, fmt.Sprintf("%s/%d", root, i))
	}
	if len(d.folders) != 2 || !d.folders[root] {
		t.Errorf("many: got %d folders", len(d.folders))
	}
}

func TestWatchList(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(root+"/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	w, _ := newTestWatch(t, root)
	defer w.w.Close()
	for _, c := range []struct{ dirty, want string }{
		{"/a", "/a"}, {"/a /a/b", "/a"}, {"/a/b/gone/far", "/a/b"}, {"/a/b /none", "/"}, {"/ /a", "/"}, {"", ""},
	} {
		d := dirt{folders: make(map[string]bool)}
		for _, f := range strings.Fields(c.dirty) {
			w.dirty(&d, filepath.Join(root, f))
		}
		w.dirty(&d, "/elsewhere")
		var got []string
		for _, f := range w.list(&d) {
			got = append(got, "/"+strings.TrimPrefix(strings.TrimPrefix(f, root), "/"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %s", c.dirty, got, c.want)
		}
	}
}

// TestWatchFull: there is an end to what is watched, and it is told of.
func TestWatchFull(t *testing.T) {
	root := t.TempDir()
	w, _ := newTestWatch(t, root)
	defer w.w.Close()
	told := 0
	w.tell = func(why string) {
		if told++; !strings.Contains(why, "max_user_watches") || !strings.Contains(why, "visits find") {
			t.Errorf("got %q", why)
		}
	}
	w.filled("the kernel watches no more folders: fs.inotify.max_user_watches")
	w.filled("the kernel watches no more folders: fs.inotify.max_user_watches")
	if told != 1 || !w.full.Load() {
		t.Errorf("told %d times, want once", told)
	}
	if err := w.add(t.Context(), root); err != nil || len(w.w.WatchList()) != 0 {
		t.Errorf("got %v, %d watched, want none any more", err, len(w.w.WatchList()))
	}
}
