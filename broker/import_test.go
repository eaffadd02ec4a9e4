package broker

import (
	"fmt"
	"strings"
	"testing"
)

// TestImportSources translates lines of a Collection.conf.
func TestImportSources(t *testing.T) {
	for _, c := range []struct{ line, want, ignored, err string }{
		{line: "h.example 8500 0 --", want: "source path=gatherd!h.example!8500 compressed=no full=yes"},
		{line: "h.example\t8500\t1", want: "source path=gatherd!h.example!8500 compressed=no"},
		{line: "h 8500 2 --", want: "source path=gatherd!h!8500 compressed=yes full=yes"},
		{line: "h 8500 3 --", want: "source path=gatherd!h!8500 compressed=yes"},
		{line: "h 8501 4 --", want: "source path=tcp!h!8501/broker full=yes"},
		{line: "h 8501 5", want: "source path=tcp!h!8501/broker"},
		{line: "h 8501 6 --QUERY (Author : Danzig) AND (Type: PostScript) --FLAGS #desc #index case insensitive",
			want: "source path=tcp!h!8501/broker full=yes query='author : Danzig and type : PostScript'", ignored: "#desc"},
		{line: "h 8501 7 --QUERY approximate --FLAGS #index error 2", want: "source path=tcp!h!8501/broker query=approximate~2"},
		{line: "h 8501 7 --FLAGS #index maxresult 50 #index matchword --QUERY \"file system\"", want: "source path=tcp!h!8501/broker query='\"file system\"'", ignored: "#index maxresult 50"},
		{line: "h 8501 7 --QUERY URL : .*cs.*", want: "source path=tcp!h!8501/broker query='url : /.*cs.*/t'"},
		{line: "h 8501 7 --QUERY Title regexp ab|cd #and size greater-than 100 #or type exact HTML", want: "source path=tcp!h!8501/broker query='title : /ab|cd/t and size > 100 or type = HTML'"},
		{line: "h 8501 7 --QUERY #allb", want: "source path=tcp!h!8501/broker query=*"},
		{line: "h 8501 7 --QUERY url : http://h/a", want: "source path=tcp!h!8501/broker query='url : \"http://h/a\"'"},
		{line: "h 8501 7 --QUERY two words", want: "source path=tcp!h!8501/broker query='two and words'"},
		{line: "h 8500 3 --QUERY plan", want: "source path=gatherd!h!8500 compressed=yes", ignored: "filter"},
		{line: "h 0 3 --", err: "line 1, column 1: port 0: not a number from 1 to 65535"},
		{line: "h 8500 8 --", err: "line 1, column 1: type 8: not one of 0 to 7"},
		{line: "h 8501 6 --", err: "type 6: --QUERY is missing"},
		{line: "h 8501 6 plan", err: "filter 'plan' is neither -- nor --QUERY"},
		{line: "h 8501 6 --QUERY (plan", err: "--QUERY: "},
		{line: "h 8501 6 --QUERY plan --FLAGS #index error 9", err: "#index error 9 is not a number from 0 to 8"},
		{line: "a!b 8500 3 --", err: "'a!b' is not the name of a host"},
	} {
		m, err := importSources(c.line + "\n")
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %q", c.line, err, c.err)
			}
			if err := checkLine(c.line, 1); err == nil {
				t.Errorf("%s: the line alone is not refused", c.line)
			}
			continue
		}
		var names []string
		for _, i := range m.ignored {
			names = append(names, i.name)
		}
		if got := strings.TrimSpace(m.text); err != nil || got != c.want || strings.Join(names, " ") != c.ignored {
			t.Errorf("%s: got %q, ignored %q, %v, want %q, ignored %q", c.line, got, names, err, c.want, c.ignored)
		}
		if _, err := parseConfig(c.line); err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
		if err := checkLine(c.line, 3); err != nil {
			t.Errorf("%s: the line alone: %v", c.line, err)
		}
	}
}

// TestImportConfig takes a whole Collection.conf, and one among entries, whose
// lines are counted as they stand in the text.
func TestImportConfig(t *testing.T) {
	const text = `# Collection.conf of the papers Broker
# host	port	type	filter
one.example	8500	3	--
two.example	8501	7	--QUERY title : a
two.example	8501	7	--QUERY title : b --FLAGS #desc
one.example	8500	3	--
ttl=24h
`
	c, err := parseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range c.sources {
		got = append(got, fmt.Sprint(s.path, " ", s.query))
	}
	if want := "gatherd!one.example!8500 <nil>, tcp!two.example!8501/broker title : a or title : b"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	var told []string
	for _, pairs := range c.ignoredLines() {
		told = append(told, pairs[0].Value+" "+pairs[1].Value+" "+pairs[2].Value)
	}
	want := []string{"#desc 5 it is about how answers are shown", "tcp!two.example!8501/broker 5 line 4 collects this too", "gatherd!one.example!8500 6 line 3 has it already"}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", told, want)
	}
	if _, err := parseConfig(c.imported.text); err != nil {
		t.Errorf("translated: %v", err)
	}
	for add, want := range map[string]string{
		"sauce=x\n":                              "line 8, column 1: unknown key 'sauce'",
		"h 8500 9 --\n":                          "line 8, column 1: type 9",
		"source path=gatherd!one.example!8500\n": "line 8, column 8: source: gatherd!one.example!8500 is there already",
	} {
		if _, err := parseConfig(text + add); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", add, err, want)
		}
	}
}

// FuzzImport holds what is translated to be a config, and the same when it is
// translated again.
func FuzzImport(f *testing.F) {
	f.Add("h 8500 3 --\nh 8501 7 --QUERY (Author : x) and y --FLAGS #index error 1 #desc\n")
	f.Add("h 8501 6 --QUERY url regexp .*a|b$ #and size less-than 3\nh 8501 7 --QUERY #allb\n")
	f.Add("source path=gather/a\n# x\nh 1 0")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := importSources(text)
		if err != nil {
			return
		}
		if _, err := parseConfig(text); err != nil {
			return // a query may be too long for its place, and entries may be wrong
		}
		again, err := importSources(m.text)
		if err != nil || again.text != m.text || len(again.old) > 0 {
			t.Errorf("%q: translated again: got %q, %v, want %q", text, again.text, err, m.text)
		}
	})
}
