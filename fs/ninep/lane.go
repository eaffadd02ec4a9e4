package ninep

// Requests that touch the same fid run in the order they came, as far as that
// matters. Each joins the lane of its fid (a Twalk also that of its newfid)
// and may run once it is on in all its lanes: nothing unfinished that came
// before conflicts with it.
type order uint8

const (
	shared order = iota // looks: Tstat, Twalk's fid, Tread of files that end
	turn                // takes turns with its like only: Tread of directories and of what may block for ever
	change              // Twrite, Twstat
	alone               // all that makes, opens or ends the fid
)

// conflicts tells what must not overlap. A change does not wait for a turn:
// a read that waits for ever must not keep the writer of the same fid out.
func (o order) conflicts(n *[4]int) bool {
	switch o {
	case shared:
		return n[change]+n[alone] > 0
	case turn:
		return n[turn]+n[alone] > 0
	case change:
		return n[shared]+n[change]+n[alone] > 0
	}
	return n[shared]+n[turn]+n[change]+n[alone] > 0
}

// A lane is the unfinished requests of one fid. It exists only while there
// are some. Conflicts are mutual, so what is on conflicts with nothing that
// came before it and still waits, and only the waiting have an order to keep.
type lane struct {
	fid     uint32
	on      links
	waiting links
}

// A link is a request's stand in a lane.
type link struct {
	r          *request
	lane       *lane
	order      order
	on         bool
	prev, next *link
}

// links is a list of them, and how many there are of each order.
type links struct {
	first, last *link
	n           [4]int
}

func (l *links) push(k *link) {
	k.prev, k.next = l.last, nil
	if l.last != nil {
		l.last.next = k
	} else {
		l.first = k
	}
	l.last = k
	l.n[k.order]++
}

func (l *links) remove(k *link) {
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		l.last = k.prev
	}
	k.prev, k.next = nil, nil
	l.n[k.order]--
}

func (l *lane) empty() bool { return l.on.first == nil && l.waiting.first == nil }

func (l *lane) join(k *link) {
	k.lane = l
	before := l.on.n
	for i, n := range l.waiting.n {
		before[i] += n
	}
	if k.on = !k.order.conflicts(&before); k.on {
		l.on.push(k)
	} else {
		l.waiting.push(k)
	}
}

// leave takes the link out and calls start for each request that is on in
// all its lanes thereby.
func (l *lane) leave(k *link, start func(*request)) {
	if k.on {
		l.on.remove(k)
	} else {
		l.waiting.remove(k)
	}
	before := l.on.n
	left := l.waiting.n
	for j := l.waiting.first; j != nil; {
		next := j.next
		left[j.order]--
		if !j.order.conflicts(&before) {
			l.waiting.remove(j)
			j.on = true
			l.on.push(j)
			if j.r.free() {
				start(j.r)
			}
		}
		before[j.order]++
		// Nothing that comes now can get past these.
		if before[alone] > 0 || before[change] > 0 && (before[turn] > 0 || left[turn] == 0) ||
			before[turn] > 0 && left[shared]+left[change]+left[alone] == 0 {
			return
		}
		j = next
	}
}
