package index

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/index/posting"
)

// A content is all that an index says of its documents, in a form that can be
// compared: "field term" or "field key" by document.
type content struct {
	words  map[string]map[ID][]uint32 // positions, or the frequency
	keys   map[string]map[ID]bool
	first  map[string]map[ID]string // first key by attribute
	length map[ID]int
}

func newContent() *content {
	return &content{make(map[string]map[ID][]uint32), make(map[string]map[ID]bool), make(map[string]map[ID]string), make(map[ID]int)}
}

func set[V any](m map[string]map[ID]V, name string, id ID, v V) {
	if m[name] == nil {
		m[name] = make(map[ID]V)
	}
	m[name][id] = v
}

// wanted is what documents mean, by the plainest means.
func wanted(docs map[ID]Doc, settings Settings) *content {
	c := newContent()
	for id, d := range docs {
		next := make(map[string]int)
		c.length[id] = 0
		for _, f := range d.Fields {
			name := Attr(f.Name)
			at, again := next[name]
			if again {
				at += 100
			}
			n := 0
			Words(f.Text, func(w *Word) bool {
				if !w.Whole {
					n++
				}
				if settings.NoNumbers && isNumber(w.Text) {
					return true
				}
				term := name + " " + string(w.Text)
				if w.Whole || settings.NoPositions {
					freq := uint32(1)
					if old := c.words[term][id]; old != nil {
						freq = old[0] + 1
					}
					set(c.words, term, id, []uint32{freq})
				} else {
					set(c.words, term, id, append(c.words[term][id], uint32(at+w.Pos)))
				}
				return true
			})
			next[name] = at + n
			c.length[id] += n
			set(c.keys, name+" ", id, true)
			if settings.Keys != nil && !settings.Keys(name) {
				continue
			}
			Keys(nil, f.Text, func(key []byte) bool {
				set(c.keys, name+" "+string(key), id, true)
				if _, ok := c.first[name][id]; !ok && !again {
					set(c.first, name, id, string(key))
				}
				return true
			})
		}
	}
	return c
}

// found is what a view says.
func found(t *testing.T, v *view) *content {
	t.Helper()
	c := newContent()
	for i := range v.parts {
		p := &v.parts[i]
		must(t, p.check(context.Background()))
		p.each(func(d uint32) {
			c.length[p.id(d)] = int(p.length(d))
			if p.norm(d) != Norm(int(p.length(d))) {
				t.Errorf("document %d: norm %d of length %d", d, p.norm(d), p.length(d))
			}
		})
		keys, err := p.keys()
		must(t, err)
		var info termInfo
		for k := p.terms().Cursor(); k.Next(); {
			if !p.decode(k.Value(), &info) {
				t.Fatalf("term %q cannot be read", k.Term())
			}
			any := make(map[uint32]bool)
			for j := range info.lists {
				l := &info.lists[j]
				readList(t, p, l, func(d uint32, at []uint32) {
					any[d] = true
					if !p.deleted(d) {
						set(c.words, p.fields[l.field].name+" "+string(k.Term()), p.id(d), at)
					}
				})
			}
			if len(any) != int(info.docs) {
				t.Errorf("term %q: got %d documents, it says %d", k.Term(), len(any), info.docs)
			}
		}
		for k := keys.Cursor(); k.Next(); {
			if !p.decode(k.Value(), &info) {
				t.Fatalf("key %q cannot be read", k.Term())
			}
			name, key, _ := bytes.Cut(k.Term(), []byte{0})
			if len(key) == 1 && key[0] == keyAny {
				key = nil
			}
			readList(t, p, &info.lists[0], func(d uint32, _ []uint32) {
				if !p.deleted(d) {
					set(c.keys, string(name)+" "+string(key), p.id(d), true)
				}
			})
		}
		for f := range p.fields {
			col, err := p.column(f)
			must(t, err)
			p.each(func(d uint32) {
				if ord, ok := col.ord(d); ok {
					key, _, _ := keys.At(ord, nil)
					name := p.fields[f].name
					set(c.first, name, p.id(d), strings.TrimPrefix(string(key), name+"\x00"))
				}
			})
		}
	}
	return c
}

func readList(t *testing.T, p *part, l *list, yield func(d uint32, at []uint32)) {
	t.Helper()
	var r posting.Reader
	must(t, p.open(l, &r, true))
	n := uint32(0)
	for d := r.Next(); d != posting.End; d = r.Next() {
		n++
		if l.kind == posting.Positions {
			yield(d, r.Positions(nil))
		} else {
			yield(d, []uint32{r.Freq()})
		}
	}
	must(t, r.Err())
	if n != l.docs {
		t.Errorf("got %d documents, want %d", n, l.docs)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, got, want *content) {
	t.Helper()
	for id := range got.length {
		if _, ok := want.length[id]; !ok {
			t.Fatalf("got document %v, want none", id)
		}
	}
	diff(t, "words", got.words, want.words, func(a, b []uint32) bool { return slices.Equal(a, b) })
	same := func(a, b bool) bool { return a == b }
	diff(t, "keys", got.keys, want.keys, same)
	diff(t, "columns", got.first, want.first, func(a, b string) bool { return a == b })
	if !maps.Equal(got.length, want.length) {
		t.Errorf("lengths: got %v, want %v", len(got.length), len(want.length))
	}
}

func diff[V any](t *testing.T, what string, got, want map[string]map[ID]V, equal func(a, b V) bool) {
	t.Helper()
	for k, m := range got {
		if want[k] == nil {
			t.Errorf("%s: got %q, want none", what, k)
		}
		_ = m
	}
	for k, m := range want {
		if !maps.EqualFunc(got[k], m, equal) {
			t.Fatalf("%s %q: got %v, want %v", what, k, got[k], m)
		}
	}
}

// random makes documents of few words, so that many lists are long.
type random struct{ *rand.Rand }

func newRandom(t *testing.T) random {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("SEED=%d", seed)
	return random{rand.New(rand.NewPCG(seed, 1))}
}

func (r random) word() string {
	n := int(r.ExpFloat64() * 40)
	switch r.IntN(30) {
	case 0:
		return fmt.Sprintf("w%d_long_compound.%d", n, r.IntN(3))
	case 1:
		return fmt.Sprint(n)
	case 2:
		return fmt.Sprintf("wörd%d", n)
	case 3:
		return fmt.Sprintf("averylongwordindeed%d", n)
	}
	return fmt.Sprintf("w%x", n)
}

func (r random) doc(id ID) Doc {
	d := Doc{ID: id}
	for range r.IntN(5) {
		f := Field{Name: []string{"title", "Body", "size", "x-y", "rare"}[r.IntN(5)]}
		if f.Name == "rare" && r.IntN(10) > 0 {
			f.Name = "body"
		}
		n := r.IntN(40)
		if f.Name == "size" {
			n = 1
		}
		for range n {
			f.Text += r.word() + " "
		}
		d.Fields = append(d.Fields, f)
	}
	return d
}

func (r random) id(n int) ID { return ID{byte(r.IntN(n)), byte(r.IntN(n) % 7)} }

// Everything that is read is what was written, after each Apply, with all
// settings, and so it is after the merges and when the index is opened again.
func TestBuild(t *testing.T) {
	r := newRandom(t)
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil {
		rounds = n
	}
	t.Logf("ROUNDS=%d", rounds)
	for _, tt := range []Settings{
		{Workers: 1},
		{Workers: 1, Memory: 1 << 14, NoPositions: true},
		{Workers: 3, Memory: 1 << 14, NoNumbers: true, Keys: func(a string) bool { return a == "size" }},
	} {
		dir := t.TempDir()
		e, err := openEngine(dir, tt)
		must(t, err)
		defer func() { e.Close() }()
		docs := make(map[ID]Doc)
		for range rounds {
			var puts []Doc
			var deletes []ID
			for range r.IntN(40) {
				puts = append(puts, r.doc(r.id(60)))
			}
			for range r.IntN(8) {
				deletes = append(deletes, r.id(60))
			}
			mark := fmt.Sprint(r.Uint32())
			must(t, e.Apply(context.Background(), Docs(puts), deletes, mark))
			for _, id := range deletes {
				delete(docs, id)
			}
			for _, d := range puts {
				docs[d.ID] = d
			}
			if r.IntN(4) == 0 {
				must(t, e.Close())
				e, err = openEngine(dir, tt)
				must(t, err)
			}
			if e.Mark() != mark {
				t.Fatalf("got mark %q, want %q", e.Mark(), mark)
			}
			v, err := e.view()
			must(t, err)
			compare(t, found(t, v), wanted(docs, tt))
			if st := e.Stats(); st.Docs != len(docs) {
				t.Fatalf("got %+v, want %d documents", st, len(docs))
			}
			must(t, e.Check(context.Background()))
			runtime.KeepAlive(v)
			if t.Failed() {
				t.FailNow()
			}
		}
		must(t, e.Close())
		files, _ := filepath.Glob(dir + "/*")
		if st := e.Stats(); len(files) != st.Segments+1 {
			t.Errorf("got files %v, want a manifest and %d segments", files, st.Segments)
		}
	}
}
