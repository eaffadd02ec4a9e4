package cache

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strings"
	"sync"

	"harvest/cache/segment"
)

// names are the URLs of what is kept, which the store does not know by heart: a file
// of lines, KEY URL, to which those that come are appended. What has left the store
// stays in it until it is written anew; who reads it asks the store. It is derived:
// lines that a crash has cost are written again when their objects are read.
type names struct {
	path string
	held func(segment.Key) bool

	// mu guards what follows.
	mu    sync.Mutex
	f     *os.File
	wait  []byte // not written yet
	lines int64  // in the file, and in wait
	dirs  map[string]struct{}
}

// minLines is how many lines there are before the file is written anew for those
// that mean nothing any more.
const minLines = 1 << 16

// openNames opens the file, which is not read yet: load does that.
func openNames(path string, held func(segment.Key) bool) (*names, error) {
	n := &names{path: path, held: held, dirs: make(map[string]struct{})}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	n.f = f
	var last [1]byte
	if st, err := f.Stat(); err == nil && st.Size() > 0 {
		if _, err := f.ReadAt(last[:], st.Size()-1); err == nil && last[0] != '\n' {
			n.wait = append(n.wait, '\n') // a crash has cut the last line off
		}
	}
	return n, nil
}

// load counts the lines there are, and learns which folders look like files.
func (n *names) load(ctx context.Context) error {
	f, err := os.Open(n.path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := int64(0)
	err = scanNames(f, func(_ segment.Key, url []byte) bool {
		if lines++; lines%4096 == 0 && ctx.Err() != nil {
			return false
		}
		if looksLikeDir(url) {
			n.mu.Lock()
			n.noteDirs(string(url))
			n.mu.Unlock()
		}
		return true
	})
	n.mu.Lock()
	n.lines += lines
	n.mu.Unlock()
	return err
}

// looksLikeDir reports whether noteDirs might have something to note, for most URLs
// have no dot before their last slash but in the host.
func looksLikeDir(url []byte) bool {
	at := bytes.Index(url, []byte("://"))
	if at < 0 {
		return false
	}
	path := url[at+3:]
	from, to := bytes.IndexByte(path, '/'), bytes.LastIndexByte(path, '/')
	return from >= 0 && bytes.IndexByte(path[from:to+1], '.') >= 0
}

// rewrite writes the file anew with those that are held, each once. mu is held.
func (n *names) rewrite() error {
	old, err := os.Open(n.path)
	if errors.Is(err, iofs.ErrNotExist) {
		old = nil
	} else if err != nil {
		return err
	}
	f, err := os.OpenFile(n.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	seen := make(map[uint64]struct{})
	n.lines = 0
	if old != nil {
		err = scanNames(old, func(k segment.Key, url []byte) bool {
			if _, ok := seen[printOf(k)]; !ok && n.held(k) {
				seen[printOf(k)] = struct{}{}
				n.lines++
				n.noteDirs(string(url))
				w.Write(appendName(nil, k, string(url)))
			}
			return true
		})
		old.Close()
	}
	err = errors.Join(err, w.Flush())
	if err == nil {
		err = os.Rename(n.path+".new", n.path)
	}
	if err != nil {
		f.Close()
		os.Remove(n.path + ".new")
		return err
	}
	if n.f != nil {
		n.f.Close()
	}
	n.f = f
	return nil
}

func appendName(b []byte, k segment.Key, url string) []byte {
	b = hex.AppendEncode(b, k[:])
	b = append(b, ' ')
	b = append(b, url...)
	return append(b, '\n')
}

// scanNames reads lines up to the first that is cut off.
func scanNames(r io.Reader, yield func(k segment.Key, url []byte) bool) error {
	br := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := br.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, bufio.ErrBufferFull): // longer than any URL that is kept
			if err := skipLine(br); err != nil {
				return nil
			}
			continue
		case err != nil:
			return err
		}
		key, url, ok := bytes.Cut(line[:len(line)-1], []byte(" "))
		var k segment.Key
		if !ok || len(key) != 2*len(k) {
			continue
		}
		if _, err := hex.Decode(k[:], key); err != nil {
			continue
		}
		if !yield(k, url) {
			return nil
		}
	}
}

func skipLine(br *bufio.Reader) error {
	for {
		if _, err := br.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// add notes a URL that is kept.
func (n *names) add(k segment.Key, url string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wait = appendName(n.wait, k, url)
	n.lines++
	n.noteDirs(url)
	if len(n.wait) > 1<<20 {
		n.flushLocked()
	}
}

// flush writes what waits, and the file anew when most of it means nothing.
func (n *names) flush() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flushLocked()
}

func (n *names) flushLocked() error {
	if len(n.wait) == 0 {
		return nil
	}
	_, err := n.f.Write(n.wait)
	n.wait = n.wait[:0]
	return err
}

// compact writes the file anew if there are many more lines than objects.
func (n *names) compact(objects int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lines < minLines || n.lines < 2*int64(objects) {
		return nil
	}
	if err := n.flushLocked(); err != nil {
		return err
	}
	return n.rewrite()
}

// each yields the URLs of what is held, in no order, some perhaps twice.
func (n *names) each(yield func(k segment.Key, url []byte) bool) error {
	n.mu.Lock()
	err := n.flushLocked()
	n.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := os.Open(n.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return scanNames(f, func(k segment.Key, url []byte) bool {
		return !n.held(k) || yield(k, url)
	})
}

// maxDirs bounds how many folders with a name like a file's are known.
const maxDirs = 1 << 16

// noteDirs remembers folders of a URL whose name looks like a file's: in the tree
// they have to be told from files. mu is held.
func (n *names) noteDirs(url string) {
	path, _, _ := strings.Cut(url, "?")
	start := strings.Index(path, "://") + 3
	if i := strings.IndexByte(path[start:], '/'); i >= 0 {
		start += i + 1
	} else {
		return
	}
	for start < len(path) {
		i := strings.IndexByte(path[start:], '/')
		if i < 0 {
			return
		}
		if isFileName(path[start:start+i]) && len(n.dirs) < maxDirs {
			n.dirs[path[:start+i+1]] = struct{}{}
		}
		start += i + 1
	}
}

// isDir reports whether something is, or was, kept in a folder whose name looks like
// a file's.
func (n *names) isDir(url string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.dirs[url]
	return ok
}

func (n *names) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return errors.Join(n.flushLocked(), n.f.Close())
}

// isFileName reports whether the last part of a URL's path is taken for a file: by
// its extension, or by its query.
func isFileName(name string) bool {
	if strings.Contains(name, "?") {
		return true
	}
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || i == len(name)-1 || len(name)-i > 7 {
		return false
	}
	ext := name[i+1:]
	if !('a' <= ext[0]|0x20 && ext[0]|0x20 <= 'z') {
		return false
	}
	for j := 0; j < len(ext); j++ {
		c := ext[j] | 0x20
		if !('a' <= c && c <= 'z' || '0' <= ext[j] && ext[j] <= '9') {
			return false
		}
	}
	return true
}
