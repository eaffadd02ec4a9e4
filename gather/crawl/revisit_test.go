package crawl

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
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

// TestWhole: what is queued by hand moves no schedule, and a record of before
// there was a difference says the same for both.
func TestWhole(t *testing.T) {
	f, err := OpenDB(filepath.Join(t.TempDir(), "crawl.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	was := Visited{Number: 7, Started: time.Unix(1e9, 0), Ended: time.Unix(1e9+60, 0), Whole: time.Unix(1e9-60, 0)}
	for _, c := range []struct {
		n    int // bytes of the record
		want time.Time
	}{{40, was.Whole}, {32, was.Ended}, {31, time.Time{}}} {
		if err := f.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(metaBucket).Put([]byte("visit"), was.append(nil)[:c.n])
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Visited(); err != nil || !got.Whole.Equal(c.want) {
			t.Errorf("%d bytes: got %v, %v, want %v", c.n, got.Whole, err, c.want)
		}
	}
}
