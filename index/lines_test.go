package index

import (
	"fmt"
	"strings"
	"testing"

	"harvest/index/query"
)

// marked is a line with its attribute, its errors if it has any, and brackets
// around what matches.
func marked(l Line) string {
	text, at := "", 0
	for _, r := range l.Ranges {
		text += l.Text[at:r[0]] + "[" + l.Text[r[0]:r[1]] + "]"
		at = r[1]
	}
	if text += l.Text[at:]; l.Errors > 0 {
		text += fmt.Sprintf(" (%d)", l.Errors)
	}
	return l.Attr + ": " + text
}

func TestLines(t *testing.T) {
	fields := []Field{
		{"Title", "The Kernel of Größe"},
		{"body", "\tThe kernel, a kernal.\r\nNo match\nspin_lock (spin lock)\nfile\nsystem spin\nlock 日本語 net/http\n"},
		{"size", "10"},
	}
	weight := func(attr string) float64 {
		if attr == "size" {
			return 0
		}
		return 1
	}
	for _, tt := range []struct {
		query string
		opt   Options
		want  string
	}{
		{"kernel", Options{}, "Title: The [Kernel] of Größe|body: The [kernel], a kernal."},
		{"kernel", Options{Case: true}, "body: The [kernel], a kernal."},
		{"title : kernel and not (body : match)", Options{}, "Title: The [Kernel] of Größe"},
		{"kernel~1", Options{}, "Title: The [Kernel] of Größe|body: The [kernel], a [kernal]."},
		{"kernol~1", Options{}, "Title: The [Kernel] of Größe (1)|body: The [kernel], a [kernal]. (1)"},
		{"grosse", Options{}, "Title: The Kernel of [Größe]"},
		{"spin_lock", Options{}, "body: [spin_lock] ([spin lock])|body: system [spin]"},
		{"spin_lok~1", Options{}, "body: [spin_lock] (spin lock) (1)"},
		{`"spin lock"`, Options{}, "body: [spin_lock] ([spin lock])|body: system [spin]"},
		{`"file system"`, Options{}, "body: [file]"},
		{"ker*", Options{}, "Title: The [Kernel] of Größe|body: The [kernel], a [kernal]."},
		{"/l.ck/t", Options{}, "body: spin_[lock] (spin [lock])|body: [lock] 日本語 net/http"},
		{`"No mtach"~1`, Options{}, "body: [No match] (1)"},
		{"本語", Options{}, "body: lock 日[本語] net/http"},
		{"net/http", Options{}, "body: lock 日本語 [net/http]"},
		{"a near/2 the", Options{}, "body: [The] kernel, [a] kernal."},
		{"the adj/2 a", Options{}, "body: [The] kernel, [a] kernal."},
		{"10 or size > 5", Options{}, ""},
		{"size : 10", Options{}, "size: [10]"},
		{"not kernel", Options{}, ""},
		{"lock kernel", Options{}, "Title: The [Kernel] of Größe|body: The [kernel], a kernal.|body: spin_[lock] (spin [lock])|body: [lock] 日本語 net/http"},
	} {
		q, err := query.Parse(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		tt.opt.Weight = weight
		var got []string
		Lines(q, tt.opt, fields, 80, func(l Line) bool {
			got = append(got, marked(l))
			return true
		})
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, s, tt.want)
		}
	}
}

// A long line is cut around its match, and Lines ends when it is told to.
func TestLinesCut(t *testing.T) {
	text := strings.Repeat("größe ", 50) + "kernel " + strings.Repeat("größe ", 50)
	n := 0
	Lines(query.Word{Text: "kernel"}, Options{}, []Field{{"a", text}, {"a", text}}, 60, func(l Line) bool {
		if n++; len(l.Text) > 60 || len(l.Ranges) != 1 || l.Text[l.Ranges[0][0]:l.Ranges[0][1]] != "kernel" {
			t.Errorf("got %q %v, want 60 bytes with kernel in them", l.Text, l.Ranges)
		}
		return false
	})
	if n != 1 {
		t.Errorf("got %d lines, want 1", n)
	}
}
