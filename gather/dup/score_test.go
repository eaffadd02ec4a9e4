package dup

import (
	"strings"
	"testing"
)

// TestScore goes through figure 4.3 line by line; the first two are the
// dissertation's own example.
func TestScore(t *testing.T) {
	long := strings.Repeat("p", 300)
	for _, c := range []struct {
		url                string
		inbound, submitted int
		want               int
	}{
		{"http://host.company.com/a.html", 0, 0, 522},
		{"http://host.lcs.mit.edu/mirrors/company/a.html", 0, 0, 506},
		{"http://host.company.com/a.html", 0, 1, 522 + 15 + 5},
		{"http://host.company.com/a.html", 0, 4, 522 + 15 + 20},
		{"http://host.company.com/a.html", 1, 0, 522 + 7 + 3},
		{"http://host.company.com/a.html", 1000, 0, 522 + 7 + 3000},
		{"http://host.company.com/a/", 0, 0, 522 + 4 + 2},                       // 3 of path, not 7, and 7 for the slash
		{"http://host.company.com/a", 0, 0, 522 + 5 - 5},                        // neither
		{"http://www.st.company.com/a.html", 0, 0, 522 + 5 - 2},                 // two bytes longer
		{"https://host.company.com/a.html", 0, 0, 522 - 5},                      // not port 80
		{"https://host.company.com:80/a.html", 0, 0, 522},                       // port 80 it is
		{"http://host.company.com:8080/a.html", 0, 0, 522 - 5},                  // the port is no part of the name
		{"http://123.123.123.1234.x/a.html", 0, 0, 522 - 2},                     // a name
		{"http://123.123.123.123/a.html", 0, 0, 522 - 20 + 1},                   // an address, of 15 bytes
		{"http://[2001:db8::1]/a.html", 0, 0, 522 - 20 + 3},                     // of 13
		{"http://host.company.com/" + long, 0, 0, 522 - 248 - 5},                // nothing below nothing
		{"http://host.company.com/a?" + long[:13] + ".html", 0, 0, 522 - 14},    // the query is path
		{"ftp://host.company.com/a.html", 0, 0, 522 - 10},                       // no points for scheme and port
		{"http://" + strings.Repeat("h", 300) + "/a.html", 0, 0, 522 - 239},     // a long name
		{"file:///srv/a.html", 0, 0, 5 + 255 - len("/srv/a.html")},              // has no host
		{"http://host.company.com/", 0, 0, 255 - 1 + 7 + 20 + 5 + 5 + 255 - 16}, // a root
	} {
		s := ScoreOf(c.url, c.inbound, c.submitted)
		if got := s.Sum(); got != c.want {
			t.Errorf("%s, %d links, %d submissions: got %d, want %d: %s", c.url, c.inbound, c.submitted, got, c.want, s)
		}
		total := 0
		for _, p := range s.parts() {
			total += p.n
		}
		if total != s.Sum() {
			t.Errorf("%s: the parts are %d, the sum %d", c.url, total, s.Sum())
		}
	}
}

// TestScoreWhy: what is told of a winner.
func TestScoreWhy(t *testing.T) {
	a := ScoreOf("http://host.company.com/a.html", 0, 0)
	b := ScoreOf("http://host.lcs.mit.edu/mirrors/company/a.html", 0, 0)
	if got, want := a.String(), "ending=5 path=248 name=20 scheme=5 port=5 host=239"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := a.Over(b), "path=248>232"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := a.Over(a), "the first by name of equals"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
