package crawl

import (
	"strings"
	"time"
)

// Directives are what a page asks of those who gather it, in its X-Robots-Tag
// headers and its META tags: the strictest of all that is for the agent, or for
// everybody.
type Directives struct {
	NoIndex   bool // it is not to be kept
	NoFollow  bool // its links are not to be followed
	NoArchive bool // its text is not to be kept, only what is about it
	// Until is when it is to be no longer kept; zero is never.
	Until time.Time
}

// Excluded returns what in the directives keeps the page out at a time, or "".
func (d *Directives) Excluded(now time.Time) string {
	switch {
	case d.NoIndex:
		return "the page says noindex"
	case !d.Until.IsZero() && !now.Before(d.Until):
		return "the page says unavailable_after " + d.Until.UTC().Format(time.RFC3339)
	}
	return ""
}

// Header adds the value of one X-Robots-Tag header, which may begin with the
// name of the agent that it is for, as in
//
//	noindex, nofollow
//	harvest: noindex
//	unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow
func (d *Directives) Header(value, agent string) {
	ours := true
	for value != "" {
		word, rest, _ := strings.Cut(value, ",")
		if name, _, ok := strings.Cut(word, ":"); ok {
			switch name = strings.ToLower(strings.TrimSpace(name)); {
			case name == "unavailable_after":
				word, rest = d.until(value, ours)
			case !strings.HasPrefix(name, "max-"): // max-snippet: 50
				ours = forAgent(name, agent)
				_, value, _ = strings.Cut(value, ":")
				continue
			}
		}
		if ours {
			d.word(word)
		}
		value = rest
	}
}

// Meta adds the content of a META tag, which counts if its name is robots, or
// the agent's.
func (d *Directives) Meta(name, content, agent string) {
	if forAgent(name, agent) {
		d.Header(strings.ReplaceAll(content, ";", ","), agent)
	}
}

// forAgent reports whether a name, of a META tag or in a header, means an agent.
func forAgent(name, agent string) bool {
	name = strings.TrimSpace(name)
	return strings.EqualFold(name, "robots") || name == "*" || name != "" && strings.EqualFold(name, product(agent))
}

func (d *Directives) word(words string) {
	for w := range strings.FieldsSeq(strings.ToLower(words)) {
		switch w {
		case "noindex":
			d.NoIndex = true
		case "nofollow":
			d.NoFollow = true
		case "none":
			d.NoIndex, d.NoFollow = true, true
		case "noarchive", "nocache":
			d.NoArchive = true
		}
	}
}

// tagDates are the forms of dates after unavailable_after: RFC 822, RFC 850,
// ISO 8601, and what is close to them.
var tagDates = [...]string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02",
	"02 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 MST", "2-Jan-2006 15:04:05 MST", "2 Jan 2006",
	time.RFC1123, time.RFC1123Z, time.RFC850, "Mon, 2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700",
}

// zones are those of RFC 822 and their fellows, which Go knows by name only.
var zones = map[string]int{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2, "BST": 1}

// until reads a date, which may have a comma in it, after unavailable_after. It
// returns what follows, and no word. A date that cannot be read is none.
func (d *Directives) until(value string, ours bool) (word, rest string) {
	_, value, _ = strings.Cut(value, ":")
	for _, commas := range [...]int{1, 0} {
		text, rest := cutComma(value, commas)
		t, ok := tagDate(strings.TrimSpace(text))
		if !ok {
			continue
		}
		if ours && (d.Until.IsZero() || t.Before(d.Until)) {
			d.Until = t
		}
		return "", rest
	}
	_, rest = cutComma(value, 0)
	return "", rest
}

// cutComma cuts s after n commas, at the next.
func cutComma(s string, n int) (before, after string) {
	for i := range len(s) {
		if s[i] != ',' {
			continue
		}
		if n == 0 {
			return s[:i], s[i+1:]
		}
		n--
	}
	return s, ""
}

func tagDate(s string) (time.Time, bool) {
	for _, layout := range tagDates {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if name, offset := t.Zone(); offset == 0 {
			t = t.Add(-time.Duration(zones[name]) * time.Hour)
		}
		return t, true
	}
	return time.Time{}, false
}
