package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
)

// A journal is the file log of a Broker: what it did, a record a line, on disk in
// the folder log: current, and those before it, the newest as 1. A record is one
// write, so that a crash leaves whole ones; what a power cut leaves of the last is
// cut off at the next start. When current is too long, or when it is asked for, the
// others go up by one, the eldest goes, and a new current begins. A crash between
// two of these steps leaves a number unused, which the next time fills.
type journal struct {
	dir  string
	tell func(record string) // hears each record, for those who wait for it

	mu    sync.Mutex
	conf  logConfig
	f     *os.File
	size  int64
	trail int64 // records since the start
	vers  uint32
	mtime time.Time
	err   error // of the last write or rotation
}

// logConfig is what the config says of the log.
type logConfig struct {
	types map[string]bool
	size  int64
	keep  int
	open  bool
}

// What may be logged. The first word is the type, as ctl and config call it.
const (
	logCollect  = "collect"      // a collection has ended, failed, or met a bad object
	logQuery    = "query"        // a query is asked
	logReturn   = "query-return" // it has been answered
	logUpdate   = "update"       // an object came or changed
	logDelete   = "delete"       // one went
	logRefresh  = "refresh"      // one lives longer
	logGC       = "gc"
	logIndex    = "index" // made anew, checked, found damaged
	logRegister = "register"
	logSession  = "session" // one has ended by itself
	logAdmin    = "admin"   // a line of ctl, or a new config
	logMessage  = "message" // what the program says of itself, trouble most of all
)

func logTypes() []string {
	return []string{logAdmin, logCollect, logDelete, logGC, logIndex, logMessage, logQuery, logReturn, logRefresh, logRegister, logSession, logUpdate}
}

// What is logged unless the config says otherwise: not each object.
func defaultLog() logConfig {
	c := logConfig{types: make(map[string]bool), size: 1 << 20, keep: 8, open: true}
	for _, t := range []string{logAdmin, logCollect, logGC, logIndex, logMessage, logReturn, logRegister, logSession} {
		c.types[t] = true
	}
	return c
}

// logOf is the type of an event.
func logOf(event string) string {
	switch event {
	case "collected", "failed", "bad", "restart":
		return logCollect
	case "deleted":
		return logDelete
	case "gc":
		return logGC
	case "registered":
		return logRegister
	case "expired":
		return logSession
	case "config", "added", "cleaned":
		return logAdmin
	}
	return logIndex
}

const logUsage = "log types='TYPE …' size=SIZE keep=N open=yes|no"

// logging reads log types='…' size=… keep=… open=….
func (c *config) logging(e ndb.Entry) (err error) {
	if e.First().Value != "" || len(e.Pairs) < 2 {
		return e.Errorf(e.First(), "log: written as %s", logUsage)
	}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "types":
			c.log.types, err = parseTypes(strings.Fields(p.Value))
			if err != nil {
				err = e.Errorf(p, "%s", err)
			}
		case "size":
			if c.log.size, err = e.Size(p); err == nil && c.log.size < 4<<10 {
				err = e.Errorf(p, "log: size=%s is less than 4K", p.Value)
			}
		case "keep":
			if c.log.keep, err = e.Int(p); err == nil && (c.log.keep < 0 || c.log.keep > 1000) {
				err = e.Errorf(p, "log: keep=%s is not a number from 0 to 1000", p.Value)
			}
		case "open":
			c.log.open, err = e.Bool(p)
		default:
			err = e.Errorf(p, "log: unknown key '%s'; written as %s", p.Key, logUsage)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseTypes(names []string) (map[string]bool, error) {
	types := make(map[string]bool)
	for _, name := range names {
		if !slices.Contains(logTypes(), name) {
			return nil, fmt.Errorf("log: no type '%s'; there are %s: %w", name, strings.Join(logTypes(), " "), iofs.ErrInvalid)
		}
		types[name] = true
	}
	return types, nil
}

const currentLog = "current"

// openJournal opens the log in a folder, which it makes if it is absent.
func openJournal(dir string, tell func(record string)) (*journal, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	j := &journal{dir: dir, tell: tell, conf: defaultLog()}
	if err := j.begin(); err != nil {
		return nil, err
	}
	return j, nil
}

// begin opens current, and cuts off what is no whole record. Called with mu held, or
// before there is anybody.
func (j *journal) begin() error {
	f, err := os.OpenFile(filepath.Join(j.dir, currentLog), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	st, err := f.Stat()
	size := int64(0)
	if err == nil {
		size, err = whole(f, st.Size())
	}
	if err == nil && size < st.Size() {
		err = f.Truncate(size)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("log: %w", err)
	}
	j.f, j.size, j.mtime = f, size, st.ModTime()
	return nil
}

// whole is how long a log is without the part of a line at its end.
func whole(f io.ReaderAt, size int64) (int64, error) {
	const step = 4096
	buf := make([]byte, step)
	for at := size; at > 0; at = max(at-step, 0) {
		from := max(at-step, 0)
		n, err := f.ReadAt(buf[:at-from], from)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// use takes a new config.
func (j *journal) use(c logConfig) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.conf = c
	j.trim()
}

// wants tells whether records of a type are kept.
func (j *journal) wants(kind string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.conf.open && j.conf.types[kind]
}

// add writes a record of a type, if those are kept.
func (j *journal) add(kind, record string) {
	record = strings.ReplaceAll(strings.TrimRight(record, "\n"), "\n", " ") + "\n"
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.conf.open || !j.conf.types[kind] || j.f == nil {
		return
	}
	if j.size > 0 && j.size+int64(len(record)) > j.conf.size {
		j.err = j.shift()
	}
	n, err := j.f.WriteAt([]byte(record), j.size)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, j.f.Truncate(j.size))
		}
		j.err = err
		return
	}
	j.size += int64(n)
	j.trail++
	j.vers++
	j.mtime = time.Now()
	j.tell(record)
}

// Write takes what a log handler says, a line a record.
func (j *journal) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		j.add(logMessage, line)
	}
	return len(p), nil
}

func (j *journal) path(n int) string { return filepath.Join(j.dir, strconv.Itoa(n)) }

// old are the numbers of the logs before current, the newest first.
func (j *journal) old() (list []int) {
	names, _ := os.ReadDir(j.dir) // none, if it cannot be read
	for _, e := range names {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && e.Name() == strconv.Itoa(n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// rotate begins a new current.
func (j *journal) rotate() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size == 0 {
		return nil
	}
	j.err = j.shift()
	return j.err
}

// shift is rotate. On an error what can be written to still is. Called with mu held.
func (j *journal) shift() error {
	if err := j.f.Sync(); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	free := 1 // the first number that nobody has
	for slices.Contains(j.old(), free) {
		free++
	}
	for ; free > 1; free-- {
		if err := os.Rename(j.path(free-1), j.path(free)); err != nil {
			return fmt.Errorf("log: %w", err)
		}
	}
	if err := os.Rename(filepath.Join(j.dir, currentLog), j.path(1)); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	was := j.f
	if err := j.begin(); err != nil {
		return err // and go on in the old one
	}
	j.vers++
	j.trim()
	return errors.Join(was.Close(), syncDir(j.dir))
}

// trim removes the logs that are too many. Called with mu held.
func (j *journal) trim() {
	for i, n := range j.old() {
		if i >= j.conf.keep {
			os.Remove(j.path(n))
		}
	}
}

// flush has all on disk.
func (j *journal) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err = j.f.Sync(); j.err != nil {
		return fmt.Errorf("log: %w", j.err)
	}
	return nil
}

// trouble is what went wrong last.
func (j *journal) trouble() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// read reads current.
func (j *journal) read(p []byte, off int64) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if off >= j.size {
		return 0, io.EOF
	}
	return j.f.ReadAt(p[:min(int64(len(p)), j.size-off)], off)
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.f
	j.f = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
