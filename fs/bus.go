package fs

import "sync"

// A Bus carries word of changes from the services to the doors that cache.
// The zero value is ready; a nil Bus takes events and drops them.
type Bus struct {
	mu   sync.Mutex
	subs map[*Events]struct{}
}

// Event says that the node Path changed, or, with a Name, that Name in the
// directory Path came, went or is another node now.
type Event struct {
	Path uint64
	Name string
}

// Events is one subscriber's queue. It never holds more than its bound:
// what does not fit is dropped and counted.
type Events struct {
	C   <-chan Event
	c   chan Event
	bus *Bus

	mu   sync.Mutex
	lost int
}

// Subscribe makes a queue of n events.
func (b *Bus) Subscribe(n int) *Events {
	c := make(chan Event, n)
	e := &Events{C: c, c: c, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = make(map[*Events]struct{})
	}
	b.subs[e] = struct{}{}
	return e
}

// Close ends the subscription. C is not closed.
func (e *Events) Close() {
	e.bus.mu.Lock()
	defer e.bus.mu.Unlock()
	delete(e.bus.subs, e)
}

// Lost tells how many events were dropped since it was last asked. Whoever
// lost some knows nothing of what changed and must not trust its caches.
func (e *Events) Lost() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.lost
	e.lost = 0
	return n
}

// Changed says that the content or attributes of the node are new.
func (b *Bus) Changed(path uint64) { b.publish(Event{Path: path}) }

// Entry says that the name in the directory came, went or is another node.
func (b *Bus) Entry(dir uint64, name string) { b.publish(Event{dir, name}) }

func (b *Bus) publish(ev Event) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range b.subs {
		select {
		case e.c <- ev:
		default:
			e.mu.Lock()
			e.lost++
			e.mu.Unlock()
		}
	}
}
