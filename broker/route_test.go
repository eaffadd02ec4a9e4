package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// topics makes a front end of ten Brokers, each with objects about a topic of its
// own, a word that all have, and how much that says growing from one to the next.
func topics(t *testing.T, config string) (front *Broker, f *fleet) {
	f = newFleet(t)
	for i := range 10 {
		var objects []store.Change
		for n := range 5 {
			text := fmt.Sprintf("about topic%d %s %s", i, strings.Repeat("common ", 1+i), strings.Repeat("filler ", 20-i))
			objects = append(objects, update(object(fmt.Sprintf("http://%d/%d", i, n), fmt.Sprintf("part %d", n), text)))
		}
		f.add(fmt.Sprintf("b%d", i), "", objects...)
		config += fmt.Sprintf("backend path=broker/b%d\n", i)
	}
	return f.add("front", config), f
}

// asked reads who was asked.
func asked(a *answer) (list []string) {
	for _, line := range a.routed {
		if f := strings.Split(line, "\t"); f[0] == "asked" {
			list = append(list, f[1])
		}
	}
	return list
}

func TestRoute(t *testing.T) {
	front, f := topics(t, "route share=20\n")
	front.router.readDigests(ctx)
	ask := func(text string, m manner) *answer {
		t.Helper()
		a, err := front.answer(ctx, parsed(t, text), m, 1)
		must(t, err)
		return a
	}
	for text, want := range map[string]string{
		"topic3":                       "[broker/b3]",
		"topic3 or topic7":             "[broker/b3 broker/b7]",
		"common":                       "[broker/b8 broker/b9]",
		"topic1 and common":            "[broker/b1]",
		"topic1 and topic2":            "[]",
		"nowhere":                      "[]",
		"title : part and text : what": "[]",
	} {
		a := ask(text, plain())
		got := asked(a)
		if slices.Sort(got); fmt.Sprint(got) != want && !(want == "[]" && len(got) == 0) {
			t.Errorf("%s: got %v, want %s: %v", text, got, want, a.routed)
		}
		if len(a.routed) != 10 {
			t.Errorf("%s: got %d lines in routed, want one of each of 10", text, len(a.routed))
		}
		if got := len(a.hits); got != 5*len(asked(a)) {
			t.Errorf("%s: got %d hits, want 5 of each who was asked", text, got)
		}
	}
	if got := read(t, front.Files(), "q/topic3/routed"); !strings.HasPrefix(got, "asked\tbroker/b3\tobjects 5, score ") || !strings.Contains(got, "skipped\tbroker/b1\tnothing with topic3\n") {
		t.Errorf("got %q, want who was asked and why others were not", got)
	}
	m := plain()
	m.errors = 1
	if a := ask("topik3", m); len(asked(a)) != 10 || a.total == 0 {
		t.Errorf("got %v, want all asked with errors in spelling", a.routed)
	}
	// What is new is found when the digest has been read again, and what is down
	// keeps its old one.
	apply(t, f.w.stores["gather/b4"], update(object("http://4/new", "New", "novelty")))
	must(t, f.brokers["b4"].Collect(ctx, "gather/b4"))
	f.brokers["b4"].digest.took = 0
	f.gone["broker/b5"] = true
	front.router.readDigests(ctx)
	if got := asked(ask("novelty", plain())); !slices.Equal(got, []string{"broker/b4"}) {
		t.Errorf("got %v, want the one with what is new", got)
	}
	status := read(t, front.Files(), "status")
	if !strings.Contains(status, "digest path=broker/b5 objects=5") || !strings.Contains(status, "connection refused") || !strings.Contains(status, "route share=20") {
		t.Errorf("got %s, want the digests, and that one could not be read", status)
	}
}

// The hits of a routed query have the scores that one Broker of everything gives,
// so those of many merge.
func TestRouteScores(t *testing.T) {
	front, f := topics(t, "route share=100\n")
	front.router.readDigests(ctx)
	all := ""
	for i := range 10 {
		all += fmt.Sprintf("source path=gather/b%d\n", i)
	}
	one, err := Open(t.TempDir(), "one", testLog(t), Options{Open: f.open})
	must(t, err)
	t.Cleanup(func() { one.Close() })
	must(t, one.setConfig(ctx, all))
	for i := range 10 {
		must(t, one.Collect(ctx, fmt.Sprintf("gather/b%d", i)))
	}
	for _, text := range []string{"common", "topic3 or common", "topic3 and common", "filler and not topic1"} {
		got, err := front.answer(ctx, parsed(t, text), plain(), 1)
		must(t, err)
		want, err := one.answer(ctx, parsed(t, text), plain(), 1)
		must(t, err)
		score := make(map[store.OID]float32)
		for _, h := range want.hits {
			score[h.oid] = h.score
		}
		if len(got.hits) != len(want.hits) {
			t.Errorf("%s: got %d hits, want %d", text, len(got.hits), len(want.hits))
		}
		for _, h := range got.hits {
			if d := h.score - score[h.oid]; d > 0.002 || d < -0.002 {
				t.Errorf("%s: %s: got score %.3f, want %.3f", text, h.oid, h.score, score[h.oid])
			}
		}
	}
}

func TestRouteConfig(t *testing.T) {
	for text, ok := range map[string]bool{"route": true, "route share=5 every=2s registry=registry": true, "route share=0": false, "route share=101": false,
		"route every=1ms": false, "route registry=": false, "route color=red": false, "route\nroute": false} {
		if _, err := parseConfig(text); (err == nil) != ok {
			t.Errorf("%s: got %v", text, err)
		}
	}
	c, err := parseConfig("route")
	if err != nil || c.route.share != 0.2 || c.route.every != routeEvery {
		t.Errorf("got %+v %v, want a fifth, every minute", c.route, err)
	}
}

// A registry says which Brokers there are; front ends are not asked.
func TestRouteRegistry(t *testing.T) {
	f := newFleet(t)
	f.add("one", "", about("one", 9)...)
	reg := registryAt(t, t.TempDir())
	f.brokers["registry"] = reg
	add := func(path, more string) {
		o := soif.Object{Type: "BROKER", URL: "9p://host/" + path}
		o.Add("Type", []byte("broker"))
		o.Add("Service-Path", []byte(path))
		o.Add("Address", []byte("far!x\nother"))
		if more != "" {
			o.Add("Backends", []byte(more))
		}
		must(t, write(reg.Files(), "register", string(o.Append(nil))))
	}
	add("broker/one", "")
	add("broker/front", "3")
	must(t, reg.follow(ctx))
	front := f.add("front", "route registry=broker/registry\nbackend path=broker/one\n")
	front.router.look(ctx, front.router.conf)
	front.front.mu.Lock()
	got := len(front.front.all)
	_, there := front.front.all["far!x/broker/one"]
	front.front.mu.Unlock()
	if got != 2 || !there {
		t.Errorf("got %d back ends, far!x/broker/one there: %v, want that beside broker/one", got, there)
	}
	must(t, front.setConfig(ctx, "backend path=broker/one\n"))
	front.front.mu.Lock()
	defer front.front.mu.Unlock()
	if len(front.front.all) != 1 {
		t.Errorf("got %d back ends without a registry, want 1", len(front.front.all))
	}
}
