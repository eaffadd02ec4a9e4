package fuse

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Stats are counts of requests by kind, of notes to the kernel, and what is
// held now. Divided by the number of files read they show what a file costs.
type Stats struct {
	Lookup, Forget, Getattr, Setattr              uint64
	Open, Create, Read, Write, Flush, Release     uint64
	Opendir, Readdir, Readdirplus, Releasedir     uint64
	Mkdir, Unlink, Rmdir, Rename, Xattr, Statfs   uint64
	Interrupted                                   uint64 // requests that ended with EINTR
	Store, InvalInode, InvalEntry, Prune, LostBus uint64 // to the kernel; LostBus: times events were missed
	Kept                                          uint64 // opens that left the page cache as it was
	Nodes, Handles                                int    // known to the kernel now
}

// String is one line of attr=value pairs, without the zeros.
func (s Stats) String() string {
	var b strings.Builder
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"lookup", s.Lookup}, {"getattr", s.Getattr}, {"open", s.Open}, {"read", s.Read}, {"flush", s.Flush},
		{"release", s.Release}, {"opendir", s.Opendir}, {"readdir", s.Readdir}, {"readdirplus", s.Readdirplus},
		{"releasedir", s.Releasedir}, {"xattr", s.Xattr}, {"setattr", s.Setattr}, {"create", s.Create}, {"write", s.Write},
		{"mkdir", s.Mkdir}, {"unlink", s.Unlink}, {"rmdir", s.Rmdir}, {"rename", s.Rename}, {"statfs", s.Statfs},
		{"forget", s.Forget}, {"interrupted", s.Interrupted}, {"store", s.Store}, {"kept", s.Kept},
		{"invalinode", s.InvalInode}, {"invalentry", s.InvalEntry}, {"prune", s.Prune}, {"lostbus", s.LostBus},
		{"nodes", uint64(s.Nodes)}, {"handles", uint64(s.Handles)},
	} {
		if c.n != 0 {
			fmt.Fprintf(&b, " %s=%d", c.name, c.n)
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

// Requests is how many requests came, forgets apart: those have no answer.
func (s Stats) Requests() uint64 {
	return s.Lookup + s.Getattr + s.Setattr + s.Open + s.Create + s.Read + s.Write + s.Flush + s.Release +
		s.Opendir + s.Readdir + s.Readdirplus + s.Releasedir + s.Mkdir + s.Unlink + s.Rmdir + s.Rename + s.Xattr + s.Statfs
}

type counters struct {
	lookup, forget, getattr, setattr              atomic.Uint64
	open, create, read, write, flush, release     atomic.Uint64
	opendir, readdir, readdirplus, releasedir     atomic.Uint64
	mkdir, unlink, rmdir, rename, xattr, statfs   atomic.Uint64
	interrupted                                   atomic.Uint64
	store, invalInode, invalEntry, prune, lostBus atomic.Uint64
	kept                                          atomic.Uint64
}

func (t *tree) stats() Stats {
	c := &t.count
	s := Stats{
		Lookup: c.lookup.Load(), Forget: c.forget.Load(), Getattr: c.getattr.Load(), Setattr: c.setattr.Load(),
		Open: c.open.Load(), Create: c.create.Load(), Read: c.read.Load(), Write: c.write.Load(), Flush: c.flush.Load(),
		Release: c.release.Load(), Opendir: c.opendir.Load(), Readdir: c.readdir.Load(), Readdirplus: c.readdirplus.Load(),
		Releasedir: c.releasedir.Load(), Mkdir: c.mkdir.Load(), Unlink: c.unlink.Load(), Rmdir: c.rmdir.Load(),
		Rename: c.rename.Load(), Xattr: c.xattr.Load(), Statfs: c.statfs.Load(), Interrupted: c.interrupted.Load(),
		Store: c.store.Load(), InvalInode: c.invalInode.Load(), InvalEntry: c.invalEntry.Load(), Prune: c.prune.Load(),
		LostBus: c.lostBus.Load(), Kept: c.kept.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Nodes, s.Handles = len(t.nodes), len(t.files)+len(t.dirs)
	return s
}
