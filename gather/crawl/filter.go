package crawl

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"harvest/fs/ndb"
)

// A Filter is an ordered list of rules that let something in or keep it out:
// the first whose regular expression matches decides, and without one all is
// let in. A nil Filter lets everything in. A Filter that is no longer added to
// may be used by many goroutines.
//
// What it is matched with is the caller's choice; FilterPath and FilterHost
// give what the original's two kinds of filter see of a URL.
type Filter struct{ rules []filterRule }

type filterRule struct {
	re    *regexp.Regexp
	allow bool
	say   string
}

// Add appends a rule; say is how it is told of when it decides.
func (f *Filter) Add(allow bool, pattern, say string) error {
	if pattern == "" {
		return errors.New("the pattern is empty")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	f.rules = append(f.rules, filterRule{re, allow, say})
	return nil
}

// Len is the number of rules.
func (f *Filter) Len() int {
	if f == nil {
		return 0
	}
	return len(f.rules)
}

// Admits reports whether s is let in, and the rule that says so, "" when none
// does.
func (f *Filter) Admits(s string) (ok bool, why string) {
	if f == nil {
		return true, ""
	}
	for i := range f.rules {
		if r := &f.rules[i]; r.re.MatchString(s) {
			return r.allow, r.say
		}
	}
	return true, ""
}

// Closes returns the rule that keeps out a folder with all that may be in it,
// or "": one that denies, stands before every rule that lets in, and says
// nothing about how a path ends.
func (f *Filter) Closes(folder string) string {
	if f == nil {
		return ""
	}
	for i := range f.rules {
		switch r := &f.rules[i]; {
		case r.allow || strings.Contains(r.re.String(), "$"):
			return ""
		case r.re.MatchString(folder):
			return r.say
		}
	}
	return ""
}

// FilterPath is the part of a canonical URL that a URL filter sees: path and
// query, without scheme, host and port.
func FilterPath(u string) string {
	_, rest, ok := strings.Cut(u, "://")
	if !ok {
		return u
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		if rest[i] == '?' {
			return "/" + rest[i:]
		}
		return rest[i:]
	}
	return "/"
}

// usualPorts are what FilterHost writes where a URL has no port.
var usualPorts = map[string]string{"http": "80", "https": "443", "ftp": "21", "ftps": "990", "gopher": "70", "nntp": "119", "nntps": "563"}

// FilterHost is the part of a canonical URL that a host filter sees: host:port,
// the port also where it is the usual one.
func FilterHost(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, ':'); i < 0 || strings.HasSuffix(rest, "]") {
		if p := usualPorts[scheme]; p != "" && rest != "" {
			return rest + ":" + p
		}
	}
	return rest
}

// Bounds of a filter file.
const (
	maxFilterRules = 10_000
	maxPattern     = 4096
)

// ParseFilter reads a filter file of the original:
//
//	# the manual, but not its old editions
//	Deny   /old/
//	Allow  ^/manual/
//	Deny   .
//
// The expressions are POSIX's extended ones, as regcomp(3) of GNU reads them: a
// star that has nothing to repeat is a star. name is what rules are told of by,
// as in "name:2: Deny /old/". An error is an *ndb.Error.
func ParseFilter(name, text string) (*Filter, error) {
	f := new(Filter)
	n := 0
	for line := range strings.Lines(text) {
		n++
		word := strings.Fields(line)
		if len(word) == 0 || word[0][0] == '#' {
			continue
		}
		e := ndb.Entry{Line: n}
		at := func(w string) ndb.Pair { return ndb.Pair{Col: strings.Index(line, w) + 1} }
		if len(word) != 2 {
			return nil, e.Errorf(at(word[0]), "a line is Allow or Deny and one regular expression")
		}
		allow := strings.EqualFold(word[0], "allow")
		if !allow && !strings.EqualFold(word[0], "deny") {
			return nil, e.Errorf(at(word[0]), "'%s' is neither Allow nor Deny", clip(word[0]))
		}
		if len(word[1]) > maxPattern || len(f.rules) >= maxFilterRules {
			return nil, e.Errorf(at(word[1]), "more than %d rules, or one longer than %d", maxFilterRules, maxPattern)
		}
		if err := f.Add(allow, posix(word[1]), fmt.Sprintf("%s:%d: %s %s", name, n, word[0], word[1])); err != nil {
			return nil, e.Errorf(ndb.Pair{Col: strings.LastIndex(line, word[1]) + 1}, "%v", err)
		}
	}
	return f, nil
}

// posix writes a POSIX extended expression as Go's: what has nothing to repeat
// stands for itself, \< and \> are bounds of words, and other letters that are
// escaped for no reason stand for themselves.
func posix(s string) string {
	var b strings.Builder
	start := true // nothing stands here that could be repeated
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '[':
			j := bracket(s[i:])
			b.WriteString(strings.ReplaceAll(s[i:i+j], `\`, `\\`))
			i += j - 1
			start = false
			continue
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteString(escaped(s[i]))
			start = false
			continue
		case start && (c == '*' || c == '+' || c == '?' || c == '{'):
			b.WriteString(`\` + string(c))
			start = false
			continue
		}
		b.WriteByte(c)
		start = c == '(' || c == '|' || c == '^'
	}
	return b.String()
}

func escaped(c byte) string {
	switch {
	case c == '<' || c == '>':
		return `\b`
	case strings.IndexByte("bBwW", c) >= 0:
		return `\` + string(c)
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80:
		return string(rune(c))
	}
	return `\` + string(c)
}

// bracket is the length of the bracket expression that s begins with, all of s
// when it has no end.
func bracket(s string) int {
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for ; i < len(s); i++ {
		switch {
		case s[i] == ']':
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			if j := strings.Index(s[i+2:], string(s[i+1])+"]"); j >= 0 {
				i += j + 3
			}
		}
	}
	return len(s)
}

// Join appends the rules of another filter.
func (f *Filter) Join(g *Filter) {
	if g != nil {
		f.rules = append(f.rules, g.rules...)
	}
}
