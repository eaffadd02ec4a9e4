package replica

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/replica/topology"
)

// A sheet is what one member measured of others, under its signature: a line a link,
//
//	link to=01f3… path=tcp!b!5640/replica/papers rtt=20ms bandwidth=1250000
//	link to=77a0… path=tcp!c!5640/replica/papers down=yes
//
// with to= by whom it is signed there, and path= as the member knows it.
type sheet struct {
	signed
	links map[Writer]topology.Link
	heard time.Time // when it came, by the clock here
}

// What a sheet, and the file of all of them, may have.
const (
	maxSheets = 1000
	maxLinks  = 1000
	maxSheet  = 1 << 18
)

// A measured link is one line of a sheet to be.
type measured struct {
	to   Writer
	path string
	link topology.Link
}

func sheetBody(links []measured) string {
	var b strings.Builder
	for _, l := range links {
		pairs := []ndb.Pair{ndb.Of("link", ""), ndb.Of("to", l.to), ndb.Of("path", l.path)}
		if l.link.Down {
			pairs = append(pairs, ndb.Of("down", true))
		} else {
			pairs = append(pairs, ndb.Of("rtt", l.link.RTT.Round(time.Microsecond)), ndb.Of("bandwidth", strconv.FormatFloat(l.link.Bandwidth, 'f', 0, 64)))
		}
		b.WriteString(ndb.Format(pairs...) + "\n")
	}
	return b.String()
}

func parseSheet(text string) (*sheet, error) {
	if len(text) > maxSheet {
		return nil, lief("measured: a sheet of %d bytes", len(text))
	}
	s, err := parseSigned("measured", text)
	if err != nil {
		return nil, err
	}
	sh := &sheet{signed: s, links: make(map[Writer]topology.Link)}
	entries, err := ndb.Parse(s.body)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		to, l, err := parseLink(e)
		if err != nil {
			return nil, err
		}
		if sh.links[to] = l; len(sh.links) > maxLinks {
			return nil, e.Errorf(e.First(), "more than %d links", maxLinks)
		}
	}
	return sh, nil
}

func parseLink(e ndb.Entry) (to Writer, l topology.Link, err error) {
	if e.First().Key != "link" {
		return to, l, e.Errorf(e.First(), "want link")
	}
	p, _ := e.Pair("to")
	if to, err = parseWriter(p.Value); err != nil {
		return to, l, e.Errorf(p, "to: want a writer")
	}
	if p, ok := e.Pair("rtt"); ok {
		if l.RTT, err = e.Duration(p); err != nil {
			return to, l, err
		}
	}
	if p, ok := e.Pair("bandwidth"); ok {
		if l.Bandwidth, err = strconv.ParseFloat(p.Value, 64); err != nil || !(l.Bandwidth >= 0 && l.Bandwidth <= 1e15) {
			return to, l, e.Errorf(p, "bandwidth: want bytes a second")
		}
	}
	if p, ok := e.Pair("down"); ok {
		l.Down, err = e.Bool(p)
	}
	return to, l, err
}

// cutSheets gives the texts of the sheets that follow each other in a file.
func cutSheets(text string) (all []string, err error) {
	begin := 0
	for i := 0; i <= len(text); {
		if i == len(text) || i > begin && strings.HasPrefix(text[i:], "measured ") {
			all = append(all, text[begin:i])
			begin = i
		}
		j := strings.IndexByte(text[i:], '\n')
		if i == len(text) {
			break
		}
		if j < 0 {
			return nil, lief("bandwidth: ends within a line")
		}
		i += j + 1
	}
	if len(all) > maxSheets {
		return nil, lief("bandwidth: %d sheets", len(all))
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" }), nil
}

// takeSheets takes the sheets that are newer than those of the same writers here.
// One that is wrong is the error, with its writer where it has one; the others count.
func (l *links) takeSheets(text string, now time.Time) error {
	all, err := cutSheets(text)
	for _, t := range all {
		s, e := parseSheet(t)
		if e != nil {
			err = e
			continue
		}
		l.take(s, now)
	}
	return err
}

func (l *links) take(s *sheet, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := s.writer()
	if old := l.sheets[w]; old != nil && !s.at.After(old.at) {
		return
	}
	s.heard = now
	if l.sheets[w] = s; len(l.sheets) > maxSheets {
		var oldest Writer
		at := now
		for w, s := range l.sheets {
			if s.heard.Before(at) {
				oldest, at = w, s.heard
			}
		}
		delete(l.sheets, oldest)
	}
}

// text is the file bandwidth: all sheets, in the order of their writers.
func (l *links) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, w := range l.writers() {
		b.WriteString(l.sheets[w].text)
	}
	return b.String()
}

// writers of the sheets, sorted. Called with mu held.
func (l *links) writers() (all []Writer) {
	for w := range l.sheets {
		all = append(all, w)
	}
	slices.SortFunc(all, compareWriters)
	return all
}

// net is the links of some writers, as they measured them.
func (l *links) net(of []Writer) (*topology.Net, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sheets := make(map[string]*sheet)
	var names []string
	for _, w := range of {
		sheets[w.String()], names = l.sheets[w], append(names, w.String())
	}
	w, err := topology.NewNet(names, func(from, to string) (link topology.Link, ok bool) {
		if s, other := sheets[from], sheets[to]; s != nil && other != nil {
			link, ok = s.links[other.writer()]
		}
		return link, ok
	})
	if err != nil {
		return nil, fmt.Errorf("bandwidth: %w", err)
	}
	return w, nil
}
