package crawl

import "context"

// A budget bounds the bytes of documents that are in memory at once. Those who
// want some of it wait for one another in turn, so that none waits with a part
// of it in hand. A document that is longer than was thought takes what it needs
// beyond that when no other does.
type budget struct {
	turn   chan struct{} // held by the one who is being served
	tokens chan struct{} // one for each budgetStep that is taken
	more   chan struct{} // held by the one who takes more than it asked for
}

const budgetStep = 64 << 10

func newBudget(bytes int64) *budget {
	return &budget{make(chan struct{}, 1), make(chan struct{}, max(1, bytes/budgetStep)), make(chan struct{}, 1)}
}

// A share is what one document has of a budget.
type share struct {
	*budget
	steps int
	over  bool
}

// take waits for a share of so many bytes.
func (b *budget) take(ctx context.Context, bytes int64) (*share, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s := &share{budget: b}
	for want := min(int(bytes/budgetStep)+1, cap(b.tokens)); s.steps < want; s.steps++ {
		select {
		case b.tokens <- struct{}{}:
		case <-ctx.Done():
			s.give()
			return nil, context.Cause(ctx)
		}
	}
	return s, nil
}

// grow waits until a share may be of so many bytes.
func (s *share) grow(ctx context.Context, bytes int64) error {
	if s.over || bytes <= int64(s.steps)*budgetStep {
		return nil
	}
	select {
	case s.more <- struct{}{}:
		s.over = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give gives a share back.
func (s *share) give() {
	for ; s.steps > 0; s.steps-- {
		<-s.tokens
	}
	if s.over {
		s.over = false
		<-s.more
	}
}
