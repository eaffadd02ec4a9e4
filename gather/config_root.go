package gather

import (
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// source reads a root or a leaf.
func (c *config) source(e ndb.Entry, urls map[string]int) (err error) {
	kind := e.First()
	if kind.Value != "" {
		return e.Errorf(kind, "%s: takes no value; write url=%s", kind.Key, kind.Value)
	}
	s := source{Root: crawl.Root{Leaf: kind.Key == "leaf", Depth: -1, Delay: -1}}
	if u, ok := e.Pair("url"); ok {
		err = s.address(e, u, urls)
	} else if p, ok := e.Pair("program"); ok {
		s.program, err = program(e, p)
	} else {
		err = e.Errorf(kind, "%s: url=URL is missing", kind.Key)
	}
	if err != nil {
		return err
	}
	if !s.local && !s.Leaf {
		s.URLs, s.Hosts = defaultURLs, 1
		s.Sitemaps = s.program != nil || strings.HasPrefix(s.URL, "http")
		s.Feeds = s.Sitemaps
	}
	seen := make(map[string]bool)
	for _, p := range e.Pairs[1:] {
		if seen[p.Key] && !repeatable[p.Key] {
			return e.Errorf(p, "%s: %s is there twice", kind.Key, p.Key)
		}
		seen[p.Key] = true
		if err := s.setting(e, p); err != nil {
			return err
		}
	}
	if s.program != nil {
		c.lists = append(c.lists, list{s.program, s.Root, s.rules})
		return nil
	}
	c.roots, c.rules = append(c.roots, s.Root), append(c.rules, s.rules)
	if !s.force && !s.local {
		c.once = append(c.once, s.URL)
	}
	if s.watch {
		c.watched = append(c.watched, s.URL)
	}
	return nil
}

// address reads the url= of a root.
func (s *source) address(e ndb.Entry, u ndb.Pair, urls map[string]int) (err error) {
	kind := e.First().Key
	if s.URL, err = crawl.Canonical(u.Value); err != nil {
		return e.Errorf(u, "%s: %w", kind, err)
	}
	if line := urls[s.URL]; line != 0 {
		return e.Errorf(u, "%s: %s is already in line %d", kind, s.URL, line)
	}
	urls[s.URL] = e.Line
	s.local = isLocal(s.URL)
	return nil
}

// userOf is what stands before the @ of a URL's host, if a password is part of
// it.
func userOf(u string) string {
	rest := afterScheme(u)
	if i := strings.IndexAny(rest, "/\\?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 && strings.Contains(rest[:i], ":") {
		return rest[:i]
	}
	return ""
}

// afterScheme is a URL from its host on, "" of what has no scheme. Slashes count
// as they do for browsers: http:host and http:\\host are http://host.
func afterScheme(u string) string {
	_, rest, _ := strings.Cut(u, ":")
	return strings.TrimLeft(rest, "/\\")
}

// noPassword refuses a line in which a URL has a password.
func noPassword(e ndb.Entry) error {
	for _, p := range e.Pairs {
		switch p.Key {
		case "url", "program", "enumeration":
			for word := range strings.FieldsSeq(p.Value) {
				if userOf(word) != "" {
					return e.Errorf(p, "%s: a password is not for config, which can be read; write it to secrets", e.First().Key)
				}
			}
		}
	}
	return nil
}

// A list is a line whose URLs a program names anew for each visit.
type list struct {
	program []string
	root    crawl.Root // what each of them is like
	rules   rootRules
}

// programs are those that a configuration has run, with their arguments.
func (c *config) programs() map[string]bool {
	all := make(map[string]bool)
	for _, r := range c.roots {
		if len(r.Enumeration) > 0 {
			all[strings.Join(r.Enumeration, "\x00")] = true
		}
	}
	for _, l := range c.lists {
		all[strings.Join(l.program, "\x00")] = true
		if len(l.root.Enumeration) > 0 {
			all[strings.Join(l.root.Enumeration, "\x00")] = true
		}
	}
	return all
}

// newProgram refuses a program that another configuration does not have.
func (c *config) newProgram(was *config) error {
	known := was.programs()
	for p := range c.programs() {
		if !known[p] {
			name, _, _ := strings.Cut(p, "\x00")
			return fmt.Errorf("%s: a program is written on the machine that runs it: %w", name, iofs.ErrPermission)
		}
	}
	return nil
}

// isLocal reports whether a URL is of a tree of files here.
func isLocal(u string) bool { return strings.HasPrefix(u, "file:") || strings.HasPrefix(u, "mbox:") }

// A source is a root or leaf as it is read.
type source struct {
	crawl.Root
	program []string // which names the URLs, in place of one
	local   bool
	watch   bool
	force   bool // though somebody else gathers it
	rules   rootRules
}

// Keys of a leaf, and of roots; some only of those of servers, one only of
// trees.
var (
	leafKeys   = []string{"url", "program", "delay", "outside", "force"}
	treeKeys   = []string{"url", "depth", "urls", "hosts", "delay", "search", "allow", "deny", "urlfilter", "enumeration", "watch"}
	serverKeys = []string{
		"url", "program", "depth", "urls", "hosts", "delay", "search", "access", "allow", "deny", "urlfilter", "allowhost", "denyhost", "hostfilter",
		"enumeration", "sitemaps", "feeds", "outside", "force",
	}
	repeatable = map[string]bool{"allow": true, "deny": true, "urlfilter": true, "allowhost": true, "denyhost": true, "hostfilter": true}
)

func (s *source) keys() (kind string, keys []string) {
	switch {
	case s.Leaf:
		return "leaf", leafKeys
	case s.local:
		return "root of files", treeKeys
	}
	return "root", serverKeys
}

func (s *source) setting(e ndb.Entry, p ndb.Pair) (err error) {
	if kind, keys := s.keys(); !slices.Contains(keys, p.Key) {
		last := len(keys) - 1
		return e.Errorf(p, "%s: unknown key '%s'; there are %s and %s", kind, p.Key, strings.Join(keys[:last], ", "), keys[last])
	}
	switch p.Key {
	case "url", "program":
		if s.program != nil && p.Key == "url" || s.program == nil && p.Key == "program" {
			err = e.Errorf(p, "%s: url and program do not go together", e.First().Key)
		}
	case "force":
		s.force, err = e.Bool(p)
	case "depth":
		s.Depth, err = number(e, p, -1)
	case "urls":
		s.URLs, err = quantity(e, p, 0)
	case "hosts":
		s.Hosts, err = quantity(e, p, 1<<30)
	case "delay":
		s.Delay, err = e.Duration(p)
	case "search":
		s.Search = crawl.Depth
		var breadth bool
		if breadth, err = either(e, p, "breadth", "depth"); breadth {
			s.Search = crawl.Breadth
		}
	case "access":
		if s.Access, err = crawl.ParseAccess(p.Value); err != nil {
			err = e.Errorf(p, "%w", err)
		}
	case "enumeration":
		s.Enumeration, err = program(e, p)
	case "sitemaps":
		s.Sitemaps, err = e.Bool(p)
	case "feeds":
		s.Feeds, err = e.Bool(p)
	case "outside":
		s.Outside, err = e.Bool(p)
	case "watch":
		if s.watch, err = e.Bool(p); err == nil && s.watch && !strings.HasPrefix(s.URL, "file:") {
			err = e.Errorf(p, "watch: only trees of files can be watched")
		}
	default:
		err = s.rules.add(&s.Root, e, p)
	}
	return err
}

// program reads a command: a program, by its whole name, and arguments without
// blanks in them.
func program(e ndb.Entry, p ndb.Pair) ([]string, error) {
	words := strings.Fields(p.Value)
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil, e.Errorf(p, "%s: '%s' is not the name of a program that begins with a slash", p.Key, p.Value)
	}
	return words, nil
}
