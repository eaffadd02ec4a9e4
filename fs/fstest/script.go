package fstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"harvest/fs"
)

// Build makes the tree that a script runs against. What it keeps goes into
// the folder work, so that a tree built there again is a service restarted.
// The function it gives, if any, ends all that was begun.
type Build func(tb testing.TB, work string) (root fs.Dir, cleanup func())

// Scripts runs every *.txt of the folder three times: on the tree itself, on
// the tree as 9P shows it, and on a mount of it where there is a FUSE device.
// Each script has a tree of its own. docs/scripts.8.md has the verbs.
//
// The mount is served by a child process, which is this test binary run
// again with only the calling test selected: what the test does before it
// calls Scripts happens there too, what comes after does not.
func Scripts(t *testing.T, dir string, build Build) {
	if os.Getenv(envPoint) != "" {
		serveMount(t, build)
		t.SkipNow() // the rest of the test is the parent's
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s: no *.txt in it", dir)
	}
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			if why := d.missing(); why != "" {
				t.Skipf("scripts of %s do not run %s: %s", dir, d.name, why)
			}
			testscript.Run(t, testscript.Params{
				Files:     files,
				Cmds:      commands(),
				Setup:     func(e *testscript.Env) error { return setup(e, d, dir, t.Name(), build) },
				Condition: func(c string) (bool, error) { return condition(c, d) },
			})
		})
	}
}

// Tree runs the suite of Dir three times, through the same doors as Scripts
// and on the same terms.
func Tree(t *testing.T, build Build, opt Options) {
	if os.Getenv(envPoint) != "" {
		serveMount(t, build)
		t.SkipNow()
	}
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			if why := d.missing(); why != "" {
				t.Skipf("the suite does not run %s: %s", d.name, why)
			}
			root, _, done, err := d.open(t, strings.TrimSuffix(t.Name(), "/"+d.name), t.TempDir(), build)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			s := newSuite(t, root, opt)
			s.remote = d.remote
			s.all(t)
		})
	}
}

// A door is a way to a tree. Open gives the tree as seen through it, and what
// the script may want to know as its environment.
type door struct {
	name    string
	remote  bool // who may do what is decided at the other side
	missing func() string
	open    func(tb testing.TB, test, work string, build Build) (root fs.Dir, env map[string]string, close func(), err error)
}

func condition(cond string, d door) (bool, error) {
	for _, other := range doors {
		if other.name == cond {
			return d.name == cond, nil
		}
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// session is the state of one script.
type session struct {
	dir    string // of the scripts
	remote bool
	reopen func(setenv func(k, v string)) error
	close  func()
	root   fs.Dir
	held   map[string]*held
	site   atomic.Pointer[Site]
	server *httptest.Server
}

// held is a file that stays open between verbs.
type held struct {
	fs.Handle
	off int64
}

type sessionKey struct{}

func setup(e *testscript.Env, d door, dir, test string, build Build) error {
	tb := e.T().(testing.TB)
	// Outside of the script's own folder, which is searched and removed at
	// its end, mount or no mount.
	work, err := os.MkdirTemp("", "fst")
	if err != nil {
		return err
	}
	s := &session{dir: dir, remote: d.remote, held: make(map[string]*held)}
	s.reopen = func(setenv func(k, v string)) error {
		root, env, close, err := d.open(tb, strings.TrimSuffix(test, "/"+d.name), work, build)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		s.root, s.close = root, close
		for k, v := range env {
			setenv(k, v)
		}
		return nil
	}
	e.Defer(func() {
		s.shut()
		if s.server != nil {
			s.server.Close()
		}
		if err := os.RemoveAll(work); err != nil {
			tb.Errorf("after the script: %v", err)
		}
	})
	e.Values[sessionKey{}] = s
	return s.reopen(e.Setenv)
}

// shut closes what is open, then the door.
func (s *session) shut() {
	for name, h := range s.held {
		h.Close()
		delete(s.held, name)
	}
	if s.close != nil {
		s.close()
		s.close = nil
	}
}

// A verb gives what the script sees as its standard output.
type verb struct {
	usage    string
	min, max int // arguments; max -1 is any number
	run      func(ctx context.Context, s *session, ts *testscript.TestScript, arg []string) (string, error)
}

// commands are the verbs, as testscript wants them.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	out := make(map[string]func(*testscript.TestScript, bool, []string))
	for _, v := range verbs {
		out[strings.Fields(v.usage)[0]] = v.call
	}
	return out
}

var verbs = [...]verb{
	{"read FILE", 1, 1, func(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
		return s.read(ctx, arg[0])
	}},
	{"ls DIR", 0, 1, list},
	{"stat PATH", 1, 1, statLine},
	{"has FILE PATTERN", 2, 2, has},
	{"await FILE PATTERN [DURATION]", 2, 3, await},
	{"write FILE [WORD...]", 1, -1, func(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
		return "", s.write(ctx, arg[0], fs.Trunc, echo(arg[1:]))
	}},
	{"append FILE WORD...", 2, -1, func(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
		return "", s.write(ctx, arg[0], fs.Append, echo(arg[1:]))
	}},
	{"put LOCAL FILE", 2, 2, func(ctx context.Context, s *session, ts *testscript.TestScript, arg []string) (string, error) {
		return "", s.write(ctx, arg[1], fs.Trunc, ts.ReadFile(arg[0]))
	}},
	{"trunc FILE SIZE", 2, 2, truncate},
	{"mk DIR", 1, 1, mkdir},
	{"rmv PATH", 1, 1, remove},
	{"ren OLD NEW", 2, 2, rename},
	{"open NAME FILE [r|w|rw|a]", 2, 3, open},
	{"next NAME", 1, 1, next},
	{"send NAME WORD...", 2, -1, send},
	{"close NAME", 1, 1, closeFile},
	{"let VAR", 1, 1, let},
	{"restart", 0, 0, restart},
	{"site FILE|DIR", 1, 1, serveSite},
	{"requests", 0, 0, requests},
	{"port VAR", 1, 1, freePort},
	{"listening PORT", 1, 1, listening},
}

func (v verb) call(ts *testscript.TestScript, neg bool, arg []string) {
	if len(arg) < v.min || v.max >= 0 && len(arg) > v.max {
		ts.Fatalf("usage: %s", v.usage)
	}
	s := ts.Value(sessionKey{}).(*session)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := v.run(ctx, s, ts, arg)
	io.WriteString(ts.Stdout(), out)
	if err != nil {
		fmt.Fprintln(ts.Stderr(), err)
	}
	if err != nil && !neg {
		ts.Fatalf("%v", err)
	}
	if err == nil && neg {
		ts.Fatalf("got success, want an error")
	}
}

func echo(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, " ") + "\n"
}

// parent finds the directory that has, or will have, a name.
func (s *session) parent(ctx context.Context, p string) (fs.Dir, string, error) {
	up, name := path.Split(path.Clean(p))
	n, err := fs.Walk(ctx, s.root, up)
	if err != nil {
		return nil, "", err
	}
	d, ok := n.(fs.Dir)
	if !ok {
		return nil, "", fmt.Errorf("%s: is not a directory", up)
	}
	return d, name, nil
}

func (s *session) file(ctx context.Context, p string, m fs.Mode) (fs.Handle, error) {
	n, err := fs.Walk(ctx, s.root, p)
	if err != nil {
		return nil, err
	}
	f, ok := n.(fs.File)
	if !ok {
		return nil, fmt.Errorf("%s: is a directory", p)
	}
	open := fs.OpenNode
	if s.remote {
		open = func(ctx context.Context, f fs.File, m fs.Mode) (fs.Handle, error) { return f.Open(ctx, m) }
	}
	h, err := open(ctx, f, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return h, nil
}

// finish is close(2): it tells what Flush says.
func finish(ctx context.Context, h fs.Handle, err error) error {
	if ferr := h.Flush(ctx); err == nil {
		err = ferr
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

func (s *session) read(ctx context.Context, p string) (string, error) {
	h, err := s.file(ctx, p, fs.Read)
	if err != nil {
		return "", err
	}
	b, err := readAll(ctx, h, 32<<10)
	return string(b), finish(ctx, h, err)
}

// write does what a shell's > and >> do.
func (s *session) write(ctx context.Context, p string, how fs.Mode, text string) error {
	h, err := s.file(ctx, p, fs.Write|how)
	if errors.Is(err, iofs.ErrNotExist) {
		h, err = s.create(ctx, p)
	}
	if err != nil {
		return err
	}
	if text != "" {
		_, err = h.WriteAt(ctx, []byte(text), 0)
	}
	return finish(ctx, h, err)
}

func (s *session) create(ctx context.Context, p string) (fs.Handle, error) {
	d, name, err := s.parent(ctx, p)
	if err != nil {
		return nil, err
	}
	c, ok := d.(fs.Creator)
	if !ok {
		return nil, fmt.Errorf("%s: %w", p, iofs.ErrPermission)
	}
	_, h, err := c.Create(ctx, name, 0o644, fs.Write)
	return h, err
}

func list(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	n, err := fs.Walk(ctx, s.root, strings.Join(arg, ""))
	if err != nil {
		return "", err
	}
	d, ok := n.(fs.Dir)
	if !ok {
		return "", fmt.Errorf("%s: is not a directory", arg[0])
	}
	var b strings.Builder
	for e, err := range d.List(ctx, "") {
		if err != nil {
			return b.String(), err
		}
		b.WriteString(e.Name)
		if _, ok := e.Node.(fs.Dir); ok {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func statLine(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	n, err := fs.Walk(ctx, s.root, arg[0])
	if err != nil {
		return "", err
	}
	st := n.Stat()
	if _, ok := n.(fs.Dir); ok {
		st.Mode |= iofs.ModeDir
	}
	return fmt.Sprintf("%v %d %s\n", st.Mode, st.Size, arg[0]), nil
}

func pattern(text string) (*regexp.Regexp, error) { return regexp.Compile("(?m)" + text) }

func has(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	re, err := pattern(arg[1])
	if err != nil {
		return "", err
	}
	text, err := s.read(ctx, arg[0])
	if err == nil && !re.MatchString(text) {
		err = fmt.Errorf("%s: no match for %q in\n%s", arg[0], arg[1], text)
	}
	return text, err
}

// await reads a file again and again until it matches; it may be yet to come.
func await(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	re, err := pattern(arg[1])
	if err != nil {
		return "", err
	}
	limit := 30 * time.Second // a machine may be busy
	if len(arg) == 3 {
		if limit, err = time.ParseDuration(arg[2]); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := s.read(ctx, arg[0])
		if err == nil && re.MatchString(text) {
			return text, nil
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) && ctx.Err() == nil {
			return text, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("%s: no match for %q after %v in\n%s", arg[0], arg[1], limit, text)
			}
			return text, err
		}
	}
}

func truncate(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	size, err := strconv.ParseInt(arg[1], 10, 64)
	if err != nil {
		return "", err
	}
	n, err := fs.Walk(ctx, s.root, arg[0])
	if err != nil {
		return "", err
	}
	set, ok := n.(fs.Setter)
	if !ok {
		return "", fmt.Errorf("%s: %w", arg[0], iofs.ErrPermission)
	}
	return "", set.Set(ctx, fs.Change{Size: &size})
}

func mkdir(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	d, name, err := s.parent(ctx, arg[0])
	if err != nil {
		return "", err
	}
	m, ok := d.(fs.Maker)
	if !ok {
		return "", fmt.Errorf("%s: %w", arg[0], iofs.ErrPermission)
	}
	_, err = m.Mkdir(ctx, name, 0o755)
	return "", err
}

func remove(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	d, name, err := s.parent(ctx, arg[0])
	if err != nil {
		return "", err
	}
	r, ok := d.(fs.Remover)
	if !ok {
		return "", fmt.Errorf("%s: %w", arg[0], iofs.ErrPermission)
	}
	return "", r.Remove(ctx, name)
}

func rename(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	d, old, err := s.parent(ctx, arg[0])
	if err != nil {
		return "", err
	}
	if path.Dir(path.Clean(arg[0])) != path.Dir(path.Clean(arg[1])) {
		return "", fmt.Errorf("%s and %s: not in one directory", arg[0], arg[1])
	}
	r, ok := d.(fs.Renamer)
	if !ok {
		return "", fmt.Errorf("%s: %w", arg[0], iofs.ErrPermission)
	}
	return "", r.Rename(ctx, old, path.Base(arg[1]), true)
}

func open(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	modes := map[string]fs.Mode{"r": fs.Read, "w": fs.Write | fs.Trunc, "rw": fs.Read | fs.Write, "a": fs.Write | fs.Append}
	m := modes["rw"]
	if len(arg) == 3 {
		var ok bool
		if m, ok = modes[arg[2]]; !ok {
			return "", fmt.Errorf("open: unknown mode %q", arg[2])
		}
	}
	if s.held[arg[0]] != nil {
		return "", fmt.Errorf("open: %s is open", arg[0])
	}
	h, err := s.file(ctx, arg[1], m)
	if err != nil {
		return "", err
	}
	s.held[arg[0]] = &held{Handle: h}
	return "", nil
}

func (s *session) holding(name string) (*held, error) {
	h := s.held[name]
	if h == nil {
		return nil, fmt.Errorf("%s: is not open", name)
	}
	return h, nil
}

func next(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	h, err := s.holding(arg[0])
	if err != nil {
		return "", err
	}
	buf := make([]byte, 32<<10)
	n, err := h.ReadAt(ctx, buf, h.off)
	h.off += int64(n)
	if err == io.EOF {
		err = nil
	}
	return string(buf[:n]), err
}

func send(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	h, err := s.holding(arg[0])
	if err != nil {
		return "", err
	}
	n, err := h.WriteAt(ctx, []byte(echo(arg[1:])), h.off)
	h.off += int64(n)
	return "", err
}

func closeFile(ctx context.Context, s *session, _ *testscript.TestScript, arg []string) (string, error) {
	h, err := s.holding(arg[0])
	if err != nil {
		return "", err
	}
	delete(s.held, arg[0])
	return "", finish(ctx, h, nil)
}

func let(_ context.Context, s *session, ts *testscript.TestScript, arg []string) (string, error) {
	text := ts.ReadFile("stdout")
	ts.Setenv(arg[0], strings.TrimSpace(text))
	return text, nil
}

func restart(_ context.Context, s *session, ts *testscript.TestScript, _ []string) (string, error) {
	s.shut()
	return "", s.reopen(ts.Setenv)
}

func serveSite(_ context.Context, s *session, ts *testscript.TestScript, arg []string) (string, error) {
	name := ts.MkAbs(arg[0])
	if _, err := os.Stat(name); err != nil {
		name = filepath.Join(s.dir, arg[0])
	}
	site, err := NewSite(name)
	if err != nil {
		return "", err
	}
	s.site.Store(site)
	if s.server == nil {
		s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.site.Load().ServeHTTP(w, r) }))
		ts.Setenv("SITE", s.server.URL)
	}
	return s.server.URL + "\n", nil
}

func requests(_ context.Context, s *session, _ *testscript.TestScript, _ []string) (string, error) {
	site := s.site.Load()
	if site == nil {
		return "", errors.New("requests: no site is served")
	}
	return strings.Join(append(site.Requests(), ""), "\n"), nil
}
