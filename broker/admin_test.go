package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// TestAdminUsers has two users attach: one whom the config names may write to ctl
// and config and read the log, in whatever way, and the other may none of that.
func TestAdminUsers(t *testing.T) {
	b := filled(t, 10, "access owner=alice group=staff\n")
	try := func(u *fs.User, may bool) {
		t.Helper()
		c, end := dial9P(t, b.Files(), u)
		defer end()
		for name, do := range map[string]func() error{
			"ctl":    func() error { return write(c.Root(), "ctl", "log flush") },
			"config": func() error { return write(c.Root(), "config", b.configText()) },
			"log":    func() error { _, err := iofs.ReadFile(fs.IO(ctx, c.Root()), "log"); return err },
		} {
			switch err := do(); {
			case may && err != nil:
				t.Errorf("%s, %s: got %v, want it done", u.Name, name, err)
			case !may && !errors.Is(err, iofs.ErrPermission):
				t.Errorf("%s, %s: got %v, want permission denied", u.Name, name, err)
			}
		}
		if _, err := iofs.ReadFile(fs.IO(ctx, c.Root()), "q/common or "+u.Name+"/hits"); err != nil {
			t.Errorf("%s: got %v, want anybody to ask", u.Name, err)
		}
	}
	try(&fs.User{Name: "alice", Local: true}, true)
	try(&fs.User{Name: "bob", Local: true}, false)
	try(&fs.User{Name: "carol", Local: true, Groups: []string{"staff"}}, true)
	must(t, b.unset(ctx, []string{"access"}))
	try(&fs.User{Name: "alice", Local: true}, false)
	try(&fs.User{Name: "root", Owner: true, Local: true}, true)
	log, err := os.ReadFile(filepath.Join(b.dir, "log", "current"))
	must(t, err)
	for _, want := range []string{"event=admin user=alice line='log flush'", "event=query-return user=bob query='common or bob' took=", "event=config"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("got log %s, want %q", log, want)
		}
	}
	if strings.Contains(string(log), "user=bob line=") {
		t.Errorf("got log %s, want nothing that bob has done", log)
	}
	stats := b.stats()
	for _, want := range []string{`user_queries_total{broker="b",user="bob"} 1`, `query_seconds{broker="b",quantile="0.99"} 0.`, `events_total{broker="b",event="config"} `, "start_time_seconds"} {
		if !strings.Contains(stats, want) {
			t.Errorf("got stats %s, want %q", stats, want)
		}
	}
}

// TestAdminSet changes settings by lines of ctl, each of which is in force at once,
// stands in the config beside what was there, and is there after a restart.
func TestAdminSet(t *testing.T) {
	w := newWorld(t)
	w.gatherer("gather/web")
	dir := t.TempDir()
	b := w.broker(dir, "# mine\nttl=24h # a day\nsource path=gather/web every=1h\nweight title=3\n")
	d := b.Files()
	for _, line := range []string{
		"set ttl=48h", "set gc every=2h", "set source path=gather/web every=3h", "set source path=/other every=4h", "unset source /other",
		"set weight title=5", "set weight author=1", "set limits user=bob time=3s", "set limits time=7s", "set limits user=bob time=4s",
		"log add query update", "log remove admin", "log close", "log open", "stop",
	} {
		must(t, write(d, "ctl", line))
	}
	for line, want := range map[string]string{
		"set colour=red": "unknown key 'colour'", "unset backend x": "config has no such entry", "unset ttl x": "there is one",
		"set": "usage: set ENTRY", "log add noise": "no type 'noise'", "log add": "usage: log", "log swim": "unknown; there are open",
		"set limits user=bob time=soon": "a duration", "unset": "usage: unset KEY",
	} {
		if err := write(d, "ctl", line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", line, err, want)
		}
	}
	const want = "# mine\nttl=48h\nsource path=gather/web every=3h\nweight title=5\ngc every=2h\nweight author=1\nlimits user=bob time=4s\nlimits time=7s\n" +
		"log types='collect gc index message query query-return register session update' size=1048576 keep=8 open=yes\n"
	for range 2 {
		if got := b.configText(); got != want {
			t.Errorf("got config\n%s\nwant\n%s", got, want)
		}
		if l := b.config.limitsOf("bob"); l.time.String() != "4s" || b.config.gc.String() != "2h0m0s" || b.config.weights["title"] != 5 || !b.config.log.types["query"] || !b.stopped {
			t.Errorf("got %+v, gc %s, want what was set", l, b.config.gc)
		}
		must(t, b.Close())
		b = w.broker(dir, "")
	}
	must(t, write(b.Files(), "ctl", "start"))
	must(t, b.Close())
	if b = w.broker(dir, ""); b.stopped {
		t.Error("stopped after start")
	}
}

// TestAdminObjects adds, lengthens and removes objects by hand.
func TestAdminObjects(t *testing.T) {
	b := filled(t, 50, "")
	d := b.Files()
	files := t.TempDir()
	var text []byte
	for i := range 3 {
		o := object(fmt.Sprintf("http://hand/%d", i), "By hand", "added")
		text = o.Append(text)
	}
	must(t, os.WriteFile(filepath.Join(files, "x.soif"), text, 0o666))
	must(t, os.WriteFile(filepath.Join(files, "bad.soif"), append(text, "@FILE { x\n"...), 0o666))
	b.open = dirOpener
	must(t, write(d, "ctl", "add "+files+"/x.soif"))
	count := func(q string, want int) {
		t.Helper()
		if a, err := b.answer(ctx, parsed(t, q), plain(), 1); err != nil || a.total != want {
			t.Errorf("%s: got %v, %v, want %d hits", q, a, err, want)
		}
	}
	count("title : hand", 3)
	refuses(t, d, "ctl", "add "+files+"/bad.soif", "add "+files+"/bad.soif: ")
	refuses(t, d, "ctl", "add "+files+"/none.soif", "none.soif: no such file")
	must(t, b.gc(ctx)) // which knows where they came from
	count("title : hand", 3)

	id := oid("http://hand/0")
	must(t, write(d, "ctl", "lifetime "+id.String()+" 2h"))
	if e, err := b.store.Stat(id); err != nil || e.TTL.Hours() != 2 {
		t.Errorf("got %v, %v, want a life of two hours", e.TTL, err)
	}
	refuses(t, d, "ctl", "lifetime "+id.String()+" soon", "not a duration")
	must(t, write(d, "ctl", "remove oid "+id.String()))
	must(t, write(d, "ctl", "remove url http://hand/1"))
	count("title : hand", 1)
	refuses(t, d, "ctl", "remove url http://nowhere/*", "no object is like that")
	refuses(t, d, "ctl", "remove all x", "usage: remove oid|url|query")
	must(t, write(d, "ctl", "remove url http://hand/*"))
	count("title : hand", 0)
	must(t, write(d, "ctl", "remove query common and other3"))
	count("other3", 0)
	count("common", 46)
	must(t, write(d, "ctl", "index new"))
	must(t, write(d, "ctl", "stats"))
	must(t, write(d, "ctl", "compact"))
	must(t, write(d, "ctl", "restart"))
	count("common", 46)
	refuses(t, d, "ctl", "index some", "usage: index full|new")

	bob := asUserOf("bob")
	must(t, write(d, "ctl", "shutdown"))
	if _, err := b.answer(bob, parsed(t, "common"), plain(), 1); !errors.Is(err, syscall.EAGAIN) || !strings.Contains(err.Error(), "broker b is shut down; write start") {
		t.Errorf("got %v, want that it is shut down", err)
	}
	must(t, write(d, "ctl", "start"))
	if _, err := b.answer(bob, parsed(t, "common"), plain(), 1); err != nil {
		t.Error(err)
	}
	log := read(t, d, "log")
	for _, want := range []string{"line='remove url http://hand/*'", "event=stats since=", "event=added file="} {
		if !strings.Contains(log, want) {
			t.Errorf("got log %s, want %s", log, want)
		}
	}
}

// TestLog rotates by size and when asked, keeps so many, goes on after a crash in
// the middle of a record or of a rotation, and wakes who waits.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	var told []string
	j, err := openJournal(dir, func(r string) { told = append(told, r) })
	must(t, err)
	conf := defaultLog()
	conf.size, conf.keep = 100, 3
	j.use(conf)
	for i := range 20 {
		j.add(logCollect, fmt.Sprintf("record %02d of twenty, thirty bytes", i))
	}
	j.add(logQuery, "not chosen")
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return ""
		}
		return string(b)
	}
	if len(told) != 20 || !strings.Contains(text("current"), "record 19") || strings.Contains(text("current"), "record 17") || !strings.Contains(text("1"), "record 17") || text("4") != "" {
		t.Errorf("got current %q, 1 %q, 4 %q, want three kept, the newest first", text("current"), text("1"), text("4"))
	}
	must(t, j.rotate())
	if !strings.Contains(text("1"), "record 19") || text("current") != "" || !strings.Contains(text("2"), "record 17") {
		t.Errorf("got 1 %q, 2 %q, want them moved", text("1"), text("2"))
	}
	must(t, j.rotate()) // of nothing
	must(t, j.close())
	must(t, os.Remove(filepath.Join(dir, "1"))) // as a crash between two renames leaves it
	must(t, os.WriteFile(filepath.Join(dir, "current"), []byte("whole\nnot who"), 0o666))
	j, err = openJournal(dir, func(string) {})
	must(t, err)
	j.use(conf)
	j.add(logCollect, "after")
	if got := text("current"); got != "whole\nafter\n" {
		t.Errorf("got %q, want what was whole, and what came after", got)
	}
	must(t, j.rotate())
	if text("1") != "whole\nafter\n" || !strings.Contains(text("2"), "record 17") {
		t.Errorf("got 1 %q, 2 %q, want the free number taken, and nothing lost", text("1"), text("2"))
	}
	must(t, j.close())
}

// TestLogFollow reads log.live over 9P as the records come, and the log by offset
// over a rotation.
func TestLogFollow(t *testing.T) {
	b := filled(t, 10, "")
	c, end := dial9P(t, b.Files(), &fs.User{Name: "root", Owner: true, Local: true})
	defer end()
	live, err := fs.Walk(ctx, c.Root(), "log.live")
	must(t, err)
	h, err := fs.OpenNode(ctx, live.(fs.File), fs.Read)
	must(t, err)
	defer h.Close()
	got := make(chan string)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 2 {
			buf := make([]byte, 1000)
			n, err := h.ReadAt(ctx, buf, 0)
			if err != nil {
				t.Error(err)
			}
			got <- string(buf[:n])
		}
	})
	for _, q := range []string{"common", "other1"} {
		_, err := b.answer(asUserOf("bob"), parsed(t, q), plain(), 1)
		must(t, err)
		if r := <-got; !strings.Contains(r, "event=query-return user=bob query="+q) || strings.Count(r, "\n") != 1 {
			t.Errorf("got %q, want the record of %s", r, q)
		}
	}
	wg.Wait()
	before := read(t, b.Files(), "log")
	must(t, write(b.Files(), "ctl", "log rotate"))
	if old := read(t, b.Files(), "log.1"); !strings.HasPrefix(old, before) {
		t.Errorf("got log.1 %q, want what was log", old)
	}
	if now := read(t, b.Files(), "log"); strings.Contains(now, "query=common") || !strings.Contains(now, "line='log rotate'") {
		t.Errorf("got log %q, want a new one", now)
	}
	st, err := fs.Walk(ctx, b.Files(), "log.1")
	must(t, err)
	if m := st.Stat().Mode; m != 0o640 {
		t.Errorf("got mode %v, want the log to be the owner's", m)
	}
}

// TestGCSpace has an object that nobody gave leave store and index, and what is gone
// leave the disk, while the rest stays.
func TestGCSpace(t *testing.T) {
	b := filled(t, 3*gcStep, "")
	must(t, b.catchUp(ctx))
	orphans := []string{"http://orphan/1", "http://orphan/2"}
	for _, u := range orphans {
		apply(t, b.store, update(object(u, "Orphan", "planted by hand")))
	}
	ghost := oid("http://ghost/")
	must(t, b.registry.begin(7, []store.OID{ghost}))
	must(t, b.registry.settle(7, []store.OID{ghost}, func(store.OID) (bool, error) { return true, nil }))
	must(t, b.catchUp(ctx))
	if a, err := b.answer(ctx, parsed(t, "title : orphan"), plain(), 1); err != nil || a.total != 2 {
		t.Fatalf("got %v, %v, want the orphans found before gc", a, err)
	}
	must(t, b.gc(ctx))
	a, err := b.answer(ctx, parsed(t, "title : orphan"), plain(), 1)
	must(t, err)
	if id, err := b.registry.owner(ghost); a.total != 0 || err != nil || id != 0 || b.store.Count() != 3*gcStep {
		t.Errorf("got %d orphans, owner %d of nothing, %d objects, want the orphans gone and the rest there", a.total, id, b.store.Count())
	}
	var some []store.Change
	for i := range 3*gcStep - 100 {
		some = append(some, store.Change{Op: soif.Delete, OID: oid(fmt.Sprintf("http://a/%06d", i))})
	}
	apply(t, b.store, some...)
	must(t, b.catchUp(ctx))
	size := func() int64 {
		f, err := os.Stat(filepath.Join(b.dir, registryName))
		must(t, err)
		return f.Size()
	}
	before, index := size(), b.index.Stats().Bytes
	must(t, b.gc(ctx))
	if after := size(); after > before/10 || b.store.Count() != 100 {
		t.Errorf("got a registry of %d bytes after, %d before, with %d objects, want less", after, before, b.store.Count())
	}
	if after := b.index.Stats().Bytes; after > index {
		t.Errorf("got an index of %d bytes after, %d before", after, index)
	}
	if n := 0; b.registry.each(func(entry) error { n++; return nil }) != nil || n != 100 {
		t.Errorf("got %d entries of the registry, want 100", n)
	}
	must(t, b.setConfig(ctx, b.configText())) // the new file is written to
}

// dirOpener opens folders of this machine.
func dirOpener(_ context.Context, path string) (iofs.FS, io.Closer, error) {
	return os.DirFS(path), io.NopCloser(nil), nil
}

// TestPrivate shows nobody what others ask: not in q, not in sessions that clone
// made, nor in those that mkdir made so.
func TestPrivate(t *testing.T) {
	b := filled(t, 10, "")
	alice, end := dial9P(t, b.Files(), &fs.User{Name: "alice", Local: true})
	defer end()
	bob, end2 := dial9P(t, b.Files(), &fs.User{Name: "bob", Local: true})
	defer end2()
	names := func(d fs.Dir) (list []string) {
		n, err := fs.Walk(ctx, d, "q")
		must(t, err)
		for e, err := range n.(fs.Dir).List(ctx, "") {
			must(t, err)
			list = append(list, e.Name)
		}
		return list
	}
	read(t, bob.Root(), "q/common/hits")
	read(t, bob.Root(), "q/other1/hits")
	read(t, alice.Root(), "q/common/hits")
	if got, want := fmt.Sprint(names(alice.Root()), names(bob.Root())), "[common] [common other1]"; got != want {
		t.Errorf("got %s listed, want %s", got, want)
	}
	n, err := fs.Walk(ctx, bob.Root(), "query/clone")
	must(t, err)
	h, err := fs.OpenNode(ctx, n.(fs.File), fs.Read|fs.Write)
	must(t, err)
	defer h.Close()
	_, err = h.WriteAt(ctx, []byte("query common\n"), 0)
	must(t, err)
	if _, err := iofs.ReadFile(fs.IO(ctx, alice.Root()), "query/1/status"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("got %v, want another's session to be closed", err)
	}
	read(t, bob.Root(), "query/1/status")
	for name, mode := range map[string]iofs.FileMode{"open": 0o755, "shut": 0o700} {
		_, err := queryDir{b}.Mkdir(asUserOf("bob"), name, mode)
		must(t, err)
		_, err = iofs.ReadFile(fs.IO(ctx, alice.Root()), "query/"+name+"/status")
		if (err == nil) != (name == "open") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
