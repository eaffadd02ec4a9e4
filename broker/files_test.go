package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	gopath "path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/gather/store"
)

// walk finds a node below a directory.
func walk(t testing.TB, d fs.Dir, path string) fs.Node {
	t.Helper()
	n, err := fs.Walk(ctx, d, path)
	must(t, err)
	return n
}

func read(t testing.TB, d fs.Dir, path string) string {
	t.Helper()
	b, err := iofs.ReadFile(fs.IO(ctx, d), path)
	must(t, err)
	return string(b)
}

func list(t testing.TB, d fs.Dir, path string) []string {
	t.Helper()
	var out []string
	for e, err := range walk(t, d, path).(fs.Dir).List(ctx, "") {
		must(t, err)
		out = append(out, e.Name)
	}
	return out
}

// write does what a shell's > does.
func write(d fs.Dir, path, text string) error {
	n, err := fs.Walk(ctx, d, path)
	if err != nil {
		return err
	}
	h, err := fs.OpenNode(ctx, n.(fs.File), fs.Write|fs.Trunc)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.WriteAt(ctx, []byte(text), 0); err != nil {
		return err
	}
	return h.Flush(ctx)
}

// refuses checks that a write fails with want, and that err beside it says so.
func refuses(t *testing.T, b fs.Dir, path, text, want string) {
	t.Helper()
	err := write(b, path, text)
	if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, iofs.ErrInvalid) && !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("%s: %q: got %v, want %s", path, text, err, want)
	}
	if got := read(t, b, gopath.Join(gopath.Dir(path), "err")); !strings.Contains(got, want) {
		t.Errorf("%s: %q: got err %q, want %s", path, text, got, want)
	}
}

// someBroker has four objects: fuse in the title of 1, once in the text of 2,
// not in 3, and in 4 beside a lot else.
func someBroker(t testing.TB) (*Broker, *store.Store) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	apply(t, g,
		update(object("http://a/1", "The fuse\tmanual", "mount\na fuse tree\nhere")),
		update(object("http://a/2", "Two", "one fuse")),
		update(object("http://a/3", "Three", "nothing")),
		update(object("http://a/4", "Four", "one fuse among "+strings.Repeat("many words ", 50))))
	b := w.broker(t.TempDir(), "source path=gather/web every=10m\n")
	must(t, b.Collect(ctx, "gather/web"))
	return b, g
}

func TestSession(t *testing.T) {
	b, _ := someBroker(t)
	d := b.Files()
	clone := walk(t, d, "query/clone").(fs.File)
	h, err := fs.OpenNode(ctx, clone, fs.Read|fs.Write)
	must(t, err)
	buf := make([]byte, 20)
	n, _ := h.ReadAt(ctx, buf, 0)
	name := strings.TrimSpace(string(buf[:n]))
	if name != "1" || !slices.Equal(list(t, d, "query"), []string{"1", "clone"}) {
		t.Fatalf("got session %q and query/ %v, want 1 beside clone", name, list(t, d, "query"))
	}
	if got, want := h.(fs.Mover).Node().Stat().Path, walk(t, d, "query/1/ctl").Stat().Path; got != want {
		t.Errorf("the open clone has path %#x, want that of 1/ctl, %#x", got, want)
	}
	if got := read(t, d, "query/1/hits"); got != "" {
		t.Errorf("before a query: got hits %q, want none", got)
	}
	_, err = h.WriteAt(ctx, []byte("query fuse\n"), 0)
	must(t, err)
	hits := strings.Split(strings.TrimSuffix(read(t, d, "query/1/hits"), "\n"), "\n")
	if len(hits) != 3 {
		t.Fatalf("got hits %q, want 3", hits)
	}
	f := strings.Split(hits[0], "\t")
	if len(f) != 6 || f[0] != "1" || f[2] != oid("http://a/1").String() || f[3] != "text" || f[4] != "http://a/1" || f[5] != "The fuse manual" {
		t.Errorf("got first hit %q, want rank, score, OID, type, URL, title of http://a/1", f)
	}
	if !strings.HasSuffix(hits[2], "\tFour") {
		t.Errorf("got last hit %q, want the longest text", hits[2])
	}
	if got := list(t, d, "query/1/results"); !slices.Equal(got, []string{"001.soif", "002.soif", "003.soif"}) {
		t.Errorf("got results %v", got)
	}
	id := oid("http://a/1").String()
	object, result := "objects/"+id[:2]+"/"+id+".soif", "query/1/results/001.soif"
	if got, want := read(t, d, result), read(t, d, object); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := walk(t, d, result).Stat(), walk(t, d, object).Stat(); got.Path == want.Path || got.Size != want.Size || got.Kind != fs.Made {
		t.Errorf("got %+v for the result, want another file than %+v of the same size, which nobody keeps", got, want)
	}
	if got, want := walk(t, d, "q/title : fuse/001.soif").Stat(), walk(t, d, object).Stat(); got != want {
		t.Errorf("got %+v in q, want %+v: the same file", got, want)
	}
	must(t, h.Close())
	if got := list(t, d, "query"); !slices.Equal(got, []string{"clone"}) {
		t.Errorf("after the close: got query/ %v, want clone alone", got)
	}
	if _, err := fs.Walk(ctx, d, "query/1"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, iofs.ErrNotExist)
	}
	h, err = fs.OpenNode(ctx, clone, fs.Read)
	must(t, err)
	defer h.Close()
	if got := list(t, d, "query"); !slices.Equal(got, []string{"2", "clone"}) {
		t.Errorf("got query/ %v, want another number", got)
	}
}

// The session lives as long as anybody has its ctl open.
func TestSessionLastClose(t *testing.T) {
	b, _ := someBroker(t)
	d := b.Files()
	h1, err := fs.OpenNode(ctx, walk(t, d, "query/clone").(fs.File), fs.Read|fs.Write)
	must(t, err)
	h2, err := fs.OpenNode(ctx, walk(t, d, "query/1/ctl").(fs.File), fs.Write)
	must(t, err)
	must(t, h1.Close())
	_, err = h2.WriteAt(ctx, []byte("query fuse"), 0)
	must(t, err)
	hits, err := fs.OpenNode(ctx, walk(t, d, "query/1/hits").(fs.File), fs.Read)
	must(t, err)
	must(t, h2.Close())
	if got := list(t, d, "query"); !slices.Equal(got, []string{"clone"}) {
		t.Errorf("got query/ %v, want clone alone", got)
	}
	buf := make([]byte, 1000)
	if n, err := hits.ReadAt(ctx, buf, 0); n == 0 || err != nil && err != io.EOF {
		t.Errorf("open hits after the session's end: got %d bytes, %v, want them readable", n, err)
	}
	must(t, hits.Close())
}

func TestNamedSession(t *testing.T) {
	b, g := someBroker(t)
	d := b.Files()
	q := walk(t, d, "query").(fs.Dir)
	_, err := q.(fs.Maker).Mkdir(ctx, "x", 0o777)
	must(t, err)
	for name, want := range map[string]error{"x": iofs.ErrExist, "clone": iofs.ErrExist, "12": iofs.ErrInvalid, ".x": iofs.ErrInvalid, "a b": iofs.ErrInvalid} {
		if _, err := q.(fs.Maker).Mkdir(ctx, name, 0o777); !errors.Is(err, want) {
			t.Errorf("mkdir %q: got %v, want %v", name, err, want)
		}
	}
	must(t, write(d, "query/x/ctl", "query title : fuse or two\nset limit=1 fields=md5,gatherer-name\n"))
	if got := read(t, d, "query/x/status"); !strings.Contains(got, "query='title : fuse or two'\nhits=2\nfirst=1\nlast=1\nrank=score\n") ||
		!strings.Contains(got, "limit=1\npage=1\npages=2\nfields=md5,gatherer-name\n") {
		t.Errorf("got status %s", got)
	}
	if got := read(t, d, "query/x/hits"); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\t\tweb\n") {
		t.Errorf("got hits %q, want one with its fields", got)
	}
	must(t, write(d, "query/x/ctl", "page 2\n"))
	if got := list(t, d, "query/x/results"); !slices.Equal(got, []string{"002.soif"}) {
		t.Errorf("page 2: got results %v, want 002.soif", got)
	}
	must(t, write(d, "query/x/ctl", "set rank=url limit=0"))
	if got := read(t, d, "query/x/hits"); strings.Index(got, "http://a/1") > strings.Index(got, "http://a/2") {
		t.Errorf("rank=url: got hits %q", got)
	}
	if got := read(t, d, "query/x/ctl"); got != "x\n" {
		t.Errorf("got ctl %q, want x", got)
	}
	for _, tt := range []struct{ text, want string }{
		{"query title : \n", "query: column 8: the end where the value of attribute 'title' should be"},
		{"page 7", "page 7: there are 1"},
		{"set rank=", "set rank=: not score, vector, url, updated or an attribute"},
		{"set limit=-1", "set limit=-1: not a number from 0 (all)"},
		{"set case=perhaps", "set case=perhaps: neither yes nor no"},
		{"set errors=9", "set errors=9: not a number from 0 to 8"},
		{"set stem=klingon", "set stem=klingon: neither no nor one of arabic danish"},
		{"set costs=1,2", "set costs=1,2: not four numbers from 1 to 9"},
		{"set costs=1,2,0,1", "set costs=1,2,0,1: not four numbers from 1 to 9"},
		{"set feedback=101", "set feedback=101: not a number from 0 (none) to 100"},
		{"set limit=1 mistakes=1", "set mistakes: unknown; there are rank, limit, errors, costs, feedback, case, word, stem, dups, near, external and fields"},
		{"quarry x", "unknown control message: quarry"},
	} {
		refuses(t, d, "query/x/ctl", tt.text, tt.want)
	}

	// The answer is a snapshot; what is deleted leaves it, numbers stay.
	must(t, b.delete(ctx, []string{oid("http://a/1").String()}))
	if got := list(t, d, "query/x/results"); !slices.Equal(got, []string{"002.soif"}) {
		t.Errorf("after a delete: got results %v, want 002.soif", got)
	}
	apply(t, g, update(object("http://a/5", "two fuse", "")))
	must(t, b.Collect(ctx, "gather/web"))
	if got := read(t, d, "query/x/hits"); strings.Contains(got, "http://a/5") {
		t.Errorf("got hits %q, want those of the query", got)
	}
	folder := walk(t, d, "query/x/results").(fs.Dir)
	must(t, write(d, "query/x/ctl", "query title : fuse or two\n"))
	if _, err := folder.Lookup(ctx, "001.soif"); err != nil || folder.Stat().Path != walk(t, d, "query/x/results").Stat().Path ||
		folder.Stat().Vers == walk(t, d, "query/x/results").Stat().Vers {
		t.Errorf("got %v, want the folder to be the same, of another version, and to show the new answer", err)
	}
	if got := read(t, d, "query/x/hits"); !strings.Contains(got, "http://a/5") {
		t.Errorf("got hits %q, want a new one", got)
	}

	other := fs.WithUser(ctx, &fs.User{Name: "glenda"})
	if err := q.(fs.Remover).Remove(other, "x"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("rmdir by another user: got %v, want %v", err, iofs.ErrPermission)
	}
	must(t, q.(fs.Remover).Remove(ctx, "x"))
	if err := q.(fs.Remover).Remove(ctx, "x"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, iofs.ErrNotExist)
	}
}

// Sessions with names survive a restart, with their settings; their queries
// are asked again. A line that is damaged costs that session only.
func TestNamedSessionStays(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	apply(t, g, update(object("http://a/1", "fuse", "")), update(object("http://a/2", "fuse", "")), update(object("http://a/3", "fuse", "")))
	dir := t.TempDir()
	b := w.broker(dir, "source path=g\n")
	must(t, b.Collect(ctx, "g"))
	for _, name := range []string{"x", "y", "z"} {
		_, err := walk(t, b.Files(), "query").(fs.Maker).Mkdir(ctx, name, 0o777)
		must(t, err)
	}
	must(t, write(b.Files(), "query/y/ctl", "set errors=2 costs=1,2,3,4 feedback=5 case=yes word=no stem=german limit=7 rank=-size\n"))
	must(t, write(b.Files(), "query/x/ctl", "set rank=url limit=2 fields=md5\nquery title : fuse\npage 2\n"))
	must(t, walk(t, b.Files(), "query").(fs.Remover).Remove(ctx, "z"))
	h, err := fs.OpenNode(ctx, walk(t, b.Files(), "query/clone").(fs.File), fs.Read)
	must(t, err)
	want := read(t, b.Files(), "query/x/hits")
	must(t, h.Close())
	must(t, b.Close())

	b = w.broker(dir, "")
	if got := list(t, b.Files(), "query"); !slices.Equal(got, []string{"clone", "x", "y"}) {
		t.Errorf("got query/ %v, want x and y beside clone", got)
	}
	if got := read(t, b.Files(), "query/x/hits"); got != want || !strings.HasPrefix(got, "3\t") {
		t.Errorf("got hits %q, want %q", got, want)
	}
	if got := read(t, b.Files(), "query/x/status"); !strings.Contains(got, "limit=2\npage=2\npages=2\nfields=md5\n") {
		t.Errorf("got status %s", got)
	}
	if got := read(t, b.Files(), "query/y/status"); !strings.Contains(got, "rank=-size\nerrors=2\ncosts=1,2,3,4\nfeedback=5\ncase=yes\nword=no\nstem=german\nlimit=7\n") {
		t.Errorf("got status %s", got)
	}
	must(t, b.Close())
	text, err := os.ReadFile(dir + "/queries")
	must(t, err)
	must(t, os.WriteFile(dir+"/queries", []byte("name=x query='('\nname='\n"+string(text)), 0o666))
	b = w.broker(dir, "")
	if got := list(t, b.Files(), "query"); !slices.Equal(got, []string{"clone", "x", "y"}) {
		t.Errorf("got query/ %v, want x and y in spite of the damage before them", got)
	}
}

// What one session refuses is in its err and no other.
func TestSessionErr(t *testing.T) {
	b, _ := someBroker(t)
	d := b.Files()
	for _, name := range []string{"x", "y"} {
		_, err := walk(t, d, "query").(fs.Maker).Mkdir(ctx, name, 0o777)
		must(t, err)
	}
	refuses(t, d, "query/x/ctl", "set limit=x", "set limit=x: not a number")
	refuses(t, d, "query/y/ctl", "query (", "query: column 2")
	const want = "ctl: set limit=x: not a number from 0 (all)\n\tset limit=x\n"
	if got := read(t, d, "query/x/err"); got != want {
		t.Errorf("after y's refusal: got query/x/err %q, want %q", got, want)
	}
	if got := read(t, d, "err"); got != "" {
		t.Errorf("got err %q, want nothing of sessions", got)
	}
	must(t, write(d, "query/x/ctl", "set limit=1"))
	if got := read(t, d, "query/x/err") + read(t, d, "query/x/hits"); got != "" {
		t.Errorf("after a good line: got query/x/err %q, want nothing", got)
	}
	if _, err := fs.Walk(ctx, d, "q/title : "); err == nil || !strings.Contains(read(t, d, "err"), "q: column") {
		t.Errorf("a bad name in q: got %v and err %q, want that err says so", err, read(t, d, "err"))
	}
}

func TestSummaryWhyPlan(t *testing.T) {
	b, _ := someBroker(t)
	d := b.Files()
	_, err := walk(t, d, "query").(fs.Maker).Mkdir(ctx, "x", 0o777)
	must(t, err)
	must(t, write(d, "query/x/ctl", "query fuse and mount"))
	want := "\thttp://a/1\tThe fuse manual\n\tTitle\tThe fuse manual\n\tFull-Text\tmount\n\tFull-Text\ta fuse tree\n"
	if got := read(t, d, "query/x/summary"); !strings.HasSuffix(got, want) {
		t.Errorf("got summary %q, want %q at its end", got, want)
	}
	why := read(t, d, "query/x/why")
	for _, want := range []string{
		oid("http://a/1").String() + "\n",
		"\tquery=fuse count=1 attribute=title weight=6\n", "\tquery=fuse count=1 attribute=full-text weight=1\n",
		"\tquery=fuse count=2 objects=3 score=", "\tquery=mount count=1 objects=1 score=",
	} {
		if !strings.Contains(why, want) {
			t.Errorf("got why %q, want %q in it", why, want)
		}
	}
	if got := read(t, d, "query/x/plan"); !strings.HasPrefix(got, "fuse and mount\nfuse: documents 3\n") {
		t.Errorf("got plan %q", got)
	}
	// Other weights count from the next query on.
	must(t, write(d, "config", "weight title=50\n"))
	if got := read(t, d, "query/x/why"); !strings.Contains(got, "attribute=title weight=50\n") {
		t.Errorf("got why %q, want the new weight", got)
	}
}

// suggest has words like those that no object has, and nothing of the others.
func TestSuggest(t *testing.T) {
	for _, engine := range []string{"ranked", "block"} {
		b, _ := someBroker(t)
		d := b.Files()
		must(t, write(d, "config", "source path=gather/web\nindex engine="+engine+"\n"))
		must(t, b.catchUp(ctx))
		_, err := walk(t, d, "query").(fs.Maker).Mkdir(ctx, "x", 0o777)
		must(t, err)
		if got := read(t, d, "query/x/suggest"); got != "" {
			t.Errorf("%s: before a query: got %q, want nothing", engine, got)
		}
		for _, tt := range []struct{ set, text, want string }{
			{"", "fuse among words", ""},
			{"", "Fuse or MOUNT", ""},
			{"", "title : nothing", ""}, // in another attribute
			{"", "manuel", "manuel\tmanual\t1\t1\n"},
			{"", "Fsue fsue mount", "Fsue\tfuse\t1\t3\nFsue\tfour\t2\t1\n"},
			{"", "title : (manuel or mount) and (fsue near/3 tree)", "manuel\tmanual\t1\t1\nfsue\tfuse\t1\t3\nfsue\tfour\t2\t1\n"},
			{"", "fuse not manuel", ""},
			{"", `"manuel fsue" or fsu* or fsue~1`, ""},
			{"", "x", ""}, // one error leaves nothing of it
			{"", "zzzzzzzzzz", ""},
			{"", strings.Repeat("manual", 1300), ""},
			{"set errors=1", "manuel", ""}, // it finds manual
			{"set errors=0 word=no", "manua", ""},
			{"set word=yes case=yes", "TWO", ""},
			{"set rank=updated", "FSUE", "FSUE\tfuse\t1\t3\nFSUE\tfour\t2\t1\n"},
		} {
			if tt.set != "" {
				must(t, write(d, "query/x/ctl", tt.set+"\n"))
			}
			must(t, write(d, "query/x/ctl", "query "+tt.text+"\n"))
			if got := read(t, d, "query/x/suggest"); got != tt.want {
				t.Errorf("%s: %s %s: got suggest %q, want %q", engine, tt.set, tt.text, got, tt.want)
			}
			if tt.set == "" && len(tt.text) < maxName {
				if got := read(t, d, "q/"+escape(tt.text)+"/suggest"); got != tt.want {
					t.Errorf("%s: q/%s: got suggest %q, want %q", engine, tt.text, got, tt.want)
				}
			}
		}
	}
}

// Of many words that are near, the nearest are suggested, then the most
// frequent.
func TestSuggestFew(t *testing.T) {
	b, g := someBroker(t)
	apply(t, g,
		update(object("http://a/5", "", "kernal kernel kernol kernul kernil kernpl karnxl")),
		update(object("http://a/6", "", "kernul kernel")),
		update(object("http://a/7", "", "kernul")))
	must(t, b.Collect(ctx, "gather/web"))
	want := "kernxl\tkernul\t1\t3\nkernxl\tkernel\t1\t2\nkernxl\tkarnxl\t1\t1\nkernxl\tkernal\t1\t1\nkernxl\tkernil\t1\t1\n"
	if got := read(t, b.Files(), "q/kernxl/suggest"); got != want {
		t.Errorf("got suggest %q, want %q", got, want)
	}
}

func TestNamedByQuery(t *testing.T) {
	b, _ := someBroker(t)
	d := b.Files()
	if got := list(t, d, "q"); got != nil {
		t.Errorf("got q/ %v, want nothing", got)
	}
	const q = "q/title : fuse"
	if got := list(t, d, q); !slices.Equal(got, []string{"001.soif", "dups", "hits", "plan", "refine", "results.html", "routed", "shortcuts", "since", "soif", "status", "suggest", "summary", "why"}) {
		t.Errorf("got %v", got)
	}
	if got := read(t, d, q+"/hits"); !strings.Contains(got, "http://a/1\tThe fuse manual\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("got hits %q", got)
	}
	if read(t, d, q+"/soif") != read(t, d, q+"/001.soif") || !strings.HasPrefix(read(t, d, q+"/soif"), "@FILE { http://a/1\n") {
		t.Errorf("got soif %q, want the one result", read(t, d, q+"/soif"))
	}
	if asked := b.queries.tally.asked; asked != 1 {
		t.Errorf("got %d searches, want one for all the files", asked)
	}
	long := "q/" + strings.Repeat("x", 256)
	if _, err := fs.Walk(ctx, d, long); !errors.Is(err, syscall.ENAMETOOLONG) || !strings.HasPrefix(read(t, d, "err"), "q: name of 256 bytes") {
		t.Errorf("got %v and err %q, want %v and err to say so", err, read(t, d, "err"), syscall.ENAMETOOLONG)
	}
	if _, err := fs.Walk(ctx, d, "q/"+strings.Repeat("fuse or ", 1200)); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("got %v, want %v", err, syscall.ENAMETOOLONG)
	}
	walk(t, d, long[:len(long)-1])
	walk(t, d, q)
	if got := list(t, d, "q"); len(got) != 2 || read(t, d, "err") != "" {
		t.Errorf("got q/ %q, want the longest name there may be, and nothing in err, got %q", got, read(t, d, "err"))
	}
	// Other names of the same query are the same directory.
	for _, name := range []string{"q/TITLE:fuse", "q/ title : fuse ", "q/title%20%3A fuse", "q/(title : fuse)"} {
		if got, want := walk(t, d, name).Stat().Path, walk(t, d, q).Stat().Path; got != want {
			t.Errorf("%s: got path %#x, want %#x", name, got, want)
		}
	}
	walk(t, d, "q/net%2Fhttp or 100%")
	if got := list(t, d, "q"); !slices.Equal(got, []string{"net%2Fhttp or 100%25", "title : fuse", long[len("q/") : len(long)-1]}) {
		t.Errorf("got q/ %q", got)
	}
	for name, want := range map[string]error{"q/title : ": iofs.ErrInvalid, "q/.git": iofs.ErrNotExist, "q/a\x00": iofs.ErrNotExist, q + "/002.soif": iofs.ErrNotExist, q + "/1.soif": iofs.ErrNotExist, q + "/+01.soif": iofs.ErrNotExist} {
		if _, err := fs.Walk(ctx, d, name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

func TestRecentAreBounded(t *testing.T) {
	b, g := someBroker(t)
	d := b.Files()
	for i := range recentQueries + 5 {
		walk(t, d, fmt.Sprintf("q/fuse%d", i))
	}
	walk(t, d, "q/fuse10") // again, so it is recent
	for i := range recentQueries - 1 {
		walk(t, d, fmt.Sprintf("q/mount%d", i))
	}
	got := list(t, d, "q")
	if len(got) != recentQueries || got[0] != "fuse10" {
		t.Errorf("got %d names %v, want %d with fuse10 among them", len(got), got, recentQueries)
	}
	vers := walk(t, d, "q").Stat().Vers
	apply(t, g, update(object("http://a/9", "mount1", "")))
	must(t, b.Collect(ctx, "gather/web"))
	if got := list(t, d, "q"); len(got) != recentQueries || walk(t, d, "q").Stat().Vers != vers {
		t.Errorf("listing changed q: got %v", got)
	}
	if got := list(t, d, "q/mount1"); got[0] != "001.soif" {
		t.Errorf("got %v, want the new object", got)
	}
}

// More results than three digits count, listed from a cursor.
func TestWideResults(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	var changes []store.Change
	for i := range 1234 {
		changes = append(changes, update(object(fmt.Sprintf("http://a/%d", i), "wide", "")))
	}
	apply(t, g, changes...)
	b := w.broker(t.TempDir(), "source path=g\n")
	must(t, b.Collect(ctx, "g"))
	d := walk(t, b.Files(), "q/wide").(fs.Dir)
	n := 0
	for e, err := range d.List(ctx, "1229.soif") {
		must(t, err)
		if n++; n <= 5 && e.Name != fmt.Sprintf("%04d.soif", 1229+n) {
			t.Errorf("got %s", e.Name)
		}
	}
	if n != 5+13 {
		t.Errorf("got %d names after 1229.soif, want 5 objects and 13 files", n)
	}
	if _, err := d.Lookup(ctx, "001.soif"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want %v: names have four digits", err, iofs.ErrNotExist)
	}
}

func TestAttributes(t *testing.T) {
	b, _ := someBroker(t)
	got := read(t, b.Files(), "attributes")
	for _, want := range []string{"title\t4\t4\ttext\thash\n", "type\t4\t1\ttext\thash\n", "url\t4\t4\ttext\thash\n", "update-time\t4\t1\tdate\trange\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got attributes %q, want %q", got, want)
		}
	}
}

func TestBaseName(t *testing.T) {
	for name, want := range map[string]string{
		"Author": "Author", "Author-2": "Author", "Embed3-Author-12": "Author", "Embed1-Embed2-Title": "Title",
		"Update-Time": "Update-Time", "Embed-Title": "Embed-Title", "Embed3": "Embed3", "X-": "X-", "-1": "-1", "embed7-x": "x",
	} {
		if got := baseName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestCtl(t *testing.T) {
	b, _ := someBroker(t)
	d := b.Files()
	if got := read(t, d, "ctl"); !strings.HasPrefix(got, "collect [SOURCE]\ngc\ncheck\nmerge\nreindex\ndelete OID...\nrestart [SOURCE]\nstop\nstart\n") {
		t.Errorf("got ctl %q", got)
	}
	refuses(t, d, "ctl", "collect gather/x", "source gather/x: file does not exist")
	refuses(t, d, "ctl", "restart gather/x", "source gather/x: file does not exist")
	refuses(t, d, "ctl", "delete xyz", "object name")
	refuses(t, d, "ctl", "collect\ncolect\n", "unknown control message: colect")
	if !strings.HasPrefix(read(t, d, "status"), "state=running\nobjects=4\nindexed=4\n") {
		t.Errorf("got status %s, want one that is asked to collect", read(t, d, "status"))
	}
	refuses(t, d, "config", "source path=x evry=1m\n", "line 1, column 15: source: unknown or repeated key 'evry'")
	if got := read(t, d, "config"); got != "source path=gather/web every=10m\n" {
		t.Errorf("got config %q, want what was there", got)
	}
	must(t, write(d, "ctl", "delete "+oid("http://a/1").String()))
	finds(t, b, "title : fuse")
	id := oid("http://a/2").String()
	if r, ok := walk(t, d, "objects/"+id[:2]).(fs.Remover); ok { // rm of an object
		must(t, r.Remove(ctx, id+".soif"))
		must(t, b.catchUp(ctx))
		finds(t, b, "two")
	}
	if !strings.Contains(read(t, d, "stats"), `harvest_broker_objects{broker="b"} `) {
		t.Errorf("got stats %s", read(t, d, "stats"))
	}
}

// All Brokers run, one made meanwhile too: its config makes it collect.
func TestBrokers(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	apply(t, g, update(object("http://a/1", "one fuse", "")))
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/.removed-old", 0o777))
	all, err := OpenAll(dir, testLog(t), Options{Open: w.open, Bus: new(fs.Bus)})
	must(t, err)
	run, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- all.Run(run) }()
	d := all.Files()
	_, err = d.(fs.Maker).Mkdir(ctx, "papers", 0o777)
	must(t, err)
	if _, err := d.(fs.Maker).Mkdir(ctx, "papers", 0o777); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("got %v, want %v", err, iofs.ErrExist)
	}
	await(t, d, "papers/events.wait", func() error { return write(d, "papers/config", "source path=gather/web every=1h\n") }, func() bool {
		return strings.Contains(read(t, d, "papers/events"), "event=collected")
	})
	apply(t, g, update(object("http://a/2", "two fuse", "")))
	await(t, d, "papers/events.wait", func() error { return write(d, "papers/ctl", "collect") }, func() bool {
		return strings.Count(read(t, d, "papers/events"), "event=collected") == 2
	})
	if got := list(t, d, "papers/q/fuse"); !slices.Contains(got, "002.soif") { // the index follows by itself
		t.Errorf("got %v, want two results", got)
	}
	if err := d.(fs.Remover).Remove(ctx, "papers"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("got %v, want %v", err, syscall.ENOTEMPTY)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	must(t, all.Close())

	all, err = OpenAll(dir, testLog(t), Options{Open: w.open})
	must(t, err)
	defer all.Close()
	d = all.Files()
	if got := list(t, d, "papers/q/fuse"); !slices.Contains(got, "002.soif") {
		t.Errorf("opened again: got %v, want two results", got)
	}
	must(t, write(d, "papers/ctl", "stop"))
	must(t, d.(fs.Remover).Remove(ctx, "papers"))
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("after rmdir: got %v, want nothing left", files)
	}
}

// A Broker that cannot be opened stops no other, and is not lost.
func TestBrokenBroker(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	all, err := OpenAll(dir, testLog(t), Options{Open: w.open})
	must(t, err)
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err := all.Files().(fs.Maker).Mkdir(ctx, name, 0o777)
		must(t, err)
	}
	must(t, all.Close())
	mended, err := os.ReadFile(dir + "/b/registry.db")
	must(t, err)
	must(t, os.WriteFile(dir+"/b/registry.db", []byte(strings.Repeat("not a registry", 1000)), 0o666))
	must(t, os.WriteFile(dir+"/c/config", []byte("sauce path=g\n"), 0o666))

	all, err = OpenAll(dir, testLog(t), Options{Open: w.open})
	must(t, err)
	d := all.Files()
	if got := list(t, d, ""); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("got %v, want all four", got)
	}
	for _, name := range []string{"a", "d"} {
		must(t, write(d, name+"/config", "ttl=1h\n"))
	}
	for name, want := range map[string]string{"b": "open: broker b: registry: ", "c": "open: broker c: config: line 1, column 1: unknown key 'sauce'"} {
		if got := read(t, d, name+"/err"); !strings.HasPrefix(got, want) {
			t.Errorf("got %s/err %q, want %q", name, got, want)
		}
		if got := read(t, d, name+"/status"); !strings.HasPrefix(got, "state=failing\nerr=") {
			t.Errorf("got %s/status %q, want that it failed", name, got)
		}
		if _, err := d.(fs.Maker).Mkdir(ctx, name, 0o777); !errors.Is(err, iofs.ErrExist) {
			t.Errorf("mkdir %s: got %v, want %v", name, err, iofs.ErrExist)
		}
		if err := d.(fs.Remover).Remove(ctx, name); !errors.Is(err, syscall.ENOTEMPTY) {
			t.Errorf("rmdir %s: got %v, want %v", name, err, syscall.ENOTEMPTY)
		}
	}
	fstest.Dir(t, walk(t, d, "b").(fs.Dir), fstest.Options{})
	must(t, all.Close())

	must(t, os.WriteFile(dir+"/b/registry.db", mended, 0o666))
	all, err = OpenAll(dir, testLog(t), Options{Open: w.open})
	must(t, err)
	defer all.Close()
	must(t, write(all.Files(), "b/config", "ttl=1h\n"))
}

// await does something and waits, a batch of events at a time, until it is so.
func await(t *testing.T, d fs.Dir, path string, do func() error, so func() bool) {
	t.Helper()
	for first := true; first || !so(); first = false {
		h, err := fs.OpenNode(ctx, walk(t, d, path).(fs.File), fs.Read)
		must(t, err)
		if first {
			must(t, do())
		}
		if so() {
			must(t, h.Close())
			return
		}
		if _, err := h.ReadAt(ctx, make([]byte, 4096), 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		must(t, h.Close())
	}
}

// Whoever reads from a Broker while it is removed gets errors, no worse.
func TestRemoveWhileRead(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	for i := range 50 {
		apply(t, g, update(object(fmt.Sprintf("http://a/d/%d", i), "fuse", "text")))
	}
	for range 2 {
		all, err := OpenAll(t.TempDir(), testLog(t), Options{Open: w.open})
		must(t, err)
		d := all.Files()
		_, err = d.(fs.Maker).Mkdir(ctx, "b", 0o777)
		must(t, err)
		must(t, write(d, "b/config", "source path=g\n"))
		b, err := all.Get("b")
		must(t, err)
		must(t, b.Collect(ctx, "g"))
		must(t, write(d, "b/ctl", "stop"))
		var wg sync.WaitGroup
		begun := make(chan struct{}, 4)
		for i := range 4 {
			wg.Go(func() {
				tree := fs.IO(ctx, b.Files())
				for n := 0; ; n++ {
					paths := []string{fmt.Sprintf("q/text or x%d/hits", n), "q/fuse/summary", "q/not zzz/why", "soif", "status", "attributes", "since/0", "digest"}
					_, err := iofs.ReadFile(tree, paths[(i+n)%len(paths)])
					iofs.ReadDir(tree, "url/http/a/d")
					if n == 5 {
						begun <- struct{}{}
					}
					if err != nil && n > 5 {
						return
					}
				}
			})
		}
		for range 4 {
			<-begun
		}
		must(t, d.(fs.Remover).Remove(ctx, "b"))
		wg.Wait()
		must(t, all.Close())
	}
}

// While one Broker is removed, the others are there, and its name is not free.
func TestRemoveHoldsNobody(t *testing.T) {
	reads, ended, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	all, err := OpenAll(t.TempDir(), testLog(t), Options{Open: func(ctx context.Context, _ string) (iofs.FS, io.Closer, error) {
		close(reads)
		<-ctx.Done()
		close(ended)
		<-release // a source that is slow to let go
		return nil, nil, ctx.Err()
	}})
	must(t, err)
	run, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { all.Run(run) })
	d := all.Files()
	for _, name := range []string{"a", "b"} {
		_, err := d.(fs.Maker).Mkdir(ctx, name, 0o777)
		must(t, err)
	}
	must(t, write(d, "a/ctl", "stop"))
	must(t, write(d, "a/config", "source path=g\n"))
	must(t, write(d, "a/ctl", "collect"))
	<-reads
	gone := make(chan error, 1)
	go func() { gone <- d.(fs.Remover).Remove(ctx, "a") }()
	<-ended
	looked := make(chan struct{})
	wg.Go(func() {
		defer close(looked)
		if _, err := d.Lookup(ctx, "b"); err != nil {
			t.Errorf("b: got %v, want it there", err)
		}
		if _, err := d.Lookup(ctx, "a"); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("a: got %v, want %v", err, iofs.ErrNotExist)
		}
		if _, err := d.(fs.Maker).Mkdir(ctx, "a", 0o777); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("mkdir a: got %v, want %v", err, syscall.EBUSY)
		}
		if err := d.(fs.Remover).Remove(ctx, "a"); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("rmdir again: got %v, want %v", err, iofs.ErrNotExist)
		}
	})
	select {
	case <-looked:
	case <-time.After(5 * time.Second):
		t.Error("look-ups hang while a Broker is removed")
	}
	close(release)
	<-looked
	must(t, <-gone)
	_, err = d.(fs.Maker).Mkdir(ctx, "a", 0o777)
	must(t, err)
	if got := read(t, d, "a/config"); got != "" {
		t.Errorf("made anew: got config %q, want none", got)
	}
	cancel()
	wg.Wait()
	must(t, all.Close())
}

func TestTreeSuite(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	for i := range 20 {
		apply(t, g, update(object(fmt.Sprintf("http://a/d/%d", i), "fuse", "text")))
	}
	all, err := OpenAll(t.TempDir(), testLog(t), Options{Open: w.open})
	must(t, err)
	defer all.Close()
	d := all.Files()
	_, err = d.(fs.Maker).Mkdir(ctx, "b", 0o777)
	must(t, err)
	must(t, write(d, "b/config", "source path=gather/web\n"))
	b, err := all.Get("b")
	must(t, err)
	must(t, b.Collect(ctx, "gather/web"))
	_, err = walk(t, d, "b/query").(fs.Maker).Mkdir(ctx, "x", 0o777)
	must(t, err)
	must(t, write(d, "b/query/x/ctl", "query fuse"))
	// Any name in q is a query, so q itself is not as the suite expects.
	fstest.Dir(t, d, fstest.Options{
		Hidden: []string{"b/events.live", "b/events.wait", "b/log.live", "b/log.wait"},
		Skip:   []string{"b/q"}, Create: []string{"b"}, Mkdir: []string{"", "b/query"},
	})
	t.Run("q", func(t *testing.T) { fstest.Dir(t, walk(t, d, "b/q/fuse").(fs.Dir), fstest.Options{}) })
}
