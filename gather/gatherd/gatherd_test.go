package gatherd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// filled is a store with n objects.
func filled(t testing.TB, n int, text string) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), slog.New(slog.DiscardHandler), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		put(t, s, fmt.Sprint("http://h/", i), text)
	}
	return s
}

func put(t testing.TB, s *store.Store, url, text string) {
	t.Helper()
	o := soif.Object{Type: "FILE", URL: url}
	o.Add("Update-Time", []byte("784649664"))
	o.Add("Title", []byte(text))
	if _, err := s.Apply(t.Context(), []store.Change{{Op: soif.Update, OID: store.ID(url, "g"), Body: o.Append(nil)}}); err != nil {
		t.Fatal(err)
	}
}

// serving runs a Server on loopback and returns its address.
func serving(t testing.TB, s *store.Store, opt Options) (*Server, string) {
	t.Helper()
	opt.Name, opt.Host, opt.Version = "web", "provider.example", "1.0"
	srv := New(s, opt)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return srv, l.Addr().String()
}

// say sends lines at once, as `printf … | nc` does, and returns all that comes.
func say(t testing.TB, addr string, lines ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(b), err)
	}
	return string(b)
}

// codes are the first three characters of the replies in what came.
func codes(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		if len(line) > 6 && line[3:6] == " - " {
			all = append(all, line[:3])
		}
	}
	return strings.Join(all, " ")
}

func TestCommands(t *testing.T) {
	s := filled(t, 3, "a title")
	oid := store.ID("http://h/1", "g").String()
	_, addr := serving(t, s, Options{})
	for _, c := range []struct{ say, codes, has string }{
		{"HELLO me\nQUIT", "000 100 199", "hello me"},
		{"quit", "000 199", "HELLO provider.example, this is the Gatherer web"},
		{"HELP\r\nQUIT\r", "000 110 110 110 110 110 110 110 110 199", "SEND-UPDATE timestamp: "},
		{"INFO\nQUIT", "000 200 199", "Objects{1}:\t3"},
		{"SEND-OBJECT " + oid + "\nQUIT", "000 201 199", "@FILE { http://h/1\n"},
		{"SEND-OBJECT " + strings.Repeat("0", 32) + "\nQUIT", "000 404 199", "file does not exist"},
		{"SEND-OBJECT 7\nQUIT", "000 501 199", "no OID"},
		{"SEND-UPDATE 0\nQUIT", "000 202 199", "@UPDATE {\n@FILE { http://h/"},
		{"SEND-UPDATE yesterday\nQUIT", "000 501 199", "neither a time"},
		{"SEND-UPDATE\nQUIT", "000 501 199", "usage: SEND-UPDATE timestamp"},
		{"SEND-UPDATE -5\nQUIT", "000 501 199", "neither a time"},
		{"SEND-UPDATE 00000000.7\nQUIT", "000 202 199", "all follows"},
		{"SET compression\nQUIT", "000 130 199", "compression gzip"},
		{"SET compression=zstd\nSET compression none\nQUIT", "000 130 130 199", "compression none"},
		{"SET sail\nQUIT", "000 501 199", "usage: SET"},
		{"GET / HTTP/1.1\nHost: x\n\nQUIT", "000 500 500 199", "unknown command 'GET'"},
		{"\x1b[31m\nQUIT", "000 500 199", "'?[31m'"},
		{strings.Repeat("x", 3000), "000 500", "a line of more than 1024 bytes"},
		{"QUIT now\nQUIT", "000 501 199", "usage: QUIT"},
	} {
		got := say(t, addr, c.say)
		if codes(got) != c.codes || !strings.Contains(got, c.has) {
			t.Errorf("%.40q: got %q\n%s\nwant %q and %q", c.say, codes(got), got, c.codes, c.has)
		}
	}
}

// What the original's clients did: a line each, then a stream of SOIF that ends
// with the connection if it is packed.
func TestUpdates(t *testing.T) {
	s := filled(t, 200, "a title that is long enough to be packed")
	if err := s.Compact(t.Context()); err != nil { // or each has a frame of its own
		t.Fatal(err)
	}
	_, addr := serving(t, s, Options{})
	var want bytes.Buffer
	if err := s.WriteSince(t.Context(), &want, store.Cursor{}); err != nil {
		t.Fatal(err)
	}
	plain := say(t, addr, "HELLO me", "SEND-UPDATE 0", "QUIT")
	_, stream, _ := strings.Cut(plain, "202 - changes after 0 follow\n")
	if got := strings.TrimSuffix(stream, "199 - goodbye\n"); got != want.String() {
		t.Errorf("plain: got %d bytes, want the %d of since/0", len(got), want.Len())
	}
	for how, unpack := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		for range 2 { // the second time from what is ready
			packed := say(t, addr, "SET compression "+how, "SEND-UPDATE 0", "QUIT")
			_, stream, _ := strings.Cut(packed, "202 - changes after 0 follow\n")
			r, err := unpack(strings.NewReader(stream))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != want.String() {
				t.Errorf("%s: got %d bytes %v, want the %d of since/0", how, len(got), err, want.Len())
			}
			if len(stream) > want.Len()/2 {
				t.Errorf("%s: %d bytes of %d went over the wire", how, len(stream), want.Len())
			}
		}
	}
	cursor := s.Cursor().String()
	put(t, s, "http://h/new", "fresh")
	got := say(t, addr, "SEND-UPDATE "+cursor, "QUIT")
	if n := strings.Count(got, "@FILE"); n != 1 || !strings.Contains(got, "http://h/new") {
		t.Errorf("after a cursor: got %d objects, want the new one", n)
	}
	got = say(t, addr, fmt.Sprint("SEND-UPDATE ", time.Now().Add(time.Hour).Unix()), "QUIT")
	if n := strings.Count(got, "@FILE"); n != 0 || !strings.Contains(got, "@CURSOR") {
		t.Errorf("after a time to come: got %d objects in %q, want none and a cursor", n, got)
	}
	got = say(t, addr, fmt.Sprint("SEND-UPDATE ", time.Now().Add(-time.Hour).Unix()), "QUIT")
	if n := strings.Count(got, "@FILE"); n != 201 {
		t.Errorf("after an hour ago: got %d objects, want 201", n)
	}
}

// A fakeDNS has names of addresses, and addresses of names.
type fakeDNS map[string]string

func (d fakeDNS) LookupAddr(_ context.Context, addr string) ([]string, error) {
	if n, ok := d[addr]; ok {
		return []string{n}, nil
	}
	return nil, errors.New("no such host")
}

func (d fakeDNS) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := d[host]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, errors.New("no such host")
}

func TestAccess(t *testing.T) {
	dns := fakeDNS{
		"192.0.2.1": "www.example.org.", "www.example.org.": "192.0.2.1",
		"192.0.2.9": "liar.example.org.", "liar.example.org.": "203.0.113.7",
		"2001:db8::1": "six.example.net.", "six.example.net.": "2001:db8::1",
	}
	for _, c := range []struct {
		rules, addr string
		want        bool
	}{
		{"", "192.0.2.1", true},
		{"deny all", "192.0.2.1", false},
		{"allow 192.0.2.0/24, deny all", "192.0.2.1", true},
		{"allow 192.0.2.0/24, deny all", "198.51.100.1", false},
		{"allow 192.0.2.0/24, deny all", "::ffff:192.0.2.1", true},
		{"deny 192.0.2.1, allow 192.0.2.0/24, deny all", "192.0.2.1", false},
		{"allow 192.0.2.0/24, deny 192.0.2.1", "192.0.2.1", true},
		{"allow .example.org, deny all", "192.0.2.1", true},
		{"allow .org, deny all", "192.0.2.1", true},
		{"allow example.org, deny all", "192.0.2.1", false},
		{"allow WWW.Example.org, deny all", "192.0.2.1", true},
		{"allow .example.org, deny all", "192.0.2.9", false},
		{"allow .example.org, deny all", "192.0.2.5", false},
		{"deny .example.org", "192.0.2.1", false},
		{"deny .ample.org", "192.0.2.1", true},
		{"allow .example.net, deny all", "2001:db8::1", true},
		{"allow 2001:db8::/32, deny all", "2001:db8::5", true},
	} {
		var rules []Rule
		for one := range strings.SplitSeq(c.rules, ", ") {
			how, who, ok := strings.Cut(one, " ")
			if !ok {
				continue
			}
			r, err := ParseRule(how == "allow", who)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		if got := admits(t.Context(), rules, netip.MustParseAddr(c.addr), dns); got != c.want {
			t.Errorf("%s: %s: got %t, want %t", c.rules, c.addr, got, c.want)
		}
	}
	for _, bad := range []string{"", ".", "a..b", "192.0.2.300", "192.0.2.1/99", "192.0.2.1/24", "-x.org", "a b", "*", "ex\x00ample"} {
		if _, err := ParseRule(true, bad); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", bad, err)
		}
	}
}

func TestRefused(t *testing.T) {
	deny, err := ParseRule(false, "127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	srv, addr := serving(t, filled(t, 1, "x"), Options{Rules: []Rule{deny}})
	if got := say(t, addr, "SEND-UPDATE 0"); codes(got) != "403" || !strings.Contains(got, "127.0.0.1") || strings.Contains(got, "@FILE") {
		t.Errorf("got %q, want 403 with the address", got)
	}
	if n := srv.Counts().Refused; n != 1 {
		t.Errorf("refused: got %d, want 1", n)
	}
}

// Who is one too many is told so, and who is there is not disturbed.
func TestBounds(t *testing.T) {
	_, addr := serving(t, filled(t, 1, "x"), Options{PerHost: 2})
	var held []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || codes(line) != "000" {
			t.Fatalf("got %q %v, want a greeting", line, err)
		}
		held = append(held, c)
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || codes(line) != "421" {
		t.Errorf("the third: got %q %v, want 421", line, err)
	}
	fmt.Fprint(held[1], "QUIT\n")
	if line, err := bufio.NewReader(held[1]).ReadString('\n'); err != nil || codes(line) != "199" {
		t.Errorf("the second: got %q %v, want 199", line, err)
	}
}

// Readers that take nothing are left after a while; others are served
// meanwhile, and changes made.
func TestSlowReader(t *testing.T) {
	s := filled(t, 300, strings.Repeat("a very long title ", 4000))
	srv, addr := serving(t, s, Options{Idle: 400 * time.Millisecond})
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	slow.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprint(slow, "SEND-UPDATE 0\n")
	if line, err := bufio.NewReaderSize(slow, 16).ReadSlice('-'); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	put(t, s, "http://h/meanwhile", "x")
	if got := say(t, addr, "SEND-UPDATE 0", "QUIT"); strings.Count(got, "@FILE") != 301 {
		t.Errorf("beside a slow reader: got %d objects, want 301", strings.Count(got, "@FILE"))
	}
	deadline := time.Now().Add(20 * time.Second)
	for srv.Counts().Clients > 0 && time.Now().Before(deadline) {
		say(t, addr, "QUIT") // takes a moment, and is one less when it is gone
	}
	if n := srv.Counts().Clients; n != 0 {
		t.Errorf("the slow reader is still served: %d clients", n)
	}
}

// Stopping ends a stream that is being sent, and waits for nobody.
func TestStop(t *testing.T) {
	s := filled(t, 200, strings.Repeat("a very long title ", 4000))
	srv := New(s, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "SEND-UPDATE 0\n")
	if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve has not returned")
	}
	if b, _ := io.ReadAll(c); strings.Contains(string(b), "@CURSOR") {
		t.Error("the stream was cut and looks whole")
	}
}

// Whatever a client says, the answer is lines of replies and streams, and ends.
func FuzzTalk(f *testing.F) {
	f.Add([]byte("HELLO me\nHELP\nINFO\nQUIT\n"))
	f.Add([]byte("SET compression\nSEND-UPDATE 0\n"))
	f.Add([]byte("SEND-OBJECT 00\x00\nsend-update 99999999999999999999\n"))
	f.Add(bytes.Repeat([]byte("x"), 2000))
	s := filled(f, 2, "x")
	srv := New(s, Options{Idle: 10 * time.Second})
	f.Fuzz(func(t *testing.T, said []byte) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			srv.serve(context.Background(), there)
		}()
		go func() {
			here.Write(said) // or as much as it waits for
			here.Write([]byte("\nQUIT\n"))
		}()
		b, _ := io.ReadAll(here)
		here.Close()
		<-done
		if codes(string(b[:min(len(b), 200)])) == "" {
			t.Fatalf("got %q, want a greeting", b)
		}
	})
}
