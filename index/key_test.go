package index

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

// kinds are the kinds of a value's keys in order.
func kinds(text string) (out string) {
	Keys(nil, text, func(key []byte) bool {
		out += " ndt"[key[0] : key[0]+1]
		return true
	})
	return out
}

func TestKeyKinds(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), MaxKey))
	for _, tt := range []struct{ text, want string }{
		{"", "t"},
		{"html", "t"},
		{"17", "nt"},
		{" -1.5e3\n", "nt"},
		{".5", "nt"},
		{"10K", "nt"},
		{"3m", "nt"},
		{"K", "t"},
		{"+", "t"},
		{"inf", "t"},
		{"NaN", "t"},
		{"0x10", "t"},
		{"1_000", "t"},
		{"1e999", "t"},
		{"2006", "ndt"},
		{"2006-01", "dt"},
		{"2006-13", "t"},
		{"2006-01-02", "dt"},
		{"2006-01-02 15:04:05", "dt"},
		{"2006-01-02T15:04:05+07:00", "dt"},
		{"Mon, 02 Jan 2006 15:04:05 GMT", "dt"},
		{"Mon, 02 Jan 2006 15:04:05 -0700", "dt"},
		{"99999999", "nt"},
		{"100000000", "ndt"},
		{"-100000000", "nt"},
		{long, "t"},
		{long + "x", ""},
	} {
		if got := kinds(tt.text); got != tt.want {
			t.Errorf("%q: got keys %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestKeyText(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"  The  Plan\n\t9 ", "the plan 9"},
		{"Größe", "grosse"},
		{"a  b", "a b"},
		{"A\tB", "a b"},
		{"é\u00a0 à", "e a"},
	} {
		var got string
		Keys(nil, tt.text, func(key []byte) bool {
			got = string(key[1:])
			return true
		})
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Keys of numbers sort as the numbers.
func FuzzKeyNumber(f *testing.F) {
	for _, x := range []float64{0, 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-300} {
		f.Add(x, -x)
		f.Add(x, x/2)
	}
	f.Fuzz(func(t *testing.T, a, b float64) {
		if math.IsNaN(a) || math.IsNaN(b) {
			return
		}
		x, y := appendNumber(nil, a), appendNumber(nil, b)
		want := 0
		if a < b {
			want = -1
		} else if a > b {
			want = 1
		}
		if got := bytes.Compare(x, y); got != want {
			t.Errorf("%v with %v: got %d, want %d", a, b, got, want)
		}
		if back := keyNumber(x); back != a {
			t.Errorf("got %v back, want %v", back, a)
		}
	})
}

func TestKeyDateOrder(t *testing.T) {
	texts := []string{"0001-01-01", "1969-12-31", "1970", "100000000", "2006-01-02T15:04:05.5Z", "2006-01-02 15:04:06",
		"Mon, 02 Jan 2006 15:04:07 GMT", "2006-01-02T15:04:08-07:00", "2006-02", "9999-12-31"}
	var keys [][]byte
	for _, s := range texts {
		at, ok := dateValue(s)
		if !ok {
			t.Fatalf("%s: not a date", s)
		}
		keys = append(keys, appendDate(nil, at))
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Errorf("got keys %x, want them in order", keys)
	}
}

func TestKeyRange(t *testing.T) {
	unix := strconv.FormatInt(time.Date(2006, 1, 2, 0, 0, 0, 0, time.UTC).Unix(), 10)
	for _, tt := range []struct {
		op, literal string
		yes, no     []string
	}{
		{"=", "html", []string{"HTML", " html "}, []string{"xhtml", "", "htm"}},
		{"=", "10", []string{"10", "10.0", "1e1"}, []string{"100", "9", "ten"}},
		{"=", "2K", []string{"2048", "2k"}, []string{"2000"}},
		{">", "1000", []string{"1001", "1K"}, []string{"1000", "999", "x", "2006-01-02"}},
		{">=", "1000", []string{"1000"}, []string{"999"}},
		{"<", "-1.5", []string{"-2"}, []string{"-1.5", "0", "-1"}},
		{"<=", "-1.5", []string{"-1.5"}, []string{"-1"}},
		{"<", "2006-01-03", []string{"2006-01-02", unix, "2006", "Mon, 02 Jan 2006 15:04:05 GMT"}, []string{"2006-01-03", "1", "a"}},
		{"=", "2006-01-02", []string{"2006-01-02", unix, "2006-01-02T01:00:00+01:00"}, []string{"2006-01-03"}},
		{">", "2006", []string{"2007", unix}, []string{"2006", "2007-05-01"}},
		{">", "plan", []string{"plan 9", "q"}, []string{"plan", "o", "9"}},
		{"=", "", []string{"", " "}, []string{"x", "0"}},
		{"<", "", nil, []string{"", "x", "0"}},
		{">=", "", []string{"", "x", "0"}, nil},
	} {
		r := newCompare(tt.op, tt.literal)
		checkRange(t, tt.op+" "+tt.literal, r, tt.yes, tt.no)
	}
	for _, tt := range []struct {
		low, high string
		yes, no   []string
	}{
		{"10", "20", []string{"10", "15.5", "20"}, []string{"9", "21", "150", "x"}},
		{"10", "", []string{"10", "1e9"}, []string{"9", "x"}},
		{"", "10", []string{"10", "-1e9"}, []string{"11", "x"}},
		{"2005", "2006-06", []string{"2005", unix, "2006-06"}, []string{"2007", "2006-06-02", "3"}},
		{"2005", "2007", []string{"2006"}, []string{"2006-01-02", unix}},
		{"a", "c", []string{"a", "b", "c"}, []string{"cc", "1"}},
		{"", "", []string{"", "a", "1"}, nil},
	} {
		checkRange(t, tt.low+".."+tt.high, newRange(tt.low, tt.high), tt.yes, tt.no)
	}
}

func checkRange(t *testing.T, name string, r keyRange, yes, no []string) {
	t.Helper()
	for _, v := range yes {
		if ok, _ := r.match(nil, v); !ok {
			t.Errorf("%s: %q does not match, want it to", name, v)
		}
	}
	for _, v := range no {
		if ok, _ := r.match(nil, v); ok {
			t.Errorf("%s: %q matches, want it not to", name, v)
		}
	}
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{"", "17", "2006-01-02", "Mon, 02 Jan 2006 15:04:05 GMT", "10K", "Größe", "-", "+.", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		last := byte(0)
		Keys(nil, s, func(key []byte) bool {
			if key[0] <= last || key[0] > KeyText {
				t.Errorf("%q: got kind %d after %d", s, key[0], last)
			}
			last = key[0]
			return true
		})
		if (last == KeyText) != (len(s) <= MaxKey) {
			t.Errorf("%q of %d bytes: got last kind %d", s, len(s), last)
		}
	})
}
