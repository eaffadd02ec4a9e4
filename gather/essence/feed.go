package essence

import (
	"bytes"

	"github.com/mmcdole/gofeed"

	"harvest/gather/soif"
)

// sumFeed summarizes a feed by what it is about and by its entries.
func sumFeed(w *worker, o *soif.Object, c *content, text []byte) {
	feed, err := gofeed.NewParser().Parse(bytes.NewReader(text))
	if err != nil {
		sumXML(w, o, c, text)
		return
	}
	titles, links, authors, subjects := w.list(), w.list(), w.list(), w.list()
	links.add(feed.Link)
	var said bytes.Buffer
	for _, a := range feed.Authors {
		authors.add(a.Name)
	}
	for _, s := range feed.Categories {
		subjects.add(s)
	}
	for _, e := range feed.Items {
		titles.add(e.Title)
		links.add(e.Link)
		for _, a := range e.Authors {
			authors.add(a.Name)
		}
		for _, s := range e.Categories {
			subjects.add(s)
		}
		if said.Len() < w.lim.Text {
			said.WriteString(e.Title + "\n" + string(markedText(e.Description)) + "\n\n")
		}
	}
	date := feed.Updated
	if date == "" {
		date = feed.Published
	}
	if date == "" && len(feed.Items) > 0 {
		date = feed.Items[0].Published
	}
	w.set(o, "Title", words(feed.Title))
	w.set(o, "Description", string(cutText([]byte(words(markedText(feed.Description))), 400)))
	w.set(o, "Author", authors.String())
	w.set(o, "Date", date)
	w.set(o, "Subject", subjects.String())
	w.set(o, "Headings", titles.String())
	w.set(o, "URL-References", links.String())
	w.set(o, "Generator", words(feed.Generator))
	w.tell(o, c, said.Bytes(), feed.Language)
	w.fullText(o, c, plainText(said.Bytes()))
}

// markedText is a text without the marks in it.
func markedText(s string) []byte {
	var out []byte
	z := tagScan{b: []byte(s)}
	for z.next() {
		if z.kind == tagText {
			out = appendWords(out, z.text())
		} else {
			out = appendWords(out, []byte(" "))
		}
	}
	return out
}
