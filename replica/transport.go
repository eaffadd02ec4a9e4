package replica

import (
	"context"
	"io"
	iofs "io/fs"
	"sync"
	"time"
)

// readers is how many files are read from a member at a time.
const readers = 64

// patience is how long a member may be silent that was asked something: what lies
// between may have been cut without a word.
const patience = 30 * time.Second

// run makes the requests of a pull, and those that follow, until it is done. The files
// are below a prefix. Silent is called when nothing has come for too long, and is to
// end all reading.
func run(ctx context.Context, tree iofs.FS, prefix string, p *pull, out []Request, silent func()) {
	t := time.AfterFunc(patience, silent)
	defer t.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, readers)
	replies := make(chan Reply)
	over := make(chan struct{}) // nobody takes replies any more
	defer close(over)
	waiting := 0
	for {
		for _, q := range out {
			waiting++
			wg.Go(func() {
				slots <- struct{}{}
				b, err := read(tree, prefix+q.Path, q.Max)
				<-slots
				select {
				case replies <- Reply{q.ID, b, err}:
				case <-over:
				}
			})
		}
		if waiting == 0 || p.done() {
			return
		}
		select {
		case r := <-replies:
			waiting--
			t.Reset(patience)
			out = p.step(r)
		case <-ctx.Done():
			p.fail(ctx.Err())
			return
		}
	}
}

// A mostReader reads a file in one exchange: all of it, or as much as is wanted.
type mostReader interface {
	ReadMost(name string, most int) ([]byte, error)
}

// read gives a file, or as much of it as is wanted. Who knows how long it is to be asks
// for no more than that: then nobody has to find out that nothing follows.
func read(tree iofs.FS, name string, most int) ([]byte, error) {
	if t, ok := tree.(mostReader); ok {
		return t.ReadMost(name, most)
	}
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(most)))
}
