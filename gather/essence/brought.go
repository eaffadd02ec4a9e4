package essence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	iofs "io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/essence/jail"
	"harvest/gather/essence/star"
	"harvest/gather/soif"
)

// # What users bring
//
// A summarizer or an exploder of a user's is a file that is named for the type
// it is for and the form it has:
//
//	TYPE.sum, TYPE  a program, run in a jail (program.go)
//	TYPE.star       Starlark, run in a jail (star.go)
//	TYPE.quick      regular expressions, a line each (quick.go); summarizers only
//
// Those of a type are asked in this order, until one is neither broken nor says
// that the object is not its own; then comes the program's own.

// A Brought is a file that a user brought.
type Brought struct {
	File    string // as above
	Explode bool   // an exploder, else a summarizer
	Path    string // of a program, on disk
	Text    string // of the others
	Bounds  Bounds
}

// Bounds are those of one run over one object; zero is the default.
type Bounds struct {
	Wall   time.Duration // 20 s; of Starlark 5 s
	Memory int64         // 512 MiB; of Starlark 256 MiB
	Output int64         // 64 KiB; of an exploder 16 MiB
	Procs  int           // 64
	Keep   int           // objects that one process sees; 0 is a process an object; of Starlark 1,000
}

// form tells type and form of a file by its name.
func form(file string) (typ, form string) {
	typ, form, _ = strings.Cut(file, ".")
	if form == "" {
		form = "sum"
	}
	return typ, form
}

// rank is the order of forms.
var rank = map[string]int{"sum": 0, "star": 1, "quick": 2}

// CheckName refuses what is no name of a summarizer or exploder.
func CheckName(file string, explode bool) error {
	typ, form := form(file)
	_, ok := rank[form]
	if !ok || explode && form == "quick" || strings.Count(file, ".") > 1 || len(file) > 200 || !isType(typ) {
		forms := "TYPE.sum, TYPE.star or TYPE.quick"
		if explode {
			forms = "TYPE.sum or TYPE.star"
		}
		return fmt.Errorf("%.100s: is not %s, where TYPE begins with a capital letter: %w", file, forms, iofs.ErrInvalid)
	}
	return nil
}

// IsProgram tells whether a file is a program, which only somebody on this
// machine may bring.
func IsProgram(file string) bool {
	_, form := form(file)
	return form == "sum"
}

// TypeOf is the type that a file of this name is for.
func TypeOf(file string) string {
	typ, _ := form(file)
	return typ
}

// CheckBrought refuses what cannot work, with line and column.
func CheckBrought(ctx context.Context, file string, explode bool, text string) error {
	if err := CheckName(file, explode); err != nil {
		return err
	}
	switch _, form := form(file); form {
	case "quick":
		_, err := parseQuick(text)
		return err
	case "star":
		return checkStar(ctx, file, explode, text)
	}
	if !strings.HasPrefix(text, "#!") && !strings.HasPrefix(text, "\x7fELF") {
		return &ndb.Error{Line: 1, Col: 1, Msg: "a script begins with #! and its interpreter, as #!/bin/sh"}
	}
	return nil
}

// Programs are what a user brought, ready to run. Any number of Summarize calls
// may use them; Close ends the processes that are kept.
type Programs struct {
	sum, explode map[string][]*brought // by type, in order
	told         func(Failure)
	print        uint64
}

// A Failure is a run that failed.
type Failure struct {
	File    string
	Explode bool
	URL     string
	Why     string
}

// NewPrograms makes Programs; told hears of what fails, concurrently, and may be
// nil.
func NewPrograms(all []Brought, told func(Failure)) (*Programs, error) {
	p := &Programs{sum: make(map[string][]*brought), explode: make(map[string][]*brought), told: told}
	h := fnv.New64a()
	for _, f := range all {
		b := &brought{Brought: f, tally: new(Tally)}
		typ, form := form(f.File)
		b.form = form
		b.defaults()
		var err error
		switch form {
		case "sum":
			b.pool = newPool(b.programCmd(typ), b.Bounds, nil)
		case "star":
			b.pool = newPool(b.starCmd(), b.Bounds, b.starBegin)
		case "quick":
			b.rules, err = parseQuick(f.Text)
		default:
			err = CheckName(f.File, f.Explode)
		}
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("%s: %w", f.File, err)
		}
		into := p.sum
		if f.Explode {
			into = p.explode
		}
		into[typ] = append(into[typ], b)
		fmt.Fprintf(h, "%s %t %v %d %s", f.File, f.Explode, b.Bounds, len(f.Text), f.Text)
	}
	for _, m := range []map[string][]*brought{p.sum, p.explode} {
		for _, list := range m {
			slices.SortStableFunc(list, func(a, b *brought) int {
				return cmp.Or(rank[a.form]-rank[b.form], len(b.File)-len(a.File)) // TYPE.sum before TYPE
			})
		}
	}
	p.print = h.Sum64()
	return p, nil
}

// Print moves when summaries may.
func (p *Programs) Print() uint64 {
	if p == nil {
		return 0
	}
	return p.print
}

// Close ends what is kept; a run that is under way ends first.
func (p *Programs) Close() {
	if p == nil {
		return
	}
	for _, b := range p.all() {
		if b.pool != nil {
			b.pool.close()
		}
	}
}

func (p *Programs) all() (all []*brought) {
	if p == nil {
		return nil
	}
	for _, m := range []map[string][]*brought{p.sum, p.explode} {
		for _, list := range m {
			all = append(all, list...)
		}
	}
	return all
}

// Inherit goes on counting where old was.
func (p *Programs) Inherit(old *Programs) {
	for _, b := range p.all() {
		for _, was := range old.all() {
			if was.File == b.File && was.Explode == b.Explode {
				b.tally = was.tally
			}
		}
	}
}

// A Tally counts what became of the runs of a file.
type Tally struct {
	mu sync.Mutex
	TallyFigures
	inRow int // failures since the last that was none, by a bound
}

// TallyFigures are the figures of a Tally.
type TallyFigures struct {
	Runs, Done, None, Failed int64
	Took                     time.Duration
	Err                      string // of the last that failed
	At                       time.Time
	Rests                    time.Time // until when it is not asked, having met its bounds again and again
}

// Tallies gives the figures by file, those of exploders with explode/ before.
func (p *Programs) Tallies() map[string]TallyFigures {
	m := make(map[string]TallyFigures)
	for _, b := range p.all() {
		name := b.File
		if b.Explode {
			name = "explode/" + name
		}
		b.tally.mu.Lock()
		m[name] = b.tally.TallyFigures
		b.tally.mu.Unlock()
	}
	return m
}

// What meets its bounds maxInRow times, with nothing else between, rests.
const (
	maxInRow = 5
	resting  = 5 * time.Minute
)

// rests tells whether a file is not to be asked now.
func (t *Tally) rests() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.Rests)
}

var errNone = errors.New("not mine")

// count notes how a run ended.
func (t *Tally) count(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Runs++
	t.Took += took
	if err == nil || err == errNone {
		t.inRow = 0
		if err == nil {
			t.Done++
		} else {
			t.None++
		}
		return
	}
	t.Failed++
	t.Err, t.At = err.Error(), time.Now()
	if errors.As(err, new(*jail.Bound)) {
		if t.inRow++; t.inRow >= maxInRow {
			t.inRow, t.Rests = 0, time.Now().Add(resting)
		}
	}
}

// A brought is a Brought that can run.
type brought struct {
	Brought
	form  string
	pool  *pool       // of a program and of Starlark
	rules []quickRule // of a quick one
	tally *Tally
}

func (b *brought) defaults() {
	d := Bounds{Wall: 20 * time.Second, Memory: 512 << 20, Output: 64 << 10, Procs: 64}
	if b.form == "star" {
		d = Bounds{Wall: 5 * time.Second, Memory: 256 << 20, Output: 2 << 20, Procs: 64, Keep: 1000}
	}
	if b.Explode {
		d.Output = 16 << 20
	}
	set(&b.Bounds.Wall, d.Wall)
	set(&b.Bounds.Memory, d.Memory)
	set(&b.Bounds.Output, d.Output)
	set(&b.Bounds.Procs, d.Procs)
	set(&b.Bounds.Keep, d.Keep)
}

func set[T int | int64 | time.Duration](p *T, n T) {
	if *p <= 0 {
		*p = n
	}
}

// brought summarizes a content by what users brought for its type, and tells
// whether that has been done.
func (w *worker) brought(o *soif.Object, c *content) bool {
	for _, b := range w.brings.of(c.typ, false) {
		all, err := w.ask(b, c)
		if err != nil {
			continue
		}
		n := len(o.Attrs)
		if len(all) > 0 {
			w.take(o, c, &all[0])
		}
		c.opt.apply(o, n)
		w.step(c, "summarize", fmt.Sprintf("%d attributes", len(o.Attrs)-n), b.File)
		return true
	}
	return false
}

// of are the files for a type.
func (p *Programs) of(typ string, explode bool) []*brought {
	switch {
	case p == nil:
		return nil
	case explode:
		return p.explode[typ]
	}
	return p.sum[typ]
}

// summarizes tells whether a user brought a summarizer for a type.
func (p *Programs) summarizes(typ string) bool { return p != nil && len(p.sum[typ]) > 0 }

// ask runs a file over a content and gives what it made of it. Any error is
// counted and told of, but for errNone.
func (w *worker) ask(b *brought, c *content) (all []soif.Object, err error) {
	if b.tally.rests() {
		w.step(c, "summarize", "passed over", b.File+" rests: it has met its bounds too often")
		return nil, errNone
	}
	start := time.Now()
	switch b.form {
	case "sum":
		all, err = b.program(w, c)
	case "star":
		all, err = b.star(w, c)
	case "quick":
		all, err = b.quick(w, c)
	}
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err() // what it is blamed for is not its doing
	}
	b.tally.count(time.Since(start), err)
	switch {
	case err == errNone:
		w.step(c, "summarize", "not mine", b.File)
	case err != nil:
		w.limit(c, fmt.Sprintf("%s: %.400v", b.File, err))
		if w.brings.told != nil {
			w.brings.told(Failure{File: b.File, Explode: b.Explode, URL: w.url, Why: err.Error()})
		}
	}
	return all, err
}

// own are the attributes that are the Gatherer's to say.
var own = map[string]bool{"type": true, "file-size": true, "md5": true, "url": true, "last-modification-time": true, "summary-limit": true,
	"update-time": true, "time-to-live": true, "refresh-rate": true, "gatherer-name": true, "gatherer-host": true, "gatherer-version": true}

// take adds what a user's summarizer found, in the bounds of any summary.
func (w *worker) take(o *soif.Object, c *content, from *soif.Object) {
	for _, a := range from.Attrs {
		name := soif.Name(a.Name)
		switch {
		case own[strings.ToLower(name)] || name == "" || len(a.Value) == 0:
		case strings.EqualFold(name, "Full-Text"):
			w.fullText(o, c, a.Value)
		default:
			if was, ok := o.Get(name); ok {
				w.replace(o, name, string(was)+"\n"+string(a.Value))
				continue
			}
			w.set(o, name, string(a.Value))
		}
	}
}

// replace sets an attribute that there is, in the bounds of one.
func (w *worker) replace(o *soif.Object, name, text string) {
	if len(text) > w.lim.Attr {
		text = string(cutText([]byte(text), w.lim.Attr))
	}
	o.Set(name, []byte(text))
}

// Inside are the functions of this package that run in a jail, for jail.Main.
func Inside() []jail.Inside { return []jail.Inside{star.Inside()} }
