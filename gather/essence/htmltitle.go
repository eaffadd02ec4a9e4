package essence

import (
	"strings"
	"unicode"
)

// bestTitle is the page's title without the name of its site. What a page says
// to machines is compared with its headings: a heading that is all of it, or an
// end, is the title as readers see it.
func (p *page) bestTitle() string {
	var said []string
	for _, c := range p.values.candidates("Title") {
		first, _, _ := strings.Cut(string(c.value), "\n")
		if first = titleText(first); first != "" {
			said = append(said, first)
		}
	}
	title := ""
	if p.tab.useTitle {
		title = titleText(string(p.title))
	}
	if h := p.heading(append(said, title)); h != "" {
		return h
	}
	if i, _ := lastSeparator(title); len(said) == 0 && title != "" && i < 0 {
		return title // there is nothing to say that it is not
	}
	if h := p.onlyHeading(); h != "" {
		for _, s := range said {
			if strings.Contains(folded(h), folded(s)) {
				return s // the heading has something else beside
			}
		}
		return h
	}
	site := p.values.first(siteName)
	for _, s := range said {
		if !strings.EqualFold(s, site) {
			return withoutSite(withoutName(s, site), title)
		}
	}
	if t := withoutName(title, site); t != title {
		return t
	}
	if t := firstPart(title); t != "" {
		return t
	}
	for _, h := range p.told.heads {
		return h.text
	}
	return ""
}

// onlyHeading is the page's heading of the first level, if it has one that is a
// sentence.
func (p *page) onlyHeading() string {
	only := ""
	for _, h := range p.told.heads {
		if h.level != '1' {
			continue
		}
		if only != "" {
			return ""
		}
		only = h.text
	}
	if len(strings.Fields(only)) < 3 || len(only) > 150 {
		return ""
	}
	return only
}

// withoutSite is a title without the name of a site, which is short, and stands
// after a bar, or is at the end of another title as well.
func withoutSite(s, title string) string {
	i, n := lastSeparator(s)
	if i < 0 || len(strings.Fields(s[i+n:])) > 4 || len(strings.Fields(s[:i])) < 2 {
		return s
	}
	if strings.ContainsAny(s[i:i+n], "|»") || s != title && strings.HasSuffix(title, s[i:]) {
		return strings.TrimSpace(s[:i])
	}
	return s
}

// heading is the heading of the page that titles have, "" if there is none: all
// of one, the beginning, or the end if what is before it is shorter.
func (p *page) heading(titles []string) string {
	best, rank := "", 9
	for _, title := range titles {
		t := folded(title)
		for _, h := range p.told.heads {
			f := folded(h.text)
			r := 9
			switch {
			case f == "" || len(f) < 8 && f != t:
				continue
			case f == t:
				r = 0
			case strings.HasPrefix(t, f) && parted(t[len(f):]):
				r = 2
			case strings.HasSuffix(t, f) && parted(t[:len(t)-len(f)]) && len(t)-len(f) < len(f):
				r = 4
			default:
				continue
			}
			if h.level != '1' {
				r++
			}
			if r < rank {
				best, rank = h.text, r
			}
		}
	}
	return best
}

// parted reports whether there is something between a title and a name.
func parted(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || strings.ContainsFunc(s[:1], isMark) || strings.ContainsFunc(s[len(s)-1:], isMark) || !isLetter(s[0])
}

func isMark(r rune) bool { return strings.ContainsRune("|-:»«/~<>•·", r) }

// folded is a title with nothing that writers change at will: case, quotes,
// dashes.
func folded(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch r {
		case '’', '‘', '´', '`', '‚':
			return '\''
		case '“', '”', '„', '«', '»':
			return '"'
		case '–', '—', '‐', '‑':
			return '-'
		}
		return unicode.ToLower(r)
	}, strings.ReplaceAll(s, "…", "...")))
}

// separators are what stands between a title and the name of a site.
var separators = [...]string{" | ", " » ", " :: ", " - ", " – ", " — ", " • ", " · ", " / ", " ~ ", " « ", " < ", " > ", " ‹ ", " › ", " : ", " │ ", "│", " |", "| ", "｜", "_"}

// lastSeparator is where the last part of a title is cut off, and how long what
// stands there is.
func lastSeparator(s string) (at, n int) {
	for _, sep := range separators[:len(separators)-4] {
		if i := strings.LastIndex(s, sep); i > 0 {
			return i, len(sep)
		}
	}
	return -1, 0
}

// withoutName is a title without a name at its end, or at its beginning.
func withoutName(title, name string) string {
	if name == "" {
		return title
	}
	for _, sep := range separators {
		if t, ok := cutFold(title, sep+name); ok {
			return strings.TrimSpace(t)
		}
		if n := len(name) + len(sep); len(title) > n && strings.EqualFold(title[:n], name+sep) {
			return strings.TrimSpace(title[n:])
		}
	}
	return title
}

func cutFold(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n > 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n], true
	}
	return s, false
}

// firstPart is the part of a title that stands before the name of a site: the
// first, unless that is a word and more follow.
func firstPart(title string) string {
	i, n := lastSeparator(title)
	if i < 0 {
		return title
	}
	a, b := title[:i], title[i+n:]
	if len(strings.Fields(a)) > 1 || len(a) >= len(b) {
		return strings.TrimSpace(a)
	}
	return strings.TrimSpace(b)
}

// titleText is a title on one line, without marks that are for setting it.
func titleText(s string) string {
	if strings.Contains(s, "\u00a0") || strings.Contains(s, "\u00ad") {
		s = strings.NewReplacer("\u00a0", " ", "\u00ad", "").Replace(s)
	}
	return words(s)
}

// siteName is the attribute that has the name of the page's site.
const siteName = "Publisher"
