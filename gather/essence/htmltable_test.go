package essence

import (
	"errors"
	iofs "io/fs"
	"strings"
	"testing"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

const tablePage = `<html lang=en><title>A page</title><meta name=author content="A. Writer"><meta name=MD5 content=forged>
<meta name=colour content=blue><meta name=viewport content=x><link rel=canonical href=/here>
<h1>On <code>open</code> and <em>close</em></h1><p>Some <b>boldly</b> said words, and <dfn>terms <i>within</i> one</dfn> of them.
<cite>The Book</cite> <code>secretword</code> <a href=other.html>elsewhere</a><img src=a.png><img src=a.png><img src=data:x>
<address>Street 1</address><script>scriptword</script><p hidden>hiddenword`

// TestHTMLTable summarizes a page by tables.
func TestHTMLTable(t *testing.T) {
	for _, c := range []struct {
		name, table, attr, want string
	}{
		{"title", htmlText(), "Title", "A page"},
		{"author", htmlText(), "Author", "A. Writer"},
		{"headings", htmlText(), "Headings", "On open and close"},
		{"references", htmlText(), "References", "The Book"},
		{"images", htmlText(), "Images", "a.png"},
		{"address", htmlText(), "Address", "Street 1"},
		{"links", htmlText(), "URL-References", "other.html"},
		{"canonical", htmlText(), "Canonical-URL", "/here"},
		{"other META", htmlText(), "Meta-colour", "blue"},
		{"ignored META", htmlText(), "Meta-viewport", ""},
		{"element of one's own", "<DFN> Terms,parent\n<I> Inner,parent\n", "Terms", "terms within one"},
		{"nested", "<DFN> Terms,parent\n<I> Inner,parent\n", "Inner", "within"},
		{"not in the parent", "<DFN> Terms\n<I> Inner\n", "Terms", "terms one"},
		{"not in a heading", "<H1> Headings\n<CODE> ignore\n", "Headings", "On and close"},
		{"in a heading", "<H1> Headings\n<CODE> ignore,parent\n", "Headings", "On open and close"},
		{"without brackets, in small letters", "dfn terms", "terms", "terms within one"},
		{"nothing", "# nothing\n", "Title", "On open and close"},
		{"nothing", "# nothing\n", "Headings", ""},
		{"META by its NAME", "<META:CONTENT> $NAME\n", "colour", "blue"},
		{"META that is the program's", "<META:CONTENT> $NAME\n", "MD5", ""},
		{"a pattern", "<META:col*> Paint\n", "Paint", "blue"},
		{"several", "<CITE> Works,Books\n", "Books", "The Book"},
	} {
		tab, err := parseHTML(c.table)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var o soif.Object
		w := &worker{tab: &Tables{html: tab}, full: true, text: 1 << 20}
		w.lim.defaults()
		sumHTML(w, &o, &content{name: "x.html"}, []byte(tablePage))
		if got := o.Text(c.attr); got != c.want {
			t.Errorf("%s: %s: got %q, want %q", c.name, c.attr, got, c.want)
		}
		for _, a := range o.Attrs {
			if strings.Contains(string(a.Value), "hiddenword") || strings.Contains(string(a.Value), "scriptword") {
				t.Errorf("%s: %s: got %q, which no reader sees", c.name, a.Name, a.Value)
			}
		}
	}
}

// TestHTMLKeywords wants marked words before others, and those under ignore not.
func TestHTMLKeywords(t *testing.T) {
	sum := func(table string) string {
		tab, err := parseHTML(table)
		if err != nil {
			t.Fatal(err)
		}
		var o soif.Object
		w := &worker{tab: &Tables{html: tab}}
		w.lim.defaults()
		sumHTML(w, &o, &content{name: "x.html"}, []byte(tablePage))
		return o.Text("Keywords")
	}
	if got := sum(htmlText()); !strings.HasPrefix(got, "boldly ") && !strings.HasPrefix(got, "close") || strings.Contains(got, "secretword") {
		t.Errorf("got %q, want what stands out first, and no secretword", got)
	}
	if got := sum("<DFN> keywords\n<CODE> keywords,parent\n"); !strings.Contains(got, "secretword") || strings.Index(got, "secretword") > strings.Index(got, "boldly") {
		t.Errorf("got %q, want secretword before boldly", got)
	}
}

// TestHTMLTableErrors wants the place of what is wrong.
func TestHTMLTableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"<A>\n":                        "line 1, column 1: '<A>': where to?",
		"\n<A:> x\n":                   "line 2, column 1: '<A:>': the attribute is missing",
		"<> x":                         "line 1, column 1: '<>': want <ELEMENT> or <ELEMENT:ATTRIBUTE>",
		"<A> x, y":                     "line 1, column 8: 'y': attributes are separated by commas, without blanks",
		"<A> MD5":                      "line 1, column 5: 'MD5': the program's own",
		"<A> embed1-title":             "line 1, column 5: 'embed1-title': the program's own",
		"<A> x{y":                      "line 1, column 5: 'x{y': no name of an attribute",
		"<B> $NAME":                    "line 1, column 5: '$NAME': $NAME is that of a META",
		strings.Repeat("x", 40) + " y": "line 1, column 1: '" + strings.Repeat("x", 40) + "': want <ELEMENT> or <ELEMENT:ATTRIBUTE>",
	} {
		_, err := parseHTML(text)
		var at *ndb.Error
		if !errors.As(err, &at) || !errors.Is(err, iofs.ErrInvalid) || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// FuzzHTMLTable reads any table, and a page by it.
func FuzzHTMLTable(f *testing.F) {
	f.Add(htmlText(), tablePage)
	f.Add("<A> x,parent\n<META:CONTENT> $NAME\n", "<a><a></b><meta name=x content=y>")
	f.Fuzz(func(t *testing.T, table, page string) {
		tab, err := parseHTML(table)
		if err != nil {
			var at *ndb.Error
			if !errors.As(err, &at) {
				t.Fatalf("got %v, want where", err)
			}
			return
		}
		var o soif.Object
		w := &worker{tab: &Tables{html: tab}, full: true, text: 1 << 20}
		w.lim.defaults()
		sumHTML(w, &o, &content{name: "x.html"}, []byte(page))
		if _, n, err := soif.Parse(o.Append(nil), soif.Limits{}); o.Type != "" && (err != nil || n == 0) {
			t.Fatalf("reads back %d: %v", n, err)
		}
		for _, a := range o.Attrs {
			if strings.EqualFold(a.Name, "MD5") || strings.EqualFold(a.Name, "File-Size") {
				t.Fatalf("a page set %s", a.Name)
			}
		}
	})
}

// FuzzMainText sees that what is chosen of a page is in it.
func FuzzMainText(f *testing.F) {
	f.Add("<div class=nav><a href=x>a</a></div><article><p>Some text, of a page, that is long enough.</div></article>")
	f.Add("<table><tr><td><ul><li>x<li>y</table></ul><script type=application/ld+json>{\"@type\":\"Article\",\"author\":[{\"name\":\"x\"}]}</script>")
	f.Fuzz(func(t *testing.T, doc string) {
		p := newPage(defaultTable(), []byte(doc))
		p.read()
		p.readLD()
		p.main.choose(p.text)
		p.countWords(newTerms())
		for line := range strings.Lines(string(p.main.chosen(p.text))) {
			if !strings.Contains(string(p.text), strings.TrimSuffix(line, "\n")) {
				t.Fatalf("%q is not of the page", line)
			}
		}
		p.bestTitle()
		p.bestAuthor()
		p.abstract()
	})
}
