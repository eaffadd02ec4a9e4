package essence

import (
	"fmt"
	iofs "io/fs"
)

// Tables are what a user may set of Essence: which types there are and how they
// are told, what is taken apart, left out and kept. They are made from texts, a
// file each; where one is absent the program's own stands. They do not change
// once made, and any number of Summarize calls may use them.
type Tables struct {
	derive *derivation // nil: nothing
	rules  *postRules  // nil: none
	html   *htmlTable  // nil: the program's
}

// A tableFile is one of the texts.
type tableFile struct {
	name  string
	text  func() string                      // what stands where the user has none
	parse func(t *Tables, text []byte) error // an error names line and column, as those of fs/ndb do
}

// tableFiles are the texts that Tables are made from, in the order they are read.
func tableFiles() []tableFile { return []tableFile{deriveTable(), rulesTable(), htmlFile()} }

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

// ParseTables makes Tables of texts, by name. An error names the text, the line
// and the column.
func ParseTables(text map[string]string) (*Tables, error) {
	t := new(Tables)
	for _, f := range tableFiles() {
		own, ok := text[f.name]
		if !ok {
			own = f.text()
		}
		if err := f.parse(t, []byte(own)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return t, nil
}
