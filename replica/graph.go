package replica

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/replica/topology"
)

// links is what is known of who reaches whom, and the graph over which the group
// floods. It is computed by its master, the live member of the least writer, and
// goes from one to the next as everything does, under a signature.
type links struct {
	due   chan struct{} // measure now
	steps int           // of the search for a graph; 0: topology's default

	mu      sync.Mutex // guards what follows
	sheets  map[Writer]*sheet
	graph   *topology.Graph
	signed  signed        // the graph as text; without a key there is none
	changed chan struct{} // closed and made anew when the graph is another
	last    *topology.Net // of which the graph was made, if it was made here
	calm    time.Time     // until when links that became slower are no reason for another
	anew    bool          // make one whatever there is
}

func newLinks() *links {
	return &links{due: make(chan struct{}, 1), sheets: make(map[Writer]*sheet), changed: make(chan struct{})}
}

// What is measured wavers: another graph because of it has to wait for so many rounds.
const calmRounds = 4

// A member whose sheet has not changed for this many rounds of measuring is not live.
const liveRounds = 5

// live is who takes part, sorted: who measures now and then, and this one.
func (r *Replica) live(now time.Time) []Writer {
	r.mu.Lock()
	every := r.config.measure.every
	r.mu.Unlock()
	r.links.mu.Lock()
	defer r.links.mu.Unlock()
	all := slices.DeleteFunc(r.links.writers(), func(w Writer) bool {
		return w == r.mirror.self || now.Sub(r.links.sheets[w].heard) > liveRounds*every
	})
	all = append(all, r.mirror.self)
	slices.SortFunc(all, compareWriters)
	return all
}

// design makes a graph if it is this one's to make, and what is known asks for one.
func (r *Replica) design(ctx context.Context, now time.Time) error {
	live := r.live(now)
	if len(live) < 2 || live[0] != r.mirror.self {
		return nil
	}
	w, err := r.links.net(live)
	if err != nil {
		return err
	}
	r.mu.Lock()
	o := topology.Options{Steps: r.links.steps, K: r.config.topology.k, Degree: r.config.topology.degree}
	every := r.config.measure.every
	r.mu.Unlock()
	l := r.links
	l.mu.Lock()
	stays := !l.anew && l.graph != nil && l.last != nil && w.Joins(l.last) && (now.Before(l.calm) || !w.Differs(l.last))
	if o.Was = l.graph; l.anew {
		o.Gain = 1e-9
	}
	l.anew = false
	l.mu.Unlock()
	if stays {
		return nil
	}
	g, err := topology.Design(ctx, w, o)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.last, l.calm = w, now.Add(calmRounds*every)
	l.mu.Unlock()
	if g == o.Was {
		return nil
	}
	return r.takeGraph(signText("graph", r.mirror.key, now, g.String()), now)
}

// takeGraph takes a graph that the master signed, if it is news.
func (r *Replica) takeGraph(text string, now time.Time) error {
	if text == "" || text == r.links.graphText() {
		return nil
	}
	s, g, err := parseGraph(text)
	if err != nil {
		return lief("topology: %v", err)
	}
	by := s.writer()
	if r.live(now)[0] != by || !slices.Contains(g.Members, by.String()) {
		return nil // of one who was master, or will be
	}
	l := r.links
	l.mu.Lock()
	if l.signed.key != nil && l.signed.writer() == by && !s.at.After(l.signed.at) {
		l.mu.Unlock()
		return nil
	}
	l.use(s, g)
	l.mu.Unlock()
	r.told("topology", ndb.Of("epoch", g.Epoch), ndb.Of("by", by), ndb.Of("members", len(g.Members)), ndb.Of("edges", len(g.Edges)))
	return writeFile(filepath.Join(r.dir, "topology"), []byte(text), 0o644)
}

// use puts a graph in force. Called with mu held.
func (l *links) use(s signed, g *topology.Graph) {
	l.signed, l.graph = s, g
	close(l.changed)
	l.changed = make(chan struct{})
}

func parseGraph(text string) (s signed, g *topology.Graph, err error) {
	if s, err = parseSigned("graph", text); err == nil {
		g, err = topology.Parse(s.body)
	}
	return s, g, err
}

// loadGraph takes the graph that was in use before a restart. One that is damaged is
// as good as none.
func (r *Replica) loadGraph() error {
	text, err := os.ReadFile(filepath.Join(r.dir, "topology"))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s, g, err := parseGraph(string(text))
	if err != nil {
		r.lg.Warn("topology", "err", err)
		return nil
	}
	r.links.mu.Lock()
	defer r.links.mu.Unlock()
	r.links.use(s, g)
	return nil
}

func (l *links) graphText() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signed.text
}

// neighbors gives whom the graph has next to a writer, and when that may be
// otherwise. ok is false if the graph does not have the writer.
func (l *links) neighbors(w Writer) (all []string, changed <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.graph == nil || !slices.Contains(l.graph.Members, w.String()) {
		return nil, l.changed, false
	}
	return l.graph.Neighbors(w.String()), l.changed, true
}

// neighbor tells whether news of this member are to be waited for, as the graph is
// or because none of those it has is there.
func (m *member) neighbor() (bool, <-chan struct{}) {
	all, changed, ok := m.r.links.neighbors(m.r.mirror.self)
	m.mu.Lock()
	id := m.id
	m.mu.Unlock()
	if !ok || id == (Writer{}) || slices.Contains(all, id.String()) {
		return true, changed
	}
	return !m.r.hears(all), changed
}

// hears tells whether one of some writers is a member that could be read last time.
func (r *Replica) hears(of []string) bool {
	return slices.ContainsFunc(r.sorted(), func(m *member) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.err == nil && !m.last.IsZero() && slices.Contains(of, m.id.String())
	})
}

// redesign has the group measured and, where this is the master, a graph made.
func (r *Replica) redesign(_ context.Context, arg []string) error {
	if arg[0] != "now" {
		return fmt.Errorf("topology %s: want topology now: %w", arg[0], iofs.ErrInvalid)
	}
	r.links.mu.Lock()
	r.links.anew = true
	r.links.mu.Unlock()
	return r.measureNow(context.Background(), nil)
}

// measureNow has all members measured, by the goroutine that does that.
func (r *Replica) measureNow(context.Context, []string) error {
	select {
	case r.links.due <- struct{}{}:
	default: // it is to be done already
	}
	return nil
}
