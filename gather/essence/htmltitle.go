package essence

import (
	"strings"
)

// bestTitle is the page's title without the name of its site. What a page says
// to machines and its first heading tell which part of the title that is.
func (p *page) bestTitle() string {
	title := ""
	if p.tab.useTitle {
		title = words(p.title)
	}
	for _, c := range p.values.candidates("Title") {
		first, _, _ := strings.Cut(string(c.value), "\n")
		if first = withoutSite(words(first), p.told.heads); first != "" {
			return first
		}
	}
	if t := withoutSite(title, p.told.heads); t != "" {
		return t
	}
	for _, h := range p.told.heads {
		return h.text
	}
	return ""
}

// separators are what stands between a title and the name of a site.
var separators = []string{" | ", " - ", " – ", " — ", " » ", " :: ", " • ", " · ", " / ", " ~ ", " « ", " < ", " > ", " ‹ ", " › ", " :: ", ": "}

// withoutSite is the part of a title that a heading has, or the first part of two
// words, or the longest.
func withoutSite(title string, heads []heading) string {
	for _, h := range heads {
		if h.text == title {
			return title
		}
	}
	for _, h := range heads {
		if len(h.text) > 3 && len(h.text) < len(title) && (strings.HasPrefix(title, h.text) || strings.HasSuffix(title, h.text)) {
			return h.text
		}
	}
	for _, s := range separators[:len(separators)-1] {
		if i := strings.LastIndex(title, s); i > 0 {
			a, b := title[:i], title[i+len(s):]
			if len(strings.Fields(a)) > 1 || len(a) >= len(b) {
				return strings.TrimSpace(a)
			}
			return strings.TrimSpace(b)
		}
	}
	return title
}
