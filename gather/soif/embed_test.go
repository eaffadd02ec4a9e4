package soif

import (
	"fmt"
	"slices"
	"testing"
)

func TestEmbed(t *testing.T) {
	o := object("Type", "Tar", "Embed2-Type", "Zip", "embed1-Type", "README", "Embed2-Embed1-Type", "Text", "Embed2-Title", "z",
		"Embed0-Type", "-", "Embed01-Type", "-", "Embed3-", "-", "Embed-Type", "-", "Embed4", "-", "Embedded1-x", "-", "Embed99999999999999999999-x", "-")
	if got, want := o.Embeds(), []int{1, 2}; !slices.Equal(got, want) {
		t.Errorf("got members %v, want %v", got, want)
	}
	m, ok := o.Embed(2)
	want := object("Type", "Zip", "Embed1-Type", "Text", "Title", "z")
	if !ok || !m.Equal(&want) {
		t.Errorf("member 2: got %v\n%s\nwant\n%s", ok, m.Append(nil), want.Append(nil))
	}
	if m, ok := o.Embed(1); !ok || len(m.Attrs) != 1 || m.Text("Type") != "README" {
		t.Errorf("member 1: got %v\n%s\nwant Type README alone", ok, m.Append(nil))
	}
	m, ok = m.Embed(1)
	want = object("Type", "Text")
	if !ok || !m.Equal(&want) {
		t.Errorf("member 2.1: got %v\n%s\nwant\n%s", ok, m.Append(nil), want.Append(nil))
	}
	for _, n := range []int{0, 3, 4, -1} {
		if m, ok := o.Embed(n); ok {
			t.Errorf("member %d: got %s, want none", n, m.Append(nil))
		}
	}
}

// Members in members to any depth come back through encoding and decoding.
func TestEmbedDeep(t *testing.T) {
	const levels = 20
	inner := object("Level", fmt.Sprint(levels))
	for i := levels - 1; i >= 0; i-- {
		outer := object("Level", fmt.Sprint(i))
		outer.AddEmbed(i+1, &inner)
		inner = outer
	}
	o, _, err := Parse(inner.Append(nil), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Depth(o.Attrs[len(o.Attrs)-1].Name); got != levels {
		t.Errorf("got depth %d, want %d", got, levels)
	}
	for i := range levels {
		if got, want := o.Text("level"), fmt.Sprint(i); got != want {
			t.Fatalf("at level %d: got %s", i, got)
		}
		var ok bool
		if o, ok = o.Embed(i + 1); !ok {
			t.Fatalf("no member %d at level %d", i+1, i)
		}
	}
	if got, want := o.Text("Level"), fmt.Sprint(levels); got != want || len(o.Attrs) != 1 {
		t.Errorf("innermost: got %s with %d attributes, want %s with 1", got, len(o.Attrs), want)
	}
}
