package broker

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"harvest/broker/route"
	"harvest/index"
)

// The digest says what objects there are, and follows them.
func TestDigest(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	apply(t, g, update(object("http://a/1", "Fuse mount", "a wire of wires")), update(object("http://a/2", "Fuse box", "x86_64")))
	dir := t.TempDir()
	b := w.broker(dir, "source path=gather/web")
	must(t, b.Collect(ctx, "gather/web"))
	digest := func() *route.Digest {
		t.Helper()
		d, err := route.Parse([]byte(read(t, b.Files(), "words")))
		must(t, err)
		return d
	}
	d := digest()
	if d.Objects != 2 || d.Word("fuse").Objects != 2 || d.Word("wire").Objects != 1 || d.Word("wires").Objects != 1 || d.Word("box").Most <= d.Word("wire").Most {
		t.Errorf("got %+v, fuse %+v, wire %+v, box %+v, want 2 objects, 2 with fuse, 1 with wire, box to say more", d.Head, d.Word("fuse"), d.Word("wire"), d.Word("box"))
	}
	if w := d.Word("x86_64"); w.Objects != 0 {
		t.Errorf("got %+v, want no compound", w)
	}
	if first := digest(); first.Mark != d.Mark {
		t.Errorf("got mark %s, then %s, want the same of the same objects", d.Mark, first.Mark)
	}
	apply(t, g, update(object("http://a/3", "Kernel", "mutex")))
	must(t, b.Collect(ctx, "gather/web"))
	b.digest.took = 0 // however slow the machine is
	if now := digest(); now.Mark == d.Mark || now.Word("mutex").Objects != 1 {
		t.Errorf("got %+v, want a digest with the new object", now.Head)
	}
	must(t, b.setConfig(ctx, "source path=gather/web\nindex stem=english\nweight title=1\n"))
	b.digest.took = 0
	if now := digest(); now.Stem != "english" || now.Word("wires").Objects != 2 || now.Word("wire").Objects != 2 {
		t.Errorf("got %+v, want words by their stems", now.Head)
	}
}

func TestAmong(t *testing.T) {
	a, err := parseAmong("100 5000 fuse=3 x=y=4")
	if err != nil || a.Docs != 100 || a.Words != 5000 || a.Count["fuse"] != 3 || a.Count["x=y"] != 4 {
		t.Errorf("got %+v, %v, want 100 objects, 5000 words, fuse=3, x=y=4", a, err)
	}
	if text := formatAmong(a, []string{"fuse", "x=y"}); text != "100 5000 fuse=3 x=y=4" {
		t.Errorf("got %s, want what was read", text)
	}
	for _, bad := range []string{"1", "0 1", "-1 1", "10 x", "10 10 fuse", "10 10 fuse=11", "10 10 =1", "10 10" + strings.Repeat(" a=1", amongMax+1)} {
		if _, err := parseAmong(bad); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%.20q: got %v, want an error of what is invalid", bad, err)
		}
	}
}

// Two Brokers that know how rare words are in both give the scores of one that
// has everything.
func TestAmongSession(t *testing.T) {
	w := newWorld(t)
	var brokers [3]*Broker
	for i, name := range []string{"all", "a", "b"} {
		g := w.gatherer("gather/" + name)
		for n := range 40 {
			o := object(fmt.Sprintf("http://%c/%d", 'a'+n%2, n), "part", strings.Repeat("word ", n%7)+[]string{"fuse wire", "fuse"}[min(n%2*(n%5), 1)])
			if i == 0 || i == 1+n%2 {
				apply(t, g, update(o))
			}
		}
		brokers[i] = w.broker(t.TempDir(), "source path=gather/"+name)
		must(t, brokers[i].Collect(ctx, "gather/"+name))
	}
	all, err := route.Parse([]byte(read(t, brokers[0].Files(), "words")))
	must(t, err)
	q := "wire and fuse"
	among := formatAmong(&index.Among{Docs: all.Objects, Words: all.Words, Count: map[string]int{"wire": all.Word("wire").Objects, "fuse": all.Word("fuse").Objects}}, []string{"wire", "fuse"})
	score := make(map[string]string)
	same, other := 0, 0
	for i, b := range brokers {
		mkdir(t, b.Files(), "query/x")
		must(t, write(b.Files(), "query/x/ctl", "set among='"+among+"'\nquery "+q))
		for _, line := range strings.Split(strings.TrimSpace(read(t, b.Files(), "query/x/hits")), "\n") {
			f := strings.Split(line, "\t")
			switch {
			case i == 0:
				score[f[2]] = f[1]
			case score[f[2]] == f[1]:
				same++
			default:
				other++
			}
		}
	}
	if same == 0 || other > 0 || same != len(score) {
		t.Errorf("got %d hits with the score of the whole, %d with another, want %d", same, other, len(score))
	}
}

// FuzzAmong reads again what it writes of what it took.
func FuzzAmong(f *testing.F) {
	f.Add("100 5000 pear=7 a=b=3")
	f.Add("0 1")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAmong(text)
		if err != nil || a == nil {
			return
		}
		words := slices.Sorted(maps.Keys(a.Count))
		again, err := parseAmong(formatAmong(a, words))
		if err != nil || again.Docs != a.Docs || again.Words != a.Words || !maps.Equal(again.Count, a.Count) {
			t.Fatalf("%q: got %+v, %v, want %+v", text, again, err, a)
		}
	})
}
