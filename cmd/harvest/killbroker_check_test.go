package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// remembers checks, right after a start, all that was acknowledged before the
// kill. What was begun and not answered may have been done or not.
func (k *killBroker) remembers() {
	k.t.Helper()
	k.configIsThere()
	for _, s := range k.src {
		if _, _, err := k.sourceStatus(s); err != nil {
			k.t.Errorf("round %d: %v", k.round, err)
		}
	}
	k.objectsAreThere()
	k.sessionsAreThere()
	k.viewsAreThere()
	k.doing = [4]string{}
}

func (k *killBroker) configIsThere() {
	got, err := k.read("broker/b/config")
	k.must(err)
	if got != k.config && got != k.doing[3] {
		k.t.Errorf("round %d: got config %q, want %q, or %q, which was begun", k.round, got, k.config, k.doing[3])
	}
	k.config = got
}

// objects reads what the Broker has, by URL.
func (k *killBroker) objects() map[string]soif.Object {
	text, err := k.read("broker/b/soif")
	k.must(err)
	all := make(map[string]soif.Object)
	for b := []byte(text); len(b) > 0; {
		o, n, err := soif.Parse(b, soif.Limits{})
		k.must(err)
		all[o.URL], b = o, bytes.TrimLeft(b[n:], "\n")
	}
	return all
}

// objectsAreThere wants each object as it was when the cursor was told, or later.
func (k *killBroker) objectsAreThere() {
	got := k.objects()
	for _, s := range k.src {
		for url, versions := range s.version {
			least, last := 0, versions[len(versions)-1]
			for _, v := range versions {
				if v.seq <= s.cursor.Seq {
					least = v.text
				}
			}
			o, there := got[url]
			at := 0
			fmt.Sscan(o.Text("Version"), &at)
			removed, begun := s.removed[url]
			switch {
			case there && removed:
				k.t.Errorf("round %d: %s is there, and was removed", k.round, url)
			case there && at < least, there && least == 0 && last.seq <= s.cursor.Seq:
				k.t.Errorf("round %d: %s is there in version %d, and %d had been collected", k.round, url, at, least)
			case !there && least > 0 && last.seq <= s.cursor.Seq && !begun:
				k.t.Errorf("round %d: %s is not there, and had been collected in version %d", k.round, url, least)
			}
			if begun {
				s.removed[url] = !there
				if there {
					delete(s.removed, url)
				}
			}
		}
	}
}

func (k *killBroker) sessionsAreThere() {
	names, err := k.names("broker/b/query")
	k.must(err)
	now := make(map[string]string)
	for _, name := range names {
		if name == "clone" {
			continue
		}
		text, err := k.read("broker/b/query/" + name + "/status")
		k.must(err)
		e, err := ndb.Parse(text)
		k.must(err)
		for _, l := range e {
			if q, ok := l.Get("query"); ok {
				now[name] = q
			}
		}
		if _, ok := now[name]; !ok {
			now[name] = ""
		}
	}
	doing, _ := strings.CutPrefix(k.doing[1], "session ")
	doing, query, _ := strings.Cut(doing, " ")
	for _, name := range union(now, k.sessions) {
		got, there := now[name]
		want, wanted := k.sessions[name]
		if name == doing && (query == "" || there && got == query) {
			continue
		}
		if there != wanted || got != want {
			k.t.Errorf("round %d: session %s: got %v %q, want %v %q; begun was %q", k.round, name, there, got, wanted, want, k.doing[1])
		}
	}
	k.sessions = now
}

func union[V any](a, b map[string]V) []string {
	list := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(list)
	return slices.Compact(list)
}

func (k *killBroker) viewsAreThere() {
	names, err := k.names("broker/b/views")
	k.must(err)
	now := make(map[string]killView)
	for _, name := range names {
		query, err := k.read("broker/b/views/" + name + "/query")
		k.must(err)
		edits, err := k.read("broker/b/views/" + name + "/edits")
		k.must(err)
		v := killView{strings.TrimSpace(query), map[string]string{}}
		for line := range strings.Lines(edits) {
			f := strings.Split(line, "\t")
			v.hand[f[1]] = f[0]
		}
		now[name] = v
	}
	doing := append(strings.Fields(k.doing[2]), "", "", "", "")
	for _, name := range union(now, k.views) {
		got, there := now[name]
		want, wanted := k.views[name]
		here := name == doing[1]
		if here && doing[2] == "" {
			continue
		}
		if there != wanted || got.query != want.query && !(here && doing[2] == "query" && got.query == doing[3]) {
			k.t.Errorf("round %d: view %s: got %v %q, want %v %q; begun was %q", k.round, name, there, got.query, wanted, want.query, k.doing[2])
			continue
		}
		for _, oid := range union(got.hand, want.hand) {
			g, w := got.hand[oid], strings.TrimPrefix(want.hand[oid], "leave")
			if g != w && !(here && doing[3] == oid && g == strings.TrimPrefix(doing[2], "leave")) {
				k.t.Errorf("round %d: view %s: %s: got %q by hand, want %q; begun was %q", k.round, name, oid, g, w, k.doing[2])
			}
		}
	}
	k.views = now
}

// converges has the Broker collect what is left and compares all there is.
func (k *killBroker) converges() {
	k.t.Helper()
	for _, s := range k.src {
		k.must(k.collect(s))
	}
	k.p.idle(k.t, "broker/b")
	want := k.wanted()
	got := k.objects()
	for _, url := range union(got, want) {
		g, w := got[url], want[url]
		if !g.Equal(&w) {
			k.t.Errorf("round %d: %s: got %s, want %s", k.round, url, g.Append(nil), w.Append(nil))
		}
	}
	k.agrees(len(want))
	word := fmt.Sprintf("w%d", k.r.IntN(killWords))
	k.counts("q/"+word, matching(word))
	typ := fmt.Sprintf("t%d", k.r.IntN(4))
	k.counts("by/type/"+typ, func(o *soif.Object) bool { return o.Text("Type") == typ })
	for name, v := range k.views {
		if v.query != "" {
			k.members(name, v)
		}
	}
	k.tidy()
}

// wanted is what the sources have, without what was removed here.
func (k *killBroker) wanted() map[string]soif.Object {
	want := make(map[string]soif.Object)
	for _, s := range k.src {
		for e, err := range s.store.Scan(k.ctx, "", "") {
			k.must(err)
			if _, removed := s.removed[e.URL]; removed {
				continue
			}
			body, _, err := s.store.Get(e.OID)
			k.must(err)
			o, _, err := soif.Parse(body, soif.Limits{})
			k.must(err)
			want[e.URL] = o
		}
	}
	return want
}

// agrees wants consistency to say that all is well, when the views have followed.
func (k *killBroker) agrees(objects int) {
	want := fmt.Sprintf("consistent=yes objects=%d registered=%d indexed=%d changing=0 differ=0\n", objects, objects, objects)
	end := time.Now().Add(20 * time.Second)
	for {
		got, err := k.read("broker/b/consistency")
		k.must(err)
		if got == want {
			return
		}
		if !strings.Contains(got, "consistent=yes") || time.Now().After(end) {
			k.t.Errorf("round %d: got %s, want %s", k.round, got, want)
			return
		}
		k.must(k.pause())
	}
}

func matching(word string) func(o *soif.Object) bool {
	return func(o *soif.Object) bool { return slices.Contains(strings.Fields(o.Text("Full-Text")), word) }
}

// counts compares the hits of a directory with those objects that are to be there.
func (k *killBroker) counts(dir string, match func(o *soif.Object) bool) {
	text, err := k.read("broker/b/" + dir + "/hits")
	k.must(err)
	var got, want []string
	for line := range strings.Lines(text) {
		got = append(got, strings.Split(line, "\t")[4])
	}
	for url, o := range k.wanted() {
		if match(&o) {
			want = append(want, url)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		k.t.Errorf("round %d: %s: got %d hits, want %d: %s", k.round, dir, len(got), len(want), differing(got, want))
	}
}

func differing(got, want []string) string {
	for _, g := range got {
		if !slices.Contains(want, g) {
			return g + " is one too many"
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			return w + " is missing"
		}
	}
	return "some come twice"
}

// members compares a view with its query and what was done by hand.
func (k *killBroker) members(name string, v killView) {
	match := matching(v.query)
	k.counts("views/"+name, func(o *soif.Object) bool {
		oid := store.ID(o.URL, o.Text("Gatherer-Name")+"@"+o.Text("Gatherer-Host")).String()
		switch v.hand[oid] {
		case "add":
			return true
		case "remove":
			return false
		}
		return match(o)
	})
}

// tidy wants no files left behind.
func (k *killBroker) tidy() {
	dir := filepath.Join(k.dir, "broker", "b")
	for _, d := range []string{"", "index"} {
		list, err := os.ReadDir(filepath.Join(dir, d))
		k.must(err)
		n := 0
		for _, e := range list {
			if strings.HasSuffix(e.Name(), ".new") {
				k.t.Errorf("round %d: %s/%s is left", k.round, d, e.Name())
			}
			n++
		}
		if d == "index" && n != 2 {
			k.t.Errorf("round %d: got %v in index, want current and an index", k.round, list)
		}
	}
}
