package broker

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"harvest/fs"
)

// status is that of a session, by key.
func status(t *testing.T, d fs.Dir, session string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for line := range strings.Lines(read(t, d, "query/"+session+"/status")) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			t.Errorf("got a line of status %q, want key=value", line)
		}
		out[key] = value
	}
	return out
}

// An index that reads text to decide reads no more than a page needs, and says
// that it has not counted.
func TestPageOfBlocks(t *testing.T) {
	b, _ := full(t, t.TempDir(), "index engine=block\n", 600)
	d := b.Files()
	mkdir(t, d, "query/x")
	must(t, write(d, "query/x/ctl", "set limit=10 case=yes\nquery common\n"))
	documents := func() int {
		t.Helper()
		m := regexp.MustCompile(`(?m)^text: documents (\d+),`).FindStringSubmatch(read(t, d, "query/x/plan"))
		if m == nil {
			t.Fatalf("got plan %s", read(t, d, "query/x/plan"))
		}
		n, err := strconv.Atoi(m[1])
		must(t, err)
		return n
	}
	if n := documents(); n < 10 || n > 300 {
		t.Errorf("got %d documents read of 600, want few", n)
	}
	st := status(t, d, "x")
	if hits, _ := strconv.Atoi(st["hits"]); st["more"] != "yes" || hits < 10 || hits >= 600 || st["last"] != "10" || st["pages"] == "1" {
		t.Errorf("got %v, want ten hits of more", st)
	}
	for page := 2; page <= 60; page++ {
		must(t, write(d, "query/x/ctl", fmt.Sprintf("page %d\n", page)))
		if got := strings.Count(read(t, d, "query/x/hits"), "\n"); got != 10 {
			t.Fatalf("page %d: got %d hits, want 10", page, got)
		}
	}
	if st = status(t, d, "x"); st["last"] != "600" {
		t.Errorf("at the end: got %v", st)
	}
	if st["more"] == "yes" { // the last page ends with the last hit: nobody knew
		must(t, write(d, "query/x/ctl", "page 61\n"))
		st = status(t, d, "x")
	}
	if st["hits"] != "600" || st["more"] != "" || st["page"] != "60" || st["pages"] != "60" {
		t.Errorf("behind the end: got %v, want the last page", st)
	}
	refuses(t, d, "query/x/ctl", "page 61", "page 61: there are 60")

	must(t, write(d, "query/x/ctl", "set limit=0\n"))
	if st = status(t, d, "x"); st["hits"] != "600" || st["more"] != "" || documents() != 600 {
		t.Errorf("without a limit: got %v, %d documents read, want all", st, documents())
	}
}

// A page that the answer no longer has when it is asked for is the last one.
func TestPageAfterShrink(t *testing.T) {
	b, _ := full(t, t.TempDir(), "", 30)
	d := b.Files()
	mkdir(t, d, "query/x")
	must(t, write(d, "query/x/ctl", "set limit=4\nquery common\n"))
	var gone []string
	for i := range 21 {
		gone = append(gone, oid(fmt.Sprintf("http://a/%04d", i)).String())
	}
	must(t, b.delete(ctx, gone))
	must(t, b.catchUp(ctx))
	must(t, write(d, "query/x/ctl", "page 8\n"))
	st := status(t, d, "x")
	if st["hits"] != "9" || st["page"] != "3" || st["pages"] != "3" || st["first"] != "9" || st["last"] != "9" {
		t.Errorf("got %v, want page 3 of 3", st)
	}
	if got := read(t, d, "query/x/hits"); strings.Count(got, "\n") != 1 {
		t.Errorf("got hits %q, want one", got)
	}
}

// What is not set has no line in status.
func TestStatusOfUnset(t *testing.T) {
	b, _ := full(t, t.TempDir(), "", 3)
	d := b.Files()
	mkdir(t, d, "query/x")
	for range 2 {
		st := status(t, d, "x")
		for _, key := range []string{"costs", "stem", "fields", "more", "cut"} {
			if v, ok := st[key]; ok {
				t.Errorf("got %s=%s, want no such line", key, v)
			}
		}
		must(t, write(d, "query/x/ctl", "query common\n"))
	}
}

// Listing q asks nothing, whatever happened to the index; who looks into a
// directory of it does.
func TestListNamedAsksNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	apply(t, g, update(object("http://a/1", "one", "common")))
	b := w.broker(t.TempDir(), "source path=g\n")
	must(t, b.Collect(ctx, "g"))
	d := b.Files()
	for i := range 5 {
		read(t, d, fmt.Sprintf("q/common or x%d/hits", i))
	}
	apply(t, g, update(object("http://a/2", "two", "common")))
	must(t, b.Collect(ctx, "g"))
	asked := b.queries.tally.asked
	names := list(t, d, "q")
	nodes := make(map[string]fs.Dir)
	for e, err := range walk(t, d, "q").(fs.Dir).List(ctx, "") {
		must(t, err)
		nodes[e.Name] = e.Node.(fs.Dir)
	}
	if now := b.queries.tally.asked; now != asked || len(names) != 5 || len(nodes) != 5 {
		t.Errorf("got %d searches and names %v, want none and five", now-asked, names)
	}
	in := nodes["common or x3"]
	var got []string
	for e, err := range in.List(ctx, "") {
		must(t, err)
		got = append(got, e.Name)
	}
	if len(got) < 3 || got[1] != "002.soif" {
		t.Errorf("got %v, want two objects and files", got)
	}
	if now := b.queries.tally.asked; now != asked+1 {
		t.Errorf("got %d searches, want one", now-asked)
	}
	n, err := in.Lookup(ctx, "001.soif")
	must(t, err)
	walked := walk(t, d, "q/common or x3").(fs.Dir)
	if in.Stat() != walked.Stat() || n.Stat() != walk(t, d, "q/common or x3/001.soif").Stat() {
		t.Errorf("got %+v by the list, %+v by walking", in.Stat(), walked.Stat())
	}
}

func mkdir(t *testing.T, d fs.Dir, path string) {
	t.Helper()
	dir, name := filepath.Split(path)
	_, err := walk(t, d, strings.TrimSuffix(dir, "/")).(fs.Maker).Mkdir(ctx, name, 0o777)
	must(t, err)
}
