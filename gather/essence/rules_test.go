package essence

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"strings"
	"testing"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// ruled gives what rules make of an object, as SOIF, or "deleted".
func ruled(t *testing.T, rules string, attrs ...string) (string, []string) {
	t.Helper()
	set, err := parseRules(rules)
	if err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	w := &worker{ctx: t.Context(), tab: &Tables{rules: set}}
	w.lim.defaults()
	o := soif.Object{Type: "FILE", URL: "http://h/users/ann/a.html"}
	for i := 0; i < len(attrs); i += 2 {
		o.Add(attrs[i], []byte(attrs[i+1]))
	}
	err = w.finish(&o, &content{})
	if errors.Is(err, ErrDeleted) {
		return "deleted", w.cutLines()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Append(nil)), w.cutLines()
}

func TestConditions(t *testing.T) {
	tests := []struct {
		when string
		want bool
	}{
		{"city == 'New York'", true},
		{"City=='New York'", true},
		{`city == "New York";`, true},
		{"city == 'new york'", false},
		{"city == 'York'", false},
		{"city != 'New York'", false},
		{"city != 'Boston'", true},
		{"town == ''", false},
		{"town != 'Boston'", true},
		{"empty == ''", true},
		{"city ~ /York$/", true},
		{"city ~ /york/", false},
		{"city ~ /york/i", true},
		{"city !~ /York/", false},
		{"town !~ /York/", true},
		{"URL ~ /users/", true},
		{"url ~ /\\/users\\/[a-z]+\\//", true},
		{`slash ~ /\\$/`, true},
		{`slash == 'back\\'`, true},
		{`quote == 'it\'s'`, true},
		{`quote == "it's"`, true},
		{"author == 'Bob'", true},
		{"author != 'Bob'", false},
		{"author == 'Carl'", false},
		{"city == 'New York' && state != 'NY'", false},
		{"city == 'New York' && state == 'NY'", true},
		{"city == 'x' || state == 'NY'", true},
		{"city == 'x' && state == 'NY' || state == 'NY'", true},
		{"city == 'x' && (state == 'NY' || state == 'NY')", false},
		{"!(city == 'x' && state == 'NY')", true},
		{"! city == 'x'", true},
		{"city == 'x' ||\\\n  state == 'NY'", true},
		{"((((city == 'New York'))))", true},
	}
	for _, tt := range tests {
		got, _ := ruled(t, tt.when+"\n\tdelete()\n", "City", "New York", "state", "NY", "empty", "", "Author", "Ann", "Author-1", "Bob", "slash", `back\`, "quote", "it's")
		if (got == "deleted") != tt.want {
			t.Errorf("%s: got %t, want %t", tt.when, !tt.want, tt.want)
		}
	}
}

func TestActions(t *testing.T) {
	const all = "URL ~ /./\n"
	tests := []struct {
		rules string
		want  string // part of the object
		limit string
	}{
		{all + "\ttime-to-live = \"86400\"", "Time-to-Live{5}:\t86400\n", ""},
		{all + "  Title = 'It\\'s'", "Title{4}:\tIt's\nKeywords", ""},
		{all + "\tTitle = ''", "a.html\nKeywords", ""},
		{all + "\tkeywords | tr a-z A-Z", "Keywords{8}:\tONE TWO\n\n", ""},
		{all + "\ttitle | tr a-z A-Z | sed s/E/3/", "Title{5}:\tTITL3\n", ""},
		{all + "\tnone | echo x", "Title{5}:\ttitle\nKeywords{8}:\tone two\n\n}", ""},
		{all + "\tTitle | cat /nowhere", "Title{5}:\ttitle\n", "rules: line 2: cat /nowhere: exit status 1: cat: /nowhere: No such file or directory"},
		{all + "\tTitle | yes", "Title{5}:\ttitle\n", "rules: line 2: yes: killed: it wrote more than 8192 bytes"},
		{all + "\tTitle,Keywords ! sed s/title/TITLE/", "Title{5}:\tTITLE\nKeywords{8}:\tone two\n\n}", ""},
		{all + "\tTitle ! cat >/dev/null; printf 'Owner{3}:\\tann\\nOwner{3}:\\tbob\\nKeywords{0}:\\t'", "Title{5}:\ttitle\nOwner{3}:\tann\nOwner{3}:\tbob\n}", ""},
		{all + "\tTitle ! cat >/dev/null; echo no", "Title{5}:\ttitle\n", "rules: line 2: what the program wrote: line 2, byte 10: @FILE: attribute Name{size} expected, not \"no\""},
		{all + "\tTitle ! printf 'Refresh-Rate{1}:\\tx'", "Title{5}:\ttitle\n", "rules: line 2: Refresh-Rate: 'x' is no number of seconds from 1 to 2147483647"},
		{all + "\tTitle ! printf 'Update-Time{1}:\\t1'", "Title{5}:\ttitle\n", "rules: line 2: Update-Time: it is the Gatherer's to set"},
		{all + "\tTitle = 'a'\nTitle == 'a'\n\tTitle = 'b'\nTitle == 'a'\n\tdelete()\n", "Title{1}:\tb\n", ""},
		{"Title == 'no'\n\tdelete()\n", "Title{5}:\ttitle\n", ""},
		{"# comment\n\n" + all + "\t# another\n\tdelete ( )\n", "deleted", ""},
	}
	for _, tt := range tests {
		got, limits := ruled(t, tt.rules, "Title", "title", "Keywords", "one two\n", "Time-to-Live", "999999999999")
		if !strings.Contains(got, tt.want) || strings.Join(limits, "|") != tt.limit || strings.Contains(got, "999") {
			t.Errorf("%s:\ngot %s%s\nwant %s\n%s", tt.rules, got, strings.Join(limits, "|"), tt.want, tt.limit)
		}
	}
}

func TestRulesRefused(t *testing.T) {
	tests := []struct{ rules, want string }{
		{"\tdelete()", "line 1, column 2: an instruction before any condition"},
		{"type == 'x'\n", "line 1, column 1: nothing is to be done"},
		{"type == 'x'\n# c\ntype == 'y'\n\tdelete()", "line 1, column 1: nothing is to be done"},
		{"type = 'x'\n\tdelete()", "line 1, column 6: '= 'x'' where one of == != ~ !~ should be"},
		{"type == x\n\tdelete()", "line 1, column 9: 'x' where a 'text' in quotes should be"},
		{"type == 'x\n\tdelete()", "line 1, column 9: ' is not closed"},
		{"type ~ 'x'\n\tdelete()", "line 1, column 8: ''x'' where a /regular expression/"},
		{"type ~ /(/\n\tdelete()", "line 1, column 8: error parsing regexp"},
		{"typé == 'x' && (a == 'b'\n\tdelete()", "line 1, column 16: ( is not closed: there is the end of the line"},
		{"typé == 'x' &&\\\n  (a == 'b'\n\tdelete()", "line 2, column 3: ( is not closed: there is the end of the line"},
		{"type == 'x' y\n\tdelete()", "line 1, column 13: 'y' where the line was to end"},
		{"== 'x'\n\tdelete()", "line 1, column 1: '== 'x'' where the name of an attribute"},
		{"a == 'x'\n\tdelete(1)", "line 2, column 9: '1)' where delete() should end"},
		{"a == 'x'\n\tb", "line 2, column 3: the end of the line where one of = | ! should be"},
		{"a == 'x'\n\tb = c", "line 2, column 6: 'c' where a 'text'"},
		{"a == 'x'\n\tb,c = 'c'", "line 2, column 8: one attribute is set at a time"},
		{"a == 'x'\n\tb,c | cat", "line 2, column 2: a | filters one attribute"},
		{"a == 'x'\n\tb |  ", "line 2, column 7: a command is missing"},
		{"a == 'x'\n\tb, = 'c'", "line 2, column 5: '= 'c'' where the name"},
		{"a == 'x'\n\turl = 'c'", "line 2, column 2: url is the Gatherer's to set"},
		{"a == 'x'\n\ttime-to-live = '1h'", "line 2, column 17: time-to-live: '1h' is no number of seconds"},
		{"a == 'x'\n\tb = 'c' \\\n", "line 2, column 1: the text ends where a line was to go on"},
		{strings.Repeat("(", 60) + "a == 'x'", "line 1, column 52: more than 50 parentheses"},
	}
	for _, tt := range tests {
		_, err := parseRules(tt.rules)
		var at *ndb.Error
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || !errors.As(err, &at) || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q:\ngot %v\nwant %s", tt.rules, err, tt.want)
		}
	}
}

// TestRulesOfTables goes the way of a user's text.
func TestRulesOfTables(t *testing.T) {
	tab, err := ParseTables(map[string]string{
		"rules":  "Series == 'A'\n\tTime-to-Live = '60'\nType == 'HTML'\n\tdelete()\n",
		"derive": "Series=A words='laser intensity'\nSeries=B re=nothing\nTopic=Light re='(?i)LASER' in=title\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	o, trace, err := Summarize(context.Background(), Input{URL: "file:///a.txt", Head: []byte("Of a laser\n\nthe Laser-Intensity"), Tables: tab})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := o.Text("Series")+o.Text("Time-to-Live")+o.Text("Topic"), "A60Light"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := "rule\tTime-to-Live = '60'\tline 1: Series == 'A'\t\n"; !strings.Contains(trace.String(), want) || !strings.Contains(trace.String(), "derive\tSeries\tA\t\n") {
		t.Errorf("got trace %s, want %s", trace, want)
	}
	_, trace, err = Summarize(context.Background(), Input{URL: "file:///a.html", Head: []byte("<html>"), Tables: tab})
	if !errors.Is(err, ErrDeleted) || !strings.Contains(err.Error(), "rules: line 3: Type == 'HTML'") || !strings.Contains(trace.String(), "rule\tdelete()\t") {
		t.Errorf("got %v and %s, want it deleted by the rule of line 3", err, trace)
	}
	for name, text := range map[string]string{"rules": "x", "derive": "a=b\n c=d re=("} {
		_, err := ParseTables(map[string]string{name: text})
		if err == nil || !strings.HasPrefix(err.Error(), name+": line ") {
			t.Errorf("%s: got %v, want the line", name, err)
		}
	}
	if tab.RunsPrograms() {
		t.Error("rules without commands: got that they run programs")
	}
	if tab, err = ParseTables(map[string]string{"rules": "a == 'b'\n\tc | cat\n"}); err != nil || !tab.RunsPrograms() {
		t.Errorf("got %v, want that it runs programs", err)
	}
}

func TestDeriveRefused(t *testing.T) {
	for text, want := range map[string]string{
		"Series":                       "line 1, column 1: 'Series' is not ATTRIBUTE=VALUE",
		"Url=b words=a":                "line 1, column 1: Url is the Gatherer's to set",
		"Time-to-Live=x words=a":       "line 1, column 1: Time-to-Live is set by rules",
		"# c\nSeries=A":                "line 2, column 1: Series=A has no pattern",
		"words=a":                      "line 1, column 1: a line begins with the attribute",
		"S=A words=a x=y":              "line 1, column 13: unknown key 'x'",
		"S=A re=a\nS=B in=T re=b re=(": "line 2, column 15: re: error parsing regexp: missing closing ): `(`",
		"S=A words=--":                 "line 1, column 5: words: '--' has no letter",
		"S=A words=a in=b,,c":          "line 1, column 13: in: 'b,,c' is no list",
		"'a b'=A words=a":              "line 1, column 1: 'a b' cannot be the name",
	} {
		_, err := parseDerive(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.HasSuffix(err.Error(), iofs.ErrInvalid.Error()) {
			t.Errorf("%q:\ngot %v\nwant %s", text, err, want)
		}
	}
}

func TestDeriveValues(t *testing.T) {
	d, err := parseDerive("Series=A words=one\nSeries=A words=three\nSeries=B words=two in=title\nSeries=C words=two in=Keywords,Title\n")
	if err != nil {
		t.Fatal(err)
	}
	o := soif.Object{Type: "FILE", URL: "-", Attrs: []soif.Attr{{Name: "Series", Value: []byte("C")}, {Name: "Embed2-Embed1-Title", Value: []byte("two")}, {Name: "Keywords", Value: []byte("one three")}}}
	d.apply(&o, func(derived) {})
	if got, want := string(bytes.Join(collect(&o, "Series"), []byte(","))), "C,A,B"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func collect(o *soif.Object, name string) (all [][]byte) {
	for v := range o.Values(name) {
		all = append(all, v)
	}
	return all
}

func FuzzRules(f *testing.F) {
	f.Add("city == 'New York' && (a !~ /b\\/c/i || ! d != \"e\")\n\ttime-to-live = \"86400\"\n\ta,b ! cat\n\tdelete()\n")
	f.Add("a == 'b' \\\n&& c == 'd'\n\tx | y")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseRules(text)
		if err != nil {
			var at *ndb.Error
			if !errors.As(err, &at) || at.Line < 1 || at.Col < 1 || at.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("got %v, want a place in the text", err)
			}
			return
		}
		if set == nil {
			return
		}
		o := soif.Object{URL: "http://h/", Attrs: []soif.Attr{{Name: "a", Value: []byte("b")}}}
		for _, r := range set.rules {
			r.when(&o)
		}
	})
}

func FuzzDerive(f *testing.F) {
	f.Add("Series=A words='laser intensity' re=x.*y in=Title,Abstract\n", "a laser intensity")
	f.Fuzz(func(t *testing.T, table, text string) {
		d, err := parseDerive(table)
		if err != nil {
			return
		}
		o := soif.Object{URL: "http://h/", Attrs: []soif.Attr{{Name: "Title", Value: []byte(text)}}}
		d.apply(&o, func(derived) {})
	})
}
