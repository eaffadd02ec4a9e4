package essence

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"harvest/fs/ndb"
)

// A policy is what is done with the containers of a type.
type policy struct {
	as      string           // embed, objects or no
	formats []string         // that it may be; nil: any
	only    []*regexp.Regexp // of the members' names; nil: all
	members int
	size    int64
	depth   int
	time    time.Duration
}

// A policyRule is a line of the table.
type policyRule struct {
	types []*regexp.Regexp
	text  string
	set   policy
}

// parseUnnest reads the table, which is described in its own text.
func (t *Tables) parseUnnest(text []byte) error {
	return lines(text, embedded("unnest"), t.parseUnnestLine)
}

func (t *Tables) parseUnnestLine(e ndb.Entry) error {
	r := policyRule{text: e.String()}
	if len(t.unnests) >= most {
		return e.Errorf(e.First(), "more than %d lines", most)
	}
	types, set, err := t.typesOf(e, "what is done with them", func(p ndb.Pair) (bool, error) {
		if p.Value == "" {
			return false, nil
		}
		return true, r.set.parse(e, p)
	})
	if err != nil {
		return err
	}
	if !set {
		return e.Errorf(e.First(), "nothing to be done")
	}
	r.types = types
	t.unnests = append(t.unnests, r)
	return nil
}

// parse reads what a word of a line says.
func (p *policy) parse(e ndb.Entry, w ndb.Pair) (err error) {
	count := func(to *int, least int) {
		if *to, err = e.Int(w); err == nil && *to < least {
			err = e.Errorf(w, "%s: %d is less than %d", w.Key, *to, least)
		}
	}
	switch w.Key {
	case "as":
		if p.as = w.Value; p.as != "embed" && p.as != "objects" && p.as != "no" {
			err = e.Errorf(w, "as: '%s' is not embed, objects or no", w.Value)
		}
	case "format":
		p.formats = strings.Split(w.Value, ",")
		for _, f := range p.formats {
			if formatNamed(f) == nil {
				return e.Errorf(w, "format: '%s' is none of %s", f, strings.Join(formatNames(), ", "))
			}
		}
	case "only":
		for _, name := range strings.Fields(w.Value) {
			re, err := regexp.Compile(memberPattern(name))
			if err != nil {
				return e.Errorf(w, "only: '%s' is no pattern: %v", name, err)
			}
			p.only = append(p.only, re)
		}
	case "members":
		count(&p.members, 1)
	case "depth":
		count(&p.depth, 1)
	case "size":
		p.size, err = e.Size(w)
	case "time":
		if p.time, err = e.Duration(w); err == nil && p.time <= 0 {
			err = e.Errorf(w, "time: %s is no time", w.Value)
		}
	default:
		err = e.Errorf(w, "unknown key '%s'; there are as, format, only, members, size, depth and time", w.Key)
	}
	return err
}

// memberPattern makes a regular expression of a pattern of members' names.
func memberPattern(name string) string {
	var b strings.Builder
	b.WriteString(`(?is)^`)
	if !strings.Contains(name, "/") {
		b.WriteString(`(?:.*/)?`)
	}
	for _, r := range name {
		switch r {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteString(`.`)
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String() + `$`
}

// policy is what is done with the containers of a type.
func (t *Tables) policy(k *kind) (p policy) {
	for i := range t.unnests {
		if r := &t.unnests[i]; k.any(r.types) {
			p.join(&r.set)
		}
	}
	return p
}

// join takes from another what it does not say itself.
func (p *policy) join(q *policy) {
	if p.formats == nil && p.as == "" { // format and only belong to the as that decides
		p.formats = q.formats
	}
	if p.only == nil && p.as == "" {
		p.only = q.only
	}
	p.as = cmp.Or(p.as, q.as)
	p.members = cmp.Or(p.members, q.members)
	p.size = cmp.Or(p.size, q.size)
	p.depth = cmp.Or(p.depth, q.depth)
	p.time = cmp.Or(p.time, q.time)
}

// takes reports whether a member of that name is wanted.
func (p *policy) takes(name string) bool {
	if p.only == nil {
		return true
	}
	for _, re := range p.only {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}
