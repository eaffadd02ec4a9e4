package broker

import (
	"context"
	iofs "io/fs"
	"os"
	"strconv"

	"harvest/fs"
)

// keepTail is how much of the log those who wait for records may fall behind.
const keepTail = 64 << 10

// The log says who asked what, so that it is for those alone who may write to ctl:
// its owner, and the group that the config names.
const logMode = 0o640

// whose is the owner and the group that the config names, for ctl, config and log.
func (b *Broker) whose() (owner, group string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.owner, b.config.group
}

// private is a file of the log.
type private struct {
	fs.File
	b *Broker
}

func (f private) Stat() fs.Stat {
	st := f.File.Stat()
	st.Mode = logMode
	st.Owner, st.Group = f.b.whose()
	return st
}

// logNodes puts the log into the Broker's directory: current, and the ways to wait.
func (s *shown) logNodes(nodes map[string]fs.Node) {
	nodes["log"] = private{currentFile{s.b}, s.b}
	nodes["log.live"] = fs.Hidden(private{s.tail.Live(s.b.id("log", "live")), s.b})
	nodes["log.wait"] = fs.Hidden(private{s.tail.Wait(s.b.id("log", "wait")), s.b})
}

// oldLogs are log.1 and on.
func (s *shown) oldLogs() (list []fs.Entry) {
	for _, n := range s.b.journal.old() {
		list = append(list, fs.Entry{Name: "log." + strconv.Itoa(n), Node: private{oldLog{s.b, n}, s.b}})
	}
	return list
}

// currentFile is log.
type currentFile struct{ b *Broker }

func (f currentFile) Stat() fs.Stat {
	j := f.b.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	return fs.Stat{Path: f.b.id("log"), Vers: j.vers, Kind: fs.Growing, Size: j.size, Mtime: j.mtime}
}

func (f currentFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	return logHandle{fs.Snapshot(nil), f.b.journal}, nil
}

type logHandle struct {
	fs.Handle
	j *journal
}

func (h logHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	return h.j.read(p, off)
}

// oldLog is log.N, which is another file after each rotation.
type oldLog struct {
	b *Broker
	n int
}

func (f oldLog) Stat() fs.Stat {
	st := fs.Stat{Path: f.b.id("log", strconv.Itoa(f.n)), Kind: fs.Made}
	if fi, err := os.Stat(f.b.journal.path(f.n)); err == nil {
		st.Size, st.Mtime, st.Vers = fi.Size(), fi.ModTime(), uint32(fi.ModTime().UnixNano())
	}
	return st
}

func (f oldLog) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	file, err := os.Open(f.b.journal.path(f.n))
	if err != nil {
		return nil, err
	}
	return openLog{fs.Snapshot(nil), file}, nil
}

// openLog is a log that is read; it stays what it is when it gets another number.
type openLog struct {
	fs.Handle
	f *os.File
}

func (h openLog) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.f.ReadAt(p, off)
}

func (h openLog) Close() error { return h.f.Close() }
