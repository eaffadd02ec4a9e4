package shortcut

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"harvest/gather/essence/pattern"
)

// MaxModules is how many a Set may have.
const MaxModules = 5000

// A Set is the modules of a Broker, each a file of a folder.
type Set struct {
	dir   string
	log   *slog.Logger
	limit time.Duration // for an answer; Limit but in tests

	mu       sync.RWMutex
	modules  map[string]*kept
	patterns *pattern.Set // of all modules; nil if it could not be made
	owner    []*kept      // of each pattern
	closed   bool
}

// A kept is a module with its process, and what became of it.
type kept struct {
	*module
	time   time.Time
	runner *runner // nil for a template

	mu    sync.Mutex
	tally Tally
}

// A Tally is what became of a module's answers.
type Tally struct {
	Asked, Answered, None, Failed int64
	Took                          time.Duration // of all answers
	Err                           string        // the last failure
}

// Open reads the modules in dir. What is no module any more is told of, and passed
// over.
func Open(dir string, log *slog.Logger) (*Set, error) {
	s := &Set{dir: dir, log: log, limit: Limit, modules: make(map[string]*kept)}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if CheckName(f.Name()) != nil {
			os.Remove(path) // what a write that was cut off has left
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(f.Name(), string(text))
		if err != nil {
			log.Error("shortcut", "module", f.Name(), "err", err)
			continue
		}
		k := s.keep(m)
		if info, err := f.Info(); err == nil {
			k.time = info.ModTime()
		}
		s.modules[m.name] = k
	}
	return s, s.compile()
}

func (s *Set) keep(m *module) *kept {
	k := &kept{module: m, time: time.Now()}
	if m.program {
		k.runner = newRunner(filepath.Join(s.dir, m.name))
	}
	return k
}

// CheckName refuses what is not the name of a module: letters, digits, '-' and '_'.
func CheckName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
	if name == "" || len(name) > 64 || bad || name[0] == '-' || strings.Trim(name, "0123456789") == "" {
		return fmt.Errorf("'%.100s' is not the name of a shortcut, which has 1 to 64 letters, digits, '-' and '_': %w", name, iofs.ErrInvalid)
	}
	return nil
}

// compile makes the set of all expressions; mu is held, or s new.
func (s *Set) compile() error {
	var all []pattern.Pattern
	s.owner = nil
	for _, name := range slices.Sorted(maps.Keys(s.modules)) {
		k := s.modules[name]
		for _, expr := range k.match {
			all = append(all, pattern.Pattern{Text: expr, Regexp: true})
			s.owner = append(s.owner, k)
		}
	}
	p, err := pattern.Compile(all)
	// There may be few expressions without a word; with more, all are tried.
	if s.patterns = p; err != nil {
		s.patterns = nil
	}
	return nil
}

// Put makes a module, or changes one. An error of its text is an *Error.
func (s *Set) Put(name, text string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	m, err := parse(name, text)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.modules[name]
	if !ok && len(s.modules) >= MaxModules {
		return fmt.Errorf("%s: there are %d shortcuts: %w", name, MaxModules, errors.ErrUnsupported)
	}
	if err := s.write(name, text); err != nil {
		return err
	}
	k := s.keep(m)
	s.modules[name] = k
	if ok {
		old.end()
	}
	if k.runner != nil {
		k.runner.warm()
	}
	return s.compile()
}

// write makes the file of a module; a program's can be run.
func (s *Set) write(name, text string) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	mode := iofs.FileMode(0o644)
	if IsProgram(text) {
		mode = 0o755
	}
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return nil
}

// Remove takes a module away.
func (s *Set) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.modules[name]
	if !ok {
		return fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	delete(s.modules, name)
	k.end()
	return s.compile()
}

// Text returns a module's text, and when it was made.
func (s *Set) Text(name string) (text string, at time.Time, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, ok := s.modules[name]
	if !ok {
		return "", time.Time{}, false
	}
	return k.text, k.time, true
}

// Names returns the modules' names in order.
func (s *Set) Names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.modules))
}

// Tally returns what became of a module's answers.
func (s *Set) Tally(name string) Tally {
	s.mu.RLock()
	k := s.modules[name]
	s.mu.RUnlock()
	if k == nil {
		return Tally{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tally
}

// Close ends all programs.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, k := range s.modules {
		k.end()
	}
}

func (k *kept) end() {
	if k.runner != nil {
		k.runner.close()
	}
}

// own returns the modules that a query is for.
func (s *Set) own(q string) []*kept {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed || len(q) > MaxQuery || strings.ContainsAny(q, "\n\r\x00") {
		return nil
	}
	var all []*kept
	if s.patterns == nil {
		for _, k := range s.modules {
			if re, _ := k.fits(q); re != nil {
				all = append(all, k)
			}
		}
		return all
	}
	h := s.patterns.Hits()
	s.patterns.Match(h, []byte(q))
	for i, k := range s.owner {
		if h.Has(i) && !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// Ask asks the modules that a query is for, all at once, and returns what has come
// within Limit: answers, the surest first, and then those that failed.
func (s *Set) Ask(ctx context.Context, q string) []Answer {
	own := s.own(q)
	if len(own) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("%w within %v", errSlow, s.limit))
	defer cancel()
	all := make([]Answer, len(own))
	there := make([]bool, len(own))
	var wg sync.WaitGroup
	for i, k := range own {
		wg.Go(func() { all[i], there[i] = k.ask(ctx, q) })
	}
	wg.Wait()
	var said []Answer
	for i, a := range all {
		if there[i] {
			said = append(said, a)
		}
	}
	slices.SortFunc(said, func(a, b Answer) int {
		if (a.Err == nil) != (b.Err == nil) {
			if a.Err == nil {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Score-a.Score, strings.Compare(a.Name, b.Name))
	})
	return said
}

// ask asks one module. There is no answer if it says none.
func (k *kept) ask(ctx context.Context, q string) (a Answer, ok bool) {
	start := time.Now()
	if k.runner == nil {
		a, ok = k.fill(q)
	} else {
		lines, err := k.runner.ask(ctx, q)
		if err == nil && len(lines) > 0 {
			a, err = parseAnswer(k.name, lines)
		}
		if err != nil {
			a = Answer{Name: k.name, Err: err}
		}
		ok = err != nil || len(lines) > 0
	}
	a.Took = time.Since(start)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tally.Asked++
	switch {
	case a.Err != nil:
		k.tally.Failed++
		k.tally.Err = a.Err.Error()
	case ok:
		k.tally.Answered++
		k.tally.Took += a.Took
	default:
		k.tally.None++
	}
	return a, ok
}
