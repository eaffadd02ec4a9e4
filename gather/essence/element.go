package essence

// An element is what the tags of a name mean: what the program makes of them,
// and what the table html says.
type element struct {
	name string // in small letters
	does elementFlag
	rule *textRule  // of its text; nil: it is that of what is around it
	attr []attrRule // of its attributes
}

// An elementFlag is what an element does to the page around it.
type elementFlag uint32

const (
	aBlock     elementFlag = 1 << iota // begins and ends a line
	aNode                              // has a part of the page in it, which is main text or not
	aParagraph                         // of running text
	aHeading
	anItem  // of a list
	aCell   // of a table
	aPre    // has its lines kept
	aLead   // may be the first paragraph that says something
	aLink   // its words lead elsewhere
	aSide   // is never main text
	aMain   // is likely to be
	endsOwn // ends where the next of its kind begins
	isMeta
	isRelation // link
	isRoot     // html
	isScript
	isTitle
	isTime
)

// elements are those that mean something without a table.
var elements = map[string]elementFlag{
	"a": aLink, "area": 0, "button": aLink, "html": isRoot, "meta": isMeta, "link": isRelation, "script": isScript, "style": isScript,
	"title": isTitle, "time": isTime, "span": 0, "img": 0,
	"h1": aBlock | aHeading, "h2": aBlock | aHeading, "h3": aBlock | aHeading, "h4": aBlock | aHeading, "h5": aBlock | aHeading, "h6": aBlock | aHeading,
	"p": aBlock | aParagraph | aLead, "br": aBlock, "hr": aBlock, "pre": aBlock | aPre,
	"div": aBlock | aNode, "section": aBlock | aNode, "article": aBlock | aNode | aMain, "main": aBlock | aNode | aMain, "body": aBlock | aNode,
	"header": aBlock | aNode, "footer": aBlock | aNode | aSide, "nav": aBlock | aNode | aSide, "aside": aBlock | aNode | aSide,
	"form": aBlock | aNode, "select": aNode | aSide, "option": aBlock, "noscript": aNode | aSide, "fieldset": aBlock | aNode,
	"ul": aBlock | aNode, "ol": aBlock | aNode, "li": aBlock | aNode | anItem | endsOwn,
	"dl": aBlock | aNode, "dt": aBlock | anItem, "dd": aBlock | anItem | aLead,
	"table": aBlock | aNode, "caption": aBlock, "tr": aBlock, "td": aBlock | aNode | aCell | endsOwn, "th": aBlock | aNode | aCell | endsOwn,
	"blockquote": aBlock | aNode | aLead, "address": aBlock, "figure": aBlock | aNode, "figcaption": aBlock | aNode, "details": aBlock | aNode, "summary": aBlock,
	"template": 0,
}

// A dictionary finds elements by their name as it is written.
type dictionary struct {
	slots []*element // by hash; a free one ends the search
}

func newDictionary(all map[string]*element) dictionary {
	n := 256
	for n < 4*len(all) {
		n *= 2
	}
	d := dictionary{make([]*element, n)}
	for _, e := range all {
		i := d.hash([]byte(e.name))
		for d.slots[i] != nil {
			i = (i + 1) & (len(d.slots) - 1)
		}
		d.slots[i] = e
	}
	return d
}

func (d *dictionary) hash(name []byte) int {
	h := uint32(len(name))
	for _, c := range name {
		h = h*33 ^ uint32(c|0x20)
	}
	return int(h^h>>15) & (len(d.slots) - 1)
}

// find returns the element, nil if the name means nothing.
func (d *dictionary) find(name []byte) *element {
	if len(name) > maxTagName {
		return nil
	}
	for i := d.hash(name); ; i = (i + 1) & (len(d.slots) - 1) {
		e := d.slots[i]
		if e == nil || isNamed(name, e.name) {
			return e
		}
	}
}

// maxTagName is longer than any name a table may have.
const maxTagName = 32

// isNamed compares a name as it is written with one in small letters.
func isNamed(name []byte, want string) bool {
	if len(name) != len(want) {
		return false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != want[i] {
			return false
		}
	}
	return true
}
