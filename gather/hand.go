package gather

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// # Hand-written text
//
// What people write below manual/ is SOIF, when it begins with @, or lines
//
//	Name: value
//		that goes on where a line begins with a blank
//
// with an empty line between objects, where there may be several, and # before
// comments. In lines, URL is the object's URL and Template-Type its type. An
// attribute without a value is to be left out.

// Bounds of hand-written text.
const maxByHand = 1 << 20 // fs.MaxConfig, and so what a file takes

// handObjects reads a text that may have several objects. An error is an
// *ndb.Error.
func handObjects(text string) (all []soif.Object, err error) {
	if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "@") {
		return handSOIF(text)
	}
	var o *soif.Object
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.TrimSpace(line) == "":
			o = nil
			continue
		case line[0] == ' ' || line[0] == '\t':
			if o == nil || len(o.Attrs) == 0 {
				return nil, lineError(n, "'%.40s' goes on with nothing: a line begins with 'Name: '", strings.TrimSpace(line))
			}
			a := &o.Attrs[len(o.Attrs)-1]
			a.Value = append(append(a.Value, '\n'), strings.TrimSpace(line)...)
			continue
		}
		if o == nil {
			all = append(all, soif.Object{Type: "FILE"})
			o = &all[len(all)-1]
		}
		if err := handLine(o, line, n); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// handLine reads an attribute.
func handLine(o *soif.Object, line string, n int) error {
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch {
	case !ok:
		return lineError(n, "'%.40s' is not of the form 'Name: value'", line)
	case strings.EqualFold(name, "URL"):
		o.URL = value
	case strings.EqualFold(name, "Template-Type"):
		o.Type = value
	default:
		if _, twice := o.Get(name); twice {
			return lineError(n, "%s is there twice; write %s-1, %s-2", name, name, name)
		}
		o.Add(name, []byte(value))
	}
	// What this line adds must be fit to be written, and to be read again.
	one := soif.Object{Type: o.Type, URL: o.URL, Attrs: o.Attrs[max(len(o.Attrs)-1, 0):]}
	var b bytes.Buffer
	err := soif.NewEncoder(&b).Encode(&one)
	var at *soif.Error
	if err == nil {
		_, _, err = soif.Parse(b.Bytes(), soif.Limits{})
	}
	if errors.As(err, &at) {
		return lineError(n, "%s", at.Trouble())
	} else if err != nil {
		return lineError(n, "%v", err)
	}
	return nil
}

// handSOIF reads objects of SOIF.
func handSOIF(text string) (all []soif.Object, err error) {
	d := soif.NewDecoder(strings.NewReader(text), soif.Limits{})
	for {
		var o soif.Object
		err := d.Next(&o)
		var at *soif.Error
		switch {
		case err == io.EOF:
			return all, nil
		case errors.As(err, &at):
			return nil, lineError(int(at.Line), "%s", at.Trouble())
		case err != nil:
			return nil, err
		}
		all = append(all, o.Clone())
	}
}

func lineError(n int, format string, arg ...any) error {
	return &ndb.Error{Line: n, Col: 1, Msg: fmt.Sprintf(format, arg...)}
}

// handAttributes reads the text of one object's attributes. URL is that of the
// object, "" when it is not known; the text may name it, and no other.
func handAttributes(text, url string) (soif.Object, error) {
	all, err := handObjects(text)
	switch {
	case err != nil:
		return soif.Object{}, err
	case len(all) == 0:
		return soif.Object{}, nil
	case len(all) > 1:
		return soif.Object{}, lineError(1, "there are %d objects: this is the file of one", len(all))
	}
	o := all[0]
	if u := o.URL; u != "" && u != "-" && url != "" && u != url {
		return o, lineError(1, "URL %.100s: this is the file of %.100s", u, url)
	}
	if _, ok := o.Get("Update-Time"); ok {
		if !strings.HasPrefix(strings.TrimSpace(text), "@") {
			return o, lineError(1, "Update-Time: it moves by itself")
		}
		o.Del("Update-Time")
	}
	return o, nil
}

// over writes attributes over those of an object.
func over(o *soif.Object, hand []soif.Attr) {
	for _, a := range hand {
		if len(a.Value) == 0 {
			o.Del(a.Name)
			continue
		}
		o.Set(a.Name, a.Value)
	}
}

// sameBut reports whether two encoded objects are the same but for their
// Update-Time.
func sameBut(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, _, err1 := soif.Parse(a, soif.Limits{})
	y, _, err2 := soif.Parse(b, soif.Limits{})
	if err1 != nil || err2 != nil {
		return false
	}
	x.Del("Update-Time")
	y.Del("Update-Time")
	return x.Equal(&y)
}

// handName checks the name of a file below manual/ that counts: what does not
// end in .soif, or begins with a point, is an editor's.
func handName(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasSuffix(name, ".soif") && name[0] != '.' && len(name) <= 255 &&
		len(path) <= 4096 && !strings.ContainsAny(path, "\x00\n")
}

func absentHand(name string) error {
	return fmt.Errorf("manual/%s: %w", name, iofs.ErrNotExist)
}
