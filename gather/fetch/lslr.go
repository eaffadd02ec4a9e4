package fetch

import (
	"bufio"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jlaffaye/ftp"
)

// Sites have long kept a listing of all they hold, made by `ls -lR` at night, so
// that nobody needs to walk them folder by folder. Where there is one it is the
// listing of its folder, with all that is below it, for one RETR.

const (
	maxReady   = 1 << 30            // bytes received of a ready-made listing
	readyStale = 8 * 24 * time.Hour // older than what is beside it by more, it is not kept any more
)

// readyNames are what it is called, in small letters, the best first, and how it
// is packed.
var readyNames = []struct{ name, code string }{{"ls-lr.gz", "gzip"}, {"ls-lr.zst", "zstd"}, {"ls-lr", ""}}

func isReady(name string) bool {
	name = strings.ToLower(name)
	for _, n := range readyNames {
		if n.name == name {
			return true
		}
	}
	return name == "ls-lr.z" || name == "ls-lr.bz2"
}

// findReady picks the ready-made listing of a folder. Without folders in it there
// is nothing to save.
func findReady(entries []*ftp.Entry) (found *ftp.Entry, code string) {
	best := len(readyNames)
	var newest time.Time
	folders := 0
	for _, e := range entries {
		if e.Type == ftp.EntryTypeFolder && e.Name != "." && e.Name != ".." {
			folders++
		}
		if !isReady(e.Name) && e.Time.After(newest) {
			newest = e.Time
		}
		for i, n := range readyNames[:best] {
			if e.Type == ftp.EntryTypeFile && strings.ToLower(e.Name) == n.name {
				found, code, best = e, n.code, i
				break
			}
		}
	}
	if found == nil || folders == 0 || newest.Sub(found.Time) > readyStale {
		return nil, ""
	}
	return found, code
}

// ready answers with the ready-made listing, if there is one that is of this
// folder; nil if not.
func (r *ftpRequest) ready(entries []*ftp.Entry) (*http.Response, error) {
	e, code := findReady(entries)
	if e == nil || r.req.Method == http.MethodHead {
		return nil, nil
	}
	r.c.allow(maxReady)
	data, err := r.c.ftp.Retr(path.Join(r.path, e.Name))
	if said(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var body io.ReadCloser = &ftpBody{c: r.c, t: r.t, data: data}
	if code != "" {
		body = r.t.web.dec.undo(body, code)
	}
	l := &readyList{r: r, ls: newLS(body, e.Time), body: body}
	if l.begin(entries) {
		return listed(r.req, &lister{more: l.more, done: func(error) { body.Close() }}), nil
	}
	body.Close()
	r.spent = true
	return nil, nil
}

// A readyList makes a listing of a ready-made one as it is read.
type readyList struct {
	r     *ftpRequest
	ls    *lsReader
	body  io.Closer
	ahead []lsEntry
}

// begin reads what it says of the folder itself, and reports whether that is the
// folder: most of the folders that are there must be in it.
func (l *readyList) begin(entries []*ftp.Entry) bool {
	in := make(map[string]bool)
	for len(l.ahead) < 1<<16 {
		e, err := l.ls.next()
		if err != nil {
			break // more will say so
		}
		l.ahead = append(l.ahead, e)
		if e.dir != "" {
			break
		}
		if e.kind == 'd' {
			in[e.name] = true
		}
	}
	want, have := 0, 0
	for _, e := range entries {
		if e.Type == ftp.EntryTypeFolder && e.Name != "." && e.Name != ".." {
			if want++; in[e.Name] {
				have++
			}
		}
	}
	return 2*have > want
}

func (l *readyList) more() (items []item, err error) {
	for _, e := range l.ahead {
		items = l.add(items, e)
	}
	l.ahead = nil
	for len(items) < 256 && err == nil {
		var e lsEntry
		if e, err = l.ls.next(); err == nil {
			items = l.add(items, e)
		}
	}
	return items, err
}

// add adds what is no folder: folders are in the names of what they hold.
func (l *readyList) add(items []item, e lsEntry) []item {
	if e.kind == 'd' || e.dir == "" && isReady(e.name) {
		return items
	}
	name := path.Join(e.dir, e.name)
	i := item{kind: e.kind, size: e.size, time: e.time, href: "./" + Escape(name)}
	if e.kind == 'f' && !e.time.IsZero() {
		f := fact{e.size, e.time.Unix()}
		i.tag = f.etag()
		l.r.t.facts.put(l.r.server, l.r.name+name, f)
	}
	return append(items, i)
}

// An lsEntry is one line of ls -lR.
type lsEntry struct {
	dir  string // of the folder it is in, relative to the first; "" for that one
	kind byte   // f, d, l or s
	size int64
	time time.Time // zero: unknown
	name string
}

// An lsReader reads what ls -lR writes:
//
//	.:
//	total 8
//	drwxr-xr-x 2 root root 4096 Jan  5  2024 docs
//
//	./docs:
//	-rw-r--r-- 1 root root  517 Nov 21 08:12 read me
//
// The first folder may be without a heading, and be called anything. Lines that
// are neither a heading nor an entry are passed over.
type lsReader struct {
	in    *bufio.Scanner
	made  time.Time // the listing, on which the year of its dates depends
	base  string    // what the first folder is called
	dir   string
	skip  bool // the folder is not below the first
	seen  bool // a heading or an entry
	blank bool // the line before was
}

const maxLine = 16 << 10

func newLS(r io.Reader, made time.Time) *lsReader {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4<<10), maxLine)
	return &lsReader{in: in, made: made, base: ".", blank: true}
}

// next returns the next entry, and io.EOF after the last.
func (l *lsReader) next() (lsEntry, error) {
	for l.in.Scan() {
		text := strings.TrimSuffix(l.in.Text(), "\r")
		if text == "" {
			l.blank = true
			continue
		}
		blank := l.blank
		l.blank = false
		if name, ok := strings.CutSuffix(text, ":"); ok && blank {
			l.heading(name)
			continue
		}
		e, ok := parseLS(text, l.made)
		if !ok || l.skip {
			continue
		}
		l.seen = true
		e.dir = l.dir
		return e, nil
	}
	if err := l.in.Err(); err != nil {
		return lsEntry{}, err
	}
	return lsEntry{}, io.EOF
}

// heading begins a folder.
func (l *lsReader) heading(name string) {
	if !l.seen {
		l.seen, l.base = true, path.Clean(name)
		return
	}
	name = path.Clean(name)
	rest, below := name, l.base == "." && !strings.HasPrefix(name, "/")
	if l.base != "." {
		rest, below = strings.CutPrefix(name, strings.TrimSuffix(l.base, "/")+"/")
	}
	switch {
	case name == l.base:
		l.dir, l.skip = "", false
	case !below || rest == ".." || strings.HasPrefix(rest, "../"):
		l.skip = true
	default:
		l.dir, l.skip = rest, false
	}
}

// parseLS reads one line of ls -l, whose columns differ before the size and in
// the form of the date.
func parseLS(text string, made time.Time) (e lsEntry, ok bool) {
	if len(text) < 10 || strings.IndexByte("-dlbcps", text[0]) < 0 || strings.Trim(text[1:10], "-rwxsStTlL") != "" {
		return e, false
	}
	switch text[0] {
	case '-':
		e.kind = 'f'
	case 'd', 'l':
		e.kind = text[0]
	default:
		e.kind = 's'
	}
	var field [16]string
	rest := text
	for n := range field {
		rest = strings.TrimLeft(rest, " \t")
		i := strings.IndexAny(rest, " \t")
		if i < 0 {
			return e, false
		}
		field[n], rest = rest[:i], rest[i:]
		if n < 3 {
			continue
		}
		if t, ok := lsTime(field[:n+1], made); ok {
			e.time = t
			k := n - 3 // of month, day, and time or year
			if strings.IndexByte(field[n-1], '-') > 0 {
				k = n - 2
			}
			size, err := strconv.ParseInt(field[k], 10, 64)
			if err != nil || size < 0 {
				return e, false
			}
			e.size = size
			e.name = rest[1:]
			if name, _, link := strings.Cut(e.name, " -> "); link && e.kind == 'l' {
				e.name = name
			}
			return e, e.name != "" && e.name != "." && e.name != ".." && !strings.ContainsAny(e.name, "/\x00")
		}
	}
	return e, false
}

// lsTime reads a time at the end of fields: "Jan  5  2024", "Nov 21 08:12" of the
// half year before the listing was made, or "2024-01-05 08:12".
func lsTime(field []string, made time.Time) (time.Time, bool) {
	n := len(field)
	last := field[n-1]
	if len(last) == 5 && last[2] == ':' && len(field[n-2]) == 10 {
		t, err := time.Parse("2006-01-02 15:04", field[n-2]+" "+last)
		return t, err == nil
	}
	if len(field[n-3]) != 3 || len(last) < 4 {
		return time.Time{}, false
	}
	day := field[n-3] + " " + field[n-2] + " "
	if t, err := time.Parse("Jan 2 2006", day+last); err == nil {
		return t, true
	}
	// The year is of the listing, or the one before if that would be ahead of it.
	for _, year := range []int{made.Year(), made.Year() - 1} {
		t, err := time.Parse("Jan 2 15:04 2006", day+last+" "+strconv.Itoa(year))
		if err == nil && t.Before(made.Add(48*time.Hour)) {
			return t, true
		}
	}
	return time.Time{}, false
}
