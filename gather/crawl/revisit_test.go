package crawl

import (
	"testing"
	"time"
)

func TestByAge(t *testing.T) {
	at := func(hours float64) time.Time {
		return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hours * float64(time.Hour)))
	}
	for name, c := range map[string]struct {
		d    Doc
		want time.Time
	}{
		"never looked at":      {Doc{Changed: at(0)}, time.Time{}},
		"age not known":        {Doc{Checked: at(0)}, time.Time{}},
		"just changed":         {Doc{Changed: at(100), Checked: at(100)}, at(101)},
		"for four hours":       {Doc{Changed: at(100), Checked: at(104)}, at(106)},
		"for ten days":         {Doc{Changed: at(0), Checked: at(240)}, at(360)},
		"for a year":           {Doc{Changed: at(0), Checked: at(8760)}, at(8760 + 720)},
		"old when it was met":  {Doc{Changed: at(100), Checked: at(100), Modified: "Mon, 01 Jan 2024 00:00:00 GMT"}, at(150)},
		"of the future":        {Doc{Changed: at(100), Checked: at(110), Modified: "Mon, 01 Jan 2035 00:00:00 GMT"}, at(115)},
		"times that cannot be": {Doc{Changed: at(100), Checked: at(90)}, time.Time{}},
	} {
		if got := ByAge(&c.d); !got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
