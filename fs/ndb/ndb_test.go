package ndb

import (
	"errors"
	iofs "io/fs"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want []Entry
	}{
		{"", nil},
		{"\n \t\n# all of it\n", nil},
		{"refresh\n", []Entry{{1, []Pair{{"refresh", "", 1}}}}},
		{"refresh", []Entry{{1, []Pair{{"refresh", "", 1}}}}},
		{"every=6h # now and then", []Entry{{1, []Pair{{"every", "6h", 1}}}}},
		{"root url=http://a/#frag depth=4\r\n", []Entry{{1, []Pair{{"root", "", 1}, {"url", "http://a/#frag", 6}, {"depth", "4", 25}}}}},
		{"\n\n\tallow\t'*.go'", []Entry{{3, []Pair{{"allow", "", 2}, {"*.go", "", 8}}}}},
		{"filter='type : html'", []Entry{{1, []Pair{{"filter", "type : html", 1}}}}},
		{"a='it''s' b", []Entry{{1, []Pair{{"a", "it's", 1}, {"b", "", 11}}}}},
		{"a=b=c", []Entry{{1, []Pair{{"a", "b=c", 1}}}}},
		{"a='' b=", []Entry{{1, []Pair{{"a", "", 1}, {"b", "", 6}}}}},
		{"'a=b'=c d'='e", []Entry{{1, []Pair{{"a=b", "c", 1}, {"d=e", "", 9}}}}},
		{"'#a' ''", []Entry{{1, []Pair{{"#a", "", 1}, {"", "", 6}}}}},
		{"name=Zoë next=1", []Entry{{1, []Pair{{"name", "Zoë", 1}, {"next", "1", 10}}}}},
		{"a\nb\n", []Entry{{1, []Pair{{"a", "", 1}}}, {2, []Pair{{"b", "", 1}}}}},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%q): got %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

func TestParseError(t *testing.T) {
	tests := []struct{ text, want string }{
		{"a='b", "line 1, column 1: quote is not closed"},
		{"ok\nname=Zoë url='http://\nmore", "line 2, column 10: quote is not closed"},
		{"\n\n  =4", "line 3, column 3: no key before '='; a pair is written key=value, without blanks"},
		{"depth = 4", "line 1, column 7: no key before '='; a pair is written key=value, without blanks"},
		{"'a' 'b\nc'", "line 1, column 5: quote is not closed"},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if err == nil || err.Error() != tt.want || got != nil {
			t.Errorf("Parse(%q): got %v, %v, want %s", tt.text, got, err, tt.want)
		}
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("Parse(%q): got a %T, want an *Error of class ErrInvalid", tt.text, err)
		}
	}
}

func TestEntry(t *testing.T) {
	e, err := ParseLine("source path=a path=b every", 7)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.First().Key; got != "source" {
		t.Errorf("First: got %q, want source", got)
	}
	if v, ok := e.Get("path"); v != "a" || !ok {
		t.Errorf("Get path: got %q, %t, want the first", v, ok)
	}
	if v, ok := e.Get("every"); v != "" || !ok {
		t.Errorf("Get every: got %q, %t, want an empty value", v, ok)
	}
	if _, ok := e.Get("paths"); ok {
		t.Error("Get paths: got a value, want none")
	}
	if _, ok := e.Pair("b"); ok {
		t.Error("Pair b: got a pair for a value")
	}
	var got []string
	for p := range e.All("path") {
		got = append(got, p.Value)
	}
	if strings.Join(got, " ") != "a b" {
		t.Errorf("All path: got %q, want a b", got)
	}
	p, _ := e.Pair("every")
	err = e.Errorf(p, "%s: unknown key", p.Key)
	if got, want := err.Error(), "line 7, column 22: every: unknown key"; got != want {
		t.Errorf("Errorf: got %v, want %v", got, want)
	}
	if !errors.Is(err, iofs.ErrInvalid) {
		t.Error("Errorf: not of the class ErrInvalid")
	}
	if line, col := err.(*Error).Position(); line != 7 || col != 22 {
		t.Errorf("Position: got %d, %d, want 7, 22", line, col)
	}
	err = e.Errorf(Pair{}, "path: %w", syscall.EBUSY)
	if got, want := err.Error(), "line 7, column 1: path: device or resource busy"; got != want {
		t.Errorf("Errorf: got %v, want %v", got, want)
	}
	if !errors.Is(err, syscall.EBUSY) || errors.Is(err, iofs.ErrInvalid) {
		t.Error("Errorf: the class is not that of what it wraps")
	}
	if got := (Entry{}).First(); got != (Pair{}) {
		t.Errorf("First of nothing: got %v", got)
	}
}

func TestValues(t *testing.T) {
	duration := func(e Entry, p Pair) (any, error) { return e.Duration(p) }
	number := func(e Entry, p Pair) (any, error) { return e.Int(p) }
	yes := func(e Entry, p Pair) (any, error) { return e.Bool(p) }
	size := func(e Entry, p Pair) (any, error) { return e.Size(p) }
	tests := []struct {
		line string
		get  func(Entry, Pair) (any, error)
		want any
		err  string
	}{
		{"every=6h", duration, 6 * time.Hour, ""},
		{"every=0", duration, time.Duration(0), ""},
		{"every=-1s", duration, nil, "line 1, column 1: every: -1s is not a duration such as 30s or 720h"},
		{"  every=6", duration, nil, "line 1, column 3: every: 6 is not a duration such as 30s or 720h"},
		{"every", duration, nil, "line 1, column 1: every: '' is not a duration such as 30s or 720h"},
		{"depth=-4", number, -4, ""},
		{"depth='4 or 5'", number, nil, "line 1, column 1: depth: '4 or 5' is not a number"},
		{"depth=99999999999999999999", number, nil, "line 1, column 1: depth: 99999999999999999999 is not a number"},
		{"fulltext=yes", yes, true, ""},
		{"fulltext", yes, true, ""},
		{"fulltext=no", yes, false, ""},
		{"fulltext=true", yes, nil, "line 1, column 1: fulltext: true is not yes or no"},
		{"max=512", size, int64(512), ""},
		{"max=64K", size, int64(64 << 10), ""},
		{"max=3M", size, int64(3 << 20), ""},
		{"max=2G", size, int64(2 << 30), ""},
		{"max=1T", size, int64(1 << 40), ""},
		{"max=9223372036854775807", size, int64(1<<63 - 1), ""},
		{"max=9223372036854775808", size, nil, "line 1, column 1: max: 9223372036854775808 is not a size such as 512, 64K or 2G"},
		{"max=8388608T", size, nil, "line 1, column 1: max: 8388608T is not a size such as 512, 64K or 2G"},
		{"max=-1", size, nil, "line 1, column 1: max: -1 is not a size such as 512, 64K or 2G"},
		{"max=K", size, nil, "line 1, column 1: max: K is not a size such as 512, 64K or 2G"},
		{"max", size, nil, "line 1, column 1: max: '' is not a size such as 512, 64K or 2G"},
	}
	for _, tt := range tests {
		e, err := ParseLine(tt.line, 1)
		if err != nil {
			t.Fatalf("ParseLine(%q): %v", tt.line, err)
		}
		got, err := tt.get(e, e.First())
		if tt.err == "" && (err != nil || got != tt.want) {
			t.Errorf("%q: got %v, %v, want %v", tt.line, got, err, tt.want)
		}
		if tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("%q: got %v, %v, want %s", tt.line, got, err, tt.err)
		}
	}
}

func TestFormat(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 999, time.FixedZone("CET", 3600))
	tests := []struct {
		pairs []Pair
		want  string
	}{
		{nil, ""},
		{[]Pair{Of("state", "idle"), Of("objects", 12)}, "state=idle objects=12"},
		{[]Pair{Of("root", ""), Of("title", "it's")}, "root title='it''s'"},
		{[]Pair{Of("at", at), Of("never", time.Time{})}, "at=2026-03-01T11:00:00Z never"},
		{[]Pair{Of("on", true), Of("off", false), Of("for", 90*time.Second)}, "on=yes off=no for=1m30s"},
		{[]Pair{Of("a b", "c=d"), Of("x==y", "#1"), Of("'=", "z"), Of("", "z")}, "'a b'=c=d 'x==y'='#1' '''='=z ''=z"},
		{[]Pair{Of("two", "lines\nof it")}, "two='lines of it'"},
	}
	for _, tt := range tests {
		if got := Format(tt.pairs...); got != tt.want {
			t.Errorf("Format(%v): got %s, want %s", tt.pairs, got, tt.want)
		}
	}
}

// FuzzParse holds that whatever parses is written and read again the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "refresh", "root url=http://a/ depth=4 # c", "a='it''s' 'b c'=d'='", "=", "a='", "\xff='\x00'", "é=1\r\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 || e.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("got %v, want an *Error in the text", err)
			}
			return
		}
		for _, e := range entries {
			if len(e.Pairs) == 0 {
				t.Fatalf("line %d: got an entry without pairs", e.Line)
			}
			line := e.String()
			again, err := ParseLine(line, e.Line)
			if err != nil {
				t.Fatalf("%q: got %v, want it to parse", line, err)
			}
			same(t, again.Pairs, e.Pairs)
		}
	})
}

// FuzzFormat holds that what is written is read the same.
func FuzzFormat(f *testing.F) {
	f.Add("root", "", "url", "http://a/")
	f.Add("a=b", "it's", "#", "\r\t ")
	f.Add("", "", "'", "''")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		want := []Pair{{k1, v1, 0}, {k2, v2, 0}}
		line := Format(want...)
		if strings.Contains(line, "\n") {
			t.Fatalf("%q: more than one line", line)
		}
		got, err := Parse(line)
		if err != nil || len(got) != 1 {
			t.Fatalf("%q: got %v, %v, want one entry", line, got, err)
		}
		for i, p := range want {
			want[i] = Pair{strings.ReplaceAll(p.Key, "\n", " "), strings.ReplaceAll(p.Value, "\n", " "), 0}
		}
		same(t, got[0].Pairs, want)
	})
}

func same(t *testing.T, got, want []Pair) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i].Key != want[i].Key || got[i].Value != want[i].Value {
			t.Fatalf("pair %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func BenchmarkParse(b *testing.B) {
	const line = "root url=https://go.dev/doc/ depth=4 urls=2000 title='The Go ''docs'''\n"
	text := strings.Repeat(line, 1000)
	b.Run("lines=1000", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
