package gather

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// write writes a file of the tree as echo does: open with truncation or make it,
// write, close.
func (r *runner) write(name, text string) error {
	r.t.Helper()
	ctx := r.t.Context()
	n, err := fs.Walk(ctx, r.Files(), path.Dir(name))
	if err != nil {
		r.t.Fatal(err)
	}
	dir := n.(fs.Dir)
	var h fs.Handle
	if n, err := dir.Lookup(ctx, path.Base(name)); err == nil {
		h, err = n.(fs.File).Open(ctx, fs.Write|fs.Trunc)
		if err != nil {
			return err
		}
	} else if _, h, err = dir.(fs.Creator).Create(ctx, path.Base(name), 0o644, fs.Write); err != nil {
		return err
	}
	_, err = h.WriteAt(ctx, []byte(text), 0)
	return errors.Join(err, h.Flush(ctx), h.Close())
}

func (r *runner) put(name, text string) {
	r.t.Helper()
	if err := r.write(name, text); err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
}

func (r *runner) rm(name string) {
	r.t.Helper()
	n, err := fs.Walk(r.t.Context(), r.Files(), path.Dir(name))
	if err == nil {
		err = n.(fs.Remover).Remove(r.t.Context(), path.Base(name))
	}
	if err != nil {
		r.t.Fatalf("rm %s: %v", name, err)
	}
}

func (r *runner) names(dir string) string {
	r.t.Helper()
	var names []string
	all, err := iofs.ReadDir(fs.IO(r.t.Context(), r.Files()), dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// attr reads an attribute of an object in a file of the tree.
func (r *runner) attr(name, attr string) string {
	r.t.Helper()
	o, _, err := soif.Parse([]byte(r.read(name)), soif.Limits{})
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return o.Text(attr)
}

// page makes a folder with one page, gathered.
func page(t *testing.T) (r *runner, dir, url string, oid store.OID) {
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "a.html"), []byte("<title>Machine</title><p>Some text."), 0o644); err != nil {
		t.Fatal(err)
	}
	r = run(t, t.TempDir(), "root url=file://"+src)
	r.gathered()
	url = "file://" + src + "/a.html"
	return r, src, url, r.oid(url)
}

func (r *runner) gathered() {
	r.t.Helper()
	r.must("run")
	r.settle()
}

func objectName(oid store.OID) string {
	return "objects/" + oid.String()[:2] + "/" + oid.String() + ".soif"
}

// What people write is over what the machine finds, in every file of the
// collection, whatever is gathered, and the machine's can still be seen.
func TestAnnotate(t *testing.T) {
	r, src, url, oid := page(t)
	object, hand, auto := objectName(oid), "manual/"+oid.String()+".soif", "manual/"+oid.String()+".auto"
	before := r.store.Cursor()
	r.put(hand, "Title: Fixed\nKeywords: one\n\ttwo\nGatherer-Version:\n")
	check := func(when, title string) {
		t.Helper()
		for _, name := range []string{object, "url/" + store.Path(url), "soif"} {
			if got := r.attr(name, "Title"); got != title {
				t.Errorf("%s: Title in %s: got %q, want %q", when, name, got, title)
			}
		}
	}
	check("annotated", "Fixed")
	if got := r.attr(object, "Keywords"); got != "one\ntwo" {
		t.Errorf("Keywords: got %q, want two lines", got)
	}
	if strings.Contains(r.read(object), "Gatherer-Version") {
		t.Error("an attribute that was to go is there")
	}
	if got := r.attr(auto, "Title"); got != "Machine" {
		t.Errorf("what the machine has found: got %q, want Machine", got)
	}
	if since := r.read("since/" + before.String()); !strings.Contains(since, "Fixed") {
		t.Errorf("since: got %q, want the change", since)
	}
	if got := r.names("manual"); got != oid.String()+".auto "+oid.String()+".soif url" {
		t.Errorf("manual/: got %s", got)
	}

	if err := os.WriteFile(filepath.Join(src, "a.html"), []byte("<title>Machine again</title><p>Other text."), 0o644); err != nil {
		t.Fatal(err)
	}
	r.gathered()
	check("gathered again", "Fixed")
	if got := r.attr(auto, "Title"); got != "Machine again" {
		t.Errorf("what the machine has found: got %q, want Machine again", got)
	}
	r.must("refresh")
	r.settle()
	check("refreshed", "Fixed")

	dir := r.dir
	r.end()
	r = run(t, dir, "")
	check("after a restart", "Fixed")
	if got := r.read(hand); !strings.HasPrefix(got, "Title: Fixed\n") {
		t.Errorf("the text: got %q", got)
	}
	r.rm(hand)
	check("taken back", "Machine again")
	if got := r.names("manual"); got != "url" {
		t.Errorf("manual/ at the end: got %s, want url", got)
	}
}

func TestAnnotateURL(t *testing.T) {
	r, src, url, oid := page(t)
	name := "manual/url/" + store.Path(url)
	r.put(name, "@FILE { "+url+"\nTitle{5}:\tBy it\nAuthor{3}:\tBob\n}\n")
	if got := r.attr(objectName(oid), "Title"); got != "By it" {
		t.Errorf("by URL: got %q, want By it", got)
	}
	r.put("manual/"+oid.String()+".soif", "Title: By OID")
	if title, author := r.attr(objectName(oid), "Title"), r.attr(objectName(oid), "Author"); title != "By OID" || author != "Bob" {
		t.Errorf("both: got %q by %q, want By OID by Bob", title, author)
	}
	if got := r.names("manual/url" + path.Dir("/"+store.Path(url))); got != "a.html.soif" {
		t.Errorf("the folder: got %q, want a.html.soif", got)
	}
	// One for what is not there yet waits.
	b := "file://" + src + "/b.html"
	r.put("manual/url/"+store.Path(b), "Title: Waited")
	r.put("manual/"+r.oid(b).String()+".soif", "Author: Eve")
	if got := r.store.Count(); got != 1 {
		t.Errorf("%d objects, want 1", got)
	}
	if err := os.WriteFile(filepath.Join(src, "b.html"), []byte("<title>B</title><p>Text."), 0o644); err != nil {
		t.Fatal(err)
	}
	r.gathered()
	if title, author := r.attr(objectName(r.oid(b)), "Title"), r.attr(objectName(r.oid(b)), "Author"); title != "Waited" || author != "Eve" {
		t.Errorf("what waited: got %q by %q, want Waited by Eve", title, author)
	}
	// And when its document is gone it waits again.
	if err := os.Remove(filepath.Join(src, "b.html")); err != nil {
		t.Fatal(err)
	}
	r.gathered()
	if _, err := r.store.Stat(r.oid(b)); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("the object of what is gone: got %v, want ErrNotExist", err)
	}
	r.rm("manual/" + oid.String() + ".soif")
	r.rm(name)
	if got := r.attr(objectName(oid), "Title"); got != "Machine" {
		t.Errorf("taken back: got %q, want Machine", got)
	}
}

// Objects without a source are made by a file that has them whole.
func TestMade(t *testing.T) {
	r, _, url, oid := page(t)
	r.put("manual/sites.soif", `# an archive, as IAFA would describe it
Template-Type: SITEINFO
URL: ftp://ftp.example.org/
Title: The example archive
Description: Everything
	and more

URL: `+url+`
Author: Made
`)
	made := r.oid("ftp://ftp.example.org/")
	if got := r.read(objectName(made)); !strings.HasPrefix(got, "@SITEINFO { ftp://ftp.example.org/\n") || r.attr(objectName(made), "Description") != "Everything\nand more" {
		t.Errorf("made: got %s", got)
	}
	if title, author := r.attr(objectName(oid), "Title"), r.attr(objectName(oid), "Author"); title != "Machine" || author != "Made" {
		t.Errorf("one that has a source: got %q by %q, want Machine by Made", title, author)
	}
	r.put("manual/"+made.String()+".soif", "Title: Better")
	if got := r.attr(objectName(made), "Title"); got != "Better" {
		t.Errorf("a made one annotated: got %q, want Better", got)
	}
	r.gathered()
	if _, err := r.store.Stat(made); err != nil {
		t.Errorf("after a visit: %v", err)
	}
	r.put("manual/sites.soif", "URL: http://other.example/\nTitle: Other\n")
	if _, err := r.store.Stat(made); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("what the file has no more: got %v, want ErrNotExist", err)
	}
	if r.attr(objectName(r.oid("http://other.example/")), "Title") != "Other" || r.attr(objectName(oid), "Author") != "" {
		t.Error("the file's new objects are not there, or its old ones are")
	}
	r.rm("manual/sites.soif")
	if n := r.store.Count(); n != 1 {
		t.Errorf("at the end: got %d objects, want the gathered one", n)
	}
}

// A broken text is refused like a config: the file as it was, err with the line.
func TestAnnotateRefused(t *testing.T) {
	r, _, _, oid := page(t)
	hand := "manual/" + oid.String() + ".soif"
	r.put(hand, "Title: Good")
	for _, c := range []struct{ name, text, err, line string }{
		{hand, "Title: A\nno colon here\n", "line 2", "no colon here"},
		{hand, "Title: A\nTitle: B\n", "line 2", "Title: B"},
		{hand, "  more\n", "line 1", "  more"},
		{hand, "Na me: x\n", "line 1", "Na me: x"},
		{hand, "Title: A\n\nTitle: B\n", "there are 2 objects", ""},
		{hand, "URL: http://other/\nTitle: B\n", "this is the file of", ""},
		{hand, "Update-Time: 7\n", "it moves by itself", ""},
		{hand, "@FILE { -\nTitle{5}:\tok\n}\n", "line 2", "Title{5}:\tok"},
		{"manual/new.soif", "Title: no url\n", "has no URL", ""},
		{"manual/new.soif", "URL: http://x/\n\nURL: http://x\n", "has the URL of object 1", ""},
	} {
		err := r.write(c.name, c.text)
		if !errors.Is(err, iofs.ErrInvalid) || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.30q: got %v, want %s", c.text, err, c.err)
		}
		if told := r.read("err"); !strings.Contains(told, c.line) || !strings.Contains(told, c.name) {
			t.Errorf("%.30q: err has %q, want %s and %q", c.text, told, c.name, c.line)
		}
		if got := r.read(c.name + ".rejected"); got != c.text {
			t.Errorf("%.30q: rejected has %q", c.text, got)
		}
	}
	if got := r.read(hand); got != "Title: Good" || r.attr(objectName(oid), "Title") != "Good" {
		t.Errorf("the text: got %q, want it as it was", got)
	}
	if _, err := r.Files().Lookup(t.Context(), "manual/new.soif"); err == nil {
		t.Error("a file that was refused is there")
	}
	if got := r.names("manual"); !strings.Contains(got, "new.soif.rejected") {
		t.Errorf("manual/: got %s, want what was rejected", got)
	}
}

// An editor's temporary file becomes the text by its new name.
func TestAnnotateEditors(t *testing.T) {
	r, _, _, oid := page(t)
	hand := oid.String() + ".soif"
	n, err := fs.Walk(t.Context(), r.Files(), "manual")
	if err != nil {
		t.Fatal(err)
	}
	dir := n.(interface {
		fs.Dir
		fs.Renamer
	})
	r.put("manual/sedA1", "Title: Sed\n")
	if err := dir.Rename(t.Context(), "sedA1", hand, true); err != nil {
		t.Fatal(err)
	}
	if got := r.attr(objectName(oid), "Title"); got != "Sed" {
		t.Errorf("renamed in place: got %q, want Sed", got)
	}
	r.put("manual/sedA2", "broken\n")
	if err := dir.Rename(t.Context(), "sedA2", hand, true); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("a broken one: got %v, want ErrInvalid", err)
	}
	if got := r.names("manual"); !strings.Contains(got, "sedA2") || strings.Contains(got, "sedA1") {
		t.Errorf("manual/: got %s, want sedA2 and not sedA1", got)
	}
	if err := dir.Rename(t.Context(), hand, hand+"~", true); err != nil {
		t.Fatal(err)
	}
	if r.read("manual/"+hand+"~") != "Title: Sed\n" || r.attr(objectName(oid), "Title") != "Machine" {
		t.Error("renamed away: its text is not there, or still in force")
	}
	mk := n.(fs.Maker)
	if _, err := mk.Mkdir(t.Context(), "x", 0o755); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("mkdir manual/x: got %v, want ErrPermission", err)
	}
	u, err := dir.Lookup(t.Context(), "url")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.(fs.Maker).Mkdir(t.Context(), "gopher", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := r.names("manual/url"); got != "gopher" {
		t.Errorf("manual/url: got %q, want gopher", got)
	}
	r.put("manual/url/gopher/x.soif", "Title: x\n")
	if err := u.(fs.Remover).Remove(t.Context(), "gopher"); err == nil {
		t.Error("a folder with a text was removed")
	}
	r.rm("manual/url/gopher/x.soif")
	r.rm("manual/url/gopher")
}

// A list of many names is whole and in order wherever it is taken up.
func TestManualList(t *testing.T) {
	r, _, _, oid := page(t)
	r.put("manual/"+oid.String()+".soif", "Title: x\n")
	want := []string{oid.String() + ".auto", oid.String() + ".soif", "url"}
	for i := range 1300 {
		o := r.oid(fmt.Sprint("http://h/", i))
		text := "Title: x\n"
		if err := r.manual.set(t.Context(), o.String()+".soif", &text); err != nil {
			t.Fatal(err)
		}
		want = append(want, o.String()+".soif")
	}
	n, err := fs.Walk(t.Context(), r.Files(), "manual")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		k := len(got)
		for e, err := range n.(fs.Dir).List(t.Context(), after) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, e.Name); len(got) == k+100 {
				break
			}
		}
		if len(got) == k {
			break
		}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d names, want %d", len(got), len(want))
	}
	for i := range got[1:] {
		if got[i] >= got[i+1] {
			t.Fatalf("%s is before %s", got[i], got[i+1])
		}
	}
}

// kill -9 at any step between manual.db and the store leaves nothing undone.
func TestManualMended(t *testing.T) {
	r, _, _, oid := page(t)
	dir := r.dir
	// The text is in manual.db, and the store has not been told.
	text := "Title: Fixed\n"
	w, err := r.manual.check(oid.String()+".soif", &text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.manual.write(&w); err != nil {
		t.Fatal(err)
	}
	if got := r.attr(objectName(oid), "Title"); got != "Machine" {
		t.Fatalf("before the crash: got %q, want Machine", got)
	}
	r.end()
	r = run(t, dir, "")
	if got := r.attr(objectName(oid), "Title"); got != "Fixed" {
		t.Errorf("after the crash: got %q, want Fixed", got)
	}
	// And the same when it was taken back.
	w, err = r.manual.check(oid.String()+".soif", nil)
	if err == nil {
		_, err = r.manual.write(&w)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.end()
	r = run(t, dir, "")
	if got := r.attr(objectName(oid), "Title"); got != "Machine" {
		t.Errorf("after the second crash: got %q, want Machine", got)
	}
	if _, err := r.manual.auto(oid); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("what the machine found is kept for nothing: %v", err)
	}
}

// What is moved out of the collection and back, merged, does not make a hand's
// words the machine's.
func TestMovedAndBack(t *testing.T) {
	r, _, url, oid := page(t)
	hand := "manual/" + oid.String() + ".soif"
	r.put(hand, "Title: Fixed\n")
	body, _, err := r.store.Get(oid)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.keep(t.Context(), []store.Change{{Op: soif.Delete, OID: oid, URL: url}}); err != nil {
		t.Fatal(err)
	}
	if err := r.keep(t.Context(), []store.Change{{Op: soif.Update, OID: oid, URL: url, Body: body}}); err != nil {
		t.Fatal(err)
	}
	r.rm(hand)
	if got := r.attr(objectName(oid), "Title"); got != "Machine" {
		t.Errorf("taken back: got %q, want Machine", got)
	}
}

func FuzzHand(f *testing.F) {
	f.Add("Title: x\n\ty\n\n# c\nURL: http://x/\n")
	f.Add("@FILE { http://x/\nTitle{1}:\tx\n}\n@FILE { -\n}\n")
	f.Add(" x\n:\n")
	f.Add("Title" + strings.Repeat("e", 300) + ": x\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := handObjects(text)
		if err != nil {
			return
		}
		for _, o := range all {
			h := hand{over: o.Attrs}
			b, err := h.merged(object("http://x/"), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := soif.Parse(b, soif.Limits{}); err != nil {
				t.Fatalf("%.500q merged is %.500q: %v", text, b, err)
			}
		}
	})
}

func object(url string) []byte {
	o := soif.Object{Type: "FILE", URL: url}
	o.Add("Title", []byte("t"))
	o.Add("Update-Time", []byte("1"))
	return o.Append(nil)
}

func (r *runner) io() iofs.FS { return fs.IO(r.t.Context(), r.Files()) }
