package index_test

import (
	"context"
	"testing"

	"harvest/index/query"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, text string) query.Node {
	t.Helper()
	q, err := query.Parse(text)
	must(t, err)
	return q
}
