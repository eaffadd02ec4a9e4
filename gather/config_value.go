package gather

import (
	"strconv"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// number reads a limit; "unlimited" is none, which is said by a number.
func number(e ndb.Entry, p ndb.Pair, none int) (int, error) {
	if p.Value == "unlimited" {
		return none, nil
	}
	n, err := e.Int(p)
	if err == nil && (n < 0 || n > 1<<30) {
		err = e.Errorf(p, "%s: %d is out of range", p.Key, n)
	}
	return n, err
}

// quantity is number for what 0 would make nothing of.
func quantity(e ndb.Entry, p ndb.Pair, none int) (int, error) {
	n, err := number(e, p, none)
	if err == nil && n == 0 && p.Value != "unlimited" {
		err = e.Errorf(p, "%s: 0 would gather nothing; for no limit write unlimited", p.Key)
	}
	return n, err
}

func atLeast(e ndb.Entry, p ndb.Pair, least time.Duration) (time.Duration, error) {
	d, err := e.Duration(p)
	if err == nil && d < least {
		err = e.Errorf(p, "%s: %s is less than %s", p.Key, d, least)
	}
	return d, err
}

// either reads one of two words, and reports whether it is the first.
func either(e ndb.Entry, p ndb.Pair, yes, no string) (bool, error) {
	if p.Value != yes && p.Value != no {
		return false, e.Errorf(p, "%s: '%s' is neither %s nor %s", p.Key, p.Value, yes, no)
	}
	return p.Value == yes, nil
}

// header reads what is sent as a header: printable ASCII.
func header(e ndb.Entry, p ndb.Pair) (string, error) {
	if p.Value == "" || strings.ContainsFunc(p.Value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", e.Errorf(p, "%s: '%s' is not printable ASCII", p.Key, p.Value)
	}
	return p.Value, nil
}

// guard reads how much a visit may delete: a share of what is there, as in 10%,
// or a number of documents.
func guard(e ndb.Entry, p ndb.Pair) (crawl.Guard, error) {
	share, percent := strings.CutSuffix(p.Value, "%")
	switch n, err := strconv.ParseFloat(share, 64); {
	case p.Value == "unlimited":
		return crawl.Guard{}, nil
	case percent && err == nil && n > 0 && n <= 100:
		return crawl.Guard{Share: n / 100}, nil
	case percent:
		return crawl.Guard{}, e.Errorf(p, "maxdelete: '%s' is no share; write one such as 10%%", p.Value)
	}
	n, err := number(e, p, 0)
	return crawl.Guard{Share: leastShare, Floor: n}, err
}

// leastShare is a share that any deletion is more than, so that only the
// number counts.
const leastShare = 1e-12

// parameters reads names of parameters of queries, with commas between them;
// "tracking" stands for those that are known.
func parameters(e ndb.Entry, p ndb.Pair) (names []string, err error) {
	for n := range strings.SplitSeq(p.Value, ",") {
		n = strings.TrimSpace(n)
		switch {
		case n == "tracking":
			names = append(names, crawl.Tracking()...)
		case strings.Trim(n, "*") == "" || strings.ContainsAny(strings.TrimSuffix(n, "*"), "*&=?# "):
			return nil, e.Errorf(p, "strip: '%s' is not the name of a parameter", n)
		default:
			names = append(names, n)
		}
	}
	return names, nil
}

// limit reads a line of limits:
//
//	limit body=64M time=1m pages=16 files=4 connections=2 tries=3 wait=5m
func (c *config) limit(e ndb.Entry) (err error) {
	if kind := e.First(); kind.Value != "" {
		return e.Errorf(kind, "limit: takes no value; write body=%s", kind.Value)
	}
	seen := make(map[string]bool)
	for _, p := range e.Pairs[1:] {
		if seen[p.Key] || c.limitIsSet(p.Key) {
			return e.Errorf(p, "limit: %s is there twice", p.Key)
		}
		seen[p.Key] = true
		if err := c.limitSetting(e, p); err != nil {
			return err
		}
	}
	return nil
}

// limitIsSet reports whether a line before has set a limit.
func (c *config) limitIsSet(key string) bool {
	l := &c.limits
	switch key {
	case "body":
		return l.Body != 0
	case "time":
		return l.Time != 0
	case "wait":
		return l.Wait != 0
	case "tries":
		return l.Tries != 0
	case "pages":
		return l.Pages != 0
	case "files":
		return l.Files != 0
	case "connections":
		return l.Servers != 0
	}
	return false
}

func (c *config) limitSetting(e ndb.Entry, p ndb.Pair) (err error) {
	l := &c.limits
	count := func(to *int, most int) {
		if *to, err = e.Int(p); err == nil && (*to < 1 || *to > most) {
			err = e.Errorf(p, "limit: %s is from 1 to %d", p.Key, most)
		}
	}
	switch p.Key {
	case "body":
		if l.Body, err = e.Size(p); err == nil && l.Body < 1 {
			err = e.Errorf(p, "limit: body of 0 bytes would gather nothing")
		}
	case "time":
		l.Time, err = atLeast(e, p, time.Second)
	case "wait":
		l.Wait, err = atLeast(e, p, time.Second)
	case "tries":
		count(&l.Tries, 100)
	case "pages":
		count(&l.Pages, 10_000)
	case "files":
		count(&l.Files, 1000)
	case "connections":
		count(&l.Servers, 100)
	default:
		err = e.Errorf(p, "limit: unknown key '%s'; there are body, time, wait, tries, pages, files and connections", p.Key)
	}
	return err
}
