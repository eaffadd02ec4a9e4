package block

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"harvest/index"
)

// A scanner reads the documents that may match, in the order of the index, by
// several goroutines, and has those that do be sure.
type scanner struct {
	*search
	v      *view
	bounds []bound
	limit  int // of documents in the next job
	ahead  int // most jobs that are not settled

	mu      sync.Mutex // guards what follows
	turn    sync.Cond  // told when a job has been read
	next    place      // where the next job begins
	jobs    []*job     // given out and not settled, in order
	settled place      // all before it is decided
	hits    int        // before settled
	cut     string
	ended   bool // there are no more jobs
	err     error
}

// A place is that of a document in the index.
type place struct {
	part int
	doc  uint32
}

// A job is some documents of one part that may match, to be read at once.
type job struct {
	part int
	docs []uint32
	ids  []index.ID
	yes  []uint32
	done bool
}

// Documents are read so many at a time, or so many bytes if they are long; at
// first fewer, for a search that is content with a few hits.
const (
	firstJob = 8
	jobDocs  = 128
	jobBytes = 1 << 20

	aheadEach = 2 // jobs for each goroutine that may be given out and not settled
)

// scan reads the text of the documents that may match as far as needed, and
// moves those that do to must. It says what limit ended it, and whether some
// are left undecided.
func (s *search) scan(v *view, bounds []bound) (cut string, more bool, err error) {
	workers := min(runtime.GOMAXPROCS(0), (s.counts.possible+firstJob-1)/firstJob)
	c := &scanner{search: s, v: v, bounds: bounds, limit: firstJob, ahead: aheadEach * workers}
	c.turn.L = &c.mu
	if s.counts.possible == 0 || c.satisfied() {
		return "", s.counts.possible > 0, nil
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			m := s.matcher.Clone()
			for j := c.take(); j != nil; j = c.take() {
				if !c.settle(j, c.read(ctx, j, m)) {
					cancel() // who reads for nothing
				}
			}
		})
	}
	wait.Wait()
	return c.cut, !c.next.end(v) || len(c.jobs) > 0, c.err
}

// end tells whether nothing is left.
func (p place) end(v *view) bool { return p.part == len(v.parts) }

// satisfied tells whether there are enough hits before the first document that
// is to be read.
func (c *scanner) satisfied() bool {
	for i := range c.bounds {
		first := c.v.parts[i].segment.docs
		c.bounds[i].may.each(func(doc uint32) bool {
			first = doc
			return false
		})
		c.advance(place{i, first})
		if first < c.v.parts[i].segment.docs {
			break
		}
	}
	n := c.need()
	return n > 0 && c.hits >= n
}

// take gives the next job, nil if there are no more. It waits while others are
// far behind: a search that has enough by them would have read in vain.
func (c *scanner) take() *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.jobs) >= c.ahead && !c.ended && c.err == nil {
		c.turn.Wait()
	}
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.ended || c.err != nil {
		return nil
	}
	if most := c.opt.Limits.Bytes; most > 0 && c.counts.bytes >= most {
		c.cut, c.ended = fmt.Sprintf("%d bytes of text", most), true
		return nil
	}
	j := new(job)
	for ; !c.next.end(c.v) && len(j.docs) == 0; c.next = (place{c.next.part + 1, 0}) {
		if c.fill(j); len(j.docs) > 0 {
			break
		}
	}
	if len(j.docs) == 0 {
		c.ended = true
		return nil
	}
	c.limit = min(2*c.limit, jobDocs)
	c.jobs = append(c.jobs, j)
	return j
}

// fill takes documents of the next part.
func (c *scanner) fill(j *job) {
	j.part = c.next.part
	p := &c.v.parts[j.part]
	var size int64
	c.bounds[j.part].may.eachFrom(c.next.doc, func(doc uint32) bool {
		j.docs = append(j.docs, doc)
		j.ids = append(j.ids, p.id(doc))
		size += p.size(doc)
		c.next.doc = doc + 1
		return len(j.docs) < c.limit && size < jobBytes
	})
}

// read decides of a job's documents.
func (c *scanner) read(ctx context.Context, j *job, m *index.Matcher) error {
	var n int
	var size int64
	err := c.set.Source.Text(ctx, j.ids, func(i int, fields []index.Field) bool {
		n++
		for k := range fields {
			size += int64(len(fields[k].Text))
		}
		if m.Match(fields) {
			j.yes = append(j.yes, j.docs[i])
		}
		return ctx.Err() == nil
	})
	c.mu.Lock()
	c.counts.read += n
	c.counts.bytes += size
	c.mu.Unlock()
	return err
}

// settle takes a job's result. It gives false if the search is to end.
func (c *scanner) settle(j *job, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.turn.Broadcast()
	if c.ended && c.hits >= c.need() && c.need() > 0 {
		return false // enough: whatever became of this one
	}
	if err != nil {
		if c.err == nil {
			c.err = err
		}
		return false
	}
	j.done = true
	for len(c.jobs) > 0 && c.jobs[0].done {
		c.confirm(c.jobs[0])
		c.jobs = c.jobs[1:]
	}
	to := c.next
	if len(c.jobs) > 0 {
		to = place{c.jobs[0].part, c.jobs[0].docs[0]}
	}
	c.advance(to)
	if n := c.need(); n > 0 && c.hits >= n {
		c.ended = true
		return false
	}
	return true
}

func (c *scanner) confirm(j *job) {
	for _, doc := range j.yes {
		c.bounds[j.part].must.add(doc)
	}
	c.counts.confirmed += len(j.yes)
}

// advance counts the hits up to a place.
func (c *scanner) advance(to place) {
	for c.settled.part < to.part {
		c.hits += c.bounds[c.settled.part].must.countFrom(c.settled.doc, c.v.parts[c.settled.part].segment.docs)
		c.settled = place{c.settled.part + 1, 0}
	}
	if c.settled.doc < to.doc {
		c.hits += c.bounds[to.part].must.countFrom(c.settled.doc, to.doc)
		c.settled = to
	}
}
