package fuse

import (
	"context"
	"errors"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

// A call is the context of one request: it is done when the kernel interrupts
// the request or the tree is unmounted. Most requests never wait and never ask
// for Done, so the goroutine that watches both is made only then.
type call struct {
	t      *tree
	cancel <-chan struct{}

	mu   sync.Mutex
	done chan struct{} // made by Done
	over chan struct{} // closed when the request has ended
}

// begin makes the context of a request by uid; the request must end it.
// It is nil when the tree is being unmounted.
func (t *tree) begin(cancel <-chan struct{}, uid uint32) (*call, context.Context) {
	t.runMu.RLock()
	defer t.runMu.RUnlock()
	if t.stopped() {
		return nil, nil
	}
	t.running.Add(1)
	c := &call{t: t, cancel: cancel}
	return c, fs.WithUser(c, t.who.user(uid))
}

func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		close(c.over)
	}
	c.t.running.Done()
}

func (c *call) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *call) Value(any) any               { return nil }

func (c *call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done, c.over = make(chan struct{}), make(chan struct{})
		go c.watch(c.done, c.over) // ends with the request, which is waited for
	}
	return c.done
}

func (c *call) watch(done, over chan struct{}) {
	select {
	case <-c.cancel:
		close(done)
	case <-c.t.stopping:
		close(done)
	case <-over:
	}
}

// Err is consistent with Done: not nil only when Done is closed, which after
// an interrupt takes the watching goroutine a moment.
func (c *call) Err() error {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	if done != nil {
		select {
		case <-done:
			return context.Canceled
		default:
			return nil
		}
	}
	select {
	case <-c.cancel:
		return context.Canceled
	case <-c.t.stopping:
		return context.Canceled
	default:
		return nil
	}
}

// status is the errno of err. A request that ended because the tree is being
// unmounted was not interrupted: its caller must not try it again.
func (t *tree) status(err error) gofuse.Status {
	if err == nil {
		return gofuse.OK
	}
	no := fs.Errno(err)
	if no == syscall.EINTR {
		if t.stopped() {
			return gofuse.Status(syscall.ENOTCONN)
		}
		t.count.interrupted.Add(1)
	}
	if no == syscall.EIO && !errors.Is(err, syscall.EIO) {
		text := err.Error() // which a dead connection gives to each request
		if was := t.said.Swap(&text); was == nil || *was != text {
			t.lg.Warn("error without a class", "err", err)
		}
	}
	return gofuse.Status(downed(no))
}

// downed turns what the death of a remote tree's connection looks like into
// EIO, which is what a program expects of a file.
func downed(no syscall.Errno) syscall.Errno {
	switch no {
	case syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE, syscall.ENETDOWN, syscall.ENETUNREACH,
		syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETRESET, syscall.ESHUTDOWN, syscall.ENOTCONN, syscall.ECONNABORTED:
		return syscall.EIO
	}
	return no
}

// who knows the users and groups of this machine, both ways, and remembers
// them for a minute.
type who struct {
	self uint32 // who owns what has no owner
	gid  uint32

	mu    sync.Mutex
	since time.Time // when the maps were last empty
	users map[uint32]*fs.User
	uids  map[string][2]uint32 // user name: uid and its own gid
	gids  map[string]uint32
}

const (
	stranger = 1<<32 - 2 // for an owner this machine does not know: the user nobody would be somebody
	maxWho   = 4096
	whoKeeps = time.Minute
)

// fresh empties the maps when they are old or full. Called with mu held.
func (w *who) fresh() {
	if w.users == nil || time.Since(w.since) > whoKeeps || len(w.users)+len(w.uids)+len(w.gids) > maxWho {
		w.users, w.uids, w.gids = make(map[uint32]*fs.User), make(map[string][2]uint32), make(map[string]uint32)
		w.since = time.Now()
	}
}

// user is who calls with that uid. Root and whoever runs the server own the
// tree. A uid without a name is "uid N", and in no group.
func (w *who) user(uid uint32) *fs.User {
	w.mu.Lock()
	w.fresh()
	u := w.users[uid]
	w.mu.Unlock()
	if u != nil {
		return u
	}
	u = &fs.User{Name: "uid " + strconv.Itoa(int(uid)), Owner: uid == 0 || uid == w.self, Local: true}
	if p, err := user.LookupId(strconv.Itoa(int(uid))); err == nil {
		u.Name = p.Username
		ids, _ := p.GroupIds()
		for _, id := range ids {
			if g, err := user.LookupGroupId(id); err == nil {
				u.Groups = append(u.Groups, g.Name)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users[uid] = u
	return u
}

// owner gives the ids that ls shows for an owner and a group: those of the
// server for "", 4294967294 for a name this machine does not know.
func (w *who) owner(owner, group string) (uid, gid uint32) {
	if owner == "" && group == "" {
		return w.self, w.gid
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh()
	uid, gid = w.self, w.gid
	if owner != "" {
		ids, ok := w.uids[owner]
		if !ok {
			ids = lookupUser(owner)
			w.uids[owner] = ids
		}
		uid, gid = ids[0], ids[1]
	}
	if group != "" {
		id, ok := w.gids[group]
		if !ok {
			id = stranger
			if g, err := user.LookupGroup(group); err == nil {
				id = number(g.Gid)
			}
			w.gids[group] = id
		}
		gid = id
	}
	return uid, gid
}

func lookupUser(name string) [2]uint32 {
	p, err := user.Lookup(name)
	if err != nil {
		return [2]uint32{stranger, stranger}
	}
	return [2]uint32{number(p.Uid), number(p.Gid)}
}

func number(id string) uint32 {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return stranger
	}
	return uint32(n)
}
