// Package access has objects looked at by methods that they carry.
//
// A method is an attribute Access-Method-NAME whose value is a Starlark file that
// defines view(o), which gets the object and returns a text, a number or a list of
// texts. O is a dict of the object's attributes, "URL" and "Template-Type" among
// them; an attribute with several values is a list of them.
//
// Methods come from whoever made the object, so they run as hostile programs do:
// Starlark has no input or output, its steps, time and memory are bounded, and all
// of it stands in a jail (gather/essence/star, gather/essence/jail). Programs that
// are not Starlark do not travel.
package access

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"time"

	"harvest/gather/essence/jail"
	"harvest/gather/essence/star"
	"harvest/gather/soif"
)

// Prefix begins the names of attributes that are methods.
const Prefix = "Access-Method-"

// Bounds of a method.
const (
	MaxSource = 8 << 10
	runTime   = 5 * time.Second
	runMemory = 256 << 20
	maxResult = 4 << 20
	maxObject = 16 << 20
)

// IsName reports whether a method may be called so.
func IsName(name string) bool {
	for _, c := range []byte(name) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != "" && name[0] != '-' && len(name) <= 64
}

// Is reports whether an attribute is a method.
func Is(name string) bool {
	return len(name) > len(Prefix) && strings.EqualFold(name[:len(Prefix)], Prefix)
}

// Remove takes all methods from an object.
func Remove(o *soif.Object) {
	o.Attrs = slices.DeleteFunc(o.Attrs, func(a soif.Attr) bool { return Is(a.Name) })
}

// Names are the methods of an object, in its order.
func Names(o *soif.Object) (all []string) {
	for _, a := range o.Attrs {
		if Is(a.Name) {
			all = append(all, a.Name[len(Prefix):])
		}
	}
	return all
}

// caller makes of view what package star calls.
const caller = "\n\ndef summarize(doc):\n    return {\"view\": view(json.decode(doc.text))}\n"

// Starlark is a method's text as package star calls it.
func Starlark(text string) string { return text + caller }

// Run has an object looked at by one of its methods. An object without it gives an
// error that wraps iofs.ErrNotExist.
func Run(ctx context.Context, o *soif.Object, name string) (string, error) {
	source, ok := o.Get(Prefix + name)
	if !ok {
		return "", fmt.Errorf("method '%.64s': %w", name, iofs.ErrNotExist)
	}
	if len(source) > MaxSource {
		return "", fmt.Errorf("method '%.64s': over %d bytes: %w", name, MaxSource, iofs.ErrInvalid)
	}
	in, err := request(o, name, string(source))
	if err != nil {
		return "", err
	}
	c := jail.Cmd{Path: star.Name, Inside: true, Stdin: bytes.NewReader(in), Wall: runTime, Memory: runMemory, Output: maxResult}
	var out bytes.Buffer
	if err := c.Run(ctx, &out); err != nil {
		return "", fmt.Errorf("method '%.64s': %w", name, err)
	}
	text, err := answer(out.Bytes())
	if err != nil {
		return "", fmt.Errorf("method '%.64s': %w: %w", name, err, iofs.ErrInvalid)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// request is what star reads.
func request(o *soif.Object, name, source string) ([]byte, error) {
	text, err := json.Marshal(dict(o))
	if err != nil {
		return nil, err
	}
	if len(text) > maxObject {
		return nil, fmt.Errorf("method '%.64s': the object is over %d bytes: %w", name, maxObject, iofs.ErrInvalid)
	}
	p, err := json.Marshal(star.Program{File: Prefix + name, Source: Starlark(source), Call: "summarize", Time: runTime / 2})
	if err != nil {
		return nil, err
	}
	d, err := json.Marshal(star.Doc{URL: o.URL, Type: o.Type, Length: len(text)})
	if err != nil {
		return nil, err
	}
	return slices.Concat(p, []byte("\n"), d, []byte("\n"), text), nil
}

// dict is an object for view. Methods are left out.
func dict(o *soif.Object) map[string]any {
	m := map[string]any{"URL": o.URL, "Template-Type": o.Type}
	for _, a := range o.Attrs {
		value := strings.ToValidUTF8(string(a.Value), "\uFFFD")
		switch was := m[a.Name].(type) {
		case nil:
			if !Is(a.Name) {
				m[a.Name] = value
			}
		case string:
			m[a.Name] = []string{was, value}
		case []string:
			m[a.Name] = append(was, value)
		}
	}
	return m
}

// answer reads what star says: of the file, and of the object.
func answer(out []byte) (string, error) {
	d := json.NewDecoder(bufio.NewReader(bytes.NewReader(out)))
	var r star.Reply
	for range 2 {
		r = star.Reply{}
		if err := d.Decode(&r); err != nil {
			return "", err
		}
		if r.Err != nil {
			return "", r.Err
		}
	}
	for _, o := range r.Objects {
		for _, a := range o.Attrs {
			return a[1], nil
		}
	}
	return "", nil
}
