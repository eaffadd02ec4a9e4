package essence

import (
	"maps"
	"sync"

	"harvest/gather/soif"
)

// A summarizer adds to o what it finds telling in text, which is all of the
// content or its beginning.
type summarizer func(w *worker, o *soif.Object, c *content, text []byte)

// An entry is the summarizer of a type and how it wants the content.
type entry struct {
	sum   summarizer
	bytes bool // as it came; else as text in UTF-8
}

// summarizers are those in the program, by type: the tables of the families put
// together. A type without one is described by name, size, time and MD5.
var summarizers = sync.OnceValue(func() map[string]entry {
	m := make(map[string]entry)
	for _, family := range []map[string]entry{
		textFamily(),
		markupFamily(),
		sourceFamily(),
		documentFamily(),
		objectFamily(),
		changeFamily(),
		packageFamily(),
		mailFamily(),
		xmlFamily(),
		dataFamily(),
		noteFamily(),
		lightFamily(),
		formFamily(),
	} {
		maps.Copy(m, family)
	}
	return m
})

// textFamily are the types of plain text.
func textFamily() map[string]entry {
	m := make(map[string]entry)
	for _, typ := range []string{"Text", "README", "FAQ", "CSS", "FormattedText"} {
		m[typ] = entry{sum: sumText}
	}
	return m
}

// markupFamily are the types whose structure is marked.
func markupFamily() map[string]entry {
	return map[string]entry{
		"HTML":     {sum: sumHTML, bytes: true},
		"Markdown": {sum: sumMarkdown},
		"ManPage":  {sum: sumMan},
	}
}

// sourceFamily are the languages of source.go.
func sourceFamily() map[string]entry {
	m := make(map[string]entry)
	for typ := range languages() {
		m[typ] = entry{sum: sumSource}
	}
	return m
}
