package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeFTP is a server that says what a test wants of it. It has MLSD, which
// vsftpd has not. Unless a test changes answers, it serves files by their paths.
type fakeFTP struct {
	mlsd   map[string]string // folders
	files  map[string]string
	facts  map[string]string // of files, for MLST
	answer map[string]string // to a command's first word, in place of all else
	pasv   func(port int) string

	mu   sync.Mutex
	said []string
}

func (f *fakeFTP) serve(c net.Conn) {
	in := bufio.NewScanner(c)
	var data net.Listener
	defer func() {
		if data != nil {
			data.Close()
		}
	}()
	say := func(s string) { io.WriteString(c, s+"\r\n") }
	send := func(s string) {
		if data == nil {
			say("425 No data connection")
			return
		}
		say("150 Here it comes")
		d, err := data.Accept()
		if err != nil {
			return
		}
		io.WriteString(d, s)
		d.Close()
		say("226 That was all")
	}
	say("220 Hello")
	for in.Scan() {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		f.mu.Lock()
		f.said = append(f.said, in.Text())
		f.mu.Unlock()
		if a, ok := f.answer[verb]; ok {
			say(a)
			continue
		}
		switch verb {
		case "USER":
			say("331 Whose?")
		case "PASS":
			say("230 Come in")
		case "TYPE", "OPTS":
			say("200 Good")
		case "FEAT":
			say("211-These\r\n MLST type*;size*;modify*;\r\n MDTM\r\n UTF8\r\n211 End")
		case "PWD":
			say(`257 "/" is it`)
		case "EPSV", "PASV":
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return
			}
			if data != nil {
				data.Close()
			}
			data = l
			port := l.Addr().(*net.TCPAddr).Port
			switch {
			case verb == "EPSV":
				say(fmt.Sprintf("229 Extended (|||%d|)", port))
			case f.pasv != nil:
				say(f.pasv(port))
			default:
				say(fmt.Sprintf("227 Passive (127,0,0,1,%d,%d)", port>>8, port&255))
			}
		case "MLSD":
			if s, ok := f.mlsd[arg]; ok {
				send(s)
			} else {
				say("550 No such folder")
			}
		case "MLST":
			if s, ok := f.facts[arg]; ok {
				say("250-Here\r\n " + s + " " + arg + "\r\n250 End")
			} else {
				say("550 No such file")
			}
		case "RETR":
			if s, ok := f.files[arg]; ok {
				send(s)
			} else {
				say("550 No such file")
			}
		case "CWD":
			if _, ok := f.mlsd[arg]; ok {
				say("250 There")
			} else {
				say("550 No such folder")
			}
		case "QUIT":
			return
		default:
			say("502 What?")
		}
	}
}

func (f *fakeFTP) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.said {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

func TestMLSD(t *testing.T) {
	f := &fakeFTP{
		mlsd: map[string]string{
			"/": "type=cdir;modify=20200101000000; .\r\ntype=pdir; ..\r\ntype=dir;modify=20200101000000; sub\r\n" +
				"Type=file;Size=4;Modify=20200102030405.123; a b.txt\r\nnonsense\r\ntype=file;size=9;modify=20200102030405; ../up\r\ntype=file;size=1; undated\r\n",
			"/sub": "",
		},
		files: map[string]string{"/a b.txt": "one\n", "/undated": "x"},
		facts: map[string]string{"/a b.txt": "Type=file;Size=4;Modify=20200102030405;", "/sub": "type=dir;"},
	}
	url := "ftp://" + hostile(t, f.serve) + "/"
	c := newClient(t, Options{})
	resp, body := c.get(url)
	if got, want := lines(t, resp, body), []string{"f a%20b.txt", "d sub/", "f undated"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(body, "f\t4\t2020-01-02T03:04:05") {
		t.Errorf("got %q, want the time to the second", body)
	}
	if tagOf(t, body, "undated") != "-" {
		t.Errorf("a file without time has ETag %s", tagOf(t, body, "undated"))
	}
	tag := tagOf(t, body, "a%20b.txt")
	for i, c := range []*client{c, newClient(t, Options{})} {
		if resp, _ := c.get(url+"a%20b.txt", "If-None-Match", tag); resp.StatusCode != 304 {
			t.Errorf("client %d: got %s, want 304", i, resp.Status)
		}
		if resp, body := c.get(url + "a%20b.txt"); resp.Header.Get("ETag") != tag || body != "one\n" {
			t.Errorf("client %d: got %q, %s, want %s", i, body, resp.Header.Get("ETag"), tag)
		}
	}
	if resp, body := c.get(url + "sub/"); resp.StatusCode != 200 || body != "" {
		t.Errorf("an empty folder: got %s, %q", resp.Status, body)
	}
	if resp, _ := newClient(t, Options{}).get(url + "sub"); resp.StatusCode != 301 {
		t.Errorf("a folder without slash: got %s, want 301", resp.Status)
	}
	for _, name := range []string{"none", "none/"} {
		if resp, _ := c.get(url + name); resp.StatusCode != 404 {
			t.Errorf("%s: got %s, want 404", name, resp.Status)
		}
	}
	if n := f.count("RETR"); n != 3 { // two, and none
		t.Errorf("got %d RETR, want 3: %q", n, f.said)
	}
}

// TestHostileFTP: what a server may do to one who trusts it.
func TestHostileFTP(t *testing.T) {
	elsewhere := hostile(t, func(c net.Conn) {
		t.Error("a data connection went where the server sent it")
	})
	_, port, _ := net.SplitHostPort(elsewhere)
	base := func() *fakeFTP {
		return &fakeFTP{mlsd: map[string]string{"/": "type=file;size=1;modify=20200101000000; a\r\n"}, files: map[string]string{"/a": "x"}}
	}
	var n int
	fmt.Sscan(port, &n)
	for name, c := range map[string]struct {
		change func(f *fakeFTP)
		want   string // in the error; "" is none
		code   int
	}{
		"another address": {func(f *fakeFTP) {
			f.answer = map[string]string{"EPSV": "500 What?"}
			f.pasv = func(port int) string { return fmt.Sprintf("227 Passive (127,0,0,2,%d,%d)", port>>8, port&255) }
		}, "", 200},
		"a port of a service": {func(f *fakeFTP) { f.answer = map[string]string{"EPSV": "229 Extended (|||25|)"} }, "port 25 refused", 0},
		"no port":             {func(f *fakeFTP) { f.answer = map[string]string{"EPSV": "229 Extended (|||99999|)"} }, "port 99999 refused", 0},
		"an endless answer":   {func(f *fakeFTP) { f.answer = map[string]string{"PWD": "257-" + strings.Repeat("x", 1<<20)} }, "more than it may", 0},
		"an endless line":     {func(f *fakeFTP) { f.mlsd["/"] = strings.Repeat("x", 1<<20) }, "too long", 0},
		"an unknown form":     {func(f *fakeFTP) { f.mlsd["/"] = strings.Repeat("name of a file, no more\r\n", 10) }, "unknown form", 0},
		"too many users":      {func(f *fakeFTP) { f.answer = map[string]string{"USER": "421 Too many users"} }, "", 503},
		"no anonymous":        {func(f *fakeFTP) { f.answer = map[string]string{"PASS": "530 Not you"} }, "", 401},
		"busy":                {func(f *fakeFTP) { f.answer = map[string]string{"MLSD": "450 Not now"} }, "", 503},
	} {
		t.Run(name, func(t *testing.T) {
			f := base()
			c.change(f)
			resp, _, err := newClient(t, Options{}).try(t.Context(), "ftp://"+hostile(t, f.serve)+"/")
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			case c.want == "" && (err != nil || resp.StatusCode != c.code):
				t.Errorf("got %v, %v, want %d", resp, err, c.code)
			}
		})
	}
}

// TestSilentServers: one that says nothing, or stops in the middle, is given up
// in time, and at once when the request ends.
func TestSilentServers(t *testing.T) {
	addr := hostile(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	for _, scheme := range []string{"ftp", "nntp", "gopher", "http"} {
		c := newClient(t, Options{Header: 50 * time.Millisecond})
		_, _, err := c.try(t.Context(), scheme+"://"+addr+"/")
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("%s: got %v, want a timeout", scheme, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
		c = newClient(t, Options{})
		began := time.Now()
		_, _, err = c.try(ctx, scheme+"://"+addr+"/")
		if !errors.Is(err, why) && !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second {
			t.Errorf("%s: got %v after %s, want the request's own end", scheme, err, time.Since(began))
		}
	}
}

// TestCutShort: a file of which the server does not say that it is whole is an
// error, and its connection is not used again.
func TestCutShort(t *testing.T) {
	addr := hostile(t, func(c net.Conn) {
		f := &fakeFTP{files: map[string]string{"/a": "part of it"}}
		f.serve(cutting{c})
	})
	c := newClient(t, Options{})
	_, body, err := c.try(t.Context(), "ftp://"+addr+"/a")
	if err == nil || body != "part of it" {
		t.Errorf("got %q, %v, want what came, and an error", body, err)
	}
	if len(c.keep.idle) != 0 {
		t.Error("the connection is kept")
	}
}

// cutting says 426 in place of 226.
type cutting struct{ net.Conn }

func (c cutting) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "226") {
		_, err := c.Conn.Write([]byte("426 Connection closed; transfer aborted.\r\n"))
		return len(p), err
	}
	return c.Conn.Write(p)
}
