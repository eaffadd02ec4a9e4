package essence

import (
	"bytes"
	"fmt"
	stdhtml "html"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// bare is a dictionary without a table.
var bare = func() dictionary {
	all := make(map[string]*element)
	for name := range elements {
		all[name] = &element{name: name}
	}
	return newDictionary(all)
}()

// meaning is the name of an element that means something.
func meaning(name []byte) string {
	if e := bare.find(name); e != nil {
		return e.name
	}
	return ""
}

// raw is the name in a tag as it is written.
func raw(tag []byte) []byte {
	tag = bytes.TrimPrefix(tag[1:], []byte("/"))
	return tag[:nameLength(tag)]
}

// parts writes down what markup makes of a document.
func parts(doc []byte) string {
	var out strings.Builder
	m := newMarkup(doc, &bare)
	for {
		kind, text := m.next()
		switch kind {
		case nothing:
			return out.String()
		case aText:
			fmt.Fprintf(&out, "%q\n", unescapeText(text))
		case rawText:
			fmt.Fprintf(&out, "%q\n", text)
		case closing:
			fmt.Fprintf(&out, "/%s\n", meaning(m.element))
		case opening:
			fmt.Fprintf(&out, "<%s", meaning(m.element))
			for more := true; more; {
				var k, v []byte
				k, v, more = m.attribute()
				if len(k) > 0 {
					fmt.Fprintf(&out, " %s=%q", bytes.ToLower(k), unescapeValue(v))
				}
			}
			out.WriteString("\n")
		}
	}
}

// standard writes down what the standard's tokenizer makes of it.
func standard(doc []byte) string {
	var out strings.Builder
	z := html.NewTokenizer(bytes.NewReader(doc))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			if text := z.Text(); len(text) > 0 {
				fmt.Fprintf(&out, "%q\n", text)
			}
		case html.EndTagToken:
			fmt.Fprintf(&out, "/%s\n", meaning(raw(z.Raw())))
		case html.StartTagToken, html.SelfClosingTagToken:
			fmt.Fprintf(&out, "<%s", meaning(raw(z.Raw())))
			name, more := z.TagName()
			if string(name) == "noscript" {
				z.NextIsNotRawText() // what is in it is read as its reader would, who has no scripts
			}
			for more {
				var k, v []byte
				if k, v, more = z.TagAttr(); len(k) > 0 {
					fmt.Fprintf(&out, " %s=%q", k, v)
				}
			}
			out.WriteString("\n")
		}
	}
}

// TestMarkup compares it with the standard's tokenizer, on cases that are meant
// to differ and on real documents.
func TestMarkup(t *testing.T) {
	for _, doc := range []string{
		"", "text", "<", "a < b", "a <b> c", "<p>x</p>", "<P CLASS=x>", "<a href='x>y' b>z", `<a href="x&amp;y&copy=1&lt;&#65;&notit;">`,
		"<br/>", "<br / >", "<a/b=c/d>", "<a =x>", "<a b==c>", "<a b = c d>", "x<!-- a > b -- --> c", "<!-->x-->", "<!--->x", "<!-- a --!> b",
		"<!doctype html>x", "<?php echo '>' ?>x", "</ p>x", "</>x", "</p x='>'>y", "<script>a<b></script>c", "<script>a</scriptx>b</script >c",
		"<title>a &amp; <b></title>c", "<textarea><p></textarea>", "<style><!-- </style> -->", "<xmp><a></xmp>b", "<iframe><a></iframe>b",
		"<plaintext><a></plaintext>", "<title>never <ends", "a &amp; b &nosuch; &#0; &amp", "<p\n\ta\n=\nb>", "<b<c>d",
		"<svg><title>x</title></svg>", "<noscript><a href=x></noscript>", "a<!", "<p", "<p a", "<p a=", "<p a='", "<a.b>c",
	} {
		if got, want := parts([]byte(doc)), standard([]byte(doc)); got != want {
			t.Errorf("%q: got\n%swant\n%s", doc, got, want)
		}
	}
	n := 0
	for _, dir := range []string{"/usr/share/doc/openjdk-17-jre-headless/api/java.base/java/lang", "/usr/share/doc/python3.11/html/library"} {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".html" || n%2 > 0 && testing.Short() || n > 100 {
				return nil
			}
			doc, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			n++
			doc = bytes.ReplaceAll(doc, []byte("\r"), nil)
			if got, want := parts(doc), standard(doc); got != want {
				i := 0
				for i < len(got) && i < len(want) && got[i] == want[i] {
					i++
				}
				t.Errorf("%s differs at %d:\n%.200s\nwant\n%.200s", path, i, got[max(0, i-50):], want[max(0, i-50):])
			}
			return nil
		})
	}
	t.Logf("%d real documents", n)
}

// BenchmarkMarkup is against the standard's.
func BenchmarkMarkup(b *testing.B) {
	doc, err := os.ReadFile("/usr/share/doc/openjdk-17-jre-headless/api/java.base/java/util/List.html")
	if err != nil {
		b.Skip(err)
	}
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			m := newMarkup(doc, &bare)
			for kind, _ := m.next(); kind != nothing; kind, _ = m.next() {
				if kind == opening {
					m.skip()
				}
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			z := html.NewTokenizer(bytes.NewReader(doc))
			for z.Next() != html.ErrorToken {
			}
		}
	})
}

// FuzzUnescape holds character references to what the standard library makes of them.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"a &lt;b&gt; &amp;amp; &nbsp;", "&", "&&;", "&#65abc &#x41;&#x;&#;&#65", "&notit; &copy2; &CounterClockwiseContourIntegral;x", "&lt &gt;&quot;&a#b;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(unescapeText([]byte(s))), stdhtml.UnescapeString(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	})
}
