package match

import (
	"slices"
	"strings"
	"testing"
)

func TestRecords(t *testing.T) {
	for _, tt := range []struct{ delimiter, text, want string }{
		{"line", "a\nb\n\nc", "a\n|b\n|\n|c"},
		{"line", "a\n", "a\n"},
		{"line", "", ""},
		{"paragraph", "a\nb\n\nc\n \n\t\nd\n", "a\nb\n\n|c\n \n\t\n|d\n"},
		{"mail", "From a\nx\nFrom b\n>From c\n From d\nFrom e", "From a\nx\n|From b\n>From c\n From d\n|From e"},
		{"mail", "x\nFrom a\n", "x\n|From a\n"},
		{"^@[A-Z]+ ", "@FILE a\nb\n@DELETE c\n", "@FILE a\nb\n|@DELETE c\n"},
		{"^", "a\nb", "a\n|b"},
		{"--", "--a----b", "--a|--|--b"},
	} {
		r, err := NewRecords(tt.delimiter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for at := 0; ; {
			end, ok := r.Next([]byte(tt.text), at)
			if !ok {
				break
			}
			got = append(got, tt.text[at:end])
			at = end
		}
		if want := strings.Split(tt.want, "|"); !slices.Equal(got, want) && tt.text != "" {
			t.Errorf("%s of %q: got %q, want %q", tt.delimiter, tt.text, got, want)
		}
	}
	if _, err := NewRecords("("); err == nil {
		t.Error("got a delimiter that is no expression")
	}
}
