package soif

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each testdata/NAME.soif, read to its end and past its errors, gives NAME.want.
// The files are version 1 of the format, to be read for ever.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.soif")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read := decodeAll
		if strings.Contains(file, "update") {
			read = readAll
		}
		got := read(bytes.NewReader(in), Limits{})
		want := strings.TrimSuffix(file, ".soif") + ".want"
		if *update {
			if err := os.WriteFile(want, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(want)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(text) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, text)
		}
	}
}

// readAll is decodeAll for an update stream.
func readAll(r io.Reader, lim Limits) string {
	var b strings.Builder
	u := NewUpdateReader(r, lim)
	var c Change
	for {
		switch err := u.Next(&c); {
		case err == nil:
			line, off := u.Pos()
			fmt.Fprintf(&b, "# line %d, byte %d, %s\n%s", line, off, c.Op, c.Object.Append(nil))
			if err := u.Check(&c); err != nil {
				fmt.Fprintf(&b, "! %s\n", strings.ReplaceAll(err.Error(), "\n", "\n! "))
			}
		case err == io.EOF:
			fmt.Fprintf(&b, "# cursor %s\n", u.Cursor())
			return b.String()
		default:
			fmt.Fprintf(&b, "! %v\n", err)
			if err := u.Resync(); err != nil {
				fmt.Fprintf(&b, "! resync: %v\n", err)
				return b.String()
			}
		}
	}
}
