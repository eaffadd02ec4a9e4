package fetch

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// sn serves a spool of news, with some messages in a group.
type sn struct {
	t     testing.TB
	spool string
	addr  string
}

func newSN(t testing.TB, group string) *sn {
	t.Helper()
	prog := program(t, "snntpd", "/usr/sbin/snntpd")
	s := &sn{t: t, spool: t.TempDir()}
	t.Setenv("SNROOT", s.spool)
	if err := os.WriteFile(s.spool+"/.me", []byte("localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program(t, "snnewgroup", "/usr/sbin/snnewgroup"), group).CombinedOutput(); err != nil {
		t.Fatalf("snnewgroup: %v\n%s", err, out)
	}
	s.post(group, 1, 3)
	s.addr = socat(t, prog+" dd of=/dev/null status=none")
	return s
}

// post adds messages from one number to another.
func (s *sn) post(group string, from, to int) {
	s.t.Helper()
	var b strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&b, "From: me@example.org\r\nNewsgroups: %s\r\nSubject: =?utf-8?q?gr=C3=BC=C3=9Fe_%d?=\r\nMessage-ID: <m%d@example.org>\r\n"+
			"Date: Tue, 05 Jan 2021 12:00:%02d +0000\r\n\r\nmessage %d\r\n..dotted\r\n.\r\n", group, n, n, n, n)
	}
	cmd := exec.Command(program(s.t, "snstore", "/usr/sbin/snstore"))
	cmd.Stdin = strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("snstore: %v\n%s", err, out)
	}
}

func TestSN(t *testing.T) {
	s := newSN(t, "local.test")
	url := "nntp://" + s.addr + "/"
	c := newClient(t, Options{})
	resp, body := c.get(url)
	if got := lines(t, resp, body); !slices.Contains(got, "d local.test/") {
		t.Errorf("groups: got %q", got)
	}
	resp, body = c.get(url + "local.test/")
	if got, want := lines(t, resp, body), []string{"f 10", "f 11", "f 12"}; !slices.Equal(got, want) {
		t.Fatalf("messages: got %q, want %q", got, want)
	}
	if !strings.Contains(body, "\tgrüße 2\n") || !strings.Contains(body, "\t2021-01-05T12:00:02Z\t") {
		t.Errorf("no subject or no date in %q", body)
	}
	tag, all := tagOf(t, body, "11"), resp.Header.Get("ETag")
	resp, body = c.get(url + "local.test/11")
	if !strings.Contains(body, "\nmessage 2\n.dotted\n") || resp.Header.Get("ETag") != tag || resp.Header.Get("Content-Type") != "message/rfc822" {
		t.Errorf("got %q, ETag %s, want %s", body, resp.Header.Get("ETag"), tag)
	}
	for _, c := range []*client{c, newClient(t, Options{})} {
		if resp, _ := c.get(url+"local.test/11", "If-None-Match", tag); resp.StatusCode != 304 {
			t.Errorf("If-None-Match: got %s, want 304", resp.Status)
		}
	}
	if resp, body := c.get(url + "m3@example.org"); resp.StatusCode != 200 || !strings.Contains(body, "message 3") {
		t.Errorf("by its id: got %s, %q", resp.Status, body)
	}
	for _, name := range []string{"local.test/17", "local.none/", "none@example.org"} {
		if resp, _ := c.get(url + name); resp.StatusCode != 404 {
			t.Errorf("%s: got %s, want 404", name, resp.Status)
		}
	}
	if resp, _ := c.get(url + "local.test"); resp.StatusCode != 301 {
		t.Errorf("a group without slash: got %s, want 301", resp.Status)
	}

	// Only what is new.
	if resp, _ := c.get(url+"local.test/", "If-None-Match", all); resp.StatusCode != 304 {
		t.Errorf("nothing new: got %s, want 304", resp.Status)
	}
	s.post("local.test", 4, 5)
	d := newClient(t, Options{}) // sn's process for a connection knows what it has seen
	resp, body = d.get(url+"local.test/", "If-None-Match", all)
	if got, want := lines(t, resp, body), []string{"f 13", "f 14"}; !slices.Equal(got, want) || resp.Header.Get(Partial) == "" {
		t.Errorf("new messages: got %q, partial %q, want %q", got, resp.Header.Get(Partial), want)
	}
	if s := c.Stats()["nntp"]; s.Opened != 1 || s.Reused < 8 {
		t.Errorf("got %d connections opened, %d reused, want 1 for all", s.Opened, s.Reused)
	}
}
