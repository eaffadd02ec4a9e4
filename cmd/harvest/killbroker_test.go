package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/fs/ninep"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// TestKillBroker kills a server at random moments, of its start too, while a
// Broker in it collects from two sources, is asked, edited and tidied, and views
// and sessions are made, changed and removed. After each restart nothing that it
// had acknowledged is lost, and when it has collected the rest, registry, store,
// index, views and by/ have exactly what the sources have.
func TestKillBroker(t *testing.T) {
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("HARVEST_KILLS")); err == nil {
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("HARVEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%d kills, HARVEST_KILLS=1000 makes 1000; HARVEST_SEED=%d", kills, seed)
	k := newKillBroker(t, seed)
	for i := range kills {
		k.round = i
		k.workAndKill()
		if k.r.IntN(5) == 0 { // and at the start
			k.start(time.Duration(k.r.Int64N(int64(k.ready))))
		}
		k.start(0)
		k.remembers()
		k.converges()
		if t.Failed() {
			t.Fatalf("after kill %d", i)
		}
	}
	k.p.end(t)
	t.Logf("acknowledged before some kill: %v", k.done)
}

// killWords is how many words the texts are made of.
const killWords = 30

// killBroker is a Broker under test, what it collects from, and what is to be
// true of it.
type killBroker struct {
	t     *testing.T
	r     *rand.Rand
	round int
	dir   string
	ready time.Duration // what a start takes
	p     *server
	ctx   context.Context // of p
	dead  atomic.Bool     // it is killed, or about to be
	src   [2]*killSource

	views    map[string]killView // as acknowledged
	sessions map[string]string   // name: query
	config   string
	doing    [4]string // what each worker has begun and not had an answer to

	mu   sync.Mutex
	done map[string]int // what was acknowledged, by kind
}

// killView is what was asked of a view.
type killView struct {
	query string
	hand  map[string]string // OID: add or remove
}

// killSource is a store that the Broker collects from. Its objects come in three
// kinds: u/N change and go, k/N change and stay, r/N never change but may be
// removed at the Broker.
type killSource struct {
	name    string
	store   *store.Store
	version map[string][]killVersion // by URL, the latest last
	removed map[string]bool          // r/N at the Broker; false: that was begun
	cursor  store.Cursor             // as the Broker has told
}

type killVersion struct {
	seq  uint64
	text int // of the object, 0: deleted
}

func newKillBroker(t *testing.T, seed uint64) *killBroker {
	k := &killBroker{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), views: map[string]killView{}, sessions: map[string]string{}, done: map[string]int{}}
	lg := slog.New(slog.DiscardHandler)
	socket := filepath.Join(t.TempDir(), "s")
	nodes := map[string]fs.Node{}
	for i, name := range []string{"a", "b"} {
		st, err := store.Open(filepath.Join(t.TempDir(), name), lg, store.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		k.src[i] = &killSource{name: name, store: st, version: map[string][]killVersion{}, removed: map[string]bool{}}
		nodes[name] = fs.Static(fs.ID(name), st.Files(func(parts ...string) uint64 { return fs.ID(append([]string{name}, parts...)...) }, nil, nil))
		k.change(k.src[i], 400)
	}
	l, err := ninep.Listen(t.Context(), "unix!"+socket, ninep.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { ninep.NewServer(lg, ninep.Limits{}).Serve(ctx, l, fs.Static(fs.RootPath, nodes)) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	k.config = fmt.Sprintf("source path=unix!%s/a every=720h compressed=no\nsource path=unix!%s/b every=720h\n", socket, socket)
	k.start(0)
	k.must(k.mkdir("broker/b"))
	k.must(k.write("broker/b/config", k.config))
	k.converges()
	return k
}

func (k *killBroker) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// change has a source change some of its objects.
func (k *killBroker) change(s *killSource, n int) {
	batch := make(map[string]store.Change)
	for range n {
		url := fmt.Sprintf("http://%s/%s/%d", s.name, []string{"u", "u", "k", "r"}[k.r.IntN(4)], k.r.IntN(300))
		old := s.version[url]
		there := len(old) > 0 && old[len(old)-1].text > 0
		c := store.Change{Op: soif.Update, OID: store.ID(url, "g@"+s.name)}
		switch {
		case there && strings.Contains(url, "/r/"):
			continue
		case there && strings.Contains(url, "/u/") && k.r.IntN(3) == 0:
			c.Op = soif.Delete
		case there && k.r.IntN(4) == 0:
			c.Op, c.Updated = soif.Refresh, time.Unix(1e9+k.r.Int64N(1e6), 0)
		default:
			c.Body = k.object(s, url, len(old)+1)
		}
		batch[url] = c
	}
	for url, c := range batch {
		seq, err := s.store.Apply(context.Background(), []store.Change{c})
		k.must(err)
		switch v := s.version[url]; c.Op {
		case soif.Delete:
			s.version[url] = append(v, killVersion{seq, 0})
		case soif.Update:
			s.version[url] = append(v, killVersion{seq, len(v) + 1})
		}
	}
}

func (k *killBroker) object(s *killSource, url string, version int) []byte {
	o := soif.Object{Type: "FILE", URL: url}
	var text strings.Builder
	for range 5 + k.r.IntN(60) {
		fmt.Fprintf(&text, "w%d ", k.r.IntN(killWords))
	}
	for _, a := range [][2]string{
		{"Update-Time", strconv.Itoa(1e9 + version)}, {"Time-to-Live", "2000000000"}, {"Type", fmt.Sprintf("t%d", k.r.IntN(4))},
		{"Gatherer-Name", "g"}, {"Gatherer-Host", s.name}, {"Version", strconv.Itoa(version)}, {"Full-Text", text.String()},
	} {
		o.Add(a[0], []byte(a[1]))
	}
	return o.Append(nil)
}

// start starts the server. With a time it is killed after that.
func (k *killBroker) start(kill time.Duration) {
	begin := time.Now()
	if kill > 0 {
		p, _ := spawn(k.t, k.dir)
		<-time.After(kill) // the moment was drawn by lot: there is nothing to wait for
		p.Process.Kill()
		p.Wait()
		return
	}
	k.p = startServer(k.t, k.dir)
	k.ctx = k.t.Context()
	k.dead.Store(false)
	if k.ready == 0 || k.round < 3 {
		k.ready = max(time.Since(begin), 20*time.Millisecond)
	}
}

// workAndKill has everything done at once, until a random moment.
func (k *killBroker) workAndKill() {
	ctx, cancel := context.WithCancel(k.t.Context())
	k.ctx = ctx
	seed, until := k.r.Uint64(), time.Duration(k.r.Int64N(int64(5*k.ready))) // drawn by lot, before others draw
	var wg sync.WaitGroup
	for i, work := range []func(*rand.Rand) (string, error){k.collecting, k.asking, k.viewing, k.tidying} {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for !k.dead.Load() {
				what, err := work(r)
				if err != nil {
					if !k.dead.Load() {
						k.t.Errorf("round %d: %s: %v", k.round, k.doing[i], err)
					}
					return
				}
				k.doing[i] = ""
				k.mu.Lock()
				k.done[what]++
				k.mu.Unlock()
			}
		})
	}
	<-time.After(until)
	k.dead.Store(true)
	k.p.kill(k.t)
	cancel()
	wg.Wait()
}

// collecting changes a source, and waits until the Broker says it has that.
func (k *killBroker) collecting(r *rand.Rand) (string, error) {
	s := k.src[r.IntN(2)]
	k.mu.Lock()
	k.change(s, 1<<r.IntN(10))
	k.mu.Unlock()
	return "collect", k.collect(s)
}

// collect has the Broker collect until it has all that a source has.
func (k *killBroker) collect(s *killSource) error {
	want := s.store.Cursor()
	for asked := false; ; {
		cursor, is, err := k.sourceStatus(s)
		if err != nil {
			return err
		}
		if cursor.Seq >= want.Seq {
			return nil
		}
		if !asked || is == "failing" { // one that was under way may have begun before the change
			if asked = is != "collecting" && is != "due"; asked {
				if err := k.write("broker/b/ctl", "collect "+k.sourcePath(s)); err != nil {
					return err
				}
			}
		}
		if is == "waiting" {
			asked = false
		}
		if err := k.pause(); err != nil {
			return err
		}
	}
}

// pause lets the server work.
func (k *killBroker) pause() error {
	select {
	case <-time.After(2 * time.Millisecond):
		return nil
	case <-k.ctx.Done():
		return k.ctx.Err()
	}
}

func (k *killBroker) sourcePath(s *killSource) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for line := range strings.Lines(k.config) {
		if e, err := ndb.ParseLine(line, 1); err == nil {
			if p, ok := e.Get("path"); ok && strings.HasSuffix(p, "/"+s.name) {
				return p
			}
		}
	}
	return ""
}

// sourceStatus reads how far a source was read, and takes note of it.
func (k *killBroker) sourceStatus(s *killSource) (at store.Cursor, is string, err error) {
	text, err := k.read("broker/b/status")
	if err != nil {
		return at, "", err
	}
	for line := range strings.Lines(text) {
		e, err := ndb.ParseLine(line, 1)
		if err != nil {
			return at, "", err
		}
		if p, ok := e.Get("path"); ok && p == k.sourcePath(s) {
			cursor, _ := e.Get("cursor")
			is, _ = e.Get("is")
			at, err = s.store.ParseCursor(cursor)
			k.mu.Lock()
			defer k.mu.Unlock()
			if err == nil && at.Seq < s.cursor.Seq {
				err = fmt.Errorf("source %s: cursor %s, and it was %s", s.name, at, s.cursor)
			}
			s.cursor = at
			return at, is, err
		}
	}
	return at, "", fmt.Errorf("no source %s in %s", s.name, text)
}

// asking walks to queries, and makes, asks and removes sessions.
func (k *killBroker) asking(r *rand.Rand) (string, error) {
	word := fmt.Sprintf("w%d", r.IntN(killWords))
	name := fmt.Sprintf("s%d", r.IntN(4))
	q, there := k.sessions[name]
	switch n := r.IntN(10); {
	case n < 7:
		k.doing[1] = "q/" + word
		_, err := k.read("broker/b/q/" + word + "/" + []string{"hits", "summary", "soif", "plan"}[r.IntN(4)])
		return "read q", err
	case !there:
		k.doing[1] = "session " + name
		err := k.mkdir("broker/b/query/" + name)
		if err == nil {
			k.sessions[name] = ""
		}
		return "mkdir query", err
	case n < 9 || q == "":
		k.doing[1] = "session " + name + " " + word
		err := k.write("broker/b/query/"+name+"/ctl", "query "+word)
		if err == nil {
			k.sessions[name] = word
		}
		return "query", err
	}
	k.doing[1] = "session " + name
	err := k.remove("broker/b/query/" + name)
	if err == nil {
		delete(k.sessions, name)
	}
	return "rmdir query", err
}

// viewing makes, edits and removes views.
func (k *killBroker) viewing(r *rand.Rand) (string, error) {
	name := fmt.Sprintf("v%d", r.IntN(5))
	path := "broker/b/views/" + name
	v, there := k.views[name]
	switch n := r.IntN(8); {
	case !there:
		k.doing[2] = "view " + name
		err := k.mkdir(path)
		if err == nil {
			k.views[name] = killView{hand: map[string]string{}}
		}
		return "mkdir view", err
	case n < 3 || v.query == "":
		word := fmt.Sprintf("w%d", r.IntN(killWords))
		k.doing[2] = "view " + name + " query " + word
		err := k.write(path+"/query", word)
		if err == nil {
			v.query = word
			k.views[name] = v
		}
		return "edit of query", err
	case n < 7:
		oid := k.kept(r)
		if oid == "" {
			return "nothing", nil
		}
		what := []string{"add", "remove", "leave"}[r.IntN(3)]
		k.doing[2] = "view " + name + " " + what + " " + oid
		err := k.write(path+"/ctl", what+" "+oid)
		if err == nil {
			v.hand[oid] = what
		}
		return "edit by hand", err
	}
	k.doing[2] = "view " + name
	err := k.remove(path)
	if err == nil {
		delete(k.views, name)
	}
	return "rmdir view", err
}

// kept is an object that the Broker has and that stays.
func (k *killBroker) kept(r *rand.Rand) string {
	s := k.src[r.IntN(2)]
	url := fmt.Sprintf("http://%s/k/%d", s.name, r.IntN(300))
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := s.version[url]; len(v) == 0 || v[0].seq > s.cursor.Seq {
		return ""
	}
	return store.ID(url, "g@"+s.name).String()
}

// tidying removes objects and has the Broker collect garbage, check, make its
// index anew and take another config.
func (k *killBroker) tidying(r *rand.Rand) (string, error) {
	switch n := r.IntN(12); {
	case n < 6:
		return "rm", k.removing(r)
	case n < 8:
		return "gc", k.write("broker/b/ctl", "gc")
	case n < 9:
		return "reindex", k.write("broker/b/ctl", "reindex")
	case n < 10:
		return "check", k.write("broker/b/ctl", "check")
	}
	k.mu.Lock()
	lines := strings.SplitAfter(k.config, "\n")
	k.mu.Unlock()
	config := lines[0] + lines[1] + fmt.Sprintf("weight title=%d\n", r.IntN(100))
	if r.IntN(4) == 0 {
		config += "index positions=no\n"
	}
	k.doing[3] = config
	err := k.write("broker/b/config", config)
	if err == nil {
		k.mu.Lock()
		k.config = config
		k.mu.Unlock()
	}
	return "config", err
}

// removing removes an object that was collected for good.
func (k *killBroker) removing(r *rand.Rand) error {
	s := k.src[r.IntN(2)]
	url := fmt.Sprintf("http://%s/r/%d", s.name, r.IntN(300))
	k.mu.Lock()
	v, begun := s.version[url], false
	_, begun = s.removed[url]
	ok := len(v) > 0 && v[0].seq <= s.cursor.Seq && !begun
	if ok {
		s.removed[url] = false
	}
	k.mu.Unlock()
	if !ok {
		return nil
	}
	oid := store.ID(url, "g@"+s.name).String()
	k.doing[3] = "rm " + url
	err := k.remove("broker/b/objects/" + oid[:2] + "/" + oid + ".soif")
	if err == nil {
		k.mu.Lock()
		s.removed[url] = true
		k.mu.Unlock()
	}
	return err
}

func (k *killBroker) read(path string) (string, error) {
	f, err := fs.IO(k.ctx, k.p.c.Root()).Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

func (k *killBroker) write(path, text string) error {
	return writeFile(k.ctx, k.p.c.Root(), path, strings.NewReader(strings.TrimSuffix(text, "\n")+"\n"), false)
}

func (k *killBroker) mkdir(path string) error {
	d, name, err := parent(k.ctx, k.p.c.Root(), path)
	if err != nil {
		return err
	}
	_, err = d.(fs.Maker).Mkdir(k.ctx, name, 0o755)
	return err
}

func (k *killBroker) remove(path string) error {
	d, name, err := parent(k.ctx, k.p.c.Root(), path)
	if err != nil {
		return err
	}
	return d.(fs.Remover).Remove(k.ctx, name)
}

// names lists a directory.
func (k *killBroker) names(path string) (list []string, err error) {
	d, err := walkDir(k.ctx, k.p.c.Root(), path)
	if err != nil {
		return nil, err
	}
	for e, lerr := range d.List(k.ctx, "") {
		err = errors.Join(err, lerr)
		list = append(list, e.Name)
	}
	slices.Sort(list)
	return list, err
}
