package fuse

import (
	"context"
	"io"
	"sync"
	"syscall"
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

// dir is an open directory. The offset of an entry is its number in the list,
// "." and ".." being the first two; the kernel asks to go on after the offset
// of the last it could use, which is often some entries back.
type dir struct {
	t *tree
	n *node

	// mu is held over one request; the kernel sends one at a time, but it
	// is not said that it must.
	mu   sync.Mutex
	cur  cursor
	read bool // since it was opened or rewound

	vers  uint32    // of the directory when the listing began
	begun time.Time // then
	plus  bool      // all entries so far went out with their attributes, to be believed long
	high  uint64    // the highest offset given
}

func (t *tree) OpenDir(cancel <-chan struct{}, in *gofuse.OpenIn, out *gofuse.OpenOut) gofuse.Status {
	t.count.opendir.Add(1)
	c, _ := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.opendir(in.NodeId, in.Uid, out))
}

// opendir lets the kernel use the listing it has kept if that is of this
// version, and of names that it still knows: else it would have to ask for
// each of them, which a listing with attributes saves.
func (t *tree) opendir(id uint64, uid uint32, out *gofuse.OpenOut) error {
	n, d, err := t.dirOf(id)
	if err != nil {
		return err
	}
	st := d.Stat()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirs == nil {
		return syscall.ENOTCONN
	}
	if t.opt.Bus != nil && st.Vers != 0 && st.Kind == fs.Plain {
		out.OpenFlags = gofuse.FOPEN_CACHE_DIR
		if n.listed > time.Now().UnixNano() && n.pageOf == st.Vers {
			out.OpenFlags |= gofuse.FOPEN_KEEP_CACHE
			t.count.kept.Add(1)
		}
	}
	n.opens++
	t.lastFh++
	out.Fh = t.lastFh
	t.dirs[out.Fh] = &dir{t: t, n: n, cur: cursor{dir: d, user: t.who.user(uid)}}
	return nil
}

func (t *tree) ReleaseDir(in *gofuse.ReleaseIn) {
	t.count.releasedir.Add(1)
	t.mu.Lock()
	d := t.dirs[in.Fh]
	if d != nil {
		delete(t.dirs, in.Fh)
		d.n.opens--
		t.drop(d.n)
	}
	t.mu.Unlock()
	if d != nil {
		d.close()
	}
}

func (d *dir) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cur.close()
}

// FsyncDir has nothing to do: what a directory accepts is done.
func (t *tree) FsyncDir(<-chan struct{}, *gofuse.FsyncIn) gofuse.Status { return gofuse.OK }

func (t *tree) ReadDir(cancel <-chan struct{}, in *gofuse.ReadIn, out *gofuse.DirEntryList) gofuse.Status {
	t.count.readdir.Add(1)
	return t.readdir(cancel, in, out, (*dir).plain)
}

func (t *tree) ReadDirPlus(cancel <-chan struct{}, in *gofuse.ReadIn, out *gofuse.DirEntryList) gofuse.Status {
	t.count.readdirplus.Add(1)
	return t.readdir(cancel, in, out, (*dir).full)
}

// An adder puts an entry into the answer if it fits. Those without a Node are
// "." and "..".
type adder func(d *dir, e fs.Entry, off uint64, out *gofuse.DirEntryList) (fits bool, err error)

func (t *tree) readdir(cancel <-chan struct{}, in *gofuse.ReadIn, out *gofuse.DirEntryList, add adder) gofuse.Status {
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	t.mu.Lock()
	d := t.dirs[in.Fh]
	t.mu.Unlock()
	if d == nil {
		return gofuse.Status(syscall.EBADF)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.give(ctx, in.Offset, out, add)
	if len(out.Bytes()) > 0 {
		err = nil // the next request meets it again, and has nothing else to tell
	}
	return t.status(err)
}

// give answers with the entries after offset off, as many as fit.
func (d *dir) give(ctx context.Context, off uint64, out *gofuse.DirEntryList, add adder) error {
	d.begin(off)
	for ; off < 2; off++ {
		if fits, err := add(d, fs.Entry{Name: ".."[:off+1]}, off+1, out); !fits {
			return err
		}
	}
	d.cur.drop(off - 2)
	for {
		e, err := d.cur.at(ctx, off-2)
		if err == io.EOF {
			d.whole()
			return nil
		}
		if err != nil {
			return err
		}
		off++
		if fits, err := add(d, e, off, out); !fits {
			return err
		}
		d.high = max(d.high, off)
	}
}

// begin notes where a listing begins, and whether it goes on without a gap.
func (d *dir) begin(off uint64) {
	switch {
	case off == 0:
		if d.read { // rewinddir(3) sees what is there now
			d.cur.rewind(0)
			d.cur.marks = nil
		}
		d.vers, d.begun = d.cur.dir.Stat().Vers, time.Now()
		d.plus, d.high, d.read = true, 0, true
	case off > max(d.high, 2):
		d.plus = false
	}
}

// whole notes that the kernel has now seen all names, with attributes that
// it may believe for long.
func (d *dir) whole() {
	same := d.cur.dir.Stat().Vers == d.vers
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	d.n.listed = 0
	if d.plus && same {
		d.n.listed = d.begun.Add(long - long/8).UnixNano()
		d.n.pageOf = d.vers
	}
}

// plain adds an entry for READDIR.
func (d *dir) plain(e fs.Entry, off uint64, out *gofuse.DirEntryList) (bool, error) {
	fits := out.AddDirEntry(d.entry(e, off))
	if fits && e.Node != nil {
		d.plus = false
	}
	return fits, nil
}

// full adds one for READDIRPLUS, which is a look-up as well.
func (d *dir) full(e fs.Entry, off uint64, out *gofuse.DirEntryList) (bool, error) {
	seen := d.t.notes.Load()
	eo := out.AddDirLookupEntry(d.entry(e, off))
	if eo == nil || e.Node == nil {
		return eo != nil, nil
	}
	if _, err := d.t.enter(d.n, e.Name, e.Node, eo, seen); err != nil {
		d.t.lg.Warn("entry is listed without a node", "name", e.Name, "err", err)
	}
	if eo.EntryTimeout() != long {
		d.plus = false
	}
	return true, nil
}

func (d *dir) entry(e fs.Entry, off uint64) gofuse.DirEntry {
	de := gofuse.DirEntry{Name: e.Name, Off: off, Mode: syscall.S_IFREG}
	if e.Node == nil {
		de.Ino, de.Mode = d.dot(e.Name), syscall.S_IFDIR
		return de
	}
	de.Ino = d.t.id(e.Node.Stat())
	if _, ok := e.Node.(fs.Dir); ok {
		de.Mode = syscall.S_IFDIR
	}
	return de
}

// dot is the inode number of "." and "..".
func (d *dir) dot(name string) uint64 {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	if name == ".." && d.n.up != nil {
		return d.n.up.id
	}
	return d.n.id
}
