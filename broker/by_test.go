package broker

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"

	"harvest/fs"
	"harvest/gather/store"
)

// valued is a Broker of objects that differ in type, author and part.
func valued(t testing.TB, config string) *Broker {
	t.Helper()
	w := newWorld(t)
	g := w.gatherer("g")
	var changes []store.Change
	for i := range 60 {
		o := object(fmt.Sprint("http://s/", i), fmt.Sprint("Part ", i), "text")
		o.Set("Type", []byte([]string{"HTML", "Pdf", "Text"}[i%3]))
		o.Add("Author", []byte([]string{"Knuth, D./E.", "Pike", " pike ", "100%"}[i%4]))
		o.Add("Author-2", []byte([]string{"Ritchie", "Pike"}[i%2]))
		o.Add("Size-Class", fmt.Append(nil, i%5))
		changes = append(changes, update(o))
	}
	apply(t, g, changes...)
	b := w.broker(t.TempDir(), "source path=g\n"+config)
	must(t, b.Collect(ctx, "g"))
	return b
}

func TestBy(t *testing.T) {
	for _, engine := range []string{"ranked", "block"} {
		t.Run(engine, func(t *testing.T) { testBy(t, valued(t, "index engine="+engine)) })
	}
}

func testBy(t *testing.T, b *Broker) {
	d := b.Files()
	if got := list(t, d, "by"); !slices.Contains(got, "author") || !slices.Contains(got, "size-class") || !slices.IsSorted(got) {
		t.Errorf("got %v, want the attributes", got)
	}
	if got, want := list(t, d, "by/author"), []string{"100%25", "knuth, d.%2Fe.", "pike", "ritchie"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for path, want := range map[string]int{
		"by/type/pdf":                                20,
		"by/type/PDF":                                20,
		"by/author/pike":                             45, // of 60, all but those of 0 mod 4
		"by/author/knuth, d.%2Fe.":                   15,
		"by/type/pdf/by/author/knuth, d.%2Fe.":       5,
		"by/type/pdf/by/author/pike/by/size-class/3": 3,
	} {
		if got := strings.Count(read(t, d, path+"/hits"), "\n"); got != want {
			t.Errorf("%s: got %d hits, want %d", path, got, want)
		}
	}
	// Only what has objects still, whether those are looked at or the values.
	for path, want := range map[string]string{
		"by/author/knuth, d.%2Fe./by/type":       "html pdf text",
		"by/type/pdf/by/author/100%25/by/author": "100%25 pike",
		"by/url/http:%2F%2Fs%2F7/by/author":      "100%25 pike",
		"by/type/pdf/by/size-class/3/by/author":  "100%25 knuth, d.%2Fe. pike ritchie",
		"by/url/http:%2F%2Fs%2F7/by/size-class":  "2",
	} {
		if got := strings.Join(list(t, d, path), " "); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"by/nothing", "by/type/docx", "by/type/pdf/by/nothing", "by/type/.git", "by/type/pdf/by/url/http:%2F%2Fs%2F0"} {
		dir, name := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
		if _, err := walk(t, d, dir).(fs.Dir).Lookup(ctx, name); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s: got %v, want that it is not there", path, err)
		}
	}
	refine := read(t, d, "q/author : pike/refine") // of 45
	if !strings.Contains(refine, "author\t100%\t15\nauthor\tritchie\t15\n") || strings.Contains(refine, "url") {
		t.Errorf("refine: got %s", refine)
	}
	if !strings.Contains(refine, "type\thtml\t15\n") || !strings.Contains(refine, "size-class\t0\t9\n") || strings.Contains(refine, "author\tpike\t45") {
		t.Errorf("refine: got %s", refine)
	}
	if got := list(t, d, "by/type/pdf"); slices.Contains(got, "by") || !slices.Contains(got, "001.soif") {
		t.Errorf("got %v", got)
	}
}

// An attribute that names objects is not listed, and says why if it is asked to.
func TestByMany(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	var changes []store.Change
	for i := range manyValues + 1 {
		changes = append(changes, update(object(fmt.Sprint("http://s/", i), "Part", "text")))
	}
	apply(t, g, changes...)
	b := w.broker(t.TempDir(), "source path=g")
	must(t, b.Collect(ctx, "g"))
	if got := list(t, b.Files(), "by"); slices.Contains(got, "url") || !slices.Contains(got, "title") {
		t.Errorf("got %v, want no url", got)
	}
	for _, err := range walk(t, b.Files(), "by/url").(fs.Dir).List(ctx, "") {
		if !errors.Is(err, errMany) {
			t.Errorf("got %v, want that they are too many", err)
		}
	}
	if got := read(t, b.Files(), "by/url/http:%2F%2Fs%2F99/hits"); strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one", got)
	}
}
