package provider

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"harvest/gather/gatherd"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// serving runs the server of this project on loopback, with n objects.
func serving(t *testing.T, titles ...string) (addr string, s *store.Store) {
	t.Helper()
	s, err := store.Open(t.TempDir(), slog.New(slog.DiscardHandler), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range titles {
		o := soif.Object{Type: "FILE", URL: "http://h/" + title}
		o.Add("Title", []byte(title))
		o.Add("Update-Time", []byte("784649664"))
		if _, err := s.Apply(t.Context(), []store.Change{{Op: soif.Update, OID: store.ID(o.URL, "g"), Body: o.Append(nil)}}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- gatherd.New(s, gatherd.Options{Name: "g", Host: "provider.example", Version: "1"}).Serve(ctx, l)
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), s
}

// TestServer reads what the server here exports.
func TestServer(t *testing.T) {
	addr, s := serving(t, "one", "two", "three")
	tree := New(t.Context(), addr)
	plain, err := iofs.ReadFile(tree, "since/0")
	if err != nil {
		t.Fatal(err)
	}
	var ch soif.Change
	u, n := soif.NewUpdateReader(bytes.NewReader(plain), soif.Limits{}), 0
	for err = u.Next(&ch); err == nil; err = u.Next(&ch) {
		n++
	}
	if n != 3 || err != io.EOF || u.Cursor() != s.Cursor().String() {
		t.Errorf("since/0: got %d objects, %v and cursor %q, want 3, EOF and %q", n, err, u.Cursor(), s.Cursor())
	}
	packed, err := iofs.ReadFile(tree, "since/0.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("since/0.gz: got %d bytes, %v, want the %d of since/0", len(got), err, len(plain))
	}
	if got, err := iofs.ReadFile(tree, "since/"+u.Cursor()); err != nil || bytes.Contains(got, []byte("@FILE")) {
		t.Errorf("since/%s: got %q, %v, want no object", u.Cursor(), got, err)
	}
	oid := store.ID("http://h/two", "g").String()
	if got, err := iofs.ReadFile(tree, "objects/"+oid[:2]+"/"+oid+".soif"); err != nil || !bytes.Contains(got, []byte("\ttwo\n")) {
		t.Errorf("object: got %q, %v, want that of two", got, err)
	}
	for name, want := range map[string]error{
		"objects/00/" + strings.Repeat("0", 32) + ".soif": iofs.ErrNotExist,
		"since/0.zst": iofs.ErrNotExist, "since/a b": iofs.ErrNotExist, "since/\n0": iofs.ErrNotExist,
		"status": iofs.ErrNotExist, "../since/0": iofs.ErrInvalid,
	} {
		if _, err := iofs.ReadFile(tree, name); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
}

// A canned connection has the replies of a server in it.
type canned struct {
	io.Reader
	said strings.Builder
}

func (c *canned) Write(p []byte) (int, error)      { return c.said.Write(p) }
func (*canned) Close() error                       { return nil }
func (*canned) LocalAddr() net.Addr                { return nil }
func (*canned) RemoteAddr() net.Addr               { return nil }
func (*canned) SetDeadline(time.Time) error        { return nil }
func (*canned) SetReadDeadline(time.Time) error    { return nil }
func (*canned) SetWriteDeadline(t time.Time) error { return nil }

func can(ctx context.Context, text string) (*Tree, *canned) {
	c := &canned{Reader: strings.NewReader(text)}
	t := New(ctx, "h:1")
	t.dial = func(context.Context, string, string) (net.Conn, error) { return c, nil }
	return t, c
}

// TestReplies holds the reader to what servers may say, whose codes are not known.
func TestReplies(t *testing.T) {
	const data = "@UPDATE {\n@FILE { http://h/\nTitle{1}:\ta\n}\n}\n"
	for _, c := range []struct {
		name, text string
		want       string // of the data
		err        string // in what is told
		class      error
	}{
		{name: "since/0", text: "000 - HELLO h\n100 - hello\n202 - changes\n" + data, want: data},
		{name: "since/0", text: "000 - HELLO h\r\n110 hi\r\n300\r\n301 - more\r\n" + data, want: data},
		{name: "since/0", text: "000-HELLO h\n000 - welcome\n100 - hello\n" + data, want: data},
		{name: "since/0", text: "000 - HELLO h\n100 - hello\n202 - nothing\n", want: ""},
		{name: "since/0.gz", text: "000 - HELLO\n100 - hi\n130 - gzip\n202 - changes\n\x1f\x8bxyz", want: "\x1f\x8bxyz"},
		{name: "since/0.gz", text: "000 - HELLO\n100 - hi\n130 - gzip\n202 - changes\n" + data, err: "not packed"},
		{name: "since/0.gz", text: "000 - HELLO\n100 - hi\n500 - SET?\n", err: "SET compression: it says \"500 - SET?\""},
		{name: "since/0", text: "403 - you: access denied\n", err: "access denied", class: iofs.ErrPermission},
		{name: "since/0", text: "421 - too many clients\n", err: "too many"},
		{name: "since/0", text: "HTTP/1.1 400 Bad Request\r\n\r\n", err: "is no reply"},
		{name: "since/0", text: "000 - HELLO\n100 - hi\n", err: "unexpected EOF", class: io.ErrUnexpectedEOF},
		{name: "since/0", text: "000 - HELLO\n100 - hi\n501 - 'x' is no time\n", err: "SEND-UPDATE 0: it says"},
		{name: "since/0", text: "000 - " + strings.Repeat("x", 5000) + "\n", err: "more than 4096 bytes"},
		{name: "since/0", text: "000 - HELLO\n" + strings.Repeat("100-hi\n", 70), err: "more than 64 lines"},
		{name: "objects/00/0.soif", text: "000 - HELLO\n100 - hi\n404 - none\n", err: "none", class: iofs.ErrNotExist},
	} {
		tree, _ := can(t.Context(), c.text)
		got, err := iofs.ReadFile(tree, c.name)
		switch {
		case c.err == "" && (err != nil || string(got) != c.want):
			t.Errorf("%.60q: got %q, %v, want %q", c.text, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || c.class != nil && !errors.Is(err, c.class)):
			t.Errorf("%.60q: got %v, want %q and %v", c.text, err, c.err, c.class)
		}
	}
	tree, conn := can(t.Context(), "000 - HELLO\n100 - hi\n130 - gzip\n202 - changes\n\x1f\x8b")
	if _, err := iofs.ReadFile(tree, "since/784649664.gz"); err != nil {
		t.Error(err)
	}
	if _, rest, _ := strings.Cut(conn.said.String(), "\n"); rest != "SET compression\nSEND-UPDATE 784649664\n" {
		t.Errorf("got the commands %q, want SET compression and SEND-UPDATE", conn.said.String())
	}
}

// TestCancel ends a reading of a Gatherer that says nothing.
func TestCancel(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
		}
		cancel() // once it waits for the greeting, or before
		if err == nil {
			io.Copy(io.Discard, c)
		}
	}()
	if _, err := iofs.ReadFile(New(ctx, l.Addr().String()), "since/0"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
}

func TestParsePath(t *testing.T) {
	for path, want := range map[string]string{
		"gatherd!h!8500": "h:8500", "gatherd!h": "h:8500", "gatherd!::1!9": "[::1]:9",
		"gatherd!": "", "gatherd!h!": "", "tcp!h!1": "", "gatherd!h!1!2": "", "gatherd!h!1/gather/web": "", "gatherd!a b!1": "",
	} {
		got, err := ParsePath(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}

func FuzzReplies(f *testing.F) {
	f.Add("000 - HELLO h\n100 - hello\n202 - changes\n@UPDATE {\n}\n", false)
	f.Add("000-a\n000 - HELLO\n100 - hi\n130 - gzip\n202 - changes\n\x1f\x8b", true)
	f.Add("403 - no\n", false)
	f.Add("000 - HELLO\n100 - hi\n202\n", false)
	f.Fuzz(func(t *testing.T, text string, packed bool) {
		tree, _ := can(t.Context(), text)
		name := "since/0"
		if packed {
			name += ".gz"
		}
		got, err := iofs.ReadFile(tree, name)
		if err == nil && !strings.HasSuffix(text, string(got)) {
			t.Errorf("%q: got %q, want its end", text, got)
		}
		if err == nil && packed && !bytes.HasPrefix(got, []byte("\x1f\x8b")) {
			t.Errorf("%q: got %q, want what is packed", text, got)
		}
	})
}
