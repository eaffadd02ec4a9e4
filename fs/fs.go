// Package fs is the file tree every service of Harvest is made of.
//
// A service declares its files as a Dir; the same Dir is then served over 9P
// (fs/ninep), mounted (fs/fuse) and read in-process (IO). The package knows
// nothing of either door and nothing of any service.
//
// A Node is the identity and the attributes of a file; two Nodes are the same
// file if and only if their Stat().Path is equal. Nodes are cheap: a door asks
// for one by name whenever it needs it and may drop it at any time, so state
// that outlives a look-up belongs to the service, and state that belongs to
// one open file lives in its Handle.
//
// Errors carry their class: iofs.ErrNotExist, ErrExist, ErrPermission,
// ErrInvalid, context.Canceled or a syscall.Errno, wrapped or not. Errno and
// the doors turn the class into what their side understands.
package fs

import (
	"context"
	iofs "io/fs"
	"iter"
	"time"
)

// Kind says how a file's content comes about, and so what may be cached.
type Kind uint8

const (
	// Plain content has a known Size and is determined by Path and Vers:
	// whoever holds the bytes of one Vers may keep them.
	Plain Kind = iota
	// Made content is produced by opening the file; each open sees one
	// snapshot. Size may be 0 while the content is not.
	Made
	// Growing files only get longer (or are cut at the front, which looks
	// like truncation); Size is true and reads wait for nothing.
	Growing
	// Live files block at their end, give one record a read and ignore
	// offsets.
	Live
	// Control files take messages: the offset and truncation of a write
	// mean nothing.
	Control
)

// Stat is what a Node knows of itself without any I/O.
type Stat struct {
	Path  uint64 // identity; see ID. Never 0, 1 (the root) or ^0 but for the root itself
	Vers  uint32 // moves when the content does
	Kind  Kind
	Mode  iofs.FileMode // permission bits; the doors add the type of the node
	Size  int64         // bytes; of directories 0
	Mtime time.Time     // zero: when the server started
	Owner string        // "" is whoever owns the tree
	Group string        // "" is the owner's own group
}

// RootPath is the Path of a tree's root.
const RootPath = 1

// A Node is a File or a Dir. Stat must not block.
type Node interface {
	Stat() Stat
}

// An Entry is a name in a directory.
type Entry struct {
	Name string
	Node Node
}

// A Dir is a directory. Look-up may know names that the list does not show.
type Dir interface {
	Node
	// Lookup finds one name; its cost does not depend on how many there are.
	// An absent name is an error that wraps iofs.ErrNotExist.
	Lookup(ctx context.Context, name string) (Node, error)
	// List yields the entries whose names sort after the given one (bytewise;
	// "" is before all), in that order. It holds no more than a bounded part
	// of the directory at a time and tolerates change: an entry present
	// throughout is listed exactly once. The sequence ends after an error.
	List(ctx context.Context, after string) iter.Seq2[Entry, error]
}

// Mode says what a file is opened for.
type Mode uint8

const (
	Read Mode = 1 << iota
	Write
	Trunc  // with Write: the content goes first
	Append // with Write: every write goes to the end
)

// A File is a node with content.
type File interface {
	Node
	Open(ctx context.Context, m Mode) (Handle, error)
}

// A Handle is an open file. Its methods may be called concurrently. Every
// method that waits ends with its context, having consumed nothing.
type Handle interface {
	// ReadAt is like io.ReaderAt, but may give fewer bytes than asked for
	// with a nil error. The end is io.EOF, with or without bytes.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	// WriteAt takes all of p or fails.
	WriteAt(ctx context.Context, p []byte, off int64) (int, error)
	// Flush is close(2) or Tclunk: the writer says the text is complete, and
	// hears what is wrong with it. It can come more than once.
	Flush(ctx context.Context) error
	// Close comes exactly once, after all else, and frees.
	Close() error
}

// Optional faces of a Dir. A Dir without one refuses with iofs.ErrPermission.
type (
	// A Maker makes directories.
	Maker interface {
		Mkdir(ctx context.Context, name string, perm iofs.FileMode) (Dir, error)
	}
	// A Creator makes files; a name already there is iofs.ErrExist.
	Creator interface {
		Create(ctx context.Context, name string, perm iofs.FileMode, m Mode) (File, Handle, error)
	}
	// A Remover removes a file or an empty directory (else syscall.ENOTEMPTY).
	Remover interface {
		Remove(ctx context.Context, name string) error
	}
	// A Linker takes a file of the same tree in, under a name. Only a mount
	// can ask for that.
	Linker interface {
		Link(ctx context.Context, name string, file Node) error
	}
	// A Renamer gives an entry another name in the same directory. With
	// replace, what stood there goes; without, it is iofs.ErrExist.
	Renamer interface {
		Rename(ctx context.Context, old, new string, replace bool) error
	}
)

// Change is a partial new Stat; nil fields stay.
type Change struct {
	Size  *int64
	Mode  *iofs.FileMode
	Mtime *time.Time
}

// A Setter is a node whose attributes can be set. On a node that is none,
// doors accept what changes nothing and refuse the rest.
type Setter interface {
	Set(ctx context.Context, c Change) error
}

// An Attributer offers more about itself, as extended attributes: the doors
// that have those show NAME as user.harvest.NAME.
type Attributer interface {
	Attributes(ctx context.Context) ([]Attribute, error)
}

// Attribute is one extended attribute.
type Attribute struct{ Name, Value string }

// A Mover is a Handle that is open on another node than the one that was
// opened: that of a clone file is the new session's ctl.
type Mover interface {
	Node() Node
}

// An Aborter is a Handle that is told when whoever opened it has vanished:
// Abort then comes before Close, and no Flush does. What was begun is not
// complete.
type Aborter interface {
	Abort()
}

// A Sized is a Handle that knows how long what it reads is, as that of a Made
// file may: it stays so while it is open.
type Sized interface {
	Size() int64
}

// ID makes a Path of the keys that identify a thing. It is the same in every
// run and machine (FNV-1a over the parts, each closed by a NUL, with
// splitmix64's finalizer), never reserved, and of 64 bits: among a million
// names two collide with a chance of 3 in 10^8.
func ID(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		for i := 0; i < len(p); i++ {
			h = (h ^ uint64(p[i])) * 1099511628211
		}
		h *= 1099511628211 // a NUL
	}
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	h ^= h >> 31
	if h <= RootPath || h == ^uint64(0) {
		h = 2
	}
	return h
}
