package star

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// document is what a function is given.
func document(d *Doc, text string) starlark.Value {
	s := starlarkstruct.FromStringDict(starlark.String("doc"), starlark.StringDict{
		"url": starlark.String(d.URL), "name": starlark.String(d.Name), "type": starlark.String(d.Type), "md5": starlark.String(d.MD5),
		"size": starlark.MakeInt64(d.Size), "text": starlark.String(text), "bytes": starlark.Bytes(text),
	})
	s.Freeze()
	return s
}

// objects reads what a function returned.
func (m *machine) objects(v starlark.Value) ([]Object, error) {
	room := maxResult
	if m.Call == "summarize" {
		o, err := object(v, &room)
		if err != nil {
			return nil, err
		}
		return []Object{o}, nil
	}
	list, ok := v.(starlark.Iterable)
	if _, isDict := v.(*starlark.Dict); !ok || isDict {
		return nil, fmt.Errorf("%s returned a %s, not a list of dicts or None", m.Call, v.Type())
	}
	all := []Object{}
	it := list.Iterate()
	defer it.Done()
	for e := starlark.Value(nil); it.Next(&e); {
		o, err := object(e, &room)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// object reads a dict of attributes; room is what is left to be returned.
func object(v starlark.Value, room *int) (o Object, err error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return o, fmt.Errorf("a %s was returned, where a dict of attributes is wanted", v.Type())
	}
	for _, item := range d.Items() {
		name, ok := starlark.AsString(item[0])
		if !ok {
			return o, fmt.Errorf("the name of an attribute is a %s, not a string", item[0].Type())
		}
		text, err := attribute(item[1])
		if err != nil {
			return o, fmt.Errorf("%.60s: %w", name, err)
		}
		if *room -= len(name) + len(text); *room < 0 {
			return o, fmt.Errorf("more than %d bytes were returned", maxResult)
		}
		o.Attrs = append(o.Attrs, [2]string{name, text})
	}
	return o, nil
}

// attribute is a value as text: a list is a line an element, None nothing.
func attribute(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case starlark.NoneType:
		return "", nil
	case starlark.String:
		return string(v), nil
	case starlark.Bytes:
		return string(v), nil
	case starlark.Int, starlark.Float:
		return v.String(), nil
	case starlark.Bool:
		return strconv.FormatBool(bool(v)), nil
	case *starlark.Dict:
	case starlark.Iterable:
		var b strings.Builder
		it := v.Iterate()
		defer it.Done()
		for e := starlark.Value(nil); it.Next(&e); {
			s, ok := starlark.AsString(e)
			if !ok {
				return "", fmt.Errorf("a %s in a list, not a string", e.Type())
			}
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			if b.WriteString(s); b.Len() > maxResult {
				return "", fmt.Errorf("more than %d bytes were returned", maxResult)
			}
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("a %s is no value of an attribute", v.Type())
}

// maxPatterns bounds the compiled patterns that are kept.
const maxPatterns = 128

// patterns are the regular expressions of a file, RE2: their time is linear in
// the text.
type patterns struct{ known map[string]*regexp.Regexp }

func newPatterns() *patterns { return &patterns{make(map[string]*regexp.Regexp)} }

// module gives what a file may call besides the language: re and json.
func (p *patterns) module() starlark.StringDict {
	return starlark.StringDict{
		"json": starjson.Module,
		"re": &starlarkstruct.Module{Name: "re", Members: starlark.StringDict{
			"find":    starlark.NewBuiltin("re.find", p.find),
			"findall": starlark.NewBuiltin("re.findall", p.findAll),
			"sub":     starlark.NewBuiltin("re.sub", p.sub),
		}},
	}
}

func (p *patterns) compile(pattern string) (*regexp.Regexp, error) {
	if re := p.known[pattern]; re != nil {
		return re, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	if len(p.known) >= maxPatterns {
		clear(p.known)
	}
	p.known[pattern] = re
	return re, nil
}

// args reads pattern and text, and charges for the text: a step is worth some
// ten bytes of it.
func (p *patterns) args(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (*regexp.Regexp, string, error) {
	var pattern, text string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "text", &text); err != nil {
		return nil, "", err
	}
	t.Steps += uint64(len(text) / 10)
	re, err := p.compile(pattern)
	return re, text, err
}

// found is a match: its one group or all of it as a string, groups as a tuple.
func found(text string, at []int) starlark.Value {
	group := func(i int) starlark.Value {
		if at[2*i] < 0 {
			return starlark.None
		}
		return starlark.String(text[at[2*i]:at[2*i+1]])
	}
	switch n := len(at) / 2; n {
	case 1:
		return group(0)
	case 2:
		return group(1)
	default:
		all := make(starlark.Tuple, n-1)
		for i := range all {
			all[i] = group(i + 1)
		}
		return all
	}
}

func (p *patterns) find(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	re, text, err := p.args(t, b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if at := re.FindStringSubmatchIndex(text); at != nil {
		return found(text, at), nil
	}
	return starlark.None, nil
}

func (p *patterns) findAll(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	re, text, err := p.args(t, b, args, kwargs)
	if err != nil {
		return nil, err
	}
	var all []starlark.Value
	for _, at := range re.FindAllStringSubmatchIndex(text, 100_000) {
		all = append(all, found(text, at))
	}
	return starlark.NewList(all), nil
}

func (p *patterns) sub(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var pattern, with, text string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "with", &with, "text", &text); err != nil {
		return nil, err
	}
	t.Steps += uint64(len(text) / 10)
	re, err := p.compile(pattern)
	if err != nil {
		return nil, err
	}
	return starlark.String(re.ReplaceAllString(text, with)), nil
}
