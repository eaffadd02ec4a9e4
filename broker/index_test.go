package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

// full opens a Broker that has n objects, each with the word common.
func full(t *testing.T, dir, config string, n int) (b *Broker, want map[string]*soif.Object) {
	t.Helper()
	w := newWorld(t)
	g := w.gatherer("g")
	want = make(map[string]*soif.Object)
	var changes []store.Change
	for i := range n {
		o := object(fmt.Sprintf("http://a/%04d", i), fmt.Sprintf("number %d", i), fmt.Sprintf("common word%d half%d", i, i%2))
		want[o.URL] = o
		changes = append(changes, update(o))
	}
	apply(t, g, changes...)
	b = w.broker(dir, "source path=g\n"+config)
	must(t, b.Collect(ctx, "g"))
	return b, want
}

func indexes(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(dir, "index"))
	must(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// A config that asks for other files has the index made anew, while every
// query is answered, by the old index or by the new.
func TestOtherIndex(t *testing.T) {
	dir := t.TempDir()
	b, want := full(t, dir, "", 600)
	was := b.index.number
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				if a, err := b.answer(ctx, query.Word{Text: "common"}, plain(), 1); err != nil || a.total != 600 {
					t.Errorf("got %+v, %v, want 600 hits", a, err)
					return
				}
				select {
				case <-done:
					if n > 0 {
						return
					}
				default:
				}
			}
		})
	}
	must(t, b.setConfig(ctx, "source path=g\nindex positions=no\n"))
	if got := b.status(); !strings.Contains(got, "\nstate=running") && !strings.HasPrefix(got, "state=running") ||
		!strings.Contains(got, "\nindex engine=ranked positions=yes numbers=yes\nindex-next engine=ranked positions=no numbers=yes\n") {
		t.Errorf("before: got status %s", got)
	}
	must(t, b.catchUp(ctx))
	close(done)
	wg.Wait()
	if got := b.status(); !strings.Contains(got, "\nindex engine=ranked positions=no numbers=yes\nnext-gc") {
		t.Errorf("after: got status %s", got)
	}
	holds(t, b, want)
	if got, want := indexes(t, dir), []string{fmt.Sprint(was + 1), "current"}; !slices.Equal(got, want) {
		t.Errorf("got folder index with %v, want %v", got, want)
	}
	if got := b.lastEvents(); !strings.Contains(got, "event=reindexed engine=ranked positions=no numbers=yes") {
		t.Errorf("got events %s, want reindexed", got)
	}

	// It is the one that is opened again, and what an interruption left goes.
	must(t, b.Close())
	must(t, os.MkdirAll(filepath.Join(dir, "index", "77"), 0o777))
	b, err := Open(dir, "b", testLog(t), Options{})
	must(t, err)
	defer b.Close()
	if b.index.number != was+1 || b.reindex {
		t.Errorf("got index %d, asked for anew %v, want %d as it is", b.index.number, b.reindex, was+1)
	}
	if got := indexes(t, dir); len(got) != 2 {
		t.Errorf("got folder index with %v, want 77 gone", got)
	}
	holds(t, b, want)
}

// A config that changed while the Broker was not running is seen at the start.
func TestOtherIndexAtOpen(t *testing.T) {
	dir := t.TempDir()
	b, want := full(t, dir, "", 20)
	must(t, b.Close())
	must(t, os.WriteFile(filepath.Join(dir, "config"), []byte("index numbers=no\n"), 0o666))
	b, err := Open(dir, "b", testLog(t), Options{})
	must(t, err)
	defer b.Close()
	if !b.reindex || !b.index.files.numbers {
		t.Errorf("got asked for anew %v, files %+v, want the old index until there is a new one", b.reindex, b.index.files)
	}
	holds(t, b, want)
	must(t, b.catchUp(ctx))
	if b.reindex || b.index.files.numbers {
		t.Errorf("got asked for anew %v, files %+v, want a new index", b.reindex, b.index.files)
	}
	holds(t, b, want)
}

// check finds damage that no query has met, names it and has the index made
// anew.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	b, want := full(t, dir, "", 20)
	must(t, write(b.Files(), "ctl", "check\n"))
	if got := b.lastEvents(); !strings.Contains(got, "event=check objects=20 took=") || b.reindex {
		t.Errorf("whole: got events %s, asked for anew %v, want 20 objects and no more", got, b.reindex)
	}
	must(t, b.Close())
	files, err := filepath.Glob(dir + "/index/*/segment-*")
	must(t, err)
	body, err := os.ReadFile(files[0])
	must(t, err)
	first := slices.MinFunc(slices.Collect(maps.Keys(want)), func(x, y string) int {
		a, b := oid(x), oid(y)
		return bytes.Index(body, a[:]) - bytes.Index(body, b[:])
	})
	id := oid(first)
	body[bytes.Index(body, id[:])-1] ^= 1 // the last of the columns, which come before the identifiers
	must(t, os.WriteFile(files[0], body, 0o666))

	b, err = Open(dir, "b", testLog(t), Options{})
	must(t, err)
	defer b.Close()
	must(t, b.catchUp(ctx))
	holds(t, b, want)
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := b.check(done); !errors.Is(err, context.Canceled) || strings.Contains(b.lastEvents(), "event=") {
		t.Errorf("given up: got %v, events %s, want %v and nothing said", err, b.lastEvents(), context.Canceled)
	}
	err = write(b.Files(), "ctl", "check\n")
	damage := filepath.Base(files[0]) + ": columns: "
	if !errors.Is(err, index.ErrCorrupt) || !strings.Contains(err.Error(), damage) {
		t.Errorf("got %v, want %v with %s", err, index.ErrCorrupt, damage)
	}
	if got := read(t, b.Files(), "err"); !strings.HasPrefix(got, "ctl: check: ") || !strings.Contains(got, damage) || !strings.HasSuffix(got, "\n\tcheck\n") {
		t.Errorf("got err %q, want the line that was refused, and %s", got, damage)
	}
	if got := b.lastEvents(); strings.Count(got, "event=damaged err=") != 1 || strings.Count(got, "event=check err=") != 1 {
		t.Errorf("got events %s, want one of the damage and one of the check", got)
	}
	was := b.index.number
	must(t, b.catchUp(ctx))
	if b.index.number == was {
		t.Errorf("got index %d still, want it made anew", was)
	}
	must(t, write(b.Files(), "ctl", "check\n"))
	holds(t, b, want)
}

// What cannot be made leaves what there is.
func TestReindexFails(t *testing.T) {
	dir := t.TempDir()
	b, want := full(t, dir, "", 20)
	next := filepath.Join(dir, "index")
	must(t, os.Rename(next, next+"-"))
	must(t, os.WriteFile(next, nil, 0o666))
	defer func() { must(t, errors.Join(os.Remove(next), os.Rename(next+"-", next))) }()
	must(t, b.askReindex())
	if err := b.catchUp(ctx); err == nil || !b.reindex {
		t.Errorf("got %v, asked for %v, want an error and that it is tried again", err, b.reindex)
	}
	holds(t, b, want)
}

// One that is interrupted leaves what there is, and begins again.
func TestReindexInterrupted(t *testing.T) {
	dir := t.TempDir()
	b, want := full(t, dir, "", 20)
	done, cancel := context.WithCancel(ctx)
	cancel()
	must(t, b.setConfig(ctx, "source path=g\nindex positions=no\n"))
	if err := b.catchUp(done); !errors.Is(err, context.Canceled) || !b.reindex || b.rebuilding || b.next != nil {
		t.Errorf("got %v, asked for %v, under way %v, want it to be begun again", err, b.reindex, b.rebuilding)
	}
	if got := indexes(t, dir); len(got) != 2 || !b.index.files.positions {
		t.Errorf("got folder index with %v, files %+v, want the old one alone", got, b.index.files)
	}
	holds(t, b, want)
	must(t, b.catchUp(ctx))
	if b.index.files.positions {
		t.Errorf("got files %+v, want the new ones", b.index.files)
	}
	holds(t, b, want)
}

// The store is followed in several steps when there is much.
func TestFollowMuch(t *testing.T) {
	n := followFirst + 10
	b, _ := full(t, t.TempDir(), "", n)
	a, err := b.answer(ctx, query.Word{Text: "common"}, plain(), 1)
	must(t, err)
	if a.total != n {
		t.Errorf("got %d hits, want %d", a.total, n)
	}
	if mark, err := b.indexed(); err != nil || mark != b.store.Cursor() {
		t.Errorf("got mark %v, %v, want %v", mark, err, b.store.Cursor())
	}
	h := b.hold()
	defer h.release()
	if more, err := b.feed(ctx, h, 1); more || err != nil {
		t.Errorf("got more changes %v, %v, want none", more, err)
	}
}

// The Source gives an index the fields it was given.
func TestTexts(t *testing.T) {
	b, want := full(t, t.TempDir(), "", 50)
	ids := []index.ID{{1, 2, 3}}
	urls := []string{""}
	for _, u := range slices.Sorted(maps.Keys(want)) {
		ids, urls = append(ids, index.ID(oid(u))), append(urls, u)
	}
	seen := 0
	must(t, texts{b}.Text(ctx, ids, func(i int, fields []index.Field) bool {
		seen++
		if w := document(oid(urls[i]), want[urls[i]]).Fields; !reflect.DeepEqual(fields, w) {
			t.Errorf("%s: got %v, want %v", urls[i], fields, w)
		}
		return true
	}))
	if seen != 50 {
		t.Errorf("got %d documents, want 50", seen)
	}
	seen = 0
	must(t, texts{b}.Text(ctx, ids, func(int, []index.Field) bool { seen++; return false }))
	if seen != 1 {
		t.Errorf("stopped: got %d documents, want 1", seen)
	}
}

// With a limit the index is asked for a page; how many hits there are in all
// is known nevertheless.
func TestPages(t *testing.T) {
	b, _ := full(t, t.TempDir(), "", 45)
	d := b.Files()
	_, err := walk(t, d, "query").(fs.Maker).Mkdir(ctx, "x", 0o777)
	must(t, err)
	must(t, write(d, "query/x/ctl", "query common\n"))
	all := read(t, d, "query/x/hits")
	must(t, write(d, "query/x/ctl", "set limit=10\n"))
	if got, s := read(t, d, "query/x/status"), b.queries.sessions["x"]; !strings.Contains(got, "\nhits=45\nfirst=1\nlast=10\n") ||
		!strings.Contains(got, "\nlimit=10\npage=1\npages=5\n") || len(s.answer.hits) != 45 {
		t.Errorf("limit after the query: got status %s, %d hits held, want the same answer", got, len(s.answer.hits))
	}
	must(t, write(d, "query/x/ctl", "query common\n"))
	if n := len(b.queries.sessions["x"].answer.hits); n != 10 {
		t.Errorf("got %d hits held, want the page's 10", n)
	}
	got := read(t, d, "query/x/hits")
	for n := 2; n <= 5; n++ {
		must(t, write(d, "query/x/ctl", fmt.Sprintf("page %d\n", n)))
		got += read(t, d, "query/x/hits")
		if st := read(t, d, "query/x/status"); !strings.Contains(st, fmt.Sprintf("\nhits=45\nfirst=%d\nlast=%d\n", n*10-9, min(n*10, 45))) {
			t.Errorf("page %d: got status %s", n, st)
		}
		if why := read(t, d, "query/x/why"); strings.Count(why, "\n\t") < 5 || !strings.HasPrefix(why, fmt.Sprintf("%d\t", n*10-9)) {
			t.Errorf("page %d: got why %s", n, why)
		}
	}
	if got != all {
		t.Errorf("got pages %s, want what there is without a limit: %s", got, all)
	}
	if got := list(t, d, "query/x/results"); !slices.Equal(got, []string{"041.soif", "042.soif", "043.soif", "044.soif", "045.soif"}) {
		t.Errorf("page 5: got results %v", got)
	}
	refuses(t, d, "query/x/ctl", "page 6", "page 6: there are 5")
	must(t, write(d, "query/x/ctl", "set rank=url\npage 2\n"))
	if got := read(t, d, "query/x/hits"); !strings.Contains(got, "11\t") || !strings.Contains(got, "http://a/0010") {
		t.Errorf("rank=url: got hits %s", got)
	}
	must(t, write(d, "query/x/ctl", "set limit=0\n"))
	if got := read(t, d, "query/x/hits"); strings.Count(got, "\n") != 45 {
		t.Errorf("limit=0: got hits %s", got)
	}
}

// Words that nearly all objects have, and those of the config, are left out of
// a query without operators.
func TestStopWords(t *testing.T) {
	b, _ := full(t, t.TempDir(), "stopwords='Then'\n", 300)
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"common word7", []string{"common"}},
		{"half1 word7", nil},
		{"then word7", []string{"then"}},
		{"the word7", nil},
		{"common and word7", nil},
		{"then then", []string{"then"}},
		{"Then Common word7", []string{"common", "then"}},
	} {
		q, err := query.Parse(tt.text)
		must(t, err)
		opt, err := b.options(ctx, q, plain())
		must(t, err)
		var got []string
		for _, w := range []string{"common", "half1", "the", "then", "word7"} {
			if opt.Stop != nil && opt.Stop(w) {
				got = append(got, w)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q left out, want %q", tt.text, got, tt.want)
		}
		plan := read(t, b.Files(), "q/"+tt.text+"/plan")
		for _, w := range tt.want {
			if strings.Contains(plan, "\n"+w+": left out\n") == (tt.text == "then then") {
				t.Errorf("%s: got plan %q, want %s left out", tt.text, plan, w)
			}
		}
	}
	if len(b.commons.words) == 0 {
		t.Error("what is common is not remembered")
	}
	must(t, b.setConfig(ctx, "source path=g\nindex engine=block\n"))
	must(t, b.catchUp(ctx))
	if opt, err := b.options(ctx, query.Bag{query.Word{Text: "common"}, query.Word{Text: "word7"}}, plain()); err != nil || opt.Stop != nil && opt.Stop("common") {
		t.Errorf("the block engine: got common left out, %v, want no text read for it", err)
	}
	few, _ := full(t, t.TempDir(), "", 100)
	opt, err := few.options(ctx, query.Bag{query.Word{Text: "common"}, query.Word{Text: "word7"}}, plain())
	must(t, err)
	if opt.Stop != nil && opt.Stop("common") {
		t.Error("of 100 objects: got common left out")
	}
}

// word=no looks inside of words.
func TestInside(t *testing.T) {
	m := manner{inside: true}
	for text, want := range map[string]string{
		"fuse":                           "*fuse*",
		"title : fuse and not (a or b?)": "title : *fuse* and not (*a* or b?)",
		`"two words" fuse`:               `"two words" *fuse*`,
		"net/http":                       "net/http",
		"a near/3 b":                     "*a* near/3 *b*",
	} {
		q, err := query.Parse(text)
		must(t, err)
		if got := m.ask(q).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if got := plain().ask(q).String(); got != q.String() {
			t.Errorf("%s: got %s without", text, got)
		}
	}
}

// similar/OID has the objects most like one, without itself.
func TestSimilar(t *testing.T) {
	b, _ := full(t, t.TempDir(), "index engine=block\n", 300)
	d := b.Files()
	name := oid("http://a/0008").String()
	if _, err := fs.Walk(ctx, d, "similar/"+name); !errors.Is(err, iofs.ErrInvalid) || !strings.Contains(read(t, d, "err"), "similar: this index does not say") {
		t.Errorf("an index that cannot: got %v, err %q", err, read(t, d, "err"))
	}
	must(t, b.setConfig(ctx, "source path=g\n"))
	must(t, b.catchUp(ctx))
	hits := read(t, d, "similar/"+name+"/hits")
	if n := strings.Count(hits, "\n"); n != alike || strings.Contains(hits, name) {
		t.Errorf("got %d hits, want the %d best without the object itself: %s", n, alike, hits)
	}
	for line := range strings.Lines(hits) {
		f := strings.Split(line, "\t")
		if n := f[4][len(f[4])-1]; n%2 != 0 {
			t.Errorf("got hit %s, want even ones", f[4])
		}
	}
	if got := read(t, d, "similar/"+name+"/status"); !strings.HasPrefix(got, "similar="+name+"\nhits=100\nfirst=1\nlast=100\n") {
		t.Errorf("got status %s", got)
	}
	if got := read(t, d, "similar/"+name+"/why"); strings.Count(got, "query=half0 count=1 objects=150 ") != 100 {
		t.Errorf("got why %.200s, want a reason for each hit", got)
	}
	if got := list(t, d, "similar/"+name); got[0] != "001.soif" || !slices.Contains(got, "plan") || slices.Contains(got, "suggest") {
		t.Errorf("got files %v", got)
	}
	if got := append(list(t, d, "similar"), list(t, d, "q")...); len(got) != 0 {
		t.Errorf("got similar and q with %v, want nothing", got)
	}
	for _, name := range []string{strings.Repeat("0", 32), "x"} {
		if _, err := fs.Walk(ctx, d, "similar/"+name); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s: got %v, want %v", name, err, iofs.ErrNotExist)
		}
	}
	if got := read(t, d, "err"); got != "" {
		t.Errorf("got err %q, want nothing", got)
	}
	asked := b.queries.tally.asked
	read(t, d, "similar/"+name+"/summary")
	if now := b.queries.tally.asked; now != asked {
		t.Errorf("got %d searches, want the answer kept", now-asked)
	}
}

// Damage that a merge meets has the index made anew, as that which a search
// meets; whatever else fails stands in status and err until it goes well.
func TestMerged(t *testing.T) {
	b, want := full(t, t.TempDir(), "", 20)
	b.merged(b.index, errors.New("disk on fire"))
	if got := b.status(); !strings.Contains(got, "\nmerge-error='disk on fire'\n") || b.reindex {
		t.Errorf("got status %s, anew %v", got, b.reindex)
	}
	if got := b.errText(); !strings.Contains(got, "merge: disk on fire") {
		t.Errorf("got err %q", got)
	}
	b.merged(b.index, nil)
	if got := b.status() + b.errText(); strings.Contains(got, "fire") {
		t.Errorf("got %s, want it forgotten", got)
	}
	was := b.index.number
	b.merged(b.index, fmt.Errorf("segment-1: %w", index.ErrCorrupt))
	must(t, b.catchUp(ctx))
	if b.index.number == was {
		t.Error("got the damaged index, want another")
	}
	holds(t, b, want)
	if got := b.lastEvents(); !strings.Contains(got, "event=damaged err='segment-1") {
		t.Errorf("got events %s", got)
	}
}
