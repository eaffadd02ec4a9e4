package enginetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"harvest/index"
	"harvest/index/query"
)

// A Keeper is as much of an engine as Kill needs to know.
type Keeper interface {
	Apply(ctx context.Context, puts iter.Seq2[*index.Doc, error], deletes []index.ID, mark string) error
	Mark() string
	Check(ctx context.Context) error
	Close() error
}

// Kill kills a process that applies documents and reads, again and again,
// with SIGKILL at random moments, and looks in its next life whether the index
// is what it was after the last call of Apply that returned, or after the one
// that was under way. The process is the test itself, run anew. HARVEST_KILLS
// sets how often, SEED what is applied.
//
// Read compares what e holds with the history, as Answers does; it is called
// while documents are applied as well.
func Kill[E Keeper](t *testing.T, open func(dir string, src index.Source) (E, error), read func(t *testing.T, e E, h *History)) {
	if dir := os.Getenv("HARVEST_KILL_DIR"); dir != "" {
		live(t, dir, open, read)
		return
	}
	kills, limit := number("HARVEST_KILLS", 12), 4*time.Second
	if os.Getenv("HARVEST_KILLS") != "" {
		limit = time.Hour
	}
	seed := uint64(number("SEED", int(time.Now().UnixNano())))
	t.Logf("up to %d kills in %v; HARVEST_KILLS=1000 for all of them; SEED=%d", kills, limit, seed)
	k := &killer{t: t, dir: t.TempDir(), seed: seed, rnd: rand.New(rand.NewPCG(seed, 0))}
	// On a busy machine it may be late until anything is applied.
	for begin := time.Now(); k.killed < kills && time.Since(begin) < limit || k.killed < 10*kills && k.acked == 0; k.killed++ {
		if k.killed%100 == 99 {
			t.Logf("%d kills, %d applies", k.killed, k.acked)
		}
		k.life()
		if t.Failed() {
			t.Fatalf("after %d kills", k.killed+1)
		}
	}
	h := NewHistory(seed)
	verify(t, k.dir, h, k.acked, open, read).Close()
	t.Logf("%d kills, %d while the index was opened, %d applies, none lost", k.killed, k.early, k.acked)
	if k.acked == 0 {
		t.Error("nothing was applied")
	}
}

// A killer runs one process after the other.
type killer struct {
	t      *testing.T
	dir    string
	seed   uint64
	rnd    *rand.Rand
	killed int
	early  int // of them before the index was verified
	acked  int // steps
}

// life runs a process and kills it; a fifth of them while the index is opened.
func (k *killer) life() {
	cmd := exec.Command(os.Args[0], "-test.run="+only(k.t), "-test.timeout=5m")
	cmd.Env = append(os.Environ(), "HARVEST_KILL_DIR="+k.dir, fmt.Sprint("HARVEST_KILL_ACKED=", k.acked), fmt.Sprint("SEED=", k.seed))
	var said, complained bytes.Buffer // one each: two write at once
	cmd.Stderr = &complained
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	within := func(d time.Duration) *time.Timer {
		return time.AfterFunc(time.Duration(k.rnd.Int64N(int64(d))), func() { cmd.Process.Kill() })
	}
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	if k.rnd.IntN(5) == 0 {
		timer.Stop()
		timer = within(50 * time.Millisecond)
	}
	verified, after := false, k.rnd.IntN(8) // it is killed after so many steps, and some time
	for sc := bufio.NewScanner(out); sc.Scan(); {
		var step int
		switch n, _ := fmt.Sscanf(sc.Text(), "ack %d", &step); {
		case sc.Text() == "verified":
			verified = true
		case strings.HasPrefix(sc.Text(), "mark "): // what is seen is as good as acknowledged
			k.acked = max(k.acked, Step(strings.TrimPrefix(sc.Text(), "mark ")))
		case n == 1:
			k.acked = step
			after--
		default:
			said.WriteString(sc.Text() + "\n")
		}
		if verified && after == 0 {
			after = -1
			timer.Stop()
			timer = within(40 * time.Millisecond)
		}
	}
	err = cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		k.t.Errorf("got %v, want it killed\n%s%s", err, said.Bytes(), complained.Bytes())
	}
	if !verified {
		k.early++
	}
}

// only is what runs a test and no other.
func only(t *testing.T) string {
	var path []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		path = append(path, "^"+name+"$")
	}
	return strings.Join(path, "/")
}

// live is the life of the process.
func live[E Keeper](t *testing.T, dir string, open func(string, index.Source) (E, error), read func(*testing.T, E, *History)) {
	h := NewHistory(uint64(number("SEED", 0)))
	e := verify(t, dir, h, number("HARVEST_KILL_ACKED", 0), open, read)
	if t.Failed() {
		return
	}
	fmt.Println("mark", e.Mark())
	fmt.Println("verified")
	var wg sync.WaitGroup
	wg.Go(func() {
		for !t.Failed() {
			read(t, e, h)
		}
	})
	for step := Step(e.Mark()) + 1; !t.Failed(); step++ {
		puts, deletes := h.Changes(step)
		h.begin(step)
		if err := e.Apply(ctx, index.Docs(puts), deletes, fmt.Sprint(step)); err != nil {
			t.Error(err)
			break
		}
		fmt.Println("ack", step)
	}
	wg.Wait()
}

// verify opens an index of which the steps up to acked are known to be done.
func verify[E Keeper](t *testing.T, dir string, h *History, acked int, open func(string, index.Source) (E, error), read func(*testing.T, E, *History)) E {
	e, err := open(dir, h)
	if err != nil {
		t.Fatalf("after %d applies: %v", acked, err)
	}
	step := Step(e.Mark())
	if step != acked && step != acked+1 {
		t.Errorf("got mark %q, want %d or the next", e.Mark(), acked)
	}
	h.begin(step)
	if err := e.Check(ctx); err != nil {
		t.Error(err)
	}
	read(t, e, h)
	return e
}

// Step is the number that Kill puts into a mark.
func Step(mark string) int {
	n, _ := strconv.Atoi(mark)
	return n
}

// A History is what is applied in one step after the other. Each can be told
// from its number alone, and so can the documents there are then. It is a
// Source of those of the last step that was begun.
type History struct {
	seed uint64
	grow int // documents that each step adds, rather than to change some
	step atomic.Int64
}

// NewHistory is that of a seed, before the first step, 1.
func NewHistory(seed uint64) *History { return &History{seed: seed} }

// Growing is a history of which each step adds documents.
func Growing(seed uint64, docs int) *History { return &History{seed: seed, grow: docs} }

func (h *History) begin(step int) { h.step.Store(int64(step)) }

// historyDocs is how many documents a history has at most that does not grow.
const historyDocs = 200

func historyID(i int) index.ID { return index.ID{byte(i % 5), byte(i), byte(i >> 8)} }

// docs is how many documents there may be after a step.
func (h *History) docs(step int) int {
	if h.grow > 0 {
		return h.grow * step
	}
	return historyDocs
}

// touches tells whether a step changes a document, and whether by a delete.
// Most steps change a few, one in twenty most.
func (h *History) touches(step, i int) (touched, deleted bool) {
	if h.grow > 0 {
		return i/h.grow == step-1, false
	}
	r := rand.NewPCG(h.seed+uint64(step), uint64(i)).Uint64()
	rate := uint64(5)
	if step%20 == 0 {
		rate = 80
	}
	return r%100 < rate, r>>32%5 == 0
}

// Changes are those of a step.
func (h *History) Changes(step int) (puts []index.Doc, deletes []index.ID) {
	for i := range h.docs(step) {
		switch touched, deleted := h.touches(step, i); {
		case touched && deleted:
			deletes = append(deletes, historyID(i))
		case touched:
			puts = append(puts, h.doc(step, i))
		}
	}
	return puts, deletes
}

// Docs are the documents after a step.
func (h *History) Docs(step int) map[index.ID]index.Doc {
	docs := make(map[index.ID]index.Doc)
	for i := range h.docs(step) {
		if d, ok := h.at(step, i); ok {
			docs[d.ID] = d
		}
	}
	return docs
}

// at is a document after a step.
func (h *History) at(step, i int) (index.Doc, bool) {
	if h.grow > 0 {
		return h.doc(i/h.grow+1, i), i/h.grow < step
	}
	for ; step > 0; step-- {
		if touched, deleted := h.touches(step, i); touched {
			return h.doc(step, i), !deleted
		}
	}
	return index.Doc{}, false
}

// doc is the document that a step puts.
func (h *History) doc(step, i int) index.Doc {
	r := rand.New(rand.NewPCG(h.seed-uint64(step), uint64(i)))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%d ", int(r.ExpFloat64()*30))
		}
		return b.String()
	}
	long := ""
	for range h.grow * 20 {
		long += fmt.Sprintf("n%x ", r.Uint32())
	}
	return index.Doc{ID: historyID(i), Fields: []index.Field{
		{Name: "long", Text: long},
		{Name: "title", Text: words(1 + r.IntN(5))},
		{Name: "body", Text: words(r.IntN(80))},
		{Name: "body", Text: fmt.Sprintf("step%d the.compound of %d", step, i)},
		{Name: "size", Text: fmt.Sprint(r.IntN(1000))},
	}}
}

// Text makes the history a Source.
func (h *History) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	step := int(h.step.Load())
	for n, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range h.docs(step) {
			if id != historyID(i) {
				continue
			}
			if d, ok := h.at(step, i); ok && !yield(n, d.Fields) {
				return nil
			}
		}
	}
	return nil
}

// Answers is a read of Kill for a whole engine: it asks a few queries and
// compares what is found with what the model finds, unless another step began
// meanwhile; then there only must be an answer.
func Answers(t *testing.T, e index.Engine, h *History) {
	step := int(h.step.Load())
	m := newModel()
	for _, d := range h.Docs(step) {
		m.put(d)
	}
	r := rand.New(rand.NewPCG(h.seed, uint64(time.Now().UnixNano())))
	w := func() string { return fmt.Sprint("w", int(r.ExpFloat64()*30)) }
	for _, text := range []string{
		"*",
		w(),
		w() + " and " + w(),
		w() + " or title : " + w() + " and not " + w(),
		`"` + w() + " " + w() + `"`,
		"w1*",
		"the.compound and size > 500",
		fmt.Sprint("step", max(step-r.IntN(50), 1)),
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		there := Step(e.Mark()) == step
		got, err := e.Search(ctx, q, index.Options{Rank: index.RankNone})
		if err != nil {
			t.Errorf("step %d, %s: %v", step, text, err)
		}
		if err != nil || !there || int(h.step.Load()) != step {
			continue
		}
		var want []index.Hit
		for _, d := range m.find(q, index.Options{}) {
			want = append(want, index.Hit{ID: d.ID})
		}
		slices.SortFunc(got.Hits, byID)
		if !slices.EqualFunc(got.Hits, want, func(a, b index.Hit) bool { return a.ID == b.ID }) {
			t.Errorf("step %d, %s: got %d documents, %s, want %d, %s", step, text, len(got.Hits), ids(got.Hits), len(want), ids(want))
		}
	}
}
