package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func reader(s string) *bufio.Reader { return bufio.NewReaderSize(strings.NewReader(s), 16) }

// TestReadRequest refuses what two programs could read in two ways.
func TestReadRequest(t *testing.T) {
	const ok = "GET /a HTTP/1.1\r\nHost: h\r\n"
	for _, tt := range []struct {
		text   string
		status int
	}{
		{ok + "\r\n", 0},
		{"\r\n" + ok + "\r\n", 0},
		{"GET http://h/a?b=%20 HTTP/1.0\r\n\r\n", 0},
		{ok + "X-A:b\r\nx_a: \t c \t\r\n\r\n", 0},
		{ok + "Content-Length: 3\r\n\r\nabc", 0},
		{ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
		{"\r\n\r\n" + ok + "\r\n", 400},
		{"GET  /a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 505},
		{"GET /a\r\nHost: h\r\n\r\n", 400},
		{"G(T /a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET /a HTTP/2.0\r\nHost: h\r\n\r\n", 505},
		{"GET /a HTTP/1.1\r\n\r\n", 400},
		{ok + "Host: h\r\n\r\n", 400},
		{"GET /a HTTP/1.1\r\nHost: h, i\r\n\r\n", 400},
		{"GET /a HTTP/1.1\r\nHost: u@h\r\n\r\n", 400},
		{"GET /a HTTP/1.1\nHost: h\n\n", 400},
		{ok + "X: a\rb\r\n\r\n", 400},
		{ok + "X: a\x00b\r\n\r\n", 400},
		{ok + "X: a\r\n b\r\n\r\n", 400},
		{ok + "X : a\r\n\r\n", 400},
		{ok + ": a\r\n\r\n", 400},
		{ok + "no colon\r\n\r\n", 400},
		{ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		{ok + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", 400},
		{ok + "Content-Length: 3, 3\r\n\r\n", 400},
		{ok + "Content-Length: +3\r\n\r\n", 400},
		{ok + "Content-Length: -3\r\n\r\n", 400},
		{ok + "Content-Length: 0x3\r\n\r\n", 400},
		{ok + "Content-Length: 9999999999999999999999\r\n\r\n", 400},
		{ok + "Transfer-Encoding: xchunked\r\n\r\n", 501},
		{ok + "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
		{ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
		{"GET /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		{"GET /" + strings.Repeat("a", 9000) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414},
		{ok + "X: " + strings.Repeat("a", 9000) + "\r\n\r\n", 431},
		{ok + strings.Repeat("X: a\r\n", 200) + "\r\n", 431},
		{ok + strings.Repeat("X: "+strings.Repeat("a", 8000)+"\r\n", 9) + "\r\n", 431},
	} {
		_, err := ReadRequest(reader(tt.text), Limits{})
		var bad *Error
		status := 0
		if errors.As(err, &bad) {
			status = bad.Status
		}
		if status != tt.status || tt.status == 0 && err != nil {
			t.Errorf("%.80q: got %v, want status %d", tt.text, err, tt.status)
		}
	}
	for _, cut := range []string{"GET", "GET /a HTTP/1.1\r\n", ok, ok + "X: a"} {
		if _, err := ReadRequest(reader(cut), Limits{}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: got %v, want %v", cut, err, io.ErrUnexpectedEOF)
		}
	}
	if _, err := ReadRequest(reader(""), Limits{}); err != io.EOF {
		t.Errorf("got %v, want %v", err, io.EOF)
	}
}

// TestReadResponse is patient with servers, but not with two lengths.
func TestReadResponse(t *testing.T) {
	for _, tt := range []struct {
		text   string
		method string
		length int64
		status int
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", 0, 0},
		{"HTTP/1.1 200\r\n\r\n", "GET", UntilClose, 0},
		{"HTTP/1.0 200 OK\nA: b\n\n", "GET", UntilClose, 0},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", 0, 0},
		{"HTTP/1.1 103 Early\r\n\r\n", "GET", 0, 0},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 5\r\n\r\n", "GET", Chunked, 0},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\nContent-Length: 5\r\n\r\n", "GET", UntilClose, 0},
		{"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", UntilClose, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\n", "GET", 5, 0},
		{"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nlost\r\nContent-Length : 5\r\n\r\n", "GET", 5, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", "CONNECT", UntilClose, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "GET", 0, 502},
		{"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n", "GET", 0, 502},
		{"HTTP/1.1 20 OK\r\n\r\n", "GET", 0, 502},
		{"ICY 200 OK\r\n\r\n", "GET", 0, 502},
		{"HTTP/1.1 200 OK\r\nX: a\x00\r\n\r\n", "GET", 0, 502},
	} {
		p, err := ReadResponse(reader(tt.text), Limits{})
		length := int64(0)
		if err == nil {
			length, err = p.BodyLength(tt.method)
		}
		var bad *Error
		status := 0
		if errors.As(err, &bad) {
			status = bad.Status
		}
		if length != tt.length || status != tt.status || tt.status == 0 && err != nil {
			t.Errorf("%q: got length %d and %v, want %d and status %d", tt.text, length, err, tt.length, tt.status)
		}
	}
}

func TestBody(t *testing.T) {
	for _, tt := range []struct {
		text   string
		length int64
		strict bool
		want   string
		err    error // nil: the end; any *Error for errBad
	}{
		{"hello, rest", 5, true, "hello", nil},
		{"hel", 5, true, "hel", io.ErrUnexpectedEOF},
		{"", 0, true, "", nil},
		{"all of it", UntilClose, false, "all of it", nil},
		{"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX: y\r\n\r\nnext", Chunked, true, "hello world", nil},
		{"5\r\nhello\r\n", Chunked, true, "hello", io.ErrUnexpectedEOF},
		{"5\r\nhel", Chunked, true, "hel", io.ErrUnexpectedEOF},
		{"5\r\nhelloo\r\n0\r\n\r\n", Chunked, true, "hello", errBad},
		{"5\nhello\r\n0\r\n\r\n", Chunked, true, "", errBad},
		{"5 \nhello\n0\n\n", Chunked, false, "hello", nil},
		{"+5\r\nhello\r\n0\r\n\r\n", Chunked, false, "", errBad},
		{"0x5\r\nhello\r\n0\r\n\r\n", Chunked, false, "", errBad},
		{"5_0\r\nhello\r\n0\r\n\r\n", Chunked, false, "", errBad},
		{"ffffffffffffffff\r\nhello", Chunked, false, "", errBad},
		{"5;\x01\r\nhello\r\n0\r\n\r\n", Chunked, true, "", errBad},
		{"-1\r\nhello\r\n0\r\n\r\n", Chunked, false, "", errBad},
	} {
		r := bufio.NewReader(iotest.OneByteReader(strings.NewReader(tt.text)))
		got, err := io.ReadAll(NewBody(r, tt.length, tt.strict))
		var bad *Error
		if errors.As(err, &bad) {
			err = errBad
		}
		if string(got) != tt.want || err != tt.err {
			t.Errorf("%q: got %q and %v, want %q and %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

var errBad = errors.New("refused")

func TestDrained(t *testing.T) {
	for _, tt := range []struct {
		text   string
		length int64
		max    int64
		want   bool
		rest   string
	}{
		{"hellonext", 5, 10, true, "next"},
		{"hellonext", 5, 5, true, "next"},
		{"hellonext", 5, 3, false, ""},
		{"5\r\nhello\r\n0\r\n\r\nnext", Chunked, 10, true, "next"},
		{"hello", UntilClose, 10, false, ""},
	} {
		r := reader(tt.text)
		if got := NewBody(r, tt.length, true).Drained(tt.max); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		} else if got {
			if rest, _ := io.ReadAll(r); string(rest) != tt.rest {
				t.Errorf("%q: got %q behind it, want %q", tt.text, rest, tt.rest)
			}
		}
	}
}

func TestHeader(t *testing.T) {
	h := Header{{"Vary", "a, \"b,c\" ,"}, {"X", "1"}, {"vary", `d;e="\",",f`}, {"Connection", "close, X"}, {"TE", "trailers"}}
	if got, want := slices.Collect(h.Members("VARY")), []string{"a", `"b,c"`, `d;e="\","`, "f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := h.Forwarded(), (Header{h[0], h[2]}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if v, ok := h.Get("vary"); !ok || v != `a, "b,c" ,, d;e="\",",f` {
		t.Errorf("got %q", v)
	}
	h.Set("VARY", "z")
	if len(h) != 4 || h.Text("Vary") != "z" || !h.HasMember("connection", "x") || h.Has("Y") {
		t.Errorf("got %v", h)
	}
}

func TestChunkWriter(t *testing.T) {
	var b bytes.Buffer
	w := ChunkWriter{&b}
	for _, s := range []string{"hello", "", strings.Repeat("x", 300)} {
		if _, err := io.WriteString(w, s); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if got, err := io.ReadAll(NewBody(bufio.NewReader(&b), Chunked, true)); err != nil || string(got) != "hello"+strings.Repeat("x", 300) {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzRequest takes what was read from what was written again.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("GET /a HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\nrest"))
	f.Add([]byte("POST * HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		q, err := ReadRequest(r, Limits{})
		if err != nil {
			return
		}
		body := NewBody(r, q.Length, true)
		text, err := io.ReadAll(body)
		if len(text) > len(b) || err == nil && q.Length >= 0 && int64(len(text)) != q.Length {
			t.Fatalf("got a body of %d bytes, want %d", len(text), q.Length)
		}
		q.Minor = 1
		again, err := ReadRequest(bufio.NewReader(bytes.NewReader(AppendRequest(nil, q))), Limits{Line: 9 << 10, Head: 128 << 10})
		if err != nil && !q.Header.Has("Host") {
			return
		}
		if err != nil || again.Method != q.Method || again.Target != q.Target || again.Length != q.Length || !slices.Equal(again.Header, q.Header) {
			t.Fatalf("got %+v, %v, want %+v", again, err, q)
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3 ;x\nabc\n0\nA: b\n\n"))
	f.Add([]byte("HTTP/1.0 200\r\nX: a\r\n b\r\n\r\nall"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		p, err := ReadResponse(r, Limits{})
		if err != nil {
			return
		}
		n, err := p.BodyLength("GET")
		if err != nil {
			return
		}
		text, err := io.ReadAll(NewBody(r, n, false))
		if len(text) > len(b) || err == nil && n >= 0 && int64(len(text)) != n {
			t.Fatalf("got a body of %d bytes, want %d", len(text), n)
		}
		again, err := ReadResponse(bufio.NewReader(bytes.NewReader(AppendResponse(nil, p))), Limits{Line: 65 << 10, Head: 128 << 10})
		if err != nil || again.Status != p.Status || again.Reason != p.Reason || !slices.Equal(again.Header, p.Header) {
			t.Fatalf("got %+v, %v, want %+v", again, err, p)
		}
	})
}
