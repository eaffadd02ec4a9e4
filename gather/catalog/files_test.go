package catalog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
)

func TestScripts(t *testing.T) {
	fstest.Scripts(t, "testdata/script", func(tb testing.TB, _ string) (fs.Dir, func()) {
		return fs.Static(fs.RootPath, map[string]fs.Node{"soif": Files(func(part ...string) uint64 {
			return fs.ID(append([]string{"soif"}, part...)...)
		})}), func() {}
	})
}

func walk(t *testing.T, path string) fs.File {
	t.Helper()
	var n fs.Node = Files(func(part ...string) uint64 { return fs.ID(part...) })
	for name := range strings.SplitSeq(path, "/") {
		var err error
		if n, err = n.(fs.Dir).Lookup(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return n.(fs.File)
}

// TestAnswers keeps each user's answer from others, and what is kept bounded.
func TestAnswers(t *testing.T) {
	f := walk(t, "to/jsonl")
	as := func(name string) context.Context { return fs.WithUser(t.Context(), &fs.User{Name: name}) }
	put := func(name, text string) error {
		h, err := f.Open(as(name), fs.Write|fs.Trunc)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := h.WriteAt(as(name), []byte(text), 0); err != nil {
			return err
		}
		return h.Flush(as(name))
	}
	get := func(name string) string {
		h, err := f.Open(as(name), fs.Read)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1<<16)
		n, err := h.ReadAt(as(name), b, 0)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if err := put("ann", "@FILE { http://h/\nTitle{3}:\tAnn\n}\n"); err != nil {
		t.Fatal(err)
	}
	if got, want := get("ann"), `{"Template-Type":"FILE","URL":"http://h/","Title":"Ann"}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := get("bob"); got != "SOIF\n" {
		t.Errorf("got %q for another user, want the usage", got)
	}
	if err := put("ann", "@FILE"); err == nil {
		t.Error("got no error of a text that is cut")
	}
	if got := get("ann"); !strings.Contains(got, "Ann") {
		t.Errorf("got %q after a refused text, want the answer before", got)
	}
	if err := put("bob", strings.Repeat(" ", maxWritten+1)); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("got %v, want that it is too long", err)
	}
	var a answers
	a.all = make(map[answerKey]*answer)
	for i := range 100 {
		a.put(answerKey{"f", string(rune('a' + i))}, make([]byte, 1<<20))
	}
	if _, ok := a.get(answerKey{"f", "a"}); ok || a.size > keepAnswers || len(a.all) != keepAnswers>>20 {
		t.Errorf("got %d answers of %d bytes, the first among them: %t, want the last of %d bytes", len(a.all), a.size, ok, keepAnswers)
	}
}

// TestCheck tells of what it can after an error, also in a stream of updates.
func TestCheck(t *testing.T) {
	const good, bad = "@FILE { http://a\nUpdate-Time{1}:\t1\n}\n", "@FILE { http://b\nFile-Size{1}:\tx\n}\n"
	for text, want := range map[string]string{
		good + bad + "stray\n" + good:                                        "4:37: http://b: Update-Time: mandatory attribute is missing\n5:54: http://b: File-Size: \"x\" is not a number\n7:72: text outside of an object: \"stray\"\n",
		"@UPDATE {\n" + good + "}\n":                                         "6:49: update stream without a cursor at its end\n",
		"@UPDATE {\n" + bad + "}\n" + `@CURSOR { -` + "\nCursor{1}:\t1\n}\n": "2:10: http://b: Update-Time: mandatory attribute is missing\n3:27: http://b: File-Size: \"x\" is not a number\n",
	} {
		var b bytes.Buffer
		if _, _, err := Check(t.Context(), &b, strings.NewReader(text)); err != nil || b.String() != want {
			t.Errorf("%q: got %s, %v, want %s", text, &b, err, want)
		}
	}
}
