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
	slots []slot // by hash; a free one ends the search
}

// A slot is an element, and the start of its name as one number, which is quicker
// to compare.
type slot struct {
	key uint64
	is  *element
}

func newDictionary(all map[string]*element) dictionary {
	n := 256
	for n < 4*len(all) {
		n *= 2
	}
	d := dictionary{make([]slot, n)}
	for _, e := range all {
		key := keyOf([]byte(e.name))
		i := d.hash(key)
		for d.slots[i].is != nil {
			i = (i + 1) & (len(d.slots) - 1)
		}
		d.slots[i] = slot{key, e}
	}
	return d
}

// keyOf is the first eight bytes of a name, in small letters. Bytes that are no
// letters have the bit of small ones set too; names that differ by that alone
// are compared whole.
func keyOf(name []byte) (key uint64) {
	for _, c := range name[:min(len(name), 8)] {
		key = key<<8 | uint64(c|0x20)
	}
	return key
}

func (d *dictionary) hash(key uint64) int {
	return int(key*0x9e3779b97f4a7c15>>40) & (len(d.slots) - 1)
}

// find returns the element, nil if the name means nothing.
func (d *dictionary) find(name []byte) *element {
	if len(name) > maxTagName {
		return nil
	}
	key := keyOf(name)
	for i := d.hash(key); ; i = (i + 1) & (len(d.slots) - 1) {
		switch s := &d.slots[i]; {
		case s.is == nil:
			return nil
		case s.key == key && isNamed(name, s.is.name):
			return s.is
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
		if c != want[i] && (c|0x20 != want[i] || c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
