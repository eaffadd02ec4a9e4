package essence

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"harvest/fs/ndb"
)

// names are patterns and the types they tell: the first that fits decides. Most
// patterns are a whole name or a suffix, and those are looked up.
type names struct {
	all   []namePattern
	whole map[string][]int // of all, in order, by name: capitals as they are
	end   map[string][]int // by suffix, from its dot
	other []int            // those that must be tried
}

// A namePattern is a word of a line.
type namePattern struct {
	kind  *kind
	text  string         // the word, as it is told of
	re    *regexp.Regexp // what is tried; nil for those that are looked up
	ends  ends           // of names that re may match
	part  string         // what they have in them, in small letters; of a re= not known
	exact bool           // capitals are as they are written
	line  int
}

// add takes a word: a pattern, or re=.
func (n *names) add(k *kind, e ndb.Entry, p ndb.Pair) error {
	x := namePattern{kind: k, text: p.Key, line: e.Line}
	switch {
	case len(n.all) >= most:
		return e.Errorf(p, "more than %d patterns", most)
	case p.Key == "re":
		re, err := regexp.Compile(p.Value)
		if err != nil || p.Value == "" {
			return e.Errorf(p, "re: '%s' is no regular expression: %v", p.Value, err)
		}
		x.text, x.re, x.ends = "re="+p.Value, re, endsOf(p.Value)
	case p.Value != "":
		return e.Errorf(p, "unknown key '%s'; there are patterns and re=, and a pattern with '=' stands between quotes", p.Key)
	default:
		return n.glob(x, e, p)
	}
	n.other = append(n.other, len(n.all))
	n.all = append(n.all, x)
	return nil
}

// glob takes a pattern.
func (n *names) glob(x namePattern, e ndb.Entry, p ndb.Pair) error {
	x.exact = p.Key != strings.ToLower(p.Key)
	i := len(n.all)
	suffix, isSuffix := strings.CutPrefix(p.Key, "*.")
	switch {
	case !strings.ContainsAny(p.Key, `*?[\`) && p.Key != "":
		n.whole = listed(n.whole, strings.ToLower(p.Key), i)
	case isSuffix && suffix != "" && !strings.ContainsAny(suffix, `*?[\`):
		n.end = listed(n.end, "."+strings.ToLower(suffix), i)
	default:
		re, err := globbed(p.Key)
		if err != nil {
			return e.Errorf(p, "'%s' is no pattern: %v", p.Key, err)
		}
		x.re, x.ends, x.part = re, endsOf(re.String()), longestPart(p.Key)
		n.other = append(n.other, i)
	}
	n.all = append(n.all, x)
	return nil
}

// longestPart is the longest piece of a pattern that stands for itself, in ASCII and
// without k and s, which other letters too are the same as.
func longestPart(pattern string) (most string) {
	pattern = strings.ToLower(pattern)
	if strings.ContainsAny(pattern, `[\`) {
		return ""
	}
	for part := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r == '*' || r == '?' || r >= utf8.RuneSelf || r == 'k' || r == 's' }) {
		if len(part) > len(most) {
			most = part
		}
	}
	return most
}

func listed(m map[string][]int, key string, i int) map[string][]int {
	if m == nil {
		m = make(map[string][]int)
	}
	m[key] = append(m[key], i)
	return m
}

// globbed makes a regular expression of a pattern: '*' is any text, '?' a
// letter, '[a-z]' one of these. One without capitals fits both cases.
func globbed(pattern string) (*regexp.Regexp, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(`(?s`)
	if pattern == strings.ToLower(pattern) {
		b.WriteString(`i`)
	}
	b.WriteString(`)\A`)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteString(`.`)
		case '[':
			end := i + 1 + strings.IndexByte(pattern[i+1:], ']')
			b.WriteString(pattern[i : end+1])
			i = end
		case '\\':
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			j := i
			for j < len(pattern) && !strings.ContainsRune(`*?[\`, rune(pattern[j])) {
				j++
			}
			b.WriteString(regexp.QuoteMeta(pattern[i:j]))
			i = j - 1
		}
	}
	b.WriteString(`\z`)
	return regexp.Compile(b.String())
}

// fits reports whether pattern i, which was looked up, has the capitals of name.
func (n *names) fits(i int, name string) bool {
	x := &n.all[i]
	if !x.exact {
		return true
	}
	text := strings.TrimPrefix(x.text, "*")
	return len(name) >= len(text) && name[len(name)-len(text):] == text
}

// find returns the first pattern that fits a name, nil if none does.
func (n *names) find(name string) *namePattern {
	first := len(n.all)
	look := func(at []int) {
		for _, i := range at {
			if i < first && n.fits(i, name) {
				first = i
				return
			}
		}
	}
	low := strings.ToLower(name)
	look(n.whole[low])
	for i := strings.IndexByte(low, '.'); i >= 0; {
		if i > 0 { // a dot in front is no suffix
			look(n.end[low[i:]])
		}
		next := strings.IndexByte(low[i+1:], '.')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	for _, i := range n.other {
		if i >= first {
			break
		}
		if x := &n.all[i]; x.ends.may(name) && strings.Contains(low, x.part) && x.re.MatchString(name) {
			first = i
			break
		}
	}
	if first == len(n.all) {
		return nil
	}
	return &n.all[first]
}

func (t *Tables) parseByURL(text []byte) error {
	return lines(text, embedded("byurl"), func(e ndb.Entry) error { return t.parseNames(&t.byurl, e) })
}

func (t *Tables) parseByName(text []byte) error {
	return lines(text, embedded("byname"), func(e ndb.Entry) error { return t.parseNames(&t.byname, e) })
}

func (t *Tables) parseNames(n *names, e ndb.Entry) error {
	name, err := typeName(e)
	if err != nil {
		return err
	}
	if len(e.Pairs) == 1 {
		return e.Errorf(e.First(), "%s: no pattern", name)
	}
	k := t.kind(name)
	for _, p := range e.Pairs[1:] {
		if err := n.add(k, e, p); err != nil {
			return err
		}
	}
	return nil
}
