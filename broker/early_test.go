package broker

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"harvest/fs"
)

// TestEarly: the first hits are there before the rest is ranked, and stay the first
// ones if the index moves meanwhile.
func TestEarly(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	add := func(from, to int) {
		for i := from; i < to; i++ {
			apply(t, g, update(object(fmt.Sprintf("http://a/%d", i), "title", "fuse"+strings.Repeat(" filler", i%17))))
		}
	}
	add(0, 250)
	b := w.broker(t.TempDir(), "source path=gather/web\n")
	must(t, b.Collect(ctx, "gather/web"))
	asked := b.queries.tally.asked

	dir := walk(t, b.Files(), "q/fuse").(fs.Dir)
	hits, err := dir.Lookup(ctx, "hits")
	must(t, err)
	h, err := hits.(fs.File).Open(ctx, fs.Read)
	must(t, err)
	defer h.Close()
	a := b.queries.recent[0].answer
	if a.rest == nil || len(a.hits) != earlyHits {
		t.Fatalf("got %d hits ranked, want %d at first", len(a.hits), earlyHits)
	}
	add(250, 300) // the shortest of them, fuse alone, are better than most
	must(t, b.Collect(ctx, "gather/web"))
	text := readAll(t, h)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 300 {
		t.Errorf("got %d lines, want 300", len(lines))
	}
	seen := make(map[string]int)
	for i, l := range lines {
		col := strings.Split(l, "\t")
		if seen[col[2]]++; col[0] != fmt.Sprint(i+1) || seen[col[2]] > 1 {
			t.Fatalf("line %d: got %q, a wrong number or an object once more", i, l)
		}
		if i < earlyHits && col[2] != a.hits[i].oid.String() {
			t.Fatalf("line %d: got %s, want %s as was ranked first", i, col[2], a.hits[i].oid)
		}
	}
	again, err := dir.Lookup(ctx, "hits")
	must(t, err)
	if got := textOf(t, again); got != text {
		t.Error("the file read once more is another")
	}
	if b.queries.tally.asked != asked+1 {
		t.Errorf("got %d queries counted, want 1", b.queries.tally.asked-asked)
	}
	if got := read(t, b.Files(), "q/fuse/status"); !strings.Contains(got, "hits=300\n") {
		t.Errorf("status: got %s, want all", got)
	}
}

func textOf(t *testing.T, n fs.Node) string {
	t.Helper()
	h, err := n.(fs.File).Open(ctx, fs.Read)
	must(t, err)
	defer h.Close()
	return readAll(t, h)
}

func readAll(t *testing.T, h fs.Handle) string {
	t.Helper()
	var text []byte
	for buf := make([]byte, 4<<10); ; {
		n, err := h.ReadAt(ctx, buf, int64(len(text)))
		text = append(text, buf[:n]...)
		if err == io.EOF {
			return string(text)
		}
		must(t, err)
	}
}
