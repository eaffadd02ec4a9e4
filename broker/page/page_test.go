package page

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func render(t *testing.T, text string, p *Page) string {
	t.Helper()
	tmpl, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := tmpl.Render(t.Context(), &b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDefault shows pages by the template that is there without one.
func TestDefault(t *testing.T) {
	p := samples()[0]
	p.Hits[0].Title = `<script>alert("1")</script>`
	p.Hits[0].Lines = []Line{{"title", "a <b> & c", []Part{{"a <b>", true}, {" & c", false}}}}
	got := render(t, Default, p)
	for _, want := range []string{"&lt;script&gt;alert", "<mark>a &lt;b&gt;</mark> &amp; c", `<a href="http://host.example/folder/name.html">`, `<ol start="1">`, "Objects 1 to 2 of at least 3", `lang="en"`, "These are not all", `href="001.soif"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
	if strings.Contains(got, "<script") {
		t.Errorf("got\n%s\nwant no script", got)
	}
	if got := render(t, Default, samples()[1]); !strings.Contains(got, "Nothing was found.") || strings.Contains(got, "<ol") {
		t.Errorf("got\n%s\nwant that nothing was found", got)
	}
	if got := render(t, Default, samples()[2]); !strings.Contains(got, `role="alert"`) || !strings.Contains(got, "what failed") {
		t.Errorf("got\n%s\nwant what failed", got)
	}
}

// TestLinks has links to what is gathered, and to nothing that acts.
func TestLinks(t *testing.T) {
	for u, want := range map[string]string{
		"ftp://h/a b": `href="ftp://h/a%20b"`, "gopher://h/1": `href="gopher://h/1"`, "file:///a": `href="file:///a"`,
		"javascript:alert(1)": `href="#ZgotmplZ"`, "data:text/html,x": `href="#ZgotmplZ"`, `http://h/"onclick="x`: `href="http://h/%22onclick=%22x"`,
	} {
		access, _, _ := strings.Cut(u, ":")
		got := render(t, `{{range .Hits}}<a href="{{.Link}}">{{.URL}}</a>{{end}}`, &Page{Hits: []Hit{{URL: u, Access: access}}})
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", u, got, want)
		}
	}
}

// TestParse refuses what is wrong where it is.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		text      string
		line, col int
		msg       string
	}{
		{"a\n  {{.Query", 2, 3, "unclosed action"},
		{"a\n{{if .Query}}\nb", 3, 1, "unexpected EOF"},
		{"<p>{{nosuch .Query}}", 1, 6, "function \"nosuch\" not defined"},
		{"é{{.Query}} {{printf \"%d\" .Total}}", 1, 15, "function \"printf\" is not for templates"},
		{"\n\n {{.Query | html}}", 3, 13, "function \"html\" is not for templates"},
		{"{{call .Query}}", 1, 3, "\"call\" is not for templates"},
		{"{{range .Hits}}\n{{if (step)}}{{end}}{{end}}", 2, 7, "\"step\" is not for templates"},
		{"{{with $x := (index (slice .Hits 1) 0)}}{{end}}", 1, 22, "\"slice\" is not for templates"},
		{"{{.Sauce}}", 1, 3, "can't evaluate field Sauce"},
		{"{{range .Hits}}{{.URL.Sauce}}{{end}}", 1, 22, "can't evaluate field Sauce"},
		{"{{template \"x\"}}", 1, 12, "\"x\""},
		{"{{define \"x\"}}{{template \"x\"}}{{end}}{{template \"x\"}}", 1, 0, "calls itself"},
		{"{{define \"x\"}}{{template \"y\"}}{{end}}\n{{define \"y\"}}{{template \"x\"}}{{end}}", 0, 0, "calls itself"},
		{"<a href='{{if .Query}}x{{else}}'>{{end}}", 1, 0, "end in different contexts"},
		{"<a href=\"{{.Query}}", 0, 0, "ends in a non-text context"},
		{"{{range .Hits}}{{replace \"(\" \"\" .Title}}{{end}}", 1, 0, "missing closing )"},
		{strings.Repeat("x", MaxText+1), 1, 1, "the limit is 65536"},
	} {
		_, err := Parse(c.text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.msg) || c.line != 0 && e.Line != c.line || c.col != 0 && e.Col != c.col {
			t.Errorf("%.60q: got %v, want line %d, column %d, %s", c.text, err, c.line, c.col, c.msg)
		}
	}
}

// TestHostile bounds templates that would take all there is.
func TestHostile(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString(`{{template "a"}}{{define "z"}}{{end}}`)
	for c := 'a'; c < 'z'; c++ {
		doubling.WriteString(strings.NewReplacer("A", string(c), "B", string(c+1)).Replace(`{{define "A"}}{{template "B"}}{{template "B"}}{{template "B"}}{{end}}`))
	}
	many := &Page{Hits: make([]Hit, 1000)}
	for name, text := range map[string]string{
		"rounds":   `{{range 1000000000}}{{end}}`,
		"nested":   `{{range $a := .Hits}}{{range $.Hits}}{{range $.Hits}}{{end}}{{end}}{{end}}`,
		"doubling": doubling.String(),
		"output":   `{{range .Hits}}{{range $.Hits}}` + strings.Repeat("x", 60000) + `{{end}}{{end}}`,
		"growing":  `{{$x := "xxxxxxxxxxxxxxxx"}}{{range .Hits}}{{$x = replace "x" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" $x}}{{end}}`,
		"else":     `{{if .Query}}{{else}}{{range 1000000000}}{{if .}}{{end}}{{end}}{{end}}`,
	} {
		begin := time.Now()
		tmpl, err := Parse(text)
		if err == nil {
			err = tmpl.Render(t.Context(), new(strings.Builder), many)
		}
		if err == nil || !strings.Contains(err.Error(), errBound.Error()) {
			t.Errorf("%s: got %v, want %v", name, err, errBound)
		}
		if took := time.Since(begin); took > 2*maxTime {
			t.Errorf("%s: got %v, want at most %v", name, took, maxTime)
		}
	}
}

// TestCancel ends a page whose reader has gone.
func TestCancel(t *testing.T) {
	tmpl, err := Parse(Default)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tmpl.Render(ctx, new(strings.Builder), samples()[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
}

// TestFunctions holds the functions to what the manual says of them.
func TestFunctions(t *testing.T) {
	p := &Page{Query: "Matched line: a-b", Total: 7, Time: time.Unix(1e9, 0)}
	for text, want := range map[string]string{
		`{{replace "^Matched line: *" "" .Query}}`:        "a-b",
		`{{replace "(a)-(b)" "${2}-${1}" .Query}}`:        "Matched line: b-a",
		`{{.Query | cut 7}}`:                              "Matched",
		`{{number 3 .Total}}`:                             "  7",
		`{{add .Total 1}}`:                                "8",
		`{{date "2006" .Time}}`:                           "2001",
		`{{if and (gt .Total 6) (not .Failure)}}y{{end}}`: "y",
		`{{len .Hits}} {{.Lines}}`:                        "0 0",
	} {
		var b strings.Builder
		tmpl, err := Parse(text)
		if err == nil {
			err = tmpl.Render(t.Context(), &b, p)
		}
		if err != nil || b.String() != want {
			t.Errorf("%s: got %q, %v, want %q", text, b.String(), err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Default)
	f.Add(`{{range .Hits}}<a href="{{.Link}}">{{replace "a" "b" .Title}}</a>{{else}}none{{end}}`)
	f.Add(`{{define "a"}}{{template "b" .}}{{end}}{{define "b"}}{{with .Query}}{{cut 3 .}}{{end}}{{end}}{{template "a" .}}`)
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Parse(text)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 {
				t.Fatalf("got %v, want a line and a column", err)
			}
			return
		}
		for _, p := range samples() {
			if err := tmpl.Render(t.Context(), new(strings.Builder), p); err != nil {
				t.Fatalf("%q: good when it was read, and then %v", text, err)
			}
		}
	})
}
