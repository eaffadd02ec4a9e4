package essence

import "bytes"

// A hint is what the class, the id or the role of an element says of it.
type hint uint8

const (
	hintMain    hint = 1 << iota // it holds the main text
	hintAside                    // it is something else
	hintAuthor                   // it names who wrote the page
	hintComment                  // it is what others have answered
)

// hintWords are the words of classes that tell something, and what.
var hintWords = func() map[string]hint {
	m := make(map[string]hint)
	for h, list := range map[hint][]string{
		hintMain: {`article articlebody articletext articlecontent entry entrycontent postcontent postbody posttext story storybody
			storytext blogpost hentry maincontent contentmain bodytext newstext fulltext`},
		hintAside: {`ad ads advert advertisement advertising anzeige banner bottombar breadcrumb breadcrumbs byline comment comments commentlist commentform
			community cookie cookies copyright credit credits date disqus discuss dropdown feedback filter follow footer footnav
			header hidden imprint impressum kommentar kommentare legal login logo masthead menu meta metadata metanav modal more nav navbar navi navigation
			newsletter overlay pager pagination paging popular popup postmeta promo promotion recommend recommended recommendation related respond rss search
			share sharedaddy shares sharing shariff shoutbox sidebar sidebars skip skyscraper social sociable sponsor sponsored subscribe
			subscription tags tagcloud tagged teaser teasers toc toolbar tools topbar tracking trackback trackbacks widget widgets relatedposts
			sharebar socialshare linklist outbrain taboola authorbox`},
		hintComment: {`comment comments commentlist commentform respond disqus kommentar kommentare`},
		hintAuthor:  {`author authors byline autor vcard writtenby`},
	} {
		for _, words := range list {
			for _, w := range bytes.Fields([]byte(words)) {
				m[string(w)] |= h
			}
		}
	}
	return m
}()

// hintOf reads the attributes of a tag.
func (b *body) hintOf(m *markup) (h hint) {
	for i := range m.attrs {
		if a := &m.attrs[i]; a.names() || isNamed(a.key, "role") {
			h |= b.known(a.value)
		}
	}
	return h
}

// names reports whether an attribute names what the element is for.
func (a *pair) names() bool {
	switch a.key[0] | 0x20 {
	case 'c':
		return isNamed(a.key, "class")
	case 'i':
		return isNamed(a.key, "id") || isNamed(a.key, "itemprop")
	}
	return false
}

// A hintCache has the hints of classes that were met, which mostly are met again,
// in this page or in the next of its site.
type hintCache [256]struct {
	class []byte
	hint  hint
}

// known is the hint of a class.
func (b *body) known(class []byte) hint {
	if len(class) == 0 {
		return 0
	}
	if len(class) > 200 {
		class = class[:200]
	}
	n := len(class)
	e := &b.hints[(n*7+int(class[0])+int(class[n/2])*5+int(class[n-1])*31)%len(b.hints)]
	if !bytes.Equal(e.class, class) {
		e.class, e.hint = append(e.class[:0], class...), readHint(class)
	}
	return e.hint
}

// readHint looks at each word of a class, and at each two that stand together in
// one name. A word ends where no letter follows, or a capital follows a small
// letter. A name that speaks for main text counts more than one that does not:
// what is marked as an article may have tags named after anything.
func readHint(class []byte) (all hint) {
	for i := 0; i < len(class); {
		if class[i] <= ' ' {
			i++
			continue
		}
		start := i
		for i < len(class) && class[i] > ' ' {
			i++
		}
		h := nameHint(class[start:i])
		if h&hintAside != 0 {
			h &^= hintMain
		}
		all |= h
	}
	if all&hintMain != 0 {
		all &^= hintAside
	}
	return all
}

// nameHint is what one name says.
func nameHint(name []byte) (h hint) {
	var buf [64]byte
	low := buf[:0] // its letters, in small ones
	last, not := 0, false
	for i := 0; i < len(name) && len(low) < len(buf); {
		start := len(low)
		for ; i < len(name) && isLetter(name[i]) && len(low) < len(buf); i++ {
			if name[i] <= 'Z' && len(low) > start && name[i-1] >= 'a' {
				break
			}
			low = append(low, name[i]|0x20)
		}
		switch word := string(low[start:]); word {
		case "":
			i++
			continue
		case "has", "no", "with", "without", "not":
			not = true
		default:
			if !not {
				h |= hintWords[word] | hintWords[string(low[last:])]
			}
			not = false
		}
		last = start
	}
	return h
}
