package essence

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/gather/essence/jail"
	"harvest/gather/soif"
)

// ErrDeleted is wrapped by what Summarize returns of an object that a rule
// deletes.
var ErrDeleted = errors.New("deleted by a rule")

// postRules are the rules of a table, in their order; rulesparse.go reads them.
type postRules struct{ rules []postRule }

// A postRule is a condition and what is done to objects that meet it.
type postRule struct {
	line int
	text string // of the condition
	when condition
	do   []action
}

// A condition is met by an object or not.
type condition func(o *soif.Object) bool

// An action changes an object. It is one of set, filter and delete.
type action struct {
	line   int
	text   string
	names  []string // of attributes; none is delete()
	value  *string  // set to this
	shell  string   // filtered by this command
	asSOIF bool     // all of them at once, as SOIF
}

// lifeAttributes are those that say how long an object is good for, in seconds; a
// Gatherer goes by them.
var lifeAttributes = []string{"Time-to-Live", "Refresh-Rate"}

// finish does to a summary what is done when it is made: it adds what follows
// from it and applies the rules. An error that wraps ErrDeleted is a rule's.
func (w *worker) finish(o *soif.Object, c *content) error {
	for _, name := range lifeAttributes { // what a document says of itself is not to be gone by
		o.Del(name)
	}
	w.tab.derive.apply(o, func(d derived) { w.step(c, "derive", d.name, d.value) })
	if w.tab.rules != nil {
		for i := range w.tab.rules.rules {
			if err := w.rule(o, c, &w.tab.rules.rules[i]); err != nil {
				return err
			}
		}
	}
	w.tab.addMethods(o)
	return nil
}

// rule applies one rule. A filter that fails changes nothing, and that is told.
func (w *worker) rule(o *soif.Object, c *content, r *postRule) error {
	if !r.when(o) {
		return nil
	}
	for i := range r.do {
		a := &r.do[i]
		w.step(c, "rule", a.text, fmt.Sprintf("line %d: %s", r.line, r.text))
		if a.names == nil {
			return fmt.Errorf("rules: line %d: %s: %w", r.line, r.text, ErrDeleted)
		}
		if err := w.act(o, a); err != nil {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			w.limit(c, fmt.Sprintf("rules: line %d: %v", a.line, err))
		}
	}
	return nil
}

func (w *worker) act(o *soif.Object, a *action) error {
	switch {
	case a.value != nil:
		if *a.value == "" {
			o.Del(a.names[0])
			return nil
		}
		o.Set(known(a.names[0]), []byte(*a.value))
		return nil
	case a.asSOIF:
		return w.filterSOIF(o, a)
	}
	value, ok := o.Get(a.names[0])
	if !ok {
		return nil
	}
	out, err := w.shell(a.shell, value, w.room(a.names[0]))
	if err != nil {
		return err
	}
	out = trimNewline(out, value)
	if len(out) == 0 {
		o.Del(a.names[0])
		return nil
	}
	if err := checkLife(a.names[0], out); err != nil {
		return err
	}
	o.Set(known(a.names[0]), out)
	return nil
}

// trimNewline takes away the newline that programs end their output with, unless
// what they were given ended with one.
func trimNewline(out, in []byte) []byte {
	if n := len(out); n > 0 && out[n-1] == '\n' && (len(in) == 0 || in[len(in)-1] != '\n') {
		return out[:n-1]
	}
	return out
}

// filterSOIF gives a program the attributes, as an object, and takes what it writes:
// an object, or attributes alone, which replace those of their name. One without a
// value goes; those it does not write stay.
func (w *worker) filterSOIF(o *soif.Object, a *action) error {
	in := soif.Object{Type: o.Type, URL: o.URL}
	for _, attr := range o.Attrs {
		for _, name := range a.names {
			if strings.EqualFold(attr.Name, name) {
				in.Attrs = append(in.Attrs, attr)
			}
		}
	}
	text := in.Append(nil)
	out, err := w.shell(a.shell, text, 2*len(text)+w.lim.Text)
	if err != nil {
		return err
	}
	back, err := readSOIF(out)
	if err != nil {
		return err
	}
	for _, attr := range back.Attrs {
		if isGatherers(attr.Name) {
			return fmt.Errorf("%s: it is the Gatherer's to set", attr.Name)
		}
		if err := checkLife(attr.Name, attr.Value); err != nil && len(attr.Value) > 0 {
			return err
		}
	}
	for i, attr := range back.Attrs {
		switch {
		case len(attr.Value) == 0:
			o.Del(attr.Name)
		case repeated(back.Attrs[:i], attr.Name):
			o.Add(attr.Name, attr.Value)
		default:
			o.Set(known(attr.Name), attr.Value)
		}
	}
	return nil
}

func repeated(before []soif.Attr, name string) bool {
	for _, a := range before {
		if strings.EqualFold(a.Name, name) {
			return true
		}
	}
	return false
}

// readSOIF reads what a program wrote: an object, or its attributes.
func readSOIF(out []byte) (soif.Object, error) {
	text := strings.TrimLeft(string(out), " \t\r\n")
	if text == "" {
		return soif.Object{}, nil
	}
	if text[0] != '@' {
		text = "@FILE { -\n" + text + "\n}\n"
	}
	o, n, err := soif.Parse([]byte(text), soif.Limits{})
	if err != nil {
		return o, fmt.Errorf("what the program wrote: %w", err)
	}
	if rest := strings.TrimSpace(text[n:]); rest != "" {
		return o, fmt.Errorf("what the program wrote: %.40q after the object", rest)
	}
	return o, nil
}

// known is a name as everybody writes it, where it is one of lifeAttributes.
func known(name string) string {
	for _, life := range lifeAttributes {
		if strings.EqualFold(name, life) {
			return life
		}
	}
	return name
}

// checkLife refuses a life that is no number of seconds.
func checkLife(name string, value []byte) error {
	if !isLife(name) {
		return nil
	}
	if n, err := strconv.ParseUint(string(value), 10, 31); err != nil || n == 0 {
		return fmt.Errorf("%s: '%.40s' is no number of seconds from 1 to 2147483647", name, value)
	}
	return nil
}

// isLife reports whether an attribute says how long an object is good for.
func isLife(name string) bool {
	return slices.ContainsFunc(lifeAttributes, func(life string) bool { return strings.EqualFold(name, life) })
}

// room is how long a value may be that a program gives.
func (w *worker) room(name string) int {
	if strings.EqualFold(name, "Full-Text") {
		return w.lim.Text
	}
	return w.lim.Attr
}

// What a filter may use.
const (
	shellTime   = 10 * time.Second
	shellMemory = 256 << 20
)

// shell has a command run in the jail, with a text as its input, and gives what it
// writes. The program that it begins with may lie anywhere.
func (w *worker) shell(command string, in []byte, room int) ([]byte, error) {
	c := jail.Cmd{Path: "/bin/sh", Args: []string{"-c", command}, Stdin: bytes.NewReader(in),
		Wall: shellTime, Memory: shellMemory, Output: int64(room)}
	if program, _, _ := strings.Cut(command, " "); strings.HasPrefix(program, "/") {
		c.Read = []string{program}
	}
	var out bytes.Buffer
	if err := c.Run(w.ctx, &out); err != nil {
		if why := errors.Unwrap(err); why != nil { // sh is not what failed
			err = why
		}
		return nil, fmt.Errorf("%.60s: %w", oneLine(command), err)
	}
	return out.Bytes(), nil
}
