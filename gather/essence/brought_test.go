package essence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// bring makes Programs of files, by name; those of exploders begin with
// "explode/". What fails is put into failed.
func bring(t testing.TB, bounds Bounds, files map[string]string) (p *Programs, failed func() []Failure) {
	t.Helper()
	var all []Brought
	for name, text := range files {
		b := Brought{File: name, Text: text, Bounds: bounds}
		b.File, b.Explode = strings.CutPrefix(name, "explode/")
		if IsProgram(b.File) {
			b.Path = filepath.Join(t.TempDir(), b.File)
			if err := os.WriteFile(b.Path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, b)
	}
	var mu sync.Mutex
	var fails []Failure
	p, err := NewPrograms(all, func(f Failure) {
		mu.Lock()
		defer mu.Unlock()
		fails = append(fails, f)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, func() []Failure {
		mu.Lock()
		defer mu.Unlock()
		return fails
	}
}

// lua is a document of a type that the tests bring summarizers for.
const lua = "-- A greeter\nlocal M = {}\nfunction M.greet(name)\n  print('hello ' .. name)\nend\nfunction M.leave()\nend\nreturn M\n"

func luaInput(p *Programs) Input {
	return Input{URL: "http://site/src/greet.lua", Head: []byte(lua), Programs: p}
}

// fiveLines is a summarizer as a user writes one.
const fiveLines = `#!/bin/sh
# a summarizer in five lines
echo "Title: $(sed -n 's/^-- //p;1q' "$1")"
echo "Keywords: $(sed -n 's/^function M\.\([a-z]*\).*/\1/p' | tr '\n' ' ')"
echo "Comments: $type $name $url $md5"
`

func TestProgram(t *testing.T) {
	p, failed := bring(t, Bounds{}, map[string]string{"Lua.sum": fiveLines})
	o, tr := sum(t, luaInput(p))
	for name, want := range map[string]string{
		"Title": "A greeter", "Keywords": "greet leave",
		"Comments": "Lua greet.lua http://site/src/greet.lua " + o.Text("MD5"), "Type": "Lua", "Summary-Limit": "",
	} {
		if got := o.Text(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(tr.String(), "summarize\t3 attributes\tLua.sum") || len(failed()) > 0 {
		t.Errorf("got trace\n%s and %v", tr, failed())
	}
	f := p.Tallies()["Lua.sum"]
	if f.Runs != 1 || f.Done != 1 || f.Took <= 0 {
		t.Errorf("got %+v", f)
	}
}

// TestProgramFails: what becomes of an object whose summarizer fails is what
// becomes of it without one, and who is to blame is named.
func TestProgramFails(t *testing.T) {
	generic, _ := sum(t, luaInput(nil))
	for name, c := range map[string]struct{ text, want string }{
		"exit":    {"#!/bin/sh\necho Title: half\necho it is broken >&2\nexit 1\n", "exit status 1: it is broken"},
		"hang":    {"#!/bin/sh\necho Title: half\nsleep 100 & sleep 100\n", "killed: it took longer than 300ms"},
		"long":    {"#!/bin/sh\nyes Title: long\n", "killed: it wrote more than 65536 bytes"},
		"garbage": {"#!/bin/sh\necho this is no attribute\n", "what it wrote, line 1: 'this is no attribute' is not of the form 'Name: value'"},
		"soif":    {"#!/bin/sh\necho '@FILE { x'; echo 'Title{100}:\tshort'\n", "what it wrote: "},
		"absent":  {"#!/no/such/interpreter\n", "exec: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			p, failed := bring(t, Bounds{Wall: 300 * time.Millisecond}, map[string]string{"Lua.sum": c.text})
			if name != "hang" {
				p, failed = bring(t, Bounds{}, map[string]string{"Lua.sum": c.text})
			}
			o, _ := sum(t, luaInput(p))
			fails := failed()
			if len(fails) != 1 || fails[0].File != "Lua.sum" || fails[0].URL != "http://site/src/greet.lua" || !strings.Contains(fails[0].Why, c.want) {
				t.Errorf("got %+v, want %s", fails, c.want)
			}
			if got := o.Text("Summary-Limit"); !strings.Contains(got, "Lua.sum: ") || !strings.Contains(got, c.want) {
				t.Errorf("Summary-Limit: got %q", got)
			}
			o.Del("Summary-Limit")
			if !o.Equal(&generic) {
				t.Errorf("got %s, want %s", o.Append(nil), generic.Append(nil))
			}
			if f := p.Tallies()["Lua.sum"]; f.Failed != 1 || !strings.Contains(f.Err, c.want) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// TestOrder: TYPE.sum, TYPE, TYPE.star and TYPE.quick are asked in this order,
// until one says that the object is its own.
func TestOrder(t *testing.T) {
	p, _ := bring(t, Bounds{}, map[string]string{
		"Lua.sum": "#!/bin/sh\nexit 2\n", "Lua": "#!/bin/sh\nexit 2\n",
		"Lua.star":  "def summarize(doc):\n    return None\n",
		"Lua.quick": "Title ^-- (.*)\nKeywords function M\\.(\\w+)\\((\\w*)\\)\n",
	})
	in := luaInput(p)
	in.FullText = true
	o, tr := sum(t, in)
	if o.Text("Title") != "A greeter" || o.Text("Keywords") != "greet name\nleave" || o.Text("Full-Text") != lua {
		t.Errorf("got %s", o.Append(nil))
	}
	want := "summarize\tnot mine\tLua.sum\t\nsummarize\tnot mine\tLua\t\nsummarize\tnot mine\tLua.star\t\nsummarize\t3 attributes\tLua.quick\t\n"
	if !strings.Contains(tr.String(), want) {
		t.Errorf("got trace\n%s", tr)
	}
}

func TestKept(t *testing.T) {
	const text = `#!/usr/bin/perl
$| = 1; $n = 0;
while (<STDIN>) {
	my ($url, $len) = split;
	read(STDIN, my $b, $len) == $len or $len == 0 or die "short";
	$n++;
	if ($b =~ /skip/) { print "none\n"; next }
	if ($b =~ /bad/) { print "! I do not like it\n"; next }
	if ($b =~ /die/) { die "I am dead\n" }
	if ($b =~ /hang/) { sleep 100 }
	my $out = "Title: number $n of $type\nComments: $url $len\n";
	print length($out), "\n", $out;
}
`
	p, failed := bring(t, Bounds{Wall: 2 * time.Second, Keep: 4}, map[string]string{"Lua.sum": text})
	ask := func(text string) string {
		in := luaInput(p)
		in.Head = []byte(text)
		o, _ := sum(t, in)
		return o.Text("Title") + "|" + o.Text("Comments")
	}
	for i, c := range []struct{ text, want, fail string }{
		{"one", "number 1 of|http://site/src/greet.lua 3", ""},
		{"seven77", "number 2 of|http://site/src/greet.lua 7", ""},
		{"skip me", "greet.lua|", ""},
		{"bad thing", "", "I do not like it"},
		{"five", "number 1 of|http://site/src/greet.lua 4", ""}, // another process: four objects are enough
		{"die", "", ": I am dead"},
		{"seven", "number 1 of|http://site/src/greet.lua 5", ""},
		{"hang", "", "killed: it took longer than 2s"},
		{"nine", "number 1 of|http://site/src/greet.lua 4", ""},
		{strings.Repeat("x", 200_000), "number 2 of|http://site/src/greet.lua 200000", ""},
	} {
		before := len(failed())
		if got := ask(c.text); !strings.HasPrefix(got, c.want) && c.fail == "" || c.fail != "" && strings.Contains(got, "number") {
			t.Errorf("%d: got %q, want %q", i, got, c.want)
		}
		switch fails := failed()[before:]; {
		case c.fail == "" && len(fails) > 0, c.fail != "" && (len(fails) != 1 || !strings.Contains(fails[0].Why, c.fail)):
			t.Errorf("%d: got %v, want %q", i, fails, c.fail)
		}
	}
}

// TestKeptDefaults: keep alone is enough.
func TestKeptDefaults(t *testing.T) {
	p, failed := bring(t, Bounds{Keep: 2}, map[string]string{"Lua.sum": "#!/usr/bin/perl\n$| = 1; while (<STDIN>) { my ($u, $n) = split; read(STDIN, my $b, $n); print \"9\\nTitle: x\\n\" }\n"})
	for range 3 {
		if o, _ := sum(t, luaInput(p)); o.Text("Title") != "x" || len(failed()) > 0 {
			t.Fatalf("got %s, %v", o.Append(nil), failed())
		}
	}
}

const luaStar = `
def summarize(doc):
    names = re.findall(r"function M\.(\w+)", doc.text)
    return {"Title": re.find(r"-- (.*)", doc.text), "Keywords": names, "Comments": "%s %s %d" % (doc.type, doc.name, doc.size), "MD5": "mine"}
`

func TestStar(t *testing.T) {
	p, failed := bring(t, Bounds{}, map[string]string{"Lua.star": luaStar})
	for range 3 {
		o, _ := sum(t, luaInput(p))
		if o.Text("Title") != "A greeter" || o.Text("Keywords") != "greet\nleave" || o.Text("Comments") != fmt.Sprintf("Lua greet.lua %d", len(lua)) || o.Text("MD5") == "mine" {
			t.Errorf("got %s", o.Append(nil))
		}
	}
	if fails := failed(); len(fails) > 0 {
		t.Errorf("got %v", fails)
	}
	if n := len(p.sum["Lua"][0].pool.free); n != 1 {
		t.Errorf("got %d processes, want the one that was kept", n)
	}
}

// TestStarBounds: a file that takes what it can get fails within its bounds.
func TestStarBounds(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"steps":    {"def summarize(doc):\n  n = 0\n  for i in range(1000000000):\n    n += i\n", "Starlark computation cancelled: it took"},
		"doubling": {"def summarize(doc):\n  s = 'x'\n  for i in range(60):\n    s = s + s\n  return {'Title': s}\n", ""},
		"repeat":   {"def summarize(doc):\n  return {'Title': str(len('x' * 1000000000))}\n", ""},
		"lists":    {"def summarize(doc):\n  l = [0]\n  for i in range(60):\n    l = l + l\n  return {}\n", ""},
		"bigint":   {"def summarize(doc):\n  n = 3\n  for i in range(40):\n    n = n * n\n  return {'Title': n}\n", ""},
		"result":   {"def summarize(doc):\n  return {'Title': 'x' * 2000000}\n", "1:1: more than 1048576 bytes were returned"},
		"type":     {"def summarize(doc):\n  return 7\n", "1:1: a int was returned, where a dict of attributes is wanted"},
		"error":    {"def f(x):\n  return x.foo\ndef summarize(doc):\n  return f(doc)\n", `2:11: "doc" struct has no .foo attribute`},
		"recurse":  {"def f(x):\n  return f(x)\ndef summarize(doc):\n  return f(doc)\n", "function f called recursively"},
		"load":     {"load('/etc/passwd', 'x')\ndef summarize(doc):\n  return {}\n", "load not implemented"},
	} {
		t.Run(name, func(t *testing.T) {
			p, failed := bring(t, Bounds{}, map[string]string{"Lua.star": c.text})
			sum(t, luaInput(p))
			if fails := failed(); len(fails) != 1 || !strings.Contains(fails[0].Why, c.want) {
				t.Errorf("got %v, want %s", fails, c.want)
			} else {
				t.Log(fails[0].Why)
			}
			if p, failed := bring(t, Bounds{}, map[string]string{"Lua.star": luaStar}); len(failed()) > 0 {
				t.Error(failed())
			} else if o, _ := sum(t, luaInput(p)); o.Text("Title") != "A greeter" {
				t.Errorf("afterwards: got %s", o.Append(nil))
			}
		})
	}
}

func TestCheckBrought(t *testing.T) {
	deep := "def summarize(doc):\n  return " + strings.Repeat("(", 60000) + "\n"
	for _, c := range []struct{ file, text, want string }{
		{"Lua.sum", fiveLines, ""},
		{"Lua", "#!/bin/sh\n", ""},
		{"Lua", "\x7fELF and so on", ""},
		{"Lua.sum", "echo hello\n", "line 1, column 1: a script begins with #!"},
		{"Lua.star", luaStar, ""},
		{"Lua.star", "def summarize(doc):\n    return {\n", "line 3, column 1: got outdent, want primary expression"},
		{"Lua.star", "def summarize(doc):\n    return x\n", "line 2, column 12: undefined: x"},
		{"Lua.star", "def sumarize(doc):\n    return {}\n", "line 1, column 1: no function summarize is defined"},
		{"Lua.star", "def summarize():\n    return {}\n", "line 1, column 1: summarize takes one parameter"},
		{"Lua.star", "x = [1,2][3]\ndef summarize(doc):\n    return {}\n", "line 1, column 10: list index 3 out of range"},
		{"Lua.star", "for x in [1]:\n  pass\n", "line 1, column 1: for loop not within a function"},
		{"Lua.star", strings.Repeat("#", 70000), "longer than"},
		{"Lua.star", deep, ""},
		{"Lua.quick", "# all\n\nTitle ^title: (.*)$\nKeywords\tkey (\\w+)\n", ""},
		{"Lua.quick", "Title\n", "line 1, column 6: a line is"},
		{"Lua.quick", "Title x\nTi{tle x\n", "line 2, column 1: 'Ti{tle' is not the name"},
		{"Lua.quick", "Title  a(b\n", "line 1, column 8: missing closing ): `a(b`"},
		{"Lua.quick", strings.Repeat("Title x\n", 201), "line 201, column 1: more than 200 lines"},
		{"lua.sum", "", "is not TYPE.sum"},
		{"Lua.sum.star", "", "is not TYPE.sum"},
		{"Lua.py", "", "is not TYPE.sum"},
		{"../X", "", "is not TYPE.sum"},
	} {
		err := CheckBrought(context.Background(), c.file, false, c.text)
		if c.want == "" && err != nil && !strings.HasPrefix(c.text, deep) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %.40q: got %v, want %q", c.file, c.text, err, c.want)
		}
	}
	if err := CheckBrought(context.Background(), "Lua.quick", true, ""); err == nil {
		t.Error("a quick exploder: got no error")
	}
}

// TestRests: what hangs again and again is not asked for a while.
func TestRests(t *testing.T) {
	p, failed := bring(t, Bounds{Wall: 50 * time.Millisecond}, map[string]string{"Lua.sum": "#!/bin/sh\nsleep 100\n"})
	for range maxInRow + 2 {
		sum(t, luaInput(p))
	}
	if n := len(failed()); n != maxInRow {
		t.Errorf("got %d failures, want %d", n, maxInRow)
	}
	if f := p.Tallies()["Lua.sum"]; time.Until(f.Rests) < resting/2 {
		t.Errorf("got %+v", f)
	}
}

const exploded = "-- first\nTitle: one\n-- second\nTitle: two\n-- second\nTitle: three\n"

// TestExplode: an exploder makes several objects of a document, which cannot
// pass for others than it has inside.
func TestExplode(t *testing.T) {
	const program = `#!/bin/sh
[ "$1" = "$url" ] || exit 1
awk '/^--/ { n = $2; next }
{ sub(/Title: /, ""); printf "@FILE { http://bank/%s\nTitle{%d}:\t%s\nMD5{3}:\tabc\n}\n", n, length($0), $0 }' "$2"
`
	const starlark = `
def explode(doc):
    all = []
    for part in doc.text.split("-- ")[1:]:
        lines = part.splitlines()
        all.append({"URL": "http://bank/" + lines[0], "Title": lines[1][7:], "Type": "Entry"})
    return all
`
	for file, text := range map[string]string{"explode/Lua.sum": program, "explode/Lua.star": starlark} {
		p, failed := bring(t, Bounds{}, map[string]string{file: text})
		in := luaInput(p)
		in.Head = []byte(exploded)
		var got []string
		in.Member = func(_ context.Context, m Member) error {
			got = append(got, m.Container+" "+m.Object.URL+" "+m.Object.Text("Title")+m.Object.Text("MD5"))
			return nil
		}
		o, tr := sum(t, in)
		want := []string{
			"http://site/src/greet.lua http://site/src/greet.lua!/bank/first one",
			"http://site/src/greet.lua http://site/src/greet.lua!/bank/second two",
			"http://site/src/greet.lua http://site/src/greet.lua!/bank/second~2 three",
		}
		if !slices.Equal(got, want) || o.Text("Members") != "3" || len(failed()) > 0 {
			t.Errorf("%s: got %q, %s and %v", file, got, o.Append(nil), failed())
		}
		if !strings.Contains(tr.String(), "unnest\t3 objects\t"+file) {
			t.Errorf("%s: got trace\n%s", file, tr)
		}
		in.Member = nil
		o, _ = sum(t, in)
		if e, ok := o.Embed(2); !ok || e.Text("Title") != "two" || len(o.Embeds()) != 3 {
			t.Errorf("%s: got %s", file, o.Append(nil))
		}
	}
	p, failed := bring(t, Bounds{}, map[string]string{"explode/Lua.sum": "#!/bin/sh\nexit 1\n", "Lua.star": luaStar})
	if o, _ := sum(t, luaInput(p)); o.Text("Title") != "A greeter" || len(failed()) != 1 || !failed()[0].Explode {
		t.Errorf("one that fails: got %s, %v", o.Append(nil), failed())
	}
}

func TestParseSummary(t *testing.T) {
	for _, c := range []struct{ out, want string }{
		{"", ""},
		{"Title: a b\nKeywords: x\n\ty\nKeywords: z\n", "Title=a b|Keywords=x\ny|Keywords=z"},
		{"Title{3}:\ta\nb\nAuthor{1}:\tx", "Title=a\nb|Author=x"},
		{"@FILE { http://x/\nTitle{3}:\tabc\n}\n", "Title=abc"},
		{"@FILE { -\nTitle{3}:\tabc\n}\n@FILE { -\n}\n", "error: what it wrote: more than one object, after 26 bytes"},
		{"Title{9}:\ta\n", "error: what it wrote: "},
		{" x\n", "Title=|error"},
		{"no\n", "error: what it wrote, line 1: 'no' is not of the form 'Name: value'"},
	} {
		o, err := parseSummary([]byte(c.out))
		var got []string
		for _, a := range o.Attrs {
			got = append(got, a.Name+"="+string(a.Value))
		}
		s := strings.Join(got, "|")
		if err != nil {
			s = "error: " + err.Error()
		}
		if c.out == " x\n" { // leading blanks are nothing
			c.want = "error: what it wrote, line 1: 'x' is not of the form 'Name: value'"
		}
		if s != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(s, c.want)) {
			t.Errorf("%q: got %q, want %q", c.out, s, c.want)
		}
	}
}

func FuzzParseSummary(f *testing.F) {
	for _, s := range []string{"Title: a\n b\n", "Title{3}:\tabc\n", "@FILE { -\nTitle{3}:\tabc\n}\n", "", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		o, err := parseSummary(out)
		if err != nil {
			return
		}
		var n int
		for _, a := range o.Attrs {
			n += len(a.Value)
		}
		if n > len(out) {
			t.Errorf("got %d bytes of %d", n, len(out))
		}
		if _, err := parseStream(out); err == nil && len(out) > 0 && out[0] != '@' && strings.TrimSpace(string(out)) != "" {
			var d soif.Object
			if d.Type != "" {
				t.Error("an object of nothing")
			}
		}
	})
}

func FuzzParseQuick(f *testing.F) {
	f.Add("# all\nTitle ^title: (.*)$\nKeywords\tkey (\\w+)\n", "title: x\nkey y\n")
	f.Add("A (((\n", "")
	f.Fuzz(func(t *testing.T, rules, text string) {
		r, err := parseQuick(rules)
		if err != nil {
			if at := err.(*ndb.Error); at.Line < 1 || at.Col < 1 {
				t.Errorf("got %v, want a place", err)
			}
			return
		}
		b := &brought{rules: r}
		w := &worker{ctx: t.Context()}
		w.lim.defaults()
		if _, err := b.quick(w, &content{head: []byte(text)}); err != nil {
			t.Error(err)
		}
	})
}
