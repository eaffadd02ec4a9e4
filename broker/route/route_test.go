package route

import (
	"bytes"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"testing"
	"time"

	"harvest/index/query"
)

func parseQuery(t testing.TB, text string) query.Node {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// digest makes one of words with how many of 100 objects have them, and how much
// they say there.
func digest(t testing.TB, h Head, lines ...Line) *Digest {
	t.Helper()
	if h.Objects == 0 {
		h.Objects, h.Words = 100, 10_000
	}
	var b bytes.Buffer
	if err := Write(&b, h, lines); err != nil {
		t.Fatal(err)
	}
	d, err := Read(&b, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWriteRead(t *testing.T) {
	first := time.Date(1999, 1, 2, 3, 4, 5, 0, time.UTC)
	h := Head{Mark: "a b", Objects: 7, Words: 99, Least: 1, Attrs: []Attr{
		{Name: "title", Objects: 7}, {Name: "size", Objects: 3, Numbers: true, Low: -1.5, High: 1e9}, {Name: "date", Objects: 2, Dates: true, First: first, Last: first.Add(time.Hour)}}}
	d := digest(t, h, Line{"fuse", 3, 1.234, 1}, Line{"x", 1, 0, 5}, Line{"東京", 2, 2, Bit(70)})
	if d.Mark != h.Mark || d.Objects != 7 || d.Words != 99 || d.Terms != 3 || fmt.Sprint(d.Attrs) != fmt.Sprint(h.Attrs) {
		t.Errorf("got %+v, want %+v", d.Head, h)
	}
	if w := d.Word("fuse"); w.Objects != 3 || w.Most != 1.24 || !d.has(w, "title") || d.has(w, "size") {
		t.Errorf("fuse: got %+v, want 3 objects, 1.24, in the title", w)
	}
	if w := d.Word("東京"); w.Objects != 2 || d.has(w, "title") || !d.has(w, "unknown") {
		t.Errorf("東京: got %+v, want 2 objects, in another attribute", w)
	}
	for _, word := range []string{"", "a", "fus", "fusee", "g", "zzz", "\xff"} {
		if w := d.Word(word); w.Objects != 0 {
			t.Errorf("%q: got %+v, want nothing", word, w)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	good := "digest=1 objects=1 terms=2\nattribute=a objects=1\n\nx\t1\t2\t1\ny\t1\t2\t1\n"
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"digest=1", "digest=2"}, {"terms=2", "terms=3"}, {"x\t1", "z\t1"}, {"\t2\t1\ny", "\t2\ny"}, {"y\t1\t2\t1\n", "y\t1\t2\t1"},
		{"\n\n", "\n"}, {"objects=1", "objects=-1"}, {"attribute", "other"}, {"digest=1", "digest=1 stem=klingon"}, {"objects=1\n\n", "low=x\n\n"}} {
		if _, err := Parse([]byte(strings.Replace(good, c[0], c[1], 1))); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q for %q: got %v, want an error of what is invalid", c[1], c[0], err)
		}
	}
	if _, err := Read(strings.NewReader(good), 10); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("got %v of a digest that is too long, want an error", err)
	}
}

// Whoever surely has nothing is skipped at no loss, whatever the share.
func TestChooseSkipsWhoHasNothing(t *testing.T) {
	h := Head{Objects: 100, Words: 1000, Least: 1, Attrs: []Attr{{Name: "title", Objects: 100}, {Name: "size", Objects: 50, Numbers: true, Low: 10, High: 20},
		{Name: "date", Objects: 50, Dates: true, First: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), Last: time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC)}}}
	d := digest(t, h, Line{"fuse", 3, 1, 1}, Line{"wire", 4, 1, 2})
	for text, ask := range map[string]bool{
		"fuse": true, "mount": false, "fuse mount": true, "fuse and mount": false, "fuse or mount": true, `"fuse wire"`: true, `"fuse box"`: false,
		"title : fuse": true, "title : wire": false, "author : fuse": false, "fuse and not mount": true, "not fuse": true, "mo*": true, "author : mo*": false,
		"size > 15": true, "size > 20": true, "size > 21": false, "size < 10": true, "size < 9": false, "size : 12..13": true, "size : 21..30": false,
		"author > 5": false, "date > 2002-01-01": true, "date > 2004-01-01": false, "fuse near/3 wire": true, "fuse near/3 box": false, "title = fuse": true,
		"title = box": false, "title : *": true, "author : *": false, "*": true, "fuse and size > 30": false, "1234": true,
	} {
		got := Choose(parseQuery(t, text), []Broker{{"b", d}}, 1)
		if got[0].Ask != ask {
			t.Errorf("%s: got asked=%v (%s), want %v", text, got[0].Ask, got[0].Why, ask)
		}
	}
}

// The first of those that may have something are those with the greatest weight,
// and no more than the share.
func TestChooseOrder(t *testing.T) {
	var all []Broker
	for i := range 10 {
		h := Head{Objects: 100, Words: 1000, Least: 1}
		all = append(all, Broker{fmt.Sprint(i), digest(t, h, Line{"fuse", 100 - i, float64(i+1) / 10, 0}, Line{"wire", 1 + i%2, 0.5, 0})})
	}
	all = append(all, Broker{"unknown", nil})
	asked := func(text string, share float64) (list []string) {
		for _, c := range Choose(parseQuery(t, text), all, share) {
			if c.Ask {
				list = append(list, c.Path)
			} else if c.Why == "" {
				t.Errorf("%s: %s is skipped for no reason", text, c.Path)
			}
		}
		return list
	}
	if got := fmt.Sprint(asked("fuse", 0.3)); got != "[unknown 9 8 7]" {
		t.Errorf("got %s, want unknown, which has no digest, 9, 8, 7", got)
	}
	if got := len(asked("fuse", 1)); got != 11 {
		t.Errorf("got %d asked, want 11", got)
	}
	if got := len(asked("fuse", 0.001)); got != 2 {
		t.Errorf("got %d asked, want one and unknown", got)
	}
	if got := fmt.Sprint(asked("fuse wire", 0.1)); got != "[unknown 9]" {
		t.Errorf("got %s, want 9, which has both words most often", got)
	}
}

func TestCensus(t *testing.T) {
	h := Head{Objects: 10, Words: 100, Least: 1}
	all := []Broker{{"a", digest(t, h, Line{"fuse", 3, 1, 0})}, {"b", digest(t, h, Line{"fuse", 4, 1, 0}, Line{"wire", 1, 1, 0})}, {"c", nil}}
	among := Census(parseQuery(t, "title : Fuse and wire and not box"), all)
	if among.Docs != 20 || among.Words != 200 || fmt.Sprint(among.Count) != "map[fuse:7 wire:1]" {
		t.Errorf("got %+v, want 20 objects of 200 words, 7 with fuse, 1 with wire", among)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("digest=1 objects=1 terms=2 least=1 mark=x\nattribute=a objects=1 low=1 high=2\n\nx\t1\t2\t1\ny\t1\t2\t1\n", "x y")
	f.Add("digest=1 stem=english\n\n", "a : 1..2")
	f.Fuzz(func(t *testing.T, text, asked string) {
		d, err := Parse([]byte(text))
		if err != nil {
			if !errors.Is(err, iofs.ErrInvalid) {
				t.Fatalf("got %v, want an error of what is invalid", err)
			}
			return
		}
		d.Word(asked)
		if q, err := query.Parse(asked); err == nil {
			Choose(q, []Broker{{"b", d}}, 0.5)
		}
	})
}
