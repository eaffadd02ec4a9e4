package warc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A site answers with a few kinds of pages and counts what it was asked.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	auth  string
}

func newSite(t *testing.T) *site {
	s := &site{asked: make(map[string]int)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.asked[req.URL.RequestURI()]++
		s.auth = req.Header.Get("Authorization")
		s.mu.Unlock()
		switch req.URL.Path {
		case "/a", "/copy":
			w.Header().Set("ETag", `"one"`)
			if req.Header.Get("If-None-Match") == `"one"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			io.WriteString(w, "the page of a")
		case "/gz":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, strings.Repeat("packed ", 100))
			z.Close()
		case "/chunks":
			for i := range 5 {
				fmt.Fprintf(w, "part %d\n", i)
				w.(http.Flusher).Flush()
			}
		case "/big":
			w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, req, "/a", http.StatusMovedPermanently)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// record fetches paths through a Recorder into dir.
func record(t *testing.T, dir, base string, paths ...string) {
	t.Helper()
	w, err := Open(dir, Options{Info: Header{{"software", "harvest/test"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecorder(func(err error) { t.Error(err) })
	r.To(w)
	rt := r.Wrap(&http.Transport{DisableCompression: true})
	for _, p := range paths {
		get(t, rt, base+p)
	}
	rt.(recording).CloseIdleConnections()
	if err := r.To(nil).Close(); err != nil {
		t.Fatal(err)
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, rt http.RoundTripper, url string, header ...string) answer {
	t.Helper()
	a, err := try(rt, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(rt http.RoundTripper, url string, header ...string) (a answer, err error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return a, err
	}
	req.Header.Set("User-Agent", "harvest/test")
	req.Header.Set("Authorization", "Basic c2VjcmV0")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// files returns what is in a folder, sorted.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	return names
}

// read returns the records of a file, their blocks too.
func read(t *testing.T, name string) (recs []*Record, blocks []string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return recs, blocks
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(rec)
		if err != nil {
			t.Fatal(err)
		}
		recs, blocks = append(recs, rec), append(blocks, string(b))
	}
}

var pages = []string{"/a", "/copy", "/gz", "/chunks", "/big", "/empty", "/moved", "/none?q=1"}

// What was recorded is replayed as it came over the wire, without the network.
func TestRecordReplay(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	var want []answer
	direct := &http.Transport{DisableCompression: true}
	for _, p := range pages {
		want = append(want, get(t, direct, s.URL+p))
	}
	direct.CloseIdleConnections()
	record(t, dir, s.URL, pages...)
	if s.auth == "" {
		t.Error("the server did not get the password")
	}
	s.Close()
	r, err := OpenReplay(t.Context(), dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pages {
		got := get(t, r, s.URL+p)
		if got.status != want[i].status || got.body != want[i].body {
			t.Errorf("%s: got %d, %d bytes, want %d, %d bytes", p, got.status, len(got.body), want[i].status, len(want[i].body))
		}
		for _, name := range []string{"Content-Type", "Content-Encoding", "Etag", "Location"} {
			if got.header.Get(name) != want[i].header.Get(name) {
				t.Errorf("%s: %s: got %q, want %q", p, name, got.header.Get(name), want[i].header.Get(name))
			}
		}
	}
	if a := get(t, r, s.URL+"/a", "If-None-Match", `"one"`); a.status != http.StatusNotModified || a.body != "" {
		t.Errorf("conditional request: got %d with %q, want 304 without", a.status, a.body)
	}
	if a := get(t, r, s.URL+"/robots.txt"); a.status != http.StatusNotFound {
		t.Errorf("robots.txt: got %d, want 404", a.status)
	}
	if _, err := try(r, s.URL+"/never"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("what is not in the archive: got %v, want ErrNotExist", err)
	}
	var urls []string
	for u, err := range r.URLs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, strings.TrimPrefix(u, s.URL))
	}
	slices.Sort(urls)
	if want := slices.Sorted(slices.Values(pages)); !slices.Equal(urls, want) {
		t.Errorf("URLs: got %q, want %q", urls, want)
	}
}

func TestRecords(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	record(t, dir, s.URL, pages...)
	names := files(t, dir)
	if len(names) != 1 || !strings.HasSuffix(names[0], ".warc.gz") {
		t.Fatalf("got files %q, want one .warc.gz", names)
	}
	recs, blocks := read(t, names[0])
	var types []string
	for i, rec := range recs {
		types = append(types, rec.Header.Type())
		if rec.Version != "1.1" {
			t.Errorf("record %d: got version %s, want 1.1", i, rec.Version)
		}
		for _, must := range []string{"WARC-Record-ID", "WARC-Date", "Content-Type"} {
			if rec.Header.Get(must) == "" {
				t.Errorf("record %d has no %s", i, must)
			}
		}
		if strings.Contains(blocks[i], "c2VjcmV0") {
			t.Errorf("record %d has a password", i)
		}
		if rec.Header.Type() == Request && !strings.Contains(blocks[i], "User-Agent: harvest/test\r\n") {
			t.Errorf("request as recorded: got %q, want its User-Agent", blocks[i])
		}
		if ip := rec.Header.Get("WARC-IP-Address"); rec.Header.Type() == Response && ip != "127.0.0.1" {
			t.Errorf("record %d: got address %q, want 127.0.0.1", i, ip)
		}
	}
	want := []string{Info}
	for i := range pages {
		kind := Response
		if pages[i] == "/copy" {
			kind = Revisit
		}
		want = append(want, kind, Request, Metadata)
	}
	if !slices.Equal(types, want) {
		t.Errorf("got %q, want %q", types, want)
	}
	if got, want := recs[1].Header.Get("WARC-Payload-Digest"), recs[4].Header.Get("WARC-Payload-Digest"); got != want {
		t.Errorf("digest of the same content: got %s and %s, want one", got, want)
	}
	if got, want := recs[4].Header.Get("WARC-Refers-To"), recs[1].Header.Get("WARC-Record-ID"); got != want {
		t.Errorf("revisit refers to %s, want %s", got, want)
	}
	if strings.Contains(blocks[4], "the page of a") {
		t.Error("a revisit has the content again")
	}
}

// A body that its reader left, or that broke off, says so.
func TestTruncated(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	w, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := NewRecorder(func(err error) { t.Error(err) })
	rec.To(w)
	rt := rec.Wrap(&http.Transport{})
	req, _ := http.NewRequest(http.MethodGet, s.URL+"/big", nil)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	io.CopyN(io.Discard, resp.Body, 1000)
	resp.Body.Close()
	if _, err := try(rt, "http://127.0.0.1:1/refused"); err == nil {
		t.Error("no error of what cannot be reached")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	recs, blocks := read(t, files(t, dir)[0])
	if got := recs[1].Header.Get("WARC-Truncated"); got != "length" {
		t.Errorf("got WARC-Truncated %q, want length", got)
	}
	last := len(recs) - 1
	if recs[last].Header.Type() != Metadata || !strings.HasPrefix(blocks[last], "error: ") {
		t.Errorf("of a failure: got %s %q, want metadata with its error", recs[last].Header.Type(), blocks[last])
	}
}

// Files are full at a size, and several can write at once.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, Options{Size: 10000, Prefix: "x"})
	if err != nil {
		t.Fatal(err)
	}
	const each, writers = 50, 4
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				body := fmt.Sprintf("%d-%d", i, j)
				if err := w.Write(Entry{Type: Resource, Head: []byte(body)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(Entry{Type: Resource}); !errors.Is(err, iofs.ErrClosed) {
		t.Errorf("write after close: got %v, want ErrClosed", err)
	}
	got := make(map[string]int)
	names := files(t, dir)
	for _, name := range names {
		recs, blocks := read(t, name)
		if recs[0].Header.Type() != Info || recs[0].Header.Get("WARC-Filename") != filepath.Base(name) {
			t.Errorf("%s begins with %v, want its warcinfo", name, recs[0].Header)
		}
		for _, b := range blocks[1:] {
			got[b]++
		}
	}
	if len(names) < 3 || len(got) != each*writers {
		t.Errorf("got %d records in %d files, want %d in several", len(got), len(names), each*writers)
	}
}

// Whatever a crash leaves of the last record is cut off, and no record before
// it is lost.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for i := range 4 {
		if err := w.Write(Entry{Type: Resource, Head: fmt.Appendf(nil, "record %d", i)}); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, w.size)
	}
	if err := w.f.Close(); err != nil { // as a crash would
		t.Fatal(err)
	}
	name := files(t, dir)[0]
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := ends[0] - 1; cut <= int64(len(all)); cut++ {
		if near := slices.ContainsFunc(ends, func(end int64) bool { return cut >= end-9 && cut <= end+12 }); !near && cut%16 != 0 {
			continue
		}
		dir := t.TempDir()
		left := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(left, all[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if end <= cut {
				want++
			}
		}
		if want == 0 {
			if names := files(t, dir); len(names) != 0 {
				t.Errorf("cut at %d: %q is left, want nothing", cut, names)
			}
			continue
		}
		recs, _ := read(t, strings.TrimSuffix(left, opening))
		if len(recs) != want+1 {
			t.Errorf("cut at %d: got %d records, want %d", cut, len(recs), want+1)
		}
	}
}

// rewritten makes files of other kinds of one that was recorded.
func rewritten(t *testing.T, name string) map[string][]byte {
	t.Helper()
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var raw, frames bytes.Buffer
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	frames.Write([]byte{0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'}) // to be skipped
	m, err := newMembers(bytes.NewReader(packed), 0)
	if err != nil {
		t.Fatal(err)
	}
	for m.next() == nil {
		b, err := io.ReadAll(m.gz)
		if err != nil {
			t.Fatal(err)
		}
		raw.Write(b)
		frames.Write(z.EncodeAll(b, nil))
	}
	var one bytes.Buffer
	g := gzip.NewWriter(&one)
	g.Write(raw.Bytes())
	g.Close()
	old := bytes.ReplaceAll(raw.Bytes(), []byte("WARC/1.1\r\n"), []byte("WARC/1.0\r\n"))
	return map[string][]byte{
		"plain.warc": raw.Bytes(), "old.warc": old, "frames.warc.zst": frames.Bytes(), "whole.warc.gz": one.Bytes(),
		"whole.warc.zst": z.EncodeAll(raw.Bytes(), nil),
	}
}

// The same records are found in files of every kind.
func TestKinds(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	record(t, dir, s.URL, pages...)
	_, want := read(t, files(t, dir)[0])
	for name, b := range rewritten(t, files(t, dir)[0]) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, got := read(t, path); !slices.Equal(got, want) {
			t.Errorf("%s: got %d records, want the same %d", name, len(got), len(want))
		}
		r, err := OpenReplay(t.Context(), path, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{"/big", "/copy", "/none?q=1"} {
			direct := get(t, http.DefaultTransport, s.URL+p)
			if a := get(t, r, s.URL+p); a.status != direct.status || a.body != direct.body {
				t.Errorf("%s: %s: got %d, %d bytes, want %d, %d bytes", name, p, a.status, len(a.body), direct.status, len(direct.body))
			}
		}
	}
}

// What other programs write is read and replayed.
func TestWget(t *testing.T) {
	if _, err := exec.LookPath("wget"); err != nil {
		t.Skip("wget is not installed: files of another program are not read")
	}
	s := newSite(t)
	for _, zip := range []string{"--warc-compression", "--no-warc-compression"} {
		dir := t.TempDir()
		arg := []string{"-q", "--warc-file=w", zip, "-O", "/dev/null"}
		for _, p := range pages {
			arg = append(arg, s.URL+p)
		}
		cmd := exec.CommandContext(t.Context(), "wget", arg...)
		cmd.Dir = dir
		cmd.Run() // fails of the 404
		r, err := OpenReplay(t.Context(), dir, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages {
			if p == "/empty" {
				continue // of a 204 it records nothing
			}
			direct := get(t, http.DefaultTransport, s.URL+p, "Accept-Encoding", "identity")
			if a := get(t, r, s.URL+p); a.status != direct.status || a.body != direct.body {
				t.Errorf("%s %s: got %d %.40q, want %d %.40q", zip, p, a.status, a.body, direct.status, direct.body)
			}
		}
	}
}

// Another program finds our records: libarchive, which knows version 1.0 and
// whole seconds, in a file rewritten to have those; warcio.js in the file itself.
func TestOthersRead(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	record(t, dir, s.URL, pages...)
	name := files(t, dir)[0]
	t.Run("bsdtar", func(t *testing.T) {
		if _, err := exec.LookPath("bsdtar"); err != nil {
			t.Skip("bsdtar is not installed (libarchive-tools): another program does not read our files")
		}
		old := filepath.Join(t.TempDir(), "old.warc")
		raw := regexp.MustCompile(`(WARC-Date: [^.]*)\.\d+Z`).ReplaceAll(rewritten(t, name)["old.warc"], []byte("${1}Z"))
		if err := os.WriteFile(old, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "bsdtar", "xOf", old, "a").Output()
		if err != nil || !bytes.Contains(out, []byte("\r\n\r\nthe page of a")) {
			t.Errorf("bsdtar gives %q of /a, %v; want the response", out, err)
		}
		list, err := exec.CommandContext(t.Context(), "bsdtar", "tf", old).CombinedOutput()
		if want := len(pages) - 1; err != nil || strings.Count(string(list), "\n") < want {
			t.Errorf("bsdtar lists %q, %v; want %d responses", list, err, want)
		}
	})
	t.Run("warcio", func(t *testing.T) {
		if _, err := exec.LookPath("warcio"); err != nil {
			t.Skip("warcio is not installed (npm's): another program does not read our files")
		}
		out, err := exec.CommandContext(t.Context(), "warcio", "cdx-index", name).Output()
		if err != nil || strings.Count(string(out), "\n") != len(pages) {
			t.Errorf("warcio finds %d responses, %v; want %d", strings.Count(string(out), "\n"), err, len(pages))
		}
	})
}

// Bad input is an error that tells where, and takes no more than it has.
func TestBad(t *testing.T) {
	ok := "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
	for _, c := range []struct{ in, want string }{
		{"WARC/9.9\r\n", "no version"},
		{strings.Repeat("x", 1000), "a line of more than"},
		{"WARC/1.0\r\nWARC-Type: resource\r\n\r\n", "Content-Length"},
		{"WARC/1.0\r\nContent-Length: -3\r\n\r\n", "Content-Length"},
		{"WARC/1.0\r\nContent-Length: 99999999999999999999\r\n\r\n", "Content-Length"},
		{"WARC/1.0\r\nContent-Length: 99999999999\r\n\r\nabc", "unexpected EOF"},
		{"WARC/1.0\r\n blank\r\n\r\n", "begins with a blank"},
		{"WARC/1.0\r\nno field\r\n\r\n", "no field"},
		{"WARC/1.0\r\n" + strings.Repeat("a: b\r\n", 2000) + "\r\n", "no field"},
		{"WARC/1.0\r\na: " + strings.Repeat("b", 1<<20) + "\r\n\r\n", "a line of more than"},
		{ok + "rest\n", "no version"},
		{"\x1f\x8b\x08\x00broken", "unexpected EOF"},
		{"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", ""},
		{"\x5d\x2a\x4d\x18\xff\xff\xff\xff", "unexpected EOF"},
	} {
		r, err := NewReader(strings.NewReader(c.in))
		for err == nil {
			_, err = r.Next()
		}
		if err == io.EOF || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %s", c.in, err, c.want)
		}
	}
	r, err := NewReader(strings.NewReader("WARC/1.0\r\nA: b\r\n\tc\r\nContent-Length: 0\r\n\r\n\r\n\r\n" + ok))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.Next()
	if err != nil || rec.Header.Get("a") != "b c" {
		t.Errorf("a folded field: got %v, %v, want b c", rec, err)
	}
	if _, err := r.Next(); err != nil {
		t.Errorf("the record after an empty block: got %v, want none", err)
	}
}

func FuzzReader(f *testing.F) {
	ok := []byte("WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n")
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	g.Write(ok)
	g.Close()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ok)
	f.Add(append(ok, ok...))
	f.Add(z.Bytes())
	f.Add(append(z.Bytes(), z.Bytes()...))
	f.Add(e.EncodeAll(ok, nil))
	f.Add([]byte("\x5d\x2a\x4d\x18\x04\x00\x00\x00abcd\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer r.Close()
		var last *Record
		for range 1000 {
			rec, err := r.Next()
			if err != nil {
				return
			}
			n, err := io.Copy(io.Discard, io.LimitReader(rec, 1<<20))
			if err == nil && n != rec.Length && n < 1<<20 {
				t.Fatalf("got %d bytes of a block of %d", n, rec.Length)
			}
			if last != nil && rec.Place == last.Place {
				t.Fatalf("two records at %v", rec.Place)
			}
			last = rec
		}
	})
}

// kill -9 while several write: nothing that Write said was written is lost.
func TestKill(t *testing.T) {
	if dir := os.Getenv("HARVEST_TEST_WARC"); dir != "" {
		w, err := Open(dir, Options{Size: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			if err := w.Write(Entry{Type: Resource, Header: Header{{"WARC-Target-URI", fmt.Sprint("n:", i)}}, Head: bytes.Repeat([]byte("x"), 100)}); err != nil {
				t.Fatal(err)
			}
			fmt.Println(i)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rounds := 3
	if os.Getenv("HARVEST_LONG") != "" {
		rounds = 30
	} else {
		t.Log("3 rounds; 30 with HARVEST_LONG set")
	}
	for round := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := exec.CommandContext(ctx, self, "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), "HARVEST_TEST_WARC="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 200*(round+1))
		n, _ := io.ReadFull(out, buf)
		cmd.Process.Kill()
		cmd.Wait() // killed, as it was to be
		cancel()
		said := strings.Count(string(buf[:n]), "\n")
		w, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]bool)
		for _, name := range files(t, dir) {
			recs, _ := read(t, name)
			for _, r := range recs {
				got[r.Header.Target()] = true
			}
			os.Remove(name)
		}
		for i := range said {
			if !got[fmt.Sprint("n:", i)] {
				t.Fatalf("round %d: record %d of %d is lost", round, i, said)
			}
		}
	}
}
