package essence

import (
	"embed"
	"errors"
	"fmt"
	iofs "io/fs"
	"regexp"
	"strings"
	"sync"

	"harvest/fs/ndb"
)

// Tables are what a user may set of Essence: which types there are and how they
// are told, what is taken apart, left out and kept. They are made from texts, a
// file each; where one is absent the program's own stands. They do not change
// once made, and any number of Summarize calls may use them.
type Tables struct {
	kinds     map[string]*kind
	media     map[string]*kind // by media type
	byurl     names
	byname    names
	bycontent []contentRule
	unnests   []policyRule
	sel       []selectRule
	drops     []twinRule
	opts      []optionRule
	derive    *derivation // nil: nothing
	rules     *postRules  // nil: none
	methods   []method
	html      *htmlTable // nil: the program's
	scratch   scratch
}

// A tableFile is one of the texts.
type tableFile struct {
	name  string
	text  func() string                      // what stands where the user has none
	parse func(t *Tables, text []byte) error // an error names line and column, as those of fs/ndb do
}

// tableFiles are the texts that Tables are made from, in the order they are read.
func tableFiles() []tableFile {
	return []tableFile{
		{"kinds", embedded("kinds"), (*Tables).parseKinds},
		{"byurl", embedded("byurl"), (*Tables).parseByURL},
		{"byname", embedded("byname"), (*Tables).parseByName},
		{"bycontent", embedded("bycontent"), (*Tables).parseByContent},
		{"unnest", embedded("unnest"), (*Tables).parseUnnest},
		{"select", embedded("select"), (*Tables).parseSelect},
		{"options", embedded("options"), (*Tables).parseOptions},
		deriveTable(),
		rulesTable(),
		accessTable(),
		htmlFile(),
	}
}

// texts are the program's own.
//
//go:embed tables
var texts embed.FS

// embedded gives a text of the program's own.
func embedded(name string) func() string {
	return func() string {
		b, err := texts.ReadFile("tables/" + name)
		if err != nil {
			panic("essence: " + err.Error()) // it was built without it
		}
		return string(b)
	}
}

// TableNames are the names of the texts that Tables are made from.
func TableNames() []string {
	var names []string
	for _, f := range tableFiles() {
		names = append(names, f.name)
	}
	return names
}

// DefaultTable is the text that stands where the user has none.
func DefaultTable(name string) (string, error) {
	for _, f := range tableFiles() {
		if f.name == name {
			return f.text(), nil
		}
	}
	return "", fmt.Errorf("table '%s': %w", name, iofs.ErrNotExist)
}

// ParseTables makes Tables of texts, by name. An error is a *TableError.
func ParseTables(text map[string]string) (*Tables, error) {
	t := new(Tables)
	for _, f := range tableFiles() {
		own, ok := text[f.name]
		if !ok {
			own = f.text()
		}
		if err := f.parse(t, []byte(own)); err != nil {
			return nil, &TableError{Name: f.name, Err: err}
		}
	}
	return t, nil
}

// A TableError tells which text is bad, and of what in it.
type TableError struct {
	Name string
	Err  error // names line and column
}

func (e *TableError) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *TableError) Unwrap() error { return e.Err }

// ownTables are those of a program whose user has set nothing.
var ownTables = sync.OnceValue(func() *Tables {
	t, err := ParseTables(nil)
	if err != nil {
		panic("essence: " + err.Error())
	}
	return t
})

// lines gives the lines of a text to each. The line 'include default' stands for
// those of the program's own, which are good.
func lines(text []byte, own func() string, each func(e ndb.Entry) error) error {
	entries, err := ndb.Parse(string(text))
	if err != nil {
		return err
	}
	included := 0
	for _, e := range entries {
		if !includes(e, "default") {
			if err := each(e); err != nil {
				return err
			}
			continue
		}
		if included != 0 {
			return e.Errorf(e.First(), "include default: already in line %d", included)
		}
		included = e.Line
		if err := lines([]byte(own()), nil, each); err != nil {
			return e.Errorf(e.First(), "%s", unplaced(err))
		}
	}
	return nil
}

// includes reports whether a line says 'include WHAT'.
func includes(e ndb.Entry, what string) bool {
	return len(e.Pairs) == 2 && e.Pairs[0] == ndb.Pair{Key: "include", Col: e.Pairs[0].Col} &&
		e.Pairs[1] == ndb.Pair{Key: what, Col: e.Pairs[1].Col}
}

// unplaced is an error without the place it has, which is in another text.
func unplaced(err error) string {
	var at *ndb.Error
	if errors.As(err, &at) {
		return "the program's own: " + at.Msg
	}
	return err.Error()
}

// typeName checks the first word of a line, which is a type.
func typeName(e ndb.Entry) (string, error) {
	p := e.First()
	switch {
	case p.Key == "include":
		return "", e.Errorf(p, "include: there is 'include default'%s", "")
	case p.Value != "":
		return "", e.Errorf(p, "%s=: a line begins with a type", p.Key)
	case !isType(p.Key):
		return "", e.Errorf(p, "'%s' is no type: one is up to 64 letters, digits, '-', '+' and '_', and begins with a capital letter", p.Key)
	}
	return p.Key, nil
}

// isType reports whether a word may name a type, in tables as in the names of
// files that summarize it: these tell it from an editor's file by the capital.
func isType(s string) bool {
	for i := range len(s) {
		letter := s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z'
		other := s[i] >= '0' && s[i] <= '9' || strings.IndexByte("-_+", s[i]) >= 0
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return s != "" && len(s) <= 64 && s[0] <= 'Z'
}

// most is the number of lines of a table, and of words of a kind in it.
const most = 10_000

// typesOf reads a line that has patterns of types, and then what is said of them. say
// takes a word if it is of that, and reports whether it is; set is whether any was.
func (t *Tables) typesOf(e ndb.Entry, what string, say func(ndb.Pair) (bool, error)) (types []*regexp.Regexp, set bool, err error) {
	for _, p := range e.Pairs {
		said, err := say(p)
		if err != nil {
			return nil, false, err
		}
		if said {
			set = true
			continue
		}
		re, err := globbed(p.Key)
		switch {
		case set:
			return nil, false, e.Errorf(p, "'%s': types stand before %s", p.Key, what)
		case err != nil:
			return nil, false, e.Errorf(p, "'%s' is no pattern: %v", p.Key, err)
		case !t.any(re):
			return nil, false, e.Errorf(p, "'%s': there is no such type", p.Key)
		}
		types = append(types, re)
	}
	if len(types) == 0 {
		return nil, false, e.Errorf(e.First(), "no type; for all write *")
	}
	return types, set, nil
}
