package essence

import (
	"errors"
	"slices"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/essence/pattern"
	"harvest/gather/soif"
)

// # The table derive
//
// A line gives an object an attribute when its summary has one of the line's
// patterns:
//
//	Series=A words='laser intensity' words='far infrared laser'
//	Series=D re='(?i)computer.generated\s+series' in=Title,Abstract
//
// It begins with the attribute and its value. words= is a phrase: letters and
// digits, whatever stands between and whatever the case. re= is a regular
// expression. Several patterns are alternatives. in= names the attributes that
// are looked at, those of members included; else it is all of them.
//
// An object gets each value once; several of one attribute are so many
// attributes. What derive adds is not looked at by derive.

// A derivation is the table, made into one set of patterns for each choice of
// attributes.
type derivation struct {
	lines []derived
	sets  []derivedSet
}

// A derived is what a line adds.
type derived struct{ name, value string }

// A derivedSet are the patterns of all lines with the same in=.
type derivedSet struct {
	in   []string // names in lower case, sorted; none is all
	set  *pattern.Set
	line []int32 // of each pattern
}

func deriveTable() tableFile {
	return tableFile{name: "derive", text: func() string { return deriveText }, parse: func(t *Tables, text []byte) (err error) {
		t.derive, err = parseDerive(string(text))
		return err
	}}
}

const deriveText = `# Attributes that follow from what a summary says: a line each.
#	ATTRIBUTE=VALUE words='a phrase' re='a regular expression' in=Title,Abstract
# Several words= and re= are alternatives; without in= all attributes are looked at.
`

// parseDerive reads the table. An error is an *ndb.Error.
func parseDerive(text string) (*derivation, error) {
	lines, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, nil
	}
	d := new(derivation)
	var sets []*derivedLines
	for _, e := range lines {
		l, err := parseDerived(e)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(sets, func(s *derivedLines) bool { return slices.Equal(s.in, l.in) })
		if i < 0 {
			i = len(sets)
			sets = append(sets, &derivedLines{in: l.in})
		}
		sets[i].add(l, len(d.lines))
		d.lines = append(d.lines, l.what)
	}
	for _, s := range sets {
		set, err := pattern.Compile(s.patterns)
		var bad *pattern.Error
		if errors.As(err, &bad) {
			at := s.at[min(bad.Index, len(s.at)-1)]
			return nil, at.e.Errorf(at.p, "%s: %w", at.p.Key, bad.Err)
		} else if err != nil {
			return nil, err
		}
		d.sets = append(d.sets, derivedSet{s.in, set, s.line})
	}
	return d, nil
}

// A place is a pair of the table.
type place struct {
	e ndb.Entry
	p ndb.Pair
}

// A derivedLine is a line that was read.
type derivedLine struct {
	what     derived
	in       []string
	patterns []pattern.Pattern
	at       []place // of the patterns
}

// derivedLines are those with the same in=.
type derivedLines struct {
	in       []string
	patterns []pattern.Pattern
	at       []place
	line     []int32
}

func (s *derivedLines) add(l derivedLine, n int) {
	s.patterns = append(s.patterns, l.patterns...)
	s.at = append(s.at, l.at...)
	for range l.patterns {
		s.line = append(s.line, int32(n))
	}
}

func parseDerived(e ndb.Entry) (l derivedLine, err error) {
	first := e.First()
	switch {
	case first.Value == "":
		return l, e.Errorf(first, "'%s' is not ATTRIBUTE=VALUE, with which a line begins", first.Key)
	case soif.Name(first.Key) != first.Key:
		return l, e.Errorf(first, "'%s' cannot be the name of an attribute", first.Key)
	case isGatherers(first.Key):
		return l, e.Errorf(first, "%s is the Gatherer's to set", first.Key)
	case isLife(first.Key):
		return l, e.Errorf(first, "%s is set by rules", first.Key)
	case strings.EqualFold(first.Key, "words"), strings.EqualFold(first.Key, "re"), strings.EqualFold(first.Key, "in"):
		return l, e.Errorf(first, "a line begins with the attribute and its value, not with %s=", first.Key)
	}
	l.what = derived{first.Key, first.Value}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "words", "re":
			l.patterns = append(l.patterns, pattern.Pattern{Text: p.Value, Regexp: p.Key == "re"})
			l.at = append(l.at, place{e, p})
		case "in":
			for name := range strings.SplitSeq(strings.ToLower(p.Value), ",") {
				if soif.Name(name) != name {
					return l, e.Errorf(p, "in: '%s' is no list of attributes with a comma between", p.Value)
				}
				l.in = append(l.in, name)
			}
		default:
			return l, e.Errorf(p, "unknown key '%s'; there are words, re and in", p.Key)
		}
	}
	if len(l.patterns) == 0 {
		return l, e.Errorf(first, "%s=%s has no pattern: write words=PHRASE or re=EXPRESSION", first.Key, first.Value)
	}
	slices.Sort(l.in)
	l.in = slices.Compact(l.in)
	return l, nil
}

// looksAt reports whether a set is for an attribute.
func (s *derivedSet) looksAt(name string) bool {
	if s.in == nil {
		return true
	}
	for range soif.Depth(name) {
		_, name, _ = strings.Cut(name, "-")
	}
	_, ok := slices.BinarySearch(s.in, strings.ToLower(name))
	return ok
}

// apply adds to an object what follows from it and tells of each line that did.
func (d *derivation) apply(o *soif.Object, tell func(added derived)) {
	if d == nil {
		return
	}
	met := make([]bool, len(d.lines))
	for i := range d.sets {
		s := &d.sets[i]
		h := s.set.Hits()
		for _, a := range o.Attrs {
			if s.looksAt(a.Name) {
				s.set.Match(h, a.Value)
			}
		}
		for p, line := range s.line {
			met[line] = met[line] || h.Has(p)
		}
	}
	for i, l := range d.lines {
		if met[i] && !hasValue(o, l.name, l.value) {
			o.Add(l.name, []byte(l.value))
			tell(l)
		}
	}
}

// hasValue reports whether one of an attribute's values is this one.
func hasValue(o *soif.Object, name, value string) bool {
	for v := range o.Values(name) {
		if string(v) == value {
			return true
		}
	}
	return false
}
