package catalog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"harvest/gather/soif"
)

// # JSON lines
//
// An object a line. Template-Type and URL are those of the object, other members
// its attributes; several values are an array, and bytes that are not text are
// {"base64": "…"}, in a name U+FFFD:
//
//	{"Template-Type":"FILE","URL":"http://h/","Author":["Ann","Bob"],"Icon":{"base64":"AAEC"}}
//
// Numbers, true and false are taken as they are written, null as nothing, and the
// members of an object in an object as a-b. The order of attributes stays, but
// those of one name come together.

type jsonReader struct {
	l    *lines
	base string
	n    int
}

func newJSONReader(r io.Reader, base string) Reader { return &jsonReader{l: newLines(r), base: base} }

// maxNested is how deep objects may be in each other.
const maxNested = 32

func (r *jsonReader) Next() (soif.Object, error) {
	for {
		line, err := r.l.next()
		if err != nil {
			return soif.Object{}, err
		}
		if isBlank(line) {
			continue
		}
		r.n++
		o, err := r.object(line)
		if err != nil {
			r.l.err = err
		}
		return o, err
	}
}

func (r *jsonReader) object(line string) (soif.Object, error) {
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	o := soif.Object{Type: "FILE"}
	err := jsonMembers(d, &o, "", 0)
	if err == nil {
		if _, err = d.Token(); err == nil {
			err = errors.New("more after the object")
		} else if err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the line ends inside of the object")
		}
		col := d.InputOffset() + 1
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			col = max(bad.Offset, 1)
		}
		return o, r.l.errorf(int(col), "%v", err)
	}
	if o.URL == "" {
		o.URL = keyed(r.base, "", r.n)
	}
	return o, nil
}

// jsonMembers reads an object, whose attributes' names begin with prefix.
func jsonMembers(d *json.Decoder, o *soif.Object, prefix string, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("more than %d objects in each other", maxNested)
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("%v where an object should be", t)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if len(prefix)+len(name) > 256 {
			return fmt.Errorf("a name of over 256 bytes")
		}
		if err := jsonValue(d, o, prefix+name, depth); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func jsonValue(d *json.Decoder, o *soif.Object, name string, depth int) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if raw[0] != '[' {
		return jsonSingle(o, name, raw, depth)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, one := range all {
		if one[0] == '[' {
			return fmt.Errorf("%s: an array in an array", name)
		}
		if err := jsonSingle(o, name, one, depth); err != nil {
			return err
		}
	}
	return nil
}

func jsonSingle(o *soif.Object, name string, raw json.RawMessage, depth int) error {
	value := string(raw)
	switch raw[0] {
	case '"':
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
	case 'n':
		return nil
	case '{':
		if b, ok := jsonBytes(raw); ok {
			value = string(b)
			break
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		return jsonMembers(d, o, name+"-", depth+1)
	}
	switch {
	case same(name, "URL"):
		o.URL = value
	case same(name, "Template-Type"):
		o.Type = templateType(value)
	default:
		o.Add(attrName(name), []byte(value))
	}
	return nil
}

// jsonBytes reads {"base64": "…"}.
func jsonBytes(raw json.RawMessage) ([]byte, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || len(m) != 1 {
		return nil, false
	}
	var text string
	if json.Unmarshal(m["base64"], &text) != nil {
		return nil, false
	}
	b, err := base64.StdEncoding.DecodeString(text)
	return b, err == nil
}

type jsonWriter struct{ w io.Writer }

func newJSONWriter(w io.Writer) Writer { return jsonWriter{w} }

func (w jsonWriter) Write(o *soif.Object) error {
	var b bytes.Buffer
	b.WriteString(`{"Template-Type":`)
	jsonText(&b, []byte(o.Type))
	b.WriteString(`,"URL":`)
	jsonText(&b, []byte(o.URL))
	done := make(map[string]bool)
	for i, a := range o.Attrs {
		low := strings.ToLower(a.Name)
		if done[low] {
			continue
		}
		done[low] = true
		b.WriteByte(',')
		name := a.Name
		if same(name, "URL") || same(name, "Template-Type") {
			name += "-1"
		}
		// A key is text, and has no form for bytes that are not.
		jsonText(&b, []byte(strings.ToValidUTF8(name, "\uFFFD")))
		b.WriteByte(':')
		jsonValues(&b, o.Attrs[i:], a.Name)
	}
	b.WriteString("}\n")
	_, err := w.w.Write(b.Bytes())
	return err
}

func (w jsonWriter) Close() error { return nil }

// jsonValues writes the values of an attribute.
func jsonValues(b *bytes.Buffer, attrs []soif.Attr, name string) {
	var all [][]byte
	for _, a := range attrs {
		if same(a.Name, name) {
			all = append(all, a.Value)
		}
	}
	if len(all) == 1 {
		jsonText(b, all[0])
		return
	}
	lead := byte('[')
	for _, v := range all {
		b.WriteByte(lead)
		jsonText(b, v)
		lead = ','
	}
	b.WriteByte(']')
}

// jsonText writes a value: as text, if it is some.
func jsonText(b *bytes.Buffer, v []byte) {
	if !utf8.Valid(v) {
		b.WriteString(`{"base64":"`)
		b.WriteString(base64.StdEncoding.EncodeToString(v))
		b.WriteString(`"}`)
		return
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.Encode(string(v)) // to a buffer, of a string: there is nothing to fail
	b.Truncate(b.Len() - 1)
}
