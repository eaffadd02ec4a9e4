package essence

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"harvest/fs/ndb"
)

// ErrRejected is wrapped by what Summarize returns of an object whose type is not
// wanted.
var ErrRejected = errors.New("not wanted")

// A selectRule is a word of a line that accepts or rejects types.
type selectRule struct {
	accept bool
	text   string
	re     *regexp.Regexp // about the name of a type, and those it stands on
}

// A twinRule drops what is redundant beside something else: '%' in the patterns
// of names is the same text.
type twinRule struct {
	text string
	drop affix
	with []affix
}

// An affix is what stands before and after '%'.
type affix struct{ prefix, suffix string }

func (a affix) stem(name string) (string, bool) {
	if len(name) <= len(a.prefix)+len(a.suffix) {
		return "", false
	}
	s, ok := strings.CutPrefix(name, a.prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, a.suffix)
}

func (t *Tables) parseSelect(text []byte) error {
	return lines(text, embedded("select"), t.parseSelectLine)
}

func (t *Tables) parseSelectLine(e ndb.Entry) error {
	what := e.First()
	if len(t.sel)+len(t.drops)+len(e.Pairs) > most {
		return e.Errorf(what, "more than %d rules", most)
	}
	if what.Key == "drop" && what.Value == "" {
		return t.parseTwin(e)
	}
	if what.Key != "accept" && what.Key != "reject" || what.Value != "" {
		return e.Errorf(what, "'%s': a line begins with accept, reject or drop, or is include default", what.Key)
	}
	if len(e.Pairs) == 1 {
		return e.Errorf(what, "%s: no type", what.Key)
	}
	for _, p := range e.Pairs[1:] {
		re, err := globbed(p.Key)
		switch {
		case p.Value != "":
			return e.Errorf(p, "unknown key '%s'; there are types and patterns of types", p.Key)
		case err != nil:
			return e.Errorf(p, "'%s' is no pattern: %v", p.Key, err)
		case !t.any(re):
			return e.Errorf(p, "'%s': there is no such type", p.Key)
		}
		t.sel = append(t.sel, selectRule{what.Key == "accept", what.Key + " " + p.Key, re})
	}
	return nil
}

// any reports whether there is a type of such a name.
func (t *Tables) any(re *regexp.Regexp) bool {
	for name := range t.kinds {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// parseTwin reads 'drop %.o with %.c %.f'.
func (t *Tables) parseTwin(e ndb.Entry) error {
	r := twinRule{text: e.String()}
	for i, p := range e.Pairs[1:] {
		if i == 1 {
			if p.Key != "with" || p.Value != "" {
				return e.Errorf(p, "drop: 'with' is wanted, not '%s'", p.Key)
			}
			continue
		}
		before, after, ok := strings.Cut(p.Key, "%")
		if !ok || strings.Contains(after, "%") || p.Value != "" {
			return e.Errorf(p, "drop: '%s' is not a name with one '%%' in it", p.Key)
		}
		if a := (affix{before, after}); i == 0 {
			r.drop = a
		} else {
			r.with = append(r.with, a)
		}
	}
	if len(r.with) == 0 {
		return e.Errorf(e.First(), "drop: write drop %%.o with %%.c")
	}
	t.drops = append(t.drops, r)
	return nil
}

// selects says whether a type is wanted, and the rule that says so, "" if none
// does: the first that fits the type, or one it stands on.
func (t *Tables) selects(k *kind) (rule string, ok bool) {
	for i := range t.sel {
		if k.fits(t.sel[i].re) {
			return "select: " + t.sel[i].text, t.sel[i].accept
		}
	}
	return "", true
}

// unwanted is the error of an object whose type is not wanted: the one it is
// recognised as, or that of the one thing in it.
func (w *worker) unwanted(c *content) error {
	if c.rejected == "" && c.typ != "" {
		if rule, ok := w.tab.selects(w.tab.typed(c.typ)); !ok {
			c.rejected = rule
		}
	}
	if c.rejected == "" {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", c.rejected, c.typ, ErrRejected)
}

// Redundant returns the names of those beside which a name would be redundant,
// and the rule of each that says so. Dropped returns the names that would be
// redundant beside it.
func (t *Tables) Redundant(name string) map[string]string {
	return t.beside(name, func(r *twinRule) ([]affix, []affix) { return []affix{r.drop}, r.with })
}

// Dropped returns the names that would be redundant beside a name.
func (t *Tables) Dropped(name string) map[string]string {
	return t.beside(name, func(r *twinRule) ([]affix, []affix) { return r.with, []affix{r.drop} })
}

func (t *Tables) beside(name string, sides func(*twinRule) (mine, theirs []affix)) map[string]string {
	var all map[string]string
	for i := range t.drops {
		r := &t.drops[i]
		mine, theirs := sides(r)
		for _, a := range mine {
			stem, ok := a.stem(name)
			if !ok {
				continue
			}
			for _, b := range theirs {
				other := b.prefix + stem + b.suffix
				if other == name || all[other] != "" {
					continue
				}
				if all == nil {
					all = make(map[string]string)
				}
				all[other] = "select: " + r.text
			}
		}
	}
	return all
}

// twins tells which of names, members of one container, are redundant, by their
// places, and why.
func (t *Tables) twins(names []string) map[int]string {
	if len(t.drops) == 0 {
		return nil
	}
	here := make(map[string]bool, len(names))
	for _, n := range names {
		here[n] = true
	}
	var drop map[int]string
	for i, n := range names {
		dir, base := path.Split(n)
		for other, why := range t.Redundant(base) {
			if !here[dir+other] {
				continue
			}
			if drop == nil {
				drop = make(map[int]string)
			}
			drop[i] = why + ": " + dir + other + " is there"
		}
	}
	return drop
}

// Rejects reports whether a document need not be fetched, for its URL or name
// tells a type that is not wanted, and says by what rule. A page in HTML is
// never rejected so: its links may lead to what is wanted.
func (t *Tables) Rejects(url string) (rule string, ok bool) {
	if t == nil || len(t.sel) == 0 {
		return "", false
	}
	k, by := t.named(url, nameOf(url))
	if k == nil || k.name == "HTML" {
		return "", false
	}
	rule, wanted := t.selects(k)
	if wanted {
		return "", false
	}
	return fmt.Sprintf("%s (%s, %s)", rule, k.name, by), true
}
