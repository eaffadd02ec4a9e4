package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"harvest/broker/shortcut"
	"harvest/fs/ndb"
)

// A shortcuts is the modules of a Broker that answer queries of a known form, and
// what they said of late: reading a folder asks for it many times.
type shortcuts struct {
	set *shortcut.Set

	mu   sync.Mutex
	said []saidTo // newest last
}

// A saidTo is what was said to a query.
type saidTo struct {
	text    string
	at      time.Time
	answers []shortcut.Answer
}

// How long, and how much of, what was said is kept.
const (
	keepSaid = 10 * time.Second
	manySaid = 64
)

func (b *Broker) openShortcuts() (err error) {
	b.shortcuts.set, err = shortcut.Open(filepath.Join(b.dir, "shortcuts"), b.lg)
	return err
}

// ask asks the modules that a query is for.
func (s *shortcuts) ask(ctx context.Context, text string) []shortcut.Answer {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.said, func(x saidTo) bool { return x.text == text })
	if i >= 0 && time.Since(s.said[i].at) < keepSaid {
		defer s.mu.Unlock()
		return s.said[i].answers
	}
	s.mu.Unlock()
	all := s.set.Ask(ctx, text)
	if slices.ContainsFunc(all, func(a shortcut.Answer) bool { return a.Err != nil }) || ctx.Err() != nil {
		return all // it may be better the next time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(x saidTo) bool { return x.text == text })
	s.said = append(s.said, saidTo{text, time.Now(), all})
	s.said = s.said[max(0, len(s.said)-manySaid):]
	return all
}

// put and remove change the modules; what they said before counts no more.
func (s *shortcuts) put(name, text string) error {
	defer s.forget()
	return s.set.Put(name, text)
}

func (s *shortcuts) remove(name string) error {
	defer s.forget()
	return s.set.Remove(name)
}

func (s *shortcuts) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = nil
}

// told is a line a module that was asked.
func told(all []shortcut.Answer) string {
	var b strings.Builder
	for _, a := range all {
		pairs := []ndb.Pair{ndb.Of("name", a.Name)}
		if a.Err != nil {
			pairs = append(pairs, ndb.Of("err", a.Err))
		} else {
			pairs = append(pairs, ndb.Of("score", a.Score))
		}
		b.WriteString(ndb.Format(append(pairs, ndb.Of("took", a.Took.Round(time.Microsecond)))...) + "\n")
	}
	return b.String()
}

// tallies are a line a module, with what became of its answers.
func (s *shortcuts) tallies() string {
	var b strings.Builder
	b.WriteString("# name\tasked\tanswered\tnone\tfailed\ttime\tlast failure\n")
	for _, name := range s.set.Names() {
		t := s.set.Tally(name)
		mean := time.Duration(0)
		if t.Answered > 0 {
			mean = (t.Took / time.Duration(t.Answered)).Round(time.Microsecond)
		}
		fmt.Fprintf(&b, "%s\t%d\t%d\t%d\t%d\t%v\t%s\n", name, t.Asked, t.Answered, t.None, t.Failed, mean, strings.ReplaceAll(t.Err, "\n", " "))
	}
	return b.String()
}
