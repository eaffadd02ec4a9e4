package enginetest

import (
	"strconv"
	"strings"
	"testing"

	"harvest/index/query"
)

// The model finds what the golden queries are worked out to find.
func TestModel(t *testing.T) {
	m := newModel()
	for _, d := range goldenDocs() {
		m.put(d)
	}
	for _, tt := range goldenQueries {
		q, err := query.Parse(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		var got []string
		for _, d := range m.find(q, tt.opt) {
			got = append(got, strconv.Itoa(int(d.ID[0])))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s (%s): got documents %q, want %q", tt.text, optionText(tt.opt), s, tt.want)
		}
	}
}
