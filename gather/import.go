package gather

import (
	"errors"
	"fmt"
	"strings"

	"harvest/fs/ndb"
)

// A configuration of Harvest 1 is taken as it is, as in
//
//	Gatherer-Name:  Papers
//	Top-Directory:  /usr/local/harvest/gatherers/papers
//	Access-Delay:   2
//	<RootNodes>
//	http://site/papers/ URL=500,lib/filter Depth=3 \
//		Access=HTTP|FTP
//	|lib/more-sites.pl Depth=1
//	</RootNodes>
//	<LeafNodes>
//	ftp://site/pub/README
//	</LeafNodes>
//
// It is translated line by line into entries, which are then read as any
// config's are. What has no meaning any more is told by name, in status.

// imported is what became of such a configuration.
type imported struct {
	text    string // in entries
	ignored []ignored
	secrets []string // lines for the file of that name
}

// ignored is a line, or a word of one, that has no effect.
type ignored struct {
	line      int
	name, why string
}

// An oldLine is a line of the original, those that continue it joined.
type oldLine struct {
	n     int // of its first
	last  int // of those that continue it
	words []string
}

// isOld reports whether a text is a configuration of Harvest 1.
func isOld(text string) bool {
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) > 0 && (isSection(w[0]) || settingName(w[0]) != "") {
			return true
		}
	}
	return false
}

// isOldLine reports whether a line may be one of such a text.
func isOldLine(line string) bool {
	w := strings.Fields(line)
	if len(w) == 0 {
		return false
	}
	if isSection(w[0]) || settingName(w[0]) != "" || w[0][0] == '|' || strings.HasSuffix(w[len(w)-1], `\`) {
		return true
	}
	if i := strings.IndexByte(w[0], ':'); i > 0 && !strings.Contains(w[0][:i], "=") {
		return true // a URL
	}
	key, _, ok := strings.Cut(w[0], "=")
	return ok && oldSpecs[key]
}

func isSection(w string) bool {
	switch strings.ToLower(w) {
	case "<rootnodes>", "</rootnodes>", "<leafnodes>", "</leafnodes>":
		return true
	}
	return false
}

// settingName is the name of a setting that a word begins, as in "Log-File:",
// or "". The names of the original all are words with hyphens, and no scheme is.
func settingName(w string) string {
	name, _, ok := strings.Cut(w, ":")
	if !ok || !strings.Contains(name, "-") || strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-'
	}) {
		return ""
	}
	return name
}

// A translator makes entries of a configuration of Harvest 1.
type translator struct {
	imported
	lines    []oldLine
	from     []int // the line of the original of each line of text
	redacted []string
	settings map[string]string // what lines below need, by name in lower case
	hosts    []string          // of web servers that are gathered from
	realms   []oldLine         // lines of HTTP-Basic-Auth
}

// parseOld reads a configuration of Harvest 1. An error is an *ndb.Error and
// names the line of the original.
func parseOld(text string) (*config, error) {
	t := &translator{settings: make(map[string]string)}
	t.read(text)
	if err := t.translate(); err != nil {
		return nil, err
	}
	c, err := parseEntries(t.text)
	if err != nil {
		return nil, t.original(err)
	}
	c.moveRules(t.from)
	c.text = strings.Join(t.redacted, "")
	c.old = &t.imported
	return c, nil
}

// moveRules has rules that name files tell of the lines of the original.
func (c *config) moveRules(from []int) {
	for i := range c.rules {
		for _, rules := range [][]filterRule{c.rules[i].url, c.rules[i].host} {
			for j := range rules {
				rules[j].line, rules[j].col = from[rules[j].line-1], 1
			}
		}
	}
}

// original gives an error about an entry the line of the original that it was
// made of.
func (t *translator) original(err error) error {
	var e *ndb.Error
	if !errors.As(err, &e) || e.Line > len(t.from) {
		return err
	}
	return ndb.Entry{Line: t.from[e.Line-1]}.Errorf(ndb.Pair{}, "%s: %w", e.Msg, errors.Unwrap(e))
}

// read splits a text into lines, and joins those that end in a backslash with
// the next.
func (t *translator) read(text string) {
	open := false
	for line := range strings.Lines(text) {
		t.redacted = append(t.redacted, line)
		n := len(t.redacted)
		s := strings.TrimSpace(line)
		comment := strings.HasPrefix(s, "#")
		s, more := strings.CutSuffix(s, `\`)
		words := strings.Fields(s)
		switch {
		case comment:
			continue
		case open:
			l := &t.lines[len(t.lines)-1]
			l.words, l.last = append(l.words, words...), n
		case len(words) > 0:
			t.lines = append(t.lines, oldLine{n, n, words})
		default:
			more = false
		}
		open = more
	}
}

func (t *translator) translate() error {
	section := ""
	for _, l := range t.lines { // a setting counts for lines before it as well
		if name := settingName(l.words[0]); name != "" {
			t.settings[strings.ToLower(name)] = l.value()
		}
	}
	for _, l := range t.lines {
		w := strings.ToLower(l.words[0])
		switch {
		case w == "<rootnodes>" || w == "<leafnodes>":
			if section != "" {
				return l.errorf("%s in %s", l.words[0], section)
			}
			section = w
		case w == "</rootnodes>" || w == "</leafnodes>":
			if section != "<"+w[2:] {
				return l.errorf("%s, which was not begun", l.words[0])
			}
			section = ""
		case section == "":
			if err := t.setting(l); err != nil {
				return err
			}
		default:
			if err := t.node(l, section == "<leafnodes>"); err != nil {
				return err
			}
		}
	}
	if section != "" {
		return t.lines[len(t.lines)-1].errorf("%s has no end", section)
	}
	t.basicAuth()
	return nil
}

func (l *oldLine) errorf(format string, arg ...any) error {
	return ndb.Entry{Line: l.n}.Errorf(ndb.Pair{}, format, arg...)
}

// value is what follows the name of a setting.
func (l *oldLine) value() string {
	_, v, _ := strings.Cut(strings.Join(l.words, " "), ":")
	return strings.TrimSpace(v)
}

// entry adds a line of entries.
func (t *translator) entry(l oldLine, pairs ...ndb.Pair) {
	t.text += ndb.Format(pairs...) + "\n"
	t.from = append(t.from, l.n)
}

func (t *translator) ignore(l oldLine, name, format string, arg ...any) {
	t.ignored = append(t.ignored, ignored{l.n, name, fmt.Sprintf(format, arg...)})
}

// redact replaces a line by what may be read by everybody.
func (t *translator) redact(l oldLine, instead string) {
	for i := l.n; i <= l.last; i++ {
		t.redacted[i-1] = "#\n"
	}
	t.redacted[l.n-1] = instead + "\n"
}

// secret adds a line for the file of secrets.
func (t *translator) secret(kind string, pairs ...ndb.Pair) {
	t.secrets = append(t.secrets, ndb.Format(append([]ndb.Pair{{Key: kind}}, pairs...)...))
}

// ignored are lines of status about what has no effect.
func (c *config) ignored() (lines [][]ndb.Pair) {
	if c.old == nil {
		return nil
	}
	for _, i := range c.old.ignored {
		lines = append(lines, []ndb.Pair{ndb.Of("ignored", i.name), ndb.Of("line", i.line), ndb.Of("reason", i.why)})
	}
	return lines
}

// translated is the configuration in entries.
func (g *Gatherer) translated() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conf.old != nil {
		return g.conf.old.text
	}
	return g.conf.text
}

// keepSecrets puts the passwords of a configuration where they belong.
func (g *Gatherer) keepSecrets(c *config) error {
	if c.old == nil || len(c.old.secrets) == 0 {
		return nil
	}
	text := g.secrets.draft()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, line := range c.old.secrets {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			text += line + "\n"
		}
	}
	if err := g.secrets.set(text); err != nil {
		return errors.New("a password cannot be kept as it is; leave the line out, and write it to secrets")
	}
	return nil
}

// unlisted tells of a line of a program that names no root.
func (v *visit) unlisted(program, why string) {
	v.g.journal.event("failed", ndb.Of("program", program), ndb.Of("reason", why))
}
