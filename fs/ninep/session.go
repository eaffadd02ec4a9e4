package ninep

import (
	"context"
	"io"
	iofs "io/fs"
	"math"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/knusbaum/go9p"
	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

// A session is the tree as one connection sees it: its user, its fids, and
// what each message does to them. It knows nothing of frames and of the order
// of requests; whoever calls it sees to it that requests which touch the same
// fid do not overlap unless they may (see lane).
//
// It is a go9p.Conn, and the messages arrive through a go9p.Srv, service.
type session struct {
	srv   *Server
	root  fs.Dir
	user  *fs.User
	base  context.Context                  // of all requests: who asks
	tagof func(tag uint16) context.Context // of one request; nil: base

	mu    sync.Mutex
	msize uint32 // 0 before Tversion
	fids  map[uint32]*fid
}

func (s *session) TagContext(tag uint16) context.Context {
	if s.tagof == nil {
		return s.base
	}
	return s.tagof(tag)
}

func (s *session) DropContext(uint16) {}

// A place is a node and the way it was walked to. Places do not change.
type place struct {
	up   *place // nil: the root
	name string
	node fs.Node
}

func (p *place) dir() (fs.Dir, error) {
	d, ok := p.node.(fs.Dir)
	if !ok {
		return nil, syscall.ENOTDIR
	}
	return d, nil
}

// A fid is a client's handle on a place and, once open, on the file there.
type fid struct {
	at   *place
	open *opened // nil: not open
}

// opened is what Topen and Tcreate add to a fid. It does not change until
// the clunk.
type opened struct {
	h       fs.Handle // nil: a directory
	list    *listing  // nil: a file
	mode    fs.Mode   // what the client asked for
	kind    fs.Kind
	rclose  bool
	written bool // by writes, one at a time
}

// live tells whether reads of the fid may wait for ever.
func (s *session) live(n uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fids[n]
	return f != nil && f.open != nil && f.open.kind == fs.Live && f.open.h != nil
}

// plain tells whether the fid is there and not open: then a clunk of it
// waits for nothing.
func (s *session) plain(n uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fids[n]
	return f == nil || f.open == nil
}

// listed tells whether the fid is an open directory.
func (s *session) listed(n uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fids[n]
	return f != nil && f.open != nil && f.open.list != nil
}

func (s *session) fid(n uint32) (*fid, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.fids[n]; f != nil {
		return f, nil
	}
	return nil, errFid
}

// add makes a fid.
func (s *session) add(n uint32, f *fid) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == noFid {
		return errFid
	}
	if s.fids[n] != nil {
		return errFidUse
	}
	if len(s.fids) >= s.srv.limits.Fids {
		return syscall.EMFILE
	}
	s.fids[n] = f
	s.srv.stats.fids.Add(1)
	return nil
}

// set changes a fid, which is there.
func (s *session) set(n uint32, f *fid) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fids[n] = f
}

func (s *session) drop(n uint32) (*fid, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fids[n]
	if f == nil {
		return nil, errFid
	}
	delete(s.fids, n)
	s.srv.stats.fids.Add(-1)
	return f, nil
}

// end aborts and closes all that is open, without a Flush: what a vanished
// client has half written is not complete. No request is running.
func (s *session) end() {
	s.mu.Lock()
	fids := s.fids
	s.fids = make(map[uint32]*fid)
	s.mu.Unlock()
	s.srv.stats.fids.Add(int64(-len(fids)))
	for _, f := range fids {
		if f.open == nil || f.open.h == nil {
			continue
		}
		if a, ok := f.open.h.(fs.Aborter); ok {
			a.Abort()
		}
		if err := f.open.h.Close(); err != nil {
			s.srv.lg.Debug("9p close", "name", f.at.name, "err", err)
		}
		if f.open.rclose {
			s.removeAt(s.base, f.at)
		}
	}
}

// service is the tree as go9p's Srv: the boundary between the messages and
// what they mean. Read and Write are here for it; our own loop calls
// session.read and session.write and saves two copies.
type service struct {
	srv  *Server
	root fs.Dir
	user *fs.User
	base context.Context
	most uint32 // bytes of a message
}

var _ go9p.Srv = service{}

// NewConn makes the session of a new connection.
func (v service) NewConn() go9p.Conn { return v.session() }

func (v service) session() *session {
	return &session{
		srv: v.srv, root: v.root, user: v.user, fids: make(map[uint32]*fid),
		base: fs.WithUser(v.base, v.user),
	}
}

func header(kind byte, tag uint16) proto.Header { return proto.Header{Type: kind, Tag: tag} }

func rerror(tag uint16, text string) proto.FCall {
	return &proto.RError{Header: header(proto.Rerror, tag), Ename: text}
}

// Version starts over: the loop has ended all requests and fids before.
func (v service) Version(c go9p.Conn, t *proto.TRVersion) (proto.FCall, error) {
	s := c.(*session)
	r := &proto.TRVersion{Header: header(proto.Rversion, t.Tag), Msize: min(t.Msize, v.most), Version: "unknown"}
	if t.Msize < minMsize {
		return rerror(t.Tag, "msize is less than 256"), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.msize = 0
	if strings.HasPrefix(t.Version, "9P2000") {
		r.Version = "9P2000"
		s.msize = r.Msize
	}
	return r, nil
}

// Auth is refused: who asks is known from the connection.
func (v service) Auth(c go9p.Conn, t *proto.TAuth) (proto.FCall, error) {
	return rerror(t.Tag, "authentication not required"), nil
}

// Attach gives the root or, with an aname, the directory of that path. The
// uname is not looked at.
func (v service) Attach(c go9p.Conn, t *proto.TAttach) (proto.FCall, error) {
	s := c.(*session)
	if t.Afid != noFid {
		return rerror(t.Tag, "authentication not required"), nil
	}
	at := &place{name: "/", node: s.root}
	if strings.Trim(t.Aname, "/") != "" {
		n, err := fs.Walk(s.TagContext(t.Tag), s.root, t.Aname)
		if err != nil {
			return rerror(t.Tag, ename(err)), nil
		}
		at.node = n
		if _, err := at.dir(); err != nil {
			return rerror(t.Tag, ename(err)), nil
		}
	}
	if err := s.add(t.Fid, &fid{at: at}); err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	return &proto.RAttach{Header: header(proto.Rattach, t.Tag), Qid: qidOf(at.node)}, nil
}

// Walk gives as many qids as it gets names walked; newfid is made when that
// is all of them.
func (v service) Walk(c go9p.Conn, t *proto.TWalk) (proto.FCall, error) {
	s := c.(*session)
	qids, err := s.walk(s.TagContext(t.Tag), t)
	if err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	return &proto.RWalk{Header: header(proto.Rwalk, t.Tag), Nwqid: uint16(len(qids)), Wqid: qids}, nil
}

func (s *session) walk(ctx context.Context, t *proto.TWalk) ([]proto.Qid, error) {
	f, err := s.fid(t.Fid)
	if err != nil {
		return nil, err
	}
	if len(t.Wname) > maxWalk {
		return nil, syscall.EINVAL
	}
	if f.open != nil {
		return nil, errBadUse
	}
	if t.Newfid != t.Fid {
		// Looked at here, so that a used newfid is an error before a
		// missing name is.
		if _, err := s.fid(t.Newfid); err == nil {
			return nil, errFidUse
		}
	}
	at := f.at
	qids := make([]proto.Qid, 0, len(t.Wname))
	for _, name := range t.Wname {
		next, err := step(ctx, at, name)
		if err != nil {
			if len(qids) == 0 {
				return nil, err
			}
			return qids, nil
		}
		at = next
		qids = append(qids, qidOf(at.node))
	}
	if t.Newfid == t.Fid {
		s.set(t.Fid, &fid{at: at})
		return qids, nil
	}
	return qids, s.add(t.Newfid, &fid{at: at})
}

func step(ctx context.Context, at *place, name string) (*place, error) {
	d, err := at.dir()
	if err != nil {
		return nil, err
	}
	if name == ".." {
		if at.up == nil {
			return at, nil
		}
		return at.up, nil
	}
	if badName(name) {
		return nil, iofs.ErrNotExist
	}
	n, err := fs.Step(ctx, d, name)
	if err != nil {
		return nil, err
	}
	return &place{at, name, n}, nil
}

// badName tells whether no file can have the name.
func badName(name string) bool {
	return name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00")
}

// Open opens the fid's file or directory.
func (v service) Open(c go9p.Conn, t *proto.TOpen) (proto.FCall, error) {
	s := c.(*session)
	f, err := s.openFid(s.TagContext(t.Tag), t.Fid, byte(t.Mode))
	if err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	return &proto.ROpen{Header: header(proto.Ropen, t.Tag), Qid: qidOf(f.at.node), Iounit: s.msize - ioHeader}, nil
}

func (s *session) openFid(ctx context.Context, n uint32, omode byte) (*fid, error) {
	f, err := s.fid(n)
	if err != nil {
		return nil, err
	}
	if f.open != nil {
		return nil, errBadUse
	}
	at := f.at
	m, want, err := openMode(omode)
	if err != nil {
		return nil, err
	}
	st := at.node.Stat()
	if err := s.user.May(st, want); err != nil {
		return nil, err
	}
	rclose := omode&byte(proto.Orclose) != 0
	if rclose {
		if err := s.mayRemove(at); err != nil {
			return nil, err
		}
	}
	o := &opened{mode: m, kind: st.Kind, rclose: rclose}
	switch node := at.node.(type) {
	case fs.Dir:
		if m&^fs.Read != 0 || rclose {
			return nil, syscall.EISDIR
		}
		o.list = &listing{dir: node}
	case fs.File:
		if o.h, err = node.Open(ctx, fileMode(m, st.Kind)); err != nil {
			return nil, err
		}
		if mv, ok := o.h.(fs.Mover); ok {
			// A clone file: from now on the fid is the file it made.
			at = &place{at.up, at.name, mv.Node()}
			o.kind = at.node.Stat().Kind
		}
	default:
		return nil, syscall.EINVAL
	}
	f = &fid{at, o}
	s.set(n, f)
	return f, nil
}

// openMode gives what a Topen's mode asks for, and the permissions it needs.
func openMode(omode byte) (m fs.Mode, want iofs.FileMode, err error) {
	if omode&^(3|byte(proto.Otrunc)|byte(proto.Orclose)) != 0 {
		return 0, 0, syscall.EINVAL
	}
	switch proto.Mode(omode & 3) {
	case proto.Oread:
		m, want = fs.Read, fs.MayRead
	case proto.Owrite:
		m, want = fs.Write, fs.MayWrite
	case proto.Ordwr:
		m, want = fs.Read|fs.Write, fs.MayRead|fs.MayWrite
	case proto.Oexec:
		m, want = fs.Read, fs.MayExec
	}
	if omode&byte(proto.Otrunc) != 0 {
		m |= fs.Trunc
		want |= fs.MayWrite
	}
	return m, want, nil
}

// fileMode is the mode as the file gets it: what truncates also writes, what
// only grows is appended to, and what takes messages is not truncated.
func fileMode(m fs.Mode, k fs.Kind) fs.Mode {
	switch {
	case k == fs.Control || k == fs.Live:
		return m &^ fs.Trunc
	case k == fs.Growing && m&fs.Write != 0:
		m |= fs.Append
	}
	if m&fs.Trunc != 0 {
		m |= fs.Write
	}
	return m
}

// Create makes a file or directory in the fid's directory, and the fid is it.
func (v service) Create(c go9p.Conn, t *proto.TCreate) (proto.FCall, error) {
	s := c.(*session)
	f, err := s.create(s.TagContext(t.Tag), t)
	if err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	return &proto.RCreate{Header: header(proto.Rcreate, t.Tag), Qid: qidOf(f.at.node), Iounit: s.msize - ioHeader}, nil
}

func (s *session) create(ctx context.Context, t *proto.TCreate) (*fid, error) {
	f, err := s.fid(t.Fid)
	if err != nil {
		return nil, err
	}
	if f.open != nil {
		return nil, errBadUse
	}
	dir, err := f.at.dir()
	if err != nil {
		return nil, err
	}
	switch {
	case badName(t.Name):
		return nil, syscall.EINVAL
	case len(t.Name) > maxName:
		return nil, syscall.ENAMETOOLONG
	case t.Perm&^(proto.DMDIR|proto.DMAPPEND|proto.DMTMP|0o777) != 0:
		return nil, syscall.EPERM // links, devices, exclusive use
	}
	st := dir.Stat()
	if err := s.user.May(st, fs.MayWrite|fs.MayExec); err != nil {
		return nil, err
	}
	m, _, err := openMode(t.Mode)
	if err != nil {
		return nil, err
	}
	rclose := t.Mode&byte(proto.Orclose) != 0
	if rclose {
		if _, ok := dir.(fs.Remover); !ok {
			return nil, iofs.ErrPermission
		}
	}
	perm := iofs.FileMode(t.Perm & 0o777)
	if t.Perm&proto.DMDIR != 0 {
		if m&^fs.Read != 0 || rclose || t.Perm&proto.DMAPPEND != 0 {
			return nil, syscall.EISDIR
		}
		mk, ok := dir.(fs.Maker)
		if !ok {
			return nil, iofs.ErrPermission
		}
		d, err := mk.Mkdir(ctx, t.Name, perm&(^iofs.FileMode(0o777)|st.Mode&0o777))
		if err != nil {
			return nil, err
		}
		f = &fid{&place{f.at, t.Name, d}, &opened{mode: m, list: &listing{dir: d}}}
		s.set(t.Fid, f)
		return f, nil
	}
	cr, ok := dir.(fs.Creator)
	if !ok {
		return nil, iofs.ErrPermission
	}
	if t.Perm&proto.DMAPPEND != 0 {
		m |= fs.Append
	}
	file, h, err := cr.Create(ctx, t.Name, perm&(^iofs.FileMode(0o666)|st.Mode&0o666), m&^fs.Trunc)
	if err != nil {
		return nil, err
	}
	f = &fid{&place{f.at, t.Name, file}, &opened{h: h, mode: m, kind: file.Stat().Kind, rclose: rclose}}
	s.set(t.Fid, f)
	return f, nil
}

// mayRemove tells whether the user may take the place's name away.
func (s *session) mayRemove(at *place) error {
	if at.up == nil {
		return syscall.EBUSY
	}
	if err := s.user.May(at.up.node.Stat(), fs.MayWrite|fs.MayExec); err != nil {
		return err
	}
	if _, ok := at.up.node.(fs.Remover); !ok {
		return iofs.ErrPermission
	}
	return nil
}

// removeAt removes the file that was walked to; if the name is another
// file's by now, that one stays.
func (s *session) removeAt(ctx context.Context, at *place) error {
	if err := s.mayRemove(at); err != nil {
		return err
	}
	n, err := at.up.node.(fs.Dir).Lookup(ctx, at.name)
	if err != nil {
		return err
	}
	if n.Stat().Path != at.node.Stat().Path {
		return iofs.ErrNotExist
	}
	return at.up.node.(fs.Remover).Remove(ctx, at.name)
}

// Read answers as session.read does, in go9p's form.
func (v service) Read(c go9p.Conn, t *proto.TRead) (proto.FCall, error) {
	s := c.(*session)
	var b heap
	n, err := s.read(s.TagContext(t.Tag), t.Fid, t.Offset, t.Count, &b)
	if err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	return &proto.RRead{Header: header(proto.Rread, t.Tag), Count: uint32(n), Data: b[:n]}, nil
}

// space is memory for what is read. Each room is longer than the one before
// and begins with what that one held. The first is waited for; a later one
// that is not to be had is nil.
type space interface {
	room(ctx context.Context, n int) ([]byte, error)
}

type heap []byte

func (h *heap) room(_ context.Context, n int) ([]byte, error) {
	b := make([]byte, n)
	copy(b, *h)
	*h = b
	return b, nil
}

const firstRead = 8 << 10 // bytes tried first where a file does not tell its size

// size is how long the file is, if that is known.
func (o *opened) size(n fs.Node) (int64, bool) {
	if z, ok := o.h.(fs.Sized); ok {
		return z.Size(), true
	}
	return n.Stat().Size, o.kind == fs.Plain
}

// read reads up to count bytes into space, and tells how many.
func (s *session) read(ctx context.Context, n uint32, off uint64, count uint32, mem space) (int, error) {
	f, err := s.fid(n)
	if err != nil {
		return 0, err
	}
	o := f.open
	if o == nil || o.mode&fs.Read == 0 {
		return 0, errBadUse
	}
	want := int(min(count, s.msize-ioHeader))
	if o.list != nil {
		p, err := mem.room(ctx, want)
		if err != nil {
			return 0, err
		}
		return o.list.read(ctx, s, off, p)
	}
	if off > math.MaxInt64 {
		return 0, iofs.ErrInvalid
	}
	first := min(want, firstRead)
	if o.kind == fs.Live {
		want = first // a record; what does not fit comes next
	} else if size, ok := o.size(f.at.node); ok {
		// A read past the end asks for a little: the file may have another
		// version by now.
		if size > int64(off) {
			want = int(min(int64(want), size-int64(off)))
		} else {
			want = min(want, 512)
		}
		first = want
	}
	for k := 0; ; first = min(want, 4*first) {
		p, err := mem.room(ctx, first)
		if p == nil || err != nil && k == 0 {
			return k, err
		}
		j, err := o.h.ReadAt(ctx, p[k:], int64(off)+int64(k))
		k += j
		if k == 0 && err != nil && err != io.EOF {
			return 0, err
		}
		// A short read has given what there is.
		if err != nil || k < first || first == want {
			return k, nil
		}
	}
}

// Write takes what the client wrote.
func (v service) Write(c go9p.Conn, t *proto.TWrite) (proto.FCall, error) {
	s := c.(*session)
	n, err := s.write(s.TagContext(t.Tag), t.Fid, t.Offset, t.Data)
	if err != nil {
		return rerror(t.Tag, refusal(err)), nil
	}
	return &proto.RWrite{Header: header(proto.Rwrite, t.Tag), Count: uint32(n)}, nil
}

func (s *session) write(ctx context.Context, n uint32, off uint64, p []byte) (int, error) {
	f, err := s.fid(n)
	if err != nil {
		return 0, err
	}
	o := f.open
	if o == nil || o.h == nil || o.mode&fs.Write == 0 {
		return 0, errBadUse
	}
	if off > math.MaxInt64-uint64(len(p)) {
		return 0, syscall.EFBIG
	}
	o.written = true
	return o.h.WriteAt(ctx, p, int64(off))
}

// Clunk ends a fid; what a writer is told at the end is told here.
func (v service) Clunk(c go9p.Conn, t *proto.TClunk) (proto.FCall, error) {
	s := c.(*session)
	f, err := s.drop(t.Fid)
	if err == nil {
		err = s.closeFid(s.TagContext(t.Tag), f)
	}
	if err != nil {
		return rerror(t.Tag, refusal(err)), nil
	}
	return &proto.RClunk{Header: header(proto.Rclunk, t.Tag)}, nil
}

func (s *session) closeFid(ctx context.Context, f *fid) (err error) {
	o := f.open
	if o == nil || o.h == nil {
		return nil
	}
	if o.mode&(fs.Write|fs.Trunc) != 0 {
		err = o.h.Flush(ctx)
	}
	if e := o.h.Close(); err == nil {
		err = e
	}
	if o.rclose {
		if e := s.removeAt(ctx, f.at); err == nil {
			err = e
		}
	}
	return err
}

// Remove ends the fid too, whether or not the file goes.
func (v service) Remove(c go9p.Conn, t *proto.TRemove) (proto.FCall, error) {
	s := c.(*session)
	f, err := s.drop(t.Fid)
	if err == nil {
		if f.open != nil && f.open.h != nil {
			err = f.open.h.Close()
		}
		if e := s.removeAt(s.TagContext(t.Tag), f.at); e != nil {
			err = e
		}
	}
	if err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	return &proto.RRemove{Header: header(proto.Rremove, t.Tag)}, nil
}

// Stat tells a node's attributes.
func (v service) Stat(c go9p.Conn, t *proto.TStat) (proto.FCall, error) {
	s := c.(*session)
	f, err := s.fid(t.Fid)
	if err != nil {
		return rerror(t.Tag, ename(err)), nil
	}
	st := s.srv.stat(f.at.name, f.at.node)
	if f.open != nil && f.open.kind == fs.Made {
		if size, ok := f.open.size(f.at.node); ok {
			st.Length = uint64(size)
			if !s.srv.unmark {
				st.Dev = uint32(fs.Plain) // as it was opened, it has a length
			}
		}
	}
	if statLen(&st)+9 > int(s.msize) {
		return rerror(t.Tag, ename(syscall.ENAMETOOLONG)), nil
	}
	return &proto.RStat{Header: header(proto.Rstat, t.Tag), Stat: st}, nil
}

// Wstat changes attributes; one that asks for nothing is a sync.
func (v service) Wstat(c go9p.Conn, t *proto.TWstat) (proto.FCall, error) {
	s := c.(*session)
	if err := s.wstat(s.TagContext(t.Tag), t); err != nil {
		return rerror(t.Tag, refusal(err)), nil
	}
	return &proto.RWstat{Header: header(proto.Rwstat, t.Tag)}, nil
}

func (s *session) wstat(ctx context.Context, t *proto.TWstat) error {
	f, err := s.fid(t.Fid)
	if err != nil {
		return err
	}
	st, w := f.at.node.Stat(), &t.Stat
	now := s.srv.stat(f.at.name, f.at.node)
	_, isDir := f.at.node.(fs.Dir)
	var c fs.Change
	rename := false

	// First all that can be refused, so that nothing is half done.
	if w.Type != 0xffff && w.Type != now.Type || w.Dev != ^uint32(0) && w.Dev != now.Dev ||
		w.Qid != (proto.Qid{Qtype: 0xff, Vers: ^uint32(0), Uid: ^uint64(0)}) && w.Qid != now.Qid ||
		w.Uid != "" && w.Uid != now.Uid || w.Gid != "" && w.Gid != now.Gid ||
		w.Muid != "" && w.Muid != now.Muid {
		return syscall.EPERM
	}
	owns := !s.user.ReadOnly && (st.Owner == "" && s.user.Owner || st.Owner != "" && st.Owner == s.user.Name)
	if w.Mode != ^uint32(0) && w.Mode != now.Mode {
		if (w.Mode^now.Mode)&proto.DMDIR != 0 || w.Mode&^(proto.DMDIR|proto.DMAPPEND|proto.DMTMP|0o777) != 0 {
			return syscall.EPERM
		}
		if !owns {
			return syscall.EPERM
		}
		m := iofs.FileMode(w.Mode & 0o777)
		c.Mode = &m
	}
	if w.Mtime != ^uint32(0) && w.Mtime != now.Mtime {
		if !owns && s.user.May(st, fs.MayWrite) != nil {
			return syscall.EPERM
		}
		mt := time.Unix(int64(w.Mtime), 0)
		c.Mtime = &mt
	}
	_, sets := f.at.node.(fs.Setter)
	if w.Length != ^uint64(0) && (w.Length != now.Length || sets && !isDir) {
		switch {
		case isDir:
			return syscall.EISDIR
		case w.Length > math.MaxInt64:
			return syscall.EFBIG
		}
		if err := s.user.May(st, fs.MayWrite); err != nil {
			return err
		}
		n := int64(w.Length)
		c.Size = &n
	}
	if w.Name != "" && w.Name != f.at.name {
		up := f.at.up
		switch {
		case up == nil:
			return syscall.EBUSY
		case badName(w.Name):
			return syscall.EINVAL
		case len(w.Name) > maxName:
			return syscall.ENAMETOOLONG
		}
		if err := s.user.May(up.node.Stat(), fs.MayWrite|fs.MayExec); err != nil {
			return err
		}
		if _, ok := up.node.(fs.Renamer); !ok {
			return iofs.ErrPermission
		}
		rename = true
	}

	if st.Kind == fs.Control || st.Kind == fs.Live {
		// Truncation and times of what takes messages mean nothing: a shell's
		// > sends the one, touch the other.
		c.Size, c.Mtime = nil, nil
	}
	if c != (fs.Change{}) {
		set, ok := f.at.node.(fs.Setter)
		if !ok {
			return syscall.EPERM
		}
		if err := set.Set(ctx, c); err != nil {
			return err
		}
	}
	if rename {
		return s.rename(ctx, t.Fid, f, w.Name)
	}
	if w.Length == ^uint64(0) && w.Mode == ^uint32(0) && w.Mtime == ^uint32(0) && w.Atime == ^uint32(0) &&
		f.open != nil && f.open.h != nil && f.open.mode&fs.Write != 0 {
		return f.open.h.Flush(ctx)
	}
	return nil
}

// rename gives the file another name; what had it goes, as rename(2) has it
// and 9P's stat(5) has not.
func (s *session) rename(ctx context.Context, n uint32, f *fid, name string) error {
	up := f.at.up
	dir := up.node.(fs.Dir)
	cur, err := dir.Lookup(ctx, f.at.name)
	if err != nil {
		return err
	}
	if cur.Stat().Path != f.at.node.Stat().Path {
		return iofs.ErrNotExist
	}
	if err := up.node.(fs.Renamer).Rename(ctx, f.at.name, name, true); err != nil {
		return err
	}
	at := &place{up, name, f.at.node}
	if node, err := dir.Lookup(ctx, name); err == nil {
		at.node = node
	}
	s.set(n, &fid{at, f.open})
	return nil
}

func qidOf(n fs.Node) proto.Qid { return qid(n, n.Stat()) }

func qid(n fs.Node, st fs.Stat) proto.Qid {
	q := proto.Qid{Vers: st.Vers, Uid: st.Path}
	if _, ok := n.(fs.Dir); ok {
		q.Qtype = 0x80
	} else if st.Kind == fs.Growing {
		q.Qtype = 0x40
	}
	return q
}

// stat is a node's attributes in 9P's terms.
func (v *Server) stat(name string, n fs.Node) proto.Stat {
	st := n.Stat()
	p := proto.Stat{
		Type: kindMark, Dev: uint32(st.Kind), Qid: qid(n, st), Mode: uint32(st.Mode.Perm()),
		Length: uint64(max(st.Size, 0)), Name: name, Uid: st.Owner, Gid: st.Group,
	}
	p.Mode |= uint32(p.Qid.Qtype) << 24
	if p.Qid.Qtype&0x80 != 0 {
		p.Length, p.Dev = 0, 0
	}
	if v.unmark {
		p.Type, p.Dev = 0, 0
	}
	if st.Owner == "" {
		p.Uid = v.owner
	}
	if st.Group == "" {
		p.Gid = v.group
	}
	p.Muid = p.Uid
	t := st.Mtime
	if t.IsZero() {
		t = v.started
	}
	p.Mtime = uint32(t.Unix())
	p.Atime = p.Mtime
	return p
}

// A listing is an open directory: where the last reads ended.
type listing struct {
	dir fs.Dir

	off     uint64 // where the next entry begins
	after   string // the last entry before off
	end     bool   // there was none after it
	pending []byte // the entry at off, if it is known: it did not fit
	next    string // its name
	marks   []mark // the latest boundaries before off
}

type mark struct {
	off   uint64
	after string
}

const maxMarks = 64

// read fills p with whole entries. Where not even one fits it gives none,
// and no error: kernels top a buffer up with what cannot hold another.
func (l *listing) read(ctx context.Context, s *session, off uint64, p []byte) (int, error) {
	switch {
	case off == 0:
		l.off, l.after, l.end, l.pending, l.marks = 0, "", false, nil, l.marks[:0]
	case off != l.off:
		i := len(l.marks) - 1
		for i >= 0 && l.marks[i].off != off {
			i--
		}
		if i < 0 {
			return 0, syscall.ESPIPE
		}
		l.off, l.after, l.end, l.pending = off, l.marks[i].after, false, nil
		l.marks = l.marks[:i+1]
	}
	k := 0
	defer func() {
		if k > 0 {
			if len(l.marks) == maxMarks {
				l.marks = append(l.marks[:0], l.marks[1:]...)
			}
			l.marks = append(l.marks, mark{l.off, l.after})
		}
	}()
	if l.pending != nil {
		if len(l.pending) > len(p) {
			return 0, nil
		}
		k = copy(p, l.pending)
		l.off += uint64(k)
		l.after, l.pending = l.next, nil
	}
	if l.end {
		return k, nil
	}
	for e, err := range l.dir.List(ctx, l.after) {
		if err != nil {
			if k > 0 {
				return k, nil // it comes again, at the next read
			}
			return 0, err
		}
		st := s.srv.stat(e.Name, e.Node)
		n := statLen(&st)
		if n > math.MaxUint16 || n > int(s.msize)-ioHeader {
			s.srv.lg.Warn("9p: name too long to list", "name", e.Name[:64])
			l.after = e.Name
			continue
		}
		if n > len(p)-k {
			l.pending, l.next = appendStat(nil, &st), e.Name
			return k, nil
		}
		appendStat(p[k:k], &st)
		k += n
		l.off += uint64(n)
		l.after = e.Name
	}
	l.end = true
	return k, nil
}
