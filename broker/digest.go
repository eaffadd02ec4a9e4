package broker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/broker/route"
	"harvest/index"
)

// The digest of a Broker, by which others tell whether a query is worth asking
// it, is made of the dictionaries of its index, when it is asked for and the
// index has moved; it is the file words in the Broker's folder until then.

// A digest is when that was made last, and how long it took.
type digest struct {
	mu   sync.Mutex // held while it is made
	at   time.Time
	took time.Duration
}

// digestRest is how many times as long as making one took an older one will do.
const digestRest = 20

// digestTerms is how many words a digest lists: when there are more, those of the
// fewest objects are left out.
const digestTerms = 1 << 20

func (b *Broker) digestPath() string { return filepath.Join(b.dir, "words") }

// writeDigest writes the digest of the index as it is now or was a little while
// ago: its mark says when.
func (b *Broker) writeDigest(ctx context.Context, w io.Writer) error {
	b.settle(ctx)
	f, err := b.openDigest(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

func (b *Broker) openDigest(ctx context.Context) (*os.File, error) {
	d := &b.digest
	d.mu.Lock()
	defer d.mu.Unlock()
	f, mark, err := b.oldDigest()
	if err != nil {
		return nil, err
	}
	h := b.hold()
	defer h.release()
	now := b.digestMark(h)
	if f != nil && (mark == now || time.Since(d.at) < digestRest*d.took) {
		return f, nil
	}
	if f != nil {
		f.Close()
	}
	begin := time.Now()
	if err := b.makeDigest(ctx, h, now); err != nil {
		b.doubt(h, err)
		return nil, fmt.Errorf("words: %w", err)
	}
	d.at, d.took = time.Now(), time.Since(begin)
	return os.Open(b.digestPath())
}

// oldDigest opens the one there is, if any, and tells its mark.
func (b *Broker) oldDigest() (f *os.File, mark string, err error) {
	f, err = os.Open(b.digestPath())
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	if err == nil || errors.Is(err, io.EOF) {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return f, route.Mark(line), nil
}

// digestMark stands for all that a digest depends on.
func (b *Broker) digestMark(h *held) string {
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	sum := fnv.New32a()
	fmt.Fprint(sum, c.other, c.index.stem)
	for _, name := range slices.Sorted(maps.Keys(c.weights)) {
		fmt.Fprint(sum, name, c.weights[name])
	}
	return fmt.Sprintf("%s.%d.%08x", h.Mark(), h.number, sum.Sum32())
}

// makeDigest writes it aside and puts it in place; a crash leaves the old one.
func (b *Broker) makeDigest(ctx context.Context, h *held, mark string) error {
	engine, ok := h.Engine.(index.Lister)
	if !ok {
		return fmt.Errorf("this engine does not list its words: %w", syscall.ENOTSUP)
	}
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	st := h.Stats()
	m := digestMaker{head: route.Head{Mark: mark, Objects: st.Docs + st.Deleted, Words: st.Text, Least: 1}, weight: c.weight, bit: make(map[string]uint64)}
	if st.Docs > 0 {
		m.head.Words += int64(st.Deleted) * st.Text / int64(st.Docs)
	}
	if err := m.attributes(ctx, h.Engine); err != nil {
		return err
	}
	if err := m.stems(c.index.stem); err != nil {
		return err
	}
	if err := engine.Terms(ctx, m.add); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := route.Write(&text, m.head, m.lines()); err != nil {
		return err
	}
	return writeFile(b.digestPath(), text.Bytes())
}

// A digestMaker takes what an index has.
type digestMaker struct {
	head   route.Head
	weight func(attr string) float64
	bit    map[string]uint64 // of attributes
	stem   func(word string) string
	list   []route.Line
	at     map[string]int // in list, of stems
}

// attributes takes those that most objects have.
func (m *digestMaker) attributes(ctx context.Context, e index.Engine) error {
	kinder, ok := e.(index.Kinder)
	if !ok {
		return fmt.Errorf("this engine does not tell its attributes apart: %w", syscall.ENOTSUP)
	}
	kinds, err := kinder.Kinds(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(kinds, func(a, b index.Kind) int { return b.Docs - a.Docs })
	for i, k := range kinds {
		m.bit[k.Name] = route.Bit(i)
		if i < route.Attributes {
			m.head.Attrs = append(m.head.Attrs, route.Attr{Name: k.Name, Objects: k.Docs, Numbers: k.Numbers > 0, Low: k.Low, High: k.High,
				Dates: k.Dates > 0, First: clampDate(k.First), Last: clampDate(k.Last)})
		}
	}
	return nil
}

// clampDate is a date as it can be written.
func clampDate(t time.Time) time.Time {
	if t.Year() < 0 {
		return time.Time{}
	}
	if t.Year() > 9999 {
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

func (m *digestMaker) stems(language string) (err error) {
	if language == "" || language == "no" {
		return nil
	}
	m.head.Stem, m.at = language, make(map[string]int)
	m.stem, err = index.Stemmer(language)
	return err
}

// add takes a word.
func (m *digestMaker) add(t *index.Term) bool {
	if t.Whole || bytes.ContainsAny(t.Word, "\t\n") {
		return true
	}
	l := route.Line{Objects: t.Docs}
	for _, in := range t.Attrs {
		l.Attrs |= m.bit[in.Attr]
		l.Most += in.Most * m.weight(in.Attr)
	}
	if m.stem == nil {
		l.Word = string(t.Word)
		m.put(l)
		return true
	}
	if l.Word = m.stem(string(t.Word)); l.Word == "" {
		l.Word = string(t.Word)
	}
	if i, ok := m.at[l.Word]; ok {
		old := &m.list[i]
		old.Objects = min(old.Objects+l.Objects, m.head.Objects)
		old.Most += l.Most
		old.Attrs |= l.Attrs
		return true
	}
	m.at[l.Word] = len(m.list)
	m.list = append(m.list, l)
	return true
}

// put keeps a word; with too many, those of the fewest objects go.
func (m *digestMaker) put(l route.Line) {
	if l.Objects >= m.head.Least {
		m.list = append(m.list, l)
	}
	for len(m.list) > digestTerms && m.stem == nil {
		m.head.Least++
		m.list = slices.DeleteFunc(m.list, func(l route.Line) bool { return l.Objects < m.head.Least })
	}
}

// lines are the words in order.
func (m *digestMaker) lines() []route.Line {
	if m.stem != nil {
		slices.SortFunc(m.list, func(a, b route.Line) int { return strings.Compare(a.Word, b.Word) })
	}
	return m.list
}
