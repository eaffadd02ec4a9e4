package broker

import (
	"cmp"
	"context"
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/broker/near"
	"harvest/gather/dup"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index/query"
)

// copied is a summary of a document with that text: its MD5 and size, too.
func copied(url, title, text string) *soif.Object {
	o := object(url, title, text)
	o.Add("MD5", fmt.Appendf(nil, "%x", md5.Sum([]byte(text))))
	o.Add("File-Size", fmt.Append(nil, len(text)))
	return o
}

// essay is a text of n words that is the same for one seed.
func essay(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 3))
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("w%x", r.Uint32()>>8)
	}
	return words
}

// edited is a text of which one stretch, that part of it, is another.
func edited(words []string, part float64) string {
	words = slices.Clone(words)
	n := int(part * float64(len(words)))
	for i := range n {
		words[len(words)/3+i] = fmt.Sprintf("edit%d", i)
	}
	return strings.Join(words, " ")
}

// TestDupsRefreshed: an object that is refreshed before it was looked at is looked
// at, wherever what is taken at a time ends.
func TestDupsRefreshed(t *testing.T) {
	for most := 1; most < 5; most++ {
		b := newWorld(t).broker(t.TempDir(), "")
		text := strings.Join(essay(1, 400), " ")
		first, second := copied("http://a/first", "one", text), copied("http://a/second", "two", text)
		other := copied("http://a/other", "other", "else")
		apply(t, b.store, update(first))
		apply(t, b.store, update(other), update(second))
		apply(t, b.store, store.Change{Op: soif.Refresh, OID: oid(first.URL), TTL: 1000 * time.Hour})
		for more := true; more; {
			var err error
			more, err = b.dups.take(ctx, most)
			must(t, err)
		}
		must(t, b.dups.regroup(ctx))
		if g := b.dups.copiesOf(oid(first.URL)); g == nil || len(g.oids) != 2 {
			t.Errorf("%d at a time: got copies %v, want both", most, g)
		}
	}
}

// dupObjects are copies, near ones and others, for TestScripts: they all have
// the word fuse.
func dupObjects() []*soif.Object {
	first, second := append(essay(1, 400), "fuse"), append(essay(2, 400), "fuse")
	manual := strings.Join(first, " ")
	return []*soif.Object{
		copied("http://host.lcs.mit.edu/mirrors/company/a.html", "Manual, mirrored", manual),
		copied("http://host.company.com/a.html", "Manual", manual),
		copied("http://123.123.123.123/a.html", "Manual by number", manual),
		copied("http://host.company.com/b.html", "Manual, edited by 5 %", edited(first, 0.05)),
		copied("http://host.company.com/c.html", "Manual, edited by 30 %", edited(first, 0.3)),
		copied("http://host.company.com/d.html", "Another", strings.Join(second, " ")),
	}
}

// dupModel is which object is to be shown for each, by URL.
func dupModel(objects map[string]*soif.Object) map[string]string {
	groups := make(map[string][]string)
	for u, o := range objects {
		key := o.Text("MD5") + " " + o.Text("File-Size")
		groups[key] = append(groups[key], u)
	}
	shown := make(map[string]string)
	for _, urls := range groups {
		best := slices.MinFunc(urls, func(u, v string) int {
			return cmp.Or(dup.ScoreOf(v, 0, 0).Sum()-dup.ScoreOf(u, 0, 0).Sum(), strings.Compare(u, v))
		})
		for _, u := range urls {
			shown[u] = best
		}
	}
	return shown
}

// TestCopiesRandom compares groups and answers with the model while objects come,
// change and go, and the Broker is closed and opened.
func TestCopiesRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	g := w.gatherer("g")
	dir := t.TempDir()
	b := w.broker(dir, "source path=g\n")
	model := make(map[string]*soif.Object)
	for round := range 14 {
		var changes []store.Change
		many := 8
		if round == 9 {
			many = 3 * dupsFew // so many that groups are made anew
		}
		for range 1 + r.IntN(many) {
			u := fmt.Sprintf("http://site%d/%d", r.IntN(3), r.IntN(8+many))
			if r.IntN(4) == 0 {
				if _, ok := model[u]; ok {
					delete(model, u)
					changes = append(changes, store.Change{Op: soif.Delete, OID: oid(u)})
				}
				continue
			}
			model[u] = copied(u, "fuse", fmt.Sprint("text of ", r.IntN(5+many)))
			changes = append(changes, update(model[u]))
		}
		apply(t, g, changes...)
		must(t, b.Collect(ctx, "g"))
		if r.IntN(5) == 0 {
			must(t, b.Close())
			b = w.broker(dir, "")
			must(t, b.catchUp(ctx))
		}
		sameCopies(t, b, model, fmt.Sprint("round ", round))
		if t.Failed() {
			return
		}
	}
}

func sameCopies(t *testing.T, b *Broker, model map[string]*soif.Object, when string) {
	t.Helper()
	shown := dupModel(model)
	var want []string
	for u, s := range shown {
		if u == s {
			want = append(want, oid(u).String())
		}
	}
	slices.Sort(want)
	if got := find(t, b, "fuse"); !slices.Equal(got, want) {
		t.Errorf("%s: got %d hits, want %d of %d objects", when, len(got), len(want), len(model))
	}
	lines := make(map[string]string)
	for line := range strings.Lines(read(t, b.Files(), "duplicates")) {
		f := strings.Split(line, "\t")
		lines[f[0]] = f[1]
	}
	for u, s := range shown {
		if got := lines[u]; u != s && got != s || u == s && got != "" {
			t.Errorf("%s: %s: got %q shown, want %s", when, u, got, s)
		}
	}
	m := plain()
	m.limit = max(3, len(want)/10+1)
	q, _ := query.Parse("fuse")
	var paged []string
	for p := 1; p <= 12; p++ {
		a, page, err := b.answerPage(ctx, q, m, p)
		must(t, err)
		if page != p || len(a.hits) == 0 {
			break
		}
		if a.total != len(want) {
			t.Errorf("%s: page %d: got %d hits, want %d", when, p, a.total, len(want))
		}
		for _, h := range a.hits {
			paged = append(paged, h.oid.String())
		}
	}
	slices.Sort(paged)
	if !slices.Equal(paged, want) {
		t.Errorf("%s: got %d hits by pages, want %d", when, len(paged), len(want))
	}
}

// TestCopiesShown: of copies that the query does not find all of, one that it
// finds is shown.
func TestCopiesShown(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	b := w.broker(t.TempDir(), "source path=g\n")
	for _, o := range dupObjects() {
		apply(t, g, update(o))
	}
	must(t, b.Collect(ctx, "g"))
	finds(t, b, "title : manual and not title : edited", "http://host.company.com/a.html")
	finds(t, b, "title : mirrored", "http://host.lcs.mit.edu/mirrors/company/a.html")
	finds(t, b, "title : (mirrored or number)", "http://host.lcs.mit.edu/mirrors/company/a.html")
	must(t, b.setConfig(ctx, "source path=g\nduplicates=show near=70\n"))
	a, err := b.answer(ctx, query.Word{Text: "fuse"}, plain(), 1)
	must(t, err)
	if a.total != 3 || a.hidden != 3 {
		t.Errorf("near 70: got %d hits and %d hidden, want 3 and 3", a.total, a.hidden)
	}
	if a, err = b.similar(ctx, oid("http://123.123.123.123/a.html")); err != nil || len(a.hits) == 0 {
		t.Fatalf("got %d, %v, want some alike", len(a.hits), err)
	}
	must(t, b.setConfig(ctx, "source path=g\n"))
	a, err = b.similar(ctx, oid("http://123.123.123.123/a.html"))
	must(t, err)
	for _, h := range a.hits {
		if b.dups.copiesOf(h.oid) != nil {
			t.Errorf("got %v like its own copy", h.oid)
		}
	}
}

// TestDupsAnew: what is damaged, or gone, comes back from the objects.
func TestDupsAnew(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	dir := t.TempDir()
	b := w.broker(dir, "source path=g\n")
	for _, o := range dupObjects() {
		apply(t, g, update(o))
	}
	must(t, b.Collect(ctx, "g"))
	want := read(t, b.Files(), "near/80")
	if strings.Count(want, "\n") != 3 {
		t.Errorf("got near/80 %q, want the copies and the edited one", want)
	}
	must(t, b.Close())
	files, err := filepath.Glob(filepath.Join(dir, nearName, "near-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		text[len(text)/2] ^= 1
		must(t, os.WriteFile(f, text, 0o666))
	}
	for _, spoil := range []func(){func() {}, func() { must(t, os.RemoveAll(filepath.Join(dir, nearName))) }} {
		spoil()
		b = w.broker(dir, "")
		must(t, b.catchUp(ctx))
		if got := read(t, b.Files(), "near/80"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		must(t, b.Close())
	}
}

// TestSketched: what of an object its sketch is of.
func TestSketched(t *testing.T) {
	d := &dups{plain: defaultConfig()}
	var k dup.Sketcher
	made := func(pairs ...string) dup.Sketch {
		o := &soif.Object{Type: "FILE", URL: "http://x/" + strings.Join(pairs, "")}
		for i := 0; i < len(pairs); i += 2 {
			o.Add(pairs[i], []byte(pairs[i+1]))
		}
		return d.sketch(&k, o)
	}
	if made("Full-Text", "a b c d", "Title", "x") != made("Full-Text", "a b c d", "Keywords", "y") {
		t.Error("beside Full-Text something else counts")
	}
	if made("Title", "a b c", "MD5", "1", "Update-Time", "2") != made("Title", "a b c", "Type", "HTML") {
		t.Error("what tells of the handling counts")
	}
	if made("Title", "a b c") == made("Title", "a b c", "Abstract", "d e f") {
		t.Error("an abstract does not count")
	}
	if s := made("MD5", "1"); !s.None() {
		t.Error("an object without words has some")
	}
}

func TestBytesOf(t *testing.T) {
	some := near.Bytes{MD5: md5.Sum(nil), Size: 7}
	for _, c := range []struct {
		md5, size string
		want      near.Bytes
	}{
		{fmt.Sprintf("%x", md5.Sum(nil)), "7", some},
		{fmt.Sprintf(" %X\n", md5.Sum(nil)), " 7", some},
		{"", "7", near.Bytes{}},
		{"12", "7", near.Bytes{}},
		{"zz", "7", near.Bytes{}},
	} {
		o := &soif.Object{Type: "FILE", URL: "u"}
		o.Add("MD5", []byte(c.md5))
		o.Add("File-Size", []byte(c.size))
		if got := bytesOf(o); got != c.want {
			t.Errorf("%q %q: got %v, want %v", c.md5, c.size, got, c.want)
		}
	}
}

// TestDupsCancelled: who gives up gets that error, and nothing is half done.
func TestDupsCancelled(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	b := w.broker(t.TempDir(), "source path=g\n")
	for _, o := range dupObjects() {
		apply(t, g, update(o))
	}
	off, cancel := context.WithCancel(ctx)
	cancel()
	if err := b.dups.catchUp(off); err != nil && off.Err() == nil {
		t.Errorf("got %v", err)
	}
	must(t, b.Collect(ctx, "g"))
	if n, hidden := b.dups.figures(); n != 3 || hidden != 2 {
		t.Errorf("got %d copies, %d hidden, want 3 and 2", n, hidden)
	}
	if b.dups.now().Stats().Docs != 6 {
		t.Errorf("got %d documents, want 6", b.dups.now().Stats().Docs)
	}
}
