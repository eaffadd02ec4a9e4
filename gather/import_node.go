package gather

import (
	"slices"
	"strconv"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// oldSpecs are the words that follow the URL of a RootNode. Site is what Host
// was called once.
var oldSpecs = map[string]bool{"URL": true, "Host": true, "Site": true, "Access": true, "Delay": true, "Depth": true, "Search": true, "Enumeration": true}

// node translates a line of a section: a URL, or a program that names some.
func (t *translator) node(l oldLine, leaf bool) error {
	first := ndb.Pair{Key: "root"}
	if leaf {
		first.Key = "leaf"
	}
	specs := l.words[1:]
	var who ndb.Pair
	if name, ok := strings.CutPrefix(l.words[0], "|"); ok {
		var err error
		if who, specs, err = t.program(l, name); err != nil {
			return err
		}
	} else {
		u, why := t.address(l)
		if why != "" {
			t.ignore(l, clipped(l.words[0]), "%s", why)
			return nil
		}
		who = ndb.Pair{Key: "url", Value: u}
	}
	if leaf {
		for _, s := range specs {
			t.ignore(l, clipped(s), "a LeafNode is a URL and no more")
		}
		t.entry(l, first, who)
		return nil
	}
	s := spec{urls: "250", hosts: "1", delay: t.settings["access-delay"]}
	for _, w := range specs {
		if err := t.spec(&s, l, w); err != nil {
			return err
		}
	}
	pairs, err := t.root(l, who, &s)
	if err == nil {
		t.entry(l, append([]ndb.Pair{first, who}, pairs...)...)
	}
	return err
}

// address is the URL of a line, or why it is not gathered from.
func (t *translator) address(l oldLine) (u, why string) {
	raw := l.words[0]
	scheme, rest, _ := strings.Cut(raw, ":")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "news" && !strings.HasPrefix(rest, "//"):
		return "", "a news group needs its server: nntp://HOST/" + clipped(rest) + "/"
	case scheme == "wais" || scheme == "telnet" || scheme == "mailto":
		return "", "nothing is gathered by " + scheme
	}
	raw = t.withoutUser(l, raw)
	u, err := crawl.Canonical(raw)
	if err != nil {
		return raw, "" // it is refused when the entry is read
	}
	if strings.HasPrefix(u, "http") {
		host := strings.TrimPrefix(crawl.Origin(u), scheme+"://")
		if !slices.Contains(t.hosts, host) {
			t.hosts = append(t.hosts, host)
		}
	}
	return u, ""
}

// program is what names the URLs of a line that begins with a bar, and the
// specifications after it.
func (t *translator) program(l oldLine, name string) (ndb.Pair, []string, error) {
	words := slices.Concat([]string{name}, l.words[1:])
	if name == "" {
		words = words[1:]
	}
	n := slices.IndexFunc(words, func(w string) bool { key, _, ok := strings.Cut(w, "="); return ok && oldSpecs[key] })
	if n < 0 {
		n = len(words)
	}
	if n == 0 {
		return ndb.Pair{}, nil, l.errorf("a program is missing after the bar")
	}
	file, ok := t.fileName(words[0])
	if !ok {
		return ndb.Pair{}, nil, l.errorf("'%s': no Top-Directory says where that is", clipped(words[0]))
	}
	command := strings.Join(append([]string{file}, words[1:n]...), " ")
	return ndb.Pair{Key: "program", Value: command}, words[n:], nil
}

// A spec is what a RootNode says of its enumeration, by the original's defaults.
type spec struct {
	urls, urlFilter, hosts, hostFilter, access, delay, depth, search, enumeration string
}

// spec reads one specification, such as URL=100,filter.
func (t *translator) spec(s *spec, l oldLine, word string) error {
	key, value, ok := strings.Cut(word, "=")
	if !ok || !oldSpecs[key] {
		return l.errorf("'%s' is none of URL=, Host=, Access=, Delay=, Depth=, Search= and Enumeration=", clipped(word))
	}
	most, filter, _ := strings.Cut(value, ",")
	switch key {
	case "URL":
		s.urls, s.urlFilter = most, filter
	case "Host", "Site":
		s.hosts, s.hostFilter = most, filter
	case "Access":
		s.access = value
	case "Delay":
		s.delay = value
	case "Depth":
		s.depth = value
	case "Search":
		s.search = strings.ToLower(value)
	case "Enumeration":
		s.enumeration = value
	}
	return nil
}

// root writes a specification as pairs of a root.
func (t *translator) root(l oldLine, who ndb.Pair, s *spec) (pairs []ndb.Pair, err error) {
	local := who.Key == "url" && isLocal(who.Value)
	add := func(key, value string) {
		if value != "" {
			pairs = append(pairs, ndb.Pair{Key: key, Value: value})
		}
	}
	file := func(key, name string) {
		if name == "" || name == "/dev/null" {
			return
		}
		full, ok := t.fileName(name)
		if !ok && err == nil {
			err = l.errorf("'%s': no Top-Directory says where that is", clipped(name))
		}
		add(key, full)
	}
	add("urls", s.urls)
	file("urlfilter", s.urlFilter)
	if local {
		if s.hostFilter != "" || s.hosts != "1" || s.access != "" {
			t.ignore(l, "Host, Access", "files have no host")
		}
	} else {
		add("hosts", s.hosts)
		file("hostfilter", s.hostFilter)
		if err := t.access(l, who, s, add); err != nil {
			return nil, err
		}
	}
	if s.delay != "" && !local {
		n, bad := strconv.ParseFloat(s.delay, 64)
		if bad != nil || !(n >= 0 && n < 1e9) {
			return nil, l.errorf("Delay: '%s' is not a number of seconds", clipped(s.delay))
		}
		add("delay", strconv.FormatFloat(n, 'f', -1, 64)+"s")
	}
	if s.depth != "0" { // which meant no limit
		add("depth", s.depth)
	}
	add("search", s.search)
	if s.enumeration != "/bin/false" {
		file("enumeration", s.enumeration)
	}
	return pairs, err
}

// access writes Access=. What is not known any more is left out of it.
func (t *translator) access(l oldLine, who ndb.Pair, s *spec, add func(key, value string)) error {
	if s.access == "" {
		return nil
	}
	var known []string
	for w := range strings.SplitSeq(s.access, "|") {
		a, err := crawl.ParseAccess(w)
		switch lower := strings.ToLower(w); {
		case lower == "wais" || lower == "telnet":
			t.ignore(l, "Access="+w, "nothing is gathered by %s", lower)
		case err != nil:
			return l.errorf("Access: '%s' is not known", clipped(w))
		default:
			known = append(known, a...)
		}
	}
	add("access", strings.Join(known, "|"))
	return nil
}
