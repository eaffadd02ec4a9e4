package page

import (
	"errors"
	"html/template"
	"strings"
	"testing"
)

// The example of the manual of the first Harvest, in other words.
const oldSample = `# pages of the papers Broker
<ResultHeader>
<HTML><HEAD><TITLE>Results for $query</TITLE></HEAD><BODY>
</ResultHeader>

<PrintObject>
$objectnum <A HREF="$url"><STRONG>$desc</STRONG></A> \
[<A HREF="$cs_p">index data</A>] at $H
<PRE>$opaque</PRE>
</PrintObject>
<ObjectNumPrintf>
(%2d)
</ObjectNumPrintf>
<MatchedLineSub>
s/^Matched line: *//;
s/^(\w+)-(\w+)/\2-$1/;
s/^([\w-]+#)/<I>\1<\/I>/;
print "x";
</MatchedLineSub>
<EndBrokerResults>
<P>$nopaquelines lines, $nobjects objects, {{ $nosuch.
</EndBrokerResults>
<Timeout>
60
</Timeout>
<InitFunction>
$x = 1;
</InitFunction>
<TruncateWarning>
<B>Cut at $maxresult.</B>
</TruncateWarning>
<ResultTrailer>
</BODY></HTML>
</ResultTrailer>
`

// TestTranslate shows pages as a BrokerQuery.cf had them.
func TestTranslate(t *testing.T) {
	if !IsOld(oldSample) || IsOld(Default) {
		t.Fatal("got the wrong ones for old")
	}
	text, ignored, err := Translate(oldSample)
	if err != nil {
		t.Fatal(err)
	}
	p := samples()[0]
	p.Hits[0].Lines = []Line{{Attr: "body", Text: "Matched line: one-two <x>"}}
	got := render(t, text, p)
	for _, want := range []string{
		"<TITLE>Results for title : word</TITLE>",
		`( 1) <A HREF="http://host.example/folder/name.html"><STRONG>Title</STRONG></A> [<A HREF="001.soif">index data</A>] at host.example`,
		"<PRE>body: two-one &lt;x&gt;\n</PRE>", "<P>1 lines, 3 objects, {{ .", "<B>Cut at 2.</B>", "</BODY></HTML>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
	var names []string
	for _, i := range ignored {
		names = append(names, i.Name)
	}
	if got, want := strings.Join(names, "|"), `s/^([\w-]+#)/<I>\1<\/I>/|print "x"|$nosuch|Timeout|InitFunction`; got != want {
		t.Errorf("got ignored %s, want %s", got, want)
	}
	if got := render(t, text, samples()[2]); !strings.Contains(got, "what failed") {
		t.Errorf("got\n%s\nwant what failed", got)
	}
}

// TestTranslateBad names the line.
func TestTranslateBad(t *testing.T) {
	for text, line := range map[string]int{"<PrintObject>\n": 1, "# x\n<Timeout>\n1\n</Timeout>\nstray\n": 5} {
		var e *Error
		if _, _, err := Translate(text); !errors.As(err, &e) || e.Line != line {
			t.Errorf("%q: got %v, want line %d", text, err, line)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add(oldSample)
	f.Add("<PrintObject>\n$desc{{x}}</PrintObject>\n")
	f.Add("<MatchedLineSub>\ns,a,$&$1$,g\n</MatchedLineSub>\n<PrintObject>\n<a href='$opaque\n</PrintObject>")
	f.Fuzz(func(t *testing.T, text string) {
		if !IsOld(text) || len(text) > 1000 {
			return
		}
		tmpl, _, err := Translate(text)
		if err != nil {
			return
		}
		// Where a definition is put may be no place for it; but it is a template.
		if _, err := template.New(name).Funcs(functions(newMeter(t.Context()))).Parse(tmpl); err != nil {
			t.Errorf("%q: got %v for\n%s", text, err, tmpl)
		}
	})
}
