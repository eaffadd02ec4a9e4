package dup

import (
	"net/netip"
	"strconv"
	"strings"
)

// Of documents with the same content one is kept, and which is told by figure
// 4.3 of Pinkerton's dissertation on WebCrawler (University of Washington, 2000),
// where it "did not change during two years of use":
//
//	15  if the document has ever been submitted, and 5 each time
//	 7  if any other document links to it, and 3 for each such link
//	 7  if the URL ends in /, or 5 if it ends in .html
//	20  if the host is a name and no address
//	 5  if it starts with www.
//	 5  if the scheme is http, or https
//	 5  if the port is 80
//	 1  for each byte by which the path is shorter than 255
//	 1  for each byte by which the host is shorter than 255
//
// The path is what follows the host, query and all. What has no host, as a file,
// has nothing for one.
type Score struct {
	submitted, inbound, ending, name, www, scheme, port, path, host int
}

// maxScored is the length from which on a path or a host is worth nothing.
const maxScored = 255

// ScoreOf scores a document: its canonical URL, how many links there are from
// other documents, and how often it was submitted.
func ScoreOf(url string, inbound, submitted int) Score {
	scheme, _, _ := strings.Cut(url, "://")
	host, path := SplitHost(url)
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, port = host[:i], host[i+1:]
	}
	s := Score{path: max(0, maxScored-len(path))}
	if submitted > 0 {
		s.submitted = 15 + 5*submitted
	}
	if inbound > 0 {
		s.inbound = 7 + 3*inbound
	}
	switch {
	case strings.HasSuffix(url, "/"):
		s.ending = 7
	case strings.HasSuffix(url, ".html"):
		s.ending = 5
	}
	if scheme == "http" || scheme == "https" {
		s.scheme = 5
	}
	if port == "80" || port == "" && scheme == "http" {
		s.port = 5
	}
	if host == "" {
		return s
	}
	s.host = max(0, maxScored-len(host))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
		s.name = 20
	}
	if strings.HasPrefix(host, "www.") {
		s.www = 5
	}
	return s
}

// SplitHost cuts a canonical URL into its host, port and all, and what follows.
func SplitHost(url string) (host, path string) {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[:i], rest[i:]
	}
	return rest, ""
}

// Sum is the score.
func (s Score) Sum() int {
	return s.submitted + s.inbound + s.ending + s.name + s.www + s.scheme + s.port + s.path + s.host
}

// String names what the score is made of, as in "path=248 ending=5 host=239".
func (s Score) String() string {
	var b strings.Builder
	for _, p := range s.parts() {
		if p.n == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.name + "=" + strconv.Itoa(p.n))
	}
	return b.String()
}

type part struct {
	name string
	n    int
}

func (s Score) parts() []part {
	return []part{
		{"submitted", s.submitted}, {"inbound", s.inbound}, {"ending", s.ending}, {"path", s.path}, {"name", s.name},
		{"www", s.www}, {"scheme", s.scheme}, {"port", s.port}, {"host", s.host},
	}
}

// Over names what a winner has more of than a loser, as in "path=248>232".
func (s Score) Over(loser Score) string {
	var why []string
	l := loser.parts()
	for i, p := range s.parts() {
		if p.n > l[i].n {
			why = append(why, p.name+"="+strconv.Itoa(p.n)+">"+strconv.Itoa(l[i].n))
		}
	}
	if s.Sum() == loser.Sum() {
		return "the first by name of equals"
	}
	return strings.Join(why, " ")
}
