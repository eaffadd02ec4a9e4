package crawl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"golang.org/x/net/html/charset"
)

// Bounds of a feed. The reader of feeds holds them whole, calls itself for what
// is nested, and adds the texts of an element one by one: each is held in.
const (
	maxFeed     = 4 << 20
	maxNesting  = 64
	maxFeedItem = 10_000
	maxAddition = 256 << 20 // bytes copied for adding texts
)

// ParseFeed reads a feed, RSS, Atom or JSON, and yields the documents of its
// items in order, with the time at which each was changed or, when it does not
// say, published. from is its URL. What is no feed yields ErrNotSitemap.
func ParseFeed(r io.Reader, from string) iter.Seq2[Mention, error] {
	return func(yield func(Mention, error) bool) {
		m := newMentions(from, yield)
		if err := m.feed(r); err != nil && !m.done {
			yield(Mention{}, err)
		}
	}
}

func (m *mentions) feed(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxFeed+1))
	switch {
	case err != nil && noEOF(err) != nil:
		return err
	case len(text) > maxFeed:
		return fmt.Errorf("feed: longer than %d bytes: %w", maxFeed, iofs.ErrInvalid)
	}
	head := bytes.TrimLeft(text[:min(len(text), 2048)], "\ufeff \t\r\n")
	switch name := rootName(head); {
	case name == "rss" || name == "feed" || name == "rdf":
		err = checkFeed(text)
	case !bytes.HasPrefix(head, []byte("{")):
		err = ErrNotSitemap
	}
	if err != nil {
		return err
	}
	f, err := parseFeed(text)
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	for i, item := range f.Items {
		if i == maxFeedItem {
			return fmt.Errorf("feed: more than %d items: the rest is left out: %w", maxFeedItem, iofs.ErrInvalid)
		}
		if err := m.item(item); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// parseFeed holds a fault of the reader of feeds to the feed it is in.
func parseFeed(text []byte) (f *gofeed.Feed, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return gofeed.NewParser().Parse(bytes.NewReader(text))
}

func (m *mentions) item(i *gofeed.Item) error {
	if i == nil {
		return nil
	}
	ref, date := i.Link, ""
	if ref == "" && len(i.Links) > 0 {
		ref = i.Links[0]
	}
	if ref == "" && strings.Contains(i.GUID, "://") {
		ref = i.GUID
	}
	switch {
	case i.UpdatedParsed != nil:
		date = i.UpdatedParsed.Format(time.RFC3339)
	case i.PublishedParsed != nil:
		date = i.PublishedParsed.Format(time.RFC3339)
	}
	return m.add(ref, date, false)
}

var errFeed = fmt.Errorf("feed: nested too deep, or of too many texts: %w", iofs.ErrInvalid)

// checkFeed refuses a feed in XML that would cost its reader too much.
func checkFeed(text []byte) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict, d.CharsetReader = false, charset.NewReaderLabel
	var held [maxNesting + 1]int // bytes of text so far, of each open element
	depth, cost := 0, 0
	for {
		tok, err := d.RawToken()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			if errors.As(err, new(*xml.SyntaxError)) {
				return nil // its reader will say so, and read no further
			}
			return err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if depth++; depth > maxNesting {
				return errFeed
			}
			held[depth] = 0
		case xml.EndElement:
			depth = max(0, depth-1)
		case xml.CharData:
			held[depth] += len(tok)
			cost += held[depth]
		}
		if cost > maxAddition {
			return errFeed
		}
	}
}
