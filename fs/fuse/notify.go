package fuse

import (
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

const (
	queue    = 4096             // events of the Bus that may wait
	unsureIs = 30 * time.Second // how long nothing is believed long after events were lost
	atATime  = 512              // node ids in one note to forget them
)

// follow tells the kernel of changes, and asks it to forget when it knows too
// much, until the mount is gone. It alone sends such notes, and is never
// inside a request: a note can wait for requests on the same directory.
func (t *tree) follow(served <-chan struct{}) {
	defer close(t.done)
	var events <-chan fs.Event
	lost := func() int { return 0 }
	if t.events != nil {
		defer t.events.Close()
		events, lost = t.events.C, t.events.Lost
	}
	for {
		select {
		case ev := <-events:
			t.changed(ev)
		case <-t.tidy:
			t.prune()
		case <-t.stopping:
			return
		case <-served:
			return
		}
		if lost() > 0 {
			t.distrust()
		}
	}
}

// changed tells the kernel of one event, if it knows the node at all; if it
// does not, it may be about to.
func (t *tree) changed(ev fs.Event) {
	t.notes.Add(1)
	t.mu.Lock()
	n := t.nodes[t.id(fs.Stat{Path: ev.Path})]
	if n == nil {
		t.mu.Unlock()
		return
	}
	n.listed = 0
	d, _ := n.node.(fs.Dir)
	t.mu.Unlock()
	switch {
	case ev.Name == "":
		t.count.invalInode.Add(1)
		t.raw.InodeNotify(n.id, 0, 0)
	case d != nil && !t.right(n, d, ev.Name):
		t.count.invalEntry.Add(1)
		t.raw.EntryNotify(n.id, ev.Name)
	}
}

// right tells whether the kernel's idea of a name may stand. To say that it is
// wrong takes the name from whoever has it open or stands in it, so it is not
// said of what the kernel itself has just made, nor ever of a directory that
// is there: its name is believed for a second only.
func (t *tree) right(up *node, d fs.Dir, name string) bool {
	c, ctx := t.begin(nil, t.who.self)
	if c == nil {
		return true
	}
	defer c.end()
	fn, err := d.Lookup(ctx, name)
	if err != nil {
		return false
	}
	if _, ok := fn.(fs.Dir); ok {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[t.id(fn.Stat())]
	return n != nil && n.up == up && n.name == name
}

// A note is about a node and the name it was found under.
type note struct {
	id, up uint64
	name   string
}

// distrust takes back what the kernel was told to believe long, because
// events were lost, and lets nothing be believed long for a while: under a
// flood of changes that would only have to be taken back again.
func (t *tree) distrust() {
	t.count.lostBus.Add(1)
	t.lg.Debug("events were lost; the kernel's caches are emptied")
	t.unsure.Store(time.Now().Add(unsureIs).UnixNano())
	t.notes.Add(1)
	t.mu.Lock()
	var notes []note
	for _, n := range t.nodes {
		n.listed = 0
		if n.isLong && n.up != nil {
			notes = append(notes, note{n.id, n.up.id, n.name})
			n.isLong = false
		}
	}
	t.mu.Unlock()
	for _, n := range notes {
		if t.stopped() {
			return
		}
		t.count.invalEntry.Add(1)
		t.raw.EntryNotify(n.up, n.name)
		t.raw.InodeNotify(n.id, -1, 0) // it may have another name
	}
}

// prune asks the kernel to forget a quarter of the nodes, those not used for
// longest; what it has open it keeps.
func (t *tree) prune() {
	t.mu.Lock()
	var notes []note
	n := t.lru.prev
	for seen := len(t.nodes); seen > 1 && len(t.nodes)-len(notes) > maxNodes*3/4; seen-- {
		prev := n.prev
		if n.opens == 0 && !n.isDir && n.up != nil {
			notes = append(notes, note{n.id, n.up.id, n.name})
		}
		t.use(n) // not again at once: the kernel takes its time, or has its reasons
		n = prev
	}
	t.mu.Unlock()
	t.count.prune.Add(uint64(len(notes)))
	for len(notes) > 0 && !t.stopped() {
		some := notes[:min(atATime, len(notes))]
		notes = notes[len(some):]
		t.forget(some)
	}
}

// forget asks for some nodes to be forgotten; before Linux 6.18 there is only
// the way of saying that their names are no longer true.
func (t *tree) forget(some []note) {
	ids := make([]uint64, len(some))
	for i, n := range some {
		ids[i] = n.id
	}
	if t.raw.PruneNotify(ids) != gofuse.ENOSYS {
		return
	}
	for _, n := range some {
		t.raw.EntryNotify(n.up, n.name)
	}
}
