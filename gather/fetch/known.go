package fetch

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A fact is what a listing told of an object. Its ETag is made of it, so that
// the object is answered with the one that its listing had; what is asked of the
// server about one object is of another precision, with many.
type fact struct {
	size int64 // or any number that tells versions apart
	time int64 // seconds since 1970, 0: unknown
}

func (f fact) etag() string {
	b := append(make([]byte, 0, 40), '"')
	b = strconv.AppendUint(b, uint64(f.size), 16)
	b = append(b, '-')
	b = strconv.AppendInt(b, f.time, 16)
	return string(append(b, '"'))
}

func (f fact) modified() time.Time {
	if f.time == 0 {
		return time.Time{}
	}
	return time.Unix(f.time, 0).UTC()
}

// maxFacts bounds what is known, to some 30 MB.
const maxFacts = 1 << 19

// facts are what is known by listings, of one Transport. What is forgotten for
// room is asked for.
type facts struct {
	seed maphash.Seed

	mu   sync.Mutex
	m    map[uint64]fact
	said map[uint64][2]string // title and abstract
}

func newFacts() *facts {
	return &facts{seed: maphash.MakeSeed(), m: make(map[uint64]fact), said: make(map[uint64][2]string)}
}

func (f *facts) key(server, path string) uint64 {
	var h maphash.Hash
	h.SetSeed(f.seed)
	h.WriteString(server)
	h.WriteByte(0)
	h.WriteString(path)
	return h.Sum64()
}

func (f *facts) put(server, path string, x fact) {
	k := f.key(server, path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.m) >= maxFacts {
		for old := range f.m { // any one
			delete(f.m, old)
			break
		}
	}
	f.m[k] = x
}

func (f *facts) get(server, path string) (fact, bool) {
	k := f.key(server, path)
	f.mu.Lock()
	defer f.mu.Unlock()
	x, ok := f.m[k]
	return x, ok
}

// matches applies If-None-Match, and only without it If-Modified-Since (RFC 9110,
// section 13.1.3).
func matches(h http.Header, tag string, modified time.Time) bool {
	if match := h.Get("If-None-Match"); match != "" {
		for m := range strings.SplitSeq(match, ",") {
			if m = strings.TrimSpace(m); m == "*" && tag != "" || tag != "" && strings.TrimPrefix(m, "W/") == tag {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(h.Get("If-Modified-Since"))
	return err == nil && !modified.IsZero() && !modified.Truncate(time.Second).After(since)
}

// head is an answer's header for an object of which so much is known: 304, or
// 200 without a body yet.
func head(req *http.Request, tag string, modified time.Time, size int64) *http.Response {
	code := http.StatusOK
	if matches(req.Header, tag, modified) {
		code = http.StatusNotModified
	}
	resp := answer(req, code, "")
	if code == http.StatusOK {
		resp.ContentLength = size
	}
	if tag != "" {
		resp.Header.Set("ETag", tag)
	}
	if !modified.IsZero() {
		resp.Header.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
	}
	return resp
}

// maxSaid bounds the objects of which it is known what they are about.
const maxSaid = 4096

// say remembers what a server says of an object.
func (f *facts) say(server, path, title, abstract string) {
	if title == "" && abstract == "" {
		return
	}
	k := f.key(server, path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.said) >= maxSaid {
		for old := range f.said { // any one
			delete(f.said, old)
			break
		}
	}
	f.said[k] = [2]string{clipText(title, 256), clipText(abstract, maxAbstract)}
}

// tell puts it into an answer.
func (f *facts) tell(h http.Header, server, path string) {
	k := f.key(server, path)
	f.mu.Lock()
	s := f.said[k]
	f.mu.Unlock()
	if s[0] != "" {
		h.Set(Title, Escape(s[0]))
	}
	if s[1] != "" {
		h.Set(Abstract, Escape(s[1]))
	}
}

func clipText(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return strings.Clone(s)
}
