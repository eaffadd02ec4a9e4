package fuse

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

// How long the kernel may believe a name and its attributes. Long is for
// Plain files, whose changes the Bus tells; a note to the kernel can overtake
// the answer it corrects, so it is not for ever. While notes are being lost
// everything is short.
const (
	long  = 5 * time.Minute
	short = time.Second
)

// maxNodes is how many nodes the kernel is let know. Past it the kernel is
// asked to forget those not used for longest, where it can be (Linux 6.18).
// A node costs this side some 300 bytes, and the kernel a kilobyte.
const maxNodes = 1 << 17

// tree answers the kernel's requests from the Dir it mounts.
type tree struct {
	gofuse.RawFileSystem // ENOSYS for what we do not do

	raw    *gofuse.Server
	lg     *slog.Logger
	opt    Options
	events *fs.Events // nil without a Bus
	top    uint64     // Path of the root; its node id is 1
	start  time.Time
	who    who
	count  counters

	runMu    sync.RWMutex           // held to read while running grows, to write while stopping closes
	running  sync.WaitGroup         // requests
	stopping chan struct{}          // closed by stop
	done     chan struct{}          // closed when follow returned
	notes    atomic.Uint64          // notes that were sent: an answer they overlap may be old
	said     atomic.Pointer[string] // the last error without a class
	unsure   atomic.Int64           // until then (UnixNano) notes were lost

	// mu guards the tables and the fields of the nodes in them. A node is in
	// the table while the kernel refers to it, or has it open; lru is in the
	// order of last use, newest first.
	mu     sync.Mutex
	nodes  map[uint64]*node
	lru    node // sentinel
	files  map[uint64]*file
	dirs   map[uint64]*dir
	lastFh uint64
	tidy   chan struct{} // asks follow to prune; one token
}

// A node is what we keep of an fs.Node that the kernel knows.
type node struct {
	id     uint64 // of the kernel: the Path, or 1 for the root
	up     *node  // with name: where it was last found; nil for the root
	name   string
	node   fs.Node
	refs   uint64 // the kernel's
	opens  int32
	cached int32 // opens that read through the page cache
	isDir  bool  // never changes
	isLong bool  // the kernel was told to believe it long

	size int64  // as the kernel was last told
	vers uint32 // as well
	told int64  // when (UnixNano)

	pages  bool   // the page cache may hold something (of a directory: its listing)
	pageOf uint32 // and it is of that version
	listed int64  // of a directory: till when every name in that listing is known

	prev, next *node
}

func newTree(root fs.Dir, opt Options) *tree {
	t := &tree{
		RawFileSystem: gofuse.NewDefaultRawFileSystem(),
		lg:            opt.Log,
		opt:           opt,
		top:           root.Stat().Path,
		start:         time.Now(),
		stopping:      make(chan struct{}),
		done:          make(chan struct{}),
		nodes:         make(map[uint64]*node),
		files:         make(map[uint64]*file),
		dirs:          make(map[uint64]*dir),
		tidy:          make(chan struct{}, 1),
	}
	t.who.self, t.who.gid = uint32(os.Geteuid()), uint32(os.Getegid())
	t.lru.prev, t.lru.next = &t.lru, &t.lru
	if opt.Bus != nil {
		t.events = opt.Bus.Subscribe(queue)
	}
	// The root is referred to once more than the kernel will ever tell.
	t.nodes[gofuse.FUSE_ROOT_ID] = &node{id: gofuse.FUSE_ROOT_ID, node: root, refs: 1, isDir: true}
	return t
}

func (t *tree) String() string            { return fsType }
func (t *tree) Init(raw *gofuse.Server)   { t.raw = raw }
func (t *tree) SetDebug(bool)             {}
func (t *tree) OnUnmount()                {}
func (t *tree) node(id uint64) (n *node)  { t.mu.Lock(); defer t.mu.Unlock(); return t.nodes[id] }
func (t *tree) of(n *node) (node fs.Node) { t.mu.Lock(); defer t.mu.Unlock(); return n.node }
func (t *tree) id(st fs.Stat) (id uint64) {
	if st.Path == t.top {
		return gofuse.FUSE_ROOT_ID
	}
	return st.Path
}

func (t *tree) stopped() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

// stop ends what waits and refuses what comes.
func (t *tree) stop() {
	t.runMu.Lock()
	defer t.runMu.Unlock()
	if !t.stopped() {
		close(t.stopping)
	}
}

// end waits for the requests to end and closes what the kernel left open.
func (t *tree) end() {
	t.running.Wait()
	<-t.done
	t.mu.Lock()
	files, dirs := t.files, t.dirs
	t.files, t.dirs = nil, nil
	t.mu.Unlock()
	for _, f := range files {
		f.close(t.lg)
	}
	for _, d := range dirs {
		d.close()
	}
}

// errBadPath is for a node that breaks the rules of fs.Stat.Path.
var errBadPath = errors.New("path of a node is reserved")

// ref notes one more reference of the kernel to the node that name in up is.
func (t *tree) ref(up *node, name string, fn fs.Node, st fs.Stat) (*node, error) {
	id := t.id(st)
	if id == 0 || id == ^uint64(0) || id == gofuse.FUSE_ROOT_ID && st.Path != t.top {
		return nil, fmt.Errorf("%s: path %#x: %w", name, st.Path, errBadPath)
	}
	_, isDir := fn.(fs.Dir)
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[id]
	if n == nil {
		n = &node{id: id, isDir: isDir}
		t.nodes[id] = n
		if len(t.nodes) > maxNodes {
			select {
			case t.tidy <- struct{}{}:
			default:
			}
		}
	}
	if n.isDir != isDir {
		return nil, fmt.Errorf("%s: path %#x is of a file and of a directory: %w", name, st.Path, syscall.EIO)
	}
	n.refs++
	n.node = fn
	if id != gofuse.FUSE_ROOT_ID {
		n.up, n.name = up, name
		t.use(n)
	}
	return n, nil
}

// use makes n the last used. Called with mu held.
func (t *tree) use(n *node) {
	if n.next != nil {
		n.prev.next, n.next.prev = n.next, n.prev
	}
	n.prev, n.next = &t.lru, t.lru.next
	n.prev.next, n.next.prev = n, n
}

// Forget takes references away. Whoever gave the node its name as one of a
// known listing can no longer rely on it.
func (t *tree) Forget(id, refs uint64) {
	t.count.forget.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[id]
	if n == nil || id == gofuse.FUSE_ROOT_ID {
		return
	}
	n.refs -= min(refs, n.refs)
	t.drop(n)
}

// drop forgets n if nobody refers to it. Called with mu held.
func (t *tree) drop(n *node) {
	if n.refs > 0 || n.opens > 0 || t.nodes[n.id] != n || n.next == nil {
		return
	}
	delete(t.nodes, n.id)
	n.prev.next, n.next.prev = n.next, n.prev
	n.prev, n.next = nil, nil
	if n.up != nil {
		n.up.listed = 0
	}
}

// valid is how long the kernel may believe the name and the attributes.
// Seen is what t.notes was before the tree was asked.
func (t *tree) valid(st fs.Stat, isDir bool, seen uint64) (name, attr time.Duration) {
	d := short
	if t.opt.Bus != nil && !isDir && t.notes.Load() == seen && time.Now().UnixNano() > t.unsure.Load() {
		d = long
	}
	switch {
	case st.Kind == fs.Plain:
		return d, d
	case st.Kind == fs.Growing:
		return d, 0
	}
	return 0, 0
}

// tell fills in the attributes of n and how long they count, and remembers
// what the kernel now knows.
func (t *tree) tell(n *node, st fs.Stat, a *gofuse.Attr, seen uint64) (name, attr time.Duration) {
	t.attr(n.id, st, n.isDir, a)
	name, attr = t.valid(st, n.isDir, seen)
	t.mu.Lock()
	defer t.mu.Unlock()
	n.size, n.vers, n.told = st.Size, st.Vers, time.Now().UnixNano()
	n.isLong = n.isLong || name == long
	return name, attr
}

func (t *tree) attr(id uint64, st fs.Stat, isDir bool, a *gofuse.Attr) {
	*a = gofuse.Attr{Ino: id, Nlink: 1, Blksize: 4096, Mode: uint32(st.Mode.Perm()) | syscall.S_IFREG}
	if isDir {
		// One link says that the number of directories in it is not known,
		// or find(1) would count on it.
		a.Mode = uint32(st.Mode.Perm()) | syscall.S_IFDIR
	} else {
		a.Size = uint64(max(st.Size, 0))
		a.Blocks = (a.Size + 511) / 512
	}
	a.Uid, a.Gid = t.who.owner(st.Owner, st.Group)
	m := st.Mtime
	if m.IsZero() {
		m = t.start
	}
	a.Mtime, a.Mtimensec = uint64(m.Unix()), uint32(m.Nanosecond())
	a.Atime, a.Atimensec, a.Ctime, a.Ctimensec = a.Mtime, a.Mtimensec, a.Mtime, a.Mtimensec
}

// enter fills in an answer that gives the kernel a reference to a node.
func (t *tree) enter(up *node, name string, fn fs.Node, out *gofuse.EntryOut, seen uint64) (*node, error) {
	st := fn.Stat()
	n, err := t.ref(up, name, fn, st)
	if err != nil {
		return nil, err
	}
	out.NodeId, out.Generation = n.id, 1
	e, a := t.tell(n, st, &out.Attr, seen)
	out.SetEntryTimeout(e)
	out.SetAttrTimeout(a)
	return n, nil
}

func (t *tree) Lookup(cancel <-chan struct{}, in *gofuse.InHeader, name string, out *gofuse.EntryOut) gofuse.Status {
	t.count.lookup.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.lookup(ctx, in.NodeId, name, out))
}

func (t *tree) lookup(ctx context.Context, id uint64, name string, out *gofuse.EntryOut) error {
	up, d, err := t.dirOf(id)
	if err != nil {
		return err
	}
	seen := t.notes.Load()
	fn, err := d.Lookup(ctx, name)
	if err != nil {
		return err
	}
	_, err = t.enter(up, name, fn, out, seen)
	return err
}

// dirOf is the directory the kernel means by id.
func (t *tree) dirOf(id uint64) (*node, fs.Dir, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[id]
	if n == nil {
		return nil, nil, syscall.ESTALE
	}
	d, ok := n.node.(fs.Dir)
	if !ok {
		return nil, nil, syscall.ENOTDIR
	}
	return n, d, nil
}

// errGone is for a node that no longer stands where it was found.
var errGone = errors.New("node is gone")

// again asks the tree for n by the name it was found under, for a Node
// remembers what it was at its look-up. When it stands there no more the
// error is errGone, and the Node is what is left of it.
func (t *tree) again(ctx context.Context, n *node) (fs.Node, error) {
	t.mu.Lock()
	fn, up, name := n.node, n.up, n.name
	var d fs.Dir
	if up != nil {
		d, _ = up.node.(fs.Dir)
	}
	t.mu.Unlock()
	if d == nil {
		return fn, nil
	}
	now, err := d.Lookup(ctx, name)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return fn, errGone
	case err != nil:
		return fn, err
	case t.id(now.Stat()) != n.id:
		return fn, errGone
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n.node = now
	return now, nil
}

func (t *tree) GetAttr(cancel <-chan struct{}, in *gofuse.GetAttrIn, out *gofuse.AttrOut) gofuse.Status {
	t.count.getattr.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.getattr(ctx, in.NodeId, out))
}

// getattr of a node that is gone is of what is left of it for whoever has it
// open; for others it is ESTALE, upon which the kernel looks its name up.
func (t *tree) getattr(ctx context.Context, id uint64, out *gofuse.AttrOut) error {
	n := t.node(id)
	if n == nil {
		return syscall.ESTALE
	}
	seen := t.notes.Load()
	fn, err := t.again(ctx, n)
	if errors.Is(err, errGone) {
		if err = nil; !t.inUse(n) {
			err = syscall.ESTALE
		}
	}
	if err != nil {
		return err
	}
	_, a := t.tell(n, fn.Stat(), &out.Attr, seen)
	out.SetTimeout(a)
	return nil
}

func (t *tree) inUse(n *node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.opens > 0
}

func (t *tree) SetAttr(cancel <-chan struct{}, in *gofuse.SetAttrIn, out *gofuse.AttrOut) gofuse.Status {
	t.count.setattr.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	n := t.node(in.NodeId)
	if n == nil {
		return gofuse.Status(syscall.ESTALE)
	}
	if err := t.setattr(ctx, n, in); err != nil {
		return t.status(err)
	}
	return t.status(t.getattr(ctx, in.NodeId, out))
}

// setattr gives the node what is new in it. What changes nothing is accepted
// of any node, times and length of one that takes messages too: a shell's >
// and touch mean nothing there.
func (t *tree) setattr(ctx context.Context, n *node, in *gofuse.SetAttrIn) error {
	fn, err := t.again(ctx, n)
	if err != nil && !errors.Is(err, errGone) {
		return err
	}
	st := fn.Stat()
	if err := t.sameOwner(st, in); err != nil {
		return err
	}
	ch := t.change(st, n.isDir, in)
	if ch == (fs.Change{}) {
		return nil
	}
	if s, ok := fn.(fs.Setter); ok {
		return s.Set(ctx, ch)
	}
	if ch.Size != nil && *ch.Size == st.Size && ch.Mode == nil && ch.Mtime == nil {
		return nil
	}
	if n.isDir && ch.Size != nil {
		return syscall.EISDIR
	}
	return syscall.EPERM
}

// sameOwner refuses to give a node away.
func (t *tree) sameOwner(st fs.Stat, in *gofuse.SetAttrIn) error {
	uid, gid := t.who.owner(st.Owner, st.Group)
	if id, ok := in.GetUID(); ok && id != ^uint32(0) && id != uid {
		return syscall.EPERM
	}
	if id, ok := in.GetGID(); ok && id != ^uint32(0) && id != gid {
		return syscall.EPERM
	}
	return nil
}

// change is what of the request is a change.
func (t *tree) change(st fs.Stat, isDir bool, in *gofuse.SetAttrIn) (ch fs.Change) {
	message := st.Kind == fs.Control || st.Kind == fs.Live
	if n, ok := in.GetSize(); ok && !message && (int64(n) != st.Size || st.Kind != fs.Plain || isDir) {
		size := int64(n)
		ch.Size = &size
	}
	if m, ok := in.GetMode(); ok && iofs.FileMode(m).Perm() != st.Mode.Perm() {
		mode := iofs.FileMode(m).Perm()
		ch.Mode = &mode
	}
	if m, ok := in.GetMTime(); ok && !message && !m.Equal(st.Mtime) {
		ch.Mtime = &m
	}
	return ch
}

func (t *tree) StatFs(_ <-chan struct{}, _ *gofuse.InHeader, out *gofuse.StatfsOut) gofuse.Status {
	t.count.statfs.Add(1)
	*out = gofuse.StatfsOut{Bsize: 4096, Frsize: 4096, NameLen: 255, Blocks: 1 << 28, Bfree: 1 << 28, Bavail: 1 << 28}
	var disk syscall.Statfs_t
	if t.opt.Disk != "" && syscall.Statfs(t.opt.Disk, &disk) == nil {
		out.FromStatfsT(&disk)
		out.NameLen = 255
	}
	return gofuse.OK
}
