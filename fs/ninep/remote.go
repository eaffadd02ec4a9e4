package ninep

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

// A node is a file of the server's tree by its names from the root, and what
// it was like when it was looked up.
type node struct {
	c    *Client
	path []string
	st   fs.Stat
}

type dir struct{ node }
type file struct{ node }

var (
	_ fs.Maker   = (*dir)(nil)
	_ fs.Creator = (*dir)(nil)
	_ fs.Remover = (*dir)(nil)
	_ fs.Renamer = (*dir)(nil)
	_ fs.Setter  = (*dir)(nil)
	_ fs.File    = (*file)(nil)
	_ fs.Setter  = (*file)(nil)
)

// Stat tells what the server said when the node was looked up.
func (n *node) Stat() fs.Stat { return n.st }

func (n *node) child(name string) []string {
	return append(slices.Clip(n.path), name)
}

// stat is a 9P stat in our terms.
func (c *Client) stat(p *proto.Stat) fs.Stat {
	st := fs.Stat{
		Path: p.Qid.Uid, Vers: p.Qid.Vers, Mode: iofs.FileMode(p.Mode & 0o777),
		Size: int64(min(p.Length, 1<<63-1)), Mtime: time.Unix(int64(p.Mtime), 0),
		Owner: p.Uid, Group: p.Gid,
	}
	switch {
	case p.Mode&proto.DMDIR != 0:
		st.Size = 0
	case p.Type == kindMark && p.Dev <= uint32(fs.Control):
		st.Kind = fs.Kind(p.Dev)
	case p.Mode&proto.DMAPPEND != 0:
		st.Kind = fs.Growing
	case st.Size == 0 || st.Vers == 0:
		st.Kind = fs.Made
	}
	return st
}

// node makes a node of a stat; path is its own.
func (c *Client) node(path []string, p *proto.Stat) fs.Node {
	n := node{c, path, c.stat(p)}
	if p.Mode&proto.DMDIR != 0 {
		return &dir{n}
	}
	return &file{n}
}

// A walk is the calls that take a new fid to a path. Each goes to a fid of
// its own: one that fails leaves its fid unmade, and what was sent after it
// finds no fid, rather than one that stopped on the way.
type walk struct {
	c     *Client
	path  []string
	near  *kept // where it begins; nil: at the root
	skip  int   // names to there
	begun time.Time
	moves uint64 // of the client, then
	calls []*call
	fids  []uint32 // the last is at path
	well  int      // of calls
}

// walk begins at near, which is skip names down, or at the root.
func (c *Client) walk(path []string, near *kept, skip int) *walk {
	w := &walk{c: c, path: path, near: near, skip: skip, begun: time.Now()}
	c.mu.Lock()
	w.moves = c.moves
	c.mu.Unlock()
	from := uint32(0)
	if near != nil {
		from, w.begun = near.fid, near.walked
		path = path[skip:]
	}
	for {
		n := min(len(path), maxWalk)
		fid := c.newFid()
		w.fids = append(w.fids, fid)
		w.calls = append(w.calls, walkCall(from, fid, path[:n]))
		if path = path[n:]; len(path) == 0 {
			return w
		}
		from = fid
	}
}

// walked tells what became of the first n calls. A partial walk's error has
// the number of names that went well.
func (w *walk) walked(n int) error {
	done := w.skip
	for i, k := range w.calls[:n] {
		if k.err != nil {
			return k.err
		}
		want := min(len(w.path)-done, maxWalk)
		r, ok := k.reply.(*proto.RWalk)
		switch {
		case !ok:
			return io.ErrUnexpectedEOF
		case int(r.Nwqid) > want:
			return frameError(proto.Rwalk, "more qids than names")
		case int(r.Nwqid) < want:
			return partial(done + int(r.Nwqid))
		}
		done += want
		w.well = i + 1
	}
	return nil
}

// partial is the error of a walk that ended after so many names.
type partial int

func (p partial) Error() string { return "file does not exist" }
func (p partial) Unwrap() error { return iofs.ErrNotExist }

// why asks for the reason of a partial walk, which the server did not tell.
func (c *Client) why(ctx context.Context, path []string, n int) error {
	next := c.newFid()
	defer c.forget(next)
	_, err := c.at(ctx, path[:n], false, func(fid uint32) []*call {
		return []*call{walkCall(fid, next, path[n:n+1])}
	})
	if err == nil {
		err = iofs.ErrNotExist // it was missing before
	}
	return fmt.Errorf("%s: %w", strings.Join(path[:n+1], "/"), err)
}

// at walks a new fid to path and makes the calls there, then ends the fid
// unless keep is set and all went well. What goes wrong on a walk from a kept
// fid counts only if it does from the root too.
func (c *Client) at(ctx context.Context, path []string, keep bool, calls func(fid uint32) []*call) (fid uint32, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	near, skip := c.nearest(path)
	w := c.walk(path, near, skip)
	fid, err = w.do(ctx, keep, calls)
	if w.near != nil && err != nil && (w.well < len(w.calls) || errors.Is(err, iofs.ErrNotExist)) && ctx.Err() == nil && c.Err() == nil {
		to := strings.Join(path, "/") + "/"
		c.unkeep(func(k *kept) bool { return strings.HasPrefix(to, k.path+"/") })
		fid, err = c.walk(path, nil, 0).do(ctx, keep, calls)
	}
	if n, ok := err.(partial); ok {
		err = c.why(ctx, path, int(n))
	}
	return fid, err
}

func (w *walk) do(ctx context.Context, keep bool, calls func(fid uint32) []*call) (fid uint32, err error) {
	c := w.c
	fid = w.fids[len(w.fids)-1]
	all := append(slices.Clip(w.calls), calls(fid)...)
	switch {
	case c.ours:
		for _, k := range all {
			c.send(k)
		}
		if !keep {
			c.send(c.forgetting(fid))
		}
		c.out.drain()
		err = c.waitAll(ctx, all)
		if e := w.walked(len(w.calls)); e != nil {
			err = e // what came after it went wrong because of it
		}
		if keep && err != nil {
			c.forget(fid)
		}
	default:
		// One at a time, and a partial walk ends it.
		for i, k := range all {
			if err = c.do(ctx, k); err == nil && i < len(w.calls) {
				err = w.walked(i + 1)
			}
			if err != nil {
				break
			}
		}
		if !keep || err != nil {
			c.forget(fid)
		}
	}
	c.keep(w)
	return fid, err
}

const (
	maxKept = 256         // fids kept
	keptFor = time.Second // and for how long since the walk from the root
)

// A kept is a fid of a directory that a walk came through on the way to a
// place more than maxWalk names down: the next begins there. Somebody else
// may give the directory another name meanwhile; so it is not kept for long.
type kept struct {
	path   string
	fid    uint32
	walked time.Time // from the root
	used   uint64    // when, in order
	users  int       // walks that begin there
	gone   bool      // it is ended with the last of them
}

// nearest finds the kept fid that is the furthest on the way to path, and how
// many names down that is. The caller's walk is one of its users.
func (c *Client) nearest(path []string) (*kept, int) {
	for n := (len(path) - 1) / maxWalk * maxWalk; n > 0; n -= maxWalk {
		c.mu.Lock()
		k := c.kept[strings.Join(path[:n], "/")]
		old := k != nil && time.Since(k.walked) >= keptFor
		if k != nil && !old {
			k.users++
			c.uses++
			k.used = c.uses
			c.mu.Unlock()
			return k, n
		}
		c.mu.Unlock()
		if old {
			c.unkeep(func(k *kept) bool { return time.Since(k.walked) >= keptFor })
		}
	}
	return nil, 0
}

// keep keeps the fids that a walk came through, unless names have changed
// since it began, and has it use its first no more.
func (c *Client) keep(w *walk) {
	var forget []uint32
	c.mu.Lock()
	if k := w.near; k != nil {
		if k.users--; k.users == 0 && k.gone {
			forget = append(forget, k.fid)
		}
	}
	for i, fid := range w.fids[:len(w.fids)-1] {
		path := strings.Join(w.path[:min(w.skip+(i+1)*maxWalk, len(w.path))], "/")
		old := c.kept[path]
		if i >= w.well || c.moves != w.moves || old != nil && old.walked.After(w.begun) {
			forget = append(forget, fid)
			continue
		}
		if old == nil && len(c.kept) == maxKept {
			for _, k := range c.kept {
				if old == nil || k.used < old.used {
					old = k
				}
			}
		}
		if old != nil {
			forget = c.drop(old, forget)
		}
		c.uses++
		c.kept[path] = &kept{path: path, fid: fid, walked: w.begun, used: c.uses}
	}
	c.mu.Unlock()
	for _, fid := range forget {
		c.forget(fid)
	}
}

// drop keeps a fid no longer, and adds it to those to be forgotten if it is
// not in use; mu is held.
func (c *Client) drop(k *kept, forget []uint32) []uint32 {
	delete(c.kept, k.path)
	k.gone = true
	if k.users == 0 {
		forget = append(forget, k.fid)
	}
	return forget
}

// unkeep drops the kept fids for which it says so.
func (c *Client) unkeep(which func(*kept) bool) {
	var forget []uint32
	c.mu.Lock()
	for _, k := range c.kept {
		if which(k) {
			forget = c.drop(k, forget)
		}
	}
	c.mu.Unlock()
	for _, fid := range forget {
		c.forget(fid)
	}
}

// moved notes that the name is, or may be, another file's now.
func (d *dir) moved(name string) {
	d.c.mu.Lock()
	d.c.moves++
	d.c.mu.Unlock()
	from := strings.Join(d.child(name), "/") + "/"
	d.c.unkeep(func(k *kept) bool { return strings.HasPrefix(k.path+"/", from) })
}

// Lookup asks the server for the name.
func (d *dir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if badName(name) {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	return d.c.lookup(ctx, d.child(name))
}

func (c *Client) lookup(ctx context.Context, path []string) (fs.Node, error) {
	var st *call
	_, err := c.at(ctx, path, false, func(fid uint32) []*call {
		st = c.statCall(fid)
		return []*call{st}
	})
	if err != nil {
		return nil, err
	}
	return c.node(path, &st.reply.(*proto.RStat).Stat), nil
}

// Mkdir makes a directory.
func (d *dir) Mkdir(ctx context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
	n, fid, err := d.create(ctx, name, proto.DMDIR|uint32(perm.Perm()), 0)
	if err != nil {
		return nil, err
	}
	d.c.forget(fid)
	made, ok := n.(fs.Dir)
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, syscall.ENOTDIR)
	}
	return made, nil
}

// Create makes a file.
func (d *dir) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	p := uint32(perm.Perm())
	if perm&iofs.ModeAppend != 0 {
		p |= proto.DMAPPEND
	}
	n, fid, err := d.create(ctx, name, p, openByte(m&^fs.Trunc))
	if err != nil {
		return nil, nil, err
	}
	f, ok := n.(*file)
	if !ok {
		d.c.forget(fid)
		return nil, nil, fmt.Errorf("%s: %w", name, syscall.EISDIR)
	}
	return f, f.handle(fid, m, 0), nil
}

func (d *dir) create(ctx context.Context, name string, perm uint32, mode byte) (fs.Node, uint32, error) {
	if !d.c.ours {
		// Plan 9's create empties what is there.
		if _, err := d.Lookup(ctx, name); err == nil {
			return nil, 0, fmt.Errorf("%s: %w", name, iofs.ErrExist)
		}
	}
	defer d.moved(name)
	var st *call
	fid, err := d.c.at(ctx, d.path, true, func(fid uint32) []*call {
		st = d.c.statCall(fid)
		return []*call{{want: proto.Rcreate, msg: func(tag uint16) []byte {
			return (&proto.TCreate{Header: header(proto.Tcreate, tag), Fid: fid, Name: name, Perm: perm, Mode: mode}).Compose()
		}}, st}
	})
	if err != nil {
		return nil, 0, err
	}
	return d.c.node(d.child(name), &st.reply.(*proto.RStat).Stat), fid, nil
}

// Remove removes a file or an empty directory.
func (d *dir) Remove(ctx context.Context, name string) error {
	defer d.moved(name)
	// Whatever becomes of the Tremove, the fid goes with it.
	fid, err := d.c.at(ctx, d.child(name), true, func(fid uint32) []*call { return []*call{fidCall(proto.Tremove, fid)} })
	if err == nil {
		d.c.freeFid(fid)
	}
	return err
}

// untouched is a Twstat that changes nothing: a sync.
func untouched() proto.Stat {
	return proto.Stat{
		Type: 0xffff, Dev: ^uint32(0), Qid: proto.Qid{Qtype: 0xff, Vers: ^uint32(0), Uid: ^uint64(0)},
		Mode: ^uint32(0), Atime: ^uint32(0), Mtime: ^uint32(0), Length: ^uint64(0),
	}
}

func wstatCall(fid uint32, st proto.Stat) *call {
	return &call{want: proto.Rwstat, msg: func(tag uint16) []byte {
		return (&proto.TWstat{Header: header(proto.Twstat, tag), Fid: fid, Stat: st}).Compose()
	}}
}

// Rename gives an entry another name. 9P cannot say that nothing is to be
// replaced: without replace, the new name is looked up first.
func (d *dir) Rename(ctx context.Context, old, new string, replace bool) error {
	if !replace && old != new {
		if _, err := d.Lookup(ctx, new); err == nil {
			return fmt.Errorf("%s: %w", new, iofs.ErrExist)
		}
	}
	if new == "" { // in a Twstat, no change
		return fmt.Errorf("%s: no new name: %w", old, iofs.ErrInvalid)
	}
	defer d.moved(old)
	defer d.moved(new)
	st := untouched()
	st.Name = new
	_, err := d.c.at(ctx, d.child(old), false, func(fid uint32) []*call { return []*call{wstatCall(fid, st)} })
	return err
}

// Set changes the node's attributes.
func (n *node) Set(ctx context.Context, ch fs.Change) error {
	st := untouched()
	if ch.Size != nil && *ch.Size < 0 { // in a Twstat, no change
		return fmt.Errorf("size %d: %w", *ch.Size, iofs.ErrInvalid)
	}
	if ch.Size != nil {
		st.Length = uint64(*ch.Size)
	}
	if ch.Mode != nil {
		// The type's bits are what they are.
		fn, err := n.c.lookup(ctx, n.path)
		if err != nil {
			return err
		}
		st.Mode = uint32(ch.Mode.Perm())
		switch {
		case fn.Stat().Kind == fs.Growing:
			st.Mode |= proto.DMAPPEND
		default:
			if _, ok := fn.(fs.Dir); ok {
				st.Mode |= proto.DMDIR
			}
		}
	}
	if ch.Mtime != nil {
		st.Mtime = uint32(ch.Mtime.Unix())
	}
	_, err := n.c.at(ctx, n.path, false, func(fid uint32) []*call { return []*call{wstatCall(fid, st)} })
	return err
}

const (
	listRead = 128 << 10        // bytes of a Tread of a directory
	maxLists = 16               // listings kept open
	listKept = 30 * time.Second // and for how long at most
)

// parked is a listing that was left in the middle, with what it had read:
// whoever goes on after that name takes it up again.
type parked struct {
	path  string
	after string
	left  time.Time
	l     *lister
}

// A lister reads a directory.
type lister struct {
	c    *Client
	fid  uint32
	off  uint64
	buf  *buffer
	rest []byte // read, not yet given
}

// List reads the directory. Our own servers list in order: then it is read
// as it goes, and a listing left off is kept for a while for one that goes
// on from there. Others are read whole, and sorted.
func (d *dir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		l := d.c.unpark(strings.Join(d.path, "/"), after)
		if l == nil {
			var err error
			if l, err = d.open(ctx); err != nil {
				yield(fs.Entry{}, err)
				return
			}
		}
		if !d.c.ours {
			d.whole(ctx, l, after, yield)
			return
		}
		for {
			st, ok, err := l.next(ctx)
			switch {
			case err == nil && ok && st.Name <= after:
				continue // up to where we are to begin
			case err != nil || !ok:
				l.close()
				if err != nil {
					yield(fs.Entry{}, err)
				}
				return
			}
			after = st.Name
			if !yield(fs.Entry{Name: st.Name, Node: d.c.node(d.child(st.Name), &st)}, nil) {
				d.c.park(&parked{strings.Join(d.path, "/"), after, time.Now(), l})
				return
			}
		}
	}
}

func (d *dir) whole(ctx context.Context, l *lister, after string, yield func(fs.Entry, error) bool) {
	defer l.close()
	var all []fs.Entry
	for {
		st, ok, err := l.next(ctx)
		if err != nil {
			yield(fs.Entry{}, err)
			return
		}
		if !ok {
			break
		}
		all = append(all, fs.Entry{Name: st.Name, Node: d.c.node(d.child(st.Name), &st)})
	}
	for e, err := range fs.Sorted(all, after) {
		if !yield(e, err) {
			return
		}
	}
}

func (d *dir) open(ctx context.Context) (*lister, error) {
	fid, err := d.c.at(ctx, d.path, true, func(fid uint32) []*call { return []*call{openCall(fid, 0)} })
	if err != nil {
		return nil, err
	}
	return &lister{c: d.c, fid: fid, buf: d.c.pool.get(min(int(d.c.msize)-ioHeader, listRead))}, nil
}

// next gives the next entry; there is none if it is not ok.
func (l *lister) next(ctx context.Context) (st proto.Stat, ok bool, err error) {
	for {
		if len(l.rest) > 0 {
			st, l.rest, err = parseStat(l.rest)
			if err != nil {
				return st, false, fmt.Errorf("directory: %w", err)
			}
			if badName(st.Name) {
				continue
			}
			return st, true, nil
		}
		n := min(int(l.c.msize)-ioHeader, listRead)
		k := readCall(l.fid, l.off, l.buf.b[:n])
		if err := l.c.do(ctx, k); err != nil {
			return st, false, err
		}
		if k.n == 0 {
			return st, false, nil
		}
		l.off += uint64(k.n)
		l.rest = l.buf.b[:k.n]
	}
}

func (l *lister) close() {
	l.c.pool.put(l.buf)
	l.buf, l.rest = nil, nil
	l.c.forget(l.fid)
}

func (c *Client) park(p *parked) {
	c.mu.Lock()
	c.lists = append(c.lists, p)
	var old *parked
	if len(c.lists) > maxLists {
		old, c.lists = c.lists[0], c.lists[1:]
	}
	c.mu.Unlock()
	if old != nil {
		old.l.close()
	}
}

func (c *Client) unpark(path, after string) *lister {
	if after == "" {
		return nil
	}
	c.mu.Lock()
	var found *parked
	for i, p := range c.lists {
		if p.path == path && p.after == after {
			found = p
			c.lists = slices.Delete(c.lists, i, i+1)
			break
		}
	}
	c.mu.Unlock()
	if found == nil {
		return nil
	}
	if time.Since(found.left) > listKept {
		found.l.close()
		return nil
	}
	return found.l
}
