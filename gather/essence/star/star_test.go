package star

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// serve asks Serve with a file and documents, and gives its answers.
func serve(t *testing.T, call, source string, docs ...string) (all []Reply) {
	t.Helper()
	var in, out bytes.Buffer
	line := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(b, '\n'))
	}
	line(Program{File: "T.star", Source: source, Call: call})
	for _, d := range docs {
		line(Doc{URL: "http://x/a", Name: "a", Type: "T", Size: int64(len(d)), Length: len(d)})
		in.WriteString(d)
	}
	if err := Serve(&in, &out); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(&out); ; {
		var r Reply
		if err := d.Decode(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func TestServe(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"A": doc.text, "B": [doc.url, doc.name], "C": doc.size, "D": None, "E": 1.5, "F": True}`, "A=a 1 b 22|B=http://x/a\na|C=8|D=|E=1.5|F=true"},
		{`{"A": re.find("[0-9]+", doc.text)}`, "A=1"},
		{`{"A": re.find("b ([0-9])([0-9])", doc.text)[1]}`, "A=2"},
		{`{"A": re.findall("[a-z] ([0-9]+)", doc.text)}`, "A=1\n22"},
		{`{"A": re.sub("([0-9]+)", "<$1>", doc.text)}`, "A=a <1> b <22>"},
		{`{"A": str(re.find("x", doc.text))}`, "A=None"},
		{`{"A": json.decode('{"k": ["v"]}')["k"]}`, "A=v"},
		{`{"A": doc.bytes}`, "A=a 1 b 22"},
		{`None`, "none"},
		{`{1: "x"}`, "1:1: the name of an attribute is a int, not a string"},
		{`{"A": {}}`, "1:1: A: a dict is no value of an attribute"},
		{`{"A": [1]}`, "1:1: A: a int in a list, not a string"},
		{`re.find("(", "")`, "2:19: error parsing regexp: missing closing ): `(`"},
		{`[]`, "1:1: a list was returned, where a dict of attributes is wanted"},
		{`open("/etc/passwd")`, "2:12: undefined: open"},
	} {
		all := serve(t, "summarize", "def summarize(doc):\n    return "+c.body+"\n", "a 1 b 22")
		if got := show(all[len(all)-1]); got != c.want {
			t.Errorf("%s: got %q, want %q", c.body, got, c.want)
		}
	}
	all := serve(t, "explode", "def explode(doc):\n    return [{\"URL\": l, \"T\": \"x\"} for l in doc.text.splitlines()]\n", "one\ntwo\n", "")
	if len(all) != 3 || show(all[1]) != "URL=one|T=x||URL=two|T=x" || len(all[2].Objects) != 0 || all[2].None || all[2].Err != nil {
		t.Errorf("explode: got %+v", all)
	}
}

func show(r Reply) string {
	switch {
	case r.Err != nil:
		return r.Err.Error()
	case r.None:
		return "none"
	}
	var objects []string
	for _, o := range r.Objects {
		var attrs []string
		for _, a := range o.Attrs {
			attrs = append(attrs, a[0]+"="+a[1])
		}
		objects = append(objects, strings.Join(attrs, "|"))
	}
	return strings.Join(objects, "||")
}

// TestStateless: a document leaves nothing for the next.
func TestStateless(t *testing.T) {
	all := serve(t, "summarize", "seen = []\ndef summarize(doc):\n    seen.append(doc.text)\n    return {\"A\": seen}\n", "one", "two")
	if len(all) != 3 || all[1].Err == nil || !strings.Contains(all[1].Err.Msg, "frozen") || all[2].Err == nil {
		t.Errorf("got %s", fmt.Sprint(all))
	}
}
