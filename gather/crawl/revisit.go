package crawl

import "time"

// Bounds of the time after which a document is asked for again by its age.
const (
	soonest = time.Hour
	latest  = 30 * 24 * time.Hour
)

// ByAge is a Plan.Revisit: what has not changed for long will not change soon.
// A document is asked for again after half of the time for which it had been as
// it is when it was last looked at, but not before an hour and not after 30
// days. One whose age nobody knows is asked for at each visit.
func ByAge(d *Doc) time.Time {
	changed := d.Changed
	if changed.IsZero() || d.Checked.IsZero() || changed.After(d.Checked) {
		return time.Time{}
	}
	if m := parseDate(d.Modified); !m.IsZero() && m.Before(changed) {
		changed = m // it was old when it was found
	}
	wait := d.Checked.Sub(changed) / 2
	return d.Checked.Add(min(max(wait, soonest), latest))
}
