package fetch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mailbox = `From me@example.org Tue Jan  5 12:00:00 2021
From: me@example.org
Message-ID: <b.2@example.org>
Date: Tue, 05 Jan 2021 12:00:00 +0000
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=

>From the start
>>From twice
From here on: no line of a mailbox
From me@example.org Tue Jan  5 12:00:00 2021 nor this

From you at example.org  Wed Jan  6 08:00:00 2021
From: you at example.org (You)
message-id: <a.1@example.org>
Subject: two

second

From x@example.org Thu Jan  7 08:00:00 2021
From: x@example.org
Subject: without a name
Status: RO

third

From x@example.org Thu Jan  7 08:00:00 2021
Message-ID: <a/../1 ~@x>
Subject: an odd name

fourth
`

// idOf finds a message by its subject.
func idOf(t *testing.T, body, title string) string {
	t.Helper()
	for line := range strings.Lines(body) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 6 && f[5] == title {
			return f[4]
		}
	}
	t.Fatalf("no %q in\n%s", title, body)
	return ""
}

func TestMbox(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "list.mbox")
	write(t, name, mailbox)
	url := "mbox://" + name + "/"
	c := newClient(t, Options{})
	resp, body := c.get(url)
	got := lines(t, resp, body)
	if len(got) != 4 || !slices.IsSorted(got) || got[0] != "f a.1@example.org" || got[1] != "f b.2@example.org" ||
		!strings.HasPrefix(got[2], "f id-") || !strings.HasPrefix(got[3], "f md5-") {
		t.Fatalf("got %q", got)
	}
	if resp, _ := c.get(url, "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != 304 {
		t.Errorf("the mailbox as it was: got %s, want 304", resp.Status)
	}
	tag := tagOf(t, body, "b.2@example.org")
	resp, text := c.get(url + "b.2@example.org")
	want := mailbox[strings.Index(mailbox, "\n")+1 : strings.Index(mailbox, "From you at")]
	want = strings.Replace(strings.Replace(want, ">From", "From", 1), ">>From", ">From", 1)
	if text != want || resp.Header.Get("ETag") != tag || resp.Header.Get("Content-Type") != "message/rfc822" || resp.Header.Get(Title) != "Gr%C3%BC%C3%9Fe" {
		t.Errorf("got %q, %v, want %q", text, resp.Header, want)
	}
	if got := resp.Header.Get("Last-Modified"); got != "Tue, 05 Jan 2021 12:00:00 GMT" {
		t.Errorf("Last-Modified: got %s", got)
	}
	if resp, _ := c.get(url+"b.2@example.org", "If-None-Match", tag); resp.StatusCode != 304 {
		t.Errorf("If-None-Match: got %s, want 304", resp.Status)
	}
	for path, code := range map[string]int{"none@example.org": 404, "../list.mbox": 301, "../none.mbox/": 404, "../none.mbox/x": 404} {
		if resp, _ := c.get(url + path); resp.StatusCode != code {
			t.Errorf("%s: got %s, want %d", path, resp.Status, code)
		}
	}

	// The same messages, elsewhere in the file, read by somebody, with new ones.
	nameless := idOf(t, body, "without a name")
	parts := strings.SplitAfter(mailbox, "\n\nFrom ")
	turned := "From new@example.org Fri Jan  8 08:00:00 2021\nMessage-ID: <c.3@example.org>\n\nnew\n\n" +
		"From " + strings.TrimSuffix(parts[2], "From ") + "From " + strings.TrimSuffix(parts[1], "From ") + parts[0][:len(parts[0])-5]
	turned = strings.Replace(turned, "Status: RO", "Status: O", 1)
	write(t, name, turned)
	resp, body = c.get(url)
	if got := lines(t, resp, body); len(got) != 4 || !slices.Contains(got, "f c.3@example.org") {
		t.Errorf("after a change: got %q", got)
	}
	if idOf(t, body, "without a name") != nameless {
		t.Errorf("a message without a name has got another: %s, was %s", idOf(t, body, "without a name"), nameless)
	}
	if resp, _ := c.get(url+"b.2@example.org", "If-None-Match", tag); resp.StatusCode != 304 {
		t.Errorf("a message that has moved: got %s, want 304", resp.Status)
	}
	if resp, _ := c.get(url + idOf(t, body, "without a name")); resp.StatusCode != 200 {
		t.Errorf("got %s", resp.Status)
	}

	// A folder of mailboxes.
	write(t, filepath.Join(dir, "notes.txt"), "not mail\n")
	write(t, filepath.Join(dir, "empty"), "")
	resp, body = c.get("mbox://" + dir + "/")
	if got, want := lines(t, resp, body), []string{"s empty", "d list.mbox/", "s notes.txt"}; !slices.Equal(got, want) {
		t.Errorf("a folder: got %q, want %q", got, want)
	}
	if resp, _ := c.get("mbox://" + dir + "/notes.txt/"); resp.StatusCode != 403 {
		t.Errorf("not a mailbox: got %s, want 403", resp.Status)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	resp2, _ := ask(t, "GET", "mbox://"+dir+"/link/", "mbox://"+dir+"/")
	if resp2.StatusCode != 403 {
		t.Errorf("a link out of the root: got %s, want 403", resp2.Status)
	}
	if resp, body := ask(t, "GET", "mbox://"+name+"/c.3@example.org", "mbox://"+name+"/"); resp.StatusCode != 200 || !strings.HasSuffix(body, "\nnew\n\n") {
		t.Errorf("within the mailbox: got %s, %q", resp.Status, body)
	}
}

// TestSameName: messages with one Message-ID are told apart.
func TestSameName(t *testing.T) {
	var b strings.Builder
	for i := range 3 {
		fmt.Fprintf(&b, "From x Thu Jan  7 08:00:00 2021\nMessage-ID: <same@x>\n\n%d\n\n", i)
	}
	all, err := splitMailbox(strings.NewReader(b.String()))
	if err != nil || len(all) != 3 || all[0].id != "same@x" || all[1].id != "same@x~2" || all[2].id != "same@x~3" {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestUnquotedPieces: lines are as they were written, however they are read.
func TestUnquotedPieces(t *testing.T) {
	in := strings.Repeat("a line\n>From it\n>>>From that\n> From\n"+strings.Repeat("x", 40_000)+">From\n", 5)
	want := strings.NewReplacer("\n>From it", "\nFrom it", "\n>>>From", "\n>>From").Replace(in)
	for _, size := range []int{1, 7, 4096} {
		u := &unquoted{r: pieces{strings.NewReader(in), size}, f: io.NopCloser(nil), start: true}
		b, err := io.ReadAll(u)
		if err != nil || string(b) != want {
			t.Errorf("by %d: got %d bytes, %v, want %d", size, len(b), err, len(want))
		}
	}
}

// pieces gives so many bytes at once.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

func FuzzMbox(f *testing.F) {
	f.Add([]byte(mailbox))
	f.Add([]byte("From x Thu Jan  7 08:00:00 2021"))
	f.Add([]byte("From x Thu Jan  7 08:00:00 2021\r\n\r\n\r\nFrom x Thu Jan  7 08:00:00 2021\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := splitMailbox(bytes.NewReader(b))
		if err != nil {
			return
		}
		var total int64
		seen := make(map[string]bool)
		for i, m := range all {
			if m.id == "" || seen[m.id] || strings.ContainsAny(m.id, "/\n\t ") || i > 0 && all[i-1].id > m.id {
				t.Fatalf("bad id %q", m.id)
			}
			seen[m.id] = true
			if m.at < 0 || m.size < 0 || m.at+m.size > int64(len(b)) {
				t.Fatalf("a message at %d of %d bytes in %d", m.at, m.size, len(b))
			}
			total += m.size
		}
		if total > int64(len(b)) {
			t.Fatalf("messages of %d bytes in %d", total, len(b))
		}
		again, err := splitMailbox(pieces{bytes.NewReader(b), 3})
		if err != nil || !slices.Equal(all, again) {
			t.Fatalf("read in pieces: got %v, %v, want %v", again, err, all)
		}
	})
}
