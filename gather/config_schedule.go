package gather

import (
	"slices"
	"strings"
	"time"

	"harvest/fs/ndb"
)

// A schedule says when visits begin by themselves.
type schedule struct {
	every time.Duration   // after the end of the last; 0: not by this
	at    []time.Duration // times of the day, in UTC, ascending
	byAge bool            // a visit asks for what is likely to have changed only
}

// clock reads times of the day, with commas between them: at=03:00,15:30.
func clock(e ndb.Entry, p ndb.Pair) (at []time.Duration, err error) {
	for s := range strings.SplitSeq(p.Value, ",") {
		t, err := time.Parse("15:04", strings.TrimSpace(s))
		if err != nil {
			return nil, e.Errorf(p, "at: '%s' is no time of the day such as 03:30, in UTC", s)
		}
		at = append(at, time.Duration(t.Hour())*time.Hour+time.Duration(t.Minute())*time.Minute)
	}
	slices.Sort(at)
	return slices.Compact(at), nil
}

// next is when a visit is due, given when the last ended and since when the
// schedule has been in force; zero if none is. A time of the day that went by
// since then, while nothing ran, is made up for.
func (s *schedule) next(last, since time.Time) time.Time {
	var due time.Time
	if s.every > 0 {
		due = last.Add(s.every)
	}
	if len(s.at) == 0 {
		return due
	}
	if last.Before(since) {
		last = since
	}
	if t := s.clockAfter(last); s.every == 0 || t.Before(due) {
		due = t
	}
	return due
}

// clockAfter is the first of the times of the day after t.
func (s *schedule) clockAfter(t time.Time) time.Time {
	t = t.UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	for _, at := range s.at {
		if d := day.Add(at); d.After(t) {
			return d
		}
	}
	return day.AddDate(0, 0, 1).Add(s.at[0])
}
