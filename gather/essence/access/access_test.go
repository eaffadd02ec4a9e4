package access

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"strings"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/gather/essence/jail"
	"harvest/gather/essence/star"
	"harvest/gather/soif"
)

func TestMain(m *testing.M) {
	jail.Main(star.Inside())
	os.Exit(m.Run())
}

func object(method string) soif.Object {
	o := soif.Object{Type: "FILE", URL: "http://h/a"}
	for _, a := range [][2]string{{"Title", "A \xff title"}, {"Author", "Ann"}, {"Author", "Bob"}, {"Abstract", "1 2 3"}, {"access-method-Sum", method}} {
		o.Add(a[0], []byte(a[1]))
	}
	return o
}

func TestRun(t *testing.T) {
	tests := []struct{ method, want, err string }{
		{`def view(o): return o["URL"] + " " + o["Title"]`, "http://h/a A \uFFFD title\n", ""},
		{"def view(o):\n  return sum_of(o['Abstract'].split())\ndef sum_of(l):\n  n = 0\n  for x in l:\n    n += int(x)\n  return n", "6\n", ""},
		{`def view(o): return o["Author"]`, "Ann\nBob\n", ""},
		{`def view(o): return [k for k in o if k.startswith("Access")]`, "", ""},
		{`def view(o): return None`, "", ""},
		{`def view(o): return o["None"]`, "", `method 'sum': 1:22: key "None" not in dict`},
		{`def view(o): return open("/etc/passwd")`, "", "method 'sum': 1:21: undefined: open"},
		{`def view(o): return {}`, "", "a dict is no value"},
		{`def view(o:`, "", "method 'sum': 1:"},
		{"def view(o):\n  for i in range(1000000000):\n    pass", "", "it took "}, // so many steps, or so long
		{`def view(o): return "a" * 1000000000`, "", "method 'sum':"},
		{"def view(o):\n  l = ['a']\n  for i in range(60):\n    l = l + l\n  return l", "", "method 'sum':"},
		{strings.Repeat("#", MaxSource+1), "", "over 8192 bytes"},
	}
	for _, tt := range tests {
		o := object(tt.method)
		got, err := Run(t.Context(), &o, "sum")
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%.60s: got %q, %v, want %q, %s", tt.method, got, err, tt.want, tt.err)
		}
	}
	o := object("")
	if _, err := Run(t.Context(), &o, "none"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want that there is no such method", err)
	}
	if got := strings.Join(Names(&o), ","); got != "Sum" {
		t.Errorf("got %s, want Sum", got)
	}
	if Remove(&o); len(Names(&o)) != 0 || len(o.Attrs) != 4 {
		t.Errorf("got %v, want no methods", o)
	}
}

func TestScripts(t *testing.T) {
	fstest.Scripts(t, "testdata", func(testing.TB, string) (fs.Dir, func()) {
		id := func(part ...string) uint64 { return fs.ID(append([]string{"g"}, part...)...) }
		err := fs.NewErr(id("err"))
		get := func(_ context.Context, oid string) (soif.Object, error) {
			o := object("def view(o): return o['Abstract'].split()")
			switch oid {
			case "0a":
				return o, nil
			case "0b":
				o.Set(Prefix+"sum", []byte("def view(o): return o[1]"))
				o.Set("Full-Text", []byte("all of it"))
				return o, nil
			}
			return o, iofs.ErrNotExist
		}
		s := Source{ID: id, Get: get, Wrong: func(path string, e error) { err.Set(path, "", e) }}
		return fs.Static(fs.RootPath, map[string]fs.Node{"as": Files(s), "err": err}), func() {}
	})
}
