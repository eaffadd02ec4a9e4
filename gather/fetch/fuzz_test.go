package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jlaffaye/ftp"
)

// checkListing holds a listing to its form.
func checkListing(t *testing.T, body string) {
	t.Helper()
	for line := range strings.Lines(body) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 5 || len(f) > 6 || len(f[0]) != 1 || strings.IndexByte("dfls", f[0][0]) < 0 || f[4] == "" || !strings.HasSuffix(line, "\n") {
			t.Fatalf("got %q", line)
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err != nil || n < 0 {
			t.Fatalf("size of %q: %v", line, err)
		}
		if _, err := time.Parse(time.RFC3339Nano, f[2]); f[2] != "-" && err != nil {
			t.Fatalf("time of %q: %v", line, err)
		}
		if strings.ContainsFunc(f[3]+f[4], func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Fatalf("reference or tag of %q", line)
		}
	}
}

// A scripted connection has said all that it will.
type scripted struct{ io.Reader }

func (scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (scripted) Close() error                     { return nil }
func (scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 21} }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }

// scriptedFTP answers for a folder with a listing that came in some form.
func scriptedFTP(t *testing.T, tr *Transport, mlsd bool, listing []byte) (string, error) {
	feat := "502 What?\r\n"
	cwd := "250 There\r\n"
	if mlsd {
		feat, cwd = "211-These\r\n MLST type*;\r\n211 End\r\n", ""
	}
	say := "220 Hello\r\n230 Come in\r\n" + feat + "200 I\r\n" + cwd + "229 (|||2000|)\r\n150 Here\r\n226 Done\r\n" +
		"229 (|||2000|)\r\n550 No ls-lR for you\r\n"
	c := &ftpConn{s: &session{dev: &tr.dev, scheme: "ftp", wait: time.Second, ctx: t.Context()}, base: "/", back: func() bool { return false }}
	dial := func(_, _ string) (net.Conn, error) {
		if c.ctl == nil {
			c.ctl = &line{Conn: scripted{strings.NewReader(say)}, s: c.s, left: maxAnswer}
			return c.ctl, nil
		}
		c.last = &line{Conn: scripted{bytes.NewReader(listing)}, s: c.s, left: c.data}
		return c.last, nil
	}
	var err error
	if c.ftp, err = ftp.Dial("x", ftp.DialWithDialFunc(dial)); err != nil {
		return "", err
	}
	if err := c.ftp.Login("x", "y"); err != nil {
		return "", err
	}
	c.s.use(context.Background())
	r := &ftpRequest{req: httptest.NewRequestWithContext(t.Context(), "GET", "ftp://site/", nil), t: tr, c: c, server: "ftp://site", name: "/", path: "/"}
	resp, err := r.folder()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func FuzzFolder(f *testing.F) {
	f.Add(true, []byte("type=file;size=1;modify=20200101000000; a\r\ntype=dir; b\r\n"))
	f.Add(true, []byte(";;; \r\ntype=file;modify=9; \r\n = \r\n"))
	f.Add(false, []byte("drwxr-xr-x 2 root root 4096 Jan  5  2024 docs\r\n-rw-r--r-- 1 root root 517 Nov 21 08:12 read me\r\nlrwxrwxrwx 1 r r 1 Jan 1 2020 l -> x\r\n"))
	f.Add(false, []byte("01-02-20  03:04PM <DIR> docs\r\n01-02-2020  15:04  123 a.txt\r\n"))
	f.Add(false, []byte("-rw-r--r-- 1 0 0 18446744073709551615 Jan  5  2024 big\r\nd--------- folder 0 Jan 1 2020 x\r\n"))
	f.Add(false, []byte("-r--------   0 user group     65222236 Feb 24 00:39 x.csv\r\n-rw-r--r-- 1 0 0 1 Jan  5  2024 ls-lR\r\ndrwxr-xr-x 2 0 0 1 Jan  5  2024 d\r\n"))
	f.Fuzz(func(t *testing.T, mlsd bool, listing []byte) {
		body, err := scriptedFTP(t, New(Options{}), mlsd, listing)
		if err != nil {
			return
		}
		checkListing(t, body)
	})
}

func FuzzLS(f *testing.F) {
	f.Add([]byte(".:\ntotal 8\ndrwxr-xr-x 2 root root 4096 Jan  5  2024 docs\n\n./docs:\n-rw-r--r-- 1 root root  517 Nov 21 08:12 read me\n"))
	f.Add([]byte("/home/ftp:\n-rw-r--r-- 1 a 5 2024-01-05 08:12 x\n\n/home/ftp/..:\n-rw-r--r-- 1 a 5 Jan 1 2024 y\n\n/etc:\n-rw-r--r-- 1 a 5 Jan 1 2024 passwd\n"))
	f.Add([]byte("crw-rw-rw- 1 root root 1, 3 Jan  1  2020 null\nlrwxrwxrwx 1 r r 1 Feb 29 12:00 l -> x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ls := newLS(bytes.NewReader(b), time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
		l := &readyList{r: &ftpRequest{t: &Transport{facts: newFacts()}, name: "/"}, ls: ls}
		l.begin(nil)
		for range len(b) + 2 {
			items, err := l.more()
			for i := range items {
				line := string(items[i].append(nil))
				checkListing(t, line)
				if strings.Contains(line, "/../") || strings.Contains(line, "\t./../") {
					t.Fatalf("got %q, which leads out", line)
				}
			}
			if err != nil {
				return
			}
		}
		t.Fatal("it has no end")
	})
}

func FuzzMenu(f *testing.F) {
	f.Add("0Title\t/sel\tlocalhost\t70\t+\r\n1Menu\t\tlocalhost\t70\r\niinfo\t\tx\t1\r\nhWeb\tURL:http://x/\tlocalhost\t70\r\n.\r\n")
	f.Add("+INFO: 0About\t/about\tlocalhost\t70\t+\r\n+ADMIN:\r\n Mod-Date: x <19930728170201>\r\n+VIEWS:\r\n Text/plain: <10k>\r\n+ABSTRACT:\r\n text\r\n")
	f.Add("0..\t/../x\t::1\t70\r\n9\tx?y\xff\th\t65535\r\n+INFO: \r\n+VIEWS:\r\n x: <1e300k>\r\n")
	f.Add("/host\t/sel\tlocalhost\t70\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		items, _, _ := parseMenu(strings.NewReader(text))
		more, _ := parseAttributes(strings.NewReader(text))
		g := &gopherRequest{t: &Transport{facts: newFacts()}, server: "localhost:70"}
		for _, e := range g.references(append(items, more...)) {
			if strings.HasPrefix(e.href, "/") || strings.HasPrefix(e.href, "gopher:") { // others are as the menu has them
				checkListing(t, string(e.append(nil)))
			}
			u, err := url.Parse(e.href)
			if err != nil || e.kind == 's' || u.Scheme != "" && u.Scheme != "gopher" || !strings.HasPrefix(e.href, "/") {
				continue
			}
			if typ, selector, err := gopherPath(u); err == nil && Escape("/"+string(typ)+selector) != e.href {
				t.Fatalf("%q asks for %q", e.href, selector)
			}
		}
	})
}

func FuzzOver(f *testing.F) {
	f.Add("10\tsubject\tme@x\tTue, 05 Jan 2021 12:00:01 +0000\t<m@x>\t\t5\t1")
	f.Add("10\t=?utf-8?b?//8=?=\t\tx\t<<>>\t\t-5")
	f.Fuzz(func(t *testing.T, text string) {
		o, ok := parseOver(text)
		if !ok {
			return
		}
		if o.number < 0 || o.size < 0 || !strings.HasPrefix(o.id, "<") {
			t.Fatalf("got %+v", o)
		}
		if strings.ContainsAny(text, "\r\n") {
			return // no line of a conversation
		}
		e := item{kind: 'f', size: o.size, tag: messageFact(o.id).etag(), href: strconv.FormatInt(o.number, 10), name: o.subject}
		checkListing(t, string(e.append(nil)))
	})
}

// FuzzUndotted: a text comes as it was, less the line that ends it, however it
// is cut into reads.
func FuzzUndotted(f *testing.F) {
	f.Add([]byte("a\r\n.\r\n"), uint8(1))
	f.Add([]byte(".\r\n"), uint8(3))
	f.Add([]byte("...\n.\n."), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		want := b
		for _, end := range []string{".\r\n", ".\n", "."} {
			if s, ok := bytes.CutSuffix(b, []byte(end)); ok && (len(s) == 0 || s[len(s)-1] == '\n') {
				want = s
				break
			}
		}
		u := &undotted{r: pieces{bytes.NewReader(b), int(n%16) + 1}, body: io.NopCloser(nil)}
		got, err := io.ReadAll(pieces{u, int(n/16) + 1})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

// FuzzDecoded: a coded body ends, with its text or an error, and costs no more
// than what it may grow to.
func FuzzDecoded(f *testing.F) {
	for _, code := range []string{"gzip", "br", "zstd"} {
		f.Add(code, pack(f, code, "a text"))
		f.Add(code, bomb(f, code, 1<<20))
	}
	d := newDecoders(200)
	f.Fuzz(func(t *testing.T, codes string, b []byte) {
		resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Encoding": {codes}}, Body: io.NopCloser(bytes.NewReader(b)), ContentLength: int64(len(b))}
		d.decode(resp)
		n, err := io.Copy(io.Discard, resp.Body)
		if most := max(ratioMin, 200*int64(len(b)+1)) + 16<<20; n > most {
			t.Fatalf("%d bytes of %d, %v", n, len(b), err)
		}
		if resp.Body.Close() != nil {
			t.Fatal("close")
		}
	})
}

func FuzzSecrets(f *testing.F) {
	f.Add("auth host=a user=b password='c d' path=/x scheme=http\nftp host=a user=b\nproxy user=x password=y # z\n", "http://a/x/y")
	f.Add("auth host=[::1]:80 user=b", "http://[::1]/")
	f.Fuzz(func(t *testing.T, text, raw string) {
		s, err := ParseSecrets(text)
		u, bad := url.Parse(raw)
		if err == nil && bad == nil {
			s.find("auth", u)
			s.find("ftp", u)
		}
		var at interface{ Position() (int, int) }
		if err != nil && !errors.As(err, &at) {
			t.Fatalf("got %v, without a place", err)
		}
	})
}
