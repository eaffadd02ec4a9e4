package soif

import (
	"errors"
	iofs "io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	self := []string{"Update-Time", "1", "time-to-live", "60", "Gatherer-Name", "g", "Gatherer-Host", "h", "Gatherer-Version", "1"}
	for _, tt := range []struct {
		typ   string
		attrs []string
		want  string
	}{
		{"FILE", []string{"update-TIME", "784649664"}, ""},
		{"FILE", []string{"Update-Time", "2026-11-21T10:00:00Z"}, ""},
		{"FILE", nil, "http://x/: Update-Time: mandatory attribute is missing"},
		{"FILE", []string{"Update-Time", "now"}, `http://x/: Update-Time: "now" is not a time: neither seconds since 1970 nor RFC 3339`},
		{"FILE", []string{"Update-Time", ""}, `http://x/: Update-Time: "" is not a time: neither seconds since 1970 nor RFC 3339`},
		{"FILE", []string{"Update-Time", "1", "File-Size", "-1"}, `http://x/: File-Size: "-1" is not a number`},
		{"FILE", []string{"Update-Time", "1", "Time-to-Live", "6 months"}, `http://x/: Time-to-Live: "6 months" is not a number of seconds`},
		{"FILE", []string{"Update-Time", "1", "MD5", "0123"}, `http://x/: MD5: "0123" is not 32 hex digits`},
		{"FILE", []string{"Update-Time", "1", "Embed2-Embed1-File-Size", "x"}, `http://x/: Embed2-Embed1-File-Size: "x" is not a number`},
		{"FILE", []string{"Update-Time", "1", "My-Own", "anything"}, ""},
		{"FILE", []string{"Embed1-Update-Time", "1"}, "http://x/: Update-Time: mandatory attribute is missing"},
		{"UNKNOWN", nil, "http://x/: Update-Time: mandatory attribute is missing"},
		{"CURSOR", []string{"Cursor", "1"}, ""},
		{"CURSOR", nil, "http://x/: Cursor: mandatory attribute is missing"},
		{"gatherer", self, ""},
		{"GATHERER", self[:8], "http://x/: Gatherer-Version: mandatory attribute is missing"},
		{"BROKER", self, "http://x/: Broker-Name: mandatory attribute is missing\n" +
			"http://x/: Broker-Host: mandatory attribute is missing\n" +
			"http://x/: Broker-Version: mandatory attribute is missing"},
	} {
		o := object(tt.attrs...)
		o.Type = tt.typ
		err := o.Check()
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), ": "+iofs.ErrInvalid.Error(), "")
			if !errors.Is(err, iofs.ErrInvalid) {
				t.Errorf("%s %q: %v is not of class %v", tt.typ, tt.attrs, err, iofs.ErrInvalid)
			}
		}
		if got != tt.want {
			t.Errorf("%s %q:\n got %s\nwant %s", tt.typ, tt.attrs, got, tt.want)
		}
	}
}

// Every type has an Update-Time, but for the end of a stream; what is declared
// is declared once and says something.
func TestSchemas(t *testing.T) {
	for _, typ := range Types() {
		s, ok := SchemaOf(strings.ToLower(typ))
		if !ok || s.Type != typ || s.Text == "" {
			t.Errorf("%s: got %v, %v", typ, s, ok)
		}
		var names []string
		for _, a := range s.Attrs {
			if a.Text == "" {
				t.Errorf("%s: %s has no text", typ, a.Name)
			}
			if slices.Contains(names, a.Name) {
				t.Errorf("%s: %s is declared twice", typ, a.Name)
			}
			names = append(names, a.Name)
		}
		i := slices.Index(names, "Update-Time")
		if typ != "CURSOR" && (i < 0 || s.Attrs[i].Need != Mandatory) {
			t.Errorf("%s: Update-Time is not mandatory", typ)
		}
		if typ == "FILE" && len(names) != 19 {
			t.Errorf("FILE has %d attributes, want the 19 standard ones", len(names))
		}
	}
	if s, ok := SchemaOf("NEWS"); ok || s.Type != "NEWS" || len(s.Attrs) != 1 {
		t.Errorf("NEWS: got %v, %v", s, ok)
	}
	s, _ := SchemaOf("CURSOR")
	want := "@CURSOR\tthe end of an update stream\nCursor\tmandatory\tany\twhere the next collection goes on\n"
	if s.String() != want {
		t.Errorf("got %q, want %q", s, want)
	}
}

// The names that are read without allocating are those of the standard attributes.
func TestStandardNames(t *testing.T) {
	for _, d := range standards[:19] {
		if got := standard([]byte(d.Name)); got != d.Name {
			t.Errorf("%s: got %q", d.Name, got)
		}
	}
	if got := standard([]byte("title")); got != "" {
		t.Errorf("title: got %q, want none, for its case is kept", got)
	}
}

func TestTimeAndSeconds(t *testing.T) {
	o := object("A", "784649664", "B", "2026-11-21T12:00:00+02:00", "C", "", "D", "-1", "E", "999999999999999999999", "F", "9223372036", "G", "9223372037")
	for _, tt := range []struct {
		name string
		want string
		ok   bool
	}{{"A", "1994-11-12T14:14:24Z", true}, {"B", "2026-11-21T10:00:00Z", true}, {"C", "", false}, {"D", "", false}, {"E", "", false}, {"none", "", false}} {
		got, ok := o.Time(tt.name)
		if ok != tt.ok || ok && got.Format(time.RFC3339) != tt.want {
			t.Errorf("Time(%s): got %v, %v, want %s, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	for _, tt := range []struct {
		name string
		want time.Duration
		ok   bool
	}{{"A", 784649664 * time.Second, true}, {"B", 0, false}, {"C", 0, false}, {"D", 0, false}, {"E", 0, false}, {"F", 9223372036 * time.Second, true}, {"G", 0, false}} {
		if got, ok := o.Seconds(tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("Seconds(%s): got %v, %v, want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestSampleIsValid(t *testing.T) {
	o := sample(rand.New(rand.NewPCG(1, 2)), 1, 2000)
	if err := o.Check(); err != nil {
		t.Error(err)
	}
}
